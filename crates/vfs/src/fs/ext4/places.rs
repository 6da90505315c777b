//! Blocks that are given when a page is written to: in ext3, and in ext4 without delayed allocation. Then data that the
//! transaction has to wait for is known to it, or goes through the journal itself.

use std::rc::Rc;

use super::mballoc::{Extent, LARGEST, Request};
use super::{Data, Driver, Ext, Name, State};
use crate::fs::Full;
use crate::fs::ext3::indirect::{pointers, range_end};
use crate::fs::extents::Mapped;
use crate::fs::jbd2::Block;
use crate::kernel::Kernel;

/// Pages of one change with `data=journal`.
const JOURNALED: u64 = 32;

impl State {
    /// Blocks from `logical` on, and the indirect blocks that lead to them, each before the first block that it is for.
    pub(super) fn place_by_pointers(
        &mut self,
        file: u32,
        logical: u64,
        blocks: u64,
        exact: bool,
    ) -> Result<u64, Full> {
        let Some(inode) = self.inodes.get(file) else { return Ok(blocks) };
        let (group, colour) = (self.layout.group_of(inode.number), inode.colour);
        let before = inode.extents.before(logical).filter(|m| m.logical + m.blocks == logical);
        let mut left = before.map(|m| m.start + m.blocks - 1);
        let request = |logical, blocks, left| Request {
            group,
            logical,
            blocks,
            file: logical + blocks,
            left,
            right: None,
            closed: false,
            exact,
            of_file: !exact,
        };
        for pointer in pointers(logical) {
            let known = self.inodes.get(file).and_then(|i| i.indirect.get(&pointer).copied());
            let block = match known {
                Some(block) => block,
                None => {
                    let found = self.space.allocate(file, colour, &request(logical, 1, left));
                    let extent = found.ok_or(Full)?;
                    self.used(extent);
                    if let Some(inode) = self.inodes.get_mut(file) {
                        inode.indirect.insert(pointer, extent.start);
                    }
                    self.warm.insert(extent.start);
                    self.journal.modify(extent.start);
                    extent.start
                }
            };
            // Where the first block of its range goes, if nothing is left of it.
            left = if known.is_none() || left.is_none() { Some(block) } else { left };
        }
        let n = blocks.min(range_end(logical) - logical);
        let extent = self.space.allocate(file, colour, &request(logical, n, left)).ok_or(Full)?;
        self.used(extent);
        if let Some(inode) = self.inodes.get_mut(file) {
            let Extent { start, blocks } = extent;
            inode.extents.map(Mapped { logical, start, blocks });
            let last = pointers(logical).last().and_then(|p| inode.indirect.get(&p).copied());
            last.into_iter().for_each(|block| self.journal.modify(block));
        }
        Ok(extent.blocks)
    }

    /// Frees the indirect blocks that lead to nothing before `from`; the others change.
    pub(super) fn release_pointers(&mut self, file: u32, from: u64) {
        let Some(inode) = self.inodes.get_mut(file) else { return };
        let gone: Vec<_> = inode
            .indirect
            .iter()
            .filter(|(p, _)| p.first() >= from)
            .map(|(p, b)| (*p, *b))
            .collect();
        inode.indirect.retain(|p, _| p.first() < from);
        let last = from.checked_sub(1).and_then(|b| pointers(b).last());
        let changed = last.and_then(|p| inode.indirect.get(&p).copied());
        if let Some(block) = changed.filter(|_| !gone.is_empty() || from > 0) {
            self.journal.modify(block);
        }
        for (_, block) in gone {
            self.used(Extent { start: block, blocks: 1 });
            self.space.release(Extent { start: block, blocks: 1 });
            self.journal.revoke(block);
        }
    }

    /// With jbd2 the transaction has to know of files that get blocks.
    fn order(&mut self, file: u32) {
        if self.options.data == Data::Ordered && self.options.driver == Driver::Jbd2 {
            self.journal.order(file);
        }
    }
}

impl<N: Name> Ext<N> {
    /// Places for pages that are about to be written, unless that is put off.
    pub(super) async fn place_now(
        &self,
        k: &Kernel,
        file: u32,
        (from, to): (u64, u64),
    ) -> Result<(), Full> {
        if self.with(|s| s.options.delalloc) {
            return Ok(());
        }
        let holes = self.with(|s| s.inodes.get(file).is_some_and(|i| i.extents.hole(from, to)));
        if !holes {
            return Ok(());
        }
        if self.with(|s| s.needs(file, (from, to)) > s.spare()) {
            return Err(Full);
        }
        self.begin(k).await;
        let mut placed = Ok(());
        let mut at = from;
        while at < to && placed.is_ok() {
            match self.with(|s| s.inodes.get(file).and_then(|i| i.extents.holds(at))) {
                Some(m) => at = m.logical + m.blocks,
                None => match self.with(|s| s.allocate_up_to(k, file, at, to)) {
                    Ok(n) => at += n,
                    Err(full) => placed = Err(full),
                },
            }
        }
        self.with(|s| s.order(file));
        self.end(k).await;
        placed
    }

