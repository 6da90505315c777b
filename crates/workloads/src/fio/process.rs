//! A job as a process: fio's main loop as a state machine.
//!
//! The simulator calls [`Process::step`] again and again. Each step is something a process asks of the
//! kernel: submit an I/O, open or close a plug (a batch in one system call), wait for completions,
//! sleep, end. Between steps the process takes no time.

use std::collections::VecDeque;

use iosched_types::{Bytes, Nanos, Op};

use super::generator::{Generator, NextIo};
use super::layout::Files;
use super::replay::Replay;
use super::spec::JobSpec;
use super::stats::{JobStats, depth_bin};

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

/// What the process does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Submits one I/O; the process goes on when the kernel has taken it.
    Submit(Io),
    /// One system call submits several I/Os: the kernel plugs.
    BeginBatch,
    /// The batch is complete: the kernel unplugs.
    EndBatch,
    /// Sleeps until at least this many of its I/Os are done and not yet reaped.
    Wait(u32),
    /// Sleeps until a time.
    Sleep(Nanos),
    /// The process ends.
    Exit,
}

/// Finished I/Os a process has not reaped yet.
pub type Ring = VecDeque<u32>;

/// More than this many I/Os in one system call open a plug (`AIO_PLUG_THRESHOLD` of aio, likewise in io_uring).
const PLUG_ABOVE: usize = 2;
/// Sleeping processes wake up this much later: the default timer slack of Linux.
pub const TIMER_SLACK: Nanos = 50_000;

#[derive(Clone, Copy, Debug)]
struct Unit {
    offset: Bytes,
    len: Bytes,
    start: Nanos,
    issue: Nanos,
    /// Read, write, trim, flush.
    dir: u8,
}

impl Unit {
    const UNUSED: Unit = Unit { offset: 0, len: 0, start: 0, issue: 0, dir: 0 };

