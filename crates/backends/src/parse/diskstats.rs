//! `/proc/diskstats` and `/sys/block/*/stat`: sectors are 512 bytes, times are milliseconds.

use iosched_experiment::DeviceStats;
use iosched_types::SECTOR;
use iosched_types::units::MS;

/// The counters of one device. Kernels before 4.18 lack discards, those before 5.5 flushes; both are 0 then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Completed reads, writes, discards.
    pub ios: [u64; 3],
    /// Merged reads, writes, discards.
    pub merges: [u64; 3],
    /// Sectors of reads, writes, discards.
    pub sectors: [u64; 3],
    /// Time of reads, writes, discards, summed over requests, in ms.
    pub ticks: [u64; 3],
    /// Flushes completed.
    pub flushes: u64,
    /// Time of flushes in ms.
    pub flush_ticks: u64,
    /// In flight now.
    pub in_flight: u64,
    /// Time with something in flight, in ms.
    pub io_ticks: u64,
    /// Weighted time in ms.
    pub time_in_queue: u64,
}

/// The fields that follow the device's name; at least the eleven of every kernel since 2.6.
#[must_use]
pub fn parse_fields(text: &str) -> Option<DiskStats> {
    let mut f = [0u64; 17];
    let mut n = 0;
    for (slot, word) in f.iter_mut().zip(text.split_whitespace()) {
        *slot = word.parse().ok()?;
        n += 1;
    }
    (n >= 11).then_some(DiskStats {
        ios: [f[0], f[4], f[11]],
        merges: [f[1], f[5], f[12]],
        sectors: [f[2], f[6], f[13]],
        ticks: [f[3], f[7], f[14]],
        in_flight: f[8],
        io_ticks: f[9],
        time_in_queue: f[10],
        flushes: f[15],
        flush_ticks: f[16],
    })
}

/// One device's line of `/proc/diskstats`.
#[must_use]
pub fn find(text: &str, name: &str) -> Option<DiskStats> {
    text.lines().find_map(|line| {
        let mut rest = line.trim_start();
        for _ in 0..2 {
            let end = rest.find(char::is_whitespace)?;
            rest = rest[end..].trim_start();
        }
        let end = rest.find(char::is_whitespace)?;
        (&rest[..end] == name).then(|| parse_fields(&rest[end..])).flatten()
    })
}

impl DiskStats {
    /// Reads, writes and discards that were completed.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.ios.iter().sum()
    }

    /// What happened since an earlier reading; a counter that went backwards (32-bit wrap, device
    /// replaced) counts as 0.
    #[must_use]
    pub fn since(&self, before: &DiskStats) -> DiskStats {
        let sub = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|i| a[i].saturating_sub(b[i]));
        DiskStats {
            ios: sub(self.ios, before.ios),
            merges: sub(self.merges, before.merges),
            sectors: sub(self.sectors, before.sectors),
            ticks: sub(self.ticks, before.ticks),
            flushes: self.flushes.saturating_sub(before.flushes),
            flush_ticks: self.flush_ticks.saturating_sub(before.flush_ticks),
            in_flight: self.in_flight,
            io_ticks: self.io_ticks.saturating_sub(before.io_ticks),
            time_in_queue: self.time_in_queue.saturating_sub(before.time_in_queue),
        }
    }

    /// The counters of two devices that work for the same target; times in which either is busy are not known,
    /// the longer counts.
    #[must_use]
    pub fn with(&self, other: &DiskStats) -> DiskStats {
        let add = |a: [u64; 3], b: [u64; 3]| std::array::from_fn(|i| a[i].saturating_add(b[i]));
        DiskStats {
            ios: add(self.ios, other.ios),
            merges: add(self.merges, other.merges),
            sectors: add(self.sectors, other.sectors),
            ticks: add(self.ticks, other.ticks),
            flushes: self.flushes.saturating_add(other.flushes),
            flush_ticks: self.flush_ticks.saturating_add(other.flush_ticks),
            in_flight: self.in_flight.saturating_add(other.in_flight),
            io_ticks: self.io_ticks.max(other.io_ticks),
            time_in_queue: self.time_in_queue.saturating_add(other.time_in_queue),
        }
    }

    /// Bytes read and written.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.sectors[0].saturating_add(self.sectors[1]).saturating_mul(SECTOR)
    }

    /// As the device's side of a record.
    #[must_use]
    pub fn to_device_stats(&self) -> DeviceStats {
        DeviceStats {
            commands: [self.ios[0], self.ios[1], self.ios[2], self.flushes],
            bytes: self.sectors.map(|s| s.saturating_mul(SECTOR)),
            merges: self.merges,
            busy: self.io_ticks.saturating_mul(MS),
            weighted: self.time_in_queue.saturating_mul(MS),
            ..DeviceStats::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REAL: &str = "   7       3 loop3 13380003 13789 396224645 61007795 4514447 307186 130760743 \
        12963820 0 2239272 74018480 3 0 8388616 4639 173851 42224\n";

    #[test]
    fn reads_a_real_line() {
        let s = find(REAL, "loop3").unwrap();
        assert_eq!(s.ios, [13_380_003, 4_514_447, 3]);
        assert_eq!(s.sectors, [396_224_645, 130_760_743, 8_388_616]);
        assert_eq!((s.flushes, s.flush_ticks), (173_851, 42_224));
        assert_eq!((s.io_ticks, s.time_in_queue), (2_239_272, 74_018_480));
        assert_eq!(find(REAL, "loop"), None);
        assert_eq!(s.to_device_stats().commands[3], 173_851);
    }

    #[test]
    fn old_kernels_have_fewer_columns() {
        assert_eq!(parse_fields("1 2 3 4 5 6 7 8 9 10 11").unwrap().flushes, 0);
        assert_eq!(parse_fields("1 2 3 4"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,200}", name in "[a-z0-9]{0,6}") {
            let _ = find(&text, &name);
        }

        #[test]
        fn differences_add_up(a in proptest::collection::vec(0u64..1 << 40, 17),
                              b in proptest::collection::vec(0u64..1 << 40, 17)) {
            let text = |v: &[u64]| v.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
            let sum: Vec<u64> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
            let (first, last) = (parse_fields(&text(&a)).unwrap(), parse_fields(&text(&sum)).unwrap());
            let d = last.since(&first);
            prop_assert_eq!(d.ios, [b[0], b[4], b[11]]);
            prop_assert_eq!(d.flushes, b[15]);
        }
    }
}
