//! Measures: the comparable numbers of a record, by name.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::{
    DURABLE_BW, DirStats, JobRecord, Record, TIMING_DEVIATION, rates, together, total,
};
use iosched_types::LatencyHistogram;
use serde::{Deserialize, Serialize};

use crate::stats::{Better, jain};

/// One comparable number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// `read.iops`, `write.bw`, `durable.bw`, `read.lat.p99`, `job/NAME/read.bw`, `fairness.jain`, or a metric's own name.
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

/// What a workload reads and writes, all bytes over the time in which any of its jobs ran: what tables and answers call the
/// throughput of a workload that does both. Of results that have the two rates only it is their sum.
pub const TOTAL: &str = "total.bw";
/// What it is the sum of.
pub const PARTS: [&str; 2] = ["read.bw", "write.bw"];

/// Whether a measure is made from I/Os here, rather than reported by a tool under its own name.
#[must_use]
pub fn derived(measure: &str) -> bool {
    measure.starts_with("job/")
        || ["fairness.jain", TOTAL].contains(&measure)
        || ["read.", "write.", "trim.", "sync.", "durable."].iter().any(|p| measure.starts_with(p))
}

/// The job of a measure and what of it is measured: `victim` and `read.bw` of `job/victim/read.bw`.
#[must_use]
pub fn of_job(measure: &str) -> Option<(&str, &str)> {
    measure.strip_prefix("job/")?.rsplit_once('/')
}

/// The kind of a measure: `read.clat.p99` and `job/victim/write.clat.p99` are `clat.p99`; a metric is its own kind.
/// Figures of one kind scatter alike.
#[must_use]
pub fn kind(measure: &str) -> &str {
    let name = of_job(measure).map_or(measure, |(_, own)| own);
    let sides = ["read.", "write.", "trim.", "sync.", "total."];
    let side = sides.iter().find_map(|s| name.strip_prefix(s));
    side.unwrap_or(name)
}

/// How many jobs with a figure are told apart. Of the hundred tasks of a server one is always the unluckiest.
const SHARING: std::ops::RangeInclusive<usize> = 2..=8;

/// Whether a measure is shown from the start: throughput, the 99th percentile of each direction (the mean where there is
/// none), fairness, and all that a tool itself reported. `all` are the measures of the workload.
#[must_use]
pub fn is_head(measure: &str, all: &BTreeSet<&str>) -> bool {
    !measure.starts_with("job/") && headline(measure, measure, all)
}

/// As [`is_head`], of a single job: who pays for what is won may be one of them.
#[must_use]
pub fn is_head_of_job(measure: &str, all: &BTreeSet<&str>, sharing: &Sharing<'_>) -> bool {
    of_job(measure).is_some_and(|(_, own)| {
        own != "trim.iops" && sharing.told_apart(measure) && headline(measure, own, all)
    })
}

/// How many jobs have each figure that is one of a job, counted once for all measures of a cell.
#[derive(Clone, Debug, Default)]
pub struct Sharing<'a>(BTreeMap<&'a str, usize>);

impl<'a> Sharing<'a> {
    /// Of the measures of a cell.
    pub fn of(all: impl IntoIterator<Item = &'a str>) -> Sharing<'a> {
        let mut jobs = BTreeMap::new();
        for (_, own) in all.into_iter().filter_map(of_job) {
            *jobs.entry(own).or_default() += 1;
        }
        Sharing(jobs)
    }

    /// How many jobs have a figure; none where it is that of the whole workload.
    #[must_use]
    pub fn jobs(&self, measure: &str) -> usize {
        of_job(measure).and_then(|(_, own)| self.0.get(own)).copied().unwrap_or(0)
    }

    /// Whether a figure is not that of one of very many jobs.
    #[must_use]
    pub fn told_apart(&self, measure: &str) -> bool {
        of_job(measure).is_none() || SHARING.contains(&self.jobs(measure))
    }
}

/// Whether a figure, which is called `own` without its job, belongs to those that sum up a run.
fn headline(measure: &str, own: &str, all: &BTreeSet<&str>) -> bool {
    if latency_of(measure).is_some() {
        let p99 = measure.strip_suffix(".mean").map(|stem| format!("{stem}.p99"));
        return measure.ends_with(".p99") || p99.is_some_and(|p| !all.contains(p.as_str()));
    }
    let all = [DURABLE_BW, "read.bw", "write.bw", "trim.iops", "fairness.jain", TOTAL];
    !derived(measure) || all.contains(&own)
}

/// How far two values of a measure may be apart, as a share, when nothing differs. A percentile is the middle of a bin
/// that is 1/64 of its power of two wide, and neighbouring bins may hold equal waits. So are those of I/Os and of a
/// program's operations (`insert p99 latency`).
#[must_use]
pub fn resolution(measure: &str) -> f64 {
    let kind = kind(measure);
    let of_ios = ["clat.p", "lat.p"].iter().any(|p| kind.starts_with(p));
    let percentile = |word: &str| {
        word.strip_prefix('p').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
    };
    let stem = kind.strip_suffix(" latency").and_then(|stem| stem.rsplit_once(' '));
    let of_operations = stem.is_some_and(|(_, word)| percentile(word));
    if of_ios || of_operations { 1.0 / 64.0 } else { 0.0 }
}

/// A title without the unit that tells it from the same test in another one: `Random read [IOPS]`.
#[must_use]
pub fn without_unit<'a>(title: &'a str, unit: &str) -> &'a str {
    let bare = title.strip_suffix(']').and_then(|t| t.strip_suffix(unit)?.strip_suffix(" ["));
    bare.unwrap_or(title)
}

