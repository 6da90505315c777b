//! What the caches hold: dirty pages by element, read pages by element.

use std::collections::BTreeMap;

use iosched_types::Bytes;

use super::layout::{PAGE, mask};

/// The write cache.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    el: Bytes,
    /// Dirty pages of each element.
    pages: BTreeMap<u64, u64>,
    /// Pages that were written again while their row was being written out.
    again: BTreeMap<u64, u64>,
    reserved: Bytes,
    bytes: Bytes,
    /// Rows by age, and the age of each.
    by_age: BTreeMap<u64, u64>,
    age: BTreeMap<u64, u64>,
    /// Rows that are being written out.
    under_way: BTreeMap<u64, ()>,
    created: u64,
}

impl Dirty {
    pub(super) fn new(el: Bytes) -> Dirty {
        Dirty { el, ..Dirty::default() }
    }

    /// Bytes that are dirty or on their way here.
    pub(super) fn used(&self) -> Bytes {
        self.bytes + self.reserved
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(super) fn reserve(&mut self, bytes: Bytes) {
        self.reserved += bytes;
    }

    pub(super) fn unreserve(&mut self, bytes: Bytes) {
        self.reserved -= bytes;
    }

    /// What a write adds: its pages that are not dirty yet.
    pub(super) fn new_bytes(&self, at: Bytes, len: Bytes) -> Bytes {
        let (mut e, end) = (at / self.el, at + len);
        let mut new = 0;
        while e * self.el < end {
            let from = at.max(e * self.el) - e * self.el;
            let to = end.min((e + 1) * self.el) - e * self.el;
            let pages = mask(from / PAGE, to.div_ceil(PAGE)) & !self.of(e);
            new += Bytes::from(pages.count_ones()) * PAGE;
            e += 1;
        }
        new
    }

    /// Dirty pages of an element.
    pub(super) fn of(&self, element: u64) -> u64 {
        self.pages.get(&element).copied().unwrap_or(0)
    }

    pub(super) fn mark(&mut self, element: u64, row: u64, pages: u64) {
        let had = self.pages.entry(element).or_default();
        self.bytes += Bytes::from((pages & !*had).count_ones()) * PAGE;
        *had |= pages;
        if self.under_way.contains_key(&row) {
            *self.again.entry(element).or_default() |= pages;
        } else {
            self.enter(row);
        }
    }

    /// A row has its place in the order, at the end if it has none.
    fn enter(&mut self, row: u64) {
        if !self.age.contains_key(&row) {
            self.age.insert(row, self.created);
            self.by_age.insert(self.created, row);
            self.created += 1;
        }
    }

    /// Whether the row is dirty and nobody writes it out.
    pub(super) fn waits(&self, row: u64) -> bool {
        self.age.contains_key(&row)
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.by_age.values().next().copied()
    }

    /// The next dirty row from `row` on, around.
    pub(super) fn next_from(&self, row: u64) -> Option<u64> {
        self.age.range(row..).chain(self.age.range(..row)).next().map(|(r, _)| *r)
    }

    /// A row is being written out.
    pub(super) fn begin(&mut self, row: u64) {
        if let Some(age) = self.age.remove(&row) {
            self.by_age.remove(&age);
        }
        self.under_way.insert(row, ());
    }

    /// An element's pages `written` are on the legs.
    pub(super) fn cleaned(&mut self, element: u64, written: u64) {
        let again = self.again.remove(&element).unwrap_or(0);
        let Some(pages) = self.pages.get_mut(&element) else { return };
        let clean = *pages & written & !again;
        *pages &= !clean;
        self.bytes -= Bytes::from(clean.count_ones()) * PAGE;
        if *pages == 0 {
            self.pages.remove(&element);
        }
    }

    /// A row is written out; what is dirty in it waits again, behind the others.
    pub(super) fn end(&mut self, row: u64, elements: std::ops::Range<u64>) {
        self.under_way.remove(&row);
        if self.pages.range(elements).next().is_some() {
            self.enter(row);
        }
    }

    /// Forgets pages, as after a discard. Those of a row that is being written out are written all the same.
    pub(super) fn forget(
        &mut self,
        element: u64,
        row: u64,
        pages: u64,
        row_elements: std::ops::Range<u64>,
    ) {
        if self.under_way.contains_key(&row) {
            return;
        }
        self.cleaned(element, pages);
        if self.pages.range(row_elements).next().is_none()
            && let Some(age) = self.age.remove(&row)
        {
            self.by_age.remove(&age);
        }
    }
}

/// The read cache: pages by element, the least recently used goes first.
#[derive(Debug)]
pub(super) struct ReadCache {
    lines: usize,
    pages: BTreeMap<u64, (u64, u64)>,
    by_use: BTreeMap<u64, u64>,
    used: u64,
}

impl ReadCache {
    /// Room for so many elements.
    pub(super) fn new(lines: usize) -> ReadCache {
        ReadCache { lines, pages: BTreeMap::new(), by_use: BTreeMap::new(), used: 0 }
    }

    pub(super) fn of(&self, element: u64) -> u64 {
        self.pages.get(&element).map_or(0, |(pages, _)| *pages)
    }

    /// Notes a use, of pages that are there or come now.
    pub(super) fn put(&mut self, element: u64, pages: u64) {
        // A use of what is not there is none.
        if self.lines == 0 || pages == 0 && !self.pages.contains_key(&element) {
            return;
        }
        let at = self.used;
        self.used += 1;
        let entry = self.pages.entry(element).or_insert((0, at));
        entry.0 |= pages;
        self.by_use.remove(&entry.1);
        entry.1 = at;
        self.by_use.insert(at, element);
        if self.pages.len() > self.lines
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.pages.remove(&oldest);
        }
    }

    /// Pages that were written are old here.
    pub(super) fn drop(&mut self, element: u64, pages: u64) {
        if let Some(entry) = self.pages.get_mut(&element) {
            entry.0 &= !pages;
        }
    }
}
