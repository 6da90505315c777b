//! Student's and Welch's t on logarithms, with a spread that similar figures lend each other.

use std::collections::BTreeMap;

use super::special::{digamma, normal_quantile, t_cdf, t_quantile, trigamma, trigamma_inverse};
use super::summary::mean;

/// Cells that a kind of figure needs before they lend each other their spread.
const LENDERS: usize = 4;
/// A figure with less than this share of the usual variance counts as rounded, not as steady.
const FLOOR: f64 = 1e-5;

/// Mean and variance of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Side {
    pub(crate) n: usize,
    pub(crate) mean: f64,
    /// With n − 1; 0 for a single value.
    pub(crate) variance: f64,
}

impl Side {
    pub(crate) fn of(values: &[f64]) -> Side {
        let (n, m) = (values.len(), mean(values));
        let squares: f64 = values.iter().map(|v| (v - m) * (v - m)).sum();
        let variance = if n > 1 { squares / (n - 1) as f64 } else { 0.0 };
        Side { n, mean: m, variance }
    }

    /// Of the logarithms; `None` unless every value has one.
    pub(crate) fn of_logarithms(values: &[f64]) -> Option<Side> {
        let usable = values.iter().all(|v| *v > 0.0 && v.is_finite());
        usable.then(|| Side::of(&values.iter().map(|v| v.ln()).collect::<Vec<_>>()))
    }

    fn df(self) -> f64 {
        self.n.saturating_sub(1) as f64
    }
}

/// What similar figures say about a variance before it is measured (Smyth, "Linear models and empirical Bayes methods",
/// 2004).
///
/// The prior counts as much as the figure's own runs, and only where the figures are so alike in scatter that it could
/// count more. Simulation gave both limits (`tests/power.rs`). Without them, few runs of figures with unlike scatter
/// give false verdicts on one page in ten.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prior {
    df: f64,
    variance: f64,
}

impl Prior {
    /// From the spreads of similar figures; `None` when there are too few of them.
    pub(crate) fn of(sides: &[Side]) -> Option<Prior> {
        let mut used: Vec<Side> = sides.iter().copied().filter(|s| s.n > 1).collect();
        let mut sorted: Vec<f64> =
            used.iter().map(|s| s.variance).filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let usual = *sorted.get(sorted.len() / 2)?;
        used.retain(|s| s.variance > FLOOR * usual);
        if used.len() < LENDERS || usual <= 0.0 {
            return None;
        }
        let half = |s: &Side| s.df() / 2.0;
        let logs: Vec<f64> =
            used.iter().map(|s| s.variance.ln() - digamma(half(s)) + half(s).ln()).collect();
        let noise = mean(&used.iter().map(|s| trigamma(half(s))).collect::<Vec<_>>());
        let centre = Side::of(&logs);
        let pooled: f64 = used.iter().map(|s| s.df()).sum();
        let own = pooled / used.len() as f64;
        // Only few figures show how much the true variances differ. Taking the upper end of that estimate keeps figures
        // of unlike spread from lending. Otherwise a figure that is noisier than its kind would be called better or
        // worse by chance.
        let k = (used.len() - 1) as f64;
        let upper = centre.variance * k / chi_squared_low(k) - noise;
        if upper > 0.0 && 2.0 * trigamma_inverse(upper) < own {
            return None;
        }
        // The variance itself comes from the likeliest value. With the upper end it would be too small by 1/df. The far
        // tails, which decide after a correction for many figures, multiply this error tenfold.
        let between = centre.variance - noise;
        let variance = if between > 0.0 {
            let df = 2.0 * trigamma_inverse(between);
            (centre.mean + digamma(df / 2.0) - (df / 2.0).ln()).exp()
        } else {
            used.iter().map(|s| s.variance * s.df()).sum::<f64>() / pooled
        };
        Some(Prior { df: own, variance })
    }

    fn moderate(self, s: Side) -> (f64, f64) {
        let df = self.df + s.df();
        ((self.df * self.variance + s.df() * s.variance) / df, df)
    }
}

/// The 5 % quantile of χ² with `k` degrees of freedom, by Wilson and Hilferty's cube.
fn chi_squared_low(k: f64) -> f64 {
    let spread = 2.0 / (9.0 * k);
    k * (1.0 - spread + normal_quantile(0.05) * spread.sqrt()).powi(3)
}

/// Priors by kind of figure.
pub(crate) type Priors = BTreeMap<String, Prior>;

/// A difference of two means with what is known about its chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) difference: f64,
    pub(crate) se: f64,
    pub(crate) df: f64,
}

/// Variance and degrees of freedom, moderated where a spread is lent; `None` where nothing is known.
fn spread(s: Side, prior: Option<Prior>) -> Option<(f64, f64)> {
    match prior {
        _ if s.n < 2 => None,
        Some(p) => Some(p.moderate(s)),
        None => Some((s.variance, s.df())),
    }
}

