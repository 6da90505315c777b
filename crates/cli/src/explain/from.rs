//! `iosched explain --from RESULT`: two schedulers in a window of a stored trial, which runs again with reasons.

use std::collections::BTreeSet;

use iosched_experiment::until::{TIME_HELP, parse_time};
use iosched_experiment::{Place, Record, Status, Trial, warm_up};
use iosched_report::steps;
use iosched_results::answer::{short_names, wrap};
use iosched_results::render::printable;
use iosched_results::verdict::{Advice, SHORTENED, Verdict, WARMED_UP, verdicts_of};
use iosched_sim::window::{self, Side, Window};
use iosched_types::Nanos;
use iosched_types::nearest::did_you_mean;
use serde::Serialize;

use super::lane;
use crate::args::{ExplainArgs, Format};
use crate::choose::{again, planned};
use crate::fail::{Failure, Outcome, code};
use crate::files::{note, print_json, write};
use crate::results::one;
use crate::store::open_read_only;
use crate::tables::print_fitted;

/// The document of `--format json`.
#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    device: &'a str,
    workload: &'a str,
    repetition: u32,
    #[serde(flatten)]
    window: Window,
    sides: &'a [Side],
}

/// A scheduler in the chosen trial.
struct Ready {
    name: String,
    trial: Trial,
    /// How long after its start the load is measured.
    measured: Nanos,
    stored: Record,
}

pub(super) fn from(args: &ExplainArgs, name: &str) -> Outcome {
    let asked: Vec<&String> = args.file.iter().chain(&args.schedulers).collect();
    if !(2..=4).contains(&asked.len()) {
        let help = format!("for example: iosched explain --from {name} bfq mq-deadline");
        return Err(Failure::with_help("--from needs two to four schedulers", help));
    }
    let store = open_read_only(&args.db)?;
    let id = one(&store, name)?;
    let records = store.records(id)?;
    let chosen = choose(args, &records, &asked)?;
    let definition = store.definition(id)?;
    drop(store);
    let ready = ready(name, &definition, &records, chosen)?;
    let (window, sides) = sides(args, &ready)?;
    told(args, name, &ready, window, &sides)
}

/// `bfq` of `bfq@6.12 low_latency=0`.
fn family(scheduler: &str) -> &str {
    scheduler.split(['@', ' ']).next().unwrap_or(scheduler)
}

/// The records of one repetition on one device under the schedulers that were asked for, in their order.
fn choose<'a>(
    args: &ExplainArgs,
    records: &'a [Record],
    asked: &[&String],
) -> Outcome<Vec<(String, &'a Record)>> {
    let here: Vec<&Record> = records.iter().filter(|r| r.status == Status::Complete).collect();
    known("--device", args.device.as_deref(), here.iter().map(|r| &*r.trial.device).collect())?;
    known(
        "--workload",
        args.workload.as_deref(),
        here.iter().map(|r| &*r.trial.workload).collect(),
    )?;
    let all: BTreeSet<&str> = here.iter().map(|r| &*r.trial.scheduler).collect();
    let labels = asked.iter().map(|name| label(name, &all)).collect::<Outcome<Vec<&str>>>()?;
    let fits = |r: &&Record, label: &str| {
        let t = &r.trial;
        t.scheduler == label
            && args.device.as_ref().is_none_or(|d| *d == t.device)
            && args.workload.as_ref().is_none_or(|w| *w == t.workload)
            && args.run.is_none_or(|n| n == t.repetition)
    };
    let beside = |first: &Record| -> Option<Vec<&'a Record>> {
        let same = |r: &&Record| {
            let (a, b) = (&r.trial, &first.trial);
            (&a.device, &a.workload, a.repetition) == (&b.device, &b.workload, b.repetition)
        };
        labels.iter().map(|l| here.iter().copied().find(|r| fits(r, l) && same(r))).collect()
    };
    let firsts = here.iter().filter(|r| fits(r, labels[0]));
    let mut trials: Vec<Vec<&Record>> = firsts.filter_map(|r| beside(r)).collect();
    if let Some(place) =
        deciding(records).filter(|_| args.device.is_none() || args.workload.is_none())
    {
        let at = |v: &[&Record]| {
            let t = &v[0].trial;
            (t.device != place.0, t.workload != place.1)
        };
        trials.sort_by_key(|v| at(v));
    }
    let Some(trial) = trials.into_iter().next() else {
        let message = format!(
            "no trial of this result ran under both {}",
            asked.iter().map(|a| a.as_str()).collect::<Vec<_>>().join(" and ")
        );
        return Err(Failure::with_help(message, "see `iosched results show NAME --trials`"));
    };
    if let Some(live) = trial.iter().find(|r| !r.backend.traits().deterministic) {
        let message = format!(
            "this result is {}: only simulated trials run again exactly as they were",
            live.backend.traits().words
        );
        return Err(Failure::with_help(message, "run it with --backend sim, and explain that"));
    }
    Ok(asked.iter().map(|a| a.to_string()).zip(trial).collect())
}

