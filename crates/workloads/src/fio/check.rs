//! What parses but does not go together.

use iosched_types::Diagnostic;

use super::on_files;
use super::spec::{JobSet, JobSpec};

/// Refuses jobs that go together neither on a device nor on a file system.
///
/// # Errors
/// One diagnostic for each section that is wrong.
pub fn check_files(set: &JobSet) -> Result<(), Vec<Diagnostic>> {
    if !on_files::needed(set) {
        return Ok(());
    }
    let raw = |j: &JobSpec| on_files::on_device(j);
    let some_raw = set.jobs.iter().any(raw);
    let mut errors = Vec::new();
    for job in set.jobs.iter().filter(|j| j.subjob == 0) {
        if some_raw && !raw(job) {
            let message =
                format!("job \"{}\" works on files, and another one on the device", job.name);
            errors.push(at_section(job, message).with_help(
                "a device with a file system on it is not written beside it: name files in all jobs, or the device in all",
            ));
        }
        if job.engine.is_of_names() && raw(job) {
            let message = format!("job \"{}\" works on names of files, not on a device", job.name);
            errors.push(at_section(job, message).with_help("give directory= and nrfiles="));
        }
        // fio's trim is an ioctl of block devices.
        if job.pattern.trim && !raw(job) {
            let message = format!(
                "job \"{}\" trims files: fio fails with ENOTTY, Inappropriate ioctl for device",
                job.name
            );
            errors.push(at_section(job, message).with_help("trims need filename=/dev/…"));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
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

/// An error of a job's section.
pub(super) fn at_section(job: &JobSpec, message: String) -> Diagnostic {
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
