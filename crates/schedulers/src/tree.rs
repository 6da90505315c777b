//! A tree of requests by position, shared by every scheduler that sorts.
//!
//! Keys are (start sector, order of insertion): requests with the same start stay in the order in which they came. The
//! kernel uses a red-black tree with pointers inside the request. Here the keys lie side by side in sorted chunks of at
//! most [`CHUNK`], with one separator per chunk. At a disk's usual depths (tens to hundreds of requests) everything is
//! in a few cache lines. At a million requests it is a two-level search. Chunks are pooled: once the tree has held its
//! largest number of requests, nothing is allocated any more.
//!
//! A lone request lies in the tree itself. Ten thousand queues at one disk hold hardly more than one request each, and
//! chunks would be far apart in memory.
//!
//! A scheduler often asks for the same place twice in a row: for a merge candidate and then to insert, or for the next
//! request and then to remove it. So the tree remembers where its last search ended and looks there first.

use std::cell::Cell;

use iosched_types::{ReqId, Sector};

/// Keys per chunk. Moving half a chunk is faster than rebalancing a tree.
const CHUNK: usize = 64;
/// A chunk this small looks for a neighbour to join.
const SMALL: usize = CHUNK / 4;
/// Two chunks join only when the result leaves room, so that one insertion does not split it again.
const JOINED: usize = CHUNK * 3 / 4;

#[derive(Clone, Debug)]
struct Chunk {
    keys: [Key; CHUNK],
}

type Key = (Sector, ReqId);

/// The filler behind the keys of a chunk. No request starts there, so searches need not know how many keys there are.
const PADDING: Key = (Sector::MAX, ReqId::MAX);

impl Chunk {
    /// How many keys come before the first that is not `less`.
    #[inline]
    fn count(&self, less: impl Fn(Sector) -> bool) -> usize {
        let mut n = 0;
        // Halves of a fixed size: comparisons and additions only, no branch depends on the keys.
        for half in [CHUNK / 2, CHUNK / 4, CHUNK / 8, CHUNK / 16, CHUNK / 32, CHUNK / 64] {
            n += if less(self.keys[(n + half - 1) % CHUNK].0) { half } else { 0 };
        }
        n + usize::from(less(self.keys[n % CHUNK].0))
    }
}

/// A chunk in use: where it is in the pool and how many keys it holds.
#[derive(Clone, Copy, Debug)]
struct Slot {
    chunk: u32,
    len: u32,
}

/// A place in the tree: which slot, which key in it.
type Place = (usize, usize);

/// Requests ordered by (start sector, order of insertion).
#[derive(Clone, Debug, Default)]
pub struct PosTree {
    /// Lower bound of each slot's keys and upper bound of those before it; the first is 0.
    separators: Vec<Sector>,
    slots: Vec<Slot>,
    pool: Vec<Chunk>,
    free: Vec<u32>,
    len: usize,
    /// The only request, as long as no other has come.
    lone: Option<Key>,
    /// There were several, so what is left lies in chunks.
    in_chunks: bool,
    /// Where the last search ended. Check it against the keys before use.
    last: Cell<Place>,
    /// Where the last search for a place to go on ended ([`first_at_or_after`](Self::first_at_or_after)). Insertions
    /// and removals before it move it. Check it against the keys before use.
    sweep: Cell<Place>,
}

impl PosTree {
    /// An empty tree; allocates with the first insertion.
    #[must_use]
    pub fn new() -> Self {
        PosTree::default()
    }

    /// Requests in the tree.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a request behind those with the same start. The same pair must not be in the tree twice.
    #[inline(always)]
    pub fn insert(&mut self, sector: Sector, id: ReqId) {
        self.len += 1;
        if !self.in_chunks {
            let Some((sector, id)) = self.lone.take() else {
                self.lone = Some((sector, id));
                return;
            };
            self.in_chunks = true;
            self.insert_into_chunk(sector, id);
        }
        self.insert_into_chunk(sector, id);
    }

