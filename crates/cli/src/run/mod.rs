//! `iosched run`.

mod calls;
mod dry;
mod effect;
pub(crate) mod hints;
mod iolog;
mod page;
mod taped;

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use iosched_backends::Machine;
use iosched_experiment::record::HALVES_DIFFER;
use iosched_experiment::replay::DIFFERS;
use iosched_experiment::{Experiment, Record, Status, Trial, TrialId, Warning};
use iosched_lab::{Job, Options, Storing};
use iosched_report::terminal::{self, Look};
use iosched_results::answer::wrap;
use iosched_results::export::{Format, export};

use crate::args::{LookArgs, RunArgs, RunFormat};
use crate::choose::{Chosen, experiments, planned};
use crate::fail::{End, Failure, Outcome, code};
use crate::files::{deliver, note, writable};
use crate::progress::Watching;
use crate::tables::{self, prose};
use crate::{live, replay, store};

/// Runs everything that was asked for and prints the results.
pub(crate) fn run(args: &RunArgs) -> Outcome {
    if let Some(output) = &args.output {
        writable(output)?;
        not_an_input(output, &args.files)?;
    }
    page::check(args)?;
    let mut chosen = experiments(args)?;
    // Everything is planned before anything runs: a mistake in the last file costs no time.
    let size = live::leave(args)?.size;
    let plans = chosen.iter_mut().map(|c| planned(&mut c.experiment, size));
    let mut plans = plans.collect::<Outcome<Vec<_>>>()?;
    let traces = args.record_trace.as_deref().map(|f| taped::begin(f, &mut plans)).transpose()?;
    if !args.quiet {
        let all: BTreeSet<_> =
            chosen.iter().flat_map(|c| effect::none(args, &c.experiment)).collect();
        all.iter().for_each(|w| note(w));
        let modes = plans.iter().flat_map(|trials| replay::modes(trials));
        modes.for_each(|text| note(wrap("", 2, &text, prose(tables::columns())).trim_end()));
    }
    if args.dry_run {
        return dry::run(args, &chosen, &plans);
    }
    if let Some(file) = &args.calls {
        return calls::run(args, file, &chosen, &plans);
    }
    for (chosen, trials) in chosen.iter().zip(&plans) {
        if chosen.experiment.backend.is_simulated() {
            iolog::check(trials, several(&chosen.experiment, trials))?;
        }
    }
    let (mut all, mut stored) = (Vec::new(), Vec::new());
    for (chosen, trials) in chosen.iter().zip(&plans) {
        let ran = recorded(args, chosen, trials, traces.as_ref())?;
        all.extend(ran.records);
        stored.extend(ran.stored);
    }
    if !args.quiet {
        warn(&all, args.format == RunFormat::Table && !hints::shows_tables(args.look));
    }
    let title = chosen.first().map_or("results", |c| c.experiment.name.as_str());
    let page = page::of(args, title, (stored.len() == chosen.len()).then_some(&stored), &all);
    if args.format == RunFormat::Json && !args.full {
        all.iter_mut().for_each(without_pictures);
    }
    let noise = args.allow_noise;
    let to_file = args.output.is_some();
    let text = match args.format {
        RunFormat::Table if !args.quiet => {
            let report = terminal::report(&all, look_of(args.look, to_file, noise));
            let stored = stored.first().filter(|_| stored.len() == 1).map(|_| title);
            report.text + &hints::after((&report.verdicts, &all), args.look, stored)
        }
        format => render(title, &all, format, args.look, (to_file, noise))?,
    };
    deliver(args.output.as_deref(), &text)?;
    // What was measured is printed, whatever becomes of the page.
    page::write(args, page?.as_deref())?;
    verdict(&all, noise)
}

/// Refuses to write the results over what is run.
fn not_an_input(output: &Path, inputs: &[String]) -> Outcome {
    let Ok(written) = output.canonicalize() else { return Ok(()) };
    match inputs.iter().find(|i| Path::new(i).canonicalize().is_ok_and(|i| i == written)) {
        Some(i) => {
            let message = format!("the results would be written over {i}, which is to be run");
            Err(Failure::with_help(message, "name another file"))
        }
        None => Ok(()),
    }
}

