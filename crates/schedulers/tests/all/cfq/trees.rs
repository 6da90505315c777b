//! The worked scenarios of the service-tree CFQ (3.12 and 4.12).

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Dispatch, MayQueue, QueueFacts};
use iosched_types::units::MS;
use iosched_types::{Bio, Flags, IoPrio, Op, ReqId, Request};

use super::driver::{Machine, Process};

const BOTH: [&str; 2] = ["cfq@3.12", "cfq@4.12"];

fn ssd() -> QueueFacts {
    QueueFacts { rotational: false, ..QueueFacts::default() }
}

fn take(b: &mut Bench, now: u64) -> Option<ReqId> {
    match b.dispatch(now) {
        Dispatch::Request(id) => Some(id),
        _ => None,
    }
}

fn notes(b: &mut Bench) -> String {
    let notes = std::mem::take(&mut b.out.why.as_mut().unwrap().notes);
    notes.into_iter().map(|(_, t)| t + "\n").collect()
}

#[test]
fn the_slice_starts_with_the_first_completion() {
    for name in BOTH {
        for (first, end) in [(12.0, 112.0), (250.0, 350.0)] {
            let mut m = Machine::new(name, &[]).device(1, first);
            m.start(0.0, 1, Process::reader(1000));
            m.start(0.0, 2, Process::reader(9_000_000));
            m.run(first - 1.0);
            m.service = 2 * MS;
            m.run(400.0);
            let b = m.sent.iter().find(|s| s.task == 2);
            let b = b.unwrap_or_else(|| panic!("{name} {first}: {:#?}", m.sent));
            let at = b.at as f64 / 1e6;
            assert!((end..end + 4.0).contains(&at), "{name}: B starts at {at}, not about {end}");
        }
    }
}

/// Slices actually granted with `n` sequential readers, from the moment everything has settled.
fn settled_slice(name: &str, n: u32) -> f64 {
    let mut m = Machine::new(name, &[]).device(1, 1.0);
    for t in 0..n {
        m.start(0.0, t, Process::reader(u64::from(t) * 100_000_000));
    }
    m.run(8000.0);
    let late: Vec<_> = m.sent.iter().filter(|s| s.at > 4000 * MS).collect();
    let mut lengths = Vec::new();
    for pair in late.chunk_by(|a, b| a.task == b.task) {
        lengths.push((pair.last().unwrap().at - pair[0].at) as f64 / 1e6);
    }
    let inner = &lengths[1..lengths.len() - 1];
    inner.iter().sum::<f64>() / inner.len() as f64
}

#[test]
fn low_latency_shortens_slices_as_queues_multiply() {
    for name in BOTH {
        for (n, slice) in [(2, 100.0), (3, 100.0), (4, 75.0), (6, 50.0), (10, 30.0), (20, 16.0)] {
            let got = settled_slice(name, n);
            assert!((got - slice).abs() <= 2.5, "{name}, {n} readers: {got} ms, not {slice}");
        }
    }
}

#[test]
fn without_low_latency_slices_stay_whole() {
    let mut m = Machine::new("cfq@4.12", &[("low_latency", 0)]).device(1, 1.0);
    for t in 0..6 {
        m.start(0.0, t, Process::reader(u64::from(t) * 100_000_000));
    }
    m.run(2000.0);
    assert!(m.said("slice expired: 100 ms = 100 ms"), "{:#?}", m.sent.last());
}

#[test]
fn workloads_share_the_target_latency_by_their_queues() {
    for name in BOTH {
        let mut m = Machine::new(name, &[]).device(1, 1.0);
        for t in 0..10 {
            m.start(0.0, t, Process::reader(u64::from(t) * 100_000_000));
        }
        m.start(0.0, 90, Process { depth: 32, ..Process::writer(5_000_000_000) });
        m.run(6000.0);
        // 300 * 10/11, and 300 * 1/11 * 40/100.
        assert!(m.said("workload SYNC: 272"), "{name}");
        assert!(m.said("workload ASYNC: 10"), "{name}");
        // Readers that return in the meantime preempt, so writes get less than 10 of 282 ms.
        let writes = m.completed[&90] as f64 / m.completed.values().sum::<u64>() as f64;
        assert!((0.0005..0.04).contains(&writes), "{name}: writes get {writes} of the disk");
    }
}

