//! What a winner costs.

use std::collections::BTreeSet;

use super::figures::twin;
use super::words::in_words;
use super::{ABOUT, Case};
use crate::cells::{Cell, CellKey, Cells};
use crate::measure::{derived, kind, latency_of, of_job};
use crate::render::percent;
use crate::stats::{
    Better, Compared, Judged, Lent, Summary, Verdict, VerdictOptions, judge_together, summarize,
};

/// A price worth a word: five percent.
const WORTH: f64 = 0.05;

/// How many jobs with a figure are told apart. Of the hundred tasks of a server one is always the unluckiest.
const SHARING: std::ops::RangeInclusive<usize> = 2..=8;

/// A figure of the winner and of another.
struct Pair<'a> {
    against: &'a str,
    workload: &'a str,
    measure: &'a str,
    base: &'a Cell,
    new: &'a Cell,
    summaries: (Summary, Summary),
}

impl Case<'_> {
    /// The dearest price: of all single figures of the device, also of those that no goal counts, the one that the
    /// winner loses most of against any other that the kernel has.
    pub(super) fn price(&self, cells: &Cells) -> Option<String> {
        let winner = self.name(self.order[0]);
        let others = self.order[1..].iter().map(|i| self.name(*i));
        let pairs: Vec<Pair<'_>> =
            others.flat_map(|other| self.pairs(cells, winner, other)).collect();
        let options = VerdictOptions::default();
        let sides = pairs.iter().flat_map(|p| {
            [p.base, p.new].map(|c| (kind(p.measure), &c.measures[p.measure].sample))
        });
        let lent = Lent::of(sides);
        let compared: Vec<Compared<'_>> = pairs
            .iter()
            .map(|p| Compared {
                base: (&p.base.measures[p.measure].sample, &p.summaries.0),
                new: (&p.new.measures[p.measure].sample, &p.summaries.1),
                better: p.new.measures[p.measure].better,
                kind: kind(p.measure),
            })
            .collect();
        let judged = judge_together(&compared, &lent, options);
        let lost = judged.iter().zip(&pairs).filter(|(j, _)| j.verdict == Verdict::Worse);
        let (loss, j, p) = lost
            .filter_map(|(j, p)| Some((behind(j)?, j, p)))
            .reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        if loss < WORTH.ln_1p() {
            return None;
        }
        let about = if j.about() { ABOUT } else { "" };
        let by = format!("{about}{}", percent(j.ratio?));
        let what = in_words(p.measure);
        Some(format!("Its price: {what} in {} {by} against {}", p.workload, p.against))
    }

    /// The figures that both have, each thing once.
    fn pairs<'a>(&'a self, cells: &'a Cells, winner: &str, against: &'a str) -> Vec<Pair<'a>> {
        let of = |k: &CellKey, scheduler: &str| {
            cells.0.get(&CellKey { scheduler: scheduler.into(), ..k.clone() })
        };
        let mut out: Vec<Pair<'a>> = Vec::new();
        let here = cells.0.iter().filter(|(k, _)| k.device == self.device && k.scheduler == winner);
        for (key, new) in here {
            let Some(base) = of(key, against) else { continue };
            let both: BTreeSet<&'a str> = new.measures.keys().map(String::as_str).collect();
            for measure in &both {
                if !base.measures.contains_key(*measure) || !counts(measure, &both) {
                    continue;
                }
                let summary = |c: &Cell| summarize(&c.measures[*measure].sample.observations(), 1);
                let summaries = (summary(base), summary(new));
                out.push(Pair { against, workload: &key.workload, measure, base, new, summaries });
            }
        }
        let shown = |p: &Pair<'a>| {
            let values = |s: &Summary| s.centre().into_iter().collect::<Vec<f64>>();
            let unit = p.new.measures[p.measure].unit.as_str();
            (p.workload, unit, [values(&p.summaries.0), values(&p.summaries.1)].concat())
        };
        let all: Vec<_> = out.iter().map(shown).collect();
        let twins: Vec<bool> = all.iter().map(|a| all.iter().any(|b| twin(a, b))).collect();
        let mut twins = twins.into_iter();
        out.retain(|_| twins.next() != Some(true));
        out
    }
}

/// What is shown from the start: rates of data, the 99th percentile of each direction (or the mean), fairness, and what
/// a tool reports itself; and the same of every job that shares a direction with others: who pays may be one of them.
fn counts(measure: &str, all: &BTreeSet<&str>) -> bool {
    if let Some((_, own)) = of_job(measure) {
        let sharing = all.iter().filter(|m| of_job(m).is_some_and(|(_, other)| other == own));
        return own != "trim.iops"
            && SHARING.contains(&sharing.count())
            && shown(measure, own, all);
    }
    shown(measure, measure, all)
}

/// Whether a figure, which is called `own` without its job, is shown from the start.
fn shown(measure: &str, own: &str, all: &BTreeSet<&str>) -> bool {
    if latency_of(measure).is_some() {
        let p99 = measure.strip_suffix(".mean").map(|stem| format!("{stem}.p99"));
        return measure.ends_with(".p99") || p99.is_some_and(|p| !all.contains(p.as_str()));
    }
    !derived(measure) || ["read.bw", "write.bw", "trim.iops", "fairness.jain"].contains(&own)
}

/// The logarithm of how far behind.
fn behind(j: &Judged) -> Option<f64> {
    let log = j.ratio.filter(|r| *r > 0.0 && r.is_finite())?.ln();
    Some(if j.better == Better::Higher { -log } else { log })
}
