//! How dirty pages get a place, what of them may go to the disk, and what write-back notes in the journal.

use std::rc::Rc;

use iosched_types::Flags;

use super::mballoc::{LARGEST, SMALL};
use super::{Data, Ext, Name, Space, State};
use crate::cache::mapping::Mark;
use crate::fs::extents::Placed;
use crate::fs::{Full, Kind};
use crate::kernel::writeback::{Backing, METADATA};
use crate::kernel::{Event, Kernel, Wait};

/// Blocks that are reserved in the journal to mark blocks as written. Event logs: write-back of files of one page waits at the
/// 605th, and goes on as soon as one is noted.
const CONVERSION: u64 = 36;

impl<N: Name> Ext<N> {
    /// Gives back what is reserved for files of which nothing is on its way or to be marked any more. Pages that a sync wrote do
    /// not tell when they come back, and may have been the last. `true` when there was such a file.
    fn drop_idle_reservations(&self, k: &Kernel) -> bool {
        let files = self.with(|s| s.reserved.keys().copied().collect::<Vec<u32>>());
        let mut dropped = false;
        for file in files {
            let more =
                k.with(|w| w.pages(file).is_some_and(|p| p.next_any(0, Mark::Writeback).is_some()));
            let due = self.with(|s| s.inodes.get(file).is_some_and(|i| !i.unconverted.is_empty()));
            dropped |= !more && !due && self.with(|s| s.release_reserved(file));
        }
        dropped
    }

    /// Blocks for a part of the file. Small files take them from what their CPU has preallocated, one after the other: the next
    /// one may when this one can change bitmap and descriptor.
    async fn allocate_in_turn(
        &self,
        k: &Kernel,
        file: u32,
        part: (u64, u64),
        end: u64,
    ) -> Result<u64, Full> {
        let shares = self.with(|s| s.shares_preallocation(file, part.0 + part.1));
        if shares {
            self.take_turn(k).await;
        }
        let placed = self.with(|s| s.allocate_for(k, file, part, s.is_whole(file, end)));
        self.copied(k).await;
        if shares {
            let next = self.with(|s| {
                s.allocating = false;
                s.allocators.front().copied()
            });
            if let Some(task) = next {
                k.with(|w| w.signal(Event::Turn(task)));
            }
        }
        if placed.is_ok() {
            self.with(|s| s.changed(file, k, true));
        }
        placed
    }

    /// Waits for the preallocation of the CPU. Who finds it free takes it, also ahead of those who were woken and have not run.
    async fn take_turn(&self, k: &Kernel) {
        let me = k.task();
        let waits = self.with(|s| {
            if s.allocating {
                s.allocators.push_back(me);
            }
            s.allocating
        });
        if waits {
            while self.with(|s| s.allocating) {
                k.wait(Wait::Event(Event::Turn(me))).await;
            }
            self.with(|s| s.allocators.retain(|t| *t != me));
        }
        self.with(|s| s.allocating = true);
    }
}

impl<N: Name> Backing for Ext<N> {
    type Place = Placed;

    fn place(&self, file: u32) -> Placed {
        self.with(|s| s.inodes.get(file).map(|i| i.extents.place())).unwrap_or_default()
    }

    fn data(&self, file: u32) -> Placed {
        self.with(|s| s.inodes.get(file).map(|i| i.extents.written(&i.unwritten)))
            .unwrap_or_default()
    }

    async fn dirtied(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        self.file_pages(k, file, pages).await;
    }

    async fn reserve(&self, k: &Kernel, file: u32, page: u64) {
        if self.with(|s| !s.converts(file, page)) {
            return;
        }
        while self.with(|s| s.all_reserved + CONVERSION > s.journal.reservable()) {
            if k.with(|w| w.has_bios(k.task())) {
                k.wait(Wait::Submit).await;
            }
            if !self.drop_idle_reservations(k) {
                k.wait(Wait::Event(Event::Room)).await;
            }
        }
        self.with(|s| {
            *s.reserved.entry(file).or_default() += CONVERSION;
            s.all_reserved += CONVERSION;
        });
    }

