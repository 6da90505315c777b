//! What a job measures about itself, as fio does.

use iosched_types::{Bytes, LatencyHistogram, Nanos};

/// Length of a bandwidth or IOPS sample (fio's `bwavgtime`/`iopsavgtime`).
pub const SAMPLE: Nanos = 500_000_000;

/// Sum, sum of squares, extremes: cheap enough for every I/O. The caller counts the values.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// Sum of the numbers.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_sq: f64,
    /// Smallest.
    pub min: Nanos,
    /// Largest.
    pub max: Nanos,
}

impl Default for Sums {
    fn default() -> Self {
        Sums { sum: 0.0, sum_sq: 0.0, min: Nanos::MAX, max: 0 }
    }
}

impl Sums {
    /// Takes one number.
    #[inline]
    pub fn add(&mut self, x: Nanos) {
        if x == 0 {
            self.min = 0;
            return;
        }
        // Through i64, which the processor converts in one instruction; no latency has 64 bits.
        let f = x as i64 as f64;
        self.sum += f;
        self.sum_sq += f * f;
        self.min = self.min.min(x);
        self.max = self.max.max(x);
    }
}

/// What was transferred in one [`SAMPLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The number from the start of measuring.
    pub at: u32,
    /// I/Os finished.
    pub ios: u32,
    /// Bytes transferred.
    pub bytes: Bytes,
}

/// One direction.
#[derive(Clone, Debug, Default)]
pub struct DirectionStats {
    /// I/Os finished.
    pub ios: u64,
    /// Bytes transferred.
    pub bytes: Bytes,
    /// Submission latencies.
    pub slat: Sums,
    /// Completion latencies.
    pub clat: LatencyHistogram,
    /// Total latencies. Empty as long as no submission took time: then they are the completion latencies.
    lat: LatencyHistogram,
    /// The samples in which I/Os finished. With ten thousand processes at a disk, a process finishes one I/O in
    /// minutes. So empty samples are not kept.
    pub samples: Vec<Sample>,
    /// End of the sample the last I/O fell into.
    sample_end: Nanos,
}

impl DirectionStats {
    /// Reads a word of each cache line that [`book`](Self::book) will need, except for those of the histogram.
    #[inline(always)]
    pub(super) fn fetch(&self) -> u64 {
        self.samples.last().map_or(0, |s| s.bytes) ^ self.ios ^ self.lat.fetch()
    }

    /// Total latencies (submission and completion).
    #[must_use]
    pub fn total(&self) -> &LatencyHistogram {
        if self.lat.is_empty() { &self.clat } else { &self.lat }
    }

    /// Before the completion latency is recorded, so that those before it are the total latencies so far.
    #[inline(always)]
    fn book_total(&mut self, lat: Nanos) {
        if self.lat.is_empty() {
            self.lat = self.clat.clone();
        }
        self.lat.record(lat);
    }

    /// Only these latencies count: those of an engine that measures what it does with its files.
    pub fn only(&mut self, latencies: LatencyHistogram) {
        self.clat = latencies;
        self.lat = LatencyHistogram::default();
    }

    /// Books one finished I/O.
    #[inline(always)]
    pub fn book(&mut self, since_start: Nanos, len: Bytes, slat: Nanos, clat: Nanos) {
        self.slat.add(slat);
        // Synchronous calls have no submission latency. Thousands of their processes need no second table.
        if slat > 0 || !self.lat.is_empty() {
            self.book_total(slat + clat);
        }
        self.clat.record(clat);
        self.count(since_start, len);
    }

    /// Counts one finished I/O, without a latency.
    #[inline(always)]
    pub fn count(&mut self, since_start: Nanos, len: Bytes) {
        self.ios += 1;
        self.bytes += len;
        if since_start >= self.sample_end {
            let at = since_start / SAMPLE;
            self.samples.push(Sample { at: at as u32, ios: 0, bytes: 0 });
            self.sample_end = (at + 1) * SAMPLE;
        }
        if let Some(s) = self.samples.last_mut() {
            s.bytes += len;
            s.ios += 1;
        }
    }
}

/// One job. The fields stay in this order in memory, because the directions are the larger part.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct JobStats {
    /// When it started.
    pub started: Nanos,
    /// When measuring began (after `ramp_time`).
    pub measured_from: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// I/Os issued at each depth: 1, 2, 4, 8, 16, 32, ≥64.
    pub depths: [u64; 7],
    /// Read, write, trim, sync.
    pub dirs: [DirectionStats; 4],
}

/// Bin of a queue depth in [`JobStats::depths`].
#[must_use]
pub fn depth_bin(depth: u32) -> usize {
    (31 - depth.max(1).leading_zeros()).min(6) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_latencies_are_those_of_completion_until_a_submission_takes_time() {
        let mut d = DirectionStats::default();
        [(0, 1_000), (0, 2_000)].into_iter().for_each(|(s, c)| d.book(0, 512, s, c));
        assert_eq!(d.total(), &d.clat);
        [(20_000_000, 500_000), (0, 3_000)].into_iter().for_each(|(s, c)| d.book(0, 512, s, c));
        assert_eq!((d.total().count(), d.total().max()), (4, 20_500_000));
        assert_eq!((d.clat.count(), d.clat.max()), (4, 500_000));
        assert_eq!(d.total().sum(), 20_506_000);
    }
}
