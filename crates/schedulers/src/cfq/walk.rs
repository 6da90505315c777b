//! The CFQ of 2.6.13 to 2.6.21: a walk over priority lists, whole rounds of requests per dispatch
//! call, every write asynchronous.

use iosched_types::{Bio, Flags, IoPrio, Nanos, Op, PrioClass, ReqId, Sector, TaskId};

use crate::api::{Ctx, Dispatch, Idling, MayQueue, MergeKind, Position, Scheduler};
use crate::descriptor::BuildArgs;
use crate::ewma::{SeekMean, ThinkTime};
use crate::tree::PosTree;

use super::core::{SENT, some};
use super::explain::{Cause, Counters};
use super::params::{Params, Tick};
use super::walk_lists::Lists;
use super::walk_queue::{Queue, Task};
use super::{Class, NOQ, Qi, effective_prio};

/// Mean seek distance beyond which a process is seeky: 64 MiB.
pub(super) const SEEKY: u64 = 128 * 1024;
/// Requests with the driver above which the device queues commands.
const HW_TAG_ABOVE: u32 = 4;
/// Mark in a request's second word: it waits in the dispatch list.
pub(super) const IN_DISPATCH: u64 = 1;

/// CFQ of 2.6.18.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) p: Params,
    pub(super) queues: Vec<Queue>,
    pub(super) free: Vec<Qi>,
    pub(super) tasks: Vec<Task>,
    /// The asynchronous queues, for the whole device: one per class and level, in order of creation.
    pub(super) shared: Vec<Qi>,
    pub(super) lists: Lists,
    /// The requests that a dispatch round sent, in sector order, until the driver takes them.
    pub(super) outbox: PosTree,
    /// End of the last request the driver took from the outbox: where sorting starts.
    pub(super) boundary: Sector,
    /// The same place when the outbox was last filled.
    pub(super) sweep_from: Sector,
    /// End of the request at the tail of the outbox when it was last filled: the "head" of the choice rule.
    pub(super) last_sector: Sector,

    pub(super) active: Qi,
    pub(super) active_task: Option<TaskId>,
    pub(super) waiting: u32,
    pub(super) busy_queues: u32,
    pub(super) rq_in_driver: u32,
    pub(super) hw_tag: bool,
    /// Last completion of a request that is not of the idle class.
    pub(super) last_end: Option<Tick>,
    pub(super) idle_timer: Option<Nanos>,
    pub(super) grace_timer: Option<Nanos>,
    pub(super) n: Counters,
}

impl Walk {
    pub(super) fn new(args: &BuildArgs<'_>) -> Walk {
        Walk {
            p: Params::new(args),
            queues: Vec::new(),
            free: Vec::new(),
            tasks: Vec::new(),
            shared: Vec::new(),
            lists: Lists::default(),
            outbox: PosTree::new(),
            boundary: 0,
            sweep_from: 0,
            last_sector: 0,
            active: NOQ,
            active_task: None,
            waiting: 0,
            busy_queues: 0,
            rq_in_driver: 0,
            hw_tag: false,
            last_end: None,
            idle_timer: None,
            grace_timer: None,
            n: Counters::default(),
        }
    }

    pub(super) fn now(&self, ctx: &Ctx<'_>) -> Tick {
        self.p.clock.tick(ctx.now)
    }

    pub(super) fn q(&mut self, qi: Qi) -> &mut Queue {
        &mut self.queues[qi as usize]
    }

    pub(super) fn queue_of(&self, ctx: &Ctx<'_>, req: ReqId) -> Qi {
        (ctx.reqs[req].elv[0] as Qi).wrapping_sub(1)
    }

    fn new_queue(&mut self, task: TaskId, sync: bool, prio: (Class, u8)) -> Qi {
        let qi = self.free.pop().unwrap_or_else(|| {
            self.queues.push(Queue::default());
            self.free.reserve(self.queues.len());
            (self.queues.len() - 1) as Qi
        });
        let q = self.q(qi);
        q.reset();
        (q.owner, q.sync) = (task, sync);
        (q.class, q.level) = prio;
        qi
    }

