//! Which blocks of a group are free, and in which aligned pieces ("buddies").

use std::collections::{BTreeMap, BTreeSet};

/// The largest piece is 2^13 blocks.
const ORDERS: usize = 14;

/// The free blocks of one group, counted from its start.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Free stretches: start and end.
    free: BTreeMap<u32, u32>,
    pieces: [BTreeSet<u32>; ORDERS],
    blocks: u32,
}

impl Group {
    /// A group with one free stretch.
    #[must_use]
    pub fn new(from: u32, to: u32) -> Self {
        let mut group = Self::default();
        group.release(from, to);
        group
    }

    /// Free blocks.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// How many blocks are free from `at` on, without a gap.
    #[must_use]
    pub fn run(&self, at: u32) -> u32 {
        match self.free.range(..=at).next_back() {
            Some((_, end)) if *end > at => end - at,
            _ => 0,
        }
    }

    /// The first piece of the smallest order that holds `blocks`.
    #[must_use]
    pub fn piece(&self, blocks: u32) -> Option<u32> {
        let order = blocks.next_power_of_two().ilog2() as usize;
        self.pieces.get(order..)?.iter().find_map(|p| p.first().copied())
    }

    /// The first free stretch of at least `blocks` that begins, or goes on, at `from` or after it.
    #[must_use]
    pub fn first(&self, from: u32, blocks: u32) -> Option<u32> {
        if self.run(from) >= blocks {
            return Some(from);
        }
        self.free.range(from..).find(|(s, e)| **e - **s >= blocks).map(|(s, _)| *s)
    }

    /// The longest free stretch: start and length.
    #[must_use]
    pub fn longest(&self) -> Option<(u32, u32)> {
        let mut best: Option<(u32, u32)> = None;
        for (start, end) in &self.free {
            if best.is_none_or(|(_, n)| end - start > n) {
                best = Some((*start, end - start));
            }
        }
        best
    }

    /// Takes free blocks.
    pub fn take(&mut self, from: u32, to: u32) {
        let Some((start, end)) = self.free.range(..=from).next_back().map(|(s, e)| (*s, *e)) else {
            debug_assert!(false, "{from}..{to} is not free");
            return;
        };
        debug_assert!(to <= end, "{from}..{to} is not free");
        self.free.remove(&start);
        self.split(start, end, false);
        for (a, b) in [(start, from), (to, end)] {
            if a < b {
                self.free.insert(a, b);
                self.split(a, b, true);
            }
        }
        self.blocks -= to - from;
    }

    /// Gives blocks back.
    pub fn release(&mut self, from: u32, to: u32) {
        let (mut start, mut end) = (from, to);
        if let Some((s, e)) = self.free.range(..from).next_back().map(|(s, e)| (*s, *e)) {
            debug_assert!(e <= from, "{from}..{to} was free");
            if e == from {
                self.free.remove(&s);
                self.split(s, e, false);
                start = s;
            }
        }
        if let Some(e) = self.free.remove(&to) {
            self.split(to, e, false);
            end = e;
        }
        self.free.insert(start, end);
        self.split(start, end, true);
        self.blocks += to - from;
    }

    /// Adds or removes the aligned pieces of a stretch.
    fn split(&mut self, from: u32, to: u32, add: bool) {
        let mut at = from;
        while at < to {
            let aligned = if at == 0 { ORDERS - 1 } else { at.trailing_zeros() as usize };
            let order = aligned.min((to - at).ilog2() as usize).min(ORDERS - 1);
            if add {
                self.pieces[order].insert(at);
            } else {
                self.pieces[order].remove(&at);
            }
            at += 1 << order;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Beside a map of single blocks.
        #[test]
        fn free_blocks_are_those_of_a_bitmap(
            steps in prop::collection::vec((0..512_u32, 1..100_u32), 1..80),
        ) {
            let mut group = Group::new(0, 600);
            let mut map = vec![true; 600];
            for (from, length) in steps {
                let to = from + length.min(group.run(from));
                if to > from {
                    group.take(from, to);
                    map[from as usize..to as usize].fill(false);
                } else {
                    let n = map[from as usize..].iter().take(length as usize).take_while(|f| !**f).count();
                    group.release(from, from + n as u32);
                    map[from as usize..from as usize + n].fill(true);
                }
                prop_assert_eq!(group.blocks() as usize, map.iter().filter(|f| **f).count());
                for blocks in [1_u32, 3, 8, 64] {
                    let first = (0..600 - blocks as usize + 1)
                        .find(|s| map[*s..*s + blocks as usize].iter().all(|f| *f));
                    prop_assert_eq!(group.first(0, blocks).map(|s| s as usize), first);
                    let p = blocks.next_power_of_two() as usize;
                    let aligned = (0..600 / p).any(|i| map[i * p..(i + 1) * p].iter().all(|f| *f));
                    prop_assert_eq!(group.piece(blocks).is_some(), aligned);
                }
            }
        }
    }
}
