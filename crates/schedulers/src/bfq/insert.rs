//! What an arriving request changes.

use iosched_types::{NO_REQ, ReqId, Request};

use super::queue::QueueId;
use super::rbtree::NIL;
use super::version::{CURRENT, V7};
use super::{Bfq, QUEUED};
use crate::api::Ctx;
use iosched_types::units::MS;

/// A request this far from the one before is a seek.
const SEEK: u64 = 800;
/// On flash, small requests only: a large one costs the same anywhere.
const SMALL_ON_FLASH: u32 = 64;
/// v7: a mean seek distance above this makes a queue seeky.
const V7_SEEKY: u64 = 8192;
/// A lone request below this does not end an idle wait at once.
const SMALL: u32 = 32;
/// Arrivals in time after which a queue counts as I/O-bound again (before 5.0).
const IN_TIME_ARRIVALS: u32 = 120;
/// Window over which the share of idle time is taken.
const IO_WINDOW: u64 = 200 * MS;

impl Bfq {
    /// Gives a request its queue.
    pub(super) fn set_up(&mut self, ctx: &mut Ctx<'_>, id: ReqId) -> QueueId {
        if ctx.reqs[id].elv[0] != 0 {
            return Self::queue_of(&ctx.reqs[id]);
        }
        let r = ctx.reqs[id].clone();
        let q = self.queue_for(ctx, &r);
        if self.q(q).just_created {
            self.watch_burst(ctx, q);
        }
        self.count_allocated(q);
        ctx.reqs[id].elv[0] = u64::from(q) + 1;
        q
    }

    /// Takes a request into its process' queue.
    pub(super) fn insert_sorted(&mut self, ctx: &mut Ctx<'_>, id: ReqId) {
        let q = self.set_up(ctx, id);
        let q = self.redirect(ctx, id, q);
        let r = ctx.reqs[id].clone();
        if self.v.index == V7 {
            self.add_request(ctx, q, id, &r);
            self.v7_note_think_time(&r);
            self.note_seek(q, &r);
            self.note_idle_window(q, &r);
        } else {
            self.note_think_time(q);
            if self.v.index == CURRENT {
                self.note_short_think(q);
                self.note_seek(q, &r);
                self.doubt_soft_rt(ctx, q);
            } else {
                self.note_seek(q, &r);
                self.note_idle_window(q, &r);
            }
            self.add_request(ctx, q, id, &r);
        }
        let expire = self.c.fifo_expire[usize::from(r.is_sync())];
        ctx.reqs[id].fifo_time = self.now + expire;
        ctx.reqs[id].elv[1] = QUEUED;
        self.qm(q).fifo.push_back(ctx.reqs, id);
        self.qm(q).just_created = false;
        self.qm(q).last_request_pos = r.end();
        self.end_wait(ctx, q, &r);
        self.reap();
    }

    fn note_think_time(&mut self, q: QueueId) {
        let (now, cap) = (self.now, 2 * self.c.slice_idle);
        let queue = self.qm(q);
        if queue.dispatched > 0 || queue.busy {
            return;
        }
        if queue.think.last_end == u64::MAX {
            // No request of the queue ever ended: counts as infinitely long ago.
            queue.think.avg.add(cap, crate::ewma::Rounding::Half);
        } else {
            queue.think.arrival(now, cap);
        }
    }

    fn note_short_think(&mut self, q: QueueId) {
        let queue = self.q(q);
        if !queue.sync || queue.class == 2 || self.c.slice_idle == 0 {
            return;
        }
        if self.j < queue.split_time + self.c.wr_min_idle {
            return;
        }
        let long = queue.processes == 0 || queue.think.avg.trusted_above(self.c.slice_idle / 2);
        if queue.short_think == long {
            self.qm(q).short_think = !long;
            self.reset_injection(q);
        }
    }

    /// Before 5.0: whether the queue is worth waiting for at all.
    fn note_idle_window(&mut self, q: QueueId, r: &Request) {
        let queue = self.q(q);
        if !queue.sync || queue.class == 2 {
            return;
        }
        let seeky = self.seeky(q);
        if seeky && self.engine.service(queue.entity) <= self.max_budget() / 8 {
            return;
        }
        let raised = queue.raised();
        let (think, slow) = if self.v.index == V7 {
            let think = self.processes[r.task as usize].think.avg;
            (think, think.trusted_above(self.c.slice_idle_jiffies().unsigned_abs()))
        } else {
            (queue.think.avg, queue.think.avg.trusted_above(self.c.slice_idle))
        };
        let no = queue.processes == 0
            || self.c.slice_idle == 0
            || (!self.hw_known_absent() && seeky && !raised)
            || (slow && !raised);
        if no || think.valid() {
            self.qm(q).short_think = !no;
        }
    }

