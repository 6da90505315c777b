//! Helpers of the tests.

use std::path::Path;
use std::process::Command;

use iosched_types::Diagnostic;
use iosched_workloads::fio::{JobSet, JobSpec, Lookup, parse};

/// A machine with fixed keywords and two variables.
pub(crate) struct Machine;

impl Lookup for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "SIZE" => Some("64m".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn keyword(&self, name: &str) -> Option<u64> {
        match name {
            "pagesize" => Some(4096),
            "ncpus" => Some(4),
            "mb_memory" => Some(1024),
            _ => None,
        }
    }
}

pub(crate) fn no_include(path: &str) -> Result<String, String> {
    Err(format!("no such file: {path}"))
}

pub(crate) fn try_parse(text: &str) -> Result<JobSet, Vec<Diagnostic>> {
    parse("job.fio", text, &Machine, &no_include, &[])
}

pub(crate) fn jobs(text: &str) -> Vec<JobSpec> {
    match try_parse(text) {
        Ok(set) => set.jobs,
        Err(e) => panic!("{text}\n{}", e[0]),
    }
}

/// The one job of a file with these lines.
pub(crate) fn job(lines: &str) -> JobSpec {
    jobs(&format!("[a]\n{lines}\n")).remove(0)
}

/// The first diagnostic of a file with these lines in its only section.
pub(crate) fn refused(lines: &str) -> Diagnostic {
    match try_parse(&format!("[a]\n{lines}\n")) {
        Ok(set) => panic!("accepted: {lines}\n{set:?}"),
        Err(mut e) => e.remove(0),
    }
}

/// fio's version 3.33, or a note on why a test is skipped.
pub(crate) fn fio_3_33() -> bool {
    let found = Command::new("fio").arg("--version").output();
    let ok = found.is_ok_and(|o| o.stdout.starts_with(b"fio-3.33"));
    if !ok {
        eprintln!("SKIPPED: fio 3.33 is not installed");
    }
    ok
}

/// Compares a generated page with the file, or writes it when `BLESS=1`.
pub(crate) fn golden(path: &str, page: &str) {
    let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    iosched_testing::golden(Path::new(&path), page);
}

/// Runs a job of these lines on fio's null engine, in a folder; returns the log of its I/Os.
pub(crate) fn log_of_real_run(folder: &Path, lines: &str) -> String {
    let (file, log) = (folder.join("run.fio"), folder.join("run.log"));
    let _ = std::fs::remove_file(&log);
    let text = format!("[a]\nioengine=null\nwrite_iolog={}\n{lines}\n", log.display());
    std::fs::write(&file, text).unwrap();
    let out = Command::new("fio").current_dir(folder).arg(&file).output().unwrap();
    assert!(out.status.success(), "{lines}: {}", String::from_utf8_lossy(&out.stderr));
    std::fs::read_to_string(log).unwrap()
}
