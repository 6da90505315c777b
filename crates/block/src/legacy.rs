//! The legacy single-queue path (until 4.20): one lock, one dispatch queue, a request pool.
//!
//! Until 2.6.38 the *device* is plugged: a request inserted into an empty scheduler stops the driver for 3 ms, for four
//! requests, or until a task needs an answer. From 2.6.39 on each *task* has a plug.

use std::collections::VecDeque;

use iosched_schedulers::{Dispatch, MayQueue, Position};
use iosched_types::{Bio, Flags, Op, ReqId, Sector};

use crate::merge::Search;
use crate::pool::{Alloc, Pool};
use crate::profile::{LegacyFlush, RequestClasses};
use crate::queue::{Queue, Submit};
use crate::state;
use crate::timeline::{Event, QueueEvent, Timeline};

/// State of the legacy path.
#[derive(Debug)]
pub(crate) struct Legacy {
    pub(crate) pool: Pool,
    dispatch: VecDeque<ReqId>,
    device_plug: bool,
    plugged: bool,
    plug_timer: u32,
    /// End of the last request sent to the driver.
    boundary: Sector,
    barrier: Barrier,
}

/// The 2.6.18 barrier at the head of the dispatch queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Barrier {
    #[default]
    None,
    PreFlush,
    Data,
    PostFlush,
}

impl Legacy {
    pub(crate) fn new(nr: u32, device_plug: bool) -> Self {
        Legacy {
            pool: Pool::new(nr.max(4)),
            dispatch: VecDeque::new(),
            device_plug,
            plugged: false,
            plug_timer: 0,
            boundary: 0,
            barrier: Barrier::None,
        }
    }
}

fn is_barrier(bio: &Bio) -> bool {
    bio.op == Op::Flush || bio.flags.0 & (Flags::PREFLUSH.0 | Flags::FUA.0) != 0
}

impl Queue {
    fn barriers(&self) -> bool {
        self.profile.legacy.flush == LegacyFlush::Barrier
    }

    fn pool_class(&self, bio: &Bio) -> usize {
        match self.profile.legacy.request_classes {
            RequestClasses::ReadWrite => usize::from(bio.op != Op::Read),
            RequestClasses::SyncAsync => usize::from(bio.is_sync()),
        }
    }

    pub(crate) fn legacy_submit(&mut self, tl: &mut Timeline, bio: &Bio, resumed: bool) -> Submit {
        let mut bio = *bio;
        if is_barrier(&bio) && !self.write_cache && !self.barriers() {
            bio.flags = bio.flags.without(Flags(Flags::PREFLUSH.0 | Flags::FUA.0));
            if bio.sectors == 0 {
                self.finish_bio(tl, &bio);
                return Submit::Taken;
            }
        }
        let special = is_barrier(&bio);
        if resumed {
            self.legacy.pool.resume(bio.task, tl.now);
        } else if !special && self.legacy_merge(tl, &bio) {
            if self.legacy.device_plug && bio.is_sync() {
                self.unplug(tl);
            }
            return Submit::Taken;
        }
        let class = self.pool_class(&bio);
        let may = self.hook(tl, |s, c| s.may_queue(c, bio.op, bio.flags, bio.task));
        let must = may == MayQueue::Must;
        if self.legacy.pool.get(class, bio.task, must, tl.now) == Alloc::Sleep {
            // A task about to sleep unplugs the queue first.
            self.task_sleeps(tl, bio.thread);
            self.unplug(tl);
            self.run_deferred(tl);
            self.legacy.pool.sleep(class, bio.thread);
            return Submit::Blocked;
        }
        let id = self.new_request(tl.now, &bio);
        if class == 1 {
            self.reqs[id].state |= state::POOL_CLASS1;
        }
        if special {
            if self.barriers() {
                self.insert_barrier(tl, id)
            } else {
                self.flush_insert(tl, id)
            }
            return Submit::Taken;
        }
        if !self.is_switching() {
            self.reqs[id].state |= state::ELV;
            if self.hooks.prepare {
                self.hook_mut(tl, |s, c| s.prepare(c, id));
            }
        }
        if self.plug_active(bio.thread) {
            self.add_to_plug(tl, bio.thread, id);
        } else if self.is_switching() {
            self.legacy_around(id);
        } else if self.legacy.device_plug {
            self.insert_plugged(tl, id, bio.is_sync());
        } else {
            self.insert_into_scheduler(tl, id, Position::Sort);
            self.run_pending = true;
        }
        Submit::Taken
    }

