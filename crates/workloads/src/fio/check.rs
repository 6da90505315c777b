//! What parses but is not simulated yet.

use iosched_types::Diagnostic;

use super::spec::{JobSet, JobSpec};

/// Refuses jobs that need a part of the system which is not modelled yet: the page cache.
///
/// A caller with a model of the page cache skips this check. [`JobSpec::direct`] tells which jobs are buffered.
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

/// Refuses jobs that name a CPU which a machine with `cpus` of them does not have.
///
/// # Errors
/// One diagnostic for each such section, at its place in the job file.
pub fn check_cpus(set: &JobSet, cpus: u16) -> Result<(), Vec<Diagnostic>> {
    let mut errors: Vec<Diagnostic> = Vec::new();
    for job in &set.jobs {
        let Some(cpu) = job.cpus.iter().find(|c| **c >= cpus) else { continue };
        let message =
            format!("job \"{}\" may run on CPU {cpu}, and the machine has {cpus}", job.name);
        let last = cpus.saturating_sub(1);
        let d = at_section(job, message).with_help(format!(
            "CPUs are numbered 0 to {last}; cpus = {} would do",
            u32::from(*cpu) + 1
        ));
        if !errors.iter().any(|e| e.line == d.line && e.file == d.file) {
            errors.push(d);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn refuse(job: &JobSpec) -> Diagnostic {
    let message =
        format!("job \"{}\" uses buffered I/O, and the page cache is not simulated yet", job.name);
    at_section(job, message)
        .with_help("add direct=1 to the job or to [global] (fio's default is direct=0)")
}

/// An error of a job's section.
fn at_section(job: &JobSpec, message: String) -> Diagnostic {
    let (file, line) = job.place.rsplit_once(':').unwrap_or((&job.place, "0"));
    let mut d = Diagnostic::file(file, message);
    d.line = line.parse().unwrap_or(0);
    d.column = 1;
    d.text = format!("[{}]", job.name);
    d.width = d.text.chars().count();
    d
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{NoLookup, parse};

    #[test]
    fn a_cpu_that_the_machine_lacks_is_an_error_of_its_section() {
        let text = "[global]\nrw=read\ndirect=1\nsize=1m\nfilename=/dev/x\n[a]\ncpus_allowed=0-3\n\
                    [b]\nnumjobs=2\ncpus_allowed=2,4095\n";
        let set = parse("a.fio", text, &NoLookup, &|_| Err("none".into()), &[]).unwrap();
        let errors = check_cpus(&set, 4).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!((errors[0].file.as_str(), errors[0].line), ("a.fio", 8));
        let shown = errors[0].to_string();
        assert!(shown.contains("CPU 4095, and the machine has 4"), "{shown}");
        assert!(shown.contains("0 to 3"), "{shown}");
        assert_eq!(check_cpus(&set, 3).unwrap_err().len(), 2);
        let set = parse(
            "a.fio",
            &text[..text.find("[b]").unwrap()],
            &NoLookup,
            &|_| Err("none".into()),
            &[],
        );
        assert_eq!(check_cpus(&set.unwrap(), 4), Ok(()));
    }
}
