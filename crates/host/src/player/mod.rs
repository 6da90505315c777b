//! Plays a recording: its chains of I/Os on the clock of a queue.
//!
//! A [`Player`] is a world of its own beside [`Machine`](crate::Machine): it submits the bios of a trace as they were
//! recorded and knows no file, no engine and no core time, which the recorded pauses contain. The order within one
//! instant is that of the machine: the device's own events, deferred queue runs, then chains in the order in which they
//! were woken.

mod issue;
mod stats;

use std::ops::ControlFlow;
use std::sync::Arc;

use iosched_block::{Event, Issue, Stack, Timeline};
use iosched_engine::World;
use iosched_types::{Bio, Fifo, Nanos, TaskId};
use iosched_workloads::replay::{Mode, NONE, Recording, Unplaced};

use crate::error::HostError;
use crate::samples::{MOST_DISPATCHES, Sampler, Thin};
pub use stats::{Moved, Played, Side};

/// Events at one instant after which the simulation counts as stuck.
const MOST_AT_ONCE: u64 = 50_000_000;
/// The event of a sample; other numbers are those of lanes.
const SAMPLE: u64 = 1 << 63;

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

/// Plays a recording on a queue.
pub struct Player {
    /// What it submits to.
    pub queue: Stack,
    /// The clock.
    pub tl: Timeline,
    recording: Arc<Recording>,
    mode: Mode,
    placed: Option<Unplaced>,
    start: Nanos,
    lanes: Vec<Lane>,
    /// The lane of each thread.
    by_thread: Vec<u32>,
    /// Lanes of each task that have not ended; none of kernel workers, which do not exit.
    unended: Vec<u32>,
    ready: Fifo<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    pieces: Vec<Bio>,
    /// Which steps are done, a bit each; empty where none is asked for.
    done: Vec<u64>,
    alive: usize,
    single: u32,
    discards: bool,
    completed_once: bool,
    dispatches: Option<Thin<Issue>>,
    /// Samples of the queue, if they are collected.
    pub sampler: Option<Sampler>,
    /// What was measured.
    pub played: Played,
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Player({} chains, {}, t={})", self.lanes.len(), self.mode, self.tl.now)
    }
}

