//! File systems: what each of them does for a call, behind one trait.

pub mod age;
pub mod atime;
pub mod ext3;
pub mod ext4;
pub mod extents;
pub mod filed;
pub mod jbd2;
mod ranges;
pub mod raw;
#[cfg(test)]
mod testing;
pub mod volume;
pub mod xfs;

use iosched_types::Nanos;

use crate::kernel::writeback::Backing;
use crate::kernel::{Done, Event, Kernel, Lock, Wait};

/// What an inode is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, whose text has so many bytes.
    Link(u32),
}

/// The disk has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// A mounted file system. The host has names, lengths and who has what open; the file system has places on the disk, and
/// says what each call reads, notes in its journal, writes and waits for. Files have the host's numbers.
///
/// What a call does not name here costs no I/O. Defaults are those of a device without a file system.
#[allow(async_fn_in_trait, reason = "paths stay on the thread of their event loop")]
pub trait FileSystem: Backing {
    /// Its name, as `mount` prints it.
    const NAME: &'static str;

    /// What its journal's thread is called.
    const JOURNAL: &'static str = "journal";

    /// What lies in a sector of 512 bytes, as the event logs of the kernel name it: `JNL`, `ITAB`, `AGH`, `LOG` …; `-` for
    /// anything else.
    fn class(&self, _sector: u64) -> &'static str {
        "-"
    }

    /// Whether it notes each change in a journal.
    fn has_journal(&self) -> bool {
        true
    }

    /// Whether `O_DIRECT` goes past the page cache. Data that is journaled cannot.
    fn takes_direct(&self) -> bool {
        true
    }

    /// Whether `fallocate` sets blocks aside. Without extents nothing says that blocks are not written.
    fn takes_fallocate(&self) -> bool {
        true
    }

    /// Blocks of 4 KiB that are free.
    fn free(&self) -> u64 {
        0
    }

    /// Transactions committed so far.
    fn commits(&self) -> u64 {
        0
    }

    /// The best-effort level of the journal's thread, where it has one of its own.
    fn journal_level(&self) -> Option<u8> {
        None
    }

    /// The journal's thread. Never ends where there is one.
    async fn journal_thread(&self, _: &Kernel) {}

    /// The worker that notes which pages came back from the disk. Never ends.
    async fn completions(&self, k: &Kernel) {
        loop {
            while let Some((done, group)) = k.with(|w| w.next_late()) {
                if let Done::Written { file, from, to } = done {
                    self.came_back(k, file, (from, to)).await;
                }
                k.with(|w| w.end(done, group));
            }
            match k.with(|w| w.next_ended()) {
                Some(file) => self.written_back(k, file).await,
                None => k.wait(Wait::Event(Event::Ended)).await,
            }
        }
    }

    /// The worker that ends writes of the log. Never ends.
    async fn log_ends(&self, k: &Kernel) {
        k.wait(Wait::Event(Event::Logged)).await;
    }

    /// The worker that makes up what a log takes. Never ends where there is one.
    async fn checkpoints(&self, _: &Kernel) {}

    /// Pages of the file are on the disk; whoever waits for them still does.
    async fn came_back(&self, _: &Kernel, _file: u32, _pages: (u64, u64)) {}

    /// The same of a direct write, whose worker may wait for others that change the file.
    async fn came_back_alone(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        k.lock(Lock::Inode(file), true).await;
        self.came_back(k, file, pages).await;
        k.unlock(Lock::Inode(file));
    }

    /// Pages of the file that nobody waits for are on the disk.
    async fn written_back(&self, _: &Kernel, _file: u32) {}

    /// Makes a file or directory `at.1` in the directory `at.0`.
    ///
    /// # Errors
    /// [`Full`].
    async fn create(&self, _: &Kernel, _at: (u32, u32), _: Kind, _: &str) -> Result<(), Full> {
        Err(Full)
    }

    /// Room is short: what can be given back is.
    async fn reclaim(&self, _: &Kernel) {}

    /// A file has been opened.
    async fn opened(&self, _: &Kernel) {}

    /// It has been mounted anew, which costs nothing here.
    fn mounted_anew(&self) {}

    /// The same, and what was in memory of its metadata no longer is.
    fn mounted_cold(&self) {
        self.mounted_anew();
    }

    /// Whether a call may have to read metadata from before the mount: names, inodes, places of files. Then it asks for
    /// them by the three that follow.
    fn is_cold(&self) -> bool {
        false
    }

    /// Looks a name up in a directory; `file` is what it stands for, if anything.
    async fn look_up(&self, _: &Kernel, _directory: u32, _name: &str, _file: Option<u32>) {}

    /// Reads all names of a directory.
    async fn read_directory(&self, _: &Kernel, _directory: u32) {}

    /// Reads what a symbolic link says, where its inode has no room for that.
    async fn read_link(&self, _: &Kernel, _link: u32) {}

    /// Reads where the blocks of some pages of a file lie.
    async fn read_map(&self, _: &Kernel, _file: u32, _pages: (u64, u64)) {}

    /// Whether reads of files may change the time of their last access.
    fn notes_reads(&self) -> bool {
        false
    }

    /// A file is read.
    async fn accessed(&self, _: &Kernel, _file: u32) {}

    /// What was prepared has been on the disk for a while, and clean metadata has left memory (`drop_caches`).
    fn rested(&self) {}

    /// The place of a name when a directory is read; `age` counts files in the order in which they were made. Without one
    /// names come in their own order.
    fn listed_at(&self, _name: &str, _age: u32) -> Option<u32> {
        None
    }

    /// Lets the file `to.0` have what so many pages of the file `from.0` have, from the pages `from.1` and `to.1` on, without
    /// a copy. Whether it can.
    async fn share(&self, _: &Kernel, _from: (u32, u64), _to: (u32, u64), _pages: u64) -> bool {
        false
    }

    /// A direct write has made a file longer.
    async fn extended(&self, _: &Kernel) {}

    /// Whether closing the file after writes starts its dirty pages: it was cut to nothing and written anew, and a crash
    /// should not find it empty. Asked once.
    fn starts_at_close(&self, _file: u32) -> bool {
        false
    }

    /// Whether it reads into folios of several pages.
    fn large_folios(&self) -> bool {
        false
    }

    /// The last who had the file open has closed it.
    fn closed(&self, _: &Kernel, _file: u32) {}

    /// Takes the name of `at.1` out of the directory `at.0`. `last`: with it goes the file.
    async fn unlink(&self, _: &Kernel, _at: (u32, u32), _: &str, _last: bool) {}

    /// A file without a name has been closed by the last who had it open.
    async fn let_go(&self, _: &Kernel, _file: u32) {}

    /// Moves a name from the directory `at.0` to `at.1`. `replaced` is the file that had the new one, and whether nobody
    /// has it open.
    async fn rename(
        &self,
        _: &Kernel,
        _file: u32,
        _at: (u32, u32),
        _names: (&str, &str),
        _replaced: Option<(u32, bool)>,
    ) {
    }

    /// Cuts or extends a file to so many pages.
    async fn truncate(&self, _: &Kernel, _file: u32, _pages: u64) {}

    /// Gives `pages` pages of a file from `from` on a place.
    ///
    /// # Errors
    /// [`Full`].
    async fn fallocate(&self, _: &Kernel, _file: u32, _from: u64, _pages: u64) -> Result<(), Full> {
        Err(Full)
    }

    /// Whether there is room for what a direct write or `fallocate` of these pages would have to place.
    fn has_room(&self, _file: u32, _pages: (u64, u64)) -> bool {
        true
    }

    /// Pages that one write gets room for, or is refused, together.
    fn promised_at_once(&self) -> u64 {
        1
    }

    /// Pages of the file are about to be written in memory: room for them is promised, or they get their place.
    ///
    /// # Errors
    /// [`Full`].
    async fn will_write(&self, _: &Kernel, _file: u32, _pages: (u64, u64)) -> Result<(), Full> {
        Ok(())
    }

    /// Pages of the file, the first and the one after the last, have been written in memory.
    async fn wrote(&self, _: &Kernel, _file: u32, _pages: (u64, u64)) {}

    /// Whether a write at `now` leaves the time of the file's last change as it is: within a tick of another.
    fn is_stamped(&self, _file: u32, _now: Nanos) -> bool {
        true
    }

    /// Pages of a write that the file system is told of together, before others become dirty.
    fn written_at_once(&self) -> u64 {
        u64::MAX
    }

    /// Whether a write into these pages, which are dirty, leaves nothing for a journal.
    fn is_logged(&self, _file: u32, _pages: (u64, u64)) -> bool {
        true
    }

    /// Blocks of the file that were written on the disk are marked so.
    async fn convert(&self, _: &Kernel, _file: u32) {}

    /// `fsync`, or `fdatasync` with `data_only`.
    async fn fsync(&self, k: &Kernel, file: u32, data_only: bool);

    /// Whether an `fdatasync` would have to wait for a commit, if no page is dirty.
    fn needs_commit(&self, _file: u32) -> bool {
        false
    }

    /// `fsync` of a directory.
    async fn fsync_directory(&self, _: &Kernel, _directory: u32) {}

    /// `sync`.
    async fn sync(&self, k: &Kernel);
}
