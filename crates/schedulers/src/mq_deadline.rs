//! mq-deadline: deadline for blk-mq, from 5.14 on with three priority levels.
//!
//! One implementation serves four generations; what differs is in [`Rules`]: how the sweep remembers
//! where it was, whether there are levels, and how a level holds the others back.

use iosched_types::{Bio, Flags, Op, ReqId, Sector, TaskId};

use crate::api::{Ctx, Dispatch, Hooks, MergeKind, Position, QueueFacts, Scheduler};
use crate::deadline_parts::Starvation;
use crate::descriptor::{BlockPath, BuildArgs, Descriptor, Facts, Generation, KernelVersion};
use crate::jiffies::{self, Clock};
use crate::mq_deadline_levels::{Levels, Limits, Memory, Rules, ZoneRule, level_of};
use crate::mq_deadline_tunables::TUNABLES;
use crate::mq_deadline_zones::Zones;

/// Descriptor of mq-deadline.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "mq-deadline",
    aliases: &["mqdeadline"],
    summary: "deadline for multi-queue block devices; since 5.14 it honours I/O priority classes.",
    path: BlockPath::Mq,
    facts: Facts::USUAL,
    generations: GENERATIONS,
    tunables: TUNABLES,
    build: &build,
};

const GENERATIONS: &[Generation] = &[
    Generation {
        index: 0,
        name: "A",
        first: KernelVersion(4, 12, 0),
        last: Some(KernelVersion(5, 13, 0)),
        summary: "The deadline of its time on blk-mq: no priorities; a request is late when it \
                  reaches its deadline, not only beyond it.",
    },
    Generation {
        index: 1,
        name: "B",
        first: KernelVersion(5, 14, 0),
        last: Some(KernelVersion(5, 15, 0)),
        summary: "Levels RT, BE and IDLE, each with its own queues; the highest level that has \
                  something to give gives. Each direction remembers its own sweep.",
    },
    Generation {
        index: 2,
        name: "C",
        first: KernelVersion(5, 16, 0),
        last: Some(KernelVersion(6, 4, 0)),
        summary: "A level also waits for what higher levels have in flight; requests older than \
                  `prio_aging_expire` go first.",
    },
    Generation {
        index: 3,
        name: "D",
        first: KernelVersion(6, 5, 0),
        last: Some(KernelVersion(7, 0, 0)),
        summary: "The sweep goes on at the first request at or above the last one dispatched, so \
                  late arrivals join it.",
    },
    Generation {
        index: 4,
        name: "E",
        first: KernelVersion(7, 1, 0),
        last: None,
        summary: "The limit of writes is `queue/async_depth`, not a tunable of its own; tasks that wait for \
                  a tag are woken in batches.",
    },
];

const POSITION: Rules = Rules {
    memory: Memory::Position,
    levels: 3,
    waits_for_in_flight: true,
    head_expires_now: true,
    async_depth_file_is_front_merges: false,
    scaled_async_depth: true,
    limit_of_the_queue: false,
    zones: ZoneRule::Elsewhere,
};

const RULES: [Rules; 5] = [
    Rules {
        memory: Memory::OneNext,
        levels: 1,
        waits_for_in_flight: false,
        head_expires_now: false,
        async_depth_file_is_front_merges: false,
        scaled_async_depth: false,
        limit_of_the_queue: false,
        zones: ZoneRule::Locks,
    },
    Rules {
        memory: Memory::NextPerDirection,
        levels: 3,
        waits_for_in_flight: false,
        head_expires_now: false,
        async_depth_file_is_front_merges: true,
        scaled_async_depth: false,
        limit_of_the_queue: false,
        zones: ZoneRule::Locks,
    },
    Rules {
        memory: Memory::NextPerDirection,
        levels: 3,
        waits_for_in_flight: true,
        head_expires_now: false,
        async_depth_file_is_front_merges: false,
        scaled_async_depth: false,
        limit_of_the_queue: false,
        zones: ZoneRule::LocksAndSkipsRuns,
    },
    POSITION,
    Rules { limit_of_the_queue: true, ..POSITION },
];

struct MqDeadline {
    rules: Rules,
    levels: Levels,
    hz: u32,
    /// `front_merges`; an int since 5.15's `async_depth` file can write anything there.
    front_merges: i64,
    async_depth: i64,
}

fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    let (t, hz) = (args.tunables, args.queue.hz);
    let rules = RULES[usize::from(args.generation)];
    let mut front_merges = t.get("front_merges");
    let mut async_depth = t.get("async_depth");
    if rules.async_depth_file_is_front_merges {
        // The file's default, 1, is what front_merges reads; any other value was written to it.
        front_merges = if async_depth == 1 { front_merges } else { async_depth };
        async_depth = (i64::from(args.queue.limit_base) * 3 / 4).max(1);
    }
    let zone_sectors = if rules.zones == ZoneRule::Elsewhere { 0 } else { args.queue.zone_sectors };
    let skips_runs = rules.zones == ZoneRule::LocksAndSkipsRuns && args.queue.rotational;
    let zones = Zones::new(zone_sectors, skips_runs, args.queue.queue_depth);
    let limits = Limits {
        expire: ["read_expire", "write_expire"].map(|n| jiffies::from_ms(t.get(n), hz)),
        aging: jiffies::from_ms(t.get("prio_aging_expire"), hz),
        fifo_batch: t.get("fifo_batch"),
        starvation: Starvation::new(t.get("writes_starved")),
    };
    let levels = Levels::new(rules, Clock::new(hz), limits, zones);
    Box::new(MqDeadline { rules, levels, hz, front_merges, async_depth })
}

