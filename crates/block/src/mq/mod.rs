//! blk-mq: software queues, hardware contexts, tags, direct issue, staging, re-runs.

mod allocate;
mod hctx;
mod run;
mod tags;

use iosched_schedulers::{BlockPath, Position};
use iosched_types::{Bio, Flags, Op, ReqId, TaskId};

use crate::core::Core;
use crate::core::runs::Run;
use crate::outbox::Submit;
use crate::path::Path;
use crate::state;
use crate::steps::merge::Search;
use crate::steps::{flush, merge, plug, run as deferred};
use crate::timeline::Timeline;
use tags::TagMap;

pub(crate) use hctx::Hctx;

/// How many of the newest software-queue requests a bio is compared with.
const CTX_MERGE_SCAN: usize = 8;

/// State of the blk-mq path.
pub(crate) struct Mq {
    hctx: Vec<Hctx>,
    /// The device asks for a budget before a request is pulled.
    budget: bool,
    /// Bit at which each tag map is first searched.
    tag_start: u32,
    scratch: Vec<ReqId>,
    /// On the way around the scheduler, oldest first.
    bypassing: Vec<ReqId>,
}

impl Path for Mq {
    const KIND: BlockPath = BlockPath::Mq;

    /// An idle queue is switched in 14 to 30 ms at 250 ticks per second, whatever the two schedulers are
    /// (`docs/fidelity.md`).
    const GRACE_TICKS: u64 = 5;

    #[inline(always)]
    fn run(&mut self, core: &mut Core, tl: &mut Timeline, run: Run) {
        let by_worker = core.runs.take_by_worker();
        match run {
            Run::All => {
                if by_worker {
                    self.hctx.iter_mut().for_each(Hctx::run_by_worker);
                }
                self.run_all(core, tl);
            }
            Run::Bypass => self.end_bypass(core),
            Run::One(h) => {
                let h = usize::from(h);
                if by_worker {
                    self.hctx[h].run_by_worker();
                }
                self.run_hctx(core, tl, h);
            }
        }
    }

    fn unplugged(&mut self, core: &mut Core, tl: &mut Timeline, list: &[ReqId]) {
        // All of a task's requests lie on the hardware queue of its CPU.
        let h = list.first().map_or(0, |id| usize::from(core.reqs[*id].hctx));
        for id in list {
            if core.sched.none() {
                direct_issue(core, tl, *id);
            } else {
                self.insert(core, tl, *id);
            }
        }
        self.ask_run(core, h);
    }

    /// Puts the request ahead of everything parked, or behind it.
    ///
    /// The kernel parks it in a work item of its own. A run that was asked for before is ahead, so a request of the
    /// scheduler goes between two flushes (dispatch logs of 7.1 and 6.12, random job `hdd7k_q1_wb.g73`).
    fn bypass(&mut self, core: &mut Core, id: ReqId, at_head: bool) {
        if at_head && core.runs.any() {
            self.bypassing.push(id);
            core.runs.leave_to_worker();
            core.runs.ask_bypass();
            return;
        }
        let h = usize::from(core.reqs[id].hctx);
        if at_head {
            self.hctx[h].park_first(id);
        } else {
            self.hctx[h].park(id);
        }
        core.runs.leave_to_worker();
        self.ask_run(core, h);
    }

    #[inline(always)]
    fn release(&mut self, core: &mut Core, id: ReqId) {
        let r = &core.reqs[id];
        let h = usize::from(r.hctx);
        let hctx = &mut self.hctx[h];
        hctx.put_driver_tags(u32::from(r.state & state::DRIVER_TAG != 0));
        if r.tag != u32::MAX {
            hctx.tags().put(r.tag, &mut core.out.woken);
        }
        if hctx.take_restart() {
            core.runs.leave_to_worker();
            self.ask_run(core, h);
        }
    }

    fn drained(core: &Core) -> bool {
        core.reqs.is_empty() && core.threads.all_out()
    }
}

/// `none`: goes straight to the driver. The request already holds its tag.
#[inline]
fn direct_issue(core: &mut Core, tl: &mut Timeline, id: ReqId) {
    core.trace_dispatch(tl.now, id);
    core.issue(tl, id);
}

