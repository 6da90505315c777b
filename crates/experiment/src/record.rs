//! The result of a trial, the same for every backend.

mod ask;
mod jobs;
mod moments;
mod seen;

pub use crate::backend::BackendKind;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use iosched_types::{Bytes, CpuTime, Nanos, Op, Sector};

pub use ask::Ask;
pub use jobs::{DirStats, JobRecord, TASK_CALLS, Total, place_in_time, rates, together, total};
pub use moments::Moments;
pub use seen::Seen;

/// Provenance: the scheduler that the device has when nothing is set, by the kernel's name. Live: the one that was set before.
pub const DEFAULT_SCHEDULER: &str = "scheduler.default";

/// Version of [`Record`]'s shape. Readers accept their own and older ones.
pub const SCHEMA: u32 = 1;

/// Which cell of the experiment a record belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TrialId {
    /// Experiment name (the file's stem unless it names itself).
    pub experiment: String,
    /// Device name.
    pub device: String,
    /// Scheduler as `family@generation`, plus a label when tunables were set: `bfq@6.12 low_latency=0`.
    pub scheduler: String,
    /// Kernel profile (sim) or running kernel release (emulated, real).
    pub kernel: String,
    /// Workload name (the job file's stem unless the experiment names it).
    pub workload: String,
    /// Repetition (round), from 1. Rounds pair the schedulers of one experiment.
    pub repetition: u32,
    /// Seed of this repetition.
    pub seed: u64,
}

/// How a trial ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Ran to its end.
    #[default]
    Complete,
    /// Ran, but its figures must not be used; the reason.
    Invalid(String),
    /// Did not run to its end; the reason.
    Failed(String),
}

/// Everything a trial yields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`] at the time of writing.
    pub schema: u32,
    /// Which cell and repetition.
    pub trial: TrialId,
    /// Who ran it.
    pub backend: BackendKind,
    /// How it ended.
    pub status: Status,
    /// One entry per process (or per group under `group_reporting`), in fio's order.
    pub jobs: Vec<JobRecord>,
    /// The device's side.
    pub device: DeviceStats,
    /// The scheduler's side.
    pub scheduler: SchedulerStats,
    /// Curves over time.
    pub series: Vec<Series>,
    /// Parts of the run, as its program names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// The way of the head: commands in issue order, at most a few thousand (evenly thinned out).
    pub dispatches: Vec<DispatchPoint>,
    /// The whole way of the head, when it was traced. Results files keep it apart; JSON leaves it out.
    #[serde(skip)]
    pub trace: Vec<DispatchPoint>,
    /// The bios of a simulated run, when they were recorded. They become a file of their own.
    #[serde(skip)]
    pub seen: Option<Box<Seen>>,
    /// The logs of jobs with `write_iolog`, by the names they gave. They are files of their own.
    #[serde(skip)]
    pub io_logs: Vec<(String, String)>,
    /// What tools printed, by name: fio's own summary, the job file it ran. Results files keep them apart; JSON leaves
    /// them out.
    #[serde(skip)]
    pub logs: Vec<(String, String)>,
    /// Results that are not latencies or rates, by name and unit: start-up time in s, transactions/s …
    pub metrics: Vec<Metric>,
    /// Where the figures come from: tool version, kernel, device identity and model hash, tunables …
    pub provenance: BTreeMap<String, String>,
    /// Warnings that people should know before trusting the figures.
    pub warnings: Vec<Warning>,
    /// Length of the trial until its last process ended (virtual time in `sim`, wall clock elsewhere).
    pub elapsed: Nanos,
    /// Core time of the kernel's threads, of which no process knows; part of `core_time`. Zero where it was not measured.
    #[serde(default, skip_serializing_if = "CpuTime::is_zero")]
    pub threads_cpu: CpuTime,
    /// What the CPUs spent on it; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_time: Option<CoreTime>,
}

