//! The end of a turn: slices, the rest that is kept, the group's charge; and the idle timer's switch.

use iosched_types::Nanos;

use crate::api::Ctx;

use super::core::Cfq;
use super::explain::Cause;
use super::group::Charge;
use super::params::{Tick, mul_div};
use super::{Class, NOQ, Qi};

/// Weight of history in the smoothed number of busy queues.
const HIST: i64 = 4;

impl Cfq {
    /// Takes the disk from the active queue. `timed_out` keeps what was left (or overrun) of its
    /// slice for its next place in the tree.
    pub(super) fn expire(&mut self, ctx: &mut Ctx<'_>, now: Tick, cause: Cause, timed_out: bool) {
        let qi = self.active;
        self.why_expired(ctx, now, cause);
        self.n.expired[cause as usize] += 1;
        if self.queues[qi as usize].wait_request {
            self.cancel_timer(ctx);
        }
        if timed_out {
            let q = &self.queues[qi as usize];
            let resid = if q.slice_new { self.scaled_slice(qi) } else { q.slice_end - now };
            self.q(qi).slice_resid = resid;
        }
        let q = self.q(qi);
        (q.wait_busy, q.wait_request) = (false, false);
        if q.coop && q.seeky() {
            q.split_coop = true;
        }
        self.charge_group(qi, now);
        self.active = NOQ;
        self.active_task = None;
        if self.queues[qi as usize].is_empty() {
            self.make_unbusy(qi);
        } else {
            self.file(qi, now, false);
            self.update_position(ctx, qi);
        }
        self.free_if_unused(qi);
    }

    /// Time says nothing where requests of several queues are served at once. So without idling, on a device that
    /// queues commands as far as CFQ knows, groups pay for requests.
    pub(super) fn charged(&self) -> Charge {
        if self.p.slice_idle == 0 && self.hw_tag.value != 0 {
            Charge::Requests
        } else {
            Charge::Time
        }
    }

    /// Charges the group for the time (or, without idling on a queueing device, the requests) used.
    fn charge_group(&mut self, qi: Qi, now: Tick) {
        let q = &self.queues[qi as usize];
        let g = q.group;
        let used = if q.slice_start == 0 || q.slice_start == now {
            (now - q.dispatch_start).max(self.p.clock.jiffy())
        } else {
            (now - q.slice_start).min(q.allocated_slice)
        };
        let group = &self.groups[g];
        let sync_queues = group.nr as usize - group.busy_async() - group.trees[6].len();
        let charge = if self.charged() == Charge::Requests {
            q.slice_dispatch as Tick
        } else if self.v.async_charged_whole && !q.sync && sync_queues == 0 {
            q.allocated_slice
        } else {
            used
        };
        self.groups.charge(g, charge);
        let left = self.serving.until - now;
        self.groups[g].saved =
            (left > 0).then_some((left, self.serving.class, self.serving.workload));
    }

    /// Forgets a pending wait.
    pub(super) fn stop_waiting(&mut self, ctx: &mut Ctx<'_>) {
        if self.active != NOQ {
            let qi = self.active;
            self.q(qi).wait_request = false;
        }
        self.cancel_timer(ctx);
    }

    pub(super) fn cancel_timer(&mut self, ctx: &mut Ctx<'_>) {
        if self.timer_at.take().is_some() {
            ctx.cancel_timer();
        }
    }

    /// Holds the disk for the active queue for `span`.
    pub(super) fn wait_for_request(&mut self, ctx: &mut Ctx<'_>, now: Tick, span: Tick) -> Nanos {
        let at = self.p.clock.nanos(now + span);
        let qi = self.active;
        self.q(qi).wait_request = true;
        self.timer_at = Some(at);
        ctx.arm_timer(at);
        at
    }

    /// Slice of a queue: by its level, and with low_latency by how many queues wait for a slice.
    pub(super) fn scaled_slice(&mut self, qi: Qi) -> Tick {
        let q = &self.queues[qi as usize];
        let slice = self.p.prio_slice(q.sync, q.level);
        if !self.p.low_latency {
            return slice;
        }
        let class = if q.class == Class::Rt { Class::Rt } else { Class::Be };
        let g = q.group;
        let busy = self.groups[g].busy(class) as i64;
        let avg = &mut self.groups[g].busy_avg[class as usize];
        *avg = smoothed(*avg, busy);
        let (base, waiting) = (self.p.slice[1], *avg);
        let latency = base.saturating_mul(waiting);
        let group_slice = self.groups.slice(g, self.p.target_latency);
        if latency <= group_slice {
            return slice;
        }
        let low = mul_div(self.p.slice_idle.saturating_mul(2), slice, base).min(slice);
        mul_div(slice, group_slice, latency).max(low)
    }
}

/// The average number of busy queues. It rises quickly. Because of rounding it never falls all the way.
fn smoothed(avg: i64, busy: i64) -> i64 {
    ((HIST - 1) * avg.max(busy) + avg.min(busy) + HIST / 2) / HIST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_of_busy_queues_stays_above_a_smaller_number() {
        let after = |mut avg: i64, busy: i64| -> Vec<i64> {
            let mut next = || {
                avg = smoothed(avg, busy);
                avg
            };
            (0..5).map(|_| next()).collect()
        };
        assert_eq!(after(10, 10), [10; 5]);
        assert_eq!(after(10, 5), [9, 8, 7, 7, 7]);
        assert_eq!(after(3, 1), [3; 5]);
        assert_eq!(after(1, 5), [4, 5, 5, 5, 5]);
    }
}
