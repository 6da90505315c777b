//! Requests coming in: set-up, insertion, habits of the process, preemption; and leaving a queue.

use iosched_types::{Flags, NO_REQ, Nanos, Op, ReqId, Request, Sector};

use crate::api::{Ctx, Position};

use super::core::{Cfq, some};
use super::explain::Cause;
use super::group::ServiceTree;
use super::params::Tick;
use super::queue::{Place, Queue, Workload};
use super::{Class, NOQ, Qi, effective_prio};

/// A request further away than this, in sectors, counts as a seek on a rotating disk.
const SEEK_THRESHOLD: Sector = 800;
/// Requests below this many sectors count as seeks on an SSD.
const SMALL_ON_SSD: u32 = 64;
/// Sectors from the head within which a request is close.
pub(super) const CLOSE: Sector = 8192;
/// Waiting requests that make a queue deep.
const DEEP: usize = 4;
/// Sectors of a page: a request no larger may be the start of something bigger.
const PAGE_SECTORS: u32 = 8;
/// How far before the first of its tree a preempting queue is put.
const FRONT_MS: i64 = 1000;
/// How far behind the last of the idle tree a queue is put.
const IDLE_DELAY_MS: i64 = 200;

/// Writes that a process waits for once and not again (fsync, journal): no reason to hold the disk.
fn no_idle_hint(r: &Request) -> bool {
    r.op == Op::Write && r.flags.has(Flags::SYNC) && !r.flags.has(Flags::IDLE)
}

impl Cfq {
    /// Gives a request its queue.
    pub(super) fn set_up(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let r = &ctx.reqs[req];
        let (task, sync) = (r.task, r.is_sync());
        let prio = effective_prio(r.prio, task, ctx.queue);
        let group = self.groups.known(r.cgroup);
        let now = self.now(ctx) as u64;
        self.task_mut(task, now);
        let qi = if sync {
            let qi = self.sync_queue(task, group, prio, now);
            self.regroup(ctx, qi, task, group, prio, now)
        } else {
            self.async_queue(task, group, prio)
        };
        self.q(qi).allocated += 1;
        ctx.reqs[req].elv = [u64::from(qi) + 1, 0];
    }

    /// Takes a waiting request in.
    pub(super) fn enqueue(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        let now = self.now(ctx);
        let qi = self.queue_of(ctx, req);
        let r = &ctx.reqs[req];
        let sync = r.is_sync();
        let (sector, urgent) = (r.sector, r.flags.has(Flags::PRIO));
        let prio = effective_prio(r.prio, r.task, ctx.queue);
        let deadline = now + self.p.fifo_expire[usize::from(sync)];
        ctx.reqs[req].fifo_time = deadline as Nanos;

        let q = &mut self.queues[qi as usize];
        if q.sync && !q.coop {
            (q.class, q.level) = prio;
        }
        match at {
            Position::Sort => q.fifo.push_back(ctx.reqs, req),
            Position::Head => q.fifo.push_front(ctx.reqs, req),
        }
        q.sorted.insert(sector, req);
        q.urgent += u32::from(urgent);
        if q.place.is_none() {
            self.make_busy(qi, now);
        }
        let best = self.p.seek.choose(
            ctx.reqs,
            some(self.queues[qi as usize].next),
            Some(req),
            self.last_position,
        );
        self.q(qi).next = best.unwrap_or(NO_REQ);
        self.rq_queued += 1;
        self.observe(ctx, qi, req, now);
        self.update_position(ctx, qi);
        self.react(ctx, qi, req, now);
    }

    /// Think times, seek history and the decision whether this queue is worth idling for.
    fn observe(&mut self, ctx: &mut Ctx<'_>, qi: Qi, req: ReqId, now: Tick) {
        let (cap, group_cap) = (2 * self.p.slice_idle, 2 * self.p.group_idle);
        let (group, sync) = (self.queues[qi as usize].group, self.queues[qi as usize].sync);
        let task = ctx.reqs[req].task;
        if sync {
            self.task_mut(task, now as u64).think.arrival(now as u64, cap as u64);
            if let Some(place) = self.queues[qi as usize].place {
                let tree: &mut ServiceTree = &mut self.groups[group].trees[place.tree];
                tree.think.arrival(now as u64, cap as u64);
            }
        }
        self.groups[group].think.arrival(now as u64, group_cap as u64);

        let r = &ctx.reqs[req];
        let q = &mut self.queues[qi as usize];
        let seek = if ctx.queue.rotational {
            q.last_request_pos > 0 && r.sector.abs_diff(q.last_request_pos) > SEEK_THRESHOLD
        } else {
            r.sectors < SMALL_ON_SSD
        };
        q.seek_history = q.seek_history << 1 | u32::from(seek);
        self.update_idle_window(ctx, qi, req);
        self.q(qi).last_request_pos = ctx.reqs[req].end();
    }

