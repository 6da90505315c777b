//! Reads: what the caches have, what the legs are asked for, and reading ahead.

use std::collections::BTreeMap;

use iosched_types::{Bytes, Nanos, Op};

use super::layout::span;
use super::{Array, LegWork, Slot};
use crate::Command;
use crate::params::Raid;

/// Elements that legs are reading.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    /// Element, pages, and who waits, by number.
    fills: BTreeMap<u64, (u64, u64, Vec<Slot>)>,
    /// The numbers of an element's fills.
    of: BTreeMap<u64, Vec<u64>>,
    created: u64,
}

impl UnderWay {
    /// The fill that brings all of these pages.
    fn with(&self, element: u64, pages: u64) -> Option<u64> {
        let all = self.of.get(&element)?;
        all.iter().copied().find(|n| self.fills.get(n).is_some_and(|f| f.1 & pages == pages))
    }

    fn begin(&mut self, element: u64, pages: u64, waiting: Option<Slot>) -> u64 {
        let number = self.created;
        self.created += 1;
        self.fills.insert(number, (element, pages, waiting.into_iter().collect()));
        self.of.entry(element).or_default().push(number);
        number
    }

    fn wait(&mut self, number: u64, slot: Slot) {
        if let Some(fill) = self.fills.get_mut(&number) {
            fill.2.push(slot);
        }
    }

    fn end(&mut self, number: u64) -> Option<(u64, u64, Vec<Slot>)> {
        let fill = self.fills.remove(&number)?;
        if let Some(all) = self.of.get_mut(&fill.0) {
            all.retain(|n| *n != number);
            if all.is_empty() {
                self.of.remove(&fill.0);
            }
        }
        Some(fill)
    }
}

/// Sequential readers, the least recently seen goes first.
#[derive(Debug)]
pub(super) struct Streams {
    most: usize,
    /// Where each goes on, and how many commands have done so; the last seen is the last.
    all: Vec<(Bytes, u64)>,
}

impl Streams {
    pub(super) fn new(most: usize) -> Streams {
        Streams { most, all: Vec::new() }
    }

    /// Notes a command; how many of its stream came one behind the other.
    fn see(&mut self, at: Bytes, len: Bytes) -> u64 {
        let known = self.all.iter().position(|s| s.0 == at);
        let count = known.map_or(1, |i| self.all.remove(i).1 + 1);
        if self.all.len() == self.most {
            self.all.remove(0);
        }
        self.all.push((at + len, count));
        count
    }
}

impl Array {
    /// The controller looks where a read's data are.
    pub(super) fn look(&mut self, now: Nanos, slot: Slot, c: Command) {
        // One more than there are parts, until all have been looked for.
        self.host(slot).missing = 1;
        let mut all_there = true;
        for (element, pages) in self.layout.elements(c.offset, c.len) {
            let lack = pages & !self.dirty.of(element) & !self.read.of(element);
            if lack == 0 {
                self.read.put(element, 0);
                continue;
            }
            all_there = false;
            self.host(slot).missing += 1;
            match self.under_way.with(element, lack) {
                Some(number) => self.under_way.wait(number, slot),
                None => self.fill(now, element, lack, Some(slot)),
            }
        }
        self.hits += u64::from(all_there);
        if self.streams.see(c.offset, c.len) >= self.p.ra_n {
            self.read_ahead(now, c.offset + c.len);
        }
        self.arrived(now, slot);
    }

    fn read_ahead(&mut self, now: Nanos, from: Bytes) {
        let to = (from + self.p.ra_len).min(self.p.cap());
        if to <= from {
            return;
        }
        let all = self.layout.all();
        for element in from / self.p.el..to.div_ceil(self.p.el) {
            let lack = all & !self.dirty.of(element) & !self.read.of(element);
            if lack != 0 && self.under_way.with(element, lack).is_none() {
                self.fill(now, element, lack, None);
            }
        }
    }

    /// Asks a leg for pages of an element; of two mirrors the one with less to do.
    fn fill(&mut self, now: Nanos, element: u64, pages: u64, waiting: Option<Slot>) {
        let (from, len) = span(pages);
        let first = self.layout.leg(element);
        let busier = |a: usize, b: usize| self.at_leg[a] > self.at_leg[b];
        let leg = match self.layout.raid {
            Raid::Raid10 if busier(first, first + 1) => first + 1,
            _ => first,
        };
        let offset = self.layout.row(element) * self.p.el + from;
        let fill = self.under_way.begin(element, pages, waiting);
        self.give_leg(now, leg, (Op::Read, offset, len), LegWork::Fill { fill });
    }

    /// Pages are there.
    pub(super) fn filled(&mut self, now: Nanos, number: u64) {
        let Some((element, pages, waiting)) = self.under_way.end(number) else { return };
        self.read.put(element, pages);
        for slot in waiting {
            self.arrived(now, slot);
        }
    }
}
