//! Latency histograms with fio's bins.
//!
//! fio 3.x keeps completion latencies in nanoseconds in 29 groups of 64 bins. Values below 128 have a bin each. Above
//! that a bin is 1/64 of its power of two wide (at most 1.6 % error). A percentile is the middle of its bin. iosched
//! uses the same bins, so its percentiles can be compared with fio's.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

const BITS: u32 = 6;
const BINS_PER_GROUP: usize = 1 << BITS;
const GROUPS: usize = 29;
/// Bins of a histogram (the last one takes everything above 2^34 ns, about 17 s).
pub const BINS: usize = GROUPS * BINS_PER_GROUP;

/// As many bins are kept one by one.
const FEW: usize = 16;

/// A mergeable histogram together with exact count, sum, sum of squares, minimum and maximum.
///
/// All bins take 15 KB. Ten thousand processes at one disk fill a few bins each, or some dozens that lie between two
/// powers of two. What is in use should lie close together in memory.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    bins: Bins,
    count: u64,
    sum: u64,
    sum_sq: f64,
    min: Nanos,
    max: Nanos,
}

#[derive(Clone, Debug)]
enum Bins {
    /// The bins in use and their counts, ascending. While it is recorded they lie in two cache lines; one that was
    /// stored may have more.
    Few(Vec<(u16, u32)>),
    /// The counts of whole groups, from a bin on.
    Span { from: u16, counts: Vec<u32> },
    /// The counts of all: those that do not fit into a span.
    All(Vec<u64>),
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        LatencyHistogram {
            bins: Bins::Few(Vec::new()),
            count: 0,
            sum: 0,
            sum_sq: 0.0,
            min: Nanos::MAX,
            max: 0,
        }
    }
}

