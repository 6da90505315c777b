//! Switching schedulers in the middle of a run. With requests queued, plugged, idled for or on their way through a
//! flush, and tasks asleep for a tag, nothing is lost or done twice, and the queue comes to rest.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::VecDeque;

use iosched_block::profile::PlugKind;
use iosched_block::{
    DiskId, Event, KernelProfile, Queue, QueueConfig, SchedulerChoice, Submit, Timeline,
};
use iosched_devices::catalogue;
use iosched_engine::World;
use iosched_schedulers::registry::SCHEDULERS;
use iosched_schedulers::{BlockPath, Cgroup, TaskInfo};
use iosched_types::{Bio, Flags, IoPrio, Nanos, Op, TaskId, units::MS};
use proptest::prelude::*;

const TASKS: u32 = 4;
/// Events after which a run counts as stuck: each bio causes a few dozen at most.
const MOST_EVENTS: u32 = 200_000;
/// `Event::Host` numbers from here on are switches.
const SWITCH: u64 = 1 << 16;

/// Something a process does `after` ms after it did the last thing.
#[derive(Clone, Debug)]
struct Deed {
    task: TaskId,
    after_us: u64,
    /// Under one plug.
    bios: Vec<(Op, u64, u32, u16)>,
    exits: bool,
}

#[derive(Clone, Debug)]
struct Load {
    kernel: &'static str,
    /// Which block layer, where the kernel has both.
    path: usize,
    /// Which schedulers, modulo their number, and when in µs.
    first: usize,
    switches: Vec<(u64, usize)>,
    device: &'static str,
    depth: u32,
    nr_requests: Option<i64>,
    hw_queues: u16,
    write_cache: bool,
    budget: bool,
    /// All writes fall into one zone, or there are none.
    zone_sectors: u64,
    deeds: Vec<Deed>,
}

fn bio() -> impl Strategy<Value = (Op, u64, u32, u16)> {
    let op = prop_oneof![6 => Just(Op::Read), 5 => Just(Op::Write), 1 => Just(Op::Flush)];
    let sync = Flags::SYNC.0 | Flags::IDLE.0;
    let flags = prop_oneof![
        4 => Just(0),
        4 => Just(sync),
        1 => Just(sync | Flags::FUA.0),
        1 => Just(sync | Flags::PREFLUSH.0),
    ];
    // Close together, so that some merge and some start at the same sector.
    (op, 0u64..400, 1u32..5, flags).prop_map(|(op, at, n, flags)| match op {
        Op::Flush => (op, 0, 0, Flags::SYNC.0 | Flags::PREFLUSH.0),
        Op::Read => (op, at * 8, n * 8, 0),
        _ => (op, at * 8, n * 8, flags),
    })
}

fn deed() -> impl Strategy<Value = Deed> {
    let pause = prop_oneof![Just(0u64), 0u64..3000, 0u64..40_000];
    let exits = prop::bool::weighted(0.05);
    (0..TASKS, pause, prop::collection::vec(bio(), 1..8), exits)
        .prop_map(|(task, after_us, bios, exits)| Deed { task, after_us, bios, exits })
}

fn load() -> impl Strategy<Value = Load> {
    let kernels = KernelProfile::names();
    let what = (
        prop::sample::select(kernels),
        0usize..2,
        0usize..64,
        prop::collection::vec((0u64..150_000, 0usize..64), 1..5),
        prop::sample::select(vec!["fixed", "hdd-7200", "ssd-sata"]),
    );
    let how = (
        prop::sample::select(vec![1u32, 2, 4, 31]),
        prop::option::of(4i64..24),
        1u16..3,
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(vec![0u64, 0, 1 << 20]),
    );
    (what, how, prop::collection::vec(deed(), 1..40)).prop_map(|(what, how, deeds)| {
        let (kernel, path, first, switches, device) = what;
        let (depth, nr_requests, hw_queues, write_cache, budget, zone_sectors) = how;
        Load {
            kernel,
            path,
            first,
            switches,
            device,
            depth,
            nr_requests,
            hw_queues,
            write_cache,
            budget,
            zone_sectors,
            deeds,
        }
    })
}

