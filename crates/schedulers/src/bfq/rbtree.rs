//! A red-black tree over small integers, kept in one array: the B-WF2Q+ trees and the tree of queues by
//! position.
//!
//! Every node also knows the least `aug` value below it. The kernel's trees are red-black trees, and the answers of two
//! of its searches ([`Trees::eligible`], [`Trees::around`]) depend on their shape. So insertion and removal are the
//! textbook's, which lead to the same shape. A node is in one tree at a time, so several trees ([`Root`]) may share one
//! array.

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
    /// Left and right.
    child: [u32; 2],
    parent: u32,
    red: bool,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;
const EMPTY: Node = Node { key: 0, aug: 0, min: 0, child: [NIL; 2], parent: NIL, red: false };

/// The array of nodes. Keys and `aug` values are compared as wrapping counters: `a` is before `b` when
/// `b - a`, taken modulo 2^64, is below 2^63.
#[derive(Clone, Debug, Default)]
pub struct Trees {
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

impl Trees {
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

    fn child(&self, i: u32, side: usize) -> u32 {
        self.n(i).child[side]
    }

    fn red(&self, i: u32) -> bool {
        i != NIL && self.n(i).red
    }

    /// The side of `parent` on which `i` hangs.
    fn side(&self, parent: u32, i: u32) -> usize {
        usize::from(self.child(parent, RIGHT) == i)
    }

    fn refresh(&mut self, i: u32) {
        let n = self.n(i);
        let mut min = n.aug;
        for child in n.child {
            if child != NIL {
                min = lesser(min, self.n(child).min);
            }
        }
        self.m(i).min = min;
    }

    fn refresh_up(&mut self, mut i: u32) {
        while i != NIL {
            self.refresh(i);
            i = self.n(i).parent;
        }
    }

    /// Hangs `new` where `old` hangs.
    fn relink(&mut self, root: &mut Root, old: u32, new: u32) {
        let parent = self.n(old).parent;
        if parent == NIL {
            root.0 = new;
        } else {
            let side = self.side(parent, old);
            self.m(parent).child[side] = new;
        }
        if new != NIL {
            self.m(new).parent = parent;
        }
    }

    /// Moves `i` down to `side`; its child on the other side takes its place.
    fn rotate(&mut self, root: &mut Root, i: u32, side: usize) {
        let up = self.child(i, 1 - side);
        let inner = self.child(up, side);
        self.m(i).child[1 - side] = inner;
        if inner != NIL {
            self.m(inner).parent = i;
        }
        self.relink(root, i, up);
        self.m(up).child[side] = i;
        self.m(i).parent = up;
        self.refresh(i);
        self.refresh(up);
    }

    /// Adds node `i`; it goes behind those with the same key.
    pub fn insert(&mut self, root: &mut Root, i: u32, key: u64, aug: u64) {
        self.grow(i);
        *self.m(i) = Node { key, aug, min: aug, red: true, ..EMPTY };
        let (mut at, mut parent, mut side) = (root.0, NIL, LEFT);
        while at != NIL {
            let node = self.m(at);
            node.min = lesser(node.min, aug);
            side = if after(node.key, key) { LEFT } else { RIGHT };
            (parent, at) = (at, node.child[side]);
        }
        self.m(i).parent = parent;
        if parent == NIL {
            root.0 = i;
        } else {
            self.m(parent).child[side] = i;
        }
        self.repair_insertion(root, i);
    }

    /// Ends the run of two red nodes that begins with the new node `i`.
    fn repair_insertion(&mut self, root: &mut Root, mut i: u32) {
        while self.red(self.n(i).parent) {
            let mut parent = self.n(i).parent;
            let above = self.n(parent).parent;
            let side = self.side(above, parent);
            let uncle = self.child(above, 1 - side);
            if self.red(uncle) {
                self.m(parent).red = false;
                self.m(uncle).red = false;
                self.m(above).red = true;
                i = above;
                continue;
            }
            if self.child(parent, 1 - side) == i {
                self.rotate(root, parent, side);
                (i, parent) = (parent, i);
            }
            self.m(parent).red = false;
            self.m(above).red = true;
            self.rotate(root, above, 1 - side);
        }
        self.m(root.0).red = false;
    }

