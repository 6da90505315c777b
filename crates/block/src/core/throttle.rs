//! Whether the writeback throttle is on.

use iosched_schedulers::QueueFacts;
use iosched_types::TaskId;

use super::wbt::Wbt;

/// The throttle of a queue, on or off.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    on: Option<Wbt>,
    /// The throttle, while a scheduler runs that has it switched off.
    off: Option<Wbt>,
    target_us: Option<u64>,
}

impl Throttle {
    /// `target_us` as set by hand, if it was.
    pub(crate) fn new(target_us: Option<u64>) -> Self {
        Throttle { on: None, off: None, target_us }
    }

    /// Switches it on or off for a scheduler. BFQ (`unwanted`) switches it off, unless the target was set by hand.
    pub(crate) fn set(&mut self, unwanted: bool, facts: &QueueFacts, write_cache: bool) {
        let target = self.target_us;
        if target == Some(0) || (unwanted && target.is_none()) {
            self.off = self.on.take().or(self.off.take());
        } else if self.on.is_none() {
            self.on = Some(self.off.take().unwrap_or_else(|| {
                Wbt::new(target, facts.rotational, facts.queue_depth, write_cache)
            }));
        }
    }

    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// Whether a task sleeps in it.
    pub(crate) fn holds(&self, task: TaskId) -> bool {
        self.on.iter().chain(&self.off).any(|w| w.holds(task))
    }

    #[inline(always)]
    pub(crate) fn get(&mut self) -> Option<&mut Wbt> {
        self.on.as_mut()
    }
}
