//! No hook allocates in steady state: once a scheduler has held its largest number of requests, memory
//! is only reused.
#![allow(unsafe_code, reason = "a global allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use iosched_schedulers::{
    Actions, BuildArgs, Ctx, Dispatch, KernelVersion, Position, QueueFacts, Scheduler, registry,
};
use iosched_types::{Op, Request, Requests};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is being torn down has nothing left to count.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(ptr, layout, size) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

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
    let names = [
        "none",
        "noop@2.6.18",
        "noop@3.12",
        "deadline@2.6.18",
        "deadline@2.6.32",
        "deadline@3.12",
        "mq-deadline@4.12",
        "mq-deadline@5.15",
        "mq-deadline@6.1",
        "mq-deadline@6.12",
        "anticipatory@2.6.18",
        "anticipatory@2.6.32",
        "kyber@4.12",
        "kyber@4.20",
        "kyber@5.0",
        "kyber@6.17",
        "bfq@v7r3",
        "bfq@4.12",
        "bfq@6.12",
    ];
    for name in names {
        for spread in [1 << 30, 40] {
            let mut load = Load::new(name);
            // A tree may need more chunks for one order of arrivals than for another: warm up on many.
            (0..20).for_each(|_| load.round(spread));
            let before = ALLOCATIONS.get();
            load.round(spread);
            assert_eq!(ALLOCATIONS.get() - before, 0, "{name}, {spread} positions");
            assert!(load.reqs.is_empty());
        }
    }
}
