//! The multi-queue path: staging, software queues, busy average, plugs, tags.

use iosched_types::{Flags, Op, Sector};

use super::{Rig, config, device};
use crate::profile::ShallowDepth;

/// Reads 100 to 400 are queued, two go to the device, then 250 comes.
fn staged(scheduler: &str, kernel: &str, budget: bool) -> Vec<String> {
    let mut c = config(scheduler, kernel, 2, 5);
    c.budget = budget;
    c.settings = vec![("nr_requests".into(), 64)];
    let mut r = Rig::new(c);
    r.submits(0, "R100 R200 R300 R400").returns();
    assert_eq!(r.order(), ["R100", "R200"]);
    r.to(1.0);
    r.submits(0, "R250").returns();
    r.to(100.0);
    r.order().split_off(2)
}

/// MQ-1: without a budget one request is pulled ahead and parked, so a better one comes too late.
#[test]
fn a_driver_without_budget_stages_one_request() {
    for (scheduler, kernel) in [("mq-deadline@6.1", "6.12"), ("mq-deadline@6.12", "6.12")] {
        assert_eq!(staged(scheduler, kernel, false), ["R300", "R400", "R250"], "{scheduler}");
    }
    // Here the next insertion pulls another, and the latest goes first.
    assert_eq!(staged("mq-deadline@4.12", "4.12", false), ["R400", "R300", "R250"]);
}

/// MQ-1: with a budget the choice is made when the device has room; a position is searched for from
/// 6.5 on, until then the next request is known beforehand.
#[test]
fn a_driver_with_budget_chooses_late() {
    for (scheduler, kernel) in [("mq-deadline@4.12", "4.12"), ("mq-deadline@6.1", "6.12")] {
        assert_eq!(staged(scheduler, kernel, true), ["R300", "R400", "R250"], "{scheduler}");
    }
    assert_eq!(staged("mq-deadline@6.12", "6.12", true), ["R250", "R300", "R400"]);
}

/// Reads of one stream come one by one while the device is full. 4.12 pulls each of them out of the scheduler at once, and
/// puts it ahead of the others. Later kernels leave them there, where the next one is merged.
#[test]
fn a_full_queue_of_4_12_empties_its_scheduler() {
    for (scheduler, kernel, order) in [
        ("mq-deadline@4.12", "4.12", vec!["R100", "R900", "R124", "R116", "R108"]),
        ("kyber@4.12", "4.12", vec!["R100", "R900", "R124", "R116", "R108"]),
        ("bfq@4.12", "4.12", vec!["R100", "R900", "R124", "R116", "R108"]),
        ("mq-deadline@4.12", "6.12", vec!["R100", "R900", "R108+24"]),
    ] {
        let mut c = config(scheduler, kernel, 2, 5);
        c.budget = c.profile.mq.budget_first;
        let mut r = Rig::new(c);
        for read in ["R100", "R900", "R108", "R116", "R124"] {
            r.submits(0, read).returns();
        }
        r.to(100.0);
        assert_eq!(r.order(), order, "{scheduler} on {kernel}");
    }
}

/// A run that sends a parked request asks the scheduler for nothing.
#[test]
fn a_run_with_progress_leaves_the_scheduler_alone() {
    let mut c = config("mq-deadline@4.12", "4.12", 1, 5);
    c.budget = false;
    let mut r = Rig::new(c);
    for read in ["R100", "R900", "R500", "R300"] {
        r.submits(0, read).returns();
    }
    assert_eq!(r.q.hctx().parked_requests(), 3);
    r.to(6.0);
    assert_eq!((r.order().len(), r.q.hctx().parked_requests()), (2, 2));
    r.to(100.0);
    assert_eq!(
        r.order(),
        ["R100", "R300", "R500", "R900"],
        "the latest that was pulled goes first"
    );
}

/// MQ-2: `none` sends whole lists while it is not busy, and one request per CPU in turn when it is.
#[test]
fn software_queues_are_flushed_or_served_in_turn() {
    for (busy, order) in
        [(0, ["R10", "R20", "R30", "R40", "R50"]), (2, ["R10", "R30", "R40", "R20", "R50"])]
    {
        let mut r = Rig::new(config("none", "6.12", 32, 5));
        r.q.hold(true);
        r.submits(0, "R10 R20").submits(1, "R30").submits(2, "R40 R50");
        r.q.hold(false);
        r.q.hctx().set_busy_average(busy);
        r.returns();
        assert_eq!(r.order(), order, "busy {busy}");
    }
}

/// MQ-3: three rejected offers, then successes.
#[test]
fn the_busy_average_rises_fast_and_falls_slowly() {
    let mut r = Rig::new(config("mq-deadline@6.12", "6.12", 1, 5));
    let hctx = r.q.hctx();
    let steps = [true, true, true, false, false, false, false, false];
    let seen = steps.map(|busy| {
        hctx.update_busy(busy);
        hctx.busy_average()
    });
    assert_eq!(seen, [2, 3, 4, 3, 2, 1, 0, 0]);
    (0..40).for_each(|_| hctx.update_busy(true));
    assert_eq!(hctx.busy_average(), 9, "it never says more");
}

/// MQ-3: a busy queue pulls single requests, so a better one that comes meanwhile still wins.
#[test]
fn a_busy_queue_pulls_single_requests() {
    let run = |busy| {
        let mut r = Rig::new(config("mq-deadline@6.12", "6.12", 4, 5));
        r.q.hctx().set_busy_average(busy);
        r.q.explain();
        r.submits(0, "R100 R200 R300 R400 R500").returns();
        let (busy, parked) = (r.q.hctx().busy_average(), r.q.hctx().parked_requests());
        (busy, r.order().len(), parked)
    };
    // One offer of the whole batch, which ends with the request that found no tag.
    assert_eq!(run(0), (2, 4, 1));
    // Four offers that went well (9, 7, 6, 5, 4), then the one that did not.
    assert_eq!(run(9), (5, 4, 1));
}

