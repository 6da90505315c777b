//! The experiment file: devices × schedulers × kernels × workloads × runs.

mod parts;

use iosched_block::CpuModel;
use iosched_devices::DeviceState;
use iosched_types::{Diagnostic, Nanos};
use iosched_workloads::fio::DEFAULT_SEED;

use crate::backend::BackendKind;
use crate::host::HostSpec;
use crate::load::{ProgramKind, ProgramRef, TraceRef};
use crate::place::{Place, Placed};
use crate::replay::ReplayRef;
use crate::source::Source;
use crate::startup::Startup;
use crate::trial::Collect;
use crate::until::{Steady, Until};
use crate::warm_up::WarmUp;
pub use parts::backend;
pub(crate) use parts::beside;
use parts::{lists, scalars};

/// Most repetitions.
pub const MAX_RUNS: u32 = 10_000;
/// Most CPUs of the simulated machine.
pub const MAX_CPUS: u16 = 4096;

/// A device: of the catalogue, of a file, or described in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceRef {
    /// A catalogue name, or the path of a device file (ends in `.toml` or has a slash).
    Named(String),
    /// A device file's content, written as a table in the experiment: (name, TOML).
    Inline(String, String),
}

/// A scheduler with its tunables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchedulerRef {
    /// `family[@generation or kernel]`.
    pub name: String,
    /// Tunables by sysfs name, in the sysfs unit.
    pub tunables: Vec<Placed<(String, i64)>>,
    /// `queue/*` settings with which it runs beside itself with others.
    pub queue: Vec<Placed<(String, i64)>>,
    /// How tables call it; by default its name and the tunables that were set.
    pub label: Option<String>,
}

/// What the processes do.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadRef {
    /// How tables call it.
    pub name: String,
    /// Where the job comes from.
    pub job: JobSource,
    /// A block trace that is replayed beside it.
    pub beside: Option<ReplayRef>,
}

impl WorkloadRef {
    /// A job with nothing beside it.
    #[must_use]
    pub fn new(name: impl Into<String>, job: JobSource) -> WorkloadRef {
        WorkloadRef { name: name.into(), job, beside: None }
    }
}

/// Where a fio job comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum JobSource {
    /// A job file (path as the program sees it), or the name of a job that comes with the program.
    File(String),
    /// The text of a job file, written in the experiment.
    Text(String),
    /// No fio job: the start of a command under load.
    Startup(Box<Startup>),
    /// A program over system calls.
    Program(ProgramRef),
    /// A log of system calls.
    Trace(TraceRef),
    /// A block trace.
    Replay(ReplayRef),
}

/// An experiment as the file has it. Nothing is looked up yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Name: the file's stem unless it names itself.
    pub name: String,
    /// Devices.
    pub devices: Vec<Placed<DeviceRef>>,
    /// Schedulers; the first is the base of comparisons.
    pub schedulers: Vec<Placed<SchedulerRef>>,
    /// Kernel profiles by name, or files.
    pub kernels: Vec<Placed<String>>,
    /// Workloads.
    pub workloads: Vec<Placed<WorkloadRef>>,
    /// Repetitions.
    pub runs: u32,
    /// Whether it says how many.
    pub runs_said: bool,
    /// Chooses its repetitions itself, from `runs` up, so that two cores simulate it in this time.
    pub budget: Option<Nanos>,
    /// The budget is not the default.
    pub budget_said: bool,
    /// How long simulated loads run before they are measured; `None`: nothing is said.
    pub warm_up: Option<WarmUp>,
    /// Seed of the first repetition.
    pub seed: u64,
    /// `queue/*` settings by sysfs name.
    pub queue: Vec<Placed<(String, i64)>>,
    /// Options set for every job, after its own.
    pub set: Vec<Placed<(String, String)>>,
    /// CPUs of the simulated machine.
    pub cpus: u16,
    /// Whether core time counts; as the kernel profile has it where nothing is said.
    pub cpu_model: Option<CpuModel>,
    /// How long the kernel profile's pieces of work take on this machine, in percent.
    pub cpu_percent: u64,
    /// The machine above the disk, for loads that make system calls.
    pub host: HostSpec,
    /// What of it was said, and where.
    pub host_place: Option<Place>,
    /// Where each sysctl was said.
    pub sysctl_places: Vec<(String, Place)>,
    /// Weights by control group.
    pub cgroups: Vec<(String, u32)>,
    /// What the devices are like when a run begins.
    pub device_state: Option<Placed<DeviceState>>,
    /// The backend that runs it.
    pub backend: BackendKind,
    /// What a live run of a program runs.
    pub program: ProgramKind,
    /// What to collect.
    pub collect: Collect,
    /// Repeat beyond `runs` until the figures are certain.
    pub until: Option<Until>,
    /// Bring a solid-state drive into its steady state first.
    pub steady: Option<Steady>,
    /// The measure that decides, or the goal of answers.
    pub goal: Option<Placed<String>>,
}

