//! What a trial submits to: the queue of its disk, or those of the legs of an array.

use iosched_block::{ArrayConfig, Level, Queue, QueueConfig, Stack};
use iosched_devices::{ByTimer, Device, DeviceSpec, Fill, Model, Shifted, StackKind, Writer};
use iosched_experiment::{Trial, path_of};
use iosched_schedulers::{Cgroup, TaskInfo};
use iosched_types::{Nanos, SECTOR};
use iosched_workloads::fio::layout::lay_out;
use iosched_workloads::fio::on_files;

use crate::error::SimError;

/// What the block layer is told of an array.
pub(crate) fn array_of(spec: &DeviceSpec) -> Option<ArrayConfig> {
    let stack = spec.stack.as_ref()?;
    Some(ArrayConfig {
        level: match stack.kind {
            StackKind::Raid1 => Level::Raid1,
            StackKind::Linear => Level::Linear,
        },
        data_offset: stack.data_offset / SECTOR,
        bitmap_chunk: stack.bitmap_chunk / SECTOR,
        optimal_io: stack.optimal_io / SECTOR,
        write_mostly: stack.write_mostly.clone(),
    })
}

/// When a leg is reset. Disks do not turn in step: each is a golden section of a turn behind the one before, so that no
/// two of them are.
pub(crate) fn reset_of(leg: usize, spec: &DeviceSpec) -> Nanos {
    match &spec.model {
        Model::Hdd(p) => leg as Nanos * p.rev_ns * 618 / 1000 % p.rev_ns.max(1),
        _ => 0,
    }
}

/// Who writes where, for a disk that begins with a full cache. Of programs, files, logs and arrays nothing is known.
fn writers(trial: &Trial) -> Vec<Writer> {
    let (set, device) = (trial.jobs(), &trial.device);
    let unknown = trial.work.load().is_some()
        || device.stack.is_some()
        || on_files::needed(set)
        || set.jobs.iter().any(|j| j.replay.is_some());
    if unknown || device.state.write_cache != Fill::Full {
        return Vec::new();
    }
    let Ok(files) = lay_out(set, device.capacity()) else { return Vec::new() };
    let mut out = Vec::new();
    for (job, files) in set.jobs.iter().zip(&files).filter(|(job, _)| job.pattern.write) {
        let (size, sequential) = (job.bs.mean(1), !job.pattern.random);
        out.extend(files.iter().map(|f| Writer { start: f.start, len: f.len, size, sequential }));
    }
    out
}

/// The disk `leg` of a trial.
fn device(trial: &Trial, leg: usize, spec: &DeviceSpec) -> Result<Box<dyn Device>, SimError> {
    let name = spec.name.clone();
    let device =
        spec.build_after(&writers(trial)).map_err(|source| SimError::Device { name, source })?;
    let device = match trial.reset_at + reset_of(leg, spec) {
        0 => device,
        at => Box::new(Shifted::new(device, at)),
    };
    Ok(match trial.timer {
        None => device,
        Some((shortest, look)) => Box::new(ByTimer::new(device, shortest, look)),
    })
}

/// Driver tags: older libata keeps one of the 32 NCQ slots to itself.
fn depth(trial: &Trial, spec: &DeviceSpec) -> u32 {
    let d = spec.queue_depth;
    if spec.budget && d == 32 { d.min(trial.kernel.ncq_depth) } else { d }
}

/// The queue, or the array.
pub(crate) fn stack(
    trial: &Trial,
    tasks: &[TaskInfo],
    cgroups: &[Cgroup],
) -> Result<Stack, SimError> {
    let config = |(leg, spec): (usize, DeviceSpec)| -> Result<QueueConfig, SimError> {
        Ok(QueueConfig {
            disk: iosched_block::DiskId::default(),
            profile: trial.kernel.clone(),
            path: path_of(&trial.scheduler),
            scheduler: trial.scheduler.clone(),
            device: device(trial, leg, &spec)?,
            queue_depth: depth(trial, &spec),
            at_once: spec.at_once,
            hw_queues: spec.hw_queues.min(u32::from(u16::MAX)) as u16,
            rotational: spec.rotational,
            write_cache: spec.write_cache,
            fua: spec.fua,
            budget: spec.budget && trial.kernel.mq.budget_first,
            max_hw_sectors_kb: spec.max_hw_sectors_kb,
            zone_sectors: 0,
            settings: trial.settings.clone(),
            tasks: tasks.to_vec(),
            cgroups: cgroups.to_vec(),
            cpus: trial.cpus,
            tag_start: trial.tag_start,
        })
    };
    let legs = trial.device.legs().into_iter().enumerate().map(config);
    let mut legs = legs.collect::<Result<Vec<_>, _>>()?;
    Ok(match array_of(&trial.device) {
        Some(array) => Stack::array(legs, &array)?,
        None => Queue::new(legs.swap_remove(0))?.into(),
    })
}
