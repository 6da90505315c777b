//! Replaying an I/O log (`read_iolog`).

use iosched_types::{Nanos, Op};

use super::generator::NextIo;
use super::iolog::IoLog;
use super::layout::Files;

/// A log on its way.
#[derive(Debug)]
pub(crate) struct Replay {
    log: IoLog,
    starts: Vec<u64>,
    at: usize,
}

impl Replay {
    pub(crate) fn new(log: &IoLog, files: &Files) -> Self {
        Replay { log: log.clone(), starts: files.iter().map(|f| f.origin).collect(), at: 0 }
    }

    /// When the next entry is due, counted from the start.
    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.log.entries.get(self.at).map(|e| e.at)
    }

    pub(crate) fn next_io(&mut self) -> Option<NextIo> {
        let e = self.log.entries.get(self.at)?;
        self.at += 1;
        let dir = match e.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Discard => 2,
            Op::Flush => 3,
        };
        let base = self.starts.get(e.file as usize).or(self.starts.first()).copied().unwrap_or(0);
        Some(NextIo { dir, offset: base + e.offset, len: e.len })
    }
}
