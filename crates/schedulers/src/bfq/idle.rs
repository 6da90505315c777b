//! When to keep the device idle for a queue that will come back, instead of serving another.

use iosched_types::Nanos;
use iosched_types::units::MS;

use super::Bfq;
use super::expire::Reason;
use super::queue::{Jiffies, QueueId};
use super::rbtree::NIL;
use super::version::{CURRENT, V7};
use crate::api::Ctx;
use crate::jiffies;

/// The longest wait for a seeky queue.
const SHORT_IDLE: Nanos = SHORT_IDLE_MS as u64 * MS;
const SHORT_IDLE_MS: i64 = 2;
/// The shortest wait for a raised queue (5.0 on).
const RAISED_IDLE: Nanos = 20 * MS;
/// v7: the wait for a raised queue is this many times as long.
const V7_RAISED: Jiffies = 3;
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
        if !queue.sync || queue.processes == 0 {
            return false;
        }
        if queue.raised() {
            return true;
        }
        let all_seeky = queue.constantly_seeky && self.seeky_queues == self.pending_queues;
        let pointless = self.symmetric(q) && (!self.rotational || all_seeky);
        let wasteful = !self.hw_known_absent() && (self.wr_busy > 0 || pointless);
        queue.short_think && !wasteful
    }

    fn idle_time(&self, q: QueueId) -> Nanos {
        let (queue, full) = (self.q(q), self.c.slice_idle);
        if self.seeky(q) && !queue.raised() && self.symmetric(q) {
            full.min(SHORT_IDLE)
        } else if self.v.index == CURRENT && queue.raised() {
            full.max(RAISED_IDLE)
        } else {
            full
        }
    }

    /// v7: the end of the wait is a tick of the timer.
    pub(super) fn v7_idle_end(&self, q: QueueId) -> Nanos {
        let (queue, full) = (self.q(q), self.c.slice_idle_jiffies());
        let read_much = self.engine.service(queue.entity) > self.max_budget() / 8;
        let short = queue.seeks.avg.valid()
            && ((self.seeky(q) && read_much) || queue.constantly_seeky);
        let length = match (queue.raised(), short) {
            (true, _) => full * V7_RAISED,
            (false, true) => full.min(self.c.ms_to_jiffies(SHORT_IDLE_MS)),
            (false, false) => full,
        };
        jiffies::tick(self.j.saturating_add(length), self.hz)
    }

    /// Starts to wait for a request of the queue in service.
    pub(super) fn start_waiting(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        let end = if self.v.index == V7 {
            self.v7_idle_end(q)
        } else {
            ctx.now.saturating_add(self.idle_time(q))
        };
        let length = end - ctx.now;
        self.qm(q).wait_request = true;
        self.last_idling_start = self.ns;
        self.timer_at = Some(end);
        self.counts.idles += 1;
        ctx.arm_timer(end);
        ctx.why(|_, facts| {
            let mean = self.mean_think(q).map_or_else(|| "unknown".into(), super::ms);
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
