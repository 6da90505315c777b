//! What system calls do to metadata.

use std::rc::Rc;

use iosched_types::{Flags, Nanos};

use super::mballoc::LARGEST;
use super::{Data, Driver, Ext, Name, SUPERBLOCK, State, hash};
use crate::cache::mapping::Mark;
use crate::fs::atime::Atime;
use crate::fs::jbd2::Tid;
use crate::fs::{FileSystem, Full, Kind};
use crate::kernel::{Event, Kernel};

impl<N: Name> Ext<N> {
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
            let group = s.layout.group_of(inode.number);
            let (bitmap, descriptor) =
                (s.layout.inode_bitmap(group), s.layout.descriptor_block(group));
            s.journal.modify(bitmap);
            s.journal.modify(descriptor);
        });
    }
}

impl<N: Name> Ext<N> {
    /// Blocks of the file are marked as written: where its extents are.
    async fn mark_written(&self, k: &Kernel, file: u32) {
        self.begin(k).await;
        self.with(|s| {
            if let Some(index) = s.inodes.get(file).and_then(|i| i.index) {
                s.journal.modify(index);
            }
            s.changed(file, k, true);
        });
        self.end(k).await;
    }
}

impl<N: Name> FileSystem for Ext<N> {
    const NAME: &'static str = N::NAME;
    const JOURNAL: &'static str = N::JOURNAL;

