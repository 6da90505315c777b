//! The event loop: processes and a queue on one clock.
//!
//! Order within one instant: the device's own events, then deferred queue runs, then processes in the
//! order in which they were woken. A queue run asked for by a submission happens when the system call
//! returns. With several CPUs a process that sleeps inside the kernel for a request is ahead of one whose
//! I/O is done: it has only to go on, the other has first to return, look, and submit.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use iosched_block::{Event, Issue, Queue, Submit, Timeline};
use iosched_types::{Bio, BioId, Fifo, Flags, IoPrio, Nanos, Op, SECTOR, TaskId};
use iosched_workloads::fio::process::{Io, LeanStep, Process, Ring, Step};

use crate::cpu::Cores;
use crate::error::SimError;
use crate::ios::Ios;
use crate::thin::Thin;

use self::charged::Then;
use self::starts::Starts;
use self::threads::{Others, Threads};

mod charged;
mod helpers;
pub(crate) mod starts;
mod threads;
mod workers;

/// Events at one instant after which the simulation counts as stuck.
const MOST_AT_ONCE: u64 = 50_000_000;
/// Points of the dispatch picture.
const MOST_DISPATCHES: usize = 4096;

#[derive(Debug)]
enum State {
    /// Not started: waits for earlier jobs or its delay.
    Waiting,
    Ready,
    /// Sleeps until so many I/Os are done.
    Io(u32),
    /// Sleeps in a call until the I/O of this unit is done.
    Call(u32),
    Sleeping,
    /// Blocked in a submission.
    Blocked,
    Exited,
}

/// One process under the simulator.
///
/// In memory as written, from the start of a cache line on: ten thousand processes at one disk are visited in no order, and
/// what a visit needs then comes from memory, line by line.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct TaskRun {
    state: State,
    sleep: u32,
    /// The id of the I/O of its first unit.
    first_io: BioId,
    ring: Ring,
    /// The bio it is blocked on.
    left: Option<Bio>,
    prio: IoPrio,
    cpu: u16,
    /// What all its bios carry: `NOWAIT`, if others wait for it.
    flags: Flags,
    batch: bool,
    /// It has begun an I/O by itself.
    began: bool,
    /// The pieces of a large I/O are on their way, under a plug of their own unless there is a batch.
    in_pieces: bool,
    cgroup: u32,
    /// What it does when its core time is over.
    then: Then,
    /// Calls in which it took completions and that its core has not been charged for yet.
    looks: u32,
    /// The process.
    pub process: Process,
    /// Who else does its I/O.
    others: Others,
    /// The pieces after `left`.
    rest: VecDeque<Bio>,
}

/// Samples of the queue over time.
#[derive(Debug)]
pub(crate) struct Sampler {
    pub(crate) step: Nanos,
    pub(crate) in_flight: Vec<f64>,
    pub(crate) queued: Vec<f64>,
}

/// Processes, queue and clock.
pub struct Drive {
    /// The queue.
    pub queue: Queue,
    /// The clock.
    pub tl: Timeline,
    /// The processes.
    pub tasks: Vec<TaskRun>,
    ios: Ios,
    ready: Fifo<TaskId>,
    alive: usize,
    /// Processes that have not been told when to start.
    unstarted: usize,
    pieces: Vec<Bio>,
    /// Sectors that fit into one bio.
    single: u32,
    /// Sectors up to which the pieces of an I/O go one by one, without a plug of their own.
    unplugged: u32,
    pub(crate) dispatches: Option<Thin<Issue>>,
    pub(crate) sampler: Option<Sampler>,
    pub(crate) completed_once: bool,
    pub(crate) cores: Option<Cores>,
    threads: Threads,
    starts: Starts,
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Drive({} tasks, t={})", self.tasks.len(), self.tl.now)
    }
}

