//! One task.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use iosched_syscalls::{Answer, Call, Completion, Program};
use iosched_types::{Bio, Bytes, CpuTime, LatencyHistogram, Nanos, TaskId};

use crate::fs::Ino;

use super::mounted::After;
use super::pipes::Transfer;

/// A task, by its place among all.
pub(super) type Tid = TaskId;

/// What a task waits for.
#[derive(Debug, PartialEq)]
pub(super) enum State {
    /// It runs, or will when it is its turn.
    Ready,
    /// Time.
    Sleeping,
    /// Bios of its own call.
    Io,
    /// What its path waits for.
    Path,
    /// Room in the queue.
    Blocked,
    /// What others write of a file.
    UnderWay,
    /// Asynchronous I/O of its own: so many.
    Reap(u32, Rc<RefCell<Vec<Completion>>>),
    /// The other end of a pipe.
    Pipe(Transfer),
    /// A child.
    Child(Option<Tid>),
    /// Others at a barrier.
    Barrier(u32),
    /// Nothing any more.
    Ended,
}

impl State {
    /// For people.
    pub(super) fn words(&self) -> String {
        match self {
            State::Ready => "its turn".into(),
            State::Sleeping => "time".into(),
            State::Io => "its I/O".into(),
            State::Path => "the kernel".into(),
            State::Blocked => "room in the queue".into(),
            State::UnderWay => "the I/O of others on a file".into(),
            State::Reap(n, _) => format!("{n} asynchronous I/Os"),
            State::Pipe(t) if t.write => "room in a pipe".into(),
            State::Pipe(_) => "something in a pipe".into(),
            State::Child(None) => "a child".into(),
            State::Child(Some(t)) => format!("task {t}"),
            State::Barrier(n) => format!("others at barrier {n}"),
            State::Ended => "nothing".into(),
        }
    }
}

/// As what a call counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    Read,
    Write,
    /// Read and written in one call.
    Copy,
    Sync,
    /// A page of a map that is read.
    Load,
    /// And one that is written.
    Store,
}

/// Asynchronous I/Os that a task has begun and not taken, in the order in which they began: the tag of each, when it
/// began, and whether it is a write. They mostly end in that order, too, so what is looked for is near the front.
#[derive(Debug, Default)]
pub struct Begun {
    ios: VecDeque<(u32, Nanos, bool)>,
}

impl Begun {
    /// Another one.
    pub fn add(&mut self, tag: u32, since: Nanos, write: bool) {
        self.ios.push_back((tag, since, write));
    }

    /// One is taken: of several with one tag the first.
    pub fn take(&mut self, tag: u32) -> Option<(Nanos, bool)> {
        let at = self.ios.iter().position(|io| io.0 == tag)?;
        self.ios.remove(at).map(|(_, since, write)| (since, write))
    }
}

/// What a call still has to do on the disk.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Bios that are not submitted yet.
    pub(super) left: VecDeque<Bio>,
    /// Bios under way.
    pub(super) pending: u32,
    /// Then, what others write of this file must be done.
    pub(super) wait: Option<Ino>,
    /// Then, the device's cache is flushed.
    pub(super) flush: bool,
    /// Files of which it writes pages.
    pub(super) writes: Vec<Ino>,
    /// Then, this is the answer.
    pub(super) answer: u64,
    /// A plug is open.
    pub(super) plugged: bool,
    /// Its bios are those of this asynchronous I/O: nobody sleeps for them here.
    pub(super) async_of: Option<u32>,
    /// It goes on with this before it goes on with its program.
    pub(super) busy: bool,
    /// The first of `left` was refused once.
    pub(super) resumed: bool,
    /// Core time for the first of `left` was spent.
    pub(super) paid: bool,
}

impl Work {
    /// Whether there is a bio that the queue has not seen.
    pub(super) fn is_new(&self) -> bool {
        !self.left.is_empty() && !self.resumed
    }
}

/// What a task did.
#[derive(Clone, Debug, Default)]
pub struct TaskStats {
    /// What it is to its program: `client`; empty where it has no name.
    pub role: &'static str,
    /// Calls that entered the kernel.
    pub calls: u64,
    /// Reads that moved something, their bytes and latencies. Asynchronous ones take until the task takes them; a page of a
    /// map that is touched is one, as a read of what is in memory is.
    pub read: (u64, Bytes, LatencyHistogram),
    /// Writes.
    pub write: (u64, Bytes, LatencyHistogram),
    /// Calls that make something durable.
    pub sync: (u64, Bytes, LatencyHistogram),
    /// When it was made, from the start of the run, in nanoseconds.
    pub began: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// Core time.
    pub cpu: CpuTime,
}

impl TaskStats {
    /// A read or a write has moved something.
    pub fn moved(&mut self, write: bool, bytes: Bytes, latency: Nanos) {
        let to = if write { &mut self.write } else { &mut self.read };
        to.0 += 1;
        to.1 += bytes;
        to.2.record(latency);
    }
}

/// A task.
pub(super) struct Task {
    pub(super) program: Option<Box<dyn Program>>,
    pub(super) state: State,
    pub(super) answer: Answer,
    /// The call that its core is busy with.
    pub(super) call: Option<Call>,
    /// A piece of work that waits for the core: user and system time.
    pub(super) put_off: Option<(Nanos, Nanos)>,
    /// Core time of its last calls that only their end could tell. The next call pays it.
    pub(super) owes: Nanos,
    /// Core time of its own work that is left.
    pub(super) compute: Nanos,
    /// Own work without a CPU model.
    pub(super) computed: Nanos,
    /// The end of a sleep that was cut short is not its end.
    pub(super) nap: u32,
    pub(super) table: u32,
    pub(super) parent: Option<Tid>,
    /// Children that run.
    pub(super) children: u32,
    /// Children that have ended and were not waited for.
    pub(super) ended: VecDeque<Tid>,
    /// Its I/O context, once it has one.
    pub(super) context: Option<TaskId>,
    pub(super) cpu: u16,
    pub(super) work: Work,
    /// Asynchronous I/O that is done, and how much is under way.
    pub(super) done: Vec<Completion>,
    pub(super) asyncs: u32,
    pub(super) begun: Begun,
    /// What its last call took of them: whether a write, when it began, bytes.
    pub(super) taken: Vec<(bool, Nanos, Bytes)>,
    pub(super) told_to_stop: bool,
    pub(super) since: Nanos,
    pub(super) last_call: &'static str,
    pub(super) moves: Option<Moves>,
    /// What is done with the answer of its path.
    pub(super) after: After,
    pub(super) stats: TaskStats,
}

impl Task {
    pub(super) fn new(
        program: Box<dyn Program>,
        table: u32,
        parent: Option<Tid>,
        cpu: u16,
    ) -> Task {
        Task {
            program: Some(program),
            state: State::Ready,
            answer: Ok(0),
            call: None,
            put_off: None,
            owes: 0,
            compute: 0,
            computed: 0,
            nap: 0,
            table,
            parent,
            children: 0,
            ended: VecDeque::new(),
            context: None,
            cpu,
            work: Work::default(),
            done: Vec::new(),
            asyncs: 0,
            begun: Begun::default(),
            taken: Vec::new(),
            told_to_stop: false,
            since: 0,
            last_call: "start",
            moves: None,
            after: After::Say,
            stats: TaskStats::default(),
        }
    }
}
