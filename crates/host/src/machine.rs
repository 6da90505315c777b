//! The event loop: tasks and a queue on one clock.
//!
//! Order within one instant: the device's own events, then deferred queue runs, then processes in the order in which
//! they were woken. If a submission asks for a queue run, the run happens when the system call returns. With several
//! CPUs a process that sleeps inside the kernel for a request goes before a process that waits for a completed I/O. The
//! first only has to go on; the second first has to return, look, and submit.

use std::ops::ControlFlow;

use iosched_block::{Event, Issue, Stack, Timeline};
use iosched_engine::World;
use iosched_syscalls::Errno;
use iosched_types::{Bio, DirectSync, Fifo, Nanos, Op, TaskId};
use iosched_workloads::fio::process::{Io, Job};

use crate::cpu::Cores;
use crate::error::HostError;
use crate::events::HostEvent;
use crate::ios::Ios;
use crate::looks::Looks;
use crate::player::Beside;
use crate::samples::{MOST_DISPATCHES, Sampler, Thin};
use crate::starts::Starts;
use crate::tasks::{self, State, Task};
use crate::threads::Threads;
use crate::trims::Trims;

/// Events at one instant after which the simulation counts as stuck.
const MOST_AT_ONCE: u64 = 50_000_000;

/// Tasks, what they submit to, and clock.
pub struct Machine {
    /// The queue, or an array's.
    pub queue: Stack,
    /// The clock.
    pub tl: Timeline,
    /// The tasks.
    pub tasks: Vec<Task>,
    pub(crate) ios: Ios,
    pub(crate) ready: Fifo<TaskId>,
    /// Those that a thread is about to tell that an I/O of theirs is done.
    pub(crate) told: Vec<TaskId>,
    /// Jobs differ in `nice`.
    unequal: bool,
    pub(crate) alive: usize,
    /// Tasks that have not been told when to start.
    pub(crate) unstarted: usize,
    pub(crate) pieces: Vec<Bio>,
    /// Sectors that fit into one bio.
    pub(crate) single: u32,
    /// Sectors up to which the pieces of an I/O go one by one, without a plug of their own.
    pub(crate) unplugged: u32,
    /// How a write with `O_SYNC` or `O_DSYNC` reaches the medium.
    pub(crate) direct_sync: DirectSync,
    /// The device takes discards.
    discards: bool,
    /// Discards of several processes go one at a time.
    pub(crate) trims_alone: bool,
    pub(crate) trims: Trims,
    pub(crate) dispatches: Option<Thin<Issue>>,
    /// Samples of the queue, if they are collected.
    pub sampler: Option<Sampler>,
    /// Whether a task was woken by completions before. The first time differs (see `device_event`).
    pub completed_once: bool,
    pub(crate) cores: Option<Cores>,
    pub(crate) threads: Threads,
    pub(crate) looks: Option<Looks>,
    /// A process has begun.
    pub(crate) begun: bool,
    /// The first process has this much to look before its first I/O.
    pub(crate) ahead: Nanos,
    /// The host hears of the device no earlier than this.
    deaf_until: Nanos,
    /// ... and this long after the device was done.
    late: Nanos,
    pub(crate) starts: Starts,
    /// A recording that is played beside the tasks.
    pub beside: Beside,
    /// Processes that are ready run before the worker that runs the queue for a completion or for a call that waits.
    pub(crate) worker_last: bool,
    /// The process that runs makes calls that wait for their I/O.
    pub(crate) in_waiting_calls: bool,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Machine({} tasks, t={})", self.tasks.len(), self.tl.now)
    }
}

