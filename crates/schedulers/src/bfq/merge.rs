//! Processes that read the same area share a queue; they get their own back when that stops paying.

use iosched_types::{Bio, NO_REQ, ReqId, Request, Sector, TaskId};

use super::Bfq;
use super::queue::{Burst, QueueId, Raise, Saved};
use super::rbtree::NIL;
use super::version::V7;
use crate::api::Ctx;

/// Requests this close to one another belong to one stream.
const CLOSE: u64 = 8192;
/// A queue is not merged later than this after its first request.
const MERGE_LIMIT_MS: i64 = 100;
/// Queues created within this time of one another may be one job's.
const STABLE_WINDOW_MS: i64 = 180;
/// A merge planned at creation happens this much later.
const STABLE_DELAY_MS: i64 = 600;
/// 4.12: a queue raised for longer than this stays alone.
const RAISED_LIMIT_MS: i64 = 100;

impl Bfq {
    /// Sends a request to the queue that its process shares. Merges queues first where they should be merged.
    pub(super) fn redirect(&mut self, ctx: &mut Ctx<'_>, id: ReqId, q: QueueId) -> QueueId {
        if !self.q(q).sync {
            return q;
        }
        let (task, sector) = (ctx.reqs[id].task, ctx.reqs[id].sector);
        let Some(target) = self.partner(ctx, q, task, sector) else { return q };
        self.count_allocated(target);
        self.uncount_allocated(q);
        ctx.reqs[id].elv[0] = u64::from(target) + 1;
        if self.process(task).queues[1] == q {
            self.cooperate(ctx, task, q, target);
        }
        self.qm(q).just_created = false;
        self.free_if_dead(q);
        target
    }

    /// A bio looks for a request to merge with. This look may already show that its process cooperates with another.
    pub(super) fn merge_early(&mut self, ctx: &mut Ctx<'_>, bio: &Bio) {
        self.tick(ctx);
        let Some(q) = self.processes.get(bio.task as usize).map(|p| p.queues[1]) else { return };
        if q == NIL || !bio.is_sync() || !self.q(q).sync {
            return;
        }
        if let Some(target) = self.partner(ctx, q, bio.task, bio.sector) {
            self.cooperate(ctx, bio.task, q, target);
        }
    }

    fn cooperate(&mut self, ctx: &mut Ctx<'_>, task: TaskId, q: QueueId, target: QueueId) {
        ctx.why(|_, facts| {
            format!("{} merged with {}: cooperating", self.who(q, facts), self.who(target, facts))
        });
        self.merge_into(task, q, target);
    }

    /// The queue that should take over.
    fn partner(
        &mut self,
        ctx: &Ctx<'_>,
        q: QueueId,
        task: TaskId,
        sector: Sector,
    ) -> Option<QueueId> {
        let decided = self.q(q).new_queue;
        if decided != NIL {
            return Some(self.end_of_chain(decided));
        }
        if self.v.modern
            && let Some(planned) = self.due_stable_merge(task, q)
        {
            return planned;
        }
        if (self.v.modern && self.flash_with_queueing())
            || self.too_late(q)
            || (!self.v.legacy && self.total_busy() <= 1)
        {
            return None;
        }
        let s = self.in_service;
        let reach = if self.v.modern { self.in_serv_last_pos } else { self.last_position };
        if s != NIL && s != q && sector.abs_diff(reach) <= CLOSE && self.compatible(q, s, true) {
            let joined = self.plan(q, s);
            if joined.is_some() {
                return joined;
            }
        }
        let near = self.near(ctx, q, sector)?;
        self.compatible(q, near, false).then_some(())?;
        self.plan(q, near)
    }

    /// A queue of the group with its next request close to `sector`: the one at which the search ends, or else its
    /// neighbour. Which of the two that is depends on the shape of the tree.
    fn near(&self, ctx: &Ctx<'_>, q: QueueId, sector: u64) -> Option<QueueId> {
        let group = self.groups[self.q(q).group as usize].as_ref()?;
        let (end, other) = self.positions.around(group.positions, sector);
        let close = |n: &QueueId| {
            let next = self.q(*n).next_rq;
            *n != q && next != NO_REQ && ctx.reqs[next].sector.abs_diff(sector) <= CLOSE
        };
        [end, other].into_iter().flatten().find(close)
    }

    pub(super) fn too_late(&self, q: QueueId) -> bool {
        let queue = self.q(q);
        if !self.v.modern && !self.v.legacy {
            let limit = self.c.ms_to_jiffies(RAISED_LIMIT_MS);
            return queue.raised() && self.j > queue.raise.last_start_finish + limit;
        }
        let limit = self.c.ms_to_jiffies(MERGE_LIMIT_MS);
        self.v.modern && queue.service_from_backlogged > 0 && self.j > queue.first_io + limit
    }

