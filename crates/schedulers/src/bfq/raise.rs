//! Weight raising: applications that start (interactive) and those that play (soft real-time) get many
//! times their weight for a while.

use iosched_types::Request;

use super::Bfq;
use super::queue::{Burst, Jiffies, LONG_AGO, NEVER, QueueId, Raise};
use super::version::{V4_12, V7};
use crate::api::Ctx;

/// What an activation says about a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signs {
    pub(super) interactive: bool,
    pub(super) soft_rt: bool,
    pub(super) deserves: bool,
}

impl Bfq {
    /// How long an interactive raise lasts now.
    pub(super) fn raise_duration(&self) -> Jiffies {
        if self.c.wr_max_time > 0 {
            return self.c.wr_max_time;
        }
        self.rate.raise_jiffies(|ms| self.c.ms_to_jiffies(ms))
    }

    fn soft_coeff(&self) -> u64 {
        self.c.wr_coeff * self.v.softrt_factor
    }

    /// Reads the signs at an activation, before anything changes.
    pub(super) fn signs(&self, q: QueueId, r: &Request) -> Signs {
        let queue = self.q(q);
        let strict = self.v.strict_softrt;
        let in_burst = queue.burst == Burst::Large;
        let plain = queue.has_default_weight();
        let long_idle = queue.dispatched == 0 && self.j > queue.budget_timeout + self.c.wr_min_idle;
        let soft_rt = self.c.max_softrt_rate > 0
            && !in_burst
            && self.j > queue.soft_rt_next_start
            && (!strict || (!self.totally_seeky(q) && queue.dispatched == 0 && plain));
        let interactive = !in_burst && long_idle && (!strict || plain);
        let process = self.processes.get(r.task as usize);
        let eligible = if self.v.index == V7 {
            !queue.shared
        } else {
            let stable = self.v.modern && process.is_some_and(|p| p.stably_merged);
            queue.sync && (queue.owner.is_some() || stable)
        };
        let deserves =
            self.c.low_latency && (queue.raised() || (eligible && (interactive || soft_rt)));
        Signs { interactive, soft_rt, deserves }
    }

    /// Starts, refreshes or ends a raise at an activation.
    pub(super) fn raise_on_arrival(&mut self, ctx: &mut Ctx<'_>, q: QueueId, signs: Signs) {
        if self.q(q).raised() {
            self.refresh_raise(q, signs);
            // Before and after this generation a raise lasts beyond its time until the queue has been served once more.
            if self.q(q).raised() && self.v.index == V4_12 {
                self.check_raise_end(ctx, q);
            }
        } else if signs.deserves {
            self.qm(q).raise.last_start_finish = self.j;
            if signs.interactive {
                self.raise_interactive(q);
            } else {
                self.qm(q).raise.interactive_start = LONG_AGO;
                self.raise_soft(q);
            }
            if self.v.raised_least_budgets {
                let entity = self.q(q).entity;
                let budget = self.engine.budget(entity).min(2 * self.min_budget());
                self.engine.set_budget(entity, budget);
            }
            self.note_raise(ctx, q);
        }
    }

    fn refresh_raise(&mut self, q: QueueId, signs: Signs) {
        if self.v.index == V7 {
            return self.v7_refresh_raise(q, signs);
        }
        if signs.interactive {
            self.raise_interactive(q);
            self.qm(q).raise.last_start_finish = self.j;
        } else if self.q(q).burst == Burst::Large {
            self.end_raise(q);
        } else if signs.soft_rt {
            if !self.q(q).raise.soft_rt {
                let start = self.q(q).raise.last_start_finish;
                self.qm(q).raise.interactive_start = start;
            }
            self.raise_soft(q);
            self.qm(q).raise.last_start_finish = self.j;
        }
    }

    pub(super) fn raise_interactive(&mut self, q: QueueId) {
        let (coeff, duration) = (self.c.wr_coeff, self.raise_duration());
        let r = &mut self.qm(q).raise;
        if r.coeff == 1 {
            r.service = 0;
        }
        (r.coeff, r.duration, r.soft_rt) = (coeff, duration, false);
    }

    pub(super) fn raise_soft(&mut self, q: QueueId) {
        let (coeff, duration) = (self.soft_coeff(), self.c.wr_rt_max_time);
        let r = &mut self.qm(q).raise;
        (r.coeff, r.duration, r.soft_rt) = (coeff, duration, true);
    }

    fn note_raise(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        self.counts.raises += 1;
        let (r, hz) = (self.q(q).raise, f64::from(self.hz));
        ctx.why(|_, facts| {
            let kind = if r.soft_rt { "soft real-time" } else { "interactive" };
            let until = (r.last_start_finish + r.duration) as f64 / hz;
            format!(
                "{} weight-raised ×{}, {kind}, until {} s",
                self.who(q, facts),
                r.coeff,
                (until * 1000.0).round() / 1000.0
            )
        });
    }

