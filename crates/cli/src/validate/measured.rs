//! `iosched validate FILE.json`: compares the simulator with fio's figures of a real machine.

use iosched_sim::validate::{Measured, MeasuredCase, beside};

use super::{Compared, finish};
use crate::args::ValidateArgs;
use crate::fail::{Failure, Outcome};
use crate::files::required;
use crate::progress;

pub(super) fn validate(args: &ValidateArgs) -> Outcome {
    if args.dispatch {
        return Err(Failure::with_help(
            "a file of figures has no commands to compare",
            "leave --dispatch out, or give a folder with dispatch/",
        ));
    }
    let file = args.dir.display().to_string();
    let measured = Measured::parse(&file, &required(&file)?)?;
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
    finish(args, compare(args, &cases)?)
}

fn compare(args: &ValidateArgs, cases: &[MeasuredCase]) -> Outcome<Compared> {
    let name = |c: &MeasuredCase| format!("{}/{}/{}", c.device, c.job, c.row.scheduler);
    let mut result = Compared::default();
    let runs: Vec<&MeasuredCase> = cases.iter().filter(|c| c.trial.is_ok()).collect();
    let bar = progress::bar(runs.len(), false);
    iosched_lab::in_order::<_, _, Failure>(
        &runs,
        args.jobs,
        |case| {
            let trial = case.trial.as_ref().map_err(String::clone)?;
            let record = iosched_sim::simulate(trial).map_err(|e| e.to_string());
            bar.set_message(name(case));
            bar.inc(iosched_lab::STEPS);
            record.map(|r| beside(case, &r))
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
    for case in cases {
        if let Err(why) = &case.trial {
            result.skipped.push((name(case), why.clone()));
        }
    }
    Ok(result)
}
