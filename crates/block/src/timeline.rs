//! The clock of one simulation and the events on it.

use iosched_engine::EventQueue;
use iosched_types::{Nanos, TaskId};

/// What can happen apart from device completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The scheduler's timer; stale unless the number is the current one.
    SchedulerTimer(u32),
    /// The device plug's timer (2.6.18).
    Unplug(u32),
    /// The writeback throttle's window ends.
    Wbt(u32),
    /// A delayed re-run of a hardware queue whose scheduler kept its requests back.
    Run(u16),
    /// A new scheduler takes over.
    Switch,
    /// A task wakes up: its sleep ended.
    Task(TaskId, u32),
    /// A clock tick of the caller's own (samples, limits, scenario steps).
    User(u32),
}

/// Virtual time.
#[derive(Debug, Default)]
pub struct Timeline {
    /// Now.
    pub now: Nanos,
    /// What happens when.
    pub events: EventQueue<Event>,
}
