use proptest::prelude::*;

use super::*;

impl Trees {
    /// Number of black nodes on every path from `i` down, if the tree is a red-black one.
    fn black_height(&self, i: u32) -> Option<u32> {
        if i == NIL {
            return Some(0);
        }
        let [left, right] = self.n(i).child;
        let two_red = self.red(i) && (self.red(left) || self.red(right));
        let (a, b) = (self.black_height(left)?, self.black_height(right)?);
        (a == b && !two_red).then_some(a + u32::from(!self.red(i)))
    }

    /// "(left node right)", red nodes with an "r".
    fn shape(&self, i: u32) -> String {
        if i == NIL {
            return "-".into();
        }
        let name = format!("{i}{}", if self.red(i) { "r" } else { "" });
        match self.n(i).child {
            [NIL, NIL] => name,
            [left, right] => format!("({} {name} {})", self.shape(left), self.shape(right)),
        }
    }
}

/// Exercises 13.3-2 and 13.4-3 of Cormen, Leiserson, Rivest, Stein: Introduction to Algorithms.
#[test]
fn has_the_shape_of_the_textbook() {
    let (mut t, mut root) = (Trees::default(), Root::default());
    let steps = [41, 38, 31, 12, 19, 8];
    let grown = ["41", "(38r 41 -)", "(31r 38 41r)", "((12r 31 -) 38 41)"];
    for (i, key) in steps.into_iter().enumerate() {
        t.insert(&mut root, key, u64::from(key), 0);
        if let Some(shape) = grown.get(i) {
            assert_eq!(t.shape(root.0), *shape);
        }
    }
    assert_eq!(t.shape(root.0), "(((8r 12 -) 19r 31) 38 41)");
    let shrunk = ["((12 19r 31) 38 41)", "((- 19 31r) 38 41)", "(31 38 41)", "(- 38 41r)", "41"];
    for (key, shape) in [8, 12, 19, 31, 38].into_iter().zip(shrunk) {
        t.remove(&mut root, key);
        assert_eq!(t.shape(root.0), shape);
    }
}

/// Command 324 of the kernel's log `hdd7k_fifo.seq8`: it serves the third, though the second is eligible
/// and finishes earlier.
#[test]
fn the_search_for_an_eligible_node_may_miss_the_first() {
    let (mut t, mut root) = (Trees::default(), Root::default());
    for (node, finish, start) in [(6, 714, 305), (4, 543, 387), (3, 720, 310), (5, 699, 289)] {
        t.insert(&mut root, node, finish, start);
    }
    assert_eq!(t.shape(root.0), "((- 4 5r) 6 3)");
    assert_eq!(t.eligible(root, 314), Some(6));
    t.remove(&mut root, 4);
    assert_eq!(t.eligible(root, 314), Some(5));
}

proptest! {
    #[test]
    fn equals_a_sorted_vector(
        steps in prop::collection::vec((any::<bool>(), 0u32..40, 0u64..30, 0u64..30), 1..300),
        base in prop_oneof![Just(0u64), Just(u64::MAX - 15)],
    ) {
        let (mut t, mut root) = (Trees::default(), Root::default());
        let mut flat: Vec<(u64, u32, u64)> = Vec::new();
        for (add, id, key, aug) in steps {
            let at = flat.iter().position(|e| e.1 == id);
            match at {
                None if add => {
                    t.insert(&mut root, id, base.wrapping_add(key), base.wrapping_add(aug));
                    let place = flat.iter().position(|e| e.0 > key).unwrap_or(flat.len());
                    flat.insert(place, (key, id, aug));
                }
                Some(at) if !add => {
                    t.remove(&mut root, id);
                    flat.remove(at);
                }
                _ => {}
            }
            prop_assert_eq!(t.first(root), flat.first().map(|e| e.1));
            for (i, e) in flat.iter().enumerate() {
                prop_assert_eq!(t.before(e.1), i.checked_sub(1).map(|i| flat[i].1));
            }
            let least = flat.iter().map(|e| base.wrapping_add(e.2)).min_by_key(|a| a.wrapping_sub(base));
            prop_assert_eq!(t.least_aug(root), least);
            let fit = |id: u32| flat.iter().any(|e| e.1 == id && e.2 <= aug);
            match t.eligible(root, base.wrapping_add(aug)) {
                Some(id) => prop_assert!(fit(id)),
                None => prop_assert!(flat.iter().all(|e| e.2 > aug)),
            }
            prop_assert!(t.black_height(root.0).is_some(), "{}", t.shape(root.0));
            let above = flat.iter().find(|e| e.0 > key).map(|e| e.1);
            let below = flat.iter().rev().find(|e| e.0 < key).map(|e| e.1);
            let (end, other) = t.around(root, base.wrapping_add(key));
            if flat.iter().any(|e| e.0 == key) {
                prop_assert!(flat.iter().any(|e| e.0 == key && Some(e.1) == end) && other.is_none());
            } else {
                prop_assert!((end, other) == (above, below) || (end, other) == (below, above));
                // A search ends at a node that has no child on that side.
                let side = if end == above { LEFT } else { RIGHT };
                prop_assert!(end.is_none_or(|n| t.child(n, side) == NIL));
            }
        }
    }
}