    #[inline(always)]
    fn insert_into_chunk(&mut self, sector: Sector, id: ReqId) {
        if self.slots.is_empty() {
            self.open_slot(0, 0);
        }
        let (mut s, mut at) = self.last.get();
        if !self.fits(s, at, sector) || self.slots[s].len as usize == CHUNK {
            s = self.separators[1..].partition_point(|&b| b <= sector);
            if self.slots[s].len as usize == CHUNK {
                self.split(s);
                s += usize::from(self.separators[s + 1] <= sector);
            }
            at = self.pool[self.slots[s].chunk as usize].count(|k| k <= sector);
        }
        let Slot { chunk, len } = self.slots[s];
        let keys = &mut self.pool[chunk as usize].keys[..=len as usize];
        keys.copy_within(at..len as usize, at + 1);
        keys[at] = (sector, id);
        let (sweep, k) = self.sweep.get();
        self.sweep.set((sweep, k + usize::from(sweep == s && at < k)));
        self.slots[s].len += 1;
    }

    /// Whether a new request that starts at `sector` belongs at this place.
    #[inline]
    fn fits(&self, s: usize, at: usize, sector: Sector) -> bool {
        let Some(slot) = self.slots.get(s) else { return false };
        let keys = &self.pool[slot.chunk as usize].keys[..slot.len as usize];
        let behind = match at.checked_sub(1) {
            Some(before) => keys.get(before).is_some_and(|k| k.0 <= sector),
            None => s == 0,
        };
        let before = match keys.get(at) {
            Some(k) => sector < k.0,
            None => s + 1 == self.slots.len(),
        };
        behind && before
    }

    /// Removes a request; `sector` is the start that it was inserted with. Returns whether it was there.
    #[inline(always)]
    pub fn remove(&mut self, sector: Sector, id: ReqId) -> bool {
        if !self.in_chunks {
            return self.remove_lone(sector, id);
        }
        let Some(place) = self.locate(sector, id) else { return false };
        self.remove_at(place);
        true
    }

    #[inline]
    fn remove_lone(&mut self, sector: Sector, id: ReqId) -> bool {
        let there = self.lone == Some((sector, id));
        if there {
            (self.lone, self.len) = (None, 0);
        }
        there
    }

    /// Removes a request and returns its successor, if any. A dispatch does this.
    pub fn remove_and_next(&mut self, sector: Sector, id: ReqId) -> Option<ReqId> {
        if !self.in_chunks {
            self.remove_lone(sector, id);
            return None;
        }
        let place = self.locate(sector, id)?;
        let next = self.step(place).map(|p| self.id_at(p));
        self.remove_at(place);
        next
    }

    /// Removes a request and returns the ones before and after it. A dispatch that chooses between the two does this.
    /// `None` when the request was not there.
    pub fn remove_and_neighbours(
        &mut self,
        sector: Sector,
        id: ReqId,
    ) -> Option<(Option<ReqId>, Option<ReqId>)> {
        if !self.in_chunks {
            return self.remove_lone(sector, id).then_some((None, None));
        }
        let place = self.locate(sector, id)?;
        let neighbours = (self.before(place), self.step(place).map(|p| self.id_at(p)));
        self.remove_at(place);
        Some(neighbours)
    }

    /// The lowest start.
    #[must_use]
    pub fn first(&self) -> Option<ReqId> {
        if !self.in_chunks {
            return self.lone.map(|k| k.1);
        }
        self.settle((0, 0)).map(|p| self.id_at(p))
    }

    /// The highest start.
    #[must_use]
    pub fn last(&self) -> Option<ReqId> {
        if !self.in_chunks {
            return self.lone.map(|k| k.1);
        }
        let slot = self.slots.last()?;
        let k = (slot.len as usize).checked_sub(1)?;
        Some(self.pool[slot.chunk as usize].keys[k].1)
    }

    /// The request behind this one; `None` at the end or when it is not in the tree.
    #[must_use]
    pub fn next(&self, sector: Sector, id: ReqId) -> Option<ReqId> {
        if !self.in_chunks {
            return None;
        }
        self.step(self.locate(sector, id)?).map(|p| self.id_at(p))
    }

    /// The request before this one; `None` at the start or when it is not in the tree.
    #[must_use]
    pub fn prev(&self, sector: Sector, id: ReqId) -> Option<ReqId> {
        if !self.in_chunks {
            return None;
        }
        self.before(self.locate(sector, id)?)
    }

