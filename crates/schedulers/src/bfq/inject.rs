//! Filling the idle times of the queue in service with requests of others: how many the queue bears, and which process'
//! requests it waits for itself.

use iosched_types::units::MS;
use iosched_types::{NO_REQ, Nanos};

use super::Bfq;
use super::queue::{Inject, QueueId};
use super::rbtree::NIL;
use crate::api::Ctx;

/// A request right after another queue's completion was woken by it.
const WAKE_WITHIN: Nanos = 4 * MS;
/// After this many times it counts as a habit.
const DETECTIONS: u32 = 3;
/// Detections further apart than this many idle times are chance.
const DETECTION_IDLES: u64 = 128;
/// The limit is forgotten after this long, to be learnt anew.
const RESET_MS: i64 = 1000;
/// After a decrease the device gets this long before it is measured again.
const SETTLE_MS: i64 = 10;
/// On flash, a request of this size or more is injected only when the device holds nothing.
const LARGE_ON_FLASH: u32 = 64;

impl Bfq {
    /// An arrival for a queue that had nothing left: was it woken, is it worth measuring?
    pub(super) fn watch_injection(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        self.watch_waker(ctx, q);
        let since = self.q(q).inject.decreased;
        if self.j >= since + self.c.ms_to_jiffies(RESET_MS) {
            self.reset_injection(q);
        }
        let queue = self.q(q);
        let comparable = queue.inject.baseline > 0 && self.injected;
        if q == self.in_service
            && (self.in_driver == 0 || comparable)
            && self.j >= queue.inject.decreased + self.c.ms_to_jiffies(SETTLE_MS)
        {
            self.waited_since = self.now;
            self.wait_dispatch = true;
            self.injected &= self.in_driver > 0;
        }
    }

    fn watch_waker(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        let candidate = self.last_completed;
        let queue = self.q(q);
        if candidate == NIL
            || candidate == q
            || candidate == queue.waker
            || queue.short_think
            || self.since_completion() >= WAKE_WITHIN
        {
            return;
        }
        let (serial, now) = (self.q(candidate).serial, self.now);
        let window = DETECTION_IDLES * self.c.slice_idle;
        let queue = self.qm(q);
        if queue.tentative_waker != serial || now > queue.waker_started + window {
            (queue.tentative_waker, queue.waker_detections) = (serial, 1);
            queue.waker_started = now;
            return;
        }
        queue.waker_detections += 1;
        if queue.waker_detections < DETECTIONS {
            return;
        }
        let old = std::mem::replace(&mut queue.waker, candidate);
        queue.tentative_waker = u64::MAX;
        if old != NIL {
            self.qm(old).woken.retain(|w| *w != q);
        }
        self.qm(candidate).woken.push(q);
        ctx.why(|_, facts| {
            format!("{} is the waker of {}", self.who(candidate, facts), self.who(q, facts))
        });
    }

    /// A queue goes away: no queue waits for it any more, and it waits for none.
    pub(super) fn forget_wakers(&mut self, q: QueueId) {
        let waker = std::mem::replace(&mut self.qm(q).waker, NIL);
        if waker != NIL {
            self.qm(waker).woken.retain(|w| *w != q);
        }
        while let Some(woken) = self.qm(q).woken.pop() {
            self.qm(woken).waker = NIL;
        }
    }

    /// Forgets the limit learnt for a queue. While the queue's think time is short, no request may be injected;
    /// otherwise one.
    pub(super) fn reset_injection(&mut self, q: QueueId) {
        if !self.v.modern {
            return;
        }
        let j = self.j;
        let queue = self.qm(q);
        let limit = u32::from(!queue.short_think);
        queue.inject = Inject { limit, baseline: 0, decreased: j };
        if q == self.in_service {
            self.waited = NO_REQ;
            self.wait_dispatch = false;
        }
    }

