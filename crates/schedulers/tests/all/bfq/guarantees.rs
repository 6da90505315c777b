//! What holds for every generation under any load.

use std::collections::BTreeSet;

use iosched_schedulers::{Cgroup, Dispatch, MergeKind, Position, QueueFacts};
use iosched_types::units::MS;
use iosched_types::{Bio, Flags, IoPrio, Op, ReqId, Request};
use proptest::prelude::*;

use super::driver::{Rig, disk, random, sequential};

const GENERATIONS: [&str; 3] = ["bfq@v7r3", "bfq@4.12", "bfq@6.12"];

/// What one process of a random load does.
#[derive(Clone, Debug)]
struct Load {
    start_ms: u64,
    depth: usize,
    think_us: u64,
    kind: u8,
    requests: u64,
    prio: u8,
    cgroup: u32,
}

fn load() -> impl Strategy<Value = Load> {
    let think = prop_oneof![Just(0u64), 10u64..20_000, 1_000_000u64..3_000_000];
    (0u64..400, 1usize..9, think, 0u8..5, 1u64..60, 0u8..18, 0u32..4).prop_map(
        |(start_ms, depth, think_us, kind, requests, prio, cgroup)| Load {
            start_ms,
            depth,
            think_us,
            kind,
            requests,
            prio,
            cgroup,
        },
    )
}

fn prio(n: u8) -> IoPrio {
    let text = match n {
        0..8 => format!("be/{n}"),
        8..11 => format!("rt/{}", n - 8),
        11..13 => "idle".into(),
        _ => "none".into(),
    };
    IoPrio::parse(&text).expect("a valid priority")
}

fn add(rig: &mut Rig, n: u64, l: &Load) {
    let (kind, cgroup, class) = (l.kind, l.cgroup, prio(l.prio));
    let mut left = l.requests;
    let mut place: Box<dyn FnMut(u64) -> Option<Request>> = match kind {
        0 | 1 => Box::new(sequential(n * 50_000, 8 << (n % 5))),
        2 => Box::new(sequential(100_000, 256)),
        _ => Box::new(random(n, 8)),
    };
    rig.process(l.start_ms * MS, l.depth, l.think_us * 1000, move |i| {
        left = left.checked_sub(1)?;
        let mut r = place(i)?;
        (r.prio, r.cgroup) = (class, cgroup);
        if kind == 1 || kind == 4 {
            r.op = Op::Write;
            r.flags = if i % 3 == 0 { Flags::NONE } else { Flags::SYNC };
        }
        Some(r)
    });
}

