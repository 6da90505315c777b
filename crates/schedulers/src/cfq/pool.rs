//! Queues by index, processes by task: slots are reused, nothing is allocated in steady state.

use iosched_types::TaskId;

use crate::api::Ctx;
use crate::ewma::ThinkTime;

use super::core::Cfq;
use super::queue::Queue;
use super::{ASYNC_SLOTS, Class, NOQ, Qi, async_slot};

/// What CFQ knows about a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    /// The queue for synchronous requests.
    pub(super) queue: Qi,
    pub(super) think: ThinkTime,
    /// Whether it has been seen. Its clock starts then.
    pub(super) seen: bool,
    pub(super) exited: bool,
}

impl Cfq {
    /// The record of a process, made on first sight.
    pub(super) fn task_mut(&mut self, task: TaskId, now: u64) -> &mut Task {
        let n = task as usize;
        if n >= self.tasks.len() {
            let fresh =
                Task { queue: NOQ, think: ThinkTime::default(), seen: false, exited: false };
            self.tasks.resize(n + 1, fresh);
        }
        let task = &mut self.tasks[n];
        if !std::mem::replace(&mut task.seen, true) {
            task.think = ThinkTime::starting(now);
        }
        task
    }

    fn new_queue(&mut self) -> Qi {
        let qi = self.free.pop().unwrap_or_else(|| {
            self.queues.push(Queue::default());
            self.free.reserve(self.queues.len());
            (self.queues.len() - 1) as Qi
        });
        self.queues[qi as usize].reset();
        qi
    }

    /// The queue of a process for its synchronous requests; made when it has none or moved to another group.
    pub(super) fn sync_queue(
        &mut self,
        task: TaskId,
        group: u32,
        prio: (Class, u8),
        now: u64,
    ) -> Qi {
        let had = self.task_mut(task, now).queue;
        if had != NOQ {
            if self.queues[had as usize].group == group {
                return had;
            }
            self.leave(task, had);
        }
        let qi = self.new_queue();
        let q = &mut self.queues[qi as usize];
        (q.owner, q.group, q.sync, q.tasks) = (task, group, true, 1);
        (q.class, q.level) = prio;
        q.idle_window = prio.0 != Class::Idle;
        self.tasks[task as usize].queue = qi;
        self.tasks[task as usize].exited = false;
        qi
    }

    /// The shared queue for asynchronous requests of a class and level; it lives as long as the scheduler.
    pub(super) fn async_queue(&mut self, task: TaskId, group: u32, prio: (Class, u8)) -> Qi {
        // Before groups had their own, the device's asynchronous queues were accounted to the root.
        let group = if self.v.async_per_group { group } else { 0 };
        let slot = async_slot(prio.0, prio.1);
        debug_assert!(slot < ASYNC_SLOTS);
        let had = self.groups[group].async_queues[slot];
        if had != NOQ {
            return had;
        }
        let qi = self.new_queue();
        let q = &mut self.queues[qi as usize];
        // The group itself is the one "process" that never leaves.
        (q.owner, q.group, q.sync, q.tasks) = (task, group, false, 1);
        (q.class, q.level) = prio;
        self.groups[group].async_queues[slot] = qi;
        qi
    }

    /// A process stops using a queue.
    pub(super) fn leave(&mut self, task: TaskId, qi: Qi) {
        self.tasks[task as usize].queue = NOQ;
        let q = &mut self.queues[qi as usize];
        q.tasks -= 1;
        let mut target = q.merge_into;
        while target != NOQ {
            let t = &mut self.queues[target as usize];
            t.promised -= 1;
            target = t.merge_into;
        }
        self.free_if_unused(qi);
    }

    /// Frees a queue's slot once nothing refers to it.
    pub(super) fn free_if_unused(&mut self, qi: Qi) {
        let mut qi = qi;
        loop {
            let q = &mut self.queues[qi as usize];
            let used = q.tasks > 0
                || q.allocated > 0
                || q.links_in > 0
                || q.place.is_some()
                || self.active == qi;
            if used || !q.live {
                return;
            }
            q.live = false;
            self.free.push(qi);
            let target = std::mem::replace(&mut q.merge_into, NOQ);
            if target == NOQ {
                return;
            }
            self.queues[target as usize].links_in -= 1;
            qi = target;
        }
    }

    /// A process exited. CFQ no longer waits for its queue.
    pub(super) fn exit(&mut self, ctx: &mut Ctx<'_>, task: TaskId) {
        let Some(record) = self.tasks.get_mut(task as usize) else { return };
        record.exited = true;
        let qi = record.queue;
        if qi == NOQ {
            return;
        }
        if qi == self.active {
            let now = self.now(ctx);
            self.expire(ctx, now, super::explain::Cause::Exit, false);
            ctx.out.run_queue = true;
        }
        self.leave(task, qi);
    }
}
