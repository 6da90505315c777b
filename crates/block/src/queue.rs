//! The request queue: what both block layers share, and the interface to the simulator.

use std::collections::VecDeque;

use iosched_devices::{Completion, Device};
use iosched_schedulers::{Actions, BlockPath, Ctx, Hooks, Merging, QueueFacts, Scheduler, Why};
use iosched_types::{Bio, BioId, Nanos, Op, ReqId, Requests, Sector, TaskId};

use crate::bios::BioPool;
use crate::config::{Limits, SchedulerChoice};
use crate::flush::FlushQueue;
use crate::legacy::Legacy;
use crate::merge::{Elevator, segments};
use crate::mq::Hctx;
use crate::plug::Plug;
use crate::profile::{KernelProfile, MergeScan};
use crate::stats::{Issue, QueueStats};
use crate::switch::Switches;
use crate::timeline::{DiskId, Event, QueueEvent, Timeline};
use crate::trace::Trace;
use crate::wbt::Wbt;

/// Answer to a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submit {
    /// Taken: it will appear in [`Queue::done`].
    Taken,
    /// The task must sleep until it is named in [`Queue::woken`], then submit the same bio again with
    /// `resumed` set.
    Blocked,
    /// The bio carries `NOWAIT` and would have to wait for a tag. Nothing was done; the caller has the bio again.
    WouldBlock,
}

/// A finished bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The submitter's cookie.
    pub bio: BioId,
    /// Completion time.
    pub at: Nanos,
}

/// One request queue with its scheduler and device.
pub struct Queue {
    pub(crate) disk: DiskId,
    pub(crate) profile: KernelProfile,
    pub(crate) path: BlockPath,
    pub(crate) facts: QueueFacts,
    pub(crate) limits: Limits,
    pub(crate) merging: Merging,
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// Which of its optional hooks do anything.
    pub(crate) hooks: Hooks,
    pub(crate) choice: SchedulerChoice,
    /// No scheduler at all: blk-mq's `none`, which this crate does itself.
    pub(crate) none: bool,
    /// Bit at which each tag map is first searched.
    pub(crate) tag_start: u32,
    pub(crate) out: Actions,
    pub(crate) reqs: Requests,
    pub(crate) bios: BioPool,
    pub(crate) elevator: Elevator,
    pub(crate) same_prio_merge: bool,
    pub(crate) limit_marks_nomerge: bool,
    pub(crate) plugs: Vec<Plug>,
    pub(crate) plug_scan: MergeScan,
    pub(crate) hctx: Vec<Hctx>,
    pub(crate) legacy: Legacy,
    pub(crate) flushes: Vec<FlushQueue>,
    pub(crate) wbt: Option<Wbt>,
    pub(crate) switches: Switches,
    pub(crate) write_cache: bool,
    pub(crate) fua: bool,
    pub(crate) budget: bool,
    pub(crate) device: Box<dyn Device>,
    pub(crate) device_next: Nanos,
    pub(crate) finished_commands: Vec<Completion>,
    /// Commands that the device has finished are all booked together, whoever submitted them.
    pub commands_at_once: bool,
    pub(crate) scratch: Vec<ReqId>,
    pub(crate) in_flight: u32,
    pub(crate) busy_since: Nanos,
    pub(crate) head: Sector,
    /// Requests inside the scheduler.
    pub(crate) queued: u32,
    pub(crate) run_pending: bool,
    /// System calls and events so far.
    pub(crate) call: u32,
    /// Hardware queues to run, in this order, if not all of them have to run.
    pub(crate) run_some: VecDeque<u16>,
    pub(crate) timer_gen: u32,
    pub(crate) idle_since: Option<Nanos>,
    /// The caller pulls requests itself; the queue never runs.
    pub(crate) manual: bool,
    /// Counters.
    pub stats: QueueStats,
    /// Finished bios; the caller drains it.
    pub done: Vec<Done>,
    /// Tasks that may try again; the caller drains it.
    pub woken: Vec<TaskId>,
    /// For each of them, where known: how many of [`Queue::done`] were done before the task was woken. Drained together
    /// with the tasks.
    pub woken_behind: Vec<u32>,
    /// Every issued command, if the caller wants them.
    pub issues: Option<Vec<Issue>>,
    /// Decisions with reasons, if the caller wants them.
    pub trace: Option<Trace>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({}, {} in flight)", self.choice.descriptor.name, self.in_flight)
    }
}

impl Queue {
    /// Facts of the queue.
    #[must_use]
    pub fn facts(&self) -> &QueueFacts {
        &self.facts
    }

    /// Limits in force.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The scheduler in force.
    #[must_use]
    pub fn scheduler_choice(&self) -> &SchedulerChoice {
        &self.choice
    }

    /// Tunables in force.
    #[must_use]
    pub fn tunables(&self) -> Vec<(&'static str, i64)> {
        self.choice
            .descriptor
            .tunables_of(self.choice.generation.index)
            .filter_map(|t| Some((t.name, self.scheduler.tunable(t.name)?)))
            .collect()
    }

