//! Intrusive lists over the links inside requests: no allocation, O(1) removal.

use iosched_types::request::Link;
use iosched_types::{Bio, Flags, NO_REQ, ReqId, Request, Requests};

use crate::api::MergeKind;

/// How far back a software queue looks for a merge candidate.
const NEWEST: usize = 8;

/// Which pair of links of a request a list uses.
pub trait Field {
    /// The links.
    fn of(r: &mut Request) -> &mut Link;
    /// The links, to read.
    fn get(r: &Request) -> Link;
}

/// The `fifo` links.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;
/// The `list` links.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second;

impl Field for Fifo {
    fn of(r: &mut Request) -> &mut Link {
        &mut r.fifo
    }
    fn get(r: &Request) -> Link {
        r.fifo
    }
}

impl Field for Second {
    fn of(r: &mut Request) -> &mut Link {
        &mut r.list
    }
    fn get(r: &Request) -> Link {
        r.list
    }
}

/// A doubly linked list of requests.
#[derive(Clone, Copy, Debug)]
pub struct List<F> {
    head: ReqId,
    tail: ReqId,
    len: u32,
    field: std::marker::PhantomData<F>,
}

impl<F: Field> Default for List<F> {
    fn default() -> Self {
        List { head: NO_REQ, tail: NO_REQ, len: 0, field: std::marker::PhantomData }
    }
}

fn some(id: ReqId) -> Option<ReqId> {
    (id != NO_REQ).then_some(id)
}

impl<F: Field> List<F> {
    /// First request.
    #[must_use]
    #[inline]
    pub fn head(&self) -> Option<ReqId> {
        some(self.head)
    }

    /// Last request.
    #[must_use]
    pub fn tail(&self) -> Option<ReqId> {
        some(self.tail)
    }

    /// Requests in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it holds nothing.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The request after `id`.
    #[must_use]
    pub fn next(&self, reqs: &Requests, id: ReqId) -> Option<ReqId> {
        some(F::get(&reqs[id]).next)
    }

    /// The request before `id`.
    #[must_use]
    pub fn prev(&self, reqs: &Requests, id: ReqId) -> Option<ReqId> {
        some(F::get(&reqs[id]).prev)
    }

    /// Appends.
    #[inline(always)]
    pub fn push_back(&mut self, reqs: &mut Requests, id: ReqId) {
        *F::of(&mut reqs[id]) = Link { prev: self.tail, next: NO_REQ };
        match some(self.tail) {
            Some(t) => F::of(&mut reqs[t]).next = id,
            None => self.head = id,
        }
        self.tail = id;
        self.len += 1;
    }

    /// Prepends.
    pub fn push_front(&mut self, reqs: &mut Requests, id: ReqId) {
        *F::of(&mut reqs[id]) = Link { prev: NO_REQ, next: self.head };
        match some(self.head) {
            Some(h) => F::of(&mut reqs[h]).prev = id,
            None => self.tail = id,
        }
        self.head = id;
        self.len += 1;
    }

    /// Inserts `id` right before `before`.
    pub fn insert_before(&mut self, reqs: &mut Requests, before: ReqId, id: ReqId) {
        let Some(prev) = self.prev(reqs, before) else { return self.push_front(reqs, id) };
        *F::of(&mut reqs[id]) = Link { prev, next: before };
        F::of(&mut reqs[prev]).next = id;
        F::of(&mut reqs[before]).prev = id;
        self.len += 1;
    }

    /// Takes `id` out; it must be in this list.
    #[inline(always)]
    pub fn remove(&mut self, reqs: &mut Requests, id: ReqId) {
        let Link { prev, next } = F::get(&reqs[id]);
        match some(prev) {
            Some(p) => F::of(&mut reqs[p]).next = next,
            None => self.head = next,
        }
        match some(next) {
            Some(n) => F::of(&mut reqs[n]).prev = prev,
            None => self.tail = prev,
        }
        *F::of(&mut reqs[id]) = Link::default();
        self.len -= 1;
    }

    /// Takes the first out.
    pub fn pop_front(&mut self, reqs: &mut Requests) -> Option<ReqId> {
        let id = self.head()?;
        self.remove(reqs, id);
        Some(id)
    }

    /// Puts `new` in the place of `old`. `old` leaves the list.
    pub fn replace(&mut self, reqs: &mut Requests, old: ReqId, new: ReqId) {
        self.insert_before(reqs, old, new);
        self.remove(reqs, old);
    }

    /// All requests from the head on.
    pub fn iter<'a>(&self, reqs: &'a Requests) -> impl Iterator<Item = ReqId> + use<'a, F> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            let id = some(at)?;
            at = F::get(&reqs[id]).next;
            Some(id)
        })
    }

    /// The merge search of a blk-mq software queue: of the newest eight requests, newest first, the first
    /// of the same operation that `bio` continues or precedes and that has room for it. (6.12: two processes at one place of a disk
    /// with one tag; a read that does not fit in front of one request goes behind the next.)
    #[must_use]
    pub fn newest_match(
        &self,
        reqs: &Requests,
        bio: &Bio,
        max_sectors: u32,
    ) -> Option<(ReqId, MergeKind)> {
        let mut at = self.tail;
        for _ in 0..NEWEST {
            let id = some(at)?;
            let r = &reqs[id];
            let has_room = r.sectors + bio.sectors <= max_sectors;
            if r.op == bio.op && has_room && !r.flags.has(Flags::NOMERGE) {
                if r.end() == bio.sector {
                    return Some((id, MergeKind::Back));
                }
                if bio.end() == r.sector {
                    return Some((id, MergeKind::Front));
                }
            }
            at = F::get(r).prev;
        }
        None
    }
}