    /// Whether `r` is far from where the last one ended.
    pub(super) fn is_seek(&self, last: u64, r: &Request) -> bool {
        let distance = if last == 0 { 0 } else { r.sector.abs_diff(last) };
        distance > SEEK && (self.rotational || r.sectors < SMALL_ON_FLASH)
    }

    fn note_seek(&mut self, q: QueueId, r: &Request) {
        if self.v.legacy {
            let seeks = &mut self.qm(q).seeks;
            if seeks.avg.samples == 0 {
                // The first request of a queue is no seek.
                seeks.last_end = r.sector;
            }
            seeks.arrival(r.sector, r.end());
            return;
        }
        let seek = self.is_seek(self.q(q).last_request_pos, r);
        let queue = self.qm(q);
        queue.seek_history = queue.seek_history << 1 | u32::from(seek);
    }

    pub(super) fn seeky(&self, q: QueueId) -> bool {
        let queue = self.q(q);
        if self.v.legacy {
            return queue.seeks.avg.mean > V7_SEEKY;
        }
        queue.seek_history.count_ones() > self.v.seeky_above
    }

    pub(super) fn totally_seeky(&self, q: QueueId) -> bool {
        self.v.strict_softrt && self.q(q).seek_history == u32::MAX
    }

    fn add_request(&mut self, ctx: &mut Ctx<'_>, q: QueueId, id: ReqId, r: &Request) {
        self.queued += 1;
        if self.v.modern && self.q(q).sync {
            if self.q(q).allocated <= 1 {
                self.watch_injection(ctx, q);
            }
            self.note_io_intensity(ctx, q);
        }
        let (old, last, seek) = (self.q(q).next_rq, self.last_position, self.c.seek);
        self.qm(q).tree.insert(r.sector, id);
        let next = seek.choose(ctx.reqs, (old != NO_REQ).then_some(old), Some(id), last);
        self.qm(q).next_rq = next.unwrap_or(id);
        if self.q(q).next_rq != old {
            self.move_position(ctx, q);
        }
        let was_raised = self.q(q).raised();
        let mut interactive = false;
        if self.q(q).busy {
            if !r.is_sync() {
                self.raise_async(ctx, q);
            }
            if self.q(q).next_rq != old {
                self.next_changed(ctx, q);
            }
        } else {
            interactive = self.become_busy(ctx, q, r);
        }
        if self.c.low_latency && (!was_raised || !self.q(q).raised() || interactive) {
            self.qm(q).raise.last_start_finish = self.j;
        }
    }

    /// Whether the queue keeps the device busy for four fifths of the time.
    ///
    /// For a new queue, BFQ assumes that its last request ended one nanosecond after the queue was made. The first
    /// request comes later than that, except where the CPU takes no time. There the idle time is negative and the sums
    /// wrap, so the queue does not count as busy until it has been idle, even for one nanosecond.
    fn note_io_intensity(&mut self, ctx: &Ctx<'_>, q: QueueId) {
        let (now, at_once) = (self.now, ctx.queue.cpu_takes_no_time);
        let queue = self.qm(q);
        let total = now - queue.io_start;
        if queue.empty() && queue.dispatched == 0 {
            let idle = match queue.think.last_end {
                u64::MAX => total.wrapping_sub(u64::from(at_once)),
                ended => (now - ended).max(u64::from(at_once)),
            };
            queue.idle_total = queue.idle_total.wrapping_add(idle);
        }
        if !queue.just_created {
            queue.io_bound = queue.idle_total.wrapping_mul(5) <= total;
        }
        if total > IO_WINDOW {
            queue.io_start = now - total / 2;
            queue.idle_total /= 2;
        }
    }

    /// Before 5.0: a queue that always comes back in time is I/O-bound again.
    pub(super) fn count_in_time(&mut self, q: QueueId, in_time: bool) {
        if self.v.modern || self.q(q).io_bound {
            return;
        }
        let queue = self.qm(q);
        queue.within_timer = if in_time { queue.within_timer + 1 } else { 0 };
        queue.io_bound = queue.within_timer >= IN_TIME_ARRIVALS;
    }

    /// A waiting queue has another next request. Does it fit the budget?
    pub(super) fn next_changed(&mut self, ctx: &Ctx<'_>, q: QueueId) {
        let queue = self.q(q);
        if q == self.in_service || queue.next_rq == NO_REQ || !queue.busy {
            return;
        }
        let e = queue.entity;
        let charge = self.charge_of(&ctx.reqs[queue.next_rq], q);
        let budget = queue.max_budget.max(charge).max(self.engine.service(e));
        if self.engine.budget(e) != budget {
            self.engine.reposition(e, budget);
        }
    }

