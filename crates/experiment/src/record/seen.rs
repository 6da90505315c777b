//! What a recorder of block events sees of a simulated run.

use iosched_trace::Io;

/// The bios of a run, with their times, tasks and priorities.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// In order of arrival. The number of a task's name is its position in `tasks`, from 1.
    pub ios: Vec<Io>,
    /// Names of tasks.
    pub tasks: Vec<String>,
    /// Bios that there was no room for.
    pub left_out: u64,
}
