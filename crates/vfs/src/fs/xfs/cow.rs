//! Writes to blocks that others have, too: they get blocks of their own, by units of 128 KiB (`cowextsize`).
//!
//! A unit is promised when one of its pages is written, and placed when that is written back. Only pages that were written move
//! there. The rest of the unit stays with the file for its next writes. Seen so in Linux 6.12.

use std::rc::Rc;

use super::space::For;
use super::{State, UNIT, Xfs};
use crate::fs::Full;
use crate::fs::extents::Mapped;
use crate::kernel::Kernel;

/// A gap before a unit is kept on the disk if it is no longer than so many times what lies before it.
const GAP: u64 = 4;

/// What the next pages of a file need before they are written.
pub(super) enum Need {
    /// Nothing: they have a place up to here.
    Ready(u64),
    /// A place.
    Place((u64, u64)),
    /// A unit of their own.
    Unit((u64, u64)),
    /// To move to the unit that they have.
    Move((u64, u64)),
    /// The file has gone.
    Gone,
}

impl Xfs {
    /// A stretch of units gets a place, or its first part.
    pub(super) async fn place_copy(
        &self,
        k: &Kernel,
        file: u32,
        (from, to): (u64, u64),
    ) -> Result<(), Full> {
        self.begin(k).await;
        let goal = self.with(|s| s.goal_of_copy(file, from));
        let (group, start, blocks) = self.allocate(k, goal, to - from, For::Data).await?;
        let start = self.with(|s| group * s.layout.group + start);
        let new = Mapped { logical: from, start, blocks };
        let mapped = self.with(|s| {
            let Some(inode) = s.inodes.get(file) else { return false };
            let free = inode.copied.after(from).map_or(u64::MAX, |m| m.logical);
            if inode.copied.holds(from).is_some() || free < from + blocks {
                return false;
            }
            s.delayed(file, |i| {
                i.copies.remove(from, from + blocks);
                i.copied.map(new);
            });
            true
        });
        if !mapped {
            // Another task has placed it while this one read.
            self.release(k, &[new]).await;
        }
        Ok(())
    }

    /// Pages move to the blocks of their own that they have.
    pub(super) async fn move_pages(
        &self,
        k: &Kernel,
        file: u32,
        pages: (u64, u64),
    ) -> Result<(), Full> {
        self.begin(k).await;
        for m in self.with(|s| {
            s.inodes.get(file).map_or_else(Vec::new, |i| i.extents.within(pages.0, pages.1))
        }) {
            let group = self.with(|s| s.layout.group_of(m.start));
            self.read_owners(k, group).await;
            self.read_space(k, group).await;
        }
        self.with(|s| {
            let Some(inode) = s.inodes.get_mut(file) else { return };
            for new in inode.copied.within(pages.0, pages.1) {
                let (from, to) = (new.logical, new.logical + new.blocks);
                let Some(inode) = s.inodes.get_mut(file) else { return };
                inode.copied.unmap(from, to);
                let old = inode.extents.within(from, to);
                inode.extents.unmap(from, to);
                inode.extents.map(new);
                Rc::make_mut(&mut inode.unwritten).remove(from, to);
                inode.unconverted.add(from, to);
                s.delayed(file, |i| i.delayed.remove(from, to));
                old.into_iter().for_each(|m| s.leave(m));
            }
            s.changed(k, file, true);
        });
        self.index(k, file).await
    }
}

impl State {
    /// What pages of a file need next.
    pub(super) fn need(&mut self, file: u32, from: u64, to: u64) -> Need {
        let Some(inode) = self.inodes.get(file) else { return Need::Gone };
        if let Some(m) = inode.copied.holds(from) {
            return Need::Move((from, to.min(m.logical + m.blocks)));
        }
        if let Some((a, b)) = inode.copies.at(from) {
            // A stretch may have been placed in part.
            let before = inode.copied.before(from).map_or(0, |m| m.logical + m.blocks);
            let after = inode.copied.after(from).map_or(u64::MAX, |m| m.logical);
            return Need::Unit((a.max(before), b.min(after)));
        }
        let next = [inode.copied.after(from).map(|m| m.logical), inode.copies.from(from)];
        let to = next.into_iter().flatten().fold(to, u64::min);
        if inode.extents.holds(from).is_some() {
            let shared = self.shared(file, (from, to)).first().copied();
            return match shared {
                // Shared since it was written, or a direct write.
                Some((at, end)) if at == from => {
                    let (unit, last) = (at / UNIT * UNIT, (end - 1) / UNIT);
                    let inode = &self.inodes.get(file);
                    let before = inode.and_then(|i| i.copied.before(at));
                    let before = before.map_or(0, |m| m.logical + m.blocks);
                    let after =
                        inode.and_then(|i| i.copied.after(at)).map_or(u64::MAX, |m| m.logical);
                    Need::Unit((unit.max(before), ((last + 1) * UNIT).min(after)))
                }
                other => match self.ready(file, from, other.map_or(to, |s| s.0)) {
                    Some(end) => Need::Ready(end),
                    None => Need::Gone,
                },
            };
        }
        self.stretch(file, from, to).map_or(Need::Gone, Need::Place)
    }

    /// Pages of a range that lie in blocks that others have, too.
    pub(super) fn shared(&self, file: u32, pages: (u64, u64)) -> Vec<(u64, u64)> {
        let mut out = Vec::new();
        if self.owners.is_empty() {
            return out;
        }
        for m in self.mapped(file, pages) {
            for (a, b, n) in self.owners.parts(m.start, m.start + m.blocks) {
                if n > 0 {
                    out.push((m.logical + (a - m.start), m.logical + (b - m.start)));
                }
            }
        }
        out
    }

    pub(super) fn has_no_owners(&self) -> bool {
        self.owners.is_empty()
    }

    /// A file has these blocks no more.
    fn leave(&mut self, m: Mapped) {
        if self.owners.any(m.start, m.start + m.blocks) {
            self.owners_changed(m);
        }
        for (start, end) in self.owners.drop(m.start, m.start + m.blocks) {
            self.give(Mapped { logical: m.logical, start, blocks: end - start });
        }
    }

    /// Where a unit should be: as far from the one before as in the file, unless that is far; or near the inode.
    fn goal_of_copy(&self, file: u32, logical: u64) -> (u64, u64) {
        let Some(inode) = self.inodes.get(file) else { return (0, 0) };
        let Some(m) = inode.copied.before(logical) else { return self.goal(file, logical) };
        let gap = logical - (m.logical + m.blocks);
        let end = m.start + m.blocks;
        let group = self.layout.group_of(m.start);
        let at = if gap <= GAP * m.blocks { end + gap } else { end };
        (group, at - group * self.layout.group)
    }
}

#[cfg(test)]
mod tests;
