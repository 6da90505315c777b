//! Scenarios of system calls: a machine with a file system, tasks, and what each of them calls when.
//!
//! ```
//! use iosched_sim::scenario::{Scenario, run};
//! let text = r#"
//!     scheduler = "none"
//!     service_ms = 1
//!     [[file]]
//!     path = "a"
//!     size = "1M"
//!     [[call]]
//!     call = "open"
//!     file = "a"
//!     [[call]]
//!     call = "pread"
//!     file = "a"
//!     at = 0
//!     len = "4K"
//! "#;
//! let scenario = Scenario::from_toml("example.toml", text).unwrap();
//! let explanation = run(&scenario, &|name| Err(format!("no device {name}"))).unwrap();
//! let calls = explanation.calls.expect("calls");
//! assert_eq!(calls.calls[1].answer, Some(4096));
//! assert_eq!(calls.bios[0].flags, "RA");
//! ```
//!
//! Here the block layer runs by its own rules: there are plugs, tags and the writeback throttle. Core time is zero.

mod play;
mod program;
mod read;
mod shown;
mod text;

pub use shown::{CallShown, CallsShown, FoundShown, ShownBio, Step, StepKind};

pub(super) use play::play;
pub(super) use read::{KEYS, calls};

use iosched_experiment::{HostSpec, Place};
use iosched_syscalls::{Advice, OpenFlags};
use iosched_types::{Bytes, IoPrio, Nanos};

/// Calls a scenario may make, repetitions counted.
pub const MOST_CALLS: u64 = 1 << 16;

/// What a scenario of calls has beside scheduler, kernel and device.
#[derive(Clone, Debug)]
pub struct Calls {
    /// File system, memory, sysctls.
    pub(crate) host: HostSpec,
    /// `[queue]`.
    pub(crate) settings: Vec<(String, i64)>,
    /// Files that are there, on the disk and not in memory.
    pub(crate) files: Vec<(String, Bytes)>,
    /// Nothing of the metadata of these files is in memory.
    pub(crate) cold: bool,
    /// The scenario goes on until then, though its last call has returned.
    pub(crate) until: Nanos,
    /// The tasks, in the order in which the file names them.
    pub(crate) tasks: Vec<Caller>,
    /// The calls, in the order of the file.
    pub(crate) calls: Vec<WantedCall>,
    /// Where the first call stands, for errors.
    pub(crate) place: Place,
}

/// A task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) prio: IoPrio,
    pub(crate) nice: i8,
    /// Files that it opens, in order: each has a slot for its descriptor.
    pub(crate) handles: Vec<String>,
}

/// A call of the file, perhaps several times.
#[derive(Clone, Debug)]
pub(crate) struct WantedCall {
    pub(crate) task: usize,
    /// Not before this time.
    pub(crate) at: Nanos,
    /// After the last call's return.
    pub(crate) pause: Nanos,
    pub(crate) times: u64,
    /// How far each repetition is from the last, in bytes.
    pub(crate) step: i64,
    pub(crate) what: Wanted,
    /// In the words of the file: its file, with `at` and `len` shown apart.
    pub(crate) label: String,
}

/// What is called. Descriptors are slots of the task.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Open { path: String, flags: OpenFlags, slot: usize },
    Close { slot: usize },
    Read { slot: usize, len: Bytes },
    Pread { slot: usize, at: Bytes, len: Bytes },
    Write { slot: usize, len: Bytes },
    Pwrite { slot: usize, at: Bytes, len: Bytes },
    Truncate { slot: usize, len: Bytes },
    Fallocate { slot: usize, at: Bytes, len: Bytes, keep_size: bool },
    Advise { slot: usize, at: Bytes, len: Bytes, advice: Advice },
    Fsync { slot: usize },
    Fdatasync { slot: usize },
    SyncRange { slot: usize, at: Bytes, len: Bytes, wait: bool },
    SyncFs { slot: usize },
    Sync,
    DropCaches,
    List { slot: usize },
    Copy { from: usize, to: usize, len: Bytes },
    Stat { path: String },
    Lstat { path: String },
    Symlink { target: String, path: String },
    ReadLink { path: String },
    Touch { path: String },
    Unlink { path: String },
    Rename { from: String, to: String },
    Mkdir { path: String },
    Rmdir { path: String },
    Map { slot: usize, len: Bytes },
    AdviseMap { slot: usize, advice: Advice },
    Load { slot: usize, at: Bytes },
    Store { slot: usize, at: Bytes },
}

impl WantedCall {
    /// Where its nth repetition begins; below 0 stays 0.
    pub(crate) fn moved(&self, at: Bytes, n: u64) -> Bytes {
        let by = self.step.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX));
        at.saturating_add_signed(by)
    }
}
