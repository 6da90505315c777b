//! Indirect blocks: which of them lead to a block of a file.

/// Blocks that the inode points to itself.
pub const DIRECT: u64 = 12;
/// Blocks that an indirect block points to.
pub const POINTERS: u64 = 1024;

/// An indirect block of a file. Blocks of data in a range of 1,024 share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pointer {
    /// Points to the data of a range.
    Single(u64),
    /// Points to those of 1,024 ranges.
    Double(u64),
    /// Points to those.
    Triple,
}

impl Pointer {
    /// The first block of the file that it leads to.
    #[must_use]
    pub fn first(self) -> u64 {
        match self {
            Pointer::Single(range) => DIRECT + range * POINTERS,
            // The first range needs none.
            Pointer::Double(n) => DIRECT + (1 + n * POINTERS) * POINTERS,
            Pointer::Triple => DIRECT + (1 + POINTERS) * POINTERS,
        }
    }
}

/// The indirect blocks that lead to a block, from the inode on.
pub fn pointers(block: u64) -> impl Iterator<Item = Pointer> {
    let range = block.checked_sub(DIRECT).map(|b| b / POINTERS);
    let double = range.and_then(|r| r.checked_sub(1)).map(|r| r / POINTERS);
    let triple = double.filter(|d| *d > 0).map(|_| Pointer::Triple);
    [triple, double.map(Pointer::Double), range.map(Pointer::Single)].into_iter().flatten()
}

/// The end of the range that a block is in: the block after it needs another indirect block.
#[must_use]
pub fn range_end(block: u64) -> u64 {
    match block.checked_sub(DIRECT) {
        None => DIRECT,
        Some(b) => DIRECT + (b / POINTERS + 1) * POINTERS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_far_into_a_file_have_more_pointers() {
        use Pointer::{Double, Single, Triple};
        let of = |b| pointers(b).collect::<Vec<_>>();
        assert_eq!(of(11), []);
        assert_eq!(of(12), [Single(0)]);
        assert_eq!(of(1036), [Double(0), Single(1)]);
        assert_eq!(of(12 + 1025 * 1024 - 1), [Double(0), Single(1024)]);
        assert_eq!(of(12 + 1025 * 1024), [Triple, Double(1), Single(1025)]);
        for block in [12, 1036, 12 + 1025 * 1024] {
            assert!(of(block).iter().all(|p| p.first() == block), "{block}");
        }
        assert_eq!([0, 11, 12, 1035, 1036].map(range_end), [12, 12, 1036, 1036, 2060]);
    }
}
