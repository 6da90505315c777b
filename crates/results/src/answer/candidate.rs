//! The schedulers of a comparison, and what their names mean under a kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use iosched_experiment::record::{Record, Status};
use iosched_schedulers::KernelVersion;
use iosched_schedulers::registry::{family, resolve};
use serde::Serialize;

/// A scheduler on a device, and the facts about it beside its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Device, as in the cells.
    pub device: String,
    /// Scheduler, as in the cells.
    pub scheduler: String,
    /// The kernel of the trials, as recorded.
    pub kernel: String,
    /// Why it cannot be used on the trials' kernel; empty when the kernel has it.
    pub gone: String,
    /// Most requests that were at the device at once.
    pub in_flight: u32,
    /// How many requests the device takes; `None` when that was not recorded.
    pub depth: Option<u32>,
    /// Largest share of a trial with requests at the device; `None` when not measured.
    pub busy: Option<f64>,
    /// Workloads in which the halves of its runs differ.
    pub unsteady: BTreeSet<String>,
    /// What the experiment asks for: a measure or the name of a goal; empty where it says nothing.
    pub goal: String,
}

/// Provenance: the measure or the goal that decides, where the experiment names one.
pub const GOAL: &str = "goal";
/// Provenance: how many requests the device takes.
pub const DEVICE_DEPTH: &str = "device.queue_depth";
/// Provenance: bytes the device holds.
pub const DEVICE_CAPACITY: &str = "device.capacity";

impl Meaning {
    /// Last kernel that has any version of it, where the trials' kernel came after that.
    #[must_use]
    pub fn until(&self) -> Option<&str> {
        match &self.absence {
            Absence::Removed(last) => Some(last),
            _ => None,
        }
    }
}

impl Candidate {
    /// A scheduler, called `label` in the cells, under a kernel.
    #[must_use]
    pub fn new(device: &str, label: &str, scheduler: &str, kernel: &str) -> Candidate {
        Candidate {
            device: device.into(),
            scheduler: label.into(),
            kernel: kernel.into(),
            gone: gone(scheduler, kernel).unwrap_or_default(),
            ..Candidate::default()
        }
    }

    /// Takes what one trial says.
    pub fn add(&mut self, r: &Record) {
        let depth = r.provenance.get(DEVICE_DEPTH).and_then(|d| d.parse().ok());
        self.take(r.device.max_in_flight, depth, r.device.busy, r.elapsed);
        if let Some(goal) = r.provenance.get(GOAL) {
            self.goal.clone_from(goal);
        }
        if r.status == Status::Complete && r.halves_differ() {
            self.unsteady.insert(r.trial.workload.clone());
        }
    }

    /// As [`Candidate::add`], from sums.
    pub fn take(&mut self, in_flight: u32, depth: Option<u32>, busy: u64, elapsed: u64) {
        self.in_flight = self.in_flight.max(in_flight);
        self.depth = self.depth.max(depth);
        if elapsed > 0 && in_flight > 0 {
            let share = busy as f64 / elapsed as f64;
            self.busy = Some(self.busy.map_or(share, |b| b.max(share)));
        }
    }
}

/// Why a kernel does not have a scheduler: `Linux 6.12 has no anticipatory (it lived in 2.6.0-2.6.32)`. `None` when the
/// kernel has it, and for unknown names and kernels.
#[must_use]
pub fn gone(scheduler: &str, kernel: &str) -> Option<String> {
    let version = KernelVersion::parse(kernel.split_whitespace().next()?)?;
    let name = scheduler.split([' ', '(']).next()?.to_lowercase();
    let known = family(name.split('@').next()?).ok()?;
    if !name.contains('@') {
        let has = known.generations.iter().any(|g| g.covers(version));
        let ranges: Vec<String> = known.generations.iter().map(|g| g.range()).collect();
        let lived = ranges.join(", ");
        let words = format!("Linux {version} has no {} (it lived in {lived})", known.name);
        return (!has).then_some(words);
    }
    let (_, generation) = resolve(&name, version).ok()?;
    let words = format!("Linux {version} has no {name} (it is that of {})", generation.range());
    (!generation.covers(version)).then_some(words)
}

