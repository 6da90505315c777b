//! What a queue is built from: scheduler, limits, `queue/*` settings; and what an array is.

use iosched_devices::Device;
use iosched_schedulers::{BlockPath, Cgroup, Descriptor, Generation, TaskInfo};
use iosched_types::Sector;

use crate::profile::KernelProfile;
use crate::timeline::DiskId;

/// Which scheduler, with which tunables.
#[derive(Clone, Debug)]
pub struct SchedulerChoice {
    /// The family.
    pub descriptor: &'static Descriptor,
    /// The generation.
    pub generation: &'static Generation,
    /// Tunables by sysfs name, in the sysfs unit.
    pub tunables: Vec<(String, i64)>,
}

/// Limits on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sectors of a request (`max_sectors_kb` · 2).
    pub max_sectors: u32,
    /// Segments of a request.
    pub max_segments: u16,
    /// `nomerges`: 0, 1 (one-entry cache only) or 2 (off).
    pub nomerges: u8,
}

/// Everything a queue is built from.
pub struct QueueConfig {
    /// Which disk its events name.
    pub disk: DiskId,
    /// Kernel profile.
    pub profile: KernelProfile,
    /// The block layer, where the profile has both.
    pub path: BlockPath,
    /// The scheduler.
    pub scheduler: SchedulerChoice,
    /// The device.
    pub device: Box<dyn Device>,
    /// Commands the device takes at once (driver tags), per hardware queue.
    pub queue_depth: u32,
    /// Requests that the driver has at the device at a time, per hardware queue, where that is fewer than there are tags; 0: as many.
    /// A request that comes too early has left the scheduler and waits.
    pub at_once: u32,
    /// Hardware queues.
    pub hw_queues: u16,
    /// `queue/rotational`.
    pub rotational: bool,
    /// Volatile write cache.
    pub write_cache: bool,
    /// Native FUA.
    pub fua: bool,
    /// The device asks for a budget before a request is pulled: nothing is staged. SATA and SCSI of kernels with
    /// [`budget_first`](crate::profile::MqProfile::budget_first).
    pub budget: bool,
    /// Hardware limit in KiB.
    pub max_hw_sectors_kb: u32,
    /// Sectors of a zone of a zoned device; 0 if it is not zoned.
    pub zone_sectors: Sector,
    /// `queue/*` settings by sysfs name.
    pub settings: Vec<(String, i64)>,
    /// Processes.
    pub tasks: Vec<TaskInfo>,
    /// Control groups, the root first.
    pub cgroups: Vec<Cgroup>,
    /// CPUs.
    pub cpus: u16,
    /// Bit, modulo its depth, at which each tag map is first searched. The kernel draws it.
    pub tag_start: u32,
}

/// How the legs make one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Mirrors (md RAID1).
    Raid1,
    /// One behind the other (md linear, LVM).
    Linear,
}

/// What an array is built from, apart from its legs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayConfig {
    /// How the legs make one device.
    pub level: Level,
    /// Sectors before the data on each leg.
    pub data_offset: Sector,
    /// Sectors that a bit of the write-intent bitmap stands for; 0 without one.
    pub bitmap_chunk: Sector,
    /// `optimal_io_size` of the legs in sectors; 0 where they report none.
    pub optimal_io: Sector,
    /// Legs that are read only if there is no other.
    pub write_mostly: Vec<usize>,
}

/// A `queue/*` setting that can be set from an experiment file.
#[derive(Clone, Copy, Debug)]
pub struct QueueSetting {
    /// File name below `/sys/block/X/queue/`.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
    /// One sentence.
    pub help: &'static str,
}

const fn s(
    name: &'static str,
    unit: &'static str,
    min: i64,
    max: i64,
    help: &'static str,
) -> QueueSetting {
    QueueSetting { name, unit, min, max, help }
}

/// The `queue/*` settings, by sysfs name.
#[must_use]
pub fn queue_settings() -> &'static [QueueSetting] {
    static SETTINGS: &[QueueSetting] = &[
        s(
            "nr_requests",
            "requests",
            1,
            1 << 21,
            "Requests that may be allocated. Linux takes less than 4 for 4.",
        ),
        s(
            "async_depth",
            "requests",
            1,
            1 << 21,
            "Scheduler tags that all but reads may take (7.1 and later); not more than nr_requests.",
        ),
        s("max_sectors_kb", "KiB", 4, 65_536, "Largest request."),
        s("nomerges", "0/1/2", 0, 2, "1: only the one-entry merge cache; 2: no merging."),
        s("read_ahead_kb", "KiB", 0, 1 << 20, "Read-ahead window of buffered reads."),
        s("rotational", "0/1", 0, 1, "Whether the device has a head to move."),
        s(
            "wbt_lat_usec",
            "us",
            -1,
            60_000_000,
            "Latency target of the writeback throttle; 0 is off, -1 the default, set by hand.",
        ),
        s("rq_affinity", "0/1/2", 0, 2, "CPU that finishes a request; costs only."),
        s(
            "iostats",
            "0/1",
            0,
            1,
            "Disk statistics; since 7.1 kyber and adios take the age of requests from them.",
        ),
        s("add_random", "0/1", 0, 1, "Feeds the entropy pool; costs only."),
        s("io_timeout", "ms", 1, 1 << 31, "Request timeout; modelled devices never time out."),
        s("write_cache", "0/1", 0, 1, "1: volatile write cache on (\"write back\")."),
        s("fua", "0/1", 0, 1, "Whether the device takes FUA writes itself."),
    ];
    SETTINGS
}

/// The last value given for a setting.
pub(crate) fn setting(settings: &[(String, i64)], name: &str) -> Option<i64> {
    settings.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v)
}
