//! Directories that a run makes in another user's file system. Removing them never goes through a mount point, and
//! never hits another directory of the same name.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, ResolveFlags, StatxFlags, fstatvfs, mkdirat, openat2, statx,
    unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How long a killed process may take to end, and what lies between two looks.
const DYING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// The identity of a file or directory, which no copy shares: the id of its file system (on btrfs each snapshot has its
/// own), the inode's number, and the time at which it was made, which cannot be set. Where the file system does not
/// keep that time, the word `unknown`.
pub(crate) fn identity(file: impl AsFd) -> io::Result<String> {
    let system = fstatvfs(&file)?.f_fsid;
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(&file, "", AtFlags::EMPTY_PATH, wanted)?;
    let born = if found.stx_mask & StatxFlags::BTIME.bits() == 0 {
        "unknown".into()
    } else {
        format!("{}.{:09}", found.stx_btime.tv_sec, found.stx_btime.tv_nsec)
    };
    Ok(format!("{system:x}:{}:{born}", found.stx_ino))
}

/// A directory of ours, written down before it is made. No other program gives such a name. Its place is known by more
/// than its path, because a file system may be unmounted meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeDirectory {
    /// The directory.
    pub path: PathBuf,
    /// Distinguishes its parent directory from another one of the same path.
    pub parent: String,
    /// Distinguishes it from another one of the same name, once it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<String>,
}

impl MadeDirectory {
    /// Chooses a name in `parent`; nothing is made yet.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn choose(parent: &Path, stem: &str) -> Result<MadeDirectory> {
        let io = |e| Error::io("looking at", parent, e);
        let token = RandomState::new().build_hasher().finish();
        let identity = identity(File::open(parent).map_err(io)?).map_err(io)?;
        let path = parent.join(format!("{stem}-{token:016x}"));
        Ok(MadeDirectory { path, parent: identity, own: None })
    }

    /// Makes it; its identity, which has to be written down before anything is put into it.
    ///
    /// # Errors
    /// [`Error::Io`]; also when another file system has been mounted over its place.
    pub(crate) fn make(&mut self) -> Result<String> {
        let io = |e: Errno| Error::io("creating", &self.path, e.into());
        let Some((parent, name)) = self.parent()? else { return Err(io(Errno::STALE)) };
        mkdirat(&parent, name, Mode::from_raw_mode(0o755)).map_err(io)?;
        let own = identity(enter(&parent, name).map_err(io)?)
            .map_err(|e| Error::io("looking at", &self.path, e))?;
        self.own = Some(own.clone());
        Ok(own)
    }

    /// Removes the directory with everything in it. Returns whether it was there.
    ///
    /// # Errors
    /// [`Error::InUse`] where something is mounted inside (that is left alone) or its file system is not
    /// mounted, [`Error::Trial`] for another directory of its name, [`Error::Io`].
    pub(crate) fn remove(&self) -> Result<bool> {
        let Some((parent, name)) = self.parent()? else {
            return Err(self.in_use(
                "its file system is not mounted there now; mount it and run: iosched restore"
                    .into(),
            ));
        };
        // Processes that were killed a moment ago may still be ending a system call that makes a file.
        let until = Instant::now() + DYING;
        let removed = loop {
            match self.remove_own(&parent, name) {
                Err(Stopped::Io(Errno::NOTEMPTY)) if Instant::now() < until => sleep(LOOK),
                done => break done,
            }
        };
        removed.map_err(|e| match e {
            Stopped::Mounted(inside) => self.in_use(format!(
                "something is mounted on {}; unmount it and run: iosched restore",
                self.path.join(inside).display()
            )),
            Stopped::Another => Error::Trial {
                message: format!(
                    "{} is not the directory that the run made, which was moved or removed: it stays as it is; move it \
                     away and run: iosched restore",
                    self.path.display()
                ),
            },
            Stopped::Io(e) => Error::io("removing", &self.path, e.into()),
        })
    }

    /// Removes it if what has its name now is what was made. It is emptied through its descriptor, so whatever gets its
    /// name meanwhile goes only if it is empty.
    fn remove_own(&self, parent: &File, name: &OsStr) -> std::result::Result<bool, Stopped> {
        let directory = match enter(parent, name) {
            Ok(d) => d,
            Err(Errno::NOENT) => return Ok(false),
            Err(Errno::XDEV) => return Err(Stopped::Mounted(PathBuf::new())),
            // A link, or something else in its place.
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(Stopped::Another),
            Err(e) => return Err(e.into()),
        };
        let found = identity(&directory);
        match &self.own {
            Some(own) => {
                if found.map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))? != *own {
                    return Err(Stopped::Another);
                }
                empty(&directory)?;
            }
            // Its maker was killed before it could say which one it is, and so before it put anything into it.
            None if names(&directory)?.is_empty() => {}
            None => return Err(Stopped::Another),
        }
        drop(directory);
        remove_empty(parent, name)
    }

    /// The parent directory, if that is still the same one.
    fn parent(&self) -> Result<Option<(File, &OsStr)>> {
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            let message = format!("{} is no directory of ours", self.path.display());
            return Err(Error::input(message, String::new()));
        };
        let io = |e| Error::io("looking at", parent, e);
        let opened = match File::open(parent) {
            Ok(f) => f,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(io(e)),
        };
        let same = identity(&opened).map_err(io)? == self.parent;
        Ok(same.then_some((opened, name)))
    }

    fn in_use(&self, why: String) -> Error {
        Error::InUse { device: self.path.display().to_string(), why }
    }
}

