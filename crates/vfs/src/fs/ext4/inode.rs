//! Inodes: where they lie, what their files have, and in which transaction they changed last.

use std::collections::{BTreeMap, BTreeSet};

use iosched_types::Nanos;

use super::layout::{Format, Layout};
use crate::fs::Kind;
use crate::fs::atime::Times;
use crate::fs::ext3::indirect::Pointer;
use crate::fs::extents::{Extents, Mapped};
use crate::fs::jbd2::{Block, Tid};
use crate::fs::ranges::Ranges;

#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) number: u64,
    pub(super) kind: Kind,
    pub(super) extents: Extents,
    /// The block with extents that do not fit into the inode.
    pub(super) index: Option<Block>,
    /// ext3: the sixteenth of its group in which its first block is looked for.
    pub(super) colour: u64,
    /// ext3: the indirect blocks.
    pub(super) indirect: BTreeMap<Pointer, Block>,
    /// Entries of a directory.
    pub(super) entries: u64,
    /// The transaction of the last change, and of the last that `fdatasync` cares for.
    pub(super) sync: Tid,
    pub(super) datasync: Tid,
    /// When it was changed and read.
    pub(super) times: Times,
    /// The tick of the last time stamp.
    pub(super) stamp: Option<Nanos>,
    /// Blocks of the file on the disk that are written and not yet marked so.
    pub(super) unconverted: bool,
    /// Pages whose blocks `fallocate` took and nobody has written.
    pub(super) unwritten: Ranges,
    /// It was cut to nothing and has been written since: closing it starts what is dirty.
    pub(super) replaced: bool,
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
    format: Format,
}

impl Inodes {
    pub(super) fn new(layout: &Layout, root: u32) -> Self {
        let mut root_inode = empty(2, Kind::Directory);
        root_inode.extents.map(Mapped { logical: 0, start: layout.root(), blocks: 1 });
        Self {
            files: BTreeMap::from([(root, root_inode)]),
            used: BTreeSet::from([2]),
            freed: BTreeSet::new(),
            // Twelve is the first one that mke2fs leaves.
            next: BTreeMap::from([(0, 12)]),
            directories: BTreeMap::from([(0, 2)]),
            flex_groups: layout.groups.div_ceil(layout.format.flex),
            format: layout.format,
        }
    }

    pub(super) fn get(&self, file: u32) -> Option<&Inode> {
        self.files.get(&file)
    }

    pub(super) fn get_mut(&mut self, file: u32) -> Option<&mut Inode> {
        self.files.get_mut(&file)
    }

    /// No time stamp is of the present tick.
    pub(super) fn forget_stamps(&mut self) {
        self.files.values_mut().for_each(|i| i.stamp = None);
    }

    pub(super) fn remove(&mut self, file: u32) -> Option<Inode> {
        let inode = self.files.remove(&file)?;
        self.freed.insert(inode.number);
        self.used.remove(&inode.number);
        if inode.kind == Kind::Directory {
            let flex = self.group_of(inode.number) / self.format.flex;
            *self.directories.entry(flex).or_default() -= 1;
        }
        Some(inode)
    }

    /// A number for a new file: in its directory's group; for a directory of the root in a flex group chosen by
    /// `hash`, for another one in its parent's.
    pub(super) fn make(&mut self, file: u32, kind: Kind, parent: u32, hash: u64) -> u64 {
        let parent_number = self.files.get(&parent).map_or(2, |p| p.number);
        let mut group = self.group_of(parent_number);
        if kind == Kind::Directory {
            let flex =
                if parent_number == 2 { self.spread(hash) } else { group / self.format.flex };
            group = flex * self.format.flex;
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
            let (from, to) = (group * self.format.inodes + 1, (group + 1) * self.format.inodes);
            if let Some(number) = self.freed.range(from..=to).next().copied() {
                self.freed.remove(&number);
                return number;
            }
            let next = self.next.entry(group).or_insert(from);
            if *next <= to {
                *next += 1;
                return *next - 1;
            }
            group = (group + 1) % (self.flex_groups * self.format.flex);
        }
    }

    /// Inodes of the group that were ever made; mke2fs makes eleven.
    pub(super) fn made_in(&self, group: u64) -> u64 {
        self.next.get(&group).map_or(0, |next| next - 1 - group * self.format.inodes)
    }

    fn group_of(&self, number: u64) -> u64 {
        (number - 1) / self.format.inodes
    }

    /// Whether another inode of the table block is in use.
    pub(super) fn shares_block(&self, number: u64) -> bool {
        let n = self.format.in_block();
        let first = (number - 1) / n * n + 1;
        first < 12 || self.used.range(first..first + n).any(|n| *n != number)
    }
}

fn empty(number: u64, kind: Kind) -> Inode {
    Inode {
        number,
        kind,
        extents: Extents::default(),
        index: None,
        colour: 0,
        indirect: BTreeMap::new(),
        times: Times::default(),
        entries: 0,
        sync: 0,
        datasync: 0,
        stamp: None,
        unconverted: false,
        unwritten: Ranges::default(),
        replaced: false,
    }
}
