//! The legacy single-queue path (until 4.20): one lock, one dispatch queue, a request pool.
//!
//! Until 2.6.38 the *device* is plugged: a request inserted into an empty scheduler stops the driver for 3 ms, for four
//! requests, or until a task needs an answer. From 2.6.39 on each *task* has a plug.

mod barrier;
mod pool;

use std::collections::VecDeque;

use iosched_schedulers::{BlockPath, MayQueue, Position};
use iosched_types::{Bio, Flags, Op, ReqId, Sector, TaskId};

use crate::core::Core;
use crate::core::runs::Run;
use crate::outbox::Submit;
use crate::path::Path;
use crate::profile::{LegacyFlush, PlugKind, RequestClasses};
use crate::state;
use crate::steps::merge::Search;
use crate::steps::{flush, merge, plug, run as deferred};
use crate::timeline::{Event, QueueEvent, Timeline};
use barrier::Barrier;
use pool::{Alloc, Pool};

/// State of the legacy path.
#[derive(Debug)]
pub(crate) struct Legacy {
    pool: Pool,
    dispatch: VecDeque<ReqId>,
    device_plug: bool,
    plugged: bool,
    plug_timer: u32,
    /// End of the last request sent to the driver.
    boundary: Sector,
    barrier: Barrier,
}

impl Path for Legacy {
    const KIND: BlockPath = BlockPath::Legacy;

    const GRACE_TICKS: u64 = 0;

    /// The driver's request function: takes what the device has room for.
    #[inline(always)]
    fn run(&mut self, core: &mut Core, tl: &mut Timeline, _: Run) {
        if self.plugged {
            return;
        }
        let depth = core.sched.facts().queue_depth;
        while core.drive.in_flight() < depth && self.step(core, tl) {}
        if core.profile.legacy.look_ahead && core.drive.in_flight() >= depth {
            self.look_ahead(core, tl);
        }
    }

    fn unplugged(&mut self, core: &mut Core, tl: &mut Timeline, list: &[ReqId]) {
        for id in list {
            self.insert(core, tl, *id);
        }
        core.runs.ask();
        deferred::deferred(core, self, tl);
    }

    fn bypass(&mut self, core: &mut Core, id: ReqId, at_head: bool) {
        let queue = self.queue(core);
        if at_head {
            queue.push_front(id);
        } else {
            queue.push_back(id);
        }
        self.unplug(core);
    }

    #[inline(always)]
    fn release(&mut self, core: &mut Core, id: ReqId) {
        let class = usize::from(core.reqs[id].state & state::POOL_CLASS1 != 0);
        self.pool.put(class, &mut core.out.woken);
        core.runs.ask();
    }

    fn drained(core: &Core) -> bool {
        core.reqs.iter_live().all(|r| r.state & state::ELV == 0)
    }
}

fn is_barrier(bio: &Bio) -> bool {
    bio.op == Op::Flush || bio.flags.0 & (Flags::PREFLUSH.0 | Flags::FUA.0) != 0
}

/// Whether flushes are 2.6.18's barriers.
fn barriers(core: &Core) -> bool {
    core.profile.legacy.flush == LegacyFlush::Barrier
}

fn pool_class(core: &Core, bio: &Bio) -> usize {
    match core.profile.legacy.request_classes {
        RequestClasses::ReadWrite => usize::from(bio.op != Op::Read),
        RequestClasses::SyncAsync => usize::from(bio.is_sync()),
    }
}

impl Legacy {
    pub(crate) fn new(core: &Core) -> Self {
        Legacy {
            pool: Pool::new(
                core.sched.facts().nr_requests.max(4),
                core.sched.facts().hz,
                core.profile.legacy.request_classes == RequestClasses::SyncAsync,
            ),
            dispatch: VecDeque::new(),
            device_plug: core.profile.plug.kind == PlugKind::Device,
            plugged: false,
            plug_timer: 0,
            boundary: 0,
            barrier: Barrier::None,
        }
    }

    /// Whether more than seven eighths of the requests for reads, or for writes, are taken.
    pub(crate) fn congested(&self, core: &Core, writes: bool) -> bool {
        let class = match core.profile.legacy.request_classes {
            RequestClasses::ReadWrite => usize::from(writes),
            // Who asks about writes means those that nobody waits for.
            RequestClasses::SyncAsync => usize::from(!writes),
        };
        self.pool.congested(class)
    }

    /// A task will submit bios.
    pub(crate) fn task_started(&mut self, task: TaskId) {
        self.pool.room_for(task);
    }

