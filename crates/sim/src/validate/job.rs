//! What a row of programs on files runs: a program by its command line, or the log of its system calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use iosched_experiment::{ProgramWork, SyscallLog, Work};
use iosched_types::Nanos;
use iosched_workloads::programs::Descriptor;
use iosched_workloads::strace::{Log, Options, Part, parse_part};

use super::FileRun;

/// The directory of the tests, and what stands for it in the logs.
const BELOW: (&str, &str) = ("\"$M", "\"/mnt/x");
/// Other disks: scratch, and the harness.
const OTHERS: [(&str, &str); 2] = [("\"$Mo", "\"/mnt/o"), ("\"$T", "\"/mnt/t")];
/// In time that the harness made, a call that fails takes as much again.
const FAILURE: Nanos = 1000;
/// The log of a job that unpacks the tree that others find.
const UNPACKS: &str = "untar_sync";

/// The logs of a folder, by job.
#[derive(Debug, Default)]
pub(super) struct Logs(BTreeMap<String, Result<(Arc<Log>, u64), String>>);

/// A job's name without what was done to the caches before it.
fn plain(job: &str) -> &str {
    job.strip_suffix("_remount").unwrap_or(job)
}

/// Whether the files were made before the mount.
pub(super) fn begins_cold(run: &FileRun) -> bool {
    plain(&run.job) != run.job || (run.set == "A" && run.prep_sh.is_empty())
}

impl Logs {
    /// Reads the logs that the rows need. `read` gives the text of `NAME.strace`.
    pub(super) fn of(runs: &[FileRun], read: &dyn Fn(&str) -> Option<String>) -> Logs {
        let mut logs = Logs::default();
        for run in runs.iter().filter(|r| r.set == "D") {
            let mut names = vec![plain(&run.job)];
            names.extend(unpacked(run).then_some(UNPACKS));
            for name in names {
                if !logs.0.contains_key(name)
                    && let Some(text) = read(name)
                {
                    logs.0.insert(name.to_string(), parsed(name, &text));
                }
            }
        }
        logs
    }

    fn get(&self, name: &str) -> Result<&(Arc<Log>, u64), String> {
        match self.0.get(name) {
            Some(Ok(log)) => Ok(log),
            Some(Err(why)) => Err(why.clone()),
            None => Err(format!("there is no log {name}.strace.gz of its system calls")),
        }
    }
}

fn parsed(name: &str, text: &str) -> Result<(Arc<Log>, u64), String> {
    let mut local = text.to_string();
    for (word, directory) in OTHERS.into_iter().chain([BELOW]) {
        local = local.replace(word, directory);
    }
    if let Some(cut) = local.rfind("\n# cut") {
        local.truncate(cut + 1);
        return Err("the log of its system calls was cut".into());
    }
    let below = BELOW.1.trim_start_matches('"').to_string();
    let options = Options { think: false, ..Options::default() };
    let log = parse_part(name, &local, options, Part { below, failure: FAILURE });
    let log = log.map_err(|d| format!("{name}.strace.gz: line {}: {}", d.line, d.message))?;
    Ok((Arc::new(log), iosched_engine::fnv1a(text.as_bytes())))
}

/// Whether the tree of the log [`UNPACKS`] is there before.
fn unpacked(run: &FileRun) -> bool {
    run.prep_sh.contains("tar -xf")
}

/// The load of a row.
///
/// # Errors
/// Why it is not simulated.
pub(super) fn load(run: &FileRun, logs: &Logs) -> Result<Work, String> {
    let commands = commands(run);
    match command_line(&commands) {
        Some(line) => {
            let found = Descriptor::from_command_line(&line);
            let (program, params) = found.map_err(|d| format!("{line}: {}", d.message))?;
            Ok(ProgramWork::new(program, params).into())
        }
        None if run.set == "D" => {
            let (log, digest) = logs.get(plain(&run.job))?.clone();
            let before = unpacked(run).then(|| logs.get(UNPACKS)).transpose()?;
            Ok(SyscallLog { log, digest, before: before.map(|b| b.0.clone()) }.into())
        }
        None if commands.len() == 1 => {
            Err("programs other than rd and fsops have no log of their calls here".into())
        }
        None => Err("several commands in a row are not simulated yet".into()),
    }
}

/// The commands of a row, one by one.
fn commands(run: &FileRun) -> Vec<&str> {
    let all = run.run_sh.trim_start_matches('{').split(';').map(str::trim);
    all.filter(|c| !c.is_empty() && !c.starts_with("cp ") && !c.starts_with('}')).collect()
}

/// The command line of a program of ours.
fn command_line(commands: &[&str]) -> Option<String> {
    let [command] = commands else { return None };
    let words: Vec<&str> = command.split_whitespace().take_while(|w| !w.starts_with('>')).collect();
    match words.as_slice() {
        [program, "run", op, _, rest @ ..] if program.ends_with("/fsops") => {
            // Names that come as numbers: the tests ran in a directory of the mount.
            Some(format!("fsops {op} . {}", rest.join(" ")))
        }
        [program, pattern, file, rest @ ..] if program.ends_with("/rd") => {
            let name = file.rsplit('/').next().unwrap_or(file);
            let size = match name {
                "big" => "2G",
                "small" => "256M",
                _ => "128M",
            };
            Some(format!("rd {pattern} {name} {} {size}", rest.join(" ")))
        }
        // Its tests end by time, so a log of another machine would not do.
        [program, "-s", seconds, "-f", _] if program.ends_with("/pg_test_fsync") => {
            Some(format!("pg-test-fsync {seconds} 8k"))
        }
        _ => None,
    }
}
