//! Queues, processes and groups: the state that the rules work on.

use iosched_types::{IoPrio, NO_REQ, Nanos, PrioClass, ReqId, TaskId};

use super::rbtree::{NIL, Root};
use super::wf2q::{EntityId, SetId};
use crate::ewma::{Ewma, SeekMean, ThinkTime};
use crate::list::{Fifo, List};
use crate::tree::PosTree;

/// Number of a queue.
pub(super) type QueueId = u32;
/// A time in jiffies.
pub(super) type Jiffies = i64;
/// Longer ago than anything a rule asks for.
pub(super) const LONG_AGO: Jiffies = i64::MIN / 4;
/// Later than anything.
pub(super) const NEVER: Jiffies = i64::MAX / 4;

/// Where a queue stands in the burst detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Burst {
    #[default]
    No,
    Listed,
    Large,
}

/// The raise of a queue's weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raise {
    /// The factor of the weight; 1 is no raise.
    pub(super) coeff: u64,
    /// Length of the present raise.
    pub(super) duration: Jiffies,
    /// It is a soft real-time one.
    pub(super) soft_rt: bool,
    pub(super) last_start_finish: Jiffies,
    /// Start of the interactive raise that a soft real-time one interrupted.
    pub(super) interactive_start: Jiffies,
    /// Sectors served since an interactive raise began.
    pub(super) service: u64,
}

impl Raise {
    pub(super) fn none(now: Jiffies) -> Raise {
        Raise {
            coeff: 1,
            duration: 0,
            soft_rt: false,
            last_start_finish: now,
            interactive_start: LONG_AGO,
            service: 0,
        }
    }
}

/// Injection into the idle times of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inject {
    /// Commands that the device may hold for others to be added.
    pub(super) limit: u32,
    /// Total service time of a request without injection; 0 is unknown.
    pub(super) baseline: Nanos,
    /// When the limit was last lowered or reset.
    pub(super) decreased: Jiffies,
}

/// One queue of requests.
#[derive(Debug)]
pub(super) struct Queue {
    /// Never reused, unlike the queue's number.
    pub(super) serial: u64,
    pub(super) entity: EntityId,
    pub(super) group: u32,
    /// The process that the queue belongs to; none when several share it, or when it is async.
    pub(super) owner: Option<TaskId>,
    /// A process of it, for people to read.
    pub(super) named: TaskId,
    pub(super) sync: bool,
    pub(super) class: u8,
    pub(super) level: u8,
    /// The level whose weight the queue has: its own, or that of the process which kept it after a split.
    pub(super) weighs_as: u8,

    pub(super) tree: PosTree,
    pub(super) fifo: List<Fifo>,
    pub(super) next_rq: ReqId,
    pub(super) dispatched: u32,
    /// Requests allocated and not yet freed.
    pub(super) allocated: u32,
    /// Processes that send their requests here.
    pub(super) processes: u32,
    /// Other reasons to keep it.
    pub(super) pins: u32,
    /// Processes of queues that lead into this one and have not come yet. To the kernel they are its own already.
    pub(super) expected: u32,

    pub(super) busy: bool,
    /// Counts among the queues with pending requests of its group, and of its weight.
    pub(super) pending: bool,
    pub(super) weighed: u64,
    pub(super) wait_request: bool,
    pub(super) non_blocking: bool,
    pub(super) fifo_checked: bool,
    /// A request beyond the pool was had in this slot (v7).
    pub(super) had_extra: bool,
    /// Short think time (5.0 on) or "idle window" (before).
    pub(super) short_think: bool,
    pub(super) io_bound: bool,
    pub(super) just_created: bool,
    pub(super) softrt_update: bool,
    pub(super) shared: bool,
    pub(super) split_wanted: bool,
    /// v7: seeky through a whole slot.
    pub(super) constantly_seeky: bool,
    pub(super) burst: Burst,

    pub(super) max_budget: u64,
    /// In service: when the queue's time is up. Otherwise: when the queue became empty.
    pub(super) budget_timeout: Jiffies,
    pub(super) raise: Raise,
    pub(super) soft_rt_next_start: Jiffies,
    pub(super) service_from_backlogged: u64,
    pub(super) last_idle_bklogged: Jiffies,
    pub(super) first_io: Jiffies,
    pub(super) creation: Jiffies,
    pub(super) split_time: Jiffies,

    pub(super) think: ThinkTime,
    pub(super) seek_history: u32,
    pub(super) seeks: SeekMean,
    pub(super) last_request_pos: u64,
    pub(super) io_start: Nanos,
    pub(super) idle_total: u64,
    pub(super) within_timer: u32,

