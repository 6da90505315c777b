//! Which pages are dropped first when memory is full: an inactive and an active list, as Linux has had them since 2.6.
//!
//! A page enters the inactive list and becomes active when it is used a second time. Lists are queues of runs of pages.
//! If the page of an entry has left the list meanwhile, the entry is skipped when its turn comes.

mod runs;

use std::collections::BTreeMap;

use runs::{Run, Runs};

use super::mapping::{Mapping, Mark};

/// Entries that no longer count may be an eighth of those that do, and this many more.
const SLACK: u64 = 1 << 12;

/// The oldest run is in front.
#[derive(Clone, Debug, Default)]
struct List {
    runs: Runs,
    /// Pages that are on the list.
    pages: u64,
    /// Pages that entries name, whether they are still on the list or not.
    named: u64,
}

impl List {
    fn push(&mut self, file: u32, from: u64, to: u64) {
        self.pages += to - from;
        self.push_run(file, from, to);
    }

    fn push_run(&mut self, file: u32, from: u64, to: u64) {
        self.named += to - from;
        let mut at = from;
        if let Some(last) = self.runs.back_mut()
            && last.file == file
            && last.end() == at
        {
            let more = (to - at).min(u64::from(u16::MAX - last.pages));
            last.pages += u16::try_from(more).unwrap_or(0);
            at += more;
        }
        while at < to {
            let pages = u16::try_from(to - at).unwrap_or(u16::MAX);
            self.runs.push_back(Run::new(file, at, pages));
            at += u64::from(pages);
        }
    }

    fn pop(&mut self) -> Option<Run> {
        let run = self.runs.pop_front()?;
        self.named -= u64::from(run.pages);
        Some(run)
    }

    fn put_back(&mut self, run: Run) {
        self.named += u64::from(run.pages);
        self.runs.push_front(run);
    }

    fn untidy(&self) -> bool {
        self.named > self.pages + self.pages / 8 + SLACK
    }
}

/// The two lists of one machine.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    inactive: List,
    active: List,
    /// Entries that no longer count, beyond the one that the page's mark stands for, by list, file and page.
    surplus: BTreeMap<(u8, u32, u64), u32>,
    scratch: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Inactive,
    Active,
}

impl Which {
    fn stale(self) -> Mark {
        if self == Which::Inactive { Mark::Stale } else { Mark::StaleActive }
    }
}

/// The cached pages of files, by number.
pub trait Files {
    /// The pages of a file that still exists.
    fn pages(&mut self, file: u32) -> Option<&mut Mapping>;
}

