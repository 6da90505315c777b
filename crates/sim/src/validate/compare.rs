//! Our figures beside the kernel's.

use std::collections::BTreeMap;

use iosched_experiment::Record;
use serde::Serialize;

use super::{Case, TruthDirection, TruthRun};

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

fn kernel_figures(run: &TruthRun) -> Vec<(Key, f64)> {
    let mut out = Vec::new();
    let mut total = (0.0, 0.0);
    let names = labels(run.sections.iter().map(|s| s.job.as_str()));
    for (section, s) in names.into_iter().zip(&run.sections) {
        for (op, d) in [("read", &s.read), ("write", &s.write)] {
            let Some(d) = d else { continue };
            total.0 += d.iops;
            total.1 += d.bw_kib;
            for (metric, v) in of_direction(d) {
                out.push((Key { section: section.clone(), op, metric }, v));
            }
        }
    }
    out.push((Key { section: "*".into(), op: "*", metric: "iops" }, total.0));
    out.push((Key { section: "*".into(), op: "*", metric: "bw" }, total.1));
    out
}

fn our_figures(record: &Record) -> Figures {
    let mut out = BTreeMap::new();
    let mut total = (0.0, 0.0);
    let names = labels(record.jobs.iter().map(|j| j.name.as_str()));
    for (section, j) in names.into_iter().zip(&record.jobs) {
        for (op, d) in [("read", &j.read), ("write", &j.write)] {
            if d.ios == 0 {
                continue;
            }
            total.0 += d.iops();
            total.1 += d.bytes_per_second() / 1024.0;
            let figures = [
                ("iops", d.iops()),
                ("bw", d.bytes_per_second() / 1024.0),
                ("clat_mean", d.clat.mean() / 1e3),
                ("clat_p50", d.clat.bin_of_percentile(50.0) as f64 / 1e3),
                ("clat_p99", d.clat.bin_of_percentile(99.0) as f64 / 1e3),
            ];
            for (metric, v) in figures {
                out.insert((section.clone(), op, metric), v);
            }
        }
    }
    out.insert(("*".into(), "*", "iops"), total.0);
    out.insert(("*".into(), "*", "bw"), total.1);
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
/// are starts of the tag maps to try.
#[must_use]
pub fn compare(case: &Case<'_>, records: &[Record]) -> Vec<Row> {
    let kernels: Vec<_> = case.runs.iter().map(|r| kernel_figures(r)).collect();
    let Some(first) = kernels.first() else { return Vec::new() };
    let each = (records.len() / kernels.len()).max(1);
    let all: Vec<Figures> = records.iter().map(our_figures).collect();
    let ours: Vec<Figures> =
        kernels.iter().zip(all.chunks(each)).map(|(k, starts)| of_run(k, starts)).collect();
    let n = kernels.len() as f64;
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
                set: String::new(),
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