impl Scheduler for MqDeadline {
    fn hooks(&self) -> Hooks {
        Hooks { limit_depth: self.rules.levels > 1, finished: true, ..Hooks::NONE }
    }

    fn allow_merge(&mut self, ctx: &mut Ctx<'_>, req: ReqId, bio: &Bio) -> bool {
        self.levels.mergeable(ctx.reqs, req)
            && level_of(self.rules, ctx.reqs[req].prio) == level_of(self.rules, bio.prio)
            && !self.levels.zones_apart(ctx.reqs[req].sector, bio.sector)
    }

    fn find_front(&mut self, _ctx: &mut Ctx<'_>, bio: &Bio) -> Option<ReqId> {
        if self.front_merges == 0 {
            return None;
        }
        let level = level_of(self.rules, bio.prio);
        self.levels.queue(level, bio.op.dir()).front(bio)
    }

    fn merged(&mut self, ctx: &mut Ctx<'_>, req: ReqId, kind: MergeKind, old_sector: Sector) {
        if kind == MergeKind::Front {
            self.levels.queue_of(ctx.reqs, req).reposition(ctx.reqs, req, old_sector);
        }
    }

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, into: ReqId, gone: ReqId) {
        self.levels.absorb(ctx.reqs, into, gone);
    }

    fn next_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.levels.tree_of(ctx.reqs, req).next(ctx.reqs[req].sector, req)
    }

    fn prev_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.levels.tree_of(ctx.reqs, req).prev(ctx.reqs[req].sector, req)
    }

    fn min_shallow_depth(&self, queue: &QueueFacts) -> Option<u32> {
        // Generations with an asynchronous limit of their own register the smallest there can be, since it may
        // be set to 1 at any time.
        match self.rules {
            Rules { limit_of_the_queue: true, .. } => Some(queue.async_in_force),
            rules => (rules.levels > 1).then_some(1),
        }
    }

    fn limit_depth(
        &mut self,
        ctx: &mut Ctx<'_>,
        op: Op,
        _flags: Flags,
        _task: TaskId,
    ) -> Option<u32> {
        // Every read counts as synchronous; generation A has no such limit.
        if op == Op::Read || self.rules.levels == 1 {
            return None;
        }
        let q = ctx.queue;
        if self.rules.limit_of_the_queue {
            return Some(q.async_in_force);
        }
        let depth = u32::try_from(self.async_depth).unwrap_or(u32::MAX);
        if self.rules.scaled_async_depth && !q.whole_map_limits() {
            // The value is in tags of the whole map; the limit is per word of it.
            let scaled = u64::from(depth) * u64::from(q.limit_unit);
            return Some(scaled.div_ceil(u64::from(q.nr_requests.max(1))) as u32);
        }
        Some(depth)
    }

    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        self.levels.insert(ctx.reqs, req, ctx.now, at);
    }

    fn has_work(&self) -> bool {
        self.levels.has_work()
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _hctx: u16) -> Dispatch {
        let id = self.levels.dispatch(ctx);
        if id.is_none() {
            self.levels.explain_zones(ctx);
        }
        id.map_or(Dispatch::Empty, Dispatch::Request)
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        self.levels.highest(ctx)
    }

    fn finished(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if self.levels.finished(ctx.reqs, req) {
            let hctx = ctx.reqs[req].hctx;
            ctx.run_hctx(hctx);
        }
    }

    fn set_tunable(&mut self, _ctx: &mut Ctx<'_>, name: &str, value: i64) {
        let l = &mut self.levels;
        match name {
            "read_expire" => l.expire[0] = jiffies::from_ms(value, self.hz),
            "write_expire" => l.expire[1] = jiffies::from_ms(value, self.hz),
            "writes_starved" => l.starvation.limit = value,
            "fifo_batch" => l.fifo_batch = value,
            "front_merges" => self.front_merges = value,
            "async_depth" if self.rules.async_depth_file_is_front_merges => {
                self.front_merges = value;
            }
            "async_depth" => self.async_depth = value,
            "prio_aging_expire" => l.aging = jiffies::from_ms(value, self.hz),
            _ => {}
        }
    }

    fn tunable(&self, name: &str) -> Option<i64> {
        let l = &self.levels;
        Some(match name {
            "read_expire" => jiffies::to_ms(l.expire[0], self.hz),
            "write_expire" => jiffies::to_ms(l.expire[1], self.hz),
            "writes_starved" => l.starvation.limit,
            "fifo_batch" => l.fifo_batch,
            "front_merges" => self.front_merges,
            "async_depth" if self.rules.async_depth_file_is_front_merges => self.front_merges,
            "async_depth" if self.rules.levels > 1 && !self.rules.limit_of_the_queue => {
                self.async_depth
            }
            "prio_aging_expire" if self.rules.waits_for_in_flight => {
                jiffies::to_ms(l.aging, self.hz)
            }
            _ => return None,
        })
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.levels.counters()
    }
}
