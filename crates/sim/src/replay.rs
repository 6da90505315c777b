//! Trials of block traces.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use iosched_block::Stack;
use iosched_experiment::replay::{BESIDE, DIFFERS, REPLAY, REPLAY_BESIDE};
use iosched_experiment::{DirStats, JobRecord, Metric, Record, Series, TraceWork, Trial, Warning};
use iosched_host::{Beside, Moved, Played, Player, Score, Side, task_info};
use iosched_schedulers::{Cgroup, TaskInfo};
use iosched_types::units::{MS, SEC};
use iosched_types::{LatencyHistogram, Nanos, SECTOR};
use iosched_workloads::fio::stats::SAMPLE;
use iosched_workloads::replay::{Mode, Recording};

use crate::error::SimError;
use crate::record;
use crate::run::Progress;
use crate::stack::stack;
use crate::taped;

/// Tasks with figures of their own; those with the most I/Os have them.
const TASKS: usize = 64;
/// Fewer reads than this have no 99th percentile.
const FEW: u64 = 100;
/// A model reproduces a recording whose demerit is below this share of the mean latency, and whose makespan is within this
/// share.
const DEMERIT: f64 = 0.25;
const MAKESPAN: f64 = 0.1;

/// Simulates such a trial.
pub(crate) fn simulate(
    trial: &Trial,
    trace: &TraceWork,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Record, SimError> {
    let end = if trace.mode.is_open() { trace.recording.measured.span } else { 0 };
    let go_on = &mut |now| progress(Progress { now, end });
    let mut player = build(trial, trace, trace.mode)?;
    if let Some(keep) = trial.tape {
        player.queue.record(keep);
    }
    if trial.collect.dispatches {
        player.collect_dispatches();
    }
    if trial.collect.series {
        let span = trace.recording.measured.span;
        player.collect_series((span / 400).clamp(MS, SEC));
    }
    player.run(go_on)?;
    let mut record = of(trial, trace, &mut player);
    if trace.usual && trace.mode == Mode::Dependent {
        let mut open = build(trial, trace, Mode::AsRecorded)?;
        open.run(go_on)?;
        let beside = latencies(&all(&open.played().tasks), false);
        record.metrics.extend(
            beside.into_iter().map(|m| Metric { name: format!("{BESIDE}{}", m.name), ..m }),
        );
    }
    Ok(record)
}

/// Wires it up.
pub(crate) fn build(trial: &Trial, trace: &TraceWork, mode: Mode) -> Result<Player, SimError> {
    let recording = &trace.recording;
    let tasks: Vec<TaskInfo> = recording.tasks.iter().map(task_info).collect();
    let queue = stack(trial, &tasks, &[Cgroup::default()])?;
    let mut player = Player::new(queue, score(trial, trace, mode), trial.start_at);
    if trial.first_run_late {
        player.first_run_late();
    }
    Ok(player)
}

/// What is played on the disk of a trial.
pub(crate) fn score(trial: &Trial, trace: &TraceWork, mode: Mode) -> Score {
    let recording = trace.recording.clone();
    let placed = recording.places.on(trial.device.capacity() / SECTOR);
    Score { recording, mode, placed, discards: trial.device.discard }
}

/// The record of a finished replay.
fn of(trial: &Trial, trace: &TraceWork, player: &mut Player) -> Record {
    let now = player.tl.now;
    let recording = &trace.recording;
    let issues = player.take_dispatches();
    let pid = |t: u32| recording.tasks.get(t as usize).map_or(t, |t| t.pid);
    let dispatches = record::points(issues, pid);
    let seen = trial.tape.map(|keep| {
        taped::seen((&mut player.queue, &player.tl), (keep, trial.start_at), |t| {
            let task = recording.tasks.get(t as usize).cloned().unwrap_or_default();
            (task.pid, task.name)
        })
    });
    let mut record = record::of_jobs(trial, &player.queue, now, Vec::new(), false);
    record.jobs = jobs(trial, recording, &player.played().tasks);
    record.series = series(player);
    record.dispatches = dispatches;
    record.seen = seen;
    record.elapsed = now;
    let sides = all(&player.played().tasks);
    let took = now.saturating_sub(trial.start_at);
    record.metrics = metrics(trial, trace, took, &sides);
    let words = format!("{}: {}", trace.mode, trace.mode.meaning());
    record.provenance.insert(REPLAY.into(), words);
    if let Some(name) = &trace.recorded_under {
        record.provenance.insert("recorded_scheduler".into(), name.clone());
    }
    warn(trial, trace, player.played(), &mut record);
    record.warnings.extend(gate(trial, trace, &record));
    record
}

/// Before the names of tasks and figures of a recording that is replayed beside other work.
const BESIDE_IT: &str = "beside ";

/// The recording beside the work of a trial, if there is one.
pub(crate) fn beside(trial: &Trial, queue: &mut Stack) -> Beside {
    let score = trial.beside.as_ref().map(|trace| score(trial, trace, trace.mode));
    score.map_or_else(Beside::default, |score| Beside::of(queue, score))
}

/// Adds its figures to a record.
pub(crate) fn add(trial: &Trial, beside: &Beside, record: &mut Record) {
    let (Some(trace), Some(played)) = (&trial.beside, beside.played()) else { return };
    let first = record.jobs.iter().map(|j| j.group + 1).max().unwrap_or(0);
    let of_tasks = jobs(trial, &trace.recording, &played.tasks);
    record.jobs.extend(of_tasks.into_iter().map(|j| JobRecord {
        name: format!("{BESIDE_IT}{}", j.name),
        group: first + j.group,
        ..j
    }));
    let took = played.ended.saturating_sub(played.start);
    let metrics = metrics(trial, trace, took, &all(&played.tasks));
    let named = metrics.into_iter().map(|m| Metric { name: format!("{BESIDE_IT}{}", m.name), ..m });
    record.metrics.extend(named);
    let words = format!("{}: {}", trace.mode, trace.mode.meaning());
    record.provenance.insert(REPLAY_BESIDE.into(), words);
    warn(trial, trace, played, record);
}

fn warn(trial: &Trial, trace: &TraceWork, played: &Played, record: &mut Record) {
    let workload = &trial.id.workload;
    let warning = |code: &str, message: String, advice: &str| Warning {
        code: code.into(),
        message: format!("{workload}: {message}"),
        advice: advice.into(),
    };
    let remarks = trace.recording.remarks.iter();
    record
        .warnings
        .extend(remarks.map(|(code, message, advice)| warning(code, message.clone(), advice)));
    if let Some(on) = trace.recording.places.on(trial.device.capacity() / SECTOR) {
        let advice = "seeks are shorter than they were; take a device of the recorded size";
        record.warnings.push(warning("replay-places", on.words, advice));
    }
    if played.refused > 0 {
        let message =
            format!("{} takes no discards; {} are left out", trial.id.device, played.refused);
        record.warnings.push(warning("replay-discards", message, ""));
    }
}

/// Whether a replay under the recorded scheduler is like the recording.
fn gate(trial: &Trial, trace: &TraceWork, record: &Record) -> Option<Warning> {
    let of = |name: &str| record.metrics.iter().find(|m| m.name == name).map(|m| m.value);
    // Other modes change the load itself.
    if matches!(trace.mode, Mode::Scaled(_) | Mode::Closed(_)) {
        return None;
    }
    let demerit = of("demerit")?;
    let makespan = of("makespan_ratio").filter(|_| !trace.mode.is_open());
    let far = makespan.is_some_and(|m| (m - 1.0).abs() > MAKESPAN);
    (demerit > DEMERIT * 100.0 || far).then(|| {
        let id = &trial.id;
        let span = makespan.map_or(String::new(), |m| format!(", it takes {m:.2} times as long"));
        Warning {
            code: DIFFERS.into(),
            message: format!(
                "{}: the model does not reproduce the recording; the comparison is indicative: under {} on {} the latencies \
                 differ by {demerit:.0} % of their mean{span}",
                id.workload, id.scheduler, id.device
            ),
            advice: format!(
                "the model is good enough below {:.0} % and within {:.0} % of the time; a device file of the recorded disk is \
                 closer (iosched show device)",
                DEMERIT * 100.0,
                MAKESPAN * 100.0
            ),
        }
    })
}

/// All tasks together: reads, writes, discards, flushes.
fn all(tasks: &[Moved]) -> [Side; 4] {
    let mut sum: [Side; 4] = Default::default();
    for t in tasks {
        for (s, own) in sum.iter_mut().zip(&t.sides) {
            s.ios += own.ios;
            s.bytes += own.bytes;
            s.latency.merge(&own.latency);
        }
    }
    sum
}

fn metric(name: String, value: f64, unit: &str, higher_is_better: Option<bool>) -> Metric {
    Metric { name, value, unit: unit.into(), higher_is_better, censored: false }
}

/// Latencies of reads, or of writes where there are no reads. Those of too few have no 99th percentile.
fn latencies(sides: &[Side; 4], judged: bool) -> Vec<Metric> {
    let (name, of) = if sides[0].ios > 0 { ("read", &sides[0]) } else { ("write", &sides[1]) };
    let h = &of.latency;
    let us = |ns: f64| ns / 1e3;
    let better = judged.then_some(false);
    let mut out = Vec::new();
    if h.count() >= FEW {
        out.push(metric(format!("{name} p50 latency"), us(h.percentile(50.0) as f64), "us", None));
        out.push(metric(
            format!("{name} p99 latency"),
            us(h.percentile(99.0) as f64),
            "us",
            better,
        ));
    } else if h.count() > 0 {
        out.push(metric(format!("{name} mean latency"), us(h.mean()), "us", better));
    }
    out
}

fn metrics(trial: &Trial, trace: &TraceWork, took: Nanos, sides: &[Side; 4]) -> Vec<Metric> {
    let recorded = &trace.recording.measured;
    let took = took as f64;
    let mut out = Vec::new();
    // Where nothing waits, the times of the recording decide how long it takes.
    let judged = (!trace.mode.is_open()).then_some(false);
    out.push(metric("makespan".into(), took / 1e9, "s", judged));
    if recorded.span > 0 {
        let ratio = took / recorded.span as f64;
        out.push(metric("makespan_ratio".into(), ratio, "times", None));
    }
    out.extend(latencies(sides, !matches!(trace.mode, Mode::Closed(_))));
    let own = trial.scheduler.descriptor.name;
    if trace.recorded_under.as_deref() == Some(own) && recorded.completed > 0 {
        let (mut was, mut is) = (recorded.latencies[0].clone(), LatencyHistogram::default());
        was.merge(&recorded.latencies[1]);
        sides.iter().for_each(|s| is.merge(&s.latency));
        out.push(metric("demerit".into(), 100.0 * demerit(&was, &is), "%", None));
        out.push(metric("recorded mean latency".into(), was.mean() / 1e3, "us", None));
    }
    out
}

/// The root mean square of the horizontal distance of two distributions, as a share of the first one's mean (Ruemmler
/// and Wilkes 1994).
fn demerit(was: &LatencyHistogram, is: &LatencyHistogram) -> f64 {
    const QUANTILES: u32 = 999;
    if was.is_empty() || is.is_empty() || was.mean() <= 0.0 {
        return 0.0;
    }
    let at = |h: &LatencyHistogram, i: u32| {
        h.percentile(100.0 * f64::from(i) / f64::from(QUANTILES + 1)) as f64
    };
    let sum: f64 = (1..=QUANTILES).map(|i| (at(was, i) - at(is, i)).powi(2)).sum();
    (sum / f64::from(QUANTILES)).sqrt() / was.mean()
}

fn side(s: &Side, runtime: Nanos) -> DirStats {
    DirStats {
        ios: s.ios,
        bytes: s.bytes,
        runtime: if s.ios > 0 { runtime } else { 0 },
        clat: s.latency.clone(),
        lat: record::moments_of(&s.latency),
        lat_hist: s.latency.clone(),
        ..DirStats::default()
    }
}

fn jobs(trial: &Trial, recording: &Recording, tasks: &[Moved]) -> Vec<JobRecord> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(recording.tasks[*i].ios), *i));
    let mut own = order[..order.len().min(TASKS)].to_vec();
    own.sort_unstable();
    let mut out: Vec<JobRecord> = own
        .iter()
        .map(|i| {
            let t = &recording.tasks[*i];
            job(trial, t.title(), t.pid, &tasks[*i])
        })
        .collect();
    let rest = &order[own.len()..];
    if !rest.is_empty() {
        let mut sum = Moved { began: Nanos::MAX, ..Moved::default() };
        for t in rest.iter().map(|i| &tasks[*i]) {
            sum.sides = all(&[sum.clone(), t.clone()]);
            (sum.began, sum.ended) = (sum.began.min(t.began), sum.ended.max(t.ended));
        }
        out.push(job(trial, format!("{} other tasks", rest.len()), 0, &sum));
    }
    for (i, j) in out.iter_mut().enumerate() {
        j.group = i as u32;
    }
    out
}

