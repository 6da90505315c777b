//! What holds under any load: nothing is lost or served twice, tokens bound what is in flight, order is kept
//! within a CPU and domain, nobody waits for ever, and the order is that of a slow, obvious model.

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use iosched_schedulers::Position;

#[derive(Clone, Debug)]
struct Load {
    name: &'static str,
    hctxs: u16,
    device_depth: usize,
    /// Latency of reads and of everything else, in µs.
    latency: [u64; 2],
    /// (µs until the next, operation, sync, CPU)
    requests: Vec<(u64, Op, bool, u16)>,
    /// Every n-th request is given back once by the driver; 0 is none.
    requeue: usize,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => Just(Op::Read),
        4 => Just(Op::Write),
        1 => Just(Op::Discard),
        1 => Just(Op::Flush),
    ]
}

fn load() -> impl Strategy<Value = Load> {
    let request = (prop_oneof![Just(0), 0u64..300], op(), any::<bool>(), 0u16..4);
    (
        prop::sample::select(ALL.as_slice()),
        1u16..5,
        prop_oneof![Just(1), Just(2), 1usize..40, Just(100_000)],
        [50u64..30_000, 50u64..30_000],
        prop::collection::vec(request, 1..1200),
        prop_oneof![Just(0), 2usize..50],
    )
        .prop_map(|(name, hctxs, device_depth, latency, requests, requeue)| Load {
            name,
            hctxs,
            device_depth,
            latency,
            requests,
            requeue,
        })
}

/// Plays a load. A hardware queue runs only for a reason: an insert, a wish of the scheduler's, or a place in
/// the device after it was refused one.
struct Play {
    b: Bench,
    load: Load,
    now: u64,
    in_flight: VecDeque<(u64, ReqId)>,
    refused: BTreeSet<u16>,
    served: Vec<(u16, usize, u64)>,
    requeued: BTreeSet<ReqId>,
}

const NAMES: [[&str; 4]; 2] =
    [["read", "sync_write", "other", "other"], ["read", "write", "discard", "other"]];

impl Play {
    fn new(load: &Load) -> Play {
        let queue = QueueFacts { cpus: 4, hw_queues: load.hctxs, ..QueueFacts::default() };
        Play {
            b: Bench::on(load.name, &[], queue),
            load: load.clone(),
            now: 0,
            in_flight: VecDeque::new(),
            refused: BTreeSet::new(),
            served: Vec::new(),
            requeued: BTreeSet::new(),
        }
    }

    fn domain(&self, id: ReqId) -> usize {
        let r = &self.b.reqs[id];
        match (self.load.name, r.op) {
            (_, Op::Read) => 0,
            ("kyber@4.12", Op::Write) => 1 + usize::from(!r.is_sync()),
            ("kyber@4.12", _) => 2,
            (_, Op::Write) => 1,
            (_, Op::Discard) => 2,
            (_, Op::Flush) => 3,
        }
    }

    fn counters(&self, d: usize) -> (u64, u64) {
        let name = NAMES[usize::from(self.load.name != "kyber@4.12")][d];
        let get = |what: &str| counter(&self.b, &format!("{name}_{what}"));
        (get("tokens_in_use"), get("depth"))
    }

    fn run(&mut self, hctx: u16) {
        loop {
            if self.in_flight.len() >= self.load.device_depth {
                self.refused.insert(hctx);
                return;
            }
            let Some(id) = dispatch(&mut self.b, self.now, hctx) else { return };
            let d = self.domain(id);
            let (in_use, depth) = self.counters(d);
            assert!(in_use <= depth, "{in_use} tokens of {depth} after one was taken");
            assert_eq!(self.b.reqs[id].hctx, hctx);
            let nth = self.b.reqs[id].sector.checked_rem(self.load.requeue as u64) == Some(0);
            if nth && self.requeued.insert(id) {
                self.b.with(self.now, |s, c| {
                    s.requeued(c, id);
                    s.insert(c, id, Position::Head);
                });
                continue;
            }
            self.requeued.remove(&id);
            let latency = self.load.latency[usize::from(self.b.reqs[id].op != Op::Read)] * 1000;
            self.served.push((self.b.reqs[id].cpu, d, self.b.reqs[id].sector));
            let at = self.in_flight.partition_point(|&(t, _)| t <= self.now + latency);
            self.in_flight.insert(at, (self.now + latency, id));
        }
    }

    fn wishes(&mut self) {
        assert!(!self.b.out.run_queue, "kyber knows who waits");
        while !self.b.out.run_hctxs.is_empty() {
            let h = self.b.out.run_hctxs.remove(0);
            self.run(h);
        }
    }

    fn timer_before(&mut self, time: u64) {
        if let Some(at) = self.b.out.timer.flatten().filter(|&at| at <= time) {
            self.b.out.timer = None;
            self.now = at;
            self.b.with(at, |s, c| s.timer(c));
            self.wishes();
        }
    }

