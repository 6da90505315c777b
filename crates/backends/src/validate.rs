//! Compares the simulator with the kernel: the same trials on the same device model, figure by figure. The difference
//! is the simulator's error.

use std::collections::BTreeMap;

use iosched_experiment::{Record, Status};
use iosched_types::units::three_digits;

/// A confidence interval of some values: lower and upper end.
pub type Interval<'a> = &'a dyn Fn(&[f64]) -> (f64, f64);

/// One figure of one cell, or of the jobs of one name in it, from both.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Workload.
    pub workload: String,
    /// Device.
    pub device: String,
    /// Scheduler family, so that generations of the simulator and the kernel's own meet.
    pub scheduler: String,
    /// The owner: a job's name, or empty for all together.
    pub job: String,
    /// What: `IOPS`, `mean ms`, `p50 ms`, `p99 ms`.
    pub figure: &'static str,
    /// Values of the simulator, one per repetition.
    pub sim: Vec<f64>,
    /// Values of the kernel.
    pub kernel: Vec<f64>,
}

impl Row {
    /// The simulator's error in percent of the kernel's median; `None` without both figures.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        let (s, k) = (median(&self.sim)?, median(&self.kernel)?);
        (k != 0.0).then(|| (s - k) / k * 100.0)
    }
}

/// Rows of all cells that have complete records on either side.
#[must_use]
pub fn rows(sim: &[Record], kernel: &[Record]) -> Vec<Row> {
    type Key = (String, String, usize, String, usize);
    let mut cells: BTreeMap<Key, [Vec<f64>; 2]> = BTreeMap::new();
    for (side, records) in [sim, kernel].into_iter().enumerate() {
        for r in records.iter().filter(|r| r.status == Status::Complete) {
            let family = r.trial.scheduler.split(['@', ' ']).next().unwrap_or_default();
            // Totals hide how jobs share. So the totals of the whole run come first, and each job's figures follow.
            let names = job_names(r);
            let parts =
                std::iter::once("").chain(names.iter().copied().filter(|_| names.len() > 1));
            for (place, job) in parts.enumerate() {
                for (i, value) in figures(r, job).into_iter().enumerate() {
                    let (workload, device) = (r.trial.workload.clone(), r.trial.device.clone());
                    let name = format!("{job}\0{family}");
                    cells.entry((workload, device, place, name, i)).or_default()[side].push(value);
                }
            }
        }
    }
    let row = |((workload, device, _, name, i), [sim, kernel]): (Key, [Vec<f64>; 2])| {
        let (job, scheduler) = name.split_once('\0').unwrap_or(("", &name));
        let (job, scheduler) = (job.to_string(), scheduler.to_string());
        Row { workload, device, scheduler, job, figure: FIGURES[i], sim, kernel }
    };
    cells.into_iter().map(row).collect()
}

/// Names of a record's jobs, each once, in its order.
fn job_names(record: &Record) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for job in &record.jobs {
        if !names.contains(&job.name.as_str()) {
            names.push(&job.name);
        }
    }
    names
}

const FIGURES: [&str; 4] = ["IOPS", "mean ms", "p50 ms", "p99 ms"];

/// Of the jobs of a name, or of all.
fn figures(record: &Record, name: &str) -> [f64; 4] {
    let mut all = iosched_types::LatencyHistogram::default();
    let mut iops = 0.0;
    for job in record.jobs.iter().filter(|j| name.is_empty() || j.name == name) {
        for d in [&job.read, &job.write, &job.trim] {
            all.merge(d.latency());
            iops += d.iops();
        }
    }
    let ms = |p: f64| all.percentile(p) as f64 / 1e6;
    [iops, all.mean() / 1e6, ms(50.0), ms(99.0)]
}

/// How far both agree on the order of the schedulers, per workload, device and figure: Kendall's
/// tau-b, 1 for the same order, −1 for the opposite. Differences below `tie` (a share) count as ties on
/// both sides, so noise between equals is no disagreement. `None` when one side sees only ties.
#[must_use]
pub fn rank_agreement(rows: &[Row], tie: f64) -> Vec<(String, Option<f64>)> {
    let mut groups: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for r in rows {
        if let (Some(s), Some(k)) = (median(&r.sim), median(&r.kernel)) {
            let job = if r.job.is_empty() { String::new() } else { format!("{} ", r.job) };
            let key = format!("{} on {}, {job}{}", r.workload, r.device, r.figure);
            groups.entry(key).or_default().push((s, k));
        }
    }
    groups.into_iter().map(|(name, pairs)| (name, kendall(&pairs, tie))).collect()
}

