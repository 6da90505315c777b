//! Runs a program both ways and writes its calls down.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use iosched_backends::program::{self, How};
use iosched_block::{CpuModel, DiskId, KernelProfile, Queue, QueueConfig, SchedulerChoice};
use iosched_devices::models::Fixed;
use iosched_devices::params::FixedParams;
use iosched_host::cpu::Costs;
use iosched_host::fs::{Files, Simple};
use iosched_host::programs::{Measured, Programs};
use iosched_schedulers::{Cgroup, registry};
use iosched_syscalls::{Answer, Birth, Call, Completion, Done, Entry, Program, Stat};
use iosched_types::Nanos;
use iosched_types::units::MS;

/// The calls of each task, by its place in the family: `0`, its second child `0.1`, …
pub(crate) type Calls = BTreeMap<String, Vec<String>>;

/// A birth of a program and what is to be there before.
pub(crate) struct Both {
    pub(crate) prepare: Option<Birth>,
    pub(crate) run: Birth,
}

/// A program whose calls are written down.
struct Listed {
    inner: Box<dyn Program>,
    me: String,
    children: u32,
    under_way: Option<Pending>,
    calls: Arc<Mutex<Calls>>,
}

/// A call, until its answer is there.
struct Pending {
    words: String,
    /// The answer says which task or how many others were first.
    by_chance: bool,
    stat: Option<Rc<Cell<Stat>>>,
    names: Option<Rc<RefCell<Vec<Entry>>>>,
    done: Option<Rc<RefCell<Vec<Completion>>>>,
}

impl Program for Listed {
    fn resume(&mut self, now: Nanos, answer: Answer) -> Option<Call> {
        if let Some(p) = self.under_way.take() {
            self.write_down(p, answer);
        }
        let call = self.inner.resume(now, answer);
        match call {
            None => self.say(format!("ends {:?}", self.inner.status())),
            Some(call) => return Some(self.listed(call)),
        }
        None
    }

    fn status(&self) -> Done {
        self.inner.status()
    }
}

impl Listed {
    fn say(&self, line: String) {
        self.calls.lock().unwrap().entry(self.me.clone()).or_default().push(line);
    }

    fn write_down(&self, p: Pending, answer: Answer) {
        let mut line = match (p.by_chance, answer) {
            (true, Ok(_)) => format!("{} = ok", p.words),
            (_, answer) => format!("{} = {answer:?}", p.words),
        };
        if let (Some(stat), Ok(_)) = (p.stat, answer) {
            line += &format!(" {:?}", stat.get());
        }
        if let (Some(names), Ok(_)) = (p.names, answer) {
            let mut names: Vec<Entry> = names.borrow().clone();
            names.sort();
            line += &format!(" {names:?}");
        }
        if let (Some(done), Ok(_)) = (p.done, answer) {
            let mut done: Vec<_> = done.borrow().iter().map(|c| (c.tag, c.answer)).collect();
            done.sort();
            line += &format!(" {done:?}");
        }
        self.say(line);
    }

    fn listed(&mut self, call: Call) -> Call {
        let mut p = Pending {
            words: format!("{call:?}"),
            by_chance: false,
            stat: None,
            names: None,
            done: None,
        };
        match &call {
            Call::Fstat { into, .. } | Call::Stat { into, .. } => {
                p.words = call.name().into();
                p.stat = Some(into.clone());
            }
            Call::ReadDir { into, .. } => {
                p.words = call.name().into();
                p.names = Some(into.clone());
            }
            Call::Reap { into, .. } => {
                p.words = call.name().into();
                p.done = Some(into.clone());
            }
            Call::Spawn { .. } | Call::Wait | Call::GetPid => {
                p.words = call.name().into();
                p.by_chance = true;
            }
            Call::Join { .. } => p.words = "join".into(),
            // Times are chance.
            Call::Figure { name, .. } => p.words = format!("figure {name}"),
            Call::Note { what, bytes, .. } => p.words = format!("note {what} {bytes}"),
            Call::Mark { what, part, .. } => p.words = format!("mark {what} {part:?}"),
            _ => {}
        }
        self.under_way = Some(p);
        match call {
            Call::Spawn { shares, role, birth } => {
                let me = format!("{}.{}", self.me, self.children);
                self.children += 1;
                Call::Spawn { shares, role, birth: listed(birth, me, self.calls.clone()) }
            }
            other => other,
        }
    }
}

