//! What answers say of their figures.

use std::collections::BTreeSet;

use super::figures::{Figure, Goal, THROUGHPUT, Values};
use super::list;
use iosched_experiment::{DURABLE_AFTER, DURABLE_BW};

use crate::measure::{TOTAL, latency_of, of_job};
use crate::stats::mean_and_sd;

impl Goal {
    /// What is said of figures with zeros, or below zero: their means. Of many the first two, since tables show all.
    pub(super) fn not_comparable(&self) -> Vec<String> {
        let of = |f: &Figure| {
            let known = self.schedulers.iter().zip(&f.values);
            let known = known.filter_map(|(s, v)| {
                let all: Vec<f64> = v.as_ref()?.by_round.iter().map(|o| o.value).collect();
                Some(format!("{s} {}", crate::render::value(mean_and_sd(&all).0, &f.unit)))
            });
            let means: Vec<String> = known.collect();
            let what = in_words(&f.measure);
            let all = || f.values.iter().flatten().flat_map(|v| &v.by_round);
            let why = match () {
                () if all().any(|o| o.value < 0.0) => "has values below zero",
                () if all().all(|o| o.value == 0.0) => "is zero in every run",
                () => "has zeros",
            };
            let told = means.join(", ");
            format!("{what} in {}: {why}, not comparable as a ratio (means: {told})", f.workload)
        };
        let all = self.zeros.len();
        let said = if all > 3 { 2 } else { all };
        let more =
            (said < all).then(|| format!("{} more figures have zeros: see the tables", all - said));
        self.zeros.iter().take(said).map(of).chain(more).collect()
    }

    /// The figures in words: `p99 of reads and p99 of fsync`. Empty where the goal is called like its figure.
    pub(super) fn measured_by(&self) -> String {
        let words = self.measures();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [one] if one == self.name => String::new(),
            // Nobody reads a list of a suite's titles.
            [_, _, ..] if words.len() > 4 || list(&words).chars().count() > 60 => {
                format!("{} measures", words.len())
            }
            _ => list(&words),
        }
    }

    /// The figures, each kind once. Beside others "throughput" would not say whose.
    fn measures(&self) -> BTreeSet<String> {
        let words: BTreeSet<String> = self.figures.iter().map(of_test).collect();
        let alone = words.len() == 1 && words.contains(THROUGHPUT);
        if alone { [self.name.clone()].into() } else { words }
    }

    /// Which figures they are, where the sentence only counts them: up to sixteen; of more the tables tell.
    pub(super) fn named(&self) -> Option<String> {
        let words = self.measures();
        let counted = self.measured_by().ends_with(" measures");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        (counted && words.len() <= 16)
            .then(|| format!("The {} measures: {}", words.len(), list(&words)))
    }

    /// Schedulers of which runs stopped at a limit, and what the mark before their ratios means.
    pub(super) fn beyond(&self) -> Option<String> {
        let mut stopped: Vec<String> = Vec::new();
        let mut any = false;
        for f in &self.figures {
            for (s, v) in self.schedulers.iter().zip(&f.values) {
                let Some(v) = v.as_ref().filter(|v| v.censored() > 0) else { continue };
                any = true;
                if !v.starved {
                    let (n, of) = (v.censored(), v.by_round.len());
                    stopped.push(format!("{n} of {of} runs of {s} in {}", f.workload));
                }
            }
        }
        let stopped: Vec<&str> = stopped.iter().map(String::as_str).collect();
        let about = "~: about, by the longest wait or limit that is known";
        match stopped[..] {
            _ if !any => None,
            [] => Some(about.into()),
            [_, _, _, _, ..] => {
                Some(format!("{about}; {} cells have runs beyond their limit", stopped.len()))
            }
            _ => Some(format!("{about}; beyond their limit are {}", list(&stopped))),
        }
    }

    /// Runs that delivered nothing.
    pub(super) fn delivered_nothing(&self) -> Vec<String> {
        let of = |f: &Figure| {
            let none = |(s, v): (&String, &Option<Values>)| {
                let all = &v.as_ref()?.by_round;
                let n = all.iter().filter(|o| o.value == 0.0).count();
                (n > 0).then(|| format!("{n} of {} runs of {s}", all.len()))
            };
            let who: Vec<String> = self.schedulers.iter().zip(&f.values).filter_map(none).collect();
            let who: Vec<&str> = who.iter().map(String::as_str).collect();
            let what = in_words(&f.measure);
            (!who.is_empty()).then(|| format!("{what} in {} is 0 in {}", f.workload, list(&who)))
        };
        self.figures.iter().filter_map(of).collect()
    }

    /// Schedulers that left a process without enough I/Os for a percentile.
    pub(super) fn starved(&self) -> Vec<String> {
        let mut out = Vec::new();
        for f in &self.figures {
            let who = self.schedulers.iter().zip(&f.values);
            let who = who.filter(|(_, v)| v.as_ref().is_some_and(|v| v.starved));
            let who: Vec<&str> = who.map(|(s, _)| s.as_str()).collect();
            if !who.is_empty() {
                let whom = list(&who);
                out.push(match latency_of(&f.measure) {
                    Some((side, _)) => {
                        let what = side_in_words(side);
                        format!(
                            "{whom} starved {what} of {}: counted as the longest wait",
                            f.workload
                        )
                    }
                    None => {
                        let what = in_words(&f.measure);
                        format!(
                            "{what} in {} counts as the worst known where {whom} has none",
                            f.workload
                        )
                    }
                });
            }
        }
        out
    }
}

/// A figure in words. A test of another program is known by its title: what it says of its options alone names nothing
/// ("Test Target: Default Test Directory" of SQLite).
fn of_test(f: &Figure) -> String {
    let whole = f.workload.split(" [").next().unwrap_or_default();
    let title = whole.strip_suffix(&f.measure).and_then(|t| t.strip_suffix(": "));
    match title.filter(|t| !t.is_empty()) {
        Some(title) => title.into(),
        None if f.measure == THROUGHPUT => THROUGHPUT.into(),
        None => in_words(&f.measure),
    }
}

/// A figure as a sentence calls it.
pub(super) fn in_words(measure: &str) -> String {
    if let Some((job, own)) = of_job(measure) {
        return format!("{} of job {job}", in_words(own));
    }
    let Some((side, which)) = latency_of(measure) else {
        return match measure {
            TOTAL | THROUGHPUT => "throughput".into(),
            DURABLE_BW => "throughput until all is durable".into(),
            DURABLE_AFTER => "time until all is durable".into(),
            "read.bw" => "read throughput".into(),
            "write.bw" => "write throughput".into(),
            "trim.iops" => "trims a second".into(),
            "fairness.jain" => "the Jain index".into(),
            own => own.replace('_', " "),
        };
    };
    let of = side_in_words(side);
    let figure = measure.split_once("lat.").map_or("", |(_, figure)| figure);
    let kind = if which == "clat" { "completion " } else { "" };
    format!("{kind}{figure} of {of}")
}

fn side_in_words(side: &str) -> &str {
    match side {
        "read" => "reads",
        "write" => "writes",
        "sync" => "fsync",
        other => other,
    }
}
