//! What a workload of the command line is: a fio command, a program, a trace, a log, a job.

use iosched_experiment::file::stem;
use iosched_experiment::{JobSource, Place, Placed, ProgramRef, ReplayRef, TraceRef, WorkloadRef};

use crate::{asked, files, replay};

/// A fio command line among the workloads: its words, which the shell has taken apart, as one text again.
pub(crate) fn joined(files: Vec<String>) -> Vec<String> {
    let at_fio = |f: &String| f == "fio" || f.ends_with("/fio");
    let first = files.iter().position(|f| f != "sudo");
    if files.len() > 1 && first.is_some_and(|i| at_fio(&files[i])) {
        return vec![files.iter().map(|w| asked::quoted(w)).collect::<Vec<_>>().join(" ")];
    }
    files
}

/// Whether a workload is a fio command line.
pub(crate) fn is_command(file: &str) -> bool {
    let mut words = file.split_whitespace().skip_while(|w| *w == "sudo");
    let fio = words.next().is_some_and(|w| w == "fio" || w.ends_with("/fio"));
    fio && words.next().is_some_and(|w| w.starts_with('-'))
}

/// A file if it exists or can only be a file, else a job that comes with the program.
pub(super) fn workload(file: &str) -> Placed<WorkloadRef> {
    if is_command(file) {
        let job = JobSource::Text(file.into());
        return Placed::new(WorkloadRef::new("fio", job), Place::file("fio"));
    }
    if let Some(program) =
        ProgramRef::of_line(file).filter(|_| !std::path::Path::new(file).exists())
    {
        let job = JobSource::Program(program);
        return Placed::new(WorkloadRef::new(file, job), Place::file(file));
    }
    if replay::is_trace(file) {
        let (name, job) = (stem(file).to_string(), JobSource::Replay(ReplayRef::of(file)));
        return Placed::new(WorkloadRef::new(name, job), Place::file(file));
    }
    let named = !file.contains(['/', '.']) && !std::path::Path::new(file).exists();
    // The slash keeps a file without a suffix from being taken for a name.
    let path =
        if named || file.contains(['/', '.']) { file.to_string() } else { format!("./{file}") };
    let name = stem(file).to_string();
    let plain = std::fs::metadata(&path).is_ok_and(|m| m.is_file());
    let read = |path: &str| if plain { files::text(path) } else { Err(String::new()) };
    let job = match TraceRef::is_log_of(&path, &read) {
        true => JobSource::Trace(TraceRef { file: path, options: Default::default() }),
        false => JobSource::File(path),
    };
    Placed::new(WorkloadRef::new(name, job), Place::file(file))
}
