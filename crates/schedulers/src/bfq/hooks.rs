//! The scheduler interface, hook by hook.

use iosched_types::{Bio, Flags, Op, ReqId, Sector, TaskId};

use super::queue::{Process, QueueId};
use super::rbtree::NIL;
use super::{AT_HEAD, Bfq, NO_SHARE, QUEUED};
use crate::api::{Ctx, Dispatch, Hooks, MayQueue, MergeKind, Position, QueueFacts, Scheduler};

impl Bfq {
    /// The queue in which a bio would end up, if it exists already.
    fn bio_queue(&self, bio: &Bio) -> Option<QueueId> {
        let p: &Process = self.processes.get(bio.task as usize)?;
        let mut q = p.queues[usize::from(bio.is_sync())];
        while q != NIL && self.q(q).new_queue != NIL {
            q = self.q(q).new_queue;
        }
        (q != NIL).then_some(q)
    }

    /// The share of the requests that the queue of a process holds already, if it has no more.
    fn over_limit(&self, task: TaskId, sync: bool, limit: u32) -> Option<u64> {
        let q = self.processes.get(task as usize)?.queues[usize::from(sync)];
        if q == NIL { None } else { self.engine.over_limit(self.q(q).entity, limit) }
    }

    /// How many tags a write may take; fewer while something is weight-raised.
    fn share_of_tags(&self, queue: &QueueFacts, sync: bool) -> u32 {
        let (of, unit) = (queue.async_in_force, queue.limit_unit);
        let share = match (self.v.queue_limits, self.wr_busy > 0, sync) {
            (true, false, false) => of * 2 / 3,
            (true, false, true) => of,
            (true, true, false) => of / 4,
            (true, true, true) => of / 2,
            (false, false, false) => unit / 2,
            (false, false, true) => unit * 3 / 4,
            (false, true, false) => unit * 3 / 16,
            (false, true, true) => unit * 6 / 16,
        };
        share.max(1)
    }

    fn requeue_at_head(&mut self, ctx: &mut Ctx<'_>, id: ReqId) {
        ctx.reqs[id].elv[1] = AT_HEAD;
        self.head.push_front(ctx.reqs, id);
    }
}

impl Scheduler for Bfq {
    fn hooks(&self) -> Hooks {
        Hooks { early_merge: true, arrives: self.v.modern, ..Hooks::ALL }
    }

    fn allow_merge(&mut self, ctx: &mut Ctx<'_>, req: ReqId, bio: &Bio) -> bool {
        let r = &ctx.reqs[req];
        if bio.is_sync() && !r.is_sync() {
            return false;
        }
        let owner = (r.elv[0] != 0).then(|| Self::queue_of(r));
        self.merge_early(ctx, bio);
        owner.is_some() && owner == self.bio_queue(bio)
    }

    fn find_front(&mut self, _ctx: &mut Ctx<'_>, bio: &Bio) -> Option<ReqId> {
        self.q(self.bio_queue(bio)?).tree.find(bio.end())
    }

