//! Flags of single writes: `pwritev2(…, RWF_DSYNC)` and `aio_rw_flags` of `io_submit`.
//!
//! The calls of a replay have none; open files do. Where all writes through an open file have the same flags, it is opened with
//! them. Otherwise the file is opened once more with them, right after the first time.

use std::collections::{BTreeMap, BTreeSet};

use iosched_syscalls::OpenFlags;

use super::args::has;
use super::before::Inherited;
use super::read::Reader;
use super::{Act, Log, Step};

/// Writes with flags of their own.
#[derive(Debug, Default)]
pub(super) struct Flagged {
    /// The open file for those with flags, by file and flags.
    twins: BTreeMap<(u32, OpenFlags), u32>,
    /// Files with writes without flags.
    plain: BTreeSet<u32>,
}

/// The flags of an open file that do the same as those of a write.
pub(super) fn of_write(words: &str) -> OpenFlags {
    let mut flags = OpenFlags::default();
    for (word, flag) in [
        ("RWF_SYNC", OpenFlags::SYNC),
        ("RWF_DSYNC", OpenFlags::DSYNC),
        ("RWF_APPEND", OpenFlags::APPEND),
    ] {
        if has(words, word) {
            flags = flags | flag;
        }
    }
    flags
}

impl Reader {
    /// The open file through which a write with flags goes.
    pub(super) fn with_flags(&mut self, file: u32, flags: OpenFlags) -> u32 {
        if flags == OpenFlags::default() {
            self.flagged.plain.insert(file);
            return file;
        }
        if let Some(twin) = self.flagged.twins.get(&(file, flags)) {
            return *twin;
        }
        let twin = self.new_file(&self.opened[file as usize].clone());
        self.flagged.twins.insert((file, flags), twin);
        twin
    }

    /// Opens what [`Reader::with_flags`] gave out.
    pub(super) fn open_flagged(&mut self) {
        let Flagged { twins, plain } = std::mem::take(&mut self.flagged);
        let of = |file: u32| twins.keys().filter(|(f, _)| *f == file).count();
        for ((file, flags), twin) in &twins {
            let alone = of(*file) == 1 && !plain.contains(file) && !flags.has(OpenFlags::APPEND);
            match alone {
                true => self.log.flag(*file, *twin, *flags),
                false => {
                    let more = self.log.open_again(*file, *twin, *flags);
                    for l in &mut self.listings {
                        let before = more.iter().filter(|(t, step)| *t == l.task && *step < l.step);
                        l.step += before.count();
                    }
                }
            }
        }
    }
}

impl Log {
    /// A file is opened with more flags, and does what its twin would.
    fn flag(&mut self, of: u32, twin: u32, more: OpenFlags) {
        self.inherited.iter_mut().filter(|i| i.file == of).for_each(|i| i.flags = i.flags | more);
        for step in self.tasks.iter_mut().flat_map(|t| &mut t.steps) {
            match &mut step.act {
                Act::Open { file, flags, .. } if *file == of => *flags = *flags | more,
                Act::Write { file, .. } | Act::Pwrite { file, .. } | Act::Submit { file, .. }
                    if *file == twin =>
                {
                    *file = of;
                }
                _ => {}
            }
        }
    }

    /// A file is opened twice. A write at its own position goes through the first, and the sync is a call. Returns the task
    /// and number of each step that has one more behind it.
    fn open_again(&mut self, of: u32, twin: u32, more: OpenFlags) -> Vec<(usize, usize)> {
        let mut added = Vec::new();
        let inherited = self.inherited.iter().find(|i| i.file == of).copied();
        self.inherited.extend(inherited.map(|i| Inherited {
            file: twin,
            flags: i.flags | more,
            ..i
        }));
        for (t, task) in self.tasks.iter_mut().enumerate() {
            let mut steps = Vec::with_capacity(task.steps.len());
            for (i, mut step) in task.steps.drain(..).enumerate() {
                let next = match &mut step.act {
                    Act::Open { name, flags, file }
                        if *file == of && step.answer.is_some_and(|a| a.is_ok()) =>
                    {
                        Some(Act::Open { name: *name, flags: again(*flags) | more, file: twin })
                    }
                    Act::Close { file } if *file == of => Some(Act::Close { file: twin }),
                    Act::Write { file, .. } if *file == twin && !more.has(OpenFlags::APPEND) => {
                        *file = of;
                        Some(match more.has(OpenFlags::SYNC) {
                            true => Act::Fsync { file: of },
                            false => Act::Fdatasync { file: of },
                        })
                    }
                    _ => None,
                };
                added.extend(next.map(|_| (t, i)));
                let line = step.line;
                steps.push(step);
                steps.extend(next.map(|act| Step { line, think: 0, act, answer: None }));
            }
            task.steps = steps;
        }
        added
    }
}

/// The flags with which a file that is there is opened again.
fn again(flags: OpenFlags) -> OpenFlags {
    let made = [OpenFlags::CREATE, OpenFlags::EXCLUSIVE, OpenFlags::TRUNCATE];
    made.into_iter().fold(flags, OpenFlags::without)
}