impl Lru {
    /// Pages on both lists.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.inactive.pages + self.active.pages
    }

    /// Pages on the active list.
    #[must_use]
    pub fn active(&self) -> u64 {
        self.active.pages
    }

    /// Pages came into the cache.
    pub fn insert(&mut self, file: u32, from: u64, to: u64) {
        self.inactive.push(file, from, to);
    }

    /// Pages were used.
    pub fn touch(&mut self, file: u32, from: u64, to: u64, pages: &mut Mapping) {
        let mut promoted = std::mem::take(&mut self.scratch);
        pages.touch(from, to, &mut promoted);
        for (from, to) in promoted.drain(..) {
            self.left(Which::Inactive, file, (from, to), pages);
            self.inactive.pages -= to - from;
            self.active.push(file, from, to);
        }
        self.scratch = promoted;
    }

    /// The cached ones of pages `from..to` are about to leave the cache by another way than [`evict`](Self::evict).
    pub fn remove(&mut self, file: u32, from: u64, to: u64, pages: &mut Mapping) {
        let mut at = from;
        while let Some(start) = pages.next(at, to, Mark::Present, true) {
            let absent = pages.next(start, to, Mark::Present, false).unwrap_or(to);
            let active = pages.has(start, Mark::Active);
            let end = pages.next(start, absent, Mark::Active, !active).unwrap_or(absent);
            let which = if active { Which::Active } else { Which::Inactive };
            self.left(which, file, (start, end), pages);
            self.list(which).pages -= end - start;
            at = end;
        }
    }

    fn list(&mut self, which: Which) -> &mut List {
        match which {
            Which::Inactive => &mut self.inactive,
            Which::Active => &mut self.active,
        }
    }

    /// Entries for the pages stay in the list without counting.
    fn left(&mut self, which: Which, file: u32, (from, to): (u64, u64), pages: &mut Mapping) {
        let mark = which.stale();
        let mut at = from;
        while let Some(twice) = pages.next(at, to, mark, true) {
            *self.surplus.entry((which as u8, file, twice)).or_default() += 1;
            at = twice + 1;
        }
        pages.set(from, to, mark, true);
    }

    /// Frees `wanted` pages, or as many as are clean. Returns how many. The oldest inactive pages go. Active ones
    /// become inactive where there are too many of them.
    pub fn evict(&mut self, wanted: u64, files: &mut impl Files) -> u64 {
        let mut freed = 0;
        // Each entry is looked at once: pages that cannot go come back behind the others.
        let mut looks = self.inactive.runs.len() + self.active.runs.len() + 1;
        while freed < wanted && looks > 0 {
            looks -= 1;
            self.age(files);
            let Some(run) = self.inactive.pop() else { break };
            let Some(pages) = files.pages(run.file) else { continue };
            freed += self.evict_run(run, wanted - freed, pages);
        }
        freed
    }

    /// Frees up to `wanted` pages of a run. The rest of the run goes back to its place, busy pages to the end.
    fn evict_run(&mut self, run: Run, wanted: u64, pages: &mut Mapping) -> u64 {
        let mut freed = 0;
        let mut at = run.start();
        while at < run.end() {
            if freed == wanted {
                let rest = u16::try_from(run.end() - at).unwrap_or(0);
                self.inactive.put_back(Run::new(run.file, at, rest));
                break;
            }
            if self.counts(Which::Inactive, run.file, at, pages) {
                if busy(at, pages) {
                    self.inactive.pages -= 1;
                    self.inactive.push(run.file, at, at + 1);
                } else {
                    self.inactive.pages -= 1;
                    freed += pages.remove(at, at + 1);
                }
            }
            at += 1;
        }
        freed
    }

    /// Drops entries that no longer count, where they have become many: pages that were used twice, or are gone, would
    /// keep theirs until memory is full.
    pub fn tidy(&mut self, files: &mut impl Files) {
        for which in [Which::Inactive, Which::Active] {
            if !self.list(which).untidy() {
                continue;
            }
            for _ in 0..self.list(which).runs.len() {
                let Some(run) = self.list(which).pop() else { break };
                let Some(pages) = files.pages(run.file) else { continue };
                let mut from = run.start();
                for page in run.start()..run.end() {
                    if !self.counts(which, run.file, page, pages) {
                        self.list(which).push_run(run.file, from, page);
                        from = page + 1;
                    }
                }
                self.list(which).push_run(run.file, from, run.end());
            }
        }
    }

    /// Whether an entry stands for a page that is on that list.
    fn counts(&mut self, which: Which, file: u32, page: u64, pages: &mut Mapping) -> bool {
        if !pages.has(page, which.stale()) {
            return true;
        }
        let key = (which as u8, file, page);
        match self.surplus.get_mut(&key) {
            Some(1) => {
                self.surplus.remove(&key);
            }
            Some(n) => *n -= 1,
            None => {
                pages.set(page, page + 1, which.stale(), false);
            }
        }
        false
    }

    /// The oldest active pages become inactive while there are more than the lists' ratio allows.
    fn age(&mut self, files: &mut impl Files) {
        while self.too_many_active() {
            let Some(run) = self.active.pop() else { break };
            let Some(pages) = files.pages(run.file) else { continue };
            for page in run.start()..run.end() {
                if !self.too_many_active() {
                    let rest = u16::try_from(run.end() - page).unwrap_or(0);
                    return self.active.put_back(Run::new(run.file, page, rest));
                }
                if self.counts(Which::Active, run.file, page, pages) {
                    self.active.pages -= 1;
                    pages.set(page, page + 1, Mark::Active, false);
                    pages.set(page, page + 1, Mark::Referenced, false);
                    self.inactive.push(run.file, page, page + 1);
                }
            }
        }
    }

    fn too_many_active(&self) -> bool {
        self.inactive.pages * ratio(self.pages()) < self.active.pages
    }

    /// The file is gone with all its pages.
    pub fn forget(&mut self, file: u32, pages: &Mapping) {
        let active = pages.count_all(Mark::Active);
        self.active.pages -= active;
        self.inactive.pages -= pages.present() - active;
        for which in [Which::Inactive, Which::Active] {
            let keys: Vec<_> = self
                .surplus
                .range((which as u8, file, 0)..=(which as u8, file, u64::MAX))
                .map(|(key, _)| *key)
                .collect();
            for key in keys {
                self.surplus.remove(&key);
            }
        }
    }
}

/// A page that cannot leave: dirty, being written or being read.
fn busy(page: u64, pages: &Mapping) -> bool {
    pages.has(page, Mark::Dirty)
        || pages.has(page, Mark::Writeback)
        || !pages.has(page, Mark::Uptodate)
}

/// How many active pages there may be for each inactive one, with this many in all.
fn ratio(pages: u64) -> u64 {
    (10 * (pages >> 18)).isqrt().max(1)
}

#[cfg(test)]
mod tests;
