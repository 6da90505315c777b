//! Another scheduler in the middle of a run, as a write to `queue/scheduler` does it.
//!
//! **blk-mq** freezes the queue. No new bio enters. The old scheduler serves the tasks inside (with a request, or
//! asleep for a tag) by its own rules, idling included. When the queue is empty and a grace period is over, the new
//! scheduler is built with fresh tags, and the tasks outside go on.
//!
//! The **legacy** path does not stop. The old scheduler is drained into the dispatch queue, and new requests go around
//! it to the tail. The new scheduler takes over once no request is left that the old one has prepared.
//!
//! A switch resets tunables, and under blk-mq `nr_requests`; the other `queue/*` settings stay.

use iosched_schedulers::{BlockPath, QueueFacts, TunableError};
use iosched_types::Bio;

use super::build::{default_requests, scheduler, set_async_depth, set_requests};
use super::{Lane, Queue};
use crate::config::SchedulerChoice;
use crate::core::elevator::Elevator;
use crate::core::switches::Successor;
use crate::core::trace::TraceEvent;
use crate::timeline::Timeline;

/// Why a queue cannot have this scheduler.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// The scheduler lives on the other block layer.
    #[error(
        "{scheduler} runs on {}, this queue on {}, which is chosen when the machine starts",
        path_name(*wants),
        path_name(*has)
    )]
    Path {
        /// The scheduler.
        scheduler: &'static str,
        /// The block layer.
        wants: BlockPath,
        /// The queue's.
        has: BlockPath,
    },
    /// A tunable does not fit.
    #[error(transparent)]
    Tunable(#[from] TunableError),
}

fn path_name(path: BlockPath) -> &'static str {
    match path {
        BlockPath::Legacy => "the legacy single-queue path",
        BlockPath::Mq => "blk-mq",
    }
}

fn name_of(choice: &SchedulerChoice) -> String {
    let d = choice.descriptor;
    match d.generations.len() {
        0 | 1 => d.name.into(),
        _ => format!("{}@{}", d.name, choice.generation.name),
    }
}

impl Queue {
    fn path(&self) -> BlockPath {
        match self.lane {
            Lane::Mq(_) => BlockPath::Mq,
            Lane::Legacy(_) => BlockPath::Legacy,
        }
    }

    /// Switches the queue's writeback throttle on or off for the scheduler in force.
    pub(super) fn set_throttle(&mut self) {
        if self.path() == BlockPath::Mq && self.core.profile.mq.wbt {
            let unwanted = self.core.sched.choice().descriptor.facts.throttle_off;
            let volatile = self.core.flushes.volatile();
            self.core.throttle.set(unwanted, self.core.sched.facts(), volatile);
        }
    }

    /// Switches to another scheduler, as a write to `queue/scheduler` does; the one in force changes
    /// nothing. Requests under way are served first (see the head of `switch.rs`), so the new one is in
    /// force some time later. A second switch waits for the first.
    ///
    /// # Errors
    /// See [`SwitchError`].
    pub fn switch(&mut self, tl: &mut Timeline, to: SchedulerChoice) -> Result<(), SwitchError> {
        let (wants, has) = (to.descriptor.path_of(to.generation), self.path());
        if wants != has {
            return Err(SwitchError::Path { scheduler: to.descriptor.name, wants, has });
        }
        let mut facts = self.facts().clone();
        if has == BlockPath::Mq {
            let (profile, none) = (&self.core.profile, to.descriptor.facts.bypass);
            let nr = default_requests(profile, has, none, facts.queue_depth);
            set_requests(&mut facts, profile, nr, nr);
            let before = facts.async_depth;
            set_async_depth(&mut facts, to.descriptor.facts, (nr, nr), before);
        }
        let tunables = to.descriptor.resolve_tunables(to.generation.index, &facts, &to.tunables)?;
        self.core.switches.ask(Successor { choice: to, tunables, facts });
        if !self.is_switching() {
            self.begin_switch(tl);
        }
        self.run_deferred(tl);
        Ok(())
    }

    fn begin_switch(&mut self, tl: &mut Timeline) {
        while let Some(to) = self.core.switches.take_next() {
            let now = self.core.sched.choice();
            let same = std::ptr::eq(to.choice.descriptor, now.descriptor)
                && to.choice.generation.index == now.generation.index;
            if same {
                continue;
            }
            self.core.switches.begin(to, tl.now);
            if let Lane::Legacy(legacy) = &mut self.lane {
                legacy.drain(&mut self.core, tl);
                legacy.unplug(&mut self.core);
            }
            self.core.runs.ask();
            return;
        }
    }

    /// Whether a bio has to wait until the queue thaws.
    #[cold]
    pub(super) fn held_by_switch(&mut self, tl: &mut Timeline, bio: &Bio) -> bool {
        if self.path() == BlockPath::Legacy {
            return false;
        }
        self.task_sleeps(tl, bio.thread);
        self.run_deferred(tl);
        self.core.switches.freeze(bio.thread);
        true
    }

    /// The new scheduler takes over.
    pub(super) fn end_switch(&mut self, tl: &mut Timeline) {
        let core = &mut self.core;
        let Some((to, since, frozen)) = core.switches.end() else { return };
        core.end_idle(tl.now);
        core.sched.take_reason();
        let from = name_of(core.sched.choice());
        // Tasks may have come since the switch was asked for.
        let facts = QueueFacts { tasks: core.sched.facts().tasks.clone(), ..to.facts };
        let (new, merging) = scheduler(to.choice, &to.tunables, facts, &core.profile, tl.now);
        core.elevator = Elevator::new(merging, new.facts().nr_requests);
        core.sched.replace(new);
        if let Lane::Mq(mq) = &mut self.lane {
            mq.fresh_scheduler_tags(&self.core);
        }
        self.set_throttle();
        let (to, at) = (name_of(self.core.sched.choice()), tl.now);
        self.core.explain.push(TraceEvent::Switch { since, at, from, to });
        self.core.out.woken.extend(frozen);
        self.begin_switch(tl);
        self.core.runs.ask();
    }
}
