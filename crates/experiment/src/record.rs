//! The result of a trial, the same for every backend.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use iosched_types::{Bytes, CpuTime, LatencyHistogram, Nanos, Op, Sector};

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

/// Who ran the trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    /// The simulator.
    #[default]
    Sim,
    /// The running kernel on an emulated disk.
    Emulated,
    /// The running kernel on a real disk.
    Real,
    /// The mock of the tests.
    Mock,
    /// Another tool's result, imported.
    Imported,
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
    /// The way of the head: commands in issue order, at most a few thousand (evenly thinned out).
    pub dispatches: Vec<DispatchPoint>,
    /// The whole way of the head, when it was traced. Results files keep it apart; JSON leaves it out.
    #[serde(skip)]
    pub trace: Vec<DispatchPoint>,
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
    /// Length of the trial (virtual time in `sim`, wall clock elsewhere).
    pub elapsed: Nanos,
}

impl Record {
    /// Core time of all processes.
    #[must_use]
    pub fn cpu(&self) -> CpuTime {
        let mut all = CpuTime::default();
        self.jobs.iter().for_each(|j| all.add(&j.cpu));
        all
    }

    /// Core time of an I/O in µs; `None` without I/O or where core time is not known.
    #[must_use]
    pub fn cpu_per_io(&self) -> Option<f64> {
        let ios: u64 = self.jobs.iter().map(|j| j.read.ios + j.write.ios + j.trim.ios).sum();
        let time = self.cpu().total();
        (ios > 0 && time > 0).then(|| time as f64 / 1e3 / ios as f64)
    }
}

/// The metric that says by how many percent an emulated disk's commands took longer or shorter than its model's own
/// answers.
pub const TIMING_DEVIATION: &str = "timing_deviation";

/// A named result such as a start-up time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Name: `startup_time`.
    pub name: String,
    /// Value in `unit`.
    pub value: f64,
    /// Unit: `s`, `tps`, `MB/s`.
    pub unit: String,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// The true value lies beyond `value` (a time limit struck): shown as `>60`, never averaged away.
    pub censored: bool,
}

/// One process or group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Section name.
    pub name: String,
    /// Index among the clones of the section, from 0.
    pub subjob: u32,
    /// Reporting group, from 0.
    pub group: u32,
    /// Process id or thread number.
    pub pid: u32,
    /// Job options that matter to readers, as fio spells them.
    pub options: BTreeMap<String, String>,
    /// Reads.
    pub read: DirStats,
    /// Writes.
    pub write: DirStats,
    /// Trims.
    pub trim: DirStats,
    /// fsync and fdatasync calls (only latencies and `ios` are used).
    pub sync: DirStats,
    /// From its start to its end (after ramp time).
    pub runtime: Nanos,
    /// When measuring began, from the start of the trial.
    #[serde(default)]
    pub began: Nanos,
    /// When it ended, from the start of the trial; 0 where that is not known.
    #[serde(default)]
    pub ended: Nanos,
    /// Share of the I/Os at each depth: 1, 2, 4, 8, 16, 32, ≥64, as counts.
    pub depths: [u64; 7],
    /// Core time; zero where it is not known or does not count.
    #[serde(default)]
    pub cpu: CpuTime,
    /// Why it ended early, if it did.
    pub error: Option<String>,
}

/// One direction of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirStats {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: Bytes,
    /// Time by which rates are computed (fio: the job's run time in this direction).
    pub runtime: Nanos,
    /// Submission latency in ns.
    pub slat: Moments,
    /// Completion latency.
    pub clat: LatencyHistogram,
    /// Total latency (submission + completion) in ns.
    pub lat: Moments,
    /// Total latencies, fio's `lat` with `lat_percentiles=1`. Empty in results of earlier versions and of tools that
    /// do not print them.
    #[serde(default, skip_serializing_if = "LatencyHistogram::is_empty")]
    pub lat_hist: LatencyHistogram,
    /// Bandwidth samples in KiB/s (one per 500 ms, as fio's `bw_*`).
    pub bw: Moments,
    /// IOPS samples (one per 500 ms, as fio's `iops_*`).
    pub iops: Moments,
}

impl DirStats {
    /// I/Os a second over the run time.
    #[must_use]
    pub fn iops(&self) -> f64 {
        if self.runtime == 0 { 0.0 } else { self.ios as f64 * 1e9 / self.runtime as f64 }
    }

    /// Bytes a second over the run time.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        if self.runtime == 0 { 0.0 } else { self.bytes as f64 * 1e9 / self.runtime as f64 }
    }

    /// Whether the total latencies of its I/Os are known.
    #[must_use]
    pub fn has_total(&self) -> bool {
        !self.lat_hist.is_empty()
    }

    /// What its I/Os took: total latencies, or completion latencies where there are no others.
    #[must_use]
    pub fn latency(&self) -> &LatencyHistogram {
        if self.has_total() { &self.lat_hist } else { &self.clat }
    }

    /// Adds another process's figures. Run times overlap, so the longest counts. The total latencies of some I/Os are
    /// none of all, so the sum has them only if both have.
    pub fn merge(&mut self, other: &DirStats) {
        match (self.latency().is_empty(), other.latency().is_empty()) {
            (_, true) => {}
            (true, false) => self.lat_hist.clone_from(&other.lat_hist),
            (false, false) if self.has_total() && other.has_total() => {
                self.lat_hist.merge(&other.lat_hist);
            }
            (false, false) => self.lat_hist = LatencyHistogram::default(),
        }
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.runtime = self.runtime.max(other.runtime);
        self.slat.merge(&other.slat);
        self.clat.merge(&other.clat);
        self.lat.merge(&other.lat);
        self.bw.merge(&other.bw);
        self.iops.merge(&other.iops);
    }
}

