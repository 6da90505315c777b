//! What calls move: memory for it, and how it counts.

use iosched_host::programs::{Begun, TaskStats};
use iosched_syscalls::{Call, Completion, Fd};
use iosched_types::{Bytes, Nanos};

use super::descriptors::Behind;
use super::task::Task;
use crate::sys::transfer::{Aio, Buffer};

/// What a touch of a map counts as, on every machine as in the simulator.
const PAGE: Bytes = 4096;

/// As what a call counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    Read,
    Write,
    /// Read and written in one call.
    Copy,
    Sync,
    /// A page of a map.
    Load,
    Store,
}

impl Moves {
    pub(super) fn book(self, stats: &mut TaskStats, bytes: Bytes, latency: Nanos) {
        match self {
            Moves::Read => stats.moved(false, bytes, latency),
            Moves::Write => stats.moved(true, bytes, latency),
            Moves::Copy => {
                stats.moved(false, bytes, latency);
                stats.moved(true, bytes, latency);
            }
            Moves::Load => stats.moved(false, PAGE, latency),
            Moves::Store => stats.moved(true, PAGE, latency),
            Moves::Sync => {
                stats.sync.0 += 1;
                stats.sync.2.record(latency);
            }
        }
    }
}

/// Memory of a task.
pub(super) struct Memory {
    pub(super) buffer: Buffer,
    pub(super) aio: Option<Aio>,
    /// Asynchronous I/Os that are done and were not asked for yet.
    pub(super) done: Vec<Completion>,
    /// Those that were not asked for yet, done or not.
    pub(super) begun: Begun,
    pub(super) noise: Option<u64>,
}

impl Memory {
    pub(super) fn new(noise: Option<u64>) -> Memory {
        let (done, begun) = (Vec::new(), Begun::default());
        Memory { buffer: Buffer::new(noise), aio: None, done, begun, noise }
    }
}

impl Task {
    /// As what a call counts. Pipes are not files: no disk hears of them.
    pub(super) fn moves(&self, call: &Call) -> Option<Moves> {
        let file = |fd: Fd| self.table().get(fd).is_ok_and(|f| f.behind != Behind::Pipe);
        match *call {
            Call::Read { fd, .. } | Call::Pread { fd, .. } if file(fd) => Some(Moves::Read),
            Call::Write { fd, .. } | Call::Pwrite { fd, .. } if file(fd) => Some(Moves::Write),
            Call::CopyRange { from, to, .. } if file(from) && file(to) => Some(Moves::Copy),
            Call::Fsync { .. } | Call::Fdatasync { .. } | Call::SyncFs { .. } | Call::Sync => {
                Some(Moves::Sync)
            }
            Call::Load { .. } => Some(Moves::Load),
            Call::Store { .. } => Some(Moves::Store),
            _ => None,
        }
    }
}
