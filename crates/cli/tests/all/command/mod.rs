//! The program as people use it: exit codes, messages, forms of output.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests read and write files")]

mod again;
mod bad_input;
mod completion;
mod experiments;
mod good;
mod pictures;
mod readme;
mod replays;
mod reproduce;
mod rules;
mod traces;
mod verdicts;

use assert_cmd::Command;
use tempfile::TempDir;

/// A folder of its own with the results file in it.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    /// Writes a file and gives its path.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// The program in this folder, away from the user's own results.
    fn iosched(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("iosched").unwrap();
        command.args(args).current_dir(self.dir.path());
        command.env("IOSCHED_DB", self.dir.path().join("results.db")).env_remove("NO_COLOR");
        command
    }

    /// Standard output of a run that must succeed.
    fn out(&self, args: &[&str]) -> String {
        let output = self.iosched(args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {why}\n{text}");
        text
    }

    /// Standard error of a run that must end with `code`.
    fn fails(&self, code: i32, args: &[&str]) -> String {
        let output = self.iosched(args).output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {why}");
        assert!(!why.contains("panicked"), "{args:?}: {why}");
        why
    }
}

/// A job that is over soon: 200 reads.
const JOB: &str = "[r]\nfilename=/dev/disk\ndirect=1\nrw=randread\nbs=4k\nioengine=libaio\niodepth=8\n\
                   number_ios=200\n";
