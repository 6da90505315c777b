//! How the kernel stores a value that is written to sysfs: exactly, except for the few attributes that are kept in
//! another unit than they show.

use iosched_schedulers::jiffies::{from_ms, to_ms};
use iosched_schedulers::pair;

use crate::root::SysRoot;

/// Times that are written in milliseconds and kept in ticks of the kernel's timer, by scheduler.
const TICKS: &[(&str, &str)] = &[
    ("mq-deadline", "read_expire"),
    ("mq-deadline", "write_expire"),
    ("mq-deadline", "prio_aging_expire"),
    ("bfq", "timeout_sync"),
];

/// Ticks a second that kernels are built with.
const RATES: [u32; 4] = [100, 250, 300, 1000];

/// Whether a tunable of `scheduler` may show `reads` after `wrote` was written. A time is rounded up to a whole tick,
/// and the shown time to a millisecond. Everything else must show as written. A different value was clamped, and the
/// run would not be the requested one.
pub(super) fn tunable(rates: &[u32], scheduler: &str, name: &str, wrote: i64, reads: &str) -> bool {
    let Ok(reads) = reads.trim().parse::<i64>() else { return false };
    if reads == wrote {
        return true;
    }
    let ticks = TICKS.contains(&(scheduler, name));
    ticks && wrote >= 0 && rates.iter().any(|&hz| shown(wrote, hz).contains(&reads))
}

/// How a time of `ms` is shown. Where a tick is no whole number of milliseconds, kernels round in different directions.
fn shown(ms: i64, hz: u32) -> [i64; 2] {
    let ticks = from_ms(ms, hz);
    let down = to_ms(ticks, hz);
    let whole = i128::from(ticks) * 1000 % i128::from(hz) == 0;
    [down, if whole { down } else { down + 1 }]
}

/// Whether a queue attribute may show `reads` after `wrote` was written.
pub(super) fn attribute(page: u64, name: &str, wrote: &str, reads: &str) -> bool {
    if wrote == reads {
        return true;
    }
    match (name, wrote.parse::<i64>(), reads.parse::<i64>()) {
        // Kept in pages.
        ("read_ahead_kb", Ok(wrote), Ok(reads)) => {
            let kib = i64::try_from((page >> 10).max(1)).unwrap_or(1);
            wrote >= 0 && reads == wrote / kib * kib
        }
        // Kept in ticks.
        ("io_timeout", Ok(wrote), Ok(reads)) => {
            wrote > 0 && RATES.iter().any(|&hz| shown(wrote, hz).contains(&reads))
        }
        // Asks for the kernel's default.
        ("wbt_lat_usec", Ok(-1), Ok(reads)) => reads >= 0,
        _ => false,
    }
}

/// Ticks a second of the running kernel's timer, from its configuration. All possible values when that cannot be read.
pub(super) fn tick_rates(root: &SysRoot) -> Vec<u32> {
    let release = root.get("/proc/sys/kernel/osrelease").unwrap_or_default();
    let config = root.get(&format!("/boot/config-{release}")).unwrap_or_default();
    let rate = config.lines().find_map(|l| l.strip_prefix("CONFIG_HZ=")?.trim().parse().ok());
    rate.map_or_else(|| RATES.to_vec(), |hz| vec![hz])
}

/// Bytes of a page.
pub(super) fn page_size() -> u64 {
    let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|s| u64::try_from(s).ok()).unwrap_or(4096)
}

/// What a file takes that holds a model: a base and a slope.
pub(super) fn model(scheduler: &str, name: &str, value: i64) -> Option<String> {
    let is_model = matches!(name, "lat_model_read" | "lat_model_write" | "lat_model_discard");
    (scheduler == "adios" && is_model).then(|| pair::text(value))
}

