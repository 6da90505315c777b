//! The out-of-tree generation: its dispatch loop, and how a slot is charged.

use iosched_types::{NO_REQ, Nanos, ReqId, Request};

use super::Bfq;
use super::expire::Reason;
use super::queue::{Jiffies, NEVER, QueueId, Raise};
use super::raise::Signs;
use super::rbtree::NIL;
use super::version::V7;
use crate::api::Ctx;

/// A queue alone may have this many times its limit.
const ALONE: u32 = 4;
/// A budget below this share of the largest is too small to tell slowness.
const JUDGED_SHARE: u64 = 8;

impl Bfq {
    /// On flash that queues, the device is kept idle for raised queues only. Others are worth waiting for as long as they have
    /// requests in flight.
    pub(super) fn v7_waits(&self, q: QueueId) -> bool {
        self.q(q).raised() || !self.flash_with_queueing()
    }

    /// The queue to serve, and its request, if the limits let one out.
    pub(super) fn v7_select(&mut self, ctx: &mut Ctx<'_>) -> Option<(QueueId, ReqId)> {
        loop {
            let q = self.v7_queue(ctx)?;
            if !self.v7_may_dispatch(q) {
                return None;
            }
            if self.q(q).wait_request {
                self.stop_waiting(ctx, q);
            }
            let id = self.v7_pick(ctx, q);
            if let Some(id) = id {
                return Some((q, id));
            }
            self.expire(ctx, q, false, Reason::Exhausted);
        }
    }

    /// The queue in service while its slot lasts, the next otherwise.
    fn v7_queue(&mut self, ctx: &mut Ctx<'_>) -> Option<QueueId> {
        let q = self.in_service;
        if q != NIL {
            let queue = self.q(q);
            if self.may_expire_for_timeout(q) && !queue.wait_request && !self.must_idle(q) {
                self.expire(ctx, q, false, Reason::Timeout);
            } else if queue.next_rq != NO_REQ {
                if self.charge_of(&ctx.reqs[queue.next_rq], q) <= self.engine.left(queue.entity) {
                    return Some(q);
                }
                self.expire(ctx, q, false, Reason::Exhausted);
            } else if queue.wait_request || (queue.dispatched > 0 && self.better_to_idle(q)) {
                return None;
            } else {
                self.expire(ctx, q, false, Reason::NoMore);
            }
        }
        self.next_queue(ctx)
    }

    fn v7_may_dispatch(&self, q: QueueId) -> bool {
        let queue = self.q(q);
        let limit = match (queue.class, queue.sync) {
            (2, _) => 1,
            (_, false) => self.c.max_async_rq,
            _ => self.c.quantum,
        };
        let limit = if self.total_busy() > 1 { limit } else { limit.saturating_mul(ALONE) };
        queue.dispatched < limit && (queue.sync || self.sync_in_driver == 0)
    }

    /// The oldest request if it is overdue, once a slot. It ends the slot if the budget does not cover it.
    fn v7_pick(&mut self, ctx: &mut Ctx<'_>, q: QueueId) -> Option<ReqId> {
        let best = self.q(q).next_rq;
        if std::mem::replace(&mut self.qm(q).fifo_checked, true) {
            return Some(best);
        }
        let Some(oldest) = self.q(q).fifo.head() else { return Some(best) };
        let r = &ctx.reqs[oldest];
        if oldest == best || self.now < r.fifo_time {
            return Some(best);
        }
        if self.charge_of(r, q) > self.engine.left(self.q(q).entity) {
            return None;
        }
        ctx.why(|_, _| "oldest first: its deadline passed".into());
        Some(oldest)
    }

    /// The clock of a slot starts when its first request completes.
    pub(super) fn v7_first_completion(&mut self, q: QueueId) {
        let queue = self.q(q);
        if queue.budget_timeout < NEVER {
            return;
        }
        // A soft real-time queue is served often, not long.
        let stretch =
            if queue.raise.soft_rt { 1 } else { self.engine.raised(queue.entity).max(1) };
        let timeout = self.c.timeout[usize::from(queue.sync)];
        let end = self.j.saturating_add(timeout.saturating_mul(stretch as i64));
        self.qm(q).budget_timeout = end;
        self.last_budget_start = self.ns;
    }

