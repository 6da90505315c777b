//! What system calls do to metadata, and how dirty pages get a place.

use iosched_types::{Flags, Op};

use super::inode::{Kind, Mapped, Placed, group_of};
use super::layout::GROUP;
use super::mballoc::{Extent, LARGEST, Request};
use super::{Ext4, SUPERBLOCK, State};
use crate::fs::jbd2::Block;
use crate::kernel::world::{BioOut, Done};
use crate::kernel::writeback::{Backing, METADATA};
use crate::kernel::{Event, Kernel, Wait};

/// Extents that fit into an inode.
const IN_INODE: usize = 4;
/// Entries of a directory block, for names of some twenty letters.
const ENTRIES: u64 = 128;

/// The disk has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl Ext4 {
    /// Reads a metadata block unless it is in memory.
    pub(super) async fn read_block(&self, k: &Kernel, block: Block) {
        if self.with(|s| !s.warm.insert(block)) {
            return;
        }
        let group = k.with(|w| {
            let group = w.group();
            let flags = Flags::META.with(Flags::PRIO);
            let out = BioOut { id: 0, op: Op::Read, flags, sector: block * 8, sectors: 8 };
            w.bio(k.task(), out, Done::Other, Some(group));
            group
        });
        k.wait(Wait::Submit).await;
        k.wait(Wait::Io(group)).await;
    }

    /// Makes a file or a directory in `parent`.
    ///
    /// # Errors
    /// [`Full`], for a directory.
    pub async fn create(
        &self,
        k: &Kernel,
        (parent, file): (u32, u32),
        kind: Kind,
        hash: u64,
    ) -> Result<(), Full> {
        let entry = self.with(|s| s.entry_block(parent));
        self.read_block(k, entry).await;
        let (number, shared) = self.with(|s| {
            let number = s.inodes.make(file, kind, parent, hash);
            (number, s.inodes.shares_block(number))
        });
        let (bitmap, table, fresh) = self.with(|s| {
            let group = group_of(number);
            let (bitmap, table) = (s.layout.inode_bitmap(group), s.layout.inode_block(number));
            (bitmap, table, group > 0 && !s.warm.contains(&bitmap))
        });
        // Bitmaps and tables of groups that were never used are made, not read.
        if fresh {
            self.with(|s| s.warm.extend([bitmap, table]));
        }
        self.read_block(k, bitmap).await;
        if shared {
            self.read_block(k, table).await;
        } else {
            self.with(|s| s.warm.insert(table));
        }
        self.begin(k).await;
        let done = self.with(|s| {
            s.note_mount();
            s.journal.modify(bitmap);
            let group = group_of(number);
            let descriptor = s.layout.descriptor_block(group);
            s.journal.modify(descriptor);
            s.add_entry(parent)?;
            if kind == Kind::Directory {
                s.allocate(k, file, 0, 1)?;
                // The first block is made in memory.
                let block = s.entry_block(file);
                s.warm.insert(block);
            }
            s.changed(file, k, true);
            Ok(())
        });
        self.end(k);
        done
    }

    /// The file has been opened: the first one after the mount is noted.
    pub async fn opened(&self, k: &Kernel) {
        if self.with(|s| !s.noted) {
            self.begin(k).await;
            self.with(State::note_mount);
            self.end(k);
        }
    }

    /// It has been mounted anew: the next file that is opened is noted.
    pub fn mounted_anew(&self) {
        self.with(|s| s.noted = false);
    }

    /// Takes the name out of `parent`; with it goes the file, unless it has another name or is open.
    pub async fn unlink(&self, k: &Kernel, (parent, file): (u32, u32), last: bool) {
        if last {
            k.writeback_over(file, 0).await;
        }
        self.begin(k).await;
        self.with(|s| {
            s.drop_entry(parent);
            s.changed(file, k, true);
        });
        if last {
            self.free_file(k, file);
        }
        self.end(k);
    }

    /// The last who had a file open that has no name any more has closed it.
    pub async fn let_go(&self, k: &Kernel, file: u32) {
        k.writeback_over(file, 0).await;
        self.begin(k).await;
        self.free_file(k, file);
        self.end(k);
    }

    /// The last name and the last descriptor are gone.
    fn free_file(&self, k: &Kernel, file: u32) {
        k.with(|w| {
            w.memory.drop_pages(file, 0, u64::MAX >> 16, true);
            w.flusher.forget(file);
        });
        self.with(|s| {
            s.journal.modify(SUPERBLOCK);
            s.release(file, 0);
            let Some(inode) = s.inodes.remove(file) else { return };
            let group = group_of(inode.number);
            let (bitmap, descriptor) =
                (s.layout.inode_bitmap(group), s.layout.descriptor_block(group));
            s.journal.modify(bitmap);
            s.journal.modify(descriptor);
        });
    }

    /// Moves a name; `replaced` is the file that had the new one, and whether nobody has it open.
    pub async fn rename(
        &self,
        k: &Kernel,
        file: u32,
        (from, to): (u32, u32),
        replaced: Option<(u32, bool)>,
    ) {
        if replaced.is_some() {
            // Delayed pages of the file go out, so that no empty file is left after a crash.
            k.write_range(file, self, (0, u64::MAX), u64::MAX, Flags::NONE, None).await;
        }
        if let Some((old, true)) = replaced {
            k.writeback_over(old, 0).await;
        }
        self.begin(k).await;
        self.with(|s| {
            s.drop_entry(from);
            // A name that is replaced keeps its place in the directory.
            if to != from || replaced.is_none() {
                s.touch_entry(to);
            }
            s.changed(file, k, false);
        });
        if let Some((old, gone)) = replaced {
            self.with(|s| s.changed(old, k, true));
            if gone {
                self.free_file(k, old);
            }
        }
        self.end(k);
    }

    /// Cuts the file to `pages`.
    pub async fn truncate(&self, k: &Kernel, file: u32, pages: u64) {
        k.writeback_over(file, pages).await;
        self.begin(k).await;
        k.with(|w| w.memory.drop_pages(file, pages, u64::MAX >> 16, true));
        self.with(|s| {
            s.note_mount();
            s.journal.modify(SUPERBLOCK);
            s.release(file, pages);
            s.changed(file, k, true);
        });
        self.end(k);
    }

    /// Gives `pages` of the file from `from` on a place without writing them.
    ///
    /// # Errors
    /// [`Full`].
    pub async fn fallocate(
        &self,
        k: &Kernel,
        file: u32,
        from: u64,
        pages: u64,
    ) -> Result<(), Full> {
        self.begin(k).await;
        let mut done = Ok(());
        let mut at = from;
        while at < from + pages && done.is_ok() {
            let mapped = self.with(|s| s.inodes.get(file).and_then(|i| i.before(at)));
            match mapped.filter(|m| at < m.logical + m.blocks) {
                Some(m) => at = m.logical + m.blocks,
                None => {
                    match self.with(|s| s.allocate(k, file, at, (from + pages - at).min(LARGEST))) {
                        Ok(n) => at += n,
                        Err(full) => done = Err(full),
                    }
                }
            }
        }
        self.with(|s| s.changed(file, k, true));
        self.end(k);
        done
    }

    /// The file has been written in memory: its time changes once a tick.
    pub async fn wrote(&self, k: &Kernel, file: u32) {
        let now = k.with(|w| w.now);
        let due = self.with(|s| {
            let tick = now / s.options.tick;
            s.inodes.get(file).is_some_and(|i| i.stamp != Some(tick))
        });
        if due {
            self.begin(k).await;
            self.with(|s| s.changed(file, k, false));
            self.end(k);
        }
    }

    /// A file whose last writer has closed it keeps no more than it has.
    pub fn closed(&self, file: u32) {
        self.with(|s| s.space.close(file));
    }

    /// Blocks that data was written to are marked as written.
    pub async fn convert(&self, k: &Kernel, file: u32) {
        let due = self
            .with(|s| s.inodes.get_mut(file).is_some_and(|i| std::mem::take(&mut i.unconverted)));
        if due {
            self.begin(k).await;
            self.with(|s| s.changed(file, k, true));
            self.end(k);
        }
    }
}