    fn class(&self, sector: u64) -> &'static str {
        self.with(|s| s.layout.class(sector / 8))
    }

    fn free(&self) -> u64 {
        self.with(|s| s.unused())
    }

    /// jbd2's, since 2.6.30. `kjournald` is like any other.
    fn journal_level(&self) -> Option<u8> {
        self.with(|s| (s.options.driver == Driver::Jbd2).then_some(3))
    }

    fn commits(&self) -> Tid {
        self.with(|s| s.journal.committed())
    }

    async fn create(
        &self,
        k: &Kernel,
        (parent, file): (u32, u32),
        kind: Kind,
        name: &str,
    ) -> Result<(), Full> {
        let entry = self.with(|s| s.entry_block(parent));
        self.read_block(k, entry).await;
        let (number, shared) = self.with(|s| {
            let number = s.make_inode(file, kind, parent, name)?;
            Ok((number, s.inodes.shares_block(number)))
        })?;
        let (bitmap, table, fresh) = self.with(|s| {
            let group = s.layout.group_of(number);
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
            if kind == Kind::File {
                s.note_mount();
            }
            s.journal.modify(bitmap);
            let group = s.layout.group_of(number);
            let descriptor = s.layout.descriptor_block(group);
            s.journal.modify(descriptor);
            s.add_entry(parent)?;
            if has_block(kind) {
                if s.spare() == 0 {
                    return Err(Full);
                }
                s.allocate(k, file, (0, 1), false)?;
                // The first block is made in memory.
                let block = s.entry_block(file);
                s.warm.insert(block);
                s.journal.modify(block);
            }
            s.changed(file, k, true);
            Ok(())
        });
        self.end(k).await;
        done
    }

    /// By the hash of the name, as in its index.
    fn listed_at(&self, name: &str, _: u32) -> Option<u32> {
        Some(hash::of(name))
    }

    async fn opened(&self, k: &Kernel) {
        if self.with(|s| !s.noted) {
            self.begin(k).await;
            self.with(State::note_mount);
            self.end(k).await;
        }
    }

    fn rested(&self) {
        self.with(|s| {
            s.inodes.forget_stamps();
            s.space.prefetched();
        });
    }

    fn mounted_anew(&self) {
        self.with(|s| s.noted = false);
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

    async fn read_link(&self, k: &Kernel, link: u32) {
        self.read_names(k, link).await;
    }

    async fn read_map(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        self.read_index(k, file).await;
        self.read_pointers(k, file, pages).await;
    }

    fn notes_reads(&self) -> bool {
        self.with(|s| s.options.atime != Atime::Never)
    }

    fn takes_direct(&self) -> bool {
        self.with(|s| s.options.data != Data::Journal)
    }

    fn takes_fallocate(&self) -> bool {
        self.with(|s| !s.layout.format.indirect)
    }

    /// A page that is dirty and that the journal does not have cannot go home. Who waits because too many are dirty has none of those.
    fn written_at_once(&self) -> u64 {
        self.with(|s| if s.options.data == Data::Journal { 1 } else { u64::MAX })
    }

    fn is_logged(&self, file: u32, pages: (u64, u64)) -> bool {
        self.with(|s| s.is_logged(file, pages))
    }

    async fn accessed(&self, k: &Kernel, file: u32) {
        let now = k.with(|w| w.now);
        let noted = self.with(|s| {
            let rule = s.options.atime;
            s.inodes.get_mut(file).is_some_and(|i| i.times.access(rule, now))
        });
        if noted {
            self.begin(k).await;
            self.with(|s| s.touched(file));
            self.end(k).await;
        }
    }

    async fn will_write(&self, k: &Kernel, file: u32, pages: (u64, u64)) -> Result<(), Full> {
        if self.with(|s| s.options.delalloc && !s.promise(file, pages)) {
            return Err(Full);
        }
        self.with(|s| s.grows(file, pages.1));
        self.place_now(k, file, pages).await
    }

    /// Blocks of files that have just been removed come back meanwhile.
    async fn reclaim(&self, k: &Kernel) {
        k.sync_pages(self).await;
    }

    fn has_room(&self, file: u32, pages: (u64, u64)) -> bool {
        self.with(|s| s.needs(file, pages) <= s.spare())
    }

    async fn unlink(&self, k: &Kernel, (parent, file): (u32, u32), _: &str, last: bool) {
        if last {
            k.writeback_over(file, 0).await;
            self.read_inode_bitmap(k, file).await;
            self.read_all_pointers(k, file).await;
        }
        self.begin(k).await;
        self.with(|s| {
            s.drop_entry(parent);
            s.changed(file, k, true);
        });
        if last {
            self.free_file(k, file);
        }
        self.end(k).await;
    }

    async fn let_go(&self, k: &Kernel, file: u32) {
        k.writeback_over(file, 0).await;
        self.read_inode_bitmap(k, file).await;
        self.read_all_pointers(k, file).await;
        self.begin(k).await;
        self.free_file(k, file);
        self.end(k).await;
    }

    async fn rename(
        &self,
        k: &Kernel,
        file: u32,
        (from, to): (u32, u32),
        _: (&str, &str),
        replaced: Option<(u32, bool)>,
    ) {
        if replaced.is_some() && self.with(|s| s.options.delalloc && s.options.da_alloc) {
            // Delayed pages of the file go out, so that no empty file is left after a crash.
            k.write_range(file, self, (0, u64::MAX), u64::MAX, Flags::NONE, None).await;
        }
        if let Some((old, true)) = replaced {
            k.writeback_over(old, 0).await;
            self.read_inode_bitmap(k, old).await;
            self.read_all_pointers(k, old).await;
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
        self.end(k).await;
    }

    async fn truncate(&self, k: &Kernel, file: u32, pages: u64) {
        k.writeback_over(file, pages).await;
        self.read_all_pointers(k, file).await;
        self.begin(k).await;
        k.with(|w| w.memory.drop_pages(file, pages, u64::MAX >> 16, true));
        self.with(|s| {
            s.note_mount();
            s.journal.modify(SUPERBLOCK);
            s.release(file, pages);
            if let Some(inode) = s.inodes.get_mut(file) {
                Rc::make_mut(&mut inode.unwritten).remove(pages, u64::MAX);
                inode.replaced |= pages == 0;
                inode.size = pages;
            }
            s.changed(file, k, true);
        });
        self.end(k).await;
    }

    async fn fallocate(&self, k: &Kernel, file: u32, from: u64, pages: u64) -> Result<(), Full> {
        self.begin(k).await;
        let mut done = Ok(());
        let mut at = from;
        while at < from + pages && done.is_ok() {
            let mapped = self.with(|s| s.inodes.get(file).and_then(|i| i.extents.before(at)));
            match mapped.filter(|m| at < m.logical + m.blocks) {
                Some(m) => at = m.logical + m.blocks,
                None => {
                    // Up to the next that has a place.
                    let next = self.with(|s| Some(s.inodes.get(file)?.extents.after(at)?.logical));
                    let to = next.map_or(from + pages, |n| n.min(from + pages));
                    let part = (at, (to - at).min(LARGEST));
                    match self.with(|s| s.allocate(k, file, part, false)) {
                        Ok(n) => {
                            self.with(|s| {
                                if let Some(inode) = s.inodes.get_mut(file) {
                                    Rc::make_mut(&mut inode.unwritten).add(at, at + n);
                                }
                            });
                            at += n;
                        }
                        Err(full) => done = Err(full),
                    }
                }
            }
        }
        self.with(|s| s.changed(file, k, true));
        self.end(k).await;
        done
    }

    async fn wrote(&self, k: &Kernel, file: u32, pages: (u64, u64)) {
        self.file_data(k, file, pages).await;
        let now = k.with(|w| w.now);
        if !self.is_stamped(file, now) {
            self.begin(k).await;
            self.with(|s| s.changed(file, k, false));
            self.end(k).await;
        }
    }

    /// A direct write behind the end of a file notes it among the orphans meanwhile, which hang on the superblock.
    async fn extended(&self, k: &Kernel) {
        self.begin(k).await;
        self.with(|s| s.journal.modify(SUPERBLOCK));
        self.end(k).await;
    }

    fn starts_at_close(&self, file: u32) -> bool {
        self.with(|s| s.inodes.get_mut(file).is_some_and(|i| std::mem::take(&mut i.replaced)))
    }

    fn closed(&self, _: &Kernel, file: u32) {
        self.with(|s| {
            s.space.close(file);
            if let Some(inode) = s.inodes.get_mut(file) {
                inode.growing = false;
            }
        });
    }

    fn is_stamped(&self, file: u32, now: Nanos) -> bool {
        self.with(|s| {
            let stamp = s.options.stamp(now);
            s.inodes.get(file).is_none_or(|i| i.stamp == Some(stamp))
        })
    }

    async fn convert(&self, k: &Kernel, file: u32) {
        let due = self.with(|s| {
            s.inodes.get_mut(file).is_some_and(|i| !std::mem::take(&mut i.unconverted).is_empty())
        });
        if due {
            self.mark_written(k, file).await;
        } else if self.with(|s| s.reserved.contains_key(&file)) {
            k.with(|w| w.signal_last_first(Event::Room));
        }
    }

    async fn journal_thread(&self, k: &Kernel) {
        self.run_journal(k).await;
    }

    async fn came_back(&self, k: &Kernel, file: u32, (from, to): (u64, u64)) {
        let due =
            self.with(|s| s.inodes.get_mut(file).is_some_and(|i| i.unconverted.remove(from, to)));
        if due {
            self.mark_written(k, file).await;
        }
    }

    async fn written_back(&self, k: &Kernel, file: u32) {
        let more =
            k.with(|w| w.pages(file).is_some_and(|p| p.next_any(0, Mark::Writeback).is_some()));
        if !more && self.with(|s| s.release_reserved(file)) {
            k.with(|w| w.signal_last_first(Event::Room));
        }
    }

    async fn fsync(&self, k: &Kernel, file: u32, data_only: bool) {
        self.sync_file(k, file, data_only).await;
    }

    fn needs_commit(&self, file: u32) -> bool {
        self.with(|s| {
            let inode = s.inodes.get(file);
            inode.is_some_and(|i| !i.unconverted.is_empty() || i.datasync > s.journal.committed())
        })
    }

    async fn fsync_directory(&self, k: &Kernel, directory: u32) {
        self.sync_directory(k, directory).await;
    }

    async fn sync(&self, k: &Kernel) {
        self.sync_all(k).await;
    }
}

/// Bytes of a link's text that its inode has no room for.
const LONG_LINK: u32 = 60;

/// Whether it begins with a block of its own, which is metadata: names, or the text of a long link.
fn has_block(kind: Kind) -> bool {
    match kind {
        Kind::File => false,
        Kind::Directory => true,
        Kind::Link(bytes) => bytes >= LONG_LINK,
    }
}
