//! Worked scenarios of the current generation: HZ 1000, times in ms, sizes in sectors.

use iosched_schedulers::{Dispatch, QueueFacts};
use iosched_types::units::MS;
use iosched_types::{Flags, IoPrio, Op};

use super::driver::{Rig, disk, random, read, sequential, sync_write, write};

const BFQ: &str = "bfq@6.12";

/// 100 MB/s and no seeks.
fn rate(r: &iosched_types::Request) -> u64 {
    u64::from(r.sectors) * 5120
}

#[test]
fn a_new_process_among_ten_readers_is_raised_and_served_at_once() {
    let mut rig = Rig::new(BFQ, &[("max_budget", 16384)], disk(true), 1, rate);
    for n in 0..10 {
        // Not a burst: 200 ms apart.
        rig.process(n * 200 * MS, 4, 0, sequential(10_000_000 * (n + 1), 256));
    }
    // The readers' own raises are over by then.
    rig.run_to(20_000 * MS);
    rig.notes.clear();
    let n = rig.process(20_000 * MS, 1, 0, random(7, 8));
    rig.run_to(20_040 * MS);
    assert_eq!(rig.noted("weight-raised").len(), 1, "{:?}", rig.notes);
    let raised = rig.noted("weight-raised")[0];
    assert!(raised.contains("×30, interactive"), "{raised}");
    assert_eq!(rig.noted("serves pid 11"), ["serves pid 11: weight 1200, budget 1024"]);
    assert!(rig.noted("preempted by pid 11")[0].contains("coefficient 30 > 1"));
    // It waits for the request in the driver alone.
    assert!(rig.times(n)[0] - 20_000.0 < 1.4, "{:?}", rig.times(n));
    assert!(rig.noted("idle 20 ms for pid 11").len() > 20, "{:?}", rig.notes);
}

#[test]
fn the_raise_lasts_as_long_as_the_device_takes_to_start_an_application() {
    for (rotational, until) in [(true, "10.5 s"), (false, "3.75 s")] {
        let mut rig = Rig::new(BFQ, &[], disk(rotational), 1, rate);
        rig.process(0, 1, 0, random(1, 8));
        rig.run_to(0);
        assert!(rig.noted("weight-raised")[0].ends_with(until), "{:?}", rig.notes);
    }
}

/// One raised (1200) against ten readers (40 each): one budget, one reader, then 48 budgets and one reader.
#[test]
fn a_raised_process_gets_three_quarters_in_long_runs() {
    let fixed = [("max_budget", 16384), ("fifo_expire_sync", 1_000_000)];
    let mut rig = Rig::new(BFQ, &fixed, disk(true), 1, rate);
    for n in 0..10 {
        rig.process(n * 200 * MS, 4, 0, sequential(10_000_000 * (n + 1), 256));
    }
    rig.run_to(20_000 * MS);
    rig.sent.clear();
    let n = rig.process(20_000 * MS, 2, 0, sequential(1_000_000_000, 8));
    rig.run_to(21_200 * MS);
    let mut runs: Vec<(bool, u64)> = Vec::new();
    for s in rig.sent.iter().skip_while(|s| s.task != n) {
        match runs.last_mut() {
            Some((own, sum)) if *own == (s.task == n) => *sum += u64::from(s.sectors),
            _ => runs.push((s.task == n, u64::from(s.sectors))),
        }
    }
    assert_eq!(runs[0], (true, 1024), "{runs:?}");
    assert!(!runs[1].0 && (15_000..=16_384).contains(&runs[1].1), "{runs:?}");
    assert!(runs[2].0 && (46 * 1024..=49 * 1024).contains(&runs[2].1), "{runs:?}");
}

