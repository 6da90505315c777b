//! MQSim's ASCII traces: `48513000 0 8000 8 1`: nanoseconds, device, sector, sectors, 1 is a read.

use iosched_types::Op;

use super::text::{Grammar, Line, reader};
use super::{Format, disksim, fields};
use crate::trace::Tables;

pub(super) static FORMAT: Format = Format {
    name: "mqsim",
    about: "MQSim's ASCII traces",
    per_cpu: false,
    sniff: |head| {
        head.most(|l| {
            disksim::words_of(l).is_some_and(|w| disksim::numbers(&w) && matches!(w[4], "0" | "1"))
        })
    },
    open: |_, files| reader(MqSim, files),
};

struct MqSim;

impl Grammar for MqSim {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        let Some([time, device, sector, sectors, kind]) = disksim::words_of(line) else {
            return Line::Skip("five numbers are expected");
        };
        let Ok(at) = time.parse() else { return Line::Skip(fields::TIME) };
        let op = match kind {
            "1" => Op::Read,
            "0" => Op::Write,
            _ => return Line::Skip(fields::OPERATION),
        };
        let (Some(offset), Some(len)) = (fields::blocks(sector), fields::blocks(sectors)) else {
            return Line::Skip(fields::NUMBER);
        };
        fields::io(tables, at, op, device, (offset, len), None)
    }
}
