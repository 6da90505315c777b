//! What happens on the clock of a simulation with disks.

/// One of the disks on a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiskId(pub u16);

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something of a disk's queue: [`Queue::event`](crate::Queue::event) of that disk knows what to do.
    Queue(DiskId, QueueEvent),
    /// Something of an array of disks: [`Stack::array_event`](crate::Stack::array_event) knows what to do.
    Array(ArrayEvent),
    /// Something of whoever submits; the number has a meaning for the host only.
    Host(u64),
}

/// What can happen to a queue apart from device completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEvent {
    /// The scheduler's timer; stale unless the number is the current one.
    SchedulerTimer(u32),
    /// The device plug's timer (2.6.18).
    Unplug(u32),
    /// The writeback throttle's window ends.
    Wbt(u32),
    /// A delayed re-run of a hardware queue, after its scheduler kept requests back.
    Run(u16),
    /// A new scheduler takes over.
    Switch,
}

/// What can happen to an array apart from what happens to its legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayEvent {
    /// Nothing was written for a while; stale unless the number is the current one.
    SafeMode(u32),
    /// Bits of the bitmap are looked at.
    Daemon,
}

/// Virtual time of all disks and of whoever submits to them.
pub type Timeline = iosched_engine::Timeline<Event>;
