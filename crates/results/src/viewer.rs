//! The reference viewer's figures, rule by rule, so that our pages can be compared with it.
//!
//! The rules are those of the Phoronix result viewer; `docs/statistics.md` lists them and says where
//! iosched's own verdicts are stricter.

use crate::model::{Comparison, Test};
use crate::stats::{Better, noisy_from};

/// Values of a test in the order of the runs; `None` unless every run has one that is not zero.
fn complete(c: &Comparison, t: &Test) -> Option<Vec<f64>> {
    c.runs.iter().map(|r| t.cell(&r.name)?.value.filter(|v| *v != 0.0 && v.is_finite())).collect()
}

fn is_bar(t: &Test) -> bool {
    (t.display.is_empty() || t.display == "BAR_GRAPH") && t.better.is_some()
}

/// Geometric mean per run over the complete bar-graph tests; lower-is-better values enter as 100/x.
/// `None` for fewer than two tests.
#[must_use]
pub fn geometric_means(c: &Comparison) -> Option<Vec<f64>> {
    let rows: Vec<(Vec<f64>, Option<Better>)> = c
        .tests
        .iter()
        .filter(|t| is_bar(t))
        .filter_map(|t| Some((complete(c, t)?, t.better)))
        .collect();
    if rows.len() < 2 {
        return None;
    }
    let of = |run: usize| {
        let logs = rows.iter().map(|(v, better)| {
            let x = v[run].abs();
            if *better == Some(Better::Lower) { (100.0 / x).ln() } else { x.ln() }
        });
        (logs.sum::<f64>() / rows.len() as f64).exp()
    };
    Some((0..c.runs.len()).map(of).collect())
}

/// Harmonic mean per unit and run over the complete higher-is-better rates; a unit needs four tests.
#[must_use]
pub fn harmonic_means(c: &Comparison) -> Vec<(String, Vec<f64>)> {
    let is_rate = |u: &str| {
        let u = u.to_lowercase();
        ["/", "per", "fps", "bps", "iops"].iter().any(|w| u.contains(w))
    };
    let mut units: Vec<(String, Vec<Vec<f64>>)> = Vec::new();
    for t in
        c.tests.iter().filter(|t| is_bar(t) && t.better == Some(Better::Higher) && is_rate(&t.unit))
    {
        let Some(v) = complete(c, t) else { continue };
        match units.iter_mut().find(|(u, _)| *u == t.unit) {
            Some((_, rows)) => rows.push(v),
            None => units.push((t.unit.clone(), vec![v])),
        }
    }
    units.retain(|(_, rows)| rows.len() >= 4);
    let mean = |rows: &[Vec<f64>], run: usize| {
        rows.len() as f64 / rows.iter().map(|r| 1.0 / r[run]).sum::<f64>()
    };
    units
        .into_iter()
        .map(|(u, rows)| (u, (0..c.runs.len()).map(|run| mean(&rows, run)).collect()))
        .collect()
}

/// First and last places per run: `(wins, losses)`; on a tie the run that stands first takes the place.
#[must_use]
pub fn wins_and_losses(c: &Comparison) -> Vec<(usize, usize)> {
    let mut out = vec![(0, 0); c.runs.len()];
    for t in c.tests.iter().filter(|t| is_bar(t)) {
        let values: Vec<(usize, f64)> = c
            .runs
            .iter()
            .enumerate()
            .filter_map(|(i, r)| Some((i, t.cell(&r.name)?.value?)))
            .map(|(i, v)| (i, if t.better == Some(Better::Lower) { -v } else { v }))
            .collect();
        let first = |better: fn(f64, f64) -> bool| {
            values.iter().copied().reduce(|a, b| if better(b.1, a.1) { b } else { a }).map(|v| v.0)
        };
        if let (Some(best), Some(worst)) = (first(|x, y| x > y), first(|x, y| x < y)) {
            out[best].0 += 1;
            out[worst].1 += 1;
        }
    }
    out
}

