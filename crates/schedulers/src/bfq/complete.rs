//! What BFQ learns from a completion.

use iosched_types::ReqId;

use super::expire::Reason;
use super::queue::QueueId;
use super::rbtree::NIL;
use super::version::V7;
use super::{Bfq, STARTED};
use crate::api::Ctx;

impl Bfq {
    /// The device finished a request, or gave it back.
    pub(super) fn complete(&mut self, ctx: &mut Ctx<'_>, id: ReqId) {
        if ctx.reqs[id].elv[1] & STARTED == 0 {
            return;
        }
        ctx.reqs[id].elv[1] &= !STARTED;
        if ctx.reqs[id].elv[0] == 0 {
            self.in_driver -= 1;
            return;
        }
        let q = Self::queue_of(&ctx.reqs[id]);
        if id == self.waited {
            self.learn_injection(ctx, q);
        }
        self.update_hw_tag();
        self.in_driver -= 1;
        if ctx.reqs[id].is_sync() {
            self.sync_in_driver -= 1;
            let task = ctx.reqs[id].task;
            let j = self.j.unsigned_abs();
            self.process(task).think.ended(j);
        }
        self.count_down(q);
        if !self.v.legacy {
            self.late_completion();
        }
        self.last_completion = Some(self.now);
        self.last_completed = if self.q(q).shared { NIL } else { q };
        self.finish_soft_rt(q);
        if q == self.in_service && self.look_after_slot(ctx, q) {
            return;
        }
        if self.in_driver == 0 {
            ctx.out.run_queue = true;
        }
    }

    fn count_down(&mut self, q: QueueId) {
        let (j, now) = (self.j, self.now);
        let queue = self.qm(q);
        queue.dispatched -= 1;
        queue.think.ended(now);
        if queue.dispatched == 0 && !queue.busy {
            queue.budget_timeout = j;
            self.set_pending(q);
            self.reweigh(q);
        }
    }

    fn finish_soft_rt(&mut self, q: QueueId) {
        let queue = self.q(q);
        if !queue.softrt_update || queue.dispatched > 0 || !queue.empty() {
            return;
        }
        if queue.raised() && !queue.raise.soft_rt {
            return;
        }
        self.qm(q).softrt_update = false;
        self.qm(q).soft_rt_next_start = self.next_soft_rt(q);
    }

    /// The queue in service got a completion: idle, or end its slot? Whether that settles the matter.
    fn look_after_slot(&mut self, ctx: &mut Ctx<'_>, q: QueueId) -> bool {
        if self.v.index == V7 {
            self.v7_first_completion(q);
        }
        let alone = self.q(q).dispatched == 0;
        if self.must_idle(q) {
            let waits = if self.v.index == V7 { self.v7_waits(q) } else { alone };
            if waits {
                self.start_waiting(ctx, q);
            }
            return true;
        }
        if self.may_expire_for_timeout(q) {
            self.expire(ctx, q, false, Reason::Timeout);
        } else if self.q(q).empty() && (alone || !self.better_to_idle(q)) {
            self.expire(ctx, q, false, Reason::NoMore);
        }
        false
    }
}
