//! Writes down what programs call, as strace does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iosched_types::{Bytes, Nanos};

use crate::{Answer, Birth, Call, Done, Fd, MapId, OpenFlags, Part, Program, Shares};

/// Calls that are kept: some hundred megabytes.
const MOST: usize = 2_000_000;

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What the manual calls it; see [`Call::NAMES`].
    pub call: &'static str,
    /// The file, as it was named when it was opened; empty where there is none.
    pub name: Arc<str>,
    /// How the file is, or was, opened.
    pub flags: OpenFlags,
    /// Position, where the call names one.
    pub at: Option<Bytes>,
    /// Bytes, where the call names them.
    pub len: Option<Bytes>,
    /// When it was made.
    pub begin: Nanos,
    /// When its answer was there.
    pub end: Nanos,
}

impl Seen {
    /// How long it took.
    #[must_use]
    pub fn took(&self) -> Nanos {
        self.end - self.begin
    }
}

/// What a program says is an operation, or a part of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its name.
    pub what: &'static str,
    /// Which process.
    pub process: usize,
    /// When it began.
    pub begin: Nanos,
    /// When it ended.
    pub end: Nanos,
}

/// What was called.
#[derive(Debug, Default)]
pub struct Recording {
    /// The calls of each process or thread, in the order of their births.
    pub processes: Vec<Vec<Seen>>,
    /// Which process made each one; the first was made by none.
    pub parents: Vec<Option<usize>>,
    /// Operations, as they ended.
    pub operations: Vec<Span>,
    /// Parts of the run, as they ended.
    pub parts: Vec<Span>,
    /// Calls that were not kept, as there were too many.
    pub left_out: u64,
    /// Calls that were kept.
    pub(crate) kept: usize,
}

impl Recording {
    fn born(&mut self, parent: Option<usize>) -> usize {
        self.processes.push(Vec::new());
        self.parents.push(parent);
        self.processes.len() - 1
    }

    /// Whether one process was made by another, or by one that it made.
    #[must_use]
    pub fn descends(&self, process: usize, from: usize) -> bool {
        let mut at = Some(process);
        while let Some(p) = at {
            if p == from {
                return true;
            }
            at = self.parents.get(p).copied().flatten();
        }
        false
    }
}

/// Name of a file, and how it was opened.
type File = (Arc<str>, OpenFlags);

/// A recording that goes on.
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Recording>>);

/// Names of descriptors and maps. Threads share them, processes inherit a copy.
#[derive(Clone, Default)]
struct Names {
    files: BTreeMap<Fd, File>,
    maps: BTreeMap<MapId, Arc<str>>,
}

impl Recorder {
    /// The same program, and what it will make, under observation.
    #[must_use]
    pub fn observe(&self, birth: Birth) -> Birth {
        self.child(birth, None, Arc::default())
    }

    /// What was recorded so far; the recorder begins anew.
    #[must_use]
    pub fn take(&self) -> Recording {
        std::mem::take(&mut *lock(&self.0))
    }

