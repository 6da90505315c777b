//! Trials of fio jobs on files, or on a device through the page cache.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use iosched_experiment::{Record, Trial};
use iosched_host::cpu::Costs;
use iosched_host::programs::{Identity, Programs};
use iosched_schedulers::TaskInfo;
use iosched_types::Bytes;
use iosched_workloads::fio::layout::{Files, lay_out_beside};
use iosched_workloads::fio::on_files::{OnFiles, ROOM, on_device};

use crate::error::SimError;
use crate::record::Ran;
use crate::run::{Progress, cgroups, expected_end};
use crate::stack::stack;
use crate::{mount, programs, record};

fn layouts(trial: &Trial, capacity: Bytes) -> Result<Vec<Files>, SimError> {
    let existing: BTreeMap<String, Bytes> = trial.host.files.iter().cloned().collect();
    let raw = trial.jobs.jobs.iter().any(on_device);
    lay_out_beside(&trial.jobs, if raw { capacity } else { ROOM }, &existing)
        .map_err(|d| SimError::Layout(Box::new(d)))
}

/// fio's main thread, then the processes of the jobs.
fn identities(trial: &Trial, of_task: &[u32]) -> Vec<Identity> {
    let main = Identity {
        info: TaskInfo { name: "fio".into(), ..TaskInfo::default() },
        ..Identity::default()
    };
    let jobs = trial.jobs.jobs.iter().zip(of_task).map(|(j, group)| Identity {
        info: TaskInfo {
            pid: j.thread,
            name: j.name.clone(),
            nice: j.nice,
            prio: j.prio,
            cgroup: *group,
        },
        cpus: j.cpus.iter().map(|c| c % trial.cpus.max(1)).collect(),
    });
    std::iter::once(main).chain(jobs).collect()
}

/// Simulates such a trial.
pub(crate) fn simulate(
    trial: &Trial,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Record, SimError> {
    let capacity = trial.device.capacity();
    let layouts = layouts(trial, capacity)?;
    let (groups, of_task) = cgroups(trial);
    let queue = stack(trial, &[], &groups)?;
    let (files, old) = mount::files(trial, capacity, &queue);
    let costs = Costs::new(&trial.kernel.cpu, trial.scheduler.descriptor.name);
    let mut host = Programs::new(queue, files, costs);
    host.tl.now = trial.start_at;
    host.identify(identities(trial, &of_task));
    if trial.collect.dispatches {
        host.collect_dispatches();
    }
    let end = expected_end(trial);
    let go_on = &mut |now| progress(Progress { now, end });
    let fio = OnFiles::new(
        trial.jobs.clone(),
        layouts,
        trial.host.files.clone(),
        trial.host.starts_after,
        trial.kernel.cpu.clock_ns,
    );
    host.prepare(fio.preparation(), go_on)?;
    if !trial.host.files.is_empty() {
        host.mount_anew();
    }
    host.run(fio.measured(), go_on)?;
    let points = record::points(host.take_dispatches(), |task| task);
    let cpu =
        |i: usize| host.measured().tasks.get(&(i as u32 + 1)).map(|t| t.cpu).unwrap_or_default();
    let ran = trial.jobs.jobs.iter().zip(fio.take_stats()).enumerate();
    let ran = ran.map(|(i, (job, stats))| Ran { job, stats, cpu: cpu(i) }).collect();
    let mut record = record::of_jobs(trial, &host.queue, ran, false);
    record.dispatches = points;
    record.elapsed = host.measured().elapsed;
    record.warnings.extend(old);
    record.provenance.extend(programs::provenance(trial, &host));
    Ok(record)
}