impl Player {
    /// Puts a recording on a queue whose tasks are those of the recording. `placed` says where its I/Os lie there.
    #[must_use]
    pub fn new(
        mut queue: Stack,
        recording: Arc<Recording>,
        mode: Mode,
        placed: Option<Unplaced>,
        start: Nanos,
    ) -> Player {
        let tasks = recording.tasks.len();
        let first_thread = queue.reserve_tasks(tasks);
        let cpus = queue.facts().cpus.max(1);
        let mut by_thread = vec![NONE; first_thread.max(tasks as TaskId) as usize];
        let mut unended = vec![0; tasks];
        let mut lanes = Vec::with_capacity(recording.chains.len());
        for (i, chain) in recording.chains.iter().enumerate() {
            let own = !chain.writeback && by_thread[chain.task as usize] == NONE;
            let thread = if own { chain.task } else { queue.add_thread() };
            let at = thread as usize;
            by_thread.resize(by_thread.len().max(at + 1), NONE);
            by_thread[at] = i as u32;
            unended[chain.task as usize] += u32::from(!chain.writeback);
            lanes.push(Lane {
                next: chain.first,
                last: NONE,
                begun: start,
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
        Player {
            single: limits.max_sectors.min(u32::from(limits.max_segments) * 8),
            played: Played::new(tasks, start),
            queue,
            tl: Timeline { now: start, ..Timeline::default() },
            mode,
            placed,
            start,
            alive: lanes.len(),
            lanes,
            by_thread,
            unended,
            ready: Fifo::default(),
            slots: Vec::new(),
            free: Vec::new(),
            pieces: Vec::new(),
            done: vec![0; bits],
            discards: true,
            completed_once: true,
            dispatches: None,
            sampler: None,
            recording,
        }
    }

    /// The device takes no discards: they are counted and left out.
    pub fn refuse_discards(&mut self) {
        self.discards = false;
    }

    /// The kernel's worker that runs queues at completions has not run yet.
    pub fn first_run_late(&mut self) {
        self.completed_once = false;
    }

    /// Collects the way of the head.
    pub fn collect_dispatches(&mut self) {
        self.queue.out_mut().issues = Some(Vec::new());
        self.dispatches = Some(Thin::new(MOST_DISPATCHES));
    }

    /// What was collected of it.
    #[must_use]
    pub fn take_dispatches(&mut self) -> Vec<Issue> {
        self.dispatches.take().map_or_else(Vec::new, Thin::into_vec)
    }

    /// Samples the queue's depth every `step` ns.
    pub fn collect_series(&mut self, step: Nanos) {
        self.sampler = Some(Sampler::every(step));
        self.tl.events.push(self.tl.now + step, Event::Host(SAMPLE));
    }

    /// Plays it to its end. `progress` is called now and then with the virtual time, and says whether to go on.
    ///
    /// # Errors
    /// As those of [`Machine::run`](crate::Machine::run).
    pub fn run(
        &mut self,
        progress: &mut dyn FnMut(Nanos) -> ControlFlow<()>,
    ) -> Result<(), HostError> {
        (0..self.lanes.len() as u32).for_each(|lane| self.ready.push_back(lane));
        let (mut at_once, mut turns) = (0u64, 0u64);
        loop {
            self.run_ready();
            if self.alive == 0 {
                self.played.ended = self.tl.now;
                return Ok(());
            }
            let at_ms = self.tl.now as f64 / 1e6;
            let Some(at) = self.next().filter(|_| !self.only_samples()) else {
                let pending = self.queue.pending().max(self.slots.len() - self.free.len());
                return Err(HostError::Stuck { at_ms, waiting: self.alive, pending });
            };
            at_once = if at > self.tl.now { 0 } else { at_once + 1 };
            if at_once > MOST_AT_ONCE {
                return Err(HostError::NoProgress { at_ms, events: at_once });
            }
            self.turn(at);
            self.collect();
            turns += 1;
            if turns.is_multiple_of(1 << 16) && progress(self.tl.now).is_break() {
                return Err(HostError::Stopped);
            }
        }
    }

    /// Nothing but samples of the queue is to come.
    fn only_samples(&self) -> bool {
        self.sampler.is_some() && self.tl.events.len() == 1 && self.device_next() == Nanos::MAX
    }

    fn run_ready(&mut self) {
        while let Some(lane) = self.ready.pop_front() {
            self.run_lane(lane);
        }
    }

    fn wake(&mut self, lane: u32) {
        self.lanes[lane as usize].state = State::Ready;
        self.ready.push_back(lane);
    }

    /// Books finished bios and wakes chains.
    fn collect(&mut self) {
        self.queue.roll_tape(self.dispatches.is_some());
        if self.dispatches.is_some() {
            self.collect_issues();
        }
        let parallel = self.queue.facts().cpus > 1;
        if parallel {
            self.wake_sleepers();
        }
        for i in 0..self.queue.out().done.len() {
            if !parallel {
                self.wake_sleepers_behind(i as u32);
            }
            let slot = self.queue.out().done[i].bio;
            self.bio_done(slot);
        }
        self.queue.out_mut().done.clear();
        if !parallel {
            self.wake_sleepers();
        }
    }

    fn bio_done(&mut self, at: u32) {
        let slot = &mut self.slots[at as usize];
        slot.pieces -= 1;
        if slot.pieces > 0 {
            return;
        }
        let Slot { step: index, lane: number, from, .. } = *slot;
        self.free.push(at);
        let step = self.recording.steps[index as usize];
        self.played.book(&step, self.tl.now, from);
        let lane = &mut self.lanes[number as usize];
        lane.under_way -= 1;
        lane.waited -= u32::from(step.is_waited_for());
        self.completed_once = true;
        if lane.state == State::Waiting {
            self.wake(number);
        }
        self.step_done(index, step.awaited);
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
            if state == State::Waiting && self.recording.steps[next as usize].after == index {
                self.wake(lane);
            }
        }
    }

    fn is_done(&self, index: u32) -> bool {
        self.done.get(index as usize / 64).is_some_and(|w| w >> (index % 64) & 1 == 1)
    }

    #[cold]
    fn collect_issues(&mut self) {
        if let (Some(list), Some(thin)) = (&mut self.queue.out_mut().issues, &mut self.dispatches) {
            list.drain(..).for_each(|i| thin.push(i));
        }
    }

    fn wake_sleepers(&mut self) {
        for i in 0..self.queue.out().woken.len() {
            self.wake_sleeper(self.queue.out().woken[i]);
        }
        self.queue.out_mut().woken.clear();
        self.queue.out_mut().woken_behind.clear();
    }

    /// Those woken by bios that were done before the `n`-th of the finished ones.
    fn wake_sleepers_behind(&mut self, n: u32) {
        if self.queue.out().woken.is_empty() {
            return;
        }
        let count = self.queue.out().woken_behind.iter().take_while(|b| **b <= n).count();
        for i in 0..count {
            self.wake_sleeper(self.queue.out().woken[i]);
        }
        self.queue.out_mut().woken.drain(..count);
        self.queue.out_mut().woken_behind.drain(..count);
    }

    fn wake_sleeper(&mut self, thread: TaskId) {
        let lane = self.by_thread.get(thread as usize).copied().unwrap_or(NONE);
        if self.lanes.get(lane as usize).is_some_and(|l| l.state == State::Blocked) {
            // It goes on with its submission: the state stays.
            self.ready.push_back(lane);
        }
    }
}

impl World for Player {
    type Event = Event;

    #[inline(always)]
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.tl
    }

    #[inline(always)]
    fn device_next(&self) -> Nanos {
        self.queue.device_next()
    }

    #[inline(always)]
    fn device_event(&mut self) {
        self.queue.device_event(&mut self.tl);
        if !self.completed_once && !self.queue.out().done.is_empty() {
            self.collect();
            self.run_ready();
        }
        self.queue.run_deferred(&mut self.tl);
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::Queue(disk, event) => self.queue.event(&mut self.tl, disk, event),
            Event::Array(event) => self.queue.array_event(&mut self.tl, event),
            Event::Host(SAMPLE) => {
                let (in_flight, pending) = (self.queue.in_flight(), self.queue.pending());
                if let Some(s) = &mut self.sampler {
                    s.take(f64::from(in_flight), pending as f64);
                    let next = self.tl.now + s.step;
                    self.tl.events.push(next, Event::Host(SAMPLE));
                }
            }
            Event::Host(lane) => self.wake(lane as u32),
        }
    }
}
