//! What a job measures about itself, as fio does.

use iosched_types::{Bytes, LatencyHistogram, Nanos};

/// Length of a bandwidth or IOPS sample (fio's `bwavgtime`/`iopsavgtime`).
pub const SAMPLE: Nanos = 500_000_000;

/// Count, sum, sum of squares, extremes: cheap enough for every I/O.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    /// Numbers seen.
    pub n: u64,
    /// Their sum.
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
        Sums { n: 0, sum: 0.0, sum_sq: 0.0, min: Nanos::MAX, max: 0 }
    }
}

impl Sums {
    /// Takes one number.
    #[inline]
    pub fn add(&mut self, x: Nanos) {
        self.n += 1;
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
    /// Total latencies.
    pub lat: Sums,
    /// The [`SAMPLE`]s in which I/Os finished: number, bytes, I/Os. One of ten thousand processes at a disk
    /// finishes one in minutes, so the empty ones are not kept.
    pub samples: Vec<(u64, u64, u64)>,
    /// End of the sample the last I/O fell into.
    sample_end: Nanos,
}

impl DirectionStats {
    /// Books one finished I/O.
    #[inline(always)]
    pub fn book(&mut self, since_start: Nanos, len: Bytes, slat: Nanos, clat: Nanos) {
        self.ios += 1;
        self.bytes += len;
        self.slat.add(slat);
        self.clat.record(clat);
        self.lat.add(slat + clat);
        if since_start >= self.sample_end {
            let at = since_start / SAMPLE;
            self.samples.push((at, 0, 0));
            self.sample_end = (at + 1) * SAMPLE;
        }
        if let Some(s) = self.samples.last_mut() {
            s.1 += len;
            s.2 += 1;
        }
    }
}

/// One job.
#[derive(Clone, Debug, Default)]
pub struct JobStats {
    /// Read, write, trim, sync.
    pub dirs: [DirectionStats; 4],
    /// When it started.
    pub started: Nanos,
    /// When measuring began (after `ramp_time`).
    pub measured_from: Nanos,
    /// When it ended.
    pub ended: Nanos,
    /// I/Os issued at each depth: 1, 2, 4, 8, 16, 32, ≥64.
    pub depths: [u64; 7],
}

/// Bin of a queue depth in [`JobStats::depths`].
#[must_use]
pub fn depth_bin(depth: u32) -> usize {
    (31 - depth.max(1).leading_zeros()).min(6) as usize
}