fn facts(rotational: bool, hz: u32) -> QueueFacts {
    let group =
        |name: &str, parent, weight| Cgroup { name: name.into(), parent, weight: Some(weight) };
    let cgroups = vec![
        Cgroup::default(),
        group("/a", Some(0), 500),
        group("/a/b", Some(1), 100),
        group("/c", Some(0), 1),
    ];
    QueueFacts { hz, cgroups, ..disk(rotational) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every request is dispatched once and completes, on a device of any depth, without a livelock.
    #[test]
    fn nothing_is_lost_or_stuck(
        loads in prop::collection::vec(load(), 1..14),
        generation in 0usize..3,
        depth in prop_oneof![Just(1usize), 2usize..40],
        rotational in any::<bool>(),
        hz in prop::sample::select(vec![100u32, 250, 1000]),
        serial in any::<bool>(),
        quirks in 0u8..4,
    ) {
        let mut tunables = vec![];
        if quirks == 1 && generation > 0 {
            tunables.push(("strict_guarantees", 1));
        }
        if quirks == 2 {
            tunables.extend([("slice_idle", 0), ("low_latency", 0), ("max_budget", 64)]);
        }
        let service = |r: &Request| u64::from(r.sectors) * 3000 + r.sector % 7 * 300_000;
        let queue = facts(rotational, hz);
        let mut rig = Rig::new(GENERATIONS[generation], &tunables, queue, depth, service);
        if !serial {
            rig = rig.parallel();
        }
        for (n, l) in loads.iter().enumerate() {
            add(&mut rig, n as u64, l);
        }
        rig.run_to(10_000_000 * MS);
        let wanted: u64 = loads.iter().map(|l| l.requests).sum();
        prop_assert_eq!(rig.total_asked(), wanted);
        prop_assert_eq!(rig.completed, wanted, "left: {}", rig.bench.reqs.len());
        prop_assert!(rig.bench.reqs.is_empty() && rig.bench.scheduler.is_empty());
    }

    /// A forced drain in the middle gives every queued request exactly once, whatever was going on.
    #[test]
    fn a_forced_drain_gives_everything(
        loads in prop::collection::vec(load(), 1..14),
        generation in 0usize..3,
        stop_ms in 0u64..600,
        rotational in any::<bool>(),
    ) {
        let queue = facts(rotational, 250);
        let mut rig = Rig::new(GENERATIONS[generation], &[], queue, 2, |_| 4 * MS);
        for (n, l) in loads.iter().enumerate() {
            add(&mut rig, n as u64, l);
        }
        rig.run_to(stop_ms * MS);
        let dispatched = rig.sent.len() as u64;
        let mut seen = BTreeSet::new();
        let now = rig.now;
        while let Some(id) = rig.bench.with(now, |s, c| s.force_dispatch(c)) {
            prop_assert!(seen.insert(id));
        }
        prop_assert_eq!(dispatched + seen.len() as u64, rig.total_asked());
        prop_assert!(!rig.bench.scheduler.has_work());
    }

    /// Merges, requeues and exits in any order leave no request behind.
    #[test]
    fn merges_requeues_and_exits_lose_nothing(
        steps in prop::collection::vec((0u8..7, any::<u16>(), 1u32..6), 1..200),
        generation in 0usize..3,
        rotational in any::<bool>(),
    ) {
        let mut rig = Rig::new(GENERATIONS[generation], &[], facts(rotational, 1000), 1, |_| MS);
        let b = &mut rig.bench;
        let (mut queued, mut flying): (Vec<ReqId>, Vec<ReqId>) = (Vec::new(), Vec::new());
        let mut now = 0;
        for (kind, x, task) in steps {
            now += u64::from(x % 97) * 100_000;
            let pick = |v: &Vec<ReqId>| (!v.is_empty()).then(|| usize::from(x) % v.len());
            match kind {
                0 | 1 => {
                    let mut r = Request::new(Op::Read, 1000 + u64::from(x % 64) * 8, 8);
                    r.task = task;
                    if x % 5 == 0 {
                        r.op = Op::Write;
                    }
                    queued.push(b.insert_request(now, r));
                }
                2 => if let Dispatch::Request(id) = b.dispatch(now) {
                    prop_assert!(queued.contains(&id));
                    queued.retain(|q| *q != id);
                    flying.push(id);
                },
                3 => if let Some(i) = pick(&flying) {
                    let id = flying.swap_remove(i);
                    b.complete(now, id);
                },
                4 => if let Some(i) = pick(&flying) {
                    let id = flying.swap_remove(i);
                    b.with(now, |s, c| {
                        s.requeued(c, id);
                        s.insert(c, id, Position::Head);
                    });
                    queued.push(id);
                },
                5 => if let Some(i) = pick(&queued) {
                    front_or_back(b, now, &mut queued, i);
                },
                _ => b.with(now, |s, c| match x % 4 {
                    0 => s.task_exited(c, task),
                    _ => s.timer(c),
                }),
            }
        }
        while let Some(id) = b.with(now, |s, c| s.force_dispatch(c)) {
            prop_assert!(queued.contains(&id), "dispatched twice or never queued");
            queued.retain(|q| *q != id);
            flying.push(id);
        }
        prop_assert!(queued.is_empty());
        for id in flying {
            b.complete(now, id);
        }
        prop_assert!(b.reqs.is_empty());
    }

    /// The same load gives the same requests at the same times, and the same words.
    #[test]
    fn runs_repeat(loads in prop::collection::vec(load(), 1..10), generation in 0usize..3) {
        let run = || {
            let mut rig = Rig::new(GENERATIONS[generation], &[], facts(true, 250), 4, |r| {
                MS + r.sector % 1000 * 5000
            });
            for (n, l) in loads.iter().enumerate() {
                add(&mut rig, n as u64, l);
            }
            rig.run_to(3000 * MS);
            (format!("{:?}", rig.sent), rig.notes)
        };
        prop_assert_eq!(run(), run());
    }
}

/// Merges a queued request with its neighbour, or grows it to the front as a bio would.
fn front_or_back(
    b: &mut iosched_schedulers::testing::Bench,
    now: u64,
    queued: &mut Vec<ReqId>,
    i: usize,
) {
    let id = queued[i];
    let next = b.with(now, |s, c| s.next_neighbour(c, id));
    let joins = |a: ReqId, z: ReqId| {
        b.reqs[a].end() == b.reqs[z].sector && b.reqs[a].is_sync() == b.reqs[z].is_sync()
    };
    if let Some(gone) = next.filter(|n| joins(id, *n)) {
        b.with(now, |s, c| s.absorbed(c, id, gone));
        b.reqs[id].sectors += b.reqs[gone].sectors;
        b.with(now, |s, c| s.finished(c, gone));
        b.reqs.remove(gone);
        queued.retain(|q| *q != gone);
        return;
    }
    let (sector, task, op, flags) = {
        let r = &b.reqs[id];
        (r.sector, r.task, r.op, r.flags)
    };
    let bio = Bio {
        id: 0,
        op,
        flags,
        sector: sector - 1,
        sectors: 1,
        task,
        thread: task,
        prio: IoPrio::default(),
        cgroup: 0,
        cpu: 0,
    };
    let found = b.with(now, |s, c| s.find_front(c, &bio).filter(|f| s.allow_merge(c, *f, &bio)));
    if let Some(f) = found {
        let old = b.reqs[f].sector;
        b.reqs[f].sector = bio.sector;
        b.reqs[f].sectors += 1;
        b.with(now, |s, c| s.merged(c, f, MergeKind::Front, old));
    }
}
