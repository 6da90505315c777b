//! What system calls do.

use std::rc::Rc;

use iosched_types::{Flags, Nanos};

use super::cow::Need;
use super::space::For;
use super::{State, Xfs};
use crate::fs::atime::Atime;
use crate::fs::extents::{Mapped, Placed};
use crate::fs::{FileSystem, Full, Kind};
use crate::kernel::writeback::Backing;
use crate::kernel::{Event, Kernel, Lock};

/// Pages of the largest bio that write-back makes.
const LARGEST: u64 = 4096;
/// Pages that a write is promised room for at once: 4 MiB.
const PROMISED: u64 = 1024;
/// Where a group's header has its lists of unlinked inodes, in bytes.
const UNLINKED: u64 = 40;

impl Backing for Xfs {
    type Place = Placed;

    fn place(&self, file: u32) -> Placed {
        self.with(|s| s.inodes.get(file).map(|i| i.extents.place())).unwrap_or_default()
    }

    fn data(&self, file: u32) -> Placed {
        self.with(|s| s.inodes.get(file).map(|i| i.extents.written(&i.unwritten)))
            .unwrap_or_default()
    }

    async fn prepare(&self, k: &Kernel, file: u32, from: u64, to: u64) -> u64 {
        let end = to.min(from + LARGEST);
        loop {
            let done = match self.with(|s| s.need(file, from, end)) {
                Need::Ready(end) => return end,
                Need::Place(stretch) => self.place_data(k, file, stretch).await.map(drop),
                Need::Unit(stretch) => self.place_copy(k, file, stretch).await,
                Need::Move(pages) => self.move_pages(k, file, pages).await,
                Need::Gone => return from,
            };
            if done.is_err() {
                return from;
            }
        }
    }

    fn ends_late(&self, file: u32, (from, to): (u64, u64)) -> (bool, u64) {
        self.with(|s| s.inodes.get(file).map_or((false, to), |i| i.unconverted.until(from, to)))
    }

    /// Metadata goes home from the log, not by write-back.
    async fn write_metadata(&self, _: &Kernel, _: Flags) {}

    fn marks_background(&self) -> bool {
        true
    }
}

impl Xfs {
    /// A stretch of a file gets a place, or its first part if there is none for all of it.
    async fn place_data(&self, k: &Kernel, file: u32, (from, to): (u64, u64)) -> Result<u64, Full> {
        self.begin(k).await;
        let goal = self.with(|s| s.goal(file, from));
        let (group, start, blocks) = self.allocate(k, goal, to - from, For::Data).await?;
        let start = self.with(|s| group * s.layout.group + start);
        let mapped = self.with(|s| {
            let Some(inode) = s.inodes.get_mut(file) else { return false };
            let free = inode.extents.after(from).map_or(u64::MAX, |m| m.logical);
            if inode.extents.holds(from).is_some() || free < from + blocks {
                return false;
            }
            inode.extents.map(Mapped { logical: from, start, blocks });
            Rc::make_mut(&mut inode.unwritten).add(from, from + blocks);
            s.delayed(file, |i| i.delayed.remove(from, from + blocks));
            s.changed(k, file, true);
            true
        });
        if !mapped {
            // Another task has placed it while this one read.
            self.release(k, &[Mapped { logical: from, start, blocks }]).await;
            return Ok(0);
        }
        self.index(k, file).await?;
        Ok(blocks)
    }

    async fn add_name(&self, k: &Kernel, directory: u32, name: &str) -> Result<(), Full> {
        self.look(k, directory, name).await;
        let change = self.with(|s| {
            s.inodes.get_mut(directory).map(|i| i.directory.add(name)).unwrap_or_default()
        });
        self.change_directory(k, directory, change).await
    }

    async fn drop_name(&self, k: &Kernel, directory: u32, name: &str) {
        self.look(k, directory, name).await;
        let change = self.with(|s| {
            s.inodes.get_mut(directory).map(|i| i.directory.remove(name)).unwrap_or_default()
        });
        // Taking away needs no room.
        let _ = self.change_directory(k, directory, change).await;
    }

