//! Which metadata blocks a change touches: inodes, directory entries, bitmaps and extents.

use super::layout::GROUP;
use super::mballoc::{Extent, Request};
use super::{SUPERBLOCK, State};
use crate::fs::extents::{Extents, Mapped};
use crate::fs::jbd2::Block;
use crate::fs::{Full, Kind};
use crate::kernel::Kernel;

/// Extents that fit into an inode.
const IN_INODE: usize = 4;
/// Entries of a directory block, for names of some twenty letters.
const ENTRIES: u64 = 128;

/// Where block `n` of a directory lies.
pub(super) fn entries_block(extents: &Extents, n: u64) -> Option<Block> {
    let at = extents.before(n).filter(|m| n < m.logical + m.blocks)?;
    Some(at.start + (n - at.logical))
}

impl State {
    /// The first change after a mount notes it in the superblock.
    pub(super) fn note_mount(&mut self) {
        if !self.noted {
            self.noted = true;
            self.journal.modify(SUPERBLOCK);
        }
    }

    /// The inode has changed; `data` says that `fdatasync` cares.
    pub(super) fn changed(&mut self, file: u32, k: &Kernel, data: bool) {
        let now = k.with(|w| w.now);
        let stamp = self.options.stamp(now);
        let Some(tid) = self.journal.running.as_ref().map(|t| t.tid) else { return };
        let Some(inode) = self.inodes.get_mut(file) else { return };
        inode.stamp = Some(stamp);
        inode.times.change(now);
        inode.sync = tid;
        if data {
            inode.datasync = tid;
        }
        let block = self.layout.inode_block(inode.number);
        self.journal.modify(block);
    }

    /// The time of the last access has changed.
    pub(super) fn touched(&mut self, file: u32) {
        let Some(tid) = self.journal.running.as_ref().map(|t| t.tid) else { return };
        let Some(inode) = self.inodes.get_mut(file) else { return };
        inode.sync = tid;
        let block = self.layout.inode_block(inode.number);
        self.journal.modify(block);
    }

    /// The directory block that takes the next entry.
    pub(super) fn entry_block(&self, directory: u32) -> Block {
        let Some(inode) = self.inodes.get(directory) else { return self.layout.root() };
        let number = inode.entries / ENTRIES;
        let at = inode.extents.before(number).filter(|m| number < m.logical + m.blocks);
        at.or_else(|| inode.extents.before(number)).map_or_else(
            || self.layout.root(),
            |m| m.start + (number - m.logical).min(m.blocks - 1),
        )
    }

    pub(super) fn add_entry(&mut self, directory: u32) -> Result<(), Full> {
        let number = self.inodes.get(directory).map_or(0, |i| i.entries) / ENTRIES;
        let missing = self.inodes.get(directory).is_some_and(|i| {
            i.extents.before(number).is_none_or(|m| number >= m.logical + m.blocks)
        });
        if missing {
            self.place_blocks(directory, (number, 1), true, false)?;
        }
        self.touch_entry(directory);
        if let Some(inode) = self.inodes.get_mut(directory) {
            inode.entries += 1;
        }
        Ok(())
    }

    /// An entry of the directory changes, and its time.
    pub(super) fn touch_entry(&mut self, directory: u32) {
        let block = self.entry_block(directory);
        self.journal.modify(block);
        self.warm.insert(block);
        let tid = self.journal.running.as_ref().map_or(0, |t| t.tid);
        if let Some(inode) = self.inodes.get_mut(directory) {
            inode.sync = tid;
            inode.datasync = tid;
            let table = self.layout.inode_block(inode.number);
            self.journal.modify(table);
        }
    }

    pub(super) fn drop_entry(&mut self, directory: u32) {
        if let Some(inode) = self.inodes.get_mut(directory) {
            inode.entries = inode.entries.saturating_sub(1);
        }
        self.touch_entry(directory);
    }

    /// Blocks for a part of the file that has none; says for how many blocks of it. `whole`: it will not grow.
    pub(super) fn allocate(
        &mut self,
        k: &Kernel,
        file: u32,
        part: (u64, u64),
        whole: bool,
    ) -> Result<u64, Full> {
        let n = self.allocate_for(k, file, part, whole)?;
        self.changed(file, k, true);
        Ok(n)
    }

