//! The bios inside requests: a pool of singly linked entries.

use iosched_types::{BioId, NO_REQ, Request};

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: BioId,
    next: u32,
}

/// All bios of a queue. Slots are reused, so nothing is allocated in steady state.
#[derive(Debug, Default)]
pub(crate) struct BioPool {
    slots: Vec<Entry>,
    free: Vec<u32>,
}

impl BioPool {
    #[inline]
    fn add(&mut self, id: BioId) -> u32 {
        let entry = Entry { id, next: NO_REQ };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = entry;
            return slot;
        }
        self.slots.push(entry);
        (self.slots.len() - 1) as u32
    }

    /// Makes `id` the only bio of a new request.
    #[inline]
    pub(crate) fn start(&mut self, r: &mut Request, id: BioId) {
        let slot = self.add(id);
        (r.bios.prev, r.bios.next) = (slot, slot);
    }

    /// Appends a bio.
    pub(crate) fn append(&mut self, r: &mut Request, id: BioId) {
        let slot = self.add(id);
        self.slots[r.bios.next as usize].next = slot;
        r.bios.next = slot;
    }

    /// Prepends a bio.
    pub(crate) fn prepend(&mut self, r: &mut Request, id: BioId) {
        let slot = self.add(id);
        self.slots[slot as usize].next = r.bios.prev;
        r.bios.prev = slot;
    }

    /// Appends the chain of another request.
    pub(crate) fn join(&mut self, into: &mut Request, gone: &Request) {
        if gone.bios.prev == NO_REQ {
            return;
        }
        self.slots[into.bios.next as usize].next = gone.bios.prev;
        into.bios.next = gone.bios.next;
    }

    /// Takes the first bio out of a request.
    #[inline]
    pub(crate) fn pop(&mut self, r: &mut Request) -> Option<BioId> {
        let slot = r.bios.prev;
        if slot == NO_REQ {
            return None;
        }
        let Entry { id, next } = self.slots[slot as usize];
        r.bios.prev = next;
        self.free.push(slot);
        Some(id)
    }

    /// The bios of a request in order, without taking them.
    pub(crate) fn iter(&self, r: &Request) -> impl Iterator<Item = BioId> + '_ {
        let mut at = r.bios.prev;
        std::iter::from_fn(move || {
            let e = *self.slots.get(at as usize).filter(|_| at != NO_REQ)?;
            at = e.next;
            Some(e.id)
        })
    }
}
