//! Look-ups, and operations that go from a queue up to the root.

use super::{Engine, Entity, EntityId, On, Owner, ROOT, SetId, delta};
use crate::bfq::rbtree::{NIL, after};

/// In a share of requests a class counts this many times the one below it.
const CLASS_FACTOR: u64 = 8;

impl Engine {
    /// Operation 6 in one class. Of the entities with a start not after v = max(V, least start), takes the one with the
    /// least finish. V becomes v if `raise`.
    pub(super) fn look_up_class(
        &mut self,
        set: SetId,
        class: usize,
        raise: bool,
    ) -> Option<EntityId> {
        let tree = &mut self.sets[set as usize].trees[class];
        let least = self.nodes.least_aug(tree.active)?;
        let v = if after(least, tree.vtime) { least } else { tree.vtime };
        let moves = raise && v != tree.vtime;
        if raise {
            tree.vtime = v;
        }
        let found = self.nodes.eligible(tree.active, v)?;
        if moves && self.rules.forgets_when_raised {
            self.forget_idle(found);
        }
        Some(found)
    }

    pub(super) fn look_up(&mut self, set: SetId, raise: bool) -> EntityId {
        let (now, period) = (self.now, self.idle_period);
        let s = &mut self.sets[set as usize];
        let mut from = 0;
        // Without a cache only a selection is a turn; with one every look-up may become one.
        if (raise || self.rules.cached_next) && now > s.idle_turn + period {
            // The clock restarts with the look-up, even if the entity found is replaced before its turn.
            from = if s.trees[2].active.is_empty() { 0 } else { 2 };
            if from == 2 || !self.rules.idle_turn_when_found {
                s.idle_turn = now;
            }
        }
        (from..3).find_map(|class| self.look_up_class(set, class, raise)).unwrap_or(NIL)
    }

    /// Brings the candidate of a set up to date after `new` was put on a tree (or after an extraction, with
    /// `NIL`). Returns whether the candidate, or what its group asks for, changed.
    pub(super) fn refresh(&mut self, set: SetId, new: EntityId, expiry: bool) -> bool {
        let old = self.s(set).next;
        let next = match self.quick(set, new, old) {
            Some(next) if !expiry || self.rules.quick_on_expiry => next,
            _ => {
                let idle = self.s(set).in_service == NIL;
                let raise =
                    self.rules.cached_next && (idle || (expiry && self.rules.raise_on_expiry));
                self.look_up(set, raise)
            }
        };
        self.sm(set).next = next;
        let group = self.s(set).group;
        let mut changed = old != next;
        if group != NIL && next != NIL && self.e(group).budget != self.e(next).budget {
            let budget = self.e(next).budget;
            self.em(group).budget = budget;
            changed = true;
        }
        changed
    }

    /// The candidate that can be told without a look-up.
    pub(super) fn quick(&self, set: SetId, new: EntityId, old: EntityId) -> Option<EntityId> {
        if !self.rules.cached_next || new == NIL || new == old {
            return None;
        }
        if old == NIL {
            return Some(new);
        }
        let (n, o) = (self.e(new), self.e(old));
        let vtime = self.s(set).trees[n.class as usize].vtime;
        if n.class == o.class && !after(n.start, vtime) && after(o.finish, n.finish) {
            return Some(new);
        }
        if self.rules.lookup_when_beaten {
            return None;
        }
        Some(if n.class < o.class { new } else { old })
    }

    /// Puts a group back after its candidate changed. Goes on with its parents as long as their candidates change, too.
    pub(super) fn climb(&mut self, set: SetId, in_time: bool, expiry: bool) {
        let mut set = set;
        loop {
            let g = self.s(set).group;
            if g == NIL || self.s(set).next == NIL {
                return;
            }
            let parent = self.e(g).set;
            if self.s(parent).in_service == g || self.e(g).on == On::Active {
                self.requeue_one(g);
            } else {
                self.activate_one(g, in_time);
            }
            if !self.refresh(parent, g, expiry) && !expiry {
                return;
            }
            set = parent;
        }
    }

    /// Operation 2: a queue starts to wait. `in_time`: the queue came back in time after a wait that did not block it,
    /// so it may be served as if it had never left.
    pub fn activate(&mut self, e: EntityId, in_time: bool) {
        let set = self.e(e).set;
        self.activate_one(e, in_time);
        if self.refresh(set, e, false) {
            self.climb(set, in_time, false);
        }
    }

    /// Operation 4: gives a waiting queue another budget.
    pub fn reposition(&mut self, e: EntityId, budget: u64) {
        self.em(e).budget = budget;
        if self.e(e).on != On::Active {
            return;
        }
        let set = self.e(e).set;
        self.requeue_one(e);
        if self.refresh(set, e, false) {
            self.climb(set, false, false);
        }
    }

    /// Operation 5: a queue that is not in service stops waiting.
    pub fn deactivate(&mut self, e: EntityId) {
        self.leave(e, false);
    }