/// Every generation of every family that lives on one of the block layers of a kernel profile.
fn choices(kernel: &KernelProfile, path: usize) -> Vec<SchedulerChoice> {
    let all = || {
        SCHEDULERS.iter().flat_map(|d| {
            d.generations.iter().map(move |generation| SchedulerChoice {
                descriptor: d,
                generation,
                tunables: Vec::new(),
            })
        })
    };
    let has = |path: BlockPath| {
        let v = kernel.kernel_version();
        all().any(|c| c.generation.covers(v) && c.descriptor.path_of(c.generation) == path)
    };
    let paths: Vec<_> =
        [BlockPath::Legacy, BlockPath::Mq].into_iter().filter(|p| has(*p)).collect();
    let path = paths[path % paths.len()];
    all().filter(|c| c.descriptor.path_of(c.generation) == path).collect()
}

struct Run {
    queue: Queue,
    tl: Timeline,
    deeds: Vec<Deed>,
    /// Deeds of each process, the one under way first.
    todo: Vec<VecDeque<usize>>,
    /// Bios of the deed under way that are not taken yet.
    left: Vec<VecDeque<Bio>>,
    /// Ends with the deed under way.
    exits: Vec<bool>,
    completed: Vec<u32>,
    schedulers: Vec<SchedulerChoice>,
    /// Switches that have not begun.
    to_come: usize,
    /// Since when requests wait and none is at the device, the time of the last event, and the longest rest.
    resting: Option<Nanos>,
    last: Nanos,
    longest_rest: Nanos,
}

fn config(load: &Load, kernel: KernelProfile, scheduler: SchedulerChoice) -> QueueConfig {
    let spec = catalogue::find(load.device).unwrap();
    let task = |t| TaskInfo {
        pid: 100 + t,
        prio: IoPrio::parse(["be/4", "rt/2", "idle", "be/0"][t as usize]).unwrap(),
        cgroup: t % 2,
        ..TaskInfo::default()
    };
    QueueConfig {
        disk: DiskId::default(),
        path: scheduler.descriptor.path_of(scheduler.generation),
        profile: kernel,
        scheduler,
        device: spec.build().unwrap(),
        queue_depth: load.depth,
        at_once: 0,
        hw_queues: load.hw_queues,
        rotational: spec.rotational,
        write_cache: load.write_cache,
        fua: false,
        budget: load.budget,
        max_hw_sectors_kb: 1280,
        zone_sectors: load.zone_sectors,
        settings: load.nr_requests.map(|n| ("nr_requests".to_string(), n)).into_iter().collect(),
        tasks: (0..TASKS).map(task).collect(),
        cgroups: vec![
            Cgroup::default(),
            Cgroup { name: "a".into(), parent: Some(0), weight: Some(300) },
        ],
        cpus: 2,
        tag_start: 0,
    }
}

impl World for Run {
    type Event = Event;

    fn timeline(&mut self) -> &mut Timeline {
        &mut self.tl
    }

    fn device_next(&self) -> Nanos {
        self.queue.device_next()
    }

    fn device_event(&mut self) {
        self.queue.device_event(&mut self.tl);
        self.queue.run_deferred(&mut self.tl);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Host(n) if n >= SWITCH => {
                self.to_come -= 1;
                let n = (n - SWITCH) as usize % self.schedulers.len();
                self.queue.switch(&mut self.tl, self.schedulers[n].clone()).unwrap();
            }
            Event::Host(task) => self.begin(task as TaskId),
            Event::Queue(_, event) => self.queue.event(&mut self.tl, event),
            Event::Array(_) => {}
        }
    }
}

impl Run {
    fn new(load: &Load) -> Run {
        let kernel = KernelProfile::find(load.kernel).unwrap();
        let schedulers = choices(&kernel, load.path);
        let first = schedulers[load.first % schedulers.len()].clone();
        let mut run = Run {
            queue: Queue::new(config(load, kernel, first)).unwrap(),
            tl: Timeline::default(),
            deeds: load.deeds.clone(),
            todo: vec![VecDeque::new(); TASKS as usize],
            left: vec![VecDeque::new(); TASKS as usize],
            exits: vec![false; TASKS as usize],
            completed: Vec::new(),
            schedulers,
            to_come: load.switches.len(),
            resting: None,
            last: 0,
            longest_rest: 0,
        };
        for (i, d) in load.deeds.iter().enumerate() {
            run.todo[d.task as usize].push_back(i);
        }
        for task in 0..TASKS {
            run.schedule(task);
        }
        for (at, which) in &load.switches {
            run.tl.events.push(at * 1000, Event::Host(SWITCH + *which as u64));
        }
        run
    }

