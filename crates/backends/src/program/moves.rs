//! What calls move: memory for it, and how it counts.

use iosched_host::programs::TaskStats;
use iosched_syscalls::{Call, Completion, Fd};
use iosched_types::{Bytes, Nanos};

use super::descriptors::Behind;
use super::task::Task;
use crate::sys::transfer::{Aio, Buffer};

/// As what a call counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moves {
    Read,
    Write,
    /// Read and written in one call.
    Copy,
    Sync,
}

impl Moves {
    pub(super) fn book(self, stats: &mut TaskStats, bytes: Bytes, latency: Nanos) {
        let sides: &mut [_] = match self {
            Moves::Read => &mut [&mut stats.read],
            Moves::Write => &mut [&mut stats.write],
            Moves::Copy => &mut [&mut stats.read, &mut stats.write],
            Moves::Sync => &mut [&mut stats.sync],
        };
        for to in sides {
            to.0 += 1;
            to.1 += bytes;
            to.2.record(latency);
        }
    }
}

/// Memory of a task.
pub(super) struct Memory {
    pub(super) buffer: Buffer,
    pub(super) aio: Option<Aio>,
    /// Asynchronous I/Os that are done and were not asked for yet.
    pub(super) done: Vec<Completion>,
    pub(super) noise: Option<u64>,
}

impl Memory {
    pub(super) fn new(noise: Option<u64>) -> Memory {
        Memory { buffer: Buffer::new(noise), aio: None, done: Vec::new(), noise }
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
            _ => None,
        }
    }
}