fn several(e: &Experiment, trials: &[Trial]) -> bool {
    trials.len() > 1 || e.until.is_some()
}

/// What one experiment gave.
pub(crate) struct Ran {
    pub(crate) records: Vec<Record>,
    /// Its number in the results file, if it is there.
    stored: Option<i64>,
}

/// Runs one experiment.
pub(crate) fn one(args: &RunArgs, chosen: &Chosen, trials: &[Trial]) -> Outcome<Ran> {
    recorded(args, chosen, trials, None)
}

/// Runs one experiment whose trials become traces.
fn recorded(
    args: &RunArgs,
    chosen: &Chosen,
    trials: &[Trial],
    traces: Option<&taped::Traces<'_>>,
) -> Outcome<Ran> {
    let e = &chosen.experiment;
    let tools = live::tools(args)?;
    let storing = match args.no_store {
        true => None,
        false => store::begin(&args.db, chosen, trials, &tools)?,
    };
    let stored = storing.as_ref().map(Storing::experiment);
    let live = !e.backend.is_simulated();
    let interrupt = if live { live::interrupt()? } else { live::ending()? };
    let machine = Machine {
        state_dir: live::state_dir(&args.state),
        guardian: Some(live::guardian()?),
        leave: live::leave(args)?,
        trace: args.trace,
        tools,
        interrupt: interrupt.clone(),
    };
    let options = Options {
        threads: args.jobs,
        interrupt,
        machine: Some(Arc::new(machine)),
        warm_up: !args.no_warm_up,
        allow_noise: args.allow_noise,
    };
    let several = several(e, trials);
    let job = Job { experiment: e, trials, storing };
    let watch = Watching::new(args.quiet);
    let each = |record: &mut Record| {
        traces.map_or(Ok(()), |t| t.write(record)).map_err(End::Other)?;
        iolog::write(record, several).map_err(End::Other)
    };
    let records = iosched_lab::run(job, &options, &watch, each);
    Ok(Ran { records: records.map_err(|end| end.told(!args.no_store))?, stored })
}

/// Removes the parts that only pages draw. They are most of a record.
pub(crate) fn without_pictures(record: &mut Record) {
    record.series.clear();
    record.dispatches.clear();
}

/// How tables look.
pub(crate) fn look_of(look: LookArgs, to_file: bool, noise: bool) -> Look {
    let color = !to_file && colors(look);
    let tables = look.tables || look.wide;
    Look { tables, wide: look.wide, color, noise, columns: columns(to_file) }
}

/// The warning that a scheduler gave its processes one tag each.
const ONE_TAG: &str = "one-tag";

/// Records in a form.
pub(crate) fn render(
    title: &str,
    records: &[Record],
    format: RunFormat,
    look: LookArgs,
    (to_file, noise): (bool, bool),
) -> Outcome<String> {
    let format = match format {
        RunFormat::Table => {
            return Ok(terminal::report(records, look_of(look, to_file, noise)).text);
        }
        RunFormat::Json => Format::Json,
        RunFormat::Csv => Format::Csv,
        RunFormat::FioJson => Format::FioJson,
        RunFormat::Pts => Format::Pts,
        RunFormat::Markdown => Format::Markdown,
    };
    let mut text = export(title, records, format)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Columns of the terminal that shows the tables; 0 when a file takes them.
fn columns(to_file: bool) -> usize {
    if to_file || !std::io::stdout().is_terminal() { 0 } else { crate::tables::columns() }
}

/// Colours: on a terminal, unless the user does not want them (<https://no-color.org>).
fn colors(look: LookArgs) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    !look.no_color && !unwanted && std::io::stdout().is_terminal()
}

/// A message without its figures: those of the runs of one cell are one warning.
fn without_figures(message: &str) -> String {
    let figure = |w: &&str| w.parse::<f64>().is_err();
    message.split_whitespace().filter(figure).collect::<Vec<_>>().join(" ")
}

