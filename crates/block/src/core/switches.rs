//! Switches to other schedulers: those asked for and the one under way.

use std::collections::VecDeque;

use iosched_schedulers::{QueueFacts, TunableValues};
use iosched_types::{Nanos, TaskId};

use crate::config::SchedulerChoice;

/// A scheduler that is about to take over.
#[derive(Debug)]
pub(crate) struct Successor {
    /// Which one.
    pub(crate) choice: SchedulerChoice,
    /// Its tunables, looked up.
    pub(crate) tunables: TunableValues,
    /// What the queue is like under it.
    pub(crate) facts: QueueFacts,
}

#[derive(Debug)]
struct Switching {
    to: Successor,
    since: Nanos,
    /// The event that ends it is on its way.
    ending: bool,
    /// Tasks that wait for the queue to thaw.
    frozen: VecDeque<TaskId>,
}

/// Switches of one queue.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    now: Option<Box<Switching>>,
    /// Writers of `queue/scheduler` take turns.
    next: VecDeque<Successor>,
}

impl Switches {
    /// Whether one is under way.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.now.is_some()
    }

    /// Somebody asks for one.
    pub(crate) fn ask(&mut self, to: Successor) {
        self.next.push_back(to);
    }

    /// The next that is asked for.
    pub(crate) fn take_next(&mut self) -> Option<Successor> {
        self.next.pop_front()
    }

    pub(crate) fn begin(&mut self, to: Successor, since: Nanos) {
        let frozen = VecDeque::new();
        self.now = Some(Box::new(Switching { to, since, ending: false, frozen }));
    }

    /// A task waits until it is over.
    pub(crate) fn freeze(&mut self, task: TaskId) {
        if let Some(s) = &mut self.now {
            s.frozen.push_back(task);
        }
    }

    /// Nothing is left to wait for. `true` the first time.
    pub(crate) fn may_end(&mut self) -> bool {
        self.now.as_mut().is_some_and(|s| !std::mem::replace(&mut s.ending, true))
    }

    /// It is over: who takes over, when that was asked for, and who waited.
    pub(crate) fn end(&mut self) -> Option<(Successor, Nanos, VecDeque<TaskId>)> {
        let s = *self.now.take()?;
        Some((s.to, s.since, s.frozen))
    }
}