#[test]
fn sync_preempts_async_and_waits_until_it_has_drained() {
    for name in BOTH {
        // An ageing scheduler, so that the ramp allows three writes in flight.
        let mut b = Bench::new(name, &[]);
        let t0 = 3000 * MS;
        let writes: Vec<_> =
            (0..6).map(|n| b.insert(t0, Op::Write, 10_000 + n * 8, 8, 9)).collect();
        for w in &writes[..3] {
            assert_eq!(take(&mut b, t0), Some(*w));
        }
        let read = b.insert(t0, Op::Read, 900_000, 8, 1);
        assert!(notes(&mut b).contains("preempted by pid 1: sync over async"));
        for (n, t) in [5, 9].into_iter().enumerate() {
            b.complete(t0 + t * MS, writes[n]);
            assert_eq!(b.dispatch(t0 + t * MS), Dispatch::Empty, "{name} drains first");
        }
        assert!(notes(&mut b).contains("drains 1 asynchronous request first"));
        b.complete(t0 + 14 * MS, writes[2]);
        assert_eq!(take(&mut b, t0 + 14 * MS), Some(read), "{name}");
    }
}

#[test]
fn a_noidle_queue_with_company_does_not_wait_for_the_drain() {
    for name in BOTH {
        let mut b = Bench::new(name, &[]);
        let fsync = |b: &mut Bench, t: u64, sector, task| {
            let mut r = Request::new(Op::Write, sector, 8);
            (r.flags, r.task, r.t_start) = (Flags::SYNC, task, t);
            let id = b.reqs.add(r);
            b.with(t, |s, c| {
                s.prepare(c, id);
                s.insert(c, id, iosched_schedulers::Position::Sort);
            });
            id
        };
        // The idle window closes with the first such write; the type follows at the next insertion.
        for task in [1, 2] {
            let id = fsync(&mut b, 0, 500_000, task);
            assert_eq!(take(&mut b, 0), Some(id));
            b.complete(0, id);
            b.with(20 * MS, |s, c| s.timer(c));
        }
        let t0 = 3000 * MS;
        let writes: Vec<_> =
            (0..6).map(|n| b.insert(t0, Op::Write, 10_000 + n * 8, 8, 9)).collect();
        for w in &writes[..3] {
            assert_eq!(take(&mut b, t0), Some(*w));
        }
        let first = fsync(&mut b, t0, 700_000, 2);
        let second = fsync(&mut b, t0, 900_000, 1);
        let why = notes(&mut b);
        assert!(why.contains("sync over async"), "{name}: {why}");
        assert_eq!(take(&mut b, t0), Some(first), "{name}: at once, three writes in flight");
        assert_ne!(take(&mut b, t0), Some(second), "{name}: one queue after the other");
    }
}

#[test]
fn asynchronous_depth_ramps_up_since_the_last_late_sync_request() {
    for name in BOTH {
        let ramp = |after: u64| {
            let mut b = Bench::new(name, &[]);
            // A read that took 130 ms sets the clock back.
            let r = b.insert(0, Op::Read, 8, 8, 1);
            take(&mut b, 0);
            b.complete(130 * MS, r);
            b.with(130 * MS, |s, c| s.task_exited(c, 1));
            let now = (130 + after) * MS;
            for n in 0..40 {
                b.insert(now, Op::Write, 10_000 + n * 8, 8, 9);
            }
            std::iter::from_fn(|| take(&mut b, now)).count()
        };
        let depths: Vec<usize> = [50, 150, 250, 450, 900].into_iter().map(ramp).collect();
        assert_eq!(depths, [1, 1, 2, 4, 9], "{name}");
    }
}

