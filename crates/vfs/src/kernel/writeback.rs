//! Dirty pages on their way to the disk: the flusher's thread, and syncs.

use std::future::Future;

use iosched_types::{Flags, Op};

use super::read::Place;
use super::world::{BioOut, Done, Group};
use super::{Event, Kernel, Wait};
use crate::cache::mapping::Mark;
use crate::cache::writeback::{Action, Left, Sight, Task};

/// The inode number under which a disk's own pages, its metadata, are written back.
pub const METADATA: u32 = u32::MAX;

/// The files of a file system, for whoever writes them back.
pub trait Backing {
    /// Where one of them lies.
    type Place: Place;

    /// Where the file lies.
    fn place(&self, file: u32) -> Self::Place;

    /// Where data of the file lies: blocks that it was given and nobody has written are holes.
    fn data(&self, file: u32) -> Self::Place {
        self.place(file)
    }

    /// Gives the dirty pages `from..to` a place, as far as they have none. Says up to which page they have one now.
    fn prepare(&self, k: &Kernel, file: u32, from: u64, to: u64) -> impl Future<Output = u64>;

    /// Pages of the file have just become dirty, in a kernel whose writers write back themselves.
    fn dirtied(&self, _: &Kernel, _file: u32, _pages: (u64, u64)) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Room in the journal for what is to be noted when the dirty page is on the disk, if nobody waits for that.
    fn reserve(&self, _: &Kernel, _file: u32, _page: u64) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Whether the end of a write of these pages has to be noted first, by a worker ([`FileSystem::came_back`]), and up to which
    /// page that holds. Those behind are another bio.
    ///
    /// [`FileSystem::came_back`]: crate::fs::FileSystem::came_back
    fn ends_late(&self, _file: u32, (_, to): (u64, u64)) -> (bool, u64) {
        (false, to)
    }

    /// Whether these pages cannot be written, as a transaction has them that is not in the log yet, and up to which page that
    /// holds.
    fn is_held(&self, _file: u32, (_, to): (u64, u64)) -> (bool, u64) {
        (false, to)
    }

    /// Whether a journal has copies of these pages until they are in their places. It is told that they are on their way.
    fn goes_home(&self, _file: u32, _pages: (u64, u64)) -> bool {
        false
    }

    /// What has to be in the log before a sync can write the dirty pages of the file is.
    fn before_sync(&self, _: &Kernel, _file: u32) -> impl Future<Output = ()> {
        std::future::ready(())
    }

    /// Writes metadata home.
    fn write_metadata(&self, k: &Kernel, flags: Flags) -> impl Future<Output = ()>;

    /// Whether data that nobody waits for says so ([`Flags::BACKGROUND`]), as it does where the file system leaves the
    /// making of bios to iomap.
    fn marks_background(&self) -> bool {
        false
    }
}

/// How bios of data are made.
#[derive(Clone, Copy, Debug)]
struct Way {
    flags: Flags,
    /// A worker of the file system ends them.
    late: bool,
    /// A journal waits for them.
    home: bool,
}

impl Kernel {
    /// The flusher's thread. Never ends.
    pub async fn flusher(&self, files: &impl Backing) {
        loop {
            let action = self.with(|w| {
                let sight = sight(w);
                let action = w.flusher.next(&sight);
                w.keep_plug(self.task(), matches!(action, Action::Write { .. }));
                action
            });
            match action {
                Action::Write { inode: METADATA, task, .. } => {
                    files.write_metadata(self, flags(task)).await;
                    self.with(|w| w.flusher.wrote(METADATA, 1, Left::Clean, w.now));
                }
                Action::Write { inode, pages, task } => {
                    self.turn(inode, files, pages, task).await;
                }
                Action::Done { waiter } => self.with(|w| w.signal(Event::Synced(waiter))),
                Action::Sleep { until: Some(at) } => {
                    self.wait(Wait::EventUntil(Event::Flusher, at)).await;
                }
                Action::Sleep { until: None } => self.wait(Wait::Event(Event::Flusher)).await,
            }
        }
    }

    /// An inode's turn.
    async fn turn(&self, file: u32, files: &impl Backing, budget: u64, task: Task) {
        let cursor = self.with(|w| w.memory.cursor(file));
        let all = flags(task);
        let flags = if files.marks_background() { all } else { all.without(Flags::BACKGROUND) };
        let mut written = 0;
        for (from, to) in [(cursor, u64::MAX), (0, cursor)] {
            let n = self.write_range(file, files, (from, to), budget - written, flags, None).await;
            written += n;
            if written >= budget {
                break;
            }
        }
        self.with(|w| {
            let now = w.jiffies();
            w.memory.device.settle(now);
            w.memory.device.update(now);
            let dirty = w.pages(file).map_or(0, |p| p.dirty());
            let left = match dirty {
                0 => Left::Clean,
                _ if written >= budget => Left::More,
                _ => Left::Some,
            };
            w.flusher.wrote(file, written, left, w.now);
        });
    }

