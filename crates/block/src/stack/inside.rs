//! What the threads that submit to an array still have to do there.

use std::collections::VecDeque;

use iosched_types::{Bio, TaskId};

/// What a thread still has to do for its bios.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A part of a write that may have to wait for a mark.
    Write(u32, Bio),
    /// A part of a read, which has no leg yet.
    Read(u32, Bio),
    /// A bio for a leg.
    Send(usize, Bio),
}

/// A thread that submits.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) steps: VecDeque<Step>,
    /// It sleeps for a tag or a request of the leg of its first step.
    pub(super) asleep: bool,
}

/// All threads, by number.
#[derive(Debug, Default)]
pub(super) struct Inside(Vec<Thread>);

impl Inside {
    pub(super) fn thread(&mut self, thread: TaskId) -> &mut Thread {
        let n = thread as usize;
        if self.0.len() <= n {
            self.0.resize_with(n + 1, Thread::default);
        }
        &mut self.0[n]
    }

    /// The next step of a thread.
    pub(super) fn first(&self, thread: TaskId) -> Option<Step> {
        self.0.get(thread as usize)?.steps.front().copied()
    }

    /// Behind all else of the thread.
    pub(super) fn push(&mut self, thread: TaskId, step: Step) {
        self.thread(thread).steps.push_back(step);
    }

    /// The leg that refused a thread's bio; `None` when it waits for a mark.
    pub(super) fn refused_by(&self, thread: TaskId) -> Option<usize> {
        match self.first(thread)? {
            Step::Send(leg, _) => Some(leg),
            Step::Read(..) | Step::Write(..) => None,
        }
    }

    /// Steps of all threads.
    pub(super) fn steps(&self) -> usize {
        self.0.iter().map(|t| t.steps.len()).sum()
    }
}