#[test]
fn depth_in_flight_follows_the_rest_of_the_slice() {
    for name in BOTH {
        let mut b = Bench::new(name, &[]);
        let all: Vec<_> = (0..20).map(|n| b.insert(0, Op::Read, 1000 + n * 8, 8, 1)).collect();
        b.insert(0, Op::Read, 9_000_000, 8, 2);
        let count = |b: &mut Bench, t: u64| std::iter::from_fn(|| take(b, t)).count();
        assert_eq!(count(&mut b, 0), 4, "{name}: before the first completion");
        b.complete(10 * MS, all[0]);
        assert_eq!(count(&mut b, 10 * MS), 5, "{name}: up to eight in flight");
        for id in &all[1..5] {
            b.complete(80 * MS, *id);
        }
        // Four in flight, 30 ms of the slice left: four times 8 ms is more.
        assert_eq!(count(&mut b, 80 * MS), 0, "{name}");
    }
}

#[test]
fn the_only_synchronous_queue_has_no_depth_limit() {
    for name in BOTH {
        let mut b = Bench::new(name, &[]);
        for n in 0..20 {
            b.insert(0, Op::Read, 1000 + n * 8, 8, 1);
        }
        b.insert(0, Op::Write, 9_000_000, 8, 2);
        assert_eq!(std::iter::from_fn(|| take(&mut b, 0)).count(), 20, "{name}");
    }
}

#[test]
fn a_random_reader_counts_as_seeky_from_its_sixth_request() {
    for name in BOTH {
        let mut b = Bench::new(name, &[]);
        let mut idled = Vec::new();
        for n in 1..=7u64 {
            let t = n * 20 * MS;
            // Somebody else is busy, so that idling is the queue's own merit and not the tree's.
            let id = b.insert(t, Op::Read, (n * 7919) % 64 * 10_000_000, 8, 1);
            if n == 1 {
                b.insert(t, Op::Read, 800_000_000, 8, 2);
            }
            let got = take(&mut b, t);
            if got != Some(id) {
                idled.push(false);
                break;
            }
            notes(&mut b);
            b.complete(t + MS, id);
            idled.push(notes(&mut b).contains("idle 8 ms for pid 1"));
        }
        // Gaps of 19 ms are longer than slice_idle, so think time closes the window as well; the
        // third sample is the first that counts.
        assert!(idled[0] && idled[1], "{name}: {idled:?}");
    }
    // By seeks alone: think time 0.
    for name in BOTH {
        let mut m = Machine::new(name, &[]).device(1, 2.0);
        m.start(0.0, 1, Process::reader(0).random(1 << 31).left(8));
        m.start(0.0, 2, Process::reader(1 << 40));
        m.run(400.0);
        let of_1: Vec<_> = m.sent.iter().filter(|s| s.task == 1).collect();
        // Six at one go with idling in between, then its window is closed and the other's turn comes.
        let first_gap = of_1.windows(2).position(|w| w[1].at - w[0].at > 5 * MS).unwrap();
        assert_eq!(first_gap, 5, "{name}: {}", m.order());
    }
}

#[test]
fn an_expired_request_goes_first_and_the_fifo_is_looked_at_once() {
    let mut b = Bench::new("cfq@4.12", &[]);
    let old = b.insert(0, Op::Read, 900_000, 8, 1);
    let older = b.insert(0, Op::Read, 950_000, 8, 1);
    let near = b.insert(130 * MS, Op::Read, 100, 8, 1);
    let t = 130 * MS;
    assert_eq!(
        [take(&mut b, t), take(&mut b, t), take(&mut b, t)],
        // The next is found anew from the place of the one that went for its age.
        [Some(old), Some(older), Some(near)]
    );
    assert!(notes(&mut b).contains("expired: 130 ms >= 125 ms"));
}

