//! The part of the dirty memory that a device may have. It is as large as the device's part of recent completions.

/// Counts are halved after this many milliseconds.
const PERIOD_MS: u64 = 3000;

/// Completions on all devices, those of long ago counting less.
#[derive(Clone, Copy, Debug)]
pub struct Completions {
    count: u64,
    period: u64,
}

impl Default for Completions {
    fn default() -> Self {
        Self { count: 1, period: 0 }
    }
}

/// Completions on one device.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    count: u64,
    period: u64,
    /// Not yet visible: counted on a CPU until a batch is full.
    pending: u64,
    batch: u64,
}

impl Share {
    /// A device that has completed nothing, on a machine with this many cores.
    #[must_use]
    pub fn new(cpus: u64) -> Self {
        Self { count: 0, period: 0, pending: 0, batch: 8 * (1 + super::log2(cpus)) }
    }

    /// Pages were written.
    pub fn add(&mut self, all: &mut Completions, pages: u64, now_ms: u64) {
        self.age(all, now_ms);
        all.count += pages;
        self.pending += pages;
        if self.pending >= self.batch {
            self.count += self.pending;
            self.pending = 0;
        }
    }

    /// The device's part of `amount`.
    pub fn of(&mut self, amount: u64, all: &mut Completions, now_ms: u64) -> u64 {
        self.age(all, now_ms);
        let whole = all.count.max(self.count).max(1);
        u64::try_from(u128::from(amount) * u128::from(self.count) / u128::from(whole))
            .unwrap_or(amount)
    }

    fn age(&mut self, all: &mut Completions, now_ms: u64) {
        let period = now_ms / PERIOD_MS;
        let gone = period - all.period;
        for _ in 0..gone.min(64) {
            all.count = all.count.div_ceil(2).max(1);
        }
        all.period = period;
        let own = period - self.period;
        self.count = self.count.checked_shr(u32::try_from(own).unwrap_or(64)).unwrap_or(0);
        self.period = period;
    }
}
