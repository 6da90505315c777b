//! `iosched validate DIR` of a folder with programs on file systems.

use std::path::Path;

use iosched_sim::validate::{FileCase, FileFolder, beside_files};

use super::{Compared, finish};
use crate::args::ValidateArgs;
use crate::fail::{Failure, Outcome};
use crate::files::required;
use crate::progress;

/// Whether the folder's results name file systems.
pub(super) fn is_one(dir: &Path) -> bool {
    std::fs::read_to_string(dir.join("results.json")).is_ok_and(|text| FileFolder::is_one(&text))
}

pub(super) fn validate(args: &ValidateArgs) -> Outcome {
    if args.dispatch {
        return Err(Failure::with_help(
            "--dispatch compares the commands of fio jobs on bare disks",
            "leave --dispatch out, or give a folder with dispatch/",
        ));
    }
    let name = |n: &str| args.dir.join(n).display().to_string();
    let (devices, results) = (name("devices.toml"), name("results.json"));
    let texts = (required(&devices)?, required(&results)?);
    let folder = FileFolder::parse((&devices, &texts.0), (&results, &texts.1))?;
    let mut cases = folder.plan();
    type Get = fn(&FileCase<'_>) -> String;
    let filters: [(&str, &Vec<String>, Get); 3] = [
        ("scheduler", &args.scheduler, |c| c.run.scheduler.clone()),
        ("device", &args.device, |c| c.run.device.clone()),
        ("job", &args.job, |c| c.run.job.clone()),
    ];
    for (what, wanted, get) in filters {
        super::all_known(what, wanted, cases.iter().map(get))?;
        cases.retain(|c| wanted.is_empty() || wanted.contains(&get(c)));
    }
    finish(args, compare(args, &cases)?)
}

fn compare(args: &ValidateArgs, cases: &[FileCase<'_>]) -> Outcome<Compared> {
    let mut result = Compared::default();
    let runs: Vec<&FileCase<'_>> = cases.iter().filter(|c| c.trial.is_ok()).collect();
    let bar = progress::bar(runs.len(), false);
    iosched_lab::in_order::<_, _, Failure>(
        &runs,
        args.jobs,
        |case| {
            let trial = case.trial.as_ref().map_err(String::clone)?;
            let record = iosched_sim::simulate(trial).map_err(|e| e.to_string());
            bar.set_message(case.name());
            bar.inc(iosched_lab::STEPS);
            record.map(|r| beside_files(case.run, &r))
        },
        |i, outcome| {
            match outcome {
                Ok(rows) => result.rows.extend(rows),
                Err(why) => result.failed.push((runs[i].name(), why)),
            }
            Ok(())
        },
    )?;
    bar.finish_and_clear();
    for case in cases {
        if let Err(why) = &case.trial {
            result.skipped.push((case.name(), why.clone()));
        }
    }
    Ok(result)
}