#[test]
fn budgets_follow_what_a_slot_showed() {
    let quiet = [("low_latency", 0), ("fifo_expire_sync", 1_000_000)];
    // TOO_IDLE with nothing in flight: 10922 - 4 * 512.
    let mut rig = Rig::new(BFQ, &quiet, disk(true), 1, |_| 2 * MS);
    rig.process(0, 1, 3000 * MS, sequential(1000, 8));
    rig.run_to(200 * MS);
    assert!(rig.noted("TOO_IDLE")[0].ends_with("budget 10922 → 8874"), "{:?}", rig.notes);
    // EXHAUSTED: four times as much, at most all.
    let mut rig = Rig::new(BFQ, &quiet, disk(true), 1, |_| MS / 2);
    for n in 0..2 {
        rig.process(0, 2, 0, sequential(10_000_000 * (n + 1), 1024));
    }
    rig.run_to(200 * MS);
    let first = rig.noted("BUDGET_EXHAUSTED")[0];
    assert!(first.ends_with("budget 10922 → 16384"), "{first}");
    // NO_MORE_REQUESTS: what was used, at least the minimum.
    for (requests, wanted) in [(1, 512), (12, 3072)] {
        let mut quiet = quiet.to_vec();
        quiet.push(("slice_idle", 0));
        let mut rig = Rig::new(BFQ, &quiet, disk(true), 1, |_| MS);
        rig.process(0, 1, 3000 * MS, |n| (n < 8).then(|| read(5_000_000 + n * 256, 256)));
        rig.process(0, requests, 3000 * MS, sequential(1000, 256));
        rig.run_to(100 * MS);
        let note = rig.noted("slice of pid 2 expired NO_MORE_REQUESTS")[0];
        assert!(note.ends_with(&format!("→ {wanted}")), "{note}");
    }
}

/// A slot cut off with most of its budget left is charged by time.
#[test]
fn a_random_reader_pays_for_the_time_it_takes() {
    let quiet = [("low_latency", 0)];
    let mut rig = Rig::new(BFQ, &quiet, disk(true), 1, |r| match r.sectors {
        8 => 12 * MS + MS / 2,
        n => u64::from(n) * 5120,
    });
    let seeky = rig.process(0, 2, 0, random(5, 8));
    let reader = rig.process(0, 2, 0, sequential(400_000_000, 256));
    rig.run_to(20_000 * MS);
    // Equal weights, charged by time: half of the time each, so few sectors for the random reader.
    let sectors =
        |t| rig.sent.iter().filter(|s| s.task == t).map(|s| u64::from(s.sectors)).sum::<u64>();
    let time_seeky = sectors(seeky) / 8 * 12_500;
    let time_reader = sectors(reader) * 5120 / 1000;
    let share = time_seeky as f64 / (time_seeky + time_reader) as f64;
    assert!((0.35..0.65).contains(&share), "{share}");
}

/// A player reads 64 sectors each 40 ms: after the interactive time it is raised for playing.
#[test]
fn a_player_counts_as_soft_real_time() {
    for hz in [1000, 250] {
        let queue = QueueFacts { hz, ..disk(true) };
        let mut rig = Rig::new(BFQ, &[], queue, 1, |_| 5 * MS);
        rig.process(0, 1, 35 * MS, sequential(1000, 64));
        rig.run_to(12_000 * MS);
        let notes = rig.noted("serves pid 1: weight 120000");
        assert!(notes.len() > 20, "HZ {hz}: {}", notes.len());
        // One that reads back to back never is.
        let queue = QueueFacts { hz, ..disk(true) };
        let mut rig = Rig::new(BFQ, &[], queue, 1, |_| 5 * MS);
        rig.process(0, 1, MS, sequential(1000, 64));
        rig.run_to(14_000 * MS);
        assert!(rig.noted("weight 120000").is_empty());
    }
}

fn raised_of_nine(gap_ms: u64) -> (usize, Rig) {
    let mut rig = Rig::new(BFQ, &[], disk(true), 1, |_| MS);
    for n in 0..9 {
        let mut left = 400 / gap_ms + 1;
        rig.process(n * gap_ms * MS, 1, 4 * MS, move |i| {
            left = left.checked_sub(1)?;
            Some(read(50_000_000 * (n + 1) + i * 8, 8))
        });
    }
    rig.run_to(3000 * MS);
    (rig.noted("weight-raised").len(), rig)
}

#[test]
fn eight_processes_in_a_burst_are_not_raised() {
    let (raised, rig) = raised_of_nine(50);
    assert_eq!(raised, 7, "{:?}", rig.noted("weight-raised"));
    assert!(rig.noted("8 new queues in a burst").len() == 1);
    let (raised, rig) = raised_of_nine(200);
    assert_eq!(raised, 9, "{:?}", rig.noted("weight-raised"));
}

