//! Completions: the slice clock starts, think times are taken, the idle timer is armed; and what
//! happens when it fires.

use iosched_types::ReqId;

use crate::api::Ctx;

use super::core::Cfq;
use super::explain::Cause;
use super::params::Tick;
use super::{Class, NOQ, Qi};

/// Requests in flight from which a device counts as queueing.
const HW_QUEUE_MIN: u32 = 5;
/// Samples before the guess is made.
const HW_QUEUE_SAMPLES: u32 = 50;

impl Cfq {
    /// The device finished a request.
    pub(super) fn complete(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let now = self.now(ctx);
        let qi = self.queue_of(ctx, req);
        self.sample_hw_tag();
        let r = &ctx.reqs[req];
        let (sync, task, started) = (r.is_sync(), r.task, r.t_start);
        self.rq_in_driver = self.rq_in_driver.saturating_sub(1);
        self.in_flight[usize::from(sync)] -= 1;
        let q = self.q(qi);
        q.dispatched -= 1;
        let group = q.group;
        let tree = q.place.map_or_else(|| q.tree(), |p| p.tree);
        let g = &mut self.groups[group];
        g.dispatched -= 1;
        g.think.ended(now as u64);
        if sync {
            g.trees[tree].think.ended(now as u64);
            self.task_mut(task, now as u64).think.ended(now as u64);
            if self.p.clock.tick(started) + self.p.fifo_expire[1] <= now {
                self.last_delayed_sync = now;
            }
        }
        if qi == self.active {
            self.complete_active(ctx, qi, sync, now);
        }
        if self.rq_in_driver == 0 {
            ctx.out.run_queue = true;
        }
    }

    fn complete_active(&mut self, ctx: &mut Ctx<'_>, qi: Qi, sync: bool, now: Tick) {
        if self.queues[qi as usize].slice_new {
            let slice = self.scaled_slice(qi);
            let q = self.q(qi);
            (q.slice_start, q.slice_end, q.allocated_slice) = (now, now + slice, slice);
            q.slice_new = false;
        }
        if self.should_wait_busy(qi, now) {
            let extra = if self.p.slice_idle > 0 { self.p.slice_idle } else { self.p.group_idle };
            let q = self.q(qi);
            q.slice_end = now + extra;
            q.wait_busy = true;
        }
        let q = &self.queues[qi as usize];
        if q.slice_used(now) || q.class == Class::Idle {
            let cause = if q.slice_used(now) { Cause::SliceUsed } else { Cause::IdleClass };
            self.expire(ctx, now, cause, true);
        } else if sync && q.is_empty() && self.close_cooperator(ctx, qi).is_none() {
            self.arm(ctx, qi, now);
        }
    }

    /// The only queue of a group gets a last chance to keep the group on the disk.
    fn should_wait_busy(&self, qi: Qi, now: Tick) -> bool {
        let q = &self.queues[qi as usize];
        let g = &self.groups[q.group];
        if !q.is_empty() || g.nr > 1 || g.think.avg.trusted_above(self.p.group_idle as u64) {
            return false;
        }
        if q.slice_used(now) {
            return true;
        }
        let left = q.slice_end - now;
        let think = self.active_task.map(|t| self.tasks[t as usize].think.avg);
        think.is_some_and(|a| a.valid() && left < a.mean as Tick) || left <= self.p.clock.jiffy()
    }

    /// Arms the idle timer, if the queue (or its group) is worth it.
    fn arm(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick) {
        if self.fast_queueing(ctx) {
            return;
        }
        let q = &self.queues[qi as usize];
        let group_idle = self.p.group_idle;
        let for_queue = self.should_idle(ctx, qi);
        let span = if for_queue {
            self.p.slice_idle
        } else {
            let tree = q.place.map_or_else(|| q.tree(), |p| p.tree);
            let g = &self.groups[q.group];
            let slow = self.v.group_idle_checks_tree
                && g.trees[tree].think.avg.trusted_above(group_idle as u64);
            if group_idle == 0 || g.nr != 1 || slow {
                return;
            }
            group_idle
        };
        let Some(task) = self.active_task else { return };
        let record = self.tasks[task as usize];
        let left = q.slice_end - now;
        let thinks_too_long = record.think.avg.valid() && record.think.avg.mean as Tick > left;
        if q.dispatched > 0 || record.exited || thinks_too_long {
            return;
        }
        self.wait_for_request(ctx, now, span);
        if for_queue {
            self.n.idles += 1;
        } else {
            self.n.group_idles += 1;
        }
        let clock = self.p.clock;
        ctx.why(|_, queue| {
            let pid = queue.pid(task);
            let what = if for_queue { "idle" } else { "group idle" };
            let think = if record.think.avg.valid() {
                clock.show(record.think.avg.mean as Tick)
            } else {
                "unknown".into()
            };
            format!("{what} {} for pid {pid}: think time {think}", clock.show(span))
        });
    }

    /// The idle timer fired.
    pub(super) fn idle_timer(&mut self, ctx: &mut Ctx<'_>) {
        if self.timer_at.is_none_or(|at| ctx.now < at) {
            return;
        }
        self.timer_at = None;
        let now = self.now(ctx);
        if self.active != NOQ {
            let qi = self.active;
            let q = self.q(qi);
            if !q.must_dispatch {
                if q.slice_used(now) {
                    self.expire(ctx, now, Cause::SliceUsed, false);
                } else if self.busy_queues == 0 {
                    return;
                } else if self.queues[qi as usize].is_empty() {
                    self.q(qi).deep = false;
                    self.expire(ctx, now, Cause::IdleTimer, false);
                }
            }
        }
        ctx.out.run_queue = true;
    }

    /// Refines the guess whether the device queues commands; "yes" is final.
    fn sample_hw_tag(&mut self) {
        self.hw_tag.est_depth = self.hw_tag.est_depth.max(self.rq_in_driver);
        if self.hw_tag.value == 1 {
            return;
        }
        if self.rq_queued <= HW_QUEUE_MIN && self.rq_in_driver <= HW_QUEUE_MIN {
            return;
        }
        if self.active != NOQ {
            let q = &self.queues[self.active as usize];
            // An idling queue with few requests says nothing about the device.
            let few = q.dispatched + (q.sorted.len() as u32) < HW_QUEUE_MIN;
            if q.idle_window && few && self.rq_in_driver < HW_QUEUE_MIN {
                return;
            }
        }
        self.hw_tag.samples += 1;
        if self.hw_tag.samples >= HW_QUEUE_SAMPLES {
            self.hw_tag.value = i8::from(self.hw_tag.est_depth >= HW_QUEUE_MIN);
        }
    }
}