    pub(super) fn leave(&mut self, e: EntityId, expiry: bool) {
        let mut e = e;
        loop {
            let set = self.e(e).set;
            let was_next = self.s(set).next == e;
            self.leave_one(e);
            let changed = was_next && self.refresh(set, NIL, expiry);
            let s = self.s(set);
            if s.next != NIL || s.in_service != NIL {
                if changed || expiry {
                    self.climb(set, false, expiry);
                }
                return;
            }
            e = s.group;
            if e == NIL || !self.e(e).counted {
                return;
            }
        }
    }

    pub(super) fn leave_one(&mut self, e: EntityId) {
        let Entity { set, start, service, weight, counted, owner, .. } = *self.e(e);
        if !counted {
            return;
        }
        let in_service = self.s(set).in_service == e;
        if in_service || self.rules.leaves_as_served {
            self.em(e).finish = start.wrapping_add(delta(service, weight));
        }
        if in_service {
            self.sm(set).in_service = NIL;
        }
        if matches!(owner, Owner::Group(_)) {
            self.em(e).service = 0;
        }
        self.extract(e);
        let finish = self.e(e).finish;
        if after(finish, self.vtime_of(e)) {
            self.put_idle(e);
        } else {
            self.forget(e);
        }
    }

    /// Operation 7: takes the next queue into service.
    pub fn take(&mut self) -> Option<u32> {
        let mut set = ROOT;
        let queue = loop {
            let e = if self.rules.cached_next { self.s(set).next } else { self.look_up(set, true) };
            if e == NIL {
                return None;
            }
            self.sm(set).in_service = e;
            match self.e(e).owner {
                Owner::Queue(q) => {
                    self.extract(e);
                    break q;
                }
                Owner::Group(inner) => {
                    self.em(e).service = 0;
                    // A group with more to offer stays a candidate beside its own child.
                    if self.s(inner).active == 1 {
                        self.extract(e);
                    }
                    set = inner;
                }
                Owner::Nobody => return None,
            }
        };
        loop {
            self.refresh(set, NIL, false);
            let g = self.s(set).group;
            if g == NIL {
                return Some(queue);
            }
            set = self.e(g).set;
        }
    }

    /// The slot of the queue in service ends: operation 3 if it stays backlogged, 5 otherwise.
    pub fn expire(&mut self, e: EntityId, backlogged: bool) {
        if backlogged {
            let set = self.e(e).set;
            self.requeue_one(e);
            // What it is served from now on, by injection, counts in its next slot.
            self.em(e).service = 0;
            self.refresh(set, e, true);
            self.climb(set, false, true);
        } else {
            self.leave(e, true);
        }
        let mut e = e;
        while e != NIL {
            let set = self.e(e).set;
            self.sm(set).in_service = NIL;
            e = self.s(set).group;
        }
    }

    /// The share of `limit` requests that a queue, or a group that it is in, already holds; `None` when there is more of it.
    /// At each level the limit shrinks to the entity's weight over the weights of everything that competes there. A class
    /// weighs eight times the one below it. No entity is limited before it competes at all its levels.
    #[must_use]
    pub fn over_limit(&self, e: EntityId, limit: u32) -> Option<u64> {
        let mut at = e;
        while at != NIL {
            if !self.e(at).counted {
                return None;
            }
            at = self.s(self.e(at).set).group;
        }
        self.share_of(e, u64::from(limit)).err()
    }

    /// An entity's share of `limit` requests, from the root down; an error, with the share, when it, or a group above it,
    /// holds its share already.
    fn share_of(&self, e: EntityId, limit: u64) -> Result<u64, u64> {
        let Entity { set, class, weight, allocated, .. } = *self.e(e);
        let group = self.s(set).group;
        let limit = if group == NIL { limit } else { self.share_of(group, limit)? };
        let trees = &self.s(set).trees[..=usize::from(class)];
        let sum = trees.iter().fold(0, |sum, t| sum * CLASS_FACTOR + t.wsum).max(1);
        let share = (limit * weight + sum / 2) / sum;
        if u64::from(allocated) < share { Ok(share) } else { Err(share) }
    }

    /// Whether the candidate of the root is another entity than the one in service.
    #[must_use]
    pub fn may_preempt(&self) -> bool {
        self.s(ROOT).next != self.s(ROOT).in_service
    }

    /// Whether `a` is of a higher class than `b`, or outweighs it where their groups meet. Weights count between
    /// classes, too: of a lower class, `a` outranks a lighter `b`.
    #[must_use]
    pub fn outranks(&self, a: EntityId, b: EntityId) -> bool {
        if self.e(a).class < self.e(b).class {
            return true;
        }
        let (mut a, mut b) = (a, b);
        let (da, db) = (self.depth(a), self.depth(b));
        for _ in db..da {
            a = self.s(self.e(a).set).group;
        }
        for _ in da..db {
            b = self.s(self.e(b).set).group;
        }
        while self.e(a).set != self.e(b).set {
            a = self.s(self.e(a).set).group;
            b = self.s(self.e(b).set).group;
        }
        self.e(a).weight > self.e(b).weight
    }

    pub(super) fn depth(&self, e: EntityId) -> u32 {
        let mut n = 0;
        let mut g = self.s(self.e(e).set).group;
        while g != NIL {
            n += 1;
            g = self.s(self.e(g).set).group;
        }
        n
    }
}
