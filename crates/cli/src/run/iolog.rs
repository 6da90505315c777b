//! `write_iolog`: the logs of a simulated trial become files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use iosched_experiment::{Record, Trial, TrialId};
use iosched_workloads::fio::on_files;

use crate::fail::{Failure, Outcome};
use crate::files;

/// Whether every log can be written, before anything runs.
pub(super) fn check(trials: &[Trial], several: bool) -> Outcome {
    for trial in trials {
        let logs = trial.jobs().jobs.iter().any(|j| j.write_iolog.is_some());
        if logs && on_files::needed(trial.jobs()) {
            return Err(Failure::with_help(
                "write_iolog: I/O logs of buffered jobs and of files in a file system are not written",
                "give all jobs direct=1 and a device, or leave write_iolog= out",
            ));
        }
        for name in trial.jobs().jobs.iter().filter_map(|j| j.write_iolog.as_ref()) {
            let path = path(name, several, &trial.id);
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
            if folder.is_some_and(|f| !f.is_dir()) {
                return Err(Failure::with_help(
                    format!("write_iolog: there is no folder for {}", path.display()),
                    "make it, or give write_iolog= another name",
                ));
            }
            only_a_log(&path)?;
        }
    }
    Ok(())
}

fn path(name: &str, several: bool, trial: &TrialId) -> PathBuf {
    PathBuf::from(if several { own_name(name, trial) } else { name.to_string() })
}

/// Writes the logs of a trial and drops them. With several trials each has names of its own.
pub(super) fn write(record: &mut Record, several: bool) -> Outcome {
    for (name, text) in std::mem::take(&mut record.io_logs) {
        let path = path(&name, several, &record.trial);
        only_a_log(&path)?;
        files::write(&path, &text)?;
    }
    Ok(())
}

/// `log-hdd-7200-bfq@6.12-6.12-r1`.
pub(super) fn own_name(name: &str, t: &TrialId) -> String {
    let parts = [&t.workload, &t.device, &t.scheduler, &t.kernel];
    let safe = |c: char| if c.is_alphanumeric() || "@.=_-".contains(c) { c } else { '_' };
    let parts: Vec<String> = parts.map(|p| p.chars().map(safe).collect()).into();
    format!("{name}-{}-r{}", parts.join("-"), t.repetition)
}

/// A job file must not be able to overwrite anything but an older log.
fn only_a_log(path: &Path) -> Outcome {
    let Ok(file) = File::open(path) else { return Ok(()) };
    let mut head = Vec::new();
    let read = file.take(12).read_to_end(&mut head);
    let log = read.is_ok() && (head.is_empty() || head.starts_with(b"fio version "));
    if log && !path.is_dir() {
        return Ok(());
    }
    Err(Failure::with_help(
        format!("write_iolog: {} is there and is no I/O log", path.display()),
        "give write_iolog= another name, or move the file away",
    ))
}
