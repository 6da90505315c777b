//! The pages of one file: which are in memory, which are dirty.

use std::collections::BTreeMap;

use iosched_types::Bytes;

/// Bytes of a page.
pub(super) const PAGE: Bytes = 4096;
/// Pages that are kept together.
const CHUNK: u64 = 1024;

const CACHED: u8 = 1;
const DIRTY: u8 = 2;

/// Flags of pages; a chunk without any takes no memory.
#[derive(Debug, Default)]
pub(super) struct Pages {
    chunks: BTreeMap<u64, Box<[u8; CHUNK as usize]>>,
    dirty: u64,
}

impl Pages {
    /// Dirty pages.
    pub(super) fn dirty(&self) -> u64 {
        self.dirty
    }

    fn flags(&self, page: u64) -> u8 {
        self.chunks.get(&(page / CHUNK)).map_or(0, |c| c[(page % CHUNK) as usize])
    }

    /// Whether a page is in memory.
    #[inline]
    pub(super) fn is_cached(&self, page: u64) -> bool {
        self.flags(page) & CACHED != 0
    }

    /// Whether a page is dirty.
    #[inline]
    pub(super) fn is_dirty(&self, page: u64) -> bool {
        self.flags(page) & DIRTY != 0
    }

    /// Whether all pages of a range are in memory.
    #[inline]
    pub(super) fn are_cached(&self, from: u64, to: u64) -> bool {
        let mut page = from;
        while page < to {
            let Some(chunk) = self.chunks.get(&(page / CHUNK)) else { return false };
            let end = to.min((page / CHUNK + 1) * CHUNK);
            let range = (page % CHUNK) as usize..((end - 1) % CHUNK) as usize + 1;
            if chunk[range].iter().any(|f| f & CACHED == 0) {
                return false;
            }
            page = end;
        }
        true
    }

    fn at(&mut self, page: u64) -> &mut u8 {
        let chunk =
            self.chunks.entry(page / CHUNK).or_insert_with(|| Box::new([0; CHUNK as usize]));
        &mut chunk[(page % CHUNK) as usize]
    }

    /// A page is in memory from now on.
    pub(super) fn cache(&mut self, page: u64) {
        *self.at(page) |= CACHED;
    }

    /// A page is written to; whether it was clean.
    pub(super) fn soil(&mut self, page: u64) -> bool {
        let flags = self.at(page);
        let clean = *flags & DIRTY == 0;
        *flags |= CACHED | DIRTY;
        self.dirty += u64::from(clean);
        clean
    }

    /// The first run of dirty pages from `from` on, and before `to`: `(first, one after the last)`.
    pub(super) fn next_dirty(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let mut run: Option<(u64, u64)> = None;
        for (n, chunk) in self.chunks.range(from / CHUNK..) {
            let base = n * CHUNK;
            if base >= to || run.is_some_and(|r| r.1 < base) {
                break;
            }
            for (i, flags) in chunk.iter().enumerate() {
                let page = base + i as u64;
                let dirty = flags & DIRTY != 0 && (from..to).contains(&page);
                match (&mut run, dirty) {
                    (None, true) => run = Some((page, page + 1)),
                    (Some(r), true) => r.1 = page + 1,
                    (Some(r), false) => return Some(*r),
                    (None, false) => {}
                }
            }
        }
        run
    }

    /// Dirty pages of a range are clean from now on.
    pub(super) fn clean(&mut self, from: u64, to: u64) {
        for page in from..to {
            let flags = self.at(page);
            let was = *flags & DIRTY != 0;
            *flags &= !DIRTY;
            self.dirty -= u64::from(was);
        }
    }

    /// Drops pages from memory; dirty ones only if told so. How many of those.
    pub(super) fn forget(&mut self, from: u64, to: u64, dirty_too: bool) -> u64 {
        let mut dropped = 0;
        for (n, chunk) in self.chunks.range_mut(from / CHUNK..) {
            let base = n * CHUNK;
            if base >= to {
                break;
            }
            for (i, flags) in chunk.iter_mut().enumerate() {
                if !(from..to).contains(&(base + i as u64)) {
                    continue;
                }
                let dirty = *flags & DIRTY != 0;
                if !dirty || dirty_too {
                    dropped += u64::from(dirty);
                    *flags = 0;
                }
            }
        }
        self.dirty -= dropped;
        let empty = |c: &mut Box<[u8; CHUNK as usize]>| c.iter().all(|f| *f == 0);
        if from == 0 && to == u64::MAX {
            self.chunks.retain(|_, c| !empty(c));
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_dirty_pages_cross_chunks() {
        let mut p = Pages::default();
        for page in [3, 1022, 1023, 1024, 1025, 5000] {
            assert!(p.soil(page));
        }
        assert!(!p.soil(3));
        assert_eq!(p.next_dirty(0, u64::MAX), Some((3, 4)));
        assert_eq!(p.next_dirty(4, u64::MAX), Some((1022, 1026)));
        assert_eq!(p.next_dirty(4, 1024), Some((1022, 1024)));
        assert_eq!(p.next_dirty(1026, 5000), None);
        p.clean(1022, 1026);
        assert_eq!((p.dirty(), p.next_dirty(4, u64::MAX)), (2, Some((5000, 5001))));
        assert!(p.are_cached(1022, 1026) && !p.are_cached(1021, 1026));
        assert_eq!(p.forget(0, u64::MAX, false), 0);
        assert!(!p.is_cached(1022) && p.is_cached(3));
        assert_eq!(p.forget(0, u64::MAX, true), 2);
        assert_eq!((p.dirty(), p.chunks.len()), (0, 0));
    }
}