/// Removes a directory of ours that holds small files only, if it is there.
pub(crate) fn remove_scratch(path: &Path) {
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        && let Ok(parent) = File::open(parent)
    {
        // Files that cannot be removed are useless and do no harm.
        let _ = remove_tree(&parent, name);
    }
}

/// Why a directory stays.
#[derive(Debug)]
enum Stopped {
    /// Something is mounted there (below the directory).
    Mounted(PathBuf),
    /// Something else has its name.
    Another,
    Io(Errno),
}

impl From<Errno> for Stopped {
    fn from(e: Errno) -> Self {
        Stopped::Io(e)
    }
}

/// Removes a directory with everything in it. Returns whether it was there. Does not enter or detach mounts inside.
fn remove_tree(parent: impl AsFd, name: &OsStr) -> std::result::Result<bool, Stopped> {
    let directory = match enter(&parent, name) {
        Ok(d) => d,
        Err(Errno::NOENT) => return Ok(false),
        Err(Errno::XDEV) => return Err(Stopped::Mounted(PathBuf::new())),
        Err(e) => return Err(e.into()),
    };
    empty(&directory)?;
    drop(directory);
    remove_empty(parent, name)
}

/// Removes everything in a directory.
fn empty(directory: &OwnedFd) -> std::result::Result<(), Stopped> {
    for entry in names(directory)? {
        match unlinkat(directory, &entry, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(Errno::BUSY) => return Err(Stopped::Mounted(entry.into())),
            // POSIX has EPERM for directories.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(e) => return Err(e.into()),
        }
        remove_tree(directory, &entry).map_err(|e| match e {
            Stopped::Mounted(inside) => Stopped::Mounted(Path::new(&entry).join(inside)),
            other => other,
        })?;
    }
    Ok(())
}

/// Removes an empty directory. Returns whether it was there.
fn remove_empty(parent: impl AsFd, name: &OsStr) -> std::result::Result<bool, Stopped> {
    match unlinkat(&parent, name, AtFlags::REMOVEDIR) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(Errno::BUSY) => Err(Stopped::Mounted(PathBuf::new())),
        Err(e) => Err(e.into()),
    }
}

/// Opens a directory, but no link and nothing on another mount (a bind mount has the same device number).
fn enter(parent: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    openat2(parent, name, flags, Mode::empty(), resolve)
}

fn names(directory: impl AsFd) -> rustix::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

