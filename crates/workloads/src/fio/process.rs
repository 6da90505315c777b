//! A job as a process: fio's main loop as a state machine.
//!
//! The simulator calls [`Job::step_lean`] again and again, and [`Job::step`] where that returns nothing. In each step a
//! process asks the kernel for something: submit an I/O, open or close a plug (a batch in one system call), wait for
//! completions, sleep, end. Between steps the process takes no time.

use iosched_types::{Bytes, Nanos, Op};

use super::generator::{Generator, NextIo};
use super::layout::Files;
use super::replay::Replay;
use super::spec::{IoEngine, JobSpec};
use super::stats::JobStats;

use self::pace::{Pace, Pause};
use self::passes::Limits;
use self::units::Units;

mod flow;
mod issue;
mod lean;
mod pace;
mod passes;
mod reap;
mod ring;
mod units;

pub use self::lean::LeanStep;
pub use self::ring::Ring;

pub use flow::{Flow, FlowGroup};

/// An I/O as a job with `write_iolog` notes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When it was issued.
    pub at: Nanos,
    /// Operation.
    pub op: Op,
    /// `fdatasync` instead of `fsync`.
    pub data_only: bool,
    /// Byte offset on the device.
    pub offset: Bytes,
    /// Bytes.
    pub len: Bytes,
}

/// One I/O for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The process's slot; completions name it.
    pub unit: u32,
    /// Operation.
    pub op: Op,
    /// Byte offset on the device.
    pub offset: Bytes,
    /// Bytes.
    pub len: Bytes,
    /// `O_SYNC`/`O_DSYNC`: the write must be on stable media (FUA).
    pub stable: bool,
}

impl Io {
    /// A sync of a device: its cache is flushed.
    #[must_use]
    pub fn flush(unit: u32) -> Io {
        Io { unit, op: Op::Flush, offset: 0, len: 0, stable: false }
    }
}

/// What the process does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Submits one I/O; the process goes on when the kernel has taken it.
    Submit(Io),
    /// One system call submits so many I/Os: the kernel plugs.
    BeginBatch(u32),
    /// The batch is complete: the kernel unplugs.
    EndBatch,
    /// Sleeps until at least this many of its I/Os are done and not yet reaped.
    Wait(u32),
    /// Sleeps until the I/O of this unit is done: a call that returns then.
    Await(u32),
    /// Sleeps until a time.
    Sleep(Nanos),
    /// The process ends.
    Exit,
}

/// More than this many I/Os in one system call open a plug (`AIO_PLUG_THRESHOLD` of aio, likewise in io_uring).
const PLUG_ABOVE: usize = 2;
/// How much too long `usleep` sleeps: the default timer slack of Linux. fio makes up for it in the pauses of rates and
/// think times, not in the pause of `flow_sleep`.
pub const TIMER_SLACK: Nanos = 50_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    Loop,
    /// Synchronous: the I/O was handed over, wait for it.
    AwaitSync,
    /// A call of an asynchronous engine that returns when this unit's I/O is done.
    Calling(u32),
    /// Asynchronous: submitting the i-th of the queued units.
    Submitting(u32),
    Submitted,
    /// The short main loop handed over this unit, alone.
    Handed(u32),
    Reap,
    Think,
    /// A pause is due, and all I/O must end before it.
    Quiesce,
    Drain,
    FinalSync,
    AwaitFinalSync,
    Done,
}