impl Drive {
    /// Puts processes on a queue. `cgroups` gives the control group of each process.
    #[must_use]
    pub fn new(mut queue: Queue, processes: Vec<Process>, cgroups: &[u32]) -> Self {
        let cpus = queue.facts().cpus.max(1);
        let mut ios = Ios::default();
        let mut threads = Threads::behind(&mut queue, processes.len());
        let tasks: Vec<TaskRun> = processes
            .into_iter()
            .enumerate()
            .map(|(i, process)| {
                let job = process.job();
                let allowed = &job.cpus;
                let cpu = if allowed.is_empty() {
                    (i % usize::from(cpus)) as u16
                } else {
                    allowed[i % allowed.len()] % cpus
                };
                let prio = job.prio;
                let others = threads.of(&mut queue, i as TaskId, &process);
                let waits = !matches!(others, Others::Pool(_));
                TaskRun {
                    flags: if waits { Flags::NONE } else { Flags::NOWAIT },
                    began: false,
                    prio,
                    cgroup: cgroups.get(i).copied().unwrap_or(0),
                    cpu,
                    ring: Ring::with_capacity(process.units() as usize),
                    first_io: ios.add_task(i as TaskId, process.units()),
                    others,
                    process,
                    state: State::Waiting,
                    batch: false,
                    sleep: 0,
                    left: None,
                    in_pieces: false,
                    rest: VecDeque::new(),
                    then: Then::Step,
                    looks: 0,
                }
            })
            .collect();
        let limits = queue.limits();
        Drive {
            unplugged: queue.unplugged_sectors(),
            single: limits.max_sectors.min(u32::from(limits.max_segments) * 8),
            alive: tasks.len(),
            unstarted: tasks.len(),
            queue,
            tl: Timeline::default(),
            tasks,
            ios,
            ready: Fifo::default(),
            pieces: Vec::new(),
            dispatches: None,
            sampler: None,
            completed_once: false,
            cores: None,
            threads,
            starts: Starts::default(),
        }
    }

    /// Lets the processes begin at `at`.
    pub fn start_at(&mut self, at: Nanos) {
        self.tl.now = at;
    }

    /// Collects the way of the head.
    pub fn collect_dispatches(&mut self) {
        self.queue.issues = Some(Vec::new());
        self.dispatches = Some(Thin::new(MOST_DISPATCHES));
    }

    /// Samples the queue's depth every `step` ns.
    pub fn collect_series(&mut self, step: Nanos) {
        self.sampler = Some(Sampler { step, in_flight: Vec::new(), queued: Vec::new() });
        self.tl.events.push(step, Event::User(0));
    }

    /// Runs until every process has ended. `progress` is called now and then with the virtual time, and
    /// says whether to go on.
    ///
    /// # Errors
    /// [`SimError::Stuck`], [`SimError::NoProgress`] and [`SimError::Stopped`].
    pub fn run(
        &mut self,
        progress: &mut dyn FnMut(Nanos) -> ControlFlow<()>,
    ) -> Result<(), SimError> {
        self.start_first_jobs();
        let mut at_once = 0u64;
        let mut turns = 0u64;
        loop {
            self.run_ready();
            if self.alive == 0 {
                return Ok(());
            }
            self.schedule_cores();
            let device = self.queue.device_next();
            let timer = self.tl.events.peek_time().unwrap_or(Nanos::MAX);
            let next = device.min(timer);
            if next == Nanos::MAX {
                return Err(self.stuck());
            }
            if next > self.tl.now {
                at_once = 0;
                self.tl.now = next;
            } else {
                at_once += 1;
                if at_once > MOST_AT_ONCE {
                    let at_ms = self.tl.now as f64 / 1e6;
                    return Err(SimError::NoProgress { at_ms, events: at_once });
                }
            }
            if device <= timer {
                self.completions();
            } else {
                self.timer_event();
            }
            self.collect();
            turns += 1;
            if turns.is_multiple_of(1 << 16) && progress(self.tl.now).is_break() {
                return Err(SimError::Stopped);
            }
        }
    }

    /// The device finished commands. The deferred queue run (kblockd) goes ahead of the processes that
    /// were woken, except (where the trial says so) the very first time: in every dispatch log of `data/truth` in which
    /// a process waited for completions, it ran before kblockd once and after it ever since (`docs/fidelity.md`). Sleeping
    /// for a tag is no such wait.
    #[inline(always)]
    fn completions(&mut self) {
        self.queue.device_event(&mut self.tl);
        if !self.completed_once && !self.queue.done.is_empty() {
            self.collect();
            if self.completed_once {
                self.run_ready();
            }
        }
        self.queue.run_deferred(&mut self.tl);
    }

    fn stuck(&self) -> SimError {
        SimError::Stuck {
            at_ms: self.tl.now as f64 / 1e6,
            waiting: self.alive,
            pending: self.queue.pending().max(self.ios.len()),
        }
    }

