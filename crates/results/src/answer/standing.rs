//! How schedulers compare over all workloads.

use std::collections::BTreeMap;

use super::figures::{Figure, Goal, Values, logarithm, logarithms};
use super::words::in_words;
use crate::stats::special::{t_cdf, t_quantile};
use crate::stats::{Better, Sample, Together, VerdictOptions, judge, mean_and_sd, rearranged};

/// Of rearrangements: the same data give the same answer.
const SEED: u64 = 1;

/// One scheduler over the figures of a goal.
#[derive(Clone, Debug, Default)]
struct Standing {
    /// Weighted mean of the logarithms; `None` where a figure is missing.
    score: Option<f64>,
    /// (variance of the score from the runs of one workload, its degrees of freedom).
    terms: Vec<(f64, f64)>,
    /// The part of the score that each run of each workload gave.
    parts: Vec<Part>,
    /// Some lie beyond a limit.
    censored: bool,
    deterministic: bool,
    /// Figures in which nothing was delivered, in no run.
    nothing: Vec<usize>,
    /// Of each figure the runs.
    samples: Vec<Sample>,
}

/// What the runs of one workload gave.
#[derive(Clone, Debug, Default)]
struct Part {
    values: Vec<f64>,
    /// Which rounds they were, where the same rounds of others ran under the same conditions.
    rounds: Option<Vec<u32>>,
}

impl Part {
    /// Variance of the mean difference of the rounds that both have, and its degrees of freedom.
    fn against(&self, other: &Part) -> Option<(f64, f64)> {
        self.pairs_with(other).then(|| {
            let by: Vec<f64> = self.values.iter().zip(&other.values).map(|(a, b)| a - b).collect();
            let n = by.len() as f64;
            let sd = mean_and_sd(&by).1;
            (sd * sd / n, n - 1.0)
        })
    }

    fn pairs_with(&self, other: &Part) -> bool {
        self.rounds.is_some() && self.rounds == other.rounds
    }
}

/// All schedulers of a goal.
#[derive(Clone, Debug)]
pub(super) struct Standings {
    each: Vec<Standing>,
    /// The goal's rounds surely go up and down together, so they are compared in pairs.
    pub(super) paired: bool,
}

/// By how much one is ahead of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    /// Logarithm of the ratio, better is higher.
    pub(super) log: f64,
    /// The 95 % interval; `None` when it is exact or only about right.
    pub(super) interval: Option<(f64, f64)>,
    /// Two-sided p; `None` where there is one value of each.
    pub(super) p: Option<f64>,
    /// Values beyond a limit count as the limit, so the ratio is only about right, and ranks are tested.
    pub(super) about: bool,
    /// What tables say, where they show this very figure: a difference, corrected for all that is read beside it.
    pub(super) table: Option<bool>,
}

impl Lead {
    /// The interval of the ratio; `None` where a number is too large to be one.
    pub(super) fn ends(&self) -> Option<(f64, f64)> {
        let ends = self.interval.map(|(low, high)| (low.exp(), high.exp()));
        ends.filter(|(_, high)| high.is_finite())
    }

    /// The whole interval lies within a margin.
    pub(super) fn within(&self, margin: f64) -> bool {
        self.interval.is_some_and(|(low, high)| low.abs().max(high.abs()) <= margin.ln_1p())
    }
}

impl Standings {
    pub(super) fn of(goal: &Goal, schedulers: usize) -> Standings {
        let one = |i: usize| {
            let mut out = Standing { score: Some(0.0), deterministic: true, ..Standing::default() };
            let mut workloads: BTreeMap<&str, Vec<(&Figure, &Values)>> = BTreeMap::new();
            for (at, f) in goal.figures.iter().enumerate() {
                let Some(v) = &f.values[i] else {
                    return Standing::default();
                };
                out.censored |= v.censored() > 0;
                out.deterministic &= v.deterministic;
                out.samples.push(v.sample());
                if goal.better == Better::Higher && v.nothing() {
                    out.nothing.push(at);
                }
                workloads.entry(&f.workload).or_default().push((f, v));
            }
            if !out.nothing.is_empty() {
                // No mean of ratios is as low.
                out.score = Some(f64::NEG_INFINITY);
                return out;
            }
            for figures in workloads.values() {
                let (mean, variance, df, part) = together(figures, goal.better);
                out.score = out.score.map(|s| s + mean);
                out.terms.push((variance, df));
                out.parts.push(part);
            }
            out
        };
        Standings { each: (0..schedulers).map(one).collect(), paired: false }
    }

