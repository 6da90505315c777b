//! Latency histograms with fio's bins.
//!
//! fio 3.x keeps completion latencies in nanoseconds in 29 groups of 64 bins: values below 128 have a
//! bin each, above that a bin is 1/64 of its power of two wide (at most 1.6 % error), and a percentile
//! is the middle of its bin. iosched uses the same bins, so its percentiles can be laid beside fio's.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

const BITS: u32 = 6;
const BINS_PER_GROUP: usize = 1 << BITS;
const GROUPS: usize = 29;
/// Bins of a histogram (the last one takes everything above 2^34 ns, about 17 s).
pub const BINS: usize = GROUPS * BINS_PER_GROUP;

/// A mergeable histogram together with exact count, sum, sum of squares, minimum and maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyHistogram {
    /// All of them, or none while nothing was counted: of ten thousand processes most never write.
    bins: Vec<u64>,
    count: u64,
    sum: u64,
    sum_sq: f64,
    min: Nanos,
    max: Nanos,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        LatencyHistogram {
            bins: Vec::new(),
            count: 0,
            sum: 0,
            sum_sq: 0.0,
            min: Nanos::MAX,
            max: 0,
        }
    }
}

/// The bin of a value.
#[must_use]
#[inline]
pub fn bin_of(value: Nanos) -> usize {
    let msb = 63 - (value | 1).leading_zeros();
    if msb <= BITS {
        return value as usize;
    }
    let error_bits = msb - BITS;
    let base = ((error_bits + 1) as usize) << BITS;
    let offset = (value >> error_bits) as usize & (BINS_PER_GROUP - 1);
    (base + offset).min(BINS - 1)
}

/// The value a bin stands for: its middle, as fio prints it.
#[must_use]
pub fn value_of(bin: usize) -> Nanos {
    if bin < BINS_PER_GROUP << 1 {
        return bin as Nanos;
    }
    let error_bits = (bin >> BITS) - 1;
    let base = 1u64 << (error_bits as u32 + BITS);
    let k = (bin % BINS_PER_GROUP) as u64;
    base + (k << error_bits) + (1 << (error_bits - 1))
}

impl LatencyHistogram {
    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        match self.bins.get_mut(bin_of(value)) {
            Some(bin) => *bin += 1,
            None => self.begin(bin_of(value)),
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        // Through i64, which the processor converts in one instruction; no latency has 64 bits.
        let f = value.min(i64::MAX as u64) as i64 as f64;
        self.sum_sq += f * f;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// The first latency is counted.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, bin: usize) {
        self.bins = vec![0; BINS];
        self.bins[bin] = 1;
    }

    /// A histogram from another tool's bins (each value falls into the bin that holds it) and its exact
    /// minimum, maximum, mean and sample standard deviation. What the bins count is what counts: where the
    /// tool's own count differs, the bins win.
    #[must_use]
    pub fn from_bins(
        bins: impl IntoIterator<Item = (Nanos, u64)>,
        (min, max): (Nanos, Nanos),
        mean: f64,
        stddev: f64,
    ) -> Self {
        let mut h = LatencyHistogram { bins: vec![0; BINS], ..LatencyHistogram::default() };
        for (value, n) in bins {
            let slot = &mut h.bins[bin_of(value)];
            *slot = slot.saturating_add(n);
            h.count = h.count.saturating_add(n);
        }
        if h.count == 0 {
            return LatencyHistogram::default();
        }
        let n = h.count as f64;
        h.sum = (mean * n).round().max(0.0) as u64;
        h.sum_sq = stddev * stddev * (n - 1.0) + n * mean * mean;
        (h.min, h.max) = (min, max.max(min));
        h
    }

    /// Adds another histogram to this one.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        if self.bins.len() < other.bins.len() {
            self.bins.resize(BINS, 0);
        }
        for (a, b) in self.bins.iter_mut().zip(&other.bins) {
            *a += b;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_sq += other.sum_sq;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many latencies were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest latency, 0 when empty.
    #[must_use]
    pub fn min(&self) -> Nanos {
        if self.count == 0 { 0 } else { self.min }
    }

    /// Largest latency, 0 when empty.
    #[must_use]
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// Sum of all latencies in ns.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Arithmetic mean, 0 when empty.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Sample standard deviation (n − 1), 0 for fewer than two values.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let n = self.count as f64;
        let mean = self.mean();
        ((self.sum_sq - n * mean * mean).max(0.0) / (n - 1.0)).sqrt()
    }

    /// The `p`-th percentile (0..=100) by fio's rule: the first bin at which the running count
    /// reaches `ceil(p/100 · n)`; 0 when empty.
    #[must_use]
    pub fn percentile(&self, p: f64) -> Nanos {
        if self.count == 0 {
            return 0;
        }
        let needed = ((p / 100.0 * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut running = 0;
        for (bin, n) in self.bins.iter().enumerate() {
            running += n;
            if running >= needed {
                return value_of(bin);
            }
        }
        self.max
    }

    /// The non-empty bins as (value, count), ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.bins.iter().enumerate().filter(|(_, n)| **n > 0).map(|(b, n)| (value_of(b), *n))
    }
}