    /// Raises a busy async queue that has not been raised for long enough.
    pub(super) fn raise_async(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        let pause = self.c.wr_min_inter_async + i64::from(self.v.index == V7);
        let ready = self.q(q).raise.last_start_finish + pause;
        if !self.c.low_latency || self.q(q).raised() || self.j < ready {
            return;
        }
        self.qm(q).raise.last_start_finish = self.j;
        self.raise_interactive(q);
        self.wr_busy += 1;
        self.apply_raise(q);
        self.note_raise(ctx, q);
    }

    /// Tells the engine the weight; it takes effect when the queue is next put on its tree.
    pub(super) fn apply_raise(&mut self, q: QueueId) {
        let queue = self.q(q);
        let (e, w, coeff, class) =
            (queue.entity, queue.original_weight(), queue.raise.coeff, queue.class);
        self.engine.set_weight(e, w, coeff, class);
        self.reweigh(q);
    }

    /// Ends a raise.
    pub(super) fn end_raise(&mut self, q: QueueId) {
        if !self.q(q).raised() {
            return;
        }
        if self.q(q).busy {
            self.wr_busy -= 1;
        }
        let j = self.j;
        let r = &mut self.qm(q).raise;
        (r.coeff, r.duration, r.soft_rt, r.last_start_finish) = (1, 0, false, j);
        self.apply_raise(q);
    }

    /// Writing 0 to `low_latency` ends every raise.
    pub(super) fn end_all_raises(&mut self) {
        for q in 0..self.queues.len() as QueueId {
            if self.q(q).entity != super::NIL {
                self.end_raise(q);
            }
        }
    }

    /// Whether a raise is over: in a large burst, after its time, after its service, or when the queue turned out to be
    /// seeky. After its time a soft real-time raise may fall back into the interactive one that it interrupted.
    pub(super) fn check_raise_end(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        let queue = self.q(q);
        let r = queue.raise;
        let over = if queue.burst == Burst::Large {
            "part of a large burst"
        } else if self.j > r.last_start_finish + r.duration {
            if self.falls_back(&r) {
                return self.fall_back(q);
            }
            "its time is over"
        } else if !r.soft_rt && r.service > self.v.wr_service_cap {
            "it has read more than an application start takes"
        } else {
            return;
        };
        self.end_raise(q);
        ctx.why(|_, facts| format!("raise of {} ends: {over}", self.who(q, facts)));
    }

    /// Whether the interactive raise that a soft real-time one interrupted would still go on.
    pub(super) fn falls_back(&self, r: &Raise) -> bool {
        let rest = r.interactive_start + self.raise_duration();
        r.soft_rt && r.interactive_start > LONG_AGO && self.j <= rest
    }

    /// A soft real-time raise becomes the interactive one again that it interrupted.
    pub(super) fn fall_back(&mut self, q: QueueId) {
        let (coeff, duration) = (self.c.wr_coeff, self.raise_duration());
        let r = &mut self.qm(q).raise;
        (r.coeff, r.duration, r.soft_rt) = (coeff, duration, false);
        r.last_start_finish = r.interactive_start;
        self.apply_raise(q);
    }

    /// A soft real-time queue sent one more random request. If the last 32 were all random, nothing plays there.
    pub(super) fn doubt_soft_rt(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        let r = self.q(q).raise;
        if r.coeff == 1 || !r.soft_rt || !self.totally_seeky(q) {
            return;
        }
        ctx.why(|_, facts| {
            let who = self.who(q, facts);
            format!("{who} is not soft real-time: all its requests are random")
        });
        if self.falls_back(&r) {
            self.fall_back(q);
        } else {
            self.end_raise(q);
        }
    }

    /// The earliest time at which a queue may come back and still count as soft real-time.
    pub(super) fn next_soft_rt(&self, q: QueueId) -> Jiffies {
        let queue = self.q(q);
        let rate = self.c.max_softrt_rate.max(1);
        let play = u64::from(self.hz) * queue.service_from_backlogged / rate;
        let bandwidth = queue.last_idle_bklogged.saturating_add(play as i64);
        let greedy = self.j + (self.c.slice_idle * u64::from(self.hz) / 1_000_000_000) as i64 + 4;
        let floor = if self.v.modern { queue.soft_rt_next_start } else { LONG_AGO };
        bandwidth.max(greedy).max(floor)
    }

    /// A slot ends with an empty queue. From when on may the queue count as soft real-time?
    pub(super) fn plan_soft_rt(&mut self, q: QueueId) {
        if !self.c.low_latency || self.c.max_softrt_rate == 0 || !self.q(q).empty() {
            return;
        }
        if self.q(q).dispatched == 0 {
            self.qm(q).soft_rt_next_start = self.next_soft_rt(q);
        } else {
            if self.v.softrt_never_in_flight {
                self.qm(q).soft_rt_next_start = NEVER;
            }
            self.qm(q).softrt_update = true;
        }
    }
}
