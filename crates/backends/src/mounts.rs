//! Mount namespaces of our own. What is mounted in one is seen by nobody else. It lives as long as this program keeps it
//! open, so nothing has to be undone, even after SIGKILL.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::fs::CWD;
use rustix::mount::{MoveMountFlags, move_mount};

use crate::error::{Error, Result};

/// Makes a namespace that begins as ours and has `fill` mount in it.
///
/// # Errors
/// [`Error::Unavailable`] where mounting is not allowed, [`Error::Io`], and those of `fill`.
pub(crate) fn namespace(fill: impl FnOnce() -> Result<()> + Send) -> Result<OwnedFd> {
    // Only a thread with a working directory of its own can have a namespace of its own.
    let made = std::thread::scope(|scope| scope.spawn(|| begin(fill)).join());
    made.unwrap_or_else(|_| Err(Error::Trial { message: "the thread that mounts panicked".into() }))
}

fn begin(fill: impl FnOnce() -> Result<()>) -> Result<OwnedFd> {
    let denied = |e: nix::Error| Error::Unavailable {
        what: "a mount namespace for the command".into(),
        why: e.to_string(),
        help: "in a container: --cap-add SYS_ADMIN".into(),
    };
    unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).map_err(denied)?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(denied)?;
    let path = "/proc/thread-self/ns/mnt";
    let namespace = File::open(path).map_err(|e| Error::io("opening", path, e))?;
    fill()?;
    Ok(namespace.into())
}

/// Mounts a tree that is mounted nowhere.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn put(tree: BorrowedFd<'_>, at: &Path) -> Result<()> {
    move_mount(tree, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(|e| Error::io("mounting on", at, e.into()))
}
