//! Errors of a real machine. Each has one clear message, advice, and an exit class.

use std::io;
use std::path::PathBuf;

/// Exit codes of the program, by kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitClass {
    /// Usage or bad input.
    BadInput = 2,
    /// The machine lacks something.
    Missing = 3,
    /// A trial failed; results of the others are kept.
    Failed = 4,
}

/// A problem with the machine, a device, a tool or a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something the user wrote is wrong.
    #[error("{message}")]
    Input {
        /// What is wrong.
        message: String,
        /// What to do; empty when there is nothing to add.
        help: String,
    },
    /// Not root.
    #[error("{what} needs root")]
    NotRoot {
        /// The operation that needs it.
        what: String,
    },
    /// sysfs cannot be written (a container).
    #[error("{path} cannot be written: sysfs is mounted read-only")]
    ReadOnlySysfs {
        /// The attribute.
        path: PathBuf,
    },
    /// The kernel or the machine lacks a facility.
    #[error("{what} is not available: {why}")]
    Unavailable {
        /// The facility: `/dev/fuse`, `loop`, `debugfs`.
        what: String,
        /// What was seen.
        why: String,
        /// What to do.
        help: String,
    },
    /// A program is not installed.
    #[error("{tool} is not installed")]
    NoTool {
        /// Program.
        tool: String,
        /// Debian package that has it, or a sentence on what to do without one.
        package: String,
    },
    /// A program is too old.
    #[error("{tool} {found} is too old; {needed} or newer is needed")]
    OldTool {
        /// Program.
        tool: String,
        /// Version found.
        found: String,
        /// Smallest version that works.
        needed: String,
    },
    /// No such device.
    #[error("{name} is no block device here")]
    NoDevice {
        /// As the user wrote it.
        name: String,
        /// Nearest name or the list.
        help: String,
    },
    /// The device or file is in use. It is not written to, whatever leave the user gave.
    #[error("{device} is in use: {why}")]
    InUse {
        /// `/dev/NAME`, or a file.
        device: String,
        /// The use: where it is mounted, what it is a member of, in which process it is open.
        why: String,
    },
    /// A directory of ours cannot be removed now.
    #[error("{path} stays: {why}")]
    Left {
        /// The directory.
        path: String,
        /// What stands in the way, and what to do.
        why: String,
    },
    /// It holds data, or its content and users cannot be found out.
    #[error("{device}: {why}")]
    HoldsData {
        /// `/dev/NAME`.
        device: String,
        /// What was found.
        why: String,
    },
    /// A file that iosched did not make.
    #[error("{path} may not be overwritten: {why}")]
    NotOurs {
        /// The file, links followed.
        path: String,
        /// What was found.
        why: String,
    },
    /// The device went away.
    #[error("{device} disappeared during {during}")]
    Gone {
        /// `/dev/NAME`.
        device: String,
        /// What was going on.
        during: String,
    },
    /// No room.
    #[error("no space left on {path} while {doing}")]
    DiskFull {
        /// Where.
        path: PathBuf,
        /// What was being written.
        doing: String,
    },
    /// A load that would run out of room.
    #[error("{what} needs at least {needed}, and {path} has {free}")]
    TooSmall {
        /// The load.
        what: String,
        /// In words.
        needed: String,
        /// A directory, or an emulated disk.
        path: String,
        /// In words.
        free: String,
    },
    /// The scheduler was removed from Linux.
    #[error("{name} is not in this kernel: {history}")]
    RemovedScheduler {
        /// Name asked for.
        name: String,
        /// Since when it is gone, and what replaced it.
        history: String,
    },
    /// The kernel does not take the scheduler.
    #[error("the kernel refuses scheduler \"{name}\" for {device} ({why})")]
    SchedulerRefused {
        /// Name asked for.
        name: String,
        /// `/dev/NAME`.
        device: String,
        /// The kernel's answer.
        why: String,
        /// What it offers, nearest name.
        help: String,
    },
    /// A value written to sysfs did not stick.
    #[error("{path}: wrote {wrote}, reads {reads}")]
    ReadBack {
        /// The attribute.
        path: PathBuf,
        /// Value written.
        wrote: String,
        /// Value read back.
        reads: String,
    },
    /// Another instance is at work.
    #[error("another iosched{} is changing {what}", process(*pid))]
    Locked {
        /// The process id; 0 when it cannot be known.
        pid: u32,
        /// Device or state directory.
        what: String,
    },
    /// An earlier run was killed and its changes are still in place.
    #[error("an earlier run left changes behind ({what})")]
    Unrestored {
        /// State file.
        what: String,
        /// The command that puts them back.
        help: String,
    },
    /// The model cannot be served fast enough in real time.
    #[error("{device} is faster than this machine can emulate: {why}")]
    TooFast {
        /// Model name.
        device: String,
        /// The limit and the model's figure.
        why: String,
    },
    /// The wall clock and the monotonic clock disagree by too much.
    #[error("the clock jumped by {seconds:.1} s during {during}")]
    ClockJump {
        /// Size of the jump.
        seconds: f64,
        /// What was going on.
        during: String,
    },
    /// A child program failed.
    #[error("{tool} failed with {status}: {message}")]
    Tool {
        /// Program.
        tool: String,
        /// Exit status or signal.
        status: String,
        /// The first lines it printed.
        message: String,
    },
    /// SIGINT or SIGTERM.
    #[error("interrupted by {signal}")]
    Interrupted {
        /// `SIGINT` or `SIGTERM`.
        signal: String,
    },
    /// A run that ended without a usable result.
    #[error("{message}")]
    Trial {
        /// What happened.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// `reading`, `writing`, `creating` …
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn process(pid: u32) -> String {
    if pid == 0 { String::new() } else { format!(" (process {pid})") }
}

impl Error {
    /// Wraps a system error; a full disk and a read-only sysfs get their own messages.
    pub fn io(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::StorageFull => Error::DiskFull { path, doing: doing.into() },
            io::ErrorKind::ReadOnlyFilesystem if path.starts_with("/sys") => {
                Error::ReadOnlySysfs { path }
            }
            io::ErrorKind::PermissionDenied if path.starts_with("/sys") => {
                Error::NotRoot { what: format!("writing {}", path.display()) }
            }
            _ => Error::Io { doing, path, source },
        }
    }

    /// Bad input with advice.
    pub fn input(message: impl Into<String>, help: impl Into<String>) -> Self {
        Error::Input { message: message.into(), help: help.into() }
    }

    /// Exit class of the problem.
    #[must_use]
    pub fn class(&self) -> ExitClass {
        match self {
            Error::Input { .. } | Error::NoDevice { .. } | Error::TooSmall { .. } => {
                ExitClass::BadInput
            }
            Error::NotRoot { .. }
            | Error::ReadOnlySysfs { .. }
            | Error::Unavailable { .. }
            | Error::NoTool { .. }
            | Error::OldTool { .. }
            | Error::InUse { .. }
            | Error::HoldsData { .. }
            | Error::NotOurs { .. }
            | Error::RemovedScheduler { .. }
            | Error::SchedulerRefused { .. }
            | Error::Locked { .. }
            | Error::Unrestored { .. }
            | Error::TooFast { .. } => ExitClass::Missing,
            Error::Gone { .. }
            | Error::DiskFull { .. }
            | Error::ReadBack { .. }
            | Error::ClockJump { .. }
            | Error::Tool { .. }
            | Error::Interrupted { .. }
            | Error::Left { .. }
            | Error::Trial { .. }
            | Error::Io { .. } => ExitClass::Failed,
        }
    }

    /// What to do about it where finished runs are stored: the experiment can go on.
    #[must_use]
    pub fn help_to_go_on(&self) -> String {
        match self {
            Error::DiskFull { .. } => "finished runs are kept; free space and run again".into(),
            Error::Gone { .. } | Error::ClockJump { .. } | Error::Interrupted { .. } => {
                "finished runs are kept; run the experiment again to go on".into()
            }
            _ => self.help(),
        }
    }

    /// What to do about it; empty when there is nothing to add.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Error::Input { help, .. }
            | Error::Unavailable { help, .. }
            | Error::NoDevice { help, .. }
            | Error::SchedulerRefused { help, .. }
            | Error::Unrestored { help, .. } => help.clone(),
            Error::NotRoot { .. } => "run it with sudo, or use --backend sim".into(),
            Error::ReadOnlySysfs { .. } => {
                "run it outside the container, or use --backend sim".into()
            }
            // A sentence stands there when Debian has no package.
            Error::NoTool { package, .. } if package.contains(' ') => package.clone(),
            Error::NoTool { package, .. } => format!("apt install {package}"),
            Error::OldTool { tool, .. } => format!("install a newer {tool}"),
            Error::InUse { .. } => {
                "it is never written to while it is in use: end that first, or name another".into()
            }
            Error::HoldsData { device, .. } => format!(
                "name a file on it instead, or give --destroy-data={device} if its data may go"
            ),
            Error::NotOurs { path, .. } => format!(
                "let iosched make a file: DIR/iosched-NAME.img with --size, or give --overwrite-file={path} if its content may go"
            ),
            Error::RemovedScheduler { name, .. } => {
                format!(
                    "--backend sim simulates it; `iosched show scheduler {name}` lists its versions"
                )
            }
            Error::Locked { .. } => "wait for it, or end it".into(),
            Error::TooSmall { .. } => {
                "free space, name a larger disk, or give the program less to do".into()
            }
            Error::TooFast { .. } => "emulate a slower model, or use --backend sim".into(),
            Error::DiskFull { .. } => "free space and run again".into(),
            _ => String::new(),
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_errors_become_the_message_people_need() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let e = Error::io("writing results", "/var/x", full);
        assert_eq!(e.to_string(), "no space left on /var/x while writing results");
        assert_eq!(e.class(), ExitClass::Failed);
        let ro = io::Error::from(io::ErrorKind::ReadOnlyFilesystem);
        let e = Error::io("writing", "/sys/block/sda/queue/scheduler", ro);
        assert_eq!(e.class(), ExitClass::Missing);
        assert!(e.to_string().contains("read-only"), "{e}");
        let perm = io::Error::from(io::ErrorKind::PermissionDenied);
        let e = Error::io("writing", "/sys/block/sda/queue/scheduler", perm);
        assert!(e.to_string().ends_with("needs root"), "{e}");
        assert!(e.help().contains("--backend sim"));
    }
}
