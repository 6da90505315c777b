//! The scheduler in force, what it is told, and its wishes.

use iosched_schedulers::{Actions, Ctx, Hooks, QueueFacts, Scheduler, TaskInfo, Why};
use iosched_types::{Nanos, ReqId, Requests, TaskId};

use crate::config::SchedulerChoice;

/// Notes in one reason of `explain`.
const MOST_NOTES: usize = 16;

/// The scheduler of a queue.
pub(crate) struct Sched {
    scheduler: Box<dyn Scheduler>,
    choice: SchedulerChoice,
    /// Which of its optional hooks do anything.
    hooks: Hooks,
    /// No scheduler at all: blk-mq's `none`, which this crate does itself.
    none: bool,
    facts: QueueFacts,
    out: Actions,
    /// Its timer is stale unless it carries this number.
    timer: u32,
}

impl Sched {
    /// `choice` built as `scheduler`.
    pub(crate) fn new(
        scheduler: Box<dyn Scheduler>,
        choice: SchedulerChoice,
        facts: QueueFacts,
    ) -> Self {
        let none = choice.descriptor.facts.bypass;
        // `none` belongs to the block layer and gets no hooks.
        let hooks = if none { Hooks::NONE } else { scheduler.hooks() };
        Sched { scheduler, choice, hooks, none, facts, out: Actions::default(), timer: 0 }
    }

    /// Another scheduler takes over. The old one's wishes and its timer no longer count.
    pub(crate) fn replace(&mut self, new: Sched) {
        let (mut out, timer) = (std::mem::take(&mut self.out), self.timer.wrapping_add(1));
        (out.timer, out.run_queue, out.run_by_worker) = (None, false, false);
        out.run_hctxs.clear();
        *self = Sched { out, timer, ..new };
    }

    #[inline(always)]
    pub(crate) fn facts(&self) -> &QueueFacts {
        &self.facts
    }

    #[inline(always)]
    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Whether there is no scheduler at all.
    #[inline(always)]
    pub(crate) fn none(&self) -> bool {
        self.none
    }

    pub(crate) fn choice(&self) -> &SchedulerChoice {
        &self.choice
    }

    /// The scheduler itself, to be asked.
    #[inline(always)]
    pub(crate) fn scheduler(&self) -> &dyn Scheduler {
        &*self.scheduler
    }

    /// Makes room for `n` more tasks.
    pub(crate) fn reserve_tasks(&mut self, n: usize) {
        self.facts.tasks.reserve_exact(n);
    }

    /// A task has this number. Threads before it without facts have no name and nice 0.
    pub(crate) fn add_task(&mut self, task: TaskId, info: TaskInfo) {
        for thread in self.facts.tasks.len() as TaskId..task {
            self.facts.tasks.push(TaskInfo { pid: thread, ..TaskInfo::default() });
        }
        self.facts.tasks.push(info);
    }

    /// Calls a hook.
    #[inline(always)]
    pub(crate) fn call<T>(
        &mut self,
        now: Nanos,
        reqs: &mut Requests,
        f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>) -> T,
    ) -> T {
        let mut ctx = Ctx { now, reqs, queue: &self.facts, out: &mut self.out };
        f(self.scheduler.as_mut(), &mut ctx)
    }

    /// Whether the hooks called so far wished anything.
    #[inline(always)]
    pub(crate) fn wishes(&self) -> bool {
        let out = &self.out;
        let runs = out.run_queue || out.run_by_worker || !out.run_hctxs.is_empty();
        out.timer.is_some() || runs || !out.ejected.is_empty() || !out.findable.is_empty()
    }

    /// The timer to arm, if any, with its number. The one before is stale then.
    pub(crate) fn take_timer(&mut self) -> Option<(Nanos, u32)> {
        let wish = self.out.timer.take()?;
        self.timer = self.timer.wrapping_add(1);
        wish.map(|at| (at, self.timer))
    }

    /// Whether this timer is the one in force.
    pub(crate) fn timer_is(&self, number: u32) -> bool {
        self.timer == number
    }

    /// A request that may be found for merging, or no longer.
    pub(crate) fn take_findable(&mut self) -> Option<(ReqId, bool)> {
        self.out.findable.pop()
    }

    pub(crate) fn take_run(&mut self) -> bool {
        std::mem::take(&mut self.out.run_queue)
    }

    pub(crate) fn take_run_by_worker(&mut self) -> bool {
        std::mem::take(&mut self.out.run_by_worker)
    }

    /// The hardware queues that shall run, in order.
    pub(crate) fn runs(&mut self) -> impl Iterator<Item = u16> + '_ {
        self.out.run_hctxs.drain(..)
    }

    /// A request that leaves the scheduler without being asked for.
    pub(crate) fn take_ejected(&mut self) -> Option<ReqId> {
        (!self.out.ejected.is_empty()).then(|| self.out.ejected.remove(0))
    }

    /// From now on it gives reasons.
    pub(crate) fn explain(&mut self) {
        self.out.why = Some(Why::default());
    }

    /// Adds to the reasons of the next decision, if somebody wants them.
    #[inline(always)]
    pub(crate) fn note(&mut self, note: impl FnOnce() -> String) {
        if let Some(why) = &mut self.out.why {
            why.notes.push((0, note()));
        }
    }

    /// The reasons noted since the last decision, as one sentence.
    pub(crate) fn take_reason(&mut self) -> String {
        let Some(why) = &mut self.out.why else { return String::new() };
        let mut notes: Vec<String> = Vec::new();
        for (_, note) in why.notes.drain(..) {
            // A scheduler gives the same answer when it is asked again and again.
            if notes.len() < MOST_NOTES && !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes.join("; ")
    }
}
