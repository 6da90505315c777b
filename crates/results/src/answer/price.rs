//! What a winner costs.

use std::collections::BTreeSet;

use super::figures::twin;
use super::words::in_words;
use super::{ABOUT, Case};
use crate::cells::{Cell, CellKey, Cells};
use crate::measure::{Sharing, is_head, is_head_of_job, kind};
use crate::render::percent;
use crate::stats::{
    Better, Compared, Judged, Lent, Summary, Verdict, VerdictOptions, judge_together, summarize,
};

/// A price worth a word: five percent.
const WORTH: f64 = 0.05;

/// A figure of the winner and of another.
struct Pair<'a> {
    against: &'a str,
    key: &'a CellKey,
    measure: &'a str,
    base: &'a Cell,
    new: &'a Cell,
}

/// What a figure loses: the logarithm of how far behind, the ratio of the figure itself, whether that is only about right.
struct Loss<'a> {
    behind: f64,
    ratio: f64,
    about: bool,
    /// The ratio of the means that tables show, where it reads otherwise.
    of_means: bool,
    pair: &'a Pair<'a>,
}

impl Case<'_> {
    /// The dearest price: of all single figures of the device, also of those that no goal counts, the one that the
    /// winner loses most of against any other that the kernel has. What tables show is judged there, jobs here.
    pub(super) fn price(&self, cells: &Cells) -> Option<String> {
        let winner = self.name(self.order[0]);
        let others = self.order[1..].iter().map(|i| self.name(*i));
        let pairs: Vec<Pair<'_>> =
            others.flat_map(|other| self.pairs(cells, winner, other)).collect();
        let jobs: Vec<&Pair<'_>> = pairs.iter().filter(|p| of_job(p)).collect();
        let of_jobs = judge(&jobs);
        let of_tables = pairs.iter().filter_map(|p| Some((self.in_tables(p)?, p)));
        let of_jobs = of_jobs.iter().zip(jobs).map(|(j, p)| ((j, false), p));
        let lost = of_tables.chain(of_jobs).filter_map(|((j, turned), p)| loss(j, turned, p));
        let most = lost.reduce(|a, b| if b.behind > a.behind { b } else { a })?;
        if most.behind < WORTH.ln_1p() {
            return None;
        }
        let (p, what) = (most.pair, in_words(most.pair.measure));
        let by = format!("{}{}", if most.about { ABOUT } else { "" }, percent(most.ratio));
        // Beside a table's means another number needs its reason.
        let how = if most.of_means { "" } else { ", the geometric mean of the runs' ratios" };
        Some(format!("Its price: {what} in {} {by} against {}{how}", p.key.workload, p.against))
    }

    /// What tables say of a figure of the winner against another's, or, where the winner is the base of tables, of the
    /// other one against it.
    fn in_tables(&self, p: &Pair<'_>) -> Option<(&Judged, bool)> {
        let other = CellKey { scheduler: p.against.into(), ..p.key.clone() };
        let usual = crate::cells::usual_base(self.goal.schedulers.iter().map(String::as_str));
        let turned = usual == Some(p.key.scheduler.as_str());
        let judged = match turned {
            true => self.tables.judged(&other, p.measure, &p.key.scheduler),
            false => self.tables.judged(p.key, p.measure, p.against),
        };
        Some((judged?, turned))
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
            let sharing = Sharing::of(both.iter().copied());
            for measure in &both {
                let shown = is_head(measure, &both) || is_head_of_job(measure, &both, &sharing);
                if shown && base.measures.contains_key(*measure) {
                    out.push(Pair { against, key, measure, base, new });
                }
            }
        }
        let shown = |p: &Pair<'a>| {
            let values =
                |c: &Cell| summary(c, p.measure).centre().into_iter().collect::<Vec<f64>>();
            let unit = p.new.measures[p.measure].unit.as_str();
            (p.key.workload.as_str(), unit, [values(p.base), values(p.new)].concat())
        };
        let all: Vec<_> = out.iter().map(shown).collect();
        let twins: Vec<bool> = all.iter().map(|a| all.iter().any(|b| twin(a, b))).collect();
        let mut twins = twins.into_iter();
        out.retain(|_| twins.next() != Some(true));
        out
    }
}

fn of_job(p: &Pair<'_>) -> bool {
    p.measure.starts_with("job/")
}

fn summary(c: &Cell, measure: &str) -> Summary {
    summarize(&c.measures[measure].sample.observations(), VerdictOptions::default().seed)
}

/// Judges figures of jobs, which no table shows, together.
fn judge(pairs: &[&Pair<'_>]) -> Vec<Judged> {
    let summaries: Vec<(Summary, Summary)> =
        pairs.iter().map(|p| (summary(p.base, p.measure), summary(p.new, p.measure))).collect();
    let sides = pairs
        .iter()
        .flat_map(|p| [p.base, p.new].map(|c| (kind(p.measure), &c.measures[p.measure].sample)));
    let lent = Lent::of(sides);
    let compared = pairs.iter().zip(&summaries).map(|(p, (base, new))| Compared {
        base: (&p.base.measures[p.measure].sample, base),
        new: (&p.new.measures[p.measure].sample, new),
        better: p.new.measures[p.measure].better,
        kind: kind(p.measure),
        sum: false,
    });
    judge_together(&compared.collect::<Vec<_>>(), &lent, VerdictOptions::default())
}

/// What the winner measurably loses; `turned` where it is the base of the judgement.
fn loss<'a>(j: &Judged, turned: bool, pair: &'a Pair<'a>) -> Option<Loss<'a>> {
    if j.verdict != if turned { Verdict::Better } else { Verdict::Worse } {
        return None;
    }
    let of = |r: f64| if turned { 1.0 / r } else { r };
    let ratio = of(j.ratio.filter(|r| *r > 0.0 && r.is_finite())?);
    let means = j.new.mean.zip(j.base.mean).map(|(n, b)| percent(of(n / b)));
    let behind = if j.better == Better::Higher { -ratio.ln() } else { ratio.ln() };
    let of_means = j.about() || means.is_none_or(|m| m == percent(ratio));
    Some(Loss { behind, ratio, about: j.about(), of_means, pair })
}
