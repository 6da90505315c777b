//! CloudPhysics and VMware vscsi traces: little-endian records of 32 (version 1) or 40 bytes (version 2).

use std::io::{BufReader, Read};

use iosched_types::Op;

use super::text::Line;
use super::{Format, Reader, fields};
use crate::event::Item;
use crate::trace::Tables;

pub(super) static FORMAT: Format = Format {
    name: "vscsi",
    about: "CloudPhysics (VMware vscsi) records",
    per_cpu: false,
    sniff: |head| version(head.bytes).is_some(),
    open: |head, files| {
        let version = version(head.bytes).unwrap_or(Version::One);
        let file = files.into_iter().next().unwrap_or_else(|| Box::new(std::io::empty()));
        Box::new(Vscsi { from: BufReader::with_capacity(1 << 16, file), version, place: 0 })
    },
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A record.
#[derive(Clone, Copy, Debug)]
struct Record {
    version: u16,
    command: u16,
    length: u32,
    block: u64,
    micros: u64,
    /// Only of version 2.
    response: Option<u64>,
}

impl Version {
    fn size(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    fn record(self, b: &[u8]) -> Option<Record> {
        let n = |at: usize, len: usize| {
            b.get(at..at + len).map(|b| b.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b)))
        };
        Some(match self {
            Version::One => Record {
                command: n(12, 2)? as u16,
                version: n(14, 2)? as u16,
                length: n(4, 4)? as u32,
                block: n(16, 8)?,
                micros: n(24, 8)?,
                response: None,
            },
            Version::Two => Record {
                command: n(0, 2)? as u16,
                version: n(2, 2)? as u16,
                length: n(8, 4)? as u32,
                block: n(16, 8)?,
                micros: n(24, 8)?,
                response: n(32, 8),
            },
        })
    }
}

/// The version that the first two records have, and no command that is none.
fn version(bytes: &[u8]) -> Option<Version> {
    let is = |v: Version, number: u16| {
        let of =
            |at: usize| v.record(bytes.get(at * v.size()..)?).filter(|r| r.version >> 8 == number);
        of(0).is_some_and(|r| op(r.command).is_some())
            && (bytes.len() < 2 * v.size() || of(1).is_some())
    };
    match (is(Version::One, 1), is(Version::Two, 2)) {
        (true, _) => Some(Version::One),
        (false, true) => Some(Version::Two),
        (false, false) => None,
    }
}

/// The SCSI commands that move data, and the two that flush.
fn op(command: u16) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(Op::Read),
        0x0a | 0x2a | 0x2e | 0x8a | 0xaa => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        0x42 => Some(Op::Discard),
        _ => None,
    }
}

struct Vscsi<'a> {
    from: BufReader<Box<dyn Read + 'a>>,
    version: Version,
    place: u64,
}

impl Reader for Vscsi<'_> {
    fn next(&mut self, tables: &mut Tables) -> std::io::Result<Option<Item>> {
        loop {
            let mut buffer = [0u8; 40];
            let buffer = &mut buffer[..self.version.size()];
            let mut have = 0;
            while have < buffer.len() {
                match self.from.read(&mut buffer[have..])? {
                    0 => break,
                    n => have += n,
                }
            }
            if have == 0 {
                return Ok(None);
            }
            tables.tally.records += 1;
            let place = self.place;
            self.place += have as u64;
            let Some(r) = self.version.record(buffer).filter(|_| have == buffer.len()) else {
                tables.tally.skip("the file ends in the middle of a record", place, "");
                return Ok(None);
            };
            let line = match (op(r.command), r.micros.checked_mul(1000)) {
                (None, _) => Line::Skip("a command that is neither read, write, discard nor flush"),
                (_, None) => Line::Skip(fields::TIME),
                (Some(op), Some(at)) => {
                    let place = (r.block.saturating_mul(512), u64::from(r.length));
                    let place = if op == Op::Flush { (0, 0) } else { place };
                    let latency = r.response.and_then(|t| t.checked_mul(1000));
                    fields::io(tables, at, op, "", place, latency)
                }
            };
            match line {
                Line::Item(item) => return Ok(Some(item)),
                Line::Skip(reason) => tables.tally.skip(reason, place, ""),
                Line::Other | Line::Held => {}
            }
        }
    }
}