/// IOPS and MB/s of one test have one ratio, give or take the digits that were printed.
pub const TWINS: f64 = 1.02;

/// Percentiles that become measures, with the number of I/Os that resolves them.
const PERCENTILES: [(f64, &str, u64); 4] =
    [(50.0, "p50", 2), (99.0, "p99", 100), (99.9, "p99.9", 1_000), (99.99, "p99.99", 10_000)];

/// Fewer I/Os than this give no 99th percentile.
const FEW: u64 = 100;
/// The last part of the name of the longest wait. It is a measure only where there are too few I/Os for the 99th
/// percentile: what a starved process is charged with (`cells::charge_starved`).
pub const LONGEST: &str = "max";
/// The last part of the name of the number of I/Os, of those that may be compared with too few: up to twice as many.
pub const COUNT: &str = "count";

/// Every measure of a record, in a fixed order; nothing that is not finite.
///
/// A figure that only describes the run, of which neither more nor less is better, is no measure.
/// Totals come first, then the jobs of different names apart (a victim beside its disturbers, say),
/// Jain's fairness index of the processes' throughput, and the record's own metrics.
#[must_use]
pub fn measures(record: &Record) -> Vec<Measure> {
    let mut out = Vec::new();
    add_jobs("", &record.jobs.iter().collect::<Vec<_>>(), &mut out);
    // Rates over times of their own do not add up: who writes for a second before another reads for one did not move both
    // in one second.
    let does = |side: fn(&JobRecord) -> &DirStats| record.jobs.iter().any(|j| side(j).ios > 0);
    if does(|j| &j.read) && does(|j| &j.write) {
        let all = total(record.jobs.iter(), |j| [&j.read, &j.write]);
        if all.span > 0 {
            put(&mut out, TOTAL.into(), "B/s", all.bytes_per_second(), Better::Higher);
        }
    }
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
    if let (true, Some(index)) = (rates.len() > 1 && together(&record.jobs), jain(&rates)) {
        put(&mut out, "fairness.jain".into(), "", index, Better::Higher);
    }
    // How true the disk was to its model is a property of the run, not of a scheduler.
    // Neither are the start without load, and how many times as long one with load takes.
    let references = [TIMING_DEVIATION, "startup_idle", "slowdown"];
    for m in record.metrics.iter().filter(|m| !references.contains(&&*m.name)) {
        let Some(higher) = m.higher_is_better else { continue };
        let better = if higher { Better::Higher } else { Better::Lower };
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
        for (kind, h) in [("clat", &sum.clat), ("lat", &sum.lat_hist)] {
            add_latencies(&format!("{prefix}{name}.{kind}"), h, out);
        }
    }
}

fn add_latencies(name: &str, h: &LatencyHistogram, out: &mut Vec<Measure>) {
    let n = h.count();
    if n > 0 {
        put(out, format!("{name}.mean"), "ns", h.mean(), Better::Lower);
    }
    if (1..2 * FEW).contains(&n) {
        put(out, format!("{name}.{COUNT}"), "", n as f64, Better::Higher);
    }
    if (1..FEW).contains(&n) {
        put(out, format!("{name}.{LONGEST}"), "ns", h.max() as f64, Better::Lower);
    }
    for (p, word, _) in PERCENTILES.into_iter().filter(|p| n >= p.2) {
        put(out, format!("{name}.{word}"), "ns", h.percentile(p) as f64, Better::Lower);
    }
}