    /// Takes a bio.
    pub(crate) fn submit(
        &mut self,
        core: &mut Core,
        tl: &mut Timeline,
        bio: &Bio,
        resumed: bool,
    ) -> Submit {
        let mut bio = *bio;
        if is_barrier(&bio) && !core.flushes.volatile() && !barriers(core) {
            bio.flags = bio.flags.without(Flags(Flags::PREFLUSH.0 | Flags::FUA.0));
            if bio.sectors == 0 {
                core.finish_bio(tl, &bio);
                return Submit::Taken;
            }
        }
        let special = is_barrier(&bio);
        if resumed {
            self.pool.resume(bio.task, tl.now);
        } else if !special && self.merge(core, tl, &bio) {
            if bio.is_sync() {
                self.unplug_device(core, tl);
            }
            return Submit::Taken;
        }
        let class = pool_class(core, &bio);
        let may = core.hook(tl, |s, c| s.may_queue(c, bio.op, bio.flags, bio.task));
        let must = may == MayQueue::Must;
        if self.pool.get(class, bio.task, must, tl.now) == Alloc::Sleep {
            // A task about to sleep unplugs the queue first.
            plug::flush(core, self, tl, bio.thread);
            self.unplug_device(core, tl);
            deferred::deferred(core, self, tl);
            self.pool.sleep(class, bio.thread);
            return Submit::Blocked;
        }
        let id = core.new_request(tl.now, &bio);
        if class == 1 {
            core.reqs[id].state |= state::POOL_CLASS1;
        }
        if !special {
            self.enter(core, tl, &bio, id);
        } else if barriers(core) {
            self.insert_barrier(core, tl, id);
        } else {
            flush::insert(core, self, tl, id);
        }
        Submit::Taken
    }

    /// A new request goes to its thread's plug, to the scheduler, or around one that is about to go.
    fn enter(&mut self, core: &mut Core, tl: &mut Timeline, bio: &Bio, id: ReqId) {
        if !core.switches.any() {
            core.reqs[id].state |= state::ELV;
            if core.sched.hooks().prepare {
                core.hook_mut(tl, |s, c| s.prepare(c, id));
            }
        }
        if core.threads.plugged(bio.thread) {
            plug::add(core, self, tl, bio.thread, id);
        } else if core.switches.any() {
            self.around(core, id);
        } else if self.device_plug {
            self.insert_plugged(core, tl, id, bio.is_sync());
        } else {
            core.insert(tl, id, Position::Sort);
            core.runs.ask();
        }
    }

    fn merge(&mut self, core: &mut Core, tl: &mut Timeline, bio: &Bio) -> bool {
        if !self.device_plug && plug::merge(core, bio) {
            return true;
        }
        core.elevator.queued() > 0 && merge::into_scheduler(core, self, tl, bio) == Search::Merged
    }

    /// Insertion under a device plug.
    fn insert_plugged(&mut self, core: &mut Core, tl: &mut Timeline, id: ReqId, sync: bool) {
        if core.elevator.queued() == 0 && self.queue(core).is_empty() && !self.plugged {
            // An unplug in the same system call (a barrier's) has run the driver already.
            deferred::deferred(core, self, tl);
            self.plugged = true;
            self.plug_timer = self.plug_timer.wrapping_add(1);
            let hz = u64::from(core.sched.facts().hz);
            let jiffies = (u64::from(core.profile.plug.delay_ms) * hz / 1000).max(1);
            let at = tl.now + jiffies * 1_000_000_000 / hz;
            tl.events.push(at, Event::Queue(core.disk, QueueEvent::Unplug(self.plug_timer)));
        }
        let asked = core.runs.any();
        core.insert(tl, id, Position::Sort);
        if !asked {
            // A scheduler that stops idling calls the driver itself.
            deferred::deferred(core, self, tl);
        }
        if self.plugged {
            let waiting = self.pool.allocated().saturating_sub(core.drive.in_flight());
            if waiting >= core.profile.plug.max_requests {
                self.unplug_device(core, tl);
            }
        }
        // Where the scheduler held something before, the queue is not plugged, and the driver is not called: it asks when a
        // command is done, or when the scheduler wakes it.
        if sync {
            self.unplug_device(core, tl);
        }
    }

    /// Takes the plug off the device, and calls the driver. Without a plug nothing happens: a run that the scheduler asked for
    /// is the worker's, which comes when the task is done.
    pub(crate) fn unplug_device(&mut self, core: &mut Core, tl: &mut Timeline) {
        if !self.plugged {
            return;
        }
        let of_worker = core.runs.any();
        self.unplug(core);
        deferred::deferred(core, self, tl);
        if of_worker {
            core.runs.ask();
        }
    }

    /// Inserts a request from a thread's plug.
    fn insert(&mut self, core: &mut Core, tl: &mut Timeline, id: ReqId) {
        if core.reqs[id].state & state::ELV == 0 {
            self.around(core, id);
            return;
        }
        if !merge::on_insertion(core, self, tl, id) {
            core.insert(tl, id, Position::Sort);
        }
        if core.switches.any() {
            self.drain(core, tl);
        }
    }