    /// Takes down how surely the rounds of everybody go up and down with those of a base.
    pub(super) fn correlate(&self, base: usize, into: &mut Together) {
        let others = self.each.iter().enumerate().filter(|(i, _)| *i != base);
        for (x, y) in others.flat_map(|(_, s)| s.parts.iter().zip(&self.each[base].parts)) {
            if x.pairs_with(y) {
                into.add(&y.values, &x.values);
            }
        }
    }

    /// (variance, degrees of freedom) of what is uncertain about a difference: of each workload that of its pairs, or
    /// those of both sides.
    fn terms(&self, x: &Standing, y: &Standing) -> Vec<(f64, f64)> {
        let of = |i: usize| {
            let pairs = x.parts[i].against(&y.parts[i]).filter(|_| self.paired);
            pairs.map_or_else(|| vec![x.terms[i], y.terms[i]], |t| vec![t])
        };
        (0..x.terms.len()).flat_map(of).collect()
    }

    pub(super) fn knows(&self, i: usize) -> bool {
        self.each[i].score.is_some()
    }

    /// Something in every figure.
    pub(super) fn delivers(&self, i: usize) -> bool {
        self.each[i].nothing.is_empty()
    }

    /// Some values lie beyond a limit.
    pub(super) fn gave_up(&self, i: usize) -> bool {
        self.each[i].censored
    }

    pub(super) fn score(&self, i: usize) -> f64 {
        self.each[i].score.unwrap_or(f64::NEG_INFINITY)
    }

    /// Welch's test over the runs of all workloads, or Student's over their pairs: `a` against `b`. Where values lie
    /// beyond a limit, a test of ranks.
    pub(super) fn lead(&self, a: usize, b: usize) -> Option<Lead> {
        let (x, y) = (&self.each[a], &self.each[b]);
        let log = x.score? - y.score?;
        if !x.nothing.is_empty() || !y.nothing.is_empty() {
            return Some(against_nothing(x, y));
        }
        let terms = self.terms(x, y);
        let about = x.censored || y.censored;
        let of = |interval, p| Some(Lead { log, interval, p, about, table: None });
        if terms.iter().any(|t| t.1 < 1.0) {
            return of(None, None);
        }
        if about {
            return of(None, Some(ranks(x, y)));
        }
        let variance: f64 = terms.iter().map(|t| t.0).sum();
        // Rounding of the last digits is no spread.
        if variance < 1e-20 {
            let exact = x.deterministic && y.deterministic && log.abs() > 1e-9;
            let p = if exact { 0.0 } else { 1.0 };
            return of(None, Some(p));
        }
        let df = variance * variance / terms.iter().map(|(v, f)| v * v / f).sum::<f64>();
        let se = variance.sqrt();
        let p = (2.0 * t_cdf(-(log / se).abs(), df)).min(1.0);
        let half = t_quantile(0.975, df) * se;
        of(Some((log - half, log + half)), Some(p))
    }

    /// The figure that helps `a` against `b` most, and the lead without it; `None` with a single figure.
    pub(super) fn without_best(&self, goal: &Goal, a: usize, b: usize) -> Option<Carrier> {
        if goal.figures.len() < 2 {
            return None;
        }
        let mut best = None;
        for f in &goal.figures {
            let (x, y) = (f.values[a].as_ref()?, f.values[b].as_ref()?);
            let part = f.weight * apart(x, y, goal.better);
            if best.is_none_or(|(most, _)| part > most) {
                best = Some((part, f));
            }
        }
        let (_, f) = best?;
        let same = goal.figures.iter().filter(|o| o.workload == f.workload).count();
        let (what, name) = match same {
            1 => ("workload", f.workload.clone()),
            _ => ("measure", format!("{} in {}", in_words(&f.measure), f.workload)),
        };
        // Every workload that is left weighs the same again.
        let mut left: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for o in goal.figures.iter().filter(|o| !std::ptr::eq(*o, f)) {
            let (x, y) = (o.values[a].as_ref()?, o.values[b].as_ref()?);
            let by = apart(x, y, goal.better);
            left.entry(&o.workload).or_default().push(by);
        }
        let means: Vec<f64> = left.values().map(|all| mean_and_sd(all).0).collect();
        Some(Carrier { what, name, left: mean_and_sd(&means).0 })
    }
}

