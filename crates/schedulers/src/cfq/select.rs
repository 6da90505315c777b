//! Which queue has the disk, how much of it may be in flight, and which request goes next.

use iosched_types::ReqId;

use crate::api::{Ctx, Dispatch, Idling};

use super::core::{Cfq, SENT, some};
use super::explain::Cause;
use super::group::tree_index;
use super::params::{Tick, mul_div};
use super::queue::Workload;
use super::{Class, NOQ, Qi};

/// Notes why nothing is dispatched, once however often the driver asks.
fn note_once(ctx: &mut Ctx<'_>, text: impl Fn() -> String) {
    let said = |why: &crate::api::Why| why.notes.last().is_some_and(|n| n.1 == text());
    if !ctx.out.why.as_ref().is_none_or(said) {
        ctx.why(|_, _| text());
    }
}

impl Cfq {
    /// One request, or none.
    pub(super) fn dispatch_one(&mut self, ctx: &mut Ctx<'_>) -> Dispatch {
        let now = self.now(ctx);
        let Some(qi) = self.select(ctx, now) else { return self.held() };
        let mut expired = None;
        if self.v.fifo_first {
            expired = self.check_fifo(ctx, qi, now);
            if expired.is_some() {
                self.q(qi).must_dispatch = true;
            }
        }
        if !self.may_dispatch(ctx, qi, now) {
            return Dispatch::Empty;
        }
        if !self.v.fifo_first {
            expired = self.check_fifo(ctx, qi, now);
        }
        let Some(req) = expired.or(some(self.queues[qi as usize].next)) else {
            return Dispatch::Empty;
        };
        if ctx.out.why.is_some() && expired.is_none() {
            let name = self.name_in(ctx, qi);
            ctx.why(|_, _| format!("best of {name}"));
        }
        self.send(ctx, qi, req);
        self.active_task = Some(ctx.reqs[req].task);
        self.count_dispatch(ctx, qi, now);
        Dispatch::Request(req)
    }

    /// What to answer when no queue may dispatch.
    fn held(&self) -> Dispatch {
        match self.timer_at {
            Some(until) if self.rq_queued > 0 => {
                Dispatch::Idle(Idling { until, for_task: self.active_task })
            }
            _ => Dispatch::Empty,
        }
    }

    /// Moves a request to the driver's side.
    fn send(&mut self, ctx: &mut Ctx<'_>, qi: Qi, req: ReqId) {
        // Found anew even when the request went because of its age: the sweep goes on from there.
        self.take_out(ctx, qi, req, true);
        self.update_position(ctx, qi);
        let q = self.q(qi);
        q.dispatched += 1;
        let group = q.group;
        self.groups[group].dispatched += 1;
        self.in_flight[usize::from(ctx.reqs[req].is_sync())] += 1;
        ctx.reqs[req].elv[1] = SENT;
    }

    fn count_dispatch(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick) {
        let others = self.busy_queues > 1;
        let q = &mut self.queues[qi as usize];
        q.slice_dispatch += 1;
        q.must_dispatch = false;
        let idle = q.class == Class::Idle;
        let spent = !q.sync && q.slice_dispatch >= self.p.max_async(q.level);
        if others && (spent || idle) {
            q.slice_end = now + 1;
            self.expire(ctx, now, if idle { Cause::IdleClass } else { Cause::AsyncLimit }, false);
        }
    }

    /// Any next request, for a drain: queue by queue in service order, without limits or waiting.
    pub(super) fn dispatch_forced(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        if self.rq_queued == 0 {
            return None;
        }
        let now = self.now(ctx);
        if self.active != NOQ && self.queues[self.active as usize].is_empty() {
            self.expire(ctx, now, Cause::Dry, false);
        }
        if self.active == NOQ {
            self.next_queue(ctx, now)?;
        }
        let qi = self.active;
        let req = some(self.queues[qi as usize].next)?;
        self.stop_waiting(ctx);
        self.send(ctx, qi, req);
        self.active_task = Some(ctx.reqs[req].task);
        let q = self.q(qi);
        (q.slice_dispatch, q.must_dispatch) = (q.slice_dispatch + 1, false);
        Some(req)
    }