    pub(super) inject: Inject,
    pub(super) waker: QueueId,
    pub(super) tentative_waker: u64,
    pub(super) waker_detections: u32,
    pub(super) waker_started: Nanos,
    /// Queues that have this one as their waker.
    pub(super) woken: Vec<QueueId>,

    /// The queue that takes over its processes.
    pub(super) new_queue: QueueId,
    pub(super) in_pos_tree: bool,
}

impl Queue {
    pub(super) fn new(now: Nanos, jiffies: Jiffies, sync: bool, class: u8, level: u8) -> Queue {
        Queue {
            serial: 0,
            entity: NIL,
            group: 0,
            owner: None,
            named: 0,
            sync,
            class,
            level,
            weighs_as: level,
            tree: PosTree::new(),
            fifo: List::default(),
            next_rq: NO_REQ,
            dispatched: 0,
            allocated: 0,
            processes: 0,
            pins: 0,
            expected: 0,
            busy: false,
            pending: false,
            weighed: 0,
            wait_request: false,
            non_blocking: false,
            fifo_checked: false,
            had_extra: false,
            short_think: sync && class != 2,
            io_bound: true,
            just_created: sync,
            softrt_update: false,
            shared: false,
            split_wanted: false,
            constantly_seeky: false,
            burst: Burst::No,
            max_budget: 0,
            budget_timeout: LONG_AGO,
            raise: Raise::none(jiffies),
            soft_rt_next_start: jiffies,
            service_from_backlogged: 0,
            last_idle_bklogged: LONG_AGO,
            first_io: jiffies,
            creation: jiffies,
            split_time: LONG_AGO,
            think: ThinkTime::starting(Nanos::MAX),
            seek_history: 1,
            seeks: SeekMean::default(),
            last_request_pos: 0,
            io_start: now,
            idle_total: 0,
            within_timer: 0,
            inject: Inject { limit: 0, baseline: 0, decreased: LONG_AGO },
            waker: NIL,
            tentative_waker: u64::MAX,
            waker_detections: 0,
            waker_started: 0,
            woken: Vec::new(),
            new_queue: NIL,
            in_pos_tree: false,
        }
    }

    pub(super) fn empty(&self) -> bool {
        self.tree.is_empty()
    }

    pub(super) fn raised(&self) -> bool {
        self.raise.coeff > 1
    }

    /// Weight without a raise: 80 for level 0 down to 10 for level 7.
    pub(super) fn original_weight(&self) -> u64 {
        u64::from(8 - self.weighs_as.min(7)) * 10
    }

    /// The weight a process without a priority of its own has.
    pub(super) fn has_default_weight(&self) -> bool {
        self.original_weight() == 40
    }
}

/// What a process keeps of its own queue while it shares another's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub(super) weighs_as: u8,
    pub(super) raise: Raise,
    pub(super) think: ThinkTime,
    pub(super) short_think: bool,
    pub(super) io_bound: bool,
    pub(super) io_start: Nanos,
    pub(super) idle_total: u64,
    pub(super) burst: Burst,
    pub(super) inject: Inject,
}

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    /// The async queue and the sync queue.
    pub(super) queues: [QueueId; 2],
    pub(super) prio: IoPrio,
    pub(super) group: u32,
    /// The queue that this one will be merged with for good, if that still makes sense in 600 ms.
    pub(super) stable_with: QueueId,
    pub(super) stably_merged: bool,
    /// v7: think time of the process, in jiffies.
    pub(super) think: ThinkTime,
}

impl Process {
    pub(super) const NEW: Process = Process {
        queues: [NIL; 2],
        prio: IoPrio { class: PrioClass::None, level: 0 },
        group: 0,
        stable_with: NIL,
        stably_merged: false,
        think: ThinkTime { avg: Ewma { samples: 0, total: 0, mean: 0 }, last_end: Nanos::MAX },
    };
}

/// One control group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) set: SetId,
    /// Async queues by class (real time, best effort) and level; last the idle class'.
    pub(super) async_queues: [QueueId; 17],
    /// Sync queues of one process by the position of their next request.
    pub(super) positions: Root,
    /// Queues with pending requests.
    pub(super) pending: u32,
    pub(super) last_created: QueueId,
}

impl Group {
    pub(super) fn new(set: SetId) -> Group {
        Group {
            set,
            async_queues: [NIL; 17],
            positions: Root::default(),
            pending: 0,
            last_created: NIL,
        }
    }
}
