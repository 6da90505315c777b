//! Directories that a run makes in another user's file system. Removing them never goes through a mount point, and
//! never hits another directory of the same name.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, ResolveFlags, StatxFlags, fstat, fstatvfs, fsync, mkdirat, openat,
    openat2, statx, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::sys;

/// How long a killed process may take to end, and what lies between two looks.
const DYING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// Takes the right to write to what this process makes from all others, whatever its umask was. For programs that run as
/// root: a file in a folder of theirs could be made a link.
pub fn keep_others_out() {
    let others = nix::sys::stat::Mode::S_IWGRP | nix::sys::stat::Mode::S_IWOTH;
    let given = nix::sys::stat::umask(others);
    nix::sys::stat::umask(given | others);
}

/// The identity of a file or directory, which no copy shares: the id of its file system (on btrfs each snapshot has its
/// own), the inode's number, and the time at which it was made, which cannot be set. Where the file system does not
/// keep that time (ext4 with inodes of 128 bytes), the inode's generation, which is another one when the number is used
/// again; without both, the word `unknown`.
pub(crate) fn identity(file: impl AsFd) -> io::Result<String> {
    let system = fstatvfs(&file)?.f_fsid;
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(&file, "", AtFlags::EMPTY_PATH, wanted)?;
    let born = if found.stx_mask & StatxFlags::BTIME.bits() != 0 {
        format!("{}.{:09}", found.stx_btime.tv_sec, found.stx_btime.tv_nsec)
    } else if let Some(generation) = sys::generation(&file) {
        format!("g{generation}")
    } else {
        UNKNOWN.into()
    };
    Ok(format!("{system:x}:{}:{}", found.stx_ino, as_known(born)))
}

/// Stands for the birth of a file that nobody can tell.
const UNKNOWN: &str = "unknown";

/// Whether an identity tells a thing from a later one that was given its number.
pub(crate) fn tells(identity: &str) -> bool {
    !identity.ends_with(&format!(":{UNKNOWN}"))
}

#[cfg(not(test))]
fn as_known(born: String) -> String {
    born
}

