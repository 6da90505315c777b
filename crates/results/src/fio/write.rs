//! Records to fio's JSON output.

use std::collections::BTreeMap;

use iosched_experiment::record::{DirStats, JobRecord, Moments, Record, Status};
use iosched_types::LatencyHistogram;

use super::types::{Direction, DiskUtil, FioJob, FioOutput, LatencyStats, Ordered, Sync};

/// fio's default percentile list.
const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
/// Upper ends of fio's latency classes in their unit.
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// The records as `fio --output-format=json+` prints them: one document per trial, one behind the other, as several
/// runs of fio into one file leave them. Each names its trial under `iosched`.
///
/// # Errors
/// A number that JSON cannot hold.
pub fn fio_json(records: &[Record]) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    for r in records {
        out.push_str(&serde_json::to_string_pretty(&fio_output(r))?);
        out.push('\n');
    }
    Ok(out)
}

/// One record as fio prints it; serialised directly it keeps fio's order of the fields.
///
/// The time stamps are 0 unless the record's provenance has `timestamp` (seconds since the epoch): the simulator
/// knows no wall clock. fio's own counters that no record holds (page faults, context switches) are 0; the job options
/// come from the record.
#[must_use]
pub fn fio_output(record: &Record) -> FioOutput {
    let timestamp =
        record.provenance.get("timestamp").and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
    let shares = group_bandwidth(record);
    let kept = Record { series: Vec::new(), dispatches: Vec::new(), ..record.clone() };
    FioOutput {
        version: "fio-3.33".into(),
        timestamp,
        timestamp_ms: timestamp.saturating_mul(1000),
        time: clock_text(timestamp),
        jobs: record.jobs.iter().map(|j| job(record, j, &shares)).collect(),
        disk_util: vec![disk(record)],
        iosched: Some(Box::new(kept)),
        ..FioOutput::default()
    }
}

/// `Sat Nov 21 21:14:29 2026` in UTC.
fn clock_text(timestamp: u64) -> String {
    i64::try_from(timestamp)
        .ok()
        .and_then(|t| jiff::Timestamp::from_second(t).ok())
        .map(|t| t.to_zoned(jiff::tz::TimeZone::UTC).strftime("%a %b %e %H:%M:%S %Y").to_string())
        .unwrap_or_default()
}

type Shares = BTreeMap<(u32, usize), f64>;

fn dirs(j: &JobRecord) -> [&DirStats; 3] {
    [&j.read, &j.write, &j.trim]
}

/// Sum of the mean bandwidth samples of each group and direction. fio computes `bw_agg` from this.
fn group_bandwidth(record: &Record) -> Shares {
    let mut sums = Shares::new();
    for j in &record.jobs {
        for (i, d) in dirs(j).into_iter().enumerate() {
            *sums.entry((j.group, i)).or_default() += d.bw.mean;
        }
    }
    sums
}

fn job(record: &Record, j: &JobRecord, shares: &Shares) -> FioJob {
    let percentiles = percentiles(j);
    let of = |i: usize| {
        let share = shares.get(&(j.group, i)).copied().unwrap_or(0.0);
        direction(dirs(j)[i], share, &percentiles)
    };
    // Where nobody says which of them failed, all have.
    let known = record.jobs.iter().any(|j| j.error.is_some());
    let failed = j.error.is_some() || !known && matches!(record.status, Status::Failed(_));
    let (latency_ns, latency_us, latency_ms) = latency_classes(j);
    FioJob {
        jobname: j.name.clone(),
        groupid: j.group,
        // fio prints an errno; a record keeps the reason in words, so EIO stands for all of them.
        error: if failed { 5 } else { 0 },
        elapsed: record.elapsed.div_ceil(1_000_000_000),
        options: Ordered(j.options.iter().map(|(k, v)| (k.clone(), v.clone())).collect()),
        read: of(0),
        write: of(1),
        trim: of(2),
        sync: Sync { total_ios: syncs(j), lat_ns: distribution(j.sync.latency(), &percentiles) },
        job_runtime: j.processes_ran() / 1_000_000,
        usr_cpu: percent_of(j.cpu.user, j.processes_ran()),
        sys_cpu: percent_of(j.cpu.system, j.processes_ran()),
        iodepth_level: percent(&DEPTHS, &j.depths),
        // Submission and completion batches are not recorded: a record's I/Os go one by one.
        iodepth_submit: one_by_one(j),
        iodepth_complete: one_by_one(j),
        latency_ns,
        latency_us,
        latency_ms,
        latency_depth: j.options.get("iodepth").and_then(|d| d.parse().ok()).unwrap_or(1),
        latency_percentile: 100.0,
        ..FioJob::default()
    }
}

fn percent_of(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { six(part as f64 * 100.0 / whole as f64) }
}

/// The percentiles a job asked for (`percentile_list`).
fn percentiles(j: &JobRecord) -> Vec<f64> {
    let list = j.options.get("percentile_list").map(|l| l.split(':').map(str::parse).collect());
    match list {
        Some(Ok(list)) => list,
        _ => PERCENTILES.to_vec(),
    }
}

fn six(x: f64) -> f64 {
    if x.is_finite() { (x * 1e6).round() / 1e6 } else { 0.0 }
}

fn whole(x: f64) -> u64 {
    if x.is_finite() && x > 0.0 { x as u64 } else { 0 }
}