    fn child(&self, birth: Birth, parent: Option<usize>, names: Arc<Mutex<Names>>) -> Birth {
        let log = self.clone();
        Birth(Box::new(move || {
            let process = lock(&log.0).born(parent);
            Box::new(Observed { inner: (birth.0)(), log, process, names, called: None })
        }))
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    // A recording is of use even if the program that made it has panicked.
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program whose calls are written down.
struct Observed {
    inner: Box<dyn Program>,
    log: Recorder,
    process: usize,
    names: Arc<Mutex<Names>>,
    /// The call that is under way.
    called: Option<Seen>,
}

impl Observed {
    /// The call that was under way has its answer.
    fn ended(&mut self, now: Nanos, answer: Answer) {
        let Some(mut seen) = self.called.take() else { return };
        seen.end = now;
        if let Ok(n) = answer {
            let mut names = lock(&self.names);
            match seen.call {
                "open" | "dup" => {
                    names.files.insert(Fd(n as u32), (seen.name.clone(), seen.flags));
                }
                "mmap" => {
                    names.maps.insert(MapId(n as u32), seen.name.clone());
                }
                _ => {}
            }
        }
        let mut log = lock(&self.log.0);
        if log.kept == MOST {
            log.left_out += 1;
            return;
        }
        log.kept += 1;
        if let Some(calls) = log.processes.get_mut(self.process) {
            calls.push(seen);
        }
    }

    fn begun(&mut self, now: Nanos, call: &Call) {
        let span = |what, begin| Span { what, process: self.process, begin, end: now };
        match call {
            Call::Note { what, since, .. } => {
                return lock(&self.log.0).operations.push(span(*what, *since));
            }
            // An event is no part of the run: it has no calls of its own.
            Call::Mark { part: Part::Event, .. } => return,
            Call::Mark { what, since, .. } => {
                return lock(&self.log.0).parts.push(span(*what, *since));
            }
            Call::Figure { .. }
            | Call::Look { .. }
            | Call::Add { .. }
            | Call::Stopped
            | Call::Copied { .. } => return,
            _ => {}
        }
        let ((name, flags), at, len) = self.about(call);
        let call = call.name();
        self.called = Some(Seen { call, name, flags, at, len, begin: now, end: now });
    }

    /// File, position and bytes.
    fn about(&self, call: &Call) -> (File, Option<Bytes>, Option<Bytes>) {
        let names = lock(&self.names);
        let of = |fd: &Fd| names.files.get(fd).cloned().unwrap_or_default();
        let map =
            |id: &MapId| (names.maps.get(id).cloned().unwrap_or_default(), OpenFlags::default());
        match call {
            Call::Open { path, flags } => ((Arc::from(&**path), *flags), None, None),
            Call::Stat { path, .. }
            | Call::Touch { path }
            | Call::Unlink { path }
            | Call::Rename { from: path, .. }
            | Call::Symlink { path, .. }
            | Call::ReadLink { path, .. }
            | Call::Mkdir { path }
            | Call::Rmdir { path } => ((Arc::from(&**path), OpenFlags::default()), None, None),
            Call::Read { fd, len } | Call::Write { fd, len } | Call::Truncate { fd, len } => {
                (of(fd), None, Some(*len))
            }
            Call::CopyRange { from, len, .. } => (of(from), None, Some(*len)),
            Call::Pread { fd, at, len }
            | Call::Pwrite { fd, at, len }
            | Call::Fallocate { fd, at, len, .. }
            | Call::Advise { fd, at, len, .. }
            | Call::SyncRange { fd, at, len, .. }
            | Call::Discard { fd, at, len }
            | Call::Map { fd, at, len } => (of(fd), Some(*at), Some(*len)),
            Call::Submit { io } | Call::Ring { io } => {
                (of(&io.fd), Some(io.at), Some(u64::from(io.len)))
            }
            Call::Close { fd }
            | Call::Dup { fd }
            | Call::Seek { fd, .. }
            | Call::Fsync { fd }
            | Call::Fdatasync { fd }
            | Call::SyncFs { fd }
            | Call::Fstat { fd, .. }
            | Call::TouchFd { fd }
            | Call::ReadDir { fd, .. } => (of(fd), None, None),
            Call::Load { map: id, at } | Call::Store { map: id, at } => (map(id), Some(*at), None),
            Call::Unmap { map: id } | Call::AdviseMap { map: id, .. } => (map(id), None, None),
            Call::Elsewhere { bytes } => (File::default(), None, Some(*bytes)),
            _ => (File::default(), None, None),
        }
    }
}

impl Program for Observed {
    fn resume(&mut self, now: Nanos, answer: Answer) -> Option<Call> {
        self.ended(now, answer);
        let mut call = self.inner.resume(now, answer)?;
        self.begun(now, &call);
        if let Call::Spawn { birth, shares, .. } = &mut call {
            let names = match shares {
                Shares::Everything => self.names.clone(),
                Shares::OpenFiles => Arc::new(Mutex::new(lock(&self.names).clone())),
            };
            let nothing = Birth(Box::new(|| Box::new(Ended)));
            let inner = std::mem::replace(birth, nothing);
            *birth = self.log.child(inner, Some(self.process), names);
        }
        Some(call)
    }

    fn status(&self) -> Done {
        self.inner.status()
    }
}

/// A program that does nothing.
struct Ended;

impl Program for Ended {
    fn resume(&mut self, _: Nanos, _: Answer) -> Option<Call> {
        None
    }

    fn status(&self) -> Done {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Script;

    fn play(birth: Birth, answers: &[u64]) -> Vec<Birth> {
        let mut program = (birth.0)();
        let mut born = Vec::new();
        let mut now = 0;
        let mut answer = Ok(0);
        for next in answers {
            match program.resume(now, answer) {
                Some(Call::Spawn { birth, .. }) => born.push(birth),
                Some(_) => {}
                None => break,
            }
            now += 10;
            answer = Ok(*next);
        }
        assert!(program.resume(now, answer).is_none(), "more answers than were given");
        born
    }

    #[test]
    fn calls_have_names_times_and_operations() {
        let recorder = Recorder::default();
        let program = Birth(Box::new(|| {
            Box::new(Script::new(async |sys| {
                let begun = sys.now();
                let fd = sys.open("dir/log", OpenFlags::WRITE | OpenFlags::DSYNC).await?;
                sys.pwrite(fd, 512, 4096).await?;
                sys.fsync(fd).await?;
                sys.note("block", begun, 4096).await?;
                sys.mark(Part::Phase, "all", begun).await
            }))
        }));
        play(recorder.observe(program), &[7, 4096, 0, 0, 0]);
        let seen = recorder.take();
        let calls: Vec<_> = seen.processes[0]
            .iter()
            .map(|c| (c.call, &*c.name, c.at, c.len, c.begin, c.end))
            .collect();
        assert_eq!(
            calls,
            [
                ("open", "dir/log", None, None, 0, 10),
                ("pwrite", "dir/log", Some(512), Some(4096), 10, 20),
                ("fsync", "dir/log", None, None, 20, 30),
            ]
        );
        assert!(seen.processes[0][0].flags.has(OpenFlags::DSYNC));
        let block = Span { what: "block", process: 0, begin: 0, end: 30 };
        assert_eq!(seen.operations, [block]);
        assert_eq!(seen.parts, [Span { what: "all", end: 40, ..block }]);
    }

    #[test]
    fn a_child_knows_the_names_that_its_parent_opened() {
        let recorder = Recorder::default();
        let program = Birth(Box::new(|| {
            Box::new(Script::new(async |sys| {
                let fd = sys.open("shared", OpenFlags::READ).await?;
                sys.fork(async move |sys| sys.read(fd, 100).await.map(drop)).await.map(drop)
            }))
        }));
        let born = play(recorder.observe(program), &[3, 1]);
        for b in born {
            play(b, &[100]);
        }
        let seen = recorder.take();
        assert_eq!(seen.parents, [None, Some(0)]);
        assert_eq!((&*seen.processes[1][0].name, seen.processes[1][0].call), ("shared", "read"));
        assert!(seen.descends(1, 0) && !seen.descends(0, 1));
    }
}
