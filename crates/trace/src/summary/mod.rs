//! A trace in figures, in constant memory.

mod axes;
mod doubts;
mod footprint;
mod report;
mod tasks;
mod text;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use iosched_types::{Bytes, LatencyHistogram, Nanos, Op};

use crate::event::Io;
use crate::words::OPERATIONS;
use axes::{Picture, Series};
use footprint::Footprint;
use tasks::Tasks;

pub use report::{
    About, Depth, Latency, Oddity, Operation, Part, Pixels, Report, Size, Task, oddities,
};
pub use text::{odd, text};

/// I/Os in flight that are followed.
const MOST_IN_FLIGHT: usize = 1 << 17;
/// Lengths that are counted one by one.
const MOST_SIZES: usize = 1 << 12;

/// Figures of one operation.
#[derive(Debug, Default)]
struct OfOp {
    ios: u64,
    bytes: u64,
    sync: u64,
    sizes: BTreeMap<Bytes, u64>,
    /// From arrival to completion.
    latency: LatencyHistogram,
    /// From the driver to completion.
    device: LatencyHistogram,
    no_latency: u64,
}

impl OfOp {
    fn size(&mut self, len: Bytes) {
        let known = self.sizes.contains_key(&len) || self.sizes.len() < MOST_SIZES;
        *self.sizes.entry(if known { len } else { len.next_power_of_two() }).or_default() += 1;
    }
}

/// I/Os under way.
#[derive(Debug, Default)]
struct InFlight {
    done: BinaryHeap<Reverse<Nanos>>,
    most: usize,
    /// I/Os that found none under way.
    alone: u64,
}

impl InFlight {
    fn arrives(&mut self, io: &Io) -> u64 {
        while self.done.peek().is_some_and(|d| d.0 <= io.queued) {
            self.done.pop();
        }
        self.alone += u64::from(self.done.is_empty());
        if let Some(done) = io.done.filter(|_| self.done.len() < MOST_IN_FLIGHT) {
            self.done.push(Reverse(done));
        }
        self.most = self.most.max(self.done.len());
        self.done.len() as u64
    }
}

/// Figures of a trace so far.
#[derive(Debug, Default)]
pub struct Summary {
    ops: [OfOp; 4],
    first: Option<Nanos>,
    last: Nanos,
    /// Last completion.
    end: Nanos,
    furthest: Bytes,
    longest_gap: (Nanos, Nanos),
    gaps: LatencyHistogram,
    /// I/Os that begin at a sector's edge and have whole sectors.
    whole_sectors: u64,
    below_sector: u64,
    /// I/Os that begin where one before them ended.
    follows: u64,
    ends: [Option<Bytes>; 2],
    footprint: Footprint,
    read_footprint: Footprint,
    written_footprint: Footprint,
    in_flight: InFlight,
    tasks: Tasks,
    series: Series,
    picture: Picture,
}

fn index(op: Op) -> usize {
    OPERATIONS.iter().position(|(o, _)| *o == op).unwrap_or(0)
}

impl Summary {
    /// I/Os that found none in flight.
    #[must_use]
    pub fn alone(&self) -> u64 {
        self.in_flight.alone
    }

    /// Takes the next I/O.
    pub fn add(&mut self, io: &Io) {
        self.times(io);
        let op = &mut self.ops[index(io.op)];
        op.ios += 1;
        op.bytes += io.len;
        op.sync += u64::from(io.flags.has(iosched_types::Flags::SYNC));
        match io.latency() {
            Some(latency) => op.latency.record(latency),
            None => op.no_latency += 1,
        }
        if let (Some(issued), Some(done)) = (io.issued, io.done) {
            op.device.record(done.saturating_sub(issued));
        }
        let sequential = self.place(io);
        self.follows += u64::from(sequential);
        self.tasks.add(io);
        let depth = self.in_flight.arrives(io);
        self.series.add(io, depth);
        self.picture.add(io);
    }

    fn times(&mut self, io: &Io) {
        if self.first.is_some() {
            let gap = io.queued.saturating_sub(self.last);
            self.gaps.record(gap);
            if gap > self.longest_gap.0 {
                self.longest_gap = (gap, self.last);
            }
        }
        self.first.get_or_insert(io.queued);
        self.last = self.last.max(io.queued);
        self.end = self.end.max(io.done.unwrap_or(io.queued));
    }

    /// Whether it begins where the last one of its direction ended.
    fn place(&mut self, io: &Io) -> bool {
        if io.op == Op::Flush {
            return false;
        }
        self.ops[index(io.op)].size(io.len);
        self.whole_sectors +=
            u64::from(io.offset.is_multiple_of(512) && io.len.is_multiple_of(512));
        self.below_sector += u64::from(io.len < 512);
        self.furthest = self.furthest.max(io.offset + io.len);
        self.footprint.add(io.offset, io.len);
        let (end, footprint) = match io.op {
            Op::Read => (0, &mut self.read_footprint),
            _ => (1, &mut self.written_footprint),
        };
        footprint.add(io.offset, io.len);
        self.ends[end].replace(io.offset + io.len) == Some(io.offset)
    }

    /// I/Os so far.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.ops.iter().map(|o| o.ios).sum()
    }
}