impl Machine {
    /// Puts jobs on a queue. `cgroups` gives the control group of each.
    #[must_use]
    pub fn new(
        queue: impl Into<Stack>,
        jobs: impl ExactSizeIterator<Item = Job>,
        cgroups: &[u32],
    ) -> Self {
        let mut queue = queue.into();
        let cpus = queue.facts().cpus.max(1);
        let mut ios = Ios::default();
        let mut threads = Threads::behind(&mut queue, jobs.len());
        let tasks: Vec<Task> = jobs
            .enumerate()
            .map(|(i, job)| {
                let others = threads.of(&mut queue, i as TaskId, &job);
                let first_io = ios.add_task(i as TaskId, job.units());
                let cpu = tasks::home(&job, i, cpus);
                let prio = queue.prio_of_bios(job.spec().prio, job.spec().nice);
                let cgroup = cgroups.get(i).copied().unwrap_or(0);
                Task::new(job, others, first_io, cpu, (prio, cgroup))
            })
            .collect();
        let limits = queue.limits();
        let mut nices = tasks.iter().map(|t| t.job.spec().nice);
        let first = nices.next();
        Machine {
            unequal: nices.any(|n| Some(n) != first),
            unplugged: queue.unplugged_sectors(),
            direct_sync: queue.direct_sync(),
            discards: true,
            trims_alone: queue.trims_alone(),
            trims: Trims::default(),
            single: limits.max_sectors.min(u32::from(limits.max_segments) * 8),
            alive: tasks.len(),
            unstarted: tasks.len(),
            queue,
            tl: Timeline::default(),
            tasks,
            ios,
            ready: Fifo::default(),
            told: Vec::new(),
            pieces: Vec::new(),
            dispatches: None,
            sampler: None,
            completed_once: false,
            cores: None,
            looks: None,
            begun: false,
            ahead: 0,
            deaf_until: 0,
            late: 0,
            threads,
            starts: Starts::default(),
            beside: Beside::default(),
            worker_last: false,
            in_waiting_calls: false,
        }
    }

    /// The device takes no discards: a job that trims fails with `EOPNOTSUPP`, as fio does.
    pub fn refuse_discards(&mut self) {
        self.discards = false;
    }

    /// Whether an I/O is refused. Its job is then over: fio counts the I/Os under way, and no bytes of them.
    pub(crate) fn refused(&mut self, t: TaskId, io: Io) -> bool {
        let refused = io.op == Op::Discard && !self.discards;
        if refused {
            let task = &mut self.tasks[t as usize];
            task.error = Some(Errno::EOPNOTSUPP);
            task.job.breaks_off(self.tl.now, &mut task.ring);
        }
        refused
    }

    /// Lets the tasks begin at `at`.
    pub fn start_at(&mut self, at: Nanos) {
        self.tl.now = at;
    }

    /// Lets looks at the clock take time.
    pub fn charge_looks(&mut self, looks: Option<Looks>) {
        self.looks = looks;
        self.late = u64::from(looks.is_some());
        self.queue.charge_looks(looks.is_some());
    }

    /// Whether looks at the clock take time.
    #[must_use]
    pub fn looks_take_time(&self) -> bool {
        self.looks.is_some()
    }

    /// Collects the way of the head.
    pub fn collect_dispatches(&mut self) {
        self.queue.out_mut().issues = Some(Vec::new());
        self.dispatches = Some(Thin::new(MOST_DISPATCHES));
    }

    /// What was collected of the way of the head.
    #[must_use]
    pub fn take_dispatches(&mut self) -> Vec<Issue> {
        self.dispatches.take().map_or_else(Vec::new, Thin::into_vec)
    }

    /// Runs until every task has ended. `progress` is called now and then with the virtual time, and
    /// says whether to go on.
    ///
    /// # Errors
    /// [`HostError::Stuck`], [`HostError::NoProgress`] and [`HostError::Stopped`].
    pub fn run(
        &mut self,
        progress: &mut dyn FnMut(Nanos) -> ControlFlow<()>,
    ) -> Result<(), HostError> {
        self.beside.begin(self.tl.now);
        self.start_first_jobs();
        let mut at_once = 0u64;
        let mut turns = 0u64;
        loop {
            self.run_ready();
            if self.alive == 0 && self.beside.alive() == 0 {
                return Ok(());
            }
            if self.worker_last && self.queue.run_held(&mut self.tl) {
                self.collect();
                continue;
            }
            self.schedule_cores();
            let Some(at) = self.next() else { return Err(self.stuck()) };
            if at > self.tl.now {
                at_once = 0;
            } else {
                at_once += 1;
                if at_once > MOST_AT_ONCE {
                    let at_ms = self.tl.now as f64 / 1e6;
                    return Err(HostError::NoProgress { at_ms, events: at_once });
                }
            }
            self.turn(at);
            if self.looks.is_some() {
                self.take_due_events();
            }
            self.collect();
            turns += 1;
            if turns.is_multiple_of(1 << 16) && progress(self.tl.now).is_break() {
                return Err(HostError::Stopped);
            }
        }
    }

    /// One interrupt serves all timers that are due, before any process runs.
    #[cold]
    fn take_due_events(&mut self) {
        let due = |m: &mut Self| m.tl.events.peek_time().is_some_and(|at| at <= m.tl.now);
        while due(self) && self.device_next() > self.tl.now {
            self.turn(self.tl.now);
        }
    }

