//! mq-deadline on zoned devices: one write a zone in flight, nothing lost, reads unhindered.

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, QueueFacts};
use iosched_types::{Op, ReqId};
use proptest::prelude::*;

const ZONE: u64 = 1024;
const LOCKING: [&str; 3] = ["mq-deadline@A", "mq-deadline@B", "mq-deadline@C"];

fn bench(name: &str, rotational: bool) -> Bench {
    let queue = QueueFacts { zone_sectors: ZONE, rotational, queue_depth: 8, ..Default::default() };
    Bench::on(name, &[], queue)
}

fn next(b: &mut Bench, now: u64) -> Option<ReqId> {
    match b.dispatch(now) {
        Dispatch::Request(id) => Some(id),
        _ => None,
    }
}

/// Everything that goes out while nothing completes.
fn all_at_once(name: &str, rotational: bool, writes: &[u64]) -> Vec<String> {
    let mut b = bench(name, rotational);
    for sector in writes {
        b.insert(0, Op::Write, *sector, 8, 1);
    }
    let mut order = Vec::new();
    while let Some(id) = next(&mut b, 0) {
        order.push(b.name(id));
    }
    order
}

#[test]
fn a_second_write_of_a_zone_is_passed_over() {
    for name in LOCKING {
        assert_eq!(all_at_once(name, false, &[0, 8, ZONE, ZONE + 8]), ["W0", "W1024"], "{name}");
    }
    // From 6.10 on the block layer sees to it.
    assert_eq!(all_at_once("mq-deadline@D", false, &[0, 8, ZONE]), ["W0", "W8", "W1024"]);
}

#[test]
fn on_a_rotating_disk_the_sweep_passes_over_the_run_that_is_held() {
    // A run of writes across the end of the first zone: when its first half is held, the disk of
    // generation C goes on behind the run, and comes back for the second zone as the oldest write.
    let run = [ZONE - 16, ZONE - 8, ZONE, ZONE + 8, 4 * ZONE];
    assert_eq!(all_at_once("mq-deadline@C", false, &run), ["W1008", "W1024", "W4096"]);
    assert_eq!(all_at_once("mq-deadline@C", true, &run), ["W1008", "W4096", "W1024"]);
    assert_eq!(all_at_once("mq-deadline@B", true, &run), ["W1008", "W1024", "W4096"]);
}

#[test]
fn reads_of_a_locked_zone_go() {
    for name in LOCKING {
        let mut b = bench(name, true);
        b.insert(0, Op::Write, 0, 8, 1);
        next(&mut b, 0).expect("the write");
        b.insert(0, Op::Write, 8, 8, 1);
        b.insert(0, Op::Read, 16, 8, 1);
        let id = next(&mut b, 0).expect("the read");
        assert_eq!(b.name(id), "R16", "{name}");
        assert_eq!(next(&mut b, 0), None, "{name}");
    }
}

proptest! {
    #[test]
    fn one_write_a_zone_and_nothing_lost(
        generation in 0usize..3,
        rotational: bool,
        steps in prop::collection::vec((0u8..4, 0u64..6, 0u64..128), 1..120),
    ) {
        let mut b = bench(LOCKING[generation], rotational);
        let (mut in_flight, mut inserted, mut done) = (Vec::<ReqId>::new(), 0, 0);
        let mut now = 0;
        let zone = |b: &Bench, id: ReqId| b.reqs[id].sector / ZONE;
        for (what, z, slot) in steps {
            now += 1_000_000;
            match what {
                0 | 1 => {
                    let op = if what == 0 { Op::Write } else { Op::Read };
                    b.insert(now, op, z * ZONE + slot * 8, 8, 1);
                    inserted += 1;
                }
                2 => if let Some(id) = next(&mut b, now) {
                    let held = in_flight.iter().any(|f| b.reqs[*f].op == Op::Write
                        && b.reqs[id].op == Op::Write && zone(&b, *f) == zone(&b, id));
                    prop_assert!(!held, "two writes to zone {}", zone(&b, id));
                    in_flight.push(id);
                },
                _ => if !in_flight.is_empty() {
                    let id = in_flight.swap_remove(slot as usize % in_flight.len());
                    b.complete(now, id);
                    done += 1;
                },
            }
        }
        // With nothing in flight every write may go, one after the other.
        for id in in_flight.drain(..) {
            b.complete(now, id);
            done += 1;
        }
        done += b.drain(now).len();
        prop_assert_eq!(done, inserted);
        prop_assert!(!b.scheduler.has_work());
    }
}
