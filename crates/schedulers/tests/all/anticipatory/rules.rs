//! Single rules: jiffies, hints, duplicates, merges, the write count, the differences of the generations.

use super::*;
use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, MayQueue, MergeKind};
use iosched_types::{Bio, Flags, IoPrio, Request};

fn hz(name: &str, hz: u32) -> Bench {
    Bench::on(name, &[], QueueFacts { hz, ..QueueFacts::default() })
}

fn tunables(b: &Bench) -> [i64; 5] {
    ["read_expire", "write_expire", "antic_expire", "read_batch_expire", "write_batch_expire"]
        .map(|n| b.scheduler.tunable(n).unwrap())
}

fn counter(b: &Bench, name: &str) -> u64 {
    b.scheduler.counters().iter().find(|(n, _)| *n == name).unwrap().1
}

#[test]
fn defaults_are_whole_jiffies() {
    for name in BOTH {
        assert_eq!(tunables(&hz(name, 1000)), [125, 250, 6, 500, 125]);
        assert_eq!(tunables(&hz(name, 250)), [124, 248, 4, 500, 124]);
        assert_eq!(tunables(&hz(name, 100)), [120, 250, 10, 500, 120]);
        let count = [1000, 250, 100].map(|h| counter(&hz(name, h), "write_batch_count"));
        assert_eq!(count, [12, 3, 2]);
    }
}

#[test]
fn tunables_change_while_running_and_round_up_to_jiffies() {
    let mut b = hz("as@2.6.32", 250);
    b.with(0, |s, c| s.set_tunable(c, "read_expire", 5));
    b.with(0, |s, c| s.set_tunable(c, "antic_expire", 0));
    assert_eq!(tunables(&b), [8, 248, 0, 500, 124]);
    assert_eq!(b.scheduler.tunable("est_time"), None);
}

#[test]
fn without_anticipation_the_nearest_is_served_at_once() {
    for name in BOTH {
        let mut d = Driver::new(name, &[("antic_expire", 0)], QueueFacts::default());
        d.reader(0, 2, sequential(1000, 3));
        d.reader(1, 0, vec![FAR]);
        d.run(1000 * MS);
        assert_eq!(d.order(), "A0@0 B0@5 A1@10 A2@17", "{name}");
        assert!(d.idle.is_empty());
    }
}

/// Idling needs something to hold back.
#[test]
fn an_empty_scheduler_waits_for_nobody() {
    for name in BOTH {
        let mut d = driver(name);
        d.reader(0, 50, sequential(1000, 5));
        d.run(1000 * MS);
        assert!(d.idle.is_empty() && d.counter("waits") == 0);
    }
}

#[test]
fn the_target_of_a_wait_must_get_a_request() {
    let mut b = Bench::new("as@2.6.32", &[]);
    let a = b.insert(0, Op::Read, 1000, 8, 1);
    b.insert(0, Op::Read, FAR, 8, 2);
    let hint = |b: &mut Bench, task| b.with(0, |s, c| s.may_queue(c, Op::Read, Flags::NONE, task));
    assert_eq!(b.dispatch(0), Dispatch::Request(a));
    assert_eq!(hint(&mut b, 1), MayQueue::May);
    assert!(matches!(b.dispatch(0), Dispatch::Idle(i) if i.for_task == Some(1)));
    assert_eq!((hint(&mut b, 1), hint(&mut b, 2)), (MayQueue::Must, MayQueue::May));
    b.complete(5 * MS, a);
    assert_eq!(b.out.timer, Some(Some(11 * MS)));
    assert_eq!(hint(&mut b, 1), MayQueue::Must);
    b.with(11 * MS, |s, c| s.timer(c));
    assert!(b.out.run_by_worker);
    assert_eq!(hint(&mut b, 1), MayQueue::May);
}

#[test]
fn a_second_request_at_the_same_place_sends_the_first_on_its_way() {
    for name in BOTH {
        let mut b = Bench::new(name, &[]);
        let first = b.insert(0, Op::Read, 1000, 8, 1);
        let second = b.insert(0, Op::Read, 1000, 16, 2);
        assert_eq!(b.out.ejected, [first]);
        assert_eq!(b.dispatch(0), Dispatch::Request(first));
        b.complete(MS, first);
        assert_eq!(b.dispatch(7 * MS), Dispatch::Request(second));
        assert!(!b.scheduler.has_work());
    }
}