    /// The measured request completed. Did injection make it slower? The request's own command still counts as in
    /// flight.
    pub(super) fn learn_injection(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        let (time, alone, injected) =
            (self.now - self.waited_since, self.in_driver == 1, self.injected);
        let (most, j) = (self.hw.most_in_driver(), self.j);
        let i = &mut self.qm(q).inject;
        let old = i.limit;
        if i.baseline > 0 && injected {
            let threshold = i.baseline * 3 / 2;
            if time >= threshold && old > 0 {
                (i.limit, i.decreased) = (old - 1, j);
            } else if time < threshold && old <= most {
                i.limit = old + 1;
            }
        }
        if (i.baseline == 0 && alone) || time < i.baseline {
            if i.baseline == 0 {
                i.limit = old.max(1);
            }
            i.baseline = time;
        } else if !injected && alone {
            i.baseline = time;
        }
        self.waited = NO_REQ;
        self.injected = false;
        let new = self.q(q).inject.limit;
        if new != old {
            ctx.why(|_, facts| {
                format!(
                    "inject limit of {}: {old} → {new} (total service {})",
                    self.who(q, facts),
                    super::ms(time)
                )
            });
        }
    }

    /// The queue, if any, that may give a request while queue `q` in service is empty.
    pub(super) fn injectable(&mut self, ctx: &mut Ctx<'_>, q: QueueId) -> Option<QueueId> {
        if !self.v.modern {
            return None;
        }
        let linked = self.own_async(ctx, q).or_else(|| self.linked(ctx, q));
        let chosen = match linked {
            Some(chosen) => chosen,
            None => self.generic(ctx, q)?,
        };
        self.counts.injections += 1;
        let limit = self.q(q).inject.limit;
        ctx.why(|_, facts| {
            let (who, other) = (self.who(chosen, facts), self.who(q, facts));
            if linked.is_none() {
                format!("injected {who}: limit {limit}")
            } else if self.q(q).waker == chosen {
                format!("injected {who}: the waker of {other}")
            } else if self.q(chosen).sync {
                format!("injected {who}: {other} is its waker")
            } else {
                format!("injected {who}: writes of {other} itself")
            }
        });
        Some(chosen)
    }

    fn fits(&self, ctx: &Ctx<'_>, q: QueueId) -> bool {
        let queue = self.q(q);
        queue.busy
            && queue.next_rq != NO_REQ
            && self.charge_of(&ctx.reqs[queue.next_rq], q) <= self.engine.left(queue.entity)
    }

    /// Async requests of the process that the device waits for.
    fn own_async(&self, ctx: &Ctx<'_>, q: QueueId) -> Option<QueueId> {
        let task = self.q(q).owner?;
        let a = self.processes[task as usize].queues[0];
        (a != NIL && self.fits(ctx, a) && ctx.reqs[self.q(a).next_rq].task == task).then_some(a)
    }

    /// The queue that `q` waits for, or one that waits for `q`.
    fn linked(&self, ctx: &Ctx<'_>, q: QueueId) -> Option<QueueId> {
        let queue = self.q(q);
        if queue.waker != NIL && self.fits(ctx, queue.waker) {
            return Some(queue.waker);
        }
        queue.woken.iter().copied().find(|w| self.fits(ctx, *w))
    }

    fn generic(&mut self, ctx: &Ctx<'_>, q: QueueId) -> Option<QueueId> {
        let queue = self.q(q);
        let bears = !queue.raised() || self.wr_busy > 1 || !queue.short_think;
        if self.boosts_without_issues(q) || !bears || self.in_driver >= queue.inject.limit {
            return None;
        }
        let anyone = !queue.raised() || !queue.short_think;
        let large_too = self.rotational || self.in_driver == 0;
        let chosen = self.engine.waiting().find(|other| {
            let o = self.q(*other);
            (anyone || o.raised())
                && self.fits(ctx, *other)
                && (large_too || ctx.reqs[o.next_rq].sectors < LARGE_ON_FLASH)
        });
        self.injected |= chosen.is_some();
        chosen
    }
}