/// One running job.
///
/// The fields stay in this order in memory. The ones that every I/O of the short main loop needs come first. Ten
/// thousand processes at one disk are visited without pattern, so every cache line of a visit comes from memory.
#[derive(Debug)]
#[repr(C)]
pub struct Job {
    state: State,
    depth: u32,
    /// `iodepth_batch_complete_min` and `_max`.
    reap_min: u32,
    reap_max: u32,
    /// Plain, asynchronous, no batches, no thinking: [`Job::step_lean`] is all of its main loop.
    lean: bool,
    /// No replay, rate, sync or ramp: nothing but the generator decides what comes next.
    plain: bool,
    measuring: bool,
    /// `sync`: writes must be on stable media.
    stable: bool,
    units: Units,
    deadline: Nanos,
    limits: Limits,
    bytes_issued: Bytes,
    ios_issued: u64,
    /// Syncs under way.
    syncs: u32,
    reaped_total: u64,
    generator: Generator,
    stats: JobStats,
    spec: Box<JobSpec>,
    replay: Option<Replay>,
    queued: Vec<u32>,
    loops_left: u64,
    /// Another pass follows when the I/Os under way are done.
    again: bool,
    /// Syncs to come at the end of this pass.
    syncs_left: usize,
    /// How many of those are the job's own, not of its end.
    own_syncs: usize,
    /// `bytes_issued` when the generator last had nothing left.
    went_round_at: Bytes,
    writes_issued: u64,
    /// The last that was reaped was a sync.
    synced_last: bool,
    /// The last that was handed over is a sync.
    syncing: bool,
    /// The pass is over except for the I/Os under way; `syncs_left` is not known yet.
    pass_ends: bool,
    pace: Pace,
    held: Option<NextIo>,
    thought_at: u64,
    /// When the I/O time of `thinktime_iotime` began.
    think_since: Nanos,
    /// All units were in use, and the depth has not come down to `iodepth_low`.
    draining: bool,
    /// A call has to wait until fio has reaped something.
    busy: bool,
    /// I/Os collected since the last whole batch. What a wait for a full queue hands over early still counts.
    batched: u32,
    /// I/Os of the call that submits a batch.
    call: u32,
    /// Where libaio's ring goes on.
    ring_at: u32,
    /// What comes after the batch that is being submitted.
    after: State,
    /// The pause that is due, and when nothing is under way.
    pause: Pause,
    flow: Option<Flow>,
    log: Option<Vec<Logged>>,
    files: Files,
    by_unit: Option<ByUnit>,
}

/// How a process of POSIX AIO looks for what is done.
#[derive(Debug)]
struct ByUnit {
    /// I/Os found so far, for which it has not returned.
    found: usize,
    /// Those that the last look found.
    units: Vec<u32>,
}

impl Job {
    /// A process for a job. Its files are laid out already.
    #[must_use]
    pub fn new(job: &JobSpec, files: &Files) -> Self {
        let n = job.units();
        let size: Bytes = files.iter().map(|f| f.len).sum();
        let limits = Limits::of(job, size);
        let posix = job.engine == IoEngine::Posixaio;
        let plain = job.replay.is_none()
            && !limits.by_bytes()
            && job.ramp_time == 0
            && job.warm_up == 0
            && job.fsync == 0
            && job.fdatasync == 0
            && job.flow == 0
            && job.write_iolog.is_none()
            && !job.pattern.trim_then_write
            && job.rate.iter().all(|r| r.bytes == 0 && r.iops == 0);
        Job {
            generator: Generator::new(job, files),
            replay: job.replay.as_ref().map(|log| Replay::new(log, files)),
            limits,
            stats: JobStats::default(),
            state: State::Begin,
            units: Units::new(n),
            queued: Vec::with_capacity(n as usize),
            depth: 0,
            reaped_total: 0,
            loops_left: job.loops.max(1),
            again: false,
            syncs_left: 0,
            own_syncs: 0,
            bytes_issued: 0,
            went_round_at: 0,
            ios_issued: 0,
            syncs: 0,
            writes_issued: 0,
            synced_last: false,
            syncing: false,
            pass_ends: false,
            deadline: Nanos::MAX,
            pace: Pace::of(job),
            held: None,
            thought_at: 0,
            think_since: 0,
            draining: false,
            busy: false,
            batched: 0,
            call: 0,
            ring_at: 0,
            after: State::Reap,
            pause: Pause::None,
            flow: None,
            log: job.write_iolog.is_some().then(Vec::new),
            files: files.clone(),
            by_unit: posix.then(|| ByUnit { found: 0, units: Vec::with_capacity(n as usize) }),
            measuring: job.ramp_time == 0 && job.warm_up == 0,
            plain,
            lean: plain
                && !job.engine.is_sync()
                && !posix
                && job.batch_submit <= 1
                && job.iodepth_low >= n
                && !job.pattern.trim
                && job.think.time == 0,
            reap_min: job.batch_complete_min,
            // With POSIX AIO a look takes all that are done.
            reap_max: if posix { 0 } else { job.batch_complete_max },
            stable: job.opens_synced() > 0,
            spec: Box::new(job.clone()),
        }
    }

    /// What its job file says.
    #[must_use]
    pub fn spec(&self) -> &JobSpec {
        &self.spec
    }

    /// Ends the job as its run time would (`exitall` of another): no further I/O, whatever pass or ramp it is in.
    pub fn terminate(&mut self) {
        self.limits.nothing();
        self.deadline = 0;
    }

    /// Puts the process into a group that shares a flow (`flow_id`).
    pub fn join_flow(&mut self, flow: Flow) {
        self.flow = Some(flow);
    }

    /// The I/Os it noted, where it was to note them.
    #[must_use]
    pub fn log(&self) -> Option<&[Logged]> {
        self.log.as_deref()
    }

