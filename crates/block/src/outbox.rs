//! What a queue has to tell whoever submits.

use iosched_types::{BioId, Nanos, TaskId};

use crate::stats::Issue;

/// Answer to a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submit {
    /// Taken: it will appear in [`Outbox::done`].
    Taken,
    /// The task must sleep until it is named in [`Outbox::woken`], then submit the same bio again with
    /// `resumed` set.
    Blocked,
    /// The bio carries `NOWAIT` and would have to wait for a tag. Nothing was done; the caller has the bio again.
    WouldBlock,
}

/// What a task that is [`Submit::Blocked`] sleeps for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// A tag of the scheduler or of the driver.
    Tag,
    /// A request of the legacy path's pool.
    Request,
    /// The writeback throttle: too many writes are under way.
    Throttle,
    /// The queue is frozen while another scheduler takes over.
    Switch,
    /// An array whose legs are being marked dirty.
    Mark,
}

/// A finished bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The submitter's cookie.
    pub bio: BioId,
    /// Completion time.
    pub at: Nanos,
}

/// What happened to bios and their tasks since the caller last looked.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Finished bios; the caller drains it.
    pub done: Vec<Done>,
    /// Tasks that may try again; the caller drains it.
    pub woken: Vec<TaskId>,
    /// For each of them, where known: how many of `done` were done before the task was woken. Drained together with the
    /// tasks.
    pub woken_behind: Vec<u32>,
    /// Every issued command, if the caller wants them.
    pub issues: Option<Vec<Issue>>,
}