fn job(trial: &Trial, name: String, pid: u32, moved: &Moved) -> JobRecord {
    let runtime = moved.ended.saturating_sub(moved.began);
    let [read, write, trim, sync] = &moved.sides;
    let since = |at: Nanos| at.saturating_sub(trial.start_at);
    JobRecord {
        name,
        pid,
        options: BTreeMap::new(),
        read: side(read, runtime),
        write: side(write, runtime),
        trim: side(trim, runtime),
        sync: side(sync, runtime),
        runtime,
        began: since(moved.began.min(moved.ended)),
        ended: since(moved.ended),
        ..JobRecord::default()
    }
}

fn series(player: &Player) -> Vec<Series> {
    let Some(sampler) = &player.sampler else { return Vec::new() };
    let series = |name: &str, unit: &str, step: Nanos, values| Series {
        name: name.into(),
        unit: unit.into(),
        step,
        values,
    };
    let rate = |n: u64| n as f64 * 1e9 / SAMPLE as f64;
    let samples = &player.played().samples;
    vec![
        series("throughput", "B/s", SAMPLE, samples.iter().map(|s| rate(s.0)).collect()),
        series("iops", "1/s", SAMPLE, samples.iter().map(|s| rate(s.1)).collect()),
        series("in_flight", "requests", sampler.step, sampler.in_flight.clone()),
        series("queue_depth", "requests", sampler.step, sampler.queued.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification's example: {4, 6, 8, 10} measured, {4, 6, 9, 12} by the model: 16 % of the mean.
    #[test]
    fn a_demerit_is_the_distance_of_two_distributions() {
        let of = |all: [u64; 4]| {
            let mut h = LatencyHistogram::default();
            all.iter().for_each(|v| h.record(v * MS));
            h
        };
        let (was, is) = (of([4, 6, 8, 10]), of([4, 6, 9, 12]));
        assert!((demerit(&was, &is) - 0.16).abs() < 0.005, "{}", demerit(&was, &is));
        assert_eq!(demerit(&was, &was), 0.0);
        assert_eq!(demerit(&LatencyHistogram::default(), &is), 0.0);
    }
}
