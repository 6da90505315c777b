//! How often and from when on trials are measured.

use iosched_experiment::file::MAX_RUNS;
use iosched_experiment::until::{
    DEFAULT_BUDGET, DEFAULT_MAX_RUNS, MIN_RUNS, PERCENT_HELP, TIME_HELP, parse_percent, parse_time,
};
use iosched_experiment::{Experiment, Place, Trial, Until, WarmUp, warm_up};

use super::{plan_with, within};
use crate::args::RunArgs;
use crate::fail::{Failure, Outcome};

/// `--until-ci`, `--max-runs`, `--max-time`.
pub(super) fn until(args: &RunArgs, e: &mut Experiment) -> Outcome {
    if let Some(text) = &args.until_ci {
        let ci = parse_percent(text).ok_or_else(|| {
            let d =
                Place::option("--until-ci", text, text).error(format!("\"{text}\" is no share"));
            d.with_help(PERCENT_HELP)
        })?;
        let old = e.until.unwrap_or(Until { ci, max_runs: DEFAULT_MAX_RUNS, max_time: None });
        e.until = Some(Until { ci, ..old });
    }
    let Some(until) = &mut e.until else {
        if args.max_runs.is_some() || args.max_time.is_some() {
            return Err(Failure::with_help(
                "--max-runs and --max-time go with --until-ci",
                "add --until-ci 3%, or use --runs",
            ));
        }
        return Ok(());
    };
    e.runs = e.runs.max(MIN_RUNS);
    if let Some(n) = args.max_runs {
        until.max_runs = within("--max-runs", n, e.runs, MAX_RUNS)?;
    }
    until.max_runs = until.max_runs.max(e.runs);
    if let Some(text) = &args.max_time {
        let time = parse_time(text).ok_or_else(|| {
            let d = Place::option("--max-time", text, text).error(format!("\"{text}\" is no time"));
            d.with_help(TIME_HELP)
        })?;
        until.max_time = Some(time);
    }
    Ok(())
}

/// `--budget` and `--warm-up`, and what the simulator does where nothing is said.
pub(super) fn measuring(args: &RunArgs, e: &mut Experiment) -> Outcome {
    if let Some(text) = &args.budget {
        let time = parse_time(text).ok_or_else(|| {
            let d = Place::option("--budget", text, text).error(format!("\"{text}\" is no time"));
            d.with_help(TIME_HELP)
        })?;
        e.budget = Some(time);
        e.budget_said = true;
        e.until = None;
    }
    if let Some(text) = &args.warm_up {
        let warm_up = WarmUp::parse(text).ok_or_else(|| {
            let place = Place::option("--warm-up", text, text);
            place.error(format!("\"{text}\" is no warm-up")).with_help(warm_up::HELP)
        })?;
        e.warm_up = Some(warm_up);
    }
    let said = args.runs.is_some() || e.runs_said && args.budget.is_none();
    if said || e.until.is_some() {
        e.budget = None;
    } else if e.backend.is_simulated() {
        e.budget.get_or_insert(DEFAULT_BUDGET);
        e.runs = MIN_RUNS;
    }
    if e.backend.is_simulated() {
        e.warm_up.get_or_insert(WarmUp::Steady);
    }
    Ok(())
}

/// The trials of an experiment; `size` is that of a file to be made. A job that writes a log of all that it does runs once, from the
/// start, unless something else was said. So do block traces: nothing in a replay is drawn at random.
pub(crate) fn planned(e: &mut Experiment, size: Option<u64>) -> Outcome<Vec<Trial>> {
    let trials = plan_with(e, size)?;
    let logs = |t: &Trial| t.jobs().jobs.iter().any(|j| j.write_iolog.is_some());
    let once = trials.iter().any(logs) || trials.iter().all(|t| t.work.trace().is_some());
    if e.budget.is_none() || e.budget_said || !once {
        return Ok(trials);
    }
    e.budget = None;
    e.runs = 1;
    plan_with(e, size)
}
