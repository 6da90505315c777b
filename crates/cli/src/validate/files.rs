//! `iosched validate DIR` of a folder with programs on file systems.

use std::path::Path;

use iosched_sim::validate::{FileCase, FileFolder, beside_files};

use super::{finish, run_all};
use crate::args::ValidateArgs;
use crate::fail::{Failure, Outcome};
use crate::files::required;

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
    let log = |job: &str| {
        let path = args.dir.join("syscalls").join(format!("{job}.strace.gz"));
        path.exists().then(|| crate::files::text(&path.display().to_string()).ok()).flatten()
    };
    let mut folder = FileFolder::parse((&devices, &texts.0), (&results, &texts.1), &log)?;
    if let Some((file, text)) = super::optional(&name("truth.toml"))? {
        folder = folder.taken((&file, &text))?;
    }
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
    if args.bios {
        return super::bios::compare(args, &cases);
    }
    let trial = |c: &FileCase<'_>| c.trial.as_deref().map_err(String::clone).cloned();
    let rows = |c: &FileCase<'_>, r: &_| beside_files(c.run, r);
    finish(args, run_all(args, &cases, FileCase::name, trial, rows)?)
}
