//! The worked scenarios of CFQ 2.6.18.

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, QueueFacts};
use iosched_types::units::MS;
use iosched_types::{IoPrio, Op, Request};

use super::driver::{Machine, Process};

const GEN: &str = "cfq@2.6.18";

#[test]
fn a_round_of_quantum_then_idling_that_every_completion_renews() {
    let mut m = Machine::new(GEN, &[]);
    m.queue(0.0, 1, Op::Read, 1000, 8, 6);
    m.queue(0.0, 2, Op::Read, 900_000, 8, 6);
    m.run(200.0);
    assert!(
        m.order().starts_with("1@0 1@5 1@10 1@15 1@20 1@25 2@38 2@43 2@48 2@53 2@58"),
        "{}",
        m.order()
    );
    assert!(m.said("nothing came while idling"));
    assert_eq!(m.submitted, 12);
    assert_eq!(m.completed.values().sum::<u64>(), 12);
}

#[test]
fn the_idle_timer_beats_a_slow_device() {
    let mut m = Machine::new(GEN, &[]).device(32, 10.0);
    m.queue(0.0, 1, Op::Read, 1000, 8, 2);
    m.queue(0.0, 2, Op::Read, 900_000, 8, 4);
    m.run(200.0);
    assert!(m.order().starts_with("1@0 1@0 2@18 2@18 2@18 2@18"), "{}", m.order());
}

#[test]
fn an_asynchronous_slice_ends_after_sixteen_requests_in_rounds_of_four() {
    let mut m = Machine::new(GEN, &[]).device(1, 1.0);
    m.queue(0.0, 9, Op::Write, 10_000, 8, 40);
    m.queue(0.1, 1, Op::Read, 900_000, 8, 1);
    m.run(100.0);
    let first: Vec<u32> = m.sent.iter().take(17).map(|s| s.task).collect();
    assert_eq!(first[..16], [9; 16]);
    assert_eq!(first[16], 1, "{}", m.order());
    assert!(m.said("async slice: 16 of 16 dispatched"));
}

#[test]
fn an_asynchronous_slice_also_ends_by_time() {
    let mut m = Machine::new(GEN, &[]).device(1, 11.0);
    m.queue(0.0, 9, Op::Write, 10_000, 8, 40);
    m.queue(0.1, 1, Op::Read, 900_000, 8, 1);
    m.run(400.0);
    let reader = m.sent.iter().position(|s| s.task == 1).unwrap();
    // Rounds start at 0 and 44 ms; the second is refused as 44 > 40.
    assert_eq!(reader, 4, "{}", m.order());
}

/// Ten processes with reads far apart, on a device that is known to queue commands.
fn seeky(hw_tag: bool) -> Bench {
    let mut b = Bench::new(GEN, &[]);
    if hw_tag {
        let ids: Vec<_> = (0..5).map(|n| b.insert(0, Op::Read, n * 8, 8, 99)).collect();
        for _ in &ids {
            let Dispatch::Request(_) = b.dispatch(0) else { panic!("five are queued") };
        }
        ids.into_iter().for_each(|id| b.complete(0, id));
        b.with(0, |s, c| s.task_exited(c, 99));
    }
    for n in 0..10u64 {
        let sector = (n * 7 % 10 + 1) * 300_000_000;
        b.insert(MS, Op::Read, sector, 8, n as u32);
    }
    b
}

#[test]
fn with_command_queueing_ten_seeky_readers_leave_in_one_sweep() {
    let mut b = seeky(true);
    let mut sectors = Vec::new();
    while let Dispatch::Request(id) = b.dispatch(MS) {
        sectors.push(b.reqs[id].sector);
    }
    assert_eq!(sectors.len(), 10);
    assert!(sectors.is_sorted(), "{sectors:?}");
}

#[test]
fn without_command_queueing_each_is_served_alone() {
    let mut b = seeky(false);
    let Dispatch::Request(id) = b.dispatch(MS) else { panic!("ten are queued") };
    assert_eq!(b.dispatch(MS), Dispatch::Empty, "waits for the one in flight");
    b.complete(6 * MS, id);
    let Dispatch::Idle(i) = b.dispatch(6 * MS) else { panic!("it should idle") };
    // Too few samples yet to count as seeky for the shorter wait.
    assert_eq!(i.until, 14 * MS);
}

#[test]
fn a_seeky_process_is_waited_for_two_ms() {
    let mut m = Machine::new(GEN, &[]);
    m.start(0.0, 1, Process::reader(0).random(1 << 31).left(6));
    m.queue(50.0, 2, Op::Read, 800, 8, 1);
    m.run(300.0);
    assert!(m.b.out.why.is_some());
    assert!(m.said("idle 2 ms for pid 1") && m.said("seeky"), "{:#?}", m.sent);
}

