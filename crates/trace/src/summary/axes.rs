//! Figures over time, in a fixed number of bins that grow with the trace.

use iosched_types::{Bytes, Nanos, Op};

use crate::event::Io;

/// Bins of a series.
pub(super) const BINS: usize = 256;
/// Rows of a picture.
pub(super) const ROWS: usize = 96;
/// Rows of latencies: four to a power of two, from 1 µs on.
pub(super) const LATENCIES: usize = 96;

/// One bin of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    pub(super) ios: u64,
    pub(super) read: Bytes,
    pub(super) written: Bytes,
    /// I/Os in flight times nanoseconds.
    pub(super) in_flight: u128,
    pub(super) most: u64,
}

impl Bin {
    fn and(self, b: Bin) -> Bin {
        Bin {
            ios: self.ios + b.ios,
            read: self.read + b.read,
            written: self.written + b.written,
            in_flight: self.in_flight + b.in_flight,
            most: self.most.max(b.most),
        }
    }
}

/// Figures over time.
#[derive(Debug)]
pub(super) struct Series {
    /// Width of a bin in ns.
    pub(super) width: Nanos,
    pub(super) bins: Vec<Bin>,
}

impl Default for Series {
    fn default() -> Self {
        Series { width: 100_000, bins: vec![Bin::default(); BINS] }
    }
}

impl Series {
    fn at(&mut self, time: Nanos) -> usize {
        while time / self.width >= BINS as u64 {
            self.width = self.width.saturating_mul(2);
            for i in 0..BINS / 2 {
                self.bins[i] = self.bins[2 * i].and(self.bins[2 * i + 1]);
            }
            self.bins[BINS / 2..].fill(Bin::default());
        }
        (time / self.width) as usize
    }

    pub(super) fn add(&mut self, io: &Io, depth: u64) {
        let end = io.done.unwrap_or(io.queued);
        let to = self.at(end);
        let from = self.at(io.queued);
        let bin = &mut self.bins[from];
        bin.ios += 1;
        match io.op {
            Op::Read => bin.read += io.len,
            Op::Write => bin.written += io.len,
            Op::Discard | Op::Flush => {}
        }
        bin.most = bin.most.max(depth);
        for i in from..=to {
            let begin = self.width * i as u64;
            let inside = end.min(begin.saturating_add(self.width)) - io.queued.max(begin);
            self.bins[i].in_flight += u128::from(inside);
        }
    }
}

/// Where and how long I/Os are, over time.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) width: Nanos,
    /// Bytes of a row of offsets.
    pub(super) height: Bytes,
    /// Reads and writes by time and offset.
    pub(super) offsets: [Vec<u32>; 2],
    /// I/Os by time and latency.
    pub(super) latencies: Vec<u32>,
}

impl Default for Picture {
    fn default() -> Self {
        let empty = || vec![0; BINS * ROWS];
        Picture {
            width: 100_000,
            height: 1 << 12,
            offsets: [empty(), empty()],
            latencies: vec![0; BINS * LATENCIES],
        }
    }
}

/// Halves the columns of a grid with `rows` cells a column.
fn halve(grid: &mut [u32], rows: usize) {
    for column in 0..BINS {
        for row in 0..rows {
            let of = |c: usize| if c < BINS { grid[c * rows + row] } else { 0 };
            grid[column * rows + row] = of(2 * column).saturating_add(of(2 * column + 1));
        }
    }
}

/// The row of a latency.
pub(super) fn row_of(latency: Nanos) -> usize {
    let quarters = (latency.max(1_000) as f64 / 1_000.0).log2() * 4.0;
    (quarters as usize).min(LATENCIES - 1)
}

impl Picture {
    pub(super) fn add(&mut self, io: &Io) {
        while io.queued / self.width >= BINS as u64 {
            self.width = self.width.saturating_mul(2);
            let [reads, writes] = &mut self.offsets;
            halve(reads, ROWS);
            halve(writes, ROWS);
            halve(&mut self.latencies, LATENCIES);
        }
        let column = (io.queued / self.width) as usize;
        if let Some(latency) = io.latency() {
            let cell = &mut self.latencies[column * LATENCIES + row_of(latency)];
            *cell = cell.saturating_add(1);
        }
        if io.op == Op::Flush {
            return;
        }
        while io.offset / self.height >= ROWS as u64 {
            self.height *= 2;
            for grid in &mut self.offsets {
                for column in grid.chunks_mut(ROWS) {
                    for row in 0..ROWS {
                        let of = |r: usize| column.get(r).copied().unwrap_or(0);
                        column[row] = of(2 * row).saturating_add(of(2 * row + 1));
                    }
                }
            }
        }
        let row = (io.offset / self.height) as usize;
        let cell = &mut self.offsets[usize::from(io.op != Op::Read)][column * ROWS + row];
        *cell = cell.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Name;

    #[test]
    fn bins_grow_and_keep_their_sums() {
        let (mut series, mut picture) = (Series::default(), Picture::default());
        for i in 0..10_000u64 {
            let mut io = Io::new(i * 1_000_003, Op::Read, Name(0), i * 1_000_000, 4096);
            io.done = Some(io.queued + 2_000_000);
            series.add(&io, i % 7);
            picture.add(&io);
        }
        assert_eq!(series.bins.iter().map(|b| b.ios).sum::<u64>(), 10_000);
        let busy: u128 = series.bins.iter().map(|b| b.in_flight).sum();
        assert_eq!(busy, 10_000 * 2_000_000);
        assert_eq!(picture.offsets[0].iter().sum::<u32>(), 10_000);
        assert_eq!(picture.latencies.iter().sum::<u32>(), 10_000);
        assert!(series.width * BINS as u64 > 9_999 * 1_000_003);
    }
}
