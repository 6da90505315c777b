//! What a finished simulation says.

use crate::{drift, ignored, one_tag, quick_syncs, replay, taped};
use std::collections::BTreeMap;
use std::mem::take;

use iosched_block::{CpuModel, Issue, QueueStats, Stack};
use iosched_experiment::record::{HALVES_DIFFER, PARTS};
use iosched_experiment::{
    BackendKind, DeviceStats, DirStats, DispatchPoint, JobRecord, Moments, Record, SCHEMA,
    SchedulerStats, Series, Status, Trial, Warning,
};
use iosched_syscalls::Errno;
use iosched_types::units::{MS, US};
use iosched_types::{CpuTime, LatencyHistogram, Nanos};
use iosched_workloads::fio::stats::{DirectionStats, JobStats, SAMPLE, Sample, Sums};
use iosched_workloads::fio::{JobSpec, assumed_parts, iolog_write};

use iosched_host::Machine;

/// fio computes rates by whole milliseconds, rounded up from whole microseconds. Unless `exact`, no run takes whole
/// milliseconds: fio looks at the clock, which takes it a moment.
fn fio_runtime(ns: Nanos, exact: bool) -> Nanos {
    let us = ns / US + u64::from(!exact);
    us.div_ceil(1000) * MS
}

fn moments(s: &Sums, count: u64) -> Moments {
    if count == 0 {
        return Moments::default();
    }
    let n = count as f64;
    let mean = s.sum / n;
    Moments {
        n: count,
        min: s.min as f64,
        max: s.max as f64,
        mean,
        m2: (s.sum_sq - n * mean * mean).max(0.0),
    }
}

/// Bandwidth (KiB/s) and IOPS of the samples up to the last in which an I/O finished. Only the first `whole` count,
/// because the job's end cuts the last one short. Empty samples are added in one step: with ten thousand processes
/// nearly all samples are empty.
fn sample_moments(samples: &[Sample], whole: u64) -> (Moments, Moments) {
    let (mut bw, mut iops) = (Moments::default(), Moments::default());
    for s in samples.iter().take_while(|s| u64::from(s.at) < whole) {
        bw.add(s.bytes as f64 / 1024.0 * 1e9 / SAMPLE as f64);
        iops.add(f64::from(s.ios) * 1e9 / SAMPLE as f64);
    }
    let all = samples.last().map_or(0, |s| whole.min(u64::from(s.at) + 1));
    let empty = Moments { n: all - bw.n, ..Moments::default() };
    bw.merge(&empty);
    iops.merge(&empty);
    (bw, iops)
}

/// Moments of latencies.
pub(crate) fn moments_of(h: &LatencyHistogram) -> Moments {
    let n = h.count() as f64;
    let m2 = (h.sum_of_squares() - n * h.mean() * h.mean()).max(0.0);
    Moments { n: h.count(), min: h.min() as f64, max: h.max() as f64, mean: h.mean(), m2 }
}

fn dir_stats(d: DirectionStats, runtime: Nanos) -> DirStats {
    let (bw, iops) = sample_moments(&d.samples, runtime / SAMPLE);
    let lat_hist = d.total().clone();
    DirStats {
        ios: d.ios,
        bytes: d.bytes,
        runtime: if d.ios > 0 { runtime } else { 0 },
        slat: moments(&d.slat, d.clat.count()),
        clat: d.clat,
        lat: moments_of(&lat_hist),
        lat_hist,
        bw,
        iops,
    }
}

