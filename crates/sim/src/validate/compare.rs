//! Our figures beside the kernel's.

use std::collections::BTreeMap;

use iosched_experiment::record::{DirStats, JobRecord, total};
use iosched_experiment::{Record, Trial};
use iosched_types::Nanos;
use iosched_types::units::MS;
use iosched_workloads::fio::on_files;
use serde::Serialize;

use super::{Case, TruthDirection, TruthRun, TruthSection};

/// [`Row::set`] of fio jobs whose I/O goes through the page cache.
pub const PAGE_CACHE: &str = "page cache";

/// One figure beside the kernel's.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Device.
    pub device: String,
    /// Job.
    pub job: String,
    /// File system, where there is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fs: String,
    /// The part of the measurements that it belongs to.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub set: String,
    /// `name#clone`, or `*` for the whole run.
    pub section: String,
    /// `read`, `write`, or `*` for both.
    pub op: &'static str,
    /// Scheduler.
    pub scheduler: String,
    /// `iops` (1/s), `bw` (KiB/s), `clat_mean`, `clat_p50`, `clat_p99` (µs). Of programs: `elapsed`, `op_mean`, `op_p99`
    /// (µs), `requests`, `bytes`, `flushes`, `commits`.
    pub metric: &'static str,
    /// What the kernel did, mean of the repetitions.
    pub kernel: f64,
    /// What we did.
    pub ours: f64,
    /// (ours − kernel) / kernel.
    pub error: f64,
}

struct Key {
    section: String,
    op: &'static str,
    metric: &'static str,
}

fn of_direction(d: &TruthDirection) -> [(&'static str, f64); 5] {
    [
        ("iops", d.iops),
        ("bw", d.bw_kib),
        ("clat_mean", d.clat_mean_us),
        ("clat_p50", d.clat_p50_us),
        ("clat_p99", d.clat_p99_us),
    ]
}

/// Section labels `name#i`, counted per name.
fn labels<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen: Vec<(&str, u32)> = Vec::new();
    names
        .map(|n| match seen.iter_mut().find(|(s, _)| *s == n) {
            Some((_, k)) => {
                *k += 1;
                format!("{n}#{k}")
            }
            None => {
                seen.push((n, 0));
                format!("{n}#0")
            }
        })
        .collect()
}

/// The kernel's figures. Its results do not say when a process began; ours tells that for the total.
fn kernel_figures(run: &TruthRun, ours: Option<&Record>) -> Vec<(Key, f64)> {
    let mut out = Vec::new();
    let mut jobs = Vec::new();
    let names = labels(run.sections.iter().map(|s| s.job.as_str()));
    for (i, (section, s)) in names.into_iter().zip(&run.sections).enumerate() {
        for (op, d) in [("read", &s.read), ("write", &s.write)] {
            let Some(d) = d else { continue };
            for (metric, v) in of_direction(d) {
                out.push((Key { section: section.clone(), op, metric }, v));
            }
        }
        let began = ours.and_then(|r| r.jobs.get(i)).map_or(0, |j| j.began);
        jobs.push(moved(s, began));
    }
    let all = together(&jobs);
    out.push((Key { section: "*".into(), op: "*", metric: "iops" }, all[0]));
    out.push((Key { section: "*".into(), op: "*", metric: "bw" }, all[1]));
    out
}

/// What a direction did in so many ms, by the numbers that fio prints: its bandwidth is whole KiB/s.
fn printed(ios: u64, bw_kib: f64, ms: u64) -> DirStats {
    let bytes = (bw_kib * 1024.0 * ms as f64 / 1e3).round() as u64;
    DirStats { ios, bytes, runtime: ms * MS, ..DirStats::default() }
}

/// What a process of the kernel's run moved, over its own time. What the results leave out follows from the rates.
fn moved(s: &TruthSection, began: Nanos) -> JobRecord {
    let whole = s.job_runtime_ms.unwrap_or(0);
    let side = |d: &Option<TruthDirection>| {
        let Some(d) = d else { return DirStats::default() };
        // A rate has two decimals. Where it is not that of the whole run, its time follows from it.
        let by_rate = d.ios.map(|n| n as f64 * 1e3).and_then(|n| {
            let of_whole = (n / whole.max(1) as f64 - d.iops).abs() <= 0.005;
            (!of_whole && d.iops > 0.0).then(|| (n / d.iops).round() as u64)
        });
        let ms = d.runtime_ms.or(by_rate).unwrap_or(whole);
        let ios = d.ios.unwrap_or((d.iops * ms as f64 / 1e3).round() as u64);
        printed(ios, d.bw_kib, ms)
    };
    JobRecord { read: side(&s.read), write: side(&s.write), began, ..JobRecord::default() }
}

