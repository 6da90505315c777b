//! fio's JSON output to records.

use std::collections::BTreeMap;

use iosched_experiment::record::{
    BackendKind, DeviceStats, DirStats, IMPORT, JobRecord, Metric, Moments, Record, SCHEMA, Series,
    Status, TrialId, Warning, place_in_time,
};

use iosched_types::{CpuTime, Nanos};

use super::types::{Direction, FioJob, FioOutput, LatencyStats};
use crate::hist::from_bins;

/// One record of a fio run. A document that we wrote carries its trial, which is taken as it is as long as the jobs
/// beside it are still those that were written.
///
/// Otherwise `trial` gives the facts that are not in the file (device, scheduler, repetition).
///
/// An empty scheduler or workload in `trial` is filled from the `ioscheduler` option and the first job's
/// name. Completion latencies come from the bins of `json+`; a plain `json` file has percentiles
/// only, which are kept as metrics (`read.clat.p99`, …) because a histogram cannot be made of them.
#[must_use]
pub fn from_fio(output: &FioOutput, mut trial: TrialId) -> Record {
    if let Some(kept) = &output.iosched {
        if kept.jobs.len() == output.jobs.len()
            && kept.jobs.iter().zip(&output.jobs).all(|(ours, fios)| unchanged(ours, fios))
        {
            return (**kept).clone();
        }
        trial.clone_from(&kept.trial);
    }
    let option = |name: &str| {
        let of_job = output.jobs.iter().find_map(|j| j.options.get(name));
        of_job.or_else(|| output.global.get(name)).cloned()
    };
    if trial.scheduler.is_empty() {
        trial.scheduler = option("ioscheduler").unwrap_or_else(|| "unknown".into());
    }
    if trial.workload.is_empty() {
        trial.workload = output.jobs.first().map(|j| j.jobname.clone()).unwrap_or_default();
    }
    if trial.device.is_empty() {
        trial.device = output.disk_util.first().map(|d| d.name.clone()).unwrap_or_default();
    }
    let mut record = Record {
        schema: SCHEMA,
        trial,
        backend: BackendKind::Imported,
        provenance: BTreeMap::from([
            ("tool".to_string(), output.version.clone()),
            ("timestamp".to_string(), output.timestamp.to_string()),
        ]),
        elapsed: output
            .jobs
            .iter()
            .map(|j| j.elapsed)
            .max()
            .unwrap_or(0)
            .saturating_mul(1_000_000_000),
        ..Record::default()
    };
    record.device = device(output, record.elapsed);
    let mut seen = BTreeMap::<String, u32>::new();
    for (i, j) in output.jobs.iter().enumerate() {
        let subjob = seen.entry(j.jobname.clone()).or_default();
        record.jobs.push(job(output, j, *subjob, i as u32));
        *subjob += 1;
        if j.error != 0 {
            record.status =
                Status::Failed(format!("fio: job {} ended with error {}", j.jobname, j.error));
        }
        steady_state(j, &mut record);
    }
    without_bins(&output.jobs, &mut record);
    place_in_time(&mut record.jobs);
    record
}

/// Whether fio's form of a job still says what the job says.
fn unchanged(ours: &JobRecord, fios: &FioJob) -> bool {
    let sides = [(&ours.read, &fios.read), (&ours.write, &fios.write), (&ours.trim, &fios.trim)];
    ours.name == fios.jobname
        && sides.iter().all(|(a, b)| {
            (a.ios, a.bytes, a.runtime / 1_000_000) == (b.total_ios, b.io_bytes, b.runtime)
                && a.clat.count() == b.clat_ns.n
                && a.clat.iter().eq(b
                    .clat_ns
                    .bins
                    .0
                    .iter()
                    .map(|(v, n)| (v.parse().unwrap_or(0), *n)))
        })
}

fn job(output: &FioOutput, j: &FioJob, subjob: u32, index: u32) -> JobRecord {
    let mut options: BTreeMap<String, String> = output.global.0.iter().cloned().collect();
    options.extend(j.options.0.iter().cloned());
    let apart = j.read.total_ios.saturating_add(j.write.total_ios).saturating_add(j.trim.total_ios);
    let ios = mixed_of(j).map_or(apart, |m| m.total_ios);
    let mut depths = [0; 7];
    for (slot, (_, share)) in depths.iter_mut().zip(&j.iodepth_level.0) {
        *slot = (share / 100.0 * ios as f64).round() as u64;
    }
    // Of a group, fio's job_runtime is the sum over its processes.
    let ran = j.sides().map(|d| d.runtime).max().filter(|ms| *ms > 0);
    let runtime = ran.unwrap_or(j.job_runtime).saturating_mul(1_000_000);
    JobRecord {
        name: j.jobname.clone(),
        subjob,
        group: j.groupid,
        pid: index,
        options,
        read: direction(&j.read),
        write: direction(&j.write),
        trim: direction(&j.trim),
        sync: DirStats {
            ios: j.sync.total_ios,
            clat: histogram(&j.sync.lat_ns),
            lat_hist: histogram(&j.sync.lat_ns),
            ..DirStats::default()
        },
        runtime,
        run_times: run_times(j.job_runtime, runtime),
        began: 0,
        ended: runtime,
        depths,
        cpu: CpuTime {
            user: share(j.usr_cpu, j.job_runtime),
            system: share(j.sys_cpu, j.job_runtime),
            ..CpuTime::default()
        },
        error: (j.error != 0).then(|| format!("error {}", j.error)),
        ask: None,
    }
}

