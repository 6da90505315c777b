//! The out-of-tree generation: its dispatch loop, and how a slot is charged.

use iosched_types::{NO_REQ, Nanos, ReqId};

use super::Bfq;
use super::expire::Reason;
use super::queue::{NEVER, QueueId};
use super::rbtree::NIL;
use crate::api::Ctx;

/// Requests of one queue in flight while others wait.
const QUANTUM: u32 = 4;
/// A queue alone may have this many times its limit.
const ALONE: u32 = 4;
/// A budget below this share of the largest is too small to tell slowness.
const JUDGED_SHARE: u64 = 8;

impl Bfq {
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
            _ => QUANTUM,
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
        let stretch = self.engine.raised(queue.entity);
        let timeout = self.c.timeout[usize::from(queue.sync)];
        let end = self.j.saturating_add(timeout.saturating_mul(stretch.max(1) as i64));
        self.qm(q).budget_timeout = end;
    }

    /// The cost of a slot: its full budget when the slot was slow, or cut off with much of the budget left.
    pub(super) fn v7_settle(&mut self, q: QueueId, slot: Nanos, reason: Reason) {
        let timed_out = reason == Reason::Timeout;
        let rate = self.v7_rate(q, slot, timed_out);
        let seeky = self.seeky(q);
        self.qm(q).constantly_seeky = match (timed_out, seeky) {
            (true, true) => true,
            (_, false) => false,
            _ => self.q(q).constantly_seeky,
        };
        let queue = self.q(q);
        let (e, sync, raised) = (queue.entity, queue.sync, queue.raised());
        let budget = self.engine.budget(e);
        let slow = budget > self.max_budget() / JUDGED_SHARE
            && rate.is_some_and(|rate| {
                let us =
                    self.c.jiffies_to_ms(self.c.timeout[usize::from(sync)]).unsigned_abs() * 1000;
                (rate * us) >> 16 < budget
            });
        let left = self.engine.left(e);
        if sync && !raised && (slow || (timed_out && left >= budget / 3)) {
            self.serve(q, left);
        }
    }
}
