//! Running hardware queues: what is parked, then the scheduler or the software queues.

use iosched_types::{Nanos, ReqId, units::SEC};

use super::{Mq, direct_issue};
use crate::core::Core;
use crate::state;
use crate::timeline::{Event, QueueEvent, Timeline};

/// How long a queue waits before it tries again after a dispatch that gave nothing, in ms.
const RERUN_DELAY: u64 = 3;

/// When it tries again: the delay is whole ticks, and the kernel's timer begins to count with the next tick.
fn rerun_time(core: &Core, now: Nanos) -> Nanos {
    let facts = core.sched.facts();
    let hz = u64::from(facts.hz.max(1));
    let tick = facts.jiffies(now) + (RERUN_DELAY * hz).div_ceil(1000) + 1;
    (u128::from(tick) * u128::from(SEC)).div_ceil(u128::from(hz)) as Nanos
}

impl Mq {
    #[inline(always)]
    pub(super) fn run_all(&mut self, core: &mut Core, tl: &mut Timeline) {
        if let [hctx] = self.hctx.as_mut_slice()
            && !core.profile.mq.pulls_past_parked
            && hctx.waits_for_tag(&core.reqs)
        {
            // The result of this run is known: the parked request is offered, and stays.
            hctx.restart();
            hctx.update_busy(true);
            return;
        }
        for h in 0..self.hctx.len() {
            self.run_hctx(core, tl, h);
        }
    }

    #[inline(never)]
    pub(super) fn run_hctx(&mut self, core: &mut Core, tl: &mut Timeline, h: usize) {
        let hctx = &mut self.hctx[h];
        if hctx.any_parked() {
            hctx.restart();
            if core.profile.mq.pulls_past_parked && !core.sched.none() {
                return self.run_past_parked(core, tl, h);
            }
            if !self.offer_parked(core, tl, h) {
                return;
            }
        }
        if core.sched.none() { self.run_ctx(core, tl, h) } else { self.run_scheduler(core, tl, h) }
    }

    /// What 4.12 does while something is parked: a run that issues none of it pulls one request more, ahead of it.
    fn run_past_parked(&mut self, core: &mut Core, tl: &mut Timeline, h: usize) {
        let before = self.hctx[h].parked();
        let all = self.offer_parked(core, tl, h);
        let progress = all || self.hctx[h].parked() != before;
        if progress {
            return;
        }
        match core.ask_scheduler(tl, h as u16) {
            Some(id) if self.take_driver_tag(core, id) => core.issue(tl, id),
            // It waits for a tag of the hardware queue that it was allocated for.
            Some(id) => {
                let hctx = &mut self.hctx[usize::from(core.reqs[id].hctx)];
                hctx.park_first(id);
                hctx.update_busy(true);
                hctx.restart();
            }
            None => self.rerun_later(core, tl, h),
        }
    }

    /// Offers everything parked; `false` when something had to stay.
    #[inline(always)]
    fn offer_parked(&mut self, core: &mut Core, tl: &mut Timeline, h: usize) -> bool {
        loop {
            let Some(id) = self.hctx[h].parked() else {
                self.hctx[h].update_busy(false);
                return true;
            };
            if !self.take_driver_tag(core, id) {
                self.hctx[h].update_busy(true);
                return false;
            }
            self.hctx[h].unpark();
            core.issue_now(tl, id);
        }
    }

    /// A driver tag of the hardware queue that the request was allocated for, whichever queue pulled it.
    #[inline(always)]
    fn take_driver_tag(&mut self, core: &mut Core, id: ReqId) -> bool {
        let r = &mut core.reqs[id];
        if core.sched.none() || r.state & state::DRIVER_TAG != 0 {
            return true;
        }
        let got = self.hctx[usize::from(r.hctx)].take_driver_tag();
        if got {
            r.state |= state::DRIVER_TAG;
        }
        got
    }

    /// Pulls from the scheduler, in batches where the kernel does.
    fn run_scheduler(&mut self, core: &mut Core, tl: &mut Timeline, h: usize) {
        while self.may_pull(core, h) {
            if self.hctx.len() == 1 && !self.hctx[h].driver_tag_free() {
                // Without a budget one request is pulled ahead and parked, not a batch.
                match core.ask_scheduler(tl, h as u16) {
                    Some(id) => self.park_pulled(h, id),
                    None => self.rerun_later(core, tl, h),
                }
                return;
            }
            let mut batch = std::mem::take(&mut self.scratch);
            let most = if core.profile.mq.batch_dispatch && !self.hctx[h].busy() {
                core.sched.facts().nr_requests as usize
            } else {
                1
            };
            let all = self.pull_batch(core, tl, h, most, &mut batch);
            let mut parked = false;
            for h in 0..self.hctx.len() {
                parked |= self.offer(core, tl, h, &batch);
            }
            let over = all || parked || batch.is_empty();
            batch.clear();
            self.scratch = batch;
            if over {
                return;
            }
        }
    }

