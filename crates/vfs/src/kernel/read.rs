//! `read` through the page cache.

use iosched_types::{Flags, Op};

use super::world::{BioOut, Done};
use super::{Kernel, Wait, World};
use crate::cache::PAGE;
use crate::cache::mapping::Mark;
use crate::cache::readahead::{Ask, Era, Limits, Stream, Window};

/// Pages that read-ahead by force asks for at a time.
const FORCED: u64 = 512;

/// Where a file's pages lie.
pub trait Place {
    /// The sector of the page and how many pages follow one another on disk from it on. `None`: a hole.
    fn at(&self, page: u64) -> (Option<u64>, u64);
}

/// `madvise`: what a program has said of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Nothing.
    #[default]
    Unsaid,
    /// Its pages will be touched in order.
    Sequential,
    /// In no order.
    Random,
}

/// A file that a task has open.
#[derive(Clone, Debug)]
pub struct Open {
    /// The file.
    pub file: u32,
    /// Bytes.
    pub size: u64,
    /// Read-ahead in pages, taken at the open.
    pub ra: u64,
    /// The file system has folios of several pages.
    pub large_folios: bool,
    /// Read-ahead's state.
    pub stream: Stream,
    /// What a read of it changes in the inode has been noted, or none is to be.
    pub noted: bool,
}

impl Open {
    fn limits(&self, io: u64) -> Limits {
        Limits { ra: self.ra, io, file: self.size.div_ceil(PAGE), large_folios: self.large_folios }
    }
}

impl World {
    /// Reads a range that is in memory and has nothing to read ahead; `None` where it is not so.
    pub fn read_cached(&mut self, open: &mut Open, at: u64, len: u64) -> Option<u64> {
        let end = at.saturating_add(len).min(open.size);
        if at >= end {
            return Some(0);
        }
        if !open.noted {
            return None;
        }
        let (from, to) = (at / PAGE, (end - 1) / PAGE + 1);
        if self.memory.settings.era == Era::Twin {
            let wanted = at.saturating_add(len).div_ceil(PAGE);
            return self.read_cached_twin(open, (from, to), wanted).then_some(end - at);
        }
        let pages = self.pages(open.file)?;
        let ready = pages.next(from, to, Mark::Uptodate, false).is_none()
            && pages.next(pages.folio(from).0, to, Mark::Readahead, true).is_none();
        if !ready {
            return None;
        }
        let again = open.stream.prev.is_some_and(|p| p / PAGE == from);
        let first = if again { from + 1 } else { from };
        if first < to {
            self.memory.touch(open.file, first, to);
        }
        let split = self.memory.settings.era.splits();
        open.stream.prev = Some(if split { end } else { end - 1 });
        Some(end - at)
    }
}

impl World {
    /// The same before 2.6.23: the engine is asked, and wants nothing.
    fn read_cached_twin(&mut self, open: &mut Open, (from, to): (u64, u64), wanted: u64) -> bool {
        let limits = open.limits(self.memory.settings.io_pages);
        let Some(pages) = self.pages(open.file) else { return false };
        if pages.next(from, to, Mark::Uptodate, false).is_some() {
            return false;
        }
        let (mut twin, mut at, mut asked) = (open.stream.twin.clone(), from, false);
        while at < to && !asked {
            at = twin.call(at, wanted - at, &limits, |_| {
                asked = true;
                0
            });
        }
        if !asked {
            open.stream.twin = twin;
            self.memory.touch(open.file, from, to);
        }
        !asked
    }
}

impl Kernel {
    /// Reads `len` bytes from `at` on; says how many there were.
    pub async fn read(&self, open: &mut Open, place: &impl Place, at: u64, len: u64) -> u64 {
        let end = at.saturating_add(len).min(open.size);
        if at >= end {
            return 0;
        }
        let (mut index, last) = (at / PAGE, (end - 1) / PAGE);
        let wanted_end = at.saturating_add(len).div_ceil(PAGE);
        if self.with(|w| w.memory.settings.era) == Era::Twin {
            self.read_twin(open, place, (index, last), wanted_end).await;
            return end - at;
        }
        let previous = open.stream.prev;
        while index <= last {
            let ask = Ask { index, wanted: wanted_end - index };
            self.ahead(open, place, ask).await;
            if !self.readable(open.file, index) {
                self.wait(Wait::Page { file: open.file, page: index }).await;
                if !self.with(|w| w.pages(open.file).is_some_and(|p| p.has(index, Mark::Present))) {
                    continue;
                }
            }
            index = self.copy(open, index, last, previous);
        }
        let split = self.with(|w| w.memory.settings.era.splits());
        open.stream.prev = Some(if split { end } else { end - 1 });
        end - at
    }

