//! What a replay measures.

use iosched_types::{Bytes, LatencyHistogram, Nanos, Op, SECTOR};
use iosched_workloads::fio::stats::SAMPLE;
use iosched_workloads::replay::Step;

/// I/Os of one kind.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// How many.
    pub ios: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Their latencies.
    pub latency: LatencyHistogram,
}

/// What a task moved.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// Reads, writes, discards, flushes.
    pub sides: [Side; 4],
    /// When its first I/O began; none did yet where this is after the end.
    pub began: Nanos,
    /// When its last I/O was done.
    pub ended: Nanos,
}

/// What a replay measured.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// By task of the recording.
    pub tasks: Vec<Moved>,
    /// Bytes and I/Os done in each [`SAMPLE`].
    pub samples: Vec<(Bytes, u64)>,
    /// Discards that the device does not take.
    pub refused: u64,
    /// When it began and ended.
    pub start: Nanos,
    /// When the last I/O was done.
    pub ended: Nanos,
}

impl Played {
    pub(super) fn new(tasks: usize, start: Nanos) -> Played {
        let none = Moved { began: Nanos::MAX, ..Moved::default() };
        Played { tasks: vec![none; tasks], start, ..Played::default() }
    }

    /// An I/O of a task begins.
    pub(super) fn begin(&mut self, task: u32, at: Nanos) {
        let began = &mut self.tasks[task as usize].began;
        *began = (*began).min(at);
    }

    /// An I/O is done.
    pub(super) fn book(&mut self, step: &Step, now: Nanos, from: Nanos) {
        let task = &mut self.tasks[step.task as usize];
        task.ended = now;
        let side = match step.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Discard => 2,
            Op::Flush => 3,
        };
        let bytes = Bytes::from(step.sectors) * SECTOR;
        let s = &mut task.sides[side];
        s.ios += 1;
        s.bytes += bytes;
        s.latency.record(now.saturating_sub(from));
        let at = ((now - self.start) / SAMPLE) as usize;
        if self.samples.len() <= at {
            self.samples.resize(at + 1, (0, 0));
        }
        // A discard moves no data.
        self.samples[at].0 += if side == 2 { 0 } else { bytes };
        self.samples[at].1 += 1;
    }
}
