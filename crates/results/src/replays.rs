//! Replays of block traces: whether the model is like the recorded disk, and whether it matters if the load waits.
//!
//! A record of a replay whose I/Os wait for each other also has the latency of a replay at the recorded times, under the
//! name of the same figure behind [`BESIDE`]. Where the two put another scheduler first, a sentence says so.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::Record;
use iosched_experiment::record::Status;
use iosched_experiment::replay::{BESIDE, DIFFERS};

use crate::answer::short_names;

/// A smaller lead is no other order.
const MATTERS: f64 = 1.1;

/// Sum and number of a figure.
type Mean = (f64, u32);

/// The latencies of both kinds of replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranks {
    /// By device, workload, figure and scheduler: of the replay that waits, and of the one that does not.
    all: BTreeMap<(String, String, String), BTreeMap<String, [Mean; 2]>>,
    /// Models that do not reproduce a recording.
    differ: BTreeSet<String>,
}

impl Ranks {
    /// Those of some records.
    #[must_use]
    pub fn of(records: &[Record]) -> Ranks {
        let mut ranks = Ranks::default();
        records.iter().for_each(|r| ranks.add(r));
        ranks
    }

    /// A record.
    pub fn add(&mut self, r: &Record) {
        if r.status != Status::Complete {
            return;
        }
        let differs = r.warnings.iter().filter(|w| w.code == DIFFERS);
        self.differ.extend(differs.map(|w| format!("{} ({})", w.message, w.advice)));
        for beside in &r.metrics {
            let Some(name) = beside.name.strip_prefix(BESIDE).filter(|n| !n.contains("p50")) else {
                continue;
            };
            let Some(own) = r.metrics.iter().find(|m| m.name == name) else { continue };
            let t = &r.trial;
            let key = (t.device.clone(), t.workload.clone(), name.to_string());
            let of = self.all.entry(key).or_default().entry(t.scheduler.clone()).or_default();
            for (mean, m) in of.iter_mut().zip([own, beside]) {
                *mean = (mean.0 + m.value, mean.1 + 1);
            }
        }
    }

    /// A sentence for each model that does not reproduce a recording, and for each workload on a device where the order
    /// depends on whether it waits.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let names = short_names(self.all.values().flat_map(|of| of.keys().map(String::as_str)));
        let orders = self.all.iter().filter_map(|(key, of)| sentence(key, of, &names));
        self.differ.iter().cloned().chain(orders).collect()
    }
}

fn sentence(
    (device, workload, figure): &(String, String, String),
    of: &BTreeMap<String, [Mean; 2]>,
    names: &BTreeMap<&str, String>,
) -> Option<String> {
    let mean = |m: Mean| m.0 / f64::from(m.1.max(1));
    let first = |i: usize| of.iter().min_by(|a, b| mean(a.1[i]).total_cmp(&mean(b.1[i])));
    let ((waits, a), (open, b)) = (first(0)?, first(1)?);
    let lead = |i: usize, x: &[Mean; 2], y: &[Mean; 2]| mean(y[i]) / mean(x[i]);
    if waits == open || lead(0, a, b) < MATTERS || lead(1, b, a) < MATTERS {
        return None;
    }
    let called = |s: &String| names.get(s.as_str()).unwrap_or(s).clone();
    let (waits, open) = (called(waits), called(open));
    let ms = |m: Mean| format!("{:.2} ms", mean(m) / 1e3);
    Some(format!(
        "{workload} on {device}: the answer depends on whether your load waits for the disk. Where it waits, {waits} has \
         the shortest {figure} ({}, {open} {}); at the recorded times {open} has ({}, {waits} {})",
        ms(a[0]),
        ms(b[0]),
        ms(b[1]),
        ms(a[1])
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::{Metric, TrialId};

    fn record(scheduler: &str, waits: f64, open: f64) -> Record {
        let metric = |name: &str, value| Metric { name: name.into(), value, ..Metric::default() };
        Record {
            trial: TrialId {
                device: "d".into(),
                workload: "w".into(),
                scheduler: scheduler.into(),
                ..TrialId::default()
            },
            metrics: vec![
                metric("read p99 latency", waits),
                metric("as-recorded read p99 latency", open),
                metric("as-recorded read p50 latency", 1.0),
            ],
            ..Record::default()
        }
    }

    #[test]
    fn another_order_is_told_and_a_small_lead_is_none() {
        let of = |b: (f64, f64)| {
            Ranks::of(&[record("none", 20e3, 100e3), record("bfq", b.0, b.1)]).sentences()
        };
        let told = of((10e3, 300e3));
        assert_eq!(told.len(), 1);
        assert!(
            told[0].contains(
                "Where it waits, bfq has the shortest read p99 latency (10.00 ms, none 20.00 ms)"
            ) && told[0].contains("at the recorded times none has (100.00 ms, bfq 300.00 ms)"),
            "{told:?}"
        );
        assert!(of((19e3, 300e3)).is_empty() && of((10e3, 90e3)).is_empty());
    }
}
