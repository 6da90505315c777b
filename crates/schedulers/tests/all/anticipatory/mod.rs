//! The worked scenarios of the anticipatory scheduler, and what it promises.

#![allow(clippy::unwrap_used, reason = "tests say what they expect")]

mod driver;
mod files;
mod golden;
mod guarantees;
mod rules;

use driver::{Driver, MS, sequential};
use iosched_schedulers::QueueFacts;
use iosched_types::Op;

const FAR: u64 = 100_000_000;
const BOTH: [&str; 2] = ["as@2.6.18", "as@2.6.32"];

fn driver(name: &str) -> Driver {
    Driver::new(name, &[], QueueFacts::default())
}

/// AS-1: a seek away and back is avoided.
#[test]
fn a_sequential_reader_that_thinks_is_waited_for() {
    for name in BOTH {
        let mut d = driver(name);
        d.reader(0, 2, sequential(1000, 3));
        d.reader(1, 0, vec![FAR]);
        d.run(1000 * MS);
        assert_eq!(d.order(), "A0@0 A1@7 A2@14 B0@25", "{name}");
    }
}

/// AS-2: who thinks longer than it pays to wait is not waited for again.
#[test]
fn a_slow_thinker_is_waited_for_once() {
    for name in BOTH {
        let mut d = driver(name);
        d.reader(0, 10, sequential(1000, 4));
        d.reader(0, 0, sequential(FAR, 6));
        d.run(1000 * MS);
        assert_eq!(
            d.order(),
            "A0@0 B0@11 B1@16 B2@21 B3@26 B4@31 B5@36 A1@47 A2@62 A3@77",
            "{name}"
        );
    }
}

/// AS-3: a close request of another process ends the wait, too.
#[test]
fn a_cooperating_process_ends_the_wait() {
    for name in BOTH {
        let mut d = driver(name);
        d.reader(0, 0, vec![1000]);
        d.single(MS, Op::Read, FAR, true);
        d.reader(8, 0, vec![1208]);
        d.run(1000 * MS);
        assert_eq!(d.order(), format!("A0@0 B0@8 R{FAR}@19"), "{name}");
        assert!(d.reasons().iter().any(|r| r.contains("close: 200 sectors from pid 0's last")));
    }
}

/// AS-4: processes that exit after one read teach the scheduler not to wait for new ones.
#[test]
fn exited_processes_are_waited_for_until_nobody_is_seen_to_follow_them() {
    for name in BOTH {
        let mut d = driver(name);
        for i in 0..8 {
            d.reader(50 * i, 0, vec![10_000_000 * (i + 1)]);
        }
        d.reader(0, 0, sequential(500_000_000, 60));
        d.run(316 * MS);
        let order = d.order();
        let (head, tail) = order.split_once(" B0@251 ").expect(&order);
        assert!(head.starts_with("A0@0 I0@11 I1@16 ") && head.ends_with(" I47@246"), "{head}");
        assert_eq!(tail, "C0@262 D0@273 E0@284 F0@295 G0@306 I48@311 I49@316", "{name}");
        assert_eq!(d.counter("exit_without_follower_percent"), 139 * 100 / 256);
    }
}

/// AS-6: a switch of class waits until the old class has drained.
#[test]
fn a_switch_waits_for_what_is_in_flight() {
    for name in BOTH {
        let mut d = Driver::new(name, &[("read_batch_expire", 2)], QueueFacts::default());
        d.depth = 2;
        d.service = |r| match r.sector {
            1000 => 3 * MS,
            2000 => 20 * MS,
            _ => 5 * MS,
        };
        d.single(0, Op::Read, 1000, true);
        d.single(0, Op::Read, 2000, true);
        d.single(4 * MS, Op::Read, 3000, true);
        for sector in [FAR, FAR + 1000, FAR + 2000] {
            d.single(MS, Op::Write, sector, false);
        }
        d.run(1000 * MS);
        let issue = |s: u64| d.issued.iter().find(|i| i.sector == s).unwrap().at / MS;
        let times = [1000, 2000, 3000, FAR, FAR + 1000, FAR + 2000].map(issue);
        assert_eq!(times, [0, 0, 4, 20, 20, 25], "{name}");
    }
}
