//! From a trial to a record.

use std::ops::ControlFlow;

use std::collections::BTreeMap;
use std::rc::Rc;

use iosched_experiment::{Record, Trial, Work, path_of};
use iosched_schedulers::{Cgroup, TaskInfo};
use iosched_types::Nanos;
use iosched_workloads::fio::layout::lay_out;
use iosched_workloads::fio::on_files;
use iosched_workloads::fio::process::{Flow, FlowGroup, Job};

use crate::error::SimError;
use crate::stack::stack;
use crate::{files, programs, record, replay};
use iosched_host::cpu::Costs;
use iosched_host::{Looks, Machine};

/// How far a simulation is, for progress bars: virtual time and, where known, its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time.
    pub now: Nanos,
    /// Expected end, 0 when the jobs end by size rather than by time.
    pub end: Nanos,
}

/// Simulates a trial.
///
/// # Errors
/// See [`SimError`]; the trial's parts were checked when it was planned, so an error here is either a
/// device file of the user's own or a defect.
pub fn simulate(trial: &Trial) -> Result<Record, SimError> {
    simulate_with(trial, &mut |_| ControlFlow::Continue(()))
}

/// Simulates a trial, reporting progress now and then; `progress` says whether to go on.
///
/// # Errors
/// See [`simulate`].
pub fn simulate_with(
    trial: &Trial,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Record, SimError> {
    let mut record = any(trial, progress)?;
    record.warnings.extend(trial.remarks.iter().cloned());
    Ok(record)
}

fn any(
    trial: &Trial,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Record, SimError> {
    match &trial.work {
        Work::Program(program) => programs::simulate(trial, program, progress),
        Work::Calls(log) => programs::simulate(trial, log, progress),
        Work::Fio(fio) if on_files::needed(&fio.set) => files::simulate(trial, progress),
        Work::Fio(_) => direct(trial, progress),
        Work::Trace(trace) => replay::simulate(trial, trace, progress),
        Work::Startup(startup) => Err(SimError::Startup(startup.title())),
    }
}

/// Simulates fio jobs that need neither memory nor file system of the host.
fn direct(
    trial: &Trial,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Record, SimError> {
    let mut machine = build(trial)?;
    if !trial.device.discard {
        machine.refuse_discards();
    }
    if trial.collect.dispatches {
        machine.collect_dispatches();
    }
    if let Some(keep) = trial.tape {
        machine.queue.record(keep);
    }
    let end = expected_end(trial);
    if trial.collect.series {
        machine.collect_series((end / 400).clamp(1_000_000, 1_000_000_000));
    }
    machine.beside = replay::beside(trial, &mut machine.queue);
    machine.run(&mut |now| progress(Progress { now, end }))?;
    Ok(record::of(trial, machine))
}

pub(crate) fn expected_end(trial: &Trial) -> Nanos {
    let ends = trial.jobs().jobs.iter().map(|j| {
        j.runtime.map_or(0, |r| {
            r.saturating_add(j.ramp_time.max(j.warm_up)).saturating_add(j.wait.delay)
        })
    });
    ends.max().unwrap_or(0)
}

/// Control groups of a trial: the root first, then each named path with its parents.
pub(crate) fn cgroups(trial: &Trial) -> (Vec<Cgroup>, Vec<u32>) {
    let mut groups = vec![Cgroup::default()];
    let mut of_task = Vec::new();
    for job in &trial.jobs().jobs {
        let Some((path, weight)) = &job.cgroup else {
            of_task.push(0);
            continue;
        };
        let id = add_group(&mut groups, path);
        let from_file =
            trial.cgroups.iter().find(|(p, _)| p.trim_matches('/') == path.trim_matches('/'));
        if let Some(w) = weight.or(from_file.map(|(_, w)| *w)) {
            groups[id as usize].weight = Some(w);
        }
        of_task.push(id);
    }
    for (path, weight) in &trial.cgroups {
        if let Some(g) = groups.iter_mut().find(|g| g.name == path.trim_matches('/')) {
            g.weight = Some(*weight);
        }
    }
    (groups, of_task)
}

fn add_group(groups: &mut Vec<Cgroup>, path: &str) -> u32 {
    let mut parent = 0u32;
    let mut name = String::new();
    for part in path.split('/').filter(|p| !p.is_empty()) {
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(part);
        parent = match groups.iter().position(|g| g.name == name) {
            Some(i) => i as u32,
            None => {
                groups.push(Cgroup { name: name.clone(), parent: Some(parent), weight: None });
                (groups.len() - 1) as u32
            }
        };
    }
    parent
}

/// Wires a trial's parts.
pub(crate) fn build(trial: &Trial) -> Result<Machine, SimError> {
    let files = lay_out(trial.jobs(), trial.device.capacity())
        .map_err(|d| SimError::Layout(Box::new(d)))?;
    let (groups, of_task) = cgroups(trial);
    let tasks: Vec<TaskInfo> = trial
        .jobs()
        .jobs
        .iter()
        .zip(&of_task)
        .map(|(j, g)| TaskInfo {
            pid: j.thread,
            name: j.name.clone(),
            nice: j.nice,
            prio: j.prio,
            cgroup: *g,
        })
        .collect();
    let queue = stack(trial, &tasks, &groups)?;
    let jobs = trial.jobs().jobs.iter().zip(&files).map(|(j, f)| Job::new(j, f));
    let mut machine = Machine::new(queue, jobs, &of_task);
    join_flows(machine.tasks.iter_mut().map(|t| &mut t.job));
    machine.charge_cores(Costs::new(&trial.kernel.cpu, trial.scheduler.descriptor.name));
    let path = path_of(&trial.scheduler);
    machine.charge_looks(Looks::new(&trial.kernel, path, trial.first_run_late));
    machine.start_at(trial.start_at);
    machine.start_in_order(&trial.start_order);
    machine.completed_once = !trial.first_run_late;
    Ok(machine)
}

/// Jobs with the same `flow_id` share a flow.
fn join_flows<'a>(processes: impl Iterator<Item = &'a mut Job>) {
    let mut groups: BTreeMap<u32, Rc<FlowGroup>> = BTreeMap::new();
    let mut later = false;
    for (i, p) in processes.enumerate() {
        later |= i > 0 && p.spec().wait.stonewall;
        let (id, weight) = (p.spec().flow_id, p.spec().flow);
        if weight != 0 {
            p.join_flow(Flow::new(groups.entry(id).or_default(), weight, later));
        }
    }
}
