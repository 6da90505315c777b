//! One experiment per disk, with any state folder: a locked file for each device number, and a lock of the disk's own
//! directory in the kernel.
//!
//! The file says which run made the changes. But it can be removed, and a container or another mount namespace has a
//! `/run` of its own. A second run would take the first one's scheduler for the disk's own then, and put that "back"
//! when the first has ended. The kernel's directory is the same for all, and lasts as long as the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::put_back::{Still, still};
use crate::error::{Error, Result};
use crate::kernel_fs::KernelFs;
use crate::root::{DevNum, SysRoot};

/// The folder of the locks. It is not the state folder: users choose that, and two users' folders differ.
pub const LOCK_DIR: &str = "/run/iosched/disks";

const POLL: Duration = Duration::from_millis(20);

/// The right to change one disk's queue. The kernel takes it back when the process dies.
#[derive(Debug)]
pub struct DiskLock {
    path: PathBuf,
    file: Flock<File>,
    /// The disk's own directory. Nothing is below a tree of files.
    _disk: Option<Flock<File>>,
}

impl DiskLock {
    /// Locks a disk (a kernel name) for an experiment.
    ///
    /// # Errors
    /// [`Error::Locked`] naming who holds it, [`Error::Unrestored`] when its last user was killed and its
    /// changes are still in place, [`Error::Unavailable`] where locks cannot be written.
    pub fn take(root: &SysRoot, disk: &str) -> Result<DiskLock> {
        Self::take_in(root, Path::new(LOCK_DIR), disk)
    }

    pub(crate) fn take_in(root: &SysRoot, dir: &Path, disk: &str) -> Result<DiskLock> {
        let mut lock = Self::get(root, dir, disk)?;
        let left = lock.unrestored(root, disk);
        if let Some(file) = left {
            // The lock stays as it is, because it says which run made the changes.
            return Err(crate::state::unrestored(&file));
        }
        lock.write(&std::process::id().to_string())?;
        Ok(lock)
    }

    /// Locks a disk to put it back. Waits for a holder: for this long, or until it is done.
    ///
    /// # Errors
    /// [`Error::Locked`] when another process goes on using it.
    pub(crate) fn take_over(
        root: &SysRoot,
        disk: &str,
        patience: Option<Duration>,
    ) -> Result<DiskLock> {
        let began = Instant::now();
        loop {
            match Self::get(root, Path::new(LOCK_DIR), disk) {
                Err(Error::Locked { .. }) if patience.is_none_or(|p| began.elapsed() < p) => {
                    std::thread::sleep(POLL);
                }
                other => return other,
            }
        }
    }

