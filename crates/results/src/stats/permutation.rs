//! Permutation tests: two independent samples, and paired differences with random signs.

use iosched_engine::stream;
use serde::{Deserialize, Serialize};

use super::special::normal_cdf;
use super::summary::{LARGE, mean};

/// Up to so many arrangements all are visited; beyond, this many are drawn.
const ARRANGEMENTS: u64 = 20_000;

/// Result of a permutation test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Permutation {
    /// Two-sided p value: twice the smaller tail, at most 1.
    pub p: f64,
    /// Whether all arrangements were visited.
    pub exact: bool,
    /// The smallest p value that samples of this size can give.
    pub smallest_p: f64,
}

/// Counts of arrangements at or beyond the observed statistic, to either side.
#[derive(Default)]
struct Tails {
    low: u64,
    high: u64,
    all: u64,
}

impl Tails {
    /// Equal up to rounding counts as equal, or an arrangement that is the observed one in another
    /// order of summation might be missed.
    fn count(&mut self, statistic: f64, observed: f64, tolerance: f64) {
        self.all += 1;
        self.low += u64::from(statistic <= observed + tolerance);
        self.high += u64::from(statistic >= observed - tolerance);
    }

    fn p(&self, exact: bool) -> f64 {
        let tail = self.low.min(self.high);
        // A drawn test counts the observed arrangement as one of those drawn (Phipson & Smyth 2010).
        let p = if exact {
            tail as f64 / self.all as f64
        } else {
            (tail + 1) as f64 / (self.all + 1) as f64
        };
        (2.0 * p).min(1.0)
    }
}

/// n over k, `None` beyond `limit`.
fn choose(n: u64, k: u64, limit: u64) -> Option<u64> {
    let mut c: u64 = 1;
    for i in 0..k.min(n - k) {
        c = c.checked_mul(n - i)? / (i + 1);
        if c > limit {
            return None;
        }
    }
    Some(c)
}

/// The smallest p that samples of these sizes can give in [`two_sample`].
pub(super) fn smallest_two_sample(n: usize, m: usize) -> f64 {
    if n == 0 || m == 0 {
        return 1.0;
    }
    if n + m > 2 * LARGE {
        return 0.0;
    }
    let all = choose((n + m) as u64, n as u64, ARRANGEMENTS).unwrap_or(ARRANGEMENTS + 1);
    (2.0 / all as f64).min(1.0)
}

/// The permutation distribution of a sum of very many terms: normal, with the variance that all arrangements have.
fn limit(observed: f64, variance: f64, tolerance: f64) -> Permutation {
    let far = (observed.abs() - tolerance).max(0.0);
    let p = if far == 0.0 { 1.0 } else { 2.0 * normal_cdf(-far / variance.sqrt()) };
    Permutation { p: p.min(1.0), exact: false, smallest_p: 0.0 }
}

/// Permutation test of the difference of two means; beyond twice [`LARGE`] values the distribution's limit. `None` when a sample is empty.
#[must_use]
pub fn two_sample(x: &[f64], y: &[f64], seed: u64) -> Option<Permutation> {
    if x.is_empty() || y.is_empty() {
        return None;
    }
    let mut pool: Vec<f64> = x.iter().chain(y).copied().collect();
    // Around zero, so that sums do not lose digits.
    let centre = mean(&pool);
    pool.iter_mut().for_each(|v| *v -= centre);
    let observed: f64 = pool[..x.len()].iter().sum();
    let tolerance = 1e-12 * pool.iter().map(|v| v.abs()).sum::<f64>();
    let (n, k) = (pool.len() as u64, x.len() as u64);
    if pool.len() > 2 * LARGE {
        let squares: f64 = pool.iter().map(|v| v * v).sum();
        let variance = (k * (n - k)) as f64 / (n * (n - 1)) as f64 * squares;
        return Some(limit(observed, variance, tolerance));
    }
    let mut tails = Tails::default();
    let exact = choose(n, k, ARRANGEMENTS);
    if exact.is_some() {
        combinations(&pool, x.len(), |s| tails.count(s, observed, tolerance));
    } else {
        let mut rng = stream(seed, "results/permutation");
        for _ in 0..ARRANGEMENTS {
            // The first k places of a Fisher–Yates shuffle.
            for i in 0..x.len() {
                let j = i + rng.below(n - i as u64) as usize;
                pool.swap(i, j);
            }
            tails.count(pool[..x.len()].iter().sum(), observed, tolerance);
        }
    }
    let smallest_p = smallest_two_sample(x.len(), y.len());
    Some(Permutation { p: tails.p(exact.is_some()), exact: exact.is_some(), smallest_p })
}

/// Calls `f` with the sum of every choice of `k` elements.
fn combinations(pool: &[f64], k: usize, mut f: impl FnMut(f64)) {
    let n = pool.len();
    let mut index: Vec<usize> = (0..k).collect();
    loop {
        f(index.iter().map(|i| pool[*i]).sum());
        let Some(i) = (0..k).rev().find(|i| index[*i] != *i + n - k) else { return };
        index[i] += 1;
        for j in i + 1..k {
            index[j] = index[j - 1] + 1;
        }
    }
}

