//! A log as a program.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use iosched_syscalls::{
    Answer, Birth, Call, Completion, Entry, Fd, Io, MapId, Path, PathCache, Program, Script,
    Shares, Stat,
};
use iosched_types::Nanos;

use super::{Act, Log, Step};
use crate::programs::files;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// A number that is not known yet.
const NONE: u32 = u32::MAX;

/// A log on its way, known to all its tasks.
pub struct Replay {
    log: Arc<Log>,
    /// The descriptors of open files. Processes have the same number for a file that they inherit.
    fds: Box<[AtomicU32]>,
    /// The numbers of maps.
    maps: Box<[AtomicU32]>,
    /// The tasks' own numbers.
    ids: Box<[AtomicU32]>,
    others: AtomicU64,
    first: AtomicU32,
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Replay({} tasks, {} calls)", self.log.tasks.len(), self.log.replayed())
    }
}

impl Replay {
    /// A log that has not begun.
    #[must_use]
    pub fn new(log: Arc<Log>) -> Arc<Replay> {
        let numbers = |n: usize| (0..n).map(|_| AtomicU32::new(NONE)).collect();
        Arc::new(Replay {
            fds: numbers(log.opened as usize),
            maps: numbers(log.mapped as usize),
            ids: numbers(log.tasks.len()),
            others: AtomicU64::new(0),
            first: AtomicU32::new(NONE),
            log,
        })
    }

    /// Calls with another answer than in the log, and the line of one of the first.
    #[must_use]
    pub fn answered_otherwise(&self) -> Option<(u64, u32)> {
        let n = self.others.load(Relaxed);
        (n > 0).then(|| (n, self.first.load(Relaxed)))
    }

    /// Makes what was there when the log began; what `first` has made before it stays.
    #[must_use]
    pub fn preparation(self: &Arc<Self>, first: Option<Birth>) -> Birth {
        let log = self.log.clone();
        Birth(Box::new(move || {
            Box::new(Script::new(async move |sys| {
                if let Some(birth) = first {
                    sys.call(Call::Spawn { shares: Shares::OpenFiles, role: "", birth }).await?;
                    files::wait_for(&sys, 1).await?;
                }
                let mut made = files::Made::default();
                for name in log.tops.iter().copied().chain(log.directories.iter().map(|d| &**d)) {
                    made.make(&sys, name).await?;
                }
                for (name, len) in &log.files {
                    if let Some((above, _)) = name.rsplit_once('/') {
                        made.make(&sys, above).await?;
                    }
                    if sys.stat(name).await.is_ok_and(|s| s.bytes >= *len) {
                        continue;
                    }
                    let fd = sys.creat(name).await?;
                    files::write_all(&sys, fd, *len).await?;
                    sys.close(fd).await?;
                }
                sys.sync().await
            })) as Box<dyn Program>
        }))
    }

    /// All tasks of the log.
    #[must_use]
    pub fn measured(self: &Arc<Self>) -> Birth {
        let replay = self.clone();
        let roots: Vec<usize> =
            (0..self.log.tasks.len()).filter(|t| self.log.tasks[*t].parent.is_none()).collect();
        let inherits = !self.log.inherited.is_empty();
        Birth(Box::new(move || match roots[..] {
            [only] if !inherits => Box::new(Player::new(replay, only)) as Box<dyn Program>,
            _ => Box::new(Script::new(async move |sys| {
                for open in &replay.log.inherited {
                    let name = &replay.log.names[open.name as usize];
                    let fd = sys.open(name, open.flags).await?;
                    replay.fds[open.file as usize].store(fd.0, Relaxed);
                }
                for task in &roots {
                    let (replay, task) = (replay.clone(), *task);
                    let threads = replay.log.threads;
                    let shares = if threads { Shares::Everything } else { Shares::OpenFiles };
                    let birth = Birth(Box::new(move || Box::new(Player::new(replay, task))));
                    sys.call(Call::Spawn { shares, role: "", birth }).await?;
                }
                files::wait_for(&sys, roots.len() as u64).await
            })),
        }))
    }
}

/// What a player does next with a step.
#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Think,
    Act,
    /// The answer is on its way.
    Answer(Nanos),
}

/// A task of a log.
struct Player {
    replay: Arc<Replay>,
    task: usize,
    next: usize,
    /// Which step comes when, once a walk has found its directory's names in another order.
    order: Vec<u32>,
    /// Names of open directories as they were read here.
    listed: BTreeMap<u32, Vec<Box<str>>>,
    phase: Phase,
    paths: PathCache,
    stat: Rc<Cell<Stat>>,
    entries: Rc<RefCell<Vec<Entry>>>,
    /// Bytes of a pipe that the step still waits for, or of a map that it has read.
    left: Option<u64>,
    ios: Ios,
}

