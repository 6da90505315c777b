//! Worked scenarios of 4.12 and v7r3: HZ 1000, times in ms, sizes in sectors.

use iosched_types::units::MS;
use iosched_types::{IoPrio, Op};

use super::driver::{Rig, disk, random, read, sequential, sync_write, write};

/// Two processes that wait for one another's writes (a program and its journal).
fn ping_pong(tunables: &[(&str, i64)], service: u64, end: u64) -> (Rig, Vec<f64>) {
    let mut rig = Rig::new("bfq@4.12", tunables, disk(true), 1, move |_| service);
    let p = rig.process(0, 1, 0, |n| Some(sync_write(1000 + n * 8, 8)));
    let j = rig.process(1_000_000_000 * MS, 1, 0, |n| Some(sync_write(90_000_000 + n * 8, 8)));
    rig.hands_over(p, j, MS / 10);
    rig.hands_over(j, p, MS / 10);
    rig.run_to(end * MS);
    let times = rig.times(p);
    (rig, times)
}

#[test]
fn two_raised_processes_that_wait_for_one_another_lose_8_ms_a_turn() {
    let (rig, times) = ping_pong(&[], 8 * MS, 1000);
    assert_eq!(rig.noted("weight-raised").len(), 2);
    let periods: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(periods[1..20].iter().all(|p| (p - 32.0).abs() < 0.2), "{periods:?}");
    assert!(rig.noted("preempted").is_empty());
}

#[test]
fn unraised_ones_stop_being_idled_for_once_they_are_not_io_bound() {
    let (_, times) = ping_pong(&[("low_latency", 0)], 8 * MS, 2000);
    let last: Vec<f64> = times.windows(2).rev().take(20).map(|w| w[1] - w[0]).collect();
    // hw_tag is unknown at this depth, which counts as queueing: only IO_bound asked for idling.
    assert!(last.iter().all(|p| (p - 16.2).abs() < 0.3), "{last:?}");
}

#[test]
fn a_flash_device_without_queueing_serves_one_random_reader_at_a_time() {
    let run = |warm: bool| {
        let mut rig = Rig::new("bfq@4.12", &[("low_latency", 0)], disk(false), 2, |_| MS / 10);
        if warm {
            // Four requests waiting at depth 2: the estimate says "no queueing".
            rig.process(0, 4, 0, |n| (n < 60).then(|| read(1000 + n * 8, 8)));
        }
        let a = rig.process(20 * MS, 1, MS / 10, random(1, 8));
        let b = rig.process(20 * MS, 1, MS / 10, random(2, 8));
        rig.run_to(1000 * MS);
        let order: Vec<u32> =
            rig.sent.iter().map(|s| s.task).filter(|t| [a, b].contains(t)).collect();
        let switches = order.windows(2).filter(|w| w[0] != w[1]).count();
        (switches, rig)
    };
    let (switches, rig) = run(true);
    assert!(switches < 20, "{switches} {:?}", rig.bench.scheduler.counters());
    let (switches, rig) = run(false);
    assert!(switches > 1000, "{switches} {:?}", rig.bench.scheduler.counters());
}

#[test]
fn a_full_slot_of_a_random_reader_is_charged_as_read() {
    let run = |name: &str| {
        let mut rig = Rig::new(name, &[("low_latency", 0)], disk(true), 1, |r| match r.sectors {
            8 => 12 * MS + MS / 2,
            n => u64::from(n) * 5120,
        });
        let seeky = rig.process(0, 2, 0, random(5, 8));
        rig.process(0, 2, 0, sequential(400_000_000, 256));
        rig.run_to(10_000 * MS);
        rig.count(seeky, 0, 10_000)
    };
    // 4.12 charges a slot that used its whole time nothing extra, so the random reader gets most of the disk.
    let (old, new) = (run("bfq@4.12"), run("bfq@6.12"));
    assert!(old > 3 * new / 2, "4.12: {old}, current: {new}");
}

#[test]
fn real_time_waits_for_the_end_of_a_best_effort_slot() {
    let mut rig = Rig::new("bfq@4.12", &[("low_latency", 0)], disk(true), 1, |_| MS);
    rig.process(0, 4, 0, sequential(1000, 8));
    let rt = rig.process(10 * MS, 1, 0, |n| {
        let mut r = read(90_000_000 + n * 8, 8);
        r.prio = IoPrio::parse("rt/4").unwrap();
        Some(r)
    });
    rig.run_to(300 * MS);
    assert!(rig.noted("preempted").is_empty());
    let first = rig.times(rt)[0];
    assert!((124.0..128.0).contains(&first), "{first}");
}

