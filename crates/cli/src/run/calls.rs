//! `iosched run --calls`: what the program of a trial calls.

use std::ops::ControlFlow;
use std::path::Path;

use iosched_experiment::Trial;
use iosched_report::calls;

use crate::args::{RunArgs, RunFormat};
use crate::choose::Chosen;
use crate::fail::{Failure, Outcome};
use crate::files::{deliver, note, writable};
use crate::live;

/// Endings of files that promise a picture which is not drawn.
const PICTURES: [&str; 8] = ["png", "jpg", "jpeg", "gif", "webp", "pdf", "html", "htm"];

/// Shows the calls of the first trial.
pub(super) fn run(args: &RunArgs, file: &str, chosen: &[Chosen], plans: &[Vec<Trial>]) -> Outcome {
    let pairs = chosen.iter().zip(plans);
    let first = pairs.flat_map(|(c, trials)| trials.iter().map(move |t| (c, t))).next();
    let Some((chosen, trial)) = first else {
        return Err(Failure::input("--calls: there is nothing to run"));
    };
    if !chosen.experiment.backend.is_simulated() {
        let help = "strace shows the calls of a real program: strace -f -o LOG COMMAND";
        return Err(Failure::with_help("--calls shows calls in the simulator", help));
    }
    if !matches!(args.format, RunFormat::Table | RunFormat::Json) {
        let help = "leave --format out for text or a picture, or give --format json";
        return Err(Failure::with_help("--calls has no such form", help));
    }
    if args.output.is_some() {
        let help = "--calls names the file itself; `-` prints";
        return Err(Failure::with_help("--calls and --output are two files for one text", help));
    }
    let path = (file != "-").then(|| Path::new(file));
    let ending = path.and_then(Path::extension).and_then(|e| e.to_str()).unwrap_or_default();
    let picture = ending.eq_ignore_ascii_case("svg");
    if PICTURES.iter().any(|p| ending.eq_ignore_ascii_case(p)) {
        let help = "name a file that ends with .svg; every browser shows it";
        return Err(Failure::with_help(format!("--calls draws no .{ending}"), help));
    }
    if picture && args.format == RunFormat::Json {
        let help = "name a file that does not end with .svg, or leave --format out";
        return Err(Failure::with_help("a picture of calls is no JSON", help));
    }
    if let Some(path) = path {
        writable(path)?;
        super::not_an_input(path, &args.files)?;
    }
    let all: usize = plans.iter().map(Vec::len).sum();
    if all > 1 && !args.quiet {
        note(&format!("of {all} trials the calls of the first are shown"));
    }
    let stop = live::ending()?;
    let mut go_on = |_| match stop.stop_asked() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let seen = iosched_sim::calls(trial, &mut go_on);
    stop.check()?;
    let seen = seen.map_err(Failure::input)?;
    let Some(seen) = seen else {
        let help = "iosched list workloads names programs; a log of strace is one, too";
        let message =
            format!("--calls: {} is no program: fio jobs have no text", trial.id.workload);
        return Err(Failure::with_help(message, help));
    };
    if seen.left_out > 0 {
        let message = format!("the last {} calls are left out: there are too many", seen.left_out);
        note(&format!("warning: {message}"));
    }
    let title = title(trial);
    let operations = seen.typical();
    let text = match args.format {
        RunFormat::Json => format!("{:#}\n", calls::json(&title, &operations)),
        _ if picture => calls::svg(&title, &operations),
        _ => calls::text(&title, &operations),
    };
    deliver(path, &text)
}

fn title(trial: &Trial) -> String {
    let id = &trial.id;
    format!(
        "{} on {} under {}, Linux {}: a typical operation of each kind",
        id.workload, id.device, id.scheduler, id.kernel
    )
}