/// Each warning once, however many trials have it. Runs that have not settled share one warning, which verdicts say
/// themselves.
fn warn(records: &[Record], verdicts: bool) {
    let mut said = BTreeSet::new();
    let (unsettled, others): (Vec<_>, Vec<_>) = records
        .iter()
        .flat_map(|r| r.warnings.iter().map(move |w| (r, w)))
        .partition(|(_, w)| w.code == HALVES_DIFFER);
    // How a scheduler works is for those who look at its figures.
    // What a replay is worth is said on top of the result.
    let here = |w: &Warning| w.code != DIFFERS && (!verdicts || w.code != ONE_TAG);
    for (_, w) in others.into_iter().filter(|(_, w)| here(w)) {
        if said.insert(without_figures(&w.message)) {
            let advice =
                if w.advice.is_empty() { String::new() } else { format!(" ({})", w.advice) };
            let text = format!("warning: {}{advice}", w.message);
            note(wrap("", 2, &text, prose(tables::columns())).trim_end());
        }
    }
    if let Some(text) = halves(&unsettled).filter(|_| !verdicts) {
        note(wrap("", 2, &text, prose(tables::columns())).trim_end());
    }
}

/// In which runs the second half is unlike the first.
fn halves(unsettled: &[(&Record, &Warning)]) -> Option<String> {
    if let [(_, one)] = unsettled {
        return Some(format!("warning: {} ({})", one.message, one.advice));
    }
    let mut tests: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for (r, _) in unsettled {
        let t = &r.trial;
        tests.entry((&t.workload, &t.device)).or_default().insert(&t.scheduler);
    }
    let list: Vec<String> = tests
        .iter()
        .map(|((workload, device), under)| match under.iter().collect::<Vec<_>>()[..] {
            [one] => format!("{workload} on {device} ({one})"),
            _ => format!("{workload} on {device} ({} schedulers)", under.len()),
        })
        .collect();
    let advice = &unsettled.first()?.1.advice;
    Some(format!(
        "warning: the rate of a run changes by over 10 %, or will when a cache of its device is full, in {} ({advice}; --format json says by how much)",
        list.join(", ")
    ))
}

/// Exit code 4 when a trial has no usable figures. An invalid attempt that was repeated does not count. Neither do
/// invalid trials where they are allowed.
fn verdict(records: &[Record], noise: bool) -> Outcome {
    let complete: BTreeSet<&TrialId> =
        records.iter().filter(|r| r.status == Status::Complete).map(|r| &r.trial).collect();
    let mut messages = Vec::new();
    for r in records.iter().filter(|r| !complete.contains(&r.trial)) {
        let (word, why) = match &r.status {
            Status::Failed(why) => ("failed", why),
            Status::Invalid(_) if noise => continue,
            Status::Invalid(why) => ("is invalid", why),
            Status::Complete => continue,
        };
        let t = &r.trial;
        messages.push(format!(
            "trial {} / {} / {} #{} {word}: {why}",
            t.device, t.workload, t.scheduler, t.repetition
        ));
    }
    if messages.is_empty() { Ok(()) } else { Err(Failure { code: code::FAILED, messages }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(repetition: u32, status: Status) -> Record {
        let trial = TrialId { repetition, ..TrialId::default() };
        Record { trial, status, ..Record::default() }
    }

    #[test]
    fn a_failed_trial_gives_exit_code_four_and_its_reason() {
        let records = [record(1, Status::Complete), record(2, Status::Failed("no power".into()))];
        let failure = verdict(&records, true).unwrap_err();
        assert_eq!((failure.code, failure.messages.len()), (code::FAILED, 1));
        assert!(failure.messages[0].contains("#2 failed: no power"));
    }

    #[test]
    fn a_warning_of_other_figures_is_the_same_warning() {
        let of = |us: &str| format!("w on d, none: a sync of \"log 1\" takes {us} µs in the mean");
        assert_eq!(without_figures(&of("41.2")), without_figures(&of("40.9")));
        assert_ne!(
            without_figures(&of("41.2")),
            without_figures(&of("41.2").replace("none", "bfq"))
        );
    }

    #[test]
    fn an_invalid_attempt_that_was_repeated_does_not_count() {
        let again = [record(1, Status::Invalid("noisy".into())), record(1, Status::Complete)];
        assert!(verdict(&again, false).is_ok());
        assert_eq!(verdict(&again[..1], false).unwrap_err().code, code::FAILED);
        assert!(verdict(&again[..1], true).is_ok(), "the user allowed it");
    }
}
