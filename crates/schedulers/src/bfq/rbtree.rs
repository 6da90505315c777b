//! A balanced search tree over small integers, kept in one array: the B-WF2Q+ trees and the tree of
//! queues by position.
//!
//! Every node also knows the least `aug` value below it, so that "the least key whose `aug` is at most
//! x" is one descent. Priorities are a hash of the node's number: the shape is random in effect and the
//! same on every run. Several trees ([`Root`]) may share one array, as a node is in one tree at a time.

/// "No node".
pub const NIL: u32 = u32::MAX;

/// Root of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root(u32);

impl Default for Root {
    fn default() -> Self {
        Root(NIL)
    }
}

impl Root {
    /// Whether the tree holds nothing.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == NIL
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    aug: u64,
    min: u64,
    left: u32,
    right: u32,
    parent: u32,
}

const EMPTY: Node = Node { key: 0, aug: 0, min: 0, left: NIL, right: NIL, parent: NIL };

/// The array of nodes. Keys and `aug` values are compared as wrapping counters: `a` is before `b` when
/// `b - a`, taken modulo 2^64, is below 2^63.
#[derive(Clone, Debug, Default)]
pub struct Treap {
    nodes: Vec<Node>,
}

/// Whether `a` is after `b` on a counter that may wrap.
#[must_use]
pub fn after(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}

fn lesser(a: u64, b: u64) -> u64 {
    if after(a, b) { b } else { a }
}

fn priority(n: u32) -> u32 {
    let x = n.wrapping_add(1).wrapping_mul(0x9e37_79b9);
    (x ^ (x >> 15)).wrapping_mul(0x85eb_ca6b)
}

impl Treap {
    /// Makes room for node `n`.
    pub fn grow(&mut self, n: u32) {
        if self.nodes.len() <= n as usize {
            self.nodes.resize(n as usize + 1, EMPTY);
        }
    }

    fn n(&self, i: u32) -> &Node {
        &self.nodes[i as usize]
    }

    fn m(&mut self, i: u32) -> &mut Node {
        &mut self.nodes[i as usize]
    }

    fn min_of(&self, i: u32) -> u64 {
        let n = self.n(i);
        let mut min = n.aug;
        for child in [n.left, n.right] {
            if child != NIL {
                min = lesser(min, self.n(child).min);
            }
        }
        min
    }

    fn refresh_up(&mut self, mut i: u32) {
        while i != NIL {
            let min = self.min_of(i);
            self.m(i).min = min;
            i = self.n(i).parent;
        }
    }

