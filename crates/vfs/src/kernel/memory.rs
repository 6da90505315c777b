//! Memory as file I/O sees it: cached pages of all files, dirty pages, and the limits on them.

use std::collections::BTreeMap;

use iosched_types::DirectSync;

use crate::cache::lru::{Files, Lru};
use crate::cache::mapping::{Mapping, Mark};
use crate::cache::pdflush;
use crate::cache::readahead::Era;
use crate::cache::throttle::{
    Bandwidth, Completions, DirtyLimits, OnCore, Share, SlowLimit, Thresholds,
};

/// The machine's memory and its rules.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pages that the cache can have.
    pub pages: u64,
    /// Of these, pages that are kept free.
    pub reserve: u64,
    /// So many cached pages need another one for what the kernel notes of them; 0: none.
    pub notes: u64,
    /// Rules of read-ahead.
    pub era: Era,
    /// `vm.dirty_*`.
    pub limits: DirtyLimits,
    /// Jiffies a second.
    pub hz: u64,
    /// Timers are rounded up as in a wheel: since 4.8.
    pub wheel: bool,
    /// Cores.
    pub cpus: u64,
    /// `max_sectors_kb` of the disk in pages.
    pub io_pages: u64,
    /// The disk takes writes past its cache (`queue/fua`).
    pub fua: bool,
    /// The disk takes discards.
    pub discard: bool,
    /// How a direct write to the device itself that is to be durable gets there.
    pub direct_sync: DirectSync,
    /// Writers that are over the limit write back themselves, and `pdflush` does the rest: before 3.2.
    pub writers_write: bool,
    /// Pages of a bio of data at most.
    pub bio_pages: u64,
    /// Nanoseconds that a write takes for a page: meanwhile those on other cores make pages dirty, too.
    pub page_ns: u64,
    /// What is written back belongs to the control group of who made it dirty: since 4.2.
    pub group_writeback: bool,
    /// A device has an eighth of what may still become dirty at least, also of the background threshold: since 7.1.
    pub idle_share: bool,
    /// The bios that write a file back go under one plug. Those of the flusher always do.
    pub plugs_files: bool,
    /// `sync_file_range` that only starts writes makes them as those that somebody waits for: from 2.6.29 to 5.1.
    pub range_writes_sync: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            pages: 1 << 18,
            reserve: 0,
            notes: 0,
            era: Era::Split,
            limits: DirtyLimits {
                background_percent: 10,
                dirty_percent: 20,
                background_bytes: 0,
                dirty_bytes: 0,
            },
            hz: 250,
            wheel: true,
            cpus: 1,
            io_pages: 320,
            fua: false,
            discard: true,
            direct_sync: DirectSync::Fua,
            writers_write: false,
            bio_pages: u64::MAX,
            page_ns: 0,
            group_writeback: true,
            idle_share: false,
            plugs_files: true,
            range_writes_sync: false,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct FileTable(Vec<Option<Mapping>>);

impl Files for FileTable {
    fn pages(&mut self, file: u32) -> Option<&mut Mapping> {
        self.0.get_mut(file as usize)?.as_mut()
    }
}

/// Numbers of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Into the cache.
    pub came: u64,
    /// Out of it.
    pub left: u64,
    /// On their way to the disk.
    pub written: u64,
}