fn percent(names: &[&str], counts: &[u64]) -> Ordered<f64> {
    let total: u64 = counts.iter().sum();
    let share = |n: u64| if total == 0 { 0.0 } else { six(n as f64 * 100.0 / total as f64) };
    Ordered(names.iter().zip(counts).map(|(k, n)| ((*k).to_string(), share(*n))).collect())
}

/// fio has the latencies of every sync, and counts those by `fsync` only.
fn syncs(j: &JobRecord) -> u64 {
    let given = |name| j.options.get(name).is_some_and(|v| v != "0");
    if given("fdatasync") && !given("fsync") { 0 } else { j.sync.ios }
}

fn one_by_one(j: &JobRecord) -> Ordered<f64> {
    let ios = dirs(j).iter().map(|d| d.ios).sum();
    percent(&BATCHES, &[0, ios, 0, 0, 0, 0, 0])
}

fn direction(d: &DirStats, group_bw: f64, percentiles: &[f64]) -> Direction {
    Direction {
        io_bytes: d.bytes,
        io_kbytes: d.bytes >> 10,
        bw_bytes: whole(d.bytes_per_second()),
        bw: whole(d.bytes_per_second() / 1024.0),
        iops: six(d.iops()),
        runtime: d.runtime / 1_000_000,
        total_ios: d.ios,
        short_ios: 0,
        drop_ios: 0,
        slat_ns: moments(&d.slat),
        clat_ns: distribution(&d.clat, percentiles),
        lat_ns: match d.has_total() {
            true => distribution(&d.lat_hist, percentiles),
            false => moments(&d.lat),
        },
        bw_min: whole(d.bw.min),
        bw_max: whole(d.bw.max),
        bw_agg: if group_bw > 0.0 { six(d.bw.mean * 100.0 / group_bw) } else { 0.0 },
        bw_mean: six(d.bw.mean),
        bw_dev: six(d.bw.stddev()),
        bw_samples: d.bw.n,
        iops_min: whole(d.iops.min),
        iops_max: whole(d.iops.max),
        iops_mean: six(d.iops.mean),
        iops_stddev: six(d.iops.stddev()),
        iops_samples: d.iops.n,
        ..Direction::default()
    }
}

fn moments(m: &Moments) -> LatencyStats {
    LatencyStats {
        min: whole(m.min),
        max: whole(m.max),
        mean: six(m.mean),
        stddev: six(m.stddev()),
        n: m.n,
        ..LatencyStats::default()
    }
}

fn distribution(h: &LatencyHistogram, percentiles: &[f64]) -> LatencyStats {
    let n = h.count();
    // fio leaves percentiles and bins out of an empty distribution.
    let percentile = if n == 0 {
        Vec::new()
    } else {
        percentiles.iter().map(|p| (format!("{p:.6}"), h.bin_of_percentile(*p))).collect()
    };
    LatencyStats {
        min: h.min(),
        max: h.max(),
        mean: six(h.mean()),
        stddev: six(h.stddev()),
        n,
        percentile: Ordered(percentile),
        bins: Ordered(h.iter().map(|(v, n)| (v.to_string(), n)).collect()),
    }
}

/// fio's `lat (nsec)`, `(usec)` and `(msec)` tables: percent of all I/Os of the job in each class.
fn latency_classes(j: &JobRecord) -> (Ordered<f64>, Ordered<f64>, Ordered<f64>) {
    let (mut ns, mut us, mut ms) = ([0u64; 10], [0u64; 10], [0u64; 12]);
    for d in dirs(j) {
        for (value, n) in d.clat.iter() {
            let class = |v: u64| CLASSES.iter().position(|c| v < *c);
            if let Some(i) = class(value) {
                ns[i] += n;
            } else if let Some(i) = class(value / 1_000) {
                us[i] += n;
            } else if let Some(i) = class(value / 1_000_000) {
                ms[i] += n;
            } else {
                ms[if value < 2_000_000_000 { 10 } else { 11 }] += n;
            }
        }
    }
    let total: u64 = ns.iter().chain(&us).chain(&ms).sum();
    let table = |counts: &[u64]| {
        let name = |i: usize| match i {
            10 => "2000".to_string(),
            11 => ">=2000".to_string(),
            i => CLASSES[i].to_string(),
        };
        let share = |n: u64| if total == 0 { 0.0 } else { six(n as f64 * 100.0 / total as f64) };
        Ordered(counts.iter().enumerate().map(|(i, n)| (name(i), share(*n))).collect())
    };
    (table(&ns), table(&us), table(&ms))
}

fn disk(record: &Record) -> DiskUtil {
    let d = &record.device;
    let busy =
        if record.elapsed == 0 { 0.0 } else { d.busy as f64 * 100.0 / record.elapsed as f64 };
    // The record has one weighted sum. It is split into fio's per-direction ticks by command count.
    let commands: u64 = d.commands.iter().sum();
    let ticks = |n: u64| {
        if commands == 0 { 0 } else { whole(d.weighted as f64 / 1e6 * n as f64 / commands as f64) }
    };
    DiskUtil {
        name: record.trial.device.clone(),
        read_ios: d.commands[0],
        write_ios: d.commands[1],
        read_merges: d.merges[0],
        write_merges: d.merges[1],
        read_ticks: ticks(d.commands[0]),
        write_ticks: ticks(d.commands[1]),
        in_queue: d.weighted / 1_000_000,
        util: six(busy.min(100.0)),
    }
}