    fn before(&self, (s, k): Place) -> Option<ReqId> {
        if k > 0 {
            return Some(self.id_at((s, k - 1)));
        }
        let before = s.checked_sub(1)?;
        Some(self.id_at((before, self.slots[before].len as usize - 1)))
    }

    /// The first request that starts at `sector` or beyond.
    #[must_use]
    #[inline(always)]
    pub fn first_at_or_after(&self, sector: Sector) -> Option<ReqId> {
        if !self.in_chunks {
            return self.lone.filter(|k| sector <= k.0).map(|k| k.1);
        }
        let (s, k) = self.sweep.get();
        if let Some(slot) = self.slots.get(s) {
            let keys = &self.pool[slot.chunk as usize].keys[..slot.len as usize];
            let behind = match k.checked_sub(1) {
                Some(before) => keys.get(before).is_some_and(|before| before.0 < sector),
                None => s == 0,
            };
            if let Some(key) = keys.get(k)
                && behind
                && sector <= key.0
            {
                self.last.set((s, k));
                return Some(key.1);
            }
        }
        let place = self.search(sector)?;
        self.sweep.set(place);
        Some(self.id_at(place))
    }

    /// The last request that starts before `sector`.
    #[must_use]
    pub fn last_before(&self, sector: Sector) -> Option<ReqId> {
        if !self.in_chunks {
            return self.lone.filter(|k| k.0 < sector).map(|k| k.1);
        }
        let Some((s, k)) = self.search(sector) else { return self.last() };
        match k.checked_sub(1) {
            Some(k) => Some(self.id_at((s, k))),
            None => {
                let s = s.checked_sub(1)?;
                Some(self.id_at((s, self.slots[s].len as usize - 1)))
            }
        }
    }

    /// The request that starts exactly at `sector`; the one inserted first if there are several.
    #[must_use]
    #[inline(always)]
    pub fn find(&self, sector: Sector) -> Option<ReqId> {
        if !self.in_chunks {
            return self.lone.filter(|k| k.0 == sector).map(|k| k.1);
        }
        let place = self.lower_bound(sector)?;
        (self.sector_at(place) == sector).then(|| self.id_at(place))
    }

    /// Whether this request is in the tree under this start.
    #[must_use]
    pub fn contains(&self, sector: Sector, id: ReqId) -> bool {
        if self.in_chunks {
            self.locate(sector, id).is_some()
        } else {
            self.lone == Some((sector, id))
        }
    }

