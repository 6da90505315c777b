//! The summary of one cell's samples.

use serde::{Deserialize, Serialize};

use super::{bootstrap, special};

/// One measured value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The value; the limit when `censored`.
    pub value: f64,
    /// The true value lies beyond `value` (a time limit struck).
    pub censored: bool,
}

impl From<f64> for Observation {
    fn from(value: f64) -> Self {
        Observation { value, censored: false }
    }
}

/// Samples larger than this are not resampled; a formula gives their intervals. The cost of resampling grows with the
/// number of values, and from this size on both forms agree.
pub const LARGE: usize = 30;

/// Few values are skewed where the largest is over so many times the smallest.
const FEW_TIMES: f64 = 2.0;

/// How a confidence interval was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CiMethod {
    /// Bias-corrected and accelerated bootstrap of the mean (Efron 1987), for n from 5 to [`LARGE`].
    Bca,
    /// The analytic form of the BCa interval (DiCiccio & Efron 1992), for more than [`LARGE`] values.
    Abc,
    /// Student's t, for n of 2 to 4. Of few skewed values, on their logarithms.
    T,
    /// All values are equal: the interval has no width.
    Exact,
    /// From a published mean, standard error and n, by Student's t.
    Published,
}

/// A 95 % confidence interval of [`Summary::centre`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How it was made.
    pub method: CiMethod,
}

/// The summary of one cell.
///
/// With censored values, mean, SD, SE and CI do not exist (`None`), the median only when fewer than
/// half are censored, and `max` is the limit. What is shown instead of the mean is a bound that it lies beyond.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Values, censored ones included.
    pub n: usize,
    /// How many of them are censored.
    pub censored: usize,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Sample standard deviation (n − 1); needs two values.
    pub sd: Option<f64>,
    /// Standard error of the mean.
    pub se: Option<f64>,
    /// Smallest value (0 when n = 0).
    pub min: f64,
    /// Largest value (0 when n = 0).
    pub max: f64,
    /// 95 % confidence interval of the mean; needs two values.
    pub ci: Option<Interval>,
    /// With censored values: the mean if each of them were its limit. The true mean is larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
}

impl Summary {
    /// The value of a bar, a table and a verdict: the mean, the median of few skewed values, or the bound that the mean lies
    /// beyond.
    #[must_use]
    pub fn centre(&self) -> Option<f64> {
        let median = self.median.filter(|_| self.skewed());
        median.or(self.mean).or(self.bound)
    }

    /// Few values of which one is over twice another: their mean is that of the largest, more than of the rest.
    #[must_use]
    pub fn skewed(&self) -> bool {
        (2..=LARGE).contains(&self.n)
            && self.censored == 0
            && self.min > 0.0
            && self.max > FEW_TIMES * self.min
    }

    /// Coefficient of variation SD/mean; `None` without a positive mean or with fewer than two values.
    #[must_use]
    pub fn cv(&self) -> Option<f64> {
        self.sd.zip(self.mean).filter(|(_, m)| *m != 0.0).map(|(s, m)| s / m.abs())
    }

    /// The summary that a publication gave instead of its samples.
    #[must_use]
    pub fn published(n: usize, mean: f64, se: f64, min: f64, max: f64) -> Summary {
        let ci = (n > 1).then(|| {
            let half = special::t_quantile(0.975, (n - 1) as f64) * se;
            let low = bounded(mean - half, min);
            Interval { low, high: mean + half, method: CiMethod::Published }
        });
        Summary {
            n,
            mean: Some(mean),
            sd: (n > 1).then(|| se * (n as f64).sqrt()),
            se: (n > 1).then_some(se),
            min,
            max,
            ci,
            ..Summary::default()
        }
    }
}

/// As [`Summary::centre`], of values alone.
pub(super) fn centre(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (min, max) = (*sorted.first()?, *sorted.last()?);
    let n = sorted.len();
    let ends = Summary { n, min, max, ..Summary::default() };
    if ends.skewed() {
        return Some(mean(&[sorted[(n - 1) / 2], sorted[n / 2]]));
    }
    Some(mean(values))
}

