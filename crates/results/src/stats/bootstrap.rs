//! The BCa bootstrap of the mean (Efron, "Better bootstrap confidence intervals", 1987).

use iosched_engine::stream;

use super::special::{normal_cdf, normal_quantile};
use super::summary::mean;

/// Resamples drawn for an interval.
pub const RESAMPLES: usize = 2_000;

/// The BCa interval of the mean of `values` (at least two, not all equal) at `level` (0.95, say).
///
/// Falls back on the percentile interval when the correction is not defined (a resampling distribution
/// entirely on one side of the estimate).
#[must_use]
pub fn bca(values: &[f64], level: f64, seed: u64) -> (f64, f64) {
    let estimate = mean(values);
    let mut means = resampled_means(values, seed);
    let below = means.iter().filter(|m| **m < estimate).count();
    let equal = means.iter().filter(|m| **m == estimate).count();
    // Ties count half, as SciPy does, or a coarse distribution would be called biased.
    let share = (below as f64 + 0.5 * equal as f64) / means.len() as f64;
    let z0 = normal_quantile(share);
    let a = acceleration(values);
    let mut end = |alpha: f64| {
        let z = z0 + normal_quantile(alpha);
        let corrected = normal_cdf(z0 + z / (1.0 - a * z));
        let q = if z0.is_finite() && corrected.is_finite() { corrected } else { alpha };
        select_quantile(&mut means, q)
    };
    (end((1.0 - level) / 2.0), end(f64::midpoint(1.0, level)))
}

/// The interval that [`bca`] tends to with more and more resamples, by its analytic form for a mean (DiCiccio & Efron,
/// "More accurate confidence intervals in exponential families", 1992). It needs no resampling. So it serves large
/// samples, where resampling would take longer than measuring did.
#[must_use]
pub fn abc(values: &[f64], level: f64) -> (f64, f64) {
    let (m, n) = (mean(values), values.len() as f64);
    let spread = values.iter().map(|v| (v - m) * (v - m)).sum::<f64>().sqrt() / n;
    let a = acceleration(values);
    // For a mean the bias correction is the acceleration, too.
    let end = |alpha: f64| {
        let w = a + normal_quantile(alpha);
        m + spread * w / ((1.0 - a * w) * (1.0 - a * w))
    };
    (end((1.0 - level) / 2.0), end(f64::midpoint(1.0, level)))
}

/// The `q`-quantile of values in any order (as [`super::quantile`] of sorted ones). Selecting is several times faster
/// than sorting, and a report makes tens of thousands of intervals.
fn select_quantile(values: &mut [f64], q: f64) -> f64 {
    let last = values.len() - 1;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (i, part) = (at.floor() as usize, at.fract());
    let (_, low, above) = values.select_nth_unstable_by(i, f64::total_cmp);
    let low = *low;
    if part == 0.0 {
        return low;
    }
    low + part * (above.iter().copied().fold(f64::INFINITY, f64::min) - low)
}

fn resampled_means(values: &[f64], seed: u64) -> Vec<f64> {
    let n = values.len();
    let mut rng = stream(seed, "results/bootstrap");
    let first = values[0];
    // Each half of a draw picks one value, by multiplication.
    let pick = |half: u64| values[((half * n as u64) >> 32) as usize] - first;
    let mut means = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let mut sum = 0.0;
        for _ in 0..n / 2 {
            let r = rng.next_u64();
            sum += pick(r >> 32) + pick(r & 0xffff_ffff);
        }
        if n % 2 == 1 {
            sum += pick(rng.next_u64() >> 32);
        }
        means.push(first + sum / n as f64);
    }
    means
}

/// The acceleration from the jackknife: a sixth of the skewness of the leave-one-out means.
fn acceleration(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let total = mean(values) * n;
    let left_out: Vec<f64> = values.iter().map(|v| (total - v) / (n - 1.0)).collect();
    let centre = mean(&left_out);
    let (mut cubes, mut squares) = (0.0, 0.0);
    for v in &left_out {
        let d = centre - v;
        cubes += d * d * d;
        squares += d * d;
    }
    if squares == 0.0 { 0.0 } else { cubes / (6.0 * squares.powf(1.5)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selecting_is_sorting() {
        let mut rng = stream(3, "t");
        let v: Vec<f64> = (0..501).map(|_| rng.unit()).collect();
        let mut sorted = v.clone();
        sorted.sort_by(f64::total_cmp);
        for q in [0.0, 0.013, 0.5, 0.777, 1.0] {
            let got = select_quantile(&mut v.clone(), q);
            assert!((got - super::super::quantile(&sorted, q).unwrap()).abs() < 1e-15);
        }
    }

    #[test]
    fn the_analytic_form_is_what_resampling_tends_to() {
        let mut rng = stream(11, "t");
        // Exponential: the mean's interval leans to the right.
        let v: Vec<f64> = (0..400).map(|_| -(1.0 - rng.unit()).ln()).collect();
        let (resampled, analytic) = (bca(&v, 0.95, 1), abc(&v, 0.95));
        let width = resampled.1 - resampled.0;
        for (r, a) in [(resampled.0, analytic.0), (resampled.1, analytic.1)] {
            assert!((r - a).abs() < 0.08 * width, "{resampled:?} {analytic:?}");
        }
        let m = mean(&v);
        assert!(analytic.1 - m > m - analytic.0);
    }

    #[test]
    fn the_same_data_give_the_same_interval() {
        let v = [3.1, 2.9, 3.3, 3.0, 9.0, 3.2];
        assert_eq!(bca(&v, 0.95, 7), bca(&v, 0.95, 7));
        let (low, high) = bca(&v, 0.95, 7);
        assert!(low < mean(&v) && mean(&v) < high);
        // Skewed to the right: so is the interval.
        assert!(high - mean(&v) > mean(&v) - low);
    }
}
