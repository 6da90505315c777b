//! The service-tree CFQ of 2.6.33 to 4.20: its state, and the hooks.

use iosched_types::{Bio, Flags, NO_REQ, Nanos, Op, ReqId, Sector, TaskId};

use crate::api::{Ctx, Dispatch, MayQueue, MergeKind, Position, Scheduler};
use crate::descriptor::BuildArgs;
use crate::tree::PosTree;

use super::explain::Counters;
use super::group::Groups;
use super::params::{Params, Tick, VERSIONS, Version};
use super::pool::Task;
use super::queue::{Queue, Workload};
use super::{Class, NOQ, Qi, effective_prio};

/// Mark in a request's second word: this scheduler sent it. Others (the data of a flush sequence) get a
/// queue when they are set up but never enter it.
pub(super) const SENT: u64 = 2;

/// The owner of the disk now: group, class, workload type, and until when that workload goes on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub(super) group: u32,
    pub(super) class: Class,
    pub(super) workload: Workload,
    pub(super) until: Tick,
}

/// The scheduler's own guess whether the device queues commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct HwTag {
    /// -1 unknown, 0 no, 1 yes (for ever).
    pub(super) value: i8,
    pub(super) est_depth: u32,
    pub(super) samples: u32,
}

/// CFQ with service trees.
#[derive(Debug)]
pub(super) struct Cfq {
    pub(super) p: Params,
    pub(super) v: &'static Version,
    pub(super) queues: Vec<Queue>,
    pub(super) free: Vec<Qi>,
    pub(super) tasks: Vec<Task>,
    pub(super) groups: Groups,
    /// Synchronous queues by the position of their next request, by level: shows which queues are close to one another.
    pub(super) positions: [PosTree; 8],

    pub(super) active: Qi,
    /// Process of the last request dispatched from the active queue.
    pub(super) active_task: Option<TaskId>,
    pub(super) serving: Serving,

    pub(super) rq_queued: u32,
    pub(super) rq_in_driver: u32,
    /// Dispatched and not completed, by sync.
    pub(super) in_flight: [u32; 2],
    pub(super) busy_queues: u32,
    pub(super) busy_sync_queues: u32,
    pub(super) hw_tag: HwTag,
    /// Where the last request that the driver started ends.
    pub(super) last_position: Sector,
    pub(super) last_delayed_sync: Tick,
    /// The idle timer.
    pub(super) timer_at: Option<Nanos>,
    pub(super) n: Counters,
}

impl Cfq {
    pub(super) fn new(args: &BuildArgs<'_>) -> Cfq {
        let v = &VERSIONS[usize::from(args.generation.clamp(1, 2)) - 1];
        let p = Params::new(args);
        debug_assert_eq!(v.ns, p.clock.jiffy() > 1);
        let clock = p.clock;
        Cfq {
            groups: Groups::new(args.queue, clock),
            last_delayed_sync: -clock.ms(1000),
            p,
            v,
            queues: Vec::new(),
            free: Vec::new(),
            tasks: Vec::new(),
            positions: Default::default(),
            active: NOQ,
            active_task: None,
            serving: Serving { group: 0, class: Class::Be, workload: Workload::Async, until: -1 },
            rq_queued: 0,
            rq_in_driver: 0,
            in_flight: [0; 2],
            busy_queues: 0,
            busy_sync_queues: 0,
            hw_tag: HwTag { value: -1, est_depth: 0, samples: 0 },
            last_position: 0,
            timer_at: None,
            n: Counters::default(),
        }
    }

    pub(super) fn now(&self, ctx: &Ctx<'_>) -> Tick {
        self.p.clock.tick(ctx.now)
    }

    pub(super) fn q(&mut self, qi: Qi) -> &mut Queue {
        &mut self.queues[qi as usize]
    }

    /// The queue a request was given when it was set up.
    pub(super) fn queue_of(&self, ctx: &Ctx<'_>, req: ReqId) -> Qi {
        (ctx.reqs[req].elv[0] as Qi).wrapping_sub(1)
    }

    /// Whether the device is an SSD that queues commands, as far as CFQ knows. Waiting gains nothing there.
    pub(super) fn fast_queueing(&self, ctx: &Ctx<'_>) -> bool {
        !ctx.queue.rotational && self.hw_tag.value != 0
    }

    /// The queue a process would use for such a bio, if there is one.
    fn existing_queue(&self, ctx: &Ctx<'_>, bio: &Bio) -> Option<Qi> {
        if bio.is_sync() {
            let q = self.tasks.get(bio.task as usize)?.queue;
            return (q != NOQ).then_some(q);
        }
        let group = if self.v.async_per_group { self.groups.known(bio.cgroup) } else { 0 };
        let (class, level) = effective_prio(bio.prio, bio.task, ctx.queue);
        let q = self.groups[group].async_queues[super::async_slot(class, level)];
        (q != NOQ).then_some(q)
    }
}

impl Scheduler for Cfq {
    fn allow_merge(&mut self, ctx: &mut Ctx<'_>, req: ReqId, bio: &Bio) -> bool {
        if bio.is_sync() && !ctx.reqs[req].is_sync() {
            return false;
        }
        self.existing_queue(ctx, bio) == Some(self.queue_of(ctx, req))
    }

    fn find_front(&mut self, ctx: &mut Ctx<'_>, bio: &Bio) -> Option<ReqId> {
        let qi = self.existing_queue(ctx, bio)?;
        self.queues[qi as usize].sorted.find(bio.end())
    }

    fn merged(&mut self, ctx: &mut Ctx<'_>, req: ReqId, kind: MergeKind, old_sector: Sector) {
        if kind == MergeKind::Front {
            self.moved(ctx, req, old_sector);
        }
    }

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, into: ReqId, gone: ReqId) {
        self.absorb(ctx, into, gone);
    }

    fn next_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.queues[self.queue_of(ctx, req) as usize].sorted.next(ctx.reqs[req].sector, req)
    }

    fn prev_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.queues[self.queue_of(ctx, req) as usize].sorted.prev(ctx.reqs[req].sector, req)
    }

    /// A process that CFQ waits for gets one request per slice even from an empty pool.
    fn may_queue(&mut self, _: &mut Ctx<'_>, op: Op, flags: Flags, task: TaskId) -> MayQueue {
        let sync = op == Op::Read || flags.has(Flags::SYNC);
        let qi = self.tasks.get(task as usize).map_or(NOQ, |t| t.queue);
        if !sync || qi == NOQ {
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
        self.rq_queued > 0
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _hctx: u16) -> Dispatch {
        self.dispatch_one(ctx)
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        self.dispatch_forced(ctx)
    }

    fn activated(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if ctx.reqs[req].elv[1] != SENT {
            return;
        }
        self.rq_in_driver += 1;
        self.last_position = ctx.reqs[req].end();
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
        if qi == NOQ {
            return;
        }
        ctx.reqs[req].elv[0] = 0;
        self.q(qi).allocated -= 1;
        self.free_if_unused(qi);
    }

    fn timer(&mut self, ctx: &mut Ctx<'_>) {
        self.idle_timer(ctx);
    }

    fn task_exited(&mut self, ctx: &mut Ctx<'_>, task: TaskId) {
        self.exit(ctx, task);
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

/// "No request" as an option.
pub(super) fn some(id: ReqId) -> Option<ReqId> {
    (id != NO_REQ).then_some(id)
}
