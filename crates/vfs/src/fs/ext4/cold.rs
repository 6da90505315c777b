//! Metadata that is read because it is not in memory: names, inodes and extents after a mount.
//!
//! Blocks of the inode table come in windows: the aligned 32 around the one wanted and the one behind them, as far as the
//! table is used. The others are read ahead. Bitmaps of blocks are prefetched after the mount and never waited for.

use std::collections::BTreeSet;

use iosched_types::Flags;

use super::blocks::entries_block;
use super::inode::ROOT;
use super::layout::Layout;
use super::{Driver, Ext, Name, SUPERBLOCK, State};
use crate::fs::ext3::indirect::{pointers, range_end};
use crate::fs::jbd2::Block;
use crate::kernel::{Kernel, Wait};

/// Blocks of an inode table that are read together.
const WINDOW: u64 = 32;

/// What is in memory after a mount: the superblock, all descriptors, and the inodes of the journal and of the root.
pub(super) fn read_by_mount(layout: &Layout) -> BTreeSet<Block> {
    let mut warm = BTreeSet::from([SUPERBLOCK]);
    warm.extend((0..layout.descriptors).map(|n| 1 + n));
    warm.insert(layout.inode_table(0));
    warm
}

impl State {
    /// The mount forgets what was in memory. The thread that prefetches bitmaps has done so before anybody needs one.
    pub(super) fn chill(&mut self) {
        self.noted = false;
        self.journal.unmount();
        self.cold = true;
        self.warm = read_by_mount(&self.layout);
        self.warm.extend((0..self.layout.groups).map(|g| self.layout.block_bitmap(g)));
        // The root's inode comes with its window.
        let window = self.table_window(ROOT);
        self.warm.extend(window);
    }

    /// The blocks of the table that are read with this one, which is the last: those in memory are left out.
    fn table_window(&self, number: u64) -> Vec<Block> {
        let (group, target) = (self.layout.group_of(number), self.layout.inode_block(number));
        // jbd's file system reads one block.
        if self.options.driver == Driver::Jbd {
            return vec![target];
        }
        let table = self.layout.inode_table(group);
        let first = (target / WINDOW * WINDOW).max(table);
        let used = table + self.inodes.made_in(group) / self.layout.format.in_block();
        let last = (target / WINDOW * WINDOW + WINDOW).min(used);
        let ahead = (first..=last).filter(|b| *b != target && !self.warm.contains(b));
        ahead.chain([target]).collect()
    }
}

impl<N: Name> Ext<N> {
    /// Reads a metadata block unless it is in memory. One that is being read is waited for.
    pub(super) async fn read_block(&self, k: &Kernel, block: Block) {
        self.read_blocks(k, &[block], Flags::META.with(Flags::PRIO)).await;
    }

    /// Reads the last of the blocks unless it is in memory, and the others ahead with it.
    async fn read_blocks(&self, k: &Kernel, blocks: &[Block], flags: Flags) {
        let Some((target, ahead)) = blocks.split_last() else { return };
        if self.with(|s| !s.warm.insert(*target)) {
            return k.metadata_read(*target * 8).await;
        }
        self.with(|s| s.warm.extend(ahead));
        let group = k.with(|w| w.group());
        for block in ahead {
            k.metadata_bio((*block * 8, 8), Flags::RAHEAD, None);
        }
        let flags = self.with(|s| s.options.metadata(flags));
        k.metadata_bio((*target * 8, 8), flags, Some(group));
        k.wait(Wait::Submit).await;
        k.wait(Wait::Io(group)).await;
    }

    /// Finds a name in a directory and reads the inode of what it stands for, if anything.
    pub(super) async fn find_name(
        &self,
        k: &Kernel,
        directory: u32,
        name: &str,
        file: Option<u32>,
    ) {
        let blocks = self.with(|s| s.inodes.get(directory).map(|i| i.extents.clone()));
        if let Some(extents) = blocks {
            // The first block has the index, where there is more than one.
            let n = extents.last().map_or(0, |m| m.logical + m.blocks);
            if let Some(first) = entries_block(&extents, 0) {
                self.read_block(k, first).await;
            }
            if n > 1
                && let Some(leaf) =
                    entries_block(&extents, 1 + u64::from(super::hash::of(name)) % (n - 1))
            {
                self.read_block(k, leaf).await;
            }
        }
        let number = file.and_then(|f| self.with(|s| s.inodes.get(f).map(|i| i.number)));
        if let Some(number) = number {
            let window = self.with(|s| s.table_window(number));
            self.read_blocks(k, &window, Flags::META.with(Flags::PRIO)).await;
        }
    }

    /// Reads all blocks of a directory, one by one.
    pub(super) async fn read_names(&self, k: &Kernel, directory: u32) {
        let Some(extents) = self.with(|s| s.inodes.get(directory).map(|i| i.extents.clone()))
        else {
            return;
        };
        let n = extents.last().map_or(0, |m| m.logical + m.blocks);
        for block in (0..n).filter_map(|b| entries_block(&extents, b)) {
            self.read_block(k, block).await;
        }
    }

    /// Reads the block with the extents of a file, where they do not fit into its inode. The read is not marked as one of
    /// metadata (event logs of 6.12).
    pub(super) async fn read_index(&self, k: &Kernel, file: u32) {
        if let Some(index) = self.with(|s| s.inodes.get(file).and_then(|i| i.index)) {
            self.read_blocks(k, &[index], Flags::default()).await;
        }
    }

    /// Reads the indirect blocks of a file that lead to some of its blocks, one by one.
    pub(super) async fn read_pointers(&self, k: &Kernel, file: u32, (from, to): (u64, u64)) {
        if !self.with(|s| s.cold && s.layout.format.indirect) {
            return;
        }
        let blocks: Vec<Block> = self.with(|s| {
            let Some(inode) = s.inodes.get(file) else { return Vec::new() };
            let mut blocks = Vec::new();
            let mut at = from;
            while at < to.min(inode.extents.last().map_or(0, |m| m.logical + m.blocks)) {
                blocks.extend(pointers(at).filter_map(|p| inode.indirect.get(&p).copied()));
                at = range_end(at);
            }
            blocks
        });
        for block in blocks {
            self.read_block(k, block).await;
        }
    }

    /// Reads all that says where a file lies: before it is cut or freed.
    pub(super) async fn read_all_pointers(&self, k: &Kernel, file: u32) {
        self.read_index(k, file).await;
        self.read_pointers(k, file, (0, u64::MAX)).await;
    }

    /// Reads the bitmap in which the file's inode is freed.
    pub(super) async fn read_inode_bitmap(&self, k: &Kernel, file: u32) {
        let bitmap = self.with(|s| {
            s.inodes.get(file).map(|i| s.layout.inode_bitmap(s.layout.group_of(i.number)))
        });
        if let Some(bitmap) = bitmap {
            self.read_block(k, bitmap).await;
        }
    }
}