/// Cached pages and dirty memory of one machine with one disk.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What was set.
    pub settings: Settings,
    files: FileTable,
    lru: Lru,
    /// Dirty pages that are not being written.
    pub dirty: u64,
    /// Pages being written.
    pub writeback: u64,
    /// How fast the disk is believed to write.
    pub device: Bandwidth,
    /// The limit that goes down slowly.
    pub slow: SlowLimit,
    /// What the tasks of each core have dirtied.
    pub cores: Vec<OnCore>,
    completions: Completions,
    share: Share,
    /// Pages that became dirty; see [`accounts`](Self::accounts).
    pub dirtied: u64,
    /// Pages that were written.
    pub written: u64,
    /// Pages that went while they were dirty.
    pub dropped: u64,
    /// Pages that moved since somebody asked.
    moved: Moved,
    /// Where the flusher goes on in each file.
    cursors: BTreeMap<u32, u64>,
    /// Dirty memory has no limits.
    unlimited: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl Memory {
    /// Empty memory.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let thresholds =
            settings.limits.thresholds(settings.pages.saturating_sub(settings.reserve));
        Self {
            files: FileTable::default(),
            lru: Lru::default(),
            dirty: 0,
            writeback: 0,
            device: Bandwidth::new(settings.hz),
            slow: SlowLimit::new(thresholds.dirty),
            cores: vec![
                OnCore::new(thresholds.dirty, settings.cpus);
                settings.cpus.max(1) as usize
            ],
            completions: Completions::new(settings.cpus),
            share: Share::new(settings.cpus),
            settings,
            dirtied: 0,
            written: 0,
            dropped: 0,
            moved: Moved::default(),
            cursors: BTreeMap::new(),
            unlimited: false,
        }
    }

    /// A file appears in memory.
    pub fn open(&mut self, file: u32) {
        let index = file as usize;
        if self.files.0.len() <= index {
            self.files.0.resize_with(index + 1, || None);
        }
        self.files.0[index].get_or_insert_with(Mapping::default);
    }

    /// One more than the largest number of a file that has been in memory.
    #[must_use]
    pub fn files(&self) -> u32 {
        self.files.0.len() as u32
    }

    /// The file's pages.
    pub fn pages(&mut self, file: u32) -> Option<&mut Mapping> {
        self.files.pages(file)
    }

    /// Cached pages of all files.
    #[must_use]
    pub fn cached(&self) -> u64 {
        self.lru.pages()
    }

    /// Drops pages if memory has no room for so many more. Whoever inserts several asks for all of them first: pages that
    /// he has just inserted would be the first to go otherwise.
    pub fn make_room(&mut self, pages: u64) {
        // Files that are prepared take what they need: everything is dropped behind them.
        if self.unlimited {
            return;
        }
        let room = self.settings.pages.saturating_sub(self.unfree());
        let over = (self.lru.pages() + pages).saturating_sub(room);
        if over > 0 {
            self.lru.evict(over, &mut self.files);
            self.moved.left += over;
        }
    }

    /// Puts absent pages into the cache.
    pub fn insert(&mut self, file: u32, from: u64, to: u64, folio: u64) {
        if let Some(pages) = self.files.pages(file) {
            pages.insert(from, to, folio);
            self.lru.insert(file, from, to);
            self.lru.tidy(&mut self.files);
            self.moved.came += to - from;
        }
    }

    /// What moved since the last time: whose work that was pays for it.
    pub fn take_moved(&mut self) -> Moved {
        std::mem::take(&mut self.moved)
    }

    /// Notes a use of cached pages.
    pub fn touch(&mut self, file: u32, from: u64, to: u64) {
        if let Some(pages) = self.files.pages(file) {
            self.lru.touch(file, from, to, pages);
            self.lru.tidy(&mut self.files);
        }
    }

    fn jiffies(&self, now: u64) -> u64 {
        now / (1_000_000_000 / self.settings.hz)
    }

    /// Makes absent and clean pages dirty. Returns how many were clean.
    pub fn dirty_pages(&mut self, file: u32, from: u64, to: u64, now: u64) -> u64 {
        self.device.settle(self.jiffies(now));
        let Some(pages) = self.files.pages(file) else { return 0 };
        let changed = pages.set(from, to, Mark::Dirty, true);
        self.dirty += changed;
        self.dirtied += changed;
        self.device.dirtied += changed;
        changed
    }

    /// Dirty pages are about to be written.
    pub fn begin_writeback(&mut self, file: u32, from: u64, to: u64, now: u64) {
        let jiffies = self.jiffies(now);
        self.device.settle(jiffies);
        if self.writeback == 0 {
            self.device.restart_if_idle(jiffies);
        }
        let Some(pages) = self.files.pages(file) else { return };
        let n = pages.set(from, to, Mark::Dirty, false);
        pages.set(from, to, Mark::Writeback, true);
        self.dirty -= n;
        self.writeback += n;
        self.moved.written += to - from;
    }

    /// Pages were written to before, and a journal has them only now: those that went to the disk meanwhile are dirty again.
    pub fn dirty_again(&mut self, file: u32, (from, to): (u64, u64), now: u64) {
        let mut at = from;
        while let Some((a, b)) = self.files.pages(file).and_then(|p| p.run(at, to, Mark::Present)) {
            self.dirty_pages(file, a, b, now);
            at = b;
        }
    }

    /// Pages have been written.
    pub fn written(&mut self, file: u32, from: u64, to: u64, now: u64) {
        let jiffies = self.jiffies(now);
        self.device.settle(jiffies);
        let (n, last) = match self.files.pages(file) {
            Some(pages) => {
                let n = pages.set(from, to, Mark::Writeback, false);
                (n, pages.next_any(0, Mark::Writeback).is_none())
            }
            None => (to - from, true),
        };
        if last {
            self.device.file_written(jiffies);
        }
        self.writeback -= n;
        self.written += n;
        self.device.written += n;
        self.share.add(&mut self.completions, n, now / 1_000_000);
    }

    /// Drops pages that are clean and idle, or, with `dirty`, all that are not being written.
    pub fn drop_pages(&mut self, file: u32, from: u64, to: u64, dirty: bool) {
        let Some(pages) = self.files.pages(file) else { return };
        let (mut at, to) = (from, to.min(pages.end()));
        while let Some(start) = pages.next(at, to, Mark::Present, true) {
            at = start + 1;
            let keep = pages.has(start, Mark::Writeback)
                || !pages.has(start, Mark::Uptodate)
                || pages.has(start, Mark::Dirty) && !dirty;
            if keep {
                continue;
            }
            if pages.has(start, Mark::Dirty) {
                self.dirty -= 1;
                self.dropped += 1;
            }
            self.lru.remove(file, start, start + 1, pages);
            pages.remove(start, start + 1);
            self.moved.left += 1;
        }
    }

    /// Drops the clean pages of all files (`drop_caches`).
    pub fn drop_clean(&mut self) {
        self.drop_clean_but(|_| false);
    }

    /// The same, except for some files.
    pub fn drop_clean_but(&mut self, stays: impl Fn(u32) -> bool) {
        for file in 0..u32::try_from(self.files.0.len()).unwrap_or(u32::MAX) {
            if !stays(file) {
                self.drop_pages(file, 0, u64::MAX >> 16, false);
            }
        }
    }

    /// Switches the limits on dirty memory off, or back on. What was dirtied meanwhile counts for nobody.
    pub fn unlimited(&mut self, on: bool) {
        self.unlimited = on;
        if !on {
            self.device = Bandwidth::new(self.settings.hz);
            self.slow = SlowLimit::new(self.thresholds().dirty);
        }
    }

    /// The page at which the flusher goes on in the file.
    #[must_use]
    pub fn cursor(&self, file: u32) -> u64 {
        self.cursors.get(&file).copied().unwrap_or(0)
    }

    /// Notes it.
    pub fn set_cursor(&mut self, file: u32, page: u64) {
        self.cursors.insert(file, page);
    }

    /// What may be dirty now.
    #[must_use]
    pub fn thresholds(&self) -> Thresholds {
        if self.unlimited {
            return Thresholds { background: u64::MAX >> 17, dirty: u64::MAX >> 16 };
        }
        if self.settings.writers_write {
            return pdflush::thresholds(&self.settings.limits, self.settings.pages);
        }
        self.settings.limits.thresholds(self.settings.pages.saturating_sub(self.unfree()))
    }

    /// Pages that files cannot have: those kept free, and what the kernel notes of cached pages.
    fn unfree(&self) -> u64 {
        self.settings.reserve
            + self.lru.pages().checked_div(self.settings.notes).unwrap_or_default()
    }

    /// The machine has been started anew: no page was written since.
    pub fn restarted(&mut self) {
        self.completions = Completions::new(self.settings.cpus);
        self.share = Share::new(self.settings.cpus);
    }

    /// The device has completed this many pages before.
    pub fn introduce(&mut self, pages: u64) {
        self.share.add(&mut self.completions, pages, 0);
    }

    /// The device's share of a threshold.
    pub fn share_of(&mut self, threshold: u64, now: u64) -> u64 {
        let share = self.share.of(threshold, &mut self.completions, now / 1_000_000);
        if self.settings.idle_share {
            share.max(threshold.saturating_sub(self.dirty) / 8)
        } else {
            share
        }
    }

    /// Every dirtied page was written, dropped, or is still there.
    #[must_use]
    pub fn accounts(&self) -> bool {
        self.dirtied == self.written + self.dropped + self.dirty + self.writeback
    }
}
