//! Trials whose load is a program or a log of system calls.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use iosched_block::Keep;
use iosched_experiment::record::Seen;
use iosched_experiment::{
    ABSENT, BackendKind, DirStats, DispatchPoint, EVENT, JobRecord, Load, Mark, MarkKind, Metric,
    ONLY_REAL, OPERATION, ProgramWork, Record, SCHEMA, Series, Started, Status, TASK_CALLS, Trial,
    Warning,
};
use iosched_host::cpu::Costs;
use iosched_host::programs::{Amounts, Measured, Programs, SeenBio, TaskStats, Who};
use iosched_syscalls::recorder::{Recorder, Recording};
use iosched_syscalls::{Birth, Part};
use iosched_types::{Bytes, LatencyHistogram, Nanos, TaskId};
use iosched_workloads::fio::on_files;
use iosched_workloads::programs::{Descriptor, Figure, Periodic};
use iosched_workloads::strace::Replay;

use crate::error::SimError;
use crate::run::Progress;
use crate::stack::stack;
use crate::{ignored, mount, one_tag, record, replay, taped};
use iosched_vfs::fs::FileSystem as _;

/// A machine with everything done that comes before the measured part, and that part.
fn ready(
    trial: &Trial,
    load: &dyn Load,
    go_on: &mut dyn FnMut(Nanos) -> ControlFlow<()>,
) -> Result<(Programs, Birth), SimError> {
    let (mut host, started, _) = machine(trial, load)?;
    make_image(trial, &mut host, go_on)?;
    if let Some(prepare) = started.prepare {
        host.prepare(prepare, go_on)?;
    }
    if trial.host.remounted {
        host.mount_cold();
    }
    Ok((host, started.run))
}

/// The first bios of a trial with such a load, at most so many.
pub(crate) fn bios(trial: &Trial, load: &dyn Load, most: usize) -> Result<Vec<SeenBio>, SimError> {
    let go_on = &mut |_| ControlFlow::Continue(());
    let (mut host, run) = ready(trial, load, go_on)?;
    host.collect_bios(most);
    host.run(run, go_on)?;
    host.until_all_end(go_on)?;
    Ok(host.take_bios())
}