    fn compatible(&self, q: QueueId, other: QueueId, in_service: bool) -> bool {
        let (a, b) = (self.q(q), self.q(other));
        // v7 takes the queue in service as it is.
        let seeky = |x| self.seeky(x) && !(self.v.legacy && in_service);
        b.sync
            && a.group == b.group
            && a.class == b.class
            && a.class != 2
            && !seeky(q)
            && !seeky(other)
            && !self.too_late(other)
    }

    /// Remembers that `q` joins `target`, unless one of them has no process left.
    fn plan(&mut self, q: QueueId, target: QueueId) -> Option<QueueId> {
        // A queue that its processes have left, with requests of theirs, leads nowhere, though it was merged.
        if self.v.modern && self.members(target) == 0 {
            return None;
        }
        let target = self.end_of_chain(target);
        if target == q || self.members(target) == 0 || self.members(q) == 0 {
            return None;
        }
        self.qm(target).expected += self.members(q);
        self.qm(q).new_queue = target;
        self.qm(target).pins += 1;
        Some(target)
    }

    /// The processes of a queue: those that send to it, and (6.12: traces) those that its merges will bring.
    pub(super) fn members(&self, q: QueueId) -> u32 {
        let queue = self.q(q);
        if self.v.modern { queue.processes + queue.expected } else { queue.processes }
    }

    /// A process of `q` is expected no longer where `q` leads to, up to `last`: it has come, or has gone elsewhere.
    pub(super) fn expect_less(&mut self, q: QueueId, last: QueueId) {
        let mut at = self.q(q).new_queue;
        while at != NIL {
            let queue = self.qm(at);
            queue.expected = queue.expected.saturating_sub(1);
            if at == last {
                return;
            }
            at = queue.new_queue;
        }
    }

    fn end_of_chain(&self, q: QueueId) -> QueueId {
        let mut at = q;
        while self.q(at).new_queue != NIL {
            at = self.q(at).new_queue;
        }
        at
    }

    /// Makes a process send its requests to `target`.
    fn merge_into(&mut self, task: TaskId, q: QueueId, target: QueueId) {
        self.counts.merges += 1;
        self.save(q);
        self.save(target);
        self.inherit_raise(q, target);
        // The mark goes along, and the queue that is left behind is not worth waiting for.
        if std::mem::take(&mut self.qm(q).io_bound) {
            self.qm(target).io_bound = true;
        }
        self.expect_less(q, target);
        self.processes[task as usize].queues[1] = target;
        self.qm(q).owner = None;
        let into = self.qm(target);
        (into.owner, into.shared) = (None, true);
        into.processes += 1;
        self.leave_queue(q);
    }

    fn inherit_raise(&mut self, q: QueueId, target: QueueId) {
        if self.v.index == V7 {
            self.end_raise(q);
            return self.end_raise(target);
        }
        if !self.q(q).raised() {
            return;
        }
        if !self.q(target).raised() {
            // What the target has read counts on: one that read more than a start takes keeps no interactive raise.
            let service = self.q(target).raise.service;
            self.qm(target).raise = Raise { service, ..self.q(q).raise };
            self.wr_busy += u32::from(self.q(target).busy);
            self.apply_raise(target);
        }
        self.end_raise(q);
    }

    /// Saves the state that the process gets back after a split.
    fn save(&mut self, q: QueueId) {
        let queue = self.q(q);
        let Some(task) = queue.owner else { return };
        // A queue that is merged with its first request would have been raised by it.
        let denied = self.v.modern
            && self.c.low_latency
            && queue.just_created
            && queue.burst != Burst::Large;
        let raise = if denied {
            let (coeff, duration) = (self.c.wr_coeff, self.raise_duration());
            Raise { coeff, duration, ..Raise::none(self.j) }
        } else {
            Raise { duration: self.v7_time_left(&queue.raise), ..queue.raise }
        };
        let saved = Saved {
            weighs_as: queue.weighs_as,
            raise,
            think: queue.think,
            short_think: queue.short_think,
            io_bound: queue.io_bound,
            io_start: queue.io_start,
            idle_total: queue.idle_total,
            burst: queue.burst,
            inject: queue.inject,
        };
        self.saved[task as usize] = Some(saved);
    }

    /// At a slot's end: a shared queue with random requests does not pay.
    pub(super) fn mark_for_split(&mut self, q: QueueId) {
        let seeky = self.seeky(q);
        let queue = self.qm(q);
        queue.split_wanted |= queue.shared && seeky;
    }

    /// Gives a process its own queue back if the shared one is to be split.
    pub(super) fn split_if_wanted(
        &mut self,
        ctx: &mut Ctx<'_>,
        r: &Request,
        q: QueueId,
    ) -> QueueId {
        let p = &self.processes[r.task as usize];
        if !self.q(q).split_wanted || p.stably_merged {
            return q;
        }
        self.counts.splits += 1;
        if self.members(q) == 1 {
            let queue = self.qm(q);
            (queue.shared, queue.split_wanted) = (false, false);
            (queue.owner, queue.named) = (Some(r.task), r.task);
            self.resume(r.task, q);
            self.move_position(ctx, q);
            return q;
        }
        ctx.why(|_, facts| {
            format!("pid {} gets its own queue back: the shared one is seeky", facts.pid(r.task))
        });
        let group = self.q(q).group;
        self.processes[r.task as usize].queues[1] = NIL;
        self.expect_less(q, NIL);
        self.leave_queue(q);
        let own = self.new_sync_queue(ctx, r, group);
        // The process that is left alone with the shared queue does not count as split off.
        self.qm(own).split_time = self.j;
        self.resume(r.task, own);
        own
    }