    fn timer_event(&mut self) {
        let Some((_, event)) = self.tl.events.pop() else { return };
        match event {
            Event::Task(t, _) if t as usize >= self.tasks.len() => self.ready.push_back(t),
            Event::Task(t, n) => {
                let task = &mut self.tasks[t as usize];
                if task.sleep == n && matches!(task.state, State::Sleeping | State::Waiting) {
                    task.state = State::Ready;
                    match &mut self.cores {
                        Some(cores) => cores.wake(self.tl.now, t),
                        None => self.ready.push_back(t),
                    }
                }
            }
            Event::User(starts::LOOK) => self.look_for_jobs(),
            Event::User(starts::STARTED) => self.jobs_started(),
            Event::User(0) => self.sample(),
            Event::User(core) => self.core_event(core),
            event => {
                self.queue.event(&mut self.tl, event);
            }
        }
    }

    fn sample(&mut self) {
        let pending = self.queue.pending() as f64;
        let in_flight = f64::from(self.queue.in_flight());
        let Some(s) = &mut self.sampler else { return };
        s.in_flight.push(in_flight);
        s.queued.push(pending);
        if s.in_flight.len() >= 2048 {
            // Halve the resolution rather than grow without bound.
            for v in [&mut s.in_flight, &mut s.queued] {
                let mut i = 0;
                v.retain(|_| {
                    i += 1;
                    i % 2 == 0
                });
            }
            s.step *= 2;
        }
        let step = s.step;
        self.tl.events.push(self.tl.now + step, Event::User(0));
    }

    /// Books finished bios and wakes processes.
    fn collect(&mut self) {
        if self.dispatches.is_some() {
            self.collect_issues();
        }
        let parallel = self.queue.facts().cpus > 1;
        if parallel {
            self.wake_sleepers();
        }
        let apart = !parallel && !self.queue.woken.is_empty();
        for i in 0..self.queue.done.len() {
            if apart {
                self.wake_sleepers_behind(i as u32);
            }
            let d = self.queue.done[i];
            let Some(t) = self.ios.bio_done(d.bio) else { continue };
            let task = &mut self.tasks[t as usize];
            let unit = d.bio - task.first_io;
            if !matches!(task.others, Others::None)
                && self.threads.done(&task.others, unit, &mut self.ready)
            {
                continue;
            }
            task.ring.push(unit);
            let wakes = matches!(task.state, State::Io(min) if task.ring.len() >= min as usize)
                || matches!(task.state, State::Call(one) if one == unit);
            if wakes {
                task.state = State::Ready;
                self.completed_once = true;
                if i == 0 {
                    task.ring.woken_early();
                }
            }
            match &mut self.cores {
                Some(cores) => cores.completion(self.tl.now, t, wakes),
                None if wakes => self.ready.push_back(t),
                None => {}
            }
        }
        self.queue.done.clear();
        if !parallel {
            self.wake_sleepers();
        }
    }

    #[cold]
    fn collect_issues(&mut self) {
        if let (Some(list), Some(thin)) = (&mut self.queue.issues, &mut self.dispatches) {
            list.drain(..).for_each(|i| thin.push(i));
        }
    }

    /// Processes that slept for a request, a tag or in the throttle may try again.
    #[inline]
    fn wake_sleepers(&mut self) {
        for i in 0..self.queue.woken.len() {
            self.wake_sleeper(self.queue.woken[i]);
        }
        self.queue.woken.clear();
        self.queue.woken_behind.clear();
    }

    /// Those who were woken by what was done before the `n`-th of the finished bios.
    #[cold]
    fn wake_sleepers_behind(&mut self, n: u32) {
        let behind = &self.queue.woken_behind;
        let count = behind.iter().take_while(|b| **b <= n).count();
        for i in 0..count {
            self.wake_sleeper(self.queue.woken[i]);
        }
        self.queue.woken.drain(..count);
        self.queue.woken_behind.drain(..count);
    }

    #[inline]
    fn wake_sleeper(&mut self, t: TaskId) {
        let Some(task) = self.tasks.get(t as usize) else {
            self.ready.push_back(t);
            return;
        };
        task.process.fetch();
        if matches!(task.state, State::Blocked) {
            match &mut self.cores {
                Some(cores) => cores.wake(self.tl.now, t),
                None => self.ready.push_back(t),
            }
        }
    }