/// Whether a name is one that [`MadeDirectory::choose`] gives for `stem`.
pub(crate) fn is_chosen(path: &Path, stem: &str) -> bool {
    let name = path.file_name().map(OsStr::as_bytes).unwrap_or_default();
    let rest = name.strip_prefix(stem.as_bytes()).and_then(|r| r.strip_prefix(b"-"));
    rest.is_some_and(|r| r.len() > 16 && r[r.len() - 16..].iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
mod tests {
    use std::fs;

    use super::*;

    fn made(parent: &Path) -> MadeDirectory {
        let mut made = MadeDirectory::choose(parent, "iosched-startup-1").unwrap();
        made.make().unwrap();
        fs::create_dir_all(made.path.join("root/usr/lib")).unwrap();
        fs::write(made.path.join("root/usr/lib/a"), "x").unwrap();
        made
    }

    #[test]
    fn it_goes_with_all_that_is_in_it_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("precious");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("data"), "kept").unwrap();
        let made = made(dir.path());
        assert!(is_chosen(&made.path, "iosched-startup"), "{made:?}");
        std::os::unix::fs::symlink(&other, made.path.join("root/link")).unwrap();
        assert!(made.remove().unwrap());
        assert!(!made.path.exists());
        assert!(!made.remove().unwrap(), "somebody removed it: fine");
        assert_eq!(fs::read_to_string(other.join("data")).unwrap(), "kept");
    }

    #[test]
    fn it_goes_though_somebody_makes_files_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let made = made(dir.path());
        let lib = made.path.join("root/usr/lib");
        let (busy, until) = (lib.clone(), Instant::now() + Duration::from_millis(300));
        let files = std::thread::spawn(move || {
            let mut n = 0_u64;
            // It ends early when its directory is gone.
            while Instant::now() < until && fs::write(busy.join(n.to_string()), "x").is_ok() {
                n += 1;
            }
            n
        });
        while !lib.join("9").exists() {
            std::thread::yield_now();
        }
        assert!(made.remove().unwrap());
        assert!(files.join().unwrap() > 9);
        assert!(!made.path.exists());
    }

    #[test]
    fn a_link_in_its_place_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let made = made(dir.path());
        let moved = dir.path().join("moved");
        fs::rename(&made.path, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &made.path).unwrap();
        made.remove().unwrap_err();
        assert!(moved.join("root/usr/lib/a").exists());
    }

    #[test]
    fn another_directory_of_its_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let made = made(dir.path());
        let moved = dir.path().join("moved");
        fs::rename(&made.path, &moved).unwrap();
        fs::create_dir(&made.path).unwrap();
        fs::write(made.path.join("theirs"), "kept").unwrap();
        let e = made.remove().unwrap_err();
        assert!(e.to_string().contains("not the directory that the run made"), "{e}");
        assert_eq!(fs::read_to_string(made.path.join("theirs")).unwrap(), "kept");
        // It is known again by what it is.
        fs::rename(&made.path, dir.path().join("theirs")).unwrap();
        fs::rename(&moved, &made.path).unwrap();
        assert!(made.remove().unwrap() && !made.path.exists());
    }

    /// Its maker was killed between making it and writing down which one it is.
    #[test]
    fn one_that_is_not_known_goes_only_if_it_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let made = MadeDirectory::choose(dir.path(), "iosched-startup-1").unwrap();
        fs::create_dir(&made.path).unwrap();
        fs::write(made.path.join("theirs"), "kept").unwrap();
        made.remove().unwrap_err();
        assert!(made.path.join("theirs").exists());
        fs::remove_file(made.path.join("theirs")).unwrap();
        assert!(made.remove().unwrap() && !made.path.exists());
    }

    #[test]
    fn the_same_path_in_another_directory_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let parent = dir.path().join("mnt");
        fs::create_dir(&parent).unwrap();
        let made = made(&parent);
        // As when a file system is unmounted and the directory below has one of the same name.
        fs::rename(&parent, dir.path().join("elsewhere")).unwrap();
        fs::create_dir_all(&made.path).unwrap();
        fs::write(made.path.join("theirs"), "kept").unwrap();
        let e = made.remove().unwrap_err();
        assert!(matches!(e, Error::InUse { .. }), "{e:?}");
        assert!(made.path.join("theirs").exists());
        fs::remove_dir_all(&parent).unwrap();
        assert!(
            matches!(made.remove().unwrap_err(), Error::InUse { .. }),
            "it is not there at all"
        );
    }

    #[test]
    fn what_is_mounted_inside_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("precious");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("data"), "kept").unwrap();
        let made = made(dir.path());
        let at = made.path.join("root/usr/lib");
        if let Err(e) = rustix::mount::mount_bind(&other, &at) {
            made.remove().unwrap();
            return println!("SKIPPED: bind mounts: {e}");
        }
        let e = made.remove();
        rustix::mount::unmount(&at, rustix::mount::UnmountFlags::empty()).unwrap();
        let e = e.unwrap_err();
        assert!(e.to_string().contains(&at.display().to_string()), "{e}");
        assert_eq!(fs::read_to_string(other.join("data")).unwrap(), "kept");
        assert!(made.remove().unwrap());
    }
}