impl Mq {
    /// With tags for the scheduler in force.
    pub(crate) fn new(core: &Core, (budget, at_once): (bool, u32), tag_start: u32) -> Self {
        let mut mq =
            Mq { hctx: Vec::new(), budget, tag_start, scratch: Vec::new(), bypassing: Vec::new() };
        let facts = core.sched.facts();
        let shared = core.sched.none();
        let depth = if shared { facts.nr_requests } else { facts.queue_depth };
        let cpus = usize::from(facts.cpus);
        mq.hctx = (0..facts.hw_queues)
            .map(|_| Hctx::new((mq.tag_map(core, depth, None), at_once), mq.sched_tags(core), cpus))
            .collect();
        mq
    }

    fn tag_map(&self, core: &Core, nr: u32, shallow: Option<(u32, bool)>) -> TagMap {
        let mq = &core.profile.mq;
        TagMap::new(nr, shallow, mq.shallow_depth, mq.wake_all_in_batch, self.tag_start)
    }

    fn sched_tags(&self, core: &Core) -> Option<TagMap> {
        let facts = core.sched.facts();
        let shallow = core.sched.scheduler().min_shallow_depth(facts);
        let shallow = shallow.map(|s| (s, core.profile.mq.limits_shrink_batches));
        (!core.sched.none()).then(|| self.tag_map(core, facts.nr_requests, shallow))
    }

    /// Another scheduler has just taken over.
    pub(crate) fn fresh_scheduler_tags(&mut self, core: &Core) {
        for h in 0..self.hctx.len() {
            let tags = self.sched_tags(core);
            self.hctx[h].set_sched_tags(tags);
        }
    }

    #[inline(always)]
    fn hctx_of(&self, cpu: u16) -> usize {
        match self.hctx.len() {
            1 => 0,
            n => usize::from(cpu) % n,
        }
    }

    /// What goes around the scheduler is parked ahead of everything.
    #[cold]
    fn end_bypass(&mut self, core: &mut Core) {
        for id in std::mem::take(&mut self.bypassing) {
            self.bypass(core, id, true);
        }
    }

    /// A hardware queue has a reason to run. Each runs by itself. Otherwise the first would take the tokens that others
    /// wait for.
    #[inline(always)]
    fn ask_run(&self, core: &mut Core, h: usize) {
        if self.hctx.len() == 1 {
            core.runs.ask();
        } else {
            core.runs.ask_one(h as u16);
        }
    }

    /// Takes a bio.
    #[inline(always)]
    pub(crate) fn submit(
        &mut self,
        core: &mut Core,
        tl: &mut Timeline,
        bio: &Bio,
        resumed: bool,
    ) -> Submit {
        let special = bio.flags.0 & (Flags::PREFLUSH.0 | Flags::FUA.0) != 0;
        if special || bio.op == Op::Flush {
            return self.submit_special(core, tl, bio, resumed);
        }
        self.submit_plain(core, tl, bio, resumed)
    }

    /// A flush, or a write with flush or FUA.
    #[cold]
    fn submit_special(
        &mut self,
        core: &mut Core,
        tl: &mut Timeline,
        bio: &Bio,
        resumed: bool,
    ) -> Submit {
        if !core.flushes.volatile() {
            // Without a volatile cache there is nothing to flush, and every write is forced.
            let flags = bio.flags.without(Flags(Flags::PREFLUSH.0 | Flags::FUA.0));
            if bio.sectors == 0 {
                core.finish_bio(tl, bio);
                return Submit::Taken;
            }
            return self.submit_plain(core, tl, &Bio { flags, ..*bio }, resumed);
        }
        if !self.admit(core, tl, bio) {
            return Submit::Blocked;
        }
        let (id, _) = match self.allocate(core, tl, bio, true) {
            Ok(got) => got,
            Err(answer) => return answer,
        };
        let h = usize::from(core.reqs[id].hctx);
        flush::insert(core, self, tl, id);
        self.ask_run(core, h);
        Submit::Taken
    }

