//! What ADIOS promises, whatever the load.

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, QueueFacts, pair};
use iosched_types::{Flags, Op, ReqId, Request};
use proptest::prelude::*;

const BOTH: [&str; 2] = ["adios@3.1.9", "adios@3.2.0"];

/// Operation, sector, sectors, the sync flag, ms before the next one.
type One = (Op, u64, u32, bool, u64);

fn load() -> impl Strategy<Value = Vec<One>> {
    let op = prop_oneof![6 => Just(Op::Read), 6 => Just(Op::Write), 1 => Just(Op::Discard)];
    let one = (op, 0..1_000_000u64, 1..256u32, any::<bool>(), 0..3u64);
    prop::collection::vec(one, 1..400)
}

fn trained(name: &str, rotational: bool, set: &[(&str, i64)]) -> Bench {
    let model = pair::of(970_000, 20_000);
    let mut all = vec![("lat_model_read", model), ("lat_model_write", model)];
    all.extend(set);
    Bench::on(name, &all, QueueFacts { rotational, ..QueueFacts::default() })
}

fn insert(b: &mut Bench, now: u64, (op, sector, sectors, flagged, _): One) -> ReqId {
    let mut r = Request::new(op, sector * 8, sectors);
    if flagged && op != Op::Read {
        r.flags = Flags::SYNC;
    }
    b.insert_request(now, r)
}

