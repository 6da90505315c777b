//! `iosched validate EXPERIMENT --against emulated`: compares the simulator with the running kernel.

use iosched_backends::validate::{rank_agreement, render, rows};
use iosched_experiment::{BackendKind, Experiment, Place, Record, Status};
use iosched_results::stats::{Observation, summarize};
use serde_json::json;

use crate::args::{DbArgs, Format, LookArgs, RunArgs, RunFormat, ValidateArgs};
use crate::choose::{Chosen, plan};
use crate::fail::{Failure, Outcome};
use crate::files::{print, print_json, required};
use crate::run;

/// Schedulers that differ by less than this share count as equal.
const TIE: f64 = 0.02;

pub(super) fn validate(args: &ValidateArgs, backend: &str) -> Outcome {
    let file = args.dir.display().to_string();
    let definition = required(&file)?;
    let experiment = Experiment::from_toml(&file, &definition)?;
    let place = Place::option("--against", backend, backend);
    let kind = iosched_experiment::file::backend(backend, &place)?;
    if kind.is_simulated() {
        return Err(Failure::with_help(
            "the simulator cannot be its own measure",
            "--against emulated",
        ));
    }
    let run = |backend: BackendKind, name: String| -> Outcome<Vec<Record>> {
        let experiment = Experiment { backend, name, ..experiment.clone() };
        let trials = plan(&experiment)?;
        let chosen = Chosen { experiment, definition: definition.clone() };
        Ok(run::one(&options(args), &chosen, &trials)?.records)
    };
    // Two experiments of two names, so that an interrupted one is found again.
    let sim = run(BackendKind::Sim, format!("{}-sim", experiment.name))?;
    let kernel = run(kind, experiment.name.clone())?;
    let unusable: Vec<&Record> = kernel.iter().filter(|r| r.status != Status::Complete).collect();
    let rows = rows(&sim, &kernel);
    let interval = |values: &[f64]| {
        let values: Vec<Observation> = values.iter().copied().map(Observation::from).collect();
        let s = summarize(&values, 1);
        s.ci.map_or((s.min, s.max), |c| (c.low, c.high))
    };
    let agreement = rank_agreement(&rows, TIE);
    if args.format == Format::Json {
        let all: Vec<_> = rows
            .iter()
            .map(|r| {
                json!({
                    "device": r.device, "workload": r.workload, "scheduler": r.scheduler,
                    "job": r.job, "figure": r.figure, "ours": r.sim, "ours_ci": interval(&r.sim),
                    "kernel": r.kernel, "kernel_ci": interval(&r.kernel),
                    "error_percent": r.error(),
                })
            })
            .collect();
        let agreement: Vec<_> =
            agreement.iter().map(|(name, tau)| json!({ "figure": name, "tau_b": tau })).collect();
        return print_json(&json!({
            "rows": all, "rank_agreement": agreement, "unusable_runs": unusable.len(),
        }));
    }
    let mut text = render(&rows, &interval);
    text.push_str("\nRank agreement of the schedulers (Kendall's tau-b, ties within 2 %)\n");
    for (name, tau) in agreement {
        let tau = tau.map_or("all equal on one side".into(), |t| format!("{t:+.2}"));
        text.push_str(&format!("  {name}: {tau}\n"));
    }
    if !unusable.is_empty() {
        text.push_str(&format!(
            "\n{} runs of the kernel are not usable, such as:\n",
            unusable.len()
        ));
        for r in unusable.iter().take(3) {
            if let Status::Invalid(why) | Status::Failed(why) = &r.status {
                text.push_str(&format!("  {} #{}: {why}\n", r.trial.scheduler, r.trial.repetition));
            }
        }
    }
    print(&text)
}

/// The options of a run that stores its results like any other.
fn options(args: &ValidateArgs) -> RunArgs {
    RunArgs {
        replay: None,
        beside: None,
        disk: None,
        recorded_scheduler: None,
        record_trace: None,
        name: None,
        full: false,
        files: Vec::new(),
        device: Vec::new(),
        scheduler: Vec::new(),
        kernel: Vec::new(),
        runs: None,
        seed: None,
        param: Vec::new(),
        quick: false,
        set: Vec::new(),
        tunable: Vec::new(),
        queue: Vec::new(),
        device_state: None,
        program: None,
        iozone: None,
        tree: None,
        filesystem: None,
        fill: None,
        memory: None,
        sysctl: Vec::new(),
        cpus: None,
        backend: None,
        jobs: args.jobs,
        format: RunFormat::Table,
        output: None,
        html: None,
        db: DbArgs { db: std::env::var_os("IOSCHED_DB").map(Into::into) },
        no_store: false,
        budget: None,
        warm_up: None,
        look: LookArgs { tables: true, wide: false, no_color: true },
        quiet: false,
        destroy_data: None,
        overwrite_file: None,
        size: None,
        dry_run: false,
        calls: None,
        trace: false,
        no_warm_up: false,
        allow_noise: false,
        until_ci: None,
        max_runs: None,
        max_time: None,
        steady_state: false,
        state: args.state.clone(),
    }
}
