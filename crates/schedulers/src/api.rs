//! The scheduler interface: what the block layer asks and what it tells.

use iosched_types::{Bio, Flags, IoPrio, Nanos, Op, ReqId, Requests, Sector, TaskId};

/// What a scheduler may know about its queue. None of it names a device model.
#[derive(Clone, Debug)]
pub struct QueueFacts {
    /// Ticks per second of the kernel profile; schedulers that count in jiffies use it.
    pub hz: u32,
    /// `queue/rotational`.
    pub rotational: bool,
    /// Commands the device takes at once (driver tags); 1 means no command queueing.
    pub queue_depth: u32,
    /// `queue/nr_requests`.
    pub nr_requests: u32,
    /// The number of scheduler tags from which the scheduler computes its tag limits. This is `nr_requests`, but a
    /// write of that file tells the scheduler before the new value is stored. So the limits lag one write behind.
    pub limit_base: u32,
    /// How far a tag limit reaches: bits per word of the tag map (until about 6.16), or
    /// [`limit_base`](Self::limit_base) where the limit counts over the whole map.
    pub limit_unit: u32,
    /// `queue/async_depth` as it reads (7.1 and later): how many scheduler tags all but reads may take.
    pub async_depth: u32,
    /// The same as it is in force: BFQ works out its limits before its default is stored, from the value that the
    /// scheduler before it left.
    pub async_in_force: u32,
    /// `queue/max_sectors_kb` in sectors.
    pub max_sectors: u32,
    /// Hardware queues.
    pub hw_queues: u16,
    /// CPUs, hence software queues.
    pub cpus: u16,
    /// Sectors of the device.
    pub capacity: Sector,
    /// Sectors of a zone (`queue/chunk_sectors`), if all zones of the device want sequential writes; 0 if the device is
    /// not zoned.
    pub zone_sectors: Sector,
    /// The CPU takes no time at all, as in the measurements of `data/truth`. Steps that follow one another may share a
    /// nanosecond.
    pub cpu_takes_no_time: bool,
    /// Processes by [`TaskId`].
    pub tasks: Vec<TaskInfo>,
    /// Control groups; index 0 is the root.
    pub cgroups: Vec<Cgroup>,
}

impl Default for QueueFacts {
    fn default() -> Self {
        QueueFacts {
            hz: 1000,
            rotational: true,
            queue_depth: 1,
            nr_requests: 128,
            limit_base: 128,
            limit_unit: 32,
            async_depth: 128,
            async_in_force: 128,
            max_sectors: 1024,
            hw_queues: 1,
            cpus: 1,
            capacity: 1 << 31,
            zone_sectors: 0,
            cpu_takes_no_time: false,
            tasks: Vec::new(),
            cgroups: vec![Cgroup::default()],
        }
    }
}

impl QueueFacts {
    /// Bits per word of a tag map: 64, halved until four words fit.
    #[must_use]
    pub fn tag_word(depth: u32) -> u32 {
        let mut bits = 64;
        while depth >= 4 && bits > 1 && 4 * bits > depth {
            bits /= 2;
        }
        bits
    }

    /// Whether tag limits count over the whole map rather than per word.
    #[must_use]
    pub fn whole_map_limits(&self) -> bool {
        self.limit_unit == self.limit_base
    }

    /// The pid by which people know a task; the task's own number when it has none.
    #[must_use]
    pub fn pid(&self, task: TaskId) -> u32 {
        self.tasks.get(task as usize).map_or(task, |t| t.pid)
    }

    /// Milliseconds as jiffies, rounded down, as old schedulers compute them.
    #[must_use]
    pub fn jiffies(&self, now: Nanos) -> u64 {
        (u128::from(now) * u128::from(self.hz) / 1_000_000_000) as u64
    }

