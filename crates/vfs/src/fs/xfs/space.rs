//! Free space of an allocation group.
//!
//! The two trees of free extents, by place and by size, are kept as sets; what of their blocks a change touches follows
//! from the places of the records.

use std::collections::{BTreeMap, BTreeSet};

/// Records of a tree of free space in one block of 4 KiB: 8 bytes each after a header of 56.
const RECORDS: usize = 505;

/// What an extent is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Data of files: to the left of its goal, it begins where the free extent begins.
    Data,
    /// Blocks of directories and trees: as near to the goal as can be.
    Metadata,
    /// Chunks of inodes: whole, at a multiple of their length.
    Inodes,
}

/// Bytes of the trees' root blocks that a change touched: from, to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Of the tree by place.
    pub by_place: (u64, u64),
    /// Of the tree by size.
    pub by_size: (u64, u64),
}

/// Free extents of a group. Blocks are counted from its start.
#[derive(Clone, Debug, Default)]
pub struct Space {
    by_place: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    free: u64,
}

impl Space {
    /// A group with these free extents.
    #[must_use]
    pub fn new(extents: &[(u64, u64)]) -> Self {
        let mut space = Space::default();
        extents.iter().filter(|(_, n)| *n > 0).for_each(|(start, n)| space.insert(*start, *n));
        space
    }

    /// Free blocks.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.free
    }

    fn insert(&mut self, start: u64, blocks: u64) {
        self.by_place.insert(start, blocks);
        self.by_size.insert((blocks, start));
        self.free += blocks;
    }

    fn remove(&mut self, start: u64) -> u64 {
        let blocks = self.by_place.remove(&start).unwrap_or(0);
        self.by_size.remove(&(blocks, start));
        self.free -= blocks;
        blocks
    }

    /// The extent for `blocks` blocks whose place is nearest to the goal; a shorter one, the longest, where there is none of
    /// that length. Chunks of inodes are not shortened.
    #[must_use]
    pub fn near(&self, goal: u64, blocks: u64, what: For) -> Option<(u64, u64)> {
        let fit = |(start, len): (u64, u64)| place_in(start, len, goal, blocks, what);
        // The nearest one that fits on either side. What begins further away than the best so far cannot be better.
        let right = self.by_place.range(goal..).map(|(s, n)| (*s, *n)).find_map(fit);
        let left = self.by_place.range(..goal).rev().map(|(s, n)| (*s, *n)).find_map(fit);
        let distance = |at: u64| at.abs_diff(goal);
        let best = match (left, right) {
            (Some(l), Some(r)) => Some(if distance(l) <= distance(r) { l } else { r }),
            (l, r) => l.or(r),
        };
        if let Some(start) = best {
            return Some((start, blocks));
        }
        let (len, start) = *self.by_size.last()?;
        (what != For::Inodes).then_some((start, len.min(blocks)))
    }

    /// Whether the blocks are free.
    #[must_use]
    pub fn is_free(&self, start: u64, blocks: u64) -> bool {
        let before = self.by_place.range(..=start).next_back();
        before.is_some_and(|(s, n)| start + blocks <= s + n)
    }

    /// Takes free blocks, and says what of the trees that touched.
    pub fn take(&mut self, start: u64, blocks: u64) -> Touched {
        let Some((at, len)) = self.by_place.range(..=start).next_back().map(|(s, n)| (*s, *n))
        else {
            return Touched::default();
        };
        let before = self.records(at, len);
        self.remove(at);
        if start > at {
            self.insert(at, start - at);
        }
        let (end, rest) = (at + len, start + blocks);
        if rest < end {
            self.insert(rest, end - rest);
        }
        self.touched(before, at)
    }

    /// Gives blocks back, and says what of the trees that touched.
    pub fn give(&mut self, start: u64, blocks: u64) -> Touched {
        let (mut from, mut to) = (start, start + blocks);
        let left = self.by_place.range(..start).next_back().map(|(s, n)| (*s, *n));
        let before = left.map_or(self.records(start, blocks), |(s, n)| self.records(s, n));
        if let Some((s, _)) = left.filter(|(s, n)| s + n == start) {
            self.remove(s);
            from = s;
        }
        if let Some(n) = self.by_place.get(&to).copied() {
            self.remove(to);
            to += n;
        }
        self.insert(from, to - from);
        self.touched(before, from)
    }

    /// The places of an extent's records among all.
    fn records(&self, start: u64, len: u64) -> (usize, usize) {
        if self.by_place.len() > RECORDS {
            return (0, 0);
        }
        (self.by_place.range(..start).count(), self.by_size.range(..(len, start)).count())
    }

    /// Records from the first that changed to the last move in their block.
    fn touched(&self, (place, size): (usize, usize), from: u64) -> Touched {
        let n = self.by_place.len().min(RECORDS);
        let now = self.by_place.get(&from).map_or((place, size), |len| self.records(from, *len));
        let bytes = |first: usize| {
            let first = first.min(n);
            (56 + 8 * first as u64, 56 + 8 * n.max(first + 1) as u64)
        };
        Touched { by_place: bytes(place.min(now.0)), by_size: bytes(size.min(now.1)) }
    }
}