impl PartialEq for LatencyHistogram {
    fn eq(&self, other: &Self) -> bool {
        (self.count, self.sum, self.min, self.max) == (other.count, other.sum, other.min, other.max)
            && self.sum_sq == other.sum_sq
            && self.in_use().eq(other.in_use())
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
    /// Reads a word of its bins, so that they are in the cache before a [`record`](Self::record).
    #[must_use]
    #[inline(always)]
    pub fn fetch(&self) -> u64 {
        match &self.bins {
            Bins::Few(few) => few.get(few.len() / 2).map_or(0, |f| u64::from(f.1)),
            Bins::Span { .. } | Bins::All(_) => self.count,
        }
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        self.add(bin_of(value), 1);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        // Through i64, which the processor converts in one instruction; no latency has 64 bits.
        let f = value.min(i64::MAX as u64) as i64 as f64;
        self.sum_sq += f * f;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    #[inline(always)]
    fn add(&mut self, bin: usize, n: u64) {
        match &mut self.bins {
            Bins::Span { from, counts } => {
                if let Some(count) = counts.get_mut(bin.wrapping_sub(usize::from(*from)))
                    && let Ok(sum) = u32::try_from(u64::from(*count).saturating_add(n))
                {
                    *count = sum;
                } else {
                    self.add_to_span(bin, n);
                }
            }
            Bins::All(bins) => bins[bin] = bins[bin].saturating_add(n),
            Bins::Few(_) => self.add_to_few(bin, n),
        }
    }

    #[inline(never)]
    fn add_to_few(&mut self, bin: usize, n: u64) {
        let Bins::Few(few) = &mut self.bins else { return };
        match few.binary_search_by_key(&bin, |f| usize::from(f.0)) {
            Ok(i) => match u32::try_from(u64::from(few[i].1).saturating_add(n)) {
                Ok(sum) => few[i].1 = sum,
                Err(_) => self.add_to_all(bin, n),
            },
            Err(i) => match u32::try_from(n) {
                Ok(n) if few.len() < FEW => {
                    few.reserve_exact(FEW - few.len());
                    few.insert(i, (bin as u16, n));
                }
                _ => self.add_to_span(bin, n),
            },
        }
    }

    /// The bins so far become a span in which this value has a place, too.
    #[cold]
    fn add_to_span(&mut self, bin: usize, n: u64) {
        let held = match &self.bins {
            Bins::Span { from, counts } => {
                Some((usize::from(*from), usize::from(*from) + counts.len()))
            }
            Bins::Few(few) => few.first().zip(few.last()).map(|(first, last)| {
                (usize::from(first.0) & !(BINS_PER_GROUP - 1), usize::from(last.0) + 1)
            }),
            Bins::All(_) => None,
        };
        let (from, end) = held.unwrap_or((bin, bin));
        let is_full = (from..end).contains(&bin) && matches!(self.bins, Bins::Span { .. });
        if is_full || u32::try_from(n).is_err() {
            return self.add_to_all(bin, n);
        }
        let from = from.min(bin & !(BINS_PER_GROUP - 1));
        let end = end.max(bin + 1).next_multiple_of(BINS_PER_GROUP);
        let mut counts = vec![0; end - from];
        self.in_use().for_each(|(bin, n)| counts[usize::from(bin) - from] = n as u32);
        self.bins = Bins::Span { from: from as u16, counts };
        self.add(bin, n);
    }

    /// The bins so far become the full table, and this value goes there, too.
    #[cold]
    fn add_to_all(&mut self, bin: usize, n: u64) {
        let mut all = vec![0; BINS];
        self.in_use().for_each(|(bin, n)| all[usize::from(bin)] = n);
        all[bin] = u64::saturating_add(all[bin], n);
        self.bins = Bins::All(all);
    }

    /// The bins that are not empty, ascending.
    fn in_use(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        type Parts<'a> = (&'a [u64], (u16, &'a [u32]), &'a [(u16, u32)]);
        let (all, (from, span), few): Parts<'_> = match &self.bins {
            Bins::All(all) => (all, (0, &[]), &[]),
            Bins::Span { from, counts } => (&[], (*from, counts), &[]),
            Bins::Few(few) => (&[], (0, &[]), few),
        };
        let all = all.iter().enumerate().map(|(bin, n)| (bin as u16, *n));
        let span = span.iter().zip(from..).map(|(n, bin)| (bin, u64::from(*n)));
        let few = few.iter().map(|&(bin, n)| (bin, u64::from(n)));
        all.chain(span).chain(few).filter(|(_, n)| *n > 0)
    }

    /// A histogram from another tool's bins (each value falls into the bin that holds it) and its exact minimum,
    /// maximum, mean and sample standard deviation. Where the tool's own count differs from the bins', the bins win.
    #[must_use]
    pub fn from_bins(
        bins: impl IntoIterator<Item = (Nanos, u64)>,
        (min, max): (Nanos, Nanos),
        mean: f64,
        stddev: f64,
    ) -> Self {
        let mut h = LatencyHistogram::default();
        for (value, n) in bins {
            h.add(bin_of(value), n);
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
        match (&mut self.bins, &other.bins) {
            (Bins::All(bins), Bins::All(others)) => {
                bins.iter_mut().zip(others).for_each(|(a, b)| *a += b);
            }
            _ => other.in_use().for_each(|(bin, n)| self.add(usize::from(bin), n)),
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_sq += other.sum_sq;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Sum of the squares of all latencies.
    #[must_use]
    pub fn sum_of_squares(&self) -> f64 {
        self.sum_sq
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

    /// The `p`-th percentile (0..=100), 0 when empty. The bin's middle may lie outside the measured range; the
    /// percentile does not.
    #[must_use]
    pub fn percentile(&self, p: f64) -> Nanos {
        self.bin_of_percentile(p).min(self.max).max(self.min())
    }

    /// The `p`-th percentile by fio's rule: the middle of the first bin at which the running count reaches
    /// `ceil(p/100 · n)`; 0 when empty. fio prints this, even above the maximum.
    #[must_use]
    pub fn bin_of_percentile(&self, p: f64) -> Nanos {
        if self.count == 0 {
            return 0;
        }
        let needed = ((p / 100.0 * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut running = 0;
        for (bin, n) in self.in_use() {
            running += n;
            if running >= needed {
                return value_of(usize::from(bin));
            }
        }
        self.max
    }

    /// The non-empty bins as (value, count), ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.in_use().map(|(bin, n)| (value_of(usize::from(bin)), n))
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
        Sparse {
            count: self.count,
            sum: self.sum,
            sum_sq: self.sum_sq,
            min: self.min(),
            max: self.max,
            bins: self.in_use().collect(),
        }
        .serialize(s)
    }
}

impl<'de> Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let s = Sparse::deserialize(d)?;
        let mut h = LatencyHistogram::default();
        // Stored histograms are read by the ten thousand and seldom added to. They stay as short as they were stored.
        let short: Option<Vec<(u16, u32)>> =
            s.bins.iter().map(|(bin, n)| Some((*bin, u32::try_from(*n).ok()?))).collect();
        let ascending = s.bins.is_sorted_by(|a, b| a.0 < b.0);
        let known = s.bins.last().is_none_or(|(bin, _)| usize::from(*bin) < BINS);
        let bins = match short {
            Some(short) if ascending && known => {
                h.bins = Bins::Few(short);
                Vec::new()
            }
            _ => s.bins,
        };
        for (bin, n) in bins {
            if usize::from(bin) >= BINS {
                let what = format!("bin {bin} of a histogram of {BINS} bins");
                return Err(serde::de::Error::custom(what));
            }
            h.add(usize::from(bin), n);
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
    fn a_percentile_is_not_beyond_the_extremes() {
        let mut h = LatencyHistogram::default();
        h.record(35_170_000);
        assert_eq!(h.percentile(50.0), 35_170_000);
        assert!(h.bin_of_percentile(50.0) > 35_170_000, "the middle of the bin is beyond");
        let low =
            LatencyHistogram::from_bins([(35_390_000, 3)], (35_500_000, 35_600_000), 35.55e6, 0.0);
        assert_eq!(low.percentile(1.0), 35_500_000);
    }

    #[test]
    fn empty_histograms_answer_zero() {
        let h = LatencyHistogram::default();
        assert_eq!((h.min(), h.max(), h.percentile(99.0)), (0, 0, 0));
        assert_eq!((h.mean(), h.stddev()), (0.0, 0.0));
    }

    /// The histogram is the same for any number of bins in use, and however they were added.
    #[test]
    fn few_bins_become_all() {
        let values: Vec<u64> = (0..40u64).map(|i| 1000 * (i * 7 % 40)).collect();
        let one = |v: &[u64]| {
            let mut h = LatencyHistogram::default();
            v.iter().for_each(|x| h.record(*x));
            h
        };
        for n in [0, 1, FEW - 1, FEW, FEW + 1, 40] {
            let (mut first, rest) = (one(&values[..n]), one(&values[n..]));
            assert_eq!(matches!(first.bins, Bins::Few(_)), n <= FEW, "{n} bins");
            first.merge(&rest);
            let mut other = rest;
            other.merge(&one(&values[..n]));
            assert_eq!(first, one(&values));
            assert_eq!(other, one(&values));
            assert!(first.iter().map(|(v, _)| v).is_sorted());
        }
    }

    /// Ten thousand processes have two histograms each: bins that nothing falls into should take no room.
    #[test]
    fn room_is_that_of_the_latencies_that_came() {
        let mut h = LatencyHistogram::default();
        (0..200u64).for_each(|i| h.record(4_000_000 + 60_000 * i));
        let Bins::Span { from, counts } = &h.bins else { panic!("{:?}", h.bins) };
        let groups = (bin_of(15_940_000) >> BITS) - (bin_of(4_000_000) >> BITS) + 1;
        assert_eq!((usize::from(*from) % BINS_PER_GROUP, counts.len()), (0, groups << BITS));
        assert!(counts.capacity() * 4 <= 1024, "{} bytes", counts.capacity() * 4);
        // A longer and a shorter one find their places.
        [u64::MAX, 0, 5].into_iter().for_each(|v| h.record(v));
        assert_eq!((h.iter().map(|(_, n)| n).sum::<u64>(), h.count()), (203, 203));
        assert_eq!((h.iter().next(), h.percentile(100.0)), (Some((0, 1)), value_of(BINS - 1)));
    }

    /// More than four milliards of one kind are counted, too.
    #[test]
    fn large_counts_do_not_wrap() {
        let many = u64::from(u32::MAX) - 1;
        let values = (0..30u64).map(|i| (1_000 * i, 1)).chain([(7_000, many), (7_000, many)]);
        let h = LatencyHistogram::from_bins(values, (0, 29_000), 7_000.0, 1.0);
        let seven = value_of(bin_of(7_000));
        assert_eq!(h.iter().find(|(v, _)| *v == seven), Some((seven, 2 * many + 1)));
        assert_eq!(h.iter().map(|(_, n)| n).sum::<u64>(), h.count());
    }

    #[test]
    fn a_stored_histogram_is_short_and_can_be_added_to() {
        let mut h = LatencyHistogram::default();
        (0..200u64).for_each(|i| h.record(1_000 * i));
        let text = serde_json::to_string(&h).unwrap();
        let mut again: LatencyHistogram = serde_json::from_str(&text).unwrap();
        assert!(matches!(h.bins, Bins::Span { .. }) && matches!(again.bins, Bins::Few(_)));
        for value in [0, 500, 1_000_000_000, 7_000] {
            h.record(value);
            again.record(value);
        }
        assert_eq!(h, again);
        // Whatever the order of the bins in a file.
        let odd = r#"{"count":3,"sum":9,"sum_sq":29,"min":2,"max":4,"bins":[[4,1],[2,1],[3,1]]}"#;
        let odd: LatencyHistogram = serde_json::from_str(odd).unwrap();
        assert_eq!(odd.iter().collect::<Vec<_>>(), [(2, 1), (3, 1), (4, 1)]);
        let beyond = r#"{"count":1,"sum":9,"sum_sq":29,"min":2,"max":4,"bins":[[60000,1]]}"#;
        assert!(serde_json::from_str::<LatencyHistogram>(beyond).is_err());
    }

    #[test]
    fn counts_beyond_32_bits_are_kept() {
        let mut h = LatencyHistogram::default();
        let many = u64::from(u32::MAX);
        h.add(3, many - 1);
        [(3, 1), (4, many + 1), (3, 1), (5, 1)].into_iter().for_each(|(bin, n)| h.add(bin, n));
        let bins: Vec<_> = h.in_use().collect();
        assert_eq!(bins, [(3, many + 1), (4, many + 1), (5, 1)]);
        h.add(3, u64::MAX);
        assert_eq!(h.in_use().next(), Some((3, u64::MAX)));
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
            prop_assert_eq!(ha.iter().collect::<Vec<_>>(), both.iter().collect::<Vec<_>>());
            prop_assert_eq!(ha.percentile(50.0), both.percentile(50.0));
            prop_assert_eq!((ha.count(), ha.sum(), ha.min(), ha.max()),
                            (both.count(), both.sum(), both.min(), both.max()));
            let text = serde_json::to_string(&ha).unwrap();
            prop_assert_eq!(serde_json::from_str::<LatencyHistogram>(&text).unwrap(), ha);
        }
    }
}