/// Asynchronous I/Os of a task.
#[derive(Default)]
struct Ios {
    /// When each began and whether it is a write, by tag.
    begun: Vec<(Nanos, bool)>,
    /// Tags that can be used again.
    free: Vec<u32>,
    completed: Rc<RefCell<Vec<Completion>>>,
    /// Those that came before the log waited for them.
    early: u64,
    /// Operations to report.
    notes: VecDeque<Call>,
}

impl Ios {
    /// A tag for an I/O that begins.
    fn begin(&mut self, now: Nanos, write: bool) -> u32 {
        let tag = self.free.pop().unwrap_or(self.begun.len() as u32);
        match self.begun.get_mut(tag as usize) {
            Some(slot) => *slot = (now, write),
            None => self.begun.push((now, write)),
        }
        tag
    }

    /// How many must come so that so many have.
    fn min(&self, count: u32) -> u32 {
        u64::from(count).saturating_sub(self.early) as u32
    }

    /// Those that came, when so many were waited for.
    fn came(&mut self, count: u32) {
        let mut all = self.completed.borrow_mut();
        self.early = (self.early + all.len() as u64).saturating_sub(u64::from(count));
        for c in all.drain(..) {
            let Some((since, write)) = self.begun.get(c.tag as usize).copied() else { continue };
            self.free.push(c.tag);
            let what = if write { "write" } else { "read" };
            self.notes.push_back(Call::Note { what, since, bytes: c.answer.unwrap_or(0) });
        }
    }
}

impl Player {
    fn new(replay: Arc<Replay>, task: usize) -> Player {
        Player {
            replay,
            task,
            next: 0,
            order: Vec::new(),
            listed: BTreeMap::new(),
            phase: Phase::Think,
            paths: PathCache::default(),
            stat: Rc::default(),
            entries: Rc::default(),
            left: None,
            ios: Ios::default(),
        }
    }

    fn step(&self) -> Option<&Step> {
        self.replay.log.tasks[self.task].steps.get(self.index())
    }

    /// Which step comes next.
    fn index(&self) -> usize {
        self.order.get(self.next).map_or(self.next, |i| *i as usize)
    }

    /// Where a walk begins, its names are taken up in the order in which they were read here.
    fn walks(&mut self) {
        let task = &self.replay.log.tasks[self.task];
        let first = self.index();
        let Ok(walk) = task.walks.binary_search_by_key(&first, |w| w.first) else { return };
        let walk = &task.walks[walk];
        let Some(names) = self.listed.remove(&walk.file) else { return };
        let place: BTreeMap<&str, usize> =
            names.iter().enumerate().map(|(i, n)| (&**n, i)).collect();
        let mut parts: Vec<_> = walk.ranges().collect();
        parts.sort_by_key(|(name, _)| place.get(name).copied().unwrap_or(usize::MAX));
        if self.order.is_empty() {
            self.order = (0..task.steps.len() as u32).collect();
        }
        let steps = parts.into_iter().flat_map(|(_, range)| range);
        for (slot, step) in self.order[self.next..].iter_mut().zip(steps) {
            *slot = step as u32;
        }
    }

    /// Notes the names of a directory that a walk goes through.
    fn note_names(&mut self, file: u32) {
        let mut entries = self.entries.borrow_mut();
        if self.replay.log.tasks[self.task].walks.iter().any(|w| w.file == file) {
            let names = self.listed.entry(file).or_default();
            names.extend(entries.iter().map(|e| Box::from(&*e.name)));
        }
        entries.clear();
    }

    fn fd(&self, file: u32) -> Fd {
        Fd(self.replay.fds[file as usize].load(Relaxed))
    }

    fn path(&self, slot: usize, name: u32) -> Path {
        self.paths.make(slot, &self.replay.log.names[name as usize])
    }

    /// The call that reads what is still missing of a pipe's bytes.
    fn more_of_pipe(&mut self, answer: Answer) -> Option<Call> {
        let Act::Drain { file, len } = self.step()?.act else { return None };
        let left = self.left.take().unwrap_or(len);
        let came = answer.ok().filter(|n| *n > 0 && *n < left)?;
        self.left = Some(left - came);
        Some(Call::Read { fd: self.fd(file), len: left - came })
    }