/// A (weight 80, thinks 3 ms) and B (weight 40, backlogged) on flash: requests of B are injected during the wait for A.
#[test]
fn injection_learns_how_much_a_process_bears() {
    let mut rig = Rig::new(BFQ, &[("low_latency", 0)], disk(false), 8, |_| MS / 10).parallel();
    let mut place = random(1, 8);
    let a = rig.process(0, 1, 3 * MS, move |n| {
        let mut r = place(n)?;
        r.prio = IoPrio::parse("be/0").unwrap();
        Some(r)
    });
    let b = rig.process(MS, 4, 0, random(2, 8));
    rig.run_to(300 * MS);
    assert!(rig.counter("injections") > 10, "{:?}", rig.bench.scheduler.counters());
    assert!(!rig.noted("inject limit of pid 1: 0 → 1").is_empty(), "{:?}", rig.noted("inject"));
    assert!(rig.count(b, 0, 300) > 3 * rig.count(a, 0, 300));
}

/// P goes on only when J's write is done: after three such wake-ups J is known, and not idled against.
#[test]
fn a_waker_is_found_and_served_while_its_process_is_waited_for() {
    let mut rig = Rig::new(BFQ, &[("low_latency", 0)], disk(true), 2, |r| match r.op {
        Op::Write => 12 * MS,
        _ => MS,
    });
    let p = rig.process(0, 1, 0, |n| Some(read(1000 + n * 8, 8)));
    let mut asked = sequential(90_000_000, 8);
    let j = rig
        .process(1_000_000 * MS, 1, 0, move |n| asked(n).map(|r| sync_write(r.sector, r.sectors)));
    rig.hands_over(p, j, MS / 10);
    rig.hands_over(j, p, MS / 10);
    rig.run_to(2000 * MS);
    assert_eq!(rig.noted("pid 2 is the waker of pid 1").len(), 1, "{:?}", rig.notes);
    // A round is 1 + 12 ms and two hand-overs, once the idle times are gone.
    let rounds = rig.count(p, 1000, 2000);
    assert!(rounds >= 70, "{rounds} rounds in the second second");
}

#[test]
fn writes_may_take_only_a_part_of_the_tags() {
    let limits = |tags, busy: bool| {
        let queue = QueueFacts { limit_unit: tags, ..disk(true) };
        let mut rig = Rig::new(BFQ, &[], queue, 1, |_| MS);
        if busy {
            rig.bench.insert(0, Op::Read, 8, 8, 1);
        }
        [(Op::Write, Flags::NONE), (Op::Write, Flags::SYNC), (Op::Read, Flags::NONE)]
            .map(|(op, flags)| rig.bench.with(0, |s, c| s.limit_depth(c, op, flags, 1)))
    };
    assert_eq!(limits(64, false), [Some(32), Some(48), None]);
    assert_eq!(limits(64, true), [Some(12), Some(24), None]);
    assert_eq!(limits(16, false), [Some(8), Some(12), None]);
    assert_eq!(limits(16, true), [Some(3), Some(6), None]);
    // Never nothing at all.
    assert_eq!(limits(2, true), [Some(1), Some(1), None]);
}

/// Two equal readers; the second returns 15 or 30 ms after its last completion.
#[test]
fn a_queue_that_returns_in_time_takes_its_place_again() {
    for (away_ms, preempts) in [(15, true), (30, false)] {
        let quiet = [("low_latency", 0), ("fifo_expire_sync", 1_000_000)];
        let mut rig = Rig::new(BFQ, &quiet, disk(true), 1, |_| 2 * MS);
        let a = rig.process(5 * MS, 2, 0, sequential(500_000_000, 8));
        let b = rig.process(0, 1, away_ms * MS, sequential(1000, 8));
        rig.run_to((2 + away_ms + 6) * MS);
        let soon = rig.times(b).get(1).is_some_and(|t| *t < (2 + away_ms) as f64 + 2.1);
        assert_eq!(soon, preempts, "{away_ms}: {:?} {:?}", rig.times(b), rig.noted("preempted"));
        assert!(rig.count(a, 0, 40) > 3);
    }
}