    async fn prepare(&self, k: &Kernel, file: u32, from: u64, to: u64) -> u64 {
        if self.with(|s| s.options.sends_data_home()) {
            // Event logs of 6.12: also where nothing can go home that begins a transaction, which may stay empty, or ends one that
            // is old.
            self.begin(k).await;
            self.end(k).await;
        }
        if let Some(end) = self.with(|s| s.placed_before(file, from, to)) {
            return end;
        }
        self.begin(k).await;
        // Somebody else may have placed them while this task slept.
        if let Some(end) = self.with(|s| s.placed_before(file, from, to)) {
            self.end(k).await;
            return end;
        }
        let next = self.with(|s| s.inodes.get(file).and_then(|i| i.extents.after(from)));
        let end = to.min(next.map_or(to, |m| m.logical)).min(from + LARGEST);
        let mut at = from;
        // With extents a turn of the loop writes what one allocation gives, and looks for dirty pages again.
        let whole = self.with(|s| s.layout.format.indirect);
        while at < end {
            match self.allocate_in_turn(k, file, (at, end - at), end).await {
                Ok(n) => at += n,
                Err(Full) => break,
            }
            if !whole {
                break;
            }
        }
        self.with(|s| {
            // Only extents can say that their blocks are not written yet. Others have to be before the commit.
            let unwritten = s.options.unwritten && !s.layout.format.indirect;
            if !unwritten && s.options.data == Data::Ordered {
                s.journal.order(file);
            }
            if let Some(inode) = s.inodes.get_mut(file).filter(|_| unwritten) {
                inode.unconverted.add(from, at);
            }
        });
        self.end(k).await;
        at
    }

    fn ends_late(&self, file: u32, (from, to): (u64, u64)) -> (bool, u64) {
        self.with(|s| s.inodes.get(file).map_or((false, to), |i| i.unconverted.until(from, to)))
    }

    fn is_held(&self, file: u32, pages: (u64, u64)) -> (bool, u64) {
        self.with(|s| s.held_data(file, pages))
    }

    fn goes_home(&self, file: u32, pages: (u64, u64)) -> bool {
        self.with(|s| {
            let journaled = s.options.data == Data::Journal;
            if journaled {
                s.data_blocks(file, pages).iter().for_each(|b| s.journal.goes_home(*b));
            }
            journaled
        })
    }

    async fn before_sync(&self, k: &Kernel, file: u32) {
        if self.with(|s| s.options.sends_data_home()) {
            let tid = self.with(|s| s.inodes.get(file).map_or(0, |i| i.datasync));
            if tid > self.with(|s| s.journal.committed()) {
                self.wait_for(k, tid).await;
            }
        }
    }

    async fn write_metadata(&self, k: &Kernel, flags: Flags) {
        let blocks = self.with(|s| s.metadata_to_write());
        let flags = flags.with(Flags::META).with(Flags::PRIO);
        let flags = self.with(|s| s.options.metadata(flags));
        self.start_home(k, &blocks, flags, None).await;
        if !self.with(|s| s.metadata_to_write()).is_empty() {
            k.with(|w| w.flusher.dirtied(METADATA, w.now));
        }
    }
}

impl State {
    /// Whether blocks up to `end` come from what a CPU has preallocated.
    fn shares_preallocation(&self, file: u32, end: u64) -> bool {
        let Some(inode) = self.inodes.get(file) else { return false };
        let last =
            inode.extents.last().map_or(inode.size, |m| inode.size.max(m.logical + m.blocks));
        let multi = matches!(self.space, Space::Multi(_));
        multi && inode.kind == Kind::File && last.max(end) <= SMALL
    }

    /// Whether the page goes to a block that is marked as written only afterwards.
    fn converts(&self, file: u32, page: u64) -> bool {
        let unwritten = self.options.unwritten && !self.layout.format.indirect;
        unwritten
            && self
                .inodes
                .get(file)
                .is_some_and(|i| i.extents.holds(page).is_none() || i.unwritten.at(page).is_some())
    }

    /// Somebody writes up to this page.
    pub(super) fn grows(&mut self, file: u32, to: u64) {
        if let Some(inode) = self.inodes.get_mut(file) {
            inode.growing = true;
            inode.size = inode.size.max(to);
        }
    }

    /// Whether nobody who wrote has the file open any more, and it ends here.
    fn is_whole(&self, file: u32, end: u64) -> bool {
        self.inodes.get(file).is_some_and(|i| !i.growing && end >= i.size)
    }

    /// Until where pages from `from` on have blocks already, if they have. Then they are about to be written there.
    fn placed_before(&mut self, file: u32, from: u64, to: u64) -> Option<u64> {
        let inode = self.inodes.get_mut(file)?;
        let m = inode.extents.before(from).filter(|m| from < m.logical + m.blocks)?;
        let end = to.min(m.logical + m.blocks);
        for (a, b) in inode.unwritten.within(from, end) {
            inode.unconverted.add(a.max(from), b.min(end));
        }
        Rc::make_mut(&mut inode.unwritten).remove(from, end);
        Some(end)
    }

    /// Gives back what is reserved to mark the file's blocks as written. `true` when that was something.
    pub(super) fn release_reserved(&mut self, file: u32) -> bool {
        let blocks = self.reserved.remove(&file).unwrap_or(0);
        self.all_reserved -= blocks;
        blocks > 0
    }
}
