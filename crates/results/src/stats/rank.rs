//! Rank statistics: Mann–Whitney U and Cliff's delta.

use serde::{Deserialize, Serialize};

use super::special::normal_cdf;
use super::summary::Observation;

/// Largest product of sizes for which the exact null distribution is computed.
const EXACT_LIMIT: usize = 2_500;

/// Result of the Mann–Whitney U test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MannWhitney {
    /// U of the first sample: pairs in which it is larger, ties half.
    pub u: f64,
    /// Two-sided p value.
    pub p: f64,
    /// Whether the exact distribution was used (small samples without ties), not the normal one.
    pub exact: bool,
}

/// Where a censored value ranks: above every other, tied with the other censored ones.
fn rank_key(o: &Observation) -> f64 {
    if o.censored { f64::INFINITY } else { o.value }
}

/// Mann–Whitney U of two samples, two-sided. Exact for small samples without ties, otherwise normal
/// with correction for ties and continuity. Censored values rank above all others and tie.
///
/// `None` when a sample is empty.
#[must_use]
pub fn mann_whitney(x: &[Observation], y: &[Observation]) -> Option<MannWhitney> {
    let (n, m) = (x.len(), y.len());
    let (u, variance, tied) = u_statistic(x, y)?;
    if !tied && n * m <= EXACT_LIMIT {
        return Some(MannWhitney { u, p: exact_p(u, n, m), exact: true });
    }
    let (half, sigma) = ((n * m) as f64 / 2.0, variance.sqrt());
    let p = if sigma == 0.0 { 1.0 } else { two_sided(((u - half).abs() - 0.5) / sigma) };
    Some(MannWhitney { u, p, exact: false })
}

fn two_sided(z: f64) -> f64 {
    (2.0 * (1.0 - normal_cdf(z))).clamp(0.0, 1.0)
}

