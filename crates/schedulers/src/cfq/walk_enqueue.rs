//! Requests coming into the CFQ of 2.6.18 and leaving their queue.

use iosched_types::{NO_REQ, Nanos, ReqId, Sector, TaskId};

use crate::api::{Ctx, Position};

use super::core::{SENT, some};
use super::explain::Cause;
use super::params::Tick;
use super::walk::{SEEKY, Walk};
use super::{Class, NOQ, Qi, effective_prio};

impl Walk {
    /// Takes a waiting request in.
    pub(super) fn enqueue(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        let now = self.now(ctx);
        let qi = self.queue_of(ctx, req);
        let r = &ctx.reqs[req];
        let (sector, started) = (r.sector, self.p.clock.tick(r.t_start));
        let prio = effective_prio(r.prio, r.task, ctx.queue);
        let sync = self.queues[qi as usize].sync;
        ctx.reqs[req].fifo_time = (started + self.p.fifo_expire[usize::from(sync)]) as Nanos;
        // The tree takes each start once: the older request with the same start leaves at once.
        if let Some(older) = self.queues[qi as usize].sorted.find(sector) {
            let was_next = self.queues[qi as usize].next == older;
            self.take_out(ctx, qi, older, was_next);
            self.account_dispatch(ctx, qi, older);
            ctx.reqs[older].elv[1] = SENT;
            ctx.out.ejected.push(older);
        }
        let q = &mut self.queues[qi as usize];
        if q.sync {
            (q.class, q.level) = prio;
        }
        match at {
            Position::Sort => q.fifo.push_back(ctx.reqs, req),
            Position::Head => q.fifo.push_front(ctx.reqs, req),
        }
        let was_empty = q.sorted.is_empty();
        q.sorted.insert(sector, req);
        q.next = self
            .p
            .seek
            .choose_by_position(ctx.reqs, some(q.next), Some(req), self.last_sector)
            .unwrap_or(NO_REQ);
        self.waiting += 1;
        if was_empty {
            self.busy_queues += 1;
            if qi != self.active {
                self.lists.place(&mut self.queues, qi);
            }
        }
        self.react(ctx, qi, req, now);
    }

    fn react(&mut self, ctx: &mut Ctx<'_>, qi: Qi, req: ReqId, now: Tick) {
        let (task, start, end) = (ctx.reqs[req].task, ctx.reqs[req].sector, ctx.reqs[req].end());
        let waited_for = self.active != NOQ && self.queues[self.active as usize].wait_request;
        if !self.queues[qi as usize].sync {
            if waited_for && self.active_task == Some(task) {
                // The process went on to write, so its next read is not coming soon.
                self.expire(ctx, now, Cause::Dry, false);
                ctx.out.run_queue = true;
            }
            return;
        }
        self.observe(qi, task, (start, end), now);
        if qi == self.active {
            if waited_for {
                let q = self.q(qi);
                (q.must_dispatch, q.wait_request) = (true, false);
                self.set_timers(ctx, None, self.grace_timer);
                ctx.out.run_queue = true;
                ctx.why(|_, f| format!("idling ended: request of pid {}", f.pid(task)));
            }
            return;
        }
        let newcomer = self.queues[qi as usize].class;
        if self.active != NOQ
            && self.queues[self.active as usize].class == Class::Idle
            && newcomer != Class::Idle
        {
            self.preempt(ctx, qi, now);
            ctx.out.run_queue = true;
        }
    }

    /// Think time, seek distance, and whether the process is worth idling for.
    fn observe(&mut self, qi: Qi, task: TaskId, (start, end): (Sector, Sector), now: Tick) {
        let (slice_idle, hw_tag) = (self.p.slice_idle, self.hw_tag);
        let t = self.task_mut(task, now);
        t.think.arrival(now as u64, 2 * slice_idle as u64);
        t.seek.arrival(start, end);
        let t = *t;
        let q = self.q(qi);
        if t.exited || slice_idle == 0 || (hw_tag && t.seek.avg.mean > SEEKY) {
            q.idle_window = false;
        } else if t.think.avg.valid() {
            q.idle_window = t.think.avg.mean <= slice_idle as u64;
        }
    }

    /// An idle-class queue gives way at once, and the round starts anew behind the newcomer.
    fn preempt(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick) {
        if ctx.out.why.is_some() {
            let by = ctx.queue.pid(self.queues[qi as usize].owner);
            ctx.why(|_, _| format!("preempted by pid {by}: over idle class"));
        }
        self.lists.dissolve_round(&mut self.queues);
        self.expire(ctx, now, Cause::Preempted, true);
        self.activate(ctx, qi, now);
        self.q(qi).must_dispatch = true;
    }

    /// Takes a waiting request out of its queue; `anew` finds the next best from its place.
    pub(super) fn take_out(&mut self, ctx: &mut Ctx<'_>, qi: Qi, req: ReqId, anew: bool) {
        let (rule, last) = (self.p.seek, self.last_sector);
        let q = &mut self.queues[qi as usize];
        let sector = ctx.reqs[req].sector;
        if anew {
            let around = q.sorted.remove_and_neighbours(sector, req);
            let (before, after) = around.unwrap_or_default();
            let after = after.or_else(|| q.sorted.first());
            let best = rule.choose_by_position(ctx.reqs, after, before, last);
            q.next = best.unwrap_or(NO_REQ);
        } else {
            q.sorted.remove(sector, req);
        }
        q.fifo.remove(ctx.reqs, req);
        self.waiting -= 1;
        if self.queues[qi as usize].is_empty() {
            self.busy_queues -= 1;
            self.lists.remove(&mut self.queues, qi);
        }
    }
}