    /// The scheduler's counters.
    #[must_use]
    pub fn scheduler_counters(&self) -> Vec<(&'static str, u64)> {
        self.scheduler.counters()
    }

    /// The device's counters.
    #[must_use]
    pub fn device_counters(&self) -> Vec<(&'static str, u64)> {
        self.device.counters()
    }

    /// Turns on the collection of decisions with reasons.
    pub fn explain(&mut self) {
        self.trace = Some(Trace::default());
        self.out.why = Some(Why::default());
    }

    /// Commands at the device.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Requests waiting in the block layer (plugs and tag waiters not counted).
    #[must_use]
    pub fn pending(&self) -> usize {
        self.reqs.len() - self.in_flight as usize
    }

    /// When the device next needs attention; `Nanos::MAX` when never.
    #[must_use]
    pub fn device_next(&self) -> Nanos {
        self.device_next
    }

    /// Whether requests come from tag maps, so that a bio can be refused for want of a tag.
    #[must_use]
    pub fn has_tags(&self) -> bool {
        self.path == BlockPath::Mq
    }

    /// Sectors up to which a direct I/O that is split has no plug of its own: its pieces go one by one.
    #[must_use]
    pub fn unplugged_sectors(&self) -> u32 {
        self.profile.plug.own_above_kb * 2
    }

    /// The pieces a bio is split into by `max_sectors_kb` and the segment limit.
    pub fn split(&self, bio: Bio) -> impl Iterator<Item = Bio> + use<> {
        let most = self.limits.max_sectors.min(u32::from(self.limits.max_segments) * 8).max(1);
        let most = if bio.op == Op::Discard { u32::MAX } else { most };
        let (mut left, mut at, mut first) = (bio.sectors, bio.sector, true);
        std::iter::from_fn(move || {
            if left == 0 && !first {
                return None;
            }
            first = false;
            let n = left.min(most);
            let piece = Bio { sector: at, sectors: n, ..bio };
            at += u64::from(n);
            left -= n;
            Some(piece)
        })
    }

