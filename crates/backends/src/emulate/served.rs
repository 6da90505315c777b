//! What an emulated disk did so far.

use iosched_types::{Nanos, Sector};

/// Figures of an emulated disk since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Commands completed, by read, write, discard, flush.
    pub commands: [u64; 4],
    /// Bytes, by read, write, discard.
    pub bytes: [u64; 3],
    /// Sum of the model's latencies (arrival to completion) in ns.
    pub latency: Nanos,
    /// The part of `latency` that is of flushes.
    pub flushing: Nanos,
    /// Sum over commands of how much too late the answer was, in ns.
    pub late: Nanos,
    /// Answers more than 1 ms too late.
    pub very_late: u64,
    /// In flight now.
    pub in_flight: usize,
    /// Most in flight at once.
    pub max_in_flight: usize,
    /// Where the head is.
    pub position: Sector,
    /// Commands that did not start where the one before ended.
    pub seeks: u64,
    /// Distance between the end of one command and the start of the next, in arrival order, in sectors.
    pub travel: Sector,
}

impl Served {
    /// One line about the time since `before`: IOPS, latency, depth, head. At most 80 columns.
    #[must_use]
    pub fn live_line(&self, before: &Served, seconds: f64) -> String {
        let all = |s: &Served| s.commands.iter().sum::<u64>();
        let n = all(self).saturating_sub(all(before));
        let bytes = |s: &Served| s.bytes[0] + s.bytes[1];
        let moved = bytes(self).saturating_sub(bytes(before)) as f64 / seconds.max(1e-9);
        let latency = self.latency.saturating_sub(before.latency) as f64 / n.max(1) as f64;
        let text = format!(
            "{:>7} IOPS {:>7.1} MB/s  {:>9}  depth {:>3} (max {})  head {}",
            iosched_types::units::show_count((n as f64 / seconds.max(1e-9)).round()),
            moved / 1e6,
            iosched_types::units::show_nanos(latency),
            self.in_flight,
            self.max_in_flight,
            self.position
        );
        text.chars().take(80).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_line_is_about_the_time_since_the_last() {
        let before = Served { commands: [100, 0, 0, 0], latency: 1, ..Served::default() };
        let now = Served {
            commands: [300, 0, 0, 0],
            bytes: [2_000_000, 0, 0],
            latency: 2_000_000_001,
            position: u64::MAX,
            ..Served::default()
        };
        let line = now.live_line(&before, 2.0);
        assert!(line.contains("100 IOPS") && line.contains("10.0 ms"), "{line}");
        assert!(line.contains("1.0 MB/s") && line.chars().count() <= 80, "{line}");
        // The largest position and depth fit.
        let full = Served { position: (8 << 40) / 512, in_flight: 128, max_in_flight: 128, ..now };
        let line = full.live_line(&before, 2.0);
        assert!(line.ends_with("head 17179869184") && line.chars().count() < 80, "{line}");
    }
}
