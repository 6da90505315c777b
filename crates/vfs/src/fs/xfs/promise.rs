//! Room that is promised: pages in memory that have no place yet count as taken, with what their extents may need in trees.
//!
//! So a write is told that the disk is full, and write-back always finds room. All figures are `statfs` of Linux 6.12.

use std::ops::Deref;
use std::rc::Rc;

use super::inode::Inode;
use super::layout::Layout;
use super::space::Space;
use super::{State, UNIT};
use crate::fs::Kind;
use crate::fs::extents::Mapped;
use crate::fs::ranges::Ranges;
use crate::kernel::Kernel;

/// Blocks that are kept for changes that must not fail: a twentieth of all, but no more than this.
const KEPT: u64 = 8192;
/// Extents in a leaf of a file's tree, and levels of the tree that may be needed.
const IN_LEAF: u64 = 251;
const LEVELS: u64 = 5;
/// Records in half a block of the trees of owners and of chunks with free inodes, and in half a node.
const OWNERS: u64 = 168;
const CHUNKS: u64 = 126;
const NODES: u64 = 252;
/// Blocks of a group that are kept for its free list beyond those that are on it, and the two roots that are there.
const LIST: u64 = 4;
const ROOTS: u64 = 2;
/// What making a file or directory may need, and a link with a long text. Seen to within a block.
const CREATE: u64 = 46;
const LINK: u64 = 48;

/// Blocks of a tree of so many records at worst: each block half full.
fn tree(records: u64, in_leaf: u64) -> u64 {
    let mut level = records.div_ceil(in_leaf);
    let mut blocks = level;
    while level > 1 {
        level = level.div_ceil(NODES);
        blocks += level;
    }
    blocks
}

/// Blocks that nobody gets for data, though they are free.
pub(super) fn kept(layout: &Layout) -> u64 {
    let trees = (0..layout.groups).map(|group| {
        let log = if group == layout.groups / 2 { layout.log.1 } else { 0 };
        let blocks = layout.len(group).saturating_sub(log);
        tree(blocks, OWNERS) + tree(blocks / 8, CHUNKS) + LIST - ROOTS
    });
    (layout.blocks / 20).min(KEPT) + trees.sum::<u64>()
}

/// What an extent of so many blocks may need for its records.
fn records(blocks: u64) -> u64 {
    let (mut level, mut sum) = (blocks, 0);
    for above in (0..LEVELS).rev() {
        level = level.div_ceil(IN_LEAF);
        sum += level;
        if level <= 1 {
            return sum + above;
        }
    }
    sum
}

/// Pages that will get a place, and blocks that are promised for them.
#[derive(Clone, Debug, Default)]
pub(super) struct Delayed {
    ranges: Ranges,
    blocks: u64,
}

impl Deref for Delayed {
    type Target = Ranges;

    fn deref(&self) -> &Ranges {
        &self.ranges
    }
}

impl Delayed {
    fn change(&mut self, from: u64, to: u64, how: impl FnOnce(&mut Ranges)) {
        let around = (from.saturating_sub(1), to.saturating_add(1));
        let cost = |r: &Ranges| -> u64 {
            r.within(around.0, around.1).map(|(a, b)| b - a + records(b - a)).sum()
        };
        let before = cost(&self.ranges);
        how(&mut self.ranges);
        self.blocks = self.blocks + cost(&self.ranges) - before;
    }

    pub(super) fn add(&mut self, from: u64, to: u64) {
        self.change(from, to, |r| r.add(from, to));
    }

    pub(super) fn remove(&mut self, from: u64, to: u64) {
        if self.ranges.from(from).is_some_and(|first| first < to) {
            self.change(from, to, |r| _ = r.remove(from, to));
        }
    }

    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }
}

/// What a write has been promised: stretches of the file, and of copies of shared blocks.
#[derive(Debug, Default)]
struct Promise {
    own: Vec<(u64, u64)>,
    copies: Vec<(u64, u64)>,
}

impl State {
    /// Blocks that can still be promised.
    pub(super) fn spare(&self) -> u64 {
        let free: u64 = self.groups.iter().map(Space::free).sum();
        free.saturating_sub(self.kept + self.promised)
    }

