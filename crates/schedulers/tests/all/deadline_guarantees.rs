//! What noop, none, deadline and mq-deadline promise, whatever the load.

use std::collections::BTreeMap;

use iosched_schedulers::Dispatch;
use iosched_schedulers::testing::Bench;
use iosched_types::{IoPrio, Op, PrioClass, ReqId, Request};
use proptest::prelude::*;

const SORTED: [&str; 7] = [
    "deadline@2.6.18",
    "deadline@2.6.32",
    "deadline@3.12",
    "mq-deadline@4.12",
    "mq-deadline@5.15",
    "mq-deadline@6.1",
    "mq-deadline@6.12",
];
const MS: u64 = 1_000_000;

fn given(b: &mut Bench, now: u64) -> Option<ReqId> {
    match b.dispatch(now) {
        Dispatch::Request(id) => Some(id),
        _ => None,
    }
}

/// How many dispatches may pass between the deadline of a request and its own, with `ahead`
/// requests of its direction older than it: the batch that runs, then for each of them and itself one
/// batch of its direction and those of the other one that may come between.
fn bound(fifo_batch: i64, writes_starved: i64, ahead: usize) -> u64 {
    let between = writes_starved.max(1) as u64 + 1;
    fifo_batch.max(1) as u64 * (1 + between * (ahead as u64 + 1))
}

struct Waiting {
    /// ns; from then on dispatches count.
    expiry: u64,
    /// Older requests of the same direction when it came.
    ahead: usize,
    passed: u64,
}

/// One request per millisecond in and, once there are `depth`, one out.
fn overtakes(name: &str, set: &[(&str, i64)], depth: usize, load: &[(bool, u64)]) {
    let mut b = Bench::new(name, set);
    let get = |n: &str| set.iter().find(|s| s.0 == n).map_or(0, |s| s.1);
    let (batch, starved) = (get("fifo_batch"), get("writes_starved"));
    let mut waiting: BTreeMap<ReqId, Waiting> = BTreeMap::new();
    for (ms, &(read, sector)) in load.iter().enumerate() {
        let now = ms as u64 * MS;
        let op = if read { Op::Read } else { Op::Write };
        let expire = get(if read { "read_expire" } else { "write_expire" }) as u64 * MS;
        let ahead = waiting.keys().filter(|id| b.reqs[**id].op == op).count();
        let id = b.insert(now, op, sector * 8, 8, 0);
        // One tick more: legacy kernels ask whether the deadline has passed.
        waiting.insert(id, Waiting { expiry: now + expire + MS, ahead, passed: 0 });
        if waiting.len() < depth {
            continue;
        }
        let id = given(&mut b, now).expect("something waits");
        waiting.remove(&id).expect("it was waiting");
        b.complete(now, id);
        for w in waiting.values_mut().filter(|w| w.expiry <= now) {
            w.passed += 1;
            let most = bound(batch, starved, w.ahead);
            assert!(
                w.passed <= most,
                "{name}: {} dispatches after expiry, {most} allowed",
                w.passed
            );
        }
    }
}

fn load() -> impl Strategy<Value = Vec<(bool, u64)>> {
    // Mostly a stream that goes up, the best food for a batch; sometimes far away.
    let one = prop_oneof![4 => Just(None), 1 => (0..100_000u64).prop_map(Some)];
    prop::collection::vec((any::<bool>(), one), 1..600).prop_map(|v| {
        let stream = v.into_iter().enumerate();
        stream.map(|(i, (read, far))| (read, far.unwrap_or(50_000 + i as u64))).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn a_late_request_is_passed_over_a_bounded_number_of_times(
        batch in 1..6i64, starved in 1..4i64, read in 0..60i64, write in 0..120i64,
        depth in 2..24usize, load in load(),
    ) {
        let set = [
            ("fifo_batch", batch),
            ("writes_starved", starved),
            ("read_expire", read),
            ("write_expire", write),
        ];
        SORTED.iter().for_each(|name| overtakes(name, &set, depth, &load));
    }

    /// With a deadline of zero and no batches, age is all that counts within a direction.
    #[test]
    fn without_patience_each_direction_is_first_in_first_out(load in load()) {
        let set = [("fifo_batch", 0), ("read_expire", 0), ("write_expire", 0)];
        for name in SORTED {
            let mut b = Bench::new(name, &set);
            let mut came: [Vec<ReqId>; 2] = Default::default();
            for &(read, sector) in &load {
                let op = if read { Op::Read } else { Op::Write };
                // Unique starts: old trees would eject duplicates.
                let sector = sector * 1000 + came[0].len() as u64 + came[1].len() as u64;
                came[usize::from(read)].push(b.insert(0, op, sector, 1, 0));
            }
            let mut went: [Vec<ReqId>; 2] = Default::default();
            while let Some(id) = given(&mut b, MS) {
                went[usize::from(b.reqs[id].op == Op::Read)].push(id);
            }
            prop_assert_eq!(&went, &came, "{}", name);
        }
    }

    /// While requests wait and none is in flight, asking always yields one.
    #[test]
    fn nobody_idles(load in load(), classes in prop::collection::vec(0..4u8, 1..600)) {
        let fifo = ["none", "noop@2.6.18", "noop@3.12"];
        for name in SORTED.iter().chain(&fifo) {
            let mut b = Bench::new(name, &[]);
            let mut order = Vec::new();
            for (&(read, sector), &class) in load.iter().zip(&classes) {
                let mut r = Request::new(if read { Op::Read } else { Op::Write }, sector * 8, 8);
                let class = [PrioClass::None, PrioClass::Rt, PrioClass::Be, PrioClass::Idle]
                    [usize::from(class)];
                r.prio = IoPrio { class, level: 0 };
                order.push(b.insert_request(0, r));
            }
            let mut went = Vec::new();
            while b.scheduler.has_work() || !b.out.ejected.is_empty() {
                let id = given(&mut b, 0);
                prop_assert!(id.is_some(), "{} holds back with nothing in flight", name);
                went.extend(id);
                id.into_iter().for_each(|id| b.with(0, |s, c| {
                    s.completed(c, id);
                    s.finished(c, id);
                }));
            }
            if fifo.contains(name) {
                prop_assert_eq!(&went, &order, "{} keeps the order of arrival", name);
            }
            went.sort_unstable();
            prop_assert_eq!(went, order, "{} gives each request once", name);
        }
    }

    /// A drain gives everything, whatever is in flight.
    #[test]
    fn a_forced_drain_empties_the_scheduler(load in load(), held in 0..4usize) {
        for name in SORTED {
            let mut b = Bench::new(name, &[]);
            for (i, &(read, sector)) in load.iter().enumerate() {
                let mut r = Request::new(if read { Op::Read } else { Op::Write }, sector * 8, 8);
                let class = [PrioClass::Rt, PrioClass::Be, PrioClass::Idle][i % 3];
                r.prio = IoPrio { class, level: 0 };
                b.insert_request(0, r);
            }
            let mut out = (0..held).filter(|_| given(&mut b, 0).is_some()).count();
            out += b.out.ejected.len();
            while b.with(0, |s, c| s.force_dispatch(c)).is_some() {
                out += 1;
            }
            prop_assert_eq!(out, load.len(), "{}", name);
            prop_assert!(b.scheduler.is_empty());
        }
    }
}
