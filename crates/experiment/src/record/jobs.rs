//! What processes did, each and together.

use std::collections::BTreeMap;

use iosched_types::{Bytes, CpuTime, LatencyHistogram, Nanos};
use serde::{Deserialize, Serialize};

use super::{Ask, Moments};

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
    /// The run times of all processes of a group, added up (fio's `job_runtime`); 0 for a single process.
    #[serde(default, skip_serializing_if = "none")]
    pub run_times: Nanos,
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
    /// What it is run for; throughput where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn none(time: &Nanos) -> bool {
    *time == 0
}

impl JobRecord {
    /// The run times of its processes, added up. fio's shares of core time are shares of this.
    #[must_use]
    pub fn processes_ran(&self) -> Nanos {
        if self.run_times == 0 { self.runtime } else { self.run_times }
    }
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

/// Whether all processes ran together for at least half of the time in which any did. Those that ran one after the other
/// shared nothing, and where most of a process' time is its own, its rate says little of a share. Where a record does not
/// say when a process ended, they may have.
#[must_use]
pub fn together(jobs: &[JobRecord]) -> bool {
    let began = || jobs.iter().map(|j| j.began);
    let ended = || jobs.iter().filter(|j| j.ended > 0).map(|j| j.ended);
    let (Some(first), Some(last)) = (began().min(), began().max()) else { return true };
    let (Some(earliest), Some(latest)) = (ended().min(), ended().max()) else { return true };
    let shared = earliest.saturating_sub(last);
    shared > 0 && shared >= latest.saturating_sub(first) / 2
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