    /// Whether to ask the scheduler: it has work, nothing is parked, and the driver has room where it asks for a budget
    /// first.
    #[inline(always)]
    fn may_pull(&mut self, core: &mut Core, h: usize) -> bool {
        // 4.12 asks in any case, and a scheduler may change its mind when it is asked in vain.
        if !core.profile.mq.pulls_past_parked && !core.sched.scheduler().has_work() {
            return false;
        }
        let hctx = &mut self.hctx[h];
        if hctx.any_parked() {
            self.ask_run(core, h);
            return false;
        }
        let room = !self.budget || hctx.driver_tag_free();
        if !room {
            hctx.restart();
        }
        room
    }

    /// Offers the driver the requests of a batch for one hardware queue. `true` when one had to stay.
    #[inline]
    fn offer(&mut self, core: &mut Core, tl: &mut Timeline, h: usize, batch: &[ReqId]) -> bool {
        let (mut parked, mut any) = (false, false);
        for id in batch {
            if usize::from(core.reqs[*id].hctx) != h {
                continue;
            }
            any = true;
            if parked || !self.take_driver_tag(core, *id) {
                parked = true;
                self.hctx[h].park(*id);
            } else {
                core.issue(tl, *id);
            }
        }
        if any {
            let hctx = &mut self.hctx[h];
            hctx.update_busy(parked);
            if parked {
                hctx.restart();
            }
        }
        parked
    }

    /// Parks a request that found no tag.
    #[inline(always)]
    fn park_pulled(&mut self, h: usize, id: ReqId) {
        let hctx = &mut self.hctx[h];
        hctx.park(id);
        hctx.update_busy(true);
        hctx.restart();
    }

    /// Pulls up to `most` requests, of which only the last may be without a tag, while there is something to pull
    /// and room for it (`may_pull` has just said so). `true` when nothing more can come in this run.
    #[inline]
    fn pull_batch(
        &mut self,
        core: &mut Core,
        tl: &mut Timeline,
        h: usize,
        most: usize,
        batch: &mut Vec<ReqId>,
    ) -> bool {
        loop {
            let Some(id) = core.ask_scheduler(tl, h as u16) else {
                if batch.is_empty() {
                    self.rerun_later(core, tl, h);
                }
                return false;
            };
            batch.push(id);
            if !self.take_driver_tag(core, id) {
                return false;
            }
            if batch.len() >= most {
                return false;
            }
            if !self.may_pull(core, h) {
                return true;
            }
        }
    }

    /// No other event is sure to run the queue again, so it asks for a run itself. Where it has already, the time stays.
    fn rerun_later(&mut self, core: &mut Core, tl: &mut Timeline, h: usize) {
        if self.hctx[h].rerun_at.is_none() && core.sched.scheduler().has_work() {
            let at = rerun_time(core, tl.now);
            self.hctx[h].rerun_at = Some(at);
            tl.events.push(at, Event::Queue(core.disk, QueueEvent::Run(h as u16)));
        }
    }

    /// Only the hardware queue that asked for it runs again. The event may come late: a look at the clock takes time in some
    /// runs, and the task that looked goes first.
    pub(crate) fn rerun_fired(&mut self, core: &mut Core, now: Nanos, h: u16) {
        if self.hctx[usize::from(h)].rerun_at.is_some_and(|at| at <= now) {
            core.runs.leave_to_worker();
            core.runs.ask_one(h);
        }
    }

    /// `none`: whole lists when not busy, one request per software queue in turn when busy.
    fn run_ctx(&mut self, core: &mut Core, tl: &mut Timeline, h: usize) {
        if !self.hctx[h].busy() {
            while let Some(id) = self.hctx[h].pop() {
                direct_issue(core, tl, id);
            }
            return;
        }
        while let Some(id) = self.hctx[h].pop_in_turn() {
            direct_issue(core, tl, id);
            self.hctx[h].update_busy(false);
        }
    }

    /// Takes one request, whatever is in flight; `false` when there is none.
    pub(crate) fn step(&mut self, core: &mut Core, tl: &mut Timeline) -> bool {
        let hctx = &mut self.hctx[0];
        if let Some(id) = hctx.unpark() {
            core.issue(tl, id);
            return true;
        }
        if core.sched.none() {
            let Some(id) = hctx.pop() else { return false };
            direct_issue(core, tl, id);
            return true;
        }
        if !core.sched.scheduler().has_work() {
            return false;
        }
        let Some(id) = core.ask_scheduler(tl, 0) else { return false };
        core.issue(tl, id);
        true
    }
}
