//! How fast a task may dirty memory: dirty limits, the estimate of a device's bandwidth, and pauses of writers. These
//! are the rules of 3.2 and later, where writers only sleep. Before 3.2 writers wrote back themselves.
//!
//! Amounts are pages, rates pages a second, times jiffies.

mod bandwidth;
mod share;

pub use bandwidth::Bandwidth;
pub use share::{Completions, Share};

/// A task looks at the limits after this many pages at first.
const FIRST_CHECK: u64 = 32;
/// A task looks this often while its device is over its share.
const CHECK_WHILE_EXCEEDED: u64 = 8;
/// The tasks of a core may dirty one part of the threshold together before one looks, and this many pages at least.
const CORE_PARTS: u64 = 32;
const CORE_LEAST: u64 = 16;
/// Parts of one in which a position ratio counts.
const PARTS: u64 = 1024;

/// What the whole machine's limits come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Background write-back starts above.
    pub background: u64,
    /// No task dirties memory above this.
    pub dirty: u64,
}

/// The sysctls of dirty memory. Bytes win over percent.
#[derive(Clone, Copy, Debug)]
pub struct DirtyLimits {
    /// `vm.dirty_background_ratio`.
    pub background_percent: u64,
    /// `vm.dirty_ratio`.
    pub dirty_percent: u64,
    /// `vm.dirty_background_bytes`, 0: the percentage counts.
    pub background_bytes: u64,
    /// `vm.dirty_bytes`, 0: the percentage counts.
    pub dirty_bytes: u64,
}

impl DirtyLimits {
    /// The limits where `available` pages can be dirtied.
    #[must_use]
    pub fn thresholds(&self, available: u64) -> Thresholds {
        let of = |bytes: u64, percent: u64| match bytes {
            0 => percent * 4096 / 100 * available / 4096,
            _ => bytes.div_ceil(super::PAGE),
        };
        let dirty = of(self.dirty_bytes, self.dirty_percent);
        let mut background = of(self.background_bytes, self.background_percent);
        if background >= dirty {
            background = dirty / 2;
        }
        Thresholds { background, dirty }
    }
}

/// The limit. It follows the threshold upwards at once and downwards slowly.
#[derive(Clone, Copy, Debug)]
pub struct SlowLimit {
    /// The limit.
    pub pages: u64,
    moved: u64,
}

impl SlowLimit {
    /// At boot.
    #[must_use]
    pub fn new(dirty_threshold: u64) -> Self {
        Self { pages: dirty_threshold, moved: 0 }
    }

    /// Moves it, every 200 ms at most.
    fn update(&mut self, now: u64, hz: u64, threshold: u64, dirty: u64) {
        if now.saturating_sub(self.moved) < hz / 5 {
            return;
        }
        self.moved = now;
        if threshold >= self.pages {
            self.pages = threshold;
            return;
        }
        let floor = threshold.max(dirty);
        if self.pages > floor {
            self.pages -= (self.pages - floor) / 32;
        }
    }
}

/// Memory as it stands when a writer looks.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Pages that are dirty and not being written.
    pub dirty: u64,
    /// Pages being written.
    pub writeback: u64,
    /// What may be dirty.
    pub thresholds: Thresholds,
}

impl Memory {
    fn both(&self) -> u64 {
        self.dirty + self.writeback
    }
}

/// One device's part of it.
#[derive(Clone, Copy, Debug)]
pub struct OnDevice {
    /// The pages that are dirty and not being written.
    pub dirty: u64,
    /// The pages being written.
    pub writeback: u64,
    /// The device's share of the dirty threshold.
    pub threshold: u64,
}

impl OnDevice {
    fn both(&self) -> u64 {
        self.dirty + self.writeback
    }
}

/// What a task has dirtied since it last paused.
#[derive(Clone, Copy, Debug)]
pub struct Dirtier {
    /// Pages.
    pub dirtied: u64,
    pause_at: u64,
    reference: u64,
}

impl Default for Dirtier {
    fn default() -> Self {
        Self { dirtied: 0, pause_at: FIRST_CHECK, reference: 0 }
    }
}