#[test]
fn a_front_merge_moves_the_request_in_the_tree() {
    for name in BOTH {
        let mut b = Bench::new(name, &[("antic_expire", 0)]);
        b.insert(0, Op::Read, 500, 8, 1);
        let moved = b.insert(0, Op::Read, 9000, 8, 1);
        let twin = b.insert(0, Op::Read, 400, 8, 1);
        b.reqs[moved].sector = 400;
        b.with(0, |s, c| s.merged(c, moved, MergeKind::Front, 9000));
        assert_eq!(b.out.ejected, [twin], "{name}: 400 is taken");
        assert_eq!(b.drain(0), ["R400", "R500", "R400"], "{name}: then from the oldest");
    }
}

/// The kernel's lookup confuses READ/WRITE with ASYNC/SYNC.
#[test]
fn front_merges_are_found_for_sync_writes_alone() {
    let mut b = Bench::new("as@2.6.32", &[]);
    b.insert(0, Op::Read, 1000, 8, 1);
    b.insert(0, Op::Write, 2000, 8, 1);
    let mut sync = Request::new(Op::Write, 3000, 8);
    sync.flags = Flags::SYNC;
    let sync = b.insert_request(0, sync);
    let mut front = |op, sector| {
        let (flags, prio) = (Flags::NONE, IoPrio::default());
        let bio = Bio {
            id: 0,
            op,
            flags,
            sector,
            sectors: 8,
            task: 1,
            thread: 1,
            prio,
            cgroup: 0,
            cpu: 0,
        };
        b.with(0, |s, c| s.find_front(c, &bio))
    };
    assert_eq!(front(Op::Read, 992), None);
    assert_eq!(front(Op::Write, 1992), None);
    assert_eq!(front(Op::Write, 2992), Some(sync));
    assert_eq!(front(Op::Write, 992), None, "a read is no candidate for a write");
}

/// The survivor inherits deadline and place of an older request it absorbs; in 2.6.18 also its process.
#[test]
fn absorbing_an_older_request_takes_over_its_place() {
    for name in BOTH {
        let mut b = Bench::new(name, &[("antic_expire", 0)]);
        let old = b.insert(0, Op::Read, 1008, 8, 1);
        b.insert(10 * MS, Op::Read, FAR, 8, 3);
        let young = b.insert(20 * MS, Op::Read, 1000, 8, 2);
        b.with(20 * MS, |s, c| s.absorbed(c, young, old));
        b.reqs[young].sectors = 16;
        b.with(20 * MS, |s, c| s.finished(c, old));
        b.reqs.remove(old);
        assert_eq!(b.reqs[young].fifo_time, 125);
        let Dispatch::Request(first) = b.dispatch(20 * MS) else { panic!("nothing") };
        assert_eq!(first, young, "the FIFO head begins the batch");
        // Which process would it wait for? This request's.
        b.with(20 * MS, |s, c| s.set_tunable(c, "antic_expire", 6));
        let Dispatch::Idle(idle) = b.dispatch(20 * MS) else { panic!("no wait") };
        assert_eq!(idle.for_task, Some(if name == "as@2.6.18" { 1 } else { 2 }));
    }
}

#[test]
fn a_forced_drain_gives_sync_by_position_then_async() {
    for name in BOTH {
        let mut b = Bench::new(name, &[]);
        for (op, sector) in [(Op::Write, 70), (Op::Read, 900), (Op::Write, 50), (Op::Read, 100)] {
            b.insert(0, op, sector, 8, 1);
        }
        let mut order = Vec::new();
        while let Some(id) = b.with(0, |s, c| s.force_dispatch(c)) {
            order.push(b.name(id));
            b.with(0, |s, c| s.activated(c, id));
            b.complete(0, id);
        }
        assert_eq!(order, ["R100", "R900", "W50", "W70"], "{name}");
        assert!(!b.scheduler.has_work());
    }
}

#[test]
fn a_head_insert_bypasses_the_queues() {
    let mut b = Bench::new("as@2.6.32", &[]);
    let id = b.reqs.add(Request::new(Op::Read, 8, 8));
    b.with(0, |s, c| s.insert(c, id, iosched_schedulers::Position::Head));
    assert!(b.out.ejected == [id] && !b.scheduler.has_work());
    b.with(0, |s, c| {
        s.activated(c, id);
        s.requeued(c, id);
        s.activated(c, id);
    });
    b.complete(0, id);
}