fn options(job: &JobSpec, clones: usize) -> BTreeMap<String, String> {
    let p = job.pattern;
    let rw = match (p.read, p.write, p.trim, p.random) {
        (true, true, _, true) => "randrw",
        (true, true, _, false) => "rw",
        (true, false, _, true) => "randread",
        (true, false, _, false) => "read",
        (false, true, false, true) => "randwrite",
        (false, true, false, false) => "write",
        (_, _, true, true) if p.trim_then_write => "randtrimwrite",
        (_, _, true, false) if p.trim_then_write => "trimwrite",
        (_, _, true, true) => "randtrim",
        (_, _, true, false) => "trim",
        (false, false, false, _) => "none",
    };
    let engine = format!("{:?}", job.engine).to_lowercase();
    let mut o = BTreeMap::from([
        ("rw".to_string(), rw.to_string()),
        ("bs".to_string(), job.bs.range[usize::from(!p.read)].0.to_string()),
        ("ioengine".to_string(), engine),
        ("iodepth".to_string(), job.iodepth.to_string()),
        ("numjobs".to_string(), clones.to_string()),
    ]);
    if !job.percentiles.is_empty() {
        let list: Vec<String> = job.percentiles.iter().map(f64::to_string).collect();
        o.insert("percentile_list".into(), list.join(":"));
    }
    for (name, every) in [("fsync", job.fsync), ("fdatasync", job.fdatasync)] {
        if every > 0 {
            o.insert(name.into(), every.to_string());
        }
    }
    if p.read && p.write {
        o.insert("rwmixread".into(), job.rwmixread.to_string());
    }
    o
}

fn job_record(job: &JobSpec, s: JobStats, clones: usize, start: Nanos, exact: bool) -> JobRecord {
    let runtime = s.ended.saturating_sub(s.measured_from);
    let rate = fio_runtime(runtime, exact);
    let [read, write, trim, sync] = s.dirs;
    JobRecord {
        name: job.name.clone(),
        subjob: job.subjob,
        group: job.group,
        pid: job.thread,
        options: options(job, clones),
        read: dir_stats(read, rate),
        write: dir_stats(write, rate),
        trim: dir_stats(trim, rate),
        sync: dir_stats(sync, rate),
        runtime,
        run_times: 0,
        began: s.measured_from.saturating_sub(start),
        ended: s.ended.saturating_sub(start),
        depths: s.depths,
        cpu: CpuTime::default(),
        error: None,
        ask: None,
    }
}

/// Joins the jobs of a group that is reported as one.
fn join(into: &mut JobRecord, other: &JobRecord) {
    into.read.merge(&other.read);
    into.write.merge(&other.write);
    into.trim.merge(&other.trim);
    into.sync.merge(&other.sync);
    into.run_times = into.processes_ran().saturating_add(other.processes_ran());
    into.runtime = into.runtime.max(other.runtime);
    into.cpu.add(&other.cpu);
    into.began = into.began.min(other.began);
    into.ended = into.ended.max(other.ended);
    into.error = into.error.take().or_else(|| other.error.clone());
    for (a, b) in into.depths.iter_mut().zip(other.depths) {
        *a += b;
    }
}

fn same_section(a: &JobSpec, b: &JobSpec) -> bool {
    a.place == b.place && a.name == b.name
}

/// A process of fio that has ended: its job, what it measured, its core time.
pub(crate) struct Ran<'a> {
    pub(crate) job: &'a JobSpec,
    pub(crate) stats: JobStats,
    pub(crate) cpu: CpuTime,
    /// What it failed with.
    pub(crate) error: Option<Errno>,
}

/// A job of each section, and how many processes the section has.
fn clones<'a>(ran: &[Ran<'a>]) -> Vec<(&'a JobSpec, usize)> {
    let mut sections: Vec<(&JobSpec, usize)> = Vec::new();
    for r in ran {
        match sections.iter_mut().find(|(j, _)| same_section(j, r.job)) {
            Some((_, n)) => *n += 1,
            None => sections.push((r.job, 1)),
        }
    }
    sections
}

/// The part of a process's core time that belongs to its measured run. The load during the ramp time is the same, so
/// core time is split as the time is.
fn measured_part(all: CpuTime, runtime: Nanos, ramp: Nanos) -> CpuTime {
    let whole = u128::from(runtime.saturating_add(ramp)).max(1);
    let part = |ns: Nanos| (u128::from(ns) * u128::from(runtime) / whole) as Nanos;
    if ramp == 0 {
        return all;
    }
    CpuTime {
        user: part(all.user),
        system: part(all.system),
        spinning: part(all.spinning),
        interrupts: part(all.interrupts),
    }
}

