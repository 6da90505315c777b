//! Processes, groups and the life of queues.

use iosched_types::{IoPrio, NO_REQ, PrioClass, Request, TaskId};

use super::expire::Reason;
use super::Bfq;
use super::queue::{Group, NEVER, Process, Queue, QueueId};
use super::rbtree::NIL;
use super::version::V7;
use super::wf2q::ROOT;
use crate::api::{Ctx, QueueFacts};
use crate::ewma::ThinkTime;

/// `io.bfq.weight` of a group that was given none.
const DEFAULT_GROUP_WEIGHT: u32 = 100;

/// Class (0 real time, 1 best effort, 2 idle) and level of a request's process.
fn class_and_level(prio: IoPrio, task: TaskId, facts: &QueueFacts) -> (u8, u8) {
    match prio.class {
        PrioClass::Rt => (0, prio.level.min(7)),
        PrioClass::Be => (1, prio.level.min(7)),
        PrioClass::Idle => (2, 7),
        PrioClass::None => {
            let nice = facts.tasks.get(task as usize).map_or(0, |t| t.nice);
            (1, ((i16::from(nice) + 20) / 5).clamp(0, 7) as u8)
        }
    }
}

impl Bfq {
    /// Makes sure that a process is known.
    pub(super) fn process(&mut self, task: TaskId) -> &mut Process {
        let at = task as usize;
        while self.processes.len() <= at {
            self.processes.push(Process::NEW);
            self.saved.push(None);
        }
        &mut self.processes[at]
    }

    pub(super) fn group(&mut self, g: u32) -> &mut Group {
        // Groups are made before their first queue is.
        self.groups[g as usize].as_mut().expect("a queue's group exists")
    }

    /// Makes sure that a control group and its ancestors exist; unknown numbers and cycles mean the root.
    fn ensure_group(&mut self, g: u32, facts: &QueueFacts) -> u32 {
        let known = |g: u32| (g as usize) < facts.cgroups.len();
        if g == 0 || !known(g) {
            return 0;
        }
        if self.groups.len() < facts.cgroups.len() {
            self.groups.resize_with(facts.cgroups.len(), || None);
        }
        let mut path = Vec::new();
        let mut at = g;
        while at != 0 && known(at) && self.groups[at as usize].is_none() {
            if path.contains(&at) {
                return 0;
            }
            path.push(at);
            at = facts.cgroups[at as usize].parent.unwrap_or(0);
        }
        let mut parent = match self.groups.get(at as usize) {
            Some(Some(group)) => group.set,
            _ => ROOT,
        };
        for g in path.into_iter().rev() {
            let weight = facts.cgroups[g as usize].weight.unwrap_or(DEFAULT_GROUP_WEIGHT);
            let weight = u64::from(weight.clamp(1, 1000));
            parent = self.engine.add_group(parent, weight);
            self.groups[g as usize] = Some(Group::new(parent));
        }
        g
    }

    /// The queue for a request of this process; makes it if there is none. A process that changed its priority keeps
    /// its sync queue. A process that moved to another group gets new queues.
    pub(super) fn queue_for(&mut self, ctx: &mut Ctx<'_>, r: &Request) -> QueueId {
        let group = if self.groups.get(r.cgroup as usize).is_some_and(Option::is_some) {
            r.cgroup
        } else {
            self.ensure_group(r.cgroup, ctx.queue)
        };
        let (task, sync) = (r.task, usize::from(r.is_sync()));
        let p = self.process(task);
        if p.group != group {
            p.group = group;
            self.drop_process_queues(task);
        }
        if self.v.index == V7 && self.process(task).think.last_end == u64::MAX {
            let j = self.j.unsigned_abs();
            self.process(task).think.ended(j);
        }
        if self.process(task).prio != r.prio {
            self.process(task).prio = r.prio;
            self.change_prio(ctx, task, r.prio);
        }
        match self.processes[task as usize].queues[sync] {
            NIL => self.first_queue(ctx, r, group),
            q if sync == 1 => self.split_if_wanted(ctx, r, q),
            q => q,
        }
    }

    fn first_queue(&mut self, ctx: &mut Ctx<'_>, r: &Request, group: u32) -> QueueId {
        if !r.is_sync() {
            let q = self.async_queue(ctx, r, group);
            self.processes[r.task as usize].queues[0] = q;
            return q;
        }
        let q = self.new_sync_queue(ctx, r, group);
        self.stable_merge_at_birth(ctx, r.task, q)
    }

    /// A queue of its own for a process.
    pub(super) fn new_sync_queue(&mut self, ctx: &Ctx<'_>, r: &Request, group: u32) -> QueueId {
        let (class, level) = class_and_level(r.prio, r.task, ctx.queue);
        let q = self.new_queue(group, true, class, level);
        let queue = self.qm(q);
        (queue.owner, queue.named, queue.processes) = (Some(r.task), r.task, 1);
        self.processes[r.task as usize].queues[1] = q;
        q
    }

    fn async_queue(&mut self, ctx: &Ctx<'_>, r: &Request, group: u32) -> QueueId {
        let (class, level) = class_and_level(r.prio, r.task, ctx.queue);
        let slot = if class == 2 { 16 } else { usize::from(class) * 8 + usize::from(level) };
        let known = self.group(group).async_queues[slot];
        if known != NIL {
            return known;
        }
        let q = self.new_queue(group, false, class, level);
        self.qm(q).named = r.task;
        self.qm(q).pins = 1;
        self.group(group).async_queues[slot] = q;
        q
    }

