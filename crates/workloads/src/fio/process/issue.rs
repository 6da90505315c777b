//! What a process submits next, and when: rates, logs, syncs, batches.

use iosched_types::{Nanos, Op};

use super::{Io, Logged, PLUG_ABOVE, Process, State, Step};
use crate::fio::generator::NextIo;
use crate::fio::replay::Replay;
use crate::fio::stats::depth_bin;

impl Process {
    pub(super) fn issue_next(&mut self, now: Nanos) -> Option<Step> {
        if !self.plain {
            self.end_ramp(now);
        }
        if self.finished(now) {
            self.end(now);
            return None;
        }
        if self.units.all_used() {
            self.state = State::Reap;
            return None;
        }
        if self.plain {
            return self.issue_plain(now);
        }
        if self.flow.as_ref().is_some_and(|f| !f.may_go()) {
            return Some(self.hold_back(now));
        }
        if self.sync_due() {
            self.generator.sync_turn();
            return self.start_unit(now, NextIo { dir: 3, offset: 0, len: 0 });
        }
        if let Some(at) = self.replay.as_ref().and_then(Replay::next_at)
            && self.stats.started + at > now
        {
            return Some(Step::Sleep(self.stats.started + at));
        }
        let next = self.held.take().or_else(|| self.next_io());
        let Some(io) = next else {
            self.end_pass();
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
        self.end_pass();
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
        // Reads count, too: while the number of writes stays where it is, a sync follows each of them.
        let syncs =
            self.writes_issued > 0 && !self.synced_last && !self.job.pattern.trim_then_write;
        let now = syncs && (due(self.job.fsync) || due(self.job.fdatasync));
        self.synced_last |= now;
        now
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
        let at = if r.poisson {
            since + self.poisson_next[io.dir]
        } else if r.iops > 0 {
            since + by_ios(self.rate_ios[io.dir])
        } else {
            since + by_bytes(self.rate_bytes[io.dir])
        };
        if at > now {
            return Some(at);
        }
        if r.poisson {
            let smallest = self.job.bs.range[io.dir].0.max(1);
            let iops = if r.iops > 0 { u64::from(r.iops) } else { (r.bytes / smallest).max(1) };
            let u = (f64::from(self.poisson.next_u32()) + 1.0) / 4_294_967_296.0;
            self.poisson_next[io.dir] += (-u.ln() * 1e9 / iops as f64) as u64;
        }
        None
    }

    fn start_unit(&mut self, now: Nanos, io: NextIo) -> Option<Step> {
        let unit = self.units.take(&io, now)?;
        self.depth += 1;
        if let Some(flow) = &self.flow {
            flow.count();
        }
        self.note(now, io);
        if io.dir < 3 {
            self.ios_issued += 1;
            // The trim of a block that is written next is no transfer of its own.
            if !(self.job.pattern.trim_then_write && io.dir == 2) {
                self.bytes_issued += io.len;
            }
            self.rate_bytes[io.dir] += io.len;
            self.rate_ios[io.dir] += 1;
            self.writes_issued += u64::from(io.dir == 1);
            self.synced_last = false;
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

    /// Notes an I/O for `write_iolog`.
    pub(super) fn note(&mut self, now: Nanos, io: NextIo) {
        let Some(log) = &mut self.log else { return };
        let op = [Op::Read, Op::Write, Op::Discard, Op::Flush][io.dir & 3];
        let every = u64::from(self.job.fsync);
        let full = every > 0 && self.writes_issued.is_multiple_of(every);
        let data_only = op == Op::Flush && !full && self.job.fdatasync > 0;
        log.push(Logged { at: now, op, data_only, offset: io.offset, len: io.len });
    }

    pub(super) fn io(&self, unit: u32) -> Io {
        let u = &self.units[unit];
        Io { unit, op: u.op(), offset: u.offset, len: u.len, stable: self.stable && u.dir == 1 }
    }

    /// Walks through the batch: plug, each unit, unplug.
    pub(super) fn submit(&mut self, _now: Nanos, i: u32) -> Step {
        let (n, i) = (self.queued.len(), i as usize);
        let plug = n > PLUG_ABOVE;
        let at = if plug { i } else { i + 1 };
        self.state = State::Submitting(i as u32 + 1);
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
    pub(super) fn mark_issued(&mut self, now: Nanos) {
        for unit in &self.queued {
            self.units[*unit].issue = now;
        }
        self.queued.clear();
        let go_on = !self.units.all_used() && self.job.think.time == 0;
        self.state = if go_on { State::Loop } else { State::Reap };
    }
}
