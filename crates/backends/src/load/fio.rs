//! Running fio.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iosched_experiment::fio_json::{self, FioRun};
use iosched_lab::machine::Interrupt;
use iosched_workloads::fio::JobSet;

use super::child::{Load, on_its_own};
use super::guard::{self, Bounds};
use super::probe;
use crate::error::{Error, Result};
use crate::parse::version;
use crate::sys;

/// The oldest fio with everything that a record needs in its JSON+.
pub const OLDEST: &[u32] = &[3, 19];

/// The version of the installed fio.
///
/// # Errors
/// [`Error::NoTool`], [`Error::OldTool`], [`Error::Unavailable`] for one that does not answer.
pub fn installed() -> Result<String> {
    found(&Interrupt::default())
}

/// The same, unless a signal comes.
///
/// # Errors
/// As [`installed`], [`Error::Interrupted`].
pub(crate) fn found(interrupt: &Interrupt) -> Result<String> {
    let said = probe::ask(Path::new("fio"), "--version", interrupt)?;
    let said = said.ok_or_else(|| Error::NoTool { tool: "fio".into(), package: "fio".into() })?;
    check(said.trim())
}

fn check(text: &str) -> Result<String> {
    if text.is_empty() {
        return Err(Error::Unavailable {
            what: "fio".into(),
            why: "fio --version prints nothing".into(),
            help: "look what the program is (command -v fio), or: apt install fio".into(),
        });
    }
    let found = version::parse(text);
    match found {
        Some((_, parts)) if parts.as_slice() >= OLDEST => Ok(text.into()),
        found => Err(Error::OldTool {
            tool: "fio".into(),
            found: found.map_or_else(|| text.into(), |f| f.0),
            needed: "3.19".into(),
        }),
    }
}

/// How long the jobs may take: their own time (stonewalls add up), and room for slow ends.
#[must_use]
pub fn time_limit(set: &JobSet) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut phase = Duration::ZERO;
    for job in &set.jobs {
        if job.wait.stonewall {
            total += std::mem::take(&mut phase);
        }
        let own = job.runtime? + job.ramp_time + job.wait.delay;
        phase = phase.max(Duration::from_nanos(own));
    }
    Some((total + phase) * 2 + Duration::from_secs(120))
}

/// How fio is run.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Scratch: fio's own files go here.
    pub dir: &'a Path,
    /// The target. fio inherits the descriptor under its number; the jobs name it as `/proc/self/fd/NUMBER`.
    pub target: BorrowedFd<'a>,
    /// It is a directory of ours for the jobs' files.
    pub on_files: bool,
    /// It is ended after this time.
    pub limit: Option<Duration>,
    /// It gets a CPU before others do.
    pub urgent: bool,
    /// fio itself refuses to write.
    pub read_only: bool,
    /// Files that the jobs read beside the target, by name: logs to replay.
    pub files: &'a [(String, String)],
}

/// How jobs name a directory that fio inherits. fio does not follow a link there, as `/proc/self/fd/NUMBER` is one.
#[must_use]
pub fn directory(open: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}/.", open.as_raw_fd())
}

/// Makes the files of a job file and does nothing else.
///
/// # Errors
/// As [`run`].
pub fn lay_out(how: &How<'_>, jobs: &str, check: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let (_, failed) = serve(how, &["--create_only=1"], jobs, check)?;
    failed.map_or(Ok(()), Err)
}

/// Runs a job file; `check` may end it. A job that failed says so in its record, and the others have their figures.
///
/// # Errors
/// [`Error::Tool`] with fio's first words, [`Error::DiskFull`], what `check` says.
pub fn run(how: &How<'_>, jobs: &str, check: &mut dyn FnMut() -> Result<()>) -> Result<FioRun> {
    let (out, broken) = serve(how, &[], jobs, check)?;
    let text = fs::read_to_string(&out).map_err(|e| Error::io("reading", &out, e))?;
    let run = fio_json::parse(&text).map_err(|e| match no_room(how.dir) {
        true => full(how.dir),
        false => failed("unreadable output".into(), e.to_string()),
    });
    match (run, broken) {
        (run, None) => run,
        // Its scratch folder may be what is full.
        (Ok(run), Some(_)) if run.jobs.iter().any(|j| j.error.is_some()) && !no_room(how.dir) => {
            Ok(run)
        }
        (_, Some(e)) => Err(e),
    }
}

