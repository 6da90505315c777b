//! Percentiles of latency over processes and repetitions.

use iosched_types::{LatencyHistogram, Nanos};

/// The percentiles shown.
pub const PERCENTILES: [f64; 7] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.95, 99.99];

/// Percentiles of merged histograms (percentiles themselves cannot be averaged).
///
/// A percentile is `None` when the data cannot resolve it: at least one observation must be expected
/// beyond it (10,000 for p99.99).
#[must_use]
pub fn merged_percentiles<'a>(
    histograms: impl IntoIterator<Item = &'a LatencyHistogram>,
) -> Vec<(f64, Option<Nanos>)> {
    let mut all = LatencyHistogram::default();
    histograms.into_iter().for_each(|h| all.merge(h));
    let resolved = |p: f64| all.count() as f64 * (100.0 - p) / 100.0 >= 1.0 - 1e-9;
    PERCENTILES.iter().map(|p| (*p, resolved(*p).then(|| all.percentile(*p)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_comes_before_the_percentile() {
        let (mut fast, mut slow) = (LatencyHistogram::default(), LatencyHistogram::default());
        (0..9_900).for_each(|_| fast.record(100));
        (0..100).for_each(|_| slow.record(1_000_000));
        let p: Vec<_> = merged_percentiles([&fast, &slow]);
        assert_eq!(p[0], (50.0, Some(100)));
        assert_eq!(p[3], (99.0, Some(100)));
        assert!(p[4].1.unwrap() > 900_000);
        assert!(p[6].1.is_some());
    }

    #[test]
    fn thin_data_do_not_resolve_the_tail() {
        let mut h = LatencyHistogram::default();
        (0..500).for_each(|i| h.record(i));
        let p = merged_percentiles([&h]);
        assert!(p[3].1.is_some());
        assert_eq!(p[4].1, None);
    }
}
