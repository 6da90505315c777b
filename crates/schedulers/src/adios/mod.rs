//! ADIOS, the Adaptive Deadline I/O Scheduler (out of tree).
//!
//! It learns what requests of each kind and length take ([`model`]), gives each a deadline, and sorts reads and all others by
//! deadline ([`waiting`]). From there they move in batches, each as large as its expected latency fits a window, to a page
//! ([`pages`]) that gives all reads first. One balance says how often reads may overtake older writes. Until the models of
//! reads and writes both have a base, all of that does not exist: requests leave in the order in which they came.

mod descriptor;
mod model;
mod pages;
mod samples;
mod waiting;

use iosched_types::{Bio, Flags, Nanos, Op, ReqId, Request, Sector, TaskId};

use crate::api::{Ctx, Dispatch, Hooks, MergeKind, Position, QueueFacts, Scheduler};
use crate::descriptor::BuildArgs;
use crate::list::{Fifo, List};
use crate::pair;
use descriptor::{KINDS, Tuning, V3_2};
use model::Models;
use pages::Pages;
use samples::Watch;
use waiting::Waiting;

pub use descriptor::DESCRIPTOR;

const READ: usize = 0;
const WRITE: usize = 1;
const DISCARD: usize = 2;
const OTHER: usize = 3;

/// Word of a request: what it is expected to take, in ns.
const EXPECTED: usize = 0;
/// Word of a request: its bytes when it came, and above them where it is.
const LENGTH: usize = 1;
/// The request lies in one of the trees, where it can still grow.
const IN_TREE: u64 = 1 << 63;
/// The request counts as committed.
const COMMITTED: u64 = 1 << 62;

/// What a generation does differently.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// A discard holds back what comes after it.
    discards_hold_back: bool,
    /// The index of a sample's bucket is cut to eight bits first.
    index_wraps: bool,
    /// What is expected is at most `lat_model_latency_limit`.
    expects_at_most_the_limit: bool,
    /// What the same sector twice in a row counts.
    same_place: u64,
    /// A sample above the limit still says where the arm is.
    long_ones_move_the_arm: bool,
}

static RULES: [Rules; 2] = [
    Rules {
        discards_hold_back: true,
        index_wraps: true,
        expects_at_most_the_limit: false,
        // Builds for plain x86-64; those for x86-64-v3 count it once.
        same_place: 2,
        long_ones_move_the_arm: false,
    },
    Rules {
        discards_hold_back: false,
        index_wraps: false,
        expects_at_most_the_limit: true,
        same_place: 1,
        long_ones_move_the_arm: true,
    },
];

/// When a model forgets a part of what it learned.
#[derive(Clone, Copy, Debug)]
struct Shrink {
    small_samples: u64,
    large_bytes: u64,
    shift: u32,
}

struct Adios {
    rules: &'static Rules,
    tuning: Tuning,
    /// FIFOs of what needs no order: first those inserted at the head, then those of the learning phase.
    direct: [List<Fifo>; 2],
    waiting: Waiting,
    /// A barrier and what came after it.
    held: List<Fifo>,
    holding: bool,
    pages: Pages,
    models: Box<Models>,
    watch: Watch,
    /// The models of reads and writes have had a base.
    stable: bool,
    rotational: bool,
    /// The request that a bio may grow.
    asked: Option<ReqId>,
}

fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    let q = args.queue;
    let now = q.jiffies(args.now);
    let mut models = Models::new(now);
    for (kind, name) in KINDS.iter().enumerate() {
        let loaded = pair::parts(args.tunables.get(&format!("lat_model_{name}")));
        if loaded != (0, 0) {
            models.load(kind, loaded, now);
        }
    }
    let generation = usize::from(args.generation.min(V3_2));
    Box::new(Adios {
        rules: &RULES[generation],
        tuning: Tuning::new(args.tunables, q.hz, q.rotational),
        direct: [List::default(); 2],
        waiting: Waiting::default(),
        held: List::default(),
        holding: false,
        pages: Pages::default(),
        models,
        watch: Watch::default(),
        stable: false,
        rotational: q.rotational,
        asked: None,
    })
}

fn kind_of(op: Op) -> usize {
    match op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Discard => DISCARD,
        Op::Flush => OTHER,
    }
}