/// I/Os and KiB a second of all processes over the time in which any of them ran. The sum of their rates would be more
/// than the device did where they ran one after the other.
fn together(jobs: &[JobRecord]) -> [f64; 2] {
    let all = total(jobs.iter(), |j| [&j.read, &j.write]);
    [all.iops(), all.bytes_per_second() / 1024.0]
}

/// Bandwidth as fio prints it.
fn whole_kib(d: &DirStats) -> f64 {
    (d.bytes_per_second() / 1024.0).floor()
}

fn our_figures(record: &Record) -> Figures {
    let mut out = BTreeMap::new();
    let names = labels(record.jobs.iter().map(|j| j.name.as_str()));
    for (section, j) in names.into_iter().zip(&record.jobs) {
        for (op, d) in [("read", &j.read), ("write", &j.write)] {
            if d.ios == 0 {
                continue;
            }
            let figures = [
                ("iops", d.iops()),
                ("bw", whole_kib(d)),
                ("clat_mean", d.clat.mean() / 1e3),
                ("clat_p50", d.clat.bin_of_percentile(50.0) as f64 / 1e3),
                ("clat_p99", d.clat.bin_of_percentile(99.0) as f64 / 1e3),
            ];
            for (metric, v) in figures {
                out.insert((section.clone(), op, metric), v);
            }
        }
    }
    let side = |d: &DirStats| printed(d.ios, whole_kib(d), d.runtime / MS);
    let moved = |j: &JobRecord| JobRecord {
        read: side(&j.read),
        write: side(&j.write),
        began: j.began,
        ..JobRecord::default()
    };
    let all = together(&record.jobs.iter().map(moved).collect::<Vec<_>>());
    out.insert(("*".into(), "*", "iops"), all[0]);
    out.insert(("*".into(), "*", "bw"), all[1]);
    out
}

type Figures = BTreeMap<(String, &'static str, &'static str), f64>;

/// A run counts as the kernel's run if the errors of its processes' IOPS, summed, are at most this share of all IOPS.
const SAME_RUN: f64 = 0.02;

/// Our figures for one of the kernel's runs, from those with each start of the tag maps. Where one of them is the
/// kernel's run, the kernel's maps began there. Otherwise nothing is known about it, and the mean counts.
fn of_run(kernel: &[(Key, f64)], starts: &[Figures]) -> Figures {
    let iops = |key: &&(Key, f64)| key.0.metric == "iops" && key.0.section != "*";
    let total: f64 = kernel.iter().filter(iops).map(|(_, v)| v).sum();
    let distance = |ours: &Figures| {
        let off = |(key, kernel): &(Key, f64)| {
            let id = (key.section.clone(), key.op, key.metric);
            (ours.get(&id).copied().unwrap_or(0.0) - kernel).abs()
        };
        kernel.iter().filter(iops).map(off).sum::<f64>()
    };
    let nearest = starts.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    match nearest {
        Some(one) if starts.len() == 1 || distance(one) <= SAME_RUN * total => one.clone(),
        _ => {
            let mut mean = Figures::new();
            for (id, v) in starts.iter().flatten() {
                *mean.entry(id.clone()).or_default() += v / starts.len() as f64;
            }
            mean
        }
    }
}