/// Core time of a whole trial. Each process's own stands in its [`JobRecord`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CoreTime {
    /// Of all processes and the kernel's threads, in ns.
    #[serde(flatten)]
    pub total: CpuTime,
    /// User and system time of an I/O, in ns; `None` without I/O. Where processes only use maps, of a command of the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_io: Option<f64>,
    /// User and system time as a share of what the machine's CPUs had in the trial: 1 when all were busy.
    pub utilisation: f64,
}

impl Record {
    /// Whether each command of the disk was seen: its seeks and travel are known. The real disk of a run without a trace and
    /// an import have 0 there, which is no figure.
    #[must_use]
    pub fn sees_commands(&self) -> bool {
        self.backend.has_model() || self.device.travel > 0 || !self.dispatches.is_empty()
    }

    /// Whether the time is known in which the scheduler held the disk idle. A running kernel does not tell it.
    #[must_use]
    pub fn sees_idling(&self) -> bool {
        !self.backend.is_live()
    }

    /// Whether the disk's commands were counted. Not all imports have the disk's side.
    #[must_use]
    pub fn counts_commands(&self) -> bool {
        self.backend.traits().ours || self.device.commands.iter().any(|n| *n > 0)
    }

    /// Which jobs failed, and with what.
    #[must_use]
    pub fn failed_jobs(&self) -> Option<String> {
        let failed = self.jobs.iter().filter_map(|j| Some((&j.name, j.error.as_ref()?)));
        let mut words: Vec<String> =
            failed.map(|(name, why)| format!("job {name}: {why}")).collect();
        words.dedup();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// Whether the run's rate changes, or will when a cache of its device is full: its halves differ, its trend is no chance,
    /// or a tenth of its writes was in that cache alone.
    #[must_use]
    pub fn halves_differ(&self) -> bool {
        self.warnings.iter().any(|w| w.code == HALVES_DIFFER)
    }

    /// Time of the part that was measured: without its warm-up.
    #[must_use]
    pub fn measured(&self) -> Nanos {
        let before = self
            .provenance
            .get(crate::warm_up::UNMEASURED)
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        self.elapsed.saturating_sub(before)
    }

    /// The measured part's share of a count that the disk's side made over the whole run, its warm-up included.
    #[must_use]
    pub fn measured_share(&self, count: u64) -> u64 {
        let (part, whole) = (self.measured(), self.elapsed);
        if part == whole {
            count
        } else {
            (u128::from(count) * u128::from(part) / u128::from(whole)) as u64
        }
    }

    /// Core time of all processes and of the kernel's threads.
    #[must_use]
    pub fn cpu(&self) -> CpuTime {
        let mut all = self.threads_cpu;
        self.jobs.iter().for_each(|j| all.add(&j.cpu));
        all
    }

    /// Notes the core time of the trial, as it was measured, on a machine of so many CPUs.
    pub fn note_core_time(&mut self, total: CpuTime, cpus: usize) {
        let ios: u64 = self.jobs.iter().map(|j| j.read.ios + j.write.ios + j.trim.ios).sum();
        let ios = if ios > 0 { ios } else { self.device.commands.iter().sum() };
        let (time, had) = (total.total() as f64, self.elapsed as f64 * cpus as f64);
        self.core_time = (had > 0.0).then(|| CoreTime {
            total,
            per_io: (ios > 0).then(|| time / ios as f64),
            utilisation: time / had,
        });
    }
}

/// The metric that says by how many percent an emulated disk's commands took longer or shorter than its model's own
/// answers.
pub const TIMING_DEVIATION: &str = "timing_deviation";
/// The metric of jobs that leave writes in memory: bytes a second that both the processes and the disk moved, until all
/// that was written is on the medium.
pub const DURABLE_BW: &str = "durable.bw";
/// The metric that says after how many seconds, from the first job's start, it was.
pub const DURABLE_AFTER: &str = "durable.after";

/// A named result such as a start-up time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name: `startup_time`.
    pub name: String,
    /// Value in `unit`.
    pub value: f64,
    /// Unit: `s`, `tps`, `MB/s`.
    pub unit: String,
    /// Whether more is better; `None` where the figure only describes the run and is never judged.
    pub higher_is_better: Option<bool>,
    /// The true value lies beyond `value` (a time limit struck): shown as `>60`, never averaged away.
    pub censored: bool,
}

