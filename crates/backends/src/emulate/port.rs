//! The common interface of all ways between the kernel and the disk: requests come, answers go.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iosched_types::Op;

/// Longest request that any way takes: the longest transfer of FUSE.
pub(crate) const MAX_TRANSFER: u32 = 1 << 20;

/// A request to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Where its data and its answer belong; free again after the answer.
    pub(crate) slot: u32,
    pub(crate) op: Op,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) fua: bool,
}

/// How a request ended: its data is in place, or the number of an error.
pub(crate) type Outcome = Result<(), i32>;

/// One way. It belongs to the thread that serves.
pub(crate) trait Port {
    /// The next request that has arrived; does not wait.
    ///
    /// # Errors
    /// The kernel's; [`is_over`] tells whether the disk merely went away.
    fn next(&mut self) -> io::Result<Option<Request>>;

    /// Room for the data of a request. It holds the data of a write.
    fn data(&mut self, request: &Request) -> &mut [u8];

    /// Answers a request, at the latest with the next `flush` or `wait`.
    ///
    /// # Errors
    /// The kernel's.
    fn answer(&mut self, request: &Request, outcome: Outcome) -> io::Result<()>;

    /// Sends the answers.
    ///
    /// # Errors
    /// The kernel's.
    fn flush(&mut self) -> io::Result<()>;

    /// Sends the answers and sleeps until a request comes or the bell rings, at most this long.
    ///
    /// # Errors
    /// The kernel's.
    fn wait(&mut self, limit: Option<Duration>) -> io::Result<()>;

    /// Whether a request may have come. A thread that does not sleep asks again and again.
    fn ready(&mut self) -> bool;
}

/// The kernel has no more use for the server: unmounted, aborted, or device removed.
pub(crate) fn is_over(e: &io::Error) -> bool {
    use nix::libc::{ECANCELED, ENODEV, ENOTCONN};
    matches!(e.raw_os_error(), Some(ENODEV | ENOTCONN | ECANCELED))
}

/// Wakes the thread that serves.
#[derive(Debug)]
pub(crate) struct Bell {
    rung: AtomicBool,
    pipe: io::PipeWriter,
}

/// The end that the serving thread waits at.
#[derive(Debug)]
pub(crate) struct BellPull(io::PipeReader);

impl Bell {
    /// Both ends.
    pub(crate) fn new() -> io::Result<(Bell, BellPull)> {
        let (reader, pipe) = io::pipe()?;
        Ok((Bell { rung: AtomicBool::new(false), pipe }, BellPull(reader)))
    }

    /// Rings for the serving thread, so that it looks at a new decision.
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        // A full pipe wakes the thread as well. A broken one has no reader.
        let _ = (&self.pipe).write(&[1]);
    }

    /// Whether it rang since it was [`noticed`](Self::noticed).
    pub(crate) fn rings(&self) -> bool {
        self.rung.load(Ordering::Acquire)
    }

    /// What was decided is looked at next.
    pub(crate) fn noticed(&self) {
        self.rung.store(false, Ordering::Release);
    }
}

impl BellPull {
    /// Takes the bytes that made it readable.
    pub(crate) fn silence(&self) {
        let _ = (&self.0).read(&mut [0; 64]);
    }
}

impl AsFd for BellPull {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
