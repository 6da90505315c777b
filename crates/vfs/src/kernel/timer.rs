//! When a timer goes off.

use iosched_types::Nanos;

/// Buckets of a level of the timer wheel, less the one that it stands in.
const BUCKETS: u64 = 63;
/// Each level is coarser than the one before it by this.
const COARSER: u64 = 8;

/// When a timer goes off that is set at `now` for `delay` later, with ticks of `tick`; all in nanoseconds.
///
/// Since Linux 4.8 timers wait in a wheel: those that are further away are rounded up to coarser moments, common to all
/// timers. With HZ 250, 5 s are rounded up to a multiple of 256 ms, 30 s to one of 2.048 s. `tick` 0: kernels before, which
/// keep every moment.
#[must_use]
pub fn expires(now: Nanos, delay: Nanos, tick: Nanos) -> Nanos {
    if tick == 0 {
        return now + delay;
    }
    let ticks = delay.div_ceil(tick);
    let mut grain = 1;
    while ticks >= BUCKETS * grain {
        grain *= COARSER;
    }
    ((now / tick + ticks) / grain + 1) * grain * tick
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Linux 6.12, HZ 250: what was dirtied 916 ms after a common moment was looked at 5,227 ms later, and XFS's worker, set
    /// by a mount some 6 s before, came 25,707 ms later.
    #[test]
    fn far_timers_are_rounded_up() {
        let reset = 916_567_000;
        assert_eq!(expires(reset, 5000 * MS, 4 * MS), reset + 5_227_433_000);
        assert_eq!(expires(1000 * 2048 * MS - 5_100 * MS, 30_000 * MS, 4 * MS), 1013 * 2048 * MS);
        assert_eq!(expires(0, 4 * MS, 4 * MS), 8 * MS);
        assert_eq!(expires(7, 5, 0), 12);
    }
}
