//! How schedulers compare over all workloads.

use super::figures::{Goal, logarithm};
use crate::stats::special::{t_cdf, t_quantile};

/// One scheduler over the figures of a goal.
#[derive(Clone, Debug, Default)]
struct Standing {
    /// Weighted mean of the logarithms; `None` where a figure is missing.
    score: Option<f64>,
    /// (variance of the score from one figure, its degrees of freedom).
    terms: Vec<(f64, f64)>,
    deterministic: bool,
}

/// All schedulers of a goal.
#[derive(Clone, Debug)]
pub(super) struct Standings(Vec<Standing>);

/// By how much one is ahead of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    /// Logarithm of the ratio, better is higher.
    pub(super) log: f64,
    /// The 95 % interval; `None` when it is exact.
    pub(super) interval: Option<(f64, f64)>,
    /// Two-sided p; `None` where there is one value of each.
    pub(super) p: Option<f64>,
}

impl Standings {
    pub(super) fn of(goal: &Goal, schedulers: usize) -> Standings {
        let one = |i: usize| {
            let mut out = Standing { score: Some(0.0), deterministic: true, ..Standing::default() };
            for f in &goal.figures {
                let Some(v) = &f.values[i] else {
                    return Standing::default();
                };
                let (mean, variance, df) = logarithm(v, goal.better);
                out.score = out.score.map(|s| s + f.weight * mean);
                out.terms.push((f.weight * f.weight * variance, df));
                out.deterministic &= v.deterministic;
            }
            out
        };
        Standings((0..schedulers).map(one).collect())
    }

    pub(super) fn knows(&self, i: usize) -> bool {
        self.0[i].score.is_some()
    }

    pub(super) fn score(&self, i: usize) -> f64 {
        self.0[i].score.unwrap_or(f64::NEG_INFINITY)
    }

    /// Welch's test over the runs of all figures: `a` against `b`.
    pub(super) fn lead(&self, a: usize, b: usize) -> Option<Lead> {
        let (x, y) = (&self.0[a], &self.0[b]);
        let log = x.score? - y.score?;
        let terms: Vec<(f64, f64)> = x.terms.iter().chain(&y.terms).copied().collect();
        if terms.iter().any(|t| t.1 < 1.0) {
            return Some(Lead { log, interval: None, p: None });
        }
        let variance: f64 = terms.iter().map(|t| t.0).sum();
        // Rounding of the last digits is no spread.
        if variance < 1e-20 {
            let exact = x.deterministic && y.deterministic && log.abs() > 1e-9;
            return Some(Lead { log, interval: None, p: Some(if exact { 0.0 } else { 1.0 }) });
        }
        let df = variance * variance / terms.iter().map(|(v, f)| v * v / f).sum::<f64>();
        let se = variance.sqrt();
        let p = (2.0 * t_cdf(-(log / se).abs(), df)).min(1.0);
        let half = t_quantile(0.975, df) * se;
        Some(Lead { log, interval: Some((log - half, log + half)), p: Some(p) })
    }

    /// The figure that helps `a` against `b` most, and the lead without it; `None` with a single figure.
    pub(super) fn without_best(&self, goal: &Goal, a: usize, b: usize) -> Option<(String, f64)> {
        if goal.figures.len() < 2 {
            return None;
        }
        let (mut best, mut lead) = (None, 0.0);
        for f in &goal.figures {
            let (x, y) = (f.values[a].as_ref()?, f.values[b].as_ref()?);
            let part = f.weight * (logarithm(x, goal.better).0 - logarithm(y, goal.better).0);
            lead += part;
            if best.is_none_or(|(most, _)| part > most) {
                best = Some((part, f));
            }
        }
        let (most, f) = best?;
        let same = goal.figures.iter().filter(|o| o.workload == f.workload).count();
        let name =
            if same > 1 { format!("{} ({})", f.workload, f.measure) } else { f.workload.clone() };
        Some((name, (lead - most) / (1.0 - f.weight)))
    }
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