impl Backing for Ext4 {
    type Place = Placed;

    fn place(&self, file: u32) -> Placed {
        self.with(|s| s.inodes.get(file).map(super::inode::Inode::place)).unwrap_or_default()
    }

    async fn prepare(&self, k: &Kernel, file: u32, from: u64, to: u64) -> u64 {
        let mapped = self.with(|s| s.inodes.get(file).and_then(|i| i.before(from)));
        if let Some(m) = mapped.filter(|m| from < m.logical + m.blocks) {
            return to.min(m.logical + m.blocks);
        }
        let next = self.with(|s| s.inodes.get(file).and_then(|i| i.after(from)));
        let end = to.min(next.map_or(to, |m| m.logical)).min(from + LARGEST);
        self.begin(k).await;
        let mut at = from;
        while at < end {
            match self.with(|s| s.allocate(k, file, at, end - at)) {
                Ok(n) => at += n,
                Err(Full) => break,
            }
        }
        self.with(|s| {
            if let Some(inode) = s.inodes.get_mut(file) {
                inode.unconverted = true;
            }
        });
        self.end(k);
        at
    }

    async fn write_metadata(&self, k: &Kernel, flags: Flags) {
        let blocks = self.with(|s| s.journal.dirty_since(u64::MAX));
        self.write_home(k, &blocks, flags.with(Flags::META).with(Flags::PRIO), false).await;
        let left = self.with(|s| s.journal.dirty());
        if left > 0 {
            k.with(|w| w.flusher.dirtied(METADATA, w.now));
        }
    }
}

