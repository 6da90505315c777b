//! Which request goes next.

use iosched_types::{NO_REQ, Nanos, ReqId};

use super::expire::Reason;
use super::queue::QueueId;
use super::rbtree::NIL;
use super::version::V7;
use super::{AT_HEAD, Bfq, STARTED};
use crate::api::{Ctx, Dispatch, Idling};

impl Bfq {
    /// One dispatch call.
    pub(super) fn dispatch_one(&mut self, ctx: &mut Ctx<'_>) -> Dispatch {
        if let Some(id) = self.head.pop_front(ctx.reqs) {
            ctx.why(|_, _| "at the head: requeued".into());
            self.start(ctx, id, AT_HEAD);
            return Dispatch::Request(id);
        }
        if !self.may_have_work() || (self.c.strict && self.in_driver > 0) {
            return self.nothing();
        }
        let chosen = if self.v.index == V7 { self.v7_select(ctx) } else { self.select(ctx) };
        match chosen {
            Some((q, id)) => {
                self.send(ctx, q, id);
                Dispatch::Request(id)
            }
            None => self.nothing(),
        }
    }

    /// No request now, because the device is kept idle for a queue, or because there is no work.
    fn nothing(&self) -> Dispatch {
        let q = self.in_service;
        match self.timer_at {
            Some(until) if self.queued > 0 && q != NIL && self.q(q).wait_request => {
                Dispatch::Idle(Idling { until, for_task: Some(self.q(q).named) })
            }
            _ => Dispatch::Empty,
        }
    }

    /// The queue to serve, and its request.
    fn select(&mut self, ctx: &mut Ctx<'_>) -> Option<(QueueId, ReqId)> {
        let q = self.in_service;
        if q != NIL {
            if self.may_expire_for_timeout(q) && !self.held(q) {
                self.expire(ctx, q, false, Reason::Timeout);
            } else if let Some(chosen) = self.stay(ctx, q) {
                return chosen;
            }
        }
        loop {
            let q = self.next_queue(ctx)?;
            if let Some(chosen) = self.stay(ctx, q) {
                return chosen;
            }
        }
    }

    /// The device idles for the queue in service, so the queue's time is not up yet.
    fn held(&self, q: QueueId) -> bool {
        self.must_idle(q) || (!self.v.modern && self.q(q).wait_request)
    }

    /// The answer of the queue in service: a request, nothing for now (`Some(None)`), or the end of its slot.
    fn stay(&mut self, ctx: &mut Ctx<'_>, q: QueueId) -> Option<Option<(QueueId, ReqId)>> {
        let queue = self.q(q);
        if queue.next_rq != NO_REQ {
            if self.charge_of(&ctx.reqs[queue.next_rq], q) > self.engine.left(queue.entity) {
                self.expire(ctx, q, false, Reason::Exhausted);
                return None;
            }
            if queue.wait_request {
                self.stop_waiting(ctx, q);
            }
            return Some(Some((q, self.pick(ctx, q))));
        }
        let waiting = queue.wait_request || (queue.dispatched > 0 && self.better_to_idle(q));
        if !waiting {
            self.expire(ctx, q, false, Reason::NoMore);
            return None;
        }
        let other = self.injectable(ctx, q);
        Some(other.map(|o| (o, self.pick(ctx, o))))
    }

    /// The request of a queue: its best, but in v7 once a slot its oldest, if that is overdue and
    /// affordable.
    pub(super) fn pick(&mut self, ctx: &mut Ctx<'_>, q: QueueId) -> ReqId {
        let best = self.q(q).next_rq;
        if !self.v.legacy || std::mem::replace(&mut self.qm(q).fifo_checked, true) {
            return best;
        }
        let Some(oldest) = self.q(q).fifo.head() else { return best };
        let r = &ctx.reqs[oldest];
        let affordable = self.charge_of(r, q) <= self.engine.left(self.q(q).entity);
        if oldest == best || self.now < r.fifo_time || !affordable {
            return best;
        }
        let late = self.now - r.fifo_time;
        ctx.why(|_, _| format!("oldest first: its deadline passed {} ago", super::ms(late)));
        oldest
    }

