//! Single hooks of deadline and mq-deadline: merges, tag limits, requeues, tunables.

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, MergeKind, Position, QueueFacts};
use iosched_types::{Bio, Flags, IoPrio, Op, Request};

const MS: u64 = 1_000_000;

fn bio(op: Op, sector: u64, sectors: u32, prio: &str) -> Bio {
    let prio = IoPrio::parse(prio).expect("a priority");
    let flags = Flags::NONE;
    Bio { id: 0, op, flags, sector, sectors, task: 0, thread: 0, prio, cgroup: 0, cpu: 0 }
}

fn with_prio(sector: u64, prio: &str) -> Request {
    let mut r = Request::new(Op::Read, sector, 8);
    r.prio = IoPrio::parse(prio).expect("a priority");
    r
}

fn front(b: &mut Bench, bio: Bio) -> Option<u32> {
    b.with(0, |s, c| s.find_front(c, &bio))
}

/// DL-8: the older part's deadline and place in the order of arrival survive a merge.
#[test]
fn a_merged_request_inherits_the_earlier_deadline_and_its_place() {
    for name in ["deadline@2.6.24", "deadline@3.12", "mq-deadline@4.12", "mq-deadline@6.12"] {
        let mut b = Bench::new(name, &[]);
        let older = b.insert(0, Op::Read, 1016, 8, 0);
        let between = b.insert(5 * MS, Op::Read, 500, 8, 0);
        let newer = b.insert(10 * MS, Op::Read, 1000, 8, 0);
        b.reqs[newer].sectors = 16;
        b.with(20 * MS, |s, c| {
            s.merged(c, newer, MergeKind::Back, 1000);
            assert_eq!(s.next_neighbour(c, newer), Some(older));
            s.absorbed(c, newer, older);
        });
        assert_eq!(b.reqs[newer].fifo_time, 500, "{name}");
        assert_eq!(b.reqs[between].fifo_time, 505, "{name}");
        // Both have expired at 600 ms: the older one starts the batch.
        let Dispatch::Request(first) = b.dispatch(600 * MS) else { panic!("{name} is empty") };
        assert_eq!(first, newer, "{name}");
    }
}

#[test]
fn a_younger_part_changes_neither_deadline_nor_place() {
    let mut b = Bench::new("deadline@3.12", &[]);
    let older = b.insert(0, Op::Read, 1000, 8, 0);
    let newer = b.insert(10 * MS, Op::Read, 1008, 8, 0);
    b.with(20 * MS, |s, c| s.absorbed(c, older, newer));
    assert_eq!(b.reqs[older].fifo_time, 500);
    assert_eq!(b.drain(20 * MS), ["R1000"]);
}

#[test]
fn front_merges_are_found_by_direction_and_only_if_wanted() {
    for name in ["deadline@2.6.18", "deadline@3.12", "mq-deadline@4.12", "mq-deadline@6.12"] {
        for (wanted, on) in [(true, 1), (false, 0)] {
            let mut b = Bench::new(name, &[("front_merges", on)]);
            let id = b.insert(0, Op::Write, 1000, 8, 0);
            let found = front(&mut b, bio(Op::Write, 992, 8, "none"));
            assert_eq!(found, wanted.then_some(id), "{name}");
            assert_eq!(front(&mut b, bio(Op::Read, 992, 8, "none")), None, "{name}");
            assert_eq!(front(&mut b, bio(Op::Write, 991, 8, "none")), None, "{name}");
        }
    }
}

#[test]
fn a_bio_merges_within_its_priority_level_only() {
    let mut b = Bench::new("mq-deadline@6.12", &[]);
    let rt = b.insert_request(0, with_prio(1000, "rt/0"));
    assert_eq!(front(&mut b, bio(Op::Read, 992, 8, "rt/3")), Some(rt));
    assert_eq!(front(&mut b, bio(Op::Read, 992, 8, "be/0")), None);
    let (same, other) = (bio(Op::Read, 1008, 8, "rt/0"), bio(Op::Read, 1008, 8, "idle"));
    b.with(0, |s, c| assert!(s.allow_merge(c, rt, &same) && !s.allow_merge(c, rt, &other)));
}

fn limit(b: &mut Bench, op: Op) -> Option<u32> {
    b.with(0, |s, c| s.limit_depth(c, op, Flags::NONE, 0))
}

