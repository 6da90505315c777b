//! What a recorder sees of a simulated run: its bios, and where it was told to, the decisions of the scheduler.

use iosched_block::{TraceEvent, Waits};
use iosched_trace::Io;
use iosched_types::Nanos;

/// The bios of a run, with their times, tasks and priorities. Times count from the start of the load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// In order of arrival. The number of a task's name is its position in `tasks`, from 1.
    pub ios: Vec<Io>,
    /// Names of tasks.
    pub tasks: Vec<String>,
    /// Bios that there was no room for.
    pub left_out: u64,
    /// The decisions of the scheduler of each disk in a window of the run, in order. Their tasks are still the queue's.
    pub decisions: Vec<Vec<TraceEvent>>,
    /// When the load began, by the queue's clock.
    pub start: Nanos,
    /// How long bios took, by time and task.
    pub waits: Waits,
    /// Pid and name of each of the queue's tasks.
    pub who: Vec<(u32, String)>,
}
