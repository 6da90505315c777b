//! The cached pages of one file, as bitmaps. Sixty-four pages share a leaf. A leaf costs 1.25 bytes a page.

mod chunk;

use chunk::Chunk;

/// The marks of a page. A page may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// In the cache: being read, or readable.
    Present,
    /// The contents are valid. A page that is present and not up to date is being read.
    Uptodate,
    /// Differs from the disk.
    Dirty,
    /// Is being written.
    Writeback,
    /// Touching it asks for the next window of read-ahead.
    Readahead,
    /// The first page of its folio.
    Head,
    /// Used since it was looked at last.
    Referenced,
    /// On the active list.
    Active,
    /// An entry of the inactive list still names the page, although the page has left that list.
    Stale,
    /// The same for the active list.
    StaleActive,
}

const MARKS: usize = 10;
const LEAF: u64 = 64;
const CHUNK: usize = 512;
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Leaf([u64; MARKS]);

/// The pages of one file.
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    /// Leaves by number of the leaf, in chunks that exist where a page does.
    chunks: Vec<Option<Box<Chunk>>>,
    leaves: Vec<Leaf>,
    free: Vec<u32>,
    present: u64,
    dirty: u64,
    lowest: Lowest,
}

/// No page below has the mark: searches in a file that grows begin here. Kept for marks that only [`Mapping::set`] sets.
#[derive(Clone, Debug)]
struct Lowest([u64; 2]);

impl Default for Lowest {
    fn default() -> Self {
        Lowest([u64::MAX; 2])
    }
}

impl Lowest {
    fn of(&mut self, mark: Mark) -> Option<&mut u64> {
        match mark {
            Mark::Dirty => Some(&mut self.0[0]),
            Mark::Writeback => Some(&mut self.0[1]),
            _ => None,
        }
    }

    fn get(&self, mark: Mark) -> u64 {
        match mark {
            Mark::Dirty => self.0[0],
            Mark::Writeback => self.0[1],
            _ => 0,
        }
    }

    /// The pages `from..to` have the mark from now on, or not.
    fn set(&mut self, from: u64, to: u64, mark: Mark, on: bool) {
        let Some(lowest) = self.of(mark).filter(|_| from < to) else { return };
        if on {
            *lowest = (*lowest).min(from);
        } else if *lowest >= from {
            *lowest = (*lowest).max(to);
        }
    }
}

/// Bits `from..to` of a word; `to` is at most 64.
fn mask(from: u64, to: u64) -> u64 {
    debug_assert!(from < to && to <= LEAF, "bits {from}..{to}");
    (u64::MAX << from) & (u64::MAX >> (LEAF - to))
}

impl Mapping {
    /// Pages in the cache.
    #[must_use]
    pub fn present(&self) -> u64 {
        self.present
    }

    /// Dirty pages.
    #[must_use]
    pub fn dirty(&self) -> u64 {
        self.dirty
    }

    fn leaf(&self, page: u64) -> Option<&Leaf> {
        self.leaf_id(page).map(|id| &self.leaves[id as usize])
    }

    fn leaf_id(&self, page: u64) -> Option<u32> {
        let number = usize::try_from(page / LEAF).ok()?;
        let id = self.chunks.get(number / CHUNK)?.as_ref()?.ids[number % CHUNK];
        (id != NONE).then_some(id)
    }

    fn leaf_made(&mut self, page: u64) -> &mut Leaf {
        let number = usize::try_from(page / LEAF).unwrap_or(usize::MAX);
        let chunk = number / CHUNK;
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let id = &mut self.chunks[chunk].get_or_insert_with(Chunk::new).ids[number % CHUNK];
        if *id == NONE {
            *id = self.free.pop().unwrap_or_else(|| {
                self.leaves.push(Leaf([0; MARKS]));
                u32::try_from(self.leaves.len() - 1).unwrap_or(NONE - 1)
            });
        }
        &mut self.leaves[*id as usize]
    }

    /// A mark of pages of a leaf has changed.
    fn note(&mut self, page: u64, mark: usize, word: u64) {
        let number = usize::try_from(page / LEAF).unwrap_or(usize::MAX);
        if let Some(Some(chunk)) = self.chunks.get_mut(number / CHUNK) {
            chunk.note(number % CHUNK, mark, word);
        }
    }

