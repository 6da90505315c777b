//! No hook allocates in steady state: once a scheduler has held its largest number of requests, memory
//! is only reused.

use iosched_schedulers::{
    Actions, BuildArgs, Ctx, Dispatch, KernelVersion, Position, QueueFacts, Scheduler, registry,
};
use iosched_testing::allocations;
use iosched_types::{Op, Request, Requests};

struct Load {
    scheduler: Box<dyn Scheduler>,
    reqs: Requests,
    queue: QueueFacts,
    out: Actions,
    state: u64,
    now: u64,
}

impl Load {
    fn new(name: &str) -> Load {
        let (d, g) = registry::resolve(name, KernelVersion(6, 12, 0)).expect("a known name");
        let queue = QueueFacts::default();
        let values = d.resolve_tunables(g.index, &queue, &[]).expect("defaults");
        let args = BuildArgs { generation: g.index, tunables: &values, queue: &queue, now: 0 };
        let scheduler = (d.build)(&args);
        let (reqs, out) = (Requests::with_capacity(512), Actions::default());
        Load { scheduler, reqs, queue, out, state: 1, now: 0 }
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.state >> 33
    }

    fn insert(&mut self, spread: u64) {
        let r = self.random();
        let op = if r & 3 == 0 { Op::Write } else { Op::Read };
        let sector = r % spread * 8;
        let id = self.reqs.add(Request::new(op, sector, 8));
        self.timers(self.now + 1_000_000);
        let mut ctx =
            Ctx { now: self.now, reqs: &mut self.reqs, queue: &self.queue, out: &mut self.out };
        self.scheduler.prepare(&mut ctx, id);
        self.scheduler.insert(&mut ctx, id, Position::Sort);
    }

    fn take(&mut self) {
        self.out.findable.clear();
        let id = match self.out.ejected.pop() {
            Some(id) => id,
            None => {
                let (queue, out) = (&self.queue, &mut self.out);
                let mut ctx = Ctx { now: self.now, reqs: &mut self.reqs, queue, out };
                match self.scheduler.dispatch(&mut ctx, 0) {
                    Dispatch::Request(id) => id,
                    Dispatch::Idle(idle) => return self.timers(idle.until),
                    Dispatch::Empty => return,
                }
            }
        };
        let (queue, out) = (&self.queue, &mut self.out);
        let mut ctx = Ctx { now: self.now, reqs: &mut self.reqs, queue, out };
        self.scheduler.activated(&mut ctx, id);
        self.scheduler.completed(&mut ctx, id);
        self.scheduler.finished(&mut ctx, id);
        self.reqs.remove(id);
    }

    /// Lets time pass, and the timer fire if it is due.
    fn timers(&mut self, until: u64) {
        self.now = self.now.max(until);
        if self.out.timer.flatten().is_some_and(|at| at <= self.now) {
            self.out.timer = None;
            let (queue, out) = (&self.queue, &mut self.out);
            let mut ctx = Ctx { now: self.now, reqs: &mut self.reqs, queue, out };
            self.scheduler.timer(&mut ctx);
        }
    }

    /// Fills to 256, swings between 16 and 256, drains.
    fn round(&mut self, spread: u64) {
        for low in [16, 100, 16, 0] {
            while self.reqs.len() < 256 {
                self.insert(spread);
            }
            for _ in 0..1000 {
                self.insert(spread);
                self.take();
            }
            while self.reqs.len() > low {
                self.take();
            }
        }
    }
}

#[test]
fn hooks_reuse_their_memory() {
    // CFQ has queues for each process, and a test of its own.
    let families = registry::SCHEDULERS.iter().filter(|d| d.name != "cfq");
    let names = families.flat_map(|d| {
        d.generations.iter().map(|g| match d.generations {
            [_] => d.name.to_string(),
            _ => format!("{}@{}", d.name, g.name),
        })
    });
    for name in names {
        for spread in [1 << 30, 40] {
            let mut load = Load::new(&name);
            // A tree may need more chunks for one order of arrivals than for another: warm up on many.
            (0..20).for_each(|_| load.round(spread));
            let before = allocations();
            load.round(spread);
            assert_eq!(allocations() - before, 0, "{name}, {spread} positions");
            assert!(load.reqs.is_empty());
        }
    }
}