/// The two latencies of an I/O: `(everything before, "clat" or "lat")` of `job/a/read.clat.p99`.
#[must_use]
pub fn latency_of(measure: &str) -> Option<(&str, &str)> {
    let from = measure.rfind('/').map_or(0, |at| at + 1);
    let mut parts = measure[from..].split('.');
    let (side, which) = (parts.next()?, parts.next()?);
    (derived(measure) && matches!(which, "lat" | "clat"))
        .then(|| (&measure[..from + side.len()], which))
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

    /// A writer for one second, and from 0.9 s on a reader for one: 1.9 s, not twice the rate of one.
    #[test]
    fn a_total_is_over_the_time_in_which_any_job_ran() {
        let mut writer = job("w", 1000);
        std::mem::swap(&mut writer.read, &mut writer.write);
        let mut reader = job("r", 900);
        writer.ended = 1_000_000_000;
        (reader.began, reader.ended) = (900_000_000, 1_900_000_000);
        let m = measures(&Record { jobs: vec![writer, reader], ..Record::default() });
        let of = |n: &str| m.iter().find(|m| m.name == n).map(|m| m.value);
        assert_eq!(of(TOTAL), Some(1900.0 * 4096.0 / 1.9));
        assert_eq!(of("write.bw"), Some(1000.0 * 4096.0));
        let m = measures(&Record { jobs: vec![job("a", 300)], ..Record::default() });
        assert!(m.iter().all(|m| m.name != TOTAL), "reads alone are their own total");
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
        assert_eq!((of("read.clat.max"), of("job/a/read.clat.max")), (None, None));
        let few = measures(&Record { jobs: vec![job("a", 99)], ..Record::default() });
        let of = |n: &str| few.iter().find(|m| m.name == n).map(|m| m.value);
        assert_eq!((of("read.clat.p99"), of("read.clat.max")), (None, Some(1_000.0)));
        assert_eq!(of("write.iops"), None);
    }

    #[test]
    fn jobs_one_after_the_other_share_nothing() {
        let mut jobs = vec![job("a", 300), job("b", 100)];
        (jobs[0].began, jobs[0].ended) = (0, 1_000_000_000);
        (jobs[1].began, jobs[1].ended) = (1_000_000_000, 2_000_000_000);
        let fairness = |jobs: &[JobRecord]| {
            let m = measures(&Record { jobs: jobs.to_vec(), ..Record::default() });
            m.into_iter().find(|m| m.name == "fairness.jain").map(|m| m.value)
        };
        assert_eq!(fairness(&jobs), None);
        // Together for a quarter of the time in which any ran, then for half of it.
        jobs[1].began = 500_000_000;
        assert_eq!(fairness(&jobs), None);
        (jobs[0].ended, jobs[1].ended) = (1_500_000_000, 2_000_000_000);
        assert_eq!(fairness(&jobs), Some(0.8));
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
    fn total_latency_is_a_measure_where_it_is_known() {
        let mut both = job("a", 200);
        (0..200).for_each(|_| both.read.lat_hist.record(20_000_000));
        let of = |jobs: Vec<JobRecord>, name: &str| {
            let all = measures(&Record { jobs, ..Record::default() });
            all.into_iter().find(|m| m.name == name).map(|m| m.value)
        };
        assert_eq!(of(vec![both.clone()], "read.lat.p99"), Some(20_000_000.0));
        assert_eq!(of(vec![both.clone()], "read.clat.p99"), Some(1_000.0));
        // The total latencies of half of the I/Os say nothing about all.
        assert_eq!(of(vec![both, job("a", 10)], "read.lat.p99"), None);
        assert_eq!(latency_of("job/a/b.c/read.clat.p99"), Some(("job/a/b.c/read", "clat")));
        assert_eq!(latency_of("write.lat.mean"), Some(("write", "lat")));
        assert_eq!((latency_of("read.bw"), latency_of("my.lat")), (None, None));
    }

    #[test]
    fn kinds_of_figures() {
        assert_eq!(kind("job/a/b/write.clat.p99.9"), "clat.p99.9");
        assert_eq!(kind("read.bw"), "bw");
        assert_eq!(kind("startup_time"), "startup_time");
        assert_eq!(kind(TOTAL), "bw");
    }

    #[test]
    fn every_percentile_is_as_fine_as_its_bin() {
        for p in
            ["read.lat.p99", "job/a/sync.clat.p99.9", "insert p99 latency", "Read X p50 latency"]
        {
            assert_eq!(resolution(p), 1.0 / 64.0, "{p}");
        }
        for exact in
            ["read.lat.mean", "insert mean latency", "insert max latency", "tps", "pg latency"]
        {
            assert_eq!(resolution(exact), 0.0, "{exact}");
        }
    }

    #[test]
    fn what_is_shown_from_the_start() {
        let all = BTreeSet::from(["read.clat.mean", "read.clat.p99", "tps", "job/a/read.bw"]);
        let heads = |m: &str| is_head(m, &all);
        assert!(heads("read.clat.p99") && heads("tps") && heads("write.lat.mean") && heads(TOTAL));
        assert!(!heads("read.clat.mean") && !heads("read.iops") && !heads("job/a/read.bw"));
        let jobs: Vec<String> = (0..9).map(|i| format!("job/{i}/read.bw")).collect();
        let of = |n: usize| -> BTreeSet<&str> { jobs[..n].iter().map(String::as_str).collect() };
        let sharing = |n: usize| Sharing::of(of(n));
        assert!(is_head_of_job(&jobs[0], &of(8), &sharing(8)));
        assert!(!is_head_of_job(&jobs[0], &of(9), &sharing(9)));
        assert!(sharing(9).told_apart("read.bw") && !sharing(9).told_apart(&jobs[0]));
        assert_eq!((sharing(9).jobs(&jobs[0]), sharing(9).jobs("read.bw")), (9, 0));
    }

    #[test]
    fn metrics_keep_their_direction_and_nan_is_dropped() {
        let metric = |name: &str, value| Metric {
            name: name.into(),
            value,
            unit: "s".into(),
            higher_is_better: Some(false),
            censored: true,
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
