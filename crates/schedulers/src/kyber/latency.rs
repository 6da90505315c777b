//! What Kyber measures: means over windows (4.12-4.19), histograms (from 4.20 on).

use iosched_types::Nanos;

/// How a domain did in a window, against its target. Ordered from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    /// At most half of the target.
    Great,
    /// Within the target.
    Good,
    /// Above the target.
    Bad,
    /// Twice the target or more.
    Awful,
}

impl Status {
    /// Judges a mean latency.
    pub(super) fn of(mean: Nanos, target: Nanos) -> Status {
        if mean >= target.saturating_mul(2) {
            Status::Awful
        } else if mean > target {
            Status::Bad
        } else if mean <= target / 2 {
            Status::Great
        } else {
            Status::Good
        }
    }

    /// Whether the target is met.
    pub(super) fn fine(self) -> bool {
        self <= Status::Good
    }

    /// For people.
    pub(super) fn word(self) -> &'static str {
        match self {
            Status::Great => "great",
            Status::Good => "good",
            Status::Bad => "bad",
            Status::Awful => "awful",
        }
    }
}

/// New depth of a domain with a target, from its own status and that of the other such domain.
pub(super) fn adjust(depth: u32, own: Option<Status>, other: Option<Status>) -> u32 {
    use Status::{Awful, Bad, Good, Great};
    let Some(own) = own else { return depth };
    let Some(other) = other else { return depth + 1 };
    if own.fine() == other.fine() {
        return depth;
    }
    match (own, other) {
        (Good, Awful) | (Great, Bad) => depth - (depth / 4).max(1),
        (Good, _) => depth - (depth / 8).max(1),
        (Great, _) => depth / 2,
        (Awful, Great) => depth + 2,
        (Bad | Awful, _) => depth + 1,
    }
}

/// New depth of the domain without a target.
pub(super) fn adjust_other(
    depth: u32,
    sampled: bool,
    read: Option<Status>,
    write: Option<Status>,
) -> u32 {
    let better = match (read, write) {
        (None, None) => return depth + 2,
        (Some(r), Some(w)) => r.min(w),
        (Some(s), None) | (None, Some(s)) => s,
    };
    if !sampled {
        return depth;
    }
    match better {
        Status::Great => depth + 2,
        Status::Good => depth + 1,
        Status::Bad => depth - (depth / 4).max(1),
        Status::Awful => depth / 2,
    }
}

/// Sum and number of the latencies of one domain in a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: u128,
    n: u64,
}

impl Mean {
    /// Folds a latency in.
    pub(super) fn add(&mut self, latency: Nanos) {
        self.sum += u128::from(latency);
        self.n += 1;
    }

    /// The mean, if there was a sample.
    pub(super) fn get(&self) -> Option<Nanos> {
        (self.n > 0).then(|| (self.sum / u128::from(self.n)) as Nanos)
    }
}

/// Buckets of a histogram, each a quarter of the target wide.
pub(super) const BUCKETS: usize = 8;
/// The buckets below this one are within the target.
pub(super) const GOOD_BUCKETS: usize = 4;
/// Samples from which a percentile is trusted at once.
const ENOUGH: u32 = 500;

/// The bucket of a latency.
pub(super) fn bucket(latency: Nanos, target: Nanos) -> usize {
    let width = (target / GOOD_BUCKETS as Nanos).max(1);
    (latency.saturating_sub(1) / width).min(BUCKETS as u64 - 1) as usize
}

/// What is measured of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// From allocation to completion.
    Total = 0,
    /// From issue to completion.
    Io = 1,
}

/// The histograms of one domain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Histograms {
    counts: [[u32; BUCKETS]; 2],
    /// When fewer samples than [`ENOUGH`] will do, in jiffies. One for both kinds, as in the kernel.
    deadline: Option<i64>,
    /// p99 of a calm time, for the next time a domain suffers.
    pub(super) remembered: Option<usize>,
}

impl Histograms {
    /// Counts a sample.
    pub(super) fn add(&mut self, kind: Kind, bucket: usize) {
        self.counts[kind as usize][bucket] += 1;
    }

