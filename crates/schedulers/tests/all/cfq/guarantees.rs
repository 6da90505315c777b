//! What CFQ promises, over random workloads.

use proptest::prelude::*;

use iosched_schedulers::testing::Bench;
use iosched_schedulers::{Cgroup, Dispatch, MergeKind, QueueFacts};
use iosched_types::units::MS;
use iosched_types::{Flags, IoPrio, Op, ReqId, Request};

use super::driver::{Machine, Process};

const ALL: [&str; 3] = ["cfq@2.6.18", "cfq@3.12", "cfq@4.12"];

/// One thing that happens to a scheduler.
#[derive(Clone, Debug)]
enum Step {
    Insert { write: bool, sync: bool, sector: u64, task: u32, prio: u8, cgroup: u32 },
    Dispatch,
    Complete(usize),
    Wait(u64),
    Drain,
    Absorb(usize),
    Exit(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (any::<bool>(), any::<bool>(), 0..5000u64, 0..9u32, 0..20u8, 0..3u32).prop_map(
            |(write, sync, s, task, prio, cgroup)| {
                Step::Insert { write, sync, sector: s * 1000, task, prio, cgroup }
            }
        ),
        6 => Just(Step::Dispatch),
        5 => any::<usize>().prop_map(Step::Complete),
        3 => (0..40u64).prop_map(Step::Wait),
        1 => Just(Step::Drain),
        1 => any::<usize>().prop_map(Step::Absorb),
        1 => (0..9u32).prop_map(Step::Exit),
    ]
}

fn facts(rotational: bool, hz: u32) -> QueueFacts {
    let group = |weight| Cgroup { name: "g".into(), parent: Some(0), weight: Some(weight) };
    let cgroups = vec![Cgroup::default(), group(300), group(50)];
    QueueFacts { rotational, hz, cgroups, ..QueueFacts::default() }
}

fn prio(n: u8) -> IoPrio {
    let text = match n {
        0..=7 => format!("be/{n}"),
        8 => "idle".into(),
        9 => "rt/3".into(),
        _ => "none".into(),
    };
    IoPrio::parse(&text).unwrap()
}

/// A scheduler under random steps, with a list of what it must hold.
struct Held {
    b: Bench,
    now: u64,
    waiting: Vec<ReqId>,
    in_flight: Vec<ReqId>,
    timer: Option<u64>,
    served: u64,
}

impl Held {
    fn took(&mut self, id: ReqId) {
        let at = self.waiting.iter().position(|w| *w == id);
        self.waiting.remove(at.expect("dispatched once, and only what was inserted"));
        self.in_flight.push(id);
        self.served += 1;
    }

    fn wishes(&mut self) {
        if let Some(t) = self.b.out.timer.take() {
            self.timer = t;
        }
        for id in std::mem::take(&mut self.b.out.ejected) {
            self.b.with(self.now, |s, c| s.activated(c, id));
            self.took(id);
        }
        self.b.out.run_queue = false;
        self.b.out.why.as_mut().unwrap().notes.clear();
        assert_eq!(self.b.scheduler.has_work(), !self.waiting.is_empty());
    }

    fn dispatch(&mut self) -> bool {
        let got = self.b.dispatch(self.now);
        if let Dispatch::Request(id) = got {
            self.took(id);
        }
        if let Dispatch::Idle(i) = got {
            assert!(!self.waiting.is_empty() && i.until >= self.now);
        }
        self.wishes();
        matches!(got, Dispatch::Request(_))
    }

    fn complete(&mut self, n: usize) {
        if self.in_flight.is_empty() {
            return;
        }
        let id = self.in_flight.remove(n % self.in_flight.len());
        self.b.complete(self.now, id);
        self.wishes();
    }

    fn wait(&mut self, ms: u64) {
        self.now += ms * MS;
        while let Some(at) = self.timer.filter(|t| *t <= self.now) {
            self.timer = None;
            self.b.with(at, |s, c| s.timer(c));
            self.wishes();
        }
    }

    fn drain(&mut self) {
        while let Some(id) = self.b.with(self.now, |s, c| s.force_dispatch(c)) {
            self.b.with(self.now, |s, c| s.activated(c, id));
            self.took(id);
            self.wishes();
        }
        assert!(self.waiting.is_empty(), "a drain leaves nothing");
        self.wishes();
    }

