//! Measures: the comparable numbers of a record, by name.

use iosched_experiment::record::{DirStats, JobRecord, Record, TIMING_DEVIATION, rates, total};
use serde::{Deserialize, Serialize};

use crate::stats::{Better, jain};

/// One comparable number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// `read.iops`, `write.bw`, `read.clat.p99`, `job/NAME/read.bw`, `fairness.jain`, or a metric's own name.
    pub name: String,
    /// `1/s`, `B/s`, `ns`, or the metric's own unit.
    pub unit: String,
    /// Value in `unit`.
    pub value: f64,
    /// Which way is better.
    pub better: Better,
    /// The true value lies beyond `value`.
    pub censored: bool,
}

/// Whether a measure is made from I/Os here, rather than reported by a tool under its own name.
#[must_use]
pub fn derived(measure: &str) -> bool {
    measure.starts_with("job/")
        || measure == "fairness.jain"
        || ["read.", "write.", "trim.", "sync."].iter().any(|p| measure.starts_with(p))
}

/// The kind of a measure: `read.clat.p99` and `job/victim/write.clat.p99` are `clat.p99`; a metric is its own kind.
/// Figures of one kind scatter alike.
#[must_use]
pub fn kind(measure: &str) -> &str {
    let own = measure.strip_prefix("job/").and_then(|rest| Some(rest.rsplit_once('/')?.1));
    let name = own.unwrap_or(measure);
    let side = ["read.", "write.", "trim.", "sync."].iter().find_map(|s| name.strip_prefix(s));
    side.unwrap_or(name)
}

/// Percentiles that become measures, with the number of I/Os that resolves them.
const PERCENTILES: [(f64, &str, u64); 4] =
    [(50.0, "p50", 2), (99.0, "p99", 100), (99.9, "p99.9", 1_000), (99.99, "p99.99", 10_000)];

/// Every measure of a record, in a fixed order; nothing that is not finite.
///
/// Totals come first, then the jobs of different names apart (a victim beside its disturbers, say),
/// Jain's fairness index of the processes' throughput, and the record's own metrics.
#[must_use]
pub fn measures(record: &Record) -> Vec<Measure> {
    let mut out = Vec::new();
    add_jobs("", &record.jobs.iter().collect::<Vec<_>>(), &mut out);
    let mut names: Vec<&str> = Vec::new();
    for j in &record.jobs {
        if !names.contains(&j.name.as_str()) {
            names.push(&j.name);
        }
    }
    if names.len() > 1 {
        for name in &names {
            let jobs: Vec<&JobRecord> = record.jobs.iter().filter(|j| j.name == *name).collect();
            add_jobs(&format!("job/{name}/"), &jobs, &mut out);
        }
    }
    let rates = rates(&record.jobs);
    if let (true, Some(index)) = (rates.len() > 1, jain(&rates)) {
        put(&mut out, "fairness.jain".into(), "", index, Better::Higher);
    }
    // How true the disk was to its model is a property of the run, not of a scheduler.
    for m in record.metrics.iter().filter(|m| m.name != TIMING_DEVIATION) {
        let better = if m.higher_is_better { Better::Higher } else { Better::Lower };
        // A metric of the record replaces one derived above: it comes from the tool itself.
        out.retain(|o| o.name != m.name);
        put(&mut out, m.name.clone(), &m.unit, m.value, better);
        if let Some(last) = out.last_mut().filter(|l| l.name == m.name) {
            last.censored = m.censored;
        }
    }
    out
}

fn put(out: &mut Vec<Measure>, name: String, unit: &str, value: f64, better: Better) {
    if value.is_finite() {
        out.push(Measure { name, unit: unit.into(), value, better, censored: false });
    }
}

fn add_jobs(prefix: &str, jobs: &[&JobRecord], out: &mut Vec<Measure>) {
    type Side = (&'static str, fn(&JobRecord) -> &DirStats);
    let sides: [Side; 4] = [
        ("read", |j| &j.read),
        ("write", |j| &j.write),
        ("trim", |j| &j.trim),
        ("sync", |j| &j.sync),
    ];
    for (name, side) in sides {
        let mut sum = DirStats::default();
        jobs.iter().for_each(|j| sum.merge(side(j)));
        if sum.ios == 0 {
            continue;
        }
        if name != "sync" && sum.runtime > 0 {
            let total = total(jobs.iter().copied(), |j| [side(j)]);
            put(out, format!("{prefix}{name}.iops"), "1/s", total.iops(), Better::Higher);
            // A trim moves no data.
            if name != "trim" {
                let bw = total.bytes_per_second();
                put(out, format!("{prefix}{name}.bw"), "B/s", bw, Better::Higher);
            }
        }
        let n = sum.clat.count();
        if n > 0 {
            put(out, format!("{prefix}{name}.clat.mean"), "ns", sum.clat.mean(), Better::Lower);
        }
        for (p, word, needed) in PERCENTILES {
            if n >= needed {
                let value = sum.clat.percentile(p) as f64;
                put(out, format!("{prefix}{name}.clat.{word}"), "ns", value, Better::Lower);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::record::Metric;

    fn job(name: &str, ios: u64) -> JobRecord {
        let mut read =
            DirStats { ios, bytes: ios * 4096, runtime: 1_000_000_000, ..DirStats::default() };
        (0..ios).for_each(|_| read.clat.record(1_000));
        JobRecord { name: name.into(), read, ..JobRecord::default() }
    }

    #[test]
    fn totals_jobs_and_fairness() {
        let r = Record { jobs: vec![job("a", 300), job("b", 100)], ..Record::default() };
        let m = measures(&r);
        let of = |n: &str| m.iter().find(|m| m.name == n).map(|m| m.value);
        assert_eq!(of("read.iops"), Some(400.0));
        assert_eq!(of("job/b/read.iops"), Some(100.0));
        assert_eq!(of("fairness.jain"), Some(0.8));
        assert_eq!(of("read.clat.p99"), Some(1_000.0));
        assert_eq!(of("read.clat.p99.9"), None);
        assert_eq!(of("write.iops"), None);
    }

    #[test]
    fn trims_are_counted_and_are_no_bandwidth() {
        let mut trims = job("t", 300);
        trims.trim = std::mem::take(&mut trims.read);
        let r = Record { jobs: vec![trims, job("a", 100)], ..Record::default() };
        let m = measures(&r);
        let of = |n: &str| m.iter().find(|m| m.name == n).map(|m| m.value);
        assert_eq!(of("trim.iops"), Some(300.0));
        assert_eq!(of("job/t/trim.iops"), Some(300.0));
        assert_eq!(of("read.bw"), Some(409_600.0));
        assert!(m.iter().all(|m| !m.name.ends_with("trim.bw")), "{m:?}");
        assert_eq!(of("fairness.jain"), None, "one process moves data");
    }

    #[test]
    fn kinds_of_figures() {
        assert_eq!(kind("job/a/b/write.clat.p99.9"), "clat.p99.9");
        assert_eq!(kind("read.bw"), "bw");
        assert_eq!(kind("startup_time"), "startup_time");
    }

    #[test]
    fn metrics_keep_their_direction_and_nan_is_dropped() {
        let metric = |name: &str, value| Metric {
            name: name.into(),
            value,
            unit: "s".into(),
            censored: true,
            ..Metric::default()
        };
        let r = Record {
            metrics: vec![metric("startup", 60.0), metric("bad", f64::NAN)],
            ..Record::default()
        };
        let m = measures(&r);
        assert_eq!(m.len(), 1);
        assert_eq!((m[0].better, m[0].censored), (Better::Lower, true));
    }
}
