//! Another scheduler in the middle of a run.

use iosched_schedulers::registry;

use super::*;
use crate::SwitchError;

fn choice(name: &str, kernel: &str) -> SchedulerChoice {
    let profile = KernelProfile::find(kernel).unwrap();
    let (descriptor, generation) = registry::resolve(name, profile.kernel_version()).unwrap();
    SchedulerChoice { descriptor, generation, tunables: Vec::new() }
}

fn switch(rig: &mut Rig, to: &str, kernel: &str) {
    rig.q.switch(&mut rig.tl, choice(to, kernel)).unwrap();
}

fn name_now(rig: &Rig) -> &'static str {
    rig.q.scheduler_choice().descriptor.name
}

/// A freeze lasts as long as the requests inside take, and five ticks (the rig has 1000 a second).
#[test]
fn a_freeze_serves_who_is_inside_and_holds_back_who_comes() {
    let mut rig = Rig::new(config("mq-deadline", "6.12", 1, 10));
    rig.submits(0, "R500 R1000").returns();
    rig.to(2.0);
    switch(&mut rig, "none", "6.12");
    rig.submits(1, "R100").returns();
    assert!(rig.q.is_switching());
    rig.to(24.9);
    assert_eq!(rig.sent(), ["R500@0", "R1000@10"], "R100 waits outside");
    assert_eq!((name_now(&rig), rig.q.is_switching()), ("mq-deadline", true));
    rig.to(60.0);
    assert_eq!(rig.sent()[2..], ["R100@25"]);
    assert_eq!((name_now(&rig), rig.q.is_switching()), ("none", false));
    assert_eq!(rig.done, [(0, 10.0), (1, 20.0), (2, 35.0)]);
}

/// A task that sleeps for a tag when the freeze begins is inside, and is served before the freeze ends.
#[test]
fn a_sleeper_for_a_tag_is_inside() {
    let mut rig = Rig::new(config("none", "6.12", 1, 10));
    rig.submits(0, "R1000").returns();
    rig.submits(1, "R2000").returns();
    rig.to(1.0);
    switch(&mut rig, "bfq", "6.12");
    rig.submits(2, "R3000").returns();
    rig.to(100.0);
    assert_eq!(rig.sent(), ["R1000@0", "R2000@10", "R3000@25"]);
}

/// The old scheduler's rules hold to the end: BFQ idles for a process that the freeze keeps outside.
#[test]
fn idling_goes_on_while_the_queue_freezes() {
    let mut cfg = config("bfq", "6.12", 1, 1);
    cfg.rotational = true;
    cfg.scheduler.tunables = vec![("low_latency".into(), 0)];
    let mut rig = Rig::new(cfg);
    rig.submits(0, "R1000").returns();
    rig.to(0.5);
    rig.submits(1, "R900000").returns();
    switch(&mut rig, "none", "6.12");
    rig.to(30.0);
    assert_eq!(rig.sent(), ["R1000@0", "R900000@9"], "8 ms of idling for process 0");
    assert_eq!(name_now(&rig), "none");
}

#[test]
fn settings_after_a_switch() {
    let mut cfg = config("mq-deadline", "6.12", 32, 1);
    cfg.settings = vec![("nr_requests".into(), 7), ("nomerges".into(), 2)];
    cfg.scheduler.tunables = vec![("fifo_batch".into(), 3)];
    let mut rig = Rig::new(cfg);
    assert_eq!(rig.q.facts().nr_requests, 7);
    switch(&mut rig, "mq-deadline", "6.12");
    assert!(!rig.q.is_switching(), "the one in force: nothing happens");
    let fifo_batch = |rig: &Rig| rig.q.tunables().iter().find(|t| t.0 == "fifo_batch").unwrap().1;
    assert_eq!((rig.q.facts().nr_requests, fifo_batch(&rig)), (7, 3));
    switch(&mut rig, "none", "6.12");
    switch(&mut rig, "mq-deadline", "6.12");
    rig.to(5.0);
    assert_eq!((name_now(&rig), rig.q.facts().nr_requests), ("none", 32));
    rig.to(10.0);
    assert_eq!((name_now(&rig), rig.q.facts().nr_requests), ("mq-deadline", 64), "two, in turn");
    assert_eq!((rig.q.limits().nomerges, fifo_batch(&rig)), (2, 16));
}

/// BFQ has the writeback throttle off, unless its target was set by hand.
#[test]
fn the_throttle_comes_and_goes_with_bfq() {
    for (target, under_bfq) in [(None, false), (Some(3000), true), (Some(0), false)] {
        let mut cfg = config("bfq", "6.12", 32, 1);
        cfg.settings = target.map(|t| ("wbt_lat_usec".into(), t)).into_iter().collect();
        let mut rig = Rig::new(cfg);
        assert_eq!(rig.q.throttled(), under_bfq, "{target:?} at the start");
        for (n, to) in ["kyber", "bfq", "none"].into_iter().enumerate() {
            switch(&mut rig, to, "6.12");
            rig.to(10.0 * (n + 1) as f64);
            let on = if to == "bfq" { under_bfq } else { target != Some(0) };
            assert_eq!(rig.q.throttled(), on, "{target:?} under {to}");
        }
    }
}