impl Dirtier {
    /// Pages that the task can dirty before it looks again, at least one.
    #[must_use]
    pub fn room(&self, device: &Bandwidth, core: &OnCore) -> u64 {
        let own = self.limit(device).saturating_sub(self.dirtied);
        own.min(core.limit.saturating_sub(core.dirtied)).max(1)
    }

    fn limit(&self, device: &Bandwidth) -> u64 {
        if device.exceeded { self.pause_at.min(CHECK_WHILE_EXCEEDED) } else { self.pause_at }
    }

    /// Whether the task has to look at the limits now: for itself, or for all that its core has dirtied.
    #[must_use]
    pub fn due(&self, device: &Bandwidth, core: &OnCore) -> bool {
        self.dirtied >= self.limit(device) || core.dirtied >= core.limit
    }
}

/// What the tasks of a core have dirtied together since one of them looked at the limits.
#[derive(Clone, Copy, Debug)]
pub struct OnCore {
    /// Pages.
    pub dirtied: u64,
    limit: u64,
}

impl OnCore {
    /// A core of a machine with so many, where `threshold` pages may be dirty.
    #[must_use]
    pub fn new(threshold: u64, cpus: u64) -> Self {
        Self { dirtied: 0, limit: (threshold / (CORE_PARTS * cpus.max(1))).max(CORE_LEAST) }
    }
}

/// What a writer does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Background write-back must be started if it does not run.
    pub start_writeback: bool,
    /// How long the writer sleeps, 0: not at all.
    pub pause: u64,
    /// After the pause the task looks again instead of going on.
    pub again: bool,
}

/// The limits and the point at which writers and device are in balance.
#[derive(Clone, Copy, Debug)]
struct Marks {
    limit: u64,
    setpoint: u64,
    freerun: u64,
}

impl Marks {
    fn new(thresholds: Thresholds, slow: SlowLimit) -> Self {
        let limit = thresholds.dirty.max(slow.pages);
        let freerun = u64::midpoint(thresholds.dirty, thresholds.background);
        Self { limit, freerun, setpoint: u64::midpoint(freerun, limit) }
    }
}

/// How much faster than the base rate writers go, in 1,024ths: 2,048 with little dirty memory, 0 at the limit.
fn position_ratio(memory: &Memory, device: &OnDevice, marks: Marks, bandwidth: u64) -> u64 {
    let dirty = memory.both();
    if dirty >= marks.limit {
        return 0;
    }
    let (limit, setpoint) = (marks.limit as f64, marks.setpoint as f64);
    let x = (setpoint - dirty as f64) / (limit - setpoint).max(1.0);
    let mut ratio = (1.0 + x * x * x).clamp(0.0, 2.0);

    let threshold = memory.thresholds.dirty;
    let own = device.threshold.min(threshold).max((marks.limit - dirty) / 8);
    let part = own as f64 / threshold.max(1) as f64;
    let own_setpoint = setpoint * part;
    let span = (threshold.saturating_sub(own) as f64 + 8.0 * bandwidth as f64) * part;
    let end = own_setpoint + span;
    let on_device = device.both() as f64;
    if on_device < end - span / 4.0 {
        ratio *= (end - on_device) / (end - own_setpoint).max(1.0);
    } else {
        ratio /= 4.0;
    }
    let reserve = own / 2;
    if device.both() < reserve {
        ratio *= if device.both() > own / 16 { reserve as f64 / on_device } else { 8.0 };
    }
    // Positive and below 2^24: the cast cuts the fraction.
    (ratio * PARTS as f64) as u64
}

/// Longest pause: as long as the device needs for what it holds, at most 200 ms.
fn longest_pause(hz: u64, device: &OnDevice, bandwidth: u64) -> u64 {
    let of_device = device.both() / (1 + bandwidth / (1 + hz / 8).next_power_of_two());
    (1 + of_device).min(hz / 5)
}

