//! Which blocks of a file a random job has touched (`norandommap=0`).

use iosched_types::Bytes;

/// Which blocks of a file were touched (`norandommap=0`).
#[derive(Debug)]
pub(crate) struct BlockMap {
    words: Vec<u64>,
    blocks: u64,
    used: u64,
}

impl BlockMap {
    pub(crate) fn new(blocks: u64) -> Self {
        BlockMap { words: vec![0; blocks.div_ceil(64) as usize], blocks, used: 0 }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.blocks
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.used = 0;
    }

    /// Touches up to `len` bytes from `at`, in blocks of `align` bytes, as far as they are untouched but at least one
    /// block; how many bytes that are.
    pub(crate) fn mark(&mut self, at: Bytes, len: Bytes, align: Bytes) -> Bytes {
        let first = at / align;
        let last = ((at + len.max(1) - 1) / align).min(self.blocks.saturating_sub(1));
        for b in first..=last {
            let (w, bit) = ((b / 64) as usize, 1u64 << (b % 64));
            if self.words[w] & bit != 0 {
                return if b == first { len } else { (b * align - at).min(len) };
            }
            self.words[w] |= bit;
            self.used += 1;
        }
        len
    }

    /// Byte offset of the next untouched block, `b` or behind it, wrapping.
    pub(crate) fn free_from(&self, b: u64, align: Bytes) -> Option<Bytes> {
        if self.is_full() {
            return None;
        }
        Some(self.next_free(b) * align)
    }

    /// The first untouched block at or after `b`, wrapping; the map must not be full.
    fn next_free(&self, b: u64) -> u64 {
        let start = b.min(self.blocks - 1);
        let mut w = (start / 64) as usize;
        let mut word = !self.words[w] & (u64::MAX << (start % 64));
        for _ in 0..=self.words.len() {
            if word != 0 {
                let found = w as u64 * 64 + u64::from(word.trailing_zeros());
                if found < self.blocks {
                    return found;
                }
            }
            w = (w + 1) % self.words.len();
            word = !self.words[w];
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_map_hands_out_each_block_once() {
        let mut m = BlockMap::new(130);
        let mut seen = [false; 130];
        for i in 0..130 {
            let b = m.free_from(i * 97 % 130, 4096).unwrap() / 4096;
            assert!(!std::mem::replace(&mut seen[b as usize], true), "block {b} twice");
            m.mark(b * 4096, 4096, 4096);
        }
        assert!(m.is_full());
    }

    #[test]
    fn an_io_ends_where_the_next_touched_block_begins() {
        let mut m = BlockMap::new(8);
        assert_eq!(m.mark(3 * 4096, 4096, 4096), 4096);
        assert_eq!(m.mark(0, 5 * 4096, 4096), 3 * 4096);
        assert_eq!(m.mark(4 * 4096, 5000, 4096), 5000);
        assert_eq!(m.free_from(1, 4096), Some(6 * 4096));
        assert_eq!(m.mark(6 * 4096, 8192, 4096), 8192);
        assert!(m.is_full());
        assert_eq!(m.free_from(0, 4096), None);
    }

    #[test]
    fn the_number_of_a_block_counts_whatever_its_size() {
        let mut m = BlockMap::new(4);
        assert_eq!(m.mark(8192, 8192, 8192), 8192);
        assert_eq!(m.free_from(1, 4096), Some(8192), "block 1 of 4096 bytes is taken, too");
        assert_eq!(m.free_from(1, 8192), Some(2 * 8192));
    }
}