    /// Takes the next queue into service.
    pub(super) fn next_queue(&mut self, ctx: &mut Ctx<'_>) -> Option<QueueId> {
        let q = self.engine.take()?;
        self.in_service = q;
        // Nothing is close to what it has sent in its last slot.
        self.in_serv_last_pos = 0;
        self.counts.slices += 1;
        self.budgets_assigned = (self.budgets_assigned * 7 + 256) / 8;
        self.shift_soft_rt(q);
        let queue = self.q(q);
        let (sync, soft) = (usize::from(queue.sync), queue.raise.soft_rt);
        let stretch = self.engine.raised(queue.entity);
        // A soft real-time queue is served often, not long.
        let stretch = if soft { 1 } else { stretch.max(1) };
        let timeout = self.j.saturating_add(self.c.timeout[sync].saturating_mul(stretch as i64));
        let legacy = self.v.index == V7;
        let queue = self.qm(q);
        (queue.fifo_checked, queue.had_extra) = (false, false);
        // v7 starts the clock with the first completion.
        queue.budget_timeout = if legacy { super::queue::NEVER } else { timeout };
        self.last_budget_start = if legacy { Nanos::MAX } else { self.ns };
        let (budget, weight) =
            (self.engine.budget(self.q(q).entity), self.engine.weight(self.q(q).entity));
        ctx.why(|_, facts| {
            format!("serves {}: weight {weight}, budget {budget}", self.who(q, facts))
        });
        Some(q)
    }

    /// The time a soft real-time queue had to wait for its turn does not count against its raise.
    fn shift_soft_rt(&mut self, q: QueueId) {
        let j = self.j;
        let queue = self.qm(q);
        let since = queue.raise.last_start_finish.max(queue.budget_timeout);
        if queue.raised() && queue.raise.soft_rt && since < j {
            queue.raise.last_start_finish += j - since;
        }
    }

    /// Hands a request to the driver and charges it.
    pub(super) fn send(&mut self, ctx: &mut Ctx<'_>, q: QueueId, id: ReqId) {
        let cost = self.charge_of(&ctx.reqs[id], q);
        self.serve(q, cost);
        let in_service = q == self.in_service;
        if in_service && self.wait_dispatch {
            self.wait_dispatch = false;
            self.waited = id;
        }
        let r = ctx.reqs[id].clone();
        self.sample_rate(&r, in_service);
        self.qm(q).dispatched += 1;
        self.take_out(ctx, id);
        self.start(ctx, id, 0);
        if in_service {
            if self.q(q).raised() {
                self.check_raise_end(ctx, q);
            }
            if self.v.reweighs_at_dispatch {
                // A raise that starts or ends in service changes the cost of the rest of the slot. A raise that falls
                // back to another kind waits for the end of the slot.
                let e = self.q(q).entity;
                if (self.engine.raised(e) > 1) != self.q(q).raised() {
                    self.engine.apply_now(e);
                }
            }
            let queue = self.q(q);
            let lone = queue.class == 2 || (self.v.legacy && !queue.sync && self.c.max_async_rq <= 1);
            if lone && self.total_busy() > 1 {
                self.expire(ctx, q, false, Reason::Exhausted);
            }
        }
        ctx.why(|_, facts| {
            let left = self.engine.left(self.q(q).entity);
            format!("request of {}: {left} sectors of budget left", self.who(q, facts))
        });
        self.reap();
    }

    /// Counts a request as the driver's. A request from the head list was not counted for its queue yet.
    pub(super) fn start(&mut self, ctx: &mut Ctx<'_>, id: ReqId, from: u64) {
        let r = &mut ctx.reqs[id];
        r.elv[1] = (r.elv[1] & !from) | STARTED;
        self.in_driver += 1;
        if r.elv[0] == 0 {
            return;
        }
        self.sync_in_driver += u32::from(r.is_sync());
        let q = Self::queue_of(r);
        if from == AT_HEAD {
            self.qm(q).dispatched += 1;
            self.set_pending(q);
            self.reweigh(q);
        }
        if self.v.legacy {
            self.last_position = ctx.reqs[id].end();
        }
    }

    /// Empties the queues without regard to idling and budgets.
    pub(super) fn force(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        if let Some(id) = self.head.pop_front(ctx.reqs) {
            self.start(ctx, id, AT_HEAD);
            return Some(id);
        }
        while self.queued > 0 {
            let q = match self.in_service {
                NIL => self.next_queue(ctx)?,
                q => q,
            };
            let next = self.q(q).next_rq;
            if next == NO_REQ {
                self.expire(ctx, q, false, Reason::NoMore);
                continue;
            }
            if self.q(q).wait_request {
                self.stop_waiting(ctx, q);
            }
            if self.charge_of(&ctx.reqs[next], q) > self.engine.left(self.q(q).entity) {
                self.expire(ctx, q, false, Reason::Exhausted);
                continue;
            }
            self.send(ctx, q, next);
            return Some(next);
        }
        if self.may_have_work() {
            // Nothing is waited for either.
            self.expire(ctx, self.in_service, false, Reason::NoMore);
        }
        None
    }
}