    fn legacy_merge(&mut self, tl: &mut Timeline, bio: &Bio) -> bool {
        if !self.legacy.device_plug && self.merge_into_plug(bio) {
            return true;
        }
        self.queued > 0 && self.merge_into_scheduler(tl, bio) == Search::Merged
    }

    /// Insertion under a device plug.
    fn insert_plugged(&mut self, tl: &mut Timeline, id: ReqId, sync: bool) {
        if self.queued == 0 && !self.legacy.plugged {
            // An unplug in the same system call (a barrier's) has run the driver already.
            self.run_deferred(tl);
            self.legacy.plugged = true;
            self.legacy.plug_timer = self.legacy.plug_timer.wrapping_add(1);
            let hz = u64::from(self.facts.hz);
            let jiffies = (u64::from(self.profile.plug.delay_ms) * hz / 1000).max(1);
            let at = tl.now + jiffies * 1_000_000_000 / hz;
            tl.events.push(at, Event::Queue(self.disk, QueueEvent::Unplug(self.legacy.plug_timer)));
        }
        self.insert_into_scheduler(tl, id, Position::Sort);
        if self.legacy.plugged {
            let waiting = self.legacy.pool.allocated().saturating_sub(self.in_flight);
            if waiting >= self.profile.plug.max_requests {
                self.unplug(tl);
            }
        } else {
            // The driver runs already and will ask again by itself.
            self.run_pending = true;
        }
        if sync {
            self.unplug(tl);
        }
    }

    /// The driver may run again.
    pub(crate) fn unplug(&mut self, _tl: &mut Timeline) {
        self.legacy.plugged = false;
        self.run_pending = true;
    }

    pub(crate) fn legacy_unplug_timer(&mut self, tl: &mut Timeline, n: u32) {
        if n == self.legacy.plug_timer && self.legacy.plugged {
            self.unplug(tl);
        }
    }

    /// Appends to the dispatch queue.
    pub(crate) fn legacy_dispatch_tail(&mut self, id: ReqId) {
        self.legacy.boundary = self.reqs[id].end();
        self.legacy.dispatch.push_back(id);
    }

    /// Sends a flush-machine request around the scheduler.
    pub(crate) fn legacy_bypass(&mut self, tl: &mut Timeline, id: ReqId, at_head: bool) {
        if at_head {
            self.legacy.dispatch.push_front(id);
        } else {
            self.legacy.dispatch.push_back(id);
        }
        self.unplug(tl);
    }

