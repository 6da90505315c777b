//! MSR Cambridge (SNIA IOTTA): `128166372003061629,hm,1,Read,2113486848,4096,27013`.
//!
//! Time and response time are in ticks of 100 ns, the time from 1601 on; offset and size in bytes.

use iosched_types::Op;

use super::text::{Grammar, Line, reader};
use super::{Format, fields};
use crate::trace::Tables;
use crate::words;

pub(super) static FORMAT: Format = Format {
    name: "msr",
    about: "MSR Cambridge CSV",
    per_cpu: false,
    sniff: |head| head.most(|l| fields::shaped::<7>(l, &[2, 4, 5]) && op(l).is_some()),
    open: |_, files| reader(Msr::default(), files),
};

/// Ticks from 1601 to 1970.
const UNIX: i128 = 116_444_736_000_000_000;

fn op(line: &str) -> Option<Op> {
    fields::read_or_write(words::commas::<7>(line)?[3])
}

#[derive(Default)]
struct Msr {
    disk: String,
}

impl Grammar for Msr {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        let Some([time, host, disk, kind, offset, size, response]) = words::commas(line) else {
            return Line::Skip(fields::COLUMNS);
        };
        let ticks = time.parse::<u64>().ok();
        let Some(at) = ticks.and_then(|t| t.checked_mul(100)) else {
            return if time.eq_ignore_ascii_case("timestamp") {
                Line::Other
            } else {
                Line::Skip(fields::TIME)
            };
        };
        let Some(op) = fields::read_or_write(kind) else { return Line::Skip(fields::OPERATION) };
        let (Ok(offset), Ok(size)) = (offset.parse(), size.parse()) else {
            return Line::Skip(fields::NUMBER);
        };
        let latency = response.parse::<u64>().ok().and_then(|t| t.checked_mul(100));
        if tables.tally.wall_clock.is_none() {
            tables.tally.wall_clock = Some((i128::from(at / 100) - UNIX) * 100);
        }
        self.disk.clear();
        self.disk.push_str(host);
        self.disk.push('.');
        self.disk.push_str(disk);
        fields::io(tables, at, op, &self.disk, (offset, size), latency)
    }
}
