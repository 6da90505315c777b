//! Files on a disk: names, lengths, places, and which pages are in memory.
//!
//! [`FileSystem`] is the seam: the machine asks it what a call finds and which sectors must be read or written for it; it
//! submits them, waits, and answers. [`Simple`] is what stands behind it today.

use iosched_syscalls::{Answer, Done, Entry, Errno, Stat};
use iosched_types::{Bytes, Sector};

mod pages;
mod simple;
mod space;
mod tree;

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

/// What stands between names and sectors. What a call needs from the disk is appended to `io`.
pub trait FileSystem {
    /// What a name stands for.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENAMETOOLONG`.
    fn find(&self, path: &str) -> Result<Ino, Errno>;

    /// Makes a file; one that is there is found, unless it must be new.
    ///
    /// # Errors
    /// `EEXIST`, and as [`FileSystem::find`].
    fn create(&mut self, path: &str, new: bool) -> Result<Ino, Errno>;

    /// What a file or directory is.
    fn stat(&self, ino: Ino) -> Stat;

    /// Somebody has it open: it stays when its name goes.
    fn hold(&mut self, ino: Ino);

    /// He has closed it.
    fn release(&mut self, ino: Ino);

    /// Removes a file's name.
    ///
    /// # Errors
    /// `EISDIR`, and as [`FileSystem::find`].
    fn unlink(&mut self, path: &str) -> Done;

    /// Makes a directory.
    ///
    /// # Errors
    /// `EEXIST`, and as [`FileSystem::find`].
    fn mkdir(&mut self, path: &str) -> Done;

    /// Removes a directory.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `ENOTDIR`, and as [`FileSystem::find`].
    fn rmdir(&mut self, path: &str) -> Done;

    /// Gives another name; a file or empty directory of that name goes.
    ///
    /// # Errors
    /// `EINVAL` below itself, `EISDIR`, `ENOTDIR`, `ENOTEMPTY`, and as [`FileSystem::find`].
    fn rename(&mut self, from: &str, to: &str) -> Done;

    /// Names of a directory from the `skip`-th on, as many as fit into a call. → how many
    ///
    /// # Errors
    /// `ENOTDIR`.
    fn list(&self, ino: Ino, skip: usize, into: &mut Vec<Entry>) -> Answer;

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

    /// Where the dirty bytes went.
    fn counts(&self) -> Counts;
}
