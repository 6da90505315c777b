//! Write-back before 3.2: `pdflush`, and writers that write back themselves.
//!
//! With one disk there is one `pdflush`: of several only one may work on a disk at a time.

use iosched_types::{Flags, Nanos, TaskId};

use super::read::Open;
use super::world::World;
use super::writeback::{Backing, METADATA};
use super::{Event, Kernel, Wait};
use crate::cache::PAGE;
use crate::cache::pdflush::{ROUND, quota};
use crate::cache::writeback::Left;

/// Nobody waits longer for a disk to be less congested.
const CONGESTION_WAIT: Nanos = 100_000_000;
const SECOND: Nanos = 1_000_000_000;

/// What to write, and how.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Pages at most.
    pages: u64,
    /// Only what has been dirty since then or longer.
    until: Nanos,
    /// Leaves off when the disk is congested, as `pdflush` does. Others sleep for a request.
    leaves_off: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    pages: u64,
    congested: bool,
}

impl World {
    /// The flag of writes that somebody waits for. Before 3.2 they have none: to a scheduler they are like any other.
    pub(crate) fn sync_flags(&self) -> Flags {
        if self.memory.settings.writers_write { Flags::NONE } else { Flags::SYNC }
    }

    fn core_of(&self, task: TaskId) -> usize {
        // Which core a task is on is not known here. Tasks are spread over them.
        usize::try_from(u64::from(task) % self.memory.settings.cpus).unwrap_or(0)
    }

    /// Pages that the task can write before its next look at the limits.
    pub(super) fn room(&mut self, task: TaskId) -> u64 {
        if !self.memory.settings.writers_write {
            let (dirtier, core) = (*self.dirtier(task), *self.core(task));
            return dirtier.room(&self.memory.device, &core);
        }
        let core = self.core_of(task);
        self.counters.room(core, self.memory.settings.pages, self.memory.settings.cpus)
    }

    /// Whether a task that is about to write so many pages has to look at the limits. If not, they count.
    pub(super) fn must_look(&mut self, task: TaskId, pages: u64) -> bool {
        if !self.memory.settings.writers_write {
            let (dirtier, core) = (*self.dirtier(task), *self.core(task));
            return dirtier.due(&self.memory.device, &core);
        }
        let must = self.room(task) <= pages;
        if !must {
            self.wrote_on(task, pages);
        }
        must
    }

    fn wrote_on(&mut self, task: TaskId, written: u64) -> bool {
        let core = self.core_of(task);
        let (pages, cpus) = (self.memory.settings.pages, self.memory.settings.cpus);
        self.counters.wrote(core, written, pages, cpus)
    }

    fn over(&self, limit: u64) -> bool {
        self.memory.dirty + self.memory.writeback > limit
    }
}

impl Kernel {
    /// `write`, with looks at the limits in between.
    pub async fn write_and_look(
        &self,
        open: &mut Open,
        files: &impl Backing,
        at: u64,
        len: u64,
    ) -> u64 {
        let (mut from, end) = (at, at + len);
        while from < end {
            let room = self.with(|w| w.room(self.task()));
            let to = end.min((from / PAGE + room) * PAGE);
            self.write(open, &files.data(open.file), from, to - from).await;
            files.dirtied(self, open.file, (from / PAGE, to.div_ceil(PAGE))).await;
            let pages = to.div_ceil(PAGE) - from / PAGE;
            if self.with(|w| w.wrote_on(self.task(), pages)) {
                self.balance_by_writing(files).await;
            }
            from = to;
        }
        len
    }

    /// Writes back until there is less than the limit, or until the caller has done his part.
    async fn balance_by_writing(&self, files: &impl Backing) {
        let limits = self.with(|w| w.memory.thresholds());
        let part = self.with(|w| quota(w.memory.settings.pages, w.memory.settings.cpus));
        let mut done = 0;
        loop {
            if !self.with(|w| w.over(limits.dirty)) {
                self.with(|w| w.counters.exceeded = false);
                break;
            }
            self.with(|w| w.counters.exceeded = true);
            if self.with(|w| w.memory.dirty > 0) {
                let round = Round { pages: part, until: Nanos::MAX, leaves_off: false };
                done += self.write_back(files, round).await.pages;
                if done >= part || !self.with(|w| w.over(limits.dirty)) {
                    break;
                }
            }
            self.congestion_wait().await;
        }
        self.with(|w| {
            if w.memory.dirty > limits.background && !w.asked.busy {
                w.asked.background = true;
                w.signal(Event::Flusher);
            }
        });
    }

    /// Until a request for a write is given back on a disk that is not congested.
    async fn congestion_wait(&self) {
        let at = self.with(|w| w.now) + CONGESTION_WAIT;
        self.wait(Wait::EventUntil(Event::Uncongested, at)).await;
    }

