//! Which runs of the queue are asked for: the kernel's deferred work.

use std::collections::VecDeque;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// Of everything.
    All,
    /// Of one hardware queue.
    One(u16),
}

/// Runs that are asked for and have not begun.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    all: bool,
    /// Hardware queues to run, in this order, if not all of them have to run.
    some: VecDeque<u16>,
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

    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.all || !self.some.is_empty()
    }

    /// Takes the run that is next. One of everything covers all others.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Run> {
        if std::mem::take(&mut self.all) {
            self.some.clear();
            return Some(Run::All);
        }
        self.some.pop_front().map(Run::One)
    }
}