impl Default for Placed {
    fn default() -> Self {
        Self::nowhere()
    }
}

impl State {
    /// The first change after a mount notes it in the superblock.
    fn note_mount(&mut self) {
        if !self.noted {
            self.noted = true;
            self.journal.modify(SUPERBLOCK);
        }
    }

    /// The inode has changed; `data` says that `fdatasync` cares.
    pub(super) fn changed(&mut self, file: u32, k: &Kernel, data: bool) {
        let tick = k.with(|w| w.now) / self.options.tick;
        let Some(tid) = self.journal.running.as_ref().map(|t| t.tid) else { return };
        let Some(inode) = self.inodes.get_mut(file) else { return };
        inode.stamp = Some(tick);
        inode.sync = tid;
        if data {
            inode.datasync = tid;
        }
        let block = self.layout.inode_block(inode.number);
        self.journal.modify(block);
    }

    /// The directory block that takes the next entry.
    fn entry_block(&self, directory: u32) -> Block {
        let Some(inode) = self.inodes.get(directory) else { return self.layout.root() };
        let number = inode.entries / ENTRIES;
        let at = inode.before(number).filter(|m| number < m.logical + m.blocks);
        at.or_else(|| inode.before(number)).map_or_else(
            || self.layout.root(),
            |m| m.start + (number - m.logical).min(m.blocks - 1),
        )
    }

    fn add_entry(&mut self, directory: u32) -> Result<(), Full> {
        let number = self.inodes.get(directory).map_or(0, |i| i.entries) / ENTRIES;
        let missing = self
            .inodes
            .get(directory)
            .is_some_and(|i| i.before(number).is_none_or(|m| number >= m.logical + m.blocks));
        if missing {
            self.place_blocks(directory, number, 1, true)?;
        }
        self.touch_entry(directory);
        if let Some(inode) = self.inodes.get_mut(directory) {
            inode.entries += 1;
        }
        Ok(())
    }

