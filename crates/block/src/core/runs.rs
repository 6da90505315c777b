//! Which runs of the queue are asked for: the kernel's deferred work.

use std::collections::VecDeque;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Of everything.
    All,
    /// Of one hardware queue.
    One(u16),
    /// What goes around the scheduler is parked, and then everything runs.
    Bypass,
}

/// Runs that are asked for and have not begun.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    all: bool,
    /// Hardware queues to run, in this order, if not all of them have to run.
    some: VecDeque<u16>,
    /// Behind them, what goes around the scheduler.
    bypass: bool,
    /// The kernel's worker makes the next run, not the task that asked for it.
    by_worker: bool,
    /// The worker shall run everything, but others go first.
    held: bool,
}

impl Runs {
    /// Everything shall run soon.
    #[inline(always)]
    pub(crate) fn ask(&mut self) {
        self.all = true;
    }

    /// One hardware queue shall run soon, behind those asked for before: each is a work item of its own.
    pub(crate) fn ask_one(&mut self, h: u16) {
        if !self.some.contains(&h) {
            self.some.push_back(h);
        }
    }

    /// Something goes around the scheduler, behind the runs that were asked for before.
    pub(crate) fn ask_bypass(&mut self) {
        self.bypass = true;
    }

    /// The run that is asked for next is left to the kernel's worker.
    pub(crate) fn leave_to_worker(&mut self) {
        self.by_worker = true;
    }

    /// What is asked for is left to the worker, which others go ahead of.
    pub(crate) fn hold(&mut self) {
        if self.all || !self.some.is_empty() {
            (self.all, self.by_worker, self.held) = (false, false, true);
            self.some.clear();
        }
    }

    /// The worker's turn comes. `false` if it has nothing to do.
    pub(crate) fn release(&mut self) -> bool {
        let held = std::mem::take(&mut self.held);
        self.all |= held;
        self.by_worker |= held;
        held
    }

    /// Whether the worker makes the run that begins now.
    #[inline(always)]
    pub(crate) fn take_by_worker(&mut self) -> bool {
        std::mem::take(&mut self.by_worker)
    }

    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.all || !self.some.is_empty() || self.bypass
    }

    /// Takes the run that is next. One of everything covers all others.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Run> {
        if std::mem::take(&mut self.all) {
            self.some.clear();
            return Some(Run::All);
        }
        if let Some(h) = self.some.pop_front() {
            return Some(Run::One(h));
        }
        std::mem::take(&mut self.bypass).then_some(Run::Bypass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(runs: &mut Runs) -> Vec<Run> {
        std::iter::from_fn(|| runs.next()).collect()
    }

    #[test]
    fn hardware_queues_take_turns_and_one_run_of_everything_covers_them() {
        let mut runs = Runs::default();
        [2, 0, 2].into_iter().for_each(|h| runs.ask_one(h));
        assert_eq!(all(&mut runs), [Run::One(2), Run::One(0)]);
        runs.ask_one(1);
        runs.ask();
        assert!(runs.any());
        runs.ask_bypass();
        assert_eq!(all(&mut runs), [Run::All, Run::Bypass]);
        assert!(!runs.any());
    }

    /// A task's own run does not take the place of the worker's, and two that are asked for before its turn are one.
    #[test]
    fn a_held_run_comes_when_it_is_released() {
        let mut runs = Runs::default();
        (0..2).for_each(|_| {
            runs.ask();
            runs.hold();
        });
        assert!(!runs.any());
        runs.ask();
        assert_eq!(all(&mut runs), [Run::All]);
        assert!(runs.release() && runs.take_by_worker());
        assert_eq!(all(&mut runs), [Run::All]);
        assert!(!runs.release());
    }
}