fn kendall(pairs: &[(f64, f64)], tie: f64) -> Option<f64> {
    let sign = |a: f64, b: f64| {
        if (a - b).abs() <= tie * a.abs().max(b.abs()) { 0.0 } else { (a - b).signum() }
    };
    let (mut both, mut left, mut right) = (0.0, 0.0, 0.0);
    for (i, a) in pairs.iter().enumerate() {
        for b in &pairs[i + 1..] {
            let (s, k) = (sign(a.0, b.0), sign(a.1, b.1));
            both += s * k;
            left += s * s;
            right += k * k;
        }
    }
    (left > 0.0 && right > 0.0).then(|| both / f64::sqrt(left * right))
}

fn median(values: &[f64]) -> Option<f64> {
    let mut v = values.to_vec();
    v.sort_by(f64::total_cmp);
    let mid = v.len() / 2;
    match v.len() {
        0 => None,
        n if n % 2 == 1 => Some(v[mid]),
        _ => Some(f64::midpoint(v[mid - 1], v[mid])),
    }
}

/// A table of at most 80 columns for each workload and device, and for each job of it; `interval` gives the confidence intervals
/// shown.
#[must_use]
pub fn render(rows: &[Row], interval: Interval<'_>) -> String {
    let mut out = String::new();
    let side = |values: &[f64]| match median(values) {
        None => "-".to_string(),
        Some(m) if values.len() < 2 => three_digits(m),
        Some(m) => {
            let (low, high) = interval(values);
            format!("{} [{}, {}]", three_digits(m), three_digits(low), three_digits(high))
        }
    };
    let cut = |s: &str, n: usize| s.chars().take(n).collect::<String>();
    let mut title = String::new();
    for r in rows {
        let job = if r.job.is_empty() { String::new() } else { format!(", job {}", r.job) };
        let now = format!("{} on {}{job}", r.workload, r.device);
        if now != title {
            let gap = if out.is_empty() { "" } else { "\n" };
            out.push_str(&format!("{gap}{}\n", cut(&now, 80)));
            out.push_str(&format!(
                "{:<14}{:<8}{:>23}{:>23}{:>12}\n",
                "scheduler", "figure", "simulator", "kernel", "error"
            ));
            title = now;
        }
        let error = r.error().map_or("-".into(), |e| format!("{e:+.1} %"));
        let line = format!(
            "{:<14}{:<8}{:>23}{:>23}{error:>12}",
            cut(&r.scheduler, 13),
            r.figure,
            side(&r.sim),
            side(&r.kernel)
        );
        out.push_str(&cut(&line, 80));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::{JobRecord, TrialId};

    fn record(scheduler: &str, iops: u64) -> Record {
        let mut job = JobRecord::default();
        job.read.ios = iops;
        job.read.runtime = 1_000_000_000;
        (0..iops).for_each(|_| job.read.clat.record(1_000_000));
        let trial =
            TrialId { scheduler: scheduler.into(), workload: "w".into(), ..TrialId::default() };
        Record { trial, jobs: vec![job], ..Record::default() }
    }

    #[test]
    fn both_sides_meet_by_family_and_show_the_error() {
        let sim = [record("bfq@6.12", 110), record("none", 50)];
        let kernel = [record("bfq", 100), record("bfq", 100), record("none", 50)];
        let rows = rows(&sim, &kernel);
        assert_eq!(rows.len(), 8);
        assert_eq!(rows[0].error().map(f64::round), Some(10.0));
        let text = render(&rows, &|v| (v[0], v[v.len() - 1]));
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(text.contains("+10.0 %") && text.contains("100 [100, 100]"), "{text}");
        let agreement = rank_agreement(&rows, 0.02);
        assert_eq!(agreement[0], ("w on , IOPS".into(), Some(1.0)));
        // Equal latencies everywhere: no order to agree on.
        assert!(agreement[1..].iter().all(|a| a.1.is_none()));
    }

    #[test]
    fn jobs_that_totals_hide_have_rows_of_their_own() {
        let two = |scheduler: &str, writer: u64, reader: u64| {
            let mut r = record(scheduler, writer);
            r.jobs[0].name = "writer".into();
            let mut other = record(scheduler, reader).jobs.remove(0);
            other.name = "reader".into();
            r.jobs.push(other);
            r
        };
        let rows = rows(&[two("bfq", 900, 6)], &[two("bfq", 904, 2)]);
        let of = |job: &str| {
            rows.iter().find(|r| r.job == job && r.figure == "IOPS").and_then(Row::error).unwrap()
        };
        assert_eq!(
            (of("").round(), of("writer").round(), of("reader").round()),
            (0.0, -0.0, 200.0)
        );
        let jobs: Vec<&str> = rows.iter().map(|r| r.job.as_str()).step_by(4).collect();
        assert_eq!(jobs, ["", "writer", "reader"], "in the order of the job file");
        let text = render(&rows, &|v| (v[0], v[0]));
        assert!(text.contains("w on , job reader") && text.contains("+200.0 %"), "{text}");
    }

    #[test]
    fn the_opposite_order_is_minus_one() {
        assert_eq!(kendall(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)], 0.0), Some(-1.0));
        assert_eq!(kendall(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)], 0.01), Some(1.0));
    }
}