    fn run_ready(&mut self) {
        while let Some(t) = self.ready.pop_front() {
            match self.threads.thread_of(t) {
                None => self.run_task(t),
                Some(h) => self.run_thread(h),
            }
        }
    }

    /// Does what the short main loop of most jobs asks for; `false` when the process sleeps now.
    #[inline(always)]
    fn take_lean_step(&mut self, t: TaskId, step: LeanStep) -> bool {
        match step {
            LeanStep::Submit(io) => {
                if self.cores.is_some() {
                    self.begin_submission(t, io);
                    return false;
                }
                self.submit(t, io)
            }
            LeanStep::Wait(min) => {
                self.wait(t, min);
                false
            }
        }
    }

    /// Too few are done.
    #[inline(always)]
    fn wait(&mut self, t: TaskId, min: u32) {
        if self.cores.is_some() {
            self.begin_look(t, min);
            return;
        }
        self.tasks[t as usize].state = State::Io(min);
        self.queue.task_sleeps(&mut self.tl, t);
        self.end_call();
    }

    /// Lets a process run until it sleeps or needs its core for a while.
    fn run_task(&mut self, t: TaskId) {
        if !self.resume_submission(t) {
            return;
        }
        loop {
            let task = &mut self.tasks[t as usize];
            let before = task.ring.len();
            if let Some(step) = task.process.step_lean(self.tl.now, &mut task.ring) {
                task.looks += u32::from(task.ring.len() < before);
                if self.take_lean_step(t, step) {
                    continue;
                }
                return;
            }
            let step = task.process.step(self.tl.now, &mut task.ring);
            task.looks += u32::from(task.ring.len() < before);
            if !self.take_step(t, step) {
                return;
            }
        }
    }

    /// Does what a process asks for; `false` when it sleeps now.
    fn take_step(&mut self, t: TaskId, step: Step) -> bool {
        let task = &mut self.tasks[t as usize];
        match step {
            Step::Submit(io) => self.submit_any(t, io),
            Step::BeginBatch => {
                task.batch = true;
                self.queue.start_plug(t);
                true
            }
            Step::EndBatch => {
                task.batch = false;
                self.queue.finish_plug(&mut self.tl, t);
                self.end_call();
                true
            }
            Step::Await(unit) => {
                task.state = State::Call(unit);
                self.queue.task_sleeps(&mut self.tl, t);
                self.leave_core(t);
                self.end_call();
                false
            }
            Step::Wait(min) => {
                let enough = task.ring.len() >= min as usize;
                if !enough {
                    self.wait(t, min);
                }
                enough
            }
            Step::Sleep(until) => {
                task.state = State::Sleeping;
                task.sleep += 1;
                let event = Event::Task(t, task.sleep);
                self.tl.events.push(until.max(self.tl.now), event);
                self.queue.task_sleeps(&mut self.tl, t);
                self.leave_core(t);
                self.end_call();
                false
            }
            Step::Exit => {
                task.state = State::Exited;
                self.alive -= 1;
                self.queue.task_exited(&mut self.tl, t);
                self.workers_exit(t);
                self.leave_core(t);
                self.collect();
                false
            }
        }
    }

    /// The system call returns: deferred work runs.
    #[inline]
    fn end_call(&mut self) {
        self.settle();
        self.queue.next_call();
    }

    /// A piece of a large I/O is submitted: deferred work runs.
    #[inline]
    fn settle(&mut self) {
        self.queue.run_deferred(&mut self.tl);
        if !self.queue.done.is_empty() || !self.queue.woken.is_empty() {
            self.collect();
        }
    }

    /// Submits an I/O of a job that has not only the short main loop.
    #[inline(never)]
    fn submit_any(&mut self, t: TaskId, io: Io) -> bool {
        if self.cores.is_some() {
            self.begin_submission(t, io);
            return false;
        }
        self.submit(t, io)
    }

    /// Submits an I/O; `false` when the process fell asleep in it.
    #[inline(always)]
    fn submit(&mut self, t: TaskId, io: Io) -> bool {
        let bio = self.bio_of(t, io);
        match &self.tasks[t as usize].others {
            Others::None => {}
            Others::Helpers(_) if io.op == Op::Discard => {}
            Others::Helpers(_) => {
                self.hand_over(t, io);
                return true;
            }
            Others::Pool(_) if bio.sectors > self.single || io.op == Op::Flush => {
                self.hand_to_worker(t, bio);
                return true;
            }
            Others::Pool(_) => {}
        }
        if bio.sectors <= self.single {
            self.ios.start(bio.id, 1);
            return self.submit_one(t, &bio);
        }
        self.submit_pieces(t, bio)
    }