/// Welch's test of two independent sides; `None` for single values.
pub(crate) fn welch(base: Side, new: Side, prior: Option<Prior>) -> Option<Difference> {
    let ((v, f), (w, g)) = (spread(base, prior)?, spread(new, prior)?);
    let (a, b) = (v / base.n as f64, w / new.n as f64);
    let df = if a + b > 0.0 { (a + b) * (a + b) / (a * a / f + b * b / g) } else { f + g };
    Some(Difference { difference: new.mean - base.mean, se: (a + b).sqrt(), df })
}

/// Student's test that the mean of paired differences is zero; `None` for a single pair.
///
/// The lent spread steadies the variance here, but adds no degrees of freedom. There is one comparison where there are
/// two cells, so there are few lenders, and the same values decide whether they lend and how much. With the degrees
/// added, 5.35 % of equal pages were called different (20,000 pages of `tests/power.rs`, ± 0.16).
pub(crate) fn paired(differences: Side, prior: Option<Prior>) -> Option<Difference> {
    let (v, _) = spread(differences, prior)?;
    let se = (v / differences.n as f64).sqrt();
    Some(Difference { difference: differences.mean, se, df: differences.df() })
}

impl Difference {
    /// Two-sided p of no difference. Without any spread every difference is certain.
    pub(crate) fn p(self) -> f64 {
        match (self.se > 0.0, self.difference == 0.0) {
            (true, _) => self.p_of(self.difference / self.se),
            (false, true) => 1.0,
            (false, false) => 0.0,
        }
    }

    fn p_of(self, t: f64) -> f64 {
        (2.0 * t_cdf(-t.abs(), self.df)).min(1.0)
    }

    /// The confidence interval of the difference.
    pub(crate) fn interval(self, level: f64) -> (f64, f64) {
        let half = t_quantile(f64::midpoint(1.0, level), self.df) * self.se;
        (self.difference - half, self.difference + half)
    }

    /// How many runs would show a difference as large as this one at `alpha`, or show that it lies within `margin`, if
    /// the true difference is as it looks. `n` runs gave it.
    pub(crate) fn needs(self, n: usize, alpha: f64, margin: f64) -> usize {
        let enough = |k: usize| {
            let more = k as f64 / n as f64;
            let then = Difference { se: self.se / more.sqrt(), df: self.df * more, ..self };
            let far = self.difference.abs();
            let within = (margin - far) / then.se;
            then.p() <= alpha || (within > 0.0 && then.p_of(within) <= 0.05)
        };
        let mut high = n + 1;
        while !enough(high) && high < 1 << 20 {
            high *= 2;
        }
        let mut low = n;
        while high - low > 1 {
            let mid = usize::midpoint(low, high);
            if enough(mid) { high = mid } else { low = mid }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64, spread: f64, n: usize) -> Side {
        let mut rng = iosched_engine::stream(seed, "t");
        // Twelve uniform numbers less six are as good as normal here.
        let one = |rng: &mut iosched_engine::Stream| (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
        Side::of(&(0..n).map(|_| spread * one(&mut rng)).collect::<Vec<_>>())
    }

    #[test]
    fn alike_figures_lend_and_unlike_ones_do_not() {
        let alike: Vec<Side> = (0..40).map(|i| noise(i, 0.03, 10)).collect();
        let prior = Prior::of(&alike).unwrap();
        assert!(prior.df == 9.0 && (prior.variance / 0.0009 - 1.0).abs() < 0.2, "{prior:?}");
        let unlike: Vec<Side> =
            (0..40).map(|i| noise(i, 0.001 * 1.2f64.powi(i as i32), 10)).collect();
        assert_eq!(Prior::of(&unlike), None);
        assert_eq!(Prior::of(&alike[..3]), None, "three figures say nothing about a fourth");
    }

    #[test]
    fn the_runs_it_says_are_the_runs_it_takes() {
        let of = |n| {
            welch(
                Side { n, mean: 0.0, variance: 0.0009 },
                Side { n, mean: 0.04, variance: 0.0009 },
                None,
            )
        };
        let needed = of(3).unwrap().needs(3, 0.05, 0.01);
        assert!(of(needed).unwrap().p() <= 0.06 && of(needed - 2).unwrap().p() > 0.05, "{needed}");
        // Where there is no difference, that is shown.
        let level = welch(
            Side { n: 4, mean: 0.0, variance: 0.0009 },
            Side { n: 4, mean: 0.0, variance: 0.0009 },
            None,
        );
        assert!((5..40).contains(&level.unwrap().needs(4, 0.001, 0.05)));
    }
}
