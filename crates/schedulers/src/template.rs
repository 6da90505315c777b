//! A scheduler to start from: "nearest first". Copy this file, rename, change the algorithm.
//!
//! Of all waiting requests this scheduler gives the one that starts nearest to where the last one ended. That keeps a
//! disk's arm still and starves processes that read far away. So `patience` bounds how often the oldest request may be
//! passed over. This scheduler was never in Linux, so it is not in the registry. To make yours known, add
//!
//! 1. this file: a [`Descriptor`] and an `impl Scheduler`;
//! 2. its name in the list `schedulers!` of `lib.rs`;
//! 3. one golden scenario in `tests/golden/`.
//!
//! Command line, completions, man page and the documentation tables follow from the descriptor.
//!
//! The comment of each hook says whether the hook is required. A request enters by `insert` and leaves by `dispatch`,
//! `force_dispatch` or `absorbed`. In between, its `fifo` and `list` links and its `elv` words are yours. Do not
//! allocate per request, and look at no clock but `ctx.now`.

use iosched_types::{Bio, ReqId, Sector};

use crate::api::{Ctx, Dispatch, MergeKind, Position, Scheduler};
use crate::descriptor::{
    BlockPath, BuildArgs, Descriptor, Facts, Generation, KernelVersion, Tunable,
};
use crate::list::{Fifo, List};
use crate::tree::PosTree;

/// Everything about the scheduler that is not its algorithm.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "nearest",
    aliases: &[],
    summary: "The request nearest to the last one; the oldest after enough of those.",
    // Which block layer it plugs into: `Mq` has tags and no dispatch queue of its own.
    path: BlockPath::Mq,
    facts: Facts::USUAL,
    // Versions that behave differently. One is enough.
    generations: &[Generation {
        index: 0,
        name: "1",
        first: KernelVersion(6, 12, 0),
        last: None,
        summary: "The only one.",
    }],
    // The values that users may set, in the users' unit. They are checked against the bounds before they get here.
    tunables: &[Tunable {
        name: "patience",
        unit: "requests",
        default_text: "32",
        default: |_| 32,
        min: 0,
        max: i32::MAX as i64,
        generations: &[0],
        help: "How many requests may go ahead of the oldest one.",
    }],
    build: &build,
};

struct Nearest {
    /// Waiting requests by position …
    tree: PosTree,
    /// … and by age.
    fifo: List<Fifo>,
    /// Where the last dispatched request ended.
    head: Sector,
    /// Requests that went ahead of the oldest one.
    passed: i64,
    patience: i64,
}

fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    Box::new(Nearest {
        tree: PosTree::new(),
        fifo: List::default(),
        head: 0,
        passed: 0,
        patience: args.tunables.get("patience"),
    })
}

impl Nearest {
    /// The neighbour of `head` that is nearer; above wins a tie.
    fn nearest(&self, ctx: &Ctx<'_>) -> Option<ReqId> {
        let above = self.tree.first_at_or_after(self.head);
        let below = self.tree.last_before(self.head);
        let distance = |id: ReqId| ctx.reqs[id].sector.abs_diff(self.head);
        match (above, below) {
            (Some(a), Some(b)) if distance(b) < distance(a) => Some(b),
            (Some(a), _) => Some(a),
            (None, b) => b,
        }
    }

    fn take(&mut self, ctx: &mut Ctx<'_>, id: ReqId) {
        let oldest = self.fifo.head() == Some(id);
        self.passed = if oldest { 0 } else { self.passed + 1 };
        self.head = ctx.reqs[id].end();
        self.tree.remove(ctx.reqs[id].sector, id);
        self.fifo.remove(ctx.reqs, id);
    }
}

