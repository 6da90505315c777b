//! Read-ahead of 2.6.18: a current window and one ahead of it.

use super::{Limits, Window, first, next};

/// After this many consecutive pages found in the cache, the engine is off for the file.
const IN_CACHE: u64 = 256;

/// Read-ahead of one open file in 2.6.18.
#[derive(Clone, Debug, Default)]
pub struct Twin {
    start: u64,
    size: u64,
    ahead_start: u64,
    ahead_size: u64,
    /// The page looked at last.
    prev: Option<u64>,
    cached: u64,
    in_cache: bool,
    missed: bool,
    /// The device's reads are congested: nothing is read ahead that its reader has not come to.
    pub congested: bool,
}

impl Twin {
    /// Called at the first page of a read, and again at the page that the last call returned. Passes the windows to
    /// read to `read`, which returns how many of a window's pages were not cached. Returns the page of the next call.
    pub fn call(
        &mut self,
        index: u64,
        wanted: u64,
        limits: &Limits,
        mut read: impl FnMut(Window) -> u64,
    ) -> u64 {
        let (mut at, mut wanted) = (index, wanted);
        if self.prev == Some(at) {
            at += 1;
            wanted -= 1;
            if wanted == 0 {
                return at;
            }
        }
        let sequential = at == self.prev.map_or(0, |p| p + 1);
        let length = wanted.min(limits.ra);
        self.prev = Some(at);
        if length == 0 || self.in_cache {
            return at + 1;
        }
        let last = at + length - 1;
        self.prev = Some(last);
        if !sequential {
            self.off();
            self.read(at, length, limits, &mut read);
            return last + 1;
        }
        if self.size == 0 {
            (self.start, self.size) = (at, first(length, limits.ra));
            self.read(at, self.size, limits, &mut read);
            if wanted >= limits.ra {
                self.look_ahead(limits, &mut read);
            }
            return last + 1;
        }
        if self.ahead_start == 0 {
            self.look_ahead(limits, &mut read);
        }
        if self.ahead_start > 0 && last >= self.ahead_start {
            (self.start, self.size) = (self.ahead_start, self.ahead_size);
            self.look_ahead(limits, &mut read);
            if self.ahead_start > 0 {
                self.prev = Some(last.min(self.ahead_start + self.ahead_size - 1));
            }
        }
        self.prev.map_or(0, |p| p + 1)
    }

    /// The copy loop found no page where a window had read one. Its single page is read.
    pub fn miss(&mut self) {
        self.missed = true;
        self.in_cache = false;
        self.cached = 0;
    }

    fn off(&mut self) {
        (self.size, self.ahead_start, self.ahead_size) = (0, 0, 0);
    }

    fn look_ahead(&mut self, limits: &Limits, read: &mut impl FnMut(Window) -> u64) {
        let start = self.start + self.size;
        if self.congested && self.prev.is_some_and(|p| p < start) {
            (self.ahead_start, self.ahead_size) = (0, 0);
            return;
        }
        self.ahead_start = start;
        self.ahead_size = self.next_size(limits.ra);
        self.read(self.ahead_start, self.ahead_size, limits, read);
    }

    fn next_size(&mut self, max: u64) -> u64 {
        if std::mem::take(&mut self.missed) {
            self.size.saturating_sub(2).max(4)
        } else {
            next(self.size, max)
        }
    }

    fn read(
        &mut self,
        start: u64,
        size: u64,
        limits: &Limits,
        read: &mut impl FnMut(Window) -> u64,
    ) {
        let end = (start + size).min(limits.file).max(start);
        if start == end {
            return;
        }
        if read(Window { start, end, marker: None, folio: 1 }) > 0 {
            self.cached = 0;
            return;
        }
        self.cached += end - start;
        if self.cached >= IN_CACHE {
            self.in_cache = true;
            self.off();
        }
    }
}