    fn resume(&mut self, task: TaskId, q: QueueId) {
        let j = self.j;
        let Some(s) = self.saved[task as usize].take() else { return };
        let burst = self.bursts.after_split(q, s.burst);
        let modern = self.v.modern;
        let queue = self.qm(q);
        let was_raised = queue.raised();
        if modern {
            // A queue that stays with one of its processes keeps its level, but takes the process' weight.
            queue.weighs_as = s.weighs_as;
        }
        queue.think = s.think;
        queue.short_think = s.short_think;
        queue.io_bound = s.io_bound;
        queue.io_start = s.io_start;
        queue.idle_total = s.idle_total;
        queue.inject = s.inject;
        queue.burst = burst;
        queue.just_created &= modern;
        queue.raise = s.raise;
        if self.v.index == V7 {
            // The time that was left when the queues merged.
            self.qm(q).raise.last_start_finish = j;
        }
        let r = self.q(q).raise;
        let over = burst == Burst::Large || j > r.last_start_finish + r.duration;
        let falls_back = modern && burst != Burst::Large && self.falls_back(&s.raise);
        if s.raise.coeff > 1 && over {
            if falls_back {
                self.fall_back(q);
            } else {
                self.qm(q).raise.coeff = 1;
            }
        }
        let queue = self.q(q);
        if queue.busy {
            let raised = queue.raised();
            self.wr_busy += u32::from(raised);
            self.wr_busy -= u32::from(was_raised);
        }
        self.apply_raise(q);
    }

    /// A new queue beside one of the same kind created a moment ago: probably one job, one queue is enough.
    /// Flash that queues merges them at once; others plan it for later.
    pub(super) fn stable_merge_at_birth(
        &mut self,
        ctx: &mut Ctx<'_>,
        task: TaskId,
        q: QueueId,
    ) -> QueueId {
        if !self.v.modern {
            return q;
        }
        let g = self.q(q).group;
        let last = self.group(g).last_created;
        if last == NIL || !self.same_kind(last, q) {
            self.group(g).last_created = q;
            return q;
        }
        if !self.flash_with_queueing() {
            self.qm(last).pins += 1;
            self.processes[task as usize].stable_with = last;
            return q;
        }
        let Some(target) = self.plan(q, last) else { return q };
        ctx.why(|_, facts| {
            format!(
                "pid {} merged with {}: created together",
                facts.pid(task),
                self.who(target, facts)
            )
        });
        self.mark_stable(task, target);
        self.merge_into(task, q, target);
        target
    }

    fn same_kind(&self, last: QueueId, new: QueueId) -> bool {
        let (a, b) = (self.q(last), self.q(new));
        (a.class, a.level) == (b.class, b.level)
            && b.creation <= a.creation + self.c.ms_to_jiffies(STABLE_WINDOW_MS)
            && self.j <= a.creation + self.c.ms_to_jiffies(STABLE_DELAY_MS)
    }

    fn mark_stable(&mut self, task: TaskId, target: QueueId) {
        self.processes[task as usize].stably_merged = true;
        if let Some(owner) = self.q(target).owner {
            self.processes[owner as usize].stably_merged = true;
        }
    }

    /// A merge planned at creation is done, or dropped, once the queue is old enough.
    fn due_stable_merge(&mut self, task: TaskId, q: QueueId) -> Option<Option<QueueId>> {
        let target = self.process(task).stable_with;
        let delay = self.c.ms_to_jiffies(STABLE_DELAY_MS);
        let queue = self.q(q);
        if target == NIL || self.j <= queue.split_time.max(queue.creation) + delay
        {
            return None;
        }
        let plausible = self.members(target) > 0 && !self.boosts_without_issues(q);
        let merged = if plausible { self.plan(q, target) } else { None };
        if let Some(target) = merged {
            self.mark_stable(task, target);
        }
        self.drop_stable_target(task);
        Some(merged)
    }

    /// Forgets a planned merge.
    pub(super) fn drop_stable_target(&mut self, task: TaskId) {
        let target = std::mem::replace(&mut self.processes[task as usize].stable_with, NIL);
        if target != NIL {
            self.unpin(target);
        }
    }

    /// First service of a queue: merging is decided soon after it or not at all.
    pub(super) fn note_first_service(&mut self, q: QueueId) {
        let j = self.j;
        let queue = self.qm(q);
        if queue.service_from_backlogged == 0 {
            queue.first_io = j;
        }
    }
}