    /// The process will go on with its next deed.
    fn schedule(&mut self, task: TaskId) {
        if let Some(i) = self.todo[task as usize].front() {
            let at = self.tl.now + self.deeds[*i].after_us * 1000;
            self.tl.events.push(at, Event::Host(u64::from(task)));
        }
    }

    fn begin(&mut self, task: TaskId) {
        let Some(i) = self.todo[task as usize].pop_front() else { return };
        let deed = self.deeds[i].clone();
        for (op, sector, sectors, flags) in deed.bios {
            let id = self.completed.len() as u32;
            self.completed.push(0);
            self.left[task as usize].push_back(Bio {
                id,
                op,
                flags: Flags(flags),
                sector,
                sectors,
                task,
                thread: task,
                prio: self.queue.facts().tasks[task as usize].prio,
                cgroup: task % 2,
                cpu: (task % 2) as u16,
            });
        }
        self.queue.start_plug(task);
        if deed.exits {
            self.todo[task as usize].clear();
            self.exits[task as usize] = true;
        }
        self.go_on(task, false);
    }

    fn go_on(&mut self, task: TaskId, mut resumed: bool) {
        while let Some(bio) = self.left[task as usize].front().copied() {
            if self.queue.submit(&mut self.tl, &bio, resumed) == Submit::Blocked {
                return;
            }
            resumed = false;
            self.left[task as usize].pop_front();
        }
        self.queue.finish_plug(&mut self.tl, task);
        self.queue.run_deferred(&mut self.tl);
        if std::mem::take(&mut self.exits[task as usize]) {
            self.queue.task_exited(&mut self.tl, task);
        }
        self.schedule(task);
    }

    fn collect(&mut self) {
        for d in self.queue.out_mut().done.drain(..) {
            self.completed[d.bio as usize] += 1;
        }
        for task in std::mem::take(&mut self.queue.out_mut().woken) {
            if !self.left[task as usize].is_empty() {
                self.go_on(task, true);
            }
        }
    }

    /// One event; `false` when there is none left.
    fn step(&mut self) -> bool {
        self.collect();
        let Some(at) = self.next() else { return false };
        self.last = self.tl.now;
        self.tl.now = at;
        self.watch_rest();
        self.turn(at);
        true
    }

    /// Time is about to pass, or has passed, with the queue as it is.
    fn watch_rest(&mut self) {
        let rests = self.queue.in_flight() == 0 && self.queue.pending() > 0;
        let since = self.resting.filter(|_| rests);
        if let Some(since) = since {
            self.longest_rest = self.longest_rest.max(self.tl.now - since);
        }
        self.resting = rests.then_some(since.unwrap_or(self.last));
    }

    fn busy(&self) -> bool {
        let waits = |l: &VecDeque<Bio>| !l.is_empty();
        self.queue.pending() > 0
            || self.queue.in_flight() > 0
            || self.queue.is_switching()
            || self.to_come > 0
            || self.left.iter().any(waits)
            || self.todo.iter().any(|t| !t.is_empty())
    }

    fn run(&mut self) {
        for _ in 0..MOST_EVENTS {
            if !self.step() || !self.busy() {
                break;
            }
        }
        self.collect();
    }
}

/// Every tag and request is back: a process that wants as many as there are gets them in the end, and a
/// last switch finds every tag map empty (an assertion of the block layer's own).
fn has_room(run: &mut Run) {
    let room = run.queue.facts().nr_requests.min(64);
    // Far apart: none merges.
    let bios = (0..room).map(|i| (Op::Read, 1_000_000 + u64::from(i) * 64, 8, 0)).collect();
    run.deeds.push(Deed { task: 0, after_us: 0, bios, exits: false });
    run.todo[0].push_back(run.deeds.len() - 1);
    run.schedule(0);
    run.run();
    let last = run.queue.scheduler_choice();
    let other = |c: &&SchedulerChoice| c.descriptor.name != last.descriptor.name;
    let other = run.schedulers.iter().find(other).unwrap().clone();
    run.queue.switch(&mut run.tl, other.clone()).unwrap();
    run.run();
    assert_eq!(run.queue.scheduler_choice().descriptor.name, other.descriptor.name);
}

