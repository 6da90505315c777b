//! How a slot ends, what it costs, and what budget the queue gets next time.

use iosched_types::units::MS;
use iosched_types::{NO_REQ, Nanos};

use super::Bfq;
use super::queue::QueueId;
use super::rbtree::NIL;
use super::version::{CURRENT, V4_12, V7};
use crate::api::Ctx;

/// A slot shorter than this is too short to measure.
const TOO_SHORT: Nanos = MS;
/// A slot longer than this that used little of the budget is slow.
const LONG_SLOT: Nanos = 20 * MS;
/// What a too short slot counts as on flash.
const FLASH_MIN: Nanos = 2 * MS;

/// Why a slot ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    TooIdle,
    Timeout,
    Exhausted,
    NoMore,
    Preempted,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Reason::TooIdle => "TOO_IDLE",
            Reason::Timeout => "BUDGET_TIMEOUT",
            Reason::Exhausted => "BUDGET_EXHAUSTED",
            Reason::NoMore => "NO_MORE_REQUESTS",
            Reason::Preempted => "PREEMPTED",
        }
    }
}

impl Bfq {
    /// Ends the slot of the queue in service. `compensate`: the device idled for the queue, and that time is not the
    /// queue's fault.
    pub(super) fn expire(
        &mut self,
        ctx: &mut Ctx<'_>,
        q: QueueId,
        compensate: bool,
        reason: Reason,
    ) {
        let end = if compensate { self.last_idling_start } else { self.ns };
        let slot = end.saturating_sub(self.last_budget_start);
        let before = self.q(q).max_budget;
        if self.q(q).wait_request {
            self.stop_waiting(ctx, q);
        }
        // A request that outlives its slot, or has not gone out in it, says nothing about injection.
        (self.waited, self.wait_dispatch, self.injected) = (NO_REQ, false, false);
        if self.v.index == V7 {
            self.v7_settle(q, end, reason);
        } else {
            self.settle(q, slot, reason);
        }
        if !self.v.modern {
            self.judge_io_bound(q, reason);
        }
        if self.c.low_latency && !self.q(q).raised() {
            self.qm(q).raise.last_start_finish = self.j;
        }
        self.plan_soft_rt(q);
        self.next_budget(ctx, q, reason);
        self.note_expiry(ctx, q, slot, before, reason);
        self.end_slot(q, reason);
    }

    fn note_expiry(
        &mut self,
        ctx: &mut Ctx<'_>,
        q: QueueId,
        slot: Nanos,
        before: u64,
        reason: Reason,
    ) {
        match reason {
            Reason::TooIdle => self.counts.too_idle += 1,
            Reason::Timeout => self.counts.timeouts += 1,
            Reason::Exhausted => self.counts.exhausted += 1,
            Reason::NoMore => self.counts.no_more += 1,
            Reason::Preempted => self.counts.preempted += 1,
        }
        ctx.why(|_, facts| {
            let (who, after) = (self.who(q, facts), self.q(q).max_budget);
            let span = super::ms(slot);
            format!(
                "slice of {who} expired {} after {span}, budget {before} → {after}",
                reason.name()
            )
        });
    }

    /// The cost of the slot: at least the sectors read, but its time when it was slow or cut off early.
    fn settle(&mut self, q: QueueId, slot: Nanos, reason: Reason) {
        let queue = self.q(q);
        let (e, sync, raised) = (queue.entity, queue.sync, queue.raised());
        let served = self.engine.service(e);
        let (slow, length) = self.is_slow(q, slot, served);
        let early = reason == Reason::Timeout && self.engine.left(e) >= self.engine.budget(e) / 3;
        if raised || !((sync && slow) || early) {
            return;
        }
        let limit = self.c.jiffies_to_ms(self.c.timeout[1]).unsigned_abs().max(1);
        let span = length / MS;
        if self.v.index == V4_12 && span >= limit {
            // The first mainline release compares the wrong way round and charges such slots nothing extra.
            return;
        }
        let by_time = self.max_budget * span.min(limit) / limit;
        let total = by_time.max(served);
        if total > self.engine.budget(e) {
            self.engine.set_budget(e, total);
        }
        if total > served {
            self.serve(q, total - served);
        }
    }

    fn is_slow(&self, q: QueueId, slot: Nanos, served: u64) -> (bool, Nanos) {
        if slot < TOO_SHORT {
            let counted = if self.rotational { self.c.slice_idle } else { FLASH_MIN };
            (self.seeky(q), counted)
        } else if slot > LONG_SLOT {
            (served < self.max_budget / 2, slot)
        } else {
            (self.seeky(q), slot)
        }
    }

    /// Charges service to a queue.
    pub(super) fn serve(&mut self, q: QueueId, sectors: u64) {
        self.note_first_service(q);
        let queue = self.qm(q);
        queue.service_from_backlogged += sectors;
        if queue.raised() {
            queue.raise.service += sectors;
        }
        let e = queue.entity;
        self.engine.charge(e, sectors);
    }

    fn judge_io_bound(&mut self, q: QueueId, reason: Reason) {
        let e = self.q(q).entity;
        if reason == Reason::TooIdle && 5 * self.engine.service(e) <= self.engine.budget(e) {
            self.qm(q).io_bound = false;
            self.qm(q).within_timer = 0;
        }
    }

    /// Budget feedback.
    fn next_budget(&mut self, ctx: &Ctx<'_>, q: QueueId, reason: Reason) {
        let (most, least) = (self.max_budget(), self.min_budget());
        let queue = self.q(q);
        let b = queue.max_budget;
        let budget = if !queue.sync {
            most
        } else if queue.raised() && self.v.raised_least_budgets {
            2 * least
        } else {
            match reason {
                Reason::TooIdle if queue.dispatched > 0 => (2 * b).min(most),
                Reason::TooIdle if b > 5 * least => b - 4 * least,
                Reason::TooIdle => least,
                Reason::Timeout if self.v.index == V7 => (2 * b).min(self.max_budget),
                Reason::Timeout => (2 * b).min(most),
                Reason::Exhausted => (4 * b).min(most),
                Reason::NoMore if self.v.index == V7 => b,
                Reason::NoMore => self.engine.service(queue.entity).max(least),
                Reason::Preempted => b,
            }
        };
        let budget = if self.v.index == V7 {
            budget.min(self.max_budget)
        } else if reason == Reason::Preempted && queue.sync && !queue.raised() {
            budget
        } else {
            budget.clamp(least, most.max(least))
        };
        let (e, next) = (queue.entity, queue.next_rq);
        self.qm(q).max_budget = budget;
        if next != NO_REQ {
            let charge = self.charge_of(&ctx.reqs[next], q);
            self.engine.set_budget(e, budget.max(charge));
        }
    }

    pub(super) fn end_slot(&mut self, q: QueueId, reason: Reason) {
        self.mark_for_split(q);
        self.in_service = NIL;
        let queue = self.q(q);
        let (e, empty) = (queue.entity, queue.empty());
        let keep = reason == Reason::Preempted && self.v.index == CURRENT && self.idling_needed(q);
        if empty && !keep {
            if queue.dispatched == 0 || self.v.index == V7 {
                self.qm(q).budget_timeout = self.j;
            }
            self.uncount_busy(q);
            self.engine.expire(e, false);
        } else {
            self.engine.expire(e, true);
        }
        let resumable = !matches!(reason, Reason::Timeout | Reason::Exhausted);
        if !self.q(q).busy && resumable {
            self.qm(q).non_blocking = true;
        } else {
            self.engine.set_service(e, 0);
        }
        self.free_if_dead(q);
    }
}

#[cfg(test)]
mod tests;