    /// The next page of a map.
    fn more_of_map(&mut self, answer: Answer) -> Option<Call> {
        let Act::Map { len, map, whole, .. } = self.step()?.act else { return None };
        let before = self.left.take();
        let came = answer.ok()?;
        let at = match before {
            None => {
                self.replay.maps[map as usize].store(came as u32, Relaxed);
                0
            }
            Some(at) => at + PAGE,
        };
        if at > 0 && (!whole || at >= len) {
            return None;
        }
        self.left = Some(at);
        Some(Call::Load { map: self.map(map), at })
    }

    fn map(&self, map: u32) -> MapId {
        MapId(self.replay.maps[map as usize].load(Relaxed))
    }

    /// Notes an answer, and whether it differs from the log's.
    fn answered(&self, step: &Step, answer: Answer) {
        let keep = |cell: &AtomicU32, n: u64| cell.store(n as u32, Relaxed);
        match (step.act, answer) {
            (Act::Open { file, .. }, Ok(n)) => keep(&self.replay.fds[file as usize], n),
            (Act::Pipe { reads, writes }, Ok(n)) => {
                keep(&self.replay.fds[reads as usize], n);
                keep(&self.replay.fds[writes as usize], n >> 32);
            }
            (Act::Child { task }, Ok(n)) => keep(&self.replay.ids[task as usize], n),
            _ => {}
        }
        let differs = step.answer.is_some_and(|wanted| match step.act {
            Act::Read { .. }
            | Act::Pread { .. }
            | Act::Write { .. }
            | Act::Pwrite { .. }
            | Act::Seek { .. } => wanted != answer,
            _ => wanted.map(drop) != answer.map(drop),
        });
        if differs && self.replay.others.fetch_add(1, Relaxed) == 0 {
            self.replay.first.store(step.line, Relaxed);
        }
    }

    fn call(&mut self, act: Act, now: Nanos) -> Call {
        if let Act::Submit { file, write, at, len } = act {
            let tag = self.ios.begin(now, write);
            return Call::Submit { io: Io { fd: self.fd(file), write, at, len, tag } };
        }
        let fd = |file| self.fd(file);
        match act {
            Act::Open { name, flags, .. } => Call::Open { path: self.path(0, name), flags },
            Act::Close { file } => Call::Close { fd: fd(file) },
            Act::Read { file, len } => Call::Read { fd: fd(file), len },
            Act::Pread { file, at, len } => Call::Pread { fd: fd(file), at, len },
            Act::Write { file, len } => Call::Write { fd: fd(file), len },
            Act::Pwrite { file, at, len } => Call::Pwrite { fd: fd(file), at, len },
            Act::Seek { file, to, whence } => Call::Seek { fd: fd(file), to, whence },
            Act::Truncate { file, len } => Call::Truncate { fd: fd(file), len },
            Act::Fallocate { file, at, len, keep_size } => {
                Call::Fallocate { fd: fd(file), at, len, keep_size }
            }
            Act::Advise { file, at, len, advice } => Call::Advise { fd: fd(file), at, len, advice },
            Act::Fsync { file } => Call::Fsync { fd: fd(file) },
            Act::Fdatasync { file } => Call::Fdatasync { fd: fd(file) },
            Act::SyncRange { file, at, len, wait } => {
                Call::SyncRange { fd: fd(file), at, len, wait }
            }
            Act::SyncFs { file } => Call::SyncFs { fd: fd(file) },
            Act::Sync => Call::Sync,
            Act::Fstat { file } => Call::Fstat { fd: fd(file), into: self.stat.clone() },
            Act::TouchFile { file } => Call::TouchFd { fd: fd(file) },
            Act::ReadDir { file } => Call::ReadDir { fd: fd(file), into: self.entries.clone() },
            Act::Drain { file, len } => Call::Read { fd: fd(file), len: self.left.unwrap_or(len) },
            Act::Submit { .. } => Call::GetPid,
            Act::Reap { count } => {
                Call::Reap { min: self.ios.min(count), into: self.ios.completed.clone() }
            }
            Act::CopyRange { from, to, len } => Call::CopyRange { from: fd(from), to: fd(to), len },
            Act::Stat { name, follow } => {
                Call::Stat { path: self.path(0, name), follow, into: self.stat.clone() }
            }
            Act::Symlink { target, name } => {
                Call::Symlink { target: self.path(1, target), path: self.path(0, name) }
            }
            Act::ReadLink { name } => {
                Call::ReadLink { path: self.path(0, name), into: Rc::default() }
            }
            Act::Touch { name } => Call::Touch { path: self.path(0, name) },
            Act::Unlink { name } => Call::Unlink { path: self.path(0, name) },
            Act::Rename { from, to } => {
                Call::Rename { from: self.path(0, from), to: self.path(1, to) }
            }
            Act::Mkdir { name } => Call::Mkdir { path: self.path(0, name) },
            Act::Rmdir { name } => Call::Rmdir { path: self.path(0, name) },
            Act::Map { file, at, len, .. } => Call::Map { fd: fd(file), at, len },
            Act::Unmap { map } => Call::Unmap { map: self.map(map) },
            Act::Pipe { .. } => Call::Pipe,
            Act::Child { task } => {
                let (replay, task) = (self.replay.clone(), task as usize);
                let shares = match replay.log.tasks[task].thread {
                    true => Shares::Everything,
                    false => Shares::OpenFiles,
                };
                let birth = Birth(Box::new(move || Box::new(Player::new(replay, task))));
                Call::Spawn { shares, role: "", birth }
            }
            Act::Join { task } => Call::Join { task: self.replay.ids[task as usize].load(Relaxed) },
            Act::Pause { time } => Call::Sleep { time },
            Act::Elsewhere { bytes } => Call::Elsewhere { bytes },
            Act::Null => Call::GetPid,
        }
    }
}