/// Compares our records with the kernel's runs of a case. Each run has as many records, one after the other, as there
/// are starts of the tag maps to try. Runs that the kernel itself did not end are left out.
#[must_use]
pub fn compare(case: &Case<'_>, records: &[Record]) -> Vec<Row> {
    let each = (records.len() / case.runs.len().max(1)).max(1);
    let runs = || case.runs.iter().enumerate().filter(|(_, r)| !r.ended_in_bug());
    let kernels: Vec<_> = runs().map(|(i, r)| kernel_figures(r, records.get(i * each))).collect();
    let Some(first) = kernels.first() else { return Vec::new() };
    let all: Vec<Figures> = records.iter().map(our_figures).collect();
    let starts = runs().filter_map(|(i, _)| all.chunks(each).nth(i));
    let ours: Vec<Figures> = kernels.iter().zip(starts).map(|(k, s)| of_run(k, s)).collect();
    let n = kernels.len() as f64;
    let cached = |t: &Vec<Trial>| t.first().is_some_and(|t| on_files::needed(t.jobs()));
    let set = if case.trials.as_ref().is_ok_and(cached) { PAGE_CACHE } else { "" };
    first
        .iter()
        .enumerate()
        .map(|(i, (key, _))| {
            let kernel = kernels.iter().filter_map(|k| k.get(i)).map(|(_, v)| v).sum::<f64>() / n;
            let id = (key.section.clone(), key.op, key.metric);
            let sum: f64 = ours.iter().filter_map(|o| o.get(&id)).sum();
            let ours = sum / ours.len().max(1) as f64;
            let error = if kernel == 0.0 { 0.0 } else { (ours - kernel) / kernel };
            Row {
                device: case.device.into(),
                job: case.job.into(),
                fs: String::new(),
                set: set.into(),
                section: key.section.clone(),
                op: key.op,
                scheduler: case.scheduler.into(),
                metric: key.metric,
                kernel,
                ours,
                error,
            }
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    fn kernel(iops: [f64; 2]) -> Vec<(Key, f64)> {
        let process = |(i, v)| (Key { section: format!("w#{i}"), op: "write", metric: "iops" }, v);
        let mut all: Vec<_> = iops.into_iter().enumerate().map(process).collect();
        all.push((Key { section: "*".into(), op: "*", metric: "iops" }, iops[0] + iops[1]));
        all
    }

    fn figures(iops: [f64; 2]) -> Figures {
        kernel(iops).into_iter().map(|(k, v)| ((k.section, k.op, k.metric), v)).collect()
    }

    /// One process after the other: 100 I/Os in each of two seconds are 100 a second, on both sides.
    #[test]
    fn the_total_is_over_the_time_in_which_any_ran() {
        let side = DirStats { ios: 100, bytes: 409_600, runtime: 1000 * MS, ..DirStats::default() };
        let job = |began| JobRecord {
            name: "r".into(),
            read: side.clone(),
            began,
            ..JobRecord::default()
        };
        let record = Record { jobs: vec![job(0), job(1000 * MS)], ..Record::default() };
        let ours = our_figures(&record);
        assert_eq!(ours[&("*".to_string(), "*", "iops")], 100.0);
        let section = r#"{"job":"r","job_runtime_ms":1000,"read":{"iops":100.0,"bw_kib":400}}"#;
        let run = format!(
            r#"{{"device":"d","job":"j","scheduler":"none","repetition":1,"sections":[{section},{section}]}}"#
        );
        let kernel = kernel_figures(&serde_json::from_str(&run).unwrap(), Some(&record));
        let all: Vec<f64> =
            kernel.iter().filter(|(k, _)| k.section == "*").map(|(_, v)| *v).collect();
        assert_eq!(all, [100.0, 400.0]);
    }

    /// 20 I/Os of 4 KiB in 40.1 s are 1.99 KiB/s; fio prints 1.
    #[test]
    fn bandwidths_are_whole_kib_as_fio_prints_them() {
        let side = DirStats { ios: 20, bytes: 81_920, runtime: 40_100 * MS, ..DirStats::default() };
        let job = JobRecord { name: "r".into(), read: side, ..JobRecord::default() };
        let ours = our_figures(&Record { jobs: vec![job], ..Record::default() });
        assert_eq!(ours[&("r#0".to_string(), "read", "bw")], 1.0);
    }

    /// A BUG in the middle of a run, and one when its processes exit.
    #[test]
    fn a_run_counts_up_to_the_kernels_bug() {
        let run = |bug: u64| -> super::super::TruthRun {
            let text = format!(
                r#"{{"device":"d","job":"j","scheduler":"bfq","repetition":1,"bug_at_ns":{bug},
                "sections":[{{"job":"r","job_runtime_ms":1000,"read":{{"iops":1.0,"bw_kib":4}}}}]}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let case = |run| Case {
            device: "d",
            job: "j",
            scheduler: "bfq",
            runs: vec![run],
            trials: Err(String::new()),
        };
        let (early, late) = (run(500_000_000), run(1_000_500_000));
        assert!(compare(&case(&early), &[Record::default()]).is_empty());
        assert!(!compare(&case(&late), &[Record::default()]).is_empty());
        let at = |at| crate::validate::LoggedCommand {
            op: iosched_types::Op::Read,
            offset: 0,
            len: 512,
            at,
        };
        let log = vec![at(0), at(499_999_999), at(500_000_000)];
        assert_eq!(early.before_bug(log.clone()), log[..2]);
    }

    /// If a start leads to the kernel's run, the kernel's maps began there. If none does, the mean counts.
    #[test]
    fn a_start_counts_alone_where_it_leads_to_the_run() {
        let starts = [figures([100.0, 0.0]), figures([50.0, 50.0])];
        assert_eq!(of_run(&kernel([50.5, 49.5]), &starts), starts[1]);
        assert_eq!(of_run(&kernel([99.0, 1.0]), &starts), starts[0]);
        assert_eq!(of_run(&kernel([98.0, 2.0]), &starts), figures([75.0, 25.0]));
        assert_eq!(of_run(&kernel([0.0, 100.0]), &starts[..1]), starts[0]);
    }
}
