//! One experiment per disk, with any state folder: a locked file for each device number.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::{Error, Result};
use crate::root::{DevNum, SysRoot};

/// The folder of the locks. It is not the state folder: users choose that, and two users' folders differ.
pub const LOCK_DIR: &str = "/run/iosched/disks";

const POLL: Duration = Duration::from_millis(20);

/// The right to change one disk's queue. The kernel takes it back when the process dies.
#[derive(Debug)]
pub struct DiskLock {
    path: PathBuf,
    file: Flock<File>,
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
            return Err(Error::Unrestored { what: file.display().to_string() });
        }
        lock.write(&std::process::id().to_string())?;
        Ok(lock)
    }

    /// Locks a disk to put it back; waits for a holder that is about to die.
    ///
    /// # Errors
    /// [`Error::Locked`] when another process goes on using it.
    pub(crate) fn take_over(root: &SysRoot, disk: &str, patience: Duration) -> Result<DiskLock> {
        let deadline = Instant::now() + patience;
        loop {
            match Self::get(root, Path::new(LOCK_DIR), disk) {
                Err(Error::Locked { .. }) if Instant::now() < deadline => std::thread::sleep(POLL),
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
            if file.metadata().map_err(unavailable)?.nlink() > 0 {
                return Ok(DiskLock { path, file });
            }
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
        let now = super::session::incarnation(root, disk);
        let crate::state::Change::Queue { device, diskseq, .. } = state.change else { return None };
        let same = device == disk && diskseq == now && state.boot_id == crate::state::boot_id();
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
                DiskLock { path, file }.release();
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
        // A file that stays means nothing, because its state file is gone.
        let _ = fs::remove_file(&self.path);
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
        fs::create_dir_all(&sda).unwrap();
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

    #[test]
    fn what_a_killed_holder_left_is_named_wherever_it_is_written_down() {
        let (dir, root, locks) = machine();
        let change = |diskseq| Change::Queue {
            device: "sda".into(),
            diskseq: Some(diskseq),
            tag_depth: None,
            before: Box::new(QueueState::default()),
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
                Err(Error::Unrestored { what }) => assert!(left && what.contains("elsewhere-7")),
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