    /// Whether a name can be made.
    pub(super) fn has_room_for(&self, kind: Kind) -> bool {
        self.spare() >= if matches!(kind, Kind::Link(_)) { LINK } else { CREATE }
    }

    /// Changes what is promised to a file.
    pub(super) fn delayed<T>(&mut self, file: u32, how: impl FnOnce(&mut Inode) -> T) -> Option<T> {
        let inode = self.inodes.get_mut(file)?;
        let before = inode.promised();
        let done = how(inode);
        self.promised = self.promised + inode.promised() - before;
        Some(done)
    }

    /// Pages are about to be written in memory: those without a place will get one, and with them some more if the file grows;
    /// those in blocks that others have, too, will be copied. Whether there is room for all that.
    pub(super) fn promise(&mut self, file: u32, pages: (u64, u64), checked: bool) -> bool {
        let size = self.inodes.get(file).map_or(0, |i| i.size);
        let mut promise = Promise { own: Vec::new(), copies: self.to_copy(file, pages) };
        for (from, to) in &promise.copies {
            self.delayed(file, |i| i.copies.add(*from, *to));
        }
        for ahead in [true, false] {
            promise.own = self.delay(file, pages, ahead);
            let over = |s: &State| {
                let free: u64 = s.groups.iter().map(Space::free).sum();
                free < s.kept + s.promised
            };
            let nothing = promise.own.is_empty() && promise.copies.is_empty();
            if !checked || nothing || !over(self) {
                if let Some(inode) = self.inodes.get_mut(file) {
                    inode.size = size.max(pages.1);
                }
                return true;
            }
            // Without what would have been taken along.
            for (from, to) in std::mem::take(&mut promise.own) {
                self.delayed(file, |i| i.delayed.remove(from, to));
            }
        }
        for (from, to) in promise.copies {
            self.delayed(file, |i| i.copies.remove(from, to));
        }
        false
    }

    /// Notes the pages of a range that have no place. → what is new
    fn delay(&mut self, file: u32, (from, to): (u64, u64), take_along: bool) -> Vec<(u64, u64)> {
        let scarcity = self.scarcity();
        let mut new = Vec::new();
        let Some(inode) = self.inodes.get(file) else { return new };
        let size = inode.size;
        let mut at = from;
        while at < to {
            let there = inode.extents.holds(at).or_else(|| inode.copied.holds(at));
            let there = there.map(|m| m.logical + m.blocks);
            let there =
                there.or_else(|| inode.delayed.at(at).or_else(|| inode.copies.at(at)).map(|r| r.1));
            if let Some(end) = there {
                at = end;
                continue;
            }
            let next = [inode.extents.after(at), inode.copied.after(at)];
            let next = next.into_iter().flatten().map(|m| m.logical).chain(inode.copies.from(at));
            let next = next.min();
            let end = next.map_or(to, |n| n.min(to));
            let grows = end == to && to > size;
            // What comes before in the same write is in the file by now.
            let size = if at > from { size.max(at) } else { size };
            let ahead = match () {
                () if grows && size >= super::SMALL && take_along => inode.ahead(at) >> scarcity,
                () => 0,
            };
            // Counted from the last multiple of 64 KiB that the write reaches, and up to what lies behind.
            let most = next.unwrap_or(u64::MAX);
            let last = if ahead > 0 { (to - 1) / super::SMALL * super::SMALL + ahead } else { 0 };
            new.push((at, end.max(last.min(most))));
            at = end;
        }
        // Those that are there already are not new.
        let new =
            new.into_iter().flat_map(|(a, b)| inode.delayed.without(a, b)).collect::<Vec<_>>();
        for (a, b) in &new {
            self.delayed(file, |i| i.delayed.add(*a, *b));
        }
        new
    }

    /// By how many powers of two less is taken along: two where less than 5 % is free, and one more below 4, 3, 2 and 1 %.
    fn scarcity(&self) -> u32 {
        let below = |percent: u64| self.spare() * 100 < self.layout.blocks * percent;
        if below(5) { 2 + (1..5).filter(|p| below(*p)).count() as u32 } else { 0 }
    }

