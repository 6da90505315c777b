//! Inodes: where they lie, what their files have, and in which transaction they changed last.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use iosched_types::Nanos;

use super::layout::{Format, Layout};
use super::{State, hash};
use crate::fs::atime::Times;
use crate::fs::ext3::indirect::Pointer;
use crate::fs::extents::{Extents, Mapped};
use crate::fs::jbd2::{Block, Tid};
use crate::fs::ranges::Ranges;
use crate::fs::{Full, Kind};

/// The inode of the root directory.
pub(super) const ROOT: u64 = 2;
/// Inodes that mke2fs makes.
const MADE: u64 = 11;

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
    /// Pages that are on their way to blocks that are not marked as written.
    pub(super) unconverted: Ranges,
    /// Pages whose blocks `fallocate` took and nobody has written.
    pub(super) unwritten: Rc<Ranges>,
    /// Pages in memory that are promised a place.
    pub(super) delayed: Ranges,
    /// It was cut to nothing and has been written since: closing it starts what is dirty.
    pub(super) replaced: bool,
    /// Somebody has written and still has it open, so it may grow.
    pub(super) growing: bool,
    /// Pages that the file has, as far as they were written here.
    pub(super) size: u64,
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
    /// Inodes in use, in each flex group and in all.
    in_flex: BTreeMap<u64, u64>,
    all: u64,
    flex_groups: u64,
    groups: u64,
    format: Format,
}

impl Inodes {
    pub(super) fn new(layout: &Layout, root: u32) -> Self {
        let mut root_inode = empty(ROOT, Kind::Directory);
        root_inode.extents.map(Mapped { logical: 0, start: layout.root(), blocks: 1 });
        Self {
            files: BTreeMap::from([(root, root_inode)]),
            used: BTreeSet::from([ROOT]),
            freed: BTreeSet::new(),
            next: BTreeMap::from([(0, MADE + 1)]),
            directories: BTreeMap::from([(0, 2)]),
            in_flex: BTreeMap::from([(0, MADE)]),
            all: MADE,
            flex_groups: layout.groups.div_ceil(layout.format.flex),
            groups: layout.groups,
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
        let flex = self.group_of(inode.number) / self.format.flex;
        *self.in_flex.entry(flex).or_default() -= 1;
        self.all -= 1;
        if inode.kind == Kind::Directory {
            *self.directories.entry(flex).or_default() -= 1;
        }
        Some(inode)
    }

    /// A number for a new file: in its directory's group; for a directory in the flex group `spread`, or else in its
    /// parent's.
    fn make(
        &mut self,
        file: u32,
        kind: Kind,
        parent: u32,
        spread: Option<u64>,
    ) -> Result<u64, Full> {
        let mut group = self.group_of(self.number(parent));
        if kind == Kind::Directory {
            group = spread.unwrap_or(group / self.format.flex) * self.format.flex;
        }
        let number = self.number_in(group).ok_or(Full)?;
        if kind == Kind::Directory {
            let flex = self.group_of(number) / self.format.flex;
            *self.directories.entry(flex).or_default() += 1;
        }
        self.used.insert(number);
        *self.in_flex.entry(self.group_of(number) / self.format.flex).or_default() += 1;
        self.all += 1;
        self.files.insert(file, empty(number, kind));
        Ok(number)
    }

    fn number(&self, file: u32) -> u64 {
        self.files.get(&file).map_or(ROOT, |i| i.number)
    }

    /// The first free number from a group on; `None` when mke2fs made no more.
    fn number_in(&mut self, first: u64) -> Option<u64> {
        for group in (0..self.groups).map(|n| (first + n) % self.groups) {
            let (from, to) = (group * self.format.inodes + 1, (group + 1) * self.format.inodes);
            if let Some(number) = self.freed.range(from..=to).next().copied() {
                self.freed.remove(&number);
                return Some(number);
            }
            let next = self.next.entry(group).or_insert(from);
            if *next <= to {
                *next += 1;
                return Some(*next - 1);
            }
        }
        None
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
        first <= MADE || self.used.range(first..first + n).any(|n| *n != number)
    }
}

impl State {
    /// A number for a new file. Directories of the root are spread by their names.
    pub(super) fn make_inode(
        &mut self,
        file: u32,
        kind: Kind,
        parent: u32,
        name: &str,
    ) -> Result<u64, Full> {
        let spreads = kind == Kind::Directory && self.inodes.number(parent) == ROOT;
        let spread = if spreads { self.spread(name) } else { None };
        self.inodes.make(file, kind, parent, spread)
    }

    /// The flex group with the fewest directories among those with as much room as the average, looked for from the name's
    /// hash on.
    fn spread(&self, name: &str) -> Option<u64> {
        let (inodes, flexes) = (&self.inodes, self.inodes.flex_groups);
        let Format { flex, inodes: each, .. } = self.layout.format;
        let room = |n: u64| {
            let all = flex.min(self.layout.groups - n * flex) * each;
            (all - inodes.in_flex.get(&n).copied().unwrap_or(0), self.space.free_in(n))
        };
        let average =
            ((self.layout.groups * each - inodes.all) / flexes, self.space.free() / flexes);
        let start = u64::from(hash::of(name)) % flexes;
        let roomy = |n: &u64| room(*n).0 >= average.0 && room(*n).1 >= average.1;
        let around = (0..flexes).map(|n| (start + n) % flexes).filter(roomy);
        around.min_by_key(|n| inodes.directories.get(n).copied().unwrap_or(0))
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
        unconverted: Ranges::default(),
        unwritten: Rc::default(),
        delayed: Ranges::default(),
        replaced: false,
        growing: false,
        size: 0,
    }
}