/// The device's side of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceStats {
    /// Commands that it was given until the last process ended, by read, write, discard, flush. What is written back
    /// after that belongs to no trial. Live those that were done then.
    pub commands: [u64; 4],
    /// Bytes of these commands, by read, write, discard.
    pub bytes: [Bytes; 3],
    /// Bios merged into requests, by read, write, discard.
    pub merges: [u64; 3],
    /// Time with at least one command in flight, as `/proc/diskstats` counts it, of the trial's `elapsed`.
    pub busy: Nanos,
    /// Sum over commands of the time in the device and queue (diskstats' weighted time).
    pub weighted: Nanos,
    /// Commands that did not start where the one before ended.
    pub seeks: u64,
    /// Total distance between the end of one command and the start of the next, in sectors.
    pub travel: Sector,
    /// Largest number in flight at the device.
    pub max_in_flight: u32,
    /// Model counters by name (cache hits, busy channels …).
    pub counters: BTreeMap<String, u64>,
}

/// The scheduler's side of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchedulerStats {
    /// Requests dispatched.
    pub dispatched: u64,
    /// Time the device was held idle on purpose while requests waited.
    pub idled: Nanos,
    /// Number of such idle periods.
    pub idles: u64,
    /// Tunables in force, by sysfs name and in the sysfs unit.
    pub tunables: BTreeMap<String, i64>,
    /// The scheduler's own counters.
    pub counters: BTreeMap<String, u64>,
}

/// What names of curves of a program's operations begin with; those that move bytes have another one with `/throughput`
/// behind.
pub const OPERATION: &str = "operation/";
/// What names of curves of a program's events begin with.
pub const EVENT: &str = "event/";

/// How the name of a figure ends that is another one's inverse: the time of one beside how many a second. It has no direction.
pub const OF_ONE: &str = ", time of one";
/// Provenance: figures that the original of a program prints as n/a here, with `; ` between them.
pub const ABSENT: &str = "n/a";

/// A curve over time with even spacing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name: `throughput`, `iops`, `queue_depth`, `in_flight`; `job/NAME/throughput` for one process.
    pub name: String,
    /// Unit of the values: `B/s`, `1/s`, `requests`.
    pub unit: String,
    /// Spacing in ns.
    pub step: Nanos,
    /// Values; the i-th covers `[i·step, (i+1)·step)`.
    pub values: Vec<f64>,
}

/// A part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Its name: `write`, `checkpoint`, `start`.
    pub name: String,
    /// What kind of part.
    pub kind: MarkKind,
    /// When it began, in ns since the run did.
    pub began: Nanos,
    /// And ended.
    pub ended: Nanos,
}

/// What a part of a run is to its program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// One phase after the other.
    #[default]
    Phase,
    /// Something that went on beside.
    Beside,
    /// A try that is measured by its length.
    Try,
    /// A try that was given up: it would have taken longer.
    GivenUp,
}

/// One command on its way to the device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DispatchPoint {
    /// When the driver took it.
    pub t: Nanos,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Operation.
    pub op: Op,
    /// Process.
    pub pid: u32,
}

/// Code of the warning that a run's rate changes, or will when a cache of its device is full.
pub const HALVES_DIFFER: &str = "halves-differ";

/// Code of the warnings that an import gives: what of a file was not used, or not as it stands there.
pub const IMPORT: &str = "import";
/// Code of the remark how partitions lie on a disk.
pub const PARTS: &str = "parts-of-disk";
/// Code of the remark that a version is simulated by another's model.
pub const NEAREST: &str = "nearest-version";

/// A warning as data: a code for programs, a sentence for people, what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable code: `noisy`, `cached`, `foreign-io`, `scheduler-changed`, `option-ignored` …
    pub code: String,
    /// What was seen.
    pub message: String,
    /// What to do.
    pub advice: String,
}

#[cfg(test)]
mod tests;