    /// Writes dirty pages of a range, at most `budget`, and says how many. Pages that follow one another in the file
    /// and on the disk share a bio. The bios of one run are handed over before the next run gets its place, all under one plug,
    /// or each alone ([`Settings::plugs_files`](super::memory::Settings::plugs_files)).
    pub async fn write_range(
        &self,
        file: u32,
        files: &impl Backing,
        range: (u64, u64),
        budget: u64,
        flags: Flags,
        group: Option<Group>,
    ) -> u64 {
        let (written, end) = self.write_dirty(file, files, range, budget, (flags, group)).await;
        self.with(|w| w.memory.set_cursor(file, end));
        written
    }

    /// The same, and where the next one begins stays as it is. Says also how far it came.
    pub(crate) async fn write_dirty(
        &self,
        file: u32,
        files: &impl Backing,
        (from, to): (u64, u64),
        budget: u64,
        (flags, group): (Flags, Option<Group>),
    ) -> (u64, u64) {
        let mut written = 0;
        let mut at = from;
        let waits = group.is_some() || flags.has(Flags::SYNC);
        let plugged = self.with(|w| w.keeps_plug(self.task()));
        let plug = plugged || self.with(|w| w.memory.settings.plugs_files);
        self.with(|w| w.keep_plug(self.task(), plug));
        while written < budget
            && let Some((a, b)) =
                self.with(|w| w.pages(file).and_then(|p| p.run(at, to, Mark::Dirty)))
        {
            if self.with(|w| w.has_bios(self.task())) {
                self.wait(Wait::Submit).await;
            }
            let b = b.min(a.saturating_add(budget - written));
            if group.is_none() {
                files.reserve(self, file, a).await;
            }
            let before = written;
            let b = files.prepare(self, file, a, b).await;
            if a == b {
                // There is no place for it, whatever was promised. The others may have one.
                self.with(|w| w.lose(file, a));
                at = a + 1;
                continue;
            }
            // Others may have written some of them while places were looked for.
            let place = files.place(file);
            at = a;
            while let Some((a, b)) =
                self.with(|w| w.pages(file).and_then(|p| p.run(at, b, Mark::Dirty)))
            {
                let b = match self.not_under_way(file, (a, b), waits).await {
                    Ok(b) => b,
                    Err(from) => {
                        at = from;
                        continue;
                    }
                };
                let (held, b) = files.is_held(file, (a, b));
                if held {
                    at = b;
                    continue;
                }
                let (late, b) = files.ends_late(file, (a, b));
                let b = if plug { b } else { self.with(|w| bio_end(w, &place, (a, b))) };
                let way = Way { flags, late, home: files.goes_home(file, (a, b)) };
                self.write_run(file, &place, (a, b), way, group);
                written += b - a;
                at = b;
                if !plug {
                    self.wait(Wait::Submit).await;
                }
            }
            at = b;
            if written == before && group.is_none() {
                self.with(|w| w.has_ended(file));
            }
        }
        self.with(|w| w.keep_plug(self.task(), plugged));
        // Also without another bio: the plug ends here, unless it is the caller's.
        if written > 0 || self.with(|w| w.has_bios(self.task())) {
            self.wait(Wait::Submit).await;
        }
        (written, at)
    }

    /// Pages that are on their way to the disk and dirty again: whoever syncs waits for them, the flusher leaves them. Says up to where
    /// the others of `a..b` go, or else from where to look again.
    async fn not_under_way(&self, file: u32, (a, b): (u64, u64), waits: bool) -> Result<u64, u64> {
        let first = self.with(|w| w.pages(file).and_then(|p| p.next_any(a, Mark::Writeback)));
        match first.filter(|p| *p < b) {
            None => Ok(b),
            Some(page) if page > a => Ok(page),
            Some(_) if !waits => Err(a + 1),
            Some(page) => {
                if self.with(|w| w.has_bios(self.task())) {
                    self.wait(Wait::Submit).await;
                }
                self.wait(Wait::Page { file, page }).await;
                Err(a)
            }
        }
    }

    /// Makes the bios of dirty pages that have a place.
    fn write_run(
        &self,
        file: u32,
        place: &impl Place,
        (from, to): (u64, u64),
        way: Way,
        group: Option<Group>,
    ) {
        let Way { flags, late, home } = way;
        self.with(|w| {
            let mut a = from;
            while a < to {
                let end = bio_end(w, place, (a, to));
                let (sector, _) = place.at(a);
                w.memory.begin_writeback(file, a, end, w.now);
                let sectors = u32::try_from((end - a) * 8).unwrap_or(u32::MAX);
                let sector = sector.unwrap_or(0);
                let out = BioOut { id: 0, op: Op::Write, flags, sector, sectors };
                let done = Done::Written { file, from: a, to: end };
                match (late, home) {
                    (true, _) => w.late_bio(self.task(), out, done, group),
                    (_, true) => w.home_bio(self.task(), out, done, group),
                    _ => w.bio(self.task(), out, done, group),
                }
                a = end;
            }
        });
    }