fn check(load: &Load) {
    let mut run = Run::new(load);
    run.run();
    let (submitted, finished) = (run.queue.stats().submitted, run.queue.stats().finished);
    assert!(!run.busy(), "stuck at {} ms: {:?}", run.tl.now / MS, run.queue);
    assert!(run.completed.iter().all(|n| *n == 1), "{:?}", run.completed);
    assert_eq!((submitted, finished), (run.completed.len() as u64, run.completed.len() as u64));
    assert!(run.queue.pending_bios().is_empty());
    has_room(&mut run);
    assert!(run.completed.iter().all(|n| *n == 1), "after the switches");
    let given: u64 = run.queue.stats().given.iter().sum();
    assert_eq!((run.queue.stats().issued, run.queue.in_flight()), (given, 0), "commands");
}

/// The longest time a scheduler may let requests wait at a device that does nothing.
fn most_rest(choice: &SchedulerChoice, kernel: &KernelProfile) -> Nanos {
    let plug = match kernel.plug.kind {
        // 3 ms, at least a tick.
        PlugKind::Device => 3 * MS + 1000 * MS / u64::from(kernel.hz),
        PlugKind::Task => 0,
    };
    // The 3 ms of a delayed queue run in whole ticks, which count from the next one.
    let tick = 1000 * MS / u64::from(kernel.hz);
    let run_later = ((3 * MS).div_ceil(tick) + 1) * tick;
    let idling = match choice.descriptor.name {
        // antic_expire is 1/150 s; a tick of rounding on either side.
        "anticipatory" => 7 * MS + 2000 * MS / u64::from(kernel.hz),
        // The idle class waits for 200 ms without other requests.
        "cfq" => 200 * MS + 2000 * MS / u64::from(kernel.hz),
        // Up to 24 ms for a raised queue in v7, 20 for one that had injections.
        "bfq" => 24 * MS + run_later,
        // From 5.16 on a class below one with requests at the device is not served. Nothing asks again when the last of
        // them is done, so it takes a delayed queue run.
        "mq-deadline" if choice.generation.index >= 2 => run_later,
        _ => 0,
    };
    plug + idling
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_switch_loses_nothing_and_does_nothing_twice(load in load()) {
        check(&load);
    }

    /// Requests wait at a device that does nothing only where the scheduler's documentation says so: noop,
    /// none, deadline, mq-deadline and kyber never let that happen, the others for a bounded time. Whatever
    /// the device's depth, 1 included, everything is done in the end.
    #[test]
    fn nobody_rests_beyond_the_documented_idling(load in load()) {
        let load = Load { switches: Vec::new(), ..load };
        let mut run = Run::new(&load);
        run.run();
        prop_assert!(!run.busy(), "stuck at {} ms: {:?}", run.tl.now / MS, run.queue);
        prop_assert!(run.completed.iter().all(|n| *n == 1), "{:?}", run.completed);
        let choice = run.queue.scheduler_choice();
        let name = choice.descriptor.name;
        let most = most_rest(choice, &KernelProfile::find(load.kernel).unwrap());
        prop_assert!(run.longest_rest <= most, "{name} rested {} us", run.longest_rest / 1000);
    }
}

/// Each pair once, in both directions, in the middle of a busy queue: random tests would rarely take
/// every pair.
#[test]
fn every_pair_switches_under_load() {
    let bios = |t: u32| {
        let at = |i: u32| u64::from(t) * 4000 + u64::from(i * 37 % 23) * 8;
        let sync = Flags::SYNC.0 | Flags::IDLE.0;
        let one = |i: u32| match i % 4 {
            0 | 1 => (Op::Read, at(i), 8, 0),
            2 => (Op::Write, at(i), 8, 0),
            _ if i == 11 => (Op::Write, at(i), 8, sync | Flags::FUA.0 | Flags::PREFLUSH.0),
            _ => (Op::Write, at(i), 8, sync),
        };
        (0..12).map(one).collect::<Vec<_>>()
    };
    for kernel in KernelProfile::names() {
        for path in 0..2 {
            let n = choices(&KernelProfile::find(kernel).unwrap(), path).len();
            for pair in 0..n * n {
                let deeds = (0..TASKS * 3).map(|i| Deed {
                    task: i % TASKS,
                    after_us: u64::from(i) * 700,
                    bios: bios(i),
                    exits: false,
                });
                check(&Load {
                    kernel,
                    path,
                    first: pair / n,
                    switches: vec![(9_000, pair % n), (60_000, pair / n)],
                    device: "hdd-7200",
                    depth: 4,
                    nr_requests: Some(16),
                    hw_queues: 1,
                    write_cache: true,
                    budget: true,
                    zone_sectors: 0,
                    deeds: deeds.collect(),
                });
            }
        }
    }
}
