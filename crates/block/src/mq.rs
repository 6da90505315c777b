//! blk-mq: software queues, hardware contexts, tags, direct issue, staging, re-runs.

use std::collections::VecDeque;

use iosched_schedulers::{Dispatch, Position};
use iosched_types::{Bio, Fifo, Flags, Op, ReqId, Requests, units::MS};

use crate::merge::Search;
use crate::queue::{Queue, Submit};
use crate::state;
use crate::tags::TagMap;
use crate::timeline::{Event, QueueEvent, Timeline};

/// How long a queue waits before it tries again after a dispatch that gave nothing.
const RERUN_DELAY: u64 = 3 * MS;
/// How many of the newest software-queue requests a bio is compared with.
const CTX_MERGE_SCAN: usize = 8;

/// One hardware context.
#[derive(Debug)]
pub(crate) struct Hctx {
    /// Requests that were pulled but not accepted, and everything that bypasses the scheduler.
    pub(crate) dispatch: Fifo<ReqId>,
    /// The driver's tags, handed out one by one under `none` only.
    pub(crate) driver_tags: TagMap,
    /// How many tags requests from a scheduler hold. No thread sleeps for one of these, so only their number matters.
    taken: u32,
    /// Only with a scheduler.
    pub(crate) sched_tags: Option<TagMap>,
    /// Software queues that map here, used by `none`.
    ctx: Vec<VecDeque<ReqId>>,
    cursor: usize,
    /// A completion shall run this context again.
    pub(crate) restart: bool,
    rerun_armed: bool,
    /// Busy average: b ← (7b + 16·busy)/8.
    pub(crate) busy: u32,
}

impl Hctx {
    /// The tags that requests are allocated with.
    #[inline]
    pub(crate) fn tags(&mut self) -> &mut TagMap {
        self.sched_tags.as_mut().unwrap_or(&mut self.driver_tags)
    }

    /// Whether a request from a scheduler may have a driver tag.
    #[inline]
    fn driver_tag_free(&self) -> bool {
        self.taken < self.driver_tags.depth()
    }

    /// Whether the first of the parked requests needs a driver tag and there is none.
    #[inline(always)]
    fn waits_for_tag(&self, reqs: &Requests) -> bool {
        !self.driver_tag_free()
            && self.dispatch.front().is_some_and(|id| reqs[*id].state & state::DRIVER_TAG == 0)
    }

    #[inline]
    pub(crate) fn update_busy(&mut self, busy: bool) {
        if self.busy == 0 && !busy {
            return;
        }
        self.busy = (7 * self.busy + if busy { 16 } else { 0 }) / 8;
    }
}

impl Queue {
    pub(crate) fn build_hctxs(&mut self, nr: u32, depth: u32) {
        let mq = self.profile.mq.clone();
        let shallow = self.scheduler.min_shallow_depth(&self.facts);
        let cpus = usize::from(self.facts.cpus);
        let start = self.tag_start;
        self.hctx = (0..self.facts.hw_queues)
            .map(|_| Hctx {
                dispatch: Fifo::default(),
                driver_tags: TagMap::new(
                    if self.none { nr } else { depth },
                    None,
                    mq.shallow_depth,
                    mq.wake_all_in_batch,
                    start,
                ),
                taken: 0,
                sched_tags: (!self.none).then(|| {
                    TagMap::new(nr, shallow, mq.shallow_depth, mq.wake_all_in_batch, start)
                }),
                ctx: vec![VecDeque::new(); cpus],
                cursor: 0,
                restart: false,
                rerun_armed: false,
                busy: 0,
            })
            .collect();
    }

    /// Tags of a scheduler that has just taken over; the driver's stay.
    pub(crate) fn fresh_scheduler_tags(&mut self) {
        let mq = self.profile.mq.clone();
        let shallow = self.scheduler.min_shallow_depth(&self.facts);
        let start = self.tag_start;
        for h in &mut self.hctx {
            debug_assert_eq!(h.driver_tags.used() + h.taken, 0, "nobody holds a driver tag");
            debug_assert!(h.sched_tags.as_ref().is_none_or(|t| t.used() == 0), "nor another");
            let tags = || {
                let nr = self.facts.nr_requests;
                TagMap::new(nr, shallow, mq.shallow_depth, mq.wake_all_in_batch, start)
            };
            h.sched_tags = (!self.none).then(tags);
        }
    }

    pub(crate) fn hctx_of(&self, cpu: u16) -> usize {
        match self.hctx.len() {
            1 => 0,
            n => usize::from(cpu) % n,
        }
    }