/// MQ-6: 32 requests fill a plug; a newest request of 128 KiB ends it.
#[test]
fn a_plug_holds_32_requests_or_128_kib() {
    let mut r = Rig::new(config("mq-deadline@6.12", "6.12", 64, 5));
    r.q.start_plug(0);
    for n in 0..32 {
        r.submits(0, &format!("R{}", n * 100)).returns();
    }
    assert!(r.order().is_empty());
    r.submits(0, "R9000").returns();
    assert_eq!(r.order().len(), 32, "the 33rd stays in the plug");
    r.q.finish_plug(&mut r.tl, 0);
    r.returns();
    assert_eq!(r.order()[32], "R9000");

    let mut r = Rig::new(config("mq-deadline@6.12", "6.12", 64, 5));
    r.q.start_plug(0);
    r.submits(0, "W5000+256").returns();
    assert!(r.order().is_empty());
    r.submits(0, "R100").returns();
    assert_eq!(r.order(), ["W5000+256"]);
    r.submits(0, "R300 R500").returns();
    assert_eq!(r.order().len(), 1, "small requests gather again");
}

/// NO-3: a plug of three, sorted by the older layer and in order of arrival in the newer one.
#[test]
fn a_plug_without_scheduler_keeps_its_kernels_order() {
    for (kernel, order) in [("4.12", ["R100", "R500", "R900"]), ("6.12", ["R900", "R100", "R500"])]
    {
        let mut r = Rig::new(config("none", kernel, 4, 5));
        r.q.start_plug(0);
        r.submits(0, "R900 R100 R500").returns();
        assert!(r.order().is_empty());
        r.q.finish_plug(&mut r.tl, 0);
        r.returns();
        assert_eq!(r.order(), order, "{kernel}");
    }
}

/// NO-2: without a plug they go as they come.
#[test]
fn an_idle_device_takes_requests_as_they_come() {
    let mut r = Rig::new(config("none", "6.12", 4, 5));
    r.submits(0, "R900 R100 R500");
    assert_eq!(r.order(), ["R900", "R100", "R500"], "before the system call returns");
}

/// NO-4: submitters that found no tag go on one by one, the one that slept first first.
#[test]
fn sleepers_for_a_tag_take_turns() {
    let mut c = config("none", "6.12", 2, 5);
    c.device = device(1, 5);
    let mut r = Rig::new(c);
    r.submits(0, "R100 R200 R300 R400").submits(1, "R900").returns();
    assert_eq!(r.sent(), ["R100@0", "R200@0"]);
    r.to(4.0);
    assert_eq!(r.woken, []);
    r.to(50.0);
    assert_eq!(r.sent()[2..], ["R300@5", "R900@10", "R400@15"]);
    assert_eq!(r.woken, [0, 1, 0]);
}

/// A task woken for a tag lets the queue run before it takes one, so requests in the scheduler go first. Its sleep is
/// no reason to run the queue at completions.
#[test]
fn a_woken_sleeper_runs_the_queue_first() {
    let mut c = config("mq-deadline@6.12", "6.12", 64, 5);
    c.settings = vec![("nr_requests".into(), 4)];
    let mut r = Rig::new(c);
    r.submits(0, "R1000 R2000 R3000").returns();
    r.q.hold(true);
    r.submits(1, "R900").returns();
    r.submits(2, "R100").returns();
    r.q.hold(false);
    assert_eq!(r.order(), ["R1000", "R2000", "R3000"]);
    assert!(!r.q.hctx().will_restart());
    r.to(50.0);
    assert_eq!(r.woken, [2]);
    assert_eq!(r.order()[3..], ["R900", "R100"], "by position R100 would be first");
}

/// MD-9: an `async_depth` of 8 of 256 tags lets 32 writes in where it counts per word of the tag map.
#[test]
fn async_depth_counts_per_word_or_over_the_map() {
    // 5.14 to 6.16 apply the value per word of 64; later it is a limit on the whole map.
    for (scope, writes) in [(ShallowDepth::Word, 32), (ShallowDepth::Map, 8)] {
        let mut c = config("mq-deadline@6.1", "6.12", 128, 5);
        c.profile.mq.shallow_depth = scope;
        c.profile.mq.wbt = false;
        c.scheduler.tunables = vec![("async_depth".into(), 8)];
        let mut r = Rig::new(c);
        r.q.hold(true);
        let fits = |n: &u64| r.bio(0, Op::Write, *n as Sector * 100, 8, Flags::NONE);
        assert_eq!((0..).take_while(fits).count(), writes, "{scope:?}");
        let reads = |n: &u64| r.bio(1, Op::Read, *n as Sector * 100, 8, Flags::NONE);
        assert_eq!((0..).take_while(reads).count(), 256 - writes, "reads take the rest");
    }
}

/// A scheduler that has a reason to run some hardware queues does not set off the others, and they run in the order in
/// which it named them.
#[test]
fn only_the_named_hardware_queue_runs() {
    for (named, order) in [(vec![1], vec!["R20"]), (vec![1, 0], vec!["R20", "R10"])] {
        let mut c = config("none", "6.12", 4, 5);
        c.hw_queues = 2;
        let mut r = Rig::new(c);
        r.q.hold(true);
        r.submits(0, "R10").submits(1, "R20").returns();
        r.q.hold(false);
        r.q.hook(&mut r.tl, |_, c| named.iter().for_each(|h| c.run_hctx(*h)));
        r.returns();
        assert_eq!(r.order(), order, "{named:?}");
    }
}
