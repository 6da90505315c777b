//! Room that is promised to pages in memory: with delayed allocation a write is told that the disk is full, not write-back.

use super::State;

/// Blocks that are kept for trees of extents, so that write-back always finds room: a fiftieth of all, but no more than this
/// (`reserved_clusters`).
const KEPT: u64 = 4096;

impl State {
    fn kept(&self) -> u64 {
        if self.layout.format.indirect { 0 } else { (self.layout.blocks / 50).min(KEPT) }
    }

    /// Free blocks, as `statfs` counts them: those in preallocations are free, those promised are not.
    pub(super) fn unused(&self) -> u64 {
        (self.space.free() + self.space.preallocated()).saturating_sub(self.promised)
    }

    /// Blocks that can still be promised. Root may take those that are kept for him.
    pub(super) fn spare(&self) -> u64 {
        self.unused().saturating_sub(self.kept())
    }

    fn has_spare(&self, blocks: u64) -> bool {
        let wanted = blocks + self.promised + self.kept();
        // Preallocations are counted only where that matters.
        blocks == 0 || wanted <= self.space.free() || blocks <= self.spare()
    }

    /// Blocks that pages of a range need: those without a place, unless they are promised one.
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
        n
    }

    /// Promises room for pages that are about to be written. Whether there is enough.
    pub(super) fn promise(&mut self, file: u32, (from, to): (u64, u64)) -> bool {
        let needs = self.needs(file, (from, to));
        if needs == 0 {
            return true;
        }
        if !self.has_spare(needs) {
            return false;
        }
        let Some(inode) = self.inodes.get_mut(file) else { return true };
        let mut at = from;
        while at < to {
            if let Some(m) = inode.extents.holds(at) {
                at = m.logical + m.blocks;
                continue;
            }
            let end = inode.extents.after(at).map_or(to, |m| m.logical.min(to));
            inode.delayed.add(at, end);
            at = end;
        }
        self.promised += needs;
        true
    }

    /// Pages have got a place, or are no more.
    pub(super) fn keep_promise(&mut self, file: u32, (from, to): (u64, u64)) {
        let Some(inode) = self.inodes.get_mut(file) else { return };
        let parts = inode.delayed.within(from, to);
        let pages: u64 = parts.map(|(a, b)| b.min(to) - a.max(from)).sum();
        if pages > 0 {
            inode.delayed.remove(from, to);
            self.promised -= pages;
        }
    }
}