    /// Calls a scheduler hook that wishes nothing.
    #[inline(always)]
    pub(crate) fn hook<T>(
        &mut self,
        tl: &Timeline,
        f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>) -> T,
    ) -> T {
        let mut ctx =
            Ctx { now: tl.now, reqs: &mut self.reqs, queue: &self.facts, out: &mut self.out };
        f(self.scheduler.as_mut(), &mut ctx)
    }

    /// Calls a scheduler hook and carries out its wishes.
    #[inline(always)]
    pub(crate) fn hook_mut<T>(
        &mut self,
        tl: &mut Timeline,
        f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>) -> T,
    ) -> T {
        let answer = self.hook(tl, f);
        self.carry_out(tl);
        answer
    }

    #[inline(always)]
    fn carry_out(&mut self, tl: &mut Timeline) {
        let out = &self.out;
        let runs = out.run_queue || !out.run_hctxs.is_empty();
        if out.timer.is_some() || runs || !out.ejected.is_empty() {
            self.carry_out_wishes(tl);
        }
    }

    #[cold]
    fn carry_out_wishes(&mut self, tl: &mut Timeline) {
        if let Some(timer) = self.out.timer.take() {
            self.timer_gen = self.timer_gen.wrapping_add(1);
            if let Some(at) = timer {
                tl.events.push(
                    at.max(tl.now),
                    Event::Queue(self.disk, QueueEvent::SchedulerTimer(self.timer_gen)),
                );
            }
        }
        self.run_pending |= std::mem::take(&mut self.out.run_queue);
        for i in 0..self.out.run_hctxs.len() {
            self.ask_hctx(self.out.run_hctxs[i]);
        }
        self.out.run_hctxs.clear();
        while !self.out.ejected.is_empty() {
            let id = self.out.ejected.remove(0);
            self.left_scheduler(id);
            self.trace_dispatch(tl.now, id);
            self.legacy_dispatch_tail(id);
            self.run_pending = true;
        }
    }

    /// One hardware queue shall run soon, behind those asked for before: each is a work item of its own.
    pub(crate) fn ask_hctx(&mut self, h: u16) {
        if !self.run_some.contains(&h) {
            self.run_some.push_back(h);
        }
    }

    /// A fresh request for a bio.
    #[inline(always)]
    pub(crate) fn new_request(&mut self, now: Nanos, bio: &Bio) -> ReqId {
        self.reqs.add_bio(bio, segments(bio.sectors), now).0
    }

    /// Submits one bio (already [`split`](Self::split)).
    ///
    /// `resumed` says that the task was blocked on this bio and has been woken.
    #[inline(always)]
    pub fn submit(&mut self, tl: &mut Timeline, bio: &Bio, resumed: bool) -> Submit {
        let resumed = resumed && self.slept_inside(bio.thread);
        if self.switches.now.is_some() && !resumed && self.held_by_switch(tl, bio) {
            return Submit::Blocked;
        }
        let answer = match self.path {
            BlockPath::Mq => self.mq_submit(tl, bio, resumed),
            BlockPath::Legacy => self.legacy_submit(tl, bio, resumed),
        };
        match answer {
            Submit::Taken => self.stats.submitted += 1,
            Submit::Blocked if !resumed => self.sleeps_inside(bio.thread),
            Submit::Blocked | Submit::WouldBlock => {}
        }
        if resumed && answer != Submit::Blocked {
            self.woke_inside(bio.thread);
        }
        answer
    }

    /// Commands issued from now on belong to another system call.
    #[inline(always)]
    pub fn next_call(&mut self) {
        self.call = self.call.wrapping_add(1);
    }

    /// The kernel's deferred work: runs the queue if a run was requested. The simulator calls it at the end of each
    /// system call and after each event.
    #[inline(always)]
    pub fn run_deferred(&mut self, tl: &mut Timeline) {
        if self.run_pending || !self.run_some.is_empty() || self.switches.now.is_some() {
            self.run_now(tl);
        }
    }

    #[inline(never)]
    fn run_now(&mut self, tl: &mut Timeline) {
        loop {
            if std::mem::take(&mut self.run_pending) {
                self.run_some.clear();
                self.run(tl);
            } else if let Some(h) = self.run_some.pop_front() {
                self.run_hctx(tl, h);
            } else {
                break;
            }
        }
        if self.switches.now.is_some() {
            self.try_end_switch(tl);
        }
    }

    /// Runs the one hardware queue that has a reason to.
    fn run_hctx(&mut self, tl: &mut Timeline, h: u16) {
        match self.path {
            BlockPath::Mq if !self.manual => self.mq_run(tl, usize::from(h)),
            BlockPath::Mq => {}
            BlockPath::Legacy => self.run(tl),
        }
    }

    #[inline(always)]
    pub(crate) fn run(&mut self, tl: &mut Timeline) {
        if self.manual {
            return;
        }
        match self.path {
            BlockPath::Mq => self.mq_run_all(tl),
            BlockPath::Legacy => self.legacy_run(tl),
        }
    }

    /// Which disk its events name.
    #[must_use]
    pub fn disk(&self) -> DiskId {
        self.disk
    }

    /// Handles an event of the timeline that names this queue's disk.
    pub fn event(&mut self, tl: &mut Timeline, event: QueueEvent) {
        self.next_call();
        match event {
            QueueEvent::SchedulerTimer(n) if n == self.timer_gen => {
                self.hook_mut(tl, |s, c| s.timer(c));
            }
            QueueEvent::SchedulerTimer(_) => {}
            QueueEvent::Unplug(n) => self.legacy_unplug_timer(tl, n),
            QueueEvent::Wbt(n) => self.wbt_window(tl, n),
            QueueEvent::Run(h) => self.rerun_fired(h),
            QueueEvent::Switch => self.end_switch(tl),
        }
        self.run_deferred(tl);
    }

    /// The device reached an event time: completions are booked into [`Queue::done`]. The caller lets
    /// deferred work run next ([`run_deferred`](Self::run_deferred)).
    #[inline(always)]
    pub fn device_event(&mut self, tl: &mut Timeline) {
        self.device.advance(tl.now, &mut self.finished_commands);
        self.device_next = self.device.next_wakeup().unwrap_or(Nanos::MAX);
        self.next_call();
        let finished = self.finished_commands.len();
        let (mut booked, mut call) = (finished, 0);
        for i in 0..finished {
            let c = self.finished_commands[i];
            let of = self.reqs[c.id].call;
            // Commands of several calls are a moment apart. A task that the one wakes for a tag takes it before the
            // other is done.
            let other = of != std::mem::replace(&mut call, of);
            if other && i > 0 && !self.woken.is_empty() && !self.commands_at_once {
                booked = i;
                self.device_next = tl.now;
                break;
            }
            self.complete(tl, &c);
            if !self.woken.is_empty() {
                self.woken_behind.resize(self.woken.len(), self.done.len() as u32);
            }
        }
        // Commands that a completion issued may finish at this same instant. These wait for the next event.
        if booked == self.finished_commands.len() {
            self.finished_commands.clear();
        } else {
            self.finished_commands.drain(..booked);
        }
    }

    /// Whether the device has said at a submission that commands are finished.
    #[inline]
    #[must_use]
    pub fn has_finished(&self) -> bool {
        !self.finished_commands.is_empty()
    }

    /// A process ends.
    pub fn task_exited(&mut self, tl: &mut Timeline, task: TaskId) {
        self.hook_mut(tl, |s, c| s.task_exited(c, task));
        self.run_deferred(tl);
    }

    /// Requests that are still inside: in the scheduler, parked or at the device.
    #[must_use]
    pub fn pending_bios(&self) -> Vec<BioId> {
        let mut ids = self.in_queue_bios();
        ids.sort_unstable();
        ids
    }

    fn in_queue_bios(&self) -> Vec<BioId> {
        self.reqs.iter_live().flat_map(|r| self.bios.iter(r)).collect()
    }
}
