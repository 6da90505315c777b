//! The short report: what was run, in two lines, above the verdicts.

use std::collections::BTreeSet;

use iosched_experiment::record::Status;
use iosched_experiment::{BackendKind, Record};
use iosched_results::answer::wrap;
use iosched_results::render::printable;
use iosched_results::verdict::Measuring;

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

/// What was run, and how often.
pub(super) fn head(records: &[Record], measuring: &Measuring, columns: usize) -> String {
    let used: Vec<&Record> = records.iter().filter(|r| r.status == Status::Complete).collect();
    let Some(first) = used.first() else { return String::new() };
    let set = |of: fn(&Record) -> String| used.iter().map(|r| of(r)).collect::<BTreeSet<_>>();
    let mut kernels = set(|r| r.trial.kernel.clone());
    kernels.retain(|k| k != "unknown");
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
    out.push_str(&wrap("", 2, &measuring.words(), columns));
    out.push('\n');
    out
}
