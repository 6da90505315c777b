//! The figures of worked scenarios: budget feedback, slots charged by time, v7's idle times.

use iosched_types::Requests;

use super::*;
use crate::api::{Actions, QueueFacts};
use crate::bfq::descriptor::DESCRIPTOR;
use crate::descriptor::{BuildArgs, KernelVersion};
use crate::registry;

/// A scheduler and a queue of weight 40 in service that was served this many sectors of its budget.
struct Slot {
    bfq: Bfq,
    q: QueueId,
}

fn slot(name: &str, budget: u64, served: u64) -> Slot {
    let facts = QueueFacts { hz: 1000, ..QueueFacts::default() };
    let (_, g) = registry::resolve(name, KernelVersion(6, 12, 0)).unwrap();
    let tunables =
        DESCRIPTOR.resolve_tunables(g.index, &facts, &[("low_latency".into(), 0)]).unwrap();
    let args = BuildArgs { generation: g.index, tunables: &tunables, queue: &facts, now: 0 };
    let mut bfq = Bfq::new(&args);
    let q = bfq.new_queue(0, true, 1, 4);
    let e = bfq.q(q).entity;
    bfq.engine.set_budget(e, budget);
    bfq.engine.activate(e, false);
    assert_eq!(bfq.engine.take(), Some(q));
    bfq.in_service = q;
    bfq.engine.charge(e, served);
    Slot { bfq, q }
}

impl Slot {
    fn charged(mut self, ms: Nanos, reason: Reason) -> u64 {
        self.bfq.settle(self.q, ms * MS, reason);
        self.bfq.engine.service(self.bfq.q(self.q).entity)
    }

    fn next_budget(mut self, max_budget: u64, in_flight: u32, reason: Reason) -> u64 {
        let queue = self.bfq.qm(self.q);
        (queue.max_budget, queue.dispatched) = (max_budget, in_flight);
        let (mut reqs, facts, mut out) =
            (Requests::default(), QueueFacts::default(), Actions::default());
        let ctx = Ctx { now: 0, reqs: &mut reqs, queue: &facts, out: &mut out };
        self.bfq.next_budget(&ctx, self.q, reason);
        self.bfq.q(self.q).max_budget
    }
}

#[test]
fn budget_feedback() {
    let next = |served, max_budget, in_flight, reason| {
        slot("bfq@6.12", 16_384, served).next_budget(max_budget, in_flight, reason)
    };
    assert_eq!(next(0, 10_922, 0, Reason::TooIdle), 8874);
    assert_eq!(next(0, 10_922, 1, Reason::TooIdle), 16_384);
    assert_eq!(next(0, 2560, 0, Reason::TooIdle), 512, "2560 is not more than five times 512");
    assert_eq!(next(0, 10_922, 0, Reason::Exhausted), 16_384);
    assert_eq!(next(256, 10_922, 0, Reason::NoMore), 512);
    assert_eq!(next(3000, 10_922, 0, Reason::NoMore), 3000);
}

#[test]
fn slow_slots_are_charged_by_time() {
    for (served, ms, reason, current, first) in [
        (80, 125, Reason::Timeout, 16_384, 80),
        (80, 50, Reason::Preempted, 6553, 6553),
        (80, 50, Reason::TooIdle, 6553, 6553),
        (9000, 125, Reason::Timeout, 16_384, 9000),
        (12_000, 125, Reason::Timeout, 12_000, 12_000),
    ] {
        let charged = |name| slot(name, 16_384, served).charged(ms, reason);
        assert_eq!(charged("bfq@6.12"), current, "{served} sectors in {ms} ms");
        assert_eq!(charged("bfq@4.12"), first, "4.12: {served} sectors in {ms} ms");
    }
}

#[test]
fn v7_idles_longer_for_raised_queues_and_shorter_for_seeky_ones() {
    let idle = |change: fn(&mut Bfq, QueueId)| {
        let Slot { mut bfq, q } = slot("bfq@v7r3", 16_384, 80);
        change(&mut bfq, q);
        bfq.v7_idle_end(q)
    };
    assert_eq!(idle(|_, _| ()), 8 * MS);
    assert_eq!(idle(|bfq, q| bfq.qm(q).raise.coeff = 20), 24 * MS);
    let seeky = |bfq: &mut Bfq, q| {
        let queue = bfq.qm(q);
        (queue.constantly_seeky, queue.seeks.avg.samples) = (true, 249);
    };
    assert_eq!(idle(seeky), 2 * MS);
}
