//! What an observer of a run may ask: what a call finds in memory, and what bios are for.

use super::{Done, Group, World};
use crate::cache::mapping::Mark;

/// Pages of a range, by what a call finds of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// All of them.
    pub pages: u64,
    /// Readable.
    pub cached: u64,
    /// Locked: a read of them is under way.
    pub being_read: u64,
    /// Dirty.
    pub dirty: u64,
    /// On their way to the disk.
    pub writeback: u64,
    /// The first page with the mark of read-ahead.
    pub mark: Option<u64>,
}

impl Found {
    /// Pages that are not there.
    #[must_use]
    pub fn absent(&self) -> u64 {
        self.pages - self.cached - self.being_read
    }
}

impl World {
    /// What a call finds of the pages `from..to` of a file.
    pub fn found(&mut self, file: u32, from: u64, to: u64) -> Found {
        let mut found = Found { pages: to.saturating_sub(from), ..Found::default() };
        let Some(pages) = self.pages(file) else { return found };
        let to = to.min(pages.end());
        if from >= to {
            return found;
        }
        found.cached = pages.count(from, to, Mark::Uptodate);
        found.being_read = pages.count(from, to, Mark::Present) - found.cached;
        found.dirty = pages.count(from, to, Mark::Dirty);
        found.writeback = pages.count(from, to, Mark::Writeback);
        found.mark = pages.next(from, to, Mark::Readahead, true);
        found
    }

    /// What a bio under way is for.
    #[must_use]
    pub fn purpose(&self, id: u32) -> Option<Done> {
        self.in_flight.items.get(id as usize).copied().flatten().map(|b| b.done)
    }

    /// The bios of a group that are under way.
    pub fn bios_of(&self, group: Group) -> impl Iterator<Item = u32> {
        let all = (0..).zip(&self.in_flight.items);
        all.filter_map(move |(id, b)| b.filter(|b| b.group == Some(group)).map(|_| id))
    }
}