/// The reasons of a preemption name the process and the coefficients.
#[test]
fn real_time_preempts_best_effort() {
    let mut rig = Rig::new(BFQ, &[("low_latency", 0)], disk(true), 1, |_| MS);
    rig.process(0, 4, 0, sequential(1000, 8));
    rig.process(10 * MS, 1, 0, |n| {
        let mut r = read(90_000_000 + n * 8, 8);
        r.prio = IoPrio::parse("rt/4").unwrap();
        (n < 3).then_some(r)
    });
    rig.run_to(40 * MS);
    assert!(rig.noted("pid 1 preempted by pid 2: class or weight").len() == 1, "{:?}", rig.notes);
}

/// A preempted queue is kept busy though it is empty, for its process. When that ends, no queue takes its turn.
#[test]
fn a_queue_kept_busy_goes_with_its_process() {
    let turns = |exits: bool| {
        let mut rig = Rig::new(BFQ, &[], disk(true), 8, |_| 20 * MS).parallel();
        rig.process(0, 5, 0, |n| (n < 5).then(|| read(1_000_000 * n, 8)));
        let kept = rig.process(MS, 1, 0, |n| (n < 1).then(|| read(50_000_000, 8)));
        rig.process(2 * MS, 1, 0, |n| {
            let mut r = read(90_000_000, 8);
            r.prio = IoPrio::parse("rt/4").unwrap();
            (n < 1).then_some(r)
        });
        rig.run_to(3 * MS);
        assert_eq!(rig.noted("slice of pid 2 expired PREEMPTED").len(), 1, "{:?}", rig.notes);
        rig.notes.clear();
        if exits {
            rig.bench.with(3 * MS, |s, c| s.task_exited(c, kept));
        }
        rig.run_to(200 * MS);
        // Another request is there to be chosen when the real-time slot is over.
        rig.process(201 * MS, 1, 0, |n| (n < 1).then(|| read(70_000_000, 8)));
        rig.run_to(400 * MS);
        rig.noted("serves pid 2").len()
    };
    assert_eq!((turns(false), turns(true)), (1, 0));
}

/// The deadline is looked at while the first request of a slot leaves, for the second.
#[test]
fn the_oldest_request_is_looked_at_once_a_slot() {
    let mut rig = Rig::new(BFQ, &[("low_latency", 0)], disk(true), 1, |_| MS);
    let b = &mut rig.bench;
    for sector in [900_000, 800_000, 100, 200] {
        b.insert(0, Op::Read, sector, 8, 1);
    }
    let order: Vec<u64> = (0..4)
        .filter_map(|_| match b.dispatch(130 * MS) {
            Dispatch::Request(id) => Some(b.reqs[id].sector),
            _ => None,
        })
        .collect();
    assert_eq!(order, [100, 900_000, 200, 800_000]);
}

/// Async writes cost three times their size where all weights are equal.
#[test]
fn async_writes_are_charged_three_times() {
    let mut rig = Rig::new(BFQ, &[("low_latency", 0)], disk(true), 1, |_| MS);
    rig.process(0, 4, 0, |n| Some(write(1000 + n * 100, 100)));
    rig.run_to(0);
    assert_eq!(
        rig.noted("request of async"),
        ["request of async queue of level 4: 10622 sectors of budget left"]
    );
}

/// `choose` is the shared rule; BFQ asks it from where its last request ended.
#[test]
fn the_choice_starts_where_the_last_request_ended() {
    for (last, candidates, winner) in [
        (100_000, [67_232, 165_536], 165_536),
        (100_000, [67_231, 1_000_000], 1_000_000),
        (1000, [1100, 960], 960),
        (1000, [1100, 950], 1100),
        (10_000_000, [500, 900_000], 500),
    ] {
        let mut rig = Rig::new(BFQ, &[], disk(true), 4, |_| MS);
        rig.bench.insert(0, Op::Read, last - 8, 8, 1);
        rig.pump();
        for sector in candidates {
            rig.bench.insert(MS, Op::Read, sector, 8, 1);
        }
        rig.pump();
        assert_eq!(rig.sent[1].sector, winner, "from {last}");
    }
}