/// MD-9, the scheduler's part: how the limit counts is the tag map's business.
#[test]
fn writes_are_limited_by_async_depth() {
    let on = |name, set: &[(&str, i64)]| {
        Bench::on(
            name,
            set,
            QueueFacts {
                nr_requests: 256,
                limit_base: 256,
                limit_unit: 256,
                ..QueueFacts::default()
            },
        )
    };
    let mut a = on("mq-deadline@4.12", &[]);
    assert_eq!((limit(&mut a, Op::Write), a.scheduler.tunable("async_depth")), (None, None));
    let mut c = on("mq-deadline@6.1", &[]);
    assert_eq!((limit(&mut c, Op::Write), limit(&mut c, Op::Read)), (Some(192), None));
    let mut d = on("mq-deadline@6.12", &[]);
    assert_eq!(limit(&mut d, Op::Discard), Some(256));
    let mut d = on("mq-deadline@6.12", &[("async_depth", 8)]);
    assert_eq!(limit(&mut d, Op::Write), Some(8));
}

/// 5.15 confuses two files.
#[test]
fn the_async_depth_file_of_5_15_is_front_merges() {
    let mut b = Bench::new("mq-deadline@5.15", &[("front_merges", 0)]);
    b.queue.nr_requests = 128;
    assert_eq!(b.scheduler.tunable("async_depth"), Some(0));
    b.insert(0, Op::Read, 1000, 8, 0);
    assert_eq!(front(&mut b, bio(Op::Read, 992, 8, "none")), None);
    b.with(0, |s, c| s.set_tunable(c, "async_depth", 8));
    assert_eq!(b.scheduler.tunable("front_merges"), Some(8));
    assert!(front(&mut b, bio(Op::Read, 992, 8, "none")).is_some());
    assert_eq!(limit(&mut b, Op::Write), Some(96), "the limit itself does not move");
}

/// A requeued request goes first, and is one request however often it returns.
#[test]
fn a_requeued_request_goes_first_and_counts_once() {
    for name in ["mq-deadline@4.12", "mq-deadline@5.15", "mq-deadline@6.1", "mq-deadline@6.12"] {
        let mut b = Bench::new(name, &[]);
        for (sector, prio) in [(900, "rt/0"), (100, "rt/0"), (50, "idle")] {
            b.insert_request(0, with_prio(sector, prio));
        }
        let Dispatch::Request(back) = b.dispatch(0) else { panic!("{name} is empty") };
        b.with(0, |s, c| {
            s.requeued(c, back);
            s.insert(c, back, Position::Head);
            let onto = bio(Op::Read, c.reqs[back].end(), 8, "rt/0");
            assert!(!s.allow_merge(c, back, &onto), "{name}");
        });
        assert_eq!(b.dispatch(0), Dispatch::Request(back), "{name}");
        b.complete(0, back);
        let rest = b.drain(0);
        assert_eq!(rest.len(), 2, "{name}: the idle request is not held back for ever: {rest:?}");
    }
}

#[test]
fn times_are_kept_in_ticks() {
    let queue = QueueFacts { hz: 250, ..QueueFacts::default() };
    for name in ["deadline@3.12", "mq-deadline@6.12"] {
        let mut b = Bench::on(name, &[("read_expire", 1), ("write_expire", 4999)], queue.clone());
        assert_eq!(b.scheduler.tunable("read_expire"), Some(4), "{name}");
        assert_eq!(b.scheduler.tunable("write_expire"), Some(5000), "{name}");
        // Inserted in the middle of tick 2: expires in tick 3.
        let id = b.insert(11 * MS, Op::Read, 0, 8, 0);
        assert_eq!(b.reqs[id].fifo_time, 3, "{name}");
    }
}

#[test]
fn every_tunable_can_be_set_and_read_in_every_generation() {
    let d = iosched_schedulers::registry::family("mq-deadline").expect("a family");
    let legacy = iosched_schedulers::registry::family("deadline").expect("a family");
    for d in [d, legacy] {
        for g in d.generations {
            let mut b = Bench::new(&format!("{}@{}", d.name, g.name), &[]);
            for t in d.tunables_of(g.index) {
                let value = t.max.min(7);
                b.with(0, |s, c| s.set_tunable(c, t.name, value));
                assert_eq!(b.scheduler.tunable(t.name), Some(value), "{} {}", g.name, t.name);
            }
            assert_eq!(b.scheduler.tunable("fifo_bach"), None);
        }
    }
}
