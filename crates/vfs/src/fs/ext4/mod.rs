//! ext4 as the block layer sees it: the layout after `mke2fs`, the places of files, what is journaled when, and what each
//! task waits for.

mod backing;
mod blocks;
mod cold;
mod commit;
pub mod groups;
mod handle;
mod hash;
mod inode;
mod jbd;
pub mod layout;
pub mod mballoc;
mod ops;
mod options;
mod places;
mod promise;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::rc::Rc;

use iosched_types::TaskId;

use self::inode::Inodes;
use self::layout::Layout;
use self::mballoc::{Allocator, Extent, Request};
use super::age::Ageing;
use super::ext3;
use super::jbd2::{Block, Journal, Tid};

pub use options::{Data, Driver, Options};

/// The superblock.
const SUPERBLOCK: Block = 0;

/// Which file system this is the code of.
pub trait Name: Copy + std::fmt::Debug + 'static {
    /// As `mount` prints it.
    const NAME: &'static str;
    /// What its journal's thread is called.
    const JOURNAL: &'static str = "jbd2";
}

/// Of [`Ext4`].
#[derive(Clone, Copy, Debug)]
pub struct Four;

impl Name for Four {
    const NAME: &'static str = "ext4";
}

/// ext4, mounted.
pub type Ext4 = Ext<Four>;

/// A mounted file system of the ext family. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Ext<N>(Rc<RefCell<State>>, PhantomData<N>);

/// What is known of it.
#[derive(Debug)]
struct State {
    options: Options,
    layout: Layout,
    space: Space,
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
    /// A small file takes blocks from what its CPU has preallocated; those that wait for that, from the first on.
    allocating: bool,
    allocators: VecDeque<TaskId>,
    /// Somebody wants this transaction committed.
    wanted: Tid,
    /// Changes that the running transaction has taken, and who synced last: by these a sync of jbd waits for others.
    handles: u64,
    last_sync: Option<TaskId>,
    /// Files whose pages are on their way to blocks that are not marked as written, with what is reserved in the journal
    /// for that; and all of it.
    reserved: BTreeMap<u32, u64>,
    all_reserved: u64,
    /// Blocks promised to pages in memory.
    promised: u64,
    /// `data=journal`: the files and pages of blocks that were journaled.
    journaled: BTreeMap<Block, (u32, u64)>,
    /// Stretches that were freed and are to be discarded: by the running transaction, by the committing one.
    freed: [Vec<Extent>; 2],
}

/// The free space.
#[derive(Clone, Debug)]
enum Space {
    Multi(Allocator),
    Windows(ext3::windows::Space),
}

impl Space {
    fn free(&self) -> u64 {
        match self {
            Space::Multi(space) => space.free(),
            Space::Windows(space) => space.free(),
        }
    }

    /// Blocks that files were given beyond their pages, and can lose again.
    fn preallocated(&self) -> u64 {
        match self {
            Space::Multi(space) => space.preallocated(),
            Space::Windows(_) => 0,
        }
    }

    /// Free blocks of a flex group.
    fn free_in(&self, flex: u64) -> u64 {
        match self {
            Space::Multi(space) => space.free_in(flex),
            Space::Windows(space) => space.free_in(flex),
        }
    }

    fn prefetched(&mut self) {
        if let Space::Multi(space) = self {
            space.prefetched();
        }
    }

    fn allocate(&mut self, file: u32, colour: u64, request: &Request) -> Option<Extent> {
        match self {
            Space::Multi(space) => space.allocate(file, 0, request),
            Space::Windows(space) => space.allocate(file, colour, request),
        }
    }

    fn close(&mut self, file: u32) {
        match self {
            Space::Multi(space) => space.close(file),
            Space::Windows(space) => space.close(file),
        }
    }

    fn release(&mut self, extent: Extent) {
        match self {
            Space::Multi(space) => space.release(extent),
            Space::Windows(space) => space.release(extent),
        }
    }
}

impl Ext4 {
    /// An empty or aged file system on a device of `blocks` blocks of 4 KiB, mounted, with its root directory as `root`.
    #[must_use]
    pub fn new(
        blocks: u64,
        root: u32,
        cpus: usize,
        options: Options,
        ageing: Option<Ageing>,
    ) -> Self {
        let layout = Layout::new(blocks);
        let space = Allocator::new(layout.clone(), cpus, ageing).with_lists(options.by_lists);
        let space = Space::Multi(space);
        Self::mount(layout, space, root, options)
    }
}

impl<N> Ext<N> {
    /// One whose blocks are given within windows.
    pub(super) fn with_windows(
        layout: Layout,
        space: ext3::windows::Space,
        root: u32,
        options: Options,
    ) -> Self {
        Self::mount(layout, Space::Windows(space), root, options)
    }

    fn mount(layout: Layout, space: Space, root: u32, options: Options) -> Self {
        let journal = Journal::new(layout.journal.1, options.parts).with_tags(options.tags());
        let state = State {
            options,
            journal,
            warm: cold::read_by_mount(&layout),
            inodes: Inodes::new(&layout, root),
            layout,
            space,
            cold: false,
            // jbd does not note it.
            noted: options.driver == Driver::Jbd,
            locked: false,
            record_issued: false,
            allocating: false,
            allocators: VecDeque::new(),
            wanted: 0,
            handles: 0,
            last_sync: None,
            reserved: BTreeMap::new(),
            all_reserved: 0,
            promised: 0,
            journaled: BTreeMap::new(),
            freed: Default::default(),
        };
        Self(Rc::new(RefCell::new(state)), PhantomData)
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.borrow_mut())
    }
}

#[cfg(test)]
mod tests;
