//! `iosched explain`.

mod from;

use iosched_report::{Lane, Step, steps};
use iosched_sim::scenario::{Explanation, Scenario, ScenarioError, beside, run};
use serde::Serialize;

use crate::args::{ExplainArgs, Format};
use crate::fail::{Failure, Outcome, code};
use crate::files::{note, print_json, required, text, write};
use crate::tables::print_fitted;

/// A scheduler's decisions, as JSON where there are several.
#[derive(Serialize)]
struct Under<'a> {
    scheduler: &'a str,
    #[serde(flatten)]
    explanation: &'a Explanation,
}

pub(crate) fn explain(args: &ExplainArgs) -> Outcome {
    if let Some(name) = &args.from {
        return from::from(args, name);
    }
    let path = args.file.as_deref().unwrap_or_default();
    let file = required(path)?;
    let mut all: Vec<(String, Explanation)> = Vec::new();
    if args.schedulers.is_empty() {
        let scenario = Scenario::from_toml(path, &file)?;
        let choice = &scenario.scheduler;
        let name = format!("{}@{}", choice.descriptor.name, choice.generation.name);
        all.push((name, explained(path, &scenario)?));
    }
    for name in &args.schedulers {
        let scenario = Scenario::under(path, &file, name)?;
        all.push((name.clone(), explained(path, &scenario)?));
    }
    if let Some(page) = &args.html {
        let lanes: Vec<Lane> = all.iter().map(|(name, e)| lane(name, e, (0, u64::MAX))).collect();
        if lanes.iter().any(|l| l.steps.is_empty()) {
            let message = "a scenario of system calls has no page; --html is for [[request]]";
            return Err(Failure::new(code::INPUT, message));
        }
        let title = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".toml");
        write(page, &steps(title, &lanes))?;
        note(&format!("{}: open it in a browser", page.display()));
    }
    let shown: Vec<(&str, &Explanation)> = all.iter().map(|(n, e)| (n.as_str(), e)).collect();
    match (args.format, &shown[..]) {
        (Format::Json, [(_, one)]) => print_json(one),
        (Format::Json, several) => {
            let under =
                several.iter().map(|(scheduler, explanation)| Under { scheduler, explanation });
            print_json(&under.collect::<Vec<_>>())
        }
        (Format::Table, [(_, one)]) => print_fitted(&one.to_string()),
        (Format::Table, several) if several.iter().any(|(_, e)| e.calls.is_some()) => {
            let one = |(name, e): &(&str, &Explanation)| format!("{name}\n{e}");
            print_fitted(&several.iter().map(one).collect::<Vec<_>>().join("\n"))
        }
        (Format::Table, several) => print_fitted(&beside(several)),
    }
}

fn explained(path: &str, scenario: &Scenario) -> Result<Explanation, Failure> {
    for w in &scenario.warnings {
        note(&format!("warning: {w}"));
    }
    run(scenario, &|name| device(path, name)).map_err(failure)
}

/// The decisions as the page plays them. Its clock begins where the window does; what is not done in it is not done.
fn lane(name: &str, e: &Explanation, (from, to): (u64, u64)) -> Lane {
    let within = |t: u64| (t < to).then(|| t.saturating_sub(from));
    let step = |(i, r): (usize, &iosched_sim::scenario::Life)| {
        let sent = e.dispatched.iter().find(|d| d.requests.contains(&i));
        let who = e.names.get(&r.pid).cloned().unwrap_or_else(|| format!("pid {}", r.pid));
        Step {
            what: format!("{}{}+{}", r.op.letter(), r.sector, r.sectors),
            pid: r.pid,
            who,
            sector: r.sector,
            sectors: r.sectors,
            before: r.came_ns.map_or(0, |c| from.saturating_sub(c)),
            came: r.came_ns.and_then(within),
            sent: sent.and_then(|d| within(d.t_ns)),
            done: r.done_ns.and_then(within),
            why: sent.map_or_else(String::new, |d| d.reason.clone()),
        }
    };
    let idle = |i: &iosched_sim::scenario::Idle| {
        (i.from_ns.saturating_sub(from), i.to_ns.min(to).saturating_sub(from), i.reason.clone())
    };
    Lane {
        name: name.into(),
        steps: e.requests.iter().enumerate().map(step).collect(),
        idle: e.idle.iter().map(idle).collect(),
    }
}

/// A device by name, or by a path that counts from the scenario's own folder.
fn device(scenario: &str, name: &str) -> Result<iosched_devices::DeviceSpec, String> {
    if !iosched_experiment::file::is_path(name) {
        return iosched_devices::catalogue::find(name).map_err(|e| e.to_string());
    }
    let path = match scenario.rsplit_once('/') {
        Some((folder, _)) if !name.starts_with('/') => format!("{folder}/{name}"),
        _ => name.to_string(),
    };
    let text = text(&path).map_err(|e| format!("cannot read {path}: {e}"))?;
    iosched_devices::DeviceSpec::from_toml(&path, &text).map_err(|d| d.message)
}

fn failure(e: ScenarioError) -> Failure {
    Failure::new(code::INPUT, e)
}