/// The value of such a file: `base : 970000 ns`, `slope: 50000 ns/KiB`.
pub(super) fn model_reads(text: &str) -> Option<i64> {
    let mut numbers = text.split_whitespace().filter_map(|w| w.parse::<u64>().ok());
    Some(pair::of(numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Written and read on Linux 6.18, 250 ticks a second.
    #[test]
    fn times_are_rounded_to_ticks_and_nothing_else_is() {
        let ok = |s: &str, n: &str, wrote: i64, reads: &str| tunable(&[250], s, n, wrote, reads);
        for (wrote, reads) in [(1, "4"), (5, "8"), (77, "80"), (101, "104"), (5001, "5004")] {
            assert!(ok("mq-deadline", "read_expire", wrote, reads), "{wrote}");
            assert!(ok("bfq", "timeout_sync", wrote, reads), "{wrote}");
        }
        for (scheduler, name, wrote, reads) in [
            ("bfq", "low_latency", 7, "1"),
            ("bfq", "strict_guarantees", 2, "1"),
            ("bfq", "back_seek_penalty", 0, "1"),
            ("bfq", "slice_idle", 5001, "706"),
            ("bfq", "timeout_sync", 0, "4"),
            ("mq-deadline", "front_merges", 3, "1"),
            ("mq-deadline", "fifo_batch", -1, "0"),
            ("mq-deadline", "read_expire", 77, "77.0"),
            ("mq-deadline", "read_expire", 77, "84"),
            ("mq-deadline", "writes_starved", 77, "80"),
            ("kyber", "read_lat_nsec", 77, "80"),
        ] {
            assert!(!ok(scheduler, name, wrote, reads), "{scheduler}.{name}={wrote}");
        }
        assert!(tunable(&[1000], "bfq", "timeout_sync", 77, "77"));
        assert!(!tunable(&[1000], "bfq", "timeout_sync", 77, "80"));
        // 24 of 300 ticks a second are 80 ms; 151 are 503.3 ms.
        assert!(tunable(&[300], "mq-deadline", "read_expire", 77, "80"));
        assert!(["503", "504"].iter().all(|r| tunable(&[300], "bfq", "timeout_sync", 501, r)));
    }

    #[test]
    fn read_ahead_is_kept_in_pages_and_nothing_else_is() {
        assert!(attribute(4096, "read_ahead_kb", "129", "128"));
        assert!(attribute(4096, "read_ahead_kb", "3", "0"));
        assert!(!attribute(4096, "read_ahead_kb", "128", "124"));
        assert!(attribute(65536, "read_ahead_kb", "129", "128"));
        assert!(attribute(4096, "wbt_lat_usec", "-1", "75000"));
        assert!(attribute(4096, "io_timeout", "30001", "30004"), "250 ticks a second");
        assert!(!attribute(4096, "io_timeout", "30000", "60000"));
        for (name, wrote, reads) in [
            ("nr_requests", "1", "4"),
            ("nomerges", "7", "1"),
            ("rq_affinity", "3", "2"),
            ("iostats", "7", "1"),
            ("wbt_lat_usec", "77", "0"),
            ("max_sectors_kb", "0", "1280"),
        ] {
            assert!(!attribute(4096, name, wrote, reads), "{name}={wrote}");
        }
    }

    #[test]
    fn the_tick_is_the_running_kernels_where_that_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let root = SysRoot::fixture(dir.path(), BTreeMap::new());
        assert_eq!(tick_rates(&root), RATES);
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "6.1"),
            ("boot/config-6.1", "CONFIG_X=y\nCONFIG_HZ=250\n"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        assert_eq!(tick_rates(&root), [250]);
    }

    #[test]
    fn a_model_is_written_as_two_numbers_and_read_as_two_lines() {
        let value = pair::of(970_000, 50_000);
        assert_eq!(model("adios", "lat_model_read", value).as_deref(), Some("970000 50000"));
        assert_eq!(model("adios", "lat_model_latency_limit", 5), None);
        assert_eq!(model_reads("base : 970000 ns\nslope: 50000 ns/KiB\n"), Some(value));
        assert_eq!(model_reads("base : ?"), None);
    }
}