    /// The last name and the last descriptor are gone: the inode joins those that are to be freed.
    async fn bury(&self, k: &Kernel, file: u32) {
        let Some(at) = self.with(|s| s.inodes.get(file).map(|i| i.at)) else { return };
        let agi = self.with(|s| s.layout.header(at.group, super::layout::header::AGI));
        self.read(k, agi, 1).await;
        let now = k.with(|w| {
            w.memory.drop_pages(file, 0, u64::MAX >> 16, true);
            w.flusher.forget(file);
            w.now
        });
        let many = self.with(|s| {
            s.changed(k, file, true);
            let bucket = UNLINKED + 4 * (u64::from(at.slot) % 64);
            s.log.change(agi, 1, (bucket, bucket + 4));
            let inode = s.inodes.remove(file);
            s.promised -= inode.as_ref().map_or(0, |i| i.promised());
            s.dead.extend(inode);
            s.died = now;
            s.dead.len() > 32
        });
        if many {
            self.free_dead(k).await;
        } else {
            k.with(|w| w.signal(Event::Journal));
        }
    }

    /// Cuts off what lies behind so many pages.
    async fn cut(&self, k: &Kernel, file: u32, pages: u64) {
        let gone = self.with(|s| {
            s.delayed(file, |i| {
                i.delayed.remove(pages, u64::MAX);
                i.copies.remove(pages, u64::MAX);
            });
            let Some(inode) = s.inodes.get_mut(file) else { return Vec::new() };
            let copied = inode.copied.cut(pages);
            Rc::make_mut(&mut inode.unwritten).remove(pages, u64::MAX);
            let gone = inode.extents.cut(pages);
            if !gone.is_empty() {
                s.changed(k, file, true);
            }
            s.give_all(copied);
            gone
        });
        self.release(k, &gone).await;
    }
}

impl FileSystem for Xfs {
    const NAME: &'static str = "xfs";
    const JOURNAL: &'static str = "xfsaild";

    fn large_folios(&self) -> bool {
        true
    }

