//! One cell of an experiment, one repetition: everything a backend needs, nothing left to look up.

use iosched_block::{Keep, KernelProfile, SchedulerChoice, queue_settings};
use iosched_devices::DeviceSpec;
use iosched_engine::stream;
use iosched_schedulers::registry::{NameError, Registry};
use iosched_schedulers::{BlockPath, KernelVersion, TunableError};
use iosched_types::Nanos;
use iosched_types::nearest::did_you_mean;
use iosched_workloads::fio::JobSet;

use crate::host::HostSpec;
use crate::record::{TrialId, Warning};
use crate::replay::TraceWork;
use crate::work::{Site, Work};

/// A trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Which cell and repetition.
    pub id: TrialId,
    /// The device.
    pub device: DeviceSpec,
    /// The kernel profile.
    pub kernel: KernelProfile,
    /// The scheduler and its tunables.
    pub scheduler: SchedulerChoice,
    /// `queue/*` settings by sysfs name.
    pub settings: Vec<(String, i64)>,
    /// What is to be said of the choices behind the trial, in its record.
    pub remarks: Vec<Warning>,
    /// What it measures.
    pub work: Work,
    /// A block trace that is replayed beside it.
    pub beside: Option<TraceWork>,
    /// The running kernel's name of a scheduler that iosched does not have (live backends only; `scheduler` is a
    /// stand-in then).
    pub foreign: Option<String>,
    /// The machine above the disk, for a load that makes system calls.
    pub host: HostSpec,
    /// CPUs of the machine.
    pub cpus: u16,
    /// `io.bfq.weight`/`blkio.weight` by control group path.
    pub cgroups: Vec<(String, u32)>,
    /// What to collect beside the figures.
    pub collect: Collect,
    /// Which bios are recorded, as a recorder of block events sees them.
    pub tape: Option<Keep>,
    /// Virtual time at which the processes begin. The kernel's ticks come at whole multiples of 1/HZ, so
    /// schedulers that count jiffies depend on it.
    pub start_at: Nanos,
    /// Virtual time of the reset of the device, at most `start_at`: the angle of a rotating disk depends on
    /// how long ago it was.
    pub reset_at: Nanos,
    /// The host learns of what the device has done by a timer: the shortest time that it takes, and what a look at the clock
    /// takes when it goes off. The reference machine plays its disks so.
    pub timer: Option<(Nanos, Nanos)>,
    /// Bit, modulo its depth, at which each tag map is first searched. The kernel draws it, so repetitions do, too.
    pub tag_start: u32,
    /// The order in which the processes begin, as positions among the fio jobs; empty: that of the jobs.
    pub start_order: Vec<u32>,
    /// The kernel's worker that runs queues at completions has not run yet. So the first time it runs after the
    /// processes.
    pub first_run_late: bool,
}

impl Trial {
    /// Work on a device under a scheduler, on a machine of one CPU. Nothing is collected beside the figures.
    #[must_use]
    pub fn new(
        device: DeviceSpec,
        scheduler: SchedulerChoice,
        kernel: KernelProfile,
        work: impl Into<Work>,
    ) -> Trial {
        Trial {
            id: TrialId::default(),
            device,
            kernel,
            scheduler,
            settings: Vec::new(),
            remarks: Vec::new(),
            work: work.into(),
            beside: None,
            host: HostSpec::default(),
            foreign: None,
            cpus: 1,
            cgroups: Vec::new(),
            collect: Collect { series: false, dispatches: false },
            tape: None,
            start_at: 0,
            reset_at: 0,
            timer: None,
            tag_start: 0,
            start_order: Vec::new(),
            first_run_late: false,
        }
    }

    /// What the running kernel calls the scheduler.
    #[must_use]
    pub fn kernel_name(&self) -> &str {
        self.foreign.as_deref().unwrap_or(self.scheduler.descriptor.name)
    }

    /// The scheduler that the kernel gives the device when nothing is set.
    #[must_use]
    pub fn default_scheduler(&self) -> &str {
        match self.device.hw_queues {
            1 => &self.kernel.default_scheduler,
            _ => &self.kernel.default_scheduler_multi_queue,
        }
    }

    /// The fio jobs; other work has none.
    #[must_use]
    pub fn jobs(&self) -> &JobSet {
        self.work.jobs()
    }

    /// Where its work lies on the disk.
    #[must_use]
    pub fn site(&self) -> Site {
        self.work.site()
    }

