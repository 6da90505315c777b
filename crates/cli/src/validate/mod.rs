//! `iosched validate`: compares the simulator with the real kernel.

mod bios;
mod dispatch;
mod files;
mod machine;
mod measured;
mod starts;
mod table;
mod totals;

use std::path::Path;

use anyhow::Context;
use iosched_experiment::{Record, Status, Trial};
use iosched_sim::validate::{
    Case, ProgramCase, Row, TruthFolder, beside_programs, compare, plan, plan_programs,
};
use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

use crate::args::{Format, ValidateArgs};
use crate::fail::{Failure, Outcome, code};
use crate::files::{note, print, print_json, required};
use crate::progress;
use crate::tables::print_fitted;
use serde::Serialize;

pub(crate) fn validate(args: &ValidateArgs) -> Outcome {
    if let Some(backend) = &args.against {
        return machine::validate(args, backend);
    }
    if args.dir.is_file() {
        return measured::validate(args);
    }
    if files::is_one(&args.dir) {
        return files::validate(args);
    }
    if starts::is_one(&args.dir) {
        return starts::validate(args);
    }
    if args.bios {
        return Err(Failure::with_help(
            "--bios compares programs on files",
            "leave --bios out, or give a folder whose rows name a file system and that has traces/",
        ));
    }
    let folder = read(&args.dir)?;
    let (cases, programs) = chosen(args, &folder)?;
    if args.dispatch {
        return dispatch::compare(args, &cases);
    }
    let mut result = Compared::default();
    let runs: Vec<&Case<'_>> = cases.iter().filter(|c| c.trials.is_ok()).collect();
    let bar = progress::bar(runs.len(), false);
    iosched_lab::in_order::<_, _, Failure>(
        &runs,
        args.jobs,
        |case| {
            let rows = rows(case);
            bar.set_message(name(case));
            bar.inc(iosched_lab::STEPS);
            rows
        },
        |i, outcome| {
            match outcome {
                Ok(rows) => result.rows.extend(rows),
                Err(why) => result.failed.push((name(runs[i]), why)),
            }
            Ok(())
        },
    )?;
    bar.finish_and_clear();
    for case in &cases {
        if let Err(why) = &case.trials {
            result.skipped.push((name(case), why.clone()));
        }
    }
    result.add(run_all(args, &programs, ProgramCase::name, trial_of, |c, r| {
        beside_programs(&c.run, r)
    })?);
    finish(args, result)
}

/// Compares each case that has a log, and prints how far they agree.
fn each_log<C: Sync, D: Serialize + Send>(
    args: &ValidateArgs,
    logged: &[C],
    one: impl Fn(&C) -> Outcome<D> + Sync,
    table: impl Fn(&[D]) -> String,
) -> Outcome {
    let (mut differences, mut failed) = (Vec::new(), Vec::new());
    iosched_lab::in_order::<_, _, Failure>(logged, args.jobs, one, |_, d: Outcome<D>| {
        match d {
            Ok(d) => differences.push(d),
            Err(e) => failed.push(e),
        }
        Ok(())
    })?;
    match args.format {
        Format::Json => print_json(&differences)?,
        Format::Table => print(&table(&differences))?,
    }
    failed.into_iter().next().map_or(Ok(()), Err)
}

/// Simulates each case that has a trial, and lays the figures beside the kernel's.
fn run_all<C: Sync>(
    args: &ValidateArgs,
    cases: &[C],
    name: impl Fn(&C) -> String + Sync,
    trial: impl Fn(&C) -> Result<Trial, String> + Sync,
    beside: impl Fn(&C, &Record) -> Vec<Row> + Sync,
) -> Outcome<Compared> {
    let mut result = Compared::default();
    let mut runs = Vec::new();
    for case in cases {
        match trial(case) {
            Ok(trial) => runs.push((case, trial)),
            Err(why) => result.skipped.push((name(case), why)),
        }
    }
    let bar = progress::bar(runs.len(), false);
    iosched_lab::in_order::<_, _, Failure>(
        &runs,
        args.jobs,
        |(case, trial)| {
            let record = iosched_sim::simulate(trial).map_err(|e| e.to_string());
            let record = record.and_then(|r| match r.status {
                Status::Failed(why) => Err(why),
                _ => Ok(r),
            });
            bar.set_message(name(case));
            bar.inc(iosched_lab::STEPS);
            record.map(|r| beside(case, &r))
        },
        |i, outcome: Result<Vec<Row>, String>| {
            match outcome {
                Ok(rows) => result.rows.extend(rows),
                Err(why) => result.failed.push((name(runs[i].0), why)),
            }
            Ok(())
        },
    )?;
    bar.finish_and_clear();
    Ok(result)
}