    fn update_idle_window(&mut self, ctx: &Ctx<'_>, qi: Qi, req: ReqId) {
        let task = self.tasks[ctx.reqs[req].task as usize];
        let slice_idle = self.p.slice_idle;
        let q = self.q(qi);
        if !q.sync || q.class == Class::Idle {
            return;
        }
        if q.sorted.len() >= DEEP {
            q.deep = true;
        }
        let hint = q.next != NO_REQ && no_idle_hint(&ctx.reqs[q.next]);
        if hint || task.exited || slice_idle == 0 || (!q.deep && q.seeky()) {
            q.idle_window = false;
        } else if task.think.avg.valid() {
            q.idle_window = task.think.avg.mean <= slice_idle as u64;
        }
    }

    /// Lets the newcomer run if the disk was held for it, or if it preempts.
    fn react(&mut self, ctx: &mut Ctx<'_>, qi: Qi, req: ReqId, now: Tick) {
        if qi == self.active {
            if !self.queues[qi as usize].wait_request {
                return;
            }
            if ctx.reqs[req].sectors > PAGE_SECTORS || self.busy_queues > 1 {
                self.stop_waiting(ctx);
                ctx.out.run_queue = true;
                ctx.why(|r, queue| {
                    format!("idling ended: request of pid {}", queue.pid(r[req].task))
                });
            } else {
                self.q(qi).must_dispatch = true;
            }
        } else if let Some(reason) = self.preempts(ctx, qi, req, now) {
            self.preempt(ctx, qi, now, reason);
            ctx.out.run_queue = true;
        }
    }

    /// Whether the newcomer takes the disk from the active queue, and why.
    fn preempts(&self, ctx: &Ctx<'_>, qi: Qi, req: ReqId, now: Tick) -> Option<&'static str> {
        if self.active == NOQ {
            return None;
        }
        let n = &self.queues[qi as usize];
        let a = &self.queues[self.active as usize];
        if n.class == Class::Idle {
            return None;
        }
        if a.class == Class::Idle {
            return Some("over idle class");
        }
        if a.class == Class::Rt && n.class != Class::Rt {
            return None;
        }
        let spared = self.v.must_dispatch_wins && a.must_dispatch;
        if ctx.reqs[req].is_sync() && !a.sync && !spared {
            return Some("sync over async");
        }
        if n.group != a.group
            && !(self.v.preempt_descendants && self.groups.descends(n.group, a.group))
        {
            return None;
        }
        if a.slice_used(now) {
            return Some("slice used");
        }
        if n.class == Class::Rt && a.class != Class::Rt {
            return Some("real time over best effort");
        }
        self.preempts_among_equals(ctx, (qi, n), (self.active, a), req)
    }

    fn preempts_among_equals(
        &self,
        ctx: &Ctx<'_>,
        (_, n): (Qi, &Queue),
        (active, a): (Qi, &Queue),
        req: ReqId,
    ) -> Option<&'static str> {
        let noidle = Workload::SyncNoIdle;
        let tree = n.place.map_or(0, |p| self.groups[n.group].trees[p.tree].len());
        if self.serving.workload == noidle
            && n.workload() == noidle
            && a.is_empty()
            && (!self.v.noidle_pair_only || tree == 2)
        {
            return Some("sync-noidle, and the active one is dry");
        }
        let r = &ctx.reqs[req];
        if r.flags.has(Flags::PRIO) && a.urgent == 0 {
            return Some("metadata");
        }
        if a.is_empty() && !self.should_idle(ctx, active) {
            return Some("the active one is dry and not worth idling for");
        }
        if !a.wait_request || self.active_task.is_none() {
            return None;
        }
        (r.sector.abs_diff(self.last_position) <= CLOSE).then_some("close to the head")
    }

    fn preempt(&mut self, ctx: &mut Ctx<'_>, qi: Qi, now: Tick, reason: &str) {
        if ctx.out.why.is_some() {
            let by = self.name_in(ctx, qi);
            ctx.why(|_, _| format!("preempted by {by}: {reason}"));
        }
        let old = self.queues[self.active as usize].workload();
        self.expire(ctx, now, Cause::Preempted, true);
        let q = &self.queues[qi as usize];
        let (group, changed) = (q.group, q.workload() != old);
        if changed {
            self.groups[group].saved = None;
        }
        self.file(qi, now, true);
        let q = self.q(qi);
        q.slice_end = 0;
        q.slice_new = true;
    }

