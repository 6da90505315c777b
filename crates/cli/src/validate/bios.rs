//! `iosched validate DIR --bios`: the bios of programs on files beside a kernel's event logs.

use std::ops::Range;

use iosched_sim::validate::{BiosBeside, FileCase, LoggedBio, beside_bios, parse_bios};
use serde::Serialize;

use iosched_report::terminal::{Align, Cell, Grid};

use crate::args::ValidateArgs;
use crate::fail::{Failure, Outcome, code};
use crate::files::text;

/// How far a case agrees.
#[derive(Serialize)]
struct Difference {
    case: String,
    kernel_bios: usize,
    our_bios: usize,
    /// Index of the first that differs in class, flags, size or submitter.
    first: Option<usize>,
    /// Index of the first that lies otherwise from the one before it.
    first_distance: Option<usize>,
    /// That bio, on both sides.
    kernel: Option<String>,
    ours: Option<String>,
    /// What is around it, or everything: the kernel's and ours, with the time in microseconds.
    around: Vec<[String; 2]>,
}

pub(super) fn compare(args: &ValidateArgs, cases: &[FileCase<'_>]) -> Outcome {
    let dir = args.dir.join("traces");
    let path = |c: &FileCase<'_>| dir.join(format!("{}.log.gz", c.name()));
    let logged: Vec<&FileCase<'_>> = cases
        .iter()
        .filter(|c| c.trial.is_ok() && c.run.repetition == 1 && path(c).is_file())
        .collect();
    if logged.is_empty() {
        let message = format!("{} has no log of these cases", dir.display());
        return Err(Failure::with_help(message, "logs are named DEVICE.FS.JOB.SCHEDULER.log.gz"));
    }
    super::each_log(args, &logged, |case| one(args, case, &path(case).display().to_string()), table)
}

fn one(args: &ValidateArgs, case: &FileCase<'_>, path: &str) -> Outcome<Difference> {
    let log = text(path).map_err(|e| Failure::input(format!("{path}: {e}")))?;
    let trial = case.trial.as_ref().map_err(Failure::input)?;
    let beside: BiosBeside = beside_bios(trial, parse_bios(&log))
        .map_err(|e| Failure::new(code::FAILED, format!("{}: {e}", case.name())))?;
    let shown = beside.first.or(beside.first_distance);
    Ok(Difference {
        case: case.name(),
        kernel_bios: beside.kernel.len(),
        our_bios: beside.ours.len(),
        first: beside.first,
        first_distance: beside.first_distance,
        kernel: shown.and_then(|i| beside.kernel.get(i)).map(ToString::to_string),
        ours: shown.and_then(|i| beside.ours.get(i)).map(ToString::to_string),
        around: match shown {
            _ if args.rows => lines(&beside, 0..beside.kernel.len().max(beside.ours.len())),
            Some(i) => lines(&beside, i.saturating_sub(BEFORE)..i + AFTER),
            None => Vec::new(),
        },
    })
}

/// Time in microseconds and bio, the kernel's and ours.
fn lines(beside: &BiosBeside, which: Range<usize>) -> Vec<[String; 2]> {
    let show = |list: &[LoggedBio], i: usize| {
        list.get(i).map_or(String::new(), |b| format!("{:.3} {b}", b.at as f64 / 1e3))
    };
    which.map(|i| [show(&beside.kernel, i), show(&beside.ours, i)]).collect()
}

/// How many bios are shown before and after the one that differs.
const BEFORE: usize = 5;
const AFTER: usize = 20;

fn table(differences: &[Difference]) -> String {
    let mut grid = Grid::new()
        .column("case", Align::Left)
        .column("bios", Align::Right)
        .column("first that differs", Align::Right)
        .column("in distance", Align::Right)
        .column("kernel", Align::Left)
        .column("ours", Align::Left);
    let number = |n: Option<usize>| n.map_or("none".to_string(), |i| i.to_string());
    let end = |b: &Option<String>| b.clone().unwrap_or_else(|| "no more".into());
    for d in differences {
        let shown = d.first.or(d.first_distance).is_some();
        grid.row(vec![
            Cell::new(&d.case),
            Cell::new(d.kernel_bios.to_string()),
            Cell::new(number(d.first)),
            Cell::new(number(d.first_distance)),
            Cell::new(if shown { end(&d.kernel) } else { String::new() }),
            Cell::new(if shown { end(&d.ours) } else { String::new() }),
        ]);
    }
    grid.render(160, false)
}
