//! Worked scenarios of the block layer: what goes to the device, and when. Requests are 8 sectors long
//! unless a length is given; the device is a constant service time.

mod adios;
mod flush;
mod legacy;
mod mq;
mod switch;
mod tasks;

use std::collections::VecDeque;

use iosched_devices::Device;
use iosched_devices::models::Fixed;
use iosched_devices::params::FixedParams;
use iosched_schedulers::{TaskInfo, registry};
use iosched_types::{Bio, Flags, IoPrio, Nanos, Op, Sector, TaskId, units::MS};

use iosched_engine::World;

use crate::{DiskId, Event, KernelProfile, Queue, QueueConfig, SchedulerChoice, Submit, Timeline};

/// A queue, a clock and processes that submit the rest of what they want when they are woken.
struct Rig {
    q: Queue,
    tl: Timeline,
    waiting: Vec<VecDeque<Bio>>,
    bios: u32,
    /// Bios completed, with the time in ms.
    done: Vec<(u32, f64)>,
    woken: Vec<TaskId>,
}

/// A device that serves `par` commands at once in `ms` each, flushes included.
fn device(par: u32, ms: u64) -> Box<dyn Device> {
    Box::new(Fixed::new(FixedParams {
        cap: 1 << 40,
        depth: 0,
        flush_ns: ms * MS,
        lat_ns: ms * MS,
        par: par.into(),
    }))
}

/// A queue before a device that takes and serves `depth` commands at once.
fn config(scheduler: &str, kernel: &str, depth: u32, ms: u64) -> QueueConfig {
    let mut profile = KernelProfile::find(kernel).unwrap();
    profile.hz = 1000;
    // Worked by hand for a driver that asks only while it has room.
    profile.legacy.look_ahead = false;
    let (descriptor, generation) = registry::resolve(scheduler, profile.kernel_version()).unwrap();
    QueueConfig {
        disk: DiskId::default(),
        path: descriptor.path_of(generation),
        profile,
        scheduler: SchedulerChoice { descriptor, generation, tunables: Vec::new() },
        device: device(depth, ms),
        queue_depth: depth,
        at_once: 0,
        hw_queues: 1,
        rotational: false,
        write_cache: false,
        fua: false,
        budget: false,
        max_hw_sectors_kb: 1280,
        zone_sectors: 0,
        settings: Vec::new(),
        tasks: vec![TaskInfo::default(); 3],
        cgroups: Vec::new(),
        cpus: 3,
        tag_start: 0,
    }
}

fn ns(ms: f64) -> Nanos {
    (ms * 1e6) as Nanos
}

impl World for Rig {
    type Event = Event;

    fn timeline(&mut self) -> &mut Timeline {
        &mut self.tl
    }

    fn device_next(&self) -> Nanos {
        self.q.device_next()
    }

    fn device_event(&mut self) {
        self.q.device_event(&mut self.tl);
        self.q.run_deferred(&mut self.tl);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Queue(_, event) => self.q.event(&mut self.tl, event),
            Event::Array(event) => unreachable!("no array asked for {event:?}"),
            Event::Host(n) => unreachable!("nobody asked for {n}"),
        }
    }
}

impl Rig {
    fn new(config: QueueConfig) -> Rig {
        let waiting = vec![VecDeque::new(); config.tasks.len()];
        let mut q = Queue::new(config).unwrap();
        q.out_mut().issues = Some(Vec::new());
        Rig { q, tl: Timeline::default(), waiting, bios: 0, done: Vec::new(), woken: Vec::new() }
    }

    /// Moves time to `ms`. Events of that instant have happened then.
    fn to(&mut self, ms: f64) {
        while let Some(at) = self.next()
            && at <= ns(ms)
        {
            self.turn(at);
            self.collect();
        }
        self.tl.now = ns(ms);
    }

    fn collect(&mut self) {
        self.done.extend(self.q.out_mut().done.drain(..).map(|d| (d.bio, d.at as f64 / 1e6)));
        for task in std::mem::take(&mut self.q.out_mut().woken) {
            self.woken.push(task);
            self.submit(task, true);
            self.q.run_deferred(&mut self.tl);
        }
    }

    fn submit(&mut self, task: TaskId, mut resumed: bool) {
        while let Some(bio) = self.waiting[task as usize].front().copied() {
            if self.q.submit(&mut self.tl, &bio, resumed) == Submit::Blocked {
                return;
            }
            resumed = false;
            self.waiting[task as usize].pop_front();
        }
    }

    /// A process submits a bio without letting the queue run; `false` when it sleeps for it.
    fn bio(&mut self, task: TaskId, op: Op, sector: Sector, sectors: u32, flags: Flags) -> bool {
        let bio = Bio {
            id: self.bios,
            op,
            flags,
            sector,
            sectors,
            task,
            thread: task,
            prio: IoPrio::default(),
            cgroup: 0,
            cpu: task as u16,
        };
        self.bios += 1;
        let asleep = !self.waiting[task as usize].is_empty();
        self.waiting[task as usize].push_back(bio);
        if !asleep {
            self.submit(task, false);
        }
        self.waiting[task as usize].is_empty()
    }

    /// One process submits several requests: `R1000`, `W500+16`.
    fn submits(&mut self, task: TaskId, requests: &str) -> &mut Self {
        for word in requests.split_whitespace() {
            let op = Op::from_letter(word.chars().next().unwrap()).unwrap();
            let (sector, sectors) = word[1..].split_once('+').unwrap_or((&word[1..], "8"));
            let (sector, sectors) = (sector.parse().unwrap(), sectors.parse().unwrap());
            self.bio(task, op, sector, sectors, Flags::NONE);
        }
        self
    }

    /// The system call returns.
    fn returns(&mut self) {
        self.q.run_deferred(&mut self.tl);
        self.collect();
    }

    /// What the device was sent so far: `R1000@5`.
    fn sent(&self) -> Vec<String> {
        let issues = self.q.out().issues.iter().flatten();
        issues.map(|i| format!("{}@{}", name(i), i.t as f64 / 1e6)).collect()
    }

    /// The same without times.
    fn order(&self) -> Vec<String> {
        self.q.out().issues.iter().flatten().map(name).collect()
    }
}

fn name(i: &crate::Issue) -> String {
    match (i.op, i.sectors) {
        (Op::Flush, _) => "F".into(),
        (op, 8) => format!("{}{}", op.letter(), i.sector),
        (op, n) => format!("{}{}+{n}", op.letter(), i.sector),
    }
}
