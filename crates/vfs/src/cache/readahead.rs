//! Read-ahead: which pages are read when a page is missing, or when a reader comes to the marked page.
//!
//! Sizes and positions are pages. Since 2.6.23 there is one window a file, [`Stream`]. The way it grows has changed
//! several times since ([`Era`]). Older kernels have two windows: [`twin`].

pub mod twin;

use super::mapping::{Mapping, Mark};

/// Which kernels' rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Era {
    /// Before 2.6.23: two windows, and a call at the first page of each read ([`twin`]).
    Twin,
    /// 2.6.23 to 3.13: a window of a stream in the middle of a file is sized like a first one.
    OnDemand,
    /// 3.14 to 4.18: history must be longer than the read.
    History,
    /// 4.19 to 6.10: a window with a mark that its own reader would hit grows to the limit at most.
    Capped,
    /// 6.11 and later: misses and marked pages have rules of their own.
    Split,
    /// 7.1: the window of a marked page ends at a multiple of four pages, or of more with large folios.
    Aligned,
}

impl Era {
    /// Misses and marked pages have rules of their own.
    #[must_use]
    pub fn splits(self) -> bool {
        self >= Era::Split
    }
}

/// The facts about the file and its device that read-ahead gets.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Read-ahead of the open file, `read_ahead_kb` of its device when it was opened.
    pub ra: u64,
    /// `max_sectors_kb` in pages: since 4.10 a read that is larger than `ra` may be read in pieces of this size.
    pub io: u64,
    /// Pages in the file, the last one counted whole.
    pub file: u64,
    /// Folios may be larger than a page.
    pub large_folios: bool,
}

/// A stretch to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first page.
    pub start: u64,
    /// The page after the last one.
    pub end: u64,
    /// The page that gets the mark, if this read brings the page.
    pub marker: Option<u64>,
    /// Pages a folio at most.
    pub folio: u64,
}

/// Read-ahead of one open file. Descriptors that came from `dup` or `fork` share it.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    start: u64,
    size: u64,
    ahead: u64,
    /// Since 7.1, log2 of the pages of a folio that the last marked page asked for; 0 after a miss.
    order: u32,
    /// Where the last read ended, in bytes: after its last byte since 6.11, in its last page before.
    pub prev: Option<u64>,
    /// `POSIX_FADV_RANDOM`: read what is asked for.
    pub random: bool,
    /// The two windows of [`Era::Twin`].
    pub twin: twin::Twin,
}

/// A miss or a marked page.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The page.
    pub index: u64,
    /// Pages of the call that are still to be served, from `index` on, beyond the end of the file too.
    pub wanted: u64,
}

/// The first window for a read of `wanted` pages.
#[must_use]
pub fn first(wanted: u64, max: u64) -> u64 {
    let n = wanted.next_power_of_two();
    if n <= max / 32 {
        4 * n
    } else if n <= max / 4 {
        2 * n
    } else {
        max
    }
}

/// The window after one of `size` pages.
#[must_use]
pub fn next(size: u64, max: u64) -> u64 {
    let larger = if size < max / 16 { 4 * size } else { 2 * size };
    larger.min(max)
}

impl Stream {
    /// A page is missing. Returns what to read: only the wanted pages where there is no stream to read ahead for.
    pub fn miss(&mut self, era: Era, ask: Ask, limits: &Limits, pages: &Mapping) -> Window {
        if limits.ra == 0 {
            return forced(ask.index, 1, limits);
        }
        if self.random {
            return forced(ask.index, ask.wanted, limits);
        }
        self.order = 0;
        let folio = if era == Era::Aligned { 1 } else { 4 };
        match era {
            Era::Split | Era::Aligned => self.miss_split(ask, limits, pages),
            _ => self.either(era, ask, limits, pages, false),
        }
        .map_or_else(|| forced(ask.index, ask.wanted, limits), |()| self.window(limits, folio))
    }

    /// A page of a map is missing: the window around it. A fault that waits comes again and finds the page, so misses do not add
    /// up, and there is no end to this (event log of `rd_mmapstride`: a thousand faults, each with a whole window).
    pub fn around(&mut self, index: u64, limits: &Limits) -> Window {
        if limits.ra == 0 {
            return forced(index, 1, limits);
        }
        self.set(index.saturating_sub(limits.ra / 2), limits.ra, limits.ra / 4);
        self.window(limits, 1)
    }

    /// A reader has come to a marked page in a folio of `folio` pages. The caller has removed the mark.
    pub fn marked(
        &mut self,
        era: Era,
        ask: Ask,
        folio: u64,
        limits: &Limits,
        pages: &Mapping,
    ) -> Option<Window> {
        if limits.ra == 0 {
            return None;
        }
        match era {
            Era::Split | Era::Aligned => self.marked_split(ask, folio, limits, pages)?,
            _ => self.either(era, ask, limits, pages, true)?,
        }
        if era == Era::Aligned {
            let order = self.align(limit(era, ask.wanted, limits), limits.large_folios);
            return Some(self.window(limits, 1 << order));
        }
        Some(self.window(limits, folio * 4))
    }

    /// Cuts the window at a multiple of the folios that it may have (read by a 7.1 in virtual time, without large folios).
    fn align(&mut self, max: u64, large_folios: bool) -> u32 {
        let order = self.order + 2;
        let end = (self.start + self.size) & (u64::MAX << order.min(max.trailing_zeros()));
        if end > self.start {
            self.size = end - self.start;
            self.ahead = self.size;
        }
        self.order = if large_folios { order.min(self.size.max(1).ilog2()) } else { 0 };
        self.order
    }

