//! What both paths share, and nothing of either: a handful of parts that each own one concern, and the two ways out of
//! here, to the scheduler and to the device.

pub(crate) mod bios;
pub(crate) mod drive;
pub(crate) mod elevator;
pub(crate) mod flushes;
mod issue;
pub(crate) mod rules;
pub(crate) mod runs;
pub(crate) mod sched;
pub(crate) mod switches;
pub(crate) mod threads;
pub(crate) mod throttle;
pub(crate) mod trace;
pub(crate) mod wbt;

use iosched_schedulers::{Ctx, Position, Scheduler};
use iosched_types::{Bio, Nanos, ReqId, Requests};

use crate::outbox::{Done, Outbox};
use crate::profile::KernelProfile;
use crate::stats::QueueStats;
use crate::timeline::{DiskId, Event, QueueEvent, Timeline};
use bios::BioPool;
use drive::Drive;
use elevator::Elevator;
use flushes::Flushes;
use rules::{Rules, segments};
use runs::Runs;
use sched::Sched;
use switches::Switches;
use threads::Threads;
use throttle::Throttle;
use trace::Explain;

/// The parts of a queue. Their fields are their own; only plain data (`reqs`, `stats`, `out`) is open.
pub(crate) struct Core {
    pub(crate) disk: DiskId,
    pub(crate) profile: KernelProfile,
    pub(crate) reqs: Requests,
    pub(crate) bios: BioPool,
    pub(crate) rules: Rules,
    pub(crate) sched: Sched,
    pub(crate) elevator: Elevator,
    pub(crate) threads: Threads,
    pub(crate) drive: Drive,
    pub(crate) flushes: Flushes,
    pub(crate) throttle: Throttle,
    pub(crate) switches: Switches,
    pub(crate) runs: Runs,
    /// Requests have the time at which they began, for the scheduler and for the disk's statistics.
    pub(crate) stamps: bool,
    /// The caller pulls requests itself; the queue never runs.
    pub(crate) manual: bool,
    /// Requests that left the scheduler without being asked for. The legacy path takes them into its dispatch queue
    /// before it looks at it.
    pub(crate) ejected: Vec<ReqId>,
    pub(crate) explain: Explain,
    pub(crate) stats: QueueStats,
    pub(crate) out: Outbox,
}

impl Core {
    /// Calls a scheduler hook that wishes nothing.
    #[inline(always)]
    pub(crate) fn hook<T>(
        &mut self,
        tl: &Timeline,
        f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>) -> T,
    ) -> T {
        self.sched.call(tl.now, &mut self.reqs, f)
    }

    /// Calls a scheduler hook and carries out its wishes.
    #[inline(always)]
    pub(crate) fn hook_mut<T>(
        &mut self,
        tl: &mut Timeline,
        f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>) -> T,
    ) -> T {
        let answer = self.hook(tl, f);
        if self.sched.wishes() {
            self.carry_out_wishes(tl);
        }
        answer
    }

    #[cold]
    fn carry_out_wishes(&mut self, tl: &mut Timeline) {
        while let Some((id, yes)) = self.sched.take_findable() {
            self.elevator.findable(&mut self.reqs, id, yes);
        }
        if let Some((at, number)) = self.sched.take_timer() {
            let event = Event::Queue(self.disk, QueueEvent::SchedulerTimer(number));
            tl.events.push(at.max(tl.now), event);
        }
        if self.sched.take_run() {
            self.runs.leave_to_worker();
            self.runs.ask();
        }
        if self.sched.take_run_by_worker() {
            tl.events.push(tl.now, Event::Queue(self.disk, QueueEvent::Run(0)));
        }
        for h in self.sched.runs() {
            self.runs.leave_to_worker();
            self.runs.ask_one(h);
        }
        while let Some(id) = self.sched.take_ejected() {
            self.left_scheduler(id);
            self.trace_dispatch(tl.now, id);
            self.ejected.push(id);
            self.runs.ask();
        }
    }

    /// Books a request into the merge structures and the scheduler.
    #[inline(always)]
    pub(crate) fn insert(&mut self, tl: &mut Timeline, id: ReqId, at: Position) {
        self.elevator.enters(&mut self.reqs, id, at);
        self.hook_mut(tl, |s, c| s.insert(c, id, at));
    }

    /// The request left the scheduler: it can no longer be found.
    #[inline(always)]
    pub(crate) fn left_scheduler(&mut self, id: ReqId) {
        self.elevator.leaves(&mut self.reqs, id);
    }

    /// A fresh request for a bio.
    #[inline(always)]
    pub(crate) fn new_request(&mut self, now: Nanos, bio: &Bio) -> ReqId {
        self.reqs.add_bio(bio, segments(bio.sectors), now).0
    }

    /// A bio that needs nothing from the device.
    pub(crate) fn finish_bio(&mut self, tl: &Timeline, bio: &Bio) {
        self.stats.finished += 1;
        self.out.done.push(Done { bio: bio.id, at: tl.now });
    }

    /// The throttle's monitoring window ended.
    pub(crate) fn throttle_window(&mut self, tl: &mut Timeline, generation: u32) {
        let woken = &mut self.out.woken;
        let next = self.throttle.get().and_then(|w| w.window_ended(tl.now, generation, woken));
        self.watch(tl, next);
    }

    /// A window of the throttle begins, if there is one. It is whole ticks long, and counts from the next one.
    #[inline]
    pub(crate) fn watch(&mut self, tl: &mut Timeline, window: Option<(Nanos, u32)>) {
        if let Some((length, generation)) = window {
            let end = self.sched.facts().timer(tl.now, length);
            tl.events.push(end, Event::Queue(self.disk, QueueEvent::Wbt(generation)));
        }
    }
}
