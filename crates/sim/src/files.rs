//! Trials of fio jobs on files, or on a device through the page cache.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use iosched_block::Issue;
use iosched_experiment::{Record, Status, Trial, Warning};
use iosched_host::HostError;
use iosched_host::cpu::Costs;
use iosched_host::programs::{Identity, Programs, SeenBio};
use iosched_schedulers::TaskInfo;
use iosched_types::{Bytes, Nanos};
use iosched_workloads::fio::layout::{Files, lay_out_beside};
use iosched_workloads::fio::on_files::{OnFiles, ROOM, on_device};

use crate::error::SimError;
use crate::record::Ran;
use crate::run::{Progress, cgroups, expected_end};
use crate::stack::stack;
use crate::{durable, mount, programs, record, replay};

fn layouts(trial: &Trial, capacity: Bytes) -> Result<Vec<Files>, SimError> {
    let existing: BTreeMap<String, Bytes> = trial.host.files.iter().cloned().collect();
    let raw = trial.jobs().jobs.iter().any(on_device);
    lay_out_beside(trial.jobs(), if raw { capacity } else { ROOM }, &existing)
        .map_err(|d| SimError::Layout(Box::new(d)))
}

/// fio's main thread, then the processes of the jobs.
fn identities(trial: &Trial, of_task: &[u32]) -> Vec<Identity> {
    let main = Identity {
        info: TaskInfo { name: "fio".into(), ..TaskInfo::default() },
        ..Identity::default()
    };
    let jobs = trial.jobs().jobs.iter().zip(of_task).map(|(j, group)| Identity {
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
    let (mut host, fio, old, failed, begun) = run(trial, progress, |host| {
        if trial.collect.dispatches {
            host.collect_dispatches();
        }
    })?;
    let points = record::points(host.take_dispatches(), |task| task);
    let seen = trial.tape.map(|keep| {
        let jobs = &trial.jobs().jobs;
        let job = |t: u32| jobs.get(t.checked_sub(1)? as usize).map(|j| (j.thread, j.name.clone()));
        programs::seen(&mut host, (keep, begun), job)
    });
    let cpu =
        |i: usize| host.measured().tasks.get(&(i as u32 + 1)).map(|t| t.cpu).unwrap_or_default();
    let ran = trial.jobs().jobs.iter().zip(fio.take_stats()).zip(fio.errors()).enumerate();
    let ran =
        ran.map(|(i, ((job, stats), error))| Ran { job, stats, cpu: cpu(i), error }).collect();
    let mut record = record::of_jobs(trial, &host.queue, host.tl.now, ran, false);
    record.dispatches = points;
    record.seen = seen;
    record.elapsed = host.measured().elapsed;
    record.threads_cpu = host.measured().threads_cpu;
    record.warnings.extend(old);
    if let Some(why) = failed {
        // The others' figures stay. A disk without their load beside them is no measurement of that load.
        let all = record.failed_jobs().filter(|all| all.contains(';'));
        record.status = Status::Failed(all.unwrap_or_else(|| why.to_string()));
    }
    host.rest(trial.host.watched_after, &mut |_| ControlFlow::Continue(()))?;
    record.provenance.extend(programs::provenance(trial, &host));
    replay::add(trial, &host.beside, &mut record);
    // Who watches the disk after the run sees what it does by itself.
    if record.status == Status::Complete && trial.host.watched_after == 0 {
        let end = expected_end(trial);
        let go_on = &mut |now| progress(Progress { now, end });
        durable::wait(trial, &mut host, &mut record, go_on)?;
    }
    Ok(record)
}

/// The first bios of such a trial, at most so many.
pub(crate) fn bios(trial: &Trial, most: usize) -> Result<Vec<SeenBio>, SimError> {
    let mut go_on = |_| ControlFlow::Continue(());
    let (mut host, _, _, failed, _) = run(trial, &mut go_on, |host| host.collect_bios(most))?;
    failed.map_or(Ok(()), Err)?;
    host.until_all_end(&mut |_| ControlFlow::Continue(()))?;
    Ok(host.take_bios())
}

/// All commands that such a trial sends to the device, those of the preparation too.
pub(crate) fn commands(trial: &Trial) -> Result<Vec<Issue>, SimError> {
    let mut go_on = |_| ControlFlow::Continue(());
    let collect = |host: &mut Programs| host.queue.out_mut().issues = Some(Vec::new());
    let (mut host, _, _, failed, _) = run(trial, &mut go_on, collect)?;
    failed.map_or(Ok(()), Err)?;
    host.until_all_end(&mut |_| ControlFlow::Continue(()))?;
    Ok(host.queue.out_mut().issues.take().unwrap_or_default())
}

/// What has run, a warning, why a job failed, if one did, and when the jobs began.
type Done = (Programs, Arc<OnFiles>, Option<Warning>, Option<SimError>, Nanos);

/// Prepares the files and runs the jobs. `collect` is called before. A job that fails ends alone, as in fio.
fn run(
    trial: &Trial,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    collect: impl FnOnce(&mut Programs),
) -> Result<Done, SimError> {
    let capacity = trial.device.capacity();
    let layouts = layouts(trial, capacity)?;
    let (groups, of_task) = cgroups(trial);
    let queue = stack(trial, &[], &groups)?;
    let (files, old) = mount::files(trial, capacity, &queue);
    let costs = Costs::new(&trial.kernel.cpu, trial.scheduler.descriptor.name);
    let mut host = Programs::new(queue, files, costs);
    host.tl.now = trial.start_at;
    host.identify(identities(trial, &of_task));
    collect(&mut host);
    let end = expected_end(trial);
    let go_on = &mut |now| progress(Progress { now, end });
    let fio = OnFiles::new(
        trial.jobs().clone(),
        layouts,
        trial.host.files.clone(),
        (trial.host.fio_start, trial.start_order.clone()),
        trial.kernel.cpu.clock_ns,
    );
    programs::make_image(trial, &mut host, go_on)?;
    host.prepare(fio.preparation(), go_on).map_err(|e| in_words(trial, e, true))?;
    if !trial.host.files.is_empty() {
        host.mount_anew();
    }
    if !trial.host.files.is_empty() || trial.host.remounted {
        host.mount_cold();
    }
    host.beside = replay::beside(trial, &mut host.queue);
    let begun = host.tl.now;
    if let Some(keep) = trial.tape {
        host.queue.record(keep);
    }
    let ran = host.run(fio.measured(), &mut *go_on);
    let failed = match ran.and_then(|()| host.until_beside_ends(go_on)) {
        Ok(()) => None,
        Err(e @ HostError::Program { .. }) => Some(in_words(trial, e, false)),
        Err(e) => return Err(e.into()),
    };
    Ok((host, fio, old, failed, begun))
}

/// fio's processes by the names of their jobs. The first task is fio itself.
fn in_words(trial: &Trial, error: HostError, preparing: bool) -> SimError {
    let HostError::Program { task, errno, call } = error else { return error.into() };
    let job = (task as usize).checked_sub(1).and_then(|i| trial.jobs().jobs.get(i));
    let who = match job {
        _ if preparing => "making the files of the jobs".into(),
        Some(job) => format!("job {}", job.name),
        None => "fio".into(),
    };
    SimError::Fio { who, errno, call }
}