/// Permutation test that the mean of paired differences is zero: every sign is as likely as the
/// other. Beyond [`LARGE`] differences the distribution's limit.
/// `None` when there is no difference.
#[must_use]
pub fn sign_flip(differences: &[f64], seed: u64) -> Option<Permutation> {
    if differences.is_empty() {
        return None;
    }
    let n = differences.len() as u32;
    let observed: f64 = differences.iter().sum();
    let tolerance = 1e-12 * differences.iter().map(|v| v.abs()).sum::<f64>();
    if differences.len() > LARGE {
        let variance = differences.iter().map(|d| d * d).sum();
        return Some(limit(observed, variance, tolerance));
    }
    let mut tails = Tails::default();
    let exact = n < 63 && 1u64 << n <= ARRANGEMENTS;
    let signed = |bits: u64| {
        let sum = differences.iter().enumerate();
        sum.map(|(i, d)| if bits >> (i % 64) & 1 == 1 { -d } else { *d }).sum::<f64>()
    };
    if exact {
        (0..1u64 << n).for_each(|bits| tails.count(signed(bits), observed, tolerance));
    } else {
        let mut rng = stream(seed, "results/sign-flip");
        for _ in 0..ARRANGEMENTS {
            let mut sum = 0.0;
            for chunk in differences.chunks(64) {
                let bits = rng.next_u64();
                sum += chunk
                    .iter()
                    .enumerate()
                    .map(|(i, d)| if bits >> i & 1 == 1 { -d } else { *d })
                    .sum::<f64>();
            }
            tails.count(sum, observed, tolerance);
        }
    }
    let all = if exact { (1u64 << n) as f64 } else { (ARRANGEMENTS + 1) as f64 };
    Some(Permutation { p: tails.p(exact), exact, smallest_p: (2.0 / all).min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separated_samples_reach_the_smallest_p() {
        let r = two_sample(&[1.0, 2.0, 3.0, 4.0], &[11.0, 12.0, 13.0, 14.0], 1).unwrap();
        assert!(r.exact);
        assert_eq!(r.p, 2.0 / 70.0);
        assert_eq!(r.smallest_p, r.p);
        let r = sign_flip(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1).unwrap();
        assert_eq!(r.p, 2.0 / 64.0);
    }

    #[test]
    fn equal_samples_are_equal() {
        assert_eq!(two_sample(&[5.0; 4], &[5.0; 4], 1).unwrap().p, 1.0);
        assert_eq!(sign_flip(&[0.0; 6], 1).unwrap().p, 1.0);
    }

    #[test]
    fn the_limit_continues_the_drawn_tests() {
        let mut rng = stream(5, "t");
        let mut skewed = |n: usize, by: f64| -> Vec<f64> {
            (0..n).map(|_| by - (1.0 - rng.unit()).ln()).collect()
        };
        for shift in [0.0, 0.1, 0.2] {
            let (x, y) = (skewed(LARGE, 1.0 + shift), skewed(LARGE, 1.0));
            let drawn = two_sample(&x, &y, 1).unwrap();
            let centre = mean(&[mean(&x), mean(&y)]);
            let pool: Vec<f64> = x.iter().chain(&y).map(|v| v - centre).collect();
            let squares: f64 = pool.iter().map(|v| v * v).sum();
            let n = pool.len() as f64;
            let formula = limit(pool[..LARGE].iter().sum(), squares * 0.25 * n / (n - 1.0), 0.0);
            assert!((drawn.p - formula.p).abs() < 0.02, "{} {}", drawn.p, formula.p);
            let d: Vec<f64> = x.iter().zip(&y).map(|(a, b)| a - b).collect();
            let drawn = sign_flip(&d, 1).unwrap();
            let formula = limit(d.iter().sum(), d.iter().map(|v| v * v).sum(), 0.0);
            assert!((drawn.p - formula.p).abs() < 0.02, "{} {}", drawn.p, formula.p);
        }
        let far = two_sample(&vec![1.0; 300], &vec![2.0; 300], 1).unwrap();
        assert!(far.p < 1e-12 && !far.exact);
        assert_eq!(two_sample(&[3.0; 300], &[3.0; 300], 1).unwrap().p, 1.0);
        assert_eq!(sign_flip(&[0.0; 300], 1).unwrap().p, 1.0);
    }

    #[test]
    fn large_samples_are_drawn() {
        let a: Vec<f64> = (0..40).map(f64::from).collect();
        let b: Vec<f64> = (0..40).map(|i| f64::from(i) + 0.1).collect();
        let c: Vec<f64> = (0..40).map(|i| f64::from(i) + 100.0).collect();
        let near = two_sample(&a, &b, 1).unwrap();
        assert!(!near.exact && near.p > 0.9);
        assert!(two_sample(&a, &c, 1).unwrap().p < 0.001);
        assert!(sign_flip(&vec![1.0; 70], 1).unwrap().p < 0.001);
    }
}
