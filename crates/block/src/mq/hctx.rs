//! One hardware context: its tags, software queues and what is parked.

use std::collections::VecDeque;

use iosched_types::{Fifo, Nanos, ReqId, Requests, TaskId};

use super::tags::TagMap;
use crate::state;

/// A hardware context.
#[derive(Debug)]
pub(crate) struct Hctx {
    /// Requests that were pulled but not accepted, and everything that bypasses the scheduler.
    dispatch: Fifo<ReqId>,
    /// The driver's tags, handed out one by one under `none` only.
    driver_tags: TagMap,
    /// Requests from a scheduler that the driver takes at a time. Under `none` all that have a tag are its own to keep in order.
    at_once: u32,
    /// How many tags requests from a scheduler hold. No thread sleeps for one of these, so only their number matters.
    taken: u32,
    /// Only with a scheduler.
    sched_tags: Option<TagMap>,
    /// Software queues that map here, used by `none`.
    ctx: Vec<VecDeque<ReqId>>,
    cursor: usize,
    /// A completion shall run this context again.
    restart: bool,
    /// When it runs again because its scheduler kept requests back.
    pub(super) rerun_at: Option<Nanos>,
    /// Busy average: b ← (7b + 16·busy)/8.
    busy: u32,
}

impl Hctx {
    /// `at_once`: how many requests from a scheduler the driver takes at a time, where that is fewer than it has tags; 0: as many.
    pub(crate) fn new(
        (driver_tags, at_once): (TagMap, u32),
        sched_tags: Option<TagMap>,
        cpus: usize,
    ) -> Self {
        let all = driver_tags.depth();
        Hctx {
            at_once: if at_once == 0 { all } else { at_once.min(all) },
            dispatch: Fifo::default(),
            driver_tags,
            taken: 0,
            sched_tags,
            ctx: vec![VecDeque::new(); cpus],
            cursor: 0,
            restart: false,
            rerun_at: None,
            busy: 0,
        }
    }

    /// A scheduler has just taken over. The driver's tags stay.
    pub(crate) fn set_sched_tags(&mut self, tags: Option<TagMap>) {
        debug_assert_eq!(self.driver_tags.used() + self.taken, 0, "nobody holds a driver tag");
        debug_assert!(self.sched_tags.as_ref().is_none_or(|t| t.used() == 0), "nor another");
        self.sched_tags = tags;
    }

    /// The tags that requests are allocated with.
    #[inline(always)]
    pub(crate) fn tags(&mut self) -> &mut TagMap {
        self.sched_tags.as_mut().unwrap_or(&mut self.driver_tags)
    }

    /// Whether a task sleeps for one of them.
    pub(crate) fn has_waiting(&self, task: TaskId) -> bool {
        self.sched_tags.as_ref().unwrap_or(&self.driver_tags).waited_for_by(task)
    }

    /// Whether a request from a scheduler may have a driver tag.
    #[inline(always)]
    pub(crate) fn driver_tag_free(&self) -> bool {
        self.taken < self.at_once
    }

    /// Takes a driver tag for a request from a scheduler; `false` when there is none.
    #[inline(always)]
    pub(crate) fn take_driver_tag(&mut self) -> bool {
        let free = self.driver_tag_free();
        self.taken += u32::from(free);
        free
    }

    /// Gives back `n` of them.
    #[inline(always)]
    pub(crate) fn put_driver_tags(&mut self, n: u32) {
        self.taken -= n;
    }

    /// Whether the first of the parked requests needs a driver tag and there is none.
    #[inline(always)]
    pub(crate) fn waits_for_tag(&self, reqs: &Requests) -> bool {
        !self.driver_tag_free()
            && self.dispatch.front().is_some_and(|id| reqs[*id].state & state::DRIVER_TAG == 0)
    }

    #[inline(always)]
    pub(crate) fn any_parked(&self) -> bool {
        !self.dispatch.is_empty()
    }

    /// The first of the parked requests.
    #[inline(always)]
    pub(crate) fn parked(&self) -> Option<ReqId> {
        self.dispatch.front().copied()
    }

    #[inline(always)]
    pub(crate) fn unpark(&mut self) -> Option<ReqId> {
        self.dispatch.pop_front()
    }

    #[inline(always)]
    pub(crate) fn park(&mut self, id: ReqId) {
        self.dispatch.push_back(id);
    }

    /// Ahead of everything parked.
    pub(crate) fn park_first(&mut self, id: ReqId) {
        self.dispatch.push_front(id);
    }

    /// The software queue of a CPU, oldest first.
    #[inline(always)]
    pub(crate) fn ctx(&mut self, cpu: u16) -> &mut VecDeque<ReqId> {
        &mut self.ctx[usize::from(cpu)]
    }

    /// The oldest of the first software queue that has any.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<ReqId> {
        self.ctx.iter_mut().find_map(VecDeque::pop_front)
    }

    /// The oldest of the next software queue in turn that has any.
    pub(crate) fn pop_in_turn(&mut self) -> Option<ReqId> {
        for _ in 0..self.ctx.len() {
            let c = self.cursor;
            self.cursor = (c + 1) % self.ctx.len();
            if let Some(id) = self.ctx[c].pop_front() {
                return Some(id);
            }
        }
        None
    }

    /// The next completion runs this context again.
    #[inline(always)]
    pub(crate) fn restart(&mut self) {
        self.restart = true;
    }

    #[inline(always)]
    pub(crate) fn take_restart(&mut self) -> bool {
        std::mem::take(&mut self.restart)
    }

    /// The worker runs it. That is the same work item as the run that was to come later, and takes its place.
    pub(super) fn run_by_worker(&mut self) {
        self.rerun_at = None;
    }

    /// Whether it was busy lately.
    #[inline(always)]
    pub(crate) fn busy(&self) -> bool {
        self.busy > 0
    }

    /// Whether the driver had to send something back.
    #[inline(always)]
    pub(crate) fn update_busy(&mut self, busy: bool) {
        if self.busy == 0 && !busy {
            return;
        }
        self.busy = (7 * self.busy + if busy { 16 } else { 0 }) / 8;
    }
}

/// For scenarios, which put a context into a state that takes long to reach.
#[cfg(test)]
impl Hctx {
    pub(crate) fn busy_average(&self) -> u32 {
        self.busy
    }

    pub(crate) fn set_busy_average(&mut self, busy: u32) {
        self.busy = busy;
    }

    pub(crate) fn parked_requests(&self) -> usize {
        self.dispatch.len()
    }

    pub(crate) fn will_restart(&self) -> bool {
        self.restart
    }
}