/// In which way a kernel does not have a scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Absence {
    /// It has it, or nobody knows the name.
    #[default]
    None,
    /// It comes later, with this kernel.
    NotYet(String),
    /// This kernel was the last one with any version of it.
    Removed(String),
    /// The kernel has a version of its own.
    Other(String),
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::None => f.write_str("yes"),
            Absence::NotYet(first) => write!(f, "not yet: it comes with {first}"),
            Absence::Removed(last) => write!(f, "no, removed after {last}"),
            Absence::Other(own) => write!(f, "no, it has {own}"),
        }
    }
}

/// Whether a kernel has a scheduler, and if not, in which way.
#[must_use]
pub fn absence(scheduler: &str, kernel: &str) -> Absence {
    let version = kernel.split_whitespace().next().and_then(KernelVersion::parse);
    let name = scheduler.split([' ', '(']).next().unwrap_or_default().to_lowercase();
    let known = family(name.split('@').next().unwrap_or_default()).ok();
    let (Some(version), Some(known)) = (version, known) else { return Absence::None };
    if gone(scheduler, kernel).is_none() {
        return Absence::None;
    }
    if let Some(own) = known.generations.iter().find(|g| g.covers(version)) {
        return Absence::Other(if own.name == known.name {
            own.name.into()
        } else {
            format!("{}@{}", known.name, own.name)
        });
    }
    match known.generations.iter().map(|g| g.first).filter(|f| *f > version).min() {
        Some(first) => Absence::NotYet(first.to_string()),
        None => Absence::Removed(
            known
                .generations
                .iter()
                .filter_map(|g| g.last)
                .max()
                .map_or_else(String::new, |l| l.to_string()),
        ),
    }
}

/// What stands behind a scheduler's name: which version of it the trials ran, and what is special about that.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Meaning {
    /// The kernels that behave so: `4.8-4.20`; empty for names that nobody knows.
    pub kernels: String,
    /// What differs from the version before.
    pub summary: String,
    /// Whether the trials' kernel has it.
    pub absence: Absence,
}

/// What a scheduler's name means under a kernel.
#[must_use]
pub fn meaning(scheduler: &str, kernel: &str) -> Meaning {
    let name = scheduler.split([' ', '(']).next().unwrap_or_default().to_lowercase();
    let version = kernel.split_whitespace().next().and_then(KernelVersion::parse);
    let found = version.and_then(|v| resolve(&name, v).ok());
    let (kernels, summary) =
        found.map_or_else(Default::default, |(_, g)| (g.range(), g.summary.to_string()));
    Meaning { kernels, summary, absence: absence(scheduler, kernel) }
}

/// Short names: a family of which there is one version needs no generation.
#[must_use]
pub fn short_names<'a>(schedulers: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let all: BTreeSet<&str> = schedulers.into_iter().collect();
    let bare = |s: &str| {
        let (family, rest) = s.split_once('@')?;
        let tail = rest.find(' ').map_or("", |at| &rest[at..]);
        Some(format!("{family}{tail}"))
    };
    let called = |s: &str| bare(s).unwrap_or_else(|| s.to_string());
    let family = |s: &str| s.split(['@', ' ']).next().unwrap_or_default().to_string();
    // All versions of a family keep their generations, or none does.
    let clear = |s: &str| {
        let of = || all.iter().filter(|o| family(o) == family(s));
        of().all(|s| all.iter().filter(|o| called(o) == called(s)).count() == 1)
    };
    all.iter().filter(|s| clear(s)).filter_map(|s| Some((*s, bare(s)?))).collect()
}

/// The candidates of some records, in the order in which they occur.
#[must_use]
pub fn candidates_of(records: &[Record]) -> Vec<Candidate> {
    candidates_called(records, &BTreeMap::new())
}

/// As [`candidates_of`], where schedulers go by other names: `own` has their own.
#[must_use]
pub fn candidates_called(records: &[Record], own: &BTreeMap<String, String>) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = Vec::new();
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for r in records {
        let t = &r.trial;
        let at = *places.entry((&t.device, &t.scheduler)).or_insert_with(|| {
            let name = own.get(&t.scheduler).unwrap_or(&t.scheduler);
            out.push(Candidate::new(&t.device, &t.scheduler, name, &t.kernel));
            out.len() - 1
        });
        out[at].add(r);
    }
    out
}
