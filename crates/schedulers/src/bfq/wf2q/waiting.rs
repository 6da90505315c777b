//! The list of waiting queues: the one put on its tree last comes first, whether it was put there anew or again.

use super::{Engine, Entity, EntityId, Owner};
use crate::bfq::rbtree::NIL;

impl Engine {
    /// A queue was put on its tree.
    pub(super) fn link(&mut self, e: EntityId) {
        if !matches!(self.e(e).owner, Owner::Queue(_)) {
            return;
        }
        let older = std::mem::replace(&mut self.newest, e);
        if older != NIL {
            self.em(older).newer = e;
        }
        let entity = self.em(e);
        (entity.newer, entity.older) = (NIL, older);
    }

    /// A queue leaves its tree.
    pub(super) fn unlink(&mut self, e: EntityId) {
        let Entity { newer, older, owner, .. } = *self.e(e);
        if !matches!(owner, Owner::Queue(_)) {
            return;
        }
        match newer {
            NIL => self.newest = older,
            newer => self.em(newer).older = older,
        }
        if older != NIL {
            self.em(older).newer = newer;
        }
    }

    /// The queues that wait on their trees, of all groups.
    pub fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        let first = (self.newest != NIL).then_some(self.newest);
        let all = std::iter::successors(first, |e| {
            let older = self.e(*e).older;
            (older != NIL).then_some(older)
        });
        all.filter_map(|e| match self.e(e).owner {
            Owner::Queue(q) => Some(q),
            _ => None,
        })
    }
}
