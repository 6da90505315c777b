//! Sets of pages.

use std::collections::BTreeMap;

/// Ranges that neither overlap nor touch, by their first page; the value is the page after the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds pages; ranges that meet become one.
    pub(super) fn add(&mut self, mut from: u64, mut to: u64) {
        if from >= to {
            return;
        }
        while let Some((a, b)) = self.0.range(..=to).next_back().map(|(a, b)| (*a, *b)) {
            if b < from {
                break;
            }
            self.0.remove(&a);
            (from, to) = (from.min(a), to.max(b));
        }
        self.0.insert(from, to);
    }

    /// Takes pages away. Whether any were there.
    pub(super) fn remove(&mut self, from: u64, to: u64) -> bool {
        let mut any = false;
        if from >= to {
            return any;
        }
        while let Some((a, b)) = self.0.range(..to).next_back().map(|(a, b)| (*a, *b)) {
            if b <= from {
                break;
            }
            any = true;
            self.0.remove(&a);
            if to < b {
                self.0.insert(to, b);
            }
            if a < from {
                self.0.insert(a, from);
            }
        }
        any
    }

    /// The first page from `page` on.
    pub(super) fn from(&self, page: u64) -> Option<u64> {
        match self.at(page) {
            Some(_) => Some(page),
            None => self.0.range(page..).next().map(|(a, _)| *a),
        }
    }

    /// All ranges, upwards.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(a, b)| (*a, *b))
    }

    /// Those that have pages in a range, upwards.
    pub(super) fn within(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.at(from).map_or(from, |(a, _)| a);
        self.0.range(first..to.max(first)).map(|(a, b)| (*a, *b))
    }

    /// The parts of a range that are not in it.
    pub(super) fn without(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ends = self.within(from, to).map(|(_, b)| b);
        let starts = self.within(from, to).map(|(a, _)| a);
        let gaps = std::iter::once(from).chain(ends).zip(starts.chain(std::iter::once(to)));
        gaps.filter(|(a, b)| a < b)
    }

    /// Whether the first page of a range is in it, and up to which page of the range the same holds.
    pub(super) fn until(&self, from: u64, to: u64) -> (bool, u64) {
        match self.within(from, to).next() {
            Some((a, b)) if a <= from => (true, b.min(to)),
            Some((a, _)) => (false, a),
            None => (false, to),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The range that holds the page.
    pub(super) fn at(&self, page: u64) -> Option<(u64, u64)> {
        let (a, b) = self.0.range(..=page).next_back().map(|(a, b)| (*a, *b))?;
        (page < b).then_some((a, b))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set_of_pages(ops in proptest::collection::vec((0u64..60, 0u64..12, any::<bool>()), 1..60)) {
            let (mut ranges, mut bits) = (Ranges::default(), [false; 80]);
            for (from, n, add) in ops {
                let span = from as usize..(from + n) as usize;
                if add {
                    ranges.add(from, from + n);
                } else {
                    prop_assert_eq!(ranges.remove(from, from + n), bits[span.clone()].contains(&true));
                }
                bits[span].fill(add);
                for page in 0..80u64 {
                    let start = (0..=page).rev().take_while(|p| bits[*p as usize]).last();
                    prop_assert_eq!(ranges.at(page).map(|r| r.0), start);
                    let free = ranges.without(page.min(70), 70).map(|(a, b)| b - a).sum::<u64>();
                    let wanted = (page.min(70)..70).filter(|p| !bits[*p as usize]).count() as u64;
                    prop_assert_eq!(free, wanted);
                    let next = (page..80).find(|p| bits[*p as usize]);
                    prop_assert_eq!(ranges.from(page), next);
                }
            }
        }
    }
}
