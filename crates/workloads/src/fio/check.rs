//! What parses but is not simulated yet.

use iosched_types::Diagnostic;

use super::spec::{JobSet, JobSpec};

/// Refuses jobs that need a part of the system which is not modelled yet: the page cache.
///
/// A caller with a model of the page cache leaves this check out; [`JobSpec::direct`] tells the jobs apart.
///
/// # Errors
/// One diagnostic for each section with a buffered job.
pub fn check_supported(set: &JobSet) -> Result<(), Vec<Diagnostic>> {
    let buffered = |j: &&JobSpec| j.subjob == 0 && !j.direct && reads_or_writes(j);
    let errors: Vec<Diagnostic> = set.jobs.iter().filter(buffered).map(refuse).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn reads_or_writes(job: &JobSpec) -> bool {
    use iosched_types::Op;
    match &job.replay {
        None => job.pattern.read || job.pattern.write,
        Some(log) => log.entries.iter().any(|e| matches!(e.op, Op::Read | Op::Write)),
    }
}

fn refuse(job: &JobSpec) -> Diagnostic {
    let (file, line) = job.place.rsplit_once(':').unwrap_or((&job.place, "0"));
    let message =
        format!("job \"{}\" uses buffered I/O, and the page cache is not simulated yet", job.name);
    let mut d = Diagnostic::file(file, message);
    d.line = line.parse().unwrap_or(0);
    d.column = 1;
    d.text = format!("[{}]", job.name);
    d.width = d.text.chars().count();
    d.with_help("add direct=1 to the job or to [global] (fio's default is direct=0)")
}
