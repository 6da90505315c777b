//! Which pages of a table an insert at its end changes, in SQLite's file format (`sqlite.org/fileformat2.html`).
//!
//! Rows come in the order of their keys, so only the last leaf grows. A full one is followed by a new leaf, for which its
//! parent gets a cell. A parent that overflows shares its cells with its two siblings on the left, or with a new one.

/// Pages that an insert changes, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changed {
    /// Those that were there before.
    pub(super) old: Vec<u64>,
    /// New ones.
    pub(super) new: Vec<u64>,
}

impl Changed {
    /// All of them, in order.
    pub(super) fn pages(&self) -> impl Iterator<Item = u64> + '_ {
        let mut all: Vec<u64> = self.old.iter().chain(&self.new).copied().collect();
        all.sort_unstable();
        all.into_iter()
    }
}

/// A page above the leaves.
#[derive(Clone, Debug)]
struct Node {
    page: u64,
    children: u64,
}

/// A table of one file. Its root is the second page; the first one holds the header and the schema.
#[derive(Clone, Debug)]
pub(super) struct Table {
    page_size: u64,
    row: u64,
    rows: u64,
    pages: u64,
    leaf: u64,
    leaf_used: u64,
    /// The pages of each level above the leaves, the lowest first. The last level is the root alone.
    levels: Vec<Vec<Node>>,
}

const ROOT: u64 = 1;

impl Table {
    pub(super) fn new(page_size: u64, row: u64) -> Table {
        Table { page_size, row, rows: 0, pages: 2, leaf: ROOT, leaf_used: 0, levels: Vec::new() }
    }

    /// The pages from the first one down to the last leaf.
    pub(super) fn way_down(&self) -> Vec<u64> {
        let nodes = self.levels.iter().rev().filter_map(|l| l.last()).map(|n| n.page);
        let mut way: Vec<u64> = std::iter::once(0).chain(nodes).chain([self.leaf]).collect();
        way.dedup();
        way
    }

    /// A row more.
    pub(super) fn insert(&mut self) -> Changed {
        self.rows += 1;
        // Length, key and two bytes in the list of cells.
        let cell = varint(self.row) + varint(self.rows) + self.row + 2;
        let first_new = self.pages;
        let mut changed = vec![0];
        if self.leaf_used + cell <= self.page_size - 8 {
            self.leaf_used += cell;
            changed.push(self.leaf);
        } else {
            self.leaf_used = cell;
            if self.levels.is_empty() {
                // What was the root becomes its first leaf.
                let left = self.allocate();
                self.levels.push(vec![Node { page: ROOT, children: 1 }]);
                changed.push(left);
            }
            self.leaf = self.allocate();
            changed.push(self.leaf);
            self.add_child(0, &mut changed);
        }
        changed.sort_unstable();
        changed.dedup();
        let (old, new) = changed.into_iter().partition(|page| *page < first_new);
        Changed { old, new }
    }

    fn allocate(&mut self) -> u64 {
        self.pages += 1;
        self.pages - 1
    }

    /// How many children a page above the leaves has room for: a cell is a page number, a key and two bytes in the list.
    fn room(&self) -> u64 {
        (self.page_size - 12) / (4 + varint(self.rows) + 2) + 1
    }

    /// The last page of a level gets a child more.
    fn add_child(&mut self, level: usize, changed: &mut Vec<u64>) {
        let (room, levels) = (self.room(), self.levels.len());
        let Some(last) = self.levels[level].last_mut() else { return };
        last.children += 1;
        changed.push(last.page);
        if last.children <= room {
            return;
        }
        if level + 1 == levels {
            // The root moves its cells down to a new page, which is then too full.
            let children = last.children;
            let page = self.allocate();
            self.levels[level] = vec![Node { page, children }];
            self.levels.push(vec![Node { page: ROOT, children: 1 }]);
        }
        let first = self.levels[level].len().saturating_sub(3);
        let siblings = &self.levels[level][first..];
        let all: u64 = siblings.iter().map(|n| n.children).sum();
        let needed = all.div_ceil(room) as usize;
        let more = needed > siblings.len();
        if more {
            let page = self.allocate();
            self.levels[level].push(Node { page, children: 0 });
        }
        let siblings = &mut self.levels[level][first..];
        for (node, children) in siblings.iter_mut().zip(shares(all, room, needed)) {
            node.children = children;
            changed.push(node.page);
        }
        if let Some(parent) = self.levels[level + 1].last() {
            changed.push(parent.page);
        }
        if more {
            self.add_child(level + 1, changed);
        }
    }
}

/// Children of `n` siblings: all are filled from the left, then each gives to its right neighbour, from the right on, until
/// both have as many.
fn shares(all: u64, room: u64, n: usize) -> Vec<u64> {
    let mut left = all;
    let mut shares: Vec<u64> = (0..n)
        .map(|_| {
            let share = left.min(room);
            left -= share;
            share
        })
        .collect();
    for i in (1..n).rev() {
        let both = shares[i - 1] + shares[i];
        shares[i] = both / 2;
        shares[i - 1] = both - shares[i];
    }
    shares
}

/// Bytes of a number in SQLite's files: seven bits a byte.
fn varint(n: u64) -> u64 {
    u64::from((64 - n.max(1).leading_zeros()).div_ceil(7)).min(9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SQLite 3.40 with pages of 1024 bytes, rows of 46 (strace): the numbers of inserts that change more than two pages.
    #[test]
    fn inserts_change_the_pages_that_sqlite_changes() {
        let mut table = Table::new(1024, 46);
        let changed: Vec<Changed> = (0..7500).map(|_| table.insert()).collect();
        assert_eq!(changed[0], Changed { old: vec![0, 1], new: vec![] });
        let large = |from: usize, to: usize| {
            changed[from..to].iter().filter(|c| c.old.len() + c.new.len() > 2).count()
        };
        // 128 in the first 2,500 rows, where the first leaves hold a row more.
        assert!((126..=131).contains(&large(0, 2500)), "{}", large(0, 2500));
        let first = changed.iter().find(|c| !c.new.is_empty()).unwrap();
        assert_eq!(*first, Changed { old: vec![0, 1], new: vec![2, 3] });
        let shapes: Vec<(usize, usize)> = changed
            .iter()
            .map(|c| (c.old.len(), c.new.len()))
            .filter(|shape| !matches!(shape, (2, 0 | 1)))
            .collect();
        // A leaf below the root; a second level; six times shared by two; a third page; then shared by three.
        let expected =
            [&[(2, 2), (2, 3)][..], &[(4, 1); 6], &[(4, 2)], &[(5, 1); 6], &[(5, 2)]].concat();
        assert_eq!(shapes, expected[..shapes.len()]);
        assert!(shapes.len() >= expected.len() - 2, "{shapes:?}");
    }

    #[test]
    fn siblings_share_their_children() {
        assert_eq!(shares(130, 127, 2), [65, 65]);
        assert_eq!(shares(253, 126, 3), [95, 95, 63]);
        assert_eq!(shares(317, 126, 3), [111, 111, 95]);
    }

    #[test]
    fn numbers_take_seven_bits_a_byte() {
        assert_eq!([0, 127, 128, 16_383, 16_384, u64::MAX].map(varint), [1, 1, 2, 2, 3, 9]);
    }
}
