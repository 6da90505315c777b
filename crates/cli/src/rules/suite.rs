//! Situations that are simulated for policies: how each class does with the scheduler that a policy gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use iosched_experiment::{Collect, DeviceRef, Experiment, Place, Placed, Record, Trial};
use iosched_lab::{Job, Options, Watch};
use iosched_policy::Judgement;
use iosched_results::standing::{Standing, Way, standing};
use iosched_types::Nanos;
use iosched_types::nearest::did_you_mean;
use serde::Serialize;

use crate::choose::{all_of, planned};
use crate::fail::{End, Failure, Outcome};
use crate::live;
use crate::progress::Watching;
use crate::situations::{SITUATIONS, Situation};

/// What is to be simulated.
pub(super) struct Suite<'a> {
    pub(super) situations: Vec<&'static Situation>,
    /// Of each device in each situation.
    pub(super) budget: Nanos,
    pub(super) threads: Option<u16>,
    /// Name of the kernel profile.
    pub(super) kernel: &'a str,
    /// The schedulers that the kernel can load; all of its version where there is none.
    pub(super) schedulers: &'a [String],
}

/// The situations of some names, or all.
pub(super) fn named(names: &[String]) -> Outcome<Vec<&'static Situation>> {
    if names.iter().any(|n| n == "all") {
        return Ok(SITUATIONS.iter().collect());
    }
    let mut out: Vec<&'static Situation> = Vec::new();
    for name in names {
        let Some(found) = SITUATIONS.iter().find(|s| s.name == name) else {
            let near = did_you_mean(name, SITUATIONS.iter().map(|s| s.name));
            let help = if near.is_empty() { "see `iosched list situations`".into() } else { near };
            let message = format!("there is no situation \"{name}\"");
            return Err(Failure::with_help(message, help));
        };
        if !out.iter().any(|s| s.name == found.name) {
            out.push(found);
        }
    }
    Ok(out)
}

/// Records by device and situation.
pub(super) type Measured = BTreeMap<(String, &'static str), Vec<Record>>;

impl Suite<'_> {
    /// Simulates all situations on those of the devices that they are about.
    pub(super) fn run(&self, devices: &BTreeSet<&str>) -> Outcome<Measured> {
        let mut plans = Vec::new();
        for s in &self.situations {
            if let Some(e) = self.experiment(s, devices)? {
                plans.push((s.name, e));
            }
        }
        let planned = plans.iter_mut().map(|(_, e)| planned(e, None));
        let trials: Vec<Vec<Trial>> = planned.collect::<Outcome<_>>()?;
        let options = Options {
            threads: self.threads,
            interrupt: live::ending()?,
            machine: None,
            warm_up: true,
            allow_noise: true,
        };
        let whole = Watching::new(false);
        whole.more(trials.iter().map(Vec::len).sum());
        let mut out = Measured::new();
        for ((name, e), trials) in plans.iter().zip(&trials) {
            let watch = Part { whole: &whole, known: AtomicBool::new(true), name };
            let job = Job { experiment: e, trials, storing: None };
            let records = iosched_lab::run(job, &options, &watch, |_| Ok::<(), End>(()));
            for r in records.map_err(|end| end.told(false))? {
                out.entry((r.trial.device.clone(), *name)).or_default().push(r);
            }
        }
        whole.done();
        Ok(out)
    }

    /// The experiment of a situation on these devices; none where it is about none of them.
    fn experiment(&self, s: &Situation, devices: &BTreeSet<&str>) -> Outcome<Option<Experiment>> {
        let (mut e, errors) = Experiment::read(&format!("{}.toml", s.name), s.text);
        if !errors.is_empty() {
            return Err(errors.into());
        }
        let here = |d: &Placed<DeviceRef>| matches!(&d.value, DeviceRef::Named(n) if devices.contains(n.as_str()));
        e.devices.retain(here);
        if e.devices.is_empty() {
            return Ok(None);
        }
        e.kernels = vec![Placed::new(self.kernel.into(), Place::file("--kernel"))];
        e.schedulers = all_of(&e);
        e.schedulers.retain(|s| {
            self.schedulers.is_empty()
                || s.value.name == "none"
                || self.schedulers.contains(&s.value.name)
        });
        e.collect = Collect { series: false, dispatches: false };
        e.budget = Some(self.budget.saturating_mul(e.devices.len() as u64));
        e.runs = iosched_experiment::until::MIN_RUNS;
        e.warm_up.get_or_insert(iosched_experiment::WarmUp::Steady);
        Ok(Some(e))
    }
}

/// One experiment of several that are watched together.
struct Part<'a> {
    whole: &'a Watching,
    /// Its first trials are counted already.
    known: AtomicBool,
    name: &'static str,
}

impl Watch for Part<'_> {
    fn more(&self, trials: usize) {
        if !self.known.swap(false, Ordering::Relaxed) {
            self.whole.more(trials);
        }
    }

    fn step(&self, steps: u64) {
        self.whole.step(steps);
    }

    fn now(&self, what: &str) {
        self.whole.now(&format!("{}: {what}", self.name));
    }

    fn note(&self, text: &str) {
        self.whole.note(text);
    }
}

/// Classes that a policy gives the same scheduler, on the same device, in one situation.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    pub(super) device: String,
    pub(super) situation: &'static str,
    pub(super) classes: Vec<String>,
    #[serde(flatten)]
    pub(super) standing: Standing,
}

impl Cell {
    /// Worse than the kernel's default by more than a share, beyond chance.
    pub(super) fn fails(&self, threshold: f64) -> bool {
        let a = &self.standing.against_default;
        a.way == Way::Worse
            && a.firmness != iosched_results::verdict::Firmness::Unsure
            && a.times() > 1.0 + threshold
    }
}

/// Device, scheduler and the kernel's default.
pub(super) type Given<'a> = (&'a str, &'a str, &'a str);

/// A judged policy in all situations that were simulated.
pub(super) fn cells(judgement: &Judgement, measured: &Measured) -> Vec<Cell> {
    let mut groups: Vec<(Given<'_>, Vec<String>)> = Vec::new();
    for class in &judgement.classes {
        let (Some(device), Some(default)) = (&class.device, &class.default) else { continue };
        for scheduler in class.boot.iter().filter_map(|o| o.scheduler.as_deref()) {
            let key = (device.as_str(), scheduler, default.as_str());
            match groups.iter_mut().find(|(k, _)| *k == key) {
                Some((_, classes)) if classes.contains(&class.class) => {}
                Some((_, classes)) => classes.push(class.class.clone()),
                None => groups.push((key, vec![class.class.clone()])),
            }
        }
    }
    let mut out = Vec::new();
    for ((device, scheduler, default), classes) in groups {
        for situation in SITUATIONS {
            let records = measured.get(&(device.to_string(), situation.name));
            if let Some(standing) = records.and_then(|r| standing(r, scheduler, default)) {
                out.push(Cell {
                    device: device.into(),
                    situation: situation.name,
                    classes: classes.clone(),
                    standing,
                });
            }
        }
    }
    out
}
