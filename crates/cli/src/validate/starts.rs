//! `iosched validate DIR` of a folder with starts of programs beside loads.

use std::path::Path;

use iosched_report::terminal::{Align, Cell, Grid};
use iosched_sim::validate::{
    StartCase, StartFolder, StartRow, StartTime, Started, parse_later_log,
};
use serde::Serialize;

use super::dispatch::{self, Difference};
use super::{all_in, all_known, each_log, optional};
use crate::args::ValidateArgs;
use crate::fail::{Failure, Outcome, code};
use crate::files::required;

/// How far a time may be off.
const SHARE: f64 = 0.03;

/// Whether the folder is of this form.
pub(super) fn is_one(dir: &Path) -> bool {
    dir.join("startup.json").is_file()
}

/// One row.
#[derive(Serialize)]
struct Beside {
    case: String,
    repetition: u32,
    /// Seconds, or `X`.
    kernel: StartTime,
    ours: StartTime,
    /// Within 3 %, and `X` as `X`.
    same: bool,
    kernel_read_mean_ms: f64,
    our_read_mean_ms: f64,
}

pub(super) fn validate(args: &ValidateArgs) -> Outcome {
    if args.bios {
        return Err(Failure::with_help(
            "--bios compares programs on files",
            "leave --bios out: these programs read a bare disk",
        ));
    }
    let folder = read(&args.dir)?;
    let cases = chosen(args, &folder)?;
    if args.dispatch {
        let dir = args.dir.join("dispatch");
        let path = |c: &StartCase<'_>| dir.join(format!("{}.log.gz", c.name()));
        let logged: Vec<&StartCase<'_>> =
            cases.iter().filter(|c| c.row.repetition == 1 && path(c).is_file()).collect();
        if logged.is_empty() {
            let message = format!("{} has no log of these starts", dir.display());
            return Err(Failure::with_help(
                message,
                "logs are named PROGRAM.LOAD.SCHEDULER.log.gz",
            ));
        }
        return each_log(args, &logged, |case| commands(case, &path(case)), dispatch::table);
    }
    each_log(args, &cases, times, table)
}

fn read(dir: &Path) -> Outcome<StartFolder> {
    let name = |n: &str| dir.join(n).display().to_string();
    let rows = name("startup.json");
    let text = required(&rows)?;
    let (devices, taken) = (optional(&name("devices.toml"))?, optional(&name("truth.toml"))?);
    let programs = all_in(&dir.join("programs"), "json")?;
    fn pair(file: &Option<(String, String)>) -> Option<(&str, &str)> {
        file.as_ref().map(|(name, text)| (name.as_str(), text.as_str()))
    }
    Ok(StartFolder::parse((&rows, &text), programs, pair(&devices), pair(&taken))?)
}

/// The rows that the options leave. A program beside a load is their job.
fn chosen<'f>(args: &ValidateArgs, folder: &'f StartFolder) -> Outcome<Vec<StartCase<'f>>> {
    let mut cases = folder.plan();
    type Get = fn(&StartCase<'_>) -> String;
    let filters: [(&str, &Vec<String>, Get); 3] = [
        ("scheduler", &args.scheduler, |c| c.row.scheduler.clone()),
        ("device", &args.device, |c| c.row.device.clone()),
        ("job", &args.job, |c| format!("{}.{}", c.row.program, c.row.load)),
    ];
    for (what, wanted, get) in filters {
        all_known(what, wanted, cases.iter().map(get))?;
        cases.retain(|c| wanted.is_empty() || wanted.contains(&get(c)));
    }
    Ok(cases)
}

fn failed(case: &StartCase<'_>, why: impl std::fmt::Display) -> Failure {
    Failure::new(code::FAILED, format!("{} #{}: {why}", case.name(), case.row.repetition))
}

fn times(case: &StartCase<'_>) -> Outcome<Beside> {
    let start = case.start.as_ref().map_err(|why| failed(case, why))?;
    let Started { start_s, read_mean_ms, .. } = start.run().map_err(|e| failed(case, e))?;
    Ok(Beside {
        case: case.name(),
        repetition: case.row.repetition,
        kernel: case.row.start_s,
        ours: start_s,
        same: case.row.start_s.is_within(SHARE, start_s),
        kernel_read_mean_ms: case.row.read_mean_ms,
        our_read_mean_ms: read_mean_ms,
    })
}

fn commands(case: &StartCase<'_>, path: &Path) -> Outcome<Difference> {
    let (file, text) = dispatch::unpacked(path)?;
    let kernel = parse_later_log(&file, &text)?;
    let start = case.start.as_ref().map_err(|why| failed(case, why))?;
    let parting = start.beside_log(&kernel).map_err(|e| failed(case, e))?;
    let StartRow { program, load, scheduler, .. } = case.row;
    Ok(Difference::of(format!("{program}.{load}/{scheduler}"), &kernel, &parting))
}

fn table(rows: &[Beside]) -> String {
    let mut grid = Grid::new()
        .column("start", Align::Left)
        .column("run", Align::Right)
        .column("kernel s", Align::Right)
        .column("ours s", Align::Right)
        .column("error", Align::Right);
    for r in rows {
        let error = match (r.kernel, r.ours) {
            (StartTime::Seconds(a), StartTime::Seconds(b)) => {
                format!("{:+.2} %", (b / a - 1.0) * 100.0)
            }
            (a, b) if a == b => String::new(),
            _ => "differs".into(),
        };
        grid.row(vec![
            Cell::new(&r.case),
            Cell::new(r.repetition.to_string()),
            Cell::new(r.kernel.to_string()),
            Cell::new(r.ours.to_string()),
            Cell::new(error),
        ]);
    }
    let same = rows.iter().filter(|r| r.same).count();
    format!(
        "{}\nX: more than 60 s. {same} of {} starts take the kernel's time within 3 %, X as X.\n",
        grid.render(120, false),
        rows.len()
    )
}