#[cfg(test)]
use tests::as_known;

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

    /// Makes it. Its identity (`own`) has to be written down before anything is put into it, and then it is to be
    /// [marked](Self::mark).
    ///
    /// # Errors
    /// [`Error::Io`]; also when another file system has been mounted over its place. Nothing is left then.
    pub(crate) fn make(&mut self) -> Result<OwnedFd> {
        let io = |e: Errno| Error::io("creating", &self.path, e.into());
        let Some((parent, name)) = self.parent()? else { return Err(io(Errno::STALE)) };
        mkdirat(&parent, name, Mode::from_raw_mode(0o755)).map_err(io)?;
        let known = enter(&parent, name).map_err(io).and_then(|made| {
            let own = identity(&made).map_err(|e| Error::io("looking at", &self.path, e))?;
            Ok((made, own))
        });
        let (made, mut own) = match known {
            Ok(known) => known,
            Err(e) => {
                // It is empty. Its name may be another's by now, which then stays.
                let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
                return Err(e);
            }
        };
        if !tells(&own) {
            own = format!("{own}:{:016x}", RandomState::new().build_hasher().finish());
        }
        self.own = Some(own);
        Ok(made)
    }

    /// Puts a file with the run's token into it, if nothing else would tell it from a later one of its name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn mark(&self, made: &OwnedFd) -> Result<()> {
        let io = |e: io::Error| Error::io("marking", &self.path, e);
        let found = identity(made).map_err(io)?;
        let Some(token) = self.own.as_ref().and_then(|own| own.strip_prefix(&format!("{found}:")))
        else {
            return Ok(());
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file =
            openat(made, MARK, flags, Mode::from_raw_mode(0o600)).map_err(|e| io(e.into()))?;
        let mut file = File::from(file);
        file.write_all(token.as_bytes()).and_then(|()| file.sync_all()).map_err(io)?;
        fsync(made).map_err(|e| io(e.into()))
    }

    /// Makes sure that its name leads to the directory that is held, and nowhere else.
    ///
    /// # Errors
    /// [`Error::Trial`] if not, with the place where that one is now; [`Error::Io`].
    pub(crate) fn leads_to(&self, held: &OwnedFd) -> Result<()> {
        let inode = |fd: &OwnedFd| fstat(fd).ok().map(|s| (s.st_dev, s.st_ino));
        let here = match self.parent()? {
            Some((parent, name)) => match enter(&parent, name) {
                Ok(found) => inode(&found),
                Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => None,
                Err(e) => return Err(Error::io("looking at", &self.path, e.into())),
            },
            None => None,
        };
        if here.is_some() && here == inode(held) {
            return Ok(());
        }
        Err(Error::Trial {
            message: format!(
                "{} does not lead to the run's directory any more: it was moved, removed or covered",
                self.path.display()
            ),
        })
    }

    /// Removes the directory with everything in it. Returns whether it was there. `again` is the command that tries it
    /// once more.
    ///
    /// # Errors
    /// [`Error::Left`] where something is mounted inside (that is left alone) or its file system is not
    /// mounted, [`Error::Trial`] for another directory of its name, [`Error::Io`].
    pub(crate) fn remove(&self, again: &str) -> Result<bool> {
        let Some((parent, name)) = self.parent()? else {
            return Err(self.left(format!(
                "its file system is not mounted there now; mount it and run: {again}"
            )));
        };
        self.remove_own(&parent, name).map_err(|e| match e {
            Stopped::Mounted(inside) => self.left(format!(
                "something is mounted on {}; unmount it and run: {again}",
                self.path.join(inside).display()
            )),
            Stopped::Another => Error::Trial {
                message: format!(
                    "{} is not the directory that the run made, which was moved or removed: it stays as it is; move it \
                     away and run: {again}",
                    self.path.display()
                ),
            },
            Stopped::Untold => Error::Trial {
                message: format!(
                    "{} is not empty, and the state file does not say whether the run made it (it ends too early): it \
                     stays as it is; look at it, remove it or move it away, and run: {again}",
                    self.path.display()
                ),
            },
            Stopped::Io(inside, e) => {
                // Joining nothing would leave a slash at the end.
                let empty = inside.as_os_str().is_empty();
                let path = if empty { self.path.clone() } else { self.path.join(inside) };
                Error::io("removing", path, e.into())
            }
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
        let found =
            identity(&directory).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
        match &self.own {
            Some(own) if *own == found && tells(own) => {}
            Some(own) => {
                let Some(token) = own.strip_prefix(&found) else { return Err(Stopped::Another) };
                let token = token.strip_prefix(':').filter(|t| !t.is_empty());
                let marked = token.is_some_and(|t| token_in(&directory) == t);
                // Its maker or its remover was killed while it had no mark: there is nothing in it then.
                if !marked && !names(&directory)?.is_empty() {
                    return Err(Stopped::Another);
                }
            }
            // Its maker was killed before it could say which one it is, and so before it put anything into it.
            None if names(&directory)?.is_empty() => {}
            None => return Err(Stopped::Untold),
        }
        // Processes that were killed a moment ago may still be ending a system call that makes a file.
        let until = Instant::now() + DYING;
        loop {
            let removed = empty(&directory, Some(MARK)).and_then(|()| {
                // The mark goes last.
                match unlinkat(&directory, MARK, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => remove_empty(parent, name),
                    Err(e) => Err(e.into()),
                }
            });
            match removed {
                Err(Stopped::Io(_, Errno::NOTEMPTY)) if Instant::now() < until => sleep(LOOK),
                done => return done,
            }
        }
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

    fn left(&self, why: String) -> Error {
        Error::Left { path: self.path.display().to_string(), why }
    }
}

/// The file with a run's token in a directory of ours.
const MARK: &str = ".iosched-run";

/// The token in a directory; empty without one.
fn token_in(directory: &OwnedFd) -> String {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut token = String::new();
    if let Ok(file) = openat(directory, MARK, flags, Mode::empty()) {
        // What cannot be read is no token of ours.
        let _ = File::from(file).take(64).read_to_string(&mut token);
    }
    token
}

/// Removes a directory of ours that holds small files only, if it is there.
pub(crate) fn remove_scratch(path: &Path) {
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        && let Ok(parent) = File::open(parent)
    {
        remove_inside(&parent, name);
    }
}

/// Removes what a directory of ours has by this name, as far as that can be removed.
pub(crate) fn remove_inside(parent: impl AsFd, name: &OsStr) {
    // Files that cannot be removed are useless and do no harm.
    let _ = remove_tree(parent, name);
}

/// Why a directory stays.
#[derive(Debug)]
enum Stopped {
    /// Something is mounted there (below the directory).
    Mounted(PathBuf),
    /// Something else has its name.
    Another,
    /// It is not known which one it is.
    Untold,
    /// An error, and where below the directory.
    Io(PathBuf, Errno),
}

impl From<Errno> for Stopped {
    fn from(e: Errno) -> Self {
        Stopped::Io(PathBuf::new(), e)
    }
}

impl Stopped {
    /// The same, seen from the directory above.
    fn below(self, name: &OsStr) -> Stopped {
        let under = |inside: PathBuf| match inside.as_os_str().is_empty() {
            true => PathBuf::from(name),
            false => Path::new(name).join(inside),
        };
        match self {
            Stopped::Mounted(inside) => Stopped::Mounted(under(inside)),
            Stopped::Io(inside, e) => Stopped::Io(under(inside), e),
            other => other,
        }
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
    empty(&directory, None)?;
    drop(directory);
    remove_empty(parent, name)
}

/// Removes everything in a directory, but one name.
fn empty(directory: &OwnedFd, but: Option<&str>) -> std::result::Result<(), Stopped> {
    for entry in names(directory)?.iter().filter(|n| but.is_none_or(|but| *n != but)) {
        let why = match unlinkat(directory, entry, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(Errno::BUSY) => return Err(Stopped::Mounted(entry.into())),
            // POSIX has EPERM for directories.
            Err(e @ (Errno::ISDIR | Errno::PERM)) => e,
            Err(e) => return Err(Stopped::from(e).below(entry)),
        };
        remove_tree(directory, entry).map_err(|e| match e {
            // It is none: it cannot be changed.
            Stopped::Io(at, Errno::NOTDIR | Errno::LOOP) if at.as_os_str().is_empty() => {
                Stopped::from(why).below(entry)
            }
            other => other.below(entry),
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
pub(crate) fn enter(parent: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
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
mod tests;
