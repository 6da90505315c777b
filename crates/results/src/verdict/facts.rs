//! Facts of records beside their figures: the jobs of each workload with their asks, and the kernel's default scheduler.

use std::collections::BTreeMap;

use iosched_experiment::RunsOn;
use iosched_experiment::record::{Ask, DirStats, JobRecord, Record, Status};
use iosched_experiment::replay::REPLAY;

use super::{BASE, Measuring, UNSTEADY};

/// A job and its ask.
pub(super) type Job = (String, Option<Ask>);

/// The facts of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Device {
    /// Workloads in the order in which they occur, with their jobs.
    pub(super) workloads: Vec<(String, Vec<Job>)>,
    /// The scheduler that the kernel gives the device when nothing is set.
    pub(super) default: Option<String>,
    /// A running kernel had the schedulers beside those that mainline has.
    pub(super) live: bool,
    /// Workloads that never settled, with the reason.
    pub(super) never_steady: BTreeMap<String, String>,
    /// All were replays of traces, in which nothing is drawn at random.
    pub(super) replays: bool,
    /// Runs of one trial came to different figures, or were measured.
    differs: bool,
    /// The figures of the first run of each workload and scheduler.
    first: BTreeMap<(String, String), u64>,
}

impl Device {
    /// Nothing varies between `runs`: more of them tell no more.
    pub(super) fn repeats(&self, runs: usize) -> bool {
        self.replays || runs > 1 && !self.differs
    }
}

/// Stands for the figures of a run.
fn figures(r: &Record) -> u64 {
    let sides = |j: &JobRecord| {
        let of = |d: &DirStats| format!("{} {} {:?}", d.ios, d.bytes, d.clat.mean().to_bits());
        [&j.read, &j.write, &j.trim, &j.sync].map(of).join(" ")
    };
    let jobs: Vec<String> = r.jobs.iter().map(sides).collect();
    let own: Vec<u64> = r.metrics.iter().map(|m| m.value.to_bits()).collect();
    iosched_engine::fnv1a(format!("{jobs:?} {own:?}").as_bytes())
}

/// What all processes of a job ask for together, whose figures are one.
fn of_all(ask: Ask, job: &JobRecord) -> Ask {
    let processes = job.options.get("numjobs").and_then(|n| n.parse().ok()).unwrap_or(1);
    match ask {
        Ask::Rate(each) => Ask::Rate(each.saturating_mul(processes)),
        other => other,
    }
}

/// The facts of all devices, gathered record by record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    devices: BTreeMap<String, Device>,
    measuring: Measuring,
}

impl Facts {
    /// Those of some records.
    #[must_use]
    pub fn new<'a>(records: impl IntoIterator<Item = &'a Record>) -> Facts {
        let mut out = Facts::default();
        records.into_iter().for_each(|r| out.add(r));
        out
    }

    /// Takes a record; one that is not complete says nothing.
    pub fn add(&mut self, r: &Record) {
        if r.status != Status::Complete {
            return;
        }
        self.measuring.add(r);
        let here = self.devices.entry(r.trial.device.clone()).or_default();
        if here.default.is_none() {
            here.default = r.provenance.get(BASE).cloned();
        }
        here.live |= r.backend.traits().kernel == RunsOn::Running;
        let replay = r.backend.traits().ours && r.provenance.contains_key(REPLAY);
        here.replays = replay && (here.first.is_empty() || here.replays);
        let key = (r.trial.workload.clone(), format!("{} {}", r.trial.scheduler, r.trial.kernel));
        let own = figures(r);
        let same = *here.first.entry(key).or_insert(own) == own;
        here.differs |= !(same && r.backend.is_simulated());
        let workload = &r.trial.workload;
        if let Some(why) = r.provenance.get(UNSTEADY) {
            here.never_steady.insert(workload.clone(), why.clone());
        }
        let at = here.workloads.iter().position(|w| w.0 == r.trial.workload).unwrap_or_else(|| {
            here.workloads.push((r.trial.workload.clone(), Vec::new()));
            here.workloads.len() - 1
        });
        let jobs = &mut here.workloads[at].1;
        for j in &r.jobs {
            if !jobs.iter().any(|o| o.0 == j.name) {
                jobs.push((j.name.clone(), j.ask.map(|ask| of_all(ask, j))));
            }
        }
    }

    /// How often they were measured, how long, and after what.
    #[must_use]
    pub fn measuring(&self) -> &Measuring {
        &self.measuring
    }

    /// Those of a device; none where no record is complete.
    pub(super) fn of(&self, device: &str) -> &Device {
        static NONE: Device = Device {
            workloads: Vec::new(),
            default: None,
            live: false,
            never_steady: BTreeMap::new(),
            replays: false,
            differs: true,
            first: BTreeMap::new(),
        };
        self.devices.get(device).unwrap_or(&NONE)
    }
}