/// Where in a free extent the blocks would go.
fn place_in(start: u64, len: u64, goal: u64, blocks: u64, what: For) -> Option<u64> {
    let (first, end) = match what {
        For::Inodes => (start.next_multiple_of(blocks), start + len),
        _ => (start, start + len),
    };
    if first + blocks > end {
        return None;
    }
    let last = match what {
        For::Inodes => (end - blocks) / blocks * blocks,
        _ => end - blocks,
    };
    Some(match what {
        // It holds the goal, or lies to the right of it.
        _ if first >= goal => first,
        _ if goal <= last => match what {
            For::Inodes => goal.next_multiple_of(blocks).min(last),
            _ => goal,
        },
        For::Data => first,
        _ => last,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fresh() -> Space {
        Space::new(&[(10, 6), (24, 1000)])
    }

    /// Seen in traces of Linux 6.12 on fresh file systems: data begins where the gap before the inodes begins, a block of
    /// a directory lies right before them, a chunk at the next multiple of its length.
    #[test]
    fn places_are_those_of_the_kernel() {
        let space = fresh();
        assert_eq!(space.near(16, 1, For::Data), Some((10, 1)));
        assert_eq!(space.near(16, 10, For::Data), Some((24, 10)));
        assert_eq!(space.near(16, 1, For::Metadata), Some((15, 1)));
        assert_eq!(space.near(3, 8, For::Inodes), Some((24, 8)));
        let mut space = fresh();
        space.take(24, 21);
        assert_eq!(space.near(3, 8, For::Inodes), Some((48, 8)));
        assert_eq!(Space::new(&[(10, 2000)]).near(3, 8, For::Inodes), Some((16, 8)));
    }

    #[test]
    fn what_is_too_long_gets_the_longest() {
        assert_eq!(fresh().near(16, 5000, For::Data), Some((24, 1000)));
        assert_eq!(Space::new(&[(1, 7)]).near(0, 8, For::Inodes), None);
    }

    proptest! {
        /// Beside a bitmap: what is taken was free, what is given back joins its neighbours.
        #[test]
        fn it_is_a_bitmap(ops in proptest::collection::vec((0u64..200, 1u64..20, any::<bool>()), 1..80)) {
            let mut space = Space::new(&[(0, 256)]);
            let mut bits = vec![true; 256];
            for (goal, n, give) in ops {
                if give {
                    let Some(at) = (0..256 - n).find(|a| (*a..a + n).all(|b| !bits[b as usize])) else { continue };
                    space.give(at, n);
                    (at..at + n).for_each(|b| bits[b as usize] = true);
                } else if let Some((at, n)) = space.near(goal, n, For::Data) {
                    prop_assert!((at..at + n).all(|b| bits[b as usize]));
                    space.take(at, n);
                    (at..at + n).for_each(|b| bits[b as usize] = false);
                }
                prop_assert_eq!(space.free(), bits.iter().filter(|b| **b).count() as u64);
                let runs = bits.windows(2).filter(|w| !w[0] && w[1]).count() + usize::from(bits[0]);
                prop_assert_eq!(space.by_place.len(), runs);
                prop_assert_eq!(space.by_size.len(), runs);
            }
        }
    }
}