/// The system calls of a trial whose load makes some; `None` for fio jobs and starts of commands, which are not
/// programs.
///
/// # Errors
/// What [`crate::simulate`] has.
pub fn calls(
    trial: &Trial,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Option<Recording>, SimError> {
    let Some(load) = trial.work.load() else { return Ok(None) };
    let go_on = &mut |now| progress(Progress { now, end: 0 });
    let (mut host, run) = ready(trial, load, go_on)?;
    let recorder = Recorder::default();
    host.run(recorder.observe(run), go_on)?;
    Ok(Some(recorder.take()))
}

/// Makes the files that are there before the load, on a machine that had time to read all bitmaps.
pub(crate) fn make_image(
    trial: &Trial,
    host: &mut Programs,
    go_on: &mut dyn FnMut(Nanos) -> ControlFlow<()>,
) -> Result<(), SimError> {
    if !trial.host.files.is_empty() {
        if let Some(mount) = host.mount() {
            mount.volume().rested();
        }
        host.prepare(on_files::image(&trial.host.files), go_on)?;
    }
    Ok(())
}

/// The machine of a trial, and its load.
fn machine(
    trial: &Trial,
    load: &dyn Load,
) -> Result<(Programs, Started, Option<Warning>), SimError> {
    let queue = stack(trial, &[], &[iosched_schedulers::Cgroup::default()])?;
    let (files, old) = mount::files(trial, trial.device.capacity(), &queue);
    let costs = Costs::new(&trial.kernel.cpu, trial.scheduler.descriptor.name);
    let mut host = Programs::new(queue, files, costs);
    host.tl.now = trial.start_at;
    let started = load.start();
    if started.replay.is_some() {
        host.notes_are_free();
    }
    Ok((host, started, old))
}

/// Simulates a trial with such a load.
pub(crate) fn simulate(
    trial: &Trial,
    load: &dyn Load,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Record, SimError> {
    let (mut host, started, old) = machine(trial, load)?;
    if trial.collect.dispatches {
        host.collect_dispatches();
    }
    let go_on = &mut |now| progress(Progress { now, end: 0 });
    make_image(trial, &mut host, go_on)?;
    if let Some(prepare) = started.prepare {
        host.prepare(prepare, go_on)?;
    }
    if trial.host.remounted {
        host.mount_cold();
    }
    host.beside = replay::beside(trial, &mut host.queue);
    let begun = host.tl.now;
    if let Some(keep) = trial.tape {
        host.queue.record(keep);
    }
    host.run(started.run, go_on)?;
    host.until_beside_ends(go_on)?;
    let dispatches = host.take_dispatches();
    let point = |i: iosched_block::Issue| DispatchPoint {
        t: i.t,
        sector: i.sector,
        sectors: i.sectors,
        op: i.op,
        pid: i.task,
    };
    let mut record = Record {
        schema: SCHEMA,
        trial: trial.id.clone(),
        backend: BackendKind::Sim,
        status: Status::Complete,
        device: record::device(&host.queue, host.tl.now),
        scheduler: record::scheduler(&host.queue),
        dispatches: dispatches.into_iter().map(point).collect(),
        provenance: record::provenance(trial),
        ..Record::default()
    };
    record.warnings.extend(old);
    record.warnings.extend(ignored::settings(trial));
    record.warnings.extend(one_tag::warning(&trial.id, &record.scheduler));
    into_record(&mut record, load, started.replay.as_deref(), host.measured());
    let name = |t| record.jobs.iter().find(|j| j.pid == t).map(|j| (t, j.name.clone()));
    record.seen = trial.tape.map(|keep| seen(&mut host, (keep, begun), name));
    replay::add(trial, &host.beside, &mut record);
    host.rest(trial.host.watched_after, go_on)?;
    record.provenance.extend(provenance(trial, &host));
    if !trial.collect.series {
        record.series.clear();
    }
    Ok(record)
}

/// What was recorded of a host. `task` has pid and name of a task.
pub(crate) fn seen(
    host: &mut Programs,
    keep: (Keep, Nanos),
    task: impl Fn(u32) -> Option<(u32, String)>,
) -> Box<Seen> {
    let whose: Vec<Who> = (0..).map_while(|c| host.who_has(c)).collect();
    let who = |context: TaskId| match whose.get(context as usize).copied() {
        Some(Who::Task(t)) => task(t).unwrap_or_else(|| (t, format!("task {t}"))),
        // Numbers that no task has.
        Some(Who::Thread(n)) => (u32::MAX - n, THREADS[n as usize % THREADS.len()].into()),
        None => (u32::MAX, "other".into()),
    };
    taped::seen((&mut host.queue, &host.tl), keep, who)
}

/// The threads of the kernel that submit I/O.
const THREADS: [&str; 6] = ["flusher", "journal", "evict", "kworker", "end-io", "end-log"];

/// Puts what a run of programs came to into a record: its tasks as jobs, its metrics, what is to be known of the load.
/// The same for every backend.
pub fn into_record(record: &mut Record, load: &dyn Load, replay: Option<&Replay>, m: &Measured) {
    record.jobs = m.tasks.iter().map(|(t, s)| job(*t, s, m)).collect();
    let own = load.program().map_or_else(Vec::new, |p| own_figures(p.program.figures, m));
    // What a program says of itself is what it is judged by: how long a benchmark of 60 s took says nothing.
    if own.is_empty() {
        record.metrics.push(metric("elapsed".into(), m.elapsed as f64 / 1e9, "s", false));
    }
    record.metrics.extend(own);
    record.metrics.extend(metrics(m));
    record.elapsed = m.elapsed;
    record.threads_cpu = m.threads_cpu;
    record.marks = m.marks.iter().map(mark).collect();
    record.series.extend(curves(m));
    remark(record, load, load.remarks(replay));
}

/// What is to be known of a load beside its figures: remarks, work that never came, and the program with its parameters.
fn remark(record: &mut Record, load: &dyn Load, remarks: Vec<(&'static str, String, String)>) {
    let workload = &record.trial.workload;
    let warning = |(code, message, advice): (&str, String, String)| Warning {
        code: code.into(),
        message: format!("{workload}: {message}"),
        advice,
    };
    let remarks = remarks.into_iter().chain(never_came(load, &record.metrics));
    let warnings: Vec<Warning> = remarks.map(warning).collect();
    record.warnings.extend(warnings);
    if let Some(ProgramWork { program, params, .. }) = load.program() {
        record.provenance.insert("program".into(), program.name.into());
        let values = params.iter().map(|(n, v)| (format!("param.{n}"), v));
        record.provenance.extend(values);
        absent(record, program);
    }
}

/// Writes down what the original prints as n/a: figures that no Linux has, and those of its tests that this machine has not.
fn absent(record: &mut Record, program: &Descriptor) {
    if program.absent.is_empty() {
        return;
    }
    let lacks = |f: &&Figure| {
        f.higher_is_better.is_some() && !record.metrics.iter().any(|m| m.name == f.name)
    };
    let names: Vec<&str> = program.absent.iter().map(|(name, _)| *name).collect();
    let here = program.figures.iter().filter(lacks).map(|f| f.name);
    let all: Vec<&str> = names.into_iter().chain(here).collect();
    record.provenance.insert(ABSENT.into(), all.join("; "));
}

/// Work that the program does now and then and that did not fall into the run. Its figures are without that load.
fn never_came(load: &dyn Load, metrics: &[Metric]) -> Vec<(&'static str, String, String)> {
    let Some(ProgramWork { program, .. }) = load.program() else { return Vec::new() };
    let none = |p: &&Periodic| metrics.iter().any(|m| m.name == p.figure && m.value <= 0.0);
    let words = |p: &Periodic| ("periodic-work", p.none.to_string(), p.advice.to_string());
    program.periodic.iter().filter(none).map(words).collect()
}

/// Fills a live record with what a real program said of itself, by the names of the workload's own figures.
pub fn real_program(
    record: &mut Record,
    load: &ProgramWork,
    seconds: f64,
    figures: &[(&'static str, f64)],
) {
    record.elapsed = (seconds * 1e9) as Nanos;
    if figures.is_empty() {
        record.metrics.push(metric("elapsed".into(), seconds, "s", false));
    }
    for f in load.program.figures {
        let found = figures.iter().filter(|(n, _)| *n == f.name);
        record
            .metrics
            .extend(found.map(|(_, v)| metric(f.name.into(), *v, f.unit, f.higher_is_better)));
    }
    // It heeds what the text cannot.
    let mut remarks = load.remarks(None);
    remarks.retain(|r| r.0 != ONLY_REAL);
    remark(record, load, remarks);
}

/// What the machine above the disk was, and what its file system did.
pub(crate) fn provenance(trial: &Trial, host: &Programs) -> Vec<(String, String)> {
    let Some(mount) = host.mount() else {
        return vec![("filesystem".into(), "simple".into())];
    };
    vec![
        ("filesystem".into(), mount.volume().name().into()),
        ("memory".into(), trial.host.memory.to_string()),
        ("journal_commits".into(), host.commits().to_string()),
    ]
}

fn side(d: &(u64, Bytes, LatencyHistogram), runtime: Nanos) -> DirStats {
    DirStats {
        ios: d.0,
        bytes: d.1,
        runtime: if d.0 > 0 { runtime } else { 0 },
        clat: d.2.clone(),
        // A call is submission and completion in one.
        lat: record::moments_of(&d.2),
        lat_hist: d.2.clone(),
        ..DirStats::default()
    }
}

/// What a task is called: `client 3`, the third of its role, or `checkpointer`, the only one.
fn called(task: u32, s: &TaskStats, m: &Measured) -> String {
    let mut same = m.tasks.iter().filter(|(_, o)| o.role == s.role);
    match (s.role, same.clone().count()) {
        ("", _) if task == 0 => "main".into(),
        ("", _) => format!("task {task}"),
        (role, 1) => role.into(),
        (role, _) => {
            let before = same.position(|(t, _)| *t == task).unwrap_or(0);
            format!("{role} {}", before + 1)
        }
    }
}

fn job(task: u32, s: &TaskStats, m: &Measured) -> JobRecord {
    let runtime = s.ended - s.began;
    let rest = m.count.saturating_sub(m.tasks.len() as u64);
    let last = m.tasks.last_key_value().is_some_and(|(t, _)| *t == task);
    let name = match rest {
        n if n > 0 && last => format!("{} other tasks", n + 1),
        _ => called(task, s, m),
    };
    JobRecord {
        name,
        pid: task,
        group: task,
        options: BTreeMap::from([(TASK_CALLS.to_string(), s.calls.to_string())]),
        read: side(&s.read, runtime),
        write: side(&s.write, runtime),
        sync: side(&s.sync, runtime),
        runtime,
        began: s.began,
        ended: s.ended,
        cpu: s.cpu,
        ..JobRecord::default()
    }
}

fn metric(name: String, value: f64, unit: &str, better: impl Into<Option<bool>>) -> Metric {
    let higher_is_better = better.into();
    Metric { name, value, unit: unit.into(), higher_is_better, censored: false }
}

fn mark(m: &iosched_host::programs::Mark) -> Mark {
    let kind = match m.part {
        Part::Phase | Part::Event => MarkKind::Phase,
        Part::Beside => MarkKind::Beside,
        Part::Try => MarkKind::Try,
        Part::GivenUp => MarkKind::GivenUp,
    };
    Mark { name: m.what.into(), kind, began: m.began, ended: m.ended }
}

/// Operations, what they move, and events over time.
fn curves(m: &Measured) -> Vec<Series> {
    let curve = |name: String, unit: &str, t: &Amounts| {
        let (step, values) = t.rates(m.elapsed);
        Series { name, unit: unit.into(), step, values }
    };
    let mut out = Vec::new();
    for (what, op) in &m.operations {
        out.push(curve(format!("{OPERATION}{what}"), "1/s", &op.ended));
        if op.bytes > 0 {
            out.push(curve(format!("{OPERATION}{what}/throughput"), "B/s", &op.moved));
        }
    }
    out.extend(m.events.iter().map(|(what, t)| curve(format!("{EVENT}{what}"), "1/s", t)));
    out
}

/// Percentiles of operations, and the least number of them that has one: so many that one is expected beyond. Of fewer it
/// would be the longest, which has a figure of its own.
const PERCENTILES: [(f64, u64); 3] = [(50.0, 2), (95.0, 20), (99.0, 100)];

/// Operations a second and latencies of each kind.
fn metrics(m: &Measured) -> Vec<Metric> {
    let mut out = Vec::new();
    for (what, op) in &m.operations {
        // What goes on beside the program's own work is no merit: more checkpoints are neither better nor worse.
        let beside = m.marks.iter().any(|x| x.part == Part::Beside && x.what == *what);
        let better = |more: bool| (!beside).then_some(more);
        let h = &op.latency;
        if m.elapsed > 0 {
            let rate = h.count() as f64 * 1e9 / m.elapsed as f64;
            out.push(metric(format!("{what} rate"), rate, "1/s", better(true)));
        }
        let us = |ns: f64| ns / 1e3;
        let mut latency = |which: &str, value: f64| {
            let name = format!("{what} {which} latency");
            out.push(metric(name, value, "us", better(false)));
        };
        latency("mean", us(h.mean()));
        for (p, _) in PERCENTILES.into_iter().filter(|p| h.count() >= p.1) {
            latency(&format!("p{p}"), us(h.percentile(p) as f64));
        }
        latency("max", us(h.max() as f64));
    }
    out
}

/// Figures that the program came to by itself; of several of a name the sum.
fn own_figures(figures: &[iosched_workloads::programs::Figure], m: &Measured) -> Vec<Metric> {
    let one = |f: &iosched_workloads::programs::Figure| {
        let values = m.figures.iter().filter(|(n, _)| *n == f.name).map(|(_, v)| *v);
        let sum = values.reduce(|a, b| a + b)?;
        let mut one = metric(f.name.into(), sum, f.unit, f.higher_is_better);
        one.censored = m.beyond.contains(f.name);
        Some(one)
    };
    figures.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_workloads::programs::Params;

    /// The 99th percentile of two syncs is the longer one.
    #[test]
    fn few_operations_have_no_high_percentile() {
        for (n, all) in [
            (1, ["mean", "max"].as_slice()),
            (2, &["mean", "p50", "max"]),
            (20, &["mean", "p50", "p95", "max"]),
            (100, &["mean", "p50", "p95", "p99", "max"]),
        ] {
            let mut m = Measured { elapsed: 1_000_000_000, ..Measured::default() };
            (0..n).for_each(|i| m.note("sync", 0, 1_000 + i, 0));
            let names: Vec<String> = metrics(&m).into_iter().skip(1).map(|x| x.name).collect();
            let wanted: Vec<String> = all.iter().map(|w| format!("sync {w} latency")).collect();
            assert_eq!(names, wanted, "{n} syncs");
        }
    }

    /// The time of one is its rate's inverse: it is shown, and nothing is decided by it. What no Linux has is n/a.
    #[test]
    fn a_figure_is_not_told_twice() {
        let (program, params) = Descriptor::from_command_line("pg-test-fsync").unwrap();
        let of_one = |f: &&Figure| f.name.ends_with(iosched_experiment::OF_ONE);
        let (times, rates): (Vec<&Figure>, Vec<&Figure>) = program.figures.iter().partition(of_one);
        for (rate, time) in rates.iter().zip(&times) {
            assert_eq!(time.name, format!("{}{}", rate.name, iosched_experiment::OF_ONE));
            assert_eq!((rate.higher_is_better, time.higher_is_better), (Some(true), None));
        }
        assert_eq!((rates.len(), times.len()), (16, 16));
        // A real one on a file system without direct I/O.
        let found: Vec<_> = program.figures.iter().skip(1).map(|f| (f.name, 2.0)).collect();
        let mut record = Record::default();
        real_program(&mut record, &ProgramWork::new(program, params), 1.0, &found);
        let told = &record.provenance[ABSENT];
        assert_eq!(told, "fsync_writethrough; fsync_writethrough, two writes; open_datasync");
    }

    /// A short run of the real program is short, too, and the real one heeds what only the text cannot.
    #[test]
    fn a_real_program_says_how_short_it_was() {
        let set = |d: &'static Descriptor, name: &str, value: &str| {
            let params = Params::of(d, &[(name.into(), value.into())]).unwrap();
            let load = ProgramWork::new(d, params);
            let mut record = Record::default();
            real_program(&mut record, &load, 1.0, &[]);
            let mut text = Record::default();
            remark(&mut text, &load, load.remarks(None));
            (record.warnings, text.warnings)
        };
        let (real, text) = set(Descriptor::find("sqlite").unwrap(), "inserts", "5");
        assert_eq!(real, text);
        assert!(real[0].message.contains("inserts=5 instead of 2500"), "{real:?}");
        let (real, text) = set(Descriptor::find("kernel-compile").unwrap(), "config", "tinyconfig");
        assert_eq!((real.len(), text.len()), (0, 1), "{text:?}");
    }

    /// More checkpoints are no better, and longer ones no worse.
    #[test]
    fn what_goes_on_beside_has_no_direction() {
        let mut m = Measured { elapsed: 1_000_000_000, ..Measured::default() };
        m.note("transaction", 0, 1_000, 0);
        m.note("checkpoint", 0, 1_000, 4096);
        m.mark("checkpoint", Part::Beside, 0, 1_000);
        m.mark("run", Part::Phase, 0, 1_000);
        for x in metrics(&m) {
            let none = x.name.starts_with("checkpoint");
            assert_eq!(x.higher_is_better.is_none(), none, "{}", x.name);
        }
    }
}