    /// When a timer of jiffies that is set now goes off: whole ticks, counted from the next one.
    #[must_use]
    pub fn timer(&self, now: Nanos, after: Nanos) -> Nanos {
        let hz = u128::from(self.hz.max(1));
        let tick = u128::from(self.jiffies(now)) + u128::from(after) * hz / 1_000_000_000 + 1;
        (tick * 1_000_000_000).div_ceil(hz) as Nanos
    }
}

/// One process.
#[derive(Clone, Debug, Default)]
pub struct TaskInfo {
    /// Process id for people to read.
    pub pid: u32,
    /// Name for people to read.
    pub name: String,
    /// Nice value, from which best effort levels derive when no ioprio is set.
    pub nice: i8,
    /// The priority when it started.
    pub prio: IoPrio,
    /// The control group.
    pub cgroup: u32,
}

/// One control group of the I/O controller.
#[derive(Clone, Debug, Default)]
pub struct Cgroup {
    /// Path below the root, `""` for the root.
    pub name: String,
    /// Parent; the root has none.
    pub parent: Option<u32>,
    /// `io.bfq.weight` (BFQ) or `blkio.weight` (CFQ), 1..=1000, where one was given. Each scheduler has a default of its
    /// own.
    pub weight: Option<u32>,
}

/// Why a scheduler did what it did; collected only under `iosched explain`.
#[derive(Clone, Debug, Default)]
pub struct Why {
    /// Reasons noted since the last decision, in order.
    pub notes: Vec<(Nanos, String)>,
}

/// What a hook wants the block layer to do after it returns.
#[derive(Debug, Default)]
pub struct Actions {
    /// Arm (`Some(Some(at))`) or cancel (`Some(None)`) the scheduler's one timer; `None` leaves it.
    pub timer: Option<Option<Nanos>>,
    /// Run the queue soon: there may be something to dispatch.
    pub run_queue: bool,
    /// The kernel's worker (`kblockd`) runs the queue: behind all tasks that are ready now.
    pub run_by_worker: bool,
    /// Run these hardware queues soon, in this order: only they have a reason to.
    pub run_hctxs: Vec<u16>,
    /// Requests that leave the scheduler at once for the dispatch queue (duplicate keys of 2.6 trees).
    pub ejected: Vec<ReqId>,
    /// Requests that may be found for merging from now on (`true`), or not (`false`). Those of a scheduler that says
    /// nothing can be found from insertion to dispatch.
    pub findable: Vec<(ReqId, bool)>,
    /// Present under `explain`.
    pub why: Option<Why>,
}

/// What every hook gets: the time, the requests, the queue and a place for wishes.
#[derive(Debug)]
pub struct Ctx<'a> {
    /// Now, in ns.
    pub now: Nanos,
    /// All requests of the queue.
    pub reqs: &'a mut Requests,
    /// Facts of the queue.
    pub queue: &'a QueueFacts,
    /// Wishes for the block layer.
    pub out: &'a mut Actions,
}

impl Ctx<'_> {
    /// Arms the scheduler's timer (replacing what was armed).
    pub fn arm_timer(&mut self, at: Nanos) {
        self.out.timer = Some(Some(at));
    }

    /// Cancels the scheduler's timer.
    pub fn cancel_timer(&mut self) {
        self.out.timer = Some(None);
    }

    /// Asks for a run of one hardware queue, behind those asked for before.
    pub fn run_hctx(&mut self, hctx: u16) {
        if !self.out.run_hctxs.contains(&hctx) {
            self.out.run_hctxs.push(hctx);
        }
    }

    /// Notes a reason for `iosched explain`; the closure runs only there.
    #[inline]
    pub fn why(&mut self, reason: impl FnOnce(&Requests, &QueueFacts) -> String) {
        if let Some(why) = &mut self.out.why {
            let text = reason(self.reqs, self.queue);
            why.notes.push((self.now, text));
        }
    }

    /// Now in jiffies.
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        self.queue.jiffies(self.now)
    }
}

/// Which end of a request a bio joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeKind {
    /// Appended: the bio starts where the request ends.
    Back,
    /// Prepended: the bio ends where the request starts.
    Front,
}