#[test]
fn async_writes_cost_ten_times_their_size_and_twenty_beside_a_raised_queue() {
    let mut rig = Rig::new("bfq@4.12", &[], disk(true), 1, |_| MS);
    let b = &mut rig.bench;
    b.insert(0, Op::Write, 1000, 100, 1);
    b.dispatch(0);
    b.insert(0, Op::Write, 1100, 100, 1);
    rig.pump();
    assert_eq!(rig.noted("request of async").len(), 2);
    // 16384 * 2 / 3 = 10922; the second write raised the async queue itself.
    assert!(rig.noted("request of async")[0].contains("9922 sectors"), "{:?}", rig.notes);
}

const V7: &str = "bfq@v7r3";

#[test]
fn v7_raises_by_twenty_and_does_not_preempt() {
    let mut rig =
        Rig::new(V7, &[("max_budget", 16384)], disk(true), 1, |r| u64::from(r.sectors) * 5120);
    rig.process(0, 4, 0, sequential(1000, 256));
    rig.run_to(10_000 * MS);
    rig.notes.clear();
    let app = rig.process(10_000 * MS, 1, MS, random(3, 8));
    rig.run_to(10_400 * MS);
    assert!(
        rig.noted("weight-raised ×20, interactive, until 15.5 s").len() == 1,
        "{:?}",
        rig.notes
    );
    assert!(rig.noted("serves pid 2")[0].ends_with("weight 800, budget 10922"));
    assert!(rig.noted("preempted").is_empty());
    let first = rig.times(app)[0];
    assert!((10_000.0..10_130.0).contains(&first), "{first}");
    // Three times 8 ms, from the tick before.
    let waits = rig.noted("ms for pid 2");
    assert!(waits.iter().any(|w| w.contains("idle 23.") || w.contains("idle 24 ")), "{waits:?}");
}

#[test]
fn v7_charges_async_writes_eleven_times() {
    let mut rig = Rig::new(V7, &[("low_latency", 0)], disk(true), 1, |_| MS);
    rig.process(0, 1, 0, |n| Some(write(1000 + n * 100, 100)));
    rig.run_to(0);
    assert!(rig.noted("request of async")[0].contains("9822 sectors"), "{:?}", rig.notes);
}

#[test]
fn v7_keeps_quantum_requests_of_a_queue_in_flight_and_four_times_as_many_alone() {
    for (quantum, others, in_flight) in [(4, 1, 4), (4, 0, 16), (1, 1, 1), (2, 0, 8)] {
        let set = [("low_latency", 0), ("quantum", quantum)];
        let mut rig = Rig::new(V7, &set, disk(true), 32, |_| 10 * MS).parallel();
        let b = &mut rig.bench;
        for n in 0..20 {
            b.insert(0, Op::Read, 1000 + 16 * n, 8, 1);
        }
        for n in 0..others {
            b.insert(0, Op::Read, 50_000_000 + n, 8, 2);
        }
        rig.pump();
        assert_eq!(rig.sent.len(), in_flight);
        assert!(rig.sent.iter().all(|s| s.task == 1));
    }
}

#[test]
fn v7_feeds_back_budgets_but_not_after_running_dry() {
    let quiet = [("low_latency", 0)];
    let mut rig = Rig::new(V7, &quiet, disk(true), 1, |_| 2 * MS);
    rig.process(0, 1, 3000 * MS, sequential(1000, 8));
    rig.run_to(200 * MS);
    let note = rig.noted("slice of pid 1 expired")[0];
    assert!(note.contains("TOO_IDLE") && note.ends_with("budget 10922 → 8874"), "{note}");
    let mut rig = Rig::new(V7, &[("low_latency", 0), ("slice_idle", 0)], disk(true), 1, |_| 2 * MS);
    rig.process(0, 1, 3000 * MS, sequential(1000, 8));
    rig.run_to(200 * MS);
    let note = rig.noted("NO_MORE_REQUESTS")[0];
    assert!(note.ends_with("budget 10922 → 10922"), "{note}");
}

/// 80 sectors in a whole slot: the full budget is charged.
#[test]
fn v7_charges_a_seeky_slot_its_full_budget() {
    let mut rig = Rig::new(V7, &[("low_latency", 0), ("max_budget", 16384)], disk(true), 1, |r| {
        match r.sectors {
            8 => 12 * MS + MS / 2,
            n => u64::from(n) * 5120,
        }
    });
    let seeky = rig.process(0, 2, 0, random(5, 8));
    rig.process(0, 2, 0, sequential(400_000_000, 256));
    rig.run_to(10_000 * MS);
    let n = rig.count(seeky, 0, 10_000);
    assert!((450..550).contains(&n), "{n} of 800 possible");
}
