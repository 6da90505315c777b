//! Which leaves a search may pass over.

use super::{CHUNK, MARKS, Mark, NONE};

/// A bit for each leaf of a chunk.
type Leaves = [u64; CHUNK / 64];

/// Leaves that follow one another: which are there, and at which a search need not look.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) ids: [u32; CHUNK],
    /// Leaves of which some page has the mark.
    some: [Leaves; MARKS],
    /// Leaves of which all pages have it.
    all: [Leaves; MARKS],
}

impl Chunk {
    pub(super) fn new() -> Box<Chunk> {
        let none = [[0; CHUNK / 64]; MARKS];
        Box::new(Chunk { ids: [NONE; CHUNK], some: none, all: none })
    }

    /// The word of a leaf's mark has changed.
    pub(super) fn note(&mut self, leaf: usize, mark: usize, word: u64) {
        let (at, bit) = (leaf / 64, 1_u64 << (leaf % 64));
        let put = |bits: &mut u64, on: bool| if on { *bits |= bit } else { *bits &= !bit };
        put(&mut self.some[mark][at], word != 0);
        put(&mut self.all[mark][at], word == u64::MAX);
    }

    /// The first leaf from one on where a search for the mark, or for a page without it, may end.
    pub(super) fn next(&self, from: usize, mark: Mark, on: bool) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = u64::MAX << (from % 64);
        while word < CHUNK / 64 {
            let of = |leaves: &[Leaves; MARKS]| leaves[mark as usize][word];
            bits &= if on { of(&self.some) } else { !of(&self.all) };
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            (word, bits) = (word + 1, u64::MAX);
        }
        None
    }
}