/// Prints what was compared; failed runs are an error.
fn finish(args: &ValidateArgs, result: Compared) -> Outcome {
    match args.format {
        Format::Json => {
            print_json(&result.rows)?;
            result.skipped.iter().for_each(|(n, why)| note(&format!("skipped {n}: {why}")));
        }
        Format::Table => print_fitted(&table::render(&result, args.rows))?,
    }
    if result.failed.is_empty() {
        return Ok(());
    }
    let messages = result.failed.iter().map(|(n, why)| format!("{n}: {why}")).collect();
    Err(Failure { code: code::FAILED, messages })
}

/// What a validation yields.
#[derive(Default)]
struct Compared {
    rows: Vec<Row>,
    /// Cases that need something missing, with the reason.
    skipped: Vec<(String, String)>,
    failed: Vec<(String, String)>,
}

impl Compared {
    fn add(&mut self, others: Compared) {
        self.rows.extend(others.rows);
        self.skipped.extend(others.skipped);
        self.failed.extend(others.failed);
    }
}

fn name(case: &Case<'_>) -> String {
    format!("{}/{}/{}", case.device, case.job, case.scheduler)
}

fn rows(case: &Case<'_>) -> Result<Vec<Row>, String> {
    let trials = case.trials.as_ref().map_err(String::clone)?;
    let records = trials.iter().map(iosched_sim::simulate).collect::<Result<Vec<_>, _>>();
    Ok(compare(case, &records.map_err(|e| e.to_string())?))
}

/// Reads a truth folder.
fn read(dir: &Path) -> Outcome<TruthFolder> {
    let name = |n: &str| dir.join(n).display().to_string();
    if !dir.is_dir() {
        let d = Diagnostic::file(dir.display().to_string(), "no such folder");
        return Err(d
            .with_help("it has devices.toml, jobs/ and results.json, as data/truth")
            .into());
    }
    let (devices, results) = (name("devices.toml"), name("results.json"));
    let (devices_text, results_text) = (required(&devices)?, required(&results)?);
    let jobs = all_in(&dir.join("jobs"), "fio")?;
    let taken = optional(&name("truth.toml"))?;
    let taken = taken.as_ref().map(|(file, text)| (file.as_str(), text.as_str()));
    Ok(TruthFolder::parse((&devices, &devices_text), jobs, (&results, &results_text), taken)?)
}

/// Name and text of a file that a folder need not have.
fn optional(file: &str) -> Outcome<Option<(String, String)>> {
    let there = Path::new(file).is_file();
    there.then(|| required(file).map(|text| (file.to_string(), text))).transpose()
}

/// Names and texts of a folder's files of one kind, by name.
fn all_in(folder: &Path, kind: &str) -> Outcome<Vec<(String, String)>> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("reading {}", folder.display()))?.path();
        if path.extension().is_some_and(|e| e == kind) {
            paths.push(path.display().to_string());
        }
    }
    paths.sort();
    paths.into_iter().map(|p| required(&p).map(|text| (p, text))).collect()
}

/// Refuses a name that no measurement has.
fn all_known(what: &str, wanted: &[String], all: impl Iterator<Item = String>) -> Outcome {
    let mut known: Vec<String> = all.collect();
    known.sort_unstable();
    known.dedup();
    let Some(w) = wanted.iter().find(|w| !known.contains(w)) else { return Ok(()) };
    let near = did_you_mean(w, known.iter().map(String::as_str));
    let help = if near.is_empty() { format!("there are {}", known.join(", ")) } else { near };
    Err(Failure::with_help(format!("no measurement has the {what} \"{w}\""), help))
}

/// The programs that ran on the devices of a folder, where there is a list of them.
fn programs(dir: &Path, folder: &TruthFolder) -> Outcome<Vec<ProgramCase>> {
    let file = optional(&dir.join("programs.json").display().to_string())?;
    let Some((file, text)) = file else { return Ok(Vec::new()) };
    Ok(plan_programs(folder, (&file, &text))?)
}

fn trial_of(case: &ProgramCase) -> Result<Trial, String> {
    case.trial.as_deref().cloned().map_err(String::clone)
}

/// The jobs and programs that the options leave.
fn chosen<'f>(
    args: &ValidateArgs,
    folder: &'f TruthFolder,
) -> Outcome<(Vec<Case<'f>>, Vec<ProgramCase>)> {
    let (mut cases, mut programs) = (plan(folder), programs(&args.dir, folder)?);
    type Get = for<'a, 'b> fn(&'b Case<'a>) -> &'a str;
    type OfProgram = fn(&ProgramCase) -> &str;
    let filters: [(&str, &Vec<String>, Get, OfProgram); 3] = [
        ("scheduler", &args.scheduler, |c| c.scheduler, |p| &p.run.scheduler),
        ("device", &args.device, |c| c.device, |p| &p.run.device),
        ("job", &args.job, |c| c.job, |p| &p.run.job),
    ];
    for (what, wanted, get, of_program) in filters {
        let names = cases.iter().map(|c| get(c).to_string());
        all_known(what, wanted, names.chain(programs.iter().map(|p| of_program(p).to_string())))?;
        let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
        cases.retain(|c| is_wanted(get(c)));
        programs.retain(|p| is_wanted(of_program(p)));
    }
    Ok((cases, programs))
}
