//! How schedulers compare over all workloads.

use std::collections::BTreeMap;

use super::alone::Judgements;
use super::figures::{Figure, Goal, Values, logarithm, logarithms};
use super::words::in_words;
use crate::stats::special::{t_cdf, t_quantile};
use crate::stats::{Better, mean_and_sd, rearranged};

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
    parts: Vec<Vec<f64>>,
    /// Some lie beyond a limit.
    censored: bool,
    deterministic: bool,
}

/// All schedulers of a goal.
#[derive(Clone, Debug)]
pub(super) struct Standings {
    each: Vec<Standing>,
    /// What tables say, where the goal has one figure.
    pub(super) judged: Judgements,
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
            for f in &goal.figures {
                let Some(v) = &f.values[i] else {
                    return Standing::default();
                };
                out.censored |= v.censored() > 0;
                out.deterministic &= v.deterministic;
                workloads.entry(&f.workload).or_default().push((f, v));
            }
            for figures in workloads.values() {
                let (mean, variance, df, parts) = together(figures, goal.better);
                out.score = out.score.map(|s| s + mean);
                out.terms.push((variance, df));
                out.parts.push(parts);
            }
            out
        };
        Standings { each: (0..schedulers).map(one).collect(), judged: Judgements::new() }
    }

    pub(super) fn knows(&self, i: usize) -> bool {
        self.each[i].score.is_some()
    }

    pub(super) fn score(&self, i: usize) -> f64 {
        self.each[i].score.unwrap_or(f64::NEG_INFINITY)
    }

    /// Welch's test over the runs of all workloads: `a` against `b`. Where values lie beyond a limit, a test of ranks.
    pub(super) fn lead(&self, a: usize, b: usize) -> Option<Lead> {
        let (x, y) = (&self.each[a], &self.each[b]);
        let log = x.score? - y.score?;
        let terms: Vec<(f64, f64)> = x.terms.iter().chain(&y.terms).copied().collect();
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
    pub(super) fn without_best(&self, goal: &Goal, a: usize, b: usize) -> Option<(String, f64)> {
        if goal.figures.len() < 2 {
            return None;
        }
        let mut best = None;
        for f in &goal.figures {
            let (x, y) = (f.values[a].as_ref()?, f.values[b].as_ref()?);
            let part = f.weight * (logarithm(x, goal.better) - logarithm(y, goal.better));
            if best.is_none_or(|(most, _)| part > most) {
                best = Some((part, f));
            }
        }
        let (_, f) = best?;
        let same = goal.figures.iter().filter(|o| o.workload == f.workload).count();
        let name = match same {
            1 => f.workload.clone(),
            _ => format!("{} in {}", in_words(&f.measure), f.workload),
        };
        // Every workload that is left weighs the same again.
        let mut left: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for o in goal.figures.iter().filter(|o| !std::ptr::eq(*o, f)) {
            let (x, y) = (o.values[a].as_ref()?, o.values[b].as_ref()?);
            let by = logarithm(x, goal.better) - logarithm(y, goal.better);
            left.entry(&o.workload).or_default().push(by);
        }
        let means: Vec<f64> = left.values().map(|all| mean_and_sd(all).0).collect();
        Some((name, mean_and_sd(&means).0))
    }
}

/// p without an assumption about how values scatter, since some are a bound: whole runs are rearranged.
fn ranks(x: &Standing, y: &Standing) -> f64 {
    let parts: Vec<_> = x.parts.iter().zip(&y.parts).map(|(a, b)| (&a[..], &b[..], 1.0)).collect();
    rearranged(&parts, SEED)
}

/// What the runs of one workload say: mean, variance of the mean, its degrees of freedom, and what each run gave.
///
/// The figures of a run depend on each other: who waits long for fsync waits long for reads, too. So they are added up
/// run by run, and the runs are what scatters. Where figures are not of the same runs (a tool left some out), the
/// variance is the largest that any dependence could make.
fn together(figures: &[(&Figure, &Values)], better: Better) -> (f64, f64, f64, Vec<f64>) {
    let logs: Vec<(f64, Vec<f64>)> =
        figures.iter().map(|(f, v)| (f.weight, logarithms(v, better))).collect();
    let rounds = figures.first().map(|(_, v)| &v.rounds);
    if figures.iter().all(|(_, v)| Some(&v.rounds) == rounds) {
        let runs = logs.first().map_or(0, |(_, l)| l.len());
        let parts: Vec<f64> = (0..runs).map(|r| logs.iter().map(|(w, l)| w * l[r]).sum()).collect();
        let (mean, sd) = mean_and_sd(&parts);
        let n = runs as f64;
        return (mean, sd * sd / n, n - 1.0, parts);
    }
    let (mut mean, mut error, mut df) = (0.0, 0.0, f64::INFINITY);
    for (w, l) in &logs {
        let ((m, sd), n) = (mean_and_sd(l), l.len() as f64);
        mean += w * m;
        error += w * sd / n.sqrt();
        df = df.min(n - 1.0);
    }
    let parts = logs.iter().flat_map(|(w, l)| l.iter().map(move |x| w * x)).collect();
    (mean, error * error, df, parts)
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