impl Default for Experiment {
    fn default() -> Self {
        Experiment {
            name: "experiment".into(),
            devices: Vec::new(),
            schedulers: Vec::new(),
            kernels: Vec::new(),
            workloads: Vec::new(),
            runs: 1,
            runs_said: false,
            budget: None,
            budget_said: false,
            warm_up: None,
            seed: DEFAULT_SEED,
            queue: Vec::new(),
            set: Vec::new(),
            cpus: 4,
            cpu_model: None,
            cpu_percent: 100,
            host: HostSpec::default(),
            host_place: None,
            sysctl_places: Vec::new(),
            cgroups: Vec::new(),
            device_state: None,
            backend: BackendKind::Sim,
            program: ProgramKind::default(),
            collect: Collect::default(),
            until: None,
            steady: None,
            goal: None,
        }
    }
}

const KEYS: &[&str] = &[
    "name",
    "devices",
    "schedulers",
    "kernel",
    "workloads",
    "runs",
    "budget",
    "warm_up",
    "seed",
    "queue",
    "set",
    "cpus",
    "cpu",
    "memory",
    "filesystem",
    "sysctl",
    "cgroups",
    "device_state",
    "backend",
    "program",
    "collect",
    "until_ci",
    "max_runs",
    "max_time",
    "steady_state",
    "goal",
];

impl Experiment {
    /// Reads an experiment file. Paths in it count from the file's own folder.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place. [`Experiment::read`] tells all.
    pub fn from_toml(file: &str, text: &str) -> Result<Experiment, Diagnostic> {
        let (experiment, errors) = Experiment::read(file, text);
        errors.into_iter().next().map_or(Ok(experiment), Err)
    }

    /// Reads as much of an experiment file as can be read, and tells everything that is wrong with the rest, in the
    /// order of the file.
    #[must_use]
    pub fn read(file: &str, text: &str) -> (Experiment, Vec<Diagnostic>) {
        let src = Source { file, text };
        let mut e = Experiment { name: stem(file).into(), ..Experiment::default() };
        let root = match src.parse() {
            Ok(root) => root,
            Err(d) => return (e, vec![d]),
        };
        let root = root.get_ref();
        let mut errors = src.unknown(root, "the experiment", KEYS);
        scalars(&src, root, &mut e, &mut errors);
        lists(&src, root, &mut e, &mut errors);
        for key in ["devices", "schedulers", "workloads"] {
            let named = root.get(key).is_some_and(|at| !src.list(at).is_empty());
            if !named {
                let d = Diagnostic::file(file, format!("the experiment names no {key}"));
                errors.push(d.with_help(example(key)));
            }
        }
        errors.sort_by_key(|d| (d.line, d.column));
        (e, errors)
    }
}

fn example(key: &str) -> &'static str {
    match key {
        "devices" => "add a line such as devices = [\"hdd-7200\", \"ssd-sata\"]",
        "schedulers" => "add a line such as schedulers = [\"none\", \"mq-deadline\", \"bfq\"]",
        _ => "add a line such as workloads = [\"job.fio\"]",
    }
}

/// `a/b/desktop.toml` is `desktop`.
#[must_use]
pub fn stem(file: &str) -> &str {
    let base = file.rsplit('/').next().unwrap_or(file);
    match base.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => base,
    }
}

/// Gives workloads of files that are named alike the whole names of their files, `app.17` and `app.18` of `strace -ff -o app`,
/// or their paths where these are alike, too.
pub fn name_apart(all: &mut [Placed<WorkloadRef>]) {
    let path = |w: &WorkloadRef| match &w.job {
        JobSource::File(file) => Some(file.clone()),
        JobSource::Trace(log) => Some(log.file.clone()),
        JobSource::Replay(trace) => Some(trace.file.clone()),
        _ => None,
    };
    let base = |file: &str| file.rsplit('/').next().unwrap_or(file).to_string();
    let before: Vec<(String, Option<String>)> =
        all.iter().map(|w| (w.value.name.clone(), path(&w.value))).collect();
    for (i, w) in all.iter_mut().enumerate() {
        let (name, Some(file)) = &before[i] else { continue };
        let alike = || before.iter().enumerate().filter(|(j, other)| *j != i && other.0 == *name);
        let same = |other: &Option<String>| other.as_deref().map(base) == Some(base(file));
        if alike().next().is_some() {
            w.value.name = if alike().any(|(_, o)| same(&o.1)) { file.clone() } else { base(file) };
        }
    }
}

/// Whether a device or kernel is named by a path rather than by a name of the catalogue.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".toml")
}

#[cfg(test)]
mod tests;
