//! What the elevator core knows of the requests inside the scheduler: a one-entry cache and the back-merge hash.

use iosched_schedulers::{Merging, Position};
use iosched_types::{NO_REQ, ReqId, Requests, Sector};

use super::rules::mergeable;
use crate::state;

/// Requests by the sector after their end, chained through [`Request::hash`], newest first.
#[derive(Debug)]
struct MergeHash {
    buckets: Vec<ReqId>,
    shift: u32,
}

impl MergeHash {
    /// A hash for about `n` requests. Its chains hardly ever hold more than one. The kernel has 64 buckets. More
    /// buckets find the same request, because a chain is searched newest first either way.
    fn new(n: u32) -> Self {
        let bits = (8 * n.max(64)).next_power_of_two().trailing_zeros().min(20);
        MergeHash { buckets: vec![NO_REQ; 1 << bits], shift: 64 - bits }
    }

    #[inline]
    fn bucket(&self, end: Sector) -> usize {
        (end.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline(always)]
    fn insert(&mut self, reqs: &mut Requests, id: ReqId) {
        let r = &mut reqs[id];
        let b = self.bucket(r.end());
        let head = std::mem::replace(&mut self.buckets[b], id);
        (r.hash.prev, r.hash.next) = (NO_REQ, head);
        r.state |= state::HASHED;
        if head != NO_REQ {
            reqs[head].hash.prev = id;
        }
    }

    #[inline(always)]
    fn remove(&mut self, reqs: &mut Requests, id: ReqId) {
        let r = &mut reqs[id];
        if r.state & state::HASHED == 0 {
            return;
        }
        r.state &= !state::HASHED;
        let (prev, next, end) = (r.hash.prev, r.hash.next, r.end());
        if prev == NO_REQ {
            let b = self.bucket(end);
            self.buckets[b] = next;
        } else {
            reqs[prev].hash.next = next;
        }
        if next != NO_REQ {
            reqs[next].hash.prev = prev;
        }
    }

    #[inline(always)]
    fn find(&self, reqs: &Requests, start: Sector) -> Option<ReqId> {
        let mut at = self.buckets[self.bucket(start)];
        while at != NO_REQ {
            let r = &reqs[at];
            if r.end() == start && mergeable(r) {
                return Some(at);
            }
            at = r.hash.next;
        }
        None
    }
}

/// The requests inside the scheduler, as far as merging needs them.
#[derive(Debug)]
pub(crate) struct Elevator {
    merging: Merging,
    last_merge: ReqId,
    hash: MergeHash,
    /// Requests inside the scheduler.
    queued: u32,
}

impl Elevator {
    /// Of an empty scheduler with up to `nr` requests of either direction.
    pub(crate) fn new(merging: Merging, nr: u32) -> Self {
        let hash = MergeHash::new(nr.saturating_mul(2));
        Elevator { merging, last_merge: NO_REQ, hash, queued: 0 }
    }

    /// Which part looks for merges.
    #[inline(always)]
    pub(crate) fn merging(&self) -> Merging {
        self.merging
    }

    /// Requests inside the scheduler.
    #[inline(always)]
    pub(crate) fn queued(&self) -> u32 {
        self.queued
    }

    /// The request that was merged or inserted last, or `NO_REQ`.
    #[inline(always)]
    pub(crate) fn last(&self) -> ReqId {
        self.last_merge
    }

    #[inline(always)]
    pub(crate) fn set_last(&mut self, id: ReqId) {
        self.last_merge = id;
    }

    /// The newest request in the hash that ends where something starts.
    #[inline(always)]
    pub(crate) fn ending_at(&self, reqs: &Requests, start: Sector) -> Option<ReqId> {
        self.hash.find(reqs, start)
    }

    /// A request can be found by its end.
    #[inline(always)]
    pub(crate) fn hash(&mut self, reqs: &mut Requests, id: ReqId) {
        self.hash.insert(reqs, id);
    }

    /// It cannot, if it could: its end is about to change.
    #[inline(always)]
    pub(crate) fn unhash(&mut self, reqs: &mut Requests, id: ReqId) {
        self.hash.remove(reqs, id);
    }

    /// A request enters the scheduler.
    #[inline(always)]
    pub(crate) fn enters(&mut self, reqs: &mut Requests, id: ReqId, at: Position) {
        if at == Position::Sort {
            self.can_be_found(reqs, id);
        }
        self.queued += 1;
    }

    #[inline(always)]
    fn can_be_found(&mut self, reqs: &mut Requests, id: ReqId) {
        if !matches!(self.merging, Merging::Own) && mergeable(&reqs[id]) {
            if matches!(self.merging, Merging::Elevator { hash: true }) {
                self.hash.insert(reqs, id);
            }
            if self.last_merge == NO_REQ {
                self.last_merge = id;
            }
        }
    }

    /// The scheduler says whether a request inside it may be found.
    pub(crate) fn findable(&mut self, reqs: &mut Requests, id: ReqId, yes: bool) {
        if yes {
            self.can_be_found(reqs, id);
        } else {
            self.lost(reqs, id);
        }
    }

    #[inline(always)]
    fn lost(&mut self, reqs: &mut Requests, id: ReqId) {
        self.hash.remove(reqs, id);
        if self.last_merge == id {
            self.last_merge = NO_REQ;
        }
    }

    /// A request left the scheduler: it can no longer be found.
    #[inline(always)]
    pub(crate) fn leaves(&mut self, reqs: &mut Requests, id: ReqId) {
        self.queued -= 1;
        self.lost(reqs, id);
    }

    /// A request was absorbed by another, which is the one merged last.
    pub(crate) fn absorbed(&mut self) {
        self.queued -= 1;
    }
}
