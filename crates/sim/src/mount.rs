//! A trial's file system and memory.

use iosched_block::Stack;
use iosched_experiment::{AccessTime, DataMode, FsType, HostSpec, Trial, Warning};
use iosched_host::fs::{Files, Mount, Mounted, Simple};
use iosched_schedulers::KernelVersion;
use iosched_types::{Bytes, Flags, Nanos};
use iosched_vfs::cache::PAGE;
use iosched_vfs::cache::readahead::Era;
use iosched_vfs::cache::throttle::DirtyLimits;
use iosched_vfs::cache::writeback::Intervals;
use iosched_vfs::fs::FileSystem;
use iosched_vfs::fs::age::Ageing;
use iosched_vfs::fs::atime::Atime;
use iosched_vfs::fs::ext3::Ext3;
use iosched_vfs::fs::ext3::layout::{BY_1_39, BY_1_47};
use iosched_vfs::fs::ext4::{self, Data, Driver, Ext4};
use iosched_vfs::fs::raw::Raw;
use iosched_vfs::fs::volume::Volume;
use iosched_vfs::fs::xfs::{self, WORKER, Xfs};
use iosched_vfs::kernel::memory::Settings;
use iosched_vfs::kernel::reclaim::{Watermarks, free_at_start};
use iosched_vfs::kernel::timer::expires;
use iosched_workloads::fio::on_files::on_device;

/// Writers only sleep, and read-ahead has one window a file, since these.
const WRITERS_SLEEP: KernelVersion = KernelVersion(3, 2, 0);

/// A fifth of memory may be dirty since this one, two fifths before.
const RATIO_OF_20: KernelVersion = KernelVersion(2, 6, 22);

/// Pages that follow one another in memory share a segment of a bio since this one.
const LONG_SEGMENTS: KernelVersion = KernelVersion(5, 1, 0);

/// Pages of a bio of data at most.
fn bio_pages(kernel: KernelVersion, fs: FsType) -> u64 {
    match fs {
        // Buffer by buffer; on 4 KiB blocks a page has one.
        FsType::Ext3 if kernel < WRITERS_SLEEP => 1,
        // As many segments as the device takes.
        _ if kernel < WRITERS_SLEEP => 128,
        _ if kernel < LONG_SEGMENTS => 256,
        _ => u64::MAX,
    }
}

/// Timers wait in a wheel since this one.
const WHEEL: KernelVersion = KernelVersion(4, 8, 0);

/// What 7.1 does and 6.12 does not (both ran); of the releases between it is not known.
const SINCE_7_1: KernelVersion = KernelVersion(7, 0, 0);

/// The rules of read-ahead of a kernel.
fn era(kernel: KernelVersion) -> Era {
    match kernel {
        k if k < KernelVersion(2, 6, 23) => Era::Twin,
        k if k < KernelVersion(3, 14, 0) => Era::OnDemand,
        k if k < KernelVersion(4, 19, 0) => Era::History,
        k if k < KernelVersion(6, 11, 0) => Era::Capped,
        k if k < SINCE_7_1 => Era::Split,
        _ => Era::Aligned,
    }
}

/// Since this one the limits of a queue are set together, by each write to one of these files.
const LIMITS_TOGETHER: KernelVersion = KernelVersion(6, 11, 0);
const SETS_LIMITS: [&str; 5] =
    ["max_sectors_kb", "rotational", "iostats", "add_random", "write_cache"];

/// `read_ahead_kb` of the device in pages. Where its limits are set, at registration and by a write to one of them, it becomes
/// as large as the kernel's default; on a disk under 7.1 two of the largest requests. So what was written to it before is lost.
fn read_ahead(trial: &Trial) -> u64 {
    let kernel = trial.kernel.kernel_version();
    let least = u64::from(trial.kernel.read_ahead_kb);
    let most = u64::from(trial.device.max_hw_sectors_kb.max(4));
    let mut max_sectors = u64::from(trial.kernel.max_sectors_kb).min(most);
    let mut rotational = trial.device.rotational;
    let set = |kb: u64, max_sectors: u64, rotational: bool| {
        let of_disk = if rotational && kernel >= SINCE_7_1 { 2 * max_sectors } else { 0 };
        kb.max(least).max(of_disk)
    };
    let mut kb = set(0, max_sectors, rotational);
    for (name, value) in &trial.settings {
        let value = u64::try_from(*value).unwrap_or(0);
        match name.as_str() {
            "read_ahead_kb" => kb = value,
            "max_sectors_kb" => max_sectors = value.min(most),
            "rotational" => rotational = value != 0,
            _ => {}
        }
        if kernel >= LIMITS_TOGETHER && SETS_LIMITS.contains(&name.as_str()) {
            kb = set(kb, max_sectors, rotational);
        }
    }
    kb * 1024 / PAGE
}

