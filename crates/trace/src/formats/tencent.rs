//! Tencent CBS 2018: `Timestamp,Offset,Size,IOType,VolumeID`, whole seconds and 512-byte sectors, 0 is a read.
//!
//! The I/Os of one second are spread over it evenly, because thousands share a time.

use std::collections::VecDeque;

use iosched_types::Op;

use super::text::{Grammar, Line, reader};
use super::{Format, fields};
use crate::event::{Io, Item};
use crate::trace::Tables;
use crate::words;

pub(super) static FORMAT: Format = Format {
    name: "tencent",
    about: "Tencent CBS traces",
    per_cpu: false,
    sniff: |head| {
        head.most(|l| {
            fields::shaped::<5>(l, &[0, 1, 2, 3])
                && words::commas::<5>(l).is_some_and(|f| matches!(f[3], "0" | "1"))
        })
    },
    open: |_, files| reader(Tencent::default(), files),
};

/// As many I/Os of a second are spread together.
const MOST: usize = 1 << 15;
const SECOND: u64 = 1_000_000_000;

#[derive(Default)]
struct Tencent {
    /// I/Os of the second that is read.
    now: VecDeque<Io>,
    /// Those that are spread already.
    ready: VecDeque<Io>,
}

impl Tencent {
    fn spread(&mut self) {
        let n = self.now.len() as u64;
        for (i, mut io) in self.now.drain(..).enumerate() {
            io.queued = io.queued.saturating_add(i as u64 * SECOND / n);
            self.ready.push_back(io);
        }
    }
}

impl Grammar for Tencent {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        let Some([time, offset, size, kind, volume]) = words::commas(line) else {
            return Line::Skip(fields::COLUMNS);
        };
        let op = match kind {
            "0" => Op::Read,
            "1" => Op::Write,
            _ if time.eq_ignore_ascii_case("timestamp") => return Line::Other,
            _ => return Line::Skip(fields::OPERATION),
        };
        let Some(at) = words::decimal(time, 9) else { return Line::Skip(fields::TIME) };
        let (Some(offset), Some(size)) = (fields::blocks(offset), fields::blocks(size)) else {
            return Line::Skip(fields::NUMBER);
        };
        tables.tally.wall_clock.get_or_insert(i128::from(at));
        tables
            .tally
            .note("times are whole seconds: the I/Os of each second are spread over it evenly");
        match fields::io(tables, at, op, volume, (offset, size), None) {
            Line::Item(Item::Io(io)) => {
                if self.now.len() == MOST || self.now.back().is_some_and(|last| last.queued != at) {
                    self.spread();
                }
                self.now.push_back(io);
                // It comes out by `pending`; nothing of this line is left over.
                Line::Held
            }
            other => other,
        }
    }

    fn pending(&mut self, end: bool) -> Option<Item> {
        if end && self.ready.is_empty() {
            self.spread();
        }
        self.ready.pop_front().map(Item::Io)
    }
}