/// Its bytes when it came.
fn length(r: &Request) -> u64 {
    r.elv[LENGTH] & u64::from(u32::MAX)
}

impl Adios {
    /// Takes note of a request's length and what it is expected to take.
    fn measure(&self, ctx: &mut Ctx<'_>, req: ReqId) {
        let r = &mut ctx.reqs[req];
        let len = u64::from(r.sectors) * 512;
        let expected = self.models.of(kind_of(r.op)).expect(len);
        r.elv[EXPECTED] = match self.rules.expects_at_most_the_limit {
            true => expected.min(self.tuning.sample_limit),
            false => expected,
        };
        r.elv[LENGTH] = len & u64::from(u32::MAX);
    }

    /// Its deadline by what is in force now.
    fn deadline(&self, r: &Request) -> Nanos {
        if r.flags.has(Flags::SYNC) {
            return r.t_start;
        }
        let late = r.t_start.saturating_add(self.tuning.target[kind_of(r.op)]);
        if self.tuning.compliance & 1 != 0 { late } else { late.saturating_add(r.elv[EXPECTED]) }
    }

    fn commit(&mut self, ctx: &mut Ctx<'_>, to: usize, req: ReqId) {
        ctx.reqs[req].elv[LENGTH] |= COMMITTED;
        self.watch.commits(ctx.reqs[req].elv[EXPECTED]);
        self.direct[to].push_back(ctx.reqs, req);
    }

    fn wait_in_tree(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let deadline = self.deadline(&ctx.reqs[req]);
        ctx.reqs[req].fifo_time = deadline;
        ctx.reqs[req].elv[LENGTH] |= IN_TREE;
        self.waiting.insert(ctx.reqs, req);
    }

    fn leave_tree(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.waiting.remove(ctx.reqs, req);
        ctx.reqs[req].elv[LENGTH] &= !IN_TREE;
    }

    fn is_barrier(&self, op: Op) -> bool {
        op == Op::Flush || (op == Op::Discard && self.rules.discards_hold_back)
    }

    /// Everything else has been handed out: the barrier goes, and behind it what came before the next one.
    fn release(&mut self, ctx: &mut Ctx<'_>) {
        let Some(barrier) = self.held.pop_front(ctx.reqs) else {
            self.holding = false;
            return;
        };
        self.commit(ctx, 1, barrier);
        while let Some(next) = self.held.head() {
            if self.is_barrier(ctx.reqs[next].op) {
                break;
            }
            self.held.remove(ctx.reqs, next);
            self.wait_in_tree(ctx, next);
            ctx.out.findable.push((next, true));
        }
        self.holding = !self.held.is_empty();
    }

    /// A request that needs no order. When both FIFOs hold something, the one of the learning phase gives.
    fn take_direct(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        let from = [1, 0].into_iter().find(|q| !self.direct[*q].is_empty())?;
        let id = self.direct[from].pop_front(ctx.reqs)?;
        if self.direct[from].is_empty() {
            self.turn(ctx);
        }
        let stable = self.stable;
        ctx.why(|_, _| match (from, stable) {
            (0, _) => "it came back".into(),
            (_, false) => "in order of arrival: the models of small reads and writes have no base yet".into(),
            (_, true) => "ahead of all batches: a barrier, or it came before the models had a base".into(),
        });
        Some(id)
    }

    fn next(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        loop {
            if let Some(id) = self.take_direct(ctx).or_else(|| self.take_from_pages(ctx)) {
                if self.rotational {
                    self.watch.head = ctx.reqs[id].end();
                }
                return Some(id);
            }
            if !self.holding {
                return None;
            }
            self.release(ctx);
        }
    }

    /// The sweep goes down if the head is nearer to the far end of what the front page sorts.
    fn turn(&mut self, ctx: &Ctx<'_>) {
        if self.rotational {
            self.pages.turn(ctx.reqs, self.watch.head);
        }
    }
}

impl Scheduler for Adios {
    fn hooks(&self) -> Hooks {
        Hooks {
            limit_depth: true,
            completed: true,
            stops_merging: true,
            ..Hooks::NONE
        }
    }

    fn merges(&self) -> bool {
        !self.holding
    }

