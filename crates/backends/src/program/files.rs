//! Calls on names and open files.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::PoisonError;

use iosched_syscalls::{Answer, Call, Entry, Errno, Fd, Kind, OpenFlags};
use rustix::fs::{
    self, AtFlags, FallocateFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Timespec,
    Timestamps, UTIME_NOW,
};

use super::calls::{advice, errno, seek_from, stat};
use super::descriptors::Behind;
use super::task::Task;
use crate::sys::transfer;

/// What a call for the names of a directory may return, in bytes.
const NAMES: usize = 32 << 10;

/// Names lead nowhere but below the directory: they have no `..`, and the kernel refuses links that lead out.
fn checked(path: &str) -> Result<&str, Errno> {
    if path.is_empty() || path.starts_with('/') {
        return Err(Errno::ENOENT);
    }
    if path.split('/').any(|part| part == "..") {
        return Err(Errno::EXDEV);
    }
    Ok(path)
}

/// No way leads out.
const BELOW: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS).union(ResolveFlags::NO_XDEV);

/// A directory, or another place, that is held.
enum Held<'a> {
    Root(BorrowedFd<'a>),
    Own(OwnedFd),
}

impl AsFd for Held<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Held::Root(fd) => *fd,
            Held::Own(fd) => fd.as_fd(),
        }
    }
}

/// A name in a directory; an empty one is the place itself.
struct End<'a> {
    dir: Held<'a>,
    name: &'a str,
}

/// rustix 1.1 has the bits of `O_SYNC` under the name of `O_DSYNC`.
const O_DSYNC: OFlags = OFlags::from_bits_retain(nix::libc::O_DSYNC as u32);

fn flags(flags: OpenFlags) -> OFlags {
    let access = match (flags.reads(), flags.writes()) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    let table = [
        (OpenFlags::CREATE, OFlags::CREATE),
        (OpenFlags::EXCLUSIVE, OFlags::EXCL),
        (OpenFlags::TRUNCATE, OFlags::TRUNC),
        (OpenFlags::APPEND, OFlags::APPEND),
        (OpenFlags::DIRECT, OFlags::DIRECT),
        (OpenFlags::SYNC, OFlags::SYNC),
        (OpenFlags::DSYNC, O_DSYNC),
        (OpenFlags::DIRECTORY, OFlags::DIRECTORY),
        (OpenFlags::NOFOLLOW, OFlags::NOFOLLOW),
    ];
    let set = table.iter().filter(|(ours, _)| flags.has(*ours));
    set.fold(access | OFlags::CLOEXEC, |all, (_, theirs)| all | *theirs)
}

fn now() -> Timestamps {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Timestamps { last_access: now, last_modification: now }
}

impl Task {
    /// Calls that are answered by the file system.
    pub(super) fn on_files(&mut self, call: Call) -> Answer {
        let done = match call {
            Call::Open { path, flags } => return self.open(&path, flags),
            Call::Close { fd } => {
                let file = self.table().remove(fd)?;
                // Closing may wait for the disk: not with the table locked.
                drop(file);
                Ok(())
            }
            Call::Dup { fd } => {
                let mut table = self.table();
                let file = table.get(fd)?;
                return Ok(u64::from(table.add(file).0));
            }
            Call::Seek { fd, to, whence } => {
                let file = self.open_file(fd)?;
                return fs::seek(&file.fd, seek_from(to, whence)).map_err(errno);
            }
            Call::Truncate { fd, len } => fs::ftruncate(&self.open_file(fd)?.fd, len),
            Call::Fallocate { fd, at, len, keep_size } => {
                let mode =
                    if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
                fs::fallocate(&self.open_file(fd)?.fd, mode, at, len)
            }
            Call::Advise { fd, at, len, advice: what } => {
                let len = std::num::NonZeroU64::new(len);
                fs::fadvise(&self.open_file(fd)?.fd, at, len, advice(what))
            }
            Call::Fsync { fd } => fs::fsync(&self.open_file(fd)?.fd),
            Call::Fdatasync { fd } => fs::fdatasync(&self.open_file(fd)?.fd),
            Call::SyncRange { fd, at, len, wait } => {
                let file = self.open_file(fd)?;
                let synced = transfer::sync_range(file.fd.as_fd(), at, len, wait);
                return synced.map(|()| 0).map_err(errno);
            }
            Call::SyncFs { fd } => fs::syncfs(&self.open_file(fd)?.fd),
            Call::Sync => {
                fs::sync();
                Ok(())
            }
            Call::Fstat { fd, into } => {
                let file = self.open_file(fd)?;
                fs::fstat(&file.fd).map(|found| into.set(stat(&found)))
            }
            Call::TouchFd { fd } => fs::futimens(&self.open_file(fd)?.fd, &now()),
            Call::ReadDir { fd, into } => return self.names(fd, &mut into.borrow_mut()),
            Call::CopyRange { from, to, len } => {
                let (from, to) = (self.open_file(from)?, self.open_file(to)?);
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let n = fs::copy_file_range(&from.fd, None, &to.fd, None, len);
                return n.map(|n| n as u64).map_err(errno);
            }
            Call::ReadLink { path, into } => return self.read_link(&path, &into),
            other => self.on_names(&other)?,
        };
        done.map(|()| 0).map_err(errno)
    }

