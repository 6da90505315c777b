//! A host with a disk of constant service time.

use std::ops::ControlFlow;

use iosched_block::{CpuModel, DiskId, KernelProfile, Queue, QueueConfig, SchedulerChoice};
use iosched_devices::models::Fixed;
use iosched_devices::params::FixedParams;
use iosched_host::HostError;
use iosched_host::cpu::Costs;
use iosched_host::fs::Simple;
use iosched_host::programs::Programs;
use iosched_schedulers::registry;
use iosched_syscalls::{Birth, Done, Program, Script, Sys};
use iosched_types::units::MS;

/// A disk that serves `depth` commands at once in 1 ms each, flushes in 2 ms.
pub(crate) fn host(scheduler: &str, depth: u32, bytes: u64, cpu: bool) -> Programs {
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
    Programs::new(queue, Box::new(Simple::new(bytes)), Costs::new(&cpu_profile, scheduler))
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