    /// The same, and the inode is still to be changed.
    pub(super) fn allocate_for(
        &mut self,
        k: &Kernel,
        file: u32,
        part: (u64, u64),
        whole: bool,
    ) -> Result<u64, Full> {
        let exact = self.inodes.get(file).is_some_and(|i| i.kind != Kind::File);
        if let Some(inode) = self.inodes.get_mut(file)
            && inode.extents.is_empty()
        {
            inode.colour = u64::from(k.task());
        }
        self.place_blocks(file, part, exact, whole)
    }

    pub(super) fn place_blocks(
        &mut self,
        file: u32,
        (logical, blocks): (u64, u64),
        exact: bool,
        whole: bool,
    ) -> Result<u64, Full> {
        if self.layout.format.indirect {
            return self.place_by_pointers(file, logical, blocks, exact);
        }
        let Some(inode) = self.inodes.get(file) else { return Ok(blocks) };
        let left = inode.extents.before(logical).filter(|m| m.logical + m.blocks == logical);
        let end = inode.extents.last().map_or(inode.size, |m| inode.size.max(m.logical + m.blocks));
        let request = Request {
            group: self.layout.group_of(inode.number),
            logical,
            blocks,
            file: end.max(logical + blocks),
            left: left.map(|m| m.start + m.blocks - 1),
            right: inode.extents.after(logical).map(|m| m.logical),
            closed: whole,
            exact,
            of_file: inode.kind == Kind::File,
        };
        let extent = self.space.allocate(file, 0, &request).ok_or(Full)?;
        self.used(extent);
        let Some(inode) = self.inodes.get_mut(file) else { return Ok(blocks) };
        inode.extents.map(Mapped { logical, start: extent.start, blocks: extent.blocks });
        self.keep_promise(file, (logical, logical + extent.blocks));
        let Some(inode) = self.inodes.get(file) else { return Ok(blocks) };
        let number = inode.number;
        let crowded = inode.extents.len() > IN_INODE;
        if crowded {
            self.index_block(file, self.layout.group_of(number))?;
        }
        Ok(extent.blocks)
    }

    /// The block with the extents of a file that has more than fit into its inode.
    pub(super) fn index_block(&mut self, file: u32, group: u64) -> Result<(), Full> {
        let index = match self.inodes.get(file).and_then(|i| i.index) {
            Some(index) => index,
            None => {
                let request = Request {
                    group,
                    logical: 0,
                    blocks: 1,
                    file: 1,
                    left: None,
                    right: None,
                    closed: false,
                    exact: true,
                    of_file: self.inodes.get(file).is_some_and(|i| i.kind == Kind::File),
                };
                let extent = self.space.allocate(file, 0, &request).ok_or(Full)?;
                self.used(extent);
                extent.start
            }
        };
        if let Some(inode) = self.inodes.get_mut(file) {
            inode.index = Some(index);
        }
        self.journal.modify(index);
        self.warm.insert(index);
        Ok(())
    }

    /// Bitmaps and descriptors of the groups of an extent change.
    pub(super) fn used(&mut self, extent: Extent) {
        for group in extent.start / GROUP..=(extent.start + extent.blocks - 1) / GROUP {
            let (bitmap, descriptor) =
                (self.layout.block_bitmap(group), self.layout.descriptor_block(group));
            self.journal.modify(bitmap);
            self.journal.modify(descriptor);
            self.warm.insert(bitmap);
        }
    }

    /// Frees the file's blocks from `from` on.
    pub(super) fn release(&mut self, file: u32, from: u64) {
        self.space.close(file);
        self.keep_promise(file, (from, u64::MAX));
        self.release_pointers(file, from);
        let Some(inode) = self.inodes.get_mut(file) else { return };
        let metadata = inode.kind != Kind::File;
        let gone = inode.extents.cut(from);
        let index = if inode.extents.is_empty() { inode.index.take() } else { None };
        for m in gone {
            let extent = Extent { start: m.start, blocks: m.blocks };
            self.space.release(extent);
            self.used(extent);
            if self.options.discard {
                self.freed[0].push(extent);
            }
            let logged = !self.journaled.is_empty();
            for block in (m.start..m.start + m.blocks).filter(|_| metadata || logged) {
                if self.journaled.remove(&block).is_some() || metadata {
                    self.journal.revoke(block);
                }
            }
        }
        if let Some(index) = index {
            self.space.release(Extent { start: index, blocks: 1 });
            self.journal.revoke(index);
        }
    }
}