    /// Blocks that a direct write or `fallocate` of a range needs, with those that its extent may need.
    pub(super) fn needs(&self, file: u32, (from, to): (u64, u64)) -> u64 {
        let Some(inode) = self.inodes.get(file) else { return 0 };
        let (mut at, mut n) = (from, 0);
        while at < to {
            if let Some(m) = inode.extents.holds(at) {
                at = m.logical + m.blocks;
                continue;
            }
            let end = inode.extents.after(at).map_or(to, |m| m.logical.min(to));
            n += inode.delayed.without(at, end).map(|(a, b)| b - a).sum::<u64>();
            at = end;
        }
        n += self.to_copy(file, (from, to)).iter().map(|(a, b)| b - a).sum::<u64>();
        if n > 0 { n + LEVELS - 1 } else { 0 }
    }

    /// Takes away what lies behind the end of a file, unless it was asked for.
    pub(super) fn trim(&mut self, k: &Kernel, file: u32) {
        let Some(inode) = self.inodes.get(file).filter(|i| !i.keeps && i.kind == Kind::File) else {
            return;
        };
        let size = inode.size;
        self.delayed(file, |i| i.delayed.remove(size, u64::MAX));
        let gone = self.inodes.get_mut(file).map(|inode| {
            Rc::make_mut(&mut inode.unwritten).remove(size, u64::MAX);
            inode.extents.cut(size)
        });
        let gone = gone.unwrap_or_default();
        if gone.is_empty() {
            return;
        }
        self.give_all(gone);
        self.changed(k, file, true);
    }

    /// Room is short, and no page of the file is dirty: what it was given beyond its pages comes back.
    pub(super) fn tighten(&mut self, k: &Kernel, file: u32) {
        self.trim(k, file);
        self.delayed(file, |i| i.copies.remove(0, u64::MAX));
        let copied = self.inodes.get_mut(file).map(|i| std::mem::take(&mut i.copied).cut(0));
        self.give_all(copied.unwrap_or_default());
    }

    pub(super) fn give_all(&mut self, extents: Vec<Mapped>) {
        extents.into_iter().for_each(|m| self.give(m));
    }

    /// Stretches of units that have to be copied before pages of a range can be written.
    fn to_copy(&self, file: u32, pages: (u64, u64)) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        if self.has_no_owners() {
            return out;
        }
        let Some(inode) = self.inodes.get(file) else { return out };
        for (from, to) in self.shared(file, pages) {
            let mut at = from;
            while at < to {
                let there = inode.copied.holds(at).map(|m| m.logical + m.blocks);
                if let Some(end) = there.or_else(|| inode.copies.at(at).map(|r| r.1)) {
                    at = end;
                    continue;
                }
                let unit = (at / UNIT * UNIT, (at / UNIT + 1) * UNIT);
                // Less where parts of it are there.
                let before = inode.copied.before(at).map_or(0, |m| m.logical + m.blocks);
                let after = inode.copied.after(at).map_or(u64::MAX, |m| m.logical);
                let (a, b) = (unit.0.max(before), unit.1.min(after));
                out.extend(inode.copies.without(a, b));
                at = b;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `statfs` of fresh file systems, by blocks of the device.
    #[test]
    fn what_is_kept_is_what_the_kernel_keeps() {
        let free = |blocks| {
            let layout = Layout::new(blocks);
            let all = (0..layout.groups).flat_map(|g| layout.free(g)).map(|(_, n)| n).sum::<u64>();
            all - kept(&layout)
        };
        for (blocks, seen) in [
            (1 << 17, 107_269),
            (1 << 18, 235_783),
            (1 << 20, 1_016_730),
            (1 << 22, 4_140_527),
            (100 << 18, 26_007_102),
        ] {
            assert_eq!(free(blocks), seen, "{blocks} blocks");
        }
    }

    /// What Linux 6.12 promised for one write of so many pages.
    #[test]
    fn records_of_an_extent_are_promised_with_it() {
        for (pages, promised) in
            [(1, 6), (2, 7), (8, 13), (32, 37), (100, 105), (300, 306), (1000, 1008)]
        {
            let mut delayed = Delayed::default();
            delayed.add(0, pages);
            assert_eq!(delayed.blocks(), promised);
            delayed.remove(0, pages);
            assert_eq!(delayed.blocks(), 0);
        }
    }
}