    /// A request that the old scheduler does not know is handed over while it is drained, or after.
    fn around(&mut self, core: &mut Core, id: ReqId) {
        self.append(core, id);
        core.runs.ask();
    }

    /// The driver may run again.
    pub(crate) fn unplug(&mut self, core: &mut Core) {
        self.plugged = false;
        core.runs.ask();
    }

    pub(crate) fn unplug_timer(&mut self, core: &mut Core, n: u32) {
        if n == self.plug_timer && self.plugged {
            self.unplug(core);
        }
    }

    /// The dispatch queue. What left the scheduler by itself stands in it.
    #[inline(always)]
    fn queue(&mut self, core: &mut Core) -> &mut VecDeque<ReqId> {
        if !core.ejected.is_empty() {
            self.take_ejected(core);
        }
        &mut self.dispatch
    }

    #[cold]
    fn take_ejected(&mut self, core: &mut Core) {
        for id in std::mem::take(&mut core.ejected) {
            self.append(core, id);
        }
    }

    /// Appends to the dispatch queue.
    fn append(&mut self, core: &mut Core, id: ReqId) {
        self.queue(core).push_back(id);
        self.boundary = core.reqs[id].end();
    }

    /// One-way elevator insertion from the boundary on (`elv_dispatch_sort`).
    fn dispatch_sort(&mut self, core: &mut Core, id: ReqId) {
        let mut at = self.queue(core).len();
        let (start, op) = (core.reqs[id].sector, core.reqs[id].op);
        let boundary = self.boundary;
        while at > 0 {
            let other = &core.reqs[self.dispatch[at - 1]];
            let same_kind = other.op == op || barriers(core);
            let fixed = other.state & (state::STARTED | state::FLUSH_SEQ) != 0;
            if fixed || !same_kind {
                break;
            }
            let stop = if start >= boundary {
                other.sector >= boundary && start >= other.sector
            } else {
                other.sector >= boundary || start >= other.sector
            };
            if stop {
                break;
            }
            at -= 1;
        }
        self.dispatch.insert(at, id);
    }

    /// Moves everything from the scheduler to the dispatch queue, whatever the scheduler waits for.
    pub(crate) fn drain(&mut self, core: &mut Core, tl: &mut Timeline) {
        while let Some(id) = core.hook_mut(tl, |s, c| s.force_dispatch(c)) {
            core.left_scheduler(id);
            self.dispatch_sort(core, id);
        }
        // Reasons noted during the drain belong to no decision.
        core.sched.take_reason();
    }

    /// The driver takes one request; `false` when there is none for it now.
    pub(crate) fn step(&mut self, core: &mut Core, tl: &mut Timeline) -> bool {
        let Some(id) = self.next(core, tl) else { return false };
        if core.reqs[id].state & state::FLUSH_SEQ != 0 && barriers(core) {
            self.barrier_is_next(core, tl, id);
            return false;
        }
        self.starts(core, tl, id);
        core.issue(tl, id);
        true
    }

    /// The driver takes a request that the device has no room for. It waits at the head of the dispatch queue.
    fn look_ahead(&mut self, core: &mut Core, tl: &mut Timeline) {
        if !self.queue(core).is_empty() {
            return;
        }
        let Some(id) = self.next(core, tl) else { return };
        self.starts(core, tl, id);
        self.dispatch.push_front(id);
    }

    /// The driver has seen the request: the scheduler hears of it, once.
    #[inline(always)]
    fn starts(&self, core: &mut Core, tl: &mut Timeline, id: ReqId) {
        if core.reqs[id].state & (state::ELV | state::STARTED) == state::ELV {
            core.reqs[id].state |= state::STARTED;
            core.hook_mut(tl, |s, c| s.activated(c, id));
        }
    }

    /// Head of the dispatch queue, filled from the scheduler when empty. A barrier stops everything behind it.
    fn next(&mut self, core: &mut Core, tl: &mut Timeline) -> Option<ReqId> {
        if self.barrier != Barrier::None {
            return None;
        }
        loop {
            if let Some(id) = self.queue(core).pop_front() {
                return Some(id);
            }
            if !core.sched.scheduler().has_work() {
                return None;
            }
            match core.ask_scheduler(tl, 0) {
                Some(id) => self.append(core, id),
                None if self.queue(core).is_empty() => return None,
                None => {}
            }
        }
    }

    /// A flush command, a data step of a flush or a phase of the barrier came back from the device.
    pub(crate) fn flush_came_back(&mut self, core: &mut Core, tl: &mut Timeline, id: ReqId) {
        if !self.barrier_done(core, tl, id) {
            flush::step_done(core, self, tl, id);
        }
    }
}