    /// Takes what the device has finished.
    fn hear_device(&mut self) {
        self.queue.device_event(&mut self.tl);
        if let Some(looks) = &self.looks {
            self.deaf_until = self.tl.now + looks.apart;
        }
    }

    /// Whoever submits a command also takes what the device has finished meanwhile.
    #[inline(always)]
    pub(crate) fn take_finished(&mut self) {
        while self.looks.is_some() && self.queue.has_finished() {
            self.hear_device();
            self.run_or_hold();
        }
    }

    /// The queue runs now, or when the worker's turn comes.
    #[inline(always)]
    fn run_or_hold(&mut self) {
        if self.worker_last {
            self.queue.hold_runs();
        }
        self.queue.run_deferred(&mut self.tl);
    }

    fn stuck(&self) -> HostError {
        HostError::Stuck {
            at_ms: self.tl.now as f64 / 1e6,
            waiting: self.alive + self.beside.alive(),
            pending: self.queue.pending().max(self.ios.len()),
        }
    }

    fn host_event(&mut self, event: HostEvent) {
        match event {
            HostEvent::Wake(t, _) if t as usize >= self.tasks.len() => self.wake_thread(t),
            HostEvent::Wake(t, n) => {
                let task = &mut self.tasks[t as usize];
                let asleep = matches!(task.state, State::Sleeping | State::Waiting);
                if asleep && HostEvent::is_sleep(n, task.sleep) {
                    task.state = State::Ready;
                    match &mut self.cores {
                        Some(cores) => cores.wake(self.tl.now, t),
                        None => self.ready.push_back(t),
                    }
                }
            }
            HostEvent::Look => self.look_for_jobs(),
            HostEvent::Started => self.jobs_started(),
            HostEvent::Sample => self.sample(),
            HostEvent::Core(core) => self.core_event(core),
            HostEvent::Chain(chain) => self.beside.wake(chain),
        }
    }

    /// Who runs next: those who are ready take turns, but whoever is less nice goes first.
    #[inline(always)]
    fn next_ready(&mut self) -> Option<TaskId> {
        if self.unequal || self.starts.keeps_order {
            self.first_in_order()
        } else {
            self.ready.pop_front()
        }
    }

    #[cold]
    fn first_in_order(&mut self) -> Option<TaskId> {
        let nice = |t: TaskId| {
            let task = match self.threads.thread_of(t) {
                None => t,
                Some(h) => self.threads.all[h as usize].task,
            };
            let job = &self.tasks[task as usize].job;
            // Among those that are about to begin only the nice ones with an asynchronous engine stand back.
            match job.spec().nice {
                nice if job.is_new() && (nice < 0 || job.spec().engine.is_sync()) => 0,
                nice => nice,
            }
        };
        let place = |t: TaskId| self.starts.place(t);
        let (first, _) =
            self.ready.iter().enumerate().min_by_key(|(_, t)| (nice(**t), place(**t)))?;
        self.ready.remove(first)
    }

    pub(crate) fn run_ready(&mut self) {
        loop {
            while let Some(t) = self.next_ready() {
                match self.threads.thread_of(t) {
                    None => self.run_task(t),
                    Some(h) => self.run_thread(h),
                }
            }
            if !self.beside.run_one(&mut self.queue, &mut self.tl) {
                return;
            }
            let out = self.queue.out();
            if !out.done.is_empty() || !out.woken.is_empty() {
                self.collect();
            }
        }
    }
}

impl World for Machine {
    type Event = Event;

    #[inline(always)]
    fn timeline(&mut self) -> &mut Timeline {
        &mut self.tl
    }

    #[inline(always)]
    fn device_next(&self) -> Nanos {
        match self.queue.device_next() {
            Nanos::MAX => Nanos::MAX,
            at => (at + self.late).max(self.deaf_until),
        }
    }

    /// The device finished commands. The deferred queue run (kblockd) goes ahead of the woken processes. Where the
    /// trial says so, the first time is an exception: in every dispatch log of `data/truth` in which a process waited
    /// for completions, the process ran before kblockd once and after it ever since (`docs/fidelity.md`). Sleeping for
    /// a tag is no such wait.
    #[inline(always)]
    fn device_event(&mut self) {
        self.hear_device();
        if !self.completed_once && !self.queue.out().done.is_empty() {
            self.collect();
            if self.completed_once {
                self.run_ready();
            }
        }
        self.run_or_hold();
    }

    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::Queue(disk, event) => self.queue.event(&mut self.tl, disk, event),
            Event::Array(event) => self.queue.array_event(&mut self.tl, event),
            Event::Host(number) => self.host_event(HostEvent::of(number)),
        }
    }
}