    /// Completes everything that is done by `time`.
    fn until(&mut self, time: u64) {
        while let Some(&(at, id)) = self.in_flight.front().filter(|(at, _)| *at <= time) {
            self.timer_before(at);
            self.now = at;
            self.in_flight.pop_front();
            self.b.complete(at, id);
            self.wishes();
            for hctx in std::mem::take(&mut self.refused) {
                self.run(hctx);
            }
        }
        self.timer_before(time);
        self.now = time;
    }

    fn play(&mut self) {
        for (i, (pause, op, sync, cpu)) in self.load.requests.clone().into_iter().enumerate() {
            self.until(self.now + pause * 1000);
            let mut r = request(op, i as u64, sync);
            (r.cpu, r.hctx) = (cpu, cpu % self.load.hctxs);
            let hctx = r.hctx;
            insert_at(&mut self.b, self.now, r);
            self.run(hctx);
            self.wishes();
        }
        self.until(self.now + 3_600_000 * MS);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_is_lost_or_served_twice_and_order_is_kept(load in load()) {
        let mut p = Play::new(&load);
        p.play();
        prop_assert!(p.b.reqs.is_empty() && !p.b.scheduler.has_work(), "stuck: {} left", p.b.reqs.len());
        let mut sectors: Vec<u64> = p.served.iter().map(|s| s.2).collect();
        sectors.sort_unstable();
        prop_assert!(sectors.into_iter().eq(0..load.requests.len() as u64));
        for d in 0..4 {
            prop_assert_eq!(p.counters(d).0, 0, "tokens kept");
        }
        if load.requeue == 0 {
            for cpu in 0..4 {
                for d in 0..4 {
                    let of = |s: &&(u16, usize, u64)| s.0 == cpu && s.1 == d;
                    prop_assert!(p.served.iter().filter(of).map(|s| s.2).is_sorted());
                }
            }
        }
    }

    #[test]
    fn the_order_is_that_of_the_model(
        name in prop::sample::select(ALL.as_slice()),
        steps in prop::collection::vec(step(), 1..900),
    ) {
        let (mut b, mut model) = (bench(name), Model::new(name));
        let mut held: Vec<(ReqId, usize)> = Vec::new();
        for step in steps {
            match step {
                Step::Insert(op, sync, n) => for _ in 0..n {
                    let id = insert_at(&mut b, 0, request(op, 0, sync));
                    let d = model.domain(op, sync);
                    model.queues[d].push_back(id);
                },
                Step::Dispatch(n) => for _ in 0..n {
                    let want = model.dispatch();
                    prop_assert_eq!(dispatch(&mut b, 0, 0), want.map(|w| w.0));
                    held.extend(want);
                },
                Step::Complete(n) => for (id, d) in held.drain(..n.min(held.len())) {
                    b.complete(0, id);
                    model.in_use[d] -= 1;
                },
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(Op, bool, usize),
    Dispatch(usize),
    Complete(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (op(), any::<bool>(), 1usize..40).prop_map(|(o, s, n)| Step::Insert(o, s, n)),
        3 => (1usize..60).prop_map(Step::Dispatch),
        1 => (1usize..60).prop_map(Step::Complete),
    ]
}

/// One hardware queue, no resizing: what the documentation says, word by word.
struct Model {
    sync_matters: bool,
    batch: Vec<u32>,
    tokens: Vec<u32>,
    in_use: Vec<u32>,
    queues: Vec<VecDeque<ReqId>>,
    cursor: usize,
    served: u32,
}

impl Model {
    fn new(name: &str) -> Model {
        let sync_matters = name == "kyber@4.12";
        let (batch, tokens) = match sync_matters {
            true => (vec![16, 8, 8], vec![256, 128, 64]),
            false => (vec![16, 8, 1, 1], vec![256, 128, 64, 16]),
        };
        let n = batch.len();
        let queues = vec![VecDeque::new(); n];
        Model { sync_matters, batch, tokens, in_use: vec![0; n], queues, cursor: 0, served: 0 }
    }

    fn domain(&self, op: Op, sync: bool) -> usize {
        match (op, self.sync_matters) {
            (Op::Read, _) => 0,
            (Op::Write, true) if sync => 1,
            (_, true) => 2,
            (Op::Write, false) => 1,
            (Op::Discard, false) => 2,
            (Op::Flush, false) => 3,
        }
    }

    fn try_domain(&mut self, d: usize) -> Option<(ReqId, usize)> {
        if self.in_use[d] == self.tokens[d] {
            return None;
        }
        let id = self.queues[d].pop_front()?;
        self.in_use[d] += 1;
        self.served += 1;
        Some((id, d))
    }

    fn dispatch(&mut self) -> Option<(ReqId, usize)> {
        if self.served < self.batch[self.cursor] {
            let got = self.try_domain(self.cursor);
            if got.is_some() {
                return got;
            }
        }
        self.served = 0;
        for _ in 0..self.batch.len() {
            self.cursor = (self.cursor + 1) % self.batch.len();
            let got = self.try_domain(self.cursor);
            if got.is_some() {
                return got;
            }
        }
        None
    }
}