    fn get(root: &SysRoot, dir: &Path, disk: &str) -> Result<DiskLock> {
        let sys = disk.replace('/', "!");
        if !root.exists(&format!("/sys/block/{sys}")) {
            let device = format!("/dev/{disk}");
            return Err(Error::Gone { device, during: "locking".into() });
        }
        let number = root.get(&format!("/sys/block/{sys}/dev"));
        let number = number.as_deref().and_then(DevNum::parse);
        // The hidden paths of an NVMe multipath device have no number.
        let path = dir.join(number.map_or(sys, |n| n.to_string()));
        let unavailable = |e: std::io::Error| Error::Unavailable {
            what: format!("the lock of /dev/{disk}"),
            why: format!("{}: {e}", path.display()),
            help:
                "run it as root where /run can be written; without the lock another iosched could \
                   change the same disk"
                    .into(),
        };
        fs::DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(unavailable)?;
        let own = own_lock(root, disk, FlockArg::LockExclusiveNonblock).map_err(unavailable)?;
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o644);
            let file = options.open(&path).map_err(unavailable)?;
            let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(file) => file,
                Err((mut file, Errno::EWOULDBLOCK)) => {
                    let mut text = String::new();
                    // Its holder may be about to write it; the lock itself is what counts.
                    let _ = file.read_to_string(&mut text);
                    let pid = text.lines().next().and_then(|l| l.parse().ok()).unwrap_or(0);
                    return Err(Error::Locked { pid, what: format!("/dev/{disk}") });
                }
                Err((_, e)) => return Err(unavailable(e.into())),
            };
            // The holder removed the name before it released the lock.
            if file.metadata().map_err(unavailable)?.nlink() == 0 {
                continue;
            }
            let disk = match own {
                Own::Held => {
                    // Its holder has another /run, or the file was removed.
                    return Err(Error::Locked { pid: 0, what: format!("/dev/{disk}") });
                }
                Own::Ours(lock) => Some(lock),
                Own::None => None,
            };
            return Ok(DiskLock { path, file, _disk: disk });
        }
    }

    /// The state file of the last user, if that was killed and the disk is not put back yet.
    fn unrestored(&mut self, root: &SysRoot, disk: &str) -> Option<PathBuf> {
        let mut text = String::new();
        self.file.read_to_string(&mut text).ok()?;
        let file = PathBuf::from(text.lines().nth(1)?);
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
            Err(_) => return Some(file),
        };
        // What it says about this disk cannot be known.
        let Ok(state) = crate::state::parse(&text) else { return Some(file) };
        let crate::state::Change::Queue { device, diskseq, queue, .. } = state.change else {
            return None;
        };
        let same = device == disk
            && still(root, disk, diskseq, queue) != Still::Gone
            && state.boot_id == crate::state::boot_id();
        same.then_some(file)
    }

    /// Says where the changes are written down, so that the next process can find them.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn names(&mut self, state: &Path) -> Result<()> {
        let state = std::path::absolute(state).unwrap_or_else(|_| state.into());
        self.write(&format!("{}\n{}", std::process::id(), state.display()))
    }

    /// Removes the lock file of a dead user whose disk is gone, known by where its changes are written down. Nobody else
    /// ever would: the next disk of that number may never come.
    pub(crate) fn forget(state: &Path) {
        Self::forget_in(Path::new(LOCK_DIR), state);
    }

    fn forget_in(dir: &Path, state: &Path) {
        let state = std::path::absolute(state).unwrap_or_else(|_| state.into());
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let file = OpenOptions::new().read(true).write(true).open(&path).ok();
            let lock = file.and_then(|f| Flock::lock(f, FlockArg::LockExclusiveNonblock).ok());
            let Some(mut file) = lock else { continue };
            let mut text = String::new();
            let ours = file.read_to_string(&mut text).is_ok()
                && text.lines().nth(1).is_some_and(|named| Path::new(named) == state);
            // Without a name it is not the file that lies there now.
            if ours && file.metadata().is_ok_and(|m| m.nlink() > 0) {
                DiskLock { path, file, _disk: None }.release();
            }
        }
    }

    fn write(&mut self, text: &str) -> Result<()> {
        use std::os::unix::fs::FileExt;
        let io = |e| Error::io("writing", &self.path, e);
        self.file.set_len(0).map_err(io)?;
        self.file.write_all_at(format!("{text}\n").as_bytes(), 0).map_err(io)?;
        self.file.flush().map_err(io)
    }

    /// Gives it back: the disk is as it was.
    pub(crate) fn release(self) {
        // A file that stays means nothing, because its state file is gone. One that another process made in place of
        // ours is that one's lock.
        if names(&self.path, &self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Keeps experiments from a disk that lies below one of ours. Any number of those may have it.
#[derive(Debug)]
pub(crate) struct Shared(#[allow(dead_code, reason = "held")] Flock<File>);

impl Shared {
    /// Shares a disk's own directory; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Locked`] while an experiment works on the disk itself.
    pub(crate) fn take(root: &SysRoot, disk: &str) -> Result<Option<Shared>> {
        let device = format!("/dev/{disk}");
        match own_lock(root, disk, FlockArg::LockSharedNonblock) {
            Ok(Own::Held) => Err(Error::Locked { pid: 0, what: device }),
            Ok(Own::Ours(lock)) => Ok(Some(Shared(lock))),
            Ok(Own::None) => Ok(None),
            Err(e) => Err(Error::io("locking", device, e)),
        }
    }
}

/// Whether a path still leads to this open file.
pub(crate) fn names(path: &Path, file: &File) -> bool {
    let id = |m: fs::Metadata| (m.dev(), m.ino());
    let there = path.symlink_metadata().map(id);
    there.is_ok_and(|there| file.metadata().is_ok_and(|m| id(m) == there))
}

/// The lock of a disk's own directory.
enum Own {
    /// Another process has it.
    Held,
    Ours(Flock<File>),
    /// The disk has no such directory.
    None,
}

/// Locks the disk's own directory: that of debugfs, which is one for the whole machine. Where debugfs cannot be seen that
/// of sysfs, which is one for each network namespace.
fn own_lock(root: &SysRoot, disk: &str, how: FlockArg) -> std::io::Result<Own> {
    let debugfs = if root.is_machine() { KernelFs::debugfs().ok() } else { None };
    let sys = disk.replace('/', "!");
    let global = debugfs.and_then(|d| File::open(d.root().real(&format!("/block/{sys}"))).ok());
    let local = || File::open(root.real(&format!("/sys/block/{sys}/queue"))).ok();
    let Some(dir) = global.or_else(local) else { return Ok(Own::None) };
    match Flock::lock(dir, how) {
        Ok(lock) => Ok(Own::Ours(lock)),
        Err((_, Errno::EWOULDBLOCK)) => Ok(Own::Held),
        Err((_, e)) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::QueueState;
    use crate::state::{Change, StateFile};
    use std::collections::BTreeMap;

    fn machine() -> (tempfile::TempDir, SysRoot, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let sda = dir.path().join("sys/block/sda");
        fs::create_dir_all(sda.join("queue")).unwrap();
        fs::write(sda.join("dev"), "8:0\n").unwrap();
        fs::write(sda.join("diskseq"), "7\n").unwrap();
        let root = SysRoot::fixture(dir.path(), BTreeMap::new());
        let locks = dir.path().join("run/iosched/disks");
        (dir, root, locks)
    }

    #[test]
    fn a_second_holder_is_refused_with_the_first_ones_number() {
        let (_dir, root, locks) = machine();
        let first = DiskLock::take_in(&root, &locks, "sda").unwrap();
        let e = DiskLock::take_in(&root, &locks, "sda").unwrap_err();
        assert!(matches!(&e, Error::Locked { pid, .. } if *pid == std::process::id()), "{e:?}");
        first.release();
        DiskLock::take_in(&root, &locks, "sda").unwrap().release();
        assert!(fs::read_dir(&locks).unwrap().next().is_none());
    }

    /// Otherwise the second would take the first one's scheduler for the disk's own, and leave it there.
    #[test]
    fn a_second_holder_is_refused_where_the_lock_file_was_removed_or_is_another() {
        let (dir, root, locks) = machine();
        let first = DiskLock::take_in(&root, &locks, "sda").unwrap();
        fs::remove_dir_all(&locks).unwrap();
        for locks in [&locks, &dir.path().join("run of a container")] {
            let e = DiskLock::take_in(&root, locks, "sda").unwrap_err();
            assert!(matches!(&e, Error::Locked { .. }), "{e:?}");
        }
        first.release();
        // It does not take away a lock that was made in place of its own.
        let old = DiskLock::take_in(&root, &locks, "sda").unwrap();
        fs::remove_file(&old.path).unwrap();
        fs::write(&old.path, "another's").unwrap();
        let path = old.path.clone();
        old.release();
        assert!(path.exists());
        DiskLock::take_in(&root, &locks, "sda").unwrap().release();
    }

    /// Two loop devices on one disk may be compared at once, but nothing on that disk itself meanwhile.
    #[test]
    fn a_disk_below_is_shared_by_those_above_it_only() {
        let (_dir, root, locks) = machine();
        let above = [Shared::take(&root, "sda").unwrap(), Shared::take(&root, "sda").unwrap()];
        assert!(above.iter().all(Option::is_some));
        let e = DiskLock::take_in(&root, &locks, "sda").unwrap_err();
        assert!(matches!(&e, Error::Locked { .. }), "{e:?}");
        drop(above);
        let lock = DiskLock::take_in(&root, &locks, "sda").unwrap();
        let e = Shared::take(&root, "sda").unwrap_err();
        assert!(matches!(&e, Error::Locked { .. }), "{e:?}");
        lock.release();
        assert!(Shared::take(&root, "sdz").unwrap().is_none());
    }

    #[test]
    fn what_a_killed_holder_left_is_named_wherever_it_is_written_down() {
        let (dir, root, locks) = machine();
        let change = |diskseq| Change::Queue {
            device: "sda".into(),
            diskseq: Some(diskseq),
            queue: None,
            tag_depth: None,
            before: Box::new(QueueState::default()),
            set: None,
        };
        for (diskseq, left) in [(7, true), (6, false)] {
            let state = dir.path().join(format!("elsewhere-{diskseq}"));
            let mut lock = DiskLock::take_in(&root, &locks, "sda").unwrap();
            let state = StateFile::create(&state, "queue-sda", change(diskseq)).unwrap();
            lock.names(state.path()).unwrap();
            // Killed: both locks are gone, both files stay.
            drop(lock);
            let again = DiskLock::take_in(&root, &locks, "sda");
            match again {
                Err(Error::Unrestored { what, .. }) => {
                    assert!(left && what.contains("elsewhere-7"))
                }
                Ok(lock) => {
                    assert!(!left, "another incarnation of the disk");
                    lock.release();
                }
                Err(e) => panic!("{e:?}"),
            }
            state.finish().unwrap();
            DiskLock::take_in(&root, &locks, "sda").unwrap().release();
        }
    }

    #[test]
    fn the_lock_file_of_a_disk_that_is_gone_is_removed_and_no_other() {
        let (dir, root, locks) = machine();
        let (ours, other) = (dir.path().join("queue-sda.json"), dir.path().join("other.json"));
        let mut lock = DiskLock::take_in(&root, &locks, "sda").unwrap();
        lock.names(&ours).unwrap();
        DiskLock::forget_in(&locks, &ours);
        assert!(locks.join("8:0").exists(), "it is held");
        drop(lock);
        DiskLock::forget_in(&locks, &other);
        assert!(locks.join("8:0").exists(), "it is another's");
        DiskLock::forget_in(&locks, &ours);
        assert!(!locks.join("8:0").exists());
        DiskLock::forget_in(&dir.path().join("missing"), &ours);
    }

    #[test]
    fn a_state_file_that_cannot_be_read_keeps_the_disk() {
        let (dir, root, locks) = machine();
        let state = dir.path().join("queue-sda.json");
        fs::write(&state, "{\"version\":").unwrap();
        let mut lock = DiskLock::take_in(&root, &locks, "sda").unwrap();
        lock.names(&state).unwrap();
        drop(lock);
        let e = DiskLock::take_in(&root, &locks, "sda").unwrap_err();
        assert!(matches!(e, Error::Unrestored { .. }), "nobody knows what it was: {e:?}");
        fs::remove_file(&state).unwrap();
        DiskLock::take_in(&root, &locks, "sda").unwrap().release();
    }

    #[test]
    fn where_no_lock_can_be_written_it_says_so() {
        let (dir, root, _) = machine();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let e = DiskLock::take_in(&root, &file.join("disks"), "sda").unwrap_err();
        assert!(matches!(e, Error::Unavailable { .. }) && e.help().contains("/run"), "{e:?}");
        assert_eq!(e.class(), crate::ExitClass::Missing);
    }
}
