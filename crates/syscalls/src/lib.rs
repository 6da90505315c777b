//! System calls as values: the one interface between programs and the hosts that run them.
//!
//! A benchmark is an `async fn` over [`Sys`], written as straight-line code. A [`Script`] makes a [`Program`] of it. A
//! program gets the answer of its last call and names the next call. The simulated host answers in virtual time. The
//! live runner makes the real call and passes on the kernel's answer. Neither knows what the program is. A program
//! knows no device, scheduler, kernel version or file system.
//!
//! ```
//! use iosched_syscalls::{Call, OpenFlags, Program, Script};
//!
//! let mut program = Script::new(async |sys| {
//!     let file = sys.open("log", OpenFlags::WRITE | OpenFlags::CREATE).await?;
//!     sys.write(file, 4096).await?;
//!     sys.fsync(file).await
//! });
//! // The host's side: the answers are a descriptor, a count, and nothing.
//! assert!(matches!(program.resume(0, Ok(0)), Some(Call::Open { .. })));
//! assert!(matches!(program.resume(0, Ok(3)), Some(Call::Write { len: 4096, .. })));
//! assert!(matches!(program.resume(0, Ok(4096)), Some(Call::Fsync { .. })));
//! assert!(program.resume(0, Ok(0)).is_none());
//! assert_eq!(program.status(), Ok(()));
//! ```
//!
//! The crate is pure: no file system, clock, environment, threads or global state.

mod arguments;
mod call;
mod errno;
pub mod operations;
mod path;
pub mod recorder;
mod script;
mod sys;

pub use arguments::{
    Advice, Birth, Completion, Entry, Fd, Io, Kind, MapId, OpenFlags, Part, Shares, Stat, Whence,
};
pub use call::Call;
pub use errno::Errno;
pub use path::{Path, PathCache};
pub use script::{Program, Script};
pub use sys::Sys;

pub use iosched_types::TaskId;

/// What a system call returns: a number that depends on the call, or why there is none.
pub type Answer = Result<u64, Errno>;
/// The end of a program, or of a call that returns nothing.
pub type Done = Result<(), Errno>;
