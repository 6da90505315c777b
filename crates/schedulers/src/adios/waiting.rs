//! Requests that wait for a place in a batch: reads and all others, by deadline.

use iosched_types::{Nanos, Op, ReqId, Request, Requests};

use crate::tree::PosTree;

/// Deadlines that differ in no higher bit are in one group, which keeps the order of insertion: 1.05 ms.
const GROUP: u32 = 20;

/// Two trees by group of deadlines.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    trees: [PosTree; 2],
}

fn side(r: &Request) -> usize {
    usize::from(r.op != Op::Read)
}

fn group(r: &Request) -> Nanos {
    r.fifo_time >> GROUP
}

impl Waiting {
    pub(super) fn insert(&mut self, reqs: &Requests, id: ReqId) {
        let r = &reqs[id];
        self.trees[side(r)].insert(group(r), id);
    }

    pub(super) fn remove(&mut self, reqs: &Requests, id: ReqId) {
        let r = &reqs[id];
        self.trees[side(r)].remove(group(r), id);
    }

    /// The first read (0) or the first of the others (1).
    pub(super) fn first(&self, side: usize) -> Option<ReqId> {
        self.trees[side].first()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.trees.iter().all(PosTree::is_empty)
    }
}
