//! A block trace as a load: which task issues which I/O, and what each I/O waits for.
//!
//! [`Learner`] takes the I/Os of a trace in order of arrival and infers what each of them depends on. A task issues
//! its I/Os in the recorded order, so a dependence is a rule of one [`Step`] and the steps of a chain are linked.
//!
//! The rules (`rule` in `learn`): an I/O that arrives after the completion of a synchronous I/O of its task waits for
//! that completion and then for the recorded pause. One that arrives while its task's others are under way follows the
//! latest of what its task saw: a completion of at most 10 ms before, or else the I/O before it. A flush waits for the
//! writes that were done before it. Asynchronous writes of kernel workers keep their times, with at most as many under
//! way as in the recording.

mod learn;
mod mode;
mod places;

pub use learn::{Learner, MOST_IOS, TooLong};
pub use mode::{Mode, ModeError, Said};
pub use places::{Places, Unplaced};

use iosched_types::{Flags, IoPrio, LatencyHistogram, Nanos, Op, Sector};

/// No step.
pub const NONE: u32 = u32::MAX;
/// The time of a completion that the trace does not have.
pub const UNKNOWN: Nanos = Nanos::MAX;

/// What a step waits for when its load waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Its recorded time.
    Clock,
    /// The start of the step before it in its chain.
    Previous,
    /// The completion of `after`, and until no more of its task's I/Os are under way than in the recording.
    Completion,
    /// As that, of another task: a commit of a journal, or what a commit is for.
    Other,
}

/// One I/O. The times are those of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When it arrived.
    pub at: Nanos,
    /// When it was done; [`UNKNOWN`] where the trace does not say.
    pub done: Nanos,
    /// First sector.
    pub sector: Sector,
    /// Sectors; 0 for a flush.
    pub sectors: u32,
    /// Its task, a position in [`Recording::tasks`].
    pub task: u32,
    /// The step whose completion it waits for.
    pub after: u32,
    /// The step after it in its chain.
    pub next: u32,
    /// How many I/Os of its task that a task waits for were under way when it arrived; of a flush, writes too.
    pub busy: u16,
    /// Flags.
    pub flags: Flags,
    /// Priority; class none where the trace has none.
    pub prio: IoPrio,
    /// Operation.
    pub op: Op,
    /// What it waits for.
    pub rule: Rule,
    /// Steps of other chains wait for it.
    pub awaited: bool,
    /// The step behind it comes under the same plug.
    pub plugged: bool,
}

impl Step {
    /// Whether its task waits for it, sooner or later.
    #[must_use]
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        self.op != Op::Write || self.flags.0 & SYNC != 0
    }
}

/// Flags of writes that are waited for.
const SYNC: u16 = Flags::SYNC.0 | Flags::FUA.0 | Flags::PREFLUSH.0;

/// A task of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedTask {
    /// Thread; 0 when unknown.
    pub pid: u32,
    /// Command name; empty when unknown.
    pub name: String,
    /// The priority of its first I/O that has one.
    pub prio: IoPrio,
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
}

impl TracedTask {
    /// As tables call it.
    #[must_use]
    pub fn title(&self) -> String {
        match (self.name.as_str(), self.pid) {
            ("", 0) => "all".into(),
            ("", pid) => format!("pid {pid}"),
            (name, 0) => name.into(),
            (name, pid) => format!("{name} {pid}"),
        }
    }
}

/// I/Os that are issued in their order: those of a task, or what kernel workers write back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its first step.
    pub first: u32,
    /// The most I/Os that it had under way.
    pub most: u32,
    /// Writes of kernel workers.
    pub writeback: bool,
    /// The task of its first step.
    pub task: u32,
}

/// A recording, ready for replay.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The I/Os in order of arrival.
    pub steps: Vec<Step>,
    /// Who issued them.
    pub tasks: Vec<TracedTask>,
    /// Their orders.
    pub chains: Vec<Chain>,
    /// Where they lie.
    pub places: Places,
    /// What was measured when they were recorded.
    pub measured: Recorded,
    /// Stands for all of it.
    pub digest: u64,
    /// What is to be known of the trace: code, message, advice.
    pub remarks: Vec<(&'static str, String, String)>,
}

/// What was measured at the recording.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// From the first arrival to the last completion, or arrival where there is none.
    pub span: Nanos,
    /// Latencies of reads and of all else, from arrival to completion.
    pub latencies: [LatencyHistogram; 2],
    /// Bytes read and written.
    pub bytes: u64,
    /// I/Os whose completion is known.
    pub completed: u64,
    /// The sum of all latencies.
    pub weighted: u128,
}

impl Recorded {
    /// The mean number of I/Os under way.
    #[must_use]
    pub fn mean_in_flight(&self) -> f64 {
        if self.span == 0 { 0.0 } else { self.weighted as f64 / self.span as f64 }
    }
}

impl Recording {
    /// Whether the trace says which task issued an I/O.
    #[must_use]
    pub fn knows_tasks(&self) -> bool {
        self.tasks.iter().any(|t| t.pid != 0 || !t.name.is_empty())
    }

    /// Whether it says when I/Os were done.
    #[must_use]
    pub fn knows_completions(&self) -> bool {
        self.measured.completed > 0
    }

    /// Mode of a replay for which none is said: tasks that wait for their I/Os do so here.
    #[must_use]
    pub fn usual_mode(&self) -> Mode {
        if self.knows_tasks() && self.knows_completions() {
            Mode::Dependent
        } else {
            Mode::AsRecorded
        }
    }

    /// Whether it changes its disk.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.steps.iter().any(|s| matches!(s.op, Op::Write | Op::Discard))
    }
}