    /// Puts the queue at the position of its next request, for the search for close ones.
    pub(super) fn move_position(&mut self, ctx: &Ctx<'_>, q: QueueId) {
        let queue = self.q(q);
        let (g, next) = (queue.group, queue.next_rq);
        let late = self.v.modern && self.too_late(q);
        let wanted = queue.sync && next != NO_REQ && queue.class != 2 && !late;
        let group = self.groups[g as usize].as_mut().expect("a queue's group exists");
        if self.queues[q as usize].in_pos_tree {
            self.positions.remove(&mut group.positions, q);
        }
        let taken = |sector| {
            let (end, _) = self.positions.around(group.positions, sector);
            end.is_some_and(|n| self.positions.key(n) == sector)
        };
        // A place belongs to the queue that came there first.
        let wanted = wanted && !taken(ctx.reqs[next].sector);
        if wanted {
            self.positions.insert(&mut group.positions, q, ctx.reqs[next].sector, 0);
        }
        self.qm(q).in_pos_tree = wanted;
    }

    /// The queue for which the device was kept idle has a request again.
    fn end_wait(&mut self, ctx: &mut Ctx<'_>, q: QueueId, r: &Request) {
        if q != self.in_service || !self.q(q).wait_request {
            return;
        }
        let timed_out = self.j >= self.q(q).budget_timeout;
        let small = self.q(q).tree.len() == 1 && r.sectors < SMALL;
        let may_grow = !self.v.modern || self.boosts_without_issues(q);
        if small && may_grow && !timed_out {
            return;
        }
        self.stop_waiting(ctx, q);
        if timed_out {
            self.expire(ctx, q, false, super::expire::Reason::Timeout);
        }
    }

    /// Ends the wait for a request of the queue in service.
    pub(super) fn stop_waiting(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        self.qm(q).wait_request = false;
        self.timer_at = None;
        ctx.cancel_timer();
    }

    /// Removes a request from its queue and picks the queue's next one.
    pub(super) fn take_out(&mut self, ctx: &mut Ctx<'_>, id: ReqId) {
        let q = Self::queue_of(&ctx.reqs[id]);
        let sector = ctx.reqs[id].sector;
        let was_next = self.q(q).next_rq == id;
        if was_next {
            let next = self.successor(ctx, q, id);
            self.qm(q).next_rq = next;
        }
        self.qm(q).fifo.remove(ctx.reqs, id);
        self.qm(q).tree.remove(sector, id);
        ctx.reqs[id].elv[1] &= !QUEUED;
        self.queued -= 1;
        if was_next {
            self.move_position(ctx, q);
            self.next_changed(ctx, q);
        }
        if self.q(q).empty() && self.q(q).busy && q != self.in_service {
            self.leave_busy(q);
            let e = self.q(q).entity;
            self.engine.set_budget(e, 0);
            self.engine.set_service(e, 0);
        }
    }

    /// The request that follows one that leaves: the oldest of the queue if that is overdue (looked for once a slot),
    /// otherwise the better of its neighbours.
    fn successor(&mut self, ctx: &mut Ctx<'_>, q: QueueId, id: ReqId) -> ReqId {
        if let Some(oldest) = self.overdue(ctx, q, id) {
            return oldest;
        }
        let (tree, sector) = (&self.q(q).tree, ctx.reqs[id].sector);
        let next = tree.next(sector, id).or_else(|| tree.first().filter(|f| *f != id));
        let prev = tree.prev(sector, id);
        self.c.seek.choose(ctx.reqs, next, prev, sector).unwrap_or(NO_REQ)
    }

    /// Mainline looks at the deadline while it takes out the first request of a slot, and applies it to the second.
    fn overdue(&mut self, ctx: &mut Ctx<'_>, q: QueueId, leaves: ReqId) -> Option<ReqId> {
        if self.v.legacy || std::mem::replace(&mut self.qm(q).fifo_checked, true) {
            return None;
        }
        let oldest = self.q(q).fifo.head().filter(|o| *o != leaves)?;
        let late = self.now.checked_sub(ctx.reqs[oldest].fifo_time)?;
        ctx.why(|_, _| format!("oldest is next: its deadline passed {} ago", super::ms(late)));
        Some(oldest)
    }

    /// A request belongs to this queue.
    pub(super) fn count_allocated(&mut self, q: QueueId) {
        let queue = self.qm(q);
        queue.allocated += 1;
        let e = queue.entity;
        self.engine.allocate(e);
    }

    /// A request no longer belongs to this queue.
    pub(super) fn uncount_allocated(&mut self, q: QueueId) {
        let queue = self.qm(q);
        queue.allocated = queue.allocated.saturating_sub(1);
        let e = queue.entity;
        self.engine.unallocate(e);
    }

    /// A queue that has only a process reference left may be gone after this.
    pub(super) fn request_freed(&mut self, q: QueueId) {
        self.uncount_allocated(q);
        if q != NIL && self.q(q).allocated == 0 {
            self.free_if_dead(q);
        }
    }
}
