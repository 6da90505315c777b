//! What a program says of itself, with a time limit: one that does not answer must not hold a run up.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::io::ioctl_fionbio;
use rustix::pipe::{PipeFlags, pipe_with};

use iosched_lab::machine::Interrupt;

use super::child::Load;
use crate::error::{Error, Result};

/// Programs tell their version at once, on a busy machine within a second.
const LIMIT: Duration = Duration::from_secs(10);
/// What is kept of what one prints, in bytes. It may print without an end.
const KEPT: usize = 64 << 10;

/// What a program prints, on both of its outputs, if it is called with one word. `None` for one that cannot be started.
///
/// # Errors
/// [`Error::Unavailable`] if it does not end, [`Error::Interrupted`]. It is killed then.
pub(crate) fn ask(program: &Path, word: &str, interrupt: &Interrupt) -> Result<Option<String>> {
    ask_within(LIMIT, program, word, interrupt)
}

fn ask_within(
    limit: Duration,
    program: &Path,
    word: &str,
    interrupt: &Interrupt,
) -> Result<Option<String>> {
    let mut command = Command::new(program);
    command.arg(word);
    match listen(command, "", limit, interrupt) {
        Ok((Some(_), printed)) => Ok(Some(printed)),
        Ok((None, _)) => Err(Error::Unavailable {
            what: program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned(),
            why: format!(
                "{} {word} does not answer within {} s",
                program.display(),
                limit.as_secs_f64()
            ),
            help: "look what keeps it from its end, or take it off the path".into(),
        }),
        Err(Error::NoTool { .. } | Error::Tool { .. }) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Runs a program to its end, at most for so long; how it ended, and the beginning of what it printed on both of its
/// outputs. `None` for one that was killed because the time was up.
///
/// # Errors
/// As [`Load::start`]; [`Error::Interrupted`]. It is killed then.
pub(crate) fn listen(
    mut command: Command,
    package: &str,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<(Option<ExitStatus>, String)> {
    let program = PathBuf::from(command.get_program());
    let io = |e: std::io::Error| Error::io("making a pipe to", &program, e);
    let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| io(e.into()))?;
    ioctl_fionbio(&ours, true).map_err(|e| io(e.into()))?;
    let copy = theirs.try_clone().map_err(io)?;
    command.stdout(theirs).stderr(copy);
    let mut load = Load::start(&mut command, package)?;
    // The command keeps its end of the pipe.
    drop(command);
    let (mut ours, mut printed) = (File::from(ours), Vec::new());
    let ended = load.wait(limit, &mut || {
        drain(&mut ours, &mut printed);
        interrupt.check()
    })?;
    if ended.is_none() {
        load.kill();
    }
    drain(&mut ours, &mut printed);
    Ok((ended, String::from_utf8_lossy(&printed).into_owned()))
}

/// Whether a path is a program: `execvp` goes on to the next folder where it is not.
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Takes what is in a pipe now.
fn drain(pipe: &mut File, into: &mut Vec<u8>) {
    let mut part = [0; 4096];
    // One that prints without an end must not keep us here.
    for _ in 0..64 {
        let Ok(n @ 1..) = pipe.read(&mut part) else { return };
        let room = KEPT.saturating_sub(into.len());
        into.extend_from_slice(&part[..n.min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    use super::*;

    fn script(dir: &Path, text: &str) -> PathBuf {
        let path = dir.join("tool");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A word for a command line that no other process has, as tests of several checkouts may run at once.
    fn mark(word: &str) -> String {
        format!("{word}.{}", std::process::id())
    }

    fn runs(word: &str) -> bool {
        std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.split(|b| *b == 0).any(|w| w == word.as_bytes())
        })
    }

    /// Waits until a killed process is gone.
    fn goes(word: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(20);
        while runs(word) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        !runs(word)
    }

    #[test]
    fn what_is_said_on_both_outputs_is_heard() {
        let dir = tempfile::tempdir().unwrap();
        let tool = script(dir.path(), "echo out $1; echo err >&2; exit 1");
        let said = ask(&tool, "-V", &Interrupt::default()).unwrap().unwrap();
        assert_eq!(said, "out -V\nerr\n");
        assert_eq!(ask(&dir.path().join("none"), "-V", &Interrupt::default()).unwrap(), None);
    }

    #[test]
    fn one_that_does_not_answer_is_killed_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let limit = Duration::from_millis(300);
        let (sleeper, endless) = (mark("70126"), "while :; do echo x; done".to_string());
        for text in [format!("sleep {sleeper}"), endless] {
            let tool = script(dir.path(), &text);
            let e = ask_within(limit, &tool, "-V", &Interrupt::default()).unwrap_err();
            assert!(e.to_string().contains("tool -V does not answer within 0.3 s"), "{e}");
            assert_eq!(e.class(), crate::ExitClass::Missing);
        }
        assert!(goes(&sleeper));
    }

    #[test]
    fn a_file_that_cannot_be_run_is_no_program() {
        let dir = tempfile::tempdir().unwrap();
        let tool = script(dir.path(), "");
        assert!(is_program(&tool) && !is_program(dir.path()) && !is_program(&dir.path().join("x")));
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(!is_program(&tool));
    }

    #[test]
    fn what_one_leaves_running_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let sleeper = mark("70129");
        let tool =
            script(dir.path(), &format!("setsid sleep {sleeper} >/dev/null 2>&1 & echo 1.0"));
        assert_eq!(ask(&tool, "-V", &Interrupt::default()).unwrap().unwrap(), "1.0\n");
        assert!(!runs(&sleeper));
    }

    #[test]
    fn a_signal_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let sleeper = mark("70127");
        let tool = script(dir.path(), &format!("sleep {sleeper}"));
        let interrupt = Interrupt::default();
        let sender = interrupt.clone();
        let begun = sleeper.clone();
        let signal = std::thread::spawn(move || {
            // Without the tool the wait ends by its own limit, and not by the signal.
            for _ in 0..2000 {
                if runs(&begun) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            sender.raise(signal_hook::consts::SIGTERM);
        });
        let e = ask_within(Duration::from_secs(60), &tool, "-V", &interrupt).unwrap_err();
        signal.join().unwrap();
        assert!(matches!(e, Error::Interrupted { .. }), "{e:?}");
        assert!(goes(&sleeper));
    }
}
