//! The coarse clock of the kernel's timer tick, in which most schedulers set their deadlines.

use iosched_types::Nanos;

/// Milliseconds as jiffies, rounded up: what writing a time to a sysfs file does.
#[must_use]
pub fn from_ms(ms: i64, hz: u32) -> i64 {
    let scaled = i128::from(ms) * i128::from(hz);
    (scaled.div_euclid(1000) + i128::from(scaled.rem_euclid(1000) != 0)) as i64
}

/// Jiffies as milliseconds, rounded down: what reading the file shows.
#[must_use]
pub fn to_ms(jiffies: i64, hz: u32) -> i64 {
    (i128::from(jiffies) * 1000 / i128::from(hz.max(1))) as i64
}

/// When the tick of a jiffy comes: where the kernel's timers fire.
#[must_use]
pub fn tick(jiffy: i64, hz: u32) -> Nanos {
    let ns = u128::try_from(jiffy).unwrap_or(0) * 1_000_000_000;
    u64::try_from(ns.div_ceil(u128::from(hz.max(1)))).unwrap_or(Nanos::MAX)
}

/// Counts jiffies without dividing on every call: times rarely leave the tick of the last one.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    hz: u64,
    /// Length of a tick where that is a whole number of nanoseconds, else 0.
    whole: Nanos,
    /// 2^64 / `whole`, rounded down. Multiplying a time by it divides the time by `whole`.
    inverse: u64,
    /// The tick of `jiffy`: from here until there.
    from: Nanos,
    until: Nanos,
    jiffy: i64,
}

impl Clock {
    /// A clock of `hz` ticks a second (0 counts as 1).
    #[must_use]
    pub fn new(hz: u32) -> Self {
        const SECOND: u64 = 1_000_000_000;
        let hz = u64::from(hz.max(1));
        let whole = if SECOND.is_multiple_of(hz) { SECOND / hz } else { 0 };
        let inverse = u64::MAX.checked_div(whole).unwrap_or(0);
        Clock { hz, whole, inverse, from: 0, until: 0, jiffy: 0 }
    }

    /// Ticks per second.
    #[must_use]
    pub fn hz(&self) -> u32 {
        self.hz as u32
    }

    /// The number of whole ticks at `now`.
    #[inline]
    pub fn at(&mut self, now: Nanos) -> i64 {
        if now < self.from || now >= self.until {
            self.turn(now);
        }
        self.jiffy
    }

    #[inline]
    fn turn(&mut self, now: Nanos) {
        const SECOND: u64 = 1_000_000_000;
        if self.whole == 0 || now >= Nanos::MAX - SECOND {
            return self.turn_unevenly(now);
        }
        // The inverse is less than one too small, so this is the quotient or one less.
        let below = ((u128::from(now) * u128::from(self.inverse)) >> 64) as u64;
        let jiffy = below + u64::from(now - below * self.whole >= self.whole);
        self.jiffy = jiffy as i64;
        self.from = jiffy * self.whole;
        self.until = self.from + self.whole;
    }

    /// Where a tick is no whole number of nanoseconds, or time is near its end.
    #[cold]
    fn turn_unevenly(&mut self, now: Nanos) {
        const SECOND: u128 = 1_000_000_000;
        let hz = u128::from(self.hz);
        let jiffy = u128::from(now) * hz / SECOND;
        self.jiffy = jiffy as i64;
        self.from = (jiffy * SECOND).div_ceil(hz) as Nanos;
        self.until = u64::try_from(((jiffy + 1) * SECOND).div_ceil(hz)).unwrap_or(Nanos::MAX);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::QueueFacts;

    proptest! {
        #[test]
        fn the_clock_agrees_with_plain_division(
            hz in prop_oneof![Just(100), Just(250), Just(300), Just(1000), 1u32..2000],
            times in prop::collection::vec((any::<u64>(), 1u32..63).prop_map(|(t, s)| t >> s), 1..40),
        ) {
            let queue = QueueFacts { hz, ..QueueFacts::default() };
            let mut clock = Clock::new(hz);
            for now in times {
                for t in [now, now + 1, now.saturating_sub(1)] {
                    let jiffy = clock.at(t);
                    prop_assert_eq!(jiffy, queue.jiffies(t) as i64);
                    prop_assert!(tick(jiffy, hz) <= t && t < tick(jiffy + 1, hz));
                }
            }
        }
    }

    #[test]
    fn written_times_round_up_to_a_tick_and_read_back_as_such() {
        assert_eq!((from_ms(1, 250), to_ms(1, 250)), (1, 4));
        assert_eq!((from_ms(500, 250), to_ms(125, 250)), (125, 500));
        assert_eq!((from_ms(0, 1000), from_ms(1, 1000)), (0, 1));
        assert_eq!(to_ms(from_ms(i64::from(i32::MAX), 1000), 1000), i64::from(i32::MAX));
    }
}
