//! Inodes: which number a new one gets, where its core lies, what its file has.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::dir::Directory;
use super::layout::{CHUNK, FIRST_CHUNK, Layout};
use super::log::Seq;
use super::promise::Delayed;
use crate::fs::Kind;
use crate::fs::atime::Times;
use crate::fs::extents::Extents;
use crate::fs::jbd2::Block;
use crate::fs::ranges::Ranges;

/// Inodes of one of the two buffers of a chunk.
const CLUSTER: u32 = 32;
/// Sectors of such a buffer.
pub(super) const CLUSTER_SECTORS: u64 = 32;
/// Inodes that `mkfs` makes: the root directory and two of the realtime section.
const FIRST_FREE: u32 = 3;

/// Where an inode is: group, first block of its chunk there, and which of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) group: u64,
    pub(super) chunk: u64,
    pub(super) slot: u32,
}

impl At {
    /// The block that it lies in, counted from its group's start.
    pub(super) fn block(self) -> u64 {
        self.chunk + u64::from(self.slot) / 8
    }

    /// One number for all three.
    pub(super) fn number(self) -> u64 {
        self.group << 44 | self.chunk << 6 | u64::from(self.slot)
    }

    pub(super) fn of(number: u64) -> At {
        let chunk = number >> 6 & ((1 << 38) - 1);
        At { group: number >> 44, chunk, slot: (number & 63) as u32 }
    }

    /// The first sector of the buffer with its core.
    pub(super) fn cluster(self, layout: &Layout) -> u64 {
        let half = u64::from(self.slot / CLUSTER) * CLUSTER_SECTORS;
        layout.sector(self.group, self.chunk) + half
    }
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) at: At,
    pub(super) kind: Kind,
    pub(super) extents: Extents,
    /// Pages that have no place yet, and those that they take along past the end of the file: from, to.
    pub(super) delayed: Delayed,
    /// Units of copies of shared blocks that are promised, and what is left of those that have a place.
    pub(super) copies: Delayed,
    pub(super) copied: Extents,
    /// Pages that have a place and were never written.
    pub(super) unwritten: Rc<Ranges>,
    /// Pages of the file.
    pub(super) size: u64,
    pub(super) directory: Directory,
    /// The block with the extents when they are too many for the inode.
    pub(super) index: Option<Block>,
    /// The checkpoint that has its last change, and the last that `fdatasync` cares for.
    pub(super) seq: Seq,
    pub(super) data_seq: Seq,
    /// When it was changed and read.
    pub(super) times: Times,
    /// The tick of the last time stamp.
    pub(super) stamp: Option<u64>,
    /// Data goes to blocks that are not yet marked as written.
    pub(super) unconverted: Ranges,
    /// It was given blocks behind its end on request, and keeps them.
    pub(super) keeps: bool,
}

/// Pages that are taken along where the page before has none, and at most: 64 KiB and 8 GiB.
const LEAST_AHEAD: u64 = 16;
const MOST_AHEAD: u64 = (1 << 21) - 1;

/// Bytes of an inode for its extents, 16 each.
pub(super) const FORK: u64 = 336;

impl Inode {
    fn new(at: At, kind: Kind) -> Self {
        Self {
            at,
            kind,
            extents: Extents::default(),
            delayed: Delayed::default(),
            copies: Delayed::default(),
            copied: Extents::default(),
            unwritten: Rc::default(),
            size: 0,
            directory: Directory::default(),
            index: None,
            seq: 0,
            data_seq: 0,
            times: Times::default(),
            stamp: None,
            unconverted: Ranges::default(),
            keeps: false,
        }
    }

    /// Blocks that are promised to it.
    pub(super) fn promised(&self) -> u64 {
        self.delayed.blocks() + self.copies.blocks()
    }