    /// Puts a queue on its service tree for the first time since it was empty.
    fn make_busy(&mut self, qi: Qi, now: Tick) {
        self.busy_queues += 1;
        self.busy_sync_queues += u32::from(self.queues[qi as usize].sync);
        self.file(qi, now, false);
    }

    /// Takes a queue off its service tree.
    pub(super) fn make_unbusy(&mut self, qi: Qi) {
        let q = &mut self.queues[qi as usize];
        let (group, sync) = (q.group, q.sync);
        if let Some(place) = q.place.take() {
            self.groups[group].trees[place.tree].remove(place.slot, qi);
            self.groups.queue_removed(group);
            self.busy_queues -= 1;
            self.busy_sync_queues -= u32::from(sync);
        }
    }

    /// (Re)files a queue on the service tree where it belongs now.
    pub(super) fn file(&mut self, qi: Qi, now: Tick, front: bool) {
        let q = &self.queues[qi as usize];
        let (group, tree, old) = (q.group, q.tree(), q.place);
        let nr = i64::from(self.groups[group].nr);
        if let Some(place) = old {
            self.groups[group].trees[place.tree].remove(place.slot, qi);
        }
        let key = self.key(qi, tree, now, nr, front);
        let slot = self.groups[group].trees[tree].insert(key, qi);
        self.q(qi).place = Some(Place { tree, key, slot });
        if old.is_none() {
            self.groups.queue_added(group, self.charged());
        }
    }

    fn key(&mut self, qi: Qi, tree: usize, now: Tick, nr: i64, front: bool) -> Tick {
        let q = &self.queues[qi as usize];
        let st = &self.groups[q.group].trees[tree];
        let key_of = |other: Qi| self.queues[other as usize].place.map(|p| p.key);
        if front {
            return st.first().and_then(key_of).unwrap_or(now) - self.p.clock.ms(FRONT_MS);
        }
        if q.class == Class::Idle {
            return st.last().and_then(key_of).unwrap_or(now) + self.p.clock.ms(IDLE_DELAY_MS);
        }
        let most = self.p.prio_slice(true, 0);
        let offset = (nr - 1) * (most - self.p.prio_slice(q.sync, q.level));
        let resid = std::mem::take(&mut self.q(qi).slice_resid);
        now + offset - resid
    }

    /// A waiting request's start moved down by a front merge.
    pub(super) fn moved(&mut self, ctx: &mut Ctx<'_>, req: ReqId, old_sector: Sector) {
        let qi = self.queue_of(ctx, req);
        let (rule, last) = (self.p.seek, self.last_position);
        let q = self.q(qi);
        if q.sorted.remove(old_sector, req) {
            q.sorted.insert(ctx.reqs[req].sector, req);
            q.next = rule.choose(ctx.reqs, some(q.next), Some(req), last).unwrap_or(NO_REQ);
            self.update_position(ctx, qi);
        }
    }

    /// `gone` joined `into`, which takes over the earlier deadline and place in the FIFO.
    pub(super) fn absorb(&mut self, ctx: &mut Ctx<'_>, into: ReqId, gone: ReqId) {
        let (qi, gone_q) = (self.queue_of(ctx, into), self.queue_of(ctx, gone));
        if qi == gone_q && ctx.reqs[gone].fifo_time < ctx.reqs[into].fifo_time {
            let q = self.q(qi);
            q.fifo.remove(ctx.reqs, into);
            q.fifo.insert_before(ctx.reqs, gone, into);
            ctx.reqs[into].fifo_time = ctx.reqs[gone].fifo_time;
        }
        let was_next = self.queues[gone_q as usize].next == gone;
        self.take_out(ctx, gone_q, gone, was_next);
        if was_next && qi == gone_q {
            self.q(qi).next = into;
        }
        self.update_position(ctx, gone_q);
        if self.queues[gone_q as usize].is_empty() && gone_q != self.active {
            self.make_unbusy(gone_q);
        }
    }

    /// Removes a request from its queue; `anew` finds the next best from its place.
    pub(super) fn take_out(&mut self, ctx: &mut Ctx<'_>, qi: Qi, req: ReqId, anew: bool) {
        let rule = self.p.seek;
        let q = &mut self.queues[qi as usize];
        let r = &ctx.reqs[req];
        let (sector, urgent) = (r.sector, r.flags.has(Flags::PRIO));
        if anew {
            let around = q.sorted.remove_and_neighbours(sector, req);
            let (before, after) = around.unwrap_or_default();
            let after = after.or_else(|| q.sorted.first());
            q.next = rule.choose(ctx.reqs, after, before, sector).unwrap_or(NO_REQ);
        } else {
            q.sorted.remove(sector, req);
        }
        q.fifo.remove(ctx.reqs, req);
        q.urgent -= u32::from(urgent);
        self.rq_queued -= 1;
    }
}