    #[inline(always)]
    pub(crate) fn mq_submit(&mut self, tl: &mut Timeline, bio: &Bio, resumed: bool) -> Submit {
        let special = bio.flags.0 & (Flags::PREFLUSH.0 | Flags::FUA.0) != 0;
        if special || bio.op == Op::Flush {
            return self.mq_submit_special(tl, bio, resumed);
        }
        self.mq_submit_plain(tl, bio, resumed)
    }

    /// A flush, or a write with flush or FUA.
    #[cold]
    fn mq_submit_special(&mut self, tl: &mut Timeline, bio: &Bio, resumed: bool) -> Submit {
        if !self.write_cache {
            // Without a volatile cache there is nothing to flush, and every write is forced.
            let flags = bio.flags.without(Flags(Flags::PREFLUSH.0 | Flags::FUA.0));
            if bio.sectors == 0 {
                self.finish_bio(tl, bio);
                return Submit::Taken;
            }
            return self.mq_submit_plain(tl, &Bio { flags, ..*bio }, resumed);
        }
        if !self.mq_admit(tl, bio) {
            return Submit::Blocked;
        }
        let (id, _) = match self.mq_allocate(tl, bio, true) {
            Ok(got) => got,
            Err(answer) => return answer,
        };
        let h = usize::from(self.reqs[id].hctx);
        self.flush_insert(tl, id);
        self.ask_run(h);
        Submit::Taken
    }

    #[inline(always)]
    fn mq_submit_plain(&mut self, tl: &mut Timeline, bio: &Bio, resumed: bool) -> Submit {
        let search = if resumed { Search::Open } else { self.mq_merge(tl, bio) };
        if search == Search::Merged {
            return Submit::Taken;
        }
        if self.wbt.is_some() && !self.mq_admit(tl, bio) {
            return Submit::Blocked;
        }
        let (id, waited) = match self.mq_allocate(tl, bio, false) {
            Ok(got) => got,
            Err(answer) => return answer,
        };
        let h = usize::from(self.reqs[id].hctx);
        if self.plug_active(bio.thread) {
            self.add_to_plug(tl, bio.thread, id);
        } else if self.none {
            let busy = self.hctx[h].busy > 0 && (self.hctx.len() == 1 || !bio.is_sync());
            if busy || self.manual {
                self.ctx_push(h, id);
                self.ask_run(h);
            } else {
                self.direct_issue(tl, id);
            }
        } else {
            if search == Search::Nothing && !waited {
                // Nothing has come in since the search, so a second one finds nothing either.
                self.insert_into_scheduler(tl, id, Position::Sort);
            } else {
                self.mq_insert(tl, id, Position::Sort);
            }
            self.ask_run(h);
        }
        Submit::Taken
    }

    /// Whether the writeback throttle lets a bio go on; otherwise its task goes to sleep.
    fn mq_admit(&mut self, tl: &mut Timeline, bio: &Bio) -> bool {
        let admitted = self.wbt_admit(tl, bio);
        if !admitted {
            self.task_sleeps(tl, bio.thread);
            self.run_deferred(tl);
        }
        admitted
    }

    /// A bio that needs nothing from the device.
    pub(crate) fn finish_bio(&mut self, tl: &Timeline, bio: &Bio) {
        self.stats.finished += 1;
        self.done.push(crate::queue::Done { bio: bio.id, at: tl.now });
    }

    #[inline(always)]
    fn mq_merge(&mut self, tl: &mut Timeline, bio: &Bio) -> Search {
        if self.merge_into_plug(bio) {
            return Search::Merged;
        }
        if !self.none {
            return self.merge_into_scheduler(tl, bio);
        }
        if self.merge_into_ctx(bio) { Search::Merged } else { Search::Open }
    }

    /// The newest eight requests of the submitting CPU's software queue.
    fn merge_into_ctx(&mut self, bio: &Bio) -> bool {
        let h = self.hctx_of(bio.cpu);
        let list = &self.hctx[h].ctx[usize::from(bio.cpu)];
        if list.is_empty() {
            return false;
        }
        let newest: [Option<ReqId>; CTX_MERGE_SCAN] = {
            let mut it = list.iter().rev();
            std::array::from_fn(|_| it.next().copied())
        };
        newest.into_iter().flatten().any(|id| self.merge_into_plugged(id, bio))
    }

    /// Inserts into the scheduler, first trying to append the whole request to a queued one.
    pub(crate) fn mq_insert(&mut self, tl: &mut Timeline, id: ReqId, at: Position) {
        if at == Position::Sort && self.insert_merge(tl, id) {
            return;
        }
        self.insert_into_scheduler(tl, id, at);
    }