/// Whether the result has what an option names.
fn known(option: &str, wanted: Option<&str>, all: BTreeSet<&str>) -> Outcome {
    let Some(wanted) = wanted.filter(|w| !all.contains(w)) else { return Ok(()) };
    let list = all.iter().copied().collect::<Vec<_>>().join(", ");
    let near = did_you_mean(wanted, all);
    let help = if near.is_empty() { format!("it has {list}") } else { near };
    Err(Failure::with_help(format!("{option} {wanted}: the result has no such trial"), help))
}

/// A scheduler of the result by its name, or its family where that has one version here.
fn label<'a>(name: &str, all: &BTreeSet<&'a str>) -> Outcome<&'a str> {
    let short = short_names(all.iter().copied());
    let called = short.iter().find(|(_, short)| *short == name).map(|(own, _)| own);
    let of_family: Vec<&str> = all.iter().copied().filter(|s| family(s) == name).collect();
    match (all.get(name).or(called), &of_family[..]) {
        (Some(exact), _) => Ok(exact),
        (None, [one]) => Ok(one),
        (None, []) => {
            let list = all.iter().copied().collect::<Vec<_>>().join(", ");
            let message = format!("the result has no scheduler \"{}\"", printable(name));
            Err(Failure::with_help(message, format!("it has {list}")))
        }
        (None, several) => {
            let message = format!("{name} was run in {} versions", several.len());
            let list: Vec<String> = several.iter().map(|s| crate::asked::quoted(s)).collect();
            Err(Failure::with_help(message, format!("name one: {}", list.join(", "))))
        }
    }
}

/// Device and workload of the ask that decides.
fn deciding(records: &[Record]) -> Option<(String, String)> {
    let all = verdicts_of(records);
    let first: &Verdict = all.iter().find(|v| v.verdict == Advice::Use).or(all.first())?;
    let other = first.other.iter().flat_map(|o| o.gains.iter().chain(&o.prices));
    let point = first.gains.iter().chain(other).chain(&first.demands).next();
    Some((first.device.clone(), point.map_or_else(String::new, |p| p.workload.clone())))
}

/// The trials as they were run.
fn ready(
    name: &str,
    definition: &str,
    records: &[Record],
    chosen: Vec<(String, &Record)>,
) -> Outcome<Vec<Ready>> {
    let several = records.iter().any(|r| r.trial.repetition > 1);
    let mut e = again(name, definition, several)?;
    let trials = planned(&mut e, None)?;
    let of = |(name, r): (String, &Record)| {
        let same = |t: &&Trial| {
            let (a, b) = (&t.id, &r.trial);
            (&a.device, &a.scheduler, &a.workload, &a.kernel)
                == (&b.device, &b.scheduler, &b.workload, &b.kernel)
        };
        let Some(first) = trials.iter().filter(|t| t.id.repetition == 1).find(same) else {
            let message = format!("{} is not in the plan of this result", r.trial.scheduler);
            return Err(Failure::with_help(message, "run it again with this version of iosched"));
        };
        let mut trial = match r.trial.repetition {
            1 => first.clone(),
            n => first.at_repetition(n, e.seed, true),
        };
        let mut measured = 0;
        let warmed = r.provenance.get(WARMED_UP).and_then(|ms| ms.parse::<Nanos>().ok());
        if let Some((ms, jobs)) = warmed.zip(trial.work.jobs_mut()) {
            measured = warm_up::begin_measuring(jobs, ms * 1_000_000).from.unwrap_or(0);
            if r.provenance.contains_key(SHORTENED) {
                let most = r.jobs.iter().map(|j| j.runtime).max();
                for j in &mut jobs.jobs {
                    j.runtime = j.runtime.map(|own| own.min(most.unwrap_or(own)));
                }
            }
        }
        Ok(Ready { name, trial, measured, stored: r.clone() })
    };
    chosen.into_iter().map(of).collect()
}

