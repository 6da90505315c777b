//! Dispatch of the CFQ of 2.6.18: which queue has the turn, rounds of requests, the sorted list they wait in.

use iosched_types::{ReqId, Sector};

use crate::api::Ctx;

use super::core::{SENT, some};
use super::explain::Cause;
use super::params::Tick;
use super::walk::{IN_DISPATCH, Walk};
use super::{Class, NOQ, Qi};

/// The idle class is served when no other class has completed a request for this long.
const IDLE_GRACE_MS: i64 = 100;

impl Walk {
    pub(super) fn account_dispatch(&mut self, ctx: &mut Ctx<'_>, qi: Qi, req: ReqId) {
        self.q(qi).dispatched += 1;
        ctx.reqs[req].elv[1] = IN_DISPATCH;
    }

    /// Sends a request to the outbox: one upward sweep from where the driver is, then the next.
    pub(super) fn send(&mut self, ctx: &mut Ctx<'_>, qi: Qi, req: ReqId) {
        self.take_out(ctx, qi, req, true);
        self.account_dispatch(ctx, qi, req);
        self.outbox.insert(self.sweep_key(ctx.reqs[req].sector), req);
        if let Some(tail) = self.outbox.last() {
            self.last_sector = ctx.reqs[tail].end();
        }
    }

    /// Order in the outbox: upwards from where the driver was when it was filled, then from the left.
    /// (The kernel walks its list from the tail for each insertion, to the same effect.)
    fn sweep_key(&self, sector: Sector) -> u64 {
        if sector < self.sweep_from { sector | 1 << 63 } else { sector }
    }

    /// Fills the outbox: rounds of `quantum`, queue after queue, until one is worth staying with.
    pub(super) fn fill(&mut self, ctx: &mut Ctx<'_>) {
        let now = self.now(ctx);
        self.sweep_from = self.boundary;
        let mut before = NOQ;
        while let Some(qi) = self.select(ctx, now) {
            if qi == before {
                break;
            }
            before = qi;
            let q = self.q(qi);
            (q.must_dispatch, q.wait_request) = (false, false);
            self.set_timers(ctx, None, self.grace_timer);
            self.round(ctx, qi, now);
            let q = &mut self.queues[qi as usize];
            if q.slice_end == 0 {
                let slice = self.p.prio_slice(q.sync, q.level) + std::mem::take(&mut q.slice_left);
                (q.slice_start, q.slice_end) = (now, now + slice);
            }
            let spent = !q.sync && q.dispatch_slice >= self.p.max_async(q.level);
            let idle = q.class == Class::Idle;
            if spent || idle || !q.idle_window {
                let cause = if spent {
                    Cause::AsyncLimit
                } else if idle {
                    Cause::IdleClass
                } else {
                    Cause::Dry
                };
                self.expire(ctx, now, cause, false);
            } else {
                break;
            }
        }
    }

    /// One round: up to `quantum` requests of a queue (one of the idle class).
    fn round(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick) {
        let idle = self.queues[qi as usize].class == Class::Idle;
        let quantum = if idle { 1 } else { self.p.quantum };
        for _ in 0..quantum {
            let q = &mut self.queues[qi as usize];
            let old =
                q.fifo.head().filter(|h| !q.fifo_expired && now > ctx.reqs[*h].fifo_time as Tick);
            if let Some(head) = old {
                q.fifo_expired = true;
                self.n.fifo_expired += 1;
                let (clock, late) = (self.p.clock, now - ctx.reqs[head].fifo_time as Tick);
                ctx.why(|r, _| {
                    format!("expired: {} past its deadline ({})", clock.show(late), r[head].sector)
                });
            }
            let Some(req) = old.or(some(self.queues[qi as usize].next)) else { return };
            self.send(ctx, qi, req);
            self.active_task = Some(ctx.reqs[req].task);
            self.q(qi).dispatch_slice += 1;
        }
    }

    fn select(&mut self, ctx: &mut Ctx<'_>, now: Tick) -> Option<Qi> {
        if self.active != NOQ {
            let qi = self.active;
            let q = &self.queues[qi as usize];
            if !q.must_dispatch && q.slice_over(now) {
                self.expire(ctx, now, Cause::SliceUsed, false);
                return self.next_queue(ctx, now);
            }
            if !q.is_empty() {
                return Some(qi);
            }
            // The wait begins anew, in full, even after a timer that found no other queue busy.
            let waits = q.sync && q.wait_request;
            if q.dispatched > 0 || waits && self.arm(ctx, qi, now) {
                return None;
            }
            self.expire(ctx, now, Cause::Dry, false);
        }
        self.next_queue(ctx, now)
    }

    fn next_queue(&mut self, ctx: &mut Ctx<'_>, now: Tick) -> Option<Qi> {
        let qi = match self.lists.next() {
            Some(qi) => qi,
            None => {
                let qi = self.lists.next_idle()?;
                let from = self.last_end.map(|t| t + self.p.clock.ms(IDLE_GRACE_MS));
                if let Some(from) = from.filter(|f| now < *f) {
                    self.set_timers(ctx, self.idle_timer, Some(self.p.clock.nanos(from)));
                    return None;
                }
                qi
            }
        };
        self.activate(ctx, qi, now);
        Some(qi)
    }

    pub(super) fn pop(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        let req = self.outbox.first()?;
        let r = &ctx.reqs[req];
        self.boundary = r.end();
        self.outbox.remove(self.sweep_key(r.sector), req);
        ctx.reqs[req].elv[1] = SENT;
        if ctx.out.why.is_some() {
            let name = self.name_in(ctx, self.queue_of(ctx, req));
            ctx.why(|_, _| format!("of {name}, in sector order of its round"));
        }
        Some(req)
    }
}
