//! Files on a disk: names, lengths, places, and which pages are in memory.
//!
//! [`Mount`] is a file system of `iosched-vfs` above its page cache. [`Simple`] has neither: the machine asks it what a call
//! finds and which sectors must be read or written for it, submits them, waits, and answers.

use iosched_syscalls::{Answer, Done, Entry, Errno, Stat};
use iosched_types::{Bytes, Sector};

mod direct;
mod lookup;
mod mount;
mod names;
mod pages;
mod room;
mod simple;
mod space;
mod syncs;
mod tree;
mod walk;

pub(crate) use direct::{Direct, of_started};
pub use mount::{Mount, Mounted};
pub(crate) use mount::{Part, Path};
pub use simple::Simple;

/// A file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ino(pub u32);

/// Sectors that a call must move before it can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// A write, else a read.
    pub write: bool,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: Sector,
}

/// Where the dirty bytes of a run went. `dirtied = written + dropped + dirty` at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of pages that became dirty.
    pub dirtied: Bytes,
    /// Bytes of dirty pages that were handed to the disk.
    pub written: Bytes,
    /// Bytes of dirty pages that were cut off, removed or overwritten past the cache.
    pub dropped: Bytes,
    /// Bytes of dirty pages now.
    pub dirty: Bytes,
}

/// What stands behind descriptors.
#[derive(Debug)]
pub enum Files {
    /// Every call is answered at once, or by the sectors that it names.
    AtOnce(Box<dyn FileSystem>),
    /// Calls go through the kernel.
    Mounted(Mount),
}

impl Files {
    pub(crate) fn names(&self) -> &dyn Names {
        match self {
            Files::AtOnce(fs) => fs.as_ref(),
            Files::Mounted(mount) => mount,
        }
    }

    pub(crate) fn names_mut(&mut self) -> &mut dyn Names {
        match self {
            Files::AtOnce(fs) => fs.as_mut(),
            Files::Mounted(mount) => mount,
        }
    }

    /// The simple layer; what a mounted file system has not is no call of it.
    pub(crate) fn at_once(&mut self) -> Result<&mut dyn FileSystem, Errno> {
        match self {
            Files::AtOnce(fs) => Ok(fs.as_mut()),
            Files::Mounted(_) => Err(Errno::ENOSYS),
        }
    }

    /// What is mounted.
    #[must_use]
    pub fn mount(&self) -> Option<&Mount> {
        match self {
            Files::AtOnce(_) => None,
            Files::Mounted(mount) => Some(mount),
        }
    }
}

/// What any file system answers at once.
pub trait Names: std::fmt::Debug {
    /// What a name stands for, symbolic links followed.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENAMETOOLONG`; `ELOOP` for links that lead in a circle, `EXDEV` for those that lead out.
    fn find(&self, path: &str) -> Result<Ino, Errno>;

    /// What a name stands for: the link, if it ends with one.
    ///
    /// # Errors
    /// As [`Names::find`].
    fn find_itself(&self, path: &str) -> Result<Ino, Errno>;

    /// What a symbolic link says.
    ///
    /// # Errors
    /// `EINVAL` for anything else.
    fn target(&self, ino: Ino) -> Result<String, Errno>;

    /// What a file or directory is.
    fn stat(&self, ino: Ino) -> Stat;

    /// Somebody has it open: it stays when its name goes.
    fn hold(&mut self, ino: Ino);

    /// He has closed it.
    fn release(&mut self, ino: Ino);

    /// Names of a directory from the `skip`-th on, as many as fit into a call. → how many
    ///
    /// # Errors
    /// `ENOTDIR`.
    fn list(&self, ino: Ino, skip: usize, into: &mut Vec<Entry>) -> Answer;

    /// Where the dirty bytes went.
    fn counts(&self) -> Counts;
}

/// What stands between names and sectors. What a call needs from the disk is appended to `io`.
pub trait FileSystem: Names {
    /// Makes a file; one that is there is found, unless it must be new.
    ///
    /// # Errors
    /// `EEXIST`, and as [`Names::find`].
    fn create(&mut self, path: &str, new: bool) -> Result<Ino, Errno>;

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT` for a link that says nothing, and as [`Names::find`].
    fn symlink(&mut self, target: &str, path: &str) -> Done;

    /// Removes a file's name.
    ///
    /// # Errors
    /// `EISDIR`, and as [`Names::find`].
    fn unlink(&mut self, path: &str) -> Done;

    /// Makes a directory.
    ///
    /// # Errors
    /// `EEXIST`, and as [`Names::find`].
    fn mkdir(&mut self, path: &str) -> Done;

    /// Removes a directory.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `ENOTDIR`, and as [`Names::find`].
    fn rmdir(&mut self, path: &str) -> Done;

    /// Gives another name; a file or empty directory of that name goes.
    ///
    /// # Errors
    /// `EINVAL` below itself, `EISDIR`, `ENOTDIR`, `ENOTEMPTY`, and as [`Names::find`].
    fn rename(&mut self, from: &str, to: &str) -> Done;

    /// Reads up to the end of the file. → bytes
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for what is not aligned past the cache.
    fn read(
        &mut self,
        ino: Ino,
        at: Bytes,
        len: Bytes,
        direct: bool,
        io: &mut Vec<Segment>,
    ) -> Answer;

    /// Writes, which makes pages dirty or, past the cache, goes to the disk. → bytes
    ///
    /// # Errors
    /// `ENOSPC`, `EFBIG`, `EINVAL` for what is not aligned past the cache.
    fn write(
        &mut self,
        ino: Ino,
        at: Bytes,
        len: Bytes,
        direct: bool,
        io: &mut Vec<Segment>,
    ) -> Answer;

    /// Cuts or extends.
    ///
    /// # Errors
    /// `EISDIR`, `EFBIG`.
    fn truncate(&mut self, ino: Ino, len: Bytes) -> Done;

    /// Takes room for a range.
    ///
    /// # Errors
    /// `ENOSPC`, `EFBIG`, `EINVAL`.
    fn allocate(&mut self, ino: Ino, at: Bytes, len: Bytes, keep_size: bool) -> Done;

    /// Takes the dirty pages of a range for writing; they are clean from now on.
    ///
    /// # Errors
    /// `ENOSPC`.
    fn take_dirty(&mut self, ino: Ino, at: Bytes, len: Bytes, io: &mut Vec<Segment>) -> Done;

    /// All files with dirty pages, in the order of their numbers.
    fn dirty_files(&self) -> Vec<Ino>;

    /// Drops clean pages of a file from memory.
    fn forget(&mut self, ino: Ino, at: Bytes, len: Bytes);

    /// Drops all clean pages from memory.
    fn drop_caches(&mut self);
}
