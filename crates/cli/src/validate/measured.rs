//! `iosched validate FILE.json`: compares the simulator with fio's figures of a real machine.

use iosched_sim::validate::{Measured, MeasuredCase, beside};

use super::{finish, run_all};
use crate::args::ValidateArgs;
use crate::fail::{Failure, Outcome};
use crate::files::{note, required};

pub(super) fn validate(args: &ValidateArgs) -> Outcome {
    if args.dispatch {
        return Err(Failure::with_help(
            "a file of figures has no commands to compare",
            "leave --dispatch out, or give a folder with dispatch/",
        ));
    }
    let file = args.dir.display().to_string();
    let measured = Measured::parse(&file, &required(&file)?)?;
    for strange in &measured.warnings {
        note(&format!("warning: {file}: {strange}"));
    }
    let mut cases = measured.plan().map_err(|why| {
        Failure::with_help(format!("{file}: {why}"), "the form of data/measured/ names it")
    })?;
    type Get = fn(&MeasuredCase) -> &str;
    let filters: [(&Vec<String>, Get); 3] = [
        (&args.scheduler, |c| &c.row.scheduler),
        (&args.device, |c| &c.device),
        (&args.job, |c| &c.job),
    ];
    for (wanted, get) in filters {
        cases.retain(|c| wanted.is_empty() || wanted.iter().any(|w| w == get(c)));
    }
    if cases.is_empty() {
        return Err(Failure::with_help(
            format!("{file}: no row is left"),
            "--scheduler, --device and --job take the names that the table shows",
        ));
    }
    if let (Some(Err(why)), true) =
        (cases.first().map(|c| &c.trial), cases.iter().all(|c| c.trial.is_err()))
    {
        return Err(Failure::input(format!("{file}: no row can be simulated: {why}")));
    }
    let name = |c: &MeasuredCase| format!("{}/{}/{}", c.device, c.job, c.row.scheduler);
    finish(args, run_all(args, &cases, name, |c| c.trial.clone(), beside)?)
}
