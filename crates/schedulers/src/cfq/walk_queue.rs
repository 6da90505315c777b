//! One queue of the CFQ of 2.6.18.

use iosched_types::{IoPrio, NO_REQ, ReqId, TaskId};

use crate::ewma::{SeekMean, ThinkTime};
use crate::list::{Fifo, List};
use crate::tree::PosTree;

use super::params::Tick;
use super::{Class, NOQ, Qi};

/// Which list a queue is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Home {
    /// On no list: the queue has nothing waiting, or it has the disk.
    #[default]
    Nowhere,
    /// With its level or, once its turn has come, in the round; under a key by the time it was
    /// last served.
    Level(u8, u64),
    /// Has requests waiting and others with the driver.
    Busy,
    /// Idle class, under such a key, too.
    Idle(u64),
}

/// A queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) sorted: PosTree,
    pub(super) fifo: List<Fifo>,
    pub(super) next: ReqId,
    pub(super) owner: TaskId,
    pub(super) class: Class,
    pub(super) level: u8,
    /// Reads; every write is asynchronous here.
    pub(super) sync: bool,

    pub(super) home: Home,
    pub(super) prev: Qi,
    pub(super) follow: Qi,

    /// 0: the slice has not been set yet.
    pub(super) slice_end: Tick,
    pub(super) slice_start: Tick,
    pub(super) slice_left: Tick,
    /// When it was last served; 0 for never.
    pub(super) service_last: u64,
    /// Requests dispatched in this slice.
    pub(super) dispatch_slice: u64,
    /// Dispatched and not completed.
    pub(super) dispatched: u32,

    pub(super) wait_request: bool,
    pub(super) must_dispatch: bool,
    pub(super) must_alloc_slice: bool,
    /// An expired request was served in this slice.
    pub(super) fifo_expired: bool,
    pub(super) idle_window: bool,

    /// Requests that refer to it, and whether a process does.
    pub(super) allocated: u32,
    pub(super) owned: bool,
    pub(super) live: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Queue {
            sorted: PosTree::new(),
            fifo: List::default(),
            next: NO_REQ,
            owner: 0,
            class: Class::Be,
            level: 4,
            sync: true,
            home: Home::Nowhere,
            prev: NOQ,
            follow: NOQ,
            slice_end: 0,
            slice_start: 0,
            slice_left: 0,
            service_last: 0,
            dispatch_slice: 0,
            dispatched: 0,
            wait_request: false,
            must_dispatch: false,
            must_alloc_slice: false,
            fifo_expired: false,
            idle_window: true,
            allocated: 0,
            owned: true,
            live: false,
        }
    }
}

impl Queue {
    /// Makes a pooled slot a fresh queue; the tree keeps its memory.
    pub(super) fn reset(&mut self) {
        let mut sorted = std::mem::take(&mut self.sorted);
        sorted.clear();
        *self = Queue { sorted, live: true, ..Queue::default() };
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    pub(super) fn slice_over(&self, now: Tick) -> bool {
        self.slice_end != 0 && now > self.slice_end
    }
}

/// What is known about a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) queue: Qi,
    /// The shared queue that its writes join, and the priority under which it was found.
    pub(super) writes: (Qi, IoPrio),
    pub(super) think: ThinkTime,
    pub(super) seek: SeekMean,
    /// Whether it has been seen. Its clock starts then.
    pub(super) seen: bool,
    pub(super) exited: bool,
}