    pub(super) fn task_mut(&mut self, task: TaskId, now: Tick) -> &mut Task {
        let n = task as usize;
        if n >= self.tasks.len() {
            let fresh = Task {
                queue: NOQ,
                writes: (NOQ, IoPrio::default()),
                think: ThinkTime::default(),
                seek: SeekMean::default(),
                seen: false,
                exited: false,
            };
            self.tasks.resize(n + 1, fresh);
        }
        let task = &mut self.tasks[n];
        if !std::mem::replace(&mut task.seen, true) {
            task.think = ThinkTime::starting(now as u64);
        }
        task
    }

    fn set_up(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let r = &ctx.reqs[req];
        let (task, set, read) = (r.task, r.prio, r.op == Op::Read);
        let prio = effective_prio(set, task, ctx.queue);
        let now = self.now(ctx);
        let record = *self.task_mut(task, now);
        let qi = if !read {
            self.queue_for_writes(task, set, prio)
        } else if record.queue != NOQ {
            record.queue
        } else {
            self.new_queue(task, true, prio)
        };
        if read {
            let record = self.task_mut(task, now);
            (record.queue, record.exited) = (qi, false);
        }
        self.q(qi).allocated += 1;
        ctx.reqs[req].elv[0] = u64::from(qi) + 1;
        ctx.reqs[req].elv[1] = 0;
    }

    /// The queue that takes the writes of a process: the one that it has used, or one that others use, or a new one.
    fn queue_for_writes(&mut self, task: TaskId, set: IoPrio, prio: (Class, u8)) -> Qi {
        let (had, had_for) = self.tasks[task as usize].writes;
        if had != NOQ && had_for == set {
            return had;
        }
        let qi = self.find_shared(set, prio).unwrap_or_else(|| {
            let qi = self.new_queue(task, false, prio);
            self.shared.push(qi);
            qi
        });
        self.tasks[task as usize].writes = (qi, set);
        qi
    }

    /// The shared queue of a priority. A process without one takes the newest queue, whatever its priority: the
    /// kernel looks queues up under 0 then, which matches all.
    fn find_shared(&self, set: IoPrio, prio: (Class, u8)) -> Option<Qi> {
        let any = set.class == PrioClass::None;
        let is = |q: &Queue| any || (q.class, q.level) == prio;
        self.shared.iter().rev().copied().find(|qi| is(&self.queues[*qi as usize]))
    }

    pub(super) fn free_if_unused(&mut self, qi: Qi) {
        let active = self.active;
        let q = self.q(qi);
        if q.live && !q.owned && q.allocated == 0 && active != qi {
            q.live = false;
            self.free.push(qi);
        }
    }
}

impl Scheduler for Walk {
    fn allow_merge(&mut self, ctx: &mut Ctx<'_>, req: ReqId, _bio: &Bio) -> bool {
        // Any process may append to any request that has not been sent.
        ctx.reqs[req].elv[1] == 0
    }

    fn find_front(&mut self, ctx: &mut Ctx<'_>, bio: &Bio) -> Option<ReqId> {
        let qi = if bio.op == Op::Read {
            self.tasks.get(bio.task as usize)?.queue
        } else {
            self.find_shared(bio.prio, effective_prio(bio.prio, bio.task, ctx.queue))?
        };
        self.queues.get(qi as usize)?.sorted.find(bio.end())
    }

