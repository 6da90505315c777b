//! SPC (UMass Financial and WebSearch): `0,21741712,24576,R,0.000774`: unit, 512-byte block, bytes, operation, seconds.

use super::text::{Grammar, Line, reader};
use super::{Format, fields};
use crate::trace::Tables;
use crate::words;

pub(super) static FORMAT: Format = Format {
    name: "spc",
    about: "SPC traces (UMass)",
    per_cpu: false,
    sniff: |head| head.most(is_one),
    open: |_, files| reader(Spc, files),
};

fn is_one(line: &str) -> bool {
    let numbers = |f: &[&str; 5]| f[..3].iter().all(|w| w.parse::<u64>().is_ok());
    words::commas::<5>(line).is_some_and(|f| {
        numbers(&f) && matches!(f[3], "R" | "W" | "r" | "w") && words::seconds(f[4]).is_some()
    })
}

struct Spc;

impl Grammar for Spc {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        // More fields may follow.
        let Some([unit, block, size, kind, time]) = words::commas(line) else {
            return Line::Skip(fields::COLUMNS);
        };
        let Some(op) = fields::read_or_write(kind) else { return Line::Skip(fields::OPERATION) };
        let (Some(offset), Ok(size)) = (fields::blocks(block), size.parse()) else {
            return Line::Skip(fields::NUMBER);
        };
        let Some(at) = words::seconds(time) else { return Line::Skip(fields::TIME) };
        fields::io(tables, at, op, unit, (offset, size), None)
    }
}