    fn class(&self, sector: u64) -> &'static str {
        self.with(|s| s.layout.class(sector))
    }

    fn free(&self) -> u64 {
        self.with(|s| s.spare())
    }

    fn commits(&self) -> u64 {
        self.with(|s| s.checkpoints)
    }

    async fn journal_thread(&self, k: &Kernel) {
        self.run_log(k).await;
    }

    async fn log_ends(&self, k: &Kernel) {
        self.end_writes(k).await;
    }

    async fn checkpoints(&self, k: &Kernel) {
        self.make_checkpoints(k).await;
    }

    async fn came_back(&self, k: &Kernel, file: u32, (from, to): (u64, u64)) {
        self.begin(k).await;
        self.with(|s| {
            let Some(inode) = s.inodes.get_mut(file) else { return };
            if inode.unconverted.remove(from, to) {
                s.changed(k, file, true);
            }
        });
    }

    async fn create(
        &self,
        k: &Kernel,
        (parent, file): (u32, u32),
        kind: Kind,
        name: &str,
    ) -> Result<(), Full> {
        if !self.with(|s| s.has_room_for(kind)) {
            self.reclaim(k).await;
            if !self.with(|s| s.has_room_for(kind)) {
                return Err(Full);
            }
        }
        self.begin(k).await;
        let (home, block) = self.with(|s| s.home(parent));
        let group = match kind {
            Kind::File | Kind::Link(_) => home,
            // One after the other.
            Kind::Directory => self.with(|s| {
                let group = s.next_directory % s.layout.groups;
                s.next_directory += 1;
                group
            }),
        };
        let near = if group == home { block } else { 0 };
        let at = self.new_inode(k, group, near).await?;
        self.with(|s| {
            s.inodes.make(file, at, kind);
            s.inode_changed(at, false);
            s.changed(k, file, true);
        });
        if let Kind::Link(bytes) = kind {
            self.write_link(k, file, u64::from(bytes)).await?;
        }
        self.add_name(k, parent, name).await
    }

    /// All that is dirty is written, and gives back what was promised too much; then goes what files have beyond their pages.
    async fn reclaim(&self, k: &Kernel) {
        k.sync_pages(self).await;
        self.free_dead(k).await;
        let files: Vec<u32> = self.with(|s| s.inodes.iter_mut().map(|(file, _)| file).collect());
        for file in files {
            if k.with(|w| w.pages(file).is_none_or(|p| p.dirty() == 0)) {
                self.with(|s| s.tighten(k, file));
            }
        }
        let seq = self.with(|s| s.log.seq());
        self.force(k, seq).await;
    }

    async fn read_link(&self, k: &Kernel, link: u32) {
        let block = self.with(|s| Some(s.inodes.get(link)?.extents.holds(0)?.start));
        if let Some(block) = block {
            self.read(k, block * 8, 8).await;
        }
    }

    fn mounted_anew(&self) {
        self.with(State::mount);
    }

    fn mounted_cold(&self) {
        self.with(State::chill);
    }

    fn is_cold(&self) -> bool {
        self.with(|s| s.cold)
    }

    async fn look_up(&self, k: &Kernel, directory: u32, name: &str, file: Option<u32>) {
        self.find_name(k, directory, name, file).await;
    }

    async fn read_directory(&self, k: &Kernel, directory: u32) {
        self.read_names(k, directory).await;
    }

    fn rested(&self) {
        self.with(State::rest);
    }

    /// Blocks behind the end of the file that nothing was appended to are given back.
    fn closed(&self, k: &Kernel, file: u32) {
        self.with(|s| s.trim(k, file));
    }

    async fn unlink(&self, k: &Kernel, (parent, file): (u32, u32), name: &str, last: bool) {
        if last {
            k.writeback_over(file, 0).await;
        }
        self.begin(k).await;
        self.drop_name(k, parent, name).await;
        self.with(|s| s.changed(k, file, true));
        if last {
            self.bury(k, file).await;
        }
    }

    async fn let_go(&self, k: &Kernel, file: u32) {
        k.writeback_over(file, 0).await;
        self.begin(k).await;
        self.bury(k, file).await;
    }

    async fn rename(
        &self,
        k: &Kernel,
        file: u32,
        (from, to): (u32, u32),
        (old, new): (&str, &str),
        replaced: Option<(u32, bool)>,
    ) {
        if let Some((gone, true)) = replaced {
            k.writeback_over(gone, 0).await;
        }
        self.begin(k).await;
        self.drop_name(k, from, old).await;
        match replaced {
            // The entry keeps its place.
            Some((gone, _)) => self.with(|s| s.changed(k, gone, true)),
            None => _ = self.add_name(k, to, new).await,
        }
        self.with(|s| {
            s.changed(k, to, true);
            s.changed(k, file, false);
        });
        if let Some((gone, true)) = replaced {
            self.bury(k, gone).await;
        }
    }

    async fn truncate(&self, k: &Kernel, file: u32, pages: u64) {
        // Data between the end that the disk knows and the new one goes first, so that the new one is true.
        let known = self.with(|s| s.inodes.get(file).map_or(0, super::inode::Inode::end_on_disk));
        if pages > known {
            k.write_part_and_wait(file, self, (known, pages)).await;
        }
        k.writeback_over(file, pages).await;
        self.begin(k).await;
        k.with(|w| w.memory.drop_pages(file, pages, u64::MAX >> 16, true));
        self.cut(k, file, pages).await;
        self.with(|s| {
            if let Some(inode) = s.inodes.get_mut(file) {
                inode.size = pages;
            }
            s.changed(k, file, true);
        });
    }

    async fn fallocate(&self, k: &Kernel, file: u32, from: u64, pages: u64) -> Result<(), Full> {
        let (mut at, end) = (from, from + pages);
        while at < end {
            let next = self.with(|s| {
                let inode = s.inodes.get(file)?;
                let there = inode.extents.holds(at).map(|m| m.logical + m.blocks);
                Some(there.ok_or(inode.extents.after(at).map_or(end, |m| m.logical.min(end))))
            });
            at = match next {
                None => return Err(Full),
                Some(Ok(there)) => there,
                Some(Err(until)) => at + self.place_data(k, file, (at, until)).await?,
            };
        }
        self.with(|s| {
            if let Some(inode) = s.inodes.get_mut(file) {
                inode.keeps = true;
            }
            s.changed(k, file, true);
        });
        Ok(())
    }

    /// Entries lie in the order in which they came.
    fn listed_at(&self, _: &str, age: u32) -> Option<u32> {
        Some(age)
    }

    async fn share(&self, k: &Kernel, from: (u32, u64), to: (u32, u64), pages: u64) -> bool {
        self.share_pages(k, from, to, pages).await
    }

    fn notes_reads(&self) -> bool {
        self.with(|s| s.options.atime != Atime::Never)
    }

    async fn accessed(&self, k: &Kernel, file: u32) {
        let now = k.with(|w| w.now);
        if self.with(|s| s.accessed(file, now)) {
            self.begin(k).await;
            self.with(|s| s.touched(file));
        }
    }

    async fn will_write(&self, _: &Kernel, file: u32, pages: (u64, u64)) -> Result<(), Full> {
        self.with(|s| s.promise(file, pages, true)).then_some(()).ok_or(Full)
    }

    fn has_room(&self, file: u32, pages: (u64, u64)) -> bool {
        self.with(|s| s.needs(file, pages) <= s.spare())
    }

    fn promised_at_once(&self) -> u64 {
        PROMISED
    }

    async fn wrote(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        let now = k.with(|w| w.now);
        // Who writes past the cache was promised nothing, and has places already.
        self.with(|s| s.promise(file, pages, false));
        if !self.is_stamped(file, now) {
            self.begin(k).await;
            k.lock(Lock::Inode(file), true).await;
            self.with(|s| s.changed(k, file, false));
            k.unlock(Lock::Inode(file));
        }
    }

    fn is_stamped(&self, file: u32, now: Nanos) -> bool {
        self.with(|s| {
            let tick = now / s.options.tick;
            s.inodes.get(file).is_none_or(|i| i.stamp == Some(tick))
        })
    }

    async fn convert(&self, k: &Kernel, file: u32) {
        let due = self.with(|s| {
            s.inodes.get_mut(file).is_some_and(|i| !std::mem::take(&mut i.unconverted).is_empty())
        });
        if due {
            self.begin(k).await;
            self.with(|s| s.changed(k, file, true));
        }
    }

    async fn fsync(&self, k: &Kernel, file: u32, data_only: bool) {
        k.write_and_wait(file, self).await;
        // Whoever changes the inode waits until the log has it.
        k.lock(Lock::Inode(file), false).await;
        let seq = self.with(|s| {
            let inode = s.inodes.get(file);
            inode.map_or(0, |i| if data_only { i.data_seq } else { i.seq })
        });
        let wrote = self.force(k, seq).await;
        k.unlock(Lock::Inode(file));
        if !wrote && self.with(|s| s.options.barrier) {
            k.flush().await;
        }
    }

    fn needs_commit(&self, file: u32) -> bool {
        self.with(|s| {
            let inode = s.inodes.get(file);
            inode.is_some_and(|i| !i.unconverted.is_empty() || i.data_seq > s.log.durable())
        })
    }

    async fn fsync_directory(&self, k: &Kernel, directory: u32) {
        let seq = self.with(|s| s.inodes.get(directory).map_or(0, |i| i.seq));
        self.force(k, seq).await;
    }

    async fn sync(&self, k: &Kernel) {
        k.sync_pages(self).await;
        self.free_dead(k).await;
        let seq = self.with(|s| s.log.seq());
        self.force(k, seq).await;
    }
}

impl State {
    /// Up to where pages have a place, if the first has one. They are about to be written.
    pub(super) fn ready(&mut self, file: u32, from: u64, to: u64) -> Option<u64> {
        let inode = self.inodes.get_mut(file)?;
        let m = inode.extents.holds(from)?;
        let to = to.min(m.logical + m.blocks);
        let new: Vec<_> = inode.unwritten.within(from, to).collect();
        for (a, b) in new {
            inode.unconverted.add(a.max(from), b.min(to));
        }
        Rc::make_mut(&mut inode.unwritten).remove(from, to);
        Some(to)
    }

    /// What gets a place together with a page: the delayed stretch that it is in, or else pages up to the next that have one.
    /// `None` when the file has gone.
    pub(super) fn stretch(&self, file: u32, from: u64, to: u64) -> Option<(u64, u64)> {
        let inode = self.inodes.get(file)?;
        let next = inode.extents.after(from).map_or(u64::MAX, |m| m.logical);
        let (a, b) = inode.delayed.at(from).unwrap_or((from, to));
        // A stretch may have been placed in part.
        let before = inode.extents.before(from).map_or(0, |m| m.logical + m.blocks);
        Some((a.max(before), b.min(next)))
    }
}