/// At start-up the batch end lies ahead and no write is left, so the first sync completion doubles the count.
#[test]
fn the_first_read_doubles_the_write_count() {
    for name in BOTH {
        let mut d = driver(name);
        d.single(0, Op::Read, 1000, true);
        d.run(100 * MS);
        assert_eq!(d.counter("write_batch_count"), 24, "{name}");
        assert!(d.reasons().iter().any(|r| r.contains("12 → 24 writes per batch")));
    }
}

/// A batch of writes that takes longer than its time gets smaller, by half if it is far too long.
#[test]
fn the_write_count_follows_the_time_that_batches_take() {
    let counts = |name: &str, service: fn(&Request) -> u64| -> Vec<String> {
        let mut d = driver(name);
        d.service = service;
        d.reader(0, 0, sequential(1000, 2000));
        (0..60).for_each(|i| {
            d.single(0, Op::Write, FAR + 1000 * i, false);
        });
        d.run(20_000 * MS);
        let notes = d.reasons();
        let change =
            |r: &String| Some(r.split_once(" ms: ")?.1.strip_suffix(" writes per batch")?.into());
        notes.iter().filter_map(change).collect()
    };
    for name in BOTH {
        // Three writes fit: 180 ms and the first read are more than 125 ms.
        let slow = counts(name, |r| if r.op == Op::Write { 60 * MS } else { 5 * MS });
        assert_eq!(slow[..4], ["12 → 24", "24 → 23", "23 → 22", "22 → 21"], "{name}");
        // A single write takes more than three times the time.
        let hopeless = counts(name, |r| if r.op == Op::Write { 400 * MS } else { 5 * MS });
        assert_eq!(hopeless, ["12 → 24", "24 → 12", "12 → 6", "6 → 3", "3 → 1"], "{name}");
    }
}

/// 2.6.18 begins with the best position, 2.6.32 with the oldest.
#[test]
fn an_async_batch_begins_by_position_or_by_age() {
    for (name, want) in [("as@2.6.18", ["W100", "W900"]), ("as@2.6.32", ["W900", "W100"])] {
        let mut b = Bench::new(name, &[("antic_expire", 0)]);
        b.insert(0, Op::Read, 5, 8, 2);
        assert_eq!(b.drain(0), ["R5"]);
        b.insert(0, Op::Write, 900, 8, 1);
        b.insert(0, Op::Write, 100, 8, 1);
        assert_eq!(b.drain(0), want, "{name}");
    }
}

/// The range that counts as close doubles per ms in 2.6.18 and per jiffy in 2.6.32.
#[test]
fn at_250_hz_the_older_kernel_calls_more_close() {
    for (name, distance, breaks) in [
        ("as@2.6.18", 131_072, true),
        ("as@2.6.18", 131_073, false),
        ("as@2.6.32", 16_384, true),
        ("as@2.6.32", 16_385, false),
    ] {
        let queue = QueueFacts { hz: 250, ..QueueFacts::default() };
        let mut b = Bench::on(name, &[("antic_expire", 20)], queue);
        let a = b.insert(0, Op::Read, 992, 8, 1);
        b.insert(0, Op::Read, FAR, 8, 2);
        assert_eq!(b.dispatch(0), Dispatch::Request(a));
        b.complete(4 * MS, a);
        assert!(matches!(b.dispatch(4 * MS), Dispatch::Idle(_)));
        // One jiffy later.
        let close = b.insert(8 * MS, Op::Read, 1000 + distance, 8, 3);
        let got = b.dispatch(8 * MS);
        assert_eq!(got == Dispatch::Request(close), breaks, "{name}, {distance}");
    }
}

/// Going back is allowed within 512 MiB and costs double; beyond, the next sweep starts at the lowest.
#[test]
fn positions_are_served_in_a_mostly_upward_sweep() {
    for name in BOTH {
        let mut b = Bench::new(name, &[("antic_expire", 0)]);
        for sector in [5_000_000, 5_000_300, 4_999_900, 10, 4_000_000, 9_000_000] {
            b.insert(0, Op::Read, sector, 8, 1);
        }
        let order = b.drain(0);
        let want = ["R5000000", "R4999900", "R5000300", "R4000000", "R9000000", "R10"];
        assert_eq!(order, want, "{name}");
    }
}
