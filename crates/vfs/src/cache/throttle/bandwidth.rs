//! How fast a device writes back, and how fast tasks may dirty its memory in balance with it.

use super::log2;

/// Every device starts with an estimate of 100 MiB/s.
const FIRST_GUESS: u64 = (100 << 20) / crate::cache::PAGE;

/// The estimate for one device. Pages, jiffies, pages a second.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    /// Jiffies a second.
    pub(super) hz: u64,
    /// Pages dirtied since the start.
    pub dirtied: u64,
    /// Pages written since the start.
    pub written: u64,
    now_rate: u64,
    /// The smoothed bandwidth.
    pub average: u64,
    /// What one task in balance may dirty a second.
    pub base: u64,
    balanced: u64,
    /// When the counts below were taken; `None`: longer ago than any period.
    stamp: Option<u64>,
    stamp_dirtied: u64,
    stamp_written: u64,
    /// The rate at which memory was dirtied between the last two stamps.
    dirty_rate: u64,
    /// More dirty memory than its share: writers look more often.
    pub exceeded: bool,
    /// When the estimate is renewed by itself: some time after a file's write-back.
    renewal: Option<u64>,
}

impl Bandwidth {
    /// A device nothing is known of.
    #[must_use]
    pub fn new(hz: u64) -> Self {
        Self {
            hz,
            dirtied: 0,
            written: 0,
            now_rate: FIRST_GUESS,
            average: FIRST_GUESS,
            base: FIRST_GUESS,
            balanced: FIRST_GUESS,
            stamp: None,
            stamp_dirtied: 0,
            stamp_written: 0,
            dirty_rate: 0,
            exceeded: false,
            renewal: None,
        }
    }

    /// Jiffies since the last stamp.
    fn elapsed(&self, now: u64) -> Option<u64> {
        self.stamp.map(|stamp| now.saturating_sub(stamp))
    }

    /// Whether more than 200 ms have gone by since the last estimate (event logs: at 250 jiffies a second 51, never 50).
    #[must_use]
    pub fn due(&self, now: u64) -> bool {
        self.elapsed(now).is_none_or(|e| e > self.hz / 5)
    }

    /// Write-back begins after more than a second of idleness: counting starts anew.
    pub fn restart_if_idle(&mut self, now: u64) {
        if self.elapsed(now).is_none_or(|e| e > self.hz) {
            self.stamp(now);
        }
    }

    /// The last page of a file has been written: 200 ms later the estimate is renewed.
    pub fn file_written(&mut self, now: u64) {
        // A timer of fewer ticks than the wheel's first level has goes off at the tick after.
        self.renewal.get_or_insert(now + self.hz / 5 + 1);
    }

    /// Renews the estimate if its time has come. Before anything is counted.
    pub fn settle(&mut self, now: u64) {
        if let Some(at) = self.renewal.filter(|at| *at <= now) {
            self.renewal = None;
            self.update(at);
        }
    }

    /// Takes a sample outside a writer's look: from the write-back loop.
    pub fn update(&mut self, now: u64) {
        if self.due(now) {
            self.sample(now);
            self.stamp(now);
        }
    }

    pub(super) fn stamp(&mut self, now: u64) {
        self.stamp = Some(now);
        self.stamp_dirtied = self.dirtied;
        self.stamp_written = self.written;
    }

    /// Moves the bandwidth towards the amount written since the stamp.
    pub(super) fn sample(&mut self, now: u64) {
        let Some(elapsed) = self.elapsed(now).map(|e| e.max(1)) else {
            // Any amount over so long a time is none.
            (self.dirty_rate, self.now_rate, self.average) = (0, 0, 1);
            return;
        };
        let written = self.written - self.stamp_written;
        self.dirty_rate = (self.dirtied - self.stamp_dirtied) * self.hz / elapsed;
        let period = (3 * self.hz).next_power_of_two();
        let old = self.now_rate;
        if elapsed > period {
            self.now_rate = written * self.hz / elapsed;
            self.average = self.now_rate.max(1);
            return;
        }
        let new = (written * self.hz + old * (period - elapsed)) / period;
        if self.average > old && old >= new {
            self.average -= (self.average - old) / 8;
        } else if self.average < old && old <= new {
            self.average += (old - self.average) / 8;
        }
        self.average = self.average.max(1);
        self.now_rate = new;
    }

    /// Moves the base rate towards the rate at which as much is dirtied as written.
    pub(super) fn rebase(&mut self, ratio: u64, below_setpoint: bool) {
        let task = self.base * ratio / super::PARTS + 1;
        let balanced = (task * self.average / self.dirty_rate.max(1)).min(self.average);
        let (previous, base) = (self.balanced, self.base);
        self.balanced = balanced;
        let (mut step, up) = if below_setpoint {
            (previous.min(balanced).min(task).saturating_sub(base), true)
        } else {
            (base.saturating_sub(previous.max(balanced).max(task)), false)
        };
        let shift = base / (2 * step + 1);
        step = if shift < 64 { (step >> shift).div_ceil(8) } else { 0 };
        self.base = if up { base + step } else { base.saturating_sub(step) }.max(1);
        debug_assert!(log2(self.base) < 40, "a base rate of {} pages/s", self.base);
    }
}