/// The files of a trial on a device of so many bytes, and what the user should know of them.
pub(crate) fn files(trial: &Trial, capacity: Bytes, queue: &Stack) -> (Files, Option<Warning>) {
    let host = &trial.host;
    // On the device itself there is no file system, whatever its type would be.
    if trial.jobs().jobs.iter().any(on_device) {
        return (mounted(trial, queue, Volume::Raw(Raw { bytes: capacity })), None);
    }
    if fs_of(trial) == FsType::Simple {
        return (Files::AtOnce(Box::new(Simple::new(capacity))), None);
    }
    let without = &host.options.without_effect;
    let warning = (!without.is_empty()).then(|| Warning {
        code: "mount-option".into(),
        message: without.join("; "),
        advice: "leave it out".into(),
    });
    (mounted(trial, queue, volume(trial, capacity)), warning)
}

/// The device itself as a file, through the page cache.
pub(crate) fn device_file(trial: &Trial, capacity: Bytes, queue: &Stack) -> Files {
    mounted(trial, queue, Volume::Raw(Raw { bytes: capacity }))
}

/// The file system of a trial on a device of so many bytes.
pub(crate) fn volume(trial: &Trial, capacity: Bytes) -> Volume {
    let blocks = trial.host.size.unwrap_or(capacity).min(capacity) / PAGE;
    let (host, kernel) = (&trial.host, trial.kernel.kernel_version());
    let tick = tick(trial);
    let wheel = kernel >= WHEEL;
    let options = &host.options;
    let atime = match options.atime {
        AccessTime::Never => Atime::Never,
        // The rule came with 2.6.30; before it there was one choice less.
        AccessTime::Relative if kernel >= KernelVersion(2, 6, 20) => Atime::Relative,
        AccessTime::Relative | AccessTime::Strict => Atime::Strict,
    };
    let ageing = host.fill.map(|f| Ageing { percent: f.percent, seed: f.seed });
    let fs = fs_of(trial);
    if fs == FsType::Xfs {
        let worker = WORKER.saturating_sub(host.mounted_since);
        let options = xfs::Options {
            barrier: options.barrier.unwrap_or(true),
            tick,
            wheel,
            worker: expires(0, worker, if wheel { tick } else { 0 }),
            log_buffers: options.log_buffers as usize,
            log_buffer: options.log_buffer / 512,
            log_flags: log_flags(kernel, true),
            flushes_each: kernel < FEW_LOG_FLUSHES,
            atime,
            shares: kernel >= SHARED_BLOCKS,
        };
        return Volume::Xfs(Xfs::new(blocks, 0, options, ageing));
    }
    let ext3 = fs == FsType::Ext3;
    let jbd = ext3 && kernel < WITHOUT_EXT3;
    let options = ext4::Options {
        // ext3 has them by default since 3.1.
        barrier: options.barrier.unwrap_or(!jbd || kernel >= KernelVersion(3, 1, 0)),
        commit: options.commit,
        data: match options.data {
            DataMode::Ordered => Data::Ordered,
            DataMode::Writeback => Data::Writeback,
            DataMode::Journal => Data::Journal,
        },
        delalloc: options.delalloc && !ext3 && options.data != DataMode::Journal,
        da_alloc: options.da_alloc,
        // The kernel turns dioread_nolock off with data=journal.
        unwritten: options.unwritten.unwrap_or(kernel >= KernelVersion(5, 6, 0))
            && options.data != DataMode::Journal,
        data_home: kernel >= KernelVersion(6, 4, 0),
        async_commit: options.async_commit,
        discard: options.discard && trial.device.discard,
        atime,
        driver: if jbd { Driver::Jbd } else { Driver::Jbd2 },
        log_flags: log_flags(kernel, false),
        by_lists: host.made_at_once
            && !trial.device.rotational
            && kernel >= KernelVersion(5, 13, 0),
        parts: if kernel < KernelVersion(6, 7, 0) { 4 } else { 3 },
        tick,
        wheel,
    };
    match ext3 {
        true => {
            let format = if kernel < KernelVersion(2, 6, 28) { BY_1_39 } else { BY_1_47 };
            Volume::Ext3(Ext3::new(blocks, 0, format, options, ageing))
        }
        false => Volume::Ext4(Ext4::new(blocks, 0, usize::from(trial.cpus), options, ageing)),
    }
}

/// Bytes that files of users can have on a trial's file system when it is fresh: what journal and tables take is not
/// theirs, nor is what is kept back for root (ext4: a twentieth), or for itself.
#[must_use]
pub fn room_for_users(trial: &Trial) -> Bytes {
    let capacity = trial.device.capacity().min(trial.host.size.unwrap_or(Bytes::MAX));
    // The model knows no smaller ones.
    let kernel = trial.kernel.kernel_version();
    if fs_of(trial) == FsType::Simple || trial.host.misfit(capacity, kernel).is_some() {
        return capacity;
    }
    let blocks = capacity / PAGE;
    let kept = match fs_of(trial) {
        FsType::Xfs => 0,
        FsType::Ext3 => blocks / 20,
        // What it needs itself when extents must be split.
        _ => blocks / 20 + (blocks / 50).min(4096),
    };
    volume(trial, trial.device.capacity()).free().saturating_sub(kept) * PAGE
}