    /// Keeps, expires or replaces the active queue; `None` holds the disk (or there is nothing to do).
    fn select(&mut self, ctx: &mut Ctx<'_>, now: Tick) -> Option<Qi> {
        if self.rq_queued == 0 {
            return None;
        }
        let qi = self.active;
        if qi == NOQ {
            return self.next_queue(ctx, now);
        }
        let q = &self.queues[qi as usize];
        if q.wait_busy && !q.is_empty() {
            self.expire(ctx, now, Cause::WaitBusy, false);
            return self.next_queue(ctx, now);
        }
        if q.slice_used(now) && !q.must_dispatch {
            let sole = self.groups[q.group].nr == 1;
            if sole && q.is_empty() && q.dispatched > 0 && self.should_idle(ctx, qi) {
                return None;
            }
            return self.leave_queue(ctx, qi, now, Cause::SliceUsed);
        }
        if !q.is_empty() {
            return Some(qi);
        }
        if let Some(close) = self.close_cooperator(ctx, qi) {
            self.promise_merge(ctx, qi, close);
            self.expire(ctx, now, Cause::Cooperator, false);
            self.activate(ctx, close, now);
            return Some(close);
        }
        if self.timer_at.is_some() {
            return None;
        }
        let q = self.q(qi);
        let early = q.slice_new || q.slice_end - now > now - q.slice_start;
        if q.seeky() && q.idle_window && early {
            q.deep = false;
            q.idle_window = false;
        }
        if self.queues[qi as usize].dispatched > 0 && self.should_idle(ctx, qi) {
            return None;
        }
        self.leave_queue(ctx, qi, now, Cause::Dry)
    }

    /// Group idling may still hold the disk; otherwise the next queue gets it.
    fn leave_queue(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick, cause: Cause) -> Option<Qi> {
        let g = &self.groups[self.queues[qi as usize].group];
        let limit = self.p.group_idle;
        if limit > 0 && g.nr == 1 && g.dispatched > 0 && !g.think.avg.trusted_above(limit as u64) {
            return None;
        }
        self.expire(ctx, now, cause, false);
        self.next_queue(ctx, now)
    }

    /// Whether the disk should be held for this queue (or, for the last of its tree, for the tree).
    pub(super) fn should_idle(&self, ctx: &Ctx<'_>, qi: Qi) -> bool {
        let q = &self.queues[qi as usize];
        if self.p.slice_idle == 0 || q.class == Class::Idle {
            return false;
        }
        if q.idle_window && !self.fast_queueing(ctx) {
            return true;
        }
        let Some(place) = q.place else { return false };
        let tree = &self.groups[q.group].trees[place.tree];
        q.sync && tree.len() == 1 && !tree.think.avg.trusted_above(self.p.slice_idle as u64)
    }

    /// Group, then workload, then the queue with the lowest key.
    fn next_queue(&mut self, ctx: &mut Ctx<'_>, now: Tick) -> Option<Qi> {
        let g = self.groups.first()?;
        self.serving.group = g;
        match self.groups[g].saved.take() {
            Some((left, class, workload)) => {
                (self.serving.class, self.serving.workload) = (class, workload);
                self.serving.until = now + left;
            }
            None => self.serving.until = now - 1,
        }
        self.choose_workload(ctx, g, now);
        let tree = tree_index(self.serving.class, self.serving.workload);
        let qi = self.groups[g].trees[tree].first()?;
        self.activate(ctx, qi, now);
        Some(qi)
    }

    fn choose_workload(&mut self, ctx: &mut Ctx<'_>, g: u32, now: Tick) {
        let group = &self.groups[g];
        let class = [Class::Rt, Class::Be, Class::Idle]
            .into_iter()
            .find(|c| group.busy(*c) > 0)
            .unwrap_or(Class::Be);
        if class == Class::Idle {
            self.serving.class = class;
            self.serving.until = now + self.p.clock.jiffy();
            return;
        }
        let same = class == self.serving.class;
        let count = group.trees[tree_index(class, self.serving.workload)].len();
        if same && count > 0 && now <= self.serving.until {
            return;
        }
        let key = |w: Workload| {
            let first = group.trees[tree_index(class, w)].first()?;
            self.queues[first as usize].place.map(|p| p.key)
        };
        let mut best = (Workload::Async, None);
        for w in Workload::ALL {
            if let Some(k) = key(w)
                && best.1.is_none_or(|b| k < b)
            {
                best = (w, Some(k));
            }
        }
        let span = self.workload_span(g, class, best.0);
        (self.serving.class, self.serving.workload) = (class, best.0);
        self.serving.until = now + span;
        let clock = self.p.clock;
        ctx.why(|_, _| format!("workload {}: {}", best.0.name(), clock.show(span)));
    }