    /// The first leaf from one on, as its first page, where a search for the mark, or for a page without it, may end.
    fn worth(&self, leaf: u64, mark: Mark, on: bool) -> Option<u64> {
        let number = usize::try_from(leaf / LEAF).ok()?;
        let (first, within) = (number / CHUNK, number % CHUNK);
        for (n, chunk) in self.chunks.iter().enumerate().skip(first) {
            let from = if n == first { within } else { 0 };
            let hit = match chunk {
                Some(chunk) => chunk.next(from, mark, on),
                None => (!on).then_some(from),
            };
            if let Some(hit) = hit {
                return Some((n * CHUNK + hit) as u64 * LEAF);
            }
        }
        let end = self.end();
        (!on).then_some(leaf.max(end))
    }

    /// Whether the page has the mark.
    #[must_use]
    pub fn has(&self, page: u64, mark: Mark) -> bool {
        self.leaf(page).is_some_and(|l| l.0[mark as usize] >> (page % LEAF) & 1 == 1)
    }

    /// Sets or clears a mark of the pages `from..to`. Returns for how many pages it changed. [`insert`](Self::insert)
    /// sets [`Mark::Present`], and [`remove`](Self::remove) clears it.
    pub fn set(&mut self, from: u64, to: u64, mark: Mark, on: bool) -> u64 {
        let mut changed = 0;
        let mut at = from;
        while at < to {
            let end = to.min((at / LEAF + 1) * LEAF);
            let bits = mask(at % LEAF, (end - 1) % LEAF + 1);
            if on {
                let word = &mut self.leaf_made(at).0[mark as usize];
                changed += u64::from((bits & !*word).count_ones());
                *word |= bits;
                let word = *word;
                self.note(at, mark as usize, word);
            } else if let Some(id) = self.leaf_id(at) {
                let word = &mut self.leaves[id as usize].0[mark as usize];
                changed += u64::from((bits & *word).count_ones());
                *word &= !bits;
                let word = *word;
                self.note(at, mark as usize, word);
            }
            at = end;
        }
        self.lowest.set(from, to, mark, on);
        if mark == Mark::Dirty {
            self.dirty = if on { self.dirty + changed } else { self.dirty - changed };
        }
        changed
    }

    /// The first page from `from` on, below `to`, that has the mark or, with `on` false, does not.
    #[must_use]
    pub fn next(&self, from: u64, to: u64, mark: Mark, on: bool) -> Option<u64> {
        let mut at = if on { from.max(self.lowest.get(mark)) } else { from };
        while at < to {
            let end = to.min((at / LEAF + 1) * LEAF);
            let bits = mask(at % LEAF, (end - 1) % LEAF + 1);
            let word = self.leaf(at).map_or(0, |l| l.0[mark as usize]);
            let hits = bits & if on { word } else { !word };
            if hits != 0 {
                return Some(at / LEAF * LEAF + u64::from(hits.trailing_zeros()));
            }
            if end == to {
                return None;
            }
            at = self.worth(end, mark, on)?;
        }
        None
    }

    /// The last page below `below`, not below `from`, that has the mark or, with `on` false, does not.
    #[must_use]
    pub fn last(&self, from: u64, below: u64, mark: Mark, on: bool) -> Option<u64> {
        let mut end = below;
        while end > from {
            let start = from.max((end - 1) / LEAF * LEAF);
            let bits = mask(start % LEAF, (end - 1) % LEAF + 1);
            let word = self.leaf(start).map_or(0, |l| l.0[mark as usize]);
            let hits = bits & if on { word } else { !word };
            if hits != 0 {
                return Some(start / LEAF * LEAF + u64::from(63 - hits.leading_zeros()));
            }
            end = start;
        }
        None
    }