/// Nothing is infinitely less than something. How surely there was nothing is what a table says of that very figure;
/// two with nothing are level.
fn against_nothing(x: &Standing, y: &Standing) -> Lead {
    let (log, nothing) = match (x.nothing.is_empty(), y.nothing.is_empty()) {
        (true, _) => (f64::INFINITY, &y.nothing),
        (_, true) => (f64::NEG_INFINITY, &x.nothing),
        _ => (0.0, &x.nothing),
    };
    let options = VerdictOptions::default();
    let of = |i: &usize| {
        let j = judge(&x.samples[*i], &y.samples[*i], Better::Higher, options);
        if j.exact { Some(if j.delta == 0.0 { 1.0 } else { 0.0 }) } else { j.p }
    };
    // Where there is nothing in several figures, the least certain of them speaks.
    let all: Option<Vec<f64>> = nothing.iter().map(of).collect();
    let p = all.and_then(|all| all.into_iter().reduce(f64::max));
    let p = if log == 0.0 { p.map(|_| 1.0) } else { p };
    Lead { log, interval: None, p, about: false, table: None }
}

/// What helps a lead most.
pub(super) struct Carrier {
    /// `workload` where it is all that counts of one, else `measure`.
    pub(super) what: &'static str,
    pub(super) name: String,
    /// Logarithm of the lead without it.
    pub(super) left: f64,
}

/// By how much the first is ahead; two with nothing are level.
fn apart(x: &Values, y: &Values, better: Better) -> f64 {
    let by = logarithm(x, better) - logarithm(y, better);
    if by.is_nan() { 0.0 } else { by }
}

/// p without an assumption about how values scatter, since some are a bound: whole runs are rearranged.
fn ranks(x: &Standing, y: &Standing) -> f64 {
    let both = x.parts.iter().zip(&y.parts);
    let parts: Vec<_> = both.map(|(a, b)| (&a.values[..], &b.values[..], 1.0)).collect();
    rearranged(&parts, SEED)
}

/// What the runs of one workload say: mean, variance of the mean, its degrees of freedom, and what each run gave.
///
/// The figures of a run depend on each other: who waits long for fsync waits long for reads, too. So they are added up
/// run by run, and the runs are what scatters. Where figures are not of the same runs (a tool left some out), the
/// variance is the largest that any dependence could make.
fn together(figures: &[(&Figure, &Values)], better: Better) -> (f64, f64, f64, Part) {
    let logs: Vec<(f64, Vec<f64>)> =
        figures.iter().map(|(f, v)| (f.weight, logarithms(v, better))).collect();
    let rounds = figures.first().map(|(_, v)| &v.rounds);
    if figures.iter().all(|(_, v)| Some(&v.rounds) == rounds) {
        let runs = logs.first().map_or(0, |(_, l)| l.len());
        let values: Vec<f64> =
            (0..runs).map(|r| logs.iter().map(|(w, l)| w * l[r]).sum()).collect();
        let (mean, sd) = mean_and_sd(&values);
        let n = runs as f64;
        let paired = figures.iter().all(|(_, v)| v.paired && v.censored() == 0);
        let part = Part { values, rounds: rounds.filter(|_| paired).cloned() };
        return (mean, sd * sd / n, n - 1.0, part);
    }
    let (mut mean, mut error, mut df) = (0.0, 0.0, f64::INFINITY);
    for (w, l) in &logs {
        let ((m, sd), n) = (mean_and_sd(l), l.len() as f64);
        mean += w * m;
        error += w * sd / n.sqrt();
        df = df.min(n - 1.0);
    }
    let values = logs.iter().flat_map(|(w, l)| l.iter().map(move |x| w * x)).collect();
    (mean, error * error, df, Part { values, rounds: None })
}

/// Holm's step-down correction: the corrected p values in the order given.
pub(super) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut out = vec![0.0; p.len()];
    let mut running: f64 = 0.0;
    for (k, i) in order.iter().enumerate() {
        running = running.max((p[*i] * (p.len() - k) as f64).min(1.0));
        out[*i] = running;
    }
    out
}
