//! Flushes: coalescing, the sequence around data, deferral while data is in flight.

use iosched_types::{Flags, Op};

use super::{Rig, config};

const FSYNC: Flags = Flags(Flags::SYNC.0 | Flags::PREFLUSH.0);
const JOURNAL: Flags = Flags(Flags::SYNC.0 | Flags::PREFLUSH.0 | Flags::FUA.0);

fn cached(scheduler: &str, kernel: &str, fua: bool, ms: u64) -> Rig {
    let mut c = config(scheduler, kernel, 8, ms);
    (c.write_cache, c.fua) = (true, fua);
    Rig::new(c)
}

/// FL-1: flushes that come while one is under way share the next.
#[test]
fn flushes_coalesce() {
    for (scheduler, kernel) in [("none", "6.12"), ("mq-deadline", "6.12"), ("deadline", "3.12")] {
        let mut r = cached(scheduler, kernel, false, 10);
        r.bio(0, Op::Flush, 0, 0, FSYNC);
        r.returns();
        r.to(1.0);
        r.bio(1, Op::Flush, 0, 0, FSYNC);
        r.bio(2, Op::Flush, 0, 0, FSYNC);
        r.returns();
        r.to(50.0);
        assert_eq!(r.sent(), ["F@0", "F@10"], "{scheduler}");
        assert_eq!(r.done, [(0, 10.0), (1, 20.0), (2, 20.0)], "{scheduler}");
    }
}

/// FL-2: flush before and after, as far as the device needs them.
#[test]
fn a_forced_write_is_flushed_around_as_needed() {
    for (scheduler, kernel) in [("none", "6.12"), ("mq-deadline", "6.12"), ("deadline", "3.12")] {
        for (cache, fua, sent, end) in [
            (true, false, vec!["F@0", "W100@5", "F@10"], 15.0),
            (true, true, vec!["F@0", "W100@5"], 10.0),
            (false, false, vec!["W100@0"], 5.0),
        ] {
            let mut c = config(scheduler, kernel, 8, 5);
            (c.write_cache, c.fua) = (cache, fua);
            let mut r = Rig::new(c);
            r.bio(0, Op::Write, 100, 8, JOURNAL);
            r.returns();
            r.to(50.0);
            assert_eq!(r.sent(), sent, "{scheduler}, cache {cache}, FUA {fua}");
            assert_eq!(r.done, [(0, end)], "{scheduler}, cache {cache}, FUA {fua}");
        }
    }
}

/// FL-2 without data and without a cache: there is nothing to do.
#[test]
fn a_flush_without_a_cache_is_done_at_once() {
    for (scheduler, kernel) in [("none", "6.12"), ("mq-deadline", "6.12"), ("deadline", "3.12")] {
        let mut r = Rig::new(config(scheduler, kernel, 8, 5));
        r.bio(0, Op::Flush, 0, 0, FSYNC);
        r.returns();
        assert_eq!((r.sent().len(), r.done.len()), (0, 1), "{scheduler}");
    }
}

/// FL-3: with a scheduler a flush waits for data in flight and shares the command that follows it; without one it
/// started at once. An event log of 6.12 (four tasks that sync on XFS, `none`) shows that it waits there, too.
#[test]
fn a_flush_waits_for_data() {
    for (scheduler, kernel, sent, ends) in [
        ("mq-deadline", "6.12", vec!["W100@0", "F@5"], (10.0, 10.0)),
        ("none", "6.12", vec!["W100@0", "F@5"], (10.0, 10.0)),
        ("none", "4.12", vec!["W100@0", "F@2", "F@7"], (12.0, 7.0)),
    ] {
        let mut r = cached(scheduler, kernel, false, 5);
        r.bio(0, Op::Write, 100, 8, Flags(Flags::SYNC.0 | Flags::FUA.0));
        r.returns();
        r.to(2.0);
        r.bio(1, Op::Flush, 0, 0, FSYNC);
        r.returns();
        r.to(50.0);
        assert_eq!(r.sent(), sent, "{scheduler} {kernel}");
        let end = |bio| r.done.iter().find(|d| d.0 == bio).unwrap().1;
        assert_eq!((end(0), end(1)), ends, "{scheduler}");
    }
}

/// The data of a flush sequence goes around the scheduler, ahead of what waits there.
#[test]
fn data_of_a_flush_sequence_bypasses_the_scheduler() {
    let mut c = config("mq-deadline", "6.12", 1, 5);
    (c.write_cache, c.budget) = (true, true);
    c.settings = vec![("nr_requests".into(), 64)];
    let mut r = Rig::new(c);
    r.submits(0, "R1 R100 R200").returns();
    r.bio(1, Op::Write, 900, 8, Flags(Flags::SYNC.0 | Flags::FUA.0));
    r.returns();
    r.to(100.0);
    assert_eq!(r.order(), ["R1", "W900", "F", "R100", "R200"]);
}
