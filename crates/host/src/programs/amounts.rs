//! How much of something there was when, in room of a fixed size.

use iosched_types::Nanos;

/// Bins at most.
const BINS: usize = 512;
/// Width of a bin as long as the run is short.
const FIRST: Nanos = 10_000_000;

/// Amounts by time. When a run outgrows the bins, two become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts {
    step: Nanos,
    bins: Vec<u64>,
}

impl Default for Amounts {
    fn default() -> Amounts {
        Amounts { step: FIRST, bins: Vec::new() }
    }
}

impl Amounts {
    /// So much more at that time since the beginning.
    pub fn add(&mut self, at: Nanos, amount: u64) {
        // What ends with a bin is in it.
        let at = at.saturating_sub(1);
        while at / self.step >= BINS as Nanos {
            self.widen();
        }
        let bin = (at / self.step) as usize;
        if bin >= self.bins.len() {
            self.bins.reserve_exact(BINS - self.bins.len());
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += amount;
    }

    fn widen(&mut self) {
        let half = self.bins.len().div_ceil(2);
        for i in 0..half {
            self.bins[i] = self.bins[2 * i] + self.bins.get(2 * i + 1).copied().unwrap_or(0);
        }
        self.bins.truncate(half);
        self.step *= 2;
    }

    /// Amounts a second over a run of that length, and the time between two of them, which depends on that length alone.
    /// What is left of the run at the end is a bin of its own from half a width on, else it belongs to the last one.
    #[must_use]
    pub fn rates(&self, elapsed: Nanos) -> (Nanos, Vec<f64>) {
        if self.step.saturating_mul(BINS as Nanos) < elapsed {
            let mut wider = self.clone();
            wider.widen();
            return wider.rates(elapsed);
        }
        let whole = ((elapsed + self.step / 2) / self.step).max(1) as usize;
        let mut out = Vec::with_capacity(whole);
        for i in 0..whole.min(BINS) {
            let last = i + 1 == whole;
            let to = if last { self.bins.len().max(i + 1) } else { i + 1 };
            let sum: u64 = (i..to).filter_map(|b| self.bins.get(b)).sum();
            let width = if last { elapsed - i as Nanos * self.step } else { self.step };
            out.push(sum as f64 * 1e9 / width.max(1) as f64);
        }
        (self.step, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_bins_widen_and_no_room_is_taken_again() {
        let mut t = Amounts::default();
        t.add(0, 1);
        let room = t.bins.capacity();
        for ms in 0..60_000u64 {
            t.add(ms * 1_000_000, 2);
        }
        assert_eq!(t.bins.iter().sum::<u64>(), 120_001);
        assert_eq!((t.step, t.bins.capacity()), (160_000_000, room));
        let (step, rates) = t.rates(60_000_000_000);
        assert_eq!((step, rates.len()), (160_000_000, 375));
        assert!(rates.iter().skip(1).rev().skip(1).all(|r| (r - 2000.0).abs() < 1e-9), "{rates:?}");
        let all: f64 = rates.iter().sum::<f64>() * 0.16;
        assert!((all - 120_001.0).abs() < 1e-6, "{all}");
    }

    #[test]
    fn the_last_bin_is_as_wide_as_the_run_and_silence_counts() {
        let mut t = Amounts::default();
        t.add(12_000_000, 4);
        assert_eq!(t.rates(15_000_000), (FIRST, vec![0.0, 800.0]));
        assert_eq!(t.rates(40_000_000), (FIRST, vec![0.0, 400.0, 0.0, 0.0]));
        // Too short an end would make a peak of one operation.
        t.add(20_000_001, 1);
        assert_eq!(t.rates(20_000_001).1[1].round(), 500.0);
        assert_eq!(t.rates(20_000_001).1.len(), 2);
        assert_eq!(Amounts::default().rates(0).1, [0.0]);
        // What ended early has the same bins as what went on until the end.
        assert_eq!(t.rates(60_000_000_000).0, 160_000_000);
    }
}
