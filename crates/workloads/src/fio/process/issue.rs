//! Which I/O a process submits next, and when: rates, logs, syncs, batches.

use iosched_types::{Nanos, Op};

use super::{Io, Job, Logged, PLUG_ABOVE, State, Step};
use crate::fio::generator::NextIo;
use crate::fio::replay::Replay;
use crate::fio::spec::IoEngine;
use crate::fio::stats::depth_bin;

impl Job {
    pub(super) fn issue_next(&mut self, now: Nanos) -> Option<Step> {
        // fio issues the I/O for which it has waited even if the run time ended meanwhile.
        if self.finished(now) && !(self.pace.waited() && self.just_over(now)) {
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
            self.hold_back();
            return None;
        }
        // A pass that ends with its bytes ends before the sync. The sync then comes first in the next pass.
        if self.pass_is_over() {
            return None;
        }
        // The I/O for which a rate paused had been decided on before.
        if self.held.is_none() && !self.pace.waited() && self.sync_due() {
            self.generator.sync_turn();
            return self.start_unit(now, NextIo { dir: 3, offset: 0, len: 0 });
        }
        if let Some(at) = self.replay.as_ref().and_then(Replay::next_at)
            && self.stats.started + at > now
        {
            return Some(Step::Sleep(self.stats.started + at));
        }
        if self.held.is_none() && self.paused_by_rate(now) {
            return None;
        }
        let next = self.held.take().or_else(|| self.next_io());
        let Some(io) = next else {
            self.end_pass();
            return None;
        };
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

    /// `fsync`/`fdatasync` after this many writes.
    fn sync_due(&mut self) -> bool {
        let due = |every: u32| every > 0 && self.writes_issued.is_multiple_of(u64::from(every));
        // Reads count, too: while the number of writes does not change, a sync follows each read. The last I/O that fio
        // reaped decides. So an engine that only queues syncs gets one after the other until another I/O is done, and
        // after a reaped sync no other comes until then.
        let syncs =
            self.writes_issued > 0 && !self.synced_last && !self.spec.pattern.trim_then_write;
        syncs && (due(self.spec.fsync) || due(self.spec.fdatasync))
    }

    pub(super) fn start_unit(&mut self, now: Nanos, io: NextIo) -> Option<Step> {
        let call = self.is_call(io.dir);
        if call && !self.queued.is_empty() {
            // fio hands over what it has collected, reaps, and tries again.
            self.held = Some(io);
            self.busy = true;
            self.batched = 0;
            self.submit_queued(State::Reap);
            return None;
        }
        let unit = self.units.take(&io, now)?;
        self.depth += 1;
        self.syncing = io.dir == 3;
        self.syncs += u32::from(io.dir == 3);
        if let Some(flow) = &self.flow {
            flow.count();
        }
        self.note(now, io);
        if io.dir < 3 {
            self.ios_issued += 1;
            // The trim before a write of the same block does not count as a transfer.
            if !(self.spec.pattern.trim_then_write && io.dir == 2) {
                self.bytes_issued += io.len;
            }
            self.pace.issued(&self.spec, io.dir, io.len);
            self.writes_issued += u64::from(io.dir == 1);
            self.stats.depths[depth_bin(self.depth)] += 1;
        }
        if self.end_ramp(now) {
            // It was counted before the counts began anew.
            self.units[unit].start = now.saturating_sub(1);
        }
        if self.spec.engine.is_sync() {
            self.state = State::AwaitSync;
            return Some(Step::Submit(self.io(unit)));
        }
        if call {
            self.state = State::Calling(unit);
            return Some(Step::Submit(self.io(unit)));
        }
        self.queued.push(unit);
        // glibc's threads take each request as it comes.
        if self.spec.batch_submit <= 1 || self.spec.engine == IoEngine::Posixaio {
            self.after = State::Reap;
            self.state = State::Submitted;
            return Some(Step::Submit(self.io(unit)));
        }
        self.batched += 1;
        if self.batched >= self.spec.batch_submit {
            self.batched = 0;
            self.submit_queued(State::Reap);
        } else {
            self.state = State::Reap;
        }
        None
    }

    /// Whether an asynchronous engine does this in a call that returns when it is done: trims, and syncs where the
    /// kernel's interface had none.
    fn is_call(&self, dir: usize) -> bool {
        match self.spec.engine {
            IoEngine::Libaio => dir >= 2,
            IoEngine::IoUring | IoEngine::Posixaio => dir == 2,
            _ => false,
        }
    }

    /// One call submits all that were collected; `after` comes next. libaio's are in a ring of `iodepth`, and a call
    /// takes those up to its end. Another call takes the rest.
    pub(super) fn submit_queued(&mut self, after: State) {
        self.after = after;
        self.state = State::Submitting(0);
        let all = self.queued.len() as u32;
        self.call = match self.spec.engine {
            IoEngine::Libaio => {
                let n = all.min(self.spec.iodepth - self.ring_at);
                self.ring_at = (self.ring_at + n) % self.spec.iodepth;
                n
            }
            _ => all,
        };
    }

    /// Notes an I/O for `write_iolog`.
    pub(super) fn note(&mut self, now: Nanos, io: NextIo) {
        let Some(log) = &mut self.log else { return };
        let op = [Op::Read, Op::Write, Op::Discard, Op::Flush][io.dir & 3];
        let every = u64::from(self.spec.fsync);
        let full = every > 0 && self.writes_issued.is_multiple_of(every);
        let data_only = op == Op::Flush && !full && self.spec.fdatasync > 0;
        log.push(Logged { at: now, op, data_only, offset: io.offset, len: io.len });
    }

    pub(super) fn io(&self, unit: u32) -> Io {
        let u = &self.units[unit];
        Io { unit, op: u.op(), offset: u.offset, len: u.len, stable: self.stable && u.dir == 1 }
    }

    /// Walks through the batch: plug, each unit, unplug.
    pub(super) fn submit(&mut self, _now: Nanos, i: u32) -> Step {
        let (n, i) = (self.call as usize, i as usize);
        let plug = n > PLUG_ABOVE;
        let at = if plug { i } else { i + 1 };
        self.state = State::Submitting(i as u32 + 1);
        if at == 0 {
            return Step::BeginBatch(self.call);
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
        let call = std::mem::take(&mut self.call) as usize;
        // A call for one I/O notes no length.
        let n = if call == 0 { self.queued.len() } else { call };
        for unit in self.queued.drain(..n) {
            self.units[unit].issue = now;
        }
        if self.queued.is_empty() {
            self.state = self.after;
        } else {
            self.submit_queued(self.after);
        }
    }
}