fn given(b: &mut Bench, now: u64) -> Option<ReqId> {
    match b.dispatch(now) {
        Dispatch::Request(id) => Some(id),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    /// Each request leaves once, and asking yields one as long as any waits, whatever is at the device.
    #[test]
    fn nothing_is_lost_and_the_device_is_never_idle(
        load in load(), order in 0..2i64, window in 1..50_000_000i64, at_device in 1..40usize, learned: bool,
    ) {
        for name in BOTH {
            for rotational in [false, true] {
                let set = [("batch_order", if rotational { order } else { 0 }), ("global_latency_window", window)];
                let mut b = if learned { trained(name, rotational, &set) } else { Bench::new(name, &[]) };
                let (mut came, mut went, mut out, mut now) = (Vec::new(), Vec::new(), Vec::new(), 0);
                for one in &load {
                    came.push(insert(&mut b, now, *one));
                    now += one.4 * 1_000_000;
                    if out.len() < at_device {
                        let id = given(&mut b, now);
                        prop_assert!(id.is_some(), "{} holds back", name);
                        out.extend(id);
                    } else {
                        let id = out.remove(0);
                        b.with(now, |s, c| s.completed(c, id));
                        went.push(id);
                    }
                }
                went.append(&mut out);
                while b.scheduler.has_work() {
                    let id = given(&mut b, now);
                    prop_assert!(id.is_some(), "{} holds back", name);
                    went.extend(id);
                }
                went.sort_unstable();
                prop_assert_eq!(&went, &came, "{} gives each request once", name);
            }
        }
    }

    /// Without small reads and small writes it is a FIFO.
    #[test]
    fn it_learns_nothing_from_large_requests(load in load()) {
        for name in BOTH {
            let mut b = Bench::new(name, &[]);
            let (mut came, mut went, mut now) = (Vec::new(), Vec::new(), 0);
            for (op, sector, sectors, flagged, wait) in load.iter().copied() {
                came.push(insert(&mut b, now, (op, sector, sectors + 8, flagged, wait)));
                now += 1_000_000;
                if wait == 0 && let Some(id) = given(&mut b, now) {
                    b.with(now + 900_000, |s, c| s.completed(c, id));
                    went.push(id);
                }
            }
            went.extend(std::iter::from_fn(|| given(&mut b, now)));
            prop_assert_eq!(&went, &came, "{}", name);
        }
    }

    /// A discard of 3.1.9 leaves behind all that came before it and ahead of all that came after.
    #[test]
    fn a_discard_is_passed_by_nothing(load in load()) {
        let mut b = trained("adios@3.1.9", false, &[]);
        // The request on which the models are seen is in no order.
        insert(&mut b, 0, (Op::Read, 0, 8, false, 0));
        given(&mut b, 0);
        let came: Vec<ReqId> = load.iter().map(|one| insert(&mut b, 0, *one)).collect();
        let went: Vec<ReqId> = std::iter::from_fn(|| given(&mut b, 0)).collect();
        for (i, id) in came.iter().enumerate().filter(|(i, _)| load[*i].0 == Op::Discard) {
            let at = went.iter().position(|w| w == id).unwrap();
            prop_assert_eq!(at, i, "a discard has its place");
        }
    }

    /// Flagged writes leave in the order in which they came, and so do reads of one size.
    #[test]
    fn each_side_is_served_by_age(load in load()) {
        let mut b = trained("adios@3.1.9", false, &[]);
        insert(&mut b, 0, (Op::Read, 0, 8, false, 0));
        given(&mut b, 0);
        let mut came: [Vec<ReqId>; 2] = Default::default();
        let mut went = came.clone();
        let mut now = 0;
        for (op, sector, _, _, wait) in load.iter().copied().filter(|l| l.0 != Op::Discard) {
            came[usize::from(op == Op::Read)].push(insert(&mut b, now, (op, sector, 8, true, 0)));
            now += wait * 1_000_000;
            if wait > 0 && let Some(id) = given(&mut b, now) {
                went[usize::from(b.reqs[id].op == Op::Read)].push(id);
            }
        }
        while let Some(id) = given(&mut b, now) {
            went[usize::from(b.reqs[id].op == Op::Read)].push(id);
        }
        prop_assert_eq!(went, came);
    }

    #[test]
    fn a_forced_drain_empties_the_scheduler(load in load()) {
        for name in BOTH {
            let mut b = trained(name, true, &[]);
            for one in &load {
                insert(&mut b, 0, *one);
            }
            let out = std::iter::from_fn(|| b.with(0, |s, c| s.force_dispatch(c))).count();
            prop_assert_eq!(out, load.len());
            prop_assert!(b.scheduler.is_empty());
        }
    }
}

/// The models are files that can be read back; a wish to forget them is obeyed.
#[test]
fn tunables_read_what_was_written() {
    let mut b = trained("adios", true, &[("read_priority", -3)]);
    let model = pair::of(970_000, 20_000);
    assert_eq!(b.scheduler.tunable("lat_model_read"), Some(model));
    assert_eq!(b.scheduler.tunable("read_priority"), Some(-3));
    assert_eq!(b.scheduler.tunable("global_latency_window"), Some(22_000_000));
    b.with(0, |s, c| s.set_tunable(c, "lat_target_read", 5));
    assert_eq!(b.scheduler.tunable("lat_model_read"), Some(0), "a new target forgets the model");
    assert_eq!(b.scheduler.tunable("lat_model_write"), Some(model));
    b.with(0, |s, c| s.set_tunable(c, "reset_lat_model", 1));
    assert_eq!(b.scheduler.tunable("lat_model_write"), Some(0));
    assert_eq!(b.scheduler.tunable("adios_version"), None);
}

/// All but reads may take as many tags as a word of the map has bits.
#[test]
fn writers_have_the_tags_of_a_word() {
    for (nr, most) in [(64, 16), (128, 32), (256, 64), (1024, 64)] {
        let queue = QueueFacts { nr_requests: nr, ..QueueFacts::default() };
        let mut b = Bench::on("adios", &[], queue);
        let mut limit = |op| b.with(0, |s, c| s.limit_depth(c, op, Flags::SYNC, 0));
        assert_eq!(
            (limit(Op::Read), limit(Op::Write), limit(Op::Discard)),
            (None, Some(most), Some(most))
        );
    }
}

/// `9000000 7000` is what the file takes.
#[test]
fn a_model_is_two_numbers() {
    let value = pair::parse("9000000 7000").unwrap();
    assert_eq!((pair::parts(value), pair::text(value)), ((9_000_000, 7000), "9000000 7000".into()));
    for bad in ["", "9", "1 2 3", "1 -2", "1 100000000", "99000000000 0", "a b"] {
        assert_eq!(pair::parse(bad), None, "{bad}");
    }
}
