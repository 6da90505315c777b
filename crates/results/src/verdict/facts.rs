//! Facts of records beside their figures: the jobs of each workload with their asks, and the kernel's default scheduler.

use std::collections::BTreeMap;

use iosched_experiment::RunsOn;
use iosched_experiment::record::{Ask, JobRecord, Record, Status};
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
    /// Something was drawn at random, or measured: more runs tell more.
    pub(super) varies: bool,
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
        let repeats = r.backend.traits().ours && r.provenance.contains_key(REPLAY);
        here.varies |= !repeats;
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
            varies: false,
        };
        self.devices.get(device).unwrap_or(&NONE)
    }
}