fn failed(status: String, message: String) -> Error {
    Error::Tool { tool: "fio".into(), status, message }
}

/// Runs fio to its end and says where its answer is, and what it failed with, if it did.
fn serve(
    how: &How<'_>,
    options: &[&str],
    jobs: &str,
    check: &mut dyn FnMut() -> Result<()>,
) -> Result<(PathBuf, Option<Error>)> {
    let dir = how.dir;
    let target = [format!("/proc/self/fd/{}", how.target.as_raw_fd())];
    let within = directory(how.target);
    let bounds = match how.on_files {
        true => Bounds::Directory(&within),
        false => Bounds::Files(&target),
    };
    guard::check(jobs, bounds)?;
    let (job_file, out, err) = (dir.join("job.fio"), dir.join("out.json"), dir.join("err.txt"));
    let said = dir.join("stdout.txt");
    fs::write(&job_file, jobs).map_err(|e| Error::io("writing", &job_file, e))?;
    for (name, text) in how.files {
        let file = dir.join(name);
        fs::write(&file, text).map_err(|e| Error::io("writing", &file, e))?;
    }
    let create = |p: &Path| fs::File::create(p).map_err(|e| Error::io("creating", p, e));
    let mut command = Command::new("fio");
    on_its_own(&mut command);
    command
        .args(["--output-format=json+,normal", "--max-jobs=4096"])
        .arg(format!("--output={}", out.display()));
    if how.read_only {
        command.arg("--readonly");
    }
    sys::inherits(&mut command, how.target);
    command.args(options);
    // fio leaves its state beside itself otherwise.
    command.arg(&job_file).current_dir(dir);
    command.stdout(create(&said)?).stderr(create(&err)?);
    if how.urgent {
        sys::urgent(&mut command);
    }
    let mut load = Load::start(&mut command, "fio")?;
    let status = load.wait(how.limit.unwrap_or(Duration::MAX / 4), check)?;
    let read = |p: &Path| fs::read_to_string(p).unwrap_or_default();
    let words = || first_words(&[read(&err), read(&said), read(&out)]);
    match status {
        None => {
            load.kill();
            Err(failed("a time-out".into(), words()))
        }
        Some(s) if !s.success() => {
            let said = words();
            let is_full = said.contains("No space left");
            let e = if is_full { full(dir) } else { failed(s.to_string(), said) };
            Ok((out, Some(e)))
        }
        Some(_) => Ok((out, None)),
    }
}

/// fio's message about a failure: its first lines that are no JSON and do not only present the jobs, wherever it printed
/// them; else the errors of its jobs.
fn first_words(printed: &[String]) -> String {
    let lines = || printed.iter().flat_map(|t| t.lines());
    let presents = |l: &str| {
        l.contains(": (g=") || l == "..." || l.starts_with("fio-") || l.starts_with("Starting ")
    };
    let json = |l: &str| l.trim().is_empty() || l.starts_with(['{', '}', ' ']);
    let words: Vec<&str> = lines().filter(|l| !json(l) && !presents(l)).take(3).collect();
    if !words.is_empty() {
        return words.join("; ");
    }
    let value = |line: &str, key: &str| {
        let rest = line.trim().strip_prefix(key)?.trim_start_matches([' ', ':']);
        Some(rest.trim_end_matches(',').trim_matches('"').to_string())
    };
    let (mut job, mut wrong) = (String::new(), Vec::new());
    for line in lines() {
        if let Some(name) = value(line, "\"jobname\"") {
            job = name;
        } else if let Some(code) = value(line, "\"error\"").and_then(|c| c.parse::<i32>().ok())
            && code != 0
        {
            wrong.push(format!("job \"{job}\": {}", std::io::Error::from_raw_os_error(code)));
        }
    }
    match wrong.is_empty() {
        true => "it does not say why".into(),
        false => wrong.into_iter().take(3).collect::<Vec<_>>().join("; "),
    }
}