    #[inline(always)]
    fn submit_plain(
        &mut self,
        core: &mut Core,
        tl: &mut Timeline,
        bio: &Bio,
        resumed: bool,
    ) -> Submit {
        let search = if resumed { Search::Open } else { self.merge(core, tl, bio) };
        if search == Search::Merged {
            return Submit::Taken;
        }
        if core.throttle.is_on() && !self.admit(core, tl, bio) {
            return Submit::Blocked;
        }
        let (id, waited) = match self.allocate(core, tl, bio, false) {
            Ok(got) => got,
            Err(answer) => return answer,
        };
        let h = usize::from(core.reqs[id].hctx);
        if core.threads.plugged(bio.thread) {
            plug::add(core, self, tl, bio.thread, id);
        } else if core.sched.none() {
            let busy = self.hctx[h].busy() && (self.hctx.len() == 1 || !bio.is_sync());
            if busy || core.manual {
                self.hctx[h].ctx(core.reqs[id].cpu).push_back(id);
                self.ask_run(core, h);
            } else {
                direct_issue(core, tl, id);
            }
        } else {
            if search == Search::Nothing && !waited {
                // Nothing has come in since the search, so a second one finds nothing either.
                core.insert(tl, id, Position::Sort);
            } else {
                self.insert(core, tl, id);
            }
            self.ask_run(core, h);
        }
        Submit::Taken
    }

    /// Whether a task sleeps for a tag.
    pub(crate) fn waits_for_tag(&self, task: TaskId) -> bool {
        self.hctx.iter().any(|h| h.has_waiting(task))
    }

    /// Whether the writeback throttle lets a bio go on; otherwise its task goes to sleep.
    fn admit(&mut self, core: &mut Core, tl: &mut Timeline, bio: &Bio) -> bool {
        let Some(wbt) = core.throttle.get() else { return true };
        if wbt.admit(tl.now, bio) {
            let window = wbt.begin_window(bio);
            core.watch(tl, window);
            return true;
        }
        plug::flush(core, self, tl, bio.thread);
        deferred::deferred(core, self, tl);
        false
    }

    #[inline(always)]
    fn merge(&mut self, core: &mut Core, tl: &mut Timeline, bio: &Bio) -> Search {
        if plug::merge(core, bio) {
            return Search::Merged;
        }
        if !core.sched.none() {
            return merge::into_scheduler(core, self, tl, bio);
        }
        if self.merge_into_ctx(core, bio) { Search::Merged } else { Search::Open }
    }

    /// The newest eight requests of the submitting CPU's software queue.
    fn merge_into_ctx(&mut self, core: &mut Core, bio: &Bio) -> bool {
        let h = self.hctx_of(bio.cpu);
        let list = self.hctx[h].ctx(bio.cpu);
        if list.is_empty() {
            return false;
        }
        list.iter().rev().take(CTX_MERGE_SCAN).any(|id| merge::into_request(core, *id, bio))
    }

    /// Inserts into the scheduler, first trying to append the whole request to a queued one.
    fn insert(&mut self, core: &mut Core, tl: &mut Timeline, id: ReqId) {
        if core.sched.hooks().arrives {
            core.hook_mut(tl, |s, c| s.arrives(c, id));
        }
        if !merge::on_insertion(core, self, tl, id) {
            core.insert(tl, id, Position::Sort);
        }
    }

    /// A flush command or a data step came back from the device.
    pub(crate) fn flush_came_back(&mut self, core: &mut Core, tl: &mut Timeline, id: ReqId) {
        let r = &mut core.reqs[id];
        if !core.sched.none() && r.state & state::DRIVER_TAG != 0 {
            r.state &= !state::DRIVER_TAG;
            self.hctx[usize::from(r.hctx)].put_driver_tags(1);
        }
        flush::step_done(core, self, tl, id);
    }
}

#[cfg(test)]
impl Mq {
    /// The first hardware context, for scenarios.
    pub(crate) fn first(&mut self) -> &mut Hctx {
        &mut self.hctx[0]
    }
}
