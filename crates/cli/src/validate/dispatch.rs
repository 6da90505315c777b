//! `iosched validate --dispatch`: command by command.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use flate2::read::MultiGzDecoder;
use iosched_report::terminal::{Align, Cell, Grid};
use iosched_sim::validate::{Case, LoggedCommand, Parting, beside_log, parse_dispatch_log};
use serde::Serialize;

use super::name;
use crate::args::ValidateArgs;
use crate::fail::{Failure, Outcome, code};

/// Largest log after decompression.
const MAX_LOG: u64 = 1 << 30;

/// One case: where the streams part.
#[derive(Serialize)]
pub(super) struct Difference {
    case: String,
    /// Commands compared.
    commands: usize,
    /// Index of the first command that differs.
    first: Option<usize>,
    /// Where our tag maps were first searched. The log does not record this for the kernel's.
    tag_start: u32,
    kernel: Option<LoggedCommand>,
    ours: Option<LoggedCommand>,
}

pub(super) fn compare(args: &ValidateArgs, cases: &[Case<'_>]) -> Outcome {
    let dir = args.dir.join("dispatch");
    let mut logged = Vec::new();
    for case in cases.iter().filter(|c| c.trials.is_ok()) {
        let path = dir.join(format!("{}.{}.{}.log.gz", case.device, case.job, case.scheduler));
        if path.is_file() {
            logged.push((case, path));
        }
    }
    if logged.is_empty() {
        let message = format!("{} has no log of these cases", dir.display());
        return Err(Failure::with_help(message, "logs are named DEVICE.JOB.SCHEDULER.log.gz"));
    }
    super::each_log(args, &logged, |(case, path)| one(case, path), table)
}

fn one(case: &Case<'_>, path: &Path) -> Outcome<Difference> {
    let (file, text) = unpacked(path)?;
    let kernel = parse_dispatch_log(&file, &text)?;
    let kernel = case.runs.first().map_or_else(Vec::new, |run| run.before_bug(kernel));
    let trials = case.trials.as_ref().map_err(Failure::input)?;
    if trials.is_empty() {
        return Err(Failure::input("the case has no run"));
    }
    let parting = beside_log(trials, &kernel)
        .map_err(|e| Failure::new(code::FAILED, format!("{}: {e}", name(case))))?;
    Ok(Difference::of(name(case), &kernel, &parting))
}

/// Name and text of a log.
pub(super) fn unpacked(path: &Path) -> Outcome<(String, String)> {
    let file = path.display().to_string();
    let raw = std::fs::File::open(path).with_context(|| format!("opening {file}"))?;
    let mut text = String::new();
    MultiGzDecoder::new(raw)
        .take(MAX_LOG)
        .read_to_string(&mut text)
        .with_context(|| format!("reading {file}"))?;
    Ok((file, text))
}

impl Difference {
    pub(super) fn of(case: String, kernel: &[LoggedCommand], parting: &Parting) -> Difference {
        let get = |list: &[LoggedCommand]| parting.first.and_then(|i| list.get(i)).copied();
        Difference {
            case,
            commands: kernel.len().min(parting.ours.len()),
            first: parting.first,
            tag_start: parting.tag_start,
            kernel: get(kernel),
            ours: get(&parting.ours),
        }
    }
}

pub(super) fn table(differences: &[Difference]) -> String {
    let show = |c: Option<LoggedCommand>| {
        c.map_or(String::new(), |c| format!("{} {}+{}", c.op.letter(), c.offset, c.len))
    };
    let mut grid = Grid::new()
        .column("case", Align::Left)
        .column("commands", Align::Right)
        .column("first that differs", Align::Right)
        .column("tags from", Align::Right)
        .column("kernel", Align::Left)
        .column("ours", Align::Left);
    for d in differences {
        grid.row(vec![
            Cell::new(&d.case),
            Cell::new(d.commands.to_string()),
            Cell::new(d.first.map_or("none".into(), |i| i.to_string())),
            Cell::new(d.tag_start.to_string()),
            Cell::new(show(d.kernel)),
            Cell::new(show(d.ours)),
        ]);
    }
    format!("{}\n{}", grid.render(120, false), agreement(differences))
}

/// How many logs agree, in all and by scheduler.
fn agreement(differences: &[Difference]) -> String {
    let mut by: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for d in differences {
        let scheduler = d.case.rsplit('/').next().unwrap_or_default();
        let [same, all] = by.entry(scheduler).or_default();
        *same += usize::from(d.first.is_none());
        *all += 1;
    }
    let [same, all] = [0, 1].map(|i| by.values().map(|n| n[i]).sum::<usize>());
    let each: Vec<String> =
        by.iter().map(|(scheduler, [same, all])| format!("{scheduler} {same} of {all}")).collect();
    format!("{same} of {all} logs agree to the last command: {}\n", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logs_that_agree_are_counted() {
        let log = |case: &str, first| Difference {
            case: case.into(),
            commands: 9,
            first,
            tag_start: 0,
            kernel: None,
            ours: None,
        };
        let all = [log("d/j/bfq", None), log("d/k/bfq", Some(3)), log("d/j/none", None)];
        let table = table(&all);
        assert!(
            table.ends_with("2 of 3 logs agree to the last command: bfq 1 of 2, none 1 of 1\n"),
            "{table}"
        );
    }
}