/// The stored form: only the bins that are not empty.
#[derive(Serialize, Deserialize)]
struct Sparse {
    count: u64,
    sum: u64,
    sum_sq: f64,
    min: Nanos,
    max: Nanos,
    bins: Vec<(u16, u64)>,
}

impl Serialize for LatencyHistogram {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let bins =
            self.bins.iter().enumerate().filter(|(_, n)| **n > 0).map(|(b, n)| (b as u16, *n));
        Sparse {
            count: self.count,
            sum: self.sum,
            sum_sq: self.sum_sq,
            min: self.min(),
            max: self.max,
            bins: bins.collect(),
        }
        .serialize(s)
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let s = Sparse::deserialize(d)?;
        let mut h = LatencyHistogram::default();
        h.bins.resize(if s.bins.is_empty() { 0 } else { BINS }, 0);
        for (bin, n) in s.bins {
            let slot = h.bins.get_mut(usize::from(bin)).ok_or_else(|| {
                serde::de::Error::custom(format!("bin {bin} of a histogram of {BINS} bins"))
            })?;
            *slot += n;
        }
        (h.count, h.sum, h.sum_sq, h.max) = (s.count, s.sum, s.sum_sq, s.max);
        h.min = if s.count == 0 { Nanos::MAX } else { s.min };
        Ok(h)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_are_fios() {
        // fio prints 170917888 ns for latencies around 170 ms: the middle of bin 17 of [2^27, 2^28).
        assert_eq!(value_of(bin_of(170_000_000)), 170_917_888);
        assert_eq!(value_of(bin_of(42)), 42);
        assert_eq!(value_of(bin_of(127)), 127);
        assert_eq!(bin_of(u64::MAX), BINS - 1);
    }

    #[test]
    fn bins_of_another_tool_make_the_same_histogram() {
        let mut h = LatencyHistogram::default();
        [90_000, 120_000, 120_500, 3_000_000].into_iter().for_each(|v| h.record(v));
        let again = LatencyHistogram::from_bins(h.iter(), (h.min(), h.max()), h.mean(), h.stddev());
        assert_eq!((again.count(), again.sum(), again.min()), (h.count(), h.sum(), h.min()));
        assert_eq!(again.percentile(50.0), h.percentile(50.0));
        assert!((again.stddev() - h.stddev()).abs() < 1e-3);
    }

    #[test]
    fn empty_histograms_answer_zero() {
        let h = LatencyHistogram::default();
        assert_eq!((h.min(), h.max(), h.percentile(99.0)), (0, 0, 0));
        assert_eq!((h.mean(), h.stddev()), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn percentiles_are_within_a_bin_of_the_sorted_list(
            mut v in proptest::collection::vec(0u64..10_000_000_000, 1..300), p in 0.1f64..100.0,
        ) {
            let mut h = LatencyHistogram::default();
            v.iter().for_each(|x| h.record(*x));
            v.sort_unstable();
            let exact = v[((p / 100.0 * v.len() as f64).ceil() as usize).clamp(1, v.len()) - 1];
            let got = h.percentile(p) as f64;
            prop_assert!((got - exact as f64).abs() <= exact as f64 / 64.0 + 1.0);
        }

        #[test]
        fn storing_and_merging_lose_nothing(
            a in proptest::collection::vec(0u64..1 << 40, 0..50),
            b in proptest::collection::vec(0u64..1 << 40, 0..50),
        ) {
            let (mut ha, mut hb, mut both) = (
                LatencyHistogram::default(), LatencyHistogram::default(), LatencyHistogram::default(),
            );
            a.iter().for_each(|x| { ha.record(*x); both.record(*x); });
            b.iter().for_each(|x| { hb.record(*x); both.record(*x); });
            ha.merge(&hb);
            prop_assert_eq!(&ha.bins, &both.bins);
            prop_assert_eq!(ha.percentile(50.0), both.percentile(50.0));
            prop_assert_eq!((ha.count(), ha.sum(), ha.min(), ha.max()),
                            (both.count(), both.sum(), both.min(), both.max()));
            let text = serde_json::to_string(&ha).unwrap();
            prop_assert_eq!(serde_json::from_str::<LatencyHistogram>(&text).unwrap(), ha);
        }
    }
}