    pub(super) fn new_queue(&mut self, group: u32, sync: bool, class: u8, level: u8) -> QueueId {
        let mut queue = Queue::new(self.now, self.j, sync, class, level);
        self.serial += 1;
        queue.serial = self.serial;
        queue.group = group;
        queue.max_budget = self.max_budget() * 2 / 3;
        if self.v.legacy {
            queue.think = ThinkTime::starting(self.now);
        }
        if !self.v.modern {
            queue.soft_rt_next_start = NEVER;
        }
        let q = match self.free.pop() {
            Some(q) => {
                // The memory of the dead queue's tree and list serves the new one.
                let old = &mut self.queues[q as usize];
                queue.tree = std::mem::take(&mut old.tree);
                queue.woken = std::mem::take(&mut old.woken);
                *old = queue;
                q
            }
            None => {
                self.queues.push(queue);
                (self.queues.len() - 1) as QueueId
            }
        };
        let set = self.group(group).set;
        let weight = self.q(q).original_weight();
        let entity = self.engine.add_queue(set, weight, class, q);
        self.qm(q).entity = entity;
        self.positions.grow(q);
        q
    }

    fn change_prio(&mut self, ctx: &Ctx<'_>, task: TaskId, prio: IoPrio) {
        let (class, level) = class_and_level(prio, task, ctx.queue);
        let [async_q, q] = self.processes[task as usize].queues;
        if async_q != NIL {
            self.processes[task as usize].queues[0] = NIL;
        }
        if q == NIL || (self.q(q).class, self.q(q).level) == (class, level) {
            return;
        }
        if self.q(q).busy {
            self.busy[usize::from(self.q(q).class)] -= 1;
            self.busy[usize::from(class)] += 1;
        }
        let queue = self.qm(q);
        (queue.class, queue.level, queue.weighs_as) = (class, level, level);
        self.apply_raise(q);
    }

    fn drop_process_queues(&mut self, task: TaskId) {
        let queues = std::mem::replace(&mut self.processes[task as usize].queues, [NIL; 2]);
        if queues[1] != NIL {
            self.expect_less(queues[1], NIL);
            self.leave_queue(queues[1]);
        }
        self.drop_stable_target(task);
    }

    /// A process no longer sends its requests to this queue.
    pub(super) fn leave_queue(&mut self, q: QueueId) {
        let modern = self.v.modern;
        let queue = self.qm(q);
        queue.processes = queue.processes.saturating_sub(1);
        // The last process, where no trace has shown anything else.
        let counts = modern || queue.processes == 0;
        if counts && queue.busy && queue.empty() && q != self.in_service {
            // The queue was kept busy for a process that no longer sends anything here. Others may, and it is not asked
            // which of them it was (6.12: traces).
            self.leave_busy(q);
        }
        self.free_if_dead(q);
    }

    /// Nobody waits for a process that exits: the slot of its queue is over, though others may share the queue (6.12:
    /// traces). Nothing is charged, and the budget stays as it was.
    fn end_exited_slot(&mut self, ctx: &mut Ctx<'_>, q: QueueId) {
        if !self.v.exit_ends_slot || q == NIL || q != self.in_service {
            return;
        }
        if self.q(q).wait_request {
            self.stop_waiting(ctx, q);
        }
        ctx.why(|_, facts| format!("slice of {} ends with its process", self.who(q, facts)));
        self.end_slot(q, Reason::Timeout);
    }

    /// A process exits.
    pub(super) fn exit(&mut self, ctx: &mut Ctx<'_>, task: TaskId) {
        if (task as usize) < self.processes.len() {
            let q = self.processes[task as usize].queues[1];
            self.end_exited_slot(ctx, q);
            self.drop_process_queues(task);
            self.processes[task as usize] = Process::NEW;
            self.saved[task as usize] = None;
        }
        if self.queued > 0 {
            ctx.out.run_queue = true;
        }
    }

    /// Frees a queue that no process can reach any more.
    pub(super) fn free_if_dead(&mut self, q: QueueId) {
        let queue = self.q(q);
        if queue.entity == NIL
            || queue.processes + queue.allocated + queue.pins + queue.dispatched > 0
            || queue.busy
            || self.engine.counted(queue.entity)
        {
            return;
        }
        let merged = queue.new_queue != NIL;
        self.burst_lost(q, merged);
        let queue = self.qm(q);
        let (entity, group, target) = (queue.entity, queue.group, queue.new_queue);
        (queue.entity, queue.new_queue) = (NIL, NIL);
        queue.next_rq = NO_REQ;
        self.forget_wakers(q);
        if self.group(group).last_created == q {
            self.group(group).last_created = NIL;
        }
        if self.last_completed == q {
            self.last_completed = NIL;
        }
        self.engine.release(entity);
        self.free.push(q);
        if target != NIL {
            self.unpin(target);
        }
    }

    pub(super) fn unpin(&mut self, q: QueueId) {
        self.qm(q).pins -= 1;
        self.free_if_dead(q);
    }

    /// Frees queues that no longer count in the engine.
    pub(super) fn reap(&mut self) {
        while let Some(e) = self.engine.pop_forgotten() {
            if let super::wf2q::Owner::Queue(q) = self.engine.owner(e)
                && self.q(q).entity == e
            {
                self.free_if_dead(q);
            }
        }
    }
}
