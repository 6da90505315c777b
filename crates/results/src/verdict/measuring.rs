//! How results were measured: how often, how long, and after what.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::Record;
use iosched_types::Nanos;
use iosched_types::units::show_nanos;

use super::{SHORTENED, UNWARMED, WARMED_UP};

/// How results were measured, gathered record by record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measuring {
    /// Repetitions by cell.
    runs: BTreeMap<[String; 4], BTreeSet<u32>>,
    /// Repetitions of all schedulers have the same input.
    paired: bool,
    /// How long the jobs of each run were measured; 0 where there are none.
    lengths: BTreeSet<Nanos>,
    /// How long those of shortened runs would have been.
    asked: BTreeSet<Nanos>,
    warm_ups: BTreeSet<Nanos>,
    /// Why there was none.
    unwarmed: BTreeSet<String>,
}

impl Measuring {
    /// Takes a complete record.
    pub(super) fn add(&mut self, r: &Record) {
        let t = &r.trial;
        let cell = [&t.device, &t.workload, &t.scheduler, &t.kernel].map(String::clone);
        self.runs.entry(cell).or_default().insert(t.repetition);
        self.paired |= r.backend.traits().ours;
        self.lengths.insert(r.jobs.iter().map(|j| j.runtime).max().unwrap_or(0));
        let ms = |key: &str| r.provenance.get(key).and_then(|v| v.parse::<u64>().ok());
        self.asked.extend(ms(SHORTENED).map(|ms| ms * 1_000_000));
        self.warm_ups.extend(ms(WARMED_UP).map(|ms| ms * 1_000_000));
        self.unwarmed.extend(r.provenance.get(UNWARMED).cloned());
    }

    /// `4 paired runs of each, 20 s after 1 s to 30 s of warm-up`.
    #[must_use]
    pub fn words(&self) -> String {
        let mut out = self.often();
        if let Some(length) = self.length() {
            out += &format!(", {length}");
        }
        match ends(&self.warm_ups) {
            Some((a, b)) if a == b => out += &format!(" after {} of warm-up", short(a)),
            Some((a, b)) => out += &format!(" after {} to {} of warm-up", short(a), short(b)),
            None => {}
        }
        let why: Vec<&str> = self.unwarmed.iter().map(String::as_str).collect();
        match &why[..] {
            [] => out,
            why => format!("{out}; no warm-up where {}", why.join(", and where ")),
        }
    }

    fn often(&self) -> String {
        let runs = || self.runs.values().map(BTreeSet::len);
        match (runs().min().unwrap_or(0), runs().max().unwrap_or(0)) {
            (1, 1) => "1 run of each".into(),
            (a, b) if a == b && self.paired => format!("{a} paired runs of each"),
            (a, b) if a == b => format!("{a} runs of each"),
            (a, b) => format!("{a} to {b} runs of each"),
        }
    }

    /// How long the jobs were measured, where all were as long, to a tenth.
    fn length(&self) -> Option<String> {
        let (least, most) = ends(&self.lengths)?;
        let one = least > 0 && most - least <= most / 10;
        match ends(&self.asked) {
            None => one.then(|| short(most)),
            Some((a, b)) if a == b && one => {
                Some(format!("{} instead of {}, for --budget,", short(most), short(a)))
            }
            Some(_) if one => Some(format!("{}, shortened for --budget,", short(most))),
            Some(_) => Some("some shortened for --budget,".into()),
        }
    }
}

fn ends(all: &BTreeSet<Nanos>) -> Option<(Nanos, Nanos)> {
    all.first().copied().zip(all.last().copied())
}

/// `10 s` rather than `10.0 s`.
#[must_use]
pub fn short(ns: Nanos) -> String {
    let seconds = (ns as f64 / 1e9).round();
    match seconds * 1e9 {
        whole if seconds >= 1.0 && (whole - ns as f64).abs() < 0.01 * whole => {
            format!("{seconds} s")
        }
        _ => show_nanos(ns as f64),
    }
}