/// U of the first sample, its variance where nothing differs, corrected for ties, and whether values tie.
fn u_statistic(x: &[Observation], y: &[Observation]) -> Option<(f64, f64, bool)> {
    let (n, m) = (x.len(), y.len());
    if n == 0 || m == 0 {
        return None;
    }
    let mut all: Vec<(f64, bool)> = x.iter().map(|o| (rank_key(o), true)).collect();
    all.extend(y.iter().map(|o| (rank_key(o), false)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut rank_sum, mut ties) = (0.0, 0.0);
    let mut i = 0;
    while i < all.len() {
        let end = all[i..].iter().take_while(|v| v.0 == all[i].0).count() + i;
        let t = (end - i) as f64;
        let rank = (i + end + 1) as f64 / 2.0;
        rank_sum += rank * all[i..end].iter().filter(|v| v.1).count() as f64;
        ties += t * t * t - t;
        i = end;
    }
    let u = rank_sum - (n * (n + 1)) as f64 / 2.0;
    let (nf, mf, total) = (n as f64, m as f64, (n + m) as f64);
    let variance = nf * mf / 12.0 * ((total + 1.0) - ties / (total * (total - 1.0)));
    Some((u, variance, ties > 0.0))
}

/// Two-sided p from the number of arrangements with each U (recurrence over sample sizes).
fn exact_p(u: f64, n: usize, m: usize) -> f64 {
    // counts[k][u] over the first i elements of the second sample; probabilities, not counts, so
    // that large samples do not overflow: f(n, m) = n/(n+m)·f(n−1, m; u−m) + m/(n+m)·f(n, m−1; u).
    let size = n * m + 1;
    let mut rows: Vec<Vec<f64>> = vec![vec![0.0; size]; n + 1];
    rows.iter_mut().for_each(|r| r[0] = 1.0);
    for j in 1..=m {
        let mut next: Vec<Vec<f64>> = vec![vec![0.0; size]; n + 1];
        next[0][0] = 1.0;
        for i in 1..=n {
            let (fi, fj) = (i as f64, j as f64);
            for k in 0..=i * j {
                let with = if k >= j { next[i - 1][k - j] } else { 0.0 };
                next[i][k] = (fi * with + fj * rows[i][k]) / (fi + fj);
            }
        }
        rows = next;
    }
    let larger = u.max((n * m) as f64 - u) as usize;
    let tail: f64 = rows[n][larger..].iter().sum();
    (2.0 * tail).min(1.0)
}

/// Cliff's delta: P(x > y) − P(x < y), from −1 to 1; 0 when a sample is empty.
#[must_use]
pub fn cliffs_delta(x: &[Observation], y: &[Observation]) -> f64 {
    mann_whitney_u(x, y).map_or(0.0, |u| 2.0 * u / (x.len() * y.len()) as f64 - 1.0)
}

fn mann_whitney_u(x: &[Observation], y: &[Observation]) -> Option<f64> {
    if x.is_empty() || y.is_empty() {
        return None;
    }
    let mut below: Vec<f64> = y.iter().map(rank_key).collect();
    below.sort_by(f64::total_cmp);
    let u = x.iter().map(|o| {
        let k = rank_key(o);
        let less = below.partition_point(|v| *v < k);
        let up_to = below.partition_point(|v| *v <= k);
        less as f64 + 0.5 * (up_to - less) as f64
    });
    Some(u.sum())
}

/// Romano's words for the size of Cliff's delta: negligible below 0.147, small below 0.33, medium
/// below 0.474, else large.
#[must_use]
pub fn effect_word(delta: f64) -> &'static str {
    match delta.abs() {
        d if d < 0.147 => "negligible",
        d if d < 0.33 => "small",
        d if d < 0.474 => "medium",
        _ => "large",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn obs(v: &[f64]) -> Vec<Observation> {
        v.iter().copied().map(Observation::from).collect()
    }

    /// p by listing every way to choose which of the pooled values are the first sample's.
    fn brute(x: &[f64], y: &[f64]) -> f64 {
        let pool: Vec<f64> = x.iter().chain(y).copied().collect();
        let u_of = |chosen: u32| {
            let (mut a, mut b) = (vec![], vec![]);
            for (i, v) in pool.iter().enumerate() {
                if chosen >> i & 1 == 1 { a.push(*v) } else { b.push(*v) }
            }
            a.iter().flat_map(|p| b.iter().map(move |q| f64::from(u8::from(p > q)))).sum::<f64>()
        };
        let seen = u_of((1 << x.len()) - 1);
        let far = seen.max((x.len() * y.len()) as f64 - seen);
        let all: Vec<f64> = (0..1u32 << pool.len())
            .filter(|c| c.count_ones() as usize == x.len())
            .map(u_of)
            .collect();
        (2.0 * all.iter().filter(|u| **u >= far).count() as f64 / all.len() as f64).min(1.0)
    }

    proptest! {
        #[test]
        fn exact_p_is_that_of_all_arrangements(seed in 0u64..10_000, n in 1usize..6, m in 1usize..6) {
            let mut rng = iosched_engine::stream(seed, "t");
            let v: Vec<f64> = (0..n + m).map(|_| rng.unit()).collect();
            let got = mann_whitney(&obs(&v[..n]), &obs(&v[n..])).unwrap();
            prop_assert!(got.exact);
            prop_assert!((got.p - brute(&v[..n], &v[n..])).abs() < 1e-12);
        }

        #[test]
        fn delta_is_antisymmetric(a in proptest::collection::vec(0u8..9, 1..12),
                                  b in proptest::collection::vec(0u8..9, 1..12)) {
            let of = |v: &[u8]| v.iter().map(|x| Observation::from(f64::from(*x))).collect::<Vec<_>>();
            let (a, b) = (of(&a), of(&b));
            prop_assert!((cliffs_delta(&a, &b) + cliffs_delta(&b, &a)).abs() < 1e-12);
        }
    }

    #[test]
    fn censored_values_rank_above_all() {
        let limit = Observation { value: 60.0, censored: true };
        let slow = [limit; 5];
        let fast = obs(&[59.0, 61.0, 2.0, 3.0, 4.0]);
        assert_eq!(cliffs_delta(&slow, &fast), 1.0);
        assert!(mann_whitney(&slow, &fast).unwrap().p < 0.02);
    }
}