/// Largest over smallest value; `None` for fewer than two values or with one that is not positive.
#[must_use]
pub fn spread(t: &Test) -> Option<f64> {
    let values: Vec<f64> = t.cells.iter().filter_map(|c| c.value).collect();
    if values.len() < 2 || values.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let high = values.iter().copied().fold(f64::MIN, f64::max);
    let low = values.iter().copied().fold(f64::MAX, f64::min);
    Some(high / low)
}

/// Whether a test is noisy. A run is noisy if it has more than two samples with SD/mean above 6 %. One such run is
/// enough; with more than five runs at least a fifth of them must be noisy.
#[must_use]
pub fn is_noisy(t: &Test) -> bool {
    let noisy = t
        .cells
        .iter()
        .filter_map(super::model::Cell::statistics)
        .filter(|s| noisy_from(s.n, s.mean.unwrap_or(0.0), s.sd.unwrap_or(0.0)))
        .count();
    noisy > 0 && (t.cells.len() <= 5 || noisy * 5 >= t.cells.len())
}

/// Whether the runs hardly differ: best/worst below 1.03, or, with more than three values, more than 30 % of
/// them within 3 % of the mean of those that lie within 1.5 SD.
#[must_use]
pub fn has_little_change(t: &Test) -> bool {
    let Some(spread) = spread(t) else { return true };
    let values: Vec<f64> = t.cells.iter().filter_map(|c| c.value).collect();
    if spread < 1.03 {
        return true;
    }
    if values.len() <= 3 {
        return false;
    }
    let m = without_outliers(&values);
    let near = values.iter().filter(|v| (**v - m).abs() <= 0.03 * m.abs()).count();
    near as f64 > 0.30 * values.len() as f64
}

/// The mean of the samples within 1.5 SD of their mean.
#[must_use]
pub fn without_outliers(samples: &[f64]) -> f64 {
    let s = crate::stats::mean_and_sd(samples);
    let kept: Vec<f64> = samples.iter().copied().filter(|v| (v - s.0).abs() <= 1.5 * s.1).collect();
    crate::stats::mean_of(&kept).unwrap_or(s.0)
}

/// The notable tests: those with the largest spread, noisy ones excluded; a quarter of the tests, at most ten.
#[must_use]
pub fn notable(c: &Comparison) -> Vec<usize> {
    let mut order: Vec<(usize, f64)> = c
        .tests
        .iter()
        .enumerate()
        .filter(|(_, t)| !is_noisy(t))
        .filter_map(|(i, t)| Some((i, spread(t)?)))
        .collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    order.truncate((c.tests.len() / 4).min(10));
    order.into_iter().map(|(i, _)| i).collect()
}

/// Values of a test over the worst (worst = 1.0, better is more); `None` for a missing value.
#[must_use]
pub fn normalised(c: &Comparison, t: &Test) -> Vec<Option<f64>> {
    let turned = |v: f64| if t.better == Some(Better::Lower) { 1.0 / v } else { v };
    let values: Vec<Option<f64>> = c
        .runs
        .iter()
        .map(|r| t.cell(&r.name).and_then(|c| c.value).filter(|v| *v > 0.0).map(turned))
        .collect();
    let low = values.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    values.into_iter().map(|v| v.map(|v| v / low)).collect()
}

/// The mean of a cell with outliers removed. Where only a published summary is left, its smallest and largest
/// sample are known, and one of them is removed when it lies beyond 1.5 SD.
#[must_use]
pub fn cell_without_outliers(cell: &crate::model::Cell) -> Option<f64> {
    if !cell.samples.is_empty() {
        return Some(without_outliers(&cell.samples));
    }
    let (Some(p), Some(s)) = (cell.summary, cell.statistics()) else { return cell.value };
    let (mut sum, mut n) = (p.mean * p.n as f64, p.n);
    for extreme in [p.min, p.max] {
        if (extreme - p.mean).abs() > 1.5 * s.sd.unwrap_or(f64::INFINITY) && n > 1 {
            sum -= extreme;
            n -= 1;
        }
    }
    Some(sum / n as f64)
}
