//! I/O past the page cache.

use iosched_types::{Flags, Op};

use super::read::Place;
use super::world::{BioOut, Done, Group};
use super::writeback::Backing;
use super::{Kernel, Wait};
use crate::cache::PAGE;
use crate::cache::mapping::Mark;

/// Bytes that a bio can discard.
const MOST_DISCARD: u64 = 1 << 31;

/// A range of a file in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// The file.
    pub file: u32,
    /// Where it begins.
    pub at: u64,
    /// How long it is, not 0.
    pub len: u64,
}

impl Range {
    fn pages(&self) -> (u64, u64) {
        (self.at / PAGE, (self.at + self.len).div_ceil(PAGE))
    }
}

impl Kernel {
    /// Reads past the cache: dirty pages of the range are written first. The bios belong to `group`; holes need none.
    pub async fn read_direct(&self, files: &impl Backing, range: Range, group: Group) {
        self.write_cached(files, range).await;
        self.submit_direct(&files.data(range.file), range, (Op::Read, Flags::NONE), group).await;
    }

    /// Writes past the cache. Pages of the range in memory are written and dropped. Blocks must have a place. `through`:
    /// past the disk's cache, too.
    pub async fn write_direct(
        &self,
        files: &impl Backing,
        range: Range,
        through: bool,
        group: Group,
    ) {
        self.write_cached(files, range).await;
        let (from, to) = range.pages();
        self.with(|w| w.memory.drop_pages(range.file, from, to, false));
        let flags = Flags::SYNC.with(Flags::IDLE);
        let flags = if through { flags.with(Flags::FUA) } else { flags };
        self.submit_direct(&files.place(range.file), range, (Op::Write, flags), group).await;
    }

    /// Discards a range of a device and waits for it. Pages of it go with what they hold.
    pub async fn discard(&self, range: Range) {
        let (from, to) = range.pages();
        self.writeback_over(range.file, from).await;
        self.with(|w| w.memory.drop_pages(range.file, from, to, true));
        let group = self.with(|w| {
            let group = w.group();
            let mut at = range.at;
            while at < range.at + range.len {
                let bytes = (range.at + range.len - at).min(MOST_DISCARD);
                let (sector, sectors) = (at / 512, (bytes / 512) as u32);
                let out = BioOut { id: 0, op: Op::Discard, flags: Flags::SYNC, sector, sectors };
                w.bio(self.task(), out, Done::Other, Some(group));
                at += bytes;
            }
            group
        });
        self.wait(Wait::Submit).await;
        self.wait(Wait::Io(group)).await;
    }

    async fn write_cached(&self, files: &impl Backing, range: Range) {
        let (from, to) = range.pages();
        let dirty = self.with(|w| {
            w.pages(range.file).is_some_and(|p| {
                p.run(from, to, Mark::Dirty).is_some() || p.run(from, to, Mark::Writeback).is_some()
            })
        });
        if dirty {
            let group = self.with(super::World::group);
            let some = Some(group);
            self.write_range(range.file, files, (from, to), u64::MAX, Flags::SYNC, some).await;
            self.wait(Wait::Io(group)).await;
        }
    }

    async fn submit_direct(
        &self,
        place: &impl Place,
        range: Range,
        (op, flags): (Op, Flags),
        group: Group,
    ) {
        let end = range.at + range.len;
        let mut at = range.at;
        while at < end {
            let (sector, pages) = place.at(at / PAGE);
            let to = end.min((at / PAGE + pages.max(1)) * PAGE);
            if let Some(sector) = sector {
                let sector = sector + at % PAGE / 512;
                let sectors = u32::try_from((to - at).div_ceil(512)).unwrap_or(u32::MAX);
                let out = BioOut { id: 0, op, flags, sector, sectors };
                self.with(|w| w.bio(self.task(), out, Done::Other, Some(group)));
            }
            at = to;
        }
        if self.with(|w| w.has_bios(self.task())) {
            self.wait(Wait::Submit).await;
        }
    }
}
