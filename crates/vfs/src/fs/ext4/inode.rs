//! Inodes: where they lie, what their files have, and in which transaction they changed last.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use iosched_types::{Nanos, Sector};

use super::layout::{FLEX, INODES, Layout};
use crate::fs::jbd2::{Block, Tid};
use crate::kernel::read::Place;

/// Blocks of a file in a row on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) logical: u64,
    pub(super) start: Block,
    pub(super) blocks: u64,
}

/// What an inode is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) kind: Kind,
    /// In order of the file. Shared with who reads the file.
    pub(super) extents: Rc<Vec<Mapped>>,
    /// The block with extents that do not fit into the inode.
    pub(super) index: Option<Block>,
    /// Entries of a directory.
    pub(super) entries: u64,
    /// The transaction of the last change, and of the last that `fdatasync` cares for.
    pub(super) sync: Tid,
    pub(super) datasync: Tid,
    /// The tick of the last time stamp.
    pub(super) stamp: Option<Nanos>,
    /// Blocks of the file on the disk that are written and not yet marked so.
    pub(super) unconverted: bool,
}

/// Where a file's pages lie.
#[derive(Clone, Debug)]
pub struct Placed(Rc<Vec<Mapped>>);

impl Placed {
    /// A file without blocks.
    pub(super) fn nowhere() -> Self {
        Self(Rc::default())
    }
}

impl Place for Placed {
    fn at(&self, page: u64) -> (Option<Sector>, u64) {
        let after = self.0.partition_point(|m| m.logical <= page);
        if let Some(m) = after.checked_sub(1).map(|i| self.0[i])
            && page < m.logical + m.blocks
        {
            let skip = page - m.logical;
            return (Some((m.start + skip) * 8), m.blocks - skip);
        }
        (None, self.0.get(after).map_or(u64::MAX >> 16, |m| m.logical - page))
    }
}

impl Inode {
    pub(super) fn place(&self) -> Placed {
        Placed(self.extents.clone())
    }

    /// The extent that holds the block, or the one before it.
    pub(super) fn before(&self, logical: u64) -> Option<Mapped> {
        let after = self.extents.partition_point(|m| m.logical <= logical);
        after.checked_sub(1).map(|i| self.extents[i])
    }

    /// The first extent after the block.
    pub(super) fn after(&self, logical: u64) -> Option<Mapped> {
        self.extents.get(self.extents.partition_point(|m| m.logical <= logical)).copied()
    }

    /// Notes a new stretch, joined with the one before it where they meet.
    pub(super) fn map(&mut self, new: Mapped) {
        let extents = Rc::make_mut(&mut self.extents);
        let at = extents.partition_point(|m| m.logical < new.logical);
        if let Some(last) = at.checked_sub(1).map(|i| &mut extents[i])
            && last.logical + last.blocks == new.logical
            && last.start + last.blocks == new.start
        {
            last.blocks += new.blocks;
            return;
        }
        extents.insert(at, new);
    }

    /// Takes away everything from the block on, and says what it was.
    pub(super) fn cut(&mut self, from: u64) -> Vec<Mapped> {
        let extents = Rc::make_mut(&mut self.extents);
        let mut gone = Vec::new();
        while let Some(last) = extents.last_mut() {
            if last.logical + last.blocks <= from {
                break;
            }
            if last.logical < from {
                let keep = from - last.logical;
                let (start, blocks) = (last.start + keep, last.blocks - keep);
                gone.push(Mapped { logical: from, start, blocks });
                last.blocks = keep;
                break;
            }
            gone.push(*last);
            extents.pop();
        }
        gone
    }
}

/// All inodes, by the number of their file.
#[derive(Clone, Debug)]
pub(super) struct Inodes {
    files: BTreeMap<u32, Inode>,
    /// Numbers in use.
    used: BTreeSet<u64>,
    /// Freed numbers and the next fresh one of each group.
    freed: BTreeSet<u64>,
    next: BTreeMap<u64, u64>,
    directories: BTreeMap<u64, u64>,
    flex_groups: u64,
}

impl Inodes {
    pub(super) fn new(layout: &Layout, root: u32) -> Self {
        let mut root_inode = empty(2, Kind::Directory);
        root_inode.map(Mapped { logical: 0, start: layout.root(), blocks: 1 });
        Self {
            files: BTreeMap::from([(root, root_inode)]),
            used: BTreeSet::from([2]),
            freed: BTreeSet::new(),
            // Twelve is the first one that mke2fs leaves.
            next: BTreeMap::from([(0, 12)]),
            directories: BTreeMap::from([(0, 2)]),
            flex_groups: layout.groups.div_ceil(FLEX),
        }
    }

    pub(super) fn get(&self, file: u32) -> Option<&Inode> {
        self.files.get(&file)
    }

    pub(super) fn get_mut(&mut self, file: u32) -> Option<&mut Inode> {
        self.files.get_mut(&file)
    }

    pub(super) fn remove(&mut self, file: u32) -> Option<Inode> {
        let inode = self.files.remove(&file)?;
        self.freed.insert(inode.number);
        self.used.remove(&inode.number);
        if inode.kind == Kind::Directory {
            *self.directories.entry(group_of(inode.number) / FLEX).or_default() -= 1;
        }
        Some(inode)
    }

    /// A number for a new file: in its directory's group; for a directory of the root in a flex group chosen by
    /// `hash`, for another one in its parent's.
    pub(super) fn make(&mut self, file: u32, kind: Kind, parent: u32, hash: u64) -> u64 {
        let parent_number = self.files.get(&parent).map_or(2, |p| p.number);
        let mut group = group_of(parent_number);
        if kind == Kind::Directory {
            let flex = if parent_number == 2 { self.spread(hash) } else { group / FLEX };
            group = flex * FLEX;
            *self.directories.entry(flex).or_default() += 1;
        }
        let number = self.number_in(group);
        self.used.insert(number);
        self.files.insert(file, empty(number, kind));
        number
    }

    /// The flex group with the fewest directories, looked for from the name's hash on.
    fn spread(&self, hash: u64) -> u64 {
        let start = hash % self.flex_groups;
        let mut best = start;
        let count = |flex: u64| self.directories.get(&flex).copied().unwrap_or(0);
        for n in 0..self.flex_groups {
            let flex = (start + n) % self.flex_groups;
            if count(flex) < count(best) {
                best = flex;
            }
        }
        best
    }

    fn number_in(&mut self, first: u64) -> u64 {
        let mut group = first;
        loop {
            let (from, to) = (group * INODES + 1, (group + 1) * INODES);
            if let Some(number) = self.freed.range(from..=to).next().copied() {
                self.freed.remove(&number);
                return number;
            }
            let next = self.next.entry(group).or_insert(from);
            if *next <= to {
                *next += 1;
                return *next - 1;
            }
            group = (group + 1) % (self.flex_groups * FLEX);
        }
    }

    /// Whether another inode of the table block is in use.
    pub(super) fn shares_block(&self, number: u64) -> bool {
        let first = (number - 1) / 16 * 16 + 1;
        first < 12 || self.used.range(first..first + 16).any(|n| *n != number)
    }
}

pub(super) fn group_of(number: u64) -> u64 {
    (number - 1) / INODES
}

fn empty(number: u64, kind: Kind) -> Inode {
    Inode {
        number,
        kind,
        extents: Rc::default(),
        index: None,
        entries: 0,
        sync: 0,
        datasync: 0,
        stamp: None,
        unconverted: false,
    }
}
