//! CFQ allocates nothing once it has held its largest number of processes and requests, though queues
//! come and go, merge and split.
#![allow(clippy::unwrap_used, reason = "tests")]

use iosched_schedulers::{
    Actions, BuildArgs, Ctx, Dispatch, KernelVersion, Position, QueueFacts, Scheduler, registry,
};
use iosched_testing::allocations;
use iosched_types::{Flags, Op, ReqId, Request, Requests};

const TASKS: u64 = 24;
const FULL: usize = 200;

struct Load {
    scheduler: Box<dyn Scheduler>,
    reqs: Requests,
    queue: QueueFacts,
    out: Actions,
    flight: Vec<ReqId>,
    timer: Option<u64>,
    state: u64,
    now: u64,
    served: u64,
}

impl Load {
    fn new(name: &str) -> Load {
        let (d, g) = registry::resolve(name, KernelVersion(4, 12, 0)).unwrap();
        let queue = QueueFacts::default();
        let values = d.resolve_tunables(g.index, &queue, &[]).unwrap();
        let args = BuildArgs { generation: g.index, tunables: &values, queue: &queue, now: 0 };
        Load {
            scheduler: (d.build)(&args),
            reqs: Requests::with_capacity(2 * FULL),
            queue,
            out: Actions::default(),
            flight: Vec::with_capacity(64),
            timer: None,
            state: 1,
            now: 0,
            served: 0,
        }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.state >> 33
    }

    fn with<T>(&mut self, f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>) -> T) -> T {
        let (queue, out) = (&self.queue, &mut self.out);
        let mut ctx = Ctx { now: self.now, reqs: &mut self.reqs, queue, out };
        f(self.scheduler.as_mut(), &mut ctx)
    }

    fn insert(&mut self) {
        let r = self.random();
        let op = if r & 7 == 0 { Op::Write } else { Op::Read };
        // Some processes read next to each other and share a queue for a while.
        let mut q = Request::new(op, (r >> 8) % 50_000 * 8, 8);
        q.task = (self.random() % TASKS) as u32;
        if r & 63 == 1 {
            (q.op, q.flags) = (Op::Write, Flags::SYNC);
        }
        q.t_start = self.now;
        let id = self.reqs.add(q);
        self.with(|s, c| {
            s.prepare(c, id);
            s.insert(c, id, Position::Sort);
        });
    }

    fn settle(&mut self) {
        if let Some(t) = self.out.timer.take() {
            self.timer = t;
        }
        while let Some(id) = self.out.ejected.pop() {
            self.with(|s, c| s.activated(c, id));
            self.flight.push(id);
        }
        if self.timer.is_some_and(|at| at <= self.now) {
            self.timer = None;
            self.with(|s, c| s.timer(c));
        }
    }

    fn step(&mut self) {
        self.settle();
        let room = self.flight.len() < 16;
        if room && let Dispatch::Request(id) = self.with(|s, c| s.dispatch(c, 0)) {
            self.with(|s, c| s.activated(c, id));
            self.flight.push(id);
            return;
        }
        self.now += 200_000;
        if let Some(id) = self.flight.pop() {
            self.with(|s, c| {
                s.completed(c, id);
                s.finished(c, id);
            });
            self.reqs.remove(id);
            self.served += 1;
        }
        if self.random().is_multiple_of(50) {
            let task = (self.random() % TASKS) as u32;
            self.with(|s, c| s.task_exited(c, task));
        }
    }

    /// Fills, keeps full for a while, drains.
    fn round(&mut self) {
        for _ in 0..4000 {
            while self.reqs.len() < FULL {
                self.insert();
            }
            self.step();
        }
        let mut steps = 0;
        while !self.reqs.is_empty() {
            self.step();
            steps += 1;
            assert!(steps < 1_000_000, "stuck with {} requests", self.reqs.len());
        }
    }
}

#[test]
fn hooks_reuse_their_memory() {
    for name in ["cfq@2.6.18", "cfq@3.12", "cfq@4.12"] {
        let mut load = Load::new(name);
        // Which queue needs how many chunks depends on the order of arrivals: warm up on many.
        (0..60).for_each(|_| load.round());
        let before = allocations();
        load.round();
        assert_eq!(allocations() - before, 0, "{name}");
        assert!(load.served > 10_000, "{name}: {}", load.served);
    }
}