    fn relink(&mut self, root: &mut Root, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            root.0 = new;
        } else if self.n(parent).left == old {
            self.m(parent).left = new;
        } else {
            self.m(parent).right = new;
        }
        if new != NIL {
            self.m(new).parent = parent;
        }
    }

    /// Moves `i` above its parent.
    fn rotate_up(&mut self, root: &mut Root, i: u32) {
        let p = self.n(i).parent;
        let g = self.n(p).parent;
        if self.n(p).left == i {
            let inner = self.n(i).right;
            self.m(p).left = inner;
            if inner != NIL {
                self.m(inner).parent = p;
            }
            self.m(i).right = p;
        } else {
            let inner = self.n(i).left;
            self.m(p).right = inner;
            if inner != NIL {
                self.m(inner).parent = p;
            }
            self.m(i).left = p;
        }
        self.relink(root, g, p, i);
        self.m(p).parent = i;
        let min = self.min_of(p);
        self.m(p).min = min;
        let min = self.min_of(i);
        self.m(i).min = min;
    }

    /// Adds node `i`; it goes behind those with the same key.
    pub fn insert(&mut self, root: &mut Root, i: u32, key: u64, aug: u64) {
        self.grow(i);
        *self.m(i) = Node { key, aug, min: aug, ..EMPTY };
        if root.0 == NIL {
            root.0 = i;
            return;
        }
        let mut at = root.0;
        loop {
            let node = self.m(at);
            node.min = lesser(node.min, aug);
            let child = if after(node.key, key) { &mut node.left } else { &mut node.right };
            if *child == NIL {
                *child = i;
                break;
            }
            at = *child;
        }
        self.m(i).parent = at;
        while self.n(i).parent != NIL && priority(i) > priority(self.n(i).parent) {
            self.rotate_up(root, i);
        }
    }

    /// Takes node `i`, which is in this tree, out.
    pub fn remove(&mut self, root: &mut Root, i: u32) {
        loop {
            let Node { left, right, .. } = *self.n(i);
            let up = match (left, right) {
                (NIL, _) | (_, NIL) => break,
                (l, r) if priority(l) > priority(r) => l,
                (_, r) => r,
            };
            self.rotate_up(root, up);
        }
        let Node { left, right, parent, .. } = *self.n(i);
        self.relink(root, parent, i, if left == NIL { right } else { left });
        self.refresh_up(parent);
    }

    /// Least `aug` in the tree.
    #[must_use]
    pub fn least_aug(&self, root: Root) -> Option<u64> {
        (root.0 != NIL).then(|| self.n(root.0).min)
    }

    /// The first node in key order whose `aug` is not after `limit`.
    #[must_use]
    pub fn first_within(&self, root: Root, limit: u64) -> Option<u32> {
        let within = |i: u32| i != NIL && !after(self.n(i).min, limit);
        let mut at = root.0;
        if !within(at) {
            return None;
        }
        loop {
            let n = self.n(at);
            if within(n.left) {
                at = n.left;
            } else if !after(n.aug, limit) {
                return Some(at);
            } else {
                at = n.right;
            }
        }
    }

    /// The node with the least key.
    #[must_use]
    pub fn first(&self, root: Root) -> Option<u32> {
        let mut at = root.0;
        while at != NIL && self.n(at).left != NIL {
            at = self.n(at).left;
        }
        (at != NIL).then_some(at)
    }

    /// The node with the greatest key; of equal ones, the last inserted.
    #[must_use]
    pub fn last(&self, root: Root) -> Option<u32> {
        let mut at = root.0;
        while at != NIL && self.n(at).right != NIL {
            at = self.n(at).right;
        }
        (at != NIL).then_some(at)
    }

    /// The first node at or behind `key`, and the last one before it.
    #[must_use]
    pub fn around(&self, root: Root, key: u64) -> (Option<u32>, Option<u32>) {
        let (mut at, mut above, mut below) = (root.0, None, None);
        while at != NIL {
            if after(key, self.n(at).key) {
                below = Some(at);
                at = self.n(at).right;
            } else {
                above = Some(at);
                at = self.n(at).left;
            }
        }
        (above, below)
    }

    /// The key a node was inserted with.
    #[must_use]
    pub fn key(&self, i: u32) -> u64 {
        self.n(i).key
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equals_a_sorted_vector(
            steps in prop::collection::vec((any::<bool>(), 0u32..40, 0u64..30, 0u64..30), 1..300),
            base in prop_oneof![Just(0u64), Just(u64::MAX - 15)],
        ) {
            let (mut t, mut root) = (Treap::default(), Root::default());
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
                prop_assert_eq!(t.last(root), flat.last().map(|e| e.1));
                let least = flat.iter().map(|e| base.wrapping_add(e.2)).min_by_key(|a| a.wrapping_sub(base));
                prop_assert_eq!(t.least_aug(root), least);
                let within = flat.iter().find(|e| e.2 <= aug).map(|e| e.1);
                prop_assert_eq!(t.first_within(root, base.wrapping_add(aug)), within);
                let above = flat.iter().find(|e| e.0 >= key).map(|e| e.1);
                let below = flat.iter().rev().find(|e| e.0 < key).map(|e| e.1);
                prop_assert_eq!(t.around(root, base.wrapping_add(key)), (above, below));
            }
        }
    }
}