/// The file system of a trial.
fn fs_of(trial: &Trial) -> FsType {
    trial.host.filesystem_of(trial.kernel.kernel_version())
}

/// The kernel mounts ext3 by its ext4 since this one.
const WITHOUT_EXT3: KernelVersion = KernelVersion(4, 3, 0);

/// Since this one blocks can be shared without a warning that this is an experiment.
const SHARED_BLOCKS: KernelVersion = KernelVersion(4, 16, 0);
/// Since this one only the first and the last write of a record of XFS's log flush. The year is known, the version is not.
const FEW_LOG_FLUSHES: KernelVersion = KernelVersion(5, 14, 0);

/// Flags of the journal's writes. In 2.6.18 they are like all others; then somebody waits for them, and the disk need not
/// idle for more; 6.4 says that they are metadata.
fn log_flags(kernel: KernelVersion, xfs: bool) -> Flags {
    match kernel {
        k if k < WRITERS_SLEEP => Flags::NONE,
        _ if xfs && kernel < FEW_LOG_FLUSHES => Flags::SYNC.with(Flags::META),
        k if !xfs && k < KernelVersion(6, 4, 0) => Flags::SYNC,
        _ => Flags::SYNC.with(Flags::META).with(Flags::IDLE),
    }
}

/// A tick of the kernel's timer in nanoseconds.
fn tick(trial: &Trial) -> Nanos {
    1_000_000_000 / u64::from(trial.kernel.hz)
}

fn mounted(trial: &Trial, queue: &Stack, volume: Volume) -> Files {
    let io_pages = u64::from(queue.limits().max_sectors) * 512 / PAGE;
    Files::Mounted(Mount::new(Mounted {
        volume,
        memory: settings(trial, &trial.host, io_pages),
        intervals: intervals(trial),
        read_ahead: read_ahead(trial),
    }))
}

fn settings(trial: &Trial, host: &HostSpec, io_pages: u64) -> Settings {
    let s = &host.sysctls;
    let kernel = trial.kernel.kernel_version();
    Settings {
        pages: free_at_start(host.memory),
        reserve: Watermarks::of(host.memory).high,
        // A page of an ext4 file has a buffer head: 39 share a page.
        notes: if fs_of(trial) == FsType::Xfs { 0 } else { 39 },
        era: era(kernel),
        limits: DirtyLimits {
            background_percent: s.dirty_background_ratio.unwrap_or(10),
            dirty_percent: s.dirty_ratio.unwrap_or(if kernel < RATIO_OF_20 { 40 } else { 20 }),
            background_bytes: s.dirty_background_bytes.unwrap_or(0),
            dirty_bytes: s.dirty_bytes.unwrap_or(0),
        },
        hz: u64::from(trial.kernel.hz),
        wheel: kernel >= WHEEL,
        cpus: u64::from(trial.cpus),
        io_pages,
        fua: takes_fua(trial),
        discard: trial.device.discard,
        direct_sync: trial.kernel.direct_sync(),
        writers_write: kernel < WRITERS_SLEEP,
        group_writeback: kernel >= KernelVersion(4, 2, 0),
        idle_share: kernel >= SINCE_7_1,
        bio_pages: bio_pages(kernel, fs_of(trial)),
        plugs_files: fs_of(trial) != FsType::Xfs || kernel < IOMAP,
        range_writes_sync: RANGE_WRITES_SYNC.contains(&kernel),
        page_ns: trial.kernel.cpu.copy_ns + trial.kernel.cpu.page_ns,
    }
}

/// XFS leaves the making of bios to iomap, which has no plug (seen in 6.12, `sqlite_wal`).
const IOMAP: KernelVersion = KernelVersion(5, 5, 0);

/// Linux 5.2 says that `sync_file_range` had written as `fsync` does since 2.6.29, and no longer does.
const RANGE_WRITES_SYNC: std::ops::Range<KernelVersion> =
    KernelVersion(2, 6, 29)..KernelVersion(5, 2, 0);

/// Writes past a cache need one.
fn takes_fua(trial: &Trial) -> bool {
    let set =
        |name: &str| trial.settings.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v != 0);
    let queue = &trial.device;
    set("write_cache").unwrap_or(queue.write_cache) && set("fua").unwrap_or(queue.fua)
}

fn intervals(trial: &Trial) -> Intervals {
    let host = &trial.host;
    let wheel = trial.kernel.kernel_version() >= WHEEL;
    let ns = |centisecs: Option<u64>, default: u64| centisecs.unwrap_or(default) * 10_000_000;
    Intervals {
        wake: ns(host.sysctls.dirty_writeback_centisecs, 500),
        expire: ns(host.sysctls.dirty_expire_centisecs, 3000),
        tick: if wheel { tick(trial) } else { 0 },
    }
}
