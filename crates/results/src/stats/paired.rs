//! Paired ratios: the schedulers of one round ran under the same conditions, so they are compared round by round.

use serde::{Deserialize, Serialize};

use super::permutation::sign_flip;
use super::summary::{Interval, Observation, mean, summarize};

/// Ratio to the base, from the rounds that both have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    /// Rounds.
    pub n: usize,
    /// Geometric mean of the rounds' ratios.
    pub ratio: f64,
    /// Its 95 % interval (made on logarithms); needs two rounds.
    pub ci: Option<Interval>,
    /// Two-sided p of the sign-flip test on the logarithms.
    pub p: f64,
    /// The smallest p that so many rounds can give.
    pub smallest_p: f64,
}

/// Ratio `new / base` from pairs (base, new) of the same round. Pairs with a value that is not
/// positive have no logarithm and are left out; `None` when nothing remains.
#[must_use]
pub fn paired_ratio(pairs: &[(f64, f64)], seed: u64) -> Option<PairedRatio> {
    let test = paired_test(pairs, seed)?;
    let logs: Vec<Observation> = logarithms(pairs).into_iter().map(Observation::from).collect();
    let ci = summarize(&logs, seed).ci;
    let ci = ci.map(|c| Interval { low: c.low.exp(), high: c.high.exp(), method: c.method });
    Some(PairedRatio { ci, ..test })
}

/// As [`paired_ratio`] without the interval.
pub(super) fn paired_test(pairs: &[(f64, f64)], seed: u64) -> Option<PairedRatio> {
    let logs = logarithms(pairs);
    let test = sign_flip(&logs, seed)?;
    let (n, ratio) = (logs.len(), mean(&logs).exp());
    Some(PairedRatio { n, ratio, ci: None, p: test.p, smallest_p: test.smallest_p })
}

fn logarithms(pairs: &[(f64, f64)]) -> Vec<f64> {
    let usable = |(b, n): &&(f64, f64)| *b > 0.0 && *n > 0.0 && b.is_finite() && n.is_finite();
    pairs.iter().filter(usable).map(|(b, n)| (n / b).ln()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairing_sees_what_the_spread_between_rounds_hides() {
        // Rounds differ by a factor of four, the second scheduler is 10 % faster in each.
        let pairs: Vec<(f64, f64)> =
            [100.0, 400.0, 150.0, 330.0, 210.0, 260.0].iter().map(|b| (*b, b * 1.1)).collect();
        let r = paired_ratio(&pairs, 1).unwrap();
        assert!((r.ratio - 1.1).abs() < 1e-12);
        assert!((r.p - 2.0 / 64.0).abs() < 1e-12);
        assert!(r.ci.unwrap().high - r.ci.unwrap().low < 1e-9);
    }

    #[test]
    fn values_without_logarithm_are_left_out() {
        assert_eq!(paired_ratio(&[(0.0, 1.0), (1.0, -1.0), (1.0, f64::NAN)], 1), None);
    }
}
