//! `kjournald` and its syncs: what differs from jbd2.

use super::{Ext, Name};
use crate::cache::mapping::Mark;
use crate::fs::filed::Filed;
use crate::kernel::{Kernel, Wait};

impl<N: Name> Ext<N> {
    /// `kjournald` writes the data of a transaction page by page, in the order in which they became dirty, and waits for
    /// them. What somebody else has begun to write is only waited for; if it is dirty again, it is written after that.
    pub(super) async fn write_filed(&self, k: &Kernel, filed: &Filed) {
        let (flags, page) = k.with(|w| (w.sync_flags(), w.memory.settings.page_ns));
        let group = k.with(|w| w.group());
        for (file, pages) in filed.in_order(page) {
            // Buffer by buffer: where write-back of the file goes on is not touched.
            k.write_dirty(file, self, pages, u64::MAX, (flags, Some(group))).await;
        }
        k.wait(Wait::Io(group)).await;
        for (file, (from, to)) in filed.pages() {
            let mut at = from;
            while let Some(page) = k.with(|w| {
                let pages = w.pages(file)?;
                pages.run(at, to, Mark::Writeback).map(|r| r.0)
            }) {
                k.wait(Wait::Page { file, page }).await;
                at = page + 1;
            }
        }
    }

    /// The data of files that a transaction has to wait for, in the order of their numbers: as much as is dirty now.
    pub(super) async fn write_ordered(&self, k: &Kernel, files: &[u32]) {
        let delayed = self.with(|s| s.options.delalloc);
        let mut ends = Vec::new();
        for file in files {
            let Some((dirty, end)) = k.with(|w| w.pages(*file).map(|p| (p.dirty(), p.end())))
            else {
                continue;
            };
            // Pages that become dirty meanwhile belong to the next transaction.
            // Delayed ones have no place that the transaction knows of; those that got one are on their way already.
            let (mut left, mut at) = (if delayed { 0 } else { dirty }, 0);
            let flags = k.with(|w| w.sync_flags());
            while left > 0 {
                match k.write_range(*file, self, (at, end), left, flags, None).await {
                    0 => break,
                    n => left -= n.min(left),
                }
                at = k.with(|w| w.memory.cursor(*file));
            }
            ends.push((*file, end));
        }
        for (file, end) in ends {
            while let Some(page) = k.with(|w| {
                let page = w.pages(file).and_then(|p| p.next_any(0, Mark::Writeback));
                page.filter(|p| *p < end)
            }) {
                k.wait(Wait::Page { file, page }).await;
            }
        }
    }

    /// `fsync` and `fdatasync`: the caller starts the writes of his pages, and if the inode has changed since the last
    /// commit he waits for the next. Who syncs after somebody else lets others join first: a tick at a time, while they do.
    pub(super) async fn sync_with_jbd(&self, k: &Kernel, file: u32) {
        let (flags, group) = k.with(|w| (w.sync_flags(), w.group()));
        k.write_range(file, self, (0, u64::MAX), u64::MAX, flags, Some(group)).await;
        let tid = self.with(|s| s.inodes.get(file).map_or(0, |i| i.sync));
        if tid > self.with(|s| s.journal.committed()) {
            if self.with(|s| s.last_sync.replace(k.task())) != Some(k.task()) {
                self.let_others_join(k).await;
            }
            self.wait_for(k, tid).await;
        }
        k.wait(Wait::Io(group)).await;
        k.writeback_over(file, 0).await;
    }

    async fn let_others_join(&self, k: &Kernel) {
        let tick = self.with(|s| s.options.tick);
        loop {
            let before = self.with(|s| s.handles);
            let end = (k.with(|w| w.now) / tick + 1) * tick;
            k.wait(Wait::Joined(end)).await;
            if self.with(|s| s.handles) == before {
                break;
            }
        }
    }
}