    /// All (start, request) pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (Sector, ReqId)> + '_ {
        self.lone
            .into_iter()
            .chain((0..self.slots.len()).flat_map(|s| self.keys(s).iter().copied()))
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        for slot in self.slots.drain(..) {
            self.pool[slot.chunk as usize].keys.fill(PADDING);
            self.free.push(slot.chunk);
        }
        self.separators.clear();
        (self.len, self.lone, self.in_chunks) = (0, None, false);
    }

    /// The keys of a slot.
    #[inline(always)]
    fn keys(&self, s: usize) -> &[Key] {
        let slot = self.slots[s];
        &self.pool[slot.chunk as usize].keys[..slot.len as usize]
    }

    #[inline]
    fn id_at(&self, (s, k): Place) -> ReqId {
        self.keys(s)[k].1
    }

    #[inline]
    fn sector_at(&self, (s, k): Place) -> Sector {
        self.keys(s)[k].0
    }

    /// A place one past the end of its slot becomes the start of the next; only a lone slot is empty.
    #[inline(always)]
    fn settle(&self, (s, k): Place) -> Option<Place> {
        let slot = self.slots.get(s)?;
        if k < slot.len as usize {
            return Some((s, k));
        }
        (s + 1 < self.slots.len()).then_some((s + 1, 0))
    }

    fn step(&self, (s, k): Place) -> Option<Place> {
        self.settle((s, k + 1))
    }

    /// [`lower_bound`](Self::lower_bound) as a function that is not inlined, for rare callers.
    #[inline(never)]
    fn search(&self, sector: Sector) -> Option<Place> {
        self.lower_bound(sector)
    }

    #[inline(always)]
    fn lower_bound(&self, sector: Sector) -> Option<Place> {
        let rest = self.separators.get(1..)?;
        let s = if rest.is_empty() { 0 } else { rest.partition_point(|&b| b < sector) };
        let slot = self.slots[s];
        let k = self.pool[slot.chunk as usize].count(|k| k < sector);
        let place = if k < slot.len as usize { Some((s, k)) } else { self.settle((s, k)) };
        self.last.set(place.unwrap_or((s, k)));
        place
    }

    /// Where a request is: where the last search ended, or else a search for its start and a walk over those
    /// with the same start.
    #[inline(always)]
    fn locate(&self, sector: Sector, id: ReqId) -> Option<Place> {
        let (s, k) = self.last.get();
        if s < self.slots.len() && self.keys(s).get(k) == Some(&(sector, id)) {
            return Some((s, k));
        }
        let mut place = self.search(sector)?;
        while self.id_at(place) != id {
            place = self.step(place)?;
            if self.sector_at(place) != sector {
                return None;
            }
        }
        (self.sector_at(place) == sector).then_some(place)
    }

    #[inline(always)]
    fn remove_at(&mut self, (s, k): Place) {
        let slot = &mut self.slots[s];
        let (chunk, len) = (slot.chunk as usize, slot.len as usize);
        slot.len -= 1;
        self.len -= 1;
        let (sweep, swept) = self.sweep.get();
        self.sweep.set((sweep, swept - usize::from(sweep == s && k < swept)));
        let keys = &mut self.pool[chunk].keys[..len];
        keys.copy_within(k + 1.., k);
        keys[len - 1] = PADDING;
        if len <= SMALL && self.slots.len() > 1 {
            self.shrink(s);
        }
        self.in_chunks = self.len > 0;
    }

    /// Gives a chunk a slot before position `s`.
    fn open_slot(&mut self, s: usize, separator: Sector) {
        let chunk = self.free.pop().unwrap_or_else(|| {
            self.pool.push(Chunk { keys: [PADDING; CHUNK] });
            // Every chunk may be free at once. Reserving here keeps allocations out of `remove`.
            self.free.reserve(self.pool.len());
            (self.pool.len() - 1) as u32
        });
        self.slots.insert(s, Slot { chunk, len: 0 });
        self.separators.insert(s, separator);
    }

    /// Moves the upper half of a full slot into a new one behind it.
    fn split(&mut self, s: usize) {
        const HALF: usize = CHUNK / 2;
        let from = self.slots[s].chunk as usize;
        let separator = self.pool[from].keys[HALF].0;
        self.open_slot(s + 1, separator);
        let to = self.slots[s + 1].chunk as usize;
        self.move_keys(from, HALF, to, 0, CHUNK - HALF);
        self.pool[from].keys[HALF..].fill(PADDING);
        self.slots[s].len = HALF as u32;
        self.slots[s + 1].len = (CHUNK - HALF) as u32;
    }

    /// Joins a small slot with a neighbour, or drops it when it is empty.
    fn shrink(&mut self, s: usize) {
        let len = self.slots[s].len as usize;
        let fits = |t: usize| self.slots[t].len as usize + len <= JOINED;
        let low = match s {
            _ if s + 1 < self.slots.len() && fits(s + 1) => s,
            _ if s > 0 && fits(s - 1) => s - 1,
            _ if len == 0 => return self.close_slot(s),
            _ => return,
        };
        let (a, b) = (self.slots[low], self.slots[low + 1]);
        self.move_keys(b.chunk as usize, 0, a.chunk as usize, a.len as usize, b.len as usize);
        self.pool[b.chunk as usize].keys.fill(PADDING);
        self.slots[low].len += b.len;
        self.close_slot(low + 1);
    }

    fn close_slot(&mut self, s: usize) {
        let slot = self.slots.remove(s);
        self.separators.remove(s);
        self.free.push(slot.chunk);
        self.separators[0] = 0;
    }

    fn move_keys(&mut self, from: usize, at: usize, to: usize, into: usize, n: usize) {
        let [a, b] = self.pool.get_disjoint_mut([from, to]).expect("two different chunks");
        b.keys[into..into + n].copy_from_slice(&a.keys[at..at + n]);
    }
}

#[cfg(test)]
mod tests;