#[test]
fn on_an_ssd_two_random_readers_alternate_without_idling() {
    for name in BOTH {
        let mut m = Machine::on(name, &[], ssd()).device(1, 0.1);
        m.start(0.0, 1, Process::reader(0).random(1 << 30));
        m.start(0.0, 2, Process::reader(1 << 31).random(1 << 30));
        m.run(20.0);
        let tasks: Vec<u32> = m.sent.iter().map(|s| s.task).collect();
        assert!(tasks.windows(2).skip(2).all(|w| w[0] != w[1]), "{name}: {tasks:?}");
        assert_eq!(m.counter("idles") + m.counter("group_idles"), 0, "{name}");
        assert!(m.busy >= 19 * MS, "{name}: the device rests");
    }
}

#[test]
fn on_an_ssd_without_command_queueing_3_12_idles() {
    // Fifty samples with less than five in the driver say "no queueing".
    let run = |name| {
        let mut m = Machine::on(name, &[], ssd()).device(1, 0.1);
        for t in 0..8 {
            m.start(0.0, t, Process { sectors: 128, ..Process::reader(u64::from(t) << 30) });
        }
        m.run(500.0);
        m.counter("idles")
    };
    assert!(run("cfq@3.12") > 0);
    assert_eq!(run("cfq@4.12"), 0, "slice_idle is 0 there");
}

#[test]
fn a_small_request_does_not_end_idling_by_itself_a_larger_one_does() {
    for name in BOTH {
        for (sectors, runs) in [(8, false), (16, true)] {
            let mut b = Bench::new(name, &[]);
            let id = b.insert(0, Op::Read, 1000, 8, 1);
            take(&mut b, 0);
            b.complete(5 * MS, id);
            assert!(b.out.timer.take().flatten().is_some(), "{name} idles");
            b.out.run_queue = false;
            b.insert(6 * MS, Op::Read, 1008, sectors, 1);
            assert_eq!(b.out.run_queue, runs, "{name}, {sectors} sectors");
        }
    }
}

#[test]
fn whoever_is_waited_for_gets_one_request_from_a_full_pool() {
    for name in ["cfq@2.6.18", "cfq@3.12", "cfq@4.12"] {
        let mut b = Bench::new(name, &[]);
        let id = b.insert(0, Op::Read, 1000, 8, 1);
        take(&mut b, 0);
        b.complete(5 * MS, id);
        let mut ask = |task| b.with(6 * MS, |s, c| s.may_queue(c, Op::Read, Flags::NONE, task));
        assert_eq!(
            [ask(1), ask(1), ask(2)],
            [MayQueue::Must, MayQueue::May, MayQueue::May],
            "{name}"
        );
    }
}

#[test]
fn only_requests_of_ones_own_queue_take_a_bio() {
    let bio = |op, task, flags| Bio {
        id: 0,
        op,
        flags,
        sector: 1008,
        sectors: 8,
        task,
        thread: task,
        prio: IoPrio::default(),
        cgroup: 0,
        cpu: 0,
    };
    for name in BOTH {
        let mut b = Bench::new(name, &[]);
        let read = b.insert(0, Op::Read, 1000, 8, 1);
        let write = b.insert(0, Op::Write, 1000, 8, 1);
        let mut may = |id, bio: Bio| b.with(0, |s, c| s.allow_merge(c, id, &bio));
        assert!(may(read, bio(Op::Read, 1, Flags::NONE)), "{name}");
        assert!(!may(read, bio(Op::Read, 2, Flags::NONE)), "{name}: another process");
        assert!(
            may(write, bio(Op::Write, 2, Flags::NONE)),
            "{name}: asynchronous queues are shared"
        );
        assert!(!may(write, bio(Op::Write, 1, Flags::SYNC)), "{name}: sync into async");
    }
}

