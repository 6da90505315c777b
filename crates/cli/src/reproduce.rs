//! `iosched reproduce`: a published comparison, run again.

use iosched_experiment::{Experiment, Record, Trial};
use iosched_lab::reproduce::{Reproduction, names};
use iosched_lab::{Job, Options};
use iosched_results::published;
use iosched_types::nearest::did_you_mean;

use crate::args::{Format, ReproduceArgs};
use crate::choose;
use crate::fail::{Failure, Outcome};
use crate::files::{note, print, print_json, writable, write};
use crate::live;
use crate::progress::Watching;
use crate::tables::{columns, print_fitted};

/// Runs a comparison again, or lists them.
pub(crate) fn reproduce(args: &ReproduceArgs) -> Outcome {
    let Some(name) = &args.name else { return list(args.format) };
    if !names().contains(&name.as_str()) {
        let near = did_you_mean(name, names());
        let all = format!("known are {}", names().join(", "));
        let help = if near.is_empty() { all } else { near };
        return Err(Failure::with_help(format!("no published comparison \"{name}\""), help));
    }
    if let Some(page) = &args.html {
        writable(page)?;
    }
    let r = Reproduction::load(name)?;
    let mut records = Vec::new();
    let mut end = Ok(());
    for mut e in r.experiments(args.quick)? {
        if let Some(runs) = args.runs {
            e.runs = runs;
        }
        let trials = choose::plan(&e)?;
        end = run(args, &r, &e, &trials, &mut records);
        if end.is_err() {
            note("what was run until here is laid beside what was published");
            break;
        }
    }
    let mut out = r.judge(&records, args.quick);
    out.interrupted = end.is_err();
    if let Some(page) = &args.html {
        write(page, &out.page(&r.published.description))?;
        note(&format!("{} is written", page.display()));
    }
    match args.format {
        Format::Json => print_json(&serde_json::to_value(&out).unwrap_or_default())?,
        Format::Table => print(&out.text(columns()))?,
    }
    end
}

/// The trials of an experiment, and those that scatter once more.
fn run(
    args: &ReproduceArgs,
    r: &Reproduction,
    e: &Experiment,
    trials: &[Trial],
    records: &mut Vec<Record>,
) -> Outcome {
    let options = Options {
        threads: args.jobs,
        interrupt: live::ending()?,
        machine: None,
        warm_up: false,
        allow_noise: false,
    };
    let watch = Watching::new(args.quiet);
    let once = |trials: &[Trial], records: &mut Vec<Record>| -> Outcome {
        let job = Job { experiment: e, trials, storing: None };
        // Kept as they come: an interrupted run is laid beside what was published as far as it is.
        let keep = |record: &mut Record| {
            records.push(record.clone());
            Ok::<(), Failure>(())
        };
        iosched_lab::run(job, &options, &watch, keep).map(drop)
    };
    once(trials, records)?;
    let more = r.unsettled(trials, records, e.seed);
    if more.is_empty() { Ok(()) } else { once(&more, records) }
}

fn list(format: Format) -> Outcome {
    let all: Vec<(&str, String)> = names()
        .into_iter()
        .map(|n| (n, published::load(n).map_or_else(|e| e.to_string(), |c| c.description)))
        .collect();
    if format == Format::Json {
        let one = |(n, d): &(&str, String)| serde_json::json!({ "name": n, "description": d });
        return print_json(&serde_json::Value::Array(all.iter().map(one).collect()));
    }
    let lines: Vec<String> = all.iter().map(|(n, d)| format!("{n}\n  {d}\n")).collect();
    print_fitted(&lines.concat())
}
