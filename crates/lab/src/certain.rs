//! Whether results are certain enough to stop.

use std::collections::BTreeMap;

use iosched_experiment::{Record, Status};
use iosched_report::terminal::Figures;
use iosched_results::stats::{Observation, summarize};
use iosched_workloads::programs::Descriptor;

/// Figures of loads that have none of their own: a command's start, a replayed log.
const OF_ALL: [&str; 2] = ["startup_time", "elapsed"];

/// The figures that decide: those that a program is judged by, as it prints them itself; a start-up time; else the
/// throughput of the jobs.
fn figures(record: &Record) -> Vec<(&str, Observation)> {
    let program = record.provenance.get("program").and_then(|name| Descriptor::find(name).ok());
    let judged = |name: &str| {
        let of = |p: &Descriptor| {
            p.figures.iter().any(|f| f.name == name && f.higher_is_better.is_some())
        };
        OF_ALL.contains(&name) || program.is_some_and(of)
    };
    let own = record.metrics.iter().filter(|m| judged(&m.name));
    let own: Vec<_> = own
        .map(|m| (m.name.as_str(), Observation { value: m.value, censored: m.censored }))
        .collect();
    if own.is_empty() { vec![("", Figures::of(record).rate().into())] } else { own }
}

/// Whether half the 95 % confidence interval of the mean is at most `share` of the mean for every figure of every cell.
/// Repetition does not help a figure that is beyond its limit. Such a figure counts as certain.
#[must_use]
pub fn certain(records: &[Record], share: f64) -> bool {
    let mut all: BTreeMap<_, Vec<Observation>> = BTreeMap::new();
    for r in records.iter().filter(|r| r.status == Status::Complete) {
        let t = &r.trial;
        for (name, value) in figures(r) {
            all.entry((&t.device, &t.workload, &t.scheduler, name)).or_default().push(value);
        }
    }
    all.values().all(|values| {
        let s = summarize(values, 1);
        match (s.censored, s.mean, s.ci) {
            (0, Some(m), Some(ci)) => (ci.high - ci.low) / 2.0 <= share * m.abs(),
            (0, _, None) => false,
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::{JobRecord, Metric, TrialId};

    fn record(repetition: u32, bytes: u64) -> Record {
        let mut job = JobRecord::default();
        (job.read.bytes, job.read.runtime) = (bytes, 1_000_000_000);
        let trial = TrialId { repetition, ..TrialId::default() };
        Record { trial, jobs: vec![job], ..Record::default() }
    }

    #[test]
    fn narrow_intervals_are_certain_and_wide_ones_are_not() {
        let even: Vec<Record> = (1..=5).map(|i| record(i, 1000 + u64::from(i))).collect();
        assert!(certain(&even, 0.03));
        assert!(!certain(&even[..1], 0.03), "one run has no interval");
        let wild: Vec<Record> = (1..=5).map(|i| record(i, 1000 * u64::from(i))).collect();
        assert!(!certain(&wild, 0.03));
        assert!(certain(&wild, 1.0));
        let mut mixed = even.clone();
        for (i, bytes) in [(1, 10), (2, 900)] {
            mixed.push(Record {
                trial: TrialId { repetition: i, scheduler: "x".into(), ..TrialId::default() },
                ..record(i, bytes)
            });
        }
        assert!(!certain(&mixed, 0.03), "the least certain cell decides");
    }

    /// They move no data, so their throughput is 0 every time.
    #[test]
    fn trims_are_certain_by_their_number() {
        let trims = |i: u32, ios: u64| {
            let mut r = record(i, 0);
            (r.jobs[0].trim.ios, r.jobs[0].trim.runtime) = (ios, 1_000_000_000);
            r
        };
        assert!(certain(&[trims(1, 1000), trims(2, 1001), trims(3, 1002)], 0.03));
        assert!(!certain(&[trims(1, 1000), trims(2, 2000), trims(3, 3000)], 0.03));
    }

    #[test]
    fn values_beyond_their_limit_do_not_go_on_for_ever() {
        let start = |i, value, censored| {
            let metric = Metric {
                name: "startup_time".into(),
                value,
                higher_is_better: Some(false),
                censored,
                ..Metric::default()
            };
            Record { metrics: vec![metric], ..record(i, 0) }
        };
        assert!(certain(&[start(1, 60.0, true), start(2, 31.0, false)], 0.03));
        assert!(!certain(&[start(1, 10.0, false), start(2, 31.0, false)], 0.03));
    }

    /// A record of a real program has no jobs: its rate is 0 every time.
    #[test]
    fn programs_are_certain_by_each_of_their_own_figures() {
        let run = |i: u32, figures: &[(&str, f64)]| {
            let metric = |&(name, value): &(&str, f64)| Metric {
                name: name.into(),
                value,
                higher_is_better: Some(false),
                ..Metric::default()
            };
            let provenance = [("program".to_string(), "sqlite".to_string())].into();
            let trial = TrialId { repetition: i, ..TrialId::default() };
            let metrics = figures.iter().map(metric).collect();
            Record { trial, metrics, provenance, ..Record::default() }
        };
        let each = |values: [f64; 3], name: &str| -> Vec<Record> {
            (1..).zip(values).map(|(i, v)| run(i, &[("seconds", 10.0), (name, v)])).collect()
        };
        let seconds =
            |values: [f64; 3]| (1..).zip(values).map(|(i, v)| run(i, &[("seconds", v)])).collect();
        let (wild, even): (Vec<_>, Vec<_>) =
            (seconds([10.0, 20.0, 31.0]), seconds([10.0, 10.1, 9.9]));
        assert!(!certain(&wild, 0.03) && certain(&even, 0.03));
        // What nobody judges by does not keep it going.
        assert!(certain(&each([1.0, 9.0, 90.0], "insert max latency"), 0.03));
        assert!(!certain(&each([1.0, 9.0, 90.0], "elapsed"), 0.03));
    }
}
