//! Shared buffers: which pages are in memory, and which one goes next (the clock sweep).

use std::collections::BTreeMap;

use super::server::Page;

/// A buffer.
#[derive(Clone, Debug, Default)]
struct Slot {
    page: Option<Page>,
    /// How often it was used, up to 5; the sweep takes one off.
    usage: u8,
    pins: u32,
    dirty: bool,
    /// Where the log must be durable to before the page may be written.
    lsn: u64,
    /// It is being read: who waits for it.
    reading: Option<Vec<usize>>,
}

/// The buffers.
#[derive(Debug)]
pub(super) struct Buffers {
    slots: Vec<Slot>,
    places: BTreeMap<Page, usize>,
    hand: usize,
    /// Buffers that were taken since the background writer looked.
    pub(super) taken: u64,
}

/// What looking for a page comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is there, and pinned.
    Here,
    /// Another process reads it, and will wake this one.
    Wait,
    /// It must be read; the buffer is this process's.
    Read,
    /// A dirty page must be written first. It is clean and pinned from now on.
    Write(Page, u64),
}

impl Buffers {
    pub(super) fn new(n: usize) -> Buffers {
        Buffers { slots: vec![Slot::default(); n], places: BTreeMap::new(), hand: 0, taken: 0 }
    }

    /// Looks for a page, for that process. It takes the place of `old`, which the process has just written, if that is
    /// still clean and unused.
    pub(super) fn find(&mut self, page: Page, process: usize, old: Option<Page>) -> Found {
        if let Some(place) = self.places.get(&page) {
            let slot = &mut self.slots[*place];
            if let Some(waiting) = &mut slot.reading {
                waiting.push(process);
                return Found::Wait;
            }
            slot.pins += 1;
            slot.usage = (slot.usage + 1).min(5);
            return Found::Here;
        }
        let unused = |s: &Slot| !s.dirty && s.pins == 0 && s.usage == 0;
        let written = old.and_then(|old| self.places.get(&old).copied());
        let place = match written.filter(|place| unused(&self.slots[*place])) {
            Some(place) => place,
            None => self.sweep(),
        };
        let slot = &mut self.slots[place];
        if let (true, Some(old)) = (slot.dirty, slot.page) {
            slot.dirty = false;
            slot.pins += 1;
            return Found::Write(old, slot.lsn);
        }
        if let Some(old) = slot.page.take() {
            self.places.remove(&old);
        }
        *slot = Slot {
            page: Some(page),
            usage: 1,
            pins: 1,
            reading: Some(Vec::new()),
            ..Slot::default()
        };
        self.places.insert(page, place);
        self.taken += 1;
        Found::Read
    }

    /// The next buffer that nobody holds and that was not used lately.
    fn sweep(&mut self) -> usize {
        loop {
            let place = self.hand;
            self.hand = (place + 1) % self.slots.len();
            let slot = &mut self.slots[place];
            if slot.pins > 0 {
                continue;
            }
            if slot.usage == 0 {
                return place;
            }
            slot.usage -= 1;
        }
    }

    fn slot(&mut self, page: Page) -> Option<&mut Slot> {
        let place = *self.places.get(&page)?;
        self.slots.get_mut(place)
    }

    /// A page has been read. Returns who waits for it.
    pub(super) fn is_read(&mut self, page: Page) -> Vec<usize> {
        self.slot(page).and_then(|s| s.reading.take()).unwrap_or_default()
    }

    /// A page is let go.
    pub(super) fn unpin(&mut self, page: Page) {
        if let Some(slot) = self.slot(page) {
            slot.pins = slot.pins.saturating_sub(1);
        }
    }

    /// A page is changed by what the log has up to there.
    pub(super) fn change(&mut self, page: Page, lsn: u64) {
        if let Some(slot) = self.slot(page) {
            slot.dirty = true;
            slot.lsn = lsn;
        }
    }

    /// All dirty pages, in the order of files.
    pub(super) fn dirty(&self) -> Vec<Page> {
        let is = |(page, place): (&Page, &usize)| self.slots[*place].dirty.then_some(*page);
        self.places.iter().filter_map(is).collect()
    }

    /// Takes a page to be written, if it still is dirty: it counts as clean from now on, and is pinned.
    pub(super) fn clean(&mut self, page: Page) -> Option<u64> {
        let slot = self.slot(page).filter(|s| s.dirty)?;
        slot.dirty = false;
        slot.pins += 1;
        Some(slot.lsn)
    }

    /// Dirty pages among the next `n` that the sweep comes to and would take.
    pub(super) fn ahead(&self, n: usize) -> Vec<Page> {
        let next = (0..n.min(self.slots.len())).map(|i| (self.hand + i) % self.slots.len());
        let slots = next.map(|i| &self.slots[i]);
        slots.filter(|s| s.dirty && s.pins == 0 && s.usage == 0).filter_map(|s| s.page).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Table::Accounts;
    use super::*;

    #[test]
    fn the_sweep_spares_what_is_used_and_writes_what_is_dirty() {
        let mut b = Buffers::new(2);
        for page in [1, 2] {
            assert_eq!(b.find((Accounts, page), 0, None), Found::Read);
            assert_eq!(b.find((Accounts, page), 1, None), Found::Wait);
            assert_eq!(b.is_read((Accounts, page)), [1]);
            b.unpin((Accounts, page));
        }
        b.change((Accounts, 2), 77);
        assert_eq!(b.dirty(), [(Accounts, 2)]);
        // Page 1 is used again: page 2 goes, after it is written.
        assert_eq!(b.find((Accounts, 1), 0, None), Found::Here);
        assert_eq!(b.find((Accounts, 3), 0, None), Found::Write((Accounts, 2), 77));
        b.unpin((Accounts, 2));
        assert_eq!(b.find((Accounts, 3), 0, Some((Accounts, 2))), Found::Read);
        assert!(b.dirty().is_empty());
        assert_eq!(b.clean((Accounts, 3)), None);
    }
}