/// fio's sum of the processes' run times, where it is another than that of one process.
fn run_times(job_runtime: u64, runtime: Nanos) -> Nanos {
    let sum = job_runtime.saturating_mul(1_000_000);
    if sum.abs_diff(runtime) < 1_000_000 { 0 } else { sum }
}

/// A percentage of a time in ms, in ns.
fn share(percent: f64, of_ms: u64) -> Nanos {
    (percent / 100.0 * of_ms as f64 * 1e6).max(0.0) as Nanos
}

fn direction(d: &Direction) -> DirStats {
    DirStats {
        ios: d.total_ios,
        bytes: d.io_bytes,
        runtime: d.runtime.saturating_mul(1_000_000),
        slat: moments(&d.slat_ns),
        clat: histogram(&d.clat_ns),
        lat: moments(&d.lat_ns),
        lat_hist: histogram(&d.lat_ns),
        bw: samples(d.bw_samples, d.bw_min, d.bw_max, d.bw_mean, d.bw_dev),
        iops: samples(d.iops_samples, d.iops_min, d.iops_max, d.iops_mean, d.iops_stddev),
    }
}

fn samples(n: u64, min: u64, max: u64, mean: f64, stddev: f64) -> Moments {
    let m2 = stddev * stddev * n.saturating_sub(1) as f64;
    Moments { n, min: min as f64, max: max as f64, mean, m2 }
}

fn moments(s: &LatencyStats) -> Moments {
    samples(s.n, s.min, s.max, s.mean, s.stddev)
}

fn histogram(s: &LatencyStats) -> iosched_types::LatencyHistogram {
    let bins = s.bins.0.iter().filter_map(|(v, n)| Some((v.parse().ok()?, *n)));
    if s.bins.is_empty() {
        return iosched_types::LatencyHistogram::default();
    }
    from_bins(bins, s.min, s.max, s.mean, s.stddev).unwrap_or_default()
}

/// Figures that no histogram gives: latencies of files without bins, and what was measured of all directions as one. They
/// are those of the whole trial, or of each job where there are several.
fn without_bins(jobs: &[FioJob], record: &mut Record) {
    let mut names: Vec<&str> = Vec::new();
    for j in jobs {
        if !names.contains(&j.jobname.as_str()) {
            names.push(&j.jobname);
        }
    }
    mixed_rates("", &jobs.iter().collect::<Vec<_>>(), &mut record.metrics);
    for name in &names {
        let jobs: Vec<&FioJob> = jobs.iter().filter(|j| j.jobname == *name).collect();
        let prefix = if names.len() > 1 { format!("job/{name}/") } else { String::new() };
        if names.len() > 1 {
            mixed_rates(&prefix, &jobs, &mut record.metrics);
        }
        let apart = latencies(&prefix, &jobs, &mut record.metrics);
        if apart > 1 {
            record.warnings.push(Warning {
                code: IMPORT.into(),
                message: format!(
                    "job {name}: percentiles of {apart} processes cannot be put together: their means are used"
                ),
                advice: "--output-format=json+ has the whole distribution, group_reporting that of all".into(),
            });
        }
    }
}

fn metric(name: String, value: f64, unit: &str, higher: bool, metrics: &mut Vec<Metric>) {
    if value.is_finite() {
        let unit = unit.into();
        metrics.push(Metric {
            name,
            value,
            unit,
            higher_is_better: Some(higher),
            ..Metric::default()
        });
    }
}

/// What a job measured of all directions as one, where it has nothing else.
fn mixed_of(j: &FioJob) -> Option<&Direction> {
    let apart = [&j.read, &j.write, &j.trim].iter().any(|d| d.total_ios > 0);
    j.mixed.as_deref().filter(|m| !apart && m.total_ios > 0)
}