/// Whether a run moved as much as the stored one, job by job.
fn same(again: &Record, stored: &Record) -> bool {
    let of = |r: &Record| -> Vec<(u64, u64)> {
        r.jobs.iter().map(|j| (j.read.ios, j.write.ios)).collect()
    };
    stored.provenance.contains_key(SHORTENED) || of(again) == of(stored)
}

/// The window, and what each scheduler did in it.
fn sides(args: &ExplainArgs, ready: &[Ready]) -> Outcome<(Window, Vec<Side>)> {
    let time = |option: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => match parse_time(text).or((text == "0").then_some(0)) {
            Some(t) => Ok(Some(t)),
            None => {
                let place = Place::option(option, text, text);
                let d = place.error(format!("\"{text}\" is no time"));
                Err(Failure::from(d.with_help(TIME_HELP)))
            }
        },
    };
    let (at, long) = (time("--at", &args.at)?, time("--window", &args.window)?);
    let failed = |e: iosched_sim::SimError| Failure::new(code::FAILED, e);
    let mut seen = Vec::new();
    for r in ready {
        let record = window::survey(&r.trial).map_err(failed)?;
        if !same(&record, &r.stored) {
            note(&format!(
                "warning: {} does not run as it did when this result was stored: another version of iosched, or of a file, made it",
                r.name
            ));
        }
        seen.push((record.seen.unwrap_or_default(), r.measured));
    }
    let [a, b] = [0, 1].map(|i| (&*seen[i].0, seen[i].1));
    let found = match at {
        Some(from_ns) => {
            let long = long.unwrap_or_else(|| window::length(&[a, b]));
            Some(Window { from_ns, to_ns: from_ns.saturating_add(long.max(1)) })
        }
        None => window::widest(a, b, long),
    };
    let Some(w) = found else {
        return Err(Failure::input(
            "no request was done in these trials: there is nothing to show",
        ));
    };
    let all = ready.iter().zip(&seen);
    let all = all.map(|(r, (seen, at))| window::side(&r.trial, (seen, *at), w, &r.name));
    let sides = all.collect::<Result<Vec<Side>, _>>().map_err(failed)?;
    if sides.iter().all(|s| s.explanation.requests.is_empty()) {
        let message = format!("there is no request from {w} on");
        return Err(Failure::with_help(message, "leave out --at to see where the two differ most"));
    }
    Ok((w, sides))
}

fn told(
    args: &ExplainArgs,
    name: &str,
    ready: &[Ready],
    window: Window,
    sides: &[Side],
) -> Outcome {
    let t = &ready[0].stored.trial;
    let found = if args.at.is_none() {
        format!(", where {} and {} differ most", sides[0].scheduler, sides[1].scheduler)
    } else {
        String::new()
    };
    let measured = if ready[0].measured > 0 { " after the warm-up" } else { "" };
    let title = format!(
        "{} on {}, Linux {}, run {}: {window}{measured}{found}",
        t.workload, t.device, t.kernel, t.repetition
    );
    if let Some(path) = &args.html {
        let lanes: Vec<_> = sides
            .iter()
            .map(|s| lane(&s.scheduler, &s.explanation, (window.from_ns, window.to_ns)))
            .collect();
        write(path, &steps(&title, &lanes))?;
        note(&format!("{}: open it in a browser", path.display()));
    }
    if args.format == Format::Json {
        return print_json(&Document {
            experiment: name,
            device: &t.device,
            workload: &t.workload,
            repetition: t.repetition,
            window,
            sides,
        });
    }
    let head = wrap("", 2, &printable(&title), 80);
    print_fitted(&format!("{head}\n{}", printable_lines(&window::text(sides, window))))
}

/// Names of jobs come from files: no line may hold what a terminal obeys.
fn printable_lines(text: &str) -> String {
    text.lines().map(|l| printable(l) + "\n").collect()
}