    /// Joins a request with its neighbour as the block layer does after a merge.
    fn absorb(&mut self, n: usize) {
        if self.waiting.is_empty() {
            return;
        }
        let into = self.waiting[n % self.waiting.len()];
        let Some(gone) = self.b.with(self.now, |s, c| s.next_neighbour(c, into)) else { return };
        if gone == into || !self.waiting.contains(&gone) {
            return;
        }
        self.b.with(self.now, |s, c| s.absorbed(c, into, gone));
        self.waiting.retain(|w| *w != gone);
        self.b.with(self.now, |s, c| s.finished(c, gone));
        self.b.reqs.remove(gone);
        // A front merge right after: the survivor's start moves.
        let old = self.b.reqs[into].sector;
        if old > 8 {
            self.b.reqs[into].sector = old - 8;
            self.b.with(self.now, |s, c| s.merged(c, into, MergeKind::Front, old));
        }
        self.wishes();
    }

    fn step(&mut self, s: &Step) {
        match *s {
            Step::Insert { write, sync, sector, task, prio: p, cgroup } => {
                let mut r = Request::new(if write { Op::Write } else { Op::Read }, sector, 8);
                (r.task, r.prio, r.cgroup) = (task, prio(p), cgroup);
                if sync {
                    r.flags = Flags::SYNC;
                }
                let id = self.b.insert_request(self.now, r);
                self.waiting.push(id);
                self.wishes();
            }
            Step::Dispatch => {
                self.dispatch();
            }
            Step::Complete(n) => self.complete(n),
            Step::Wait(ms) => self.wait(ms),
            Step::Drain => self.drain(),
            Step::Absorb(n) => self.absorb(n),
            Step::Exit(task) => {
                self.b.with(self.now, |s, c| s.task_exited(c, task));
                self.wishes();
            }
        }
    }

    /// Depth 1, patient: everything comes out.
    fn finish(&mut self) {
        let mut rounds = 0;
        while !(self.waiting.is_empty() && self.in_flight.is_empty()) {
            if !self.in_flight.is_empty() {
                self.wait(1);
            } else if !self.dispatch() {
                // A driver does not ask again before the timer: 2.6.18 begins to wait anew at each question.
                let due = self.timer.map_or(self.now, |at| at.max(self.now));
                self.wait((due - self.now).div_ceil(MS).max(1));
            }
            if !self.in_flight.is_empty() {
                self.complete(0);
            }
            rounds += 1;
            assert!(
                rounds < 20_000,
                "livelock: {:?} wait, {:?}",
                self.waiting,
                self.b.scheduler.counters()
            );
        }
    }
}

fn play(name: &str, rotational: bool, hz: u32, steps: &[Step]) -> u64 {
    let mut h = Held {
        b: Bench::on(name, &[], facts(rotational, hz)),
        now: 0,
        waiting: Vec::new(),
        in_flight: Vec::new(),
        timer: None,
        served: 0,
    };
    steps.iter().for_each(|s| h.step(s));
    h.finish();
    assert!(h.b.reqs.is_empty());
    h.served
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn nothing_is_lost_or_served_twice(
        steps in prop::collection::vec(step(), 0..200),
        rotational in any::<bool>(),
        hz in prop_oneof![Just(100u32), Just(250), Just(300), Just(1000)],
    ) {
        for name in ALL {
            play(name, rotational, hz, &steps);
        }
    }
}

/// Share of the requests served that went to each of several sequential readers.
fn shares(name: &str, prios: &[&str], depth: u32, seconds: f64) -> Vec<f64> {
    let mut m = Machine::new(name, &[]).device(1, 1.0);
    for (t, p) in prios.iter().enumerate() {
        let p = Process::reader((t as u64) << 30).prio(p);
        m.start(0.0, t as u32, Process { depth, ..p });
    }
    m.run(seconds * 1000.0);
    let all: u64 = m.completed.values().sum();
    (0..prios.len() as u32).map(|t| m.completed[&t] as f64 / all as f64).collect()
}

#[test]
fn service_trees_share_the_disk_by_slice_length() {
    for name in &ALL[1..] {
        for prios in [["be/0", "be/4", "be/7"], ["be/2", "be/4", "be/6"]] {
            let slice = |p: &str| 100.0 + 20.0 * (4.0 - p[3..].parse::<f64>().unwrap());
            let all: f64 = prios.iter().map(|p| slice(p)).sum();
            let got = shares(name, &prios, 1, 30.0);
            for (p, got) in prios.iter().zip(got) {
                let wanted = slice(p) / all;
                assert!((got / wanted - 1.0).abs() < 0.15, "{name} {p}: {got} instead of {wanted}");
            }
        }
    }
}