    fn on_names(&self, call: &Call) -> Result<rustix::io::Result<()>, Errno> {
        if let Call::Symlink { target, path } = call {
            // While the first link is made, no name is on its way that does not know of links.
            let mut linked = self.shared.linked.write().unwrap_or_else(PoisonError::into_inner);
            *linked = true;
            let at = self.place(path, true)?;
            return Ok(fs::symlinkat(&**target, &at.dir, at.name));
        }
        let linked = self.shared.linked.read().unwrap_or_else(PoisonError::into_inner);
        let at = |path| self.place(path, *linked);
        Ok(match call {
            Call::Stat { path, follow, into } => {
                let end = if *follow { self.ends(path, *linked)? } else { at(path)? };
                fs::statat(&end.dir, end.name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH)
                    .map(|found| into.set(stat(&found)))
            }
            Call::Touch { path } => {
                let end = self.ends(path, *linked)?;
                fs::utimensat(
                    &end.dir,
                    end.name,
                    &now(),
                    AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH,
                )
            }
            Call::Unlink { path } => {
                let at = at(path)?;
                fs::unlinkat(&at.dir, at.name, AtFlags::empty())
            }
            Call::Rename { from, to } => {
                let (from, to) = (at(from)?, at(to)?);
                fs::renameat(&from.dir, from.name, &to.dir, to.name)
            }
            Call::Mkdir { path } => {
                let at = at(path)?;
                fs::mkdirat(&at.dir, at.name, Mode::from_raw_mode(0o755))
            }
            Call::Rmdir { path } => {
                let at = at(path)?;
                fs::unlinkat(&at.dir, at.name, AtFlags::REMOVEDIR)
            }
            _ => return Err(Errno::ENOSYS),
        })
    }

    /// What a link says.
    fn read_link(&self, path: &str, into: &std::cell::RefCell<String>) -> Answer {
        let linked = self.shared.linked.read().unwrap_or_else(PoisonError::into_inner);
        let at = self.place(path, *linked)?;
        let said = fs::readlinkat(&at.dir, at.name, Vec::new()).map_err(errno)?;
        let said = said.to_string_lossy().into_owned();
        let n = said.len() as u64;
        into.replace(said);
        Ok(n)
    }

    /// The directory that a name is in, and the name there. Once there are links, the way to it must stay below.
    fn place<'a>(&'a self, path: &'a str, linked: bool) -> Result<End<'a>, Errno> {
        let path = checked(path)?;
        match path.trim_end_matches('/').rsplit_once('/') {
            Some((above, name)) if linked => {
                let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                let dir = fs::openat2(&self.shared.dir, above, how, Mode::empty(), BELOW);
                Ok(End { dir: Held::Own(dir.map_err(errno)?), name })
            }
            _ => Ok(End { dir: Held::Root(self.shared.dir.as_fd()), name: path }),
        }
    }

    /// What a name stands for, links followed: once there are some, a descriptor of it.
    fn ends<'a>(&'a self, path: &'a str, linked: bool) -> Result<End<'a>, Errno> {
        if !linked {
            return self.place(path, linked);
        }
        let how = OFlags::PATH | OFlags::CLOEXEC;
        let found = fs::openat2(&self.shared.dir, checked(path)?, how, Mode::empty(), BELOW);
        Ok(End { dir: Held::Own(found.map_err(errno)?), name: "" })
    }

    fn open(&self, path: &str, how: OpenFlags) -> Answer {
        let mode = if how.has(OpenFlags::CREATE) { 0o644 } else { 0 };
        let (path, mode) = (checked(path)?, Mode::from_raw_mode(mode));
        let fd = fs::openat2(&self.shared.dir, path, flags(how), mode, BELOW).map_err(errno)?;
        let found = fs::fstat(&fd).map_err(errno)?;
        let behind = match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Behind::Directory,
            _ => Behind::File,
        };
        Ok(u64::from(self.opened(fd, behind, how).0))
    }

    /// Names of a directory, as many as one call of the kernel returns.
    fn names(&self, fd: Fd, into: &mut Vec<Entry>) -> Answer {
        into.clear();
        let file = self.open_file(fd)?;
        let mut space = vec![MaybeUninit::uninit(); NAMES];
        let mut names = RawDir::new(&file.fd, &mut space);
        while let Some(entry) = names.next() {
            let entry = entry.map_err(errno)?;
            let kind = match entry.file_type() {
                FileType::Directory => Kind::Directory,
                FileType::Symlink => Kind::Link,
                _ => Kind::File,
            };
            let name = entry.file_name().to_string_lossy();
            if !matches!(&*name, "." | "..") {
                into.push(Entry { name: (*name).into(), kind });
            }
            if names.is_buffer_empty() {
                break;
            }
        }
        Ok(into.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_the_kernels() {
        let bits = |f: OpenFlags| flags(OpenFlags::READ | OpenFlags::WRITE | f).bits() as i32;
        let always = nix::libc::O_RDWR | nix::libc::O_CLOEXEC;
        for (ours, theirs) in [
            (OpenFlags::CREATE, nix::libc::O_CREAT),
            (OpenFlags::EXCLUSIVE, nix::libc::O_EXCL),
            (OpenFlags::TRUNCATE, nix::libc::O_TRUNC),
            (OpenFlags::APPEND, nix::libc::O_APPEND),
            (OpenFlags::DIRECT, nix::libc::O_DIRECT),
            (OpenFlags::SYNC, nix::libc::O_SYNC),
            (OpenFlags::DSYNC, nix::libc::O_DSYNC),
            (OpenFlags::DIRECTORY, nix::libc::O_DIRECTORY),
            (OpenFlags::NOFOLLOW, nix::libc::O_NOFOLLOW),
        ] {
            assert_eq!(bits(ours), theirs | always, "{ours:?}");
        }
    }
}
