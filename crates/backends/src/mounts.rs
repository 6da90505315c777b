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
    // What is unmounted on the machine meanwhile has to go here, too: else it would seem to be unmounted, and be neither
    // written back nor free. What is mounted here reaches nobody else.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none).map_err(refused)?;
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
pub(crate) const MEMORY: &str = "/dev/shm";

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

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
mod tests {
    use std::thread;

    use nix::mount::umount;
    use nix::sched::setns;

    use super::*;

    /// Whether something is mounted there in a namespace.
    fn has(namespace: &OwnedFd, at: &Path) -> bool {
        let look = || {
            unshare(CloneFlags::CLONE_FS).unwrap();
            setns(namespace, CloneFlags::CLONE_NEWNS).unwrap();
            std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap()
        };
        let mounts = thread::scope(|s| s.spawn(look).join()).unwrap();
        mounts.contains(&format!(" {} ", at.display()))
    }

    /// As where systemd runs, whose mounts are shared. Somebody takes a disk away during a run.
    #[test]
    fn an_unmount_elsewhere_reaches_it_and_what_is_mounted_here_nobody() {
        let test = || {
            let (dir, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            if unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS).is_err() {
                println!("SKIPPED: mounting is not allowed here");
                return;
            }
            let none: Option<&str> = None;
            for how in [MsFlags::MS_PRIVATE, MsFlags::MS_SHARED] {
                mount(none, "/", none, MsFlags::MS_REC | how, none).unwrap();
            }
            let tmpfs = |at: &Path| mount(Some("t"), at, Some("tmpfs"), MsFlags::empty(), none);
            tmpfs(dir.path()).unwrap();
            let namespace = namespace(|| {
                tmpfs(ours.path()).unwrap();
                Ok(())
            });
            let namespace = namespace.unwrap();
            assert!(has(&namespace, dir.path()) && has(&namespace, ours.path()));
            let here = std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
            assert!(!here.contains(&*ours.path().to_string_lossy()), "{here}");
            umount(dir.path()).unwrap();
            assert!(!has(&namespace, dir.path()), "it is still mounted there");
        };
        thread::scope(|s| s.spawn(test).join()).unwrap();
    }
}