/// Shortest pause worth sleeping for, and the pages after which the task looks again.
fn shortest_pause(hz: u64, longest: u64, rate: u64, base: u64, bandwidth: u64) -> (u64, u64) {
    let second = hz.next_power_of_two();
    let mut pause = (hz / 100).max(1);
    let (high, low) = (log2(bandwidth), log2(base));
    if high > low {
        pause += (high - low) * (10 * hz) / 1024;
    }
    pause = pause.min(1 + longest / 2);
    let mut pages = base * pause / second;
    if pages < FIRST_CHECK {
        pause = longest;
        pages = base * pause / second;
        if pages > FIRST_CHECK {
            pages = FIRST_CHECK;
            pause = hz * FIRST_CHECK / base.max(1);
        }
    }
    if hz * pages / (rate + 1) > longest {
        pause = longest;
        pages = rate * pause / second;
    }
    (if pages >= FIRST_CHECK { 1 + pause / 2 } else { pause }, pages)
}

fn log2(n: u64) -> u64 {
    u64::from(n.max(1).ilog2())
}

/// Pages after which a task far below the limits looks again: half as many bits as there is room.
fn look_again(thresholds: Thresholds, dirty: u64) -> u64 {
    match thresholds.dirty.checked_sub(dirty) {
        Some(room) if room > 0 => 1 << (log2(room) / 2),
        _ => 1,
    }
}

/// A task that dirties memory looks at the limits.
pub fn balance(
    task: &mut Dirtier,
    memory: &Memory,
    on_device: &OnDevice,
    device: &mut Bandwidth,
    slow: &mut SlowLimit,
    now: u64,
) -> Verdict {
    let hz = device.hz;
    let start_writeback = memory.dirty > memory.thresholds.background;
    let marks = Marks::new(memory.thresholds, *slow);
    if memory.both() <= marks.freerun {
        task.dirtied = 0;
        task.reference = now;
        task.pause_at = look_again(memory.thresholds, memory.both());
        device.exceeded = false;
        return Verdict { start_writeback, pause: 0, again: false };
    }
    device.exceeded =
        on_device.both() > on_device.threshold && memory.both() > memory.thresholds.dirty;
    if device.due(now) {
        slow.update(now, hz, memory.thresholds.dirty, memory.both());
        let marks = Marks::new(memory.thresholds, *slow);
        let ratio = position_ratio(memory, on_device, marks, device.average);
        device.sample(now);
        device.rebase(ratio, memory.both() < marks.setpoint);
        device.stamp(now);
    }
    let ratio = position_ratio(memory, on_device, marks, device.average);
    let rate = device.base * ratio / PARTS;
    let longest = longest_pause(hz, on_device, device.average);
    let (shortest, pages) = shortest_pause(hz, longest, rate, device.base, device.average);
    let pause = task.pause(now, hz, rate, longest, shortest, pages);
    Verdict { start_writeback: true, pause, again: pause > 0 && rate == 0 }
}

impl Dirtier {
    /// Pauses the task for the pages that it has dirtied, at `rate`, if the pause is long enough to be worth it.
    /// Returns for how long; with 0 the task goes on.
    fn pause(
        &mut self,
        now: u64,
        hz: u64,
        rate: u64,
        longest: u64,
        shortest: u64,
        pages: u64,
    ) -> u64 {
        let (period, mut pause) = match (hz * self.dirtied).checked_div(rate) {
            None => (longest, i64_of(longest)),
            // Debts move the reference into the future. Then the pause is longer than the period.
            Some(period) => (period, i64_of(period) + i64_of(self.reference) - i64_of(now)),
        };
        if pause < i64_of(shortest) {
            if pause < -i64_of(hz) {
                self.reference = now;
                self.dirtied = 0;
            } else if period > 0 {
                self.reference += period;
                self.dirtied = 0;
            } else if self.pause_at <= self.dirtied {
                self.pause_at += self.dirtied;
            }
            return 0;
        }
        let mut from = now;
        let most = i64_of(longest);
        if pause > most {
            from += u64::try_from((pause - most).min(most)).unwrap_or(0);
            pause = most;
        }
        let pause = u64::try_from(pause).unwrap_or(0);
        self.reference = from + pause;
        self.dirtied = 0;
        self.pause_at = pages.max(1);
        pause
    }
}

fn i64_of(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