    /// Where its files lie.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// What it measured, which it gives away.
    pub fn take_stats(&mut self) -> JobStats {
        std::mem::take(&mut self.stats)
    }

    /// What it measured so far.
    #[must_use]
    pub fn stats(&self) -> &JobStats {
        &self.stats
    }

    /// How many I/Os it may have under way; their units are numbered from 0.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.units.len()
    }

    /// Whether it has not begun.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.state == State::Begin
    }

    /// An I/O begins only now, after the core time that fio itself took since [`step`](Self::step) gave it out.
    pub fn begun(&mut self, unit: u32, now: Nanos) {
        let unit = &mut self.units[unit];
        (unit.start, unit.issue) = (now, now);
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The next step at time `now`; finished I/Os are taken from `ring`.
    #[inline(never)]
    pub fn step(&mut self, now: Nanos, ring: &mut Ring) -> Step {
        loop {
            let step = match self.state {
                State::Begin => {
                    self.begin(now);
                    None
                }
                State::Loop => self.issue_next(now),
                State::AwaitSync => self.await_sync(now, ring),
                State::Submitting(i) => Some(self.submit(now, i)),
                State::Handed(unit) => {
                    self.queued.push(unit);
                    self.mark_issued(now);
                    None
                }
                State::Submitted => {
                    self.mark_issued(now);
                    None
                }
                State::Reap => self.reap_if_full(now, ring),
                State::Calling(unit) => self.await_call(now, unit, ring),
                State::Think => self.think(now),
                State::Quiesce => self.quiesce(now, ring),
                State::Drain => self.drain(now, ring),
                State::FinalSync => self.final_sync(now),
                State::AwaitFinalSync => self.await_final_sync(now, ring),
                State::Done => Some(Step::Exit),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn begin(&mut self, now: Nanos) {
        self.stats.started = now;
        if let Some(flow) = &self.flow {
            flow.enter();
        }
        self.stats.measured_from = now;
        // The first time, fio counts the thinking too.
        self.think_since = now.saturating_add(self.spec.think.time);
        if self.measuring || self.spec.warm_up > 0 {
            let runtime = self.spec.runtime.unwrap_or(Nanos::MAX);
            self.deadline = now.saturating_add(self.spec.warm_up).saturating_add(runtime);
        }
        self.state = if self.spec.file_options.create_only { State::Done } else { State::Loop };
        if self.state == State::Done {
            self.stats.ended = now;
        }
    }

    /// fio checks whether the ramp is over when it has issued or reaped an I/O, so not during a pause. The run time
    /// begins then. fio resets its counts, except for the bytes that `size` limits and the count at the last think
    /// time.
    fn end_ramp(&mut self, now: Nanos) -> bool {
        if self.spec.warm_up > 0 {
            self.end_warm_up(now);
            return false;
        }
        let over = !self.measuring && now >= self.stats.started + self.spec.ramp_time;
        if over {
            self.measuring = true;
            self.stats.measured_from = now;
            self.stats.dirs = Default::default();
            self.stats.depths = [0; 7];
            self.deadline = now.saturating_add(self.spec.runtime.unwrap_or(Nanos::MAX));
            self.ios_issued = 0;
            self.reaped_total = 0;
            self.generator.begin_anew();
            self.pace.begin_anew();
        }
        over
    }

    /// It has ended. Where it did so between two I/Os, its figures are those of the measured part alone.
    fn ends(&mut self, now: Nanos) {
        self.stats.ended = now;
        if self.spec.warm_up > 0 {
            self.end_warm_up(now);
            // What is served after the time is not counted, so its time is not, either.
            if self.has_time() {
                self.stats.ended = now.min(self.deadline);
            }
        }
    }

    /// An I/O that comes back after the time of a job that was measured after a warm-up: such a time is the same for all jobs.
    #[inline]
    fn is_late(&self, now: Nanos) -> bool {
        now > self.deadline && self.spec.warm_up > 0 && self.has_time()
    }

    /// No other job's end has ended it (`exitall`).
    fn has_time(&self) -> bool {
        self.deadline > self.stats.measured_from
    }

    /// The warm-up ends at its moment, whatever the job waits for then. What ends later counts whole, so a job that waits for
    /// seconds has these in its latencies.
    fn end_warm_up(&mut self, now: Nanos) {
        let moment = self.stats.started.saturating_add(self.spec.warm_up);
        if self.spec.warm_up == 0 || self.measuring || now < moment {
            return;
        }
        self.measuring = true;
        self.stats.measured_from = moment;
        self.stats.dirs = Default::default();
        self.stats.depths = [0; 7];
        // Rates count from here on: a job that was behind need not catch up.
        self.pace.begin_anew();
    }
}