    /// With jbd: pages that have just become dirty are filed under the running transaction, each in the change that made it
    /// dirty. So they stand in its list in that order, whoever they belong to.
    pub(super) async fn file_pages(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        if self.with(|s| s.options.data != Data::Ordered || s.options.driver != Driver::Jbd) {
            return;
        }
        self.begin(k).await;
        let now = k.with(|w| w.now);
        self.with(|s| s.journal.file(file, pages, now));
        self.end(k).await;
    }

    /// Pages have been written in memory. With `data=journal` they go into the running transaction. With jbd they are filed under
    /// it, unless that has been done ([`Ext::file_pages`]).
    pub(super) async fn file_data(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        let data = self.with(|s| s.options.data);
        if data == Data::Journal {
            // Each change takes a part: no transaction holds all of a large write.
            let mut from = pages.0;
            while from < pages.1 {
                let to = pages.1.min(from + JOURNALED);
                self.begin(k).await;
                let blocks = self.with(|s| s.data_blocks(file, (from, to)));
                self.with(|s| {
                    blocks.iter().for_each(|b| s.journal.modify(*b));
                    s.data_in_journal(file, (from, to));
                });
                k.with(|w| w.memory.dirty_again(file, (from, to), w.now));
                self.end(k).await;
                from = to;
            }
        } else if k.with(|w| !w.memory.settings.writers_write) {
            self.file_pages(k, file, pages).await;
        }
    }
}

impl State {
    /// Data of the file is in the running transaction: any sync of it waits for that, also where no time stamp has changed. Its
    /// blocks hold data from now on, as it goes home from the journal, not by write-back.
    fn data_in_journal(&mut self, file: u32, (from, to): (u64, u64)) {
        let Some(tid) = self.journal.running.as_ref().map(|t| t.tid) else { return };
        let Some(inode) = self.inodes.get_mut(file) else { return };
        (inode.sync, inode.datasync) = (tid, tid);
        if inode.unwritten.within(from, to).next().is_some() {
            Rc::make_mut(&mut inode.unwritten).remove(from, to);
        }
        for page in from..to {
            if let Some(m) = inode.extents.holds(page) {
                self.journaled.insert(m.start + (page - m.logical), (file, page));
            }
        }
    }

    /// Whether dirty pages of `data=journal` cannot go home, as they are not in the log, and up to which page that holds.
    pub(super) fn held_data(&self, file: u32, (from, to): (u64, u64)) -> (bool, u64) {
        if self.options.data != Data::Journal {
            return (false, to);
        }
        let held = |page| self.block_of(file, page).is_none_or(|b| !self.journal.is_dirty(b));
        let first = held(from);
        (first, (from + 1..to).find(|page| held(*page) != first).unwrap_or(to))
    }

    /// Whether a write into these pages, which are dirty, changes nothing that a journal has to know.
    pub(super) fn is_logged(&self, file: u32, (from, to): (u64, u64)) -> bool {
        let taken = |page| self.block_of(file, page).is_some_and(|b| self.journal.takes(b));
        self.options.data != Data::Journal || (from..to).all(taken)
    }

    fn block_of(&self, file: u32, page: u64) -> Option<Block> {
        let m = self.inodes.get(file)?.extents.holds(page)?;
        Some(m.start + (page - m.logical))
    }

    /// Blocks of metadata that are in the log and not in their places, in order of place.
    pub(super) fn metadata_to_write(&self) -> Vec<Block> {
        let mut blocks = self.journal.dirty_since(u64::MAX);
        blocks.retain(|b| !self.journaled.contains_key(b));
        blocks
    }

    fn allocate_up_to(&mut self, k: &Kernel, file: u32, at: u64, to: u64) -> Result<u64, Full> {
        let next = self.inodes.get(file).and_then(|i| i.extents.after(at)).map(|m| m.logical);
        let end = to.min(next.unwrap_or(to)).min(at + LARGEST);
        self.allocate(k, file, (at, end - at), false)
    }

    /// The blocks of pages that have a place, in order of place.
    pub(super) fn data_blocks(&self, file: u32, (from, to): (u64, u64)) -> Vec<Block> {
        let Some(inode) = self.inodes.get(file) else { return Vec::new() };
        let mut blocks: Vec<Block> = inode.extents.blocks(from, to).collect();
        blocks.sort_unstable();
        blocks
    }
}