/// `mixed.iops` and `mixed.bw` of jobs that ran together.
fn mixed_rates(prefix: &str, jobs: &[&FioJob], metrics: &mut Vec<Metric>) {
    let all: Vec<&Direction> = jobs.iter().filter_map(|j| mixed_of(j)).collect();
    let Some(ms) = all.iter().map(|d| d.runtime).max().filter(|ms| *ms > 0) else { return };
    let rate = |of: fn(&Direction) -> u64| {
        all.iter().map(|d| of(d) as f64).sum::<f64>() * 1000.0 / ms as f64
    };
    metric(format!("{prefix}mixed.iops"), rate(|d| d.total_ios), "1/s", true, metrics);
    metric(format!("{prefix}mixed.bw"), rate(|d| d.io_bytes), "B/s", true, metrics);
}

/// Latencies of the processes of a job that have no bins: their mean, and the percentiles of a single one. Returns of how
/// many processes percentiles were there.
fn latencies(prefix: &str, jobs: &[&FioJob], metrics: &mut Vec<Metric>) -> usize {
    type Table = fn(&FioJob) -> Option<&LatencyStats>;
    let tables: [(&str, Table); 9] = [
        ("read.clat", |j| Some(&j.read.clat_ns)),
        ("write.clat", |j| Some(&j.write.clat_ns)),
        ("trim.clat", |j| Some(&j.trim.clat_ns)),
        ("read.lat", |j| Some(&j.read.lat_ns)),
        ("write.lat", |j| Some(&j.write.lat_ns)),
        ("trim.lat", |j| Some(&j.trim.lat_ns)),
        ("sync.lat", |j| Some(&j.sync.lat_ns)),
        ("mixed.clat", |j| mixed_of(j).map(|d| &d.clat_ns)),
        ("mixed.lat", |j| mixed_of(j).map(|d| &d.lat_ns)),
    ];
    let mut apart = 0;
    for (name, table) in tables {
        // Mixed ones have no histogram to stand in, so theirs are taken as fio printed them.
        let bare = |t: &LatencyStats| t.n > 0 && (t.bins.is_empty() || name.starts_with("mixed"));
        let all: Vec<&LatencyStats> =
            jobs.iter().filter_map(|j| table(j)).filter(|t| bare(t)).collect();
        // Without `lat_percentiles=1` fio prints of total latencies no more than the mean. It is all there is when
        // completion latencies are switched off.
        let beside = name.strip_suffix(".lat").map(|side| format!("{side}.clat"));
        let beside = tables.iter().find(|t| beside.as_deref() == Some(t.0));
        let total = beside.is_some_and(|b| jobs.iter().any(|j| b.1(j).is_some_and(|t| t.n > 0)));
        if all.is_empty() || (total && all.iter().all(|t| t.percentile.is_empty())) {
            continue;
        }
        let n: f64 = all.iter().map(|t| t.n as f64).sum();
        let mean = all.iter().map(|t| t.mean * t.n as f64).sum::<f64>() / n;
        metric(format!("{prefix}{name}.mean"), mean, "ns", false, metrics);
        let [table] = all[..] else {
            apart = apart.max(all.iter().filter(|t| !t.percentile.is_empty()).count());
            continue;
        };
        for (p, v) in &table.percentile.0 {
            if let Ok(p) = p.parse::<f64>() {
                // fio prints the middles of its bins, which may lie beyond what was measured.
                let most = if table.max > 0 { table.max } else { u64::MAX };
                let v = (*v).max(table.min).min(most);
                metric(format!("{prefix}{name}.p{p}"), v as f64, "ns", false, metrics);
            }
        }
    }
    apart
}

fn steady_state(j: &FioJob, record: &mut Record) {
    let Some(ss) = &j.steadystate else { return };
    for (name, unit, values) in [("iops", "1/s", &ss.data.iops), ("throughput", "B/s", &ss.data.bw)]
    {
        if !values.is_empty() {
            record.series.push(Series {
                name: format!("job/{}/{name}", j.jobname),
                unit: unit.into(),
                step: 1_000_000_000,
                values: values.clone(),
            });
        }
    }
    if ss.attained == 0 {
        record.warnings.push(Warning {
            code: "unsteady".into(),
            message: format!(
                "job {} did not reach the steady state asked for ({})",
                j.jobname, ss.ss
            ),
            advice: "precondition the device or run longer".into(),
        });
    }
}

/// fio tells the share of the time in percent.
fn device(output: &FioOutput, elapsed: Nanos) -> DeviceStats {
    let Some(d) = output.disk_util.first() else { return DeviceStats::default() };
    DeviceStats {
        commands: [d.read_ios, d.write_ios, 0, 0],
        merges: [d.read_merges, d.write_merges, 0],
        busy: (elapsed as f64 * d.util.clamp(0.0, 100.0) / 100.0) as Nanos,
        weighted: d.in_queue.saturating_mul(1_000_000),
        ..DeviceStats::default()
    }
}
