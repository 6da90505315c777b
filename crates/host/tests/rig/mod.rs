//! A host with a disk of constant service time, and what is done on it.
#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod log;
pub(crate) mod random;

use std::ops::ControlFlow;

use iosched_block::{CpuModel, DiskId, KernelProfile, Queue, QueueConfig, SchedulerChoice};
use iosched_devices::models::Fixed;
use iosched_devices::params::FixedParams;
use iosched_host::HostError;
use iosched_host::cpu::Costs;
use iosched_host::fs::{Files, Mount, Mounted, Simple};
use iosched_host::programs::Programs;
use iosched_schedulers::registry;
use iosched_syscalls::{Birth, Done, Io, OpenFlags, Program, Script, Sys};
use iosched_types::units::{MS, SEC};
use iosched_vfs::cache::writeback::Intervals;
use iosched_vfs::fs::ext4::{Ext4, Options};
use iosched_vfs::fs::volume::Volume;
use iosched_vfs::fs::xfs::{self, Xfs};
use iosched_vfs::kernel::memory::Settings;

/// A disk that serves `depth` commands at once in 1 ms each, flushes in 2 ms.
pub(crate) fn host(scheduler: &str, depth: u32, bytes: u64, cpu: bool) -> Programs {
    host_of(Files::AtOnce(Box::new(Simple::new(bytes))), scheduler, depth, bytes, cpu)
}

/// The same with ext4 above a page cache of so many bytes.
pub(crate) fn mounted(scheduler: &str, depth: u32, bytes: u64, memory: u64, cpu: bool) -> Programs {
    let ext4 = Volume::Ext4(Ext4::new(bytes / 4096, 0, 1, Options::default(), None));
    on_volume(ext4, scheduler, depth, bytes, memory, cpu)
}

/// Each file system of so many bytes.
#[allow(dead_code, reason = "each test binary uses a part of it")]
pub(crate) fn volumes(bytes: u64) -> [Volume; 2] {
    let blocks = bytes / 4096;
    [
        Volume::Ext4(Ext4::new(blocks, 0, 1, Options::default(), None)),
        Volume::Xfs(Xfs::new(blocks, 0, xfs::Options::default(), None)),
    ]
}

/// The same with this file system.
pub(crate) fn on_volume(
    volume: Volume,
    scheduler: &str,
    depth: u32,
    bytes: u64,
    memory: u64,
    cpu: bool,
) -> Programs {
    let memory = Settings { pages: memory / 4096, ..Settings::default() };
    let intervals = Intervals { wake: 5 * SEC, expire: 30 * SEC, tick: 0 };
    let mounted = Mounted { volume, memory, intervals, read_ahead: 32 };
    host_of(Files::Mounted(Mount::new(mounted)), scheduler, depth, bytes, cpu)
}

fn host_of(files: Files, scheduler: &str, depth: u32, bytes: u64, cpu: bool) -> Programs {
    let profile = KernelProfile::find("6.12").expect("a profile");
    let (descriptor, generation) =
        registry::resolve(scheduler, profile.kernel_version()).expect("a scheduler");
    let mut cpu_profile = profile.cpu.clone();
    if !cpu {
        cpu_profile.model = CpuModel::Zero;
    }
    let device = Fixed::new(FixedParams {
        cap: bytes,
        depth: 0,
        flush_ns: 2 * MS,
        lat_ns: MS,
        par: depth.into(),
    });
    let queue = Queue::new(QueueConfig {
        disk: DiskId::default(),
        path: descriptor.path_of(generation),
        profile,
        scheduler: SchedulerChoice { descriptor, generation, tunables: Vec::new() },
        device: Box::new(device),
        queue_depth: depth,
        at_once: 0,
        hw_queues: 1,
        rotational: false,
        write_cache: true,
        fua: false,
        budget: false,
        max_hw_sectors_kb: 1280,
        zone_sectors: 0,
        settings: Vec::new(),
        tasks: Vec::new(),
        cgroups: vec![iosched_schedulers::Cgroup::default()],
        cpus: 2,
        tag_start: 0,
    })
    .expect("a queue");
    Programs::new(queue, files, Costs::new(&cpu_profile, scheduler))
}

/// A program's birth.
pub(crate) fn birth(text: impl AsyncFnOnce(Sys) -> Done + Send + 'static) -> Birth {
    Birth(Box::new(move || Box::new(Script::new(text)) as Box<dyn Program>))
}

/// Runs a text to its end.
pub(crate) fn run(
    host: &mut Programs,
    text: impl AsyncFnOnce(Sys) -> Done + Send + 'static,
) -> Result<(), HostError> {
    host.run(birth(text), &mut |_| ControlFlow::Continue(()))
}

/// For reading and writing; made if it is not there.
pub(crate) fn create() -> OpenFlags {
    OpenFlags::READ | OpenFlags::WRITE | OpenFlags::CREATE
}

/// A task that does what chance says: whatever the answers are, it goes on.
pub(crate) async fn random(sys: Sys, seed: u64, depth: u32) -> Done {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % n
    };
    let mut fds = Vec::new();
    for _ in 0..60 {
        let name = format!("{}{}", ["a", "b", "d/x"][next(3) as usize], next(4));
        let fd = fds.get(next(8) as usize).copied().unwrap_or(iosched_syscalls::Fd(3));
        let (at, len) = (next(1 << 20), next(1 << 17));
        // Errors are answers, too.
        let _ = match next(19) {
            0 | 1 => {
                let flags = if next(4) == 0 { create() | OpenFlags::DIRECT } else { create() };
                sys.open(&name, flags).await.map(|fd| fds.push(fd))
            }
            2 => sys.close(fd).await,
            3..6 => sys.pwrite(fd, at, len).await.map(drop),
            6 => sys.pwrite(fd, at & !511, len & !511).await.map(drop),
            7 => sys.pread(fd, at, len).await.map(drop),
            8 => sys.fsync(fd).await,
            9 => sys.truncate(fd, at).await,
            10 => sys.unlink(&name).await,
            11 => sys.rename(&name, format_args!("c{}", next(3))).await,
            12 => sys.mkdir("d").await,
            13 => sys.fallocate(fd, at, len).await,
            14 if depth < 3 => {
                let seed = next(u64::MAX);
                let child = async move |sys| Box::pin(random(sys, seed, depth + 1)).await;
                if next(2) == 0 { sys.fork(child).await } else { sys.spawn(child).await }.map(drop)
            }
            15 => sys.sleep(next(MS)).await,
            16 => sys.compute(next(MS)).await,
            17 => {
                let io = Io { fd, write: next(2) == 0, at: at & !511, len: 4096, tag: 1 };
                sys.submit(io).await
            }
            18 => sys.reap(next(3) as u32, |_| ()).await.map(drop),
            _ => sys.wait().await.map(drop),
        };
    }
    Ok(())
}