/// Whether nothing more fits beside fio's own files.
fn no_room(dir: &Path) -> bool {
    rustix::fs::statvfs(dir).is_ok_and(|s| s.f_bavail.saturating_mul(s.f_frsize) < 64 << 10)
}

/// The full place: the scratch folder, or else the target that fio wrote to.
fn full(dir: &Path) -> Error {
    if no_room(dir) {
        let doing = "fio wrote its results there (scratch; --state-dir names another)".into();
        return Error::DiskFull { path: dir.into(), doing };
    }
    Error::DiskFull { path: "the target's file system".into(), doing: "fio wrote to it".into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn its_words_are_found_among_its_json() {
        let said = "fio: pid=7, err=25/file:ioengines.c:399, func=td_io_queue, error=Inappropriate ioctl\n";
        let json = "{\n  \"jobs\" : [\n  ]\n}\n";
        let words = first_words(&[String::new(), said.into(), json.into()]);
        assert_eq!(words, said.trim_end());
        assert_eq!(first_words(&[json.into()]), "it does not say why");
        // As it presents ten jobs of which the first two cannot begin.
        let presented = "a: (g=0): rw=randread, bs=(R) 4096B-4096B, ioengine=libaio, iodepth=8\n...\nfio-3.33\n\
                         Starting 10 processes\n";
        let failed = "{\n  \"jobs\" : [\n    {\n      \"jobname\" : \"a\",\n      \"error\" : 13,\n    },\n    {\n      \
                      \"jobname\" : \"b\",\n      \"error\" : 0,\n    }\n  ]\n}\n";
        let words = first_words(&[format!("{presented}{failed}")]);
        assert_eq!(words, "job \"a\": Permission denied (os error 13)");
        let words = first_words(&[said.into(), format!("{presented}{failed}")]);
        assert_eq!(words, said.trim_end(), "its own words come first");
    }

    #[test]
    fn old_versions_are_refused() {
        assert_eq!(check("fio-3.33").unwrap(), "fio-3.33");
        let e = check("").unwrap_err().to_string();
        assert!(e.contains("fio --version prints nothing"), "{e}");
        for old in ["fio-3.9", "fio-2.99", "what"] {
            assert!(matches!(check(old), Err(Error::OldTool { .. })), "{old}");
        }
    }

    #[test]
    fn fio_runs_and_fails_with_its_own_words() {
        if installed().is_err() {
            println!("SKIPPED: fio is not installed");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        fs::write(&file, vec![1u8; 1 << 20]).unwrap();
        let target = fs::File::open(&file).unwrap();
        let how = How {
            dir: dir.path(),
            target: target.as_fd(),
            on_files: false,
            limit: Some(Duration::from_secs(60)),
            urgent: false,
            read_only: true,
            files: &[],
        };
        let run_it = |job: &str| run(&how, job, &mut || Ok(()));
        let head = format!("[a]\nfilename=/proc/self/fd/{}\n", target.as_raw_fd());
        let done = run_it(&format!("{head}rw=read\nbs=4k\nsize=1m\n")).unwrap();
        assert_eq!(done.jobs[0].read.ios, 256);
        assert_eq!(done.jobs[0].read.clat.count(), 256);
        let e = run_it(&format!("{head}rw=write\nbs=4k\nsize=1m\n")).unwrap_err();
        assert!(matches!(&e, Error::Tool { .. }), "it may only read: {e:?}");
        assert_eq!(fs::read(&file).unwrap(), vec![1u8; 1 << 20]);
        // One of two fails, says with what, and the other has its figures.
        let how = How { read_only: false, ..how };
        let file = target.as_raw_fd();
        let both = format!(
            "[global]\nfilename=/proc/self/fd/{file}\nbs=4k\nsize=1m\n[a]\nrw=read\n[b]\nrw=trim\n"
        );
        let done = run(&how, &both, &mut || Ok(())).unwrap();
        assert_eq!((done.jobs[0].read.ios, &done.jobs[0].error), (256, &None));
        let why = done.jobs[1].error.as_deref().unwrap_or_default();
        assert!(why.starts_with("ENOTTY"), "{why}");
        let e = run_it(&format!("{head}rw=nonsense\n")).unwrap_err();
        assert!(matches!(&e, Error::Tool { message, .. } if !message.is_empty()), "{e:?}");
    }
}
