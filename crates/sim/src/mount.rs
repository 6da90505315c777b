//! A trial's file system and memory.

use iosched_block::Queue;
use iosched_experiment::{FsType, HostSpec, Trial, Warning};
use iosched_host::fs::{Files, Mount, Mounted, Simple};
use iosched_schedulers::KernelVersion;
use iosched_types::{Bytes, Nanos};
use iosched_vfs::cache::PAGE;
use iosched_vfs::cache::readahead::Era;
use iosched_vfs::cache::throttle::DirtyLimits;
use iosched_vfs::cache::writeback::Intervals;
use iosched_vfs::fs::ext4::{self, Ext4};
use iosched_vfs::fs::raw::Raw;
use iosched_vfs::fs::volume::Volume;
use iosched_vfs::fs::xfs::{self, WORKER, Xfs};
use iosched_vfs::kernel::memory::Settings;
use iosched_vfs::kernel::reclaim::{Watermarks, free_at_start};
use iosched_vfs::kernel::timer::expires;
use iosched_workloads::fio::on_files::on_device;

/// Writers only sleep, and read-ahead has one window a file, since these.
const WRITERS_SLEEP: KernelVersion = KernelVersion(3, 2, 0);

/// Timers wait in a wheel since this one.
const WHEEL: KernelVersion = KernelVersion(4, 8, 0);

/// The rules of read-ahead of a kernel.
fn era(kernel: KernelVersion) -> Era {
    match kernel {
        k if k < KernelVersion(3, 14, 0) => Era::OnDemand,
        k if k < KernelVersion(4, 19, 0) => Era::History,
        k if k < KernelVersion(6, 11, 0) => Era::Capped,
        _ => Era::Split,
    }
}

/// `read_ahead_kb` of the device in pages.
fn read_ahead(trial: &Trial) -> u64 {
    let set = trial.settings.iter().find(|(n, _)| n == "read_ahead_kb").map(|(_, v)| *v as u64);
    set.unwrap_or(u64::from(trial.kernel.read_ahead_kb)) * 1024 / PAGE
}

/// The files of a trial on a device of so many bytes, and what the user should know of them.
pub(crate) fn files(trial: &Trial, capacity: Bytes, queue: &Queue) -> (Files, Option<Warning>) {
    let host = &trial.host;
    let kernel = trial.kernel.kernel_version();
    let old = kernel < WRITERS_SLEEP;
    if host.filesystem == FsType::Simple || old {
        let warning = (old && host.filesystem != FsType::Simple).then(|| Warning {
            code: "file-system".into(),
            message: format!(
                "{}: the page cache of kernels before 3.2 is not simulated; files have neither \
                 journal, read-ahead nor write-back",
                trial.kernel.version
            ),
            advice: "name --filesystem simple to compare other kernels on the same ground".into(),
        });
        return (Files::AtOnce(Box::new(Simple::new(capacity))), warning);
    }
    if trial.jobs.jobs.iter().any(on_device) {
        return (mounted(trial, queue, Volume::Raw(Raw { bytes: capacity })), None);
    }
    (mounted(trial, queue, volume(trial, capacity)), None)
}

/// The device itself as a file, through the page cache.
pub(crate) fn device_file(trial: &Trial, capacity: Bytes, queue: &Queue) -> Files {
    mounted(trial, queue, Volume::Raw(Raw { bytes: capacity }))
}

/// The file system of a trial on a device of so many bytes.
pub(crate) fn volume(trial: &Trial, capacity: Bytes) -> Volume {
    let blocks = trial.host.size.unwrap_or(capacity).min(capacity) / PAGE;
    let (host, kernel) = (&trial.host, trial.kernel.kernel_version());
    let tick = tick(trial);
    let wheel = kernel >= WHEEL;
    match host.filesystem {
        FsType::Xfs => {
            let worker = WORKER.saturating_sub(host.mounted_since);
            let options = xfs::Options {
                barrier: host.options.barrier,
                tick,
                wheel,
                worker: expires(0, worker, if wheel { tick } else { 0 }),
            };
            Volume::Xfs(Xfs::new(blocks, 0, options))
        }
        FsType::Ext4 | FsType::Simple => {
            let options = ext4::Options {
                barrier: host.options.barrier,
                commit: host.options.commit,
                parts: if kernel < KernelVersion(6, 7, 0) { 4 } else { 3 },
                tick,
                wheel,
            };
            Volume::Ext4(Ext4::new(blocks, 0, usize::from(trial.cpus), options))
        }
    }
}

/// A tick of the kernel's timer in nanoseconds.
fn tick(trial: &Trial) -> Nanos {
    1_000_000_000 / u64::from(trial.kernel.hz)
}

fn mounted(trial: &Trial, queue: &Queue, volume: Volume) -> Files {
    let io_pages = u64::from(queue.limits().max_sectors) * 512 / PAGE;
    Files::Mounted(Mount::new(Mounted {
        volume,
        memory: settings(trial, &trial.host, io_pages),
        intervals: intervals(trial),
        read_ahead: read_ahead(trial),
        spread: trial.host.spread.clone(),
    }))
}

fn settings(trial: &Trial, host: &HostSpec, io_pages: u64) -> Settings {
    let s = &host.sysctls;
    Settings {
        pages: free_at_start(host.memory),
        reserve: Watermarks::of(host.memory).high,
        // A page of an ext4 file has a buffer head: 39 share a page.
        notes: if host.filesystem == FsType::Xfs { 0 } else { 39 },
        era: era(trial.kernel.kernel_version()),
        limits: DirtyLimits {
            background_percent: s.dirty_background_ratio.unwrap_or(10),
            dirty_percent: s.dirty_ratio.unwrap_or(20),
            background_bytes: s.dirty_background_bytes.unwrap_or(0),
            dirty_bytes: s.dirty_bytes.unwrap_or(0),
        },
        hz: u64::from(trial.kernel.hz),
        cpus: u64::from(trial.cpus),
        io_pages,
        fua: takes_fua(trial),
    }
}

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