    /// Writes the file's dirty pages and waits for them and for those under way. The file system's part comes after.
    pub async fn write_and_wait(&self, file: u32, files: &impl Backing) {
        self.write_part_and_wait(file, files, (0, u64::MAX)).await;
        self.writeback_over(file, 0).await;
    }

    /// Writes the dirty pages of a part and waits for them.
    pub async fn write_part_and_wait(&self, file: u32, files: &impl Backing, part: (u64, u64)) {
        let (group, flags) = self.with(|w| (w.group(), w.sync_flags()));
        self.write_range(file, files, part, u64::MAX, flags, Some(group)).await;
        self.wait(Wait::Io(group)).await;
    }

    /// Starts the writes of a range's dirty pages. Nobody waits for them.
    pub async fn write_some(&self, file: u32, files: &impl Backing, part: (u64, u64)) {
        self.write_range(file, files, part, u64::MAX, Flags::NONE, None).await;
    }

    /// `sync_file_range`: writes the dirty pages of a range. With `wait`, waits for them and for those under way.
    pub async fn sync_range(
        &self,
        file: u32,
        files: &impl Backing,
        (from, to): (u64, u64),
        wait: bool,
    ) {
        let flags = self.with(|w| match wait || w.memory.settings.range_writes_sync {
            true => w.sync_flags(),
            false => Flags::NONE,
        });
        if wait {
            files.before_sync(self, file).await;
        }
        self.write_range(file, files, (from, to), u64::MAX, flags, None).await;
        while wait
            && let Some(page) = self.with(|w| {
                let page = w.pages(file).and_then(|p| p.next_any(from, Mark::Writeback));
                page.filter(|p| *p < to)
            })
        {
            self.wait(Wait::Page { file, page }).await;
        }
    }

    /// Waits until no page of the file from `page` on is on its way to the disk: before they are cut off.
    pub async fn writeback_over(&self, file: u32, page: u64) {
        while let Some(page) =
            self.with(|w| w.pages(file).and_then(|p| p.next_any(page, Mark::Writeback)))
        {
            self.wait(Wait::Page { file, page }).await;
        }
    }

    /// Empties the disk's cache.
    pub async fn flush(&self) {
        let group = self.with(|w| {
            let group = w.group();
            let out = BioOut {
                id: 0,
                op: Op::Flush,
                flags: Flags::PREFLUSH.with(Flags::SYNC),
                sector: 0,
                sectors: 0,
            };
            w.bio(self.task(), out, Done::Other, Some(group));
            group
        });
        self.wait(Wait::Submit).await;
        self.wait(Wait::Io(group)).await;
    }

    /// `sync` of one file system's pages: the flusher first starts all that is dirty, as nobody waits for any of it; then it
    /// is asked for what is left, and the caller waits for all pages on their way.
    pub async fn sync_pages(&self, files: &impl Backing) {
        if self.with(|w| w.memory.settings.writers_write) {
            return self.sync_by_hand(files).await;
        }
        self.with(|w| {
            w.flusher.ask(Task::All);
            w.signal(Event::Flusher);
        });
        self.wait(Wait::Compute(0)).await;
        let waiter = self.with(|w| {
            let waiter = w.next_waiter();
            w.flusher.ask(Task::Sync { waiter });
            w.signal(Event::Flusher);
            waiter
        });
        self.wait(Wait::Event(Event::Synced(waiter))).await;
        for file in 0..self.with(|w| w.memory.files()) {
            self.writeback_over(file, 0).await;
        }
    }
}

/// Where the bio that begins with the first of these pages ends.
fn bio_end(w: &super::World, place: &impl Place, (from, to): (u64, u64)) -> u64 {
    let (_, pages) = place.at(from);
    to.min(from + pages.max(1).min(w.memory.settings.bio_pages))
}

fn flags(task: Task) -> Flags {
    match task {
        Task::Sync { .. } => Flags::SYNC,
        Task::All => Flags::NONE,
        Task::Old | Task::Background => Flags::BACKGROUND,
    }
}

fn sight(w: &mut super::World) -> Sight {
    let thresholds = w.memory.thresholds();
    let own = w.memory.share_of(thresholds.background, w.now);
    let over = w.memory.dirty > thresholds.background || w.memory.dirty > own;
    Sight {
        now: w.now,
        over_background: over,
        dirty: w.memory.dirty,
        bandwidth: w.memory.device.average,
        limit: w.memory.slow.pages,
    }
}

#[cfg(test)]
mod tests;