    /// Its extents, those parts for themselves that are not marked as written yet.
    fn records(&self) -> u64 {
        let mut records = self.extents.len() as u64;
        if !self.unwritten.is_empty() || !self.unconverted.is_empty() {
            let mut open = Ranges::clone(&self.unwritten);
            self.unconverted.iter().for_each(|(a, b)| open.add(a, b));
            let parts = |page| self.extents.holds(page).is_some_and(|m| m.logical < page);
            let ends = open.iter().flat_map(|(a, b)| [a, b]);
            records += ends.filter(|page| parts(*page)).count() as u64;
        }
        records
    }

    /// Up to which page the disk has its data.
    pub(super) fn end_on_disk(&self) -> u64 {
        let mut end = self.extents.last().map_or(0, |m| m.logical + m.blocks);
        while let Some(last) = end.checked_sub(1) {
            let open = self.unwritten.at(last).or_else(|| self.unconverted.at(last));
            end = match (open, self.extents.holds(last)) {
                (Some((from, _)), _) => from,
                (None, Some(_)) => break,
                (None, None) => self.extents.before(last).map_or(0, |m| m.logical + m.blocks),
            };
        }
        end
    }

    /// Bytes of its data fork in the log.
    pub(super) fn fork(&self) -> u64 {
        match (self.kind, self.directory.in_inode()) {
            (Kind::Directory, n) if n > 0 => n,
            // A text is logged in words.
            (Kind::Link(n), _) if self.extents.is_empty() => u64::from(n).next_multiple_of(4),
            // A root of one child.
            _ if self.index.is_some() => 20,
            _ => self.records() * 16,
        }
    }

    /// Whether its extents are too many for it.
    pub(super) fn overflows(&self) -> bool {
        self.records() * 16 > FORK
    }

    /// Pages that a page behind the end takes along: twice those in a row before it, as a power of two, 64 KiB at least.
    pub(super) fn ahead(&self, page: u64) -> u64 {
        let Some(last) = page.checked_sub(1) else { return 0 };
        let placed = self.extents.holds(last).map(|m| m.blocks);
        let delayed = || self.delayed.at(last).map(|(a, b)| b - a);
        match placed.or_else(delayed) {
            Some(run) => (1 << (2 * run).ilog2()).clamp(LEAST_AHEAD, MOST_AHEAD),
            // There is a hole before it.
            None => LEAST_AHEAD,
        }
    }
}

/// All inodes, by the number of their file.
#[derive(Clone, Debug)]
pub(super) struct Inodes {
    files: BTreeMap<u32, Inode>,
    /// The files by the numbers of their inodes.
    owners: BTreeMap<u64, u32>,
    /// Chunks of each group by their first block: free inodes as bits.
    chunks: Vec<BTreeMap<u64, u64>>,
    /// The chunk that was made last in each group.
    newest: Vec<Option<u64>>,
}

/// Where the records of a chunk are in the trees, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records {
    pub(super) all: (u64, u64),
    pub(super) free: (u64, u64),
}

impl Inodes {
    pub(super) fn new(layout: &Layout, root: u32) -> Self {
        let at = At { group: 0, chunk: FIRST_CHUNK, slot: 0 };
        let mut chunks = vec![BTreeMap::new(); layout.groups as usize];
        chunks[0].insert(FIRST_CHUNK, u64::MAX << FIRST_FREE);
        let mut newest = vec![None; layout.groups as usize];
        newest[0] = Some(FIRST_CHUNK);
        let files = BTreeMap::from([(root, Inode::new(at, Kind::Directory))]);
        let owners = BTreeMap::from([(at.number(), root)]);
        Self { files, owners, chunks, newest }
    }

    /// Bytes of the data fork of an inode; of one without a file none.
    pub(super) fn fork(&self, number: u64) -> u64 {
        let file = self.owners.get(&number);
        file.and_then(|f| self.files.get(f)).map_or(0, Inode::fork)
    }