    /// Writes the pages of files, those first that have been dirty longest.
    async fn write_back(&self, files: &impl Backing, round: Round) -> Written {
        let begun = self.with(|w| w.now);
        let mut written = Written::default();
        // Files of which all is on its way: their turn comes again in another round.
        let mut later = Vec::new();
        while written.pages < round.pages {
            if round.leaves_off && self.with(|w| w.congested[1]) {
                written.congested = true;
                break;
            }
            let Some(inode) = self.with(|w| w.flusher.take(begun.min(round.until))) else { break };
            if inode == METADATA {
                files.write_metadata(self, Flags::NONE).await;
                self.with(|w| w.flusher.put_back(METADATA, Left::Clean, w.now));
                continue;
            }
            let left = Round { pages: round.pages - written.pages, ..round };
            let n = self.write_inode(inode, files, left).await;
            written.pages += n;
            if n == 0 {
                later.push(inode);
            } else {
                self.put_back(inode);
            }
        }
        later.into_iter().for_each(|inode| self.put_back(inode));
        written
    }

    /// Some of a file's pages, from where the last one left off.
    async fn write_inode(&self, file: u32, files: &impl Backing, round: Round) -> u64 {
        let cursor = self.with(|w| w.memory.cursor(file));
        let piece = self.with(|w| w.memory.settings.bio_pages);
        let mut written = 0;
        'all: for (mut at, to) in [(cursor, u64::MAX), (0, cursor)] {
            while written < round.pages {
                if round.leaves_off && self.with(|w| w.congested[1]) {
                    break 'all;
                }
                let budget = piece.min(round.pages - written);
                match self.write_range(file, files, (at, to), budget, Flags::NONE, None).await {
                    0 => break,
                    n => written += n,
                }
                at = self.with(|w| w.memory.cursor(file));
            }
        }
        written
    }

    /// A file's turn is over.
    fn put_back(&self, file: u32) {
        self.with(|w| {
            let left =
                if w.pages(file).is_none_or(|p| p.dirty() == 0) { Left::Clean } else { Left::More };
            let now = w.now;
            w.flusher.put_back(file, left, now);
        });
    }

    /// The thread `pdflush`. Never ends.
    pub async fn pdflush(&self, files: &impl Backing) {
        loop {
            if self.with(|w| std::mem::take(&mut w.asked.background)) {
                self.with(|w| w.asked.busy = true);
                self.in_the_background(files).await;
                self.with(|w| w.asked.busy = false);
                continue;
            }
            let intervals = self.with(|w| w.flusher.intervals());
            let due = self.with(|w| {
                let something = w.flusher.inodes() > 0 && intervals.wake > 0;
                something.then(|| (w.asked.next_old(w.now, intervals.wake), w.now))
            });
            match due {
                Some((at, now)) if at <= now => self.old_pages(files, intervals.expire).await,
                Some((at, _)) => self.wait(Wait::EventUntil(Event::Flusher, at)).await,
                None => self.wait(Wait::Event(Event::Flusher)).await,
            }
        }
    }

    /// Down to the background threshold, or until nothing can be written that nobody else writes.
    async fn in_the_background(&self, files: &impl Backing) {
        let limit = self.with(|w| w.memory.thresholds().background);
        while self.with(|w| w.memory.dirty > limit) {
            let round = Round { pages: ROUND, until: Nanos::MAX, leaves_off: true };
            let written = self.write_back(files, round).await;
            if written.pages < ROUND {
                self.congestion_wait().await;
                if !written.congested {
                    break;
                }
            }
        }
    }

    /// What has been dirty for long.
    async fn old_pages(&self, files: &impl Backing, expire: Nanos) {
        let (now, mut left) = self.with(|w| {
            w.asked.last_old = w.now;
            (w.now, w.memory.dirty + w.flusher.inodes() as u64)
        });
        let Some(until) = now.checked_sub(expire) else { return };
        while left > 0 {
            let round = Round { pages: ROUND, until, leaves_off: true };
            let written = self.write_back(files, round).await;
            left = left.saturating_sub(written.pages);
            if written.pages < ROUND {
                if !written.congested {
                    break;
                }
                self.congestion_wait().await;
            }
        }
        // A second at least until the next look.
        self.with(|w| {
            let interval = w.flusher.intervals().wake;
            if w.asked.next_old(w.now, interval) < w.now + SECOND {
                w.asked.last_old = w.now + SECOND - interval;
            }
        });
    }

    /// `sync`: the caller writes all that is dirty, and waits for all pages on their way.
    pub(super) async fn sync_by_hand(&self, files: &impl Backing) {
        let begun = self.with(|w| w.now);
        let mut metadata = false;
        while let Some(inode) = self.with(|w| w.flusher.take(begun)) {
            if inode == METADATA {
                // The file system writes it when its journal has what belongs to it.
                metadata = true;
                continue;
            }
            let round = Round { pages: u64::MAX, until: begun, leaves_off: false };
            self.write_inode(inode, files, round).await;
            if self.with(|w| w.pages(inode).is_some_and(|p| p.dirty() > 0)) {
                // Pages that are dirty again and still on their way.
                self.writeback_over(inode, 0).await;
                self.write_inode(inode, files, round).await;
            }
            self.put_back(inode);
        }
        if metadata {
            self.with(|w| w.flusher.put_back(METADATA, Left::Some, w.now));
        }
        for file in 0..self.with(|w| w.memory.files()) {
            self.writeback_over(file, 0).await;
        }
    }
}

#[cfg(test)]
mod tests;