impl Program for Player {
    fn resume(&mut self, now: Nanos, answer: Answer) -> Option<Call> {
        if let Some(note) = self.ios.notes.pop_front() {
            return Some(note);
        }
        if let Phase::Answer(since) = self.phase {
            if let Some(again) = self.more_of_pipe(answer).or_else(|| self.more_of_map(answer)) {
                return Some(again);
            }
            self.phase = Phase::Think;
            let done = self.index();
            self.next += 1;
            if let Act::ReadDir { file } = self.replay.log.tasks[self.task].steps[done].act {
                self.note_names(file);
            }
            let step = &self.replay.log.tasks[self.task].steps[done];
            self.answered(step, answer);
            if let Act::Reap { count } = step.act {
                self.ios.came(count);
                if let Some(note) = self.ios.notes.pop_front() {
                    return Some(note);
                }
            }
            if let Some(what) = noted(step.act) {
                let bytes = match step.act {
                    Act::Read { .. }
                    | Act::Pread { .. }
                    | Act::Write { .. }
                    | Act::Pwrite { .. } => answer.unwrap_or(0),
                    Act::Drain { len, .. } | Act::Map { len, whole: true, .. } => len,
                    _ => 0,
                };
                return Some(Call::Note { what, since, bytes });
            }
        }
        if self.phase == Phase::Think {
            self.walks();
        }
        let Step { think, act, .. } = *self.step()?;
        if self.phase == Phase::Think {
            self.phase = Phase::Act;
            if think > 0 {
                return Some(Call::Compute { time: think });
            }
        }
        let call = self.call(act, now);
        self.phase = Phase::Answer(now);
        Some(call)
    }
}

/// The name under which a call counts as an operation. Pauses and calls without I/O do not count.
fn noted(act: Act) -> Option<&'static str> {
    Some(match act {
        Act::Open { .. } => "open",
        Act::Close { .. } => "close",
        Act::Read { .. } | Act::Pread { .. } | Act::Drain { .. } => "read",
        Act::Write { .. } | Act::Pwrite { .. } | Act::CopyRange { .. } => "write",
        Act::Fsync { .. }
        | Act::Fdatasync { .. }
        | Act::SyncRange { .. }
        | Act::SyncFs { .. }
        | Act::Sync => "sync",
        Act::Truncate { .. } | Act::Fallocate { .. } => "allocate",
        Act::Fstat { .. } | Act::Stat { .. } | Act::ReadDir { .. } | Act::ReadLink { .. } => "look",
        Act::Symlink { .. }
        | Act::Unlink { .. }
        | Act::Rename { .. }
        | Act::Mkdir { .. }
        | Act::Rmdir { .. }
        | Act::Touch { .. }
        | Act::TouchFile { .. } => "names",
        Act::Map { .. } => "map",
        Act::Seek { .. }
        | Act::Advise { .. }
        | Act::Unmap { .. }
        | Act::Pipe { .. }
        | Act::Child { .. }
        | Act::Join { .. }
        | Act::Pause { .. }
        // Reported when they are done.
        | Act::Submit { .. }
        | Act::Reap { .. }
        | Act::Elsewhere { .. }
        | Act::Null => return None,
    })
}