    fn ctx_push(&mut self, h: usize, id: ReqId) {
        let cpu = usize::from(self.reqs[id].cpu);
        self.hctx[h].ctx[cpu].push_back(id);
    }

    /// `none`: goes straight to the driver. The request already holds its tag.
    #[inline]
    pub(crate) fn direct_issue(&mut self, tl: &mut Timeline, id: ReqId) {
        self.trace_dispatch(tl.now, id);
        self.issue(tl, id);
    }

    #[inline(always)]
    pub(crate) fn mq_run_all(&mut self, tl: &mut Timeline) {
        if let [hctx] = self.hctx.as_mut_slice()
            && hctx.waits_for_tag(&self.reqs)
        {
            // The result of this run is known: the parked request is offered, and stays.
            hctx.restart = true;
            hctx.update_busy(true);
            return;
        }
        for h in 0..self.hctx.len() {
            self.mq_run(tl, h);
        }
    }

    #[inline(never)]
    pub(crate) fn mq_run(&mut self, tl: &mut Timeline, h: usize) {
        let hctx = &mut self.hctx[h];
        if !hctx.dispatch.is_empty() {
            hctx.restart = true;
            if !self.offer_parked(tl, h) {
                return;
            }
        }
        if self.none { self.run_ctx(tl, h) } else { self.run_scheduler(tl, h) }
    }

    /// Offers everything parked; `false` when something had to stay.
    #[inline(always)]
    fn offer_parked(&mut self, tl: &mut Timeline, h: usize) -> bool {
        loop {
            let hctx = &mut self.hctx[h];
            let Some(id) = hctx.dispatch.front().copied() else {
                hctx.update_busy(false);
                return true;
            };
            if !self.take_driver_tag(id) {
                self.hctx[h].update_busy(true);
                return false;
            }
            self.hctx[h].dispatch.pop_front();
            self.issue_now(tl, id);
        }
    }

    /// A driver tag of the hardware queue that the request was allocated for, whichever queue pulled it.
    #[inline(always)]
    fn take_driver_tag(&mut self, id: ReqId) -> bool {
        let r = &mut self.reqs[id];
        if self.none || r.state & state::DRIVER_TAG != 0 {
            return true;
        }
        let hctx = &mut self.hctx[usize::from(r.hctx)];
        let free = hctx.driver_tag_free();
        if free {
            hctx.taken += 1;
            r.state |= state::DRIVER_TAG;
        }
        free
    }

