//! Waiting for I/Os, booking them, thinking, and the end of a job.

use iosched_types::Nanos;

use crate::fio::generator::NextIo;

use super::{Process, Ring, State, Step, TIMER_SLACK};

impl Process {
    pub(super) fn await_sync(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        let Some(unit) = ring.pop() else { return Some(Step::Wait(1)) };
        self.finish_unit(now, unit);
        self.state = State::Think;
        None
    }

    /// fio waits only when all units are in use (or a thought is due).
    pub(super) fn reap_if_full(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if !self.units.all_used() && !self.draining {
            self.state = if self.thought_due(now) { State::Think } else { State::Loop };
            return None;
        }
        if !self.queued.is_empty() {
            self.state = State::Submitting(0);
            return None;
        }
        let min = self.reap_min.clamp(1, self.depth.max(1));
        if (ring.len() as u32) < min {
            return Some(Step::Wait(min));
        }
        self.reap(now, ring);
        let low = self.job.iodepth_low.clamp(1, self.job.iodepth.max(1));
        self.draining = self.depth > low;
        if !self.draining {
            self.state = State::Think;
        }
        None
    }

    #[inline]
    pub(super) fn reap(&mut self, now: Nanos, ring: &mut Ring) {
        let most = match self.reap_max {
            0 => usize::MAX,
            n => n.max(self.reap_min) as usize,
        };
        for _ in 0..most.min(ring.len()) {
            if let Some(unit) = ring.pop() {
                self.finish_unit(now, unit);
            }
        }
    }

    #[inline(always)]
    fn finish_unit(&mut self, now: Nanos, unit: u32) {
        let u = self.units[unit];
        self.depth -= 1;
        self.units.give_back(unit);
        self.reaped_total += u64::from(u.dir < 3);
        if !self.measuring {
            return;
        }
        let since = now - self.stats.measured_from.min(now);
        let issue = u.issue.min(now);
        self.stats.dirs[usize::from(u.dir & 3)].book(since, u.len, issue - u.start, now - issue);
    }

    fn thought_due(&self, now: Nanos) -> bool {
        let t = &self.job.think;
        if t.time > 0 && t.iotime > 0 && now >= self.think_since.saturating_add(t.iotime) {
            return true;
        }
        let n = if t.issue { self.ios_issued } else { self.reaped_total };
        let every = t.blocks.max(1);
        t.time > 0 && n / every > self.thought_at / every
    }

    /// `thinktime`: all outstanding I/O first, then spin and sleep.
    pub(super) fn think(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if !self.thought_due(now) {
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
        let until = now + self.job.think.time + slack;
        self.think_since = until;
        Some(Step::Sleep(until))
    }

    pub(super) fn drain(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        if !self.queued.is_empty() {
            // Collected but never submitted: fio submits what it has prepared, then waits for it.
            return Some(self.submit_in_drain());
        }
        while let Some(unit) = ring.pop() {
            self.finish_unit(now, unit);
        }
        if self.depth > 0 {
            return Some(Step::Wait(self.depth.min(self.units.len())));
        }
        if !self.again {
            self.stats.ended = now;
            if let Some(flow) = self.flow.take() {
                flow.leave();
            }
        }
        self.next_sync_or_pass();
        None
    }

    fn submit_in_drain(&mut self) -> Step {
        let unit = self.queued.remove(0);
        Step::Submit(self.io(unit))
    }

    pub(super) fn final_sync(&mut self, now: Nanos) -> Option<Step> {
        let step = self.start_unit_sync(now);
        self.state = State::AwaitFinalSync;
        step
    }

    fn start_unit_sync(&mut self, now: Nanos) -> Option<Step> {
        // `end_fsync` is no fdatasync, whatever came before.
        let full = NextIo { dir: 3, offset: 0, len: 0 };
        self.note(now, full);
        let unit = self.units.take(&full, now)?;
        self.depth += 1;
        Some(Step::Submit(self.io(unit)))
    }

    pub(super) fn await_final_sync(&mut self, now: Nanos, ring: &mut Ring) -> Option<Step> {
        let Some(unit) = ring.pop() else { return Some(Step::Wait(1)) };
        self.finish_unit(now, unit);
        self.stats.ended = now;
        self.next_sync_or_pass();
        None
    }
}
