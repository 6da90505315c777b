//! `write` through the page cache.

use iosched_types::{Flags, Op, TaskId};

use super::read::{Open, Place};
use super::timer::expires;
use super::world::{BioOut, Done, World};
use super::{Event, Kernel, Wait};
use crate::cache::PAGE;
use crate::cache::mapping::Mark;
use crate::cache::throttle::{Memory as Sight, OnCore, OnDevice, balance};
use crate::cache::writeback::Task;

impl World {
    /// The core of a task. Tasks are spread over the cores and stay.
    pub(super) fn core(&mut self, task: TaskId) -> &mut OnCore {
        let cores = &mut self.memory.cores;
        let n = cores.len();
        &mut cores[task as usize % n]
    }

    /// Writes a range inside a file if all of it is dirty already and the task need not look at the limits: then nothing
    /// changes but the order in which pages are forgotten. `None` is for [`Kernel::write`].
    pub fn write_cached(&mut self, task: TaskId, file: u32, at: u64, len: u64) -> Option<u64> {
        let (from, to) = (at / PAGE, (at + len).div_ceil(PAGE));
        let pages = self.pages(file)?;
        let ready = pages.next(from, to, Mark::Dirty, false).is_none()
            && pages.next(from, to, Mark::Uptodate, false).is_none();
        if !ready || self.must_look(task, to - from) {
            return None;
        }
        self.memory.touch(file, from, to);
        Some(len)
    }
}

impl Kernel {
    /// Writes `len` bytes at `at` into memory. Sleeps while too much is dirty, and for pages that are changed in part.
    pub async fn write(&self, open: &mut Open, place: &impl Place, at: u64, len: u64) -> u64 {
        let end = at + len;
        let mut page = at / PAGE;
        let last = end.div_ceil(PAGE);
        while page < last {
            self.throttle().await;
            if self.partial(open, page, at, end) {
                self.read_page(open.file, place, page).await;
            }
            // Up to the next look at the limits, except for a last page that is changed in part.
            let whole_end =
                if end.is_multiple_of(PAGE) || last - 1 == page { last } else { last - 1 };
            let room = self.with(|w| w.room(self.task()));
            let to = if !at.is_multiple_of(PAGE) && page == at / PAGE {
                page + 1
            } else {
                whole_end.min(page + room)
            };
            self.dirty(open.file, page, to);
            page = to;
        }
        open.size = open.size.max(end);
        len
    }

    /// Whether a page inside the file is changed in part and not in memory.
    fn partial(&self, open: &Open, page: u64, at: u64, end: u64) -> bool {
        let (from, to) = (page * PAGE, (page + 1) * PAGE);
        let whole = at <= from && (end >= to || end >= open.size);
        !whole
            && from < open.size
            && self.with(|w| w.pages(open.file).is_none_or(|p| !p.has(page, Mark::Uptodate)))
    }

    /// Reads one page and waits for it.
    pub(super) async fn read_page(&self, file: u32, place: &impl Place, page: u64) {
        let absent = self.with(|w| w.pages(file).is_none_or(|p| !p.has(page, Mark::Present)));
        if absent {
            self.with(|w| {
                w.memory.make_room(1);
                w.memory.insert(file, page, page + 1, 1);
                match place.at(page).0 {
                    Some(sector) => {
                        let out =
                            BioOut { id: 0, op: Op::Read, flags: Flags::NONE, sector, sectors: 8 };
                        let done = Done::Read { file, from: page, to: page + 1 };
                        w.bio(self.task(), out, done, None);
                    }
                    None => {
                        if let Some(p) = w.pages(file) {
                            p.set(page, page + 1, Mark::Uptodate, true);
                        }
                    }
                }
            });
            self.wait(Wait::Submit).await;
        }
        self.wait(Wait::Page { file, page }).await;
    }

    /// Pages become dirty, those that are absent appear.
    fn dirty(&self, file: u32, from: u64, to: u64) {
        self.with(|w| {
            w.memory.make_room(to - from);
            let mut at = from;
            while let Some((a, b)) = w.pages(file).and_then(|p| {
                let a = p.next(at, to, Mark::Present, false)?;
                Some((a, p.next(a, to, Mark::Present, true).unwrap_or(to)))
            }) {
                w.memory.insert(file, a, b, 1);
                at = b;
            }
            if let Some(p) = w.pages(file) {
                p.set(from, to, Mark::Uptodate, true);
            }
            let changed = w.memory.dirty_pages(file, from, to, w.now);
            w.memory.touch(file, from, to);
            w.dirtier(self.task()).dirtied += changed;
            w.core(self.task()).dirtied += changed;
            let now = w.now;
            // The first to make it dirty owns it.
            if changed > 0 && w.pages(file).is_some_and(|p| p.dirty() == changed) {
                w.own(file, self.task());
            }
            if changed > 0 && w.flusher.dirtied(file, now).is_some() {
                // It sleeps without a time: now it has one.
                w.signal(Event::Flusher);
            }
        });
    }

    /// Sleeps while the task has dirtied memory faster than it may.
    async fn throttle(&self) {
        let mut again = false;
        loop {
            let verdict = self.with(|w| {
                if w.memory.settings.writers_write {
                    return None;
                }
                let mut task = *w.dirtier(self.task());
                let core = *w.core(self.task());
                if !again && !task.due(&w.memory.device, &core) {
                    return None;
                }
                w.core(self.task()).dirtied = 0;
                let thresholds = w.memory.thresholds();
                let own = w.memory.share_of(thresholds.dirty, w.now);
                let sight =
                    Sight { dirty: w.memory.dirty, writeback: w.memory.writeback, thresholds };
                let device = OnDevice {
                    dirty: w.memory.dirty,
                    writeback: w.memory.writeback,
                    threshold: own,
                };
                let now = w.jiffies();
                let memory = &mut w.memory;
                memory.device.settle(now);
                let verdict =
                    balance(&mut task, &sight, &device, &mut memory.device, &mut memory.slow, now);
                *w.dirtier(self.task()) = task;
                w.writer_slept |= verdict.pause > 0;
                if verdict.start_writeback {
                    w.flusher.ask(Task::Background);
                    w.signal(Event::Flusher);
                }
                let tick = 1_000_000_000 / w.memory.settings.hz;
                let wheel = if w.memory.settings.wheel { tick } else { 0 };
                Some((verdict, expires(now * tick, verdict.pause * tick, wheel)))
            });
            let Some((verdict, until)) = verdict else { return };
            if verdict.pause > 0 {
                self.wait(Wait::Until(until)).await;
            }
            again = verdict.again;
            if !again {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
