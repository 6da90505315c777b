//! `iosched explain`.

use iosched_sim::scenario::{Scenario, ScenarioError, run};

use crate::args::{ExplainArgs, Format};
use crate::fail::{Failure, Outcome, code};
use crate::files::{note, print_json, required, text};
use crate::tables::print_fitted;

pub(crate) fn explain(args: &ExplainArgs) -> Outcome {
    let scenario = Scenario::from_toml(&args.file, &required(&args.file)?)?;
    for w in &scenario.warnings {
        note(&format!("warning: {w}"));
    }
    let explanation = run(&scenario, &|name| device(&args.file, name)).map_err(failure)?;
    match args.format {
        Format::Json => print_json(&explanation),
        Format::Table => print_fitted(&explanation.to_string()),
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
