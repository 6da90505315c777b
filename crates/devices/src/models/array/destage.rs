//! How the write cache is written out: by rows, several runs of neighbours at a time.

use iosched_types::{Nanos, Op};

use super::layout::span;
use super::{Array, Host, LegWork, Slot};
use crate::Command;
use crate::params::{Destage, Raid};

/// A row that is being written out.
#[derive(Debug)]
pub(super) struct Row {
    row: u64,
    /// The run that it belongs to.
    run: usize,
    /// Its elements with the pages that are written.
    pages: Vec<(u64, u64)>,
    /// Commands of the legs that are under way.
    pending: u32,
    /// Old data and parity are being read; the writes follow.
    reading: bool,
    /// Writes that go through and end with the row.
    through: Vec<Slot>,
}

impl Array {
    /// The elements of a row.
    fn of_row(&self, row: u64) -> std::ops::Range<u64> {
        row * self.layout.width..(row + 1) * self.layout.width
    }

    /// Marks what a write covers; the rows.
    pub(super) fn mark_dirty(&mut self, c: Command) -> Vec<u64> {
        let mut rows = Vec::new();
        for (element, pages) in self.layout.elements(c.offset, c.len) {
            let row = self.layout.row(element);
            self.dirty.mark(element, row, pages);
            self.read.drop(element, pages);
            if rows.last() != Some(&row) {
                rows.push(row);
            }
        }
        rows
    }

    /// What is discarded need not be written out.
    pub(super) fn discard(&mut self, c: Command) {
        for (element, pages) in self.layout.elements(c.offset, c.len) {
            let row = self.layout.row(element);
            let of_row = self.of_row(row);
            self.dirty.forget(element, row, pages, of_row);
            self.read.drop(element, pages);
        }
    }

    /// Whether the cache is to be written out.
    fn wants_cleaning(&mut self) -> bool {
        let fill = u128::from(self.dirty.bytes()) * 256;
        let cache = u128::from(self.p.cache);
        let forced = !self.space.is_empty() || self.idle || self.p.cache == 0;
        if forced || fill > u128::from(self.p.hi) * cache {
            self.cleaning = true;
        } else if fill < u128::from(self.p.lo) * cache {
            self.cleaning = false;
        }
        self.cleaning
    }

    /// Begins runs as long as the cache is to be written out and there is one free. The legs get all rows of a run at once,
    /// so that they write them in one go.
    pub(super) fn destage(&mut self, now: Nanos) {
        while self.wants_cleaning()
            && let Some(run) = self.runs.iter().position(|rows| *rows == 0)
        {
            let first = match self.p.dord {
                Destage::Age => self.dirty.oldest(),
                Destage::Scan => self.dirty.next_from(self.cursor),
            };
            let Some(first) = first else { return };
            let mut last = first;
            while last - first + 1 < self.p.drun && self.dirty.waits(last + 1) {
                last += 1;
            }
            self.cursor = last + 1;
            self.runs[run] = last - first + 1;
            for row in first..=last {
                self.dirty.begin(row);
                self.begin_row(now, row, run);
            }
        }
    }

    fn begin_row(&mut self, now: Nanos, row: u64, run: usize) {
        let all = self.layout.all();
        let pages: Vec<(u64, u64)> = self
            .of_row(row)
            .map(|e| (e, self.dirty.of(e)))
            .filter(|(_, pages)| *pages != 0)
            .collect();
        let whole = pages.iter().all(|(_, pages)| *pages == all);
        let full = whole && pages.len() as u64 == self.layout.width;
        match full {
            true => self.full_rows += 1,
            false => self.partial_rows += 1,
        }
        let reading = self.layout.raid == Raid::Raid5 && !full;
        let through = self.through.remove(&row).unwrap_or_default();
        let work = Row { row, run, pages, pending: 0, reading, through };
        let at = match self.free_rows.pop() {
            Some(at) => at,
            None => {
                self.rows.push(None);
                self.rows.len() - 1
            }
        };
        self.row_commands(now, at, work, if reading { Op::Read } else { Op::Write });
    }

    /// Sends the legs the spans of a row.
    fn row_commands(&mut self, now: Nanos, at: usize, mut work: Row, op: Op) {
        let base = work.row * self.layout.el;
        let mut commands = Vec::new();
        let mut union = 0;
        for (element, pages) in &work.pages {
            let (from, len) = span(*pages);
            let leg = self.layout.leg(*element);
            commands.push((leg, (op, base + from, len)));
            if self.layout.raid == Raid::Raid10 {
                commands.push((leg + 1, (op, base + from, len)));
            }
            union |= pages;
        }
        if self.layout.raid == Raid::Raid5 && union != 0 {
            let (from, len) = span(union);
            commands.push((self.layout.parity(work.row), (op, base + from, len)));
        }
        work.pending = commands.len() as u32;
        self.rows[at] = Some(work);
        if commands.is_empty() {
            return self.row_ends(now, at);
        }
        for (leg, command) in commands {
            self.give_leg(now, leg, command, LegWork::Row { at });
        }
    }

    /// A leg has done its part of a row.
    pub(super) fn row_step(&mut self, now: Nanos, at: usize) {
        let Some(work) = &mut self.rows[at] else { return };
        work.pending -= 1;
        if work.pending > 0 {
            return;
        }
        if std::mem::take(&mut work.reading) {
            if let Some(work) = self.rows[at].take() {
                self.row_commands(now, at, work, Op::Write);
            }
            return;
        }
        self.row_ends(now, at);
    }

    fn row_ends(&mut self, now: Nanos, at: usize) {
        let Some(work) = self.rows[at].take() else { return };
        self.free_rows.push(at);
        for (element, pages) in &work.pages {
            self.dirty.cleaned(*element, *pages);
        }
        let of_row = self.of_row(work.row);
        self.dirty.end(work.row, of_row);
        self.runs[work.run] -= 1;
        for slot in work.through {
            self.row_of_write_ends(now, slot);
        }
        self.make_room(now);
    }

    fn row_of_write_ends(&mut self, now: Nanos, slot: Slot) {
        let waits = matches!(self.hosts[slot as usize], Some(Host { missing: 1.., .. }));
        debug_assert!(waits, "a write that goes through waits for its rows");
        self.arrived(now, slot);
    }
}