    /// The page after the last one that may be cached.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK as u64 * LEAF
    }

    /// The first run of pages with the mark from `from` on, below `to`.
    #[must_use]
    pub fn run(&self, from: u64, to: u64, mark: Mark) -> Option<(u64, u64)> {
        let to = to.min(self.end());
        let start = self.next(from, to, mark, true)?;
        Some((start, self.next(start, to, mark, false).unwrap_or(to)))
    }

    /// The first page from `from` on that has the mark.
    #[must_use]
    pub fn next_any(&self, from: u64, mark: Mark) -> Option<u64> {
        self.next(from, self.end(), mark, true)
    }

    /// How many of the pages `from..to` have the mark.
    #[must_use]
    pub fn count(&self, from: u64, to: u64, mark: Mark) -> u64 {
        let mut sum = 0;
        let mut at = from;
        while at < to {
            let end = to.min((at / LEAF + 1) * LEAF);
            let bits = mask(at % LEAF, (end - 1) % LEAF + 1);
            sum += self.leaf(at).map_or(0, |l| u64::from((l.0[mark as usize] & bits).count_ones()));
            at = end;
        }
        sum
    }

    /// How many pages have the mark.
    #[must_use]
    pub fn count_all(&self, mark: Mark) -> u64 {
        self.leaves.iter().map(|l| u64::from(l.0[mark as usize].count_ones())).sum()
    }

    /// Puts the pages `from..to` into the cache as folios of `folio` pages, the last one shorter. None of them is
    /// cached yet. Marks of older entries in the inactive list stay.
    pub fn insert(&mut self, from: u64, to: u64, folio: u64) {
        let added = self.set(from, to, Mark::Present, true);
        debug_assert_eq!(added, to - from, "pages {from}..{to} were not all absent");
        self.present += added;
        if folio == 1 {
            self.set(from, to, Mark::Head, true);
        } else {
            let mut at = from;
            while at < to {
                self.set(at, at + 1, Mark::Head, true);
                at += folio;
            }
        }
    }

    /// Notes that the pages `from..to` were used. Pages that were used before and are not active become active. Runs of
    /// these are added to `promoted`.
    pub fn touch(&mut self, from: u64, to: u64, promoted: &mut Vec<(u64, u64)>) {
        let mut at = from;
        while at < to {
            let end = to.min((at / LEAF + 1) * LEAF);
            let bits = mask(at % LEAF, (end - 1) % LEAF + 1);
            if let Some(id) = self.leaf_id(at) {
                let leaf = &mut self.leaves[id as usize].0;
                let bits = bits & leaf[Mark::Present as usize];
                let mut up = bits & leaf[Mark::Referenced as usize] & !leaf[Mark::Active as usize];
                leaf[Mark::Referenced as usize] |= bits;
                leaf[Mark::Referenced as usize] &= !up;
                leaf[Mark::Active as usize] |= up;
                let words =
                    [Mark::Referenced, Mark::Active].map(|m| (m as usize, leaf[m as usize]));
                for (mark, word) in words {
                    self.note(at, mark, word);
                }
                let base = at / LEAF * LEAF;
                while up != 0 {
                    let first = u64::from(up.trailing_zeros());
                    let n = u64::from((!(up >> first)).trailing_zeros()).min(LEAF - first);
                    promoted.push((base + first, base + first + n));
                    up &= !mask(first, first + n);
                }
            }
            at = end;
        }
    }

    /// Removes the pages `from..to` from the cache. Returns how many were there. Marks about list entries stay.
    pub fn remove(&mut self, from: u64, to: u64) -> u64 {
        let mut removed = 0;
        let mut at = from;
        while at < to {
            let end = to.min((at / LEAF + 1) * LEAF);
            let bits = mask(at % LEAF, (end - 1) % LEAF + 1);
            if let Some(id) = self.leaf_id(at) {
                let leaf = &mut self.leaves[id as usize];
                removed += u64::from((leaf.0[Mark::Present as usize] & bits).count_ones());
                self.dirty -= u64::from((leaf.0[Mark::Dirty as usize] & bits).count_ones());
                for (mark, word) in leaf.0.iter_mut().enumerate() {
                    if mark != Mark::Stale as usize && mark != Mark::StaleActive as usize {
                        *word &= !bits;
                    }
                }
                let words = leaf.0;
                for (mark, word) in words.into_iter().enumerate() {
                    self.note(at, mark, word);
                }
                if words.iter().all(|w| *w == 0) {
                    self.drop_leaf(at, id);
                }
            }
            at = end;
        }
        self.present -= removed;
        removed
    }

    fn drop_leaf(&mut self, page: u64, id: u32) {
        let number = usize::try_from(page / LEAF).unwrap_or(usize::MAX);
        if let Some(Some(chunk)) = self.chunks.get_mut(number / CHUNK) {
            chunk.ids[number % CHUNK] = NONE;
            self.free.push(id);
        }
    }

    /// The folio that the page belongs to: its first page and the page after its last one. The page is cached.
    #[must_use]
    pub fn folio(&self, page: u64) -> (u64, u64) {
        let head = self.last(0, page + 1, Mark::Head, true).unwrap_or(page);
        let mut end = head + 1;
        while self.has(end, Mark::Present) && !self.has(end, Mark::Head) {
            end += 1;
        }
        (head, end)
    }
}

#[cfg(test)]
mod tests;