    /// Removes node `i`, which is in this tree. The next node in order replaces a node with two children.
    pub fn remove(&mut self, root: &mut Root, i: u32) {
        let Node { child: [left, right], parent, red, .. } = *self.n(i);
        let (lost_red, hole, at);
        if left == NIL || right == NIL {
            let only = if left == NIL { right } else { left };
            self.relink(root, i, only);
            (lost_red, hole, at) = (red, only, parent);
        } else {
            let next = self.leftmost(right);
            let Node { child: [_, below], parent: old_parent, red: next_red, .. } = *self.n(next);
            (lost_red, hole) = (next_red, below);
            if old_parent == i {
                at = next;
            } else {
                at = old_parent;
                self.relink(root, next, below);
                self.m(next).child[RIGHT] = right;
                self.m(right).parent = next;
            }
            self.relink(root, i, next);
            self.m(next).child[LEFT] = left;
            self.m(left).parent = next;
            self.m(next).red = red;
        }
        self.refresh_up(at);
        if !lost_red {
            self.repair_removal(root, hole, at);
        }
    }

    /// The path through `i` (maybe [`NIL`]) below `parent` has one black node too few.
    fn repair_removal(&mut self, root: &mut Root, mut i: u32, mut parent: u32) {
        while parent != NIL && !self.red(i) {
            let side = usize::from(self.child(parent, LEFT) != i);
            let mut other = self.child(parent, 1 - side);
            if self.red(other) {
                self.m(other).red = false;
                self.m(parent).red = true;
                self.rotate(root, parent, side);
                other = self.child(parent, 1 - side);
            }
            let (near, far) = (self.child(other, side), self.child(other, 1 - side));
            if !self.red(near) && !self.red(far) {
                self.m(other).red = true;
                i = parent;
                parent = self.n(i).parent;
                continue;
            }
            if !self.red(far) {
                self.m(near).red = false;
                self.m(other).red = true;
                self.rotate(root, other, 1 - side);
                other = near;
            }
            self.m(other).red = self.red(parent);
            self.m(parent).red = false;
            let far = self.child(other, 1 - side);
            self.m(far).red = false;
            self.rotate(root, parent, side);
            return;
        }
        if i != NIL {
            self.m(i).red = false;
        }
    }

    /// Least `aug` in the tree.
    #[must_use]
    pub fn least_aug(&self, root: Root) -> Option<u64> {
        (root.0 != NIL).then(|| self.n(root.0).min)
    }

    /// A node with `aug` not after `limit`, early in key order, but not always the first.
    ///
    /// The search goes left wherever such a node is below. Where none is, it takes the last such node that it passed,
    /// if any, and goes right otherwise. So it misses the first such node when that hangs to the right of an unfit node
    /// that hangs to the left of a fit one.
    #[must_use]
    pub fn eligible(&self, root: Root, limit: u64) -> Option<u32> {
        let within = |i: u32| i != NIL && !after(self.n(i).min, limit);
        let (mut at, mut found) = (root.0, None);
        while within(at) {
            let n = self.n(at);
            if !after(n.aug, limit) {
                found = Some(at);
            }
            let [left, right] = n.child;
            at = match (within(left), found) {
                (true, _) => left,
                (false, Some(_)) => break,
                (false, None) => right,
            };
        }
        found
    }

    fn leftmost(&self, mut at: u32) -> u32 {
        while self.child(at, LEFT) != NIL {
            at = self.child(at, LEFT);
        }
        at
    }

    /// The node with the least key.
    #[must_use]
    pub fn first(&self, root: Root) -> Option<u32> {
        (root.0 != NIL).then(|| self.leftmost(root.0))
    }

    /// The node before another one of its tree.
    #[must_use]
    pub fn before(&self, i: u32) -> Option<u32> {
        let mut at = self.child(i, LEFT);
        if at != NIL {
            while self.child(at, RIGHT) != NIL {
                at = self.child(at, RIGHT);
            }
            return Some(at);
        }
        let mut at = i;
        loop {
            let parent = self.n(at).parent;
            if parent == NIL || self.child(parent, RIGHT) == at {
                return (parent != NIL).then_some(parent);
            }
            at = parent;
        }
    }

    /// Where a search for `key` ends: at a node with this key, or else at the last one on its way and the neighbour of
    /// that one on the other side of `key`.
    #[must_use]
    pub fn around(&self, root: Root, key: u64) -> (Option<u32>, Option<u32>) {
        let (mut at, mut end, mut other) = (root.0, [None; 2], RIGHT);
        while at != NIL {
            if self.n(at).key == key {
                return (Some(at), None);
            }
            let side = if after(key, self.n(at).key) { RIGHT } else { LEFT };
            (end[side], other) = (Some(at), 1 - side);
            at = self.child(at, side);
        }
        (end[1 - other], end[other])
    }

    /// The key a node was inserted with.
    #[must_use]
    pub fn key(&self, i: u32) -> u64 {
        self.n(i).key
    }
}

#[cfg(test)]
mod tests;