    /// The bucket of a percentile; this uses up the samples. `None` while there are too few samples and there is still
    /// time. `jiffies` is now, `second` the length of a second.
    pub(super) fn percentile(
        &mut self,
        kind: Kind,
        percent: u64,
        jiffies: i64,
        second: i64,
    ) -> Option<usize> {
        let counts = &mut self.counts[kind as usize];
        let samples: u32 = counts.iter().sum();
        if samples == 0 {
            return None;
        }
        let deadline = *self.deadline.get_or_insert(jiffies + second);
        if samples < ENOUGH && jiffies < deadline {
            return None;
        }
        self.deadline = None;
        let mut needed = (u64::from(samples) * percent).div_ceil(100);
        let mut at = 0;
        while at < BUCKETS - 1 && u64::from(counts[at]) < needed {
            needed -= u64::from(counts[at]);
            at += 1;
        }
        *counts = [0; BUCKETS];
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn statuses_change_exactly_at_their_limits() {
        let of = |mean| Status::of(mean, 2 * MS);
        assert_eq!(of(0), Status::Great);
        assert_eq!(of(MS), Status::Great);
        assert_eq!(of(MS + 1), Status::Good);
        assert_eq!(of(2 * MS), Status::Good);
        assert_eq!(of(2 * MS + 1), Status::Bad);
        assert_eq!(of(4 * MS - 1), Status::Bad);
        assert_eq!(of(4 * MS), Status::Awful);
    }

    #[test]
    fn every_row_of_the_depth_table() {
        use Status::{Awful, Bad, Good, Great};
        let all = [Some(Great), Some(Good), Some(Bad), Some(Awful), None];
        let rows = [
            (None, [100, 100, 100, 100, 100]),
            (Some(Great), [100, 100, 75, 50, 101]),
            (Some(Good), [100, 100, 88, 75, 101]),
            (Some(Bad), [101, 101, 100, 100, 101]),
            (Some(Awful), [102, 101, 100, 100, 101]),
        ];
        for (own, row) in rows {
            assert_eq!(all.map(|other| adjust(100, own, other)), row, "{own:?}");
        }
        assert_eq!(adjust(1, Some(Good), Some(Awful)), 0, "the caller clamps to 1");
        assert_eq!(all.map(|r| adjust_other(40, true, r, Some(Awful))), [42, 41, 30, 20, 20]);
        assert_eq!(adjust_other(40, false, Some(Awful), None), 40);
        assert_eq!(adjust_other(40, false, None, None), 42);
    }

    #[test]
    fn buckets_are_quarters_of_the_target() {
        let of = |latency| bucket(latency, 2 * MS);
        assert_eq!([of(0), of(300_000), of(500_000), of(500_001)], [0, 0, 0, 1]);
        assert_eq!([of(2 * MS), of(2 * MS + 1), of(10 * MS)], [3, 4, 7]);
        assert_eq!(bucket(5, 0), 4, "a target of 0 has buckets of 1 ns");
    }

    fn filled(kind: Kind, counts: &[(usize, u32)]) -> Histograms {
        let mut h = Histograms::default();
        for &(bucket, n) in counts {
            (0..n).for_each(|_| h.add(kind, bucket));
        }
        h
    }

    #[test]
    fn percentile_needs_its_share_rounded_up() {
        let p99 =
            |a, b| filled(Kind::Total, &[(0, a), (7, b)]).percentile(Kind::Total, 99, 0, 1000);
        assert_eq!(p99(990, 10), Some(0));
        assert_eq!(p99(989, 11), Some(7));
        assert_eq!(p99(495, 5), Some(0));
        assert_eq!(p99(494, 6), Some(7));
    }

    #[test]
    fn few_samples_wait_a_second_and_are_then_taken_and_cleared() {
        let mut h = filled(Kind::Io, &[(5, 3)]);
        assert_eq!(h.percentile(Kind::Io, 90, 100, 250), None);
        assert_eq!(h.percentile(Kind::Io, 90, 349, 250), None);
        assert_eq!(h.percentile(Kind::Io, 90, 350, 250), Some(5));
        assert_eq!(h.percentile(Kind::Io, 90, 351, 250), None);
    }

    #[test]
    fn the_deadline_is_shared_so_that_at_a_low_rate_only_one_kind_is_ever_judged() {
        let mut h = filled(Kind::Io, &[(0, 3)]);
        (0..3).for_each(|_| h.add(Kind::Total, 7));
        let at = |h: &mut Histograms, j: i64| {
            (h.percentile(Kind::Io, 90, j, 1000), h.percentile(Kind::Total, 99, j, 1000))
        };
        assert_eq!(at(&mut h, 100), (None, None));
        // I/O clears the deadline; total starts a new one.
        assert_eq!(at(&mut h, 1100), (Some(0), None));
        h.add(Kind::Io, 0);
        assert_eq!(at(&mut h, 2100), (Some(0), None));
        (0..497).for_each(|_| h.add(Kind::Total, 7));
        assert_eq!(h.percentile(Kind::Total, 99, 2101, 1000), Some(7));
    }
}