    /// Whether the chunk of an inode is there.
    pub(super) fn has_chunk(&self, at: At) -> bool {
        self.chunks[at.group as usize].contains_key(&at.chunk)
    }

    pub(super) fn get(&self, file: u32) -> Option<&Inode> {
        self.files.get(&file)
    }

    pub(super) fn get_mut(&mut self, file: u32) -> Option<&mut Inode> {
        self.files.get_mut(&file)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Inode)> {
        self.files.iter_mut().map(|(f, i)| (*f, i))
    }

    /// A free inode of the group: of the parent's chunk if it has one, else of the nearest chunk that has.
    pub(super) fn free_in(&self, group: u64, near: u64) -> Option<At> {
        let with_room = |(chunk, free): (&u64, &u64)| (*free != 0).then_some((*chunk, *free));
        let chunks = &self.chunks[group as usize];
        let left = chunks.range(..=near).rev().find_map(with_room);
        let right = chunks.range(near + 1..).find_map(with_room);
        let (chunk, free) = match (left, right) {
            (Some(l), Some(r)) if r.0 - near < near.saturating_sub(l.0) => r,
            (l, r) => l.or(r)?,
        };
        Some(At { group, chunk, slot: free.trailing_zeros() })
    }

    /// The chunk that a new one would follow.
    pub(super) fn newest(&self, group: u64) -> Option<u64> {
        self.newest[group as usize]
    }

    /// A chunk is made.
    pub(super) fn add_chunk(&mut self, group: u64, chunk: u64) {
        self.chunks[group as usize].insert(chunk, u64::MAX);
        self.newest[group as usize] = Some(chunk);
    }

    /// A file gets an inode.
    pub(super) fn make(&mut self, file: u32, at: At, kind: Kind) {
        if let Some(free) = self.chunks[at.group as usize].get_mut(&at.chunk) {
            *free &= !(1 << at.slot);
        }
        self.files.insert(file, Inode::new(at, kind));
        self.owners.insert(at.number(), file);
    }

    /// A file has no name any more and nobody has it open; its inode stays until [`Self::free`].
    pub(super) fn remove(&mut self, file: u32) -> Option<Inode> {
        let inode = self.files.remove(&file)?;
        self.owners.remove(&inode.at.number());
        Some(inode)
    }

    /// An inode is free. Whether its whole chunk is now.
    pub(super) fn free(&mut self, at: At) -> bool {
        let (chunks, newest) =
            (&mut self.chunks[at.group as usize], &mut self.newest[at.group as usize]);
        let Some(free) = chunks.get_mut(&at.chunk) else { return false };
        *free |= 1 << at.slot;
        let whole = *free == u64::MAX;
        if whole {
            chunks.remove(&at.chunk);
            *newest = newest.filter(|n| *n != at.chunk);
        }
        whole
    }

    /// The bytes of the trees' root blocks that a change of a chunk touches. `moves`: records come or go.
    pub(super) fn records(&self, at: At, moves: bool) -> Records {
        let chunks = &self.chunks[at.group as usize];
        let index = chunks.range(..at.chunk).count() as u64;
        let free = chunks.range(..at.chunk).filter(|(_, f)| **f != 0).count() as u64;
        let (n, m) = (chunks.len() as u64, chunks.values().filter(|f| **f != 0).count() as u64);
        let bytes = |i: u64, n: u64, moves: bool| {
            let i = i.min(RECORDS - 1);
            (56 + 16 * i, 56 + 16 * if moves { n.clamp(i + 1, RECORDS) } else { i + 1 })
        };
        let used_up = chunks.get(&at.chunk).is_none_or(|f| *f == 0);
        Records { all: bytes(index, n, moves), free: bytes(free, m, moves || used_up) }
    }
}

/// Records of 16 bytes in a root block.
const RECORDS: u64 = 252;

/// Blocks of a chunk, as the free space counts them.
pub(super) const CHUNK_BLOCKS: u64 = CHUNK;
