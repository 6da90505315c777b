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

/// Where nobody may mount.
pub(crate) fn denied(e: std::io::Error) -> Error {
    Error::Unavailable {
        what: "a mount namespace for the command".into(),
        why: e.to_string(),
        help: "in a container: --cap-add SYS_ADMIN".into(),
    }
}

fn begin(fill: impl FnOnce() -> Result<()>) -> Result<OwnedFd> {
    let refused = |e: nix::Error| denied(e.into());
    unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).map_err(refused)?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(refused)?;
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

/// Where programs share memory by name.
const MEMORY: &str = "/dev/shm";

/// Gives a namespace that is being filled shared memory of its own. What a killed program had there goes with the
/// namespace; in that of the machine it would stay.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn own_memory() -> Result<()> {
    if !Path::new(MEMORY).is_dir() {
        return Ok(());
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("iosched"), MEMORY, Some("tmpfs"), flags, Some("mode=1777"))
        .map_err(|e| Error::io("mounting on", MEMORY, e.into()))
}
