//! Operations on one entity and its tree.

use super::{Engine, Entity, EntityId, On, Owner, SetId, delta};
use crate::bfq::rbtree::{NIL, after};

impl Engine {
    pub(super) fn apply_weight(&mut self, e: EntityId) {
        let Entity { weight, new_weight, new_original, class, new_class, counted, .. } = *self.e(e);
        self.em(e).original = new_original;
        if weight == new_weight && class == new_class {
            return;
        }
        if counted {
            self.tree_of(e).wsum -= weight;
        }
        let entity = self.em(e);
        (entity.weight, entity.class) = (new_weight, new_class);
        if counted {
            self.tree_of(e).wsum += new_weight;
        }
        if class != new_class {
            // Virtual times of another class mean nothing here.
            let v = self.vtime_of(e);
            self.em(e).start = v;
        }
    }

    pub(super) fn put(&mut self, e: EntityId) {
        self.apply_weight(e);
        let Entity { start, budget, weight, set, class, .. } = *self.e(e);
        let finish = start.wrapping_add(delta(budget, weight));
        self.em(e).finish = finish;
        self.put_at(e, set, class);
    }

    pub(super) fn put_at(&mut self, e: EntityId, set: SetId, class: u8) {
        let Entity { start, finish, .. } = *self.e(e);
        self.em(e).on = On::Active;
        let set = &mut self.sets[set as usize];
        set.active += 1;
        self.nodes.insert(&mut set.trees[class as usize].active, e, finish, start);
        self.link(e);
    }

    pub(super) fn extract(&mut self, e: EntityId) {
        let Entity { set, class, on, .. } = *self.e(e);
        if on == On::Active {
            self.unlink(e);
        }
        let set = &mut self.sets[set as usize];
        let tree = &mut set.trees[class as usize];
        match on {
            On::Active => {
                set.active -= 1;
                self.nodes.remove(&mut tree.active, e);
            }
            On::Idle => {
                if tree.last_idle == e {
                    tree.last_idle = self.nodes.before(e).unwrap_or(NIL);
                }
                self.nodes.remove(&mut tree.idle, e);
            }
            On::None => {}
        }
        self.em(e).on = On::None;
    }

    pub(super) fn forget(&mut self, e: EntityId) {
        let weight = self.e(e).weight;
        self.tree_of(e).wsum -= weight;
        self.em(e).counted = false;
        self.forgotten.push(e);
    }

    /// An entity that stopped counting since the last call. Its queue may be freed if it has no other user.
    pub fn pop_forgotten(&mut self) -> Option<EntityId> {
        self.forgotten.pop()
    }

    /// Operation 1: charges `amount` sectors to an entity and to its ancestors.
    pub fn charge(&mut self, e: EntityId, amount: u64) {
        let mut e = e;
        while e != NIL {
            self.em(e).service += amount;
            let tree = self.tree_of(e);
            tree.vtime = tree.vtime.wrapping_add(delta(amount, tree.wsum));
            self.forget_idle(e);
            e = self.s(self.e(e).set).group;
        }
    }

    pub(super) fn forget_idle(&mut self, e: EntityId) {
        let tree = *self.tree_of(e);
        let Some(first) = self.nodes.first(tree.idle) else { return };
        let mut vtime = tree.vtime;
        if tree.active.is_empty() && tree.last_idle != NIL {
            let last_finish = self.e(tree.last_idle).finish;
            if !after(last_finish, vtime) {
                vtime = last_finish;
                self.tree_of(e).vtime = vtime;
            }
        }
        if !after(self.e(first).finish, vtime) {
            self.extract(first);
            self.forget(first);
        }
    }

    /// An entity waits on the idle tree for V to pass its finish.
    pub(super) fn put_idle(&mut self, e: EntityId) {
        let Entity { set, class, finish, .. } = *self.e(e);
        let last = self.tree_of(e).last_idle;
        let later = last == NIL || after(finish, self.e(last).finish);
        self.em(e).on = On::Idle;
        let tree = &mut self.sets[set as usize].trees[class as usize];
        if later {
            tree.last_idle = e;
        }
        self.nodes.insert(&mut tree.idle, e, finish, finish);
    }

    /// Operation 2, one level: an entity starts to wait.
    pub(super) fn activate_one(&mut self, e: EntityId, in_time: bool) {
        let v = self.vtime_of(e);
        let old_finish = self.e(e).finish;
        let shifted = in_time && after(v, old_finish);
        let base = if shifted { old_finish } else { v };
        if self.e(e).on == On::Idle {
            self.extract(e);
            let finish = self.e(e).finish;
            self.em(e).start = if after(base, finish) { base } else { finish };
        } else {
            self.em(e).start = base;
            if !self.e(e).counted {
                let weight = self.e(e).weight;
                self.tree_of(e).wsum += weight;
                self.em(e).counted = true;
            }
        }
        self.apply_weight(e);
        let Entity { start, budget, weight, coeff, set, class, .. } = *self.e(e);
        let (mut start, mut finish) = (start, start.wrapping_add(delta(budget, weight)));
        if shifted && after(v, finish) {
            let shift = v.wrapping_sub(finish) / coeff.max(1);
            start = start.wrapping_add(shift);
            finish = finish.wrapping_add(shift);
        }
        (self.em(e).start, self.em(e).finish) = (start, finish);
        self.put_at(e, set, class);
    }

    /// Operations 3 and 4, one level: an entity in service or waiting goes back with new times.
    pub(super) fn requeue_one(&mut self, e: EntityId) {
        let Entity { start, service, weight, set, owner, .. } = *self.e(e);
        if self.s(set).in_service == e {
            let entity = self.em(e);
            entity.start = start.wrapping_add(delta(service, weight));
            if matches!(owner, Owner::Group(_)) {
                // A group may be put back several times within one slot of its child.
                entity.service = 0;
            }
        }
        self.extract(e);
        self.put(e);
    }
}