/// Who looks for merge candidates among queued requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merging {
    /// The elevator core: one-entry cache, back-merge hash (if `hash`), then [`Scheduler::find_front`].
    Elevator {
        /// Whether a back-merge hash exists (noop of 2.6.18 has none).
        hash: bool,
    },
    /// The scheduler itself through [`Scheduler::find_merge`] (none, kyber: the newest eight).
    Own,
}

/// Where to insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// In the scheduler's order.
    Sort,
    /// Ahead of everything (requeue, head insert).
    Head,
}

/// Allocation hint of the legacy path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayQueue {
    /// No opinion.
    May,
    /// Let it through even when the pool is full.
    Must,
    /// Refuse for now.
    No,
}

/// Why and how long a scheduler holds the device idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idling {
    /// When the scheduler's timer makes it look again, if nothing else happens.
    pub until: Nanos,
    /// The process that the scheduler waits for.
    pub for_task: Option<TaskId>,
}

/// Answer to "what next?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// This request; it has left the scheduler.
    Request(ReqId),
    /// Requests are queued, but the scheduler waits for something better.
    Idle(Idling),
    /// Nothing to give (empty, or everything is held back by tokens, locks or in-flight rules).
    Empty,
}

/// Which per-request hooks a scheduler has. The block layer does not call the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// [`Scheduler::limit_depth`].
    pub limit_depth: bool,
    /// [`Scheduler::limit_depth`] of reads.
    pub limit_reads: bool,
    /// [`Scheduler::prepare`].
    pub prepare: bool,
    /// [`Scheduler::completed`].
    pub completed: bool,
    /// [`Scheduler::finished`].
    pub finished: bool,
    /// [`Scheduler::allow_merge`] may join queues of processes, so it is asked about the last merged request wherever
    /// the bio lies.
    pub early_merge: bool,
    /// [`Scheduler::merges`] may say no.
    pub stops_merging: bool,
    /// [`Scheduler::arrives`] and [`Scheduler::passes`].
    pub arrives: bool,
}

impl Hooks {
    /// All of them, but no early merge.
    pub const ALL: Hooks = Hooks {
        limit_depth: true,
        limit_reads: true,
        prepare: true,
        completed: true,
        finished: true,
        early_merge: false,
        stops_merging: false,
        arrives: false,
    };
    /// None of them.
    pub const NONE: Hooks = Hooks {
        limit_depth: false,
        limit_reads: false,
        prepare: false,
        completed: false,
        finished: false,
        early_merge: false,
        stops_merging: false,
        arrives: false,
    };
}

/// One scheduler instance of one queue.
///
/// Contract: a request enters through [`insert`](Scheduler::insert). It leaves through
/// [`dispatch`](Scheduler::dispatch), [`Actions::ejected`] or by being [`absorbed`](Scheduler::absorbed). From `insert`
/// until then the scheduler owns `fifo`, `list`, `elv` and `fifo_time` of the request (`elv` until `finished`). No hook
/// allocates in steady state.
pub trait Scheduler {
    /// Who finds merge candidates.
    fn merging(&self) -> Merging {
        Merging::Elevator { hash: true }
    }

    /// Which of the hooks that do nothing by default this scheduler has.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// Whether a request may be appended to a queued one now.
    fn merges(&self) -> bool {
        true
    }

    /// Whether this bio may join this request (same queue of the same process, say).
    fn allow_merge(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId, _bio: &Bio) -> bool {
        true
    }

    /// The queued request that starts where `bio` ends, if the scheduler looks for front merges.
    fn find_front(&mut self, _ctx: &mut Ctx<'_>, _bio: &Bio) -> Option<ReqId> {
        None
    }

    /// For [`Merging::Own`]: a request the bio can join. The block layer checks the limits.
    fn find_merge(&mut self, _ctx: &mut Ctx<'_>, _bio: &Bio) -> Option<(ReqId, MergeKind)> {
        None
    }