#[test]
fn a_direct_writer_is_just_part_of_the_asynchronous_queue() {
    let mut m = Machine::new(GEN, &[]).device(1, 1.0);
    m.queue(0.0, 9, Op::Write, 10_000, 8, 100);
    let mut r = Request::new(Op::Write, 10_400, 4);
    (r.task, r.flags) = (5, iosched_types::Flags::SYNC);
    m.submit(0.5, r);
    m.run(500.0);
    let at = m.sent.iter().position(|s| s.task == 5).unwrap();
    // Same start as the 51st write: that one leaves at once, the newcomer takes its place in the sweep.
    assert!((49..=52).contains(&at), "position {at} {}", m.order());
    assert_eq!(m.counter("idles"), 0);
}

#[test]
fn real_time_does_not_preempt_but_is_next() {
    let mut m = Machine::new(GEN, &[]);
    m.start(0.0, 1, Process::reader(1000));
    m.start(20.0, 2, Process::reader(900_000).prio("rt/4").left(1));
    m.run(130.0);
    let order: Vec<u32> = m.sent.iter().map(|s| s.task).collect();
    let rt = order.iter().position(|t| *t == 2).unwrap();
    assert!(order[..rt].iter().all(|t| *t == 1), "{}", m.order());
    assert!(m.sent[rt].at >= 100 * MS, "after the slice: {}", m.order());
}

#[test]
fn a_new_real_time_queue_goes_behind_one_that_was_never_served() {
    let mut m = Machine::new(GEN, &[]);
    m.start(0.0, 1, Process::reader(1000));
    m.start(0.0, 3, Process::reader(500_000));
    m.start(20.0, 2, Process::reader(900_000).prio("rt/4").left(1));
    m.run(400.0);
    let first = |task| m.sent.iter().position(|s| s.task == task).unwrap();
    assert!(first(1) < first(3) && first(3) < first(2), "{}", m.order());
}

#[test]
fn a_fresh_sequential_reader_looks_seeky_for_its_first_eight_requests() {
    let mut b = seeky(true);
    b.drain(MS);
    // On its own, thinking 0: with the window closed it expires after each round.
    let mut idles = Vec::new();
    for n in 0..10u64 {
        let t = (10 + n) * MS;
        let id = b.insert(t, Op::Read, 2_000_000_000 + n * 256, 256, 50);
        assert_eq!(b.dispatch(t), Dispatch::Request(id));
        let before = b.scheduler.counters().iter().find(|c| c.0 == "idles").unwrap().1;
        b.complete(t, id);
        let after = b.scheduler.counters().iter().find(|c| c.0 == "idles").unwrap().1;
        idles.push(after > before);
    }
    assert_eq!(idles, [false, false, false, false, false, false, false, false, true, true]);
}

#[test]
fn the_idle_class_waits_for_a_quiet_moment_and_gives_way_at_once() {
    let mut m = Machine::new(GEN, &[]);
    m.queue(0.0, 1, Op::Read, 1000, 8, 1);
    let mut r = Request::new(Op::Read, 500_000, 8);
    (r.task, r.prio) = (7, IoPrio::parse("idle").unwrap());
    m.submit(1.0, r);
    m.run(500.0);
    // Completion at 5, then 100 ms of grace.
    assert_eq!(m.order(), "1@0 7@105");
}

#[test]
fn an_expired_request_goes_first_once_per_slice() {
    // Rounds of one: within a round everything leaves in sector order.
    let mut b = Bench::new(GEN, &[("quantum", 1)]);
    let old = b.insert(0, Op::Read, 900_000, 8, 1);
    b.insert(0, Op::Read, 800_000, 8, 1);
    b.insert(130 * MS, Op::Read, 100, 8, 1);
    assert_eq!(b.dispatch(130 * MS), Dispatch::Request(old));
    assert!(b.out.why.as_ref().unwrap().notes.iter().any(|n| n.1.starts_with("expired")));
}

#[test]
fn the_second_request_at_a_start_sends_the_first_away() {
    let mut b = Bench::on(GEN, &[], QueueFacts::default());
    let first = b.insert(0, Op::Read, 100, 8, 1);
    let second = b.insert(0, Op::Read, 100, 16, 1);
    assert_eq!(b.out.ejected, [first]);
    b.out.ejected.clear();
    b.with(0, |s, c| s.activated(c, first));
    assert_eq!(b.dispatch(0), Dispatch::Request(second));
    b.complete(MS, first);
    b.complete(MS, second);
    assert!(!b.scheduler.has_work());
}