/// `nr_requests` without a scheduler changes the driver's tags, and a switch leaves them so.
#[test]
fn driver_tags_survive_a_switch() {
    let mut cfg = config("none", "6.12", 32, 10);
    cfg.settings = vec![("nr_requests".into(), 4)];
    let mut rig = Rig::new(cfg);
    let far = |n: u64| (0..6).map(|i| format!("R{} ", (n + i) * 1000)).collect::<String>();
    rig.submits(0, &far(0)).returns();
    assert_eq!(rig.q.in_flight(), 4);
    rig.to(50.0);
    switch(&mut rig, "kyber", "6.12");
    rig.to(60.0);
    rig.submits(0, &far(10)).returns();
    assert_eq!((rig.q.facts().nr_requests, rig.q.in_flight()), (64, 4));
}

/// The legacy path goes on: what the old scheduler held goes out sorted from the last sector on (spec
/// scenario NP-3), what comes meanwhile goes behind it, and the new scheduler takes over when the last
/// of the old one's requests is done.
#[test]
fn the_legacy_path_drains_the_old_scheduler() {
    let mut rig = Rig::new(config("noop", "3.12", 1, 10));
    rig.submits(0, "R592 W900 W100 W500 W700").returns();
    rig.to(1.0);
    switch(&mut rig, "deadline", "3.12");
    rig.submits(1, "R10000 R9000").returns();
    rig.to(45.0);
    assert_eq!((name_now(&rig), rig.q.is_switching()), ("noop", true));
    rig.submits(1, "R8000").returns();
    rig.to(52.0);
    assert_eq!(name_now(&rig), "deadline");
    rig.submits(1, "R7000 R6000").returns();
    rig.to(200.0);
    let drained = ["R592", "W700", "W900", "W100", "W500"];
    assert_eq!(rig.order()[..5], drained);
    assert_eq!(rig.order()[5..8], ["R10000", "R9000", "R8000"], "around both schedulers");
    assert_eq!(rig.order()[8..], ["R7000", "R6000"], "a deadline batch begins at the oldest");
    assert_eq!(rig.done.len(), 10);
}

/// What a process has plugged was prepared by the old scheduler and goes through it.
#[test]
fn a_plug_filled_before_the_switch_is_drained_too() {
    let mut rig = Rig::new(config("cfq", "3.12", 1, 10));
    rig.q.start_plug(0);
    rig.submits(0, "R1000 R3000");
    switch(&mut rig, "noop", "3.12");
    rig.submits(0, "R2000");
    rig.to(5.0);
    assert!(rig.q.is_switching(), "the plugged requests belong to cfq");
    rig.q.finish_plug(&mut rig.tl, 0);
    rig.returns();
    rig.to(24.0);
    assert!(rig.q.is_switching());
    rig.to(100.0);
    assert!(!rig.q.is_switching());
    assert_eq!(rig.order().len(), 3);
    assert_eq!(rig.done.len(), 3);
}

/// A drain does not carry requests over a barrier.
#[test]
fn a_drain_stays_behind_a_barrier() {
    let mut cfg = config("deadline", "2.6.18", 1, 10);
    cfg.write_cache = true;
    let mut rig = Rig::new(cfg);
    rig.submits(0, "R5000").returns();
    rig.bio(0, Op::Write, 9000, 8, Flags(Flags::SYNC.0 | Flags::FUA.0));
    rig.submits(1, "R100 R200").returns();
    switch(&mut rig, "noop", "2.6.18");
    rig.bio(2, Op::Flush, 0, 0, Flags(Flags::SYNC.0 | Flags::PREFLUSH.0));
    rig.returns();
    rig.to(500.0);
    assert_eq!(rig.order(), ["R5000", "F", "W9000", "F", "R100", "R200", "F"]);
    assert_eq!(rig.done.len(), 5);
}

#[test]
fn a_scheduler_of_the_other_block_layer_is_refused() {
    let mut rig = Rig::new(config("mq-deadline", "4.12", 1, 1));
    let e = rig.q.switch(&mut rig.tl, choice("cfq", "4.12")).unwrap_err();
    assert!(matches!(e, SwitchError::Path { scheduler: "cfq", .. }));
    assert_eq!(
        e.to_string(),
        "cfq runs on the legacy single-queue path, this queue on blk-mq, which is chosen when the \
         machine starts"
    );
    let mut bad = choice("bfq", "4.12");
    bad.tunables = vec![("fifo_batch".into(), 1)];
    let e = rig.q.switch(&mut rig.tl, bad).unwrap_err();
    assert!(e.to_string().starts_with("bfq has no tunable \"fifo_batch\""), "{e}");
    assert!(!rig.q.is_switching());
}