    /// The window that starts at `start`, cut at the end of the file.
    fn window(&self, limits: &Limits, folio: u64) -> Window {
        let end = (self.start + self.size).min(limits.file).max(self.start);
        let length = end - self.start;
        let marker = length.checked_sub(self.ahead).map(|n| self.start + n);
        let largest = if limits.large_folios && self.size >= 4 {
            folio.min(1 << self.size.ilog2())
        } else {
            1
        };
        Window { start: self.start, end, marker: marker.filter(|m| *m < end), folio: largest }
    }

    fn set(&mut self, start: u64, size: u64, ahead: u64) {
        (self.start, self.size, self.ahead) = (start, size, ahead);
    }

    /// Whether a read at `index` goes on where the last one ended.
    fn follows(&self, index: u64) -> bool {
        self.prev.is_some_and(|prev| index.checked_sub(prev / super::PAGE).is_some_and(|n| n <= 1))
    }

    fn first_window(&mut self, ask: Ask, max: u64, whole: u64) {
        let size = first(ask.wanted, max);
        let ahead = if size > ask.wanted { size - ask.wanted } else { size / whole };
        self.set(ask.index, size, ahead);
    }

    /// 6.11 and later, a missing page. `None`: a random read.
    fn miss_split(&mut self, ask: Ask, limits: &Limits, pages: &Mapping) -> Option<()> {
        let max = limit(Era::Split, ask.wanted, limits);
        if ask.index == 0 || ask.wanted > max || self.follows(ask.index) {
            self.first_window(ask, max, 2);
            return Some(());
        }
        let behind = history(ask.index, max, pages);
        if behind.pages <= ask.wanted {
            return None;
        }
        self.set(ask.index, (behind.counted() + ask.wanted).min(max), 1);
        Some(())
    }

    /// 6.11 and later, a marked page. `None`: nothing to read.
    fn marked_split(
        &mut self,
        ask: Ask,
        folio: u64,
        limits: &Limits,
        pages: &Mapping,
    ) -> Option<()> {
        let max = limit(Era::Split, ask.wanted, limits);
        let expected = (self.start + self.size - self.ahead) / folio * folio;
        if ask.index == expected {
            let size = self.size.max(next(self.size, max));
            self.set(self.start + self.size, size, size);
            return Some(());
        }
        self.other_stream(ask, max, pages)
    }

    /// The mark belongs to another stream. Goes on behind the cached pages.
    fn other_stream(&mut self, ask: Ask, max: u64, pages: &Mapping) -> Option<()> {
        let start = pages.next(ask.index + 1, ask.index + 1 + max, Mark::Present, false)?;
        let size = next(start - ask.index + ask.wanted, max);
        self.set(start, size, size);
        Some(())
    }

    /// 2.6.23 to 6.10: one routine for missing and marked pages.
    fn either(
        &mut self,
        era: Era,
        ask: Ask,
        limits: &Limits,
        pages: &Mapping,
        hit: bool,
    ) -> Option<()> {
        let max = limit(era, ask.wanted, limits);
        let end = self.start + self.size;
        if ask.index == 0 {
            self.first_window(ask, max, 1);
        } else if ask.index == end - self.ahead || ask.index == end {
            let size = next(self.size, max);
            self.set(end, size, size);
        } else if hit {
            self.other_stream(ask, max, pages)?;
        } else if ask.wanted > max || self.follows(ask.index) {
            self.first_window(ask, max, 1);
        } else {
            self.size_by_history(era, ask, max, pages)?;
        }
        self.merge_with_next(era, ask.index, max);
        Some(())
    }

    fn size_by_history(&mut self, era: Era, ask: Ask, max: u64, pages: &Mapping) -> Option<()> {
        let behind = history(ask.index, max, pages);
        if era == Era::OnDemand {
            if behind.pages == 0 {
                return None;
            }
            let size = first(behind.counted() + ask.wanted, max);
            self.set(ask.index, size, size);
        } else {
            if behind.pages <= ask.wanted {
                return None;
            }
            self.set(ask.index, (behind.counted() + ask.wanted).min(max), 1);
        }
        Some(())
    }

    /// If the window's own reader would hit its mark at once, the window is read together with the next one.
    fn merge_with_next(&mut self, era: Era, index: u64, max: u64) {
        if self.start != index || self.ahead != self.size {
            return;
        }
        let more = next(self.size, max);
        if era == Era::Capped && self.size + more > max {
            self.set(index, max, max / 2);
        } else {
            self.set(index, self.size + more, more);
        }
    }
}

/// The largest window for a read of `wanted` pages.
fn limit(era: Era, wanted: u64, limits: &Limits) -> u64 {
    if !matches!(era, Era::Twin | Era::OnDemand) && wanted > limits.ra && limits.io > limits.ra {
        wanted.min(limits.io)
    } else {
        limits.ra
    }
}

/// The wanted pages and no others, cut at the end of the file.
fn forced(index: u64, wanted: u64, limits: &Limits) -> Window {
    let end = (index + wanted).min(limits.file).max(index);
    Window { start: index, end, marker: None, folio: 1 }
}

/// The cached pages that end just below a page.
struct History {
    pages: u64,
    /// They reach the start of the file.
    whole: bool,
}

impl History {
    /// Pages that count: twice as many where the file was read from its start.
    fn counted(&self) -> u64 {
        if self.whole { 2 * self.pages } else { self.pages }
    }
}

fn history(index: u64, max: u64, pages: &Mapping) -> History {
    let lowest = index.saturating_sub(max);
    match pages.last(lowest, index, Mark::Present, false) {
        Some(missing) => History { pages: index - missing - 1, whole: false },
        // As many as were looked at. So the page before them counts as missing, unless the file begins there.
        None => History { pages: index - lowest, whole: lowest == 0 && index <= max },
    }
}

#[cfg(test)]
mod tests;