    /// An entry of the directory changes, and its time.
    fn touch_entry(&mut self, directory: u32) {
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

    fn drop_entry(&mut self, directory: u32) {
        if let Some(inode) = self.inodes.get_mut(directory) {
            inode.entries = inode.entries.saturating_sub(1);
        }
        self.touch_entry(directory);
    }

    /// Blocks for a part of the file that has none; says for how many blocks of it.
    fn allocate(&mut self, k: &Kernel, file: u32, logical: u64, blocks: u64) -> Result<u64, Full> {
        let exact = self.inodes.get(file).is_some_and(|i| i.kind == Kind::Directory);
        let n = self.place_blocks(file, logical, blocks, exact)?;
        self.changed(file, k, true);
        Ok(n)
    }

    fn place_blocks(
        &mut self,
        file: u32,
        logical: u64,
        blocks: u64,
        exact: bool,
    ) -> Result<u64, Full> {
        let Some(inode) = self.inodes.get(file) else { return Ok(blocks) };
        let left = inode.before(logical).filter(|m| m.logical + m.blocks == logical);
        let end = inode.extents.last().map_or(0, |m| m.logical + m.blocks);
        let request = Request {
            group: group_of(inode.number),
            logical,
            blocks,
            file: end.max(logical + blocks),
            left: left.map(|m| m.start + m.blocks - 1),
            right: inode.after(logical).map(|m| m.logical),
            closed: false,
            exact,
        };
        let extent = self.space.allocate(file, 0, &request).ok_or(Full)?;
        self.used(extent);
        let Some(inode) = self.inodes.get_mut(file) else { return Ok(blocks) };
        inode.map(Mapped { logical, start: extent.start, blocks: extent.blocks });
        let number = inode.number;
        let crowded = inode.extents.len() > IN_INODE;
        if crowded {
            self.index_block(file, group_of(number))?;
        }
        Ok(extent.blocks)
    }

    /// The block with the extents of a file that has more than fit into its inode.
    fn index_block(&mut self, file: u32, group: u64) -> Result<(), Full> {
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
        Ok(())
    }

    /// Bitmaps and descriptors of the groups of an extent change.
    fn used(&mut self, extent: Extent) {
        for group in extent.start / GROUP..=(extent.start + extent.blocks - 1) / GROUP {
            let (bitmap, descriptor) =
                (self.layout.block_bitmap(group), self.layout.descriptor_block(group));
            self.journal.modify(bitmap);
            self.journal.modify(descriptor);
            self.warm.insert(bitmap);
        }
    }

    /// Frees the file's blocks from `from` on.
    fn release(&mut self, file: u32, from: u64) {
        self.space.close(file);
        let Some(inode) = self.inodes.get_mut(file) else { return };
        let directory = inode.kind == Kind::Directory;
        let gone = inode.cut(from);
        let index = if inode.extents.is_empty() { inode.index.take() } else { None };
        for m in gone {
            let extent = Extent { start: m.start, blocks: m.blocks };
            self.space.release(extent);
            self.used(extent);
            if directory {
                (m.start..m.start + m.blocks).for_each(|b| self.journal.revoke(b));
            }
        }
        if let Some(index) = index {
            self.space.release(Extent { start: index, blocks: 1 });
            self.journal.revoke(index);
        }
    }
}

impl Ext4 {
    /// A change of metadata begins: there is room in the journal, and the running transaction takes it.
    pub(super) async fn begin(&self, k: &Kernel) {
        loop {
            if self.with(|s| s.locked) {
                k.wait(Wait::Event(Event::Room)).await;
            } else if self.with(|s| s.journal.running.is_none() && !s.journal.has_room()) {
                self.make_room(k).await;
            } else {
                break;
            }
        }
        let first = self.with(|s| s.journal.running.is_none());
        let now = k.with(|w| w.now);
        self.with(|s| s.journal.begin(now));
        if first {
            k.with(|w| w.signal(Event::Journal));
        }
    }

    /// The change ends.
    pub(super) fn end(&self, k: &Kernel) {
        self.with(|s| s.journal.end());
        k.with(|w| w.signal(Event::Room));
    }
}