    /// Pulls from the scheduler, in batches where the kernel does.
    fn run_scheduler(&mut self, tl: &mut Timeline, h: usize) {
        while self.may_pull(h) {
            if self.hctx.len() == 1 && !self.hctx[h].driver_tag_free() {
                // Without a budget one request is pulled ahead and parked, not a batch.
                match self.pull_one(tl, h) {
                    Some(id) => self.park_pulled(h, id),
                    None => self.rerun_later(tl, h),
                }
                return;
            }
            let mut batch = std::mem::take(&mut self.scratch);
            let most = if self.profile.mq.batch_dispatch && self.hctx[h].busy == 0 {
                self.facts.nr_requests as usize
            } else {
                1
            };
            let all = self.pull_batch(tl, h, most, &mut batch);
            let mut parked = false;
            for h in 0..self.hctx.len() {
                parked |= self.offer(tl, h, &batch);
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
    fn may_pull(&mut self, h: usize) -> bool {
        if !self.scheduler.has_work() {
            return false;
        }
        let hctx = &mut self.hctx[h];
        if !hctx.dispatch.is_empty() {
            self.ask_run(h);
            return false;
        }
        let room = !self.budget || hctx.driver_tag_free();
        hctx.restart |= !room;
        room
    }

    /// Offers the driver the requests of a batch for one hardware queue. `true` when one had to stay.
    #[inline]
    fn offer(&mut self, tl: &mut Timeline, h: usize, batch: &[ReqId]) -> bool {
        let (mut parked, mut any) = (false, false);
        for id in batch {
            if usize::from(self.reqs[*id].hctx) != h {
                continue;
            }
            any = true;
            if parked || !self.take_driver_tag(*id) {
                parked = true;
                self.hctx[h].dispatch.push_back(*id);
            } else {
                self.issue(tl, *id);
            }
        }
        if any {
            let hctx = &mut self.hctx[h];
            hctx.update_busy(parked);
            hctx.restart |= parked;
        }
        parked
    }

    /// Asks the scheduler for one request.
    #[inline(always)]
    fn pull_one(&mut self, tl: &mut Timeline, h: usize) -> Option<ReqId> {
        match self.hook_mut(tl, |s, c| s.dispatch(c, h as u16)) {
            Dispatch::Request(id) => {
                self.left_scheduler(id);
                self.trace_dispatch(tl.now, id);
                Some(id)
            }
            Dispatch::Idle(idle) => {
                self.note_idle(tl.now, idle);
                None
            }
            Dispatch::Empty => None,
        }
    }

    /// Parks a request that found no tag.
    #[inline(always)]
    fn park_pulled(&mut self, h: usize, id: ReqId) {
        let hctx = &mut self.hctx[h];
        hctx.dispatch.push_back(id);
        hctx.update_busy(true);
        hctx.restart = true;
    }

    /// Pulls up to `most` requests, of which only the last may be without a tag, while there is something to pull
    /// and room for it (`may_pull` has just said so). `true` when nothing more can come in this run.
    #[inline]
    fn pull_batch(
        &mut self,
        tl: &mut Timeline,
        h: usize,
        most: usize,
        batch: &mut Vec<ReqId>,
    ) -> bool {
        loop {
            let Some(id) = self.pull_one(tl, h) else {
                if batch.is_empty() {
                    self.rerun_later(tl, h);
                }
                return false;
            };
            batch.push(id);
            if !self.take_driver_tag(id) {
                return false;
            }
            if batch.len() >= most {
                return false;
            }
            if !self.may_pull(h) {
                return true;
            }
        }
    }

    /// No other event is sure to run the queue again, so it asks for a run itself.
    fn rerun_later(&mut self, tl: &mut Timeline, h: usize) {
        if !self.hctx[h].rerun_armed {
            self.hctx[h].rerun_armed = true;
            tl.events
                .push(tl.now + RERUN_DELAY, Event::Queue(self.disk, QueueEvent::Run(h as u16)));
        }
    }

    /// Only the hardware queue that asked for it runs again.
    pub(crate) fn rerun_fired(&mut self, h: u16) {
        self.hctx[usize::from(h)].rerun_armed = false;
        self.ask_hctx(h);
    }

    /// `none`, asked for one request: the oldest of the first software queue that has any.
    pub(crate) fn issue_from_ctx(&mut self, tl: &mut Timeline, h: usize) -> bool {
        let Some(id) = self.hctx[h].ctx.iter_mut().find_map(VecDeque::pop_front) else {
            return false;
        };
        self.direct_issue(tl, id);
        true
    }

    /// `none`: whole lists when not busy, one request per software queue in turn when busy.
    fn run_ctx(&mut self, tl: &mut Timeline, h: usize) {
        if self.hctx[h].busy == 0 {
            for c in 0..self.hctx[h].ctx.len() {
                while let Some(id) = self.hctx[h].ctx[c].pop_front() {
                    self.direct_issue(tl, id);
                }
            }
            return;
        }
        let n = self.hctx[h].ctx.len();
        let mut empty = 0;
        while empty < n {
            let c = self.hctx[h].cursor;
            self.hctx[h].cursor = (c + 1) % n;
            match self.hctx[h].ctx[c].pop_front() {
                Some(id) => {
                    empty = 0;
                    self.direct_issue(tl, id);
                    self.hctx[h].update_busy(false);
                }
                None => empty += 1,
            }
        }
    }

    /// Puts a flush-machine request ahead of everything parked, or behind it.
    pub(crate) fn park(&mut self, id: ReqId, at_head: bool) {
        let h = usize::from(self.reqs[id].hctx);
        if at_head {
            self.hctx[h].dispatch.push_front(id);
        } else {
            self.hctx[h].dispatch.push_back(id);
        }
        self.ask_run(h);
    }

    /// A hardware queue has a reason to run. Each runs by itself. Otherwise the first would take the tokens that others
    /// wait for.
    #[inline(always)]
    pub(crate) fn ask_run(&mut self, h: usize) {
        if self.hctx.len() == 1 {
            self.run_pending = true;
        } else {
            self.ask_hctx(h as u16);
        }
    }

    pub(crate) fn put_driver_tag(&mut self, id: ReqId) {
        let r = &mut self.reqs[id];
        if r.state & state::DRIVER_TAG != 0 {
            r.state &= !state::DRIVER_TAG;
            self.hctx[usize::from(r.hctx)].taken -= 1;
        }
    }

    #[inline(always)]
    pub(crate) fn mq_release(&mut self, h: u16, tag: u32, bits: u16) {
        let hctx = &mut self.hctx[usize::from(h)];
        hctx.taken -= u32::from(bits & state::DRIVER_TAG != 0);
        if tag != u32::MAX {
            hctx.tags().put(tag, &mut self.woken);
        }
        if std::mem::take(&mut hctx.restart) {
            self.ask_run(usize::from(h));
        }
    }
}
