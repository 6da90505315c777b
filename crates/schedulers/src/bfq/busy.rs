//! Queues that start and stop to compete for service.

use iosched_types::{Nanos, Request};

use super::Bfq;
use super::expire::Reason;
use super::queue::QueueId;
use super::raise::Signs;
use super::rbtree::NIL;
use super::version::{CURRENT, V7};
use crate::api::Ctx;

impl Bfq {
    /// An idle queue got a request. Decides how much budget the queue starts with, whether it is raised, and whether it
    /// takes the place of the queue in service. Returns whether it counts as interactive.
    pub(super) fn become_busy(&mut self, ctx: &mut Ctx<'_>, q: QueueId, r: &Request) -> bool {
        let since = if self.v.index == V7 {
            self.v7_since_end(r)
        } else {
            self.now.checked_sub(self.last_end(q))
        };
        let in_time = since.is_some_and(|s| s < 3 * self.c.slice_idle);
        // The last generation before mainline asks for one idle time, not three.
        let prompt =
            if self.v.legacy { since.is_some_and(|s| s < self.c.slice_idle) } else { in_time };
        self.count_in_time(q, prompt);
        if self.outlived_burst(q) {
            self.leave_burst(q);
        }
        let signs = self.signs(q, r);
        let resumed = self.start_budget(r, q, in_time);
        if self.c.low_latency && self.j > self.q(q).split_time + self.c.wr_min_idle {
            self.raise_on_arrival(ctx, q, signs);
        }
        let j = self.j;
        let queue = self.qm(q);
        queue.service_from_backlogged = 0;
        queue.last_idle_bklogged = j;
        queue.non_blocking = false;
        self.apply_raise(q);
        self.enter_busy(q, resumed && self.v.index != V7);
        self.maybe_preempt(ctx, q, resumed, signs);
        signs.interactive
    }

    /// When the last request of a queue's process ended. Since 5.0 a new queue counts as if one had ended when it was made.
    fn last_end(&self, q: QueueId) -> Nanos {
        let queue = self.q(q);
        match queue.think.last_end {
            u64::MAX if self.v.modern => queue.io_start,
            ended => ended,
        }
    }

    /// Budget of the next slot: the rest of the last one when the queue returns in time, a fresh one otherwise.
    fn start_budget(&mut self, r: &Request, q: QueueId, in_time: bool) -> bool {
        let queue = self.q(q);
        let (e, left) = (queue.entity, self.engine.left(queue.entity));
        let resumed = self.v.resumes && queue.non_blocking && in_time && (left > 0 || self.v.index != CURRENT);
        let budget = if resumed {
            left.min(queue.max_budget)
        } else {
            queue.max_budget.max(self.charge_of(r, q))
        };
        self.engine.set_budget(e, budget);
        self.engine.set_service(e, 0);
        resumed
    }

    fn enter_busy(&mut self, q: QueueId, in_time: bool) {
        let queue = self.qm(q);
        queue.busy = true;
        let (e, class, raised) = (queue.entity, usize::from(queue.class), queue.raised());
        self.busy[class] += 1;
        self.wr_busy += u32::from(raised);
        self.set_pending(q);
        self.reweigh(q);
        self.engine.activate(e, in_time);
    }

    /// A queue that is not in service emptied.
    pub(super) fn leave_busy(&mut self, q: QueueId) {
        self.uncount_busy(q);
        let e = self.q(q).entity;
        self.engine.deactivate(e);
    }

    /// Takes a queue off all lists of busy ones, but not out of the engine.
    pub(super) fn uncount_busy(&mut self, q: QueueId) {
        let queue = self.qm(q);
        queue.busy = false;
        let (class, raised) = (usize::from(queue.class), queue.raised());
        self.busy[class] -= 1;
        self.wr_busy -= u32::from(raised);
        self.set_pending(q);
        self.reweigh(q);
    }

    /// Counts the queue among those of its group with requests queued or in flight.
    pub(super) fn set_pending(&mut self, q: QueueId) {
        let queue = self.qm(q);
        let pending = queue.busy || queue.dispatched > 0;
        if pending == queue.pending {
            return;
        }
        queue.pending = pending;
        let g = queue.group;
        self.v7_count_seeky(q, pending);
        let group = self.group(g);
        if pending {
            group.pending += 1;
            self.pending_groups += u32::from(self.group(g).pending == 1);
        } else {
            group.pending -= 1;
            self.pending_groups -= u32::from(self.group(g).pending == 0);
        }
    }

    /// Counts the queue among those of its weight, if it has requests pending and is not raised.
    pub(super) fn reweigh(&mut self, q: QueueId) {
        let queue = self.qm(q);
        let wanted = if (queue.busy || queue.dispatched > 0) && !queue.raised() {
            u64::from(queue.weighs_as.min(7)) + 1
        } else {
            0
        };
        let had = std::mem::replace(&mut queue.weighed, wanted);
        if had > 0 {
            self.levels[had as usize - 1] -= 1;
        }
        if wanted > 0 {
            self.levels[wanted as usize - 1] += 1;
        }
    }

    /// Whether no guarantee needs the device to be kept idle: one weight (or this queue has the least), one
    /// class, one group.
    pub(super) fn symmetric(&self, q: QueueId) -> bool {
        let weights = self.levels.iter().filter(|n| **n > 0).count();
        let lightest = self.levels.iter().rposition(|n| *n > 0).map_or(0, |l| l as u64 + 1);
        let one_weight = weights <= 1 || (self.v.modern && self.q(q).weighed == lightest);
        let one_class = self.busy.iter().filter(|n| **n > 0).count() <= 1;
        one_weight && (one_class || self.v.index == V7) && self.pending_groups <= 1
    }

    /// A newcomer may take the place of the queue in service.
    fn maybe_preempt(&mut self, ctx: &mut Ctx<'_>, q: QueueId, resumed: bool, signs: Signs) {
        let old = self.in_service;
        if old == NIL || self.v.index == V7 || !self.engine.may_preempt() {
            return;
        }
        let (new_coeff, old_coeff) = (self.q(q).raise.coeff, self.q(old).raise.coeff);
        let why = if self.v.modern {
            if resumed && new_coeff >= old_coeff {
                "it came back in time"
            } else if self.engine.outranks(self.q(q).entity, self.q(old).entity) {
                "class or weight"
            } else if !self.better_to_idle(old) {
                "the other is not worth idling for"
            } else {
                return;
            }
        } else if (resumed || signs.deserves) && new_coeff > old_coeff {
            "it weighs more"
        } else {
            return;
        };
        ctx.why(|_, facts| {
            let cause = if new_coeff > old_coeff {
                format!("coefficient {new_coeff} > {old_coeff}")
            } else {
                why.into()
            };
            format!("{} preempted by {}: {cause}", self.who(old, facts), self.who(q, facts))
        });
        self.expire(ctx, old, false, Reason::Preempted);
    }
}
