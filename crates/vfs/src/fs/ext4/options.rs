//! What a file system of the ext family is mounted with.

use iosched_types::{Flags, Nanos};

use crate::fs::atime::Atime;

const SECOND: Nanos = 1_000_000_000;

/// What becomes of data (`data=`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// On disk before the transaction that its blocks belong to.
    #[default]
    Ordered,
    /// Whenever.
    Writeback,
    /// Through the journal.
    Journal,
}

/// The journal's code, and with it the rules of `fsync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// `jbd`: data that a transaction wrote to is on the disk before its commit. `kjournald` writes it.
    Jbd,
    /// `jbd2`.
    #[default]
    Jbd2,
}

/// Mount options, and what goes with the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Flushes and FUA (`barrier`).
    pub barrier: bool,
    /// Age of a transaction at its commit (`commit`).
    pub commit: Nanos,
    /// `data=`.
    pub data: Data,
    /// Blocks are given when pages are written back (`delalloc`), not when they are written to.
    pub delalloc: bool,
    /// A file that replaces another one is written before (`auto_da_alloc`).
    pub da_alloc: bool,
    /// New blocks are marked as not written until they are (`dioread_nolock`): since 5.6.
    pub unwritten: bool,
    /// With `data=journal` a sync writes the data home after the commit. Before 6.4 it ends with the commit.
    pub data_home: bool,
    /// The commit block is not held back until the others are on the disk (`journal_async_commit`).
    pub async_commit: bool,
    /// Freed blocks are discarded after the commit (`discard`).
    pub discard: bool,
    /// When a read changes the time of the last access.
    pub atime: Atime,
    /// The journal's code.
    pub driver: Driver,
    /// Flags of the journal's writes: the kernels' habits differ.
    pub log_flags: Flags,
    /// One part of the journal that a transaction may have: a third since 6.7, a quarter before.
    pub parts: u64,
    /// Groups are looked for in lists of those whose bitmaps have been read, and of none beside: on disks that do not rotate,
    /// since 5.13.
    pub by_lists: bool,
    /// A tick of the kernel's timer.
    pub tick: Nanos,
    /// Whether timers are rounded up as in a wheel: since 4.8.
    pub wheel: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            barrier: true,
            commit: 5_000_000_000,
            data: Data::default(),
            delalloc: true,
            da_alloc: true,
            unwritten: true,
            data_home: true,
            async_commit: false,
            discard: false,
            atime: Atime::Never,
            driver: Driver::default(),
            log_flags: Flags::SYNC.with(Flags::META).with(Flags::IDLE),
            parts: 3,
            by_lists: false,
            tick: 4_000_000,
            wheel: false,
        }
    }
}

impl Options {
    /// Journaled blocks behind a descriptor block: tags of 16 bytes with checksums, of 8 without.
    pub(super) fn tags(&self) -> u64 {
        if self.driver == Driver::Jbd { 506 } else { 253 }
    }

    /// The time that an inode is given at `now`: the kernel's clock moves by ticks, and ext3's own code has no place for parts
    /// of a second.
    pub(super) fn stamp(&self, now: Nanos) -> u64 {
        now / if self.driver == Driver::Jbd { SECOND } else { self.tick }
    }

    /// Whether syncs write journaled data to its place.
    pub(super) fn sends_data_home(&self) -> bool {
        self.data == Data::Journal && self.data_home
    }

    /// Flags of other writes and reads of metadata. jbd's are plain.
    pub(super) fn metadata(&self, flags: Flags) -> Flags {
        if self.driver == Driver::Jbd { Flags::NONE } else { flags }
    }
}
