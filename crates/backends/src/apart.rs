//! A server in a session of its own, and the program in the foreground that waits for it.
//!
//! Users of an emulated disk sleep while its server is stopped, so no terminal may stop the server. The foreground
//! passes its signals to the server over a socket, which is the server's standard input: a byte for each signal, and
//! the end of the file when the foreground is dead.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use iosched_lab::machine::Interrupt;

use crate::error::{Error, Result};
use crate::root::SysRoot;
use crate::sys;

/// The server says with this that the foreground need not wait for it.
const LEAVE: u8 = b'L';

/// How the server and the foreground parted.
#[derive(Debug)]
pub enum Parting {
    /// The server has ended.
    Ended(ExitStatus),
    /// The server goes on by itself.
    Left,
}

/// Starts a server and waits for its end, or for its word that it goes on alone. Signals are passed on; Ctrl-Z stops
/// this process only.
///
/// # Errors
/// [`Error::Io`] when it cannot be started.
pub fn wait_for(command: &mut Command) -> Result<Parting> {
    let program = command.get_program().to_owned();
    let io = |e| Error::io("starting a server with", &program, e);
    let (ours, theirs) = UnixStream::pair().map_err(io)?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(io)?;
    let mut child = sys::own_session(command.stdin(OwnedFd::from(theirs))).spawn().map_err(io)?;
    // The command keeps the server's end open here as well.
    command.stdin(std::process::Stdio::null());
    let mut line = ours.try_clone().map_err(io)?;
    // It ends with the program.
    std::thread::spawn(move || {
        for signal in signals.forever() {
            // The server is gone. The caller waits for its end next.
            let _ = line.write_all(&[signal as u8]);
        }
    });
    listen(ours, &mut child)
}

fn listen(mut line: UnixStream, child: &mut Child) -> Result<Parting> {
    let mut byte = [0];
    loop {
        match line.read(&mut byte) {
            Ok(1) if byte[0] == LEAVE => return Ok(Parting::Left),
            Ok(1) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    let status = child.wait().map_err(|e| Error::io("waiting for", "the server", e))?;
    Ok(Parting::Ended(status))
}

/// The server's end.
#[derive(Debug)]
pub struct Orders {
    asked: Arc<AtomicUsize>,
    alone: Arc<AtomicBool>,
    line: Option<File>,
    front: i32,
}

impl Orders {
    /// Listens at standard input. Also tells `interrupt` of the first order, and of the end of the foreground.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn at_stdin(interrupt: &Interrupt) -> Result<Orders> {
        let io = |e| Error::io("listening at", "standard input", e);
        let copy = || std::io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(io);
        let (mut line, answers) = (copy()?, copy()?);
        let (asked, alone) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let front = nix::unistd::getppid().as_raw();
        let orders = Orders { asked, alone, line: Some(answers), front };
        let (asked, alone) = (orders.asked.clone(), orders.alone.clone());
        let interrupt = interrupt.clone();
        std::thread::spawn(move || {
            let mut byte = [0];
            loop {
                match line.read(&mut byte) {
                    Ok(1) => {
                        asked.fetch_add(1, Ordering::AcqRel);
                        interrupt.raise(i32::from(byte[0]));
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    _ => break,
                }
            }
            // Killed: as if it had been asked to end.
            alone.store(true, Ordering::Release);
            asked.fetch_max(1, Ordering::AcqRel);
            interrupt.raise(SIGHUP);
        });
        Ok(orders)
    }

    /// How often an end was asked for.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Acquire)
    }

    /// Whether the foreground process is gone.
    #[must_use]
    pub fn alone(&self) -> bool {
        self.alone.load(Ordering::Acquire)
    }

    /// Whether the terminal shows our messages: not while the foreground is stopped, or in the background.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        let stat = SysRoot::default().get(&format!("/proc/{}/stat", self.front));
        !self.alone() && stat.is_some_and(|s| is_in_front(&s))
    }

    /// Lets the foreground go. Messages from now on go nowhere.
    pub fn leave(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        // A reader of our output waits for its end.
        if let Ok(null) = File::options().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
        let _ = line.write_all(&[LEAVE]);
    }
}

/// Whether a process's group is the terminal's foreground group: `/proc/PID/stat`.
fn is_in_front(stat: &str) -> bool {
    let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
    // State, parent, group, session, terminal, the terminal's group.
    let words: Vec<&str> = rest.split(' ').collect();
    words.len() > 5 && words[2] == words[5]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_front_is_told_from_what_is_not() {
        assert!(is_in_front("17 (a) b) S 1 17 17 34816 17 4194304"));
        assert!(!is_in_front("17 (x) T 1 17 5 34816 5 4194304"), "stopped");
        assert!(!is_in_front("17 (x) S 1 17 17 0 -1 4194304"), "no terminal");
        assert!(!is_in_front(""));
    }

    #[test]
    fn a_server_has_its_own_session_and_its_end_is_told() {
        let own = nix::unistd::getsid(None).unwrap().as_raw();
        let script =
            format!("set -- $(cut -d ' ' -f 6 /proc/self/stat); [ $1 != {own} ] && exit 7");
        let mut command = Command::new("sh");
        let Parting::Ended(status) = wait_for(command.args(["-c", &script])).unwrap() else {
            panic!("it did not stay")
        };
        assert_eq!(status.code(), Some(7));
        let mut command = Command::new("sh");
        command.args(["-c", "printf L >&0; read x; exit 3"]);
        assert!(matches!(wait_for(&mut command).unwrap(), Parting::Left));
    }
}
