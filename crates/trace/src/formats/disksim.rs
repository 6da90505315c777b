//! DiskSim's ASCII input: `0.000000 0 5012480 8 1`: milliseconds, device, block, blocks, flags whose bit 0 is a read.

use iosched_types::Op;

use super::text::{Grammar, Line, reader};
use super::{Format, fields};
use crate::trace::Tables;
use crate::words;

pub(super) static FORMAT: Format = Format {
    name: "disksim",
    about: "DiskSim's ASCII traces",
    per_cpu: false,
    sniff: |head| head.most(|l| words_of(l).is_some_and(|w| w[0].contains('.') && numbers(&w))),
    open: |_, files| reader(DiskSim, files),
};

/// The five words of a line that has no more.
pub(super) fn words_of(line: &str) -> Option<[&str; 5]> {
    let mut words = line.split_whitespace();
    let five = [words.next()?, words.next()?, words.next()?, words.next()?, words.next()?];
    words.next().is_none().then_some(five)
}

pub(super) fn numbers(w: &[&str; 5]) -> bool {
    words::decimal(w[0], 6).is_some() && w[1..].iter().all(|w| number(w).is_some())
}

/// DiskSim writes flags in hexadecimal, too.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

struct DiskSim;

impl Grammar for DiskSim {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        let Some([time, device, block, blocks, flags]) = words_of(line) else {
            return Line::Skip("five numbers are expected");
        };
        let Some(at) = words::decimal(time, 6) else { return Line::Skip(fields::TIME) };
        let place = (fields::blocks(block), fields::blocks(blocks));
        let ((Some(offset), Some(len)), Some(flags)) = (place, number(flags)) else {
            return Line::Skip(fields::NUMBER);
        };
        let op = if flags & 1 == 1 { Op::Read } else { Op::Write };
        fields::io(tables, at, op, device, (offset, len), None)
    }
}
