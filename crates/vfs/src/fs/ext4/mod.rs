//! ext4 as the block layer sees it: the layout after `mke2fs`, the places of files, what is journaled when, and what each
//! task waits for.

mod blocks;
mod cold;
mod commit;
pub mod groups;
mod inode;
pub mod layout;
pub mod mballoc;
mod ops;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use iosched_types::Nanos;

use self::inode::Inodes;
use self::layout::Layout;
use self::mballoc::Allocator;
use super::jbd2::{Block, Journal, Tid};

/// The superblock.
const SUPERBLOCK: Block = 0;

/// Mount options.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Flushes and FUA (`barrier`).
    pub barrier: bool,
    /// Age of a transaction at its commit (`commit`).
    pub commit: Nanos,
    /// One part of the journal that a transaction may have: a third since 6.7, a quarter before.
    pub parts: u64,
    /// Granularity of time stamps: a tick of the kernel's timer.
    pub tick: Nanos,
    /// Whether timers are rounded up as in a wheel: since 4.8.
    pub wheel: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { barrier: true, commit: 5_000_000_000, parts: 3, tick: 4_000_000, wheel: false }
    }
}

/// A mounted file system. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Ext4(Rc<RefCell<State>>);

/// What is known of it.
#[derive(Debug)]
struct State {
    options: Options,
    layout: Layout,
    space: Allocator,
    journal: Journal,
    inodes: Inodes,
    /// Metadata blocks that are in memory.
    warm: BTreeSet<Block>,
    /// Metadata from before the mount may not be in memory.
    cold: bool,
    /// The mount has been noted in the superblock.
    noted: bool,
    /// A commit waits for changes to end; no new one may begin.
    locked: bool,
    /// The commit record of the committing transaction has been handed over.
    record_issued: bool,
    /// Somebody wants this transaction committed.
    wanted: Tid,
}

impl Ext4 {
    /// An empty file system on a device of `blocks` blocks of 4 KiB, mounted, with its root directory as `root`.
    #[must_use]
    pub fn new(blocks: u64, root: u32, cpus: usize, options: Options) -> Self {
        let layout = Layout::new(blocks);
        let journal = Journal::new(layout.journal.1, options.parts);
        let warm = cold::read_by_mount(&layout);
        let inodes = Inodes::new(&layout, root);
        let space = Allocator::new(layout.clone(), cpus);
        Self(Rc::new(RefCell::new(State {
            options,
            layout,
            space,
            journal,
            inodes,
            warm,
            cold: false,
            noted: false,
            locked: false,
            record_issued: false,
            wanted: 0,
        })))
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.borrow_mut())
    }
}

#[cfg(test)]
mod tests;