#[test]
fn interleaved_readers_share_a_queue_and_part_when_they_turn_seeky() {
    for name in BOTH {
        let mut m = Machine::new(name, &[]).device(1, 1.0);
        // Two processes read every other 64 sectors of the same file, as dump does; a third is elsewhere.
        for t in [1, 2] {
            for n in 0..300u64 {
                let mut r = Request::new(Op::Read, 1_000_000 + (n * 2 + u64::from(t)) * 64, 64);
                r.task = t;
                m.submit(n as f64 * 4.0 + f64::from(t), r);
            }
        }
        m.start(0.0, 3, Process::reader(1 << 32));
        m.run(1500.0);
        assert!(m.counter("queue_merges") > 0, "{name}");
        assert!(m.said("close"), "{name}");
        for (t, base) in [(1, 1u64 << 33), (2, 1u64 << 34)] {
            for n in 0..60u64 {
                let mut r = Request::new(Op::Read, base + n * 1_000_003, 8);
                r.task = t;
                m.submit(1600.0 + n as f64 * 10.0, r);
            }
        }
        m.run(4000.0);
        assert!(m.counter("queue_splits") > 0, "{name}");
    }
}

#[test]
fn real_time_preempts_best_effort_and_the_idle_class_comes_last() {
    for name in BOTH {
        let mut m = Machine::new(name, &[]).device(1, 1.0);
        m.start(0.0, 1, Process::reader(0));
        m.start(0.0, 3, Process::reader(1 << 30).prio("idle"));
        m.start(20.5, 2, Process::reader(1 << 31).prio("rt/4").left(20));
        m.run(500.0);
        let first = m.sent.iter().find(|s| s.task == 2).unwrap();
        assert!(first.at <= 22 * MS, "{name}: {}", first.at);
        assert!(m.said("preempted by pid 2: real time over best effort"), "{name}");
        // Only when a slice ends with nothing else queued does one idle-class request slip in.
        let idle = m.sent.iter().filter(|s| s.task == 3).count();
        assert!((1..=6).contains(&idle), "{name}: {idle} requests of the idle class");
    }
}

#[test]
fn an_exit_ends_the_idling_for_the_process() {
    for name in ["cfq@2.6.18", "cfq@3.12", "cfq@4.12"] {
        let mut m = Machine::new(name, &[]);
        m.queue(0.0, 1, Op::Read, 1000, 8, 1);
        m.queue(1.0, 2, Op::Read, 900_000, 8, 1);
        m.exit(7.0, 1);
        m.run(100.0);
        assert_eq!(m.order(), "1@0 2@7", "{name}");
    }
}

#[test]
fn groups_get_time_by_weight() {
    use iosched_schedulers::Cgroup;
    let group =
        |name: &str, weight| Cgroup { name: name.into(), parent: Some(0), weight: Some(weight) };
    for name in BOTH {
        let cgroups = vec![Cgroup::default(), group("heavy", 600), group("light", 200)];
        let queue = QueueFacts { cgroups, ..QueueFacts::default() };
        let mut m = Machine::on(name, &[], queue).device(1, 1.0);
        for t in 0..4u32 {
            let p = Process::reader(u64::from(t) << 30);
            m.start(0.0, t, Process { cgroup: 1 + t % 2, ..p });
        }
        m.run(20_000.0);
        let sum = |a: u32, b: u32| (m.completed[&a] + m.completed[&b]) as f64;
        let ratio = sum(0, 2) / sum(1, 3);
        assert!((2.6..3.4).contains(&ratio), "{name}: {ratio} instead of 3");
    }
}

#[test]
fn a_request_that_bypasses_the_scheduler_leaves_no_trace() {
    for name in ["cfq@2.6.18", "cfq@3.12", "cfq@4.12"] {
        let mut b = Bench::new(name, &[]);
        // The data of a flush sequence: set up with the others, then straight to the driver.
        let mut r = Request::new(Op::Write, 1000, 8);
        r.flags = Flags::FUA;
        let id = b.reqs.add(r);
        b.with(0, |s, c| {
            s.prepare(c, id);
            s.activated(c, id);
            s.requeued(c, id);
            s.activated(c, id);
        });
        b.complete(5 * MS, id);
        let read = b.insert(6 * MS, Op::Read, 900_000, 8, 1);
        assert_eq!(take(&mut b, 6 * MS), Some(read), "{name}");
        b.complete(11 * MS, read);
    }
}
