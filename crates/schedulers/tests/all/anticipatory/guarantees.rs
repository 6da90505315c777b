//! What holds under any load: nothing lost or served twice, no endless wait, an expired read does not wait
//! long, a write does not starve.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Load {
    name: &'static str,
    hz: u32,
    depth: u32,
    /// (start ms, think ms, first place, number of reads, distance of one to the next)
    readers: Vec<(u64, u64, u64, u64, u64)>,
    /// (at µs, write, place, sync)
    singles: Vec<(u64, bool, u64, bool)>,
}

fn load() -> impl Strategy<Value = Load> {
    let reader = (0u64..300, 0u64..15, 0u64..1000, 1u64..40, prop_oneof![Just(8), 1u64..2_000_000]);
    let single = (0u64..600_000, any::<bool>(), 0u64..200, any::<bool>());
    (
        prop::sample::select(BOTH.as_slice()),
        prop::sample::select(&[100, 250, 1000]),
        prop_oneof![Just(1u32), 2u32..33],
        prop::collection::vec(reader, 0..8),
        prop::collection::vec(single, 0..150),
    )
        .prop_map(|(name, hz, depth, readers, singles)| Load {
            name,
            hz,
            depth,
            readers,
            singles,
        })
}

fn play(load: &Load) -> Driver {
    let queue = QueueFacts { hz: load.hz, queue_depth: load.depth, ..QueueFacts::default() };
    let mut d = Driver::new(load.name, &[], queue);
    d.depth = load.depth;
    d.service = |r| (r.sector % 7 + 1) * MS;
    for &(start, think, place, n, step) in &load.readers {
        d.reader(start, think, (0..n).map(|i| place * 1_000_000 + i * step).collect());
    }
    for &(at, write, place, sync) in &load.singles {
        let op = if write { Op::Write } else { Op::Read };
        d.single(at * 1000, op, place * 40_000, sync || !write);
    }
    d.run(1_000_000 * MS);
    d
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_is_lost_or_served_twice(load in load()) {
        let d = play(&load);
        let reads: u64 = load.readers.iter().map(|r| r.3).sum();
        let all = reads as usize + load.singles.len();
        prop_assert_eq!((d.inserted, d.issued.len(), d.completed), (all, all, all));
        prop_assert!(!d.bench.scheduler.has_work() && d.bench.reqs.is_empty());
        let mut served: Vec<(u32, u64)> = d.issued.iter().map(|i| (i.task, i.sector)).collect();
        served.sort_unstable();
        served.dedup();
        prop_assert_eq!(served.len(), all);
    }

    #[test]
    fn a_wait_is_never_longer_than_antic_expire(load in load()) {
        let d = play(&load);
        let antic = u64::from((load.hz / 150).max(1)) * 1_000_000_000 / u64::from(load.hz);
        for (from, until) in d.idle {
            prop_assert!(until - from <= antic, "{from} until {until}");
        }
    }

    /// The head of the sync FIFO is held against the clock once per read_expire, so an expired read is
    /// served within twice that time, plus one request and one wait.
    #[test]
    fn a_far_read_is_served_soon_after_it_expires(
        name in prop::sample::select(BOTH.as_slice()),
        at in 0u64..400_000,
        think in 0u64..6,
        reach in prop_oneof![Just(20_000_000u64), 20_000_000u64..400_000_000],
    ) {
        let mut d = driver(name);
        d.reader(0, think, sequential(1000, 400));
        d.single(at * 1000, Op::Read, reach, true);
        d.run(10_000 * MS);
        let far = d.issued.iter().find(|i| i.sector == reach).unwrap();
        let waited = far.at - far.inserted;
        prop_assert!(waited <= (2 * 125 + 5 + 6 + 1) * MS, "waited {} µs", waited / 1000);
        // And the reader is preferred until then: the far one does not come first.
        let expired = waited > 125 * MS;
        prop_assert_eq!(d.counter("expired") > 0, expired);
    }

    /// A write waits for one sync batch at most (from its first completion), not for ever.
    #[test]
    fn writes_have_their_turn_after_a_read_batch(
        name in prop::sample::select(BOTH.as_slice()),
        at in 0u64..400_000,
        think in 0u64..6,
    ) {
        let mut d = driver(name);
        d.reader(0, think, sequential(1000, 1000));
        d.single(at * 1000, Op::Write, FAR, false);
        d.run(20_000 * MS);
        let write = d.issued.iter().find(|i| i.op == Op::Write).unwrap();
        let waited = write.at - write.inserted;
        prop_assert!(waited <= (500 + 5 + 6 + 1) * MS, "waited {} µs", waited / 1000);
    }
}