    fn allow_merge(&mut self, ctx: &mut Ctx<'_>, req: ReqId, _bio: &Bio) -> bool {
        let allowed = !self.holding && ctx.reqs[req].elv[LENGTH] & IN_TREE != 0;
        self.asked = allowed.then_some(req);
        allowed
    }

    fn merged(&mut self, ctx: &mut Ctx<'_>, req: ReqId, _kind: MergeKind, _old_sector: Sector) {
        // A whole request that joins changes nothing; a bio sends the request to the end of its group.
        if self.asked.take() == Some(req) && ctx.reqs[req].elv[LENGTH] & IN_TREE != 0 {
            self.leave_tree(ctx, req);
            self.wait_in_tree(ctx, req);
        }
    }

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, _into: ReqId, gone: ReqId) {
        if ctx.reqs[gone].elv[LENGTH] & IN_TREE != 0 {
            self.leave_tree(ctx, gone);
        }
    }

    fn limit_depth(&mut self, ctx: &mut Ctx<'_>, op: Op, _: Flags, _: TaskId) -> Option<u32> {
        // Meant for kernels that count by word of the tag map, where it is all of it.
        (op != Op::Read).then(|| QueueFacts::tag_word(ctx.queue.nr_requests))
    }

    fn min_shallow_depth(&self, _queue: &QueueFacts) -> Option<u32> {
        Some(1)
    }

    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        self.asked = None;
        self.measure(ctx, req);
        let stable = self.stable;
        if !stable {
            self.stable = [READ, WRITE].iter().all(|k| self.models.of(*k).base > 0);
        }
        if at == Position::Head {
            self.commit(ctx, 0, req);
        } else if !stable {
            self.commit(ctx, 1, req);
        } else if self.holding || self.is_barrier(ctx.reqs[req].op) {
            self.holding = true;
            self.held.push_back(ctx.reqs, req);
        } else {
            return self.wait_in_tree(ctx, req);
        }
        ctx.out.findable.push((req, false));
    }

    fn has_work(&self) -> bool {
        self.holding
            || self.direct.iter().any(|q| !q.is_empty())
            || !self.waiting.is_empty()
            || !self.pages.is_empty()
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _hctx: u16) -> Dispatch {
        self.asked = None;
        self.next(ctx).map_or(Dispatch::Empty, Dispatch::Request)
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        self.next(ctx)
    }

    fn requeued(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.uncommit(ctx, req);
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.learn(ctx, req);
    }

    fn timer(&mut self, ctx: &mut Ctx<'_>) {
        self.watch.timer_set = false;
        let now = ctx.jiffies();
        self.models.update_all(&self.tuning, now);
    }

    fn set_tunable(&mut self, ctx: &mut Ctx<'_>, name: &str, value: i64) {
        let now = ctx.jiffies();
        self.tuning.set(name, value, self.rotational);
        for (kind, of) in KINDS.iter().enumerate() {
            if name.strip_prefix("lat_model_") == Some(of) {
                self.models.load(kind, pair::parts(value), now);
            } else if name.strip_prefix("lat_target_") == Some(of) {
                self.models.load(kind, (0, 0), now);
            }
        }
        match name {
            "read_priority" => self.pages.forget_balance(),
            "reset_bq_stats" if value == 1 => self.pages.forget_largest(),
            "reset_lat_model" if value == 1 => {
                (READ..=DISCARD).for_each(|kind| self.models.load(kind, (0, 0), now));
            }
            _ => {}
        }
    }

    fn tunable(&self, name: &str) -> Option<i64> {
        let kind = name.strip_prefix("lat_model_");
        match KINDS.iter().position(|k| kind == Some(*k)) {
            Some(kind) => {
                let m = self.models.of(kind);
                Some(pair::of(m.base, m.slope))
            }
            None => self.tuning.get(name),
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let m = |kind| (self.models.of(kind).base, self.models.of(kind).slope);
        let (read, write) = (m(READ), m(WRITE));
        let mut all = vec![
            ("learning", u64::from(!self.stable)),
            ("read_base_ns", read.0),
            ("read_slope_ns_per_kib", read.1),
            ("write_base_ns", write.0),
            ("write_slope_ns_per_kib", write.1),
        ];
        self.pages.counters(&mut all);
        all
    }
}
