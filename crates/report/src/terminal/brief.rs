//! The short report: what was run, in two lines, above the verdicts.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::Status;
use iosched_experiment::{BackendKind, Record};
use iosched_results::answer::wrap;
use iosched_results::render::printable;
use iosched_results::verdict::WARMED_UP;
use iosched_types::units::show_nanos;

/// `1 scheduler`, `3 schedulers`.
fn count(n: usize, of: &str) -> String {
    format!("{n} {of}{}", if n == 1 { "" } else { "s" })
}

/// `a`, `a and b`, `a to z` of many.
fn ends(all: &BTreeSet<String>) -> String {
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    match all[..] {
        [] => String::new(),
        [one] => one.into(),
        [a, b] => format!("{a} and {b}"),
        [first, .., last] => format!("{first} to {last}"),
    }
}

fn where_run(backends: &BTreeSet<BackendKind>) -> &'static str {
    let all: Vec<BackendKind> = backends.iter().copied().collect();
    let [only] = all[..] else { return "" };
    match only {
        BackendKind::Sim => ", simulated",
        BackendKind::Emulated => ", on emulated disks",
        BackendKind::Real => ", on real disks",
        BackendKind::Imported => ", imported",
        BackendKind::Mock => "",
    }
}

/// How long the fio jobs of the runs were measured, where all were as long, to a tenth.
fn length(records: &[&Record]) -> Option<u64> {
    let of = |r: &&Record| r.jobs.iter().map(|j| j.runtime).max();
    let all: Option<Vec<u64>> = records.iter().map(of).collect();
    let all = all?;
    let (least, most) = (all.iter().min()?, all.iter().max()?);
    (*least > 0 && most - least <= most / 10).then_some(*most)
}

/// What was run, and how often.
pub(super) fn head(records: &[Record], columns: usize) -> String {
    let used: Vec<&Record> = records.iter().filter(|r| r.status == Status::Complete).collect();
    let Some(first) = used.first() else { return String::new() };
    let set = |of: fn(&Record) -> String| used.iter().map(|r| of(r)).collect::<BTreeSet<_>>();
    let kernels = set(|r| r.trial.kernel.clone());
    let backends = used.iter().map(|r| r.backend).collect();
    let mut line = format!(
        "{} on {}",
        count(set(|r| r.trial.scheduler.clone()).len(), "scheduler"),
        count(set(|r| r.trial.device.clone()).len(), "device")
    );
    if !first.trial.experiment.is_empty() {
        line = format!("{}: {line}", printable(&first.trial.experiment));
    }
    if kernels.iter().any(|k| !k.is_empty()) {
        line.push_str(&format!(", Linux {}", printable(&ends(&kernels))));
    }
    line.push_str(where_run(&backends));
    let mut out = wrap("", 2, &line, columns);
    let mut cells: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
    for r in &used {
        let t = &r.trial;
        let cell = (&t.device, &t.workload, &t.scheduler, &t.kernel);
        cells.entry(cell).or_default().insert(t.repetition);
    }
    let runs = cells.values().map(BTreeSet::len);
    let (least, most) = (runs.clone().min().unwrap_or(0), runs.max().unwrap_or(0));
    let mut line = match (least, most) {
        (1, 1) => "1 run of each".to_string(),
        (a, b) if a == b && first.backend.traits().ours => format!("{a} paired runs of each"),
        (a, b) if a == b => format!("{a} runs of each"),
        (a, b) => format!("{a} to {b} runs of each"),
    };
    if let Some(ns) = length(&used) {
        line.push_str(&format!(", {}", short(ns)));
    }
    let warm = used.iter().filter_map(|r| r.provenance.get(WARMED_UP));
    let mut warm: Vec<(u64, &String)> = warm.map(|w| (nanos(w), w)).collect();
    warm.sort_unstable();
    match (warm.first(), warm.last()) {
        (Some((a, _)), Some((b, _))) if a == b => {
            line.push_str(&format!(" after {} of warm-up", short(*a)));
        }
        (Some((a, _)), Some((b, _))) => {
            line.push_str(&format!(" after {} to {} of warm-up", short(*a), short(*b)));
        }
        _ => {}
    }
    out.push_str(&wrap("", 2, &line, columns));
    out.push('\n');
    out
}

fn nanos(text: &str) -> u64 {
    text.parse::<f64>().map_or(0, |ms| (ms * 1e6) as u64)
}

/// `10 s` rather than `10.0 s`.
fn short(ns: u64) -> String {
    let seconds = (ns as f64 / 1e9).round();
    match seconds * 1e9 {
        whole if seconds >= 1.0 && (whole - ns as f64).abs() < 0.01 * whole => {
            format!("{seconds} s")
        }
        _ => show_nanos(ns as f64),
    }
}