    fn merged(&mut self, ctx: &mut Ctx<'_>, req: ReqId, kind: MergeKind, old_sector: Sector) {
        if kind == MergeKind::Front {
            let qi = self.queue_of(ctx, req);
            let sector = ctx.reqs[req].sector;
            let q = self.q(qi);
            if q.sorted.remove(old_sector, req) {
                q.sorted.insert(sector, req);
            }
        }
    }

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, into: ReqId, gone: ReqId) {
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
    }

    fn next_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.queues[self.queue_of(ctx, req) as usize].sorted.next(ctx.reqs[req].sector, req)
    }

    fn prev_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.queues[self.queue_of(ctx, req) as usize].sorted.prev(ctx.reqs[req].sector, req)
    }

    /// A process that CFQ waits for gets one request per slice even from an empty pool.
    fn may_queue(&mut self, _: &mut Ctx<'_>, op: Op, _: Flags, task: TaskId) -> MayQueue {
        let qi = self.tasks.get(task as usize).map_or(NOQ, |t| t.queue);
        if op != Op::Read || qi == NOQ || qi != self.active {
            return MayQueue::May;
        }
        let q = self.q(qi);
        if q.wait_request && !q.must_alloc_slice {
            q.must_alloc_slice = true;
            return MayQueue::Must;
        }
        MayQueue::May
    }

    fn prepare(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.set_up(ctx, req);
    }

    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        if self.queue_of(ctx, req) == NOQ {
            self.set_up(ctx, req);
        }
        self.enqueue(ctx, req, at);
    }

    fn has_work(&self) -> bool {
        self.waiting > 0 || !self.outbox.is_empty()
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _hctx: u16) -> Dispatch {
        if self.outbox.is_empty() {
            self.fill(ctx);
        }
        if let Some(req) = self.pop(ctx) {
            return Dispatch::Request(req);
        }
        match self.idle_timer.or(self.grace_timer) {
            Some(until) if self.waiting > 0 => {
                let for_task = self.idle_timer.and(self.active_task);
                Dispatch::Idle(Idling { until, for_task })
            }
            _ => Dispatch::Empty,
        }
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        if self.outbox.is_empty() && self.waiting > 0 {
            let now = self.now(ctx);
            if self.active != NOQ && self.queues[self.active as usize].is_empty() {
                self.expire(ctx, now, Cause::Dry, false);
            }
            if self.active == NOQ {
                let qi = self.lists.next().or_else(|| self.lists.next_idle())?;
                self.activate(ctx, qi, now);
            }
            let qi = self.active;
            let req = some(self.queues[qi as usize].next)?;
            self.send(ctx, qi, req);
            self.active_task = Some(ctx.reqs[req].task);
        }
        self.pop(ctx)
    }

    fn activated(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if ctx.reqs[req].elv[1] != SENT {
            return;
        }
        self.rq_in_driver += 1;
        self.hw_tag |= self.rq_in_driver > HW_TAG_ABOVE;
    }

    fn requeued(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if ctx.reqs[req].elv[1] == SENT {
            self.rq_in_driver = self.rq_in_driver.saturating_sub(1);
        }
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if ctx.reqs[req].elv[1] == SENT {
            ctx.reqs[req].elv[1] = 0;
            self.complete(ctx, req);
        }
    }

    fn finished(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let qi = self.queue_of(ctx, req);
        if qi != NOQ {
            ctx.reqs[req].elv[0] = 0;
            self.q(qi).allocated -= 1;
            self.free_if_unused(qi);
        }
    }

    fn timer(&mut self, ctx: &mut Ctx<'_>) {
        let due = |t: Option<Nanos>| t.is_some_and(|at| at <= ctx.now);
        let (idle, grace) = (due(self.idle_timer), due(self.grace_timer));
        let left = |t: Option<Nanos>, fired: bool| t.filter(|_| !fired);
        self.set_timers(ctx, left(self.idle_timer, idle), left(self.grace_timer, grace));
        if idle {
            self.idle_timer_fired(ctx);
        }
        if grace {
            ctx.out.run_queue = true;
        }
    }

    fn task_exited(&mut self, ctx: &mut Ctx<'_>, task: TaskId) {
        let Some(record) = self.tasks.get_mut(task as usize) else { return };
        record.exited = true;
        let qi = std::mem::replace(&mut record.queue, NOQ);
        if qi == NOQ {
            return;
        }
        self.q(qi).owned = false;
        if qi == self.active {
            let now = self.now(ctx);
            self.expire(ctx, now, Cause::Exit, false);
            ctx.out.run_queue = true;
        } else {
            self.free_if_unused(qi);
        }
    }

    fn set_tunable(&mut self, _ctx: &mut Ctx<'_>, name: &str, value: i64) {
        self.p.set(name, value);
    }

    fn tunable(&self, name: &str) -> Option<i64> {
        self.p.get(name)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.n.list()
    }
}
