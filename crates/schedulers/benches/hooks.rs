//! What the hooks of a scheduler cost: one request inserted, dispatched, completed, with a number of
//! others queued. `cargo bench -p iosched-schedulers`.

use divan::Bencher;
use divan::counter::ItemsCount;
use iosched_schedulers::registry;
use iosched_schedulers::tree::PosTree;
use iosched_schedulers::{
    Actions, BuildArgs, Ctx, Dispatch, KernelVersion, Position, QueueFacts, Scheduler,
};
use iosched_types::{Op, ReqId, Request, Requests};

/// Requests moved per measured call.
const ROUND: usize = 1024;

fn main() {
    divan::main();
}

/// A small generator: the bench measures hooks, not randomness.
struct Lcg(u64);

impl Lcg {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

struct Rig {
    scheduler: Box<dyn Scheduler>,
    reqs: Requests,
    queue: QueueFacts,
    out: Actions,
    random: Lcg,
    now: u64,
    done: u64,
}

impl Rig {
    fn new(name: &str, depth: usize) -> Rig {
        let (d, g) = registry::resolve(name, KernelVersion(6, 12, 0)).expect("a known name");
        let queue = QueueFacts { nr_requests: 256, queue_depth: 32, ..QueueFacts::default() };
        let values = d.resolve_tunables(g.index, &queue, &[]).expect("defaults");
        let args = BuildArgs { generation: g.index, tunables: &values, queue: &queue, now: 0 };
        let scheduler = (d.build)(&args);
        let reqs = Requests::with_capacity(depth + 1);
        let mut rig = Rig {
            scheduler,
            reqs,
            queue,
            out: Actions::default(),
            random: Lcg(1),
            now: 0,
            done: 0,
        };
        (0..depth).for_each(|_| rig.insert());
        rig
    }

    fn insert(&mut self) {
        let random = self.random.next();
        let op = if random & 3 == 0 { Op::Write } else { Op::Read };
        let id = self.reqs.add(Request::new(op, random >> 2 & !7, 8));
        self.now += 1_000;
        let (queue, out) = (&self.queue, &mut self.out);
        let mut ctx = Ctx { now: self.now, reqs: &mut self.reqs, queue, out };
        self.scheduler.prepare(&mut ctx, id);
        self.scheduler.insert(&mut ctx, id, Position::Sort);
    }

    fn dispatch(&mut self) {
        let (queue, out) = (&self.queue, &mut self.out);
        let mut ctx = Ctx { now: self.now, reqs: &mut self.reqs, queue, out };
        if let Dispatch::Request(id) = self.scheduler.dispatch(&mut ctx, 0) {
            self.scheduler.activated(&mut ctx, id);
            self.scheduler.completed(&mut ctx, id);
            self.scheduler.finished(&mut ctx, id);
            self.reqs.remove(id);
            self.done += 1;
        }
    }
}

const DEPTHS: [usize; 3] = [1, 64, 256];

#[divan::bench(
    args = ["none", "noop@3.12", "deadline@2.6.18", "deadline@3.12", "mq-deadline@4.12",
            "mq-deadline@5.15", "mq-deadline@6.1", "mq-deadline@6.12", "anticipatory@2.6.32",
            "kyber@4.12", "kyber@6.12"],
    consts = DEPTHS,
)]
fn hooks<const DEPTH: usize>(bencher: Bencher, name: &str) {
    let mut rig = Rig::new(name, DEPTH);
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        let before = rig.done;
        for _ in 0..ROUND {
            rig.insert();
            rig.dispatch();
        }
        // Speed without correctness is no figure: as many came out as went in.
        assert_eq!(rig.done - before, ROUND as u64);
    });
    assert_eq!(rig.reqs.len(), DEPTH);
}

/// The generator and the slab alone: what `hooks` measures beside the scheduler.
#[divan::bench(consts = DEPTHS)]
fn rig_alone<const DEPTH: usize>(bencher: Bencher) {
    let (mut random, mut reqs) = (Lcg(1), Requests::with_capacity(DEPTH + 1));
    let mut ring: Vec<ReqId> = (0..DEPTH).map(|_| reqs.add(Request::new(Op::Read, 0, 8))).collect();
    let mut at = 0;
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        for _ in 0..ROUND {
            let r = random.next();
            let op = if r & 3 == 0 { Op::Write } else { Op::Read };
            reqs.remove(ring[at]);
            ring[at] = reqs.add(divan::black_box(Request::new(op, r >> 2 & !7, 8)));
            at = (at + 1) % DEPTH;
        }
    });
}

/// The position tree: one insertion and one removal with `DEPTH` others.
#[divan::bench(consts = [64, 256, 4096, 1_000_000])]
fn tree<const DEPTH: usize>(bencher: Bencher) {
    let (mut random, mut tree) = (Lcg(1), PosTree::new());
    let mut ring: Vec<u64> = (0..DEPTH).map(|_| random.next()).collect();
    for (id, &sector) in ring.iter().enumerate() {
        tree.insert(sector, id as ReqId);
    }
    let mut at = 0;
    bencher.counter(ItemsCount::new(ROUND)).bench_local(|| {
        for _ in 0..ROUND {
            assert!(tree.remove(ring[at], at as ReqId));
            ring[at] = random.next();
            tree.insert(ring[at], at as ReqId);
            at = (at + 1) % DEPTH;
        }
    });
    assert_eq!(tree.len(), DEPTH);
}
