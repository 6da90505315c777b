//! One queue of the service-tree CFQ: the waiting requests of a process (or of everybody's
//! asynchronous writes at a level), and what the scheduler knows about it.

use iosched_types::{NO_REQ, ReqId, Sector, TaskId};

use crate::list::{Fifo, List};
use crate::tree::PosTree;

use super::params::Tick;
use super::{Class, NOQ, Qi};

/// Bits of the seek history above which a queue counts as seeky: an eighth of 32.
const SEEKY_BITS: u32 = 32 / 8;

/// Workload types, in the order in which ties between them are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Workload {
    Async = 0,
    SyncNoIdle = 1,
    Sync = 2,
}

impl Workload {
    pub(super) const ALL: [Workload; 3] = [Workload::Async, Workload::SyncNoIdle, Workload::Sync];

    /// The kernel's name for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Workload::Async => "ASYNC",
            Workload::SyncNoIdle => "SYNC_NOIDLE",
            Workload::Sync => "SYNC",
        }
    }
}

/// The place of a queue: which service tree of its group, under which key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) tree: usize,
    pub(super) key: Tick,
    /// The slot in the tree.
    pub(super) slot: u64,
}

/// A queue.
#[derive(Debug)]
pub(super) struct Queue {
    /// Waiting requests by position.
    pub(super) sorted: PosTree,
    /// Waiting requests by arrival.
    pub(super) fifo: List<Fifo>,
    /// The best of them, [`NO_REQ`] when none waits.
    pub(super) next: ReqId,
    /// Waiting requests that carry the priority flag.
    pub(super) urgent: u32,
    /// The owner of the queue, for people. Shared and asynchronous queues keep their first owner.
    pub(super) owner: TaskId,
    pub(super) group: u32,
    pub(super) class: Class,
    pub(super) level: u8,
    pub(super) sync: bool,

    /// On a service tree, and where; `None` is "not busy".
    pub(super) place: Option<Place>,
    /// The entry in the position tree of its level.
    pub(super) position: Option<(u8, Sector)>,

    pub(super) slice_start: Tick,
    pub(super) slice_end: Tick,
    pub(super) allocated_slice: Tick,
    pub(super) slice_resid: Tick,
    pub(super) dispatch_start: Tick,
    /// Requests dispatched in this slice.
    pub(super) slice_dispatch: u64,
    /// Requests with the driver.
    pub(super) dispatched: u32,

    pub(super) seek_history: u32,
    pub(super) last_request_pos: Sector,

    pub(super) wait_request: bool,
    pub(super) must_dispatch: bool,
    pub(super) must_alloc_slice: bool,
    pub(super) fifo_checked: bool,
    pub(super) idle_window: bool,
    /// The slice has not started: no request of it completed yet.
    pub(super) slice_new: bool,
    /// Shared by several processes.
    pub(super) coop: bool,
    /// To be split: it turned seeky.
    pub(super) split_coop: bool,
    /// Held four requests or more at some time.
    pub(super) deep: bool,
    pub(super) wait_busy: bool,

    /// Processes that use it.
    pub(super) tasks: u32,
    /// Processes that will move here with their next request.
    pub(super) promised: u32,
    /// Queues that name this one in `merge_into`.
    pub(super) links_in: u32,
    /// The queue its processes move to with their next request.
    pub(super) merge_into: Qi,
    /// Requests that refer to it, waiting or not.
    pub(super) allocated: u32,
    /// The slot is in use.
    pub(super) live: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            sorted: PosTree::new(),
            fifo: List::default(),
            next: NO_REQ,
            urgent: 0,
            owner: 0,
            group: 0,
            class: Class::Be,
            level: 4,
            sync: true,
            place: None,
            position: None,
            slice_start: 0,
            slice_end: 0,
            allocated_slice: 0,
            slice_resid: 0,
            dispatch_start: 0,
            slice_dispatch: 0,
            dispatched: 0,
            seek_history: 0,
            last_request_pos: 0,
            wait_request: false,
            must_dispatch: false,
            must_alloc_slice: false,
            fifo_checked: false,
            idle_window: false,
            slice_new: false,
            coop: false,
            split_coop: false,
            deep: false,
            wait_busy: false,
            tasks: 0,
            promised: 0,
            links_in: 0,
            merge_into: NOQ,
            allocated: 0,
            live: false,
        }
    }
}

impl Queue {
    /// Makes a pooled slot a fresh queue; the trees keep their memory.
    pub(super) fn reset(&mut self) {
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        *self = Queue { sorted, live: true, ..Queue::default() };
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub(super) fn seeky(&self) -> bool {
        self.seek_history.count_ones() > SEEKY_BITS
    }

    pub(super) fn workload(&self) -> Workload {
        if !self.sync {
            Workload::Async
        } else if self.idle_window {
            Workload::Sync
        } else {
            Workload::SyncNoIdle
        }
    }

    /// The service tree it belongs on.
    pub(super) fn tree(&self) -> usize {
        super::group::tree_index(self.class, self.workload())
    }

    /// Whether the slice is over. A slice that has not started is not over.
    pub(super) fn slice_used(&self, now: Tick) -> bool {
        !self.slice_new && now >= self.slice_end
    }
}