fn listed(birth: Birth, me: String, calls: Arc<Mutex<Calls>>) -> Birth {
    Birth(Box::new(move || {
        let inner = (birth.0)();
        Box::new(Listed { inner, me, children: 0, under_way: None, calls })
    }))
}

/// With real system calls, in a temporary directory.
pub(crate) fn live(both: Both) -> (Result<Measured, String>, Calls) {
    let dir = tempfile::tempdir().unwrap();
    let file = File::open(dir.path()).unwrap();
    let calls = Arc::default();
    if let Some(prepare) = both.prepare {
        let how = How { instant: true, noise: false };
        program::run(&file, how, prepare, &mut || Ok(())).unwrap();
    }
    let birth = listed(both.run, "0".into(), Arc::clone(&calls));
    let result = program::run(&file, How::default(), birth, &mut || Ok(()));
    let calls = std::mem::take(&mut *calls.lock().unwrap());
    (result.map_err(|e| e.to_string()), calls)
}

/// In the simulator.
pub(crate) fn simulated(both: Both, cpu: CpuModel) -> (Result<Measured, String>, Calls) {
    let mut host = host(cpu);
    let calls = Arc::default();
    let go_on = &mut |_| ControlFlow::Continue(());
    if let Some(prepare) = both.prepare {
        host.prepare(prepare, go_on).unwrap();
    }
    let birth = listed(both.run, "0".into(), Arc::clone(&calls));
    let result = host.run(birth, go_on);
    let calls = std::mem::take(&mut *calls.lock().unwrap());
    (result.map(|()| host.measured().clone()).map_err(|e| e.to_string()), calls)
}

fn host(cpu: CpuModel) -> Programs {
    let bytes = 8 << 30;
    let mut profile = KernelProfile::find("6.12").unwrap();
    profile.cpu.model = cpu;
    let costs = Costs::new(&profile.cpu, "none");
    let (descriptor, generation) = registry::resolve("none", profile.kernel_version()).unwrap();
    let params = FixedParams { cap: bytes, depth: 0, flush_ns: MS, lat_ns: MS / 10, par: 4 };
    let queue = Queue::new(QueueConfig {
        disk: DiskId::default(),
        path: descriptor.path_of(generation),
        profile,
        scheduler: SchedulerChoice { descriptor, generation, tunables: Vec::new() },
        device: Box::new(Fixed::new(params)),
        queue_depth: 4,
        at_once: 0,
        hw_queues: 1,
        rotational: false,
        write_cache: true,
        fua: false,
        budget: false,
        max_hw_sectors_kb: 1280,
        zone_sectors: 0,
        settings: Vec::new(),
        tasks: Vec::new(),
        cgroups: vec![Cgroup::default()],
        cpus: 2,
        tag_start: 0,
    })
    .unwrap();
    Programs::new(queue, Files::AtOnce(Box::new(Simple::new(bytes))), costs)
}

/// What tasks did, without times.
pub(crate) fn figures(m: &Measured) -> String {
    let sum = m.tasks.values().fold([(0, 0); 3], |sum, t| {
        let of = [side(&t.read), side(&t.write), side(&t.sync)];
        std::array::from_fn(|i| (sum[i].0 + of[i].0, sum[i].1 + of[i].1))
    });
    let operations: Vec<_> =
        m.operations.iter().map(|(n, o)| (n, o.latency.count(), o.bytes)).collect();
    let named: Vec<_> = m.figures.iter().map(|(name, _)| name).collect();
    format!("{} tasks, {} calls, {sum:?}, {operations:?}, {named:?}", m.count, m.calls)
}

fn side<T>(d: &(u64, u64, T)) -> (u64, u64) {
    (d.0, d.1)
}

/// Runs both, and lays them beside each other.
pub(crate) fn same(what: &str, make: impl Fn() -> Both) {
    let (a, live) = live(make());
    let (b, sim) = simulated(make(), CpuModel::Zero);
    for (task, calls) in &live {
        let other = sim.get(task).cloned().unwrap_or_default();
        for (i, call) in calls.iter().enumerate() {
            assert_eq!(Some(call), other.get(i), "{what}: task {task}, call {i}; left is live");
        }
        assert_eq!(calls.len(), other.len(), "{what}: task {task}");
    }
    assert_eq!(live.len(), sim.len(), "{what}: tasks");
    match (a, b) {
        (Ok(a), Ok(b)) => assert_eq!(figures(&a), figures(&b), "{what}; left is live"),
        (a, b) => assert_eq!(a.map(drop), b.map(drop), "{what}; left is live"),
    }
}
