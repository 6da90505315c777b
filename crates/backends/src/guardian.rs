//! The process that puts things back when the program is killed.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use signal_hook::consts;

use crate::error::{Error, Result};
use crate::restore;
use crate::state::StateFile;

/// How to start a guardian: this program with arguments before the state file's path.
#[derive(Clone, Debug)]
pub struct GuardianCommand {
    /// Program.
    pub program: PathBuf,
    /// Arguments before the path.
    pub args: Vec<OsString>,
    /// Whether it is this program. This program can be started even when its file is gone.
    pub own: bool,
}

impl GuardianCommand {
    /// The running program with a hidden subcommand, which must call [`main`].
    ///
    /// # Errors
    /// [`Error::Io`] when the program's own path is unknown.
    pub fn this_program(subcommand: &str) -> Result<Self> {
        let program = std::env::current_exe()
            .map_err(|e| Error::io("finding the program's own path", "/proc/self/exe", e))?;
        Ok(GuardianCommand { program, args: vec![subcommand.into()], own: true })
    }

    /// What to start. An experiment runs for hours, and its program may be deleted or built anew meanwhile. Then the
    /// program that runs now is started.
    fn runnable(&self) -> PathBuf {
        let file = |p: &Path| std::fs::metadata(p).ok().map(|m| (m.dev(), m.ino()));
        let running = Path::new("/proc/self/exe");
        if self.own && file(&self.program) != file(running) {
            return running.into();
        }
        self.program.clone()
    }
}

/// A guardian at work. It ends by itself once the state file is gone and the lock released.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
}

impl Guardian {
    /// Starts it and waits until it watches.
    ///
    /// # Errors
    /// [`Error::Tool`] when it does not come up.
    pub fn start(command: &GuardianCommand, state: &StateFile) -> Result<Guardian> {
        let failed = |status: String, message: String| Error::Tool {
            tool: "the guardian process".into(),
            status,
            message,
        };
        let mut child = Command::new(command.runnable())
            .arg0(&command.program)
            .args(&command.args)
            .arg(state.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A Ctrl-C for the program must not end its guardian.
            .process_group(0)
            .spawn()
            .map_err(|e| failed("no start".into(), e.to_string()))?;
        let mut ready = Vec::new();
        if let Some(mut out) = child.stdout.take() {
            // A test harness may print before it. The guardian's message is the last one before the pipe closes.
            let _ = out.read_to_end(&mut ready);
        }
        if !String::from_utf8_lossy(&ready).contains(READY) {
            let _ = child.kill();
            let status = child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
            return Err(failed(status, "it did not say that it watches".into()));
        }
        Ok(Guardian { child })
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, after the state file was finished.
    pub fn join(mut self) {
        let _ = self.child.wait();
    }
}

const READY: &str = "iosched-guardian-watches";

/// The guardian process. It waits until the owner of the state file releases the lock, and undoes the changes that are
/// still written there. Call it from the hidden subcommand and exit with its result.
///
/// # Errors
/// What undoing reports.
pub fn main(path: &Path) -> Result<()> {
    // Held from now on: the name may lead elsewhere when the owner dies.
    let Some(file) = StateFile::open(path)? else { return Ok(()) };
    // A signal that ends a whole session ends the program, too, and that is when the guardian is needed. Only SIGKILL
    // ends it.
    let ignored = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in
        [consts::SIGHUP, consts::SIGINT, consts::SIGQUIT, consts::SIGTERM, consts::SIGTSTP]
    {
        signal_hook::flag::register(signal, ignored.clone())
            .map_err(|e| Error::io("keeping signals from the guardian of", path, e))?;
    }
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{READY}").and_then(|()| out.flush());
    // The owner reads to the end of the pipe.
    let null = std::fs::File::options()
        .write(true)
        .open("/dev/null")
        .map_err(|e| Error::io("opening", "/dev/null", e))?;
    rustix::stdio::dup2_stdout(&null)
        .map_err(|e| Error::io("closing standard output of", "/proc/self", e.into()))?;
    match StateFile::take_over_opened(file, path, true)? {
        // A run that has come between is waited for: it puts back what it found, which is not what was there before.
        Some((file, state)) => restore::undo(file, &state, None).map(|_| ()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_file_is_gone_or_another_is_started_as_it_runs() {
        let own = GuardianCommand::this_program("guardian").unwrap();
        assert_eq!(own.runnable(), own.program);
        let dir = tempfile::tempdir().unwrap();
        let built_anew = dir.path().join("iosched");
        std::fs::write(&built_anew, "another").unwrap();
        for program in [built_anew, dir.path().join("gone")] {
            let command = GuardianCommand { program, ..own.clone() };
            assert_eq!(command.runnable(), Path::new("/proc/self/exe"));
            let other = GuardianCommand { own: false, ..command };
            assert_eq!(other.runnable(), other.program);
        }
    }
}
