//! The CSV form of this program: one I/O a line, its columns named in the first.

use iosched_types::{Flags, IoPrio, Op};

use super::text::{Grammar, Line, reader};
use super::{Format, fields};
use crate::event::{Io, Item};
use crate::trace::Tables;
use crate::words;

/// The columns, in order.
pub const COLUMNS: [&str; 12] = [
    "queued_ns",
    "issued_ns",
    "completed_ns",
    "disk",
    "operation",
    "flags",
    "offset_bytes",
    "length_bytes",
    "pid",
    "task",
    "priority",
    "cpu",
];

pub(super) static FORMAT: Format = Format {
    name: "csv",
    about: "CSV of this program",
    per_cpu: false,
    sniff: |head| head.lines.first().is_some_and(|l| l.starts_with("queued_ns,")),
    open: |_, files| reader(Own, files),
};

struct Own;

/// The fields of a line; those in quotes may hold commas.
fn split(line: &str) -> Vec<String> {
    let (mut out, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' if quoted && letters.peek() == Some(&'"') => {
                field.push('"');
                letters.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    out.push(field);
    out
}

/// The letters of flags and the flags.
pub(crate) const FLAGS: [(char, Flags); 5] = [
    ('P', Flags::PREFLUSH),
    ('F', Flags::FUA),
    ('A', Flags::RAHEAD),
    ('S', Flags::SYNC),
    ('M', Flags::META),
];

impl Grammar for Own {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        if line.starts_with("queued_ns,") {
            return Line::Other;
        }
        io(&split(line), tables)
    }
}

/// An I/O of the fields of [`COLUMNS`].
pub(super) fn io(f: &[String], tables: &mut Tables) -> Line {
    if f.len() < COLUMNS.len() {
        return Line::Skip(fields::COLUMNS);
    }
    let number = |n: usize| f[n].parse::<u64>().ok();
    let time = |n: usize| if f[n].is_empty() { Some(None) } else { number(n).map(Some) };
    let (Some(queued), Some(issued), Some(done)) = (number(0), time(1), time(2)) else {
        return Line::Skip(fields::TIME);
    };
    let op = match f[4].as_str() {
        "read" => Op::Read,
        "write" => Op::Write,
        "discard" => Op::Discard,
        "flush" => Op::Flush,
        _ => return Line::Skip("the operation is none of read, write, discard, flush"),
    };
    let (Some(offset), Some(len)) = (number(6), number(7)) else {
        return Line::Skip(fields::NUMBER);
    };
    let Some((offset, len)) = words::bytes_on_disk(offset, len) else {
        return Line::Skip(fields::BEYOND);
    };
    if len == 0 && op != Op::Flush {
        return Line::Skip(fields::EMPTY);
    }
    let Some(prio) = IoPrio::parse(&f[10]) else { return Line::Skip("the priority is none") };
    let mut io = Io::new(queued, op, tables.disks.of(&f[3]), offset, len);
    (io.issued, io.done, io.prio) = (issued, done, prio);
    for c in f[5].chars() {
        let Some((_, flag)) = FLAGS.iter().find(|(l, _)| *l == c) else {
            return Line::Skip("flags are letters of PFASM");
        };
        io.flags = io.flags.with(*flag);
    }
    io.pid = f[8].parse().unwrap_or(0);
    io.task = tables.tasks.of(&f[9]);
    io.cpu = f[11].parse().unwrap_or(0);
    Line::Item(Item::Io(io))
}