/// Bytes a second of each process. Shares are compared by this. A process that only trimmed moved no data and takes no
/// part. If all processes only trimmed, it is trims a second.
#[must_use]
pub fn rates(jobs: &[JobRecord]) -> Vec<f64> {
    let only_trims = |j: &&JobRecord| j.trim.ios > 0 && j.read.ios + j.write.ios == 0;
    if jobs.iter().all(|j| only_trims(&j)) {
        return jobs.iter().map(|j| j.trim.iops()).collect();
    }
    // A task that waits for its children and moves nothing itself wants no share.
    let waits =
        |j: &&JobRecord| j.options.contains_key(TASK_CALLS) && j.read.ios + j.write.ios == 0;
    let others = jobs.iter().filter(|j| !only_trims(j) && !waits(j));
    others.map(|j| j.read.bytes_per_second() + j.write.bytes_per_second()).collect()
}

/// The option of a program's task that counts its system calls; fio jobs have none.
pub const TASK_CALLS: &str = "calls";

/// Whether there was a time at which all processes ran. Those that ran one after the other shared nothing. Where a
/// record does not say when a process ended, it may have been.
#[must_use]
pub fn together(jobs: &[JobRecord]) -> bool {
    let last = jobs.iter().map(|j| j.began).max();
    let first = jobs.iter().filter(|j| j.ended > 0).map(|j| j.ended).min();
    last.zip(first).is_none_or(|(began, ended)| began < ended)
}

/// What some processes moved together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: Bytes,
    /// The time in which any of them ran.
    pub span: Nanos,
}

impl Total {
    /// I/Os a second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        if self.span == 0 { 0.0 } else { self.ios as f64 * 1e9 / self.span as f64 }
    }

    /// Bytes a second.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        if self.span == 0 { 0.0 } else { self.bytes as f64 * 1e9 / self.span as f64 }
    }
}

/// The data that processes moved in the directions that `of` names, and the time it took. Where processes do not run at
/// the same time, adding their rates would give more than the device can do. Trims move nothing: they have a total of
/// their own, and only its I/Os count.
pub fn total<'a, const N: usize>(
    jobs: impl Iterator<Item = &'a JobRecord>,
    of: impl Fn(&'a JobRecord) -> [&'a DirStats; N],
) -> Total {
    let mut sum = Total::default();
    let mut times: Vec<(Nanos, Nanos)> = Vec::new();
    for job in jobs {
        let sides = of(job);
        let mut runtime = 0;
        for d in sides.iter().filter(|d| d.ios > 0 || d.bytes > 0) {
            sum.ios += d.ios;
            sum.bytes += d.bytes;
            runtime = runtime.max(d.runtime);
        }
        if runtime > 0 {
            let length = runtime.max(job.ended.saturating_sub(job.began));
            times.push((job.began, job.began.saturating_add(length)));
        }
    }
    times.sort_unstable();
    let mut until = 0;
    for (from, to) in times {
        sum.span += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    sum
}

/// Sets when each job of a fio run began. fio does not print this: a job with `stonewall` begins after all before it,
/// the others begin with the job before.
pub fn place_in_time(jobs: &mut [JobRecord]) {
    let (mut began, mut latest): (Nanos, Nanos) = (0, 0);
    for job in jobs {
        let waits = ["stonewall", "wait_for_previous"]
            .iter()
            .any(|o| job.options.get(*o).is_some_and(|v| v != "0"));
        if waits && job.subjob == 0 {
            began = latest;
        }
        (job.began, job.ended) = (began, began.saturating_add(job.runtime));
        latest = latest.max(job.ended);
    }
}

/// Count, minimum, maximum, mean and variance of a stream of numbers, mergeable (Chan et al. 1979).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Numbers seen.
    pub n: u64,
    /// Smallest (0 when none).
    pub min: f64,
    /// Largest (0 when none).
    pub max: f64,
    /// Arithmetic mean (0 when none).
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub m2: f64,
}

impl Moments {
    /// Takes one number.
    pub fn add(&mut self, x: f64) {
        self.n += 1;
        if self.n == 1 {
            (self.min, self.max) = (x, x);
        } else {
            self.min = self.min.min(x);
            self.max = self.max.max(x);
        }
        let delta = x - self.mean;
        self.mean += delta / self.n as f64;
        self.m2 += delta * (x - self.mean);
    }

