//! Whether results are certain enough to stop.

use std::collections::BTreeMap;

use iosched_experiment::{Record, Status};
use iosched_report::terminal::Figures;
use iosched_results::stats::{Observation, summarize};

/// The figure that decides: the start-up time where one was measured, else the throughput.
fn figure(record: &Record) -> Observation {
    match record.metrics.iter().find(|m| m.name == "startup_time") {
        Some(m) => Observation { value: m.value, censored: m.censored },
        None => Figures::of(record).rate().into(),
    }
}

/// Whether half the 95 % confidence interval of the mean is at most `share` of the mean in every cell. Repetition does
/// not help a cell without a usable figure, or one with figures beyond their limit. Such a cell counts as certain.
#[must_use]
pub fn certain(records: &[Record], share: f64) -> bool {
    let mut cells: BTreeMap<_, Vec<Observation>> = BTreeMap::new();
    for r in records.iter().filter(|r| r.status == Status::Complete) {
        let t = &r.trial;
        cells.entry((&t.device, &t.workload, &t.scheduler)).or_default().push(figure(r));
    }
    cells.values().all(|values| {
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
}
