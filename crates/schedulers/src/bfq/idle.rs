//! When to keep the device idle for a queue that will come back, instead of serving another.

use iosched_types::Nanos;
use iosched_types::units::MS;

use super::Bfq;
use super::expire::Reason;
use super::queue::QueueId;
use super::rbtree::NIL;
use super::version::{CURRENT, V7};
use crate::api::Ctx;

/// The longest wait for a seeky queue.
const SHORT_IDLE: Nanos = 2 * MS;
/// The shortest wait for a raised queue (5.0 on).
const RAISED_IDLE: Nanos = 20 * MS;
/// v7: the wait for a raised queue is this many times as long.
const V7_RAISED: u64 = 3;
/// A raised queue is protected when others hold this many commands of the device.
const CROWD: u32 = 4;

impl Bfq {
    /// Idling keeps throughput up, and no raised queue loses from it.
    pub(super) fn boosts_without_issues(&self, q: QueueId) -> bool {
        let queue = self.q(q);
        let absent = self.hw_known_absent();
        let boosts = if self.v.modern {
            let streaming = !self.seeky(q) && queue.io_bound && queue.short_think;
            (self.rotational && absent) || ((self.rotational || absent) && streaming)
        } else {
            absent || (self.rotational && queue.io_bound && queue.short_think)
        };
        boosts && self.wr_busy == 0
    }

    /// Idling keeps a queue's share or its latency.
    pub(super) fn idling_needed(&self, q: QueueId) -> bool {
        let queue = self.q(q);
        if !self.v.modern {
            let large_burst = queue.burst == super::queue::Burst::Large;
            return !large_burst && (queue.raised() || !self.symmetric(q));
        }
        let busy = self.total_busy();
        let crowded = self.wr_busy < busy || self.in_driver >= queue.dispatched + CROWD;
        (queue.raised() && crowded) || !self.symmetric(q) || busy == 1
    }

    /// Whether idling is better than serving other queues when this queue empties.
    pub(super) fn better_to_idle(&self, q: QueueId) -> bool {
        let queue = self.q(q);
        if self.v.index == V7 {
            return self.v7_may_idle(q);
        }
        if self.v.modern && self.members(q) == 0 {
            return false;
        }
        if self.c.strict {
            return true;
        }
        if self.c.slice_idle == 0 || !queue.sync || queue.class == 2 {
            return false;
        }
        self.boosts_without_issues(q) || self.idling_needed(q)
    }

    pub(super) fn must_idle(&self, q: QueueId) -> bool {
        self.q(q).empty() && self.c.slice_idle > 0 && self.better_to_idle(q)
    }

    fn v7_may_idle(&self, q: QueueId) -> bool {
        let queue = self.q(q);
        if !queue.sync || queue.class == 2 || queue.processes == 0 || self.c.slice_idle == 0 {
            return false;
        }
        if queue.raised() {
            return true;
        }
        let all_seeky = queue.constantly_seeky && self.busy_all_constantly_seeky();
        let pointless = self.symmetric(q) && (!self.rotational || all_seeky);
        let wasteful = !self.hw_known_absent() && (self.wr_busy > 0 || pointless);
        queue.io_bound && queue.short_think && !wasteful
    }

    fn busy_all_constantly_seeky(&self) -> bool {
        let served = (self.in_service != NIL).then_some(self.in_service);
        self.engine.waiting().chain(served).all(|q| self.q(q).constantly_seeky)
    }

    pub(super) fn idle_time(&self, q: QueueId) -> Nanos {
        let (queue, full) = (self.q(q), self.c.slice_idle);
        match self.v.index {
            V7 => {
                let read_much = self.engine.service(queue.entity) > self.max_budget() / 8;
                let short = (self.seeky(q) && read_much) || queue.constantly_seeky;
                match (queue.raised(), short && self.symmetric(q)) {
                    (true, _) => full * V7_RAISED,
                    (false, true) => full.min(SHORT_IDLE.max(self.c.jiffy())),
                    (false, false) => full,
                }
            }
            _ if self.seeky(q) && !queue.raised() && self.symmetric(q) => full.min(SHORT_IDLE),
            CURRENT if queue.raised() => full.max(RAISED_IDLE),
            _ => full,
        }
    }

    /// Starts to wait for a request of the queue in service.
    pub(super) fn start_waiting(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        let length = self.idle_time(q);
        self.qm(q).wait_request = true;
        self.last_idling_start = self.now;
        self.timer_at = Some(ctx.now + length);
        self.counts.idles += 1;
        ctx.arm_timer(ctx.now + length);
        ctx.why(|_, facts| {
            let think = self.q(q).think.avg;
            let mean = if think.valid() { super::ms(think.mean) } else { "unknown".into() };
            format!("idle {} for {}: think time {mean}", super::ms(length), self.who(q, facts))
        });
    }

    /// The wait is over and no request came (or a small one that was held back).
    pub(super) fn idle_over(&mut self, ctx: &mut Ctx<'_>) {
        if self.timer_at.is_none_or(|at| ctx.now < at) {
            return;
        }
        self.timer_at = None;
        let q = self.in_service;
        if q == NIL || !self.q(q).wait_request {
            return;
        }
        self.qm(q).wait_request = false;
        if self.timed_out(q) {
            self.expire(ctx, q, true, Reason::Timeout);
        } else if self.q(q).empty() {
            self.expire(ctx, q, true, Reason::TooIdle);
        }
        ctx.out.run_queue = true;
        self.reap();
    }

    /// The queue in service has held the device for as long as it may.
    pub(super) fn timed_out(&self, q: QueueId) -> bool {
        self.j >= self.q(q).budget_timeout
    }

    /// The same, except for a queue that idles with much of its budget used: cutting it off would gain little.
    pub(super) fn may_expire_for_timeout(&self, q: QueueId) -> bool {
        let queue = self.q(q);
        let much_left = self.engine.left(queue.entity) >= self.engine.budget(queue.entity) / 3;
        self.timed_out(q) && (!queue.wait_request || much_left)
    }
}
