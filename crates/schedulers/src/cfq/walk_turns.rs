//! Turns in the CFQ of 2.6.18: how one begins and ends, completions, idling.

use iosched_types::{Nanos, ReqId};

use crate::api::Ctx;

use super::explain::{Cause, queue_name};
use super::params::Tick;
use super::walk::{SEEKY, Walk};
use super::{Class, NOQ, Qi};

/// How long CFQ waits for a seeky process.
const SEEKY_IDLE_MS: i64 = 2;

impl Walk {
    pub(super) fn activate(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick) {
        self.n.slices += 1;
        self.lists.remove(&mut self.queues, qi);
        self.active = qi;
        self.active_task = None;
        let q = self.q(qi);
        (q.slice_start, q.slice_end, q.dispatch_slice) = (now, 0, 0);
        (q.must_alloc_slice, q.fifo_expired, q.wait_request) = (false, false, false);
        self.set_timers(ctx, self.idle_timer, None);
        if ctx.out.why.is_some() {
            let name = self.name_in(ctx, qi);
            ctx.why(|_, _| format!("{name} is next"));
        }
    }

    pub(super) fn name_in(&self, ctx: &Ctx<'_>, qi: Qi) -> String {
        let q = &self.queues[qi as usize];
        queue_name(ctx.queue.pid(q.owner), q.sync, q.class, q.level, false)
    }

    /// Takes the disk from the active queue.
    pub(super) fn expire(&mut self, ctx: &mut Ctx<'_>, now: Tick, cause: Cause, preempted: bool) {
        let qi = self.active;
        self.n.expired[cause as usize] += 1;
        if ctx.out.why.is_some() {
            let text = self.cause_text(qi, now, cause);
            let name = self.name_in(ctx, qi);
            ctx.why(|_, _| format!("{text} ({name})"));
        }
        let waited = std::mem::take(&mut self.q(qi).wait_request);
        if waited {
            self.set_timers(ctx, None, self.grace_timer);
        }
        let q = self.q(qi);
        if preempted {
            q.slice_left = if q.slice_end == 0 { 0 } else { q.slice_end - now };
        } else if q.dispatched == 0 {
            q.service_last = now as u64;
        }
        q.must_dispatch = false;
        let waits = !q.is_empty();
        self.active = NOQ;
        self.active_task = None;
        if waits {
            self.lists.place(&mut self.queues, qi);
        }
        self.free_if_unused(qi);
    }

    fn cause_text(&self, qi: Qi, now: Tick, cause: Cause) -> String {
        let q = &self.queues[qi as usize];
        let show = |t: Tick| self.p.clock.show(t);
        match cause {
            Cause::SliceUsed if q.slice_end == 0 => "slice expired before it had a length".into(),
            Cause::SliceUsed => {
                let (used, slice) = (now - q.slice_start, q.slice_end - q.slice_start);
                format!("slice expired: {} > {}", show(used), show(slice))
            }
            Cause::AsyncLimit => {
                let max = self.p.max_async(q.level);
                format!("async slice: {} of {max} dispatched", q.dispatch_slice)
            }
            Cause::Preempted => "slice cut short by preemption".into(),
            Cause::IdleTimer => "nothing came while idling".into(),
            Cause::IdleClass => "idle class: one request at a time".into(),
            Cause::Exit => "its process exited".into(),
            _ if !q.idle_window => "not worth idling for".into(),
            _ => "ran dry".into(),
        }
    }

    pub(super) fn complete(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let now = self.now(ctx);
        let qi = self.queue_of(ctx, req);
        let task = ctx.reqs[req].task;
        self.rq_in_driver = self.rq_in_driver.saturating_sub(1);
        let q = self.q(qi);
        q.dispatched -= 1;
        let (sync, class, done) = (q.sync, q.class, q.dispatched == 0);
        if class != Class::Idle {
            self.last_end = Some(now);
        }
        if done && !self.queues[qi as usize].is_empty() {
            self.q(qi).service_last = now as u64;
            if qi != self.active {
                self.lists.place(&mut self.queues, qi);
            }
        }
        if sync {
            self.task_mut(task, now).think.ended(now as u64);
        }
        if qi != self.active {
            return;
        }
        let q = &self.queues[qi as usize];
        // A queue that has the disk and was not served yet has no end of its slice: 0 is past.
        if now > q.slice_end {
            self.expire(ctx, now, Cause::SliceUsed, false);
            ctx.out.run_queue = true;
        } else if sync && q.is_empty() && !self.arm(ctx, qi, now) {
            ctx.out.run_queue = true;
        }
    }

    /// Waits for the active process's next read, if that makes sense. Whether other requests of it are
    /// still in flight does not matter: each completion arms the timer anew.
    pub(super) fn arm(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick) -> bool {
        let Some(task) = self.active_task else { return false };
        let t = self.tasks[task as usize];
        if self.p.slice_idle == 0 || !self.queues[qi as usize].idle_window || t.exited {
            return false;
        }
        let seeky = t.seek.avg.trusted_above(SEEKY);
        let short = self.p.clock.ms(SEEKY_IDLE_MS).max(1);
        let span = if seeky { short } else { self.p.slice_idle };
        let q = self.q(qi);
        (q.must_dispatch, q.wait_request) = (true, true);
        let at = self.p.clock.nanos(now + span);
        if self.idle_timer == Some(at) {
            return true;
        }
        self.set_timers(ctx, Some(at), self.grace_timer);
        self.n.idles += 1;
        let clock = self.p.clock;
        ctx.why(|_, f| {
            let think = if t.think.avg.valid() {
                clock.show(t.think.avg.mean as Tick)
            } else {
                "unknown".into()
            };
            let why = if seeky { ", seeky" } else { "" };
            format!("idle {} for pid {}: think time {think}{why}", clock.show(span), f.pid(task))
        });
        true
    }

    /// Sets the two timers. The block layer has one timer, which gets the earlier time.
    pub(super) fn set_timers(
        &mut self,
        ctx: &mut Ctx<'_>,
        idle: Option<Nanos>,
        grace: Option<Nanos>,
    ) {
        if (self.idle_timer, self.grace_timer) == (idle, grace) {
            return;
        }
        (self.idle_timer, self.grace_timer) = (idle, grace);
        match idle.into_iter().chain(grace).min() {
            Some(at) => ctx.arm_timer(at),
            None => ctx.cancel_timer(),
        }
    }

    pub(super) fn idle_timer_fired(&mut self, ctx: &mut Ctx<'_>) {
        let now = self.now(ctx);
        if self.active != NOQ {
            let q = &self.queues[self.active as usize];
            if q.slice_over(now) {
                self.expire(ctx, now, Cause::SliceUsed, false);
            } else if self.busy_queues == 0 {
                return;
            } else if !q.is_empty() {
                let qi = self.active;
                self.q(qi).must_dispatch = true;
            } else {
                self.expire(ctx, now, Cause::IdleTimer, false);
            }
        }
        ctx.out.run_queue = true;
    }
}
