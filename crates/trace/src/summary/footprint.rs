//! How much of a disk a trace touches: the pieces that are, larger ones as there are more.

use std::collections::BTreeSet;

use iosched_types::Bytes;

/// Pieces kept at a time.
const MOST: usize = 1 << 17;

/// Pieces of a disk.
#[derive(Debug)]
pub(super) struct Footprint {
    /// Pieces are 2^`shift` bytes.
    shift: u32,
    pieces: BTreeSet<u64>,
}

impl Default for Footprint {
    fn default() -> Self {
        Footprint { shift: 12, pieces: BTreeSet::new() }
    }
}

impl Footprint {
    pub(super) fn add(&mut self, offset: Bytes, len: Bytes) {
        if len == 0 {
            return;
        }
        let last = offset + (len - 1);
        // One long discard has more pieces than are kept.
        while (last >> self.shift) - (offset >> self.shift) > MOST as u64 / 2 {
            self.coarser();
        }
        for piece in offset >> self.shift..=last >> self.shift {
            self.pieces.insert(piece);
        }
        while self.pieces.len() > MOST {
            self.coarser();
        }
    }

    fn coarser(&mut self) {
        self.shift += 1;
        self.pieces = std::mem::take(&mut self.pieces).into_iter().map(|p| p >> 1).collect();
    }

    /// Bytes of all pieces, and of one.
    pub(super) fn bytes(&self) -> (Bytes, Bytes) {
        ((self.pieces.len() as u64) << self.shift, 1 << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_grow_with_their_number() {
        let mut f = Footprint::default();
        for i in 0..300_000u64 {
            f.add(i * 8192, 4096);
            f.add(i * 8192, 512);
        }
        let (all, piece) = f.bytes();
        assert_eq!(piece, 32768);
        assert_eq!(all, 300_000 * 8192);
        f.add(0, i64::MAX as u64);
        assert!(f.bytes().1 > 1 << 40);
    }
}