/// What the description gives each of several readers that never stop: the lowest key is served for the
/// slice of its level, shortened while 100 ms for each of the `average` busy ones do not fit into 300. A reader is
/// empty when its slice ends, so it is filed when its next request comes, behind a level's distance from level 0 for
/// every other queue that is not just `empty` itself. With several queues above it a low level gets less than its
/// slice's part.
fn described_shares(levels: &[u32], average: i64, empty: i64) -> Vec<f64> {
    let others = (levels.len() as i64 - empty).max(0);
    let slice = |level: u32| 180 - 20 * i64::from(level);
    let base = 100 * average;
    let granted = |p: i64| if base > 300 { (p * 300 / base).max(16 * p / 100) } else { p };
    let mut keys: Vec<i64> = levels.iter().map(|l| others * (180 - slice(*l))).collect();
    let (mut filed, mut order) = (vec![0; levels.len()], 0);
    let (mut now, mut got) = (0, vec![0.0; levels.len()]);
    while now < 60_000 {
        let q = (0..levels.len()).min_by_key(|q| (keys[*q], filed[*q])).unwrap();
        let time = granted(slice(levels[q]));
        now += time;
        got[q] += time as f64;
        order += 1;
        (keys[q], filed[q]) = (now + others * (180 - slice(levels[q])), order);
    }
    got.iter().map(|g| g / now as f64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn any_levels_share_as_keys_and_slices_say(
        levels in prop::collection::vec(0u32..8, 2..9),
        name in prop::sample::select(&ALL[1..]),
    ) {
        let prios: Vec<String> = levels.iter().map(|l| format!("be/{l}")).collect();
        let prios: Vec<&str> = prios.iter().map(String::as_str).collect();
        let got = shares(name, &prios, 1, 60.0);
        // How many are empty at the time a queue is filed hangs on the requests themselves.
        let n = levels.len() as i64;
        let described: Vec<Vec<f64>> = (1..=3)
            .flat_map(|empty| [n, n - 1].map(|average| described_shares(&levels, average, empty)))
            .collect();
        for q in 0..levels.len() {
            let (least, most) =
                described.iter().fold((f64::MAX, 0.0f64), |(a, b), d| (a.min(d[q]), b.max(d[q])));
            let fits = (0.85 * least..1.15 * most).contains(&got[q]);
            prop_assert!(fits, "{name} {levels:?}: {} gets {}, not {least} to {most}", prios[q], got[q]);
            for (other, theirs) in levels.iter().zip(&got).filter(|o| *o.0 > levels[q]) {
                prop_assert!(*theirs < got[q], "{name} {levels:?}: be/{other} gets more than {}", prios[q]);
            }
        }
    }
}

#[test]
fn the_priority_walk_favours_low_numbers_by_turns_and_slices() {
    // Level 0 has a turn in each of the eight rounds, 4 in four of them, 7 in one.
    // Backlogged: who has nothing waiting when the turn is given away misses it.
    let got = shares(ALL[0], &["be/0", "be/4", "be/7"], 16, 60.0);
    let parts = [8.0 * 180.0, 4.0 * 100.0, 40.0];
    let all: f64 = parts.iter().sum();
    for (got, part) in got.iter().zip(parts) {
        let wanted = part / all;
        assert!((got / wanted - 1.0).abs() < 0.2, "{got} instead of {wanted}");
    }
}

/// Requests completed for each of several groups that always have some waiting, and the share of their weights.
fn group_shares(name: &str, weights: &[u32], by_time: bool) -> Vec<(f64, f64)> {
    let group = |w: &u32| Cgroup { name: "g".into(), parent: Some(0), weight: Some(*w) };
    let cgroups = std::iter::once(Cgroup::default()).chain(weights.iter().map(group)).collect();
    let queue = QueueFacts { rotational: by_time, cgroups, ..QueueFacts::default() };
    // With idling groups pay for time; without idling, on a device of some depth, for requests.
    let (tunables, depth, each) =
        if by_time { (&[][..], 1, 2) } else { (&[("slice_idle", 0)][..], 8, 1) };
    let mut m = Machine::on(name, tunables, queue).device(depth, if by_time { 1.0 } else { 0.2 });
    m.b.out.why = None;
    for t in 0..(weights.len() * each) as u32 {
        let p = Process { cgroup: 1 + t / each as u32, ..Process::reader(u64::from(t) << 30) };
        m.start(0.0, t, Process { depth: if by_time { 1 } else { 16 }, ..p });
    }
    m.run(if by_time { 60_000.0 } else { 10_000.0 });
    let sum = |g: usize| -> u64 {
        (g * each..(g + 1) * each).map(|t| m.completed.get(&(t as u32)).copied().unwrap_or(0)).sum()
    };
    let all: u64 = m.completed.values().sum();
    let of: u32 = weights.iter().sum();
    let share = |(g, w): (usize, &u32)| (sum(g) as f64 / all as f64, f64::from(*w) / f64::from(of));
    weights.iter().enumerate().map(share).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn groups_share_by_weight_in_time_and_in_requests(
        weights in prop::collection::vec(100u32..1000, 2..5),
        name in prop::sample::select(&ALL[1..]),
        by_time in any::<bool>(),
    ) {
        for (got, wanted) in group_shares(name, &weights, by_time) {
            prop_assert!(
                (got / wanted - 1.0).abs() < 0.15,
                "{name} {weights:?}, by time {by_time}: {got} instead of {wanted}",
            );
        }
    }
}

#[test]
fn a_group_that_runs_dry_is_not_shut_out_by_a_deep_one() {
    // The shallow one leaves the tree after each request and comes back behind the delay, 50 requests at HZ 250. A slice
    // of the deep one is 100 ms, 500 requests: one turn of each follows the other.
    for name in &ALL[1..] {
        let group = || Cgroup { name: "g".into(), parent: Some(0), weight: Some(500) };
        let cgroups = vec![Cgroup::default(), group(), group()];
        let queue = QueueFacts { rotational: false, hz: 250, cgroups, ..QueueFacts::default() };
        let mut m =
            Machine::on(name, &[("slice_idle", 0), ("group_idle", 0)], queue).device(8, 0.2);
        m.start(0.0, 1, Process { cgroup: 1, depth: 16, ..Process::reader(0) });
        m.start(0.0, 2, Process { cgroup: 2, ..Process::reader(1 << 30) });
        m.run(4000.0);
        let ratio = m.completed[&1] as f64 / m.completed[&2] as f64;
        assert!((400.0..600.0).contains(&ratio), "{name}: {ratio}");
    }
}

#[test]
fn equals_get_equal_shares() {
    for name in ALL {
        let got = shares(name, &["be/4"; 5], 1, 20.0);
        assert!(got.iter().all(|s| (s / 0.2 - 1.0).abs() < 0.1), "{name}: {got:?}");
    }
}

#[test]
fn the_device_rests_only_while_idling_is_reported() {
    for name in ALL {
        let mut m = Machine::new(name, &[]).device(1, 3.0);
        for t in 0..4u32 {
            let think = MS * u64::from(t);
            let p = Process { think, ..Process::reader(u64::from(t) << 30) };
            m.start(0.0, t, if t == 3 { p.random(1 << 28) } else { p });
        }
        m.start(0.0, 9, Process { depth: 8, ..Process::writer(1 << 40) });
        m.run(5000.0);
        // Requests are always waiting (the writer's), so every gap between two services was announced.
        let mut gaps = 0;
        for w in m.sent.windows(2) {
            let end = w[0].at + 3 * MS;
            if w[1].at > end {
                gaps += 1;
                let reported = m
                    .idle
                    .iter()
                    .any(|(from, until, _)| *from <= end && end <= *until && w[1].at <= *until);
                assert!(reported, "{name}: nothing happens from {end} to {}", w[1].at);
            }
        }
        assert!(gaps > 0, "{name}: the workload must make it idle");
    }
}

#[test]
fn the_same_input_gives_the_same_output() {
    for name in ALL {
        let run = || {
            let mut m = Machine::on(name, &[], facts(true, 250)).device(4, 4.0);
            for t in 0..6u32 {
                let p = Process::reader(u64::from(t) << 30).random(1 << 29);
                m.start(f64::from(t), t, Process { depth: 3, cgroup: t % 3, ..p });
            }
            m.start(0.0, 9, Process { depth: 30, ..Process::writer(1 << 40) });
            m.run(3000.0);
            m.sent
        };
        let first = run();
        assert!(first.len() > 400);
        assert_eq!(first, run(), "{name}");
    }
}

#[test]
fn ten_thousand_processes_are_all_served() {
    for name in ALL {
        let mut m =
            Machine::on(name, &[], QueueFacts { rotational: false, ..QueueFacts::default() })
                .device(32, 0.01);
        m.b.out.why = None;
        m.serial = false;
        for t in 0..10_000u32 {
            m.start(0.0, t, Process::reader(u64::from(t) << 20).left(2));
        }
        m.run(60_000_000.0);
        assert_eq!(m.completed.len(), 10_000, "{name}");
        assert!(m.completed.values().all(|n| *n == 2), "{name}");
    }
}
