//! Plays a recording: its chains of I/Os on the clock of a queue.
//!
//! [`Chains`] submit the bios of a trace as they were recorded and know no file, no engine and no core time, which the
//! recorded pauses contain. A [`Player`] is a world of nothing else; other worlds have chains [`Beside`] their tasks.

mod alone;
mod beside;
mod issue;
mod stats;

use std::sync::Arc;

use iosched_block::{Stack, Timeline};
use iosched_schedulers::TaskInfo;
use iosched_types::{Bio, BioId, Fifo, Nanos, TaskId};
use iosched_workloads::replay::{Mode, NONE, Recording, TracedTask, Unplaced};

pub use alone::Player;
pub use beside::Beside;
pub use stats::{Moved, Played, Side};

/// The ids of bios of chains beside other work: from here on.
const BESIDE: BioId = 1 << 31;

/// What chains submit to, and the clock.
pub(crate) struct On<'a> {
    pub(crate) queue: &'a mut Stack,
    pub(crate) tl: &'a mut Timeline,
}

impl On<'_> {
    /// The system call returns: deferred work runs.
    fn end_call(&mut self) {
        self.settle();
        self.queue.next_call();
    }

    fn settle(&mut self) {
        if !self.queue.is_settled() {
            self.queue.run_deferred(self.tl);
        }
    }
}

/// What a chain does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is in the queue of those that run.
    Ready,
    /// It waits for completions.
    Waiting,
    /// It waits for a time.
    Timer,
    /// It sleeps for a tag in a submission.
    Blocked,
    Ended,
}

/// A chain on its way.
#[derive(Debug)]
struct Lane {
    /// Its next step.
    next: u32,
    /// The step before that.
    last: u32,
    /// When that one arrived, as a trace has it: before it may have slept for a tag.
    begun: Nanos,
    /// When its last I/O was done.
    completed: Nanos,
    /// When the next one is due, once what it waits for is done.
    due: Option<Nanos>,
    /// I/Os under way, and those of them that its task waits for.
    under_way: u32,
    waited: u32,
    /// The most of them.
    most: u32,
    writeback: bool,
    state: State,
    task: TaskId,
    thread: TaskId,
    cpu: u16,
    /// It has a plug.
    plugged: bool,
    /// The bio that it is blocked on, and the pieces behind it.
    left: Option<Bio>,
    rest: Vec<Bio>,
}

/// An I/O under way.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    step: u32,
    lane: u32,
    /// Bios that are not done.
    pieces: u32,
    /// From when on its latency counts.
    from: Nanos,
}

/// The chains of a recording on their way.
pub(crate) struct Chains {
    recording: Arc<Recording>,
    mode: Mode,
    placed: Option<Unplaced>,
    start: Nanos,
    /// The number of each task in the queue.
    ids: Vec<TaskId>,
    lanes: Vec<Lane>,
    /// The lane of each thread.
    by_thread: Vec<u32>,
    /// Lanes of each task that have not ended; none of kernel workers, which do not exit.
    unended: Vec<u32>,
    ready: Fifo<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The id of the bios of the first slot.
    first_id: BioId,
    pieces: Vec<Bio>,
    /// Which steps are done, a bit each; empty where none is asked for.
    done: Vec<u64>,
    alive: usize,
    single: u32,
    /// The device takes discards; else they are counted and left out.
    discards: bool,
    /// What was measured.
    pub(crate) played: Played,
}

/// What chains play.
#[derive(Clone, Debug)]
pub struct Score {
    /// The trace.
    pub recording: Arc<Recording>,
    /// How it is replayed.
    pub mode: Mode,
    /// Where its I/Os lie on a disk that is too small for it.
    pub placed: Option<Unplaced>,
    /// The device takes discards.
    pub discards: bool,
}

/// What schedulers are told of a recorded task.
#[must_use]
pub fn task_info(t: &TracedTask) -> TaskInfo {
    TaskInfo { pid: t.pid, name: t.name.clone(), prio: t.prio, ..TaskInfo::default() }
}

impl Chains {
    /// Chains alone on a queue, whose tasks are those of the recording.
    fn alone(queue: &mut Stack, score: Score) -> Chains {
        let tasks = score.recording.tasks.len();
        queue.reserve_tasks(tasks);
        Chains::new(queue, score, (0..tasks as TaskId).collect(), 0)
    }

    /// Chains beside other tasks.
    pub(crate) fn beside(queue: &mut Stack, score: Score) -> Chains {
        let tasks = score.recording.tasks.iter().map(task_info);
        let ids = tasks.map(|info| queue.task_started(info)).collect();
        Chains::new(queue, score, ids, BESIDE)
    }