    /// The cost of a slot that ended at `end`: its full budget when its pace was too high, or when it was cut off with
    /// much of the budget left.
    ///
    /// The test of the pace was meant the other way round. A slot is charged in full when the queue would have been served
    /// *more* than 4/3 of its budget within the time of a slot.
    pub(super) fn v7_settle(&mut self, q: QueueId, end: Nanos, reason: Reason) {
        let timed_out = reason == Reason::Timeout;
        let us = end.checked_sub(self.last_budget_start).map_or(0, |ns| ns / 1000);
        let rate = self.v7_rate(q, us, timed_out);
        let seeky = self.seeky(q);
        self.v7_judge_seeky(q, timed_out, seeky);
        let e = self.q(q).entity;
        let budget = self.engine.budget(e);
        let paced = budget > self.max_budget / JUDGED_SHARE
            && rate.is_some_and(|rate| {
                let us = self.c.jiffies_to_ms(self.c.timeout[1]).unsigned_abs() * 1000;
                (rate * us) >> 16 > 4 * budget / 3
            });
        let left = self.engine.left(e);
        if paced || (timed_out && left >= budget / 3) {
            self.serve(q, left);
        }
    }

    /// A queue that is seeky when its time is up counts as constantly seeky until a slot ends in which it is not.
    fn v7_judge_seeky(&mut self, q: QueueId, timed_out: bool, seeky: bool) {
        let was = self.q(q).constantly_seeky;
        let is = seeky && (was || timed_out);
        if was == is {
            return;
        }
        self.qm(q).constantly_seeky = is;
        if self.hw.queueing() {
            self.seeky_queues =
                if is { self.seeky_queues + 1 } else { self.seeky_queues.saturating_sub(1) };
        }
    }

    /// The queue has pending requests now, or none any more. The count of constantly seeky ones is kept only while the
    /// device counts as one that queues. So a queue may be counted out that was not counted in; the kernel stops with a
    /// BUG where that happens first.
    pub(super) fn v7_count_seeky(&mut self, q: QueueId, pending: bool) {
        let seeky = self.q(q).constantly_seeky && self.hw.queueing();
        if pending {
            self.pending_queues += 1;
            self.seeky_queues += u32::from(seeky);
        } else {
            self.pending_queues -= 1;
            self.seeky_queues = self.seeky_queues.saturating_sub(u32::from(seeky));
        }
    }

    /// A raised queue starts to wait again: a soft real-time raise ends unless the queue still plays, and is renewed when
    /// less than its length is left.
    pub(super) fn v7_refresh_raise(&mut self, q: QueueId, signs: Signs) {
        let r = self.q(q).raise;
        let ends = r.last_start_finish + r.duration;
        if signs.interactive {
            self.raise_interactive(q);
            self.qm(q).raise.last_start_finish = self.j;
        } else if r.soft_rt && !signs.soft_rt {
            self.end_raise(q);
        } else if signs.soft_rt && ends < self.j + self.c.wr_rt_max_time {
            self.raise_soft(q);
            self.qm(q).raise.last_start_finish = self.j;
        }
    }

    /// How long a raise is to last that a merge ends: in v7 the time that is left.
    pub(super) fn v7_time_left(&self, r: &Raise) -> Jiffies {
        if self.v.index != V7 || r.coeff == 1 {
            return r.duration;
        }
        r.last_start_finish + r.duration - self.j
    }

    /// A process sends a request: its think time is looked at every time.
    pub(super) fn v7_note_think_time(&mut self, r: &Request) {
        let (j, cap) = (self.j.unsigned_abs(), 2 * self.c.slice_idle_jiffies().unsigned_abs());
        self.process(r.task).think.arrival(j, cap);
    }

    /// How long ago the last request of a process ended.
    pub(super) fn v7_since_end(&mut self, r: &Request) -> Option<Nanos> {
        let (j, jiffy) = (self.j.unsigned_abs(), self.c.jiffy());
        j.checked_sub(self.process(r.task).think.last_end).map(|n| n * jiffy)
    }

    /// Mean think time of a queue's process, when it is known.
    pub(super) fn mean_think(&self, q: QueueId) -> Option<Nanos> {
        let queue = self.q(q);
        let (avg, unit) = if self.v.index == V7 {
            (self.processes.get(queue.named as usize)?.think.avg, self.c.jiffy())
        } else {
            (queue.think.avg, 1)
        };
        avg.valid().then_some(avg.mean * unit)
    }
}
