//! The part of the dirty memory that a device may have. It is as large as the device's part of recent completions.
//!
//! Both counts are counted on cores and become visible in batches, those of all devices in larger ones. So a device that wrote
//! some pages after a pause keeps its part.

/// Counts are halved after this many milliseconds.
const PERIOD_MS: u64 = 3000;
/// A core's part of a count is at most this before it becomes visible; with many cores more.
const ALL_BATCH: i64 = 32;
const OWN_BATCH: i64 = 8;

#[derive(Clone, Copy, Debug)]
struct Counter {
    seen: i64,
    pending: i64,
    batch: i64,
}

impl Counter {
    fn add(&mut self, n: i64) {
        self.pending += n;
        if self.pending.abs() >= self.batch {
            self.seen += self.pending;
            self.pending = 0;
        }
    }

    fn sum(&self) -> i64 {
        self.seen + self.pending
    }

    /// Halves it so many times. Only the difference is added.
    fn halve(&mut self, times: u64) {
        let left = self.sum() >> times.min(63);
        self.add(left - self.sum());
    }
}

/// Completions on all devices, those of long ago counting less. Periods begin with a completion, and none begins when next to
/// nothing is left to halve: a device that has been idle since keeps its part. Seen in event logs: files that were dirtied one
/// by one for 15 s, after 28 had been written, are below the limit.
#[derive(Clone, Copy, Debug)]
pub struct Completions {
    count: Counter,
    /// Periods that have ended.
    periods: u64,
    /// When the present one ends, in milliseconds.
    ends: Option<u64>,
}

impl Completions {
    /// None so far, on a machine with this many cores.
    #[must_use]
    pub fn new(cpus: u64) -> Self {
        let batch = ALL_BATCH.max(2 * i64::try_from(cpus).unwrap_or(ALL_BATCH));
        Self { count: Counter { seen: 1, pending: 0, batch }, periods: 0, ends: None }
    }

    fn age(&mut self, now_ms: u64) {
        while let Some(end) = self.ends.filter(|end| *end <= now_ms) {
            if self.count.sum() <= 1 {
                self.ends = None;
                return;
            }
            self.count.halve(1);
            self.periods += 1;
            self.ends = Some(end + PERIOD_MS);
        }
    }
}

/// Completions on one device.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    count: Counter,
    period: u64,
}

impl Share {
    /// A device that has completed nothing, on a machine with this many cores.
    #[must_use]
    pub fn new(cpus: u64) -> Self {
        let cores = i64::try_from(super::log2(cpus)).unwrap_or(0);
        let batch = OWN_BATCH * (1 + cores);
        Self { count: Counter { seen: 0, pending: 0, batch }, period: 0 }
    }

    /// Pages were written.
    pub fn add(&mut self, all: &mut Completions, pages: u64, now_ms: u64) {
        self.age(all, now_ms);
        all.ends.get_or_insert(now_ms + PERIOD_MS);
        let pages = i64::try_from(pages).unwrap_or(i64::MAX);
        all.count.add(pages);
        self.count.add(pages);
    }

    /// The device's part of `amount`.
    pub fn of(&mut self, amount: u64, all: &mut Completions, now_ms: u64) -> u64 {
        self.age(all, now_ms);
        let own = u128::try_from(self.count.seen).unwrap_or(0);
        let whole = u128::try_from(all.count.seen).unwrap_or(0).max(own).max(1);
        u64::try_from(u128::from(amount) * own / whole).unwrap_or(amount)
    }

    fn age(&mut self, all: &mut Completions, now_ms: u64) {
        all.age(now_ms);
        if all.periods > self.period {
            self.count.halve(all.periods - self.period);
            self.period = all.periods;
        }
    }
}