    fn new(queue: &mut Stack, score: Score, ids: Vec<TaskId>, first_id: BioId) -> Chains {
        let Score { recording, mode, placed, discards } = score;
        let cpus = queue.facts().cpus.max(1);
        let mut taken = vec![false; ids.len()];
        let mut by_thread = Vec::new();
        let mut unended = vec![0; ids.len()];
        let mut lanes = Vec::with_capacity(recording.chains.len());
        for (i, chain) in recording.chains.iter().enumerate() {
            let task = chain.task as usize;
            let own = !chain.writeback && !std::mem::replace(&mut taken[task], !chain.writeback);
            let thread = if own { ids[task] } else { queue.add_thread() };
            let at = thread as usize;
            by_thread.resize(by_thread.len().max(at + 1), NONE);
            by_thread[at] = i as u32;
            unended[task] += u32::from(!chain.writeback);
            lanes.push(Lane {
                next: chain.first,
                last: NONE,
                begun: 0,
                completed: 0,
                due: None,
                under_way: 0,
                waited: 0,
                most: chain.most,
                writeback: chain.writeback,
                state: State::Ready,
                task: chain.task,
                thread,
                cpu: (i % usize::from(cpus)) as u16,
                plugged: false,
                left: None,
                rest: Vec::new(),
            });
        }
        let limits = queue.limits();
        let bits = if mode == Mode::Dependent { recording.steps.len().div_ceil(64) } else { 0 };
        Chains {
            single: limits.max_sectors.min(u32::from(limits.max_segments) * 8),
            played: Played::new(ids.len(), 0),
            mode,
            placed,
            start: 0,
            ids,
            alive: lanes.len(),
            lanes,
            by_thread,
            unended,
            ready: Fifo::default(),
            slots: Vec::new(),
            free: Vec::new(),
            first_id,
            pieces: Vec::new(),
            done: vec![0; bits],
            discards,
            recording,
        }
    }

    /// All chains begin.
    pub(crate) fn begin(&mut self, now: Nanos) {
        (self.start, self.played.start) = (now, now);
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            lane.begun = now;
            self.ready.push_back(i as u32);
        }
    }

    /// Chains that have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.alive
    }

    /// I/Os under way.
    fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Lets the next chain that is ready go on; whether there was one.
    pub(crate) fn run_one(&mut self, on: &mut On<'_>) -> bool {
        let Some(lane) = self.ready.pop_front() else { return false };
        self.run_lane(on, lane);
        if self.alive == 0 {
            self.played.ended = on.tl.now;
        }
        true
    }

    /// A chain's time has come, or what it waited for is done.
    pub(crate) fn wake(&mut self, lane: u32) {
        self.lanes[lane as usize].state = State::Ready;
        self.ready.push_back(lane);
    }

    /// Books a bio that is done, and wakes chains. Whether it was one of theirs.
    pub(crate) fn bio_done(&mut self, id: BioId, now: Nanos) -> bool {
        let Some(at) = id.checked_sub(self.first_id) else { return false };
        let slot = &mut self.slots[at as usize];
        slot.pieces -= 1;
        if slot.pieces > 0 {
            return true;
        }
        let Slot { step: index, lane: number, from, .. } = *slot;
        self.free.push(at);
        let step = self.recording.steps[index as usize];
        self.played.book(&step, now, from);
        let lane = &mut self.lanes[number as usize];
        lane.under_way -= 1;
        lane.completed = now;
        lane.waited -= u32::from(step.is_waited_for());
        if lane.state == State::Waiting {
            self.wake(number);
        }
        self.step_done(index, step.awaited);
        true
    }

    /// Notes that a step is done, and wakes chains of other tasks that wait for it.
    fn step_done(&mut self, index: u32, awaited: bool) {
        let Some(word) = self.done.get_mut(index as usize / 64) else { return };
        *word |= 1 << (index % 64);
        if !awaited {
            return;
        }
        for lane in 0..self.lanes.len() as u32 {
            let Lane { state, next, .. } = self.lanes[lane as usize];
            // One that has issued its last waits for its I/Os alone.
            let waits = state == State::Waiting && next != NONE;
            if waits && self.recording.steps[next as usize].after == index {
                self.wake(lane);
            }
        }
    }

    fn is_done(&self, index: u32) -> bool {
        self.done.get(index as usize / 64).is_some_and(|w| w >> (index % 64) & 1 == 1)
    }

    /// A thread that slept for room in the queue may try again. Whether it is one of theirs.
    pub(crate) fn has_room(&mut self, thread: TaskId) -> bool {
        let lane = self.by_thread.get(thread as usize).copied().unwrap_or(NONE);
        let Some(own) = self.lanes.get(lane as usize) else { return false };
        if own.state == State::Blocked {
            // It goes on with its submission: the state stays.
            self.ready.push_back(lane);
        }
        true
    }
}
