//! The bios inside requests. The first is in the request itself; merged ones are in a pool of singly linked entries.

use iosched_types::request::{Link, NO_BIO};
use iosched_types::{BioId, NO_REQ, Request};

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: BioId,
    next: u32,
}

/// The bios behind the first of each request. Slots are reused, so nothing is allocated in steady state.
#[derive(Debug, Default)]
pub(crate) struct BioPool {
    slots: Vec<Entry>,
    free: Vec<u32>,
}

impl BioPool {
    fn add(&mut self, id: BioId, next: u32) -> u32 {
        let entry = Entry { id, next };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = entry;
            return slot;
        }
        self.slots.push(entry);
        (self.slots.len() - 1) as u32
    }

    /// Appends a bio.
    pub(crate) fn append(&mut self, r: &mut Request, id: BioId) {
        let slot = self.add(id, NO_REQ);
        self.append_chain(r, Link { prev: slot, next: slot });
    }

    /// Appends the chain from `prev` to `next`.
    fn append_chain(&mut self, r: &mut Request, chain: Link) {
        match r.bios.prev {
            NO_REQ => r.bios.prev = chain.prev,
            _ => self.slots[r.bios.next as usize].next = chain.prev,
        }
        r.bios.next = chain.next;
    }

    /// Prepends a bio.
    pub(crate) fn prepend(&mut self, r: &mut Request, id: BioId) {
        let slot = self.add(r.bio, r.bios.prev);
        if r.bios.prev == NO_REQ {
            r.bios.next = slot;
        }
        r.bios.prev = slot;
        r.bio = id;
    }

    /// Appends the bios of another request.
    pub(crate) fn join(&mut self, into: &mut Request, gone: &Request) {
        if gone.bio == NO_BIO {
            return;
        }
        let slot = self.add(gone.bio, gone.bios.prev);
        let next = if gone.bios.prev == NO_REQ { slot } else { gone.bios.next };
        self.append_chain(into, Link { prev: slot, next });
    }

    /// Takes the first bio out of a request.
    #[inline]
    pub(crate) fn pop(&mut self, r: &mut Request) -> Option<BioId> {
        let id = r.bio;
        if r.bios.prev == NO_REQ {
            r.bio = NO_BIO;
        } else {
            self.pop_further(r);
        }
        (id != NO_BIO).then_some(id)
    }

    #[cold]
    fn pop_further(&mut self, r: &mut Request) {
        let slot = r.bios.prev;
        Entry { id: r.bio, next: r.bios.prev } = self.slots[slot as usize];
        self.free.push(slot);
    }

    /// The bios of a request in order. They stay in the request.
    pub(crate) fn iter(&self, r: &Request) -> impl Iterator<Item = BioId> + '_ {
        let mut at = r.bios.prev;
        let rest = std::iter::from_fn(move || {
            let e = *self.slots.get(at as usize).filter(|_| at != NO_REQ)?;
            at = e.next;
            Some(e.id)
        });
        Some(r.bio).filter(|id| *id != NO_BIO).into_iter().chain(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use iosched_types::Op;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Appending, prepending, joining and taking, beside lists of their own.
        #[test]
        fn bios_stay_in_order(ops in proptest::collection::vec((0u8..4, any::<bool>()), 0..60)) {
            let mut pool = BioPool::default();
            let mut reqs = [0, 1].map(|_| Request::new(Op::Read, 0, 8));
            let mut lists: [VecDeque<BioId>; 2] = Default::default();
            for (id, (op, second)) in ops.into_iter().enumerate() {
                let (id, i) = (id as BioId, usize::from(second));
                if lists[i].is_empty() {
                    (reqs[i].bio, reqs[i].bios) = (id, Link::default());
                    lists[i].push_back(id);
                    continue;
                }
                let [a, b] = &mut reqs;
                match op {
                    0 => {
                        pool.append(&mut reqs[i], id);
                        lists[i].push_back(id);
                    }
                    1 => {
                        pool.prepend(&mut reqs[i], id);
                        lists[i].push_front(id);
                    }
                    2 if !lists[0].is_empty() => {
                        pool.join(a, b);
                        b.bio = NO_BIO;
                        b.bios = Link::default();
                        let gone = std::mem::take(&mut lists[1]);
                        lists[0].extend(gone);
                    }
                    _ => prop_assert_eq!(pool.pop(&mut reqs[i]), lists[i].pop_front()),
                }
                for (r, list) in reqs.iter().zip(&lists) {
                    prop_assert!(pool.iter(r).eq(list.iter().copied()));
                }
            }
            for (r, list) in reqs.iter_mut().zip(&mut lists) {
                let all: Vec<BioId> = std::iter::from_fn(|| pool.pop(r)).collect();
                prop_assert!(all.iter().eq(list.iter()));
            }
            prop_assert_eq!(pool.slots.len(), pool.free.len());
        }
    }
}