    /// A task touches a page of a map. Until 2.6.23 a fault reads its page alone here.
    pub async fn fault(&self, open: &mut Open, place: &impl Place, page: u64, order: Order) {
        if self.with(|w| w.memory.settings.era) == Era::Twin {
            self.read(open, place, page * PAGE, 1).await;
            return;
        }
        let file = open.file;
        loop {
            if self.with(|w| w.pages(file).is_none_or(|p| !p.has(page, Mark::Present))) {
                self.fetch_for_fault(open, place, page, order).await;
            } else if order != Order::Random {
                self.ahead_of_mark(open, place, Ask { index: page, wanted: open.ra }).await;
            }
            if self.readable(file, page) {
                break;
            }
            self.wait(Wait::Page { file, page }).await;
        }
        self.copy(open, page, page, None);
    }

    /// Asks for a missing page of a map with what is to be read beside it. What `posix_fadvise` has said of the open file
    /// counts for its windows, but does not stop a fault from reading around its page.
    async fn fetch_for_fault(&self, open: &mut Open, place: &impl Place, page: u64, order: Order) {
        let (era, io) = self.with(|w| (w.memory.settings.era, w.memory.settings.io_pages));
        let limits = open.limits(io);
        let window = match order {
            Order::Random => return self.read_page(open.file, place, page).await,
            Order::Unsaid => open.stream.around(page, &limits),
            Order::Sequential => {
                let ask = Ask { index: page, wanted: open.ra };
                let found = self
                    .with(|w| w.pages(open.file).map(|p| open.stream.miss(era, ask, &limits, p)));
                found.unwrap_or_else(|| open.stream.around(page, &limits))
            }
        };
        self.fetch(open.file, place, window).await;
    }

    /// `POSIX_FADV_WILLNEED`: asks for the absent pages of a range, without a mark and without waiting for them. Since
    /// 4.10 a call asks for so much at most as one window may have.
    pub async fn will_need(&self, open: &Open, place: &impl Place, at: u64, len: u64) {
        let (era, io) = self.with(|w| (w.memory.settings.era, w.memory.settings.io_pages));
        let end = if len == 0 { open.size } else { at.saturating_add(len).min(open.size) };
        let (start, end) = (at / PAGE, end.div_ceil(PAGE));
        let most = match era {
            // Half of what is free, in pieces of 2 MiB.
            Era::OnDemand => {
                self.with(|w| w.memory.settings.pages.saturating_sub(w.memory.cached()) / 2)
            }
            _ => open.ra.max(io),
        };
        let end = end.min(start.saturating_add(most));
        let mut at = start;
        while at < end {
            let to = end.min(at + FORCED);
            self.fetch(open.file, place, Window { start: at, end: to, marker: None, folio: 1 })
                .await;
            at = to;
        }
    }

    fn readable(&self, file: u32, page: u64) -> bool {
        self.with(|w| w.pages(file).is_some_and(|p| p.has(page, Mark::Uptodate)))
    }

    /// Asks for the missing pages at the page, and for the read-ahead of its mark.
    async fn ahead(&self, open: &mut Open, place: &impl Place, ask: Ask) {
        let file = open.file;
        let missing = self.with(|w| w.pages(file).is_none_or(|p| !p.has(ask.index, Mark::Present)));
        if missing {
            let window = self.with(|w| {
                let (era, io) = (w.memory.settings.era, w.memory.settings.io_pages);
                let limits = open.limits(io);
                w.pages(file).map(|p| open.stream.miss(era, ask, &limits, p))
            });
            if let Some(window) = window {
                self.fetch(file, place, window).await;
            }
        }
        self.ahead_of_mark(open, place, ask).await;
    }

    /// Asks for the read-ahead of the page's mark.
    async fn ahead_of_mark(&self, open: &mut Open, place: &impl Place, ask: Ask) {
        let file = open.file;
        let window = self.with(|w| {
            let (era, io) = (w.memory.settings.era, w.memory.settings.io_pages);
            let limits = open.limits(io);
            let congested = w.congested[0];
            let pages = w.pages(file)?;
            let (head, after) = pages.folio(ask.index);
            if !pages.has(head, Mark::Readahead) || pages.has(head, Mark::Writeback) {
                return None;
            }
            pages.set(head, head + 1, Mark::Readahead, false);
            // The window is lost. Since 5.18 nothing is congested.
            if congested {
                return None;
            }
            open.stream.marked(era, ask, after - head, &limits, pages)
        });
        if let Some(window) = window {
            self.fetch(file, place, window).await;
        }
    }