impl Scheduler for Nearest {
    // Required. Takes a request. `Position::Head` is a request that the driver gave back.
    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        self.tree.insert(ctx.reqs[req].sector, req);
        match at {
            Position::Sort => self.fifo.push_back(ctx.reqs, req),
            Position::Head => self.fifo.push_front(ctx.reqs, req),
        }
    }

    // Required. Whether `dispatch` is worth calling.
    fn has_work(&self) -> bool {
        !self.fifo.is_empty()
    }

    // Required. The next request for a hardware queue. A scheduler that would rather wait arms its
    // timer and returns `Dispatch::Idle`; one that holds requests back returns `Dispatch::Empty`.
    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _hctx: u16) -> Dispatch {
        let patient = self.passed < self.patience;
        let pick = if patient { self.nearest(ctx) } else { self.fifo.head() };
        let Some(id) = pick else { return Dispatch::Empty };
        // Reasons cost nothing except under `iosched explain`.
        let (head, passed) = (self.head, self.passed);
        ctx.why(|reqs, _| match patient {
            true => format!("nearest: {} sectors away", reqs[id].sector.abs_diff(head)),
            false => format!("oldest: {passed} went ahead of it"),
        });
        self.take(ctx, id);
        Dispatch::Request(id)
    }

    // Required. A drain: any request, even if the scheduler would rather wait.
    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        let id = self.fifo.head()?;
        self.take(ctx, id);
        Some(id)
    }

    // Required. `gone` was appended to `into` and leaves.
    fn absorbed(&mut self, ctx: &mut Ctx<'_>, _into: ReqId, gone: ReqId) {
        self.tree.remove(ctx.reqs[gone].sector, gone);
        self.fifo.remove(ctx.reqs, gone);
    }

    // Required when requests are sorted: after a front merge a request starts lower than it did.
    fn merged(&mut self, ctx: &mut Ctx<'_>, req: ReqId, kind: MergeKind, old_sector: Sector) {
        if kind == MergeKind::Front {
            self.tree.remove(old_sector, req);
            self.tree.insert(ctx.reqs[req].sector, req);
        }
    }

    // Not required: without it only back merges are found.
    fn find_front(&mut self, _ctx: &mut Ctx<'_>, bio: &Bio) -> Option<ReqId> {
        self.tree.find(bio.end())
    }

    // Not required: without these, two requests that come to touch are not joined.
    fn next_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.tree.next(ctx.reqs[req].sector, req)
    }

    fn prev_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.tree.prev(ctx.reqs[req].sector, req)
    }

    // Required: a tunable changes while the scheduler runs.
    fn set_tunable(&mut self, _ctx: &mut Ctx<'_>, name: &str, value: i64) {
        if name == "patience" {
            self.patience = value;
        }
    }

    // Required: what the tunable's file would show.
    fn tunable(&self, name: &str) -> Option<i64> {
        (name == "patience").then_some(self.patience)
    }

    // Not required, and not used here: `limit_depth` (tags an operation may take), `may_queue` (legacy
    // request pool), `prepare`, `activated`, `requeued`, `completed`, `finished`, `timer`,
    // `task_exited`, `allow_merge`, `merging` and `find_merge` (own merge search), `counters`.
}

#[cfg(test)]
mod tests {
    use iosched_types::Op;

    use super::*;
    use crate::api::QueueFacts;
    use crate::testing::Bench;

    fn bench(patience: i64) -> Bench {
        let set = [("patience".to_owned(), patience)];
        let queue = QueueFacts::default();
        let tunables = DESCRIPTOR.resolve_tunables(0, &queue, &set).unwrap();
        let args = BuildArgs { generation: 0, tunables: &tunables, queue: &queue, now: 0 };
        Bench { scheduler: build(&args), ..Bench::new("none", &[]) }
    }

    #[test]
    fn the_nearest_goes_first() {
        let mut b = bench(32);
        for sector in [1000, 100, 130, 400, 96] {
            b.insert(0, Op::Read, sector, 8, 0);
        }
        // From 0: 96, which ends at 104; 100 lies 4 below, 130 lies 26 above.
        assert_eq!(b.drain(0), ["R96", "R100", "R130", "R400", "R1000"]);
        assert!(b.scheduler.is_empty());
    }

    #[test]
    fn the_oldest_is_passed_over_no_longer_than_patience_allows() {
        let mut b = bench(2);
        b.insert(0, Op::Read, 1_000_000, 8, 0);
        (1..6).for_each(|i| {
            b.insert(0, Op::Read, i * 8, 8, 0);
        });
        assert_eq!(b.drain(0), ["R8", "R16", "R1000000", "R40", "R32", "R24"]);
    }

    #[test]
    fn a_tunable_changes_while_running() {
        let mut b = bench(2);
        b.with(0, |s, c| s.set_tunable(c, "patience", 0));
        assert_eq!(b.scheduler.tunable("patience"), Some(0));
        assert_eq!(b.scheduler.tunable("paitence"), None);
        b.insert(0, Op::Read, 900, 8, 0);
        b.insert(0, Op::Read, 8, 8, 0);
        assert_eq!(b.drain(0), ["R900", "R8"]);
    }

    #[test]
    fn a_front_merge_moves_a_request_and_a_drain_empties_the_scheduler() {
        let mut b = bench(32);
        let id = b.insert(0, Op::Read, 108, 8, 0);
        let other = b.insert(0, Op::Read, 90, 8, 0);
        b.reqs[id].sector = 100;
        b.with(0, |s, c| {
            s.merged(c, id, MergeKind::Front, 108);
            assert_eq!(s.next_neighbour(c, other), Some(id));
            assert_eq!(s.prev_neighbour(c, id), Some(other));
            assert_eq!(s.force_dispatch(c), Some(id));
            assert_eq!(s.force_dispatch(c), Some(other));
            assert_eq!(s.force_dispatch(c), None);
        });
    }
}