    /// A bio joined a queued request; after a front merge its start has moved.
    /// `old_sector` is the start before the merge.
    fn merged(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId, _kind: MergeKind, _old_sector: Sector) {}

    /// `gone` was appended to `into`. Both were queued here, and `gone` leaves the scheduler now. Both still have their
    /// own sectors: the block layer joins them after this hook.
    fn absorbed(&mut self, ctx: &mut Ctx<'_>, into: ReqId, gone: ReqId);

    /// The request after `req` in the scheduler's own order (legacy merge with the neighbour).
    fn next_neighbour(&self, _ctx: &Ctx<'_>, _req: ReqId) -> Option<ReqId> {
        None
    }

    /// The request before `req` in the scheduler's own order.
    fn prev_neighbour(&self, _ctx: &Ctx<'_>, _req: ReqId) -> Option<ReqId> {
        None
    }

    /// How many tags this operation may take at most; `None` is no limit. The kernel profile decides how the limit is
    /// applied (per word of the tag map or over the whole map).
    fn limit_depth(
        &mut self,
        _ctx: &mut Ctx<'_>,
        _op: Op,
        _flags: Flags,
        _task: TaskId,
    ) -> Option<u32> {
        None
    }

    /// The smallest depth [`limit_depth`](Scheduler::limit_depth) may ever answer: the tag map sizes its
    /// wake-up batches by it. `None` when there is no limit.
    fn min_shallow_depth(&self, _queue: &QueueFacts) -> Option<u32> {
        None
    }

    /// Legacy request pool: may this task allocate?
    fn may_queue(&mut self, _ctx: &mut Ctx<'_>, _op: Op, _flags: Flags, _task: TaskId) -> MayQueue {
        MayQueue::May
    }

    /// A request was allocated and filled, before it is inserted (`set_request`/`prepare_request`).
    fn prepare(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId) {}

    /// A request is at the door (blk-mq). It may still be appended whole to a queued one and never be inserted.
    fn arrives(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId) {}

    /// The data of a flush sequence goes to the driver past everything queued (blk-mq). [`completed`](Scheduler::completed)
    /// and [`finished`](Scheduler::finished) follow.
    fn passes(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId) {}

    /// Takes a request.
    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position);

    /// Whether [`dispatch`](Scheduler::dispatch) is worth calling.
    fn has_work(&self) -> bool;

    /// Whether the scheduler holds no request at all (differs from `has_work` while requests are held back).
    fn is_empty(&self) -> bool {
        !self.has_work()
    }

    /// The next request for hardware queue `hctx`.
    fn dispatch(&mut self, ctx: &mut Ctx<'_>, hctx: u16) -> Dispatch;

    /// Forced drain (scheduler switch, barrier): any next request regardless of idling, batches or
    /// tokens; `None` only when empty.
    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId>;

    /// The driver fetched the request (legacy: took it off the dispatch queue).
    fn activated(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId) {}

    /// The driver gave the request back. blk-mq re-inserts it at the head; the legacy path keeps it in its dispatch
    /// queue.
    fn requeued(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId) {}

    /// The device finished the request.
    fn completed(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId) {}

    /// The request is about to be freed (also after a merge took it away: then `completed` was not called).
    fn finished(&mut self, _ctx: &mut Ctx<'_>, _req: ReqId) {}

    /// The timer armed through [`Ctx::arm_timer`] fired.
    fn timer(&mut self, _ctx: &mut Ctx<'_>) {}

    /// A process exited.
    fn task_exited(&mut self, _ctx: &mut Ctx<'_>, _task: TaskId) {}

    /// Changes a tunable while running; `value` is already validated, in the sysfs unit.
    fn set_tunable(&mut self, ctx: &mut Ctx<'_>, name: &str, value: i64);

    /// The current value of a tunable in the sysfs unit, `None` if this generation has none of that name.
    fn tunable(&self, name: &str) -> Option<i64>;

    /// Named counters for the record (expired, batches, weight raises, injections …).
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
