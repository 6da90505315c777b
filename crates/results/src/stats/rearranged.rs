//! A test over several figures at once by rearranging their values.

use iosched_engine::stream;

use super::special::normal_cdf;

/// Rearrangements drawn. The smallest p is one in so many.
const DRAWS: usize = 5_000;
/// Beyond so many values the sum of so many chances is normal, and nothing is drawn.
const MOST: usize = 500;

/// One figure: the values of both sides, and its weight.
pub type Stratum<'a> = (&'a [f64], &'a [f64], f64);

/// Two-sided p that the weighted mean of the figures' differences is chance: how often it is as large when each
/// figure's values are dealt anew to the two sides. The test assumes nothing about how values scatter, so it may be
/// given values of which some are only a bound. 1 without values.
#[must_use]
pub fn rearranged(figures: &[Stratum<'_>], seed: u64) -> f64 {
    let mut pools: Vec<Pool> = figures.iter().filter_map(Pool::of).collect();
    let seen: f64 = pools.iter().map(|p| p.difference(p.sum)).sum::<f64>().abs();
    let variance: f64 = pools.iter().map(Pool::variance).sum();
    if seen == 0.0 || variance == 0.0 {
        return 1.0;
    }
    if pools.iter().map(|p| p.values.len()).sum::<usize>() > MOST {
        return (2.0 * normal_cdf(-seen / variance.sqrt())).min(1.0);
    }
    let mut rng = stream(seed, "results/rearranged");
    // Rounding must not make an equal sum smaller.
    let least = seen * (1.0 - 1e-9);
    let mut as_large = 0;
    for _ in 0..DRAWS {
        let dealt: f64 = pools.iter_mut().map(|p| p.deal(&mut |n| rng.below(n))).sum();
        as_large += usize::from(dealt.abs() >= least);
    }
    (as_large + 1) as f64 / (DRAWS + 1) as f64
}

/// The values of both sides of a figure.
struct Pool {
    values: Vec<f64>,
    /// How many are the first side's, and their sum.
    n: usize,
    sum: f64,
    total: f64,
    weight: f64,
}

impl Pool {
    fn of((x, y, weight): &Stratum<'_>) -> Option<Pool> {
        let values: Vec<f64> = x.iter().chain(*y).copied().collect();
        let total = values.iter().sum();
        let known = !x.is_empty() && !y.is_empty();
        known.then(|| Pool { n: x.len(), sum: x.iter().sum(), total, weight: *weight, values })
    }

    /// Weighted difference of the means, when the first side's values sum up to `sum`.
    fn difference(&self, sum: f64) -> f64 {
        let (n, m) = (self.n as f64, (self.values.len() - self.n) as f64);
        self.weight * (sum / n - (self.total - sum) / m)
    }

    /// Its variance when values are dealt by chance.
    fn variance(&self) -> f64 {
        let (n, all) = (self.n as f64, self.values.len() as f64);
        let mean = self.total / all;
        let squares: f64 = self.values.iter().map(|v| (v - mean) * (v - mean)).sum();
        self.weight * self.weight * squares / (all - 1.0) * all / (n * (all - n))
    }

    /// The difference after dealing anew.
    fn deal(&mut self, below: &mut impl FnMut(u64) -> u64) -> f64 {
        let all = self.values.len();
        let mut sum = 0.0;
        for i in 0..self.n {
            self.values.swap(i, i + below((all - i) as u64) as usize);
            sum += self.values[i];
        }
        self.difference(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_add_up_and_size_counts() {
        let (low, high) = ([1.0, 1.1, 1.2, 1.3, 1.4], [2.0, 2.1, 2.2, 2.3, 2.4]);
        let one = rearranged(&[(&low, &high, 1.0)], 1);
        // Of 252 ways to deal, two are as extreme.
        assert!((one - 2.0 / 252.0).abs() < 0.004, "{one}");
        let two = rearranged(&[(&low, &high, 0.5), (&low, &high, 0.5)], 1);
        assert!(two < one / 2.0, "{two} {one}");
        assert_eq!(rearranged(&[(&low, &high, 0.5), (&high, &low, 0.5)], 1), 1.0);
        // One figure moves far more than the other moves back.
        let far = high.map(|v| v + 100.0);
        let both = rearranged(&[(&low, &far, 0.5), (&high, &low, 0.5)], 1);
        assert!(both < 0.02, "{both}");
        assert_eq!(rearranged(&[(&[], &low, 1.0)], 1), 1.0);
    }

    #[test]
    fn equal_sides_are_told_apart_as_often_as_chance_does() {
        let mut rng = stream(3, "t");
        let mut found = 0;
        for seed in 0..400 {
            let values: Vec<f64> = (0..20).map(|_| rng.unit().ln()).collect();
            let of = |i: usize| (&values[i..i + 5], &values[i + 5..i + 10], 0.5);
            found += usize::from(rearranged(&[of(0), of(10)], seed) <= 0.05);
        }
        assert!((6..=34).contains(&found), "{found} of 400: one in twenty, give or take chance");
    }

    #[test]
    fn many_values_are_not_dealt() {
        let low: Vec<f64> = (0..300).map(|i| f64::from(i % 10)).collect();
        let high: Vec<f64> = low.iter().map(|v| v + 1.0).collect();
        assert!(rearranged(&[(&low, &high, 1.0)], 1) < 1e-4);
    }
}