/// What the processes measured. `exact`: looks at the clock take time, as in the reference measurements.
fn jobs(ran: Vec<Ran<'_>>, start: Nanos, exact: bool) -> Vec<JobRecord> {
    let mut out: Vec<(bool, JobRecord)> = Vec::with_capacity(ran.len());
    let clones = clones(&ran);
    for Ran { job, stats, cpu, error } in ran {
        let clones = clones.iter().find(|(j, _)| same_section(j, job)).map_or(1, |(_, n)| *n);
        let mut r = job_record(job, stats, clones, start, exact);
        r.cpu = measured_part(cpu, r.runtime, job.ramp_time.max(job.warm_up));
        r.error = error.map(|errno| errno.to_string());
        let group = match job.group_reporting {
            true => out.iter_mut().find(|(grouped, o)| *grouped && o.group == job.group),
            false => None,
        };
        match group {
            Some((_, o)) => join(o, &r),
            None => out.push((job.group_reporting, r)),
        }
    }
    out.into_iter().map(|(_, r)| r).collect()
}

/// Trims in [`JobStats::dirs`](iosched_workloads::fio::stats::JobStats).
const TRIM: usize = 2;

fn throughput(ran: &[Ran<'_>]) -> [Series; 2] {
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for Ran { stats: s, .. } in ran {
        let shift = (s.measured_from / SAMPLE) as usize;
        for (i, d) in s.dirs.iter().enumerate() {
            // A trim moves no data.
            let moves = if i == TRIM { 0.0 } else { 1.0 };
            for s in &d.samples {
                let i = shift + s.at as usize;
                if sums.len() <= i {
                    sums.resize(i + 1, (0.0, 0.0));
                }
                sums[i].0 += moves * s.bytes as f64 * 1e9 / SAMPLE as f64;
                sums[i].1 += f64::from(s.ios) * 1e9 / SAMPLE as f64;
            }
        }
    }
    let series = |name: &str, unit: &str, values| Series {
        name: name.into(),
        unit: unit.into(),
        step: SAMPLE,
        values,
    };
    [
        series("throughput", "B/s", sums.iter().map(|s| s.0).collect()),
        series("iops", "1/s", sums.iter().map(|s| s.1).collect()),
    ]
}

fn all_series(machine: &Machine, ran: &[Ran<'_>]) -> Vec<Series> {
    let Some(s) = &machine.sampler else { return Vec::new() };
    let of = |name: &str, values: &Vec<f64>| Series {
        name: name.into(),
        unit: "requests".into(),
        step: s.step,
        values: values.clone(),
    };
    let mut all = Vec::from(throughput(ran));
    all.push(of("in_flight", &s.in_flight));
    all.push(of("queue_depth", &s.queued));
    all
}

/// The device's side, up to now.
pub(crate) fn device(stack: &Stack, now: Nanos) -> DeviceStats {
    let mut all = DeviceStats::default();
    for queue in stack.queues() {
        let s = queue.stats();
        for i in 0..4 {
            all.commands[i] += s.given[i];
        }
        for i in 0..3 {
            all.bytes[i] += s.bytes[i];
            all.merges[i] += s.merges[i];
        }
        // Legs are busy side by side.
        all.busy = all.busy.max(queue.busy(now));
        all.weighted += s.weighted;
        all.seeks += s.seeks;
        all.travel += s.travel;
        all.max_in_flight = all.max_in_flight.max(s.max_in_flight);
        for (name, value) in queue.device_counters() {
            *all.counters.entry(name.to_string()).or_default() += value;
        }
    }
    for (i, leg) in stack.leg_stats().iter().enumerate() {
        let mut note = |name: &str, v| all.counters.insert(format!("leg {i} {name}"), v);
        note("reads", leg.reads);
        note("writes", leg.writes);
        note("reads after another leg", leg.changes);
    }
    all.counters.extend(named(stack.array_counters()));
    all
}

fn named(list: Vec<(&'static str, u64)>) -> BTreeMap<String, u64> {
    list.into_iter().map(|(n, v)| (n.to_string(), v)).collect()
}

pub(crate) fn scheduler(stack: &Stack) -> SchedulerStats {
    let sum = |f: fn(&QueueStats) -> u64| stack.queues().map(|q| f(q.stats())).sum();
    let mut counters = BTreeMap::new();
    for (name, value) in stack.queues().flat_map(|q| q.scheduler_counters()) {
        *counters.entry(name.to_string()).or_default() += value;
    }
    let tunables = stack.queues().next().map(|q| q.tunables()).unwrap_or_default();
    SchedulerStats {
        dispatched: sum(|s| s.issued),
        idled: sum(|s| s.idled),
        idles: sum(|s| s.idles),
        tunables: tunables.into_iter().map(|(n, v)| (n.to_string(), v)).collect(),
        counters,
    }
}

pub(crate) fn provenance(trial: &Trial) -> BTreeMap<String, String> {
    let mut p = BTreeMap::from([
        ("tool".to_string(), format!("iosched {}", env!("CARGO_PKG_VERSION"))),
        ("kernel_profile".to_string(), trial.kernel.version.clone()),
        ("device".to_string(), trial.device.title.clone()),
        ("cpus".to_string(), trial.cpus.to_string()),
    ]);
    if trial.kernel.cpu.model == CpuModel::Zero {
        p.insert("cpu_model".to_string(), "zero".to_string());
    }
    if !matches!(trial.kernel.cpu.percent, 0 | 100) {
        p.insert("cpu_percent".to_string(), trial.kernel.cpu.percent.to_string());
    }
    let state = trial.device.state.text();
    if !state.is_empty() {
        p.insert("device_state".to_string(), state);
    }
    for (n, v) in &trial.settings {
        p.insert(format!("queue/{n}"), v.to_string());
    }
    p
}

/// Jobs that were slower than `rate_min` or `rate_iops_min` allow. The real fio ends them.
fn missed_rates(trial: &Trial, ran: &[Ran<'_>], exact: bool) -> Vec<Warning> {
    let mut out = Vec::new();
    for Ran { job, stats: s, .. } in ran {
        let runtime = fio_runtime(s.ended.saturating_sub(s.measured_from), exact);
        for (i, what) in ["reads", "writes", "trims"].iter().enumerate() {
            let rate = job.rate[i];
            if rate.min_bytes == 0 && rate.min_iops == 0 {
                continue;
            }
            let d = dir_stats(s.dirs[i].clone(), runtime);
            let bytes = (d.bytes_per_second(), rate.min_bytes as f64, "rate_min", "bytes/s");
            let ios = (d.iops(), f64::from(rate.min_iops), "rate_iops_min", "IOPS");
            for (got, least, option, unit) in [bytes, ios] {
                if job.does(i) && runtime > 0 && got < least {
                    let id = &trial.id;
                    out.push(Warning {
                        code: "rate-missed".into(),
                        message: format!(
                            "{} on {}, {}: {what} of job \"{}\" at {got:.0} {unit}, below {option}={least:.0}",
                            id.workload, id.device, id.scheduler, job.name
                        ),
                        advice: "the real fio ends such a job".into(),
                    });
                }
            }
        }
    }
    out
}

/// Caches to be full that the device does not have.
fn state_ignored(trial: &Trial) -> Option<Warning> {
    let lacking = trial.device.lacking();
    (!lacking.is_empty()).then(|| Warning {
        code: "state-ignored".into(),
        message: format!("{} has no {}", trial.id.device, lacking.join(" and no ")),
        advice: "its device state changes nothing".into(),
    })
}

/// What is to be known of a run of fio jobs.
fn warnings(trial: &Trial, ran: &[Ran<'_>], exact: bool) -> Vec<Warning> {
    let ignored = trial.jobs().warnings.iter().map(|w| Warning {
        code: "option-ignored".into(),
        message: w.clone(),
        advice: String::new(),
    });
    let parts = assumed_parts(trial.jobs()).map(|message| Warning {
        code: PARTS.into(),
        message,
        advice: String::new(),
    });
    ignored
        .chain(parts)
        .chain(state_ignored(trial))
        .chain(ignored::settings(trial))
        .chain(missed_rates(trial, ran, exact))
        .chain(drift::warning(trial, ran))
        .chain(quick_syncs::warning(trial, ran))
        .collect()
}

/// The record of a run of fio jobs, as far as it does not depend on what is between them and the disk.
pub(crate) fn of_jobs(
    trial: &Trial,
    queue: &Stack,
    now: Nanos,
    ran: Vec<Ran<'_>>,
    exact: bool,
) -> Record {
    let scheduler = scheduler(queue);
    let mut warnings = warnings(trial, &ran, exact);
    warnings.extend(one_tag::warning(&trial.id, &scheduler));
    let device = device(queue, now);
    if !warnings.iter().any(|w| w.code == HALVES_DIFFER) {
        let caches: Vec<_> = queue.queues().flat_map(|q| q.device_caches()).collect();
        warnings.extend(drift::filling(trial, &caches, device.bytes[1]));
    }
    Record {
        schema: SCHEMA,
        trial: trial.id.clone(),
        backend: BackendKind::Sim,
        status: Status::Complete,
        device,
        scheduler,
        provenance: provenance(trial),
        warnings,
        jobs: jobs(ran, trial.start_at, exact),
        ..Record::default()
    }
}

/// Points of the dispatch picture.
pub(crate) fn points(issues: Vec<Issue>, pid: impl Fn(u32) -> u32) -> Vec<DispatchPoint> {
    let point = |i: Issue| DispatchPoint {
        t: i.t,
        sector: i.sector,
        sectors: i.sectors,
        op: i.op,
        pid: pid(i.task),
    };
    issues.into_iter().map(point).collect()
}

/// The record of a finished run.
pub(crate) fn of(trial: &Trial, mut machine: Machine) -> Record {
    let exact = machine.looks_take_time();
    let issues = machine.take_dispatches();
    let pid = |t: u32| match (machine.tasks.get(t as usize), machine.beside.task(t)) {
        (Some(t), _) => t.job.spec().thread,
        (None, beside) => beside.map_or(t, |b| b.pid),
    };
    let dispatches = points(issues, pid);
    let seen = trial.tape.map(|keep| {
        let Machine { queue, tasks, tl, beside, .. } = &mut machine;
        taped::seen((queue, tl), (keep, trial.start_at), |t| {
            match (tasks.get(t as usize), beside.task(t)) {
                (Some(t), _) => (t.job.spec().thread, t.job.spec().name.clone()),
                (None, Some(t)) => (t.pid, t.name.clone()),
                (None, None) => (t, String::new()),
            }
        })
    });
    let io_logs = iolog_write::texts(machine.tasks.iter().map(|t| &t.job));
    // Ten thousand tasks are not kept beside ten thousand records.
    let cpu: Vec<CpuTime> = (0..machine.tasks.len()).map(|i| machine.cpu_time(i)).collect();
    let tasks = take(&mut machine.tasks).into_iter().zip(&trial.jobs().jobs).zip(cpu);
    let ran = tasks.map(|((mut t, job), cpu)| Ran {
        job,
        stats: t.job.take_stats(),
        cpu,
        error: t.error,
    });
    let ran: Vec<Ran<'_>> = ran.collect();
    let series = all_series(&machine, &ran);
    let record = of_jobs(trial, &machine.queue, machine.tl.now, ran, exact);
    let failed = record.failed_jobs();
    let mut record = Record {
        series,
        dispatches,
        seen,
        io_logs,
        elapsed: machine.tl.now,
        status: failed.map_or(record.status.clone(), Status::Failed),
        ..record
    };
    replay::add(trial, &machine.beside, &mut record);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_samples_count_as_if_they_had_been_added() {
        let samples = [(2, 4096, 1), (3, 8192, 2), (9, 4096, 1), (20, 4096, 1)]
            .map(|(at, bytes, ios)| Sample { at, ios, bytes });
        for whole in [0, 2, 3, 10, 20, 21, 40] {
            let mut slow = [Moments::default(), Moments::default()];
            for at in 0..21.min(whole) {
                let found = samples.iter().find(|s| u64::from(s.at) == at);
                let found = found.map_or((0, 0), |s| (s.bytes, s.ios));
                slow[0].add(found.0 as f64 / 512.0);
                slow[1].add(found.1 as f64 * 2.0);
            }
            let fast = sample_moments(&samples, whole);
            for (a, b) in [(fast.0, slow[0]), (fast.1, slow[1])] {
                assert_eq!((a.n, a.min, a.max), (b.n, b.min, b.max), "{whole}");
                assert!((a.mean - b.mean).abs() < 1e-9 && (a.stddev() - b.stddev()).abs() < 1e-9);
            }
        }
    }
}