    /// Sample standard deviation, 0 for fewer than two numbers.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        if self.n < 2 { 0.0 } else { (self.m2 / (self.n - 1) as f64).sqrt() }
    }

    /// Adds another stream.
    pub fn merge(&mut self, other: &Moments) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            *self = *other;
            return;
        }
        let (a, b) = (self.n as f64, other.n as f64);
        let delta = other.mean - self.mean;
        self.mean += delta * b / (a + b);
        self.m2 += other.m2 + delta * delta * a * b / (a + b);
        self.n += other.n;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// The device's side of a trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceStats {
    /// Commands completed, by read, write, discard, flush.
    pub commands: [u64; 4],
    /// Bytes transferred, by read, write, discard.
    pub bytes: [Bytes; 3],
    /// Bios merged into requests, by read, write, discard.
    pub merges: [u64; 3],
    /// Time with at least one command in flight, as `/proc/diskstats` counts it.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merged_moments_are_those_of_the_joined_stream(
            a in proptest::collection::vec(-1e6f64..1e6, 0..40),
            b in proptest::collection::vec(-1e6f64..1e6, 0..40),
        ) {
            let of = |v: &[f64]| { let mut m = Moments::default(); v.iter().for_each(|x| m.add(*x)); m };
            let joined = of(&[a.clone(), b.clone()].concat());
            let mut merged = of(&a);
            merged.merge(&of(&b));
            prop_assert_eq!(merged.n, joined.n);
            prop_assert!((merged.mean - joined.mean).abs() < 1e-6);
            prop_assert!((merged.stddev() - joined.stddev()).abs() < 1e-3);
            prop_assert_eq!((merged.min, merged.max), (joined.min, joined.max));
        }
    }

    #[test]
    fn a_task_that_only_waits_takes_no_part_in_shares() {
        let task = |ios: u64| {
            let calls = [(TASK_CALLS.to_string(), "7".to_string())];
            let moved =
                DirStats { ios, bytes: ios * 4096, runtime: 1_000_000_000, ..DirStats::default() };
            JobRecord { write: moved, options: calls.into(), ..JobRecord::default() }
        };
        assert_eq!(rates(&[task(0), task(5), task(5)]), [20_480.0, 20_480.0]);
        // A fio job that moved nothing was starved.
        let starved = JobRecord { options: Default::default(), ..task(0) };
        assert_eq!(rates(&[starved, task(5)]), [0.0, 20_480.0]);
    }

    #[test]
    fn a_total_is_over_the_time_in_which_any_process_ran() {
        let job = |began: Nanos, seconds: u64, bytes| {
            let read =
                DirStats { ios: 1, bytes, runtime: seconds * 1_000_000_000, ..DirStats::default() };
            JobRecord { read, began: began * 1_000_000_000, ..JobRecord::default() }
        };
        let of =
            |jobs: &[JobRecord]| total(jobs.iter(), |j| [&j.read, &j.write]).bytes_per_second();
        assert_eq!(of(&[job(0, 1, 500), job(1, 1, 400)]), 450.0, "one after the other");
        assert_eq!(of(&[job(0, 2, 500), job(0, 2, 400)]), 450.0, "together");
        assert_eq!(of(&[job(0, 2, 500), job(1, 2, 400)]), 300.0, "in part");
        assert_eq!(of(&[job(0, 1, 500), job(9, 1, 400)]), 450.0, "nobody ran in between");
        assert_eq!(of(&[]), 0.0);
    }

    #[test]
    fn who_only_trims_takes_no_share_of_what_is_moved() {
        let side = |ios| DirStats {
            ios,
            bytes: 4096 * ios,
            runtime: 1_000_000_000,
            ..DirStats::default()
        };
        let of =
            |read, trim| JobRecord { read: side(read), trim: side(trim), ..JobRecord::default() };
        assert_eq!(rates(&[of(2, 0), of(0, 500), of(1, 500)]), [8192.0, 4096.0]);
        assert_eq!(rates(&[of(2, 0), of(0, 0)]), [8192.0, 0.0], "who got nothing counts");
        assert_eq!(rates(&[of(0, 5), of(0, 4)]), [5.0, 4.0], "trims alone");
    }

    #[test]
    fn jobs_behind_a_stonewall_begin_when_those_before_have_ended() {
        let job = |option: &str, value: &str, runtime| JobRecord {
            options: [(option.to_string(), value.to_string())].into(),
            runtime,
            ..JobRecord::default()
        };
        let mut jobs =
            [job("a", "1", 5), job("stonewall", "0", 7), job("stonewall", "", 2), job("a", "1", 1)];
        place_in_time(&mut jobs);
        assert_eq!(jobs.map(|j| (j.began, j.ended)), [(0, 5), (0, 7), (7, 9), (7, 8)]);
    }

    #[test]
    fn a_record_survives_json() {
        let mut r = Record { schema: SCHEMA, ..Record::default() };
        r.jobs.push(JobRecord { name: "r".into(), ..JobRecord::default() });
        r.jobs[0].read.clat.record(12_345);
        r.status = Status::Invalid("cached".into());
        let text = serde_json::to_string(&r).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), r);
    }
}
