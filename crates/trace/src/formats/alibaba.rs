//! Alibaba 2020: `device_id,opcode,offset,length,timestamp`, bytes and microseconds.

use super::text::{Grammar, Line, reader};
use super::{Format, fields};
use crate::trace::Tables;
use crate::words;

pub(super) static FORMAT: Format = Format {
    name: "alibaba",
    about: "Alibaba block traces",
    per_cpu: false,
    sniff: |head| {
        head.most(|l| {
            fields::shaped::<5>(l, &[2, 3, 4])
                && words::commas::<5>(l).is_some_and(|f| matches!(f[1], "R" | "W"))
        })
    },
    open: |_, files| reader(Alibaba, files),
};

struct Alibaba;

impl Grammar for Alibaba {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        let Some([device, kind, offset, len, time]) = words::commas(line) else {
            return Line::Skip(fields::COLUMNS);
        };
        if device == "device_id" {
            return Line::Other;
        }
        let Some(op) = fields::read_or_write(kind) else { return Line::Skip(fields::OPERATION) };
        let (Ok(offset), Ok(len)) = (offset.parse(), len.parse()) else {
            return Line::Skip(fields::NUMBER);
        };
        let Some(at) = words::decimal(time, 3) else { return Line::Skip(fields::TIME) };
        tables.tally.wall_clock.get_or_insert(i128::from(at));
        fields::io(tables, at, op, device, (offset, len), None)
    }
}