/// Sample mean; 0 for none.
pub(crate) fn mean(v: &[f64]) -> f64 {
    // Against the first value, so that equal values have exactly their value as mean.
    let Some(&first) = v.first() else { return 0.0 };
    first + v.iter().map(|x| x - first).sum::<f64>() / v.len() as f64
}

/// Sample standard deviation (n − 1); 0 for fewer than two.
pub(crate) fn sd(v: &[f64]) -> f64 {
    if v.len() < 2 {
        return 0.0;
    }
    let m = mean(v);
    (v.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / (v.len() - 1) as f64).sqrt()
}

/// The `q`-quantile (0..=1) of ascending values by linear interpolation (NumPy's default, R's type 7).
/// `None` when there is no value.
#[must_use]
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q.clamp(0.0, 1.0) * last as f64;
    let (i, part) = (at.floor() as usize, at.fract());
    let next = sorted[(i + 1).min(last)];
    Some(if part == 0.0 { sorted[i] } else { sorted[i] + part * (next - sorted[i]) })
}

/// Summarises a cell; `seed` names the bootstrap's random stream, so the same data give the same interval.
#[must_use]
pub fn summarize(observations: &[Observation], seed: u64) -> Summary {
    let mut values: Vec<f64> = observations.iter().map(|o| o.value).collect();
    let censored = observations.iter().filter(|o| o.censored).count();
    let n = values.len();
    let mut out = Summary { n, censored, ..Summary::default() };
    if n == 0 {
        return out;
    }
    if censored == 0 {
        let m = mean(&values);
        out.mean = Some(m);
        if n > 1 {
            let s = sd(&values);
            out.sd = Some(s);
            out.se = Some(s / (n as f64).sqrt());
            out.ci = Some(interval(&values, m, s, seed));
        }
    } else {
        out.bound = Some(mean(&values));
    }
    values.sort_by(f64::total_cmp);
    out.min = values[0];
    out.max = values[n - 1];
    if out.skewed() {
        out.ci = Some(of_logarithms(&values));
    }
    // A censored value lies above its limit: the median is known while it falls on uncensored ones.
    let mut ranked: Vec<(f64, bool)> = observations
        .iter()
        .map(|o| (if o.censored { f64::INFINITY } else { o.value }, o.censored))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    if !ranked[n / 2].1 {
        out.median = Some(if n % 2 == 1 {
            ranked[n / 2].0
        } else {
            mean(&[ranked[n / 2 - 1].0, ranked[n / 2].0])
        });
    }
    out
}

fn interval(values: &[f64], mean: f64, sd: f64, seed: u64) -> Interval {
    let n = values.len();
    if values.iter().all(|v| v == &values[0]) {
        return Interval { low: mean, high: mean, method: CiMethod::Exact };
    }
    if n > LARGE {
        let (low, high) = bootstrap::abc(values, 0.95);
        return Interval { low, high, method: CiMethod::Abc };
    }
    if n >= 5 {
        let (low, high) = bootstrap::bca(values, 0.95, seed);
        return Interval { low, high, method: CiMethod::Bca };
    }
    let half = special::t_quantile(0.975, (n - 1) as f64) * sd / (n as f64).sqrt();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    Interval { low: bounded(mean - half, least), high: mean + half, method: CiMethod::T }
}

/// The interval of the median of few skewed values: Student's on their logarithms, whose mean and median are one where they are
/// spread evenly. It holds the median.
fn of_logarithms(sorted: &[f64]) -> Interval {
    let n = sorted.len();
    let logs: Vec<f64> = sorted.iter().map(|v| v.ln()).collect();
    let half = special::t_quantile(0.975, (n - 1) as f64) * sd(&logs) / (n as f64).sqrt();
    let (m, middle) = (mean(&logs), [sorted[(n - 1) / 2], sorted[n / 2]]);
    // From five values on, as with other intervals, none lies beyond them.
    let (least, most) = if n >= 5 { (sorted[0], sorted[n - 1]) } else { (0.0, f64::INFINITY) };
    Interval {
        low: (m - half).exp().max(least).min(middle[0]),
        high: (m + half).exp().min(most).max(middle[1]),
        method: CiMethod::T,
    }
}

