//! `iosched explain`.

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
    let file = required(&args.file)?;
    let mut all: Vec<(String, Explanation)> = Vec::new();
    if args.schedulers.is_empty() {
        let scenario = Scenario::from_toml(&args.file, &file)?;
        let choice = &scenario.scheduler;
        let name = format!("{}@{}", choice.descriptor.name, choice.generation.name);
        all.push((name, explained(args, &scenario)?));
    }
    for name in &args.schedulers {
        let scenario = Scenario::under(&args.file, &file, name)?;
        all.push((name.clone(), explained(args, &scenario)?));
    }
    if let Some(path) = &args.html {
        let lanes: Vec<Lane> = all.iter().map(|(name, e)| lane(name, e)).collect();
        if lanes.iter().any(|l| l.steps.is_empty()) {
            let message = "a scenario of system calls has no page; --html is for [[request]]";
            return Err(Failure::new(code::INPUT, message));
        }
        let title = args.file.rsplit('/').next().unwrap_or_default().trim_end_matches(".toml");
        write(path, &steps(title, &lanes))?;
        note(&format!("{}: open it in a browser", path.display()));
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

fn explained(args: &ExplainArgs, scenario: &Scenario) -> Result<Explanation, Failure> {
    for w in &scenario.warnings {
        note(&format!("warning: {w}"));
    }
    run(scenario, &|name| device(&args.file, name)).map_err(failure)
}

/// The decisions as the page plays them.
fn lane(name: &str, e: &Explanation) -> Lane {
    let step = |(i, r): (usize, &iosched_sim::scenario::Life)| {
        let sent = e.dispatched.iter().find(|d| d.requests.contains(&i));
        Step {
            what: format!("{}{}+{}", r.op.letter(), r.sector, r.sectors),
            pid: r.pid,
            sector: r.sector,
            sectors: r.sectors,
            came: r.came_ns,
            sent: sent.map(|d| d.t_ns),
            done: r.done_ns,
            why: sent.map_or_else(String::new, |d| d.reason.clone()),
        }
    };
    Lane {
        name: name.into(),
        steps: e.requests.iter().enumerate().map(step).collect(),
        idle: e.idle.iter().map(|i| (i.from_ns, i.to_ns, i.reason.clone())).collect(),
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
