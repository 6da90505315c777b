//! How much of a disk a trace touches.

use std::collections::BTreeMap;

use iosched_types::Bytes;

/// Ranges kept at a time.
const MOST: usize = 1 << 17;
/// Regions that are left out or not as a whole, in bytes as a power of two.
const REGION: u32 = 16;

/// Ranges of a disk. All count while there are few; then only those of some regions, which stand for the others.
#[derive(Debug, Default)]
pub(super) struct Footprint {
    /// One of 2^`level` regions counts.
    level: u32,
    /// End by start; none touch.
    ranges: BTreeMap<Bytes, Bytes>,
    touched: Bytes,
    /// Bytes of all I/Os: no more can be touched.
    moved: u128,
}

/// Whether a region counts: by a hash, so that no pattern of places is favoured.
fn counts(region: u64, level: u32) -> bool {
    let mixed = (region ^ region >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed.leading_zeros() >= level
}

impl Footprint {
    pub(super) fn add(&mut self, offset: Bytes, len: Bytes) {
        self.moved += u128::from(len);
        self.part(offset, offset.saturating_add(len));
        while self.ranges.len() > MOST {
            self.level += 1;
            self.touched = 0;
            for (from, to) in std::mem::take(&mut self.ranges) {
                self.part(from, to);
            }
        }
    }

    /// Adds those regions of a range that count.
    fn part(&mut self, from: Bytes, to: Bytes) {
        if self.level == 0 {
            return self.range(from, to);
        }
        let mut at = from;
        while at < to {
            let region = at >> REGION;
            let end = to.min(((region + 1) << REGION).max(at + 1));
            if counts(region, self.level) {
                self.range(at, end);
            }
            at = end;
        }
    }

    fn range(&mut self, from: Bytes, to: Bytes) {
        if from >= to {
            return;
        }
        let (mut from, mut to) = (from, to);
        // Ranges that touch it become one with it.
        while let Some((start, end)) = self.ranges.range(..=to).next_back().map(|(s, e)| (*s, *e)) {
            if end < from {
                break;
            }
            (from, to) = (from.min(start), to.max(end));
            self.touched -= end - start;
            self.ranges.remove(&start);
        }
        self.touched += to - from;
        self.ranges.insert(from, to);
    }

    /// Bytes that are touched.
    pub(super) fn bytes(&self) -> Bytes {
        let all = u128::from(self.touched) << self.level;
        u64::try_from(all.min(self.moved)).unwrap_or(u64::MAX)
    }

    /// The share of the disk's regions that counts.
    pub(super) fn share(&self) -> f64 {
        0.5f64.powi(self.level.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_once_and_exactly() {
        let mut f = Footprint::default();
        for (offset, len) in [(512, 512), (0, 512), (700, 100), (8192, 1), (1024, 0), (100, 8092)] {
            f.add(offset, len);
        }
        assert_eq!((f.bytes(), f.share(), f.ranges.len()), (8193, 1.0, 1));
    }

    #[test]
    fn many_ranges_are_sampled() {
        for (gap, far) in [(8192u64, 1), (1 << 20, 1), (4096 + 512, 3)] {
            let mut f = Footprint::default();
            let n = 600_000u64;
            for i in 0..n {
                f.add(i * 7 % n * gap * far, 4096);
                f.add(i * 7 % n * gap * far, 512);
            }
            assert!(f.share() < 1.0 && f.ranges.len() <= MOST);
            let wrong = (f.bytes() as f64 / (n * 4096) as f64 - 1.0).abs();
            assert!(wrong < 0.03, "{gap}: {wrong}");
        }
    }

    #[test]
    fn no_more_is_touched_than_moved() {
        let mut f = Footprint::default();
        f.add(0, i64::MAX as u64);
        assert_eq!(f.bytes(), i64::MAX as u64);
    }
}