/// Student's interval of few values knows no bounds. The mean of waits and rates cannot be below zero.
fn bounded(low: f64, least: f64) -> f64 {
    if least >= 0.0 { low.max(0.0) } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(v: &[f64]) -> Summary {
        summarize(&v.iter().copied().map(Observation::from).collect::<Vec<_>>(), 1)
    }

    #[test]
    fn few_skewed_values_have_their_median() {
        let s = of(&[2.0, 2.2, 13.6]);
        assert_eq!((s.centre(), centre(&[13.6, 2.0, 2.2])), (Some(2.2), Some(2.2)));
        let ci = s.ci.unwrap();
        assert!(ci.low <= 2.2 && ci.high >= 2.2 && ci.low > 0.0, "{ci:?}");
        // Of two it is their mean.
        assert_eq!(of(&[2.0, 13.6]).centre(), Some(7.8));
        let even = of(&[2.0, 2.2, 3.0]);
        assert_eq!((even.centre(), centre(&[2.0, 2.2, 3.0])), (even.mean, even.mean));
        assert!(!of(&[0.0, 1.0, 9.0]).skewed() && !of(&[-1.0, 1.0]).skewed());
    }

    #[test]
    fn waits_have_no_interval_below_zero() {
        let ci = of(&[0.5, 0.5, 1.0]).ci.unwrap();
        assert!(ci.low == 0.0 && ci.high > 1.0, "{ci:?}");
        assert!(of(&[-0.2, 0.3, 1.0]).ci.unwrap().low < 0.0, "what can be negative");
        assert_eq!(Summary::published(3, 1.0, 0.5, 0.1, 2.0).ci.unwrap().low, 0.0);
    }

    #[test]
    fn equal_values_have_an_interval_without_width() {
        let s = of(&[0.1; 7]);
        assert_eq!(s.mean, Some(0.1));
        assert_eq!(s.ci, Some(Interval { low: 0.1, high: 0.1, method: CiMethod::Exact }));
        assert_eq!(s.sd, Some(0.0));
    }

    #[test]
    fn methods_depend_on_n() {
        assert_eq!(of(&[1.0]).ci, None);
        assert_eq!(of(&[1.0, 2.0]).ci.map(|c| c.method), Some(CiMethod::T));
        assert_eq!(of(&[3.0, 4.0, 4.5, 5.0, 6.0]).ci.map(|c| c.method), Some(CiMethod::Bca));
        assert_eq!(
            of(&[1.0, 2.0, 3.0, 4.0, 6.0]).ci.map(|c| c.method),
            Some(CiMethod::T),
            "skewed"
        );
        assert_eq!(of(&[]).n, 0);
        // Resampling ends at a fixed size, so an interval of many rounds costs no more than reading them.
        let method = |n: usize| {
            let values: Vec<f64> = (0..n).map(|i| (i * 7 % 13) as f64).collect();
            of(&values).ci.map(|c| c.method)
        };
        assert_eq!(method(LARGE), Some(CiMethod::Bca));
        for n in [LARGE + 1, 157, 25_000] {
            assert_eq!(method(n), Some(CiMethod::Abc), "{n}");
        }
    }

    #[test]
    fn censored_values_are_never_averaged() {
        let o = |value, censored| Observation { value, censored };
        let s = summarize(&[o(2.0, false), o(60.0, true), o(3.0, false)], 1);
        assert_eq!((s.mean, s.sd, s.median, s.censored), (None, None, Some(3.0), 1));
        let s = summarize(&[o(2.0, false), o(60.0, true), o(60.0, true)], 1);
        assert_eq!((s.median, s.max), (None, 60.0));
        assert_eq!((s.bound, s.centre()), (Some(122.0 / 3.0), Some(122.0 / 3.0)));
    }

    proptest! {
        #[test]
        fn the_interval_lies_within_the_range_and_holds_the_mean(
            v in proptest::collection::vec(0.0f64..1000.0, 5..30),
        ) {
            let s = of(&v);
            let ci = s.ci.unwrap();
            prop_assert!(s.min <= ci.low + 1e-9 && ci.high <= s.max + 1e-9);
            prop_assert!(ci.low <= ci.high);
        }
    }
}