    /// How long a workload type goes on: its part of the group's time by its part of the queues.
    fn workload_span(&self, g: u32, class: Class, workload: Workload) -> Tick {
        let group = &self.groups[g];
        let count = group.trees[tree_index(class, workload)].len() as i64;
        let busy = group.busy_avg[class as usize].max(group.busy(class) as i64);
        let mut span = mul_div(self.groups.slice(g, self.p.target_latency), count, busy);
        if workload == Workload::Async {
            let asynchronous = group.busy_async() as i64;
            let all = i64::from(self.busy_queues);
            span = span.min(mul_div(self.p.target_latency, asynchronous, all));
            span = mul_div(span, self.p.slice[0], self.p.slice[1]);
        } else {
            span = span.max(2 * self.p.slice_idle);
        }
        span.max(2 * self.p.clock.jiffy())
    }

    /// Gives the disk to a queue; its slice starts with its first completion.
    fn activate(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick) {
        self.n.slices += 1;
        self.active = qi;
        self.active_task = None;
        let q = self.q(qi);
        (q.slice_start, q.slice_end, q.allocated_slice) = (0, 0, 0);
        (q.dispatch_start, q.slice_dispatch) = (now, 0);
        (q.wait_request, q.must_dispatch, q.must_alloc_slice) = (false, false, false);
        (q.fifo_checked, q.slice_new) = (false, true);
        self.update_position(ctx, qi);
        self.cancel_timer(ctx);
        if ctx.out.why.is_some() {
            let name = self.name_in(ctx, qi);
            ctx.why(|_, _| format!("{name} is next"));
        }
    }

    /// The oldest request if it is past its deadline; looked at once per slice.
    fn check_fifo(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick) -> Option<ReqId> {
        let q = self.q(qi);
        if std::mem::replace(&mut q.fifo_checked, true) {
            return None;
        }
        let head = q.fifo.head()?;
        let deadline = ctx.reqs[head].fifo_time as Tick;
        if now < deadline {
            return None;
        }
        self.n.fifo_expired += 1;
        let (clock, sync) = (self.p.clock, ctx.reqs[head].is_sync());
        let limit = self.p.fifo_expire[usize::from(sync)];
        ctx.why(|_, _| {
            format!("expired: {} >= {}", clock.show(now - deadline + limit), clock.show(limit))
        });
        Some(head)
    }

    /// Whether one more request of the active queue may be in flight.
    fn may_dispatch(&self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick) -> bool {
        let q = &self.queues[qi as usize];
        if self.v.must_dispatch_wins && q.must_dispatch {
            return true;
        }
        let drain = |what: &str, n: u32| {
            let s = if n == 1 { "" } else { "s" };
            format!("drains {n} {what} request{s} first")
        };
        if self.in_flight[0] > 0 && self.should_idle(ctx, qi) {
            note_once(ctx, || drain("asynchronous", self.in_flight[0]));
            return false;
        }
        if !q.sync && self.in_flight[1] > 0 {
            note_once(ctx, || drain("synchronous", self.in_flight[1]));
            return false;
        }
        let limit = self.depth_limit(qi, now);
        let limit = limit.min(self.async_ramp(qi, now));
        if q.dispatched >= limit {
            note_once(ctx, || format!("{} in flight: limit {limit}", q.dispatched));
            return false;
        }
        true
    }

    fn depth_limit(&self, qi: Qi, now: Tick) -> u32 {
        let q = &self.queues[qi as usize];
        let idle = q.class == Class::Idle;
        let limit = if idle { 1 } else { (self.p.quantum / 2).max(1) };
        if q.dispatched < limit || idle {
            return limit;
        }
        let alone = q.sync && self.busy_sync_queues == 1;
        let soon = q.slice_new
            || now.saturating_add(self.p.slice_idle.saturating_mul(i64::from(q.dispatched)))
                > q.slice_end;
        if self.busy_queues > 1 && soon && !alone {
            limit
        } else if self.busy_queues == 1 || alone {
            u32::MAX
        } else {
            self.p.quantum
        }
    }

    /// With low_latency, asynchronous depth grows by one per synchronous slice since the last time
    /// a synchronous request was late.
    fn async_ramp(&self, qi: Qi, now: Tick) -> u32 {
        let q = &self.queues[qi as usize];
        if q.sync || !self.p.low_latency {
            return u32::MAX;
        }
        let depth = (now - self.last_delayed_sync) / self.p.slice[1];
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        if depth == 0 && q.dispatched == 0 { 1 } else { depth }
    }
}
