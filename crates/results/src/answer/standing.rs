//! How schedulers compare over all workloads.

use super::figures::{Goal, logarithm};
use crate::stats::special::{t_cdf, t_quantile};
use crate::stats::{Better, Observation, cliffs_delta, mann_whitney, rearranged};

/// Of rearrangements: the same data give the same answer.
const SEED: u64 = 1;

/// One scheduler over the figures of a goal.
#[derive(Clone, Debug, Default)]
struct Standing {
    /// Weighted mean of the logarithms; `None` where a figure is missing.
    score: Option<f64>,
    /// (variance of the score from one figure, its degrees of freedom).
    terms: Vec<(f64, f64)>,
    /// The values of each figure, with the figure's weight.
    values: Vec<(Vec<Observation>, f64)>,
    /// Some lie beyond a limit.
    censored: bool,
    deterministic: bool,
}

/// All schedulers of a goal.
#[derive(Clone, Debug)]
pub(super) struct Standings {
    each: Vec<Standing>,
    better: Better,
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
                out.censored |= v.censored() > 0;
                out.values.push((v.by_round.clone(), f.weight));
                out.deterministic &= v.deterministic;
            }
            out
        };
        Standings { each: (0..schedulers).map(one).collect(), better: goal.better }
    }

    pub(super) fn knows(&self, i: usize) -> bool {
        self.each[i].score.is_some()
    }

    pub(super) fn score(&self, i: usize) -> f64 {
        self.each[i].score.unwrap_or(f64::NEG_INFINITY)
    }

    /// Welch's test over the runs of all figures: `a` against `b`. Where values lie beyond a limit, a test of ranks.
    pub(super) fn lead(&self, a: usize, b: usize) -> Option<Lead> {
        let (x, y) = (&self.each[a], &self.each[b]);
        let log = x.score? - y.score?;
        let terms: Vec<(f64, f64)> = x.terms.iter().chain(&y.terms).copied().collect();
        let about = x.censored || y.censored;
        if terms.iter().any(|t| t.1 < 1.0) {
            return Some(Lead { log, interval: None, p: None, about });
        }
        if about {
            return Some(Lead { log, interval: None, p: Some(self.ranks(x, y, log)), about });
        }
        let variance: f64 = terms.iter().map(|t| t.0).sum();
        // Rounding of the last digits is no spread.
        if variance < 1e-20 {
            let exact = x.deterministic && y.deterministic && log.abs() > 1e-9;
            let p = if exact { 0.0 } else { 1.0 };
            return Some(Lead { log, interval: None, p: Some(p), about });
        }
        let df = variance * variance / terms.iter().map(|(v, f)| v * v / f).sum::<f64>();
        let se = variance.sqrt();
        let p = (2.0 * t_cdf(-(log / se).abs(), df)).min(1.0);
        let half = t_quantile(0.975, df) * se;
        Some(Lead { log, interval: Some((log - half, log + half)), p: Some(p), about })
    }

    /// p without an assumption about how values scatter, since some are a bound. One figure is tested by its ranks, as in
    /// tables. Where ranks and ratio point in opposite directions, nothing is known: a value beyond its limit may be
    /// what makes the difference. Several figures are tested by rearranging them.
    fn ranks(&self, x: &Standing, y: &Standing, log: f64) -> f64 {
        if let ([(a, _)], [(b, _)]) = (&x.values[..], &y.values[..]) {
            let delta = cliffs_delta(a, b);
            let ahead = if self.better == Better::Higher { delta } else { -delta };
            let p = mann_whitney(a, b).map_or(1.0, |m| m.p);
            return if ahead * log > 0.0 { p } else { 1.0 };
        }
        let logs = |s: &Standing| -> Vec<Vec<f64>> {
            s.values.iter().map(|(v, _)| v.iter().map(|o| o.value.ln()).collect()).collect()
        };
        let (a, b) = (logs(x), logs(y));
        let weights = x.values.iter().map(|v| v.1);
        let figures: Vec<_> =
            a.iter().zip(&b).zip(weights).map(|((a, b), w)| (&a[..], &b[..], w)).collect();
        rearranged(&figures, SEED)
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