    #[inline(always)]
    fn bio_of(&self, t: TaskId, io: Io) -> Bio {
        let task = &self.tasks[t as usize];
        let mut flags = match io.op {
            // Direct writes are synchronous and not throttled.
            Op::Write => Flags(Flags::SYNC.0 | Flags::IDLE.0),
            Op::Flush => Flags(Flags::SYNC.0 | Flags::PREFLUSH.0),
            Op::Read | Op::Discard => Flags::NONE,
        };
        if io.stable {
            flags = flags.with(Flags::FUA);
        }
        flags = flags.with(task.flags);
        Bio {
            id: task.first_io + io.unit,
            op: io.op,
            flags,
            sector: io.offset / SECTOR,
            sectors: (io.len / SECTOR) as u32,
            task: t,
            thread: t,
            prio: task.prio,
            cgroup: task.cgroup,
            cpu: task.cpu,
        }
    }

    #[inline(always)]
    fn submit_one(&mut self, t: TaskId, bio: &Bio) -> bool {
        match self.queue.submit(&mut self.tl, bio, false) {
            Submit::Taken => {}
            Submit::Blocked => {
                self.block(t, *bio);
                return false;
            }
            Submit::WouldBlock => {
                self.hand_to_worker(t, *bio);
                return true;
            }
        }
        let task = &mut self.tasks[t as usize];
        task.began = true;
        if !task.batch {
            self.end_call();
        }
        true
    }

    /// A large I/O: its pieces travel under a plug, or one by one.
    fn submit_pieces(&mut self, t: TaskId, bio: Bio) -> bool {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        pieces.extend(self.queue.split(bio));
        self.ios.start(bio.id, pieces.len() as u32);
        let alone = !self.tasks[t as usize].batch;
        let one_by_one = alone && bio.sectors <= self.unplugged;
        if alone && !one_by_one {
            self.queue.start_plug(t);
        }
        for i in 0..pieces.len() {
            if self.queue.submit(&mut self.tl, &pieces[i], false) == Submit::Blocked {
                let task = &mut self.tasks[t as usize];
                task.in_pieces = true;
                task.rest.extend(&pieces[i + 1..]);
                self.block(t, pieces[i]);
                self.pieces = pieces;
                return false;
            }
            if one_by_one {
                self.settle();
            }
        }
        self.pieces = pieces;
        if alone {
            if !one_by_one {
                self.queue.finish_plug(&mut self.tl, t);
            }
            self.end_call();
        }
        true
    }

    #[cold]
    fn block(&mut self, t: TaskId, bio: Bio) {
        let task = &mut self.tasks[t as usize];
        (task.state, task.left) = (State::Blocked, Some(bio));
        self.leave_core(t);
        self.end_call();
    }

    /// Goes on with a blocked submission; `false` when it blocks again.
    fn resume_submission(&mut self, t: TaskId) -> bool {
        let task = &mut self.tasks[t as usize];
        if !matches!(task.state, State::Blocked) {
            return true;
        }
        task.state = State::Ready;
        let mut resumed = true;
        while let Some(bio) = self.tasks[t as usize].left {
            match self.queue.submit(&mut self.tl, &bio, resumed) {
                Submit::Taken => {}
                Submit::Blocked => {
                    self.tasks[t as usize].state = State::Blocked;
                    self.leave_core(t);
                    self.end_call();
                    return false;
                }
                Submit::WouldBlock => self.hand_to_worker(t, bio),
            }
            resumed = false;
            let task = &mut self.tasks[t as usize];
            if task.in_pieces && !task.batch && !self.queue.has_plug(t) {
                self.settle();
            }
            let task = &mut self.tasks[t as usize];
            task.left = if task.in_pieces { task.rest.pop_front() } else { None };
        }
        let task = &mut self.tasks[t as usize];
        let in_pieces = std::mem::take(&mut task.in_pieces);
        if !task.batch {
            if in_pieces {
                self.queue.finish_plug(&mut self.tl, t);
            }
            self.end_call();
        }
        true
    }
}