    /// Reads the absent pages of a window; each run of them is submitted by itself.
    async fn fetch(&self, file: u32, place: &impl Place, window: Window) {
        self.with(|w| w.memory.make_room(window.end - window.start));
        let mut at = window.start;
        while let Some((from, to)) = self.with(|w| {
            let pages = w.pages(file)?;
            let from = pages.next(at, window.end, Mark::Present, false)?;
            Some((from, pages.next(from, window.end, Mark::Present, true).unwrap_or(window.end)))
        }) {
            self.with(|w| {
                // Bios of read-ahead say so since 4.19.
                let flags = match w.memory.settings.era {
                    Era::Capped | Era::Split | Era::Aligned => Flags::RAHEAD,
                    Era::Twin | Era::OnDemand | Era::History => Flags::NONE,
                };
                insert(w, file, from, to, window);
                let mut page = from;
                while page < to {
                    let (sector, pages) = place.at(page);
                    let end = to.min(page + pages.max(1));
                    match sector {
                        Some(sector) => {
                            let sectors = u32::try_from((end - page) * 8).unwrap_or(u32::MAX);
                            let out = BioOut { id: 0, op: Op::Read, flags, sector, sectors };
                            w.bio(self.task(), out, Done::Read { file, from: page, to: end }, None);
                        }
                        None => {
                            if let Some(p) = w.pages(file) {
                                p.set(page, end, Mark::Uptodate, true);
                            }
                        }
                    }
                    page = end;
                }
            });
            if self.with(|w| w.has_bios(self.task())) {
                self.wait(Wait::Submit).await;
            }
            at = to;
        }
    }

    /// Before 2.6.23: the engine is called at the first page and at each that it names.
    async fn read_twin(
        &self,
        open: &mut Open,
        place: &impl Place,
        (mut index, last): (u64, u64),
        wanted: u64,
    ) {
        let (file, mut look) = (open.file, index);
        while index <= last {
            if index == look {
                let mut windows = Vec::new();
                look = self.with(|w| {
                    let limits = open.limits(w.memory.settings.io_pages);
                    open.stream.twin.congested = w.congested[0];
                    let Some(pages) = w.pages(file) else { return last + 1 };
                    open.stream.twin.call(index, wanted - index, &limits, |window| {
                        windows.push(window);
                        window.end
                            - window.start
                            - pages.count(window.start, window.end, Mark::Present)
                    })
                });
                for window in windows {
                    self.fetch(file, place, window).await;
                }
            }
            if self.with(|w| w.pages(file).is_none_or(|p| !p.has(index, Mark::Present))) {
                open.stream.twin.miss();
                self.read_page(file, place, index).await;
            } else if !self.readable(file, index) {
                self.wait(Wait::Page { file, page: index }).await;
                continue;
            }
            index = self.copy(open, index, last.min(look - 1), None);
        }
    }

    /// Copies the readable pages from `index` on, up to one with a mark; the page to go on with.
    fn copy(&self, open: &Open, index: u64, last: u64, previous: Option<u64>) -> u64 {
        self.with(|w| {
            let Some(pages) = w.pages(open.file) else { return last + 1 };
            let mut end = pages.next(index, last + 1, Mark::Uptodate, false).unwrap_or(last + 1);
            // A mark ends the batch, unless it was looked at already.
            let next_folio = pages.folio(index).1;
            if let Some(mark) = pages.next(next_folio.min(end), end, Mark::Readahead, true) {
                end = mark;
            }
            let again = previous.is_some_and(|p| p / PAGE == index);
            let from = if again { index + 1 } else { index };
            if from < end {
                w.memory.touch(open.file, from, end);
            }
            end
        })
    }
}

fn insert(w: &mut super::World, file: u32, from: u64, to: u64, window: Window) {
    let mut at = from;
    while at < to {
        let mut n = window.folio;
        while !at.is_multiple_of(n) || at + n > to {
            n /= 2;
        }
        // Pages of their own go in at once.
        let end = if n == 1 && window.folio == 1 { to } else { at + n };
        w.memory.insert(file, at, end, n);
        at = end;
    }
    if let (Some(marker), Some(pages)) = (window.marker, w.pages(file))
        && (from..to).contains(&marker)
    {
        let head = pages.folio(marker).0;
        pages.set(head, head + 1, Mark::Readahead, true);
    }
}

#[cfg(test)]
mod tests;
