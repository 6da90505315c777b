//! What a queue counts.

use iosched_types::{Nanos, Op, Sector, TaskId};

/// A command handed to the device, as the dispatch picture and the dispatch log show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issue {
    /// When.
    pub t: Nanos,
    /// Operation.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Sectors.
    pub sectors: u32,
    /// Process.
    pub task: TaskId,
}

/// Counters of a queue.
#[derive(Clone, Debug, Default)]
pub struct QueueStats {
    /// Bios taken.
    pub submitted: u64,
    /// Bios finished.
    pub finished: u64,
    /// Commands issued to the device.
    pub issued: u64,
    /// The same by operation.
    pub given: [u64; 4],
    /// Bytes of these commands, by operation.
    pub bytes: [u64; 4],
    /// Merges by operation of the bio.
    pub merges: [u64; 4],
    /// Commands not starting where the one before ended.
    pub seeks: u64,
    /// Distance between commands in sectors.
    pub travel: Sector,
    /// Largest number at the device.
    pub max_in_flight: u32,
    /// Time with commands at the device, up to when it last had none.
    pub busy: Nanos,
    /// Time requests spent from allocation to completion.
    pub weighted: Nanos,
    /// Time the device stood idle on the scheduler's wish.
    pub idled: Nanos,
    /// Number of such periods.
    pub idles: u64,
}