    fn op(&self) -> Op {
        [Op::Read, Op::Write, Op::Discard, Op::Flush][usize::from(self.dir & 3)]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    Loop,
    /// Synchronous: the I/O was handed over, wait for it.
    AwaitSync,
    /// Asynchronous: submitting the i-th of the queued units.
    Submitting(usize),
    Submitted,
    Reap,
    Think,
    Drain,
    FinalSync,
    AwaitFinalSync,
    Done,
}

/// One running job.
#[derive(Debug)]
pub struct Process {
    job: JobSpec,
    generator: Generator,
    replay: Option<Replay>,
    size: Bytes,
    stats: JobStats,
    state: State,
    units: Vec<Unit>,
    free: Vec<u32>,
    queued: Vec<u32>,
    depth: u32,
    reaped_total: u64,
    loops_left: u64,
    bytes_this_loop: Bytes,
    ios_issued: u64,
    writes_issued: u64,
    wrote_last: bool,
    deadline: Nanos,
    rate_bytes: [u64; 3],
    rate_ios: [u64; 3],
    poisson_next: [Nanos; 3],
    poisson: super::taus::Taus88,
    held: Option<NextIo>,
    thought_at: u64,
    measuring: bool,
    /// No replay, rate, sync or ramp: nothing but the generator decides what comes next.
    plain: bool,
    /// Plain, asynchronous, no batches, no thinking: [`Process::lean`] is all of its main loop.
    lean: bool,
}

impl Process {
    /// A process for a job whose files are laid out.
    #[must_use]
    pub fn new(job: &JobSpec, files: &Files) -> Self {
        let n = if job.engine.is_sync() { 1 } else { job.iodepth.max(1) };
        let size: Bytes = files.iter().map(|f| f.len).sum();
        let plain = job.replay.is_none()
            && job.ramp_time == 0
            && job.fsync == 0
            && job.fdatasync == 0
            && job.rate.iter().all(|r| r.bytes == 0 && r.iops == 0);
        Process {
            generator: Generator::new(job, files),
            replay: job.replay.as_ref().map(|log| Replay::new(log, files)),
            size: job.io_size.unwrap_or(size),
            stats: JobStats::default(),
            state: State::Begin,
            units: vec![Unit::UNUSED; n as usize],
            free: (0..n).rev().collect(),
            queued: Vec::with_capacity(n as usize),
            depth: 0,
            reaped_total: 0,
            loops_left: job.loops.max(1),
            bytes_this_loop: 0,
            ios_issued: 0,
            writes_issued: 0,
            wrote_last: false,
            deadline: Nanos::MAX,
            rate_bytes: [0; 3],
            rate_ios: [0; 3],
            poisson_next: [0; 3],
            poisson: super::taus::Taus88::of_job(super::taus::StreamId::Poisson, job),
            held: None,
            thought_at: 0,
            measuring: job.ramp_time == 0,
            plain,
            lean: plain && !job.engine.is_sync() && job.batch_submit <= 1 && job.think.time == 0,
            job: job.clone(),
        }
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &JobSpec {
        &self.job
    }

    /// What it measured so far.
    #[must_use]
    pub fn stats(&self) -> &JobStats {
        &self.stats
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// The next step at time `now`; finished I/Os are taken from `ring`.
    pub fn step(&mut self, now: Nanos, ring: &mut Ring) -> Step {
        if self.lean
            && let Some(step) = self.step_lean(now, ring)
        {
            return step;
        }
        self.step_any(now, ring)
    }

    fn step_any(&mut self, now: Nanos, ring: &mut Ring) -> Step {
        loop {
            let step = match self.state {
                State::Begin => {
                    self.begin(now);
                    None
                }
                State::Loop => self.issue_next(now),
                State::AwaitSync => self.await_sync(now, ring),
                State::Submitting(i) => Some(self.submit(now, i)),
                State::Submitted => {
                    self.mark_issued(now);
                    None
                }
                State::Reap => self.reap_if_full(now, ring),
                State::Think => self.think(now, ring),
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
        self.stats.measured_from = now;
        let limit = self.job.runtime.unwrap_or(Nanos::MAX);
        self.deadline = now.saturating_add(self.job.ramp_time).saturating_add(limit);
        self.state = State::Loop;
    }

    fn end_ramp(&mut self, now: Nanos) {
        if !self.measuring && now >= self.stats.started + self.job.ramp_time {
            self.measuring = true;
            self.stats.measured_from = now;
            self.stats.dirs = Default::default();
            self.stats.depths = [0; 7];
        }
    }

    /// Whether the job has done all it should.
    fn finished(&mut self, now: Nanos) -> bool {
        if now >= self.deadline || self.job.number_ios.is_some_and(|n| self.ios_issued >= n) {
            return true;
        }
        if self.job.time_based || self.replay.is_some() || self.bytes_this_loop < self.size {
            return false;
        }
        self.next_loop()
    }

    /// Starts the next loop; `true` when there is none.
    fn next_loop(&mut self) -> bool {
        self.loops_left = self.loops_left.saturating_sub(1);
        self.bytes_this_loop = 0;
        self.generator.rewind();
        self.loops_left == 0
    }

    fn issue_next(&mut self, now: Nanos) -> Option<Step> {
        if !self.plain {
            self.end_ramp(now);
        }
        if self.finished(now) {
            self.state = State::Drain;
            return None;
        }
        if self.free.is_empty() {
            self.state = State::Reap;
            return None;
        }
        if self.plain {
            return self.issue_plain(now);
        }
        if self.sync_due() {
            return self.start_unit(now, NextIo { dir: 3, offset: 0, len: 0 });
        }
        if let Some(at) = self.replay.as_ref().and_then(Replay::next_at)
            && self.stats.started + at > now
        {
            return Some(Step::Sleep(self.stats.started + at));
        }
        let next = self.held.take().or_else(|| self.next_io());
        let Some(io) = next else {
            if self.replay.is_some() || self.next_loop() {
                self.state = State::Drain;
            }
            return None;
        };
        if let Some(at) = self.rate_limit(now, io) {
            self.held = Some(io);
            return Some(Step::Sleep(at));
        }
        self.start_unit(now, io)
    }

    fn issue_plain(&mut self, now: Nanos) -> Option<Step> {
        if let Some(io) = self.generator.next_io() {
            return self.start_unit(now, io);
        }
        if self.next_loop() {
            self.state = State::Drain;
        }
        None
    }

    /// The main loop of most jobs: the states `Loop`, `Submitted` and `Reap` without what does not apply. `None`
    /// leaves the rest to the other states.
    #[inline]
    fn step_lean(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        match self.state {
            State::Loop => {}
            State::Submitted => {
                if let Some(unit) = self.queued.pop() {
                    self.units[unit as usize].issue = now;
                }
                if self.free.is_empty()
                    && let Some(wait) = self.reap_lean(now, ring)
                {
                    return Some(wait);
                }
            }
            State::Reap => {
                if let Some(wait) = self.reap_lean(now, ring) {
                    return Some(wait);
                }
            }
            _ => return None,
        }
        self.state = State::Loop;
        if self.finished(now) {
            self.state = State::Drain;
            return None;
        }
        let &unit = self.free.last()?;
        let Some(io) = self.generator.next_io() else {
            if self.next_loop() {
                self.state = State::Drain;
            }
            return None;
        };
        self.free.pop();
        self.queued.push(unit);
        let u = &mut self.units[unit as usize];
        *u = Unit { offset: io.offset, len: io.len, start: now, issue: now, dir: io.dir as u8 };
        let (op, stable) = (u.op(), self.job.sync > 0 && io.dir == 1);
        self.depth += 1;
        self.ios_issued += 1;
        self.bytes_this_loop += io.len;
        self.stats.depths[depth_bin(self.depth)] += 1;
        self.state = State::Submitted;
        Some(Step::Submit(Io { unit, op, offset: io.offset, len: io.len, stable }))
    }

    /// All units are in use: reaps, or says what to wait for.
    #[inline]
    fn reap_lean(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if self.free.is_empty() {
            let min = self.job.batch_complete_min.clamp(1, self.depth.max(1));
            if (ring.len() as u32) < min {
                self.state = State::Reap;
                return Some(Step::Wait(min));
            }
            self.reap(now, ring);
        }
        None
    }

    fn next_io(&mut self) -> Option<NextIo> {
        match &mut self.replay {
            Some(r) => r.next_io(),
            None => self.generator.next_io(),
        }
    }

    /// `fsync`/`fdatasync` after so many writes.
    fn sync_due(&mut self) -> bool {
        let due = |every: u32| every > 0 && self.writes_issued.is_multiple_of(u64::from(every));
        let due = self.wrote_last && (due(self.job.fsync) || due(self.job.fdatasync));
        if due {
            self.wrote_last = false;
        }
        due
    }

    /// When the rate allows this I/O, if not now.
    fn rate_limit(&mut self, now: Nanos, io: NextIo) -> Option<Nanos> {
        if io.dir > 2 {
            return None;
        }
        let r = self.job.rate[io.dir];
        if r.bytes == 0 && r.iops == 0 {
            return None;
        }
        let since = self.stats.started;
        let by_bytes = |n: u64| (u128::from(n) * 1_000_000_000 / u128::from(r.bytes.max(1))) as u64;
        let by_ios = |n: u64| n * 1_000_000_000 / u64::from(r.iops.max(1));
        let at = if r.poisson && r.iops > 0 {
            since + self.poisson_next[io.dir]
        } else if r.iops > 0 {
            since + by_ios(self.rate_ios[io.dir])
        } else {
            since + by_bytes(self.rate_bytes[io.dir])
        };
        if at > now {
            return Some(at);
        }
        if r.poisson && r.iops > 0 {
            let u = 1.0 - self.poisson.unit();
            self.poisson_next[io.dir] += (-u.ln() * 1e9 / f64::from(r.iops)) as u64;
        }
        None
    }

    fn start_unit(&mut self, now: Nanos, io: NextIo) -> Option<Step> {
        let unit = self.free.pop()?;
        let (offset, len) = (io.offset, io.len);
        self.units[unit as usize] = Unit { offset, len, start: now, issue: now, dir: io.dir as u8 };
        self.depth += 1;
        if io.dir < 3 {
            self.ios_issued += 1;
            self.bytes_this_loop += io.len;
            self.rate_bytes[io.dir] += io.len;
            self.rate_ios[io.dir] += 1;
            self.wrote_last = io.dir == 1;
            self.writes_issued += u64::from(io.dir == 1);
            self.stats.depths[depth_bin(self.depth)] += 1;
        }
        if self.job.engine.is_sync() {
            self.state = State::AwaitSync;
            return Some(Step::Submit(self.io(unit)));
        }
        self.queued.push(unit);
        if self.job.batch_submit <= 1 {
            self.state = State::Submitted;
            return Some(Step::Submit(self.io(unit)));
        }
        if self.queued.len() >= self.job.batch_submit as usize {
            self.state = State::Submitting(0);
        } else {
            self.state = State::Reap;
        }
        None
    }

    fn io(&self, unit: u32) -> Io {
        let u = &self.units[unit as usize];
        Io {
            unit,
            op: u.op(),
            offset: u.offset,
            len: u.len,
            stable: self.job.sync > 0 && u.dir == 1,
        }
    }

    fn await_sync(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        let Some(unit) = ring.pop_front() else { return Some(Step::Wait(1)) };
        self.finish_unit(now, unit);
        self.state = State::Think;
        None
    }

    /// Walks through the batch: plug, each unit, unplug.
    fn submit(&mut self, _now: Nanos, i: usize) -> Step {
        let n = self.queued.len();
        let plug = n > PLUG_ABOVE;
        let at = if plug { i } else { i + 1 };
        self.state = State::Submitting(i + 1);
        if at == 0 {
            return Step::BeginBatch;
        }
        if at <= n {
            if at == n && !plug {
                self.state = State::Submitted;
            }
            return Step::Submit(self.io(self.queued[at - 1]));
        }
        self.state = State::Submitted;
        Step::EndBatch
    }

    /// The system call returned: completion latencies count from here.
    fn mark_issued(&mut self, now: Nanos) {
        for unit in &self.queued {
            self.units[*unit as usize].issue = now;
        }
        self.queued.clear();
        let go_on = !self.free.is_empty() && self.job.think.time == 0;
        self.state = if go_on { State::Loop } else { State::Reap };
    }

    /// fio waits only when all units are in use (or a thought is due).
    fn reap_if_full(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if !self.free.is_empty() {
            self.state = if self.thought_due() { State::Think } else { State::Loop };
            return None;
        }
        if !self.queued.is_empty() {
            self.state = State::Submitting(0);
            return None;
        }
        let min = self.job.batch_complete_min.clamp(1, self.depth.max(1));
        if (ring.len() as u32) < min {
            return Some(Step::Wait(min));
        }
        self.reap(now, ring);
        if self.depth <= self.job.iodepth_low.max(1).min(self.job.iodepth) {
            self.state = State::Think;
        }
        None
    }

    fn reap(&mut self, now: Nanos, ring: &mut Ring) {
        let most = match self.job.batch_complete_max {
            0 => usize::MAX,
            n => n.max(self.job.batch_complete_min) as usize,
        };
        for _ in 0..most.min(ring.len()) {
            if let Some(unit) = ring.pop_front() {
                self.finish_unit(now, unit);
            }
        }
    }

    #[inline]
    fn finish_unit(&mut self, now: Nanos, unit: u32) {
        let u = self.units[unit as usize];
        self.depth -= 1;
        self.free.push(unit);
        self.reaped_total += u64::from(u.dir < 3);
        if !self.measuring {
            return;
        }
        let since = now - self.stats.measured_from.min(now);
        let issue = u.issue.min(now);
        self.stats.dirs[usize::from(u.dir & 3)].book(since, u.len, issue - u.start, now - issue);
    }

    fn thought_due(&self) -> bool {
        let t = &self.job.think;
        let n = if t.issue { self.ios_issued } else { self.reaped_total };
        let every = t.blocks.max(1);
        t.time > 0 && n / every > self.thought_at / every
    }

    /// `thinktime`: all outstanding I/O first, then spin and sleep.
    fn think(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if !self.thought_due() {
            self.state = State::Loop;
            return None;
        }
        if !self.queued.is_empty() {
            self.state = State::Submitting(0);
            return None;
        }
        if self.depth > 0 {
            if ring.is_empty() {
                return Some(Step::Wait(1));
            }
            self.reap(now, ring);
            return None;
        }
        self.thought_at = if self.job.think.issue { self.ios_issued } else { self.reaped_total };
        self.state = State::Loop;
        let slack = if self.job.think.time > self.job.think.spin { TIMER_SLACK } else { 0 };
        Some(Step::Sleep(now + self.job.think.time + slack))
    }

    fn drain(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if !self.queued.is_empty() {
            // Collected but never submitted: fio submits what it has prepared, then waits for it.
            return Some(self.submit_in_drain());
        }
        while let Some(unit) = ring.pop_front() {
            self.finish_unit(now, unit);
        }
        if self.depth > 0 {
            return Some(Step::Wait(self.depth.min(self.units.len() as u32)));
        }
        self.stats.ended = now;
        self.state = if self.job.end_fsync { State::FinalSync } else { State::Done };
        None
    }

    fn submit_in_drain(&mut self) -> Step {
        let unit = self.queued.remove(0);
        Step::Submit(self.io(unit))
    }

    fn final_sync(&mut self, now: Nanos) -> Option<Step> {
        let step = self.start_unit_sync(now);
        self.state = State::AwaitFinalSync;
        step
    }

    fn start_unit_sync(&mut self, now: Nanos) -> Option<Step> {
        let unit = self.free.pop()?;
        self.units[unit as usize] = Unit { offset: 0, len: 0, start: now, issue: now, dir: 3 };
        self.depth += 1;
        Some(Step::Submit(self.io(unit)))
    }

    fn await_final_sync(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        let Some(unit) = ring.pop_front() else { return Some(Step::Wait(1)) };
        self.finish_unit(now, unit);
        self.stats.ended = now;
        self.state = State::Done;
        None
    }
}