    /// The same cell in another repetition, by the rule that holds for every backend: repetition r of a
    /// job that sets no `randseed` runs with `randseed = seed + r - 1`, and with `randrepeat=0` when there
    /// are several repetitions. A program's seed counts up in the same way. Repetition 0 (a warm-up) has the load of the first. A single repetition with fio's
    /// default seed is left as fio has it.
    #[must_use]
    pub fn at_repetition(&self, repetition: u32, seed: u64, several: bool) -> Trial {
        let mut trial = self.clone();
        trial.id.repetition = repetition;
        trial.id.seed = seed.wrapping_add(u64::from(repetition.max(1)) - 1);
        trial.tag_start = (stream(trial.id.seed, "tags").next_u64() >> 32) as u32;
        let after = trial.id.seed.wrapping_sub(self.id.seed);
        trial.work.reseed(trial.id.seed, after, several);
        trial
    }
}

/// Optional parts of a record; each costs some time or memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collect {
    /// Curves over time.
    pub series: bool,
    /// The way of the head.
    pub dispatches: bool,
}

impl Default for Collect {
    fn default() -> Self {
        Collect { series: true, dispatches: true }
    }
}

/// A scheduler or setting that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// Unknown name, or a family the kernel profile never had.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Unknown tunable or value out of bounds.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// Unknown `queue/*` setting.
    #[error("unknown queue setting \"{name}\"; {help}")]
    Setting {
        /// What was asked for.
        name: String,
        /// Nearest name or the list.
        help: String,
    },
    /// Value out of bounds.
    #[error("queue/{name}={value} is out of range: {min} to {max} {unit}")]
    SettingRange {
        /// Setting.
        name: String,
        /// Refused value.
        value: i64,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
        /// Unit.
        unit: &'static str,
    },
    /// A setting of later kernels.
    #[error(
        "Linux {kernel} has no queue/{name}, which came with 7.1; before, and from 5.15 on, mq-deadline has a tunable of that name"
    )]
    SettingKernel {
        /// Setting.
        name: String,
        /// The kernel.
        kernel: String,
    },
}

/// Resolves `family[@generation]` and checks its tunables under a kernel profile.
///
/// # Errors
/// See [`ChoiceError`].
pub fn choose_scheduler(
    name: &str,
    tunables: &[(String, i64)],
    kernel: &KernelProfile,
    registry: &Registry,
) -> Result<SchedulerChoice, ChoiceError> {
    let (descriptor, generation) = registry.resolve(name, kernel.kernel_version())?;
    for (t, v) in tunables {
        registry.check_tunable(descriptor, generation.index, t, *v)?;
    }
    Ok(SchedulerChoice { descriptor, generation, tunables: tunables.to_vec() })
}

/// Checks one `queue/*` setting.
///
/// # Errors
/// [`ChoiceError::Setting`] or [`ChoiceError::SettingRange`].
pub fn check_setting(name: &str, value: i64) -> Result<(), ChoiceError> {
    let Some(s) = queue_settings().iter().find(|s| s.name == name) else {
        let near = did_you_mean(name, queue_settings().iter().map(|s| s.name));
        let list: Vec<&str> = queue_settings().iter().map(|s| s.name).collect();
        let help = if near.is_empty() { format!("known are {}", list.join(", ")) } else { near };
        return Err(ChoiceError::Setting { name: name.into(), help });
    };
    if value < s.min || value > s.max {
        return Err(ChoiceError::SettingRange {
            name: name.into(),
            value,
            min: s.min,
            max: s.max,
            unit: s.unit,
        });
    }
    Ok(())
}

/// Checks that one of the kernels has a `queue/*` setting.
///
/// # Errors
/// [`ChoiceError::SettingKernel`].
pub(crate) fn setting_in(name: &str, kernels: &[KernelProfile]) -> Result<(), ChoiceError> {
    let first = KernelVersion(7, 1, 0);
    match kernels.first() {
        Some(k) if name == "async_depth" && kernels.iter().all(|k| k.kernel_version() < first) => {
            Err(ChoiceError::SettingKernel { name: name.into(), kernel: k.version.clone() })
        }
        _ => Ok(()),
    }
}

/// How a choice is written in tables and records: `bfq@6.12 low_latency=0`.
#[must_use]
pub fn label(choice: &SchedulerChoice) -> String {
    let d = choice.descriptor;
    let mut text = if d.generations.len() > 1 {
        format!("{}@{}", d.name, choice.generation.name)
    } else {
        d.name.to_string()
    };
    for (n, v) in &choice.tunables {
        let known = d.tunables_of(choice.generation.index).find(|t| t.name == n);
        let value = known.map_or_else(|| v.to_string(), |t| t.shown(*v).replace(' ', ":"));
        text.push_str(&format!(" {n}={value}"));
    }
    text
}

/// Which block layer a choice runs on under a kernel profile.
#[must_use]
pub fn path_of(choice: &SchedulerChoice) -> BlockPath {
    choice.descriptor.path_of(choice.generation)
}
