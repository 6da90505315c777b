//! Where the blocks of a file lie.

use std::rc::Rc;

use iosched_types::Sector;

use super::jbd2::Block;
use super::ranges::Ranges;
use crate::kernel::read::Place;

/// Blocks of a file in a row on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) logical: u64,
    pub(super) start: Block,
    pub(super) blocks: u64,
}

/// The extents of a file, in order of the file. Shared with who reads the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents(Rc<Vec<Mapped>>);

/// Where a file's pages lie, and which of them count as holes all the same.
#[derive(Clone, Debug, Default)]
pub struct Placed(Extents, Option<Rc<Ranges>>);

impl Place for Placed {
    fn at(&self, page: u64) -> (Option<Sector>, u64) {
        let Some(holes) = &self.1 else { return self.0.at(page) };
        if let Some((_, end)) = holes.at(page) {
            return (None, end - page);
        }
        let (sector, pages) = self.0.at(page);
        (sector, holes.from(page).map_or(pages, |hole| pages.min(hole - page)))
    }
}

impl Extents {
    fn at(&self, page: u64) -> (Option<Sector>, u64) {
        let all = &self.0;
        let after = all.partition_point(|m| m.logical <= page);
        if let Some(m) = after.checked_sub(1).map(|i| all[i])
            && page < m.logical + m.blocks
        {
            let skip = page - m.logical;
            return (Some((m.start + skip) * 8), m.blocks - skip);
        }
        (None, all.get(after).map_or(u64::MAX >> 16, |m| m.logical - page))
    }

    pub(super) fn place(&self) -> Placed {
        Placed(self.clone(), None)
    }

    /// As far as somebody has written there.
    pub(super) fn written(&self, unwritten: &Rc<Ranges>) -> Placed {
        Placed(self.clone(), (!unwritten.is_empty()).then(|| unwritten.clone()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn last(&self) -> Option<Mapped> {
        self.0.last().copied()
    }

    /// The extent that holds the block, or the one before it.
    pub(super) fn before(&self, logical: u64) -> Option<Mapped> {
        let after = self.0.partition_point(|m| m.logical <= logical);
        after.checked_sub(1).map(|i| self.0[i])
    }

    /// The extent that holds the block.
    pub(super) fn holds(&self, logical: u64) -> Option<Mapped> {
        self.before(logical).filter(|m| logical < m.logical + m.blocks)
    }

    /// Whether some of the blocks have no place.
    pub(super) fn hole(&self, from: u64, to: u64) -> bool {
        let mut at = from;
        while at < to {
            match self.holds(at) {
                Some(m) => at = m.logical + m.blocks,
                None => return true,
            }
        }
        false
    }

    /// Where the blocks of a range lie.
    pub(super) fn blocks(&self, from: u64, to: u64) -> impl Iterator<Item = Block> {
        self.0.iter().flat_map(move |m| {
            let (a, b) = (m.logical.max(from), (m.logical + m.blocks).min(to));
            (a..b.max(a)).map(move |l| m.start + (l - m.logical))
        })
    }

    /// The first extent after the block.
    pub(super) fn after(&self, logical: u64) -> Option<Mapped> {
        self.0.get(self.0.partition_point(|m| m.logical <= logical)).copied()
    }

    /// Notes a new stretch, joined with the one before it where they meet.
    pub(super) fn map(&mut self, new: Mapped) {
        let extents = Rc::make_mut(&mut self.0);
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

    /// The extents of a range, cut at its ends.
    pub(super) fn within(&self, from: u64, to: u64) -> Vec<Mapped> {
        let first = self.0.partition_point(|m| m.logical + m.blocks <= from);
        let cut = |m: &Mapped| {
            let (a, b) = (m.logical.max(from), (m.logical + m.blocks).min(to));
            Mapped { logical: a, start: m.start + (a - m.logical), blocks: b - a }
        };
        self.0[first..].iter().take_while(|m| m.logical < to).map(cut).collect()
    }

    /// Takes the blocks of a range away.
    pub(super) fn unmap(&mut self, from: u64, to: u64) {
        let behind = self.cut(to);
        self.cut(from);
        behind.into_iter().for_each(|m| self.map(m));
    }

    /// Takes away everything from the block on, and says what it was.
    pub(super) fn cut(&mut self, from: u64) -> Vec<Mapped> {
        let extents = Rc::make_mut(&mut self.0);
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

    /// Takes the block away, and says where it was.
    pub(super) fn take(&mut self, logical: u64) -> Option<Block> {
        let m = self.holds(logical)?;
        let extents = Rc::make_mut(&mut self.0);
        let at = extents.partition_point(|m| m.logical <= logical) - 1;
        let (left, right) = (logical - m.logical, m.logical + m.blocks - logical - 1);
        extents.remove(at);
        if right > 0 {
            let (logical, start) = (logical + 1, m.start + left + 1);
            extents.insert(at, Mapped { logical, start, blocks: right });
        }
        if left > 0 {
            extents.insert(at, Mapped { blocks: left, ..m });
        }
        Some(m.start + left)
    }
}