    fn merged(&mut self, ctx: &mut Ctx<'_>, req: ReqId, kind: MergeKind, old_sector: Sector) {
        if kind == MergeKind::Back || ctx.reqs[req].elv[1] & QUEUED == 0 {
            return;
        }
        self.tick(ctx);
        let q = Self::queue_of(&ctx.reqs[req]);
        let (last, seek, old) = (self.last_position, self.c.seek, self.q(q).next_rq);
        let sector = ctx.reqs[req].sector;
        self.qm(q).tree.remove(old_sector, req);
        self.qm(q).tree.insert(sector, req);
        let next = seek.choose(ctx.reqs, Some(old), Some(req), last).unwrap_or(req);
        self.qm(q).next_rq = next;
        if next == req || next != old {
            self.move_position(ctx, q);
            self.next_changed(ctx, q);
        }
    }

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, into: ReqId, gone: ReqId) {
        self.tick(ctx);
        if ctx.reqs[gone].elv[1] & AT_HEAD != 0 {
            ctx.reqs[gone].elv[1] = 0;
            return self.head.remove(ctx.reqs, gone);
        }
        let (q, from) = (Self::queue_of(&ctx.reqs[into]), Self::queue_of(&ctx.reqs[gone]));
        let both = ctx.reqs[into].elv[1] & ctx.reqs[gone].elv[1] & QUEUED != 0;
        if both && q == from {
            if ctx.reqs[gone].fifo_time < ctx.reqs[into].fifo_time {
                let fifo = &mut self.qm(q).fifo;
                fifo.remove(ctx.reqs, into);
                fifo.insert_before(ctx.reqs, gone, into);
                ctx.reqs[into].fifo_time = ctx.reqs[gone].fifo_time;
            }
            if self.q(q).next_rq == gone {
                self.qm(q).next_rq = into;
            }
        }
        self.take_out(ctx, gone);
        self.move_position(ctx, q);
        self.reap();
    }

    fn next_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        let r = &ctx.reqs[req];
        (r.elv[1] & QUEUED != 0).then(|| self.q(Self::queue_of(r)).tree.next(r.sector, req))?
    }

    fn prev_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        let r = &ctx.reqs[req];
        (r.elv[1] & QUEUED != 0).then(|| self.q(Self::queue_of(r)).tree.prev(r.sector, req))?
    }

    fn limit_depth(
        &mut self,
        ctx: &mut Ctx<'_>,
        op: Op,
        flags: Flags,
        task: TaskId,
    ) -> Option<u32> {
        if !self.v.modern {
            return None;
        }
        let sync =
            op == Op::Read || flags.0 & (Flags::SYNC.0 | Flags::FUA.0 | Flags::PREFLUSH.0) != 0;
        let depth = (op != Op::Read).then(|| self.share_of_tags(ctx.queue, sync));
        let (unit, nr) = (ctx.queue.limit_unit, ctx.queue.nr_requests);
        // A limit on the whole map is a number of requests, and does not shrink with a smaller `nr_requests`.
        let whole = self.v.queue_limits || ctx.queue.whole_map_limits();
        let limit = depth.map_or(nr, |d| if whole { d } else { nr * d / unit.max(1) });
        let Some(share) = self.over_limit(task, sync, limit) else { return depth };
        self.counts.over_share += 1;
        self.counts.no_share += u64::from(share == 0);
        Some(1)
    }

    fn min_shallow_depth(&self, _queue: &QueueFacts) -> Option<u32> {
        self.v.modern.then_some(1)
    }

    /// A process that the device idles for gets one request a slot even from an empty pool. Only a single queue asks.
    fn may_queue(&mut self, _: &mut Ctx<'_>, op: Op, flags: Flags, task: TaskId) -> MayQueue {
        let sync = op == Op::Read || flags.has(Flags::SYNC);
        let q = self.processes.get(task as usize).map_or(NIL, |p| p.queues[usize::from(sync)]);
        if q == NIL || !self.q(q).wait_request || std::mem::replace(&mut self.qm(q).had_extra, true) {
            return MayQueue::May;
        }
        MayQueue::Must
    }

    fn prepare(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if !self.v.modern {
            self.tick(ctx);
            self.set_up(ctx, req);
        }
    }

    /// A process has its queue, and that queue counts in a burst, even if its request joins another's.
    fn arrives(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.tick(ctx);
        self.set_up(ctx, req);
    }

    /// It has its process' queue, and counts there as a request in flight.
    fn passes(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.arrives(ctx, req);
        self.start(ctx, req, AT_HEAD);
    }

    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        self.tick(ctx);
        match at {
            Position::Head => self.requeue_at_head(ctx, req),
            Position::Sort => self.insert_sorted(ctx, req),
        }
    }

    fn has_work(&self) -> bool {
        self.may_have_work() || !self.head.is_empty()
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _hctx: u16) -> Dispatch {
        self.tick(ctx);
        self.dispatch_one(ctx)
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        self.tick(ctx);
        self.force(ctx)
    }

    fn requeued(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.tick(ctx);
        self.complete(ctx, req);
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.tick(ctx);
        self.complete(ctx, req);
    }

    fn finished(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if ctx.reqs[req].elv[0] == 0 {
            return;
        }
        let q = Self::queue_of(&ctx.reqs[req]);
        ctx.reqs[req].elv = [0; 2];
        self.request_freed(q);
    }

    fn timer(&mut self, ctx: &mut Ctx<'_>) {
        self.tick(ctx);
        self.idle_over(ctx);
    }

    fn task_exited(&mut self, ctx: &mut Ctx<'_>, task: TaskId) {
        self.tick(ctx);
        self.exit(ctx, task);
    }

    fn set_tunable(&mut self, ctx: &mut Ctx<'_>, name: &str, value: i64) {
        self.tick(ctx);
        let low_latency = self.c.low_latency;
        self.c.apply(name, value);
        if low_latency && !self.c.low_latency {
            self.end_all_raises();
        }
        if matches!(name, "max_budget" | "timeout_sync") {
            self.max_budget = match self.c.user_max_budget {
                0 => self.measured_budget(),
                user => user,
            };
        }
    }

    fn tunable(&self, name: &str) -> Option<i64> {
        self.c.read(name)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = self.counts;
        vec![
            ("slices", c.slices),
            ("expired_too_idle", c.too_idle),
            ("expired_budget_timeout", c.timeouts),
            ("expired_budget_exhausted", c.exhausted),
            ("expired_no_more_requests", c.no_more),
            ("expired_preempted", c.preempted),
            ("weight_raises", c.raises),
            ("idles", c.idles),
            ("injections", c.injections),
            ("merges", c.merges),
            ("splits", c.splits),
            ("limited_to_tag_0", c.over_share),
            (NO_SHARE, c.no_share),
        ]
    }
}
