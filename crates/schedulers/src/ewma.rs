//! Exponential averages in the kernel's integer arithmetic: think times and seek distances of the
//! anticipatory scheduler, CFQ and BFQ.
//!
//! Every sample weighs 1/8, in fixed point with 256 as one. The sum of weights of a fresh average is 0,
//! so the first samples count fully: 32, 60, 84, 105 … towards 256.

use iosched_types::{Nanos, Sector};

/// One in the fixed point of the weights.
pub const ONE: u64 = 256;
/// Sum of weights above which CFQ and BFQ trust an average: reached by the third sample (32, 60, 84).
pub const VALID_ABOVE: u64 = 80;

/// The sum of weights at which a new sample no longer changes it: (7 · 249 + 256) / 8 = 249.
const STEADY: u64 = 249;

/// A running average with the sum of its weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ewma {
    /// Sum of the weights, 0 (nothing seen) towards 256.
    pub samples: u64,
    /// Weighted total, in 1/256 of the unit of the samples.
    pub total: u64,
    /// The average after the last [`add`](Ewma::add), in the unit of the samples.
    pub mean: u64,
}

impl Ewma {
    /// Adds a sample. The mean is rounded by half of the sum of weights ([`Rounding::Samples`]) or by 128
    /// ([`Rounding::Half`]), depending on the rule.
    #[inline]
    pub fn add(&mut self, value: u64, rounding: Rounding) {
        if self.samples != STEADY || (self.total | value) >> 48 != 0 {
            return self.add_any(value, rounding);
        }
        // The sum of weights soon stops changing. Then the divisor is known, and nothing overflows.
        self.total = (7 * self.total + ONE * value) / 8;
        let round = match rounding {
            Rounding::Half => 128,
            Rounding::Samples => STEADY / 2,
        };
        self.mean = (self.total + round) / STEADY;
    }

    /// [`add`](Self::add) to a young average, or of a large number. Not inlined, because the compiler would make one
    /// division of the two.
    #[inline(never)]
    fn add_any(&mut self, value: u64, rounding: Rounding) {
        self.samples = (7 * self.samples + ONE) / 8;
        self.total = self.total.saturating_mul(7).saturating_add(value.saturating_mul(ONE)) / 8;
        let round = match rounding {
            Rounding::Half => 128,
            Rounding::Samples => self.samples / 2,
        };
        self.mean = self.total.saturating_add(round) / self.samples;
    }

    /// Whether CFQ and BFQ trust the average.
    #[must_use]
    pub fn valid(&self) -> bool {
        self.samples > VALID_ABOVE
    }

    /// Whether it is trusted and above `limit`.
    #[must_use]
    pub fn trusted_above(&self, limit: u64) -> bool {
        self.valid() && self.mean > limit
    }
}

/// How the mean is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Plus 128: think times.
    Half,
    /// Plus half of the sum of weights: seek distances.
    Samples,
}

/// Think time of a process (or of a service tree, or of a group): from its last completion to its next request, in the
/// scheduler's clock (jiffies or ns).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkTime {
    /// The average.
    pub avg: Ewma,
    /// When its last request ended.
    pub last_end: Nanos,
}

impl ThinkTime {
    /// A process first seen at `now`: its first think time counts from here.
    #[must_use]
    pub fn starting(now: Nanos) -> ThinkTime {
        ThinkTime { avg: Ewma::default(), last_end: now }
    }

    /// A request of it arrived at `now`; longer pauses than `cap` count as `cap`
    /// (CFQ and BFQ: two times `slice_idle`).
    pub fn arrival(&mut self, now: Nanos, cap: Nanos) {
        self.avg.add(now.saturating_sub(self.last_end).min(cap), Rounding::Half);
    }

    /// A request of it ended.
    pub fn ended(&mut self, now: Nanos) {
        self.last_end = now;
    }
}

/// Seek distances of a process (2.6.18 CFQ, anticipatory, BFQ v7), in sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeekMean {
    /// The average.
    pub avg: Ewma,
    /// Where its last request ended; 0 for a new process, so that its first "seek" starts at sector 0.
    pub last_end: Sector,
}

impl SeekMean {
    /// A request `[start, end)` of it arrived. Far seeks are clamped to four times the mean plus 1 GiB while
    /// the average is young, plus 64 MiB later, so that one outlier does not mark a sequential process.
    pub fn arrival(&mut self, start: Sector, end: Sector) {
        let slack = if self.avg.samples <= 60 { 2 * 1024 * 1024 } else { 128 * 1024 };
        let dist = start
            .abs_diff(self.last_end)
            .min(self.avg.mean.saturating_mul(4).saturating_add(slack));
        self.avg.add(dist, Rounding::Samples);
        self.last_end = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_rise_as_in_the_kernel_and_the_third_sample_is_trusted() {
        let mut e = Ewma::default();
        let mut weights = Vec::new();
        for n in 0..6 {
            assert_eq!(e.valid(), n >= 3, "after {n} samples");
            e.add(5, Rounding::Half);
            weights.push(e.samples);
        }
        assert_eq!(weights, [32, 60, 84, 105, 123, 139]);
    }

    #[test]
    fn a_constant_settles_three_percent_high_because_the_weights_stop_at_249() {
        let mut t = ThinkTime::starting(0);
        for n in 1..100 {
            t.arrival(n * 1_000_000, 16_000_000);
            t.ended(n * 1_000_000);
        }
        // (7 * 249 + 256) / 8 is 249 again in integers, so the mean tends to 256/249 of the value.
        assert_eq!(t.avg.samples, 249);
        assert!(t.avg.mean.abs_diff(1_000_000 * 256 / 249) < 10, "{}", t.avg.mean);
    }

    proptest::proptest! {
        /// The short way, for averages with constant weights, against the long one.
        #[test]
        fn both_ways_to_add_agree(values in proptest::collection::vec((0u64.., 0u32..64), 1..80), half: bool) {
            let rounding = if half { Rounding::Half } else { Rounding::Samples };
            let mut short = Ewma::default();
            (0..60).for_each(|_| short.add(7, rounding));
            let mut long = short;
            for (value, shift) in values {
                short.add(value >> shift, rounding);
                long.add_any(value >> shift, rounding);
                proptest::prop_assert_eq!(short, long);
                proptest::prop_assert_eq!(short.samples, STEADY);
            }
        }
    }

    #[test]
    fn pauses_are_capped() {
        let mut t = ThinkTime::starting(0);
        t.arrival(1_000_000, 16);
        assert_eq!(t.avg.mean, (16 * 32 + 128) / 32);
        assert!(!t.avg.trusted_above(8), "one sample is not trusted");
    }

    #[test]
    fn a_new_sequential_reader_far_from_sector_zero_looks_seeky_at_first() {
        let mut s = SeekMean::default();
        let mut means = Vec::new();
        for n in 0..9 {
            let start = 2_000_000_000 + n * 256;
            s.arrival(start, start + 256);
            means.push(s.avg.mean);
        }
        assert_eq!(
            means,
            [2_097_152, 978_671, 611_669, 428_169, 319_821, 247_631, 196_851, 159_717, 131_018]
        );
    }

    #[test]
    fn extreme_samples_do_not_overflow() {
        let mut e = Ewma::default();
        for _ in 0..10 {
            e.add(u64::MAX, Rounding::Samples);
        }
        assert!(e.mean > 0);
    }
}