    /// One-way elevator insertion from the boundary on (`elv_dispatch_sort`).
    pub(crate) fn dispatch_sort(&mut self, id: ReqId) {
        let start = self.reqs[id].sector;
        let boundary = self.legacy.boundary;
        let mut at = self.legacy.dispatch.len();
        while at > 0 {
            let other = &self.reqs[self.legacy.dispatch[at - 1]];
            let same_kind = other.op == self.reqs[id].op || self.barriers();
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
        self.legacy.dispatch.insert(at, id);
    }

    /// 2.6.18: everything queued goes out first, then the barrier alone, then the rest.
    fn insert_barrier(&mut self, tl: &mut Timeline, id: ReqId) {
        self.drain_scheduler(tl);
        self.reqs[id].state |= state::FLUSH_SEQ | state::NOMERGE;
        self.legacy.dispatch.push_back(id);
        self.unplug(tl);
    }

    /// The driver's request function: takes what the device has room for.
    pub(crate) fn legacy_run(&mut self, tl: &mut Timeline) {
        if self.legacy.plugged {
            return;
        }
        while self.in_flight < self.facts.queue_depth && self.legacy_step(tl) {}
    }

    /// The driver takes one request; `false` when there is none for it now.
    pub(crate) fn legacy_step(&mut self, tl: &mut Timeline) -> bool {
        let Some(id) = self.legacy_next(tl) else { return false };
        if self.reqs[id].state & state::FLUSH_SEQ != 0 && self.barriers() {
            self.legacy.dispatch.push_front(id);
            if self.legacy.barrier == Barrier::None && self.in_flight == 0 {
                self.legacy.barrier = Barrier::PreFlush;
                self.barrier_step(tl);
            }
            return false;
        }
        if self.legacy.barrier != Barrier::None {
            self.legacy.dispatch.push_front(id);
            return false;
        }
        if self.reqs[id].state & state::ELV != 0 {
            self.reqs[id].state |= state::STARTED;
            self.hook_mut(tl, |s, c| s.activated(c, id));
        }
        self.issue(tl, id);
        true
    }

    /// Head of the dispatch queue, filled from the scheduler when empty.
    fn legacy_next(&mut self, tl: &mut Timeline) -> Option<ReqId> {
        if self.legacy.barrier != Barrier::None {
            return None;
        }
        loop {
            if let Some(id) = self.legacy.dispatch.pop_front() {
                return Some(id);
            }
            if !self.scheduler.has_work() {
                return None;
            }
            match self.hook_mut(tl, |s, c| s.dispatch(c, 0)) {
                Dispatch::Request(id) => {
                    self.left_scheduler(id);
                    self.trace_dispatch(tl.now, id);
                    self.legacy_dispatch_tail(id);
                }
                Dispatch::Idle(idle) => {
                    self.note_idle(tl.now, idle);
                    return None;
                }
                Dispatch::Empty => {
                    if self.legacy.dispatch.is_empty() {
                        return None;
                    }
                }
            }
        }
    }

    /// Starts the current phase of the barrier at the head, skipping what is not needed.
    fn barrier_step(&mut self, tl: &mut Timeline) {
        let Some(id) = self.legacy.dispatch.front().copied() else { return };
        loop {
            match self.legacy.barrier {
                Barrier::PreFlush if self.write_cache => {
                    self.issue_barrier_flush(tl, id);
                    return;
                }
                Barrier::PreFlush => self.legacy.barrier = Barrier::Data,
                Barrier::Data if self.reqs[id].sectors > 0 => {
                    self.issue(tl, id);
                    return;
                }
                Barrier::Data => self.legacy.barrier = Barrier::PostFlush,
                Barrier::PostFlush if self.write_cache && self.reqs[id].sectors > 0 => {
                    self.issue_barrier_flush(tl, id);
                    return;
                }
                Barrier::PostFlush | Barrier::None => {
                    self.legacy.barrier = Barrier::None;
                    self.legacy.dispatch.pop_front();
                    self.finish_request(tl, id);
                    self.run_pending = true;
                    return;
                }
            }
        }
    }

    fn issue_barrier_flush(&mut self, tl: &mut Timeline, near: ReqId) {
        let mut cmd = iosched_types::Request::new(Op::Flush, 0, 0);
        cmd.task = self.reqs[near].task;
        cmd.state = state::FLUSH_CMD;
        cmd.t_start = tl.now;
        let cmd = self.reqs.add(cmd);
        self.issue(tl, cmd);
    }

    /// The barrier in progress.
    pub(crate) fn barrier_in_progress(&self) -> Option<ReqId> {
        let active = self.legacy.barrier != Barrier::None;
        self.legacy.dispatch.front().copied().filter(|_| active)
    }

    /// A phase of the barrier came back; `true` if it was one.
    pub(crate) fn barrier_done(&mut self, tl: &mut Timeline, id: ReqId) -> bool {
        if self.legacy.barrier == Barrier::None {
            return false;
        }
        if self.reqs[id].state & state::FLUSH_CMD != 0 {
            self.reqs.remove(id);
        }
        self.legacy.barrier = match self.legacy.barrier {
            Barrier::PreFlush => Barrier::Data,
            Barrier::Data => Barrier::PostFlush,
            Barrier::PostFlush | Barrier::None => Barrier::None,
        };
        self.barrier_step(tl);
        true
    }
}
