//! Which blocks of a file a random job has touched (`norandommap=0`).

use iosched_types::Bytes;

/// Which blocks of a file were touched (`norandommap=0`).
#[derive(Debug)]
pub(crate) struct BlockMap {
    words: Vec<u64>,
    blocks: u64,
    used: u64,
    block: Bytes,
}

impl BlockMap {
    pub(crate) fn new(blocks: u64, block: Bytes) -> Self {
        BlockMap { words: vec![0; blocks.div_ceil(64) as usize], blocks, used: 0, block }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.blocks
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.used = 0;
    }

    /// Touches up to `len` bytes from `at`, as far as they are untouched but at least one block; how many
    /// bytes that are.
    pub(crate) fn mark(&mut self, at: Bytes, len: Bytes) -> Bytes {
        let first = at / self.block;
        let last = ((at + len.max(1) - 1) / self.block).min(self.blocks.saturating_sub(1));
        for b in first..=last {
            let (w, bit) = ((b / 64) as usize, 1u64 << (b % 64));
            if self.words[w] & bit != 0 {
                return if b == first { len } else { (b * self.block - at).min(len) };
            }
            self.words[w] |= bit;
            self.used += 1;
        }
        len
    }

    fn touched(&self, b: u64) -> bool {
        self.words[(b / 64) as usize] >> (b % 64) & 1 == 1
    }

    /// Byte offset of an untouched place: block `b` of `blocks` blocks of `align` bytes, or the next one
    /// that begins untouched, or any.
    pub(crate) fn free_from(&self, b: u64, align: Bytes, blocks: u64) -> Option<Bytes> {
        if self.is_full() {
            return None;
        }
        if align == self.block {
            return Some(self.next_free(b) * self.block);
        }
        let begins = |b: u64| (b * align / self.block).min(self.blocks - 1);
        let mut own = (0..blocks).map(|i| (b + i) % blocks);
        let found = own.find(|b| !self.touched(begins(*b))).map(|b| b * align);
        Some(found.unwrap_or_else(|| self.next_free(begins(b)) * self.block))
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
        let mut m = BlockMap::new(130, 4096);
        let mut seen = [false; 130];
        for i in 0..130 {
            let b = m.free_from(i * 97 % 130, 4096, 130).unwrap() / 4096;
            assert!(!std::mem::replace(&mut seen[b as usize], true), "block {b} twice");
            m.mark(b * 4096, 4096);
        }
        assert!(m.is_full());
    }

    #[test]
    fn an_io_ends_where_the_next_touched_block_begins() {
        let mut m = BlockMap::new(8, 4096);
        assert_eq!(m.mark(3 * 4096, 4096), 4096);
        assert_eq!(m.mark(0, 5 * 4096), 3 * 4096);
        assert_eq!(m.mark(4 * 4096, 5000), 5000);
        assert_eq!(m.free_from(1, 8192, 4), Some(6 * 4096), "in blocks of its own size");
        assert_eq!(m.mark(6 * 4096, 8192), 8192);
        assert!(m.is_full());
        assert_eq!(m.free_from(0, 4096, 8), None);
    }
}
