//! The CSV form of this program: one I/O a line, its columns named in the first.

use iosched_types::{Flags, IoPrio, Op};

use super::text::{Grammar, Line, reader};
use super::{Format, fields};
use crate::event::{Io, Item};
use crate::trace::Tables;
use crate::words::{self, OPERATIONS};

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

/// Columns that a trace cannot do without, by their place in [`COLUMNS`].
const NEEDED: [usize; 4] = [0, 4, 6, 7];

pub(super) static FORMAT: Format = Format {
    name: "csv",
    about: "CSV of this program",
    per_cpu: false,
    sniff: |head| head.lines.first().is_some_and(|l| Header::of(&split(l)).is_some()),
    open: |_, files| reader(Own::default(), files),
};

/// Where the columns are.
pub(super) struct Header {
    /// The field of each of [`COLUMNS`].
    places: [Option<usize>; COLUMNS.len()],
    fields: usize,
    /// Columns of other names.
    strange: Vec<String>,
}

impl Header {
    /// The columns of these names, where those that are needed are among them.
    pub(super) fn of(names: &[String]) -> Option<Header> {
        let name = |n: &String| n.trim().trim_start_matches('\u{feff}').to_string();
        let names: Vec<String> = names.iter().map(name).collect();
        let places = COLUMNS.map(|c| names.iter().position(|n| n == c));
        NEEDED.iter().all(|n| places[*n].is_some()).then(|| Header {
            fields: names.len(),
            strange: names.into_iter().filter(|n| !COLUMNS.contains(&n.as_str())).collect(),
            places,
        })
    }

    /// Says which columns are not read, and which are not there.
    pub(super) fn told(&self, tables: &mut Tables) {
        if !self.strange.is_empty() {
            let names: Vec<String> = self.strange.iter().map(|n| format!("\"{n}\"")).collect();
            tables.tally.note(&format!("columns that are not read: {}", names.join(", ")));
        }
        let absent = COLUMNS.iter().zip(self.places).filter(|(_, place)| place.is_none());
        let absent: Vec<&str> = absent.map(|(c, _)| *c).collect();
        if !absent.is_empty() {
            tables.tally.note(&format!("columns that are not there: {}", absent.join(", ")));
        }
    }
}

#[derive(Default)]
struct Own {
    header: Option<Header>,
    /// Lost events, by the comments so far.
    lost: u64,
}

/// What `iosched record` says of a recording in comments: `# KEY: VALUE`. Of each key the last one counts.
pub mod comments {
    /// What was recorded, in words.
    pub const RECORDED: &str = "recorded";
    /// Events that the kernel could not keep.
    pub const LOST: &str = "lost_events";
    /// Why the recording ended; [`NOT_ENDED`] until it does.
    pub const ENDED: &str = "ended";
    /// Unix time of the first record.
    pub const STARTED: &str = "first_record_unix_ns";
    /// The recording was cut off.
    pub const NOT_ENDED: &str = "no";
}

const CUT_OFF: &str = "the recording did not end: its last I/Os are missing";

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
    fn comment(&mut self, line: &str, tables: &mut Tables) {
        let Some((key, value)) = line.trim_start_matches(['#', ' ']).split_once(": ") else {
            return;
        };
        let tally = &mut tables.tally;
        match (key, value.trim()) {
            (comments::RECORDED, words) => tally.note(&format!("recorded: {words}")),
            (comments::LOST, n) => {
                let lost = n.parse().unwrap_or(0);
                tally.lost = tally.lost - self.lost + lost;
                self.lost = lost;
            }
            (comments::ENDED, comments::NOT_ENDED) => tally.note(CUT_OFF),
            (comments::ENDED, _) => tally.unsay(CUT_OFF),
            (comments::STARTED, n) => {
                tally.wall_clock = n.parse().ok().filter(|n| *n > 0).or(tally.wall_clock);
            }
            _ => {}
        }
    }

    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        let fields = split(line);
        if line.contains(COLUMNS[0])
            && let Some(header) = Header::of(&fields)
        {
            header.told(tables);
            self.header = Some(header);
            return Line::Other;
        }
        match &self.header {
            Some(header) => io(header, &fields, tables),
            None => Line::Skip("no line before names the columns"),
        }
    }
}

/// A time in nanoseconds. Other programs write whole numbers as `1.0` once a column has empty fields.
fn nanos(field: &str) -> Option<u64> {
    words::decimal(field, 0)
}

/// The same of a number that has no parts.
fn whole(field: &str) -> Option<u64> {
    let fraction = field
        .split_once('.')
        .is_some_and(|(_, f)| f.bytes().any(|b| b.is_ascii_digit() && b != b'0'));
    nanos(field).filter(|_| !fraction || field.contains(['e', 'E']))
}

/// Whether a field says that there is nothing.
fn is_absent(field: &str) -> bool {
    field.is_empty()
        || ["nan", "null", "none", "<na>"].iter().any(|n| field.eq_ignore_ascii_case(n))
}

/// An I/O of the fields of a line.
pub(super) fn io(header: &Header, of: &[String], tables: &mut Tables) -> Line {
    if of.len() < header.fields {
        return Line::Skip(fields::COLUMNS);
    }
    if of.len() > header.fields {
        return Line::Skip("the line has more fields than the first has columns");
    }
    let f = header.places.map(|place| place.map_or("", |n| of[n].trim_ascii()));
    let time = |n: usize| if is_absent(f[n]) { Some(None) } else { nanos(f[n]).map(Some) };
    let (Some(queued), Some(issued), Some(done)) = (nanos(f[0]), time(1), time(2)) else {
        return Line::Skip(fields::TIME);
    };
    let Some((op, _)) = OPERATIONS.iter().find(|(_, word)| *word == f[4]) else {
        return Line::Skip("the operation is none of read, write, discard, flush");
    };
    let (Some(offset), Some(len)) = (whole(f[6]), whole(f[7])) else {
        return Line::Skip(fields::NUMBER);
    };
    let Some((offset, len)) = words::bytes_on_disk(offset, len) else {
        return Line::Skip(fields::BEYOND);
    };
    if len == 0 && *op != Op::Flush {
        return Line::Skip(fields::EMPTY);
    }
    let prio = if is_absent(f[10]) { Some(IoPrio::default()) } else { IoPrio::parse(f[10]) };
    let Some(prio) = prio else { return Line::Skip("the priority is none") };
    let mut io = Io::new(queued, *op, tables.disks.of(f[3]), offset, len);
    (io.issued, io.done, io.prio) = (issued, done, prio);
    for c in f[5].chars() {
        let Some((_, flag)) = FLAGS.iter().find(|(l, _)| *l == c) else {
            return Line::Skip("flags are letters of PFASM");
        };
        io.flags = io.flags.with(*flag);
    }
    let small = |n: usize| if is_absent(f[n]) { Some(0) } else { whole(f[n]) };
    let pid = small(8).and_then(|n| u32::try_from(n).ok());
    let cpu = small(11).and_then(|n| u16::try_from(n).ok());
    let (Some(pid), Some(cpu)) = (pid, cpu) else {
        return Line::Skip("pid and cpu are whole numbers");
    };
    (io.pid, io.cpu, io.task) = (pid, cpu, tables.tasks.of(f[9]));
    Line::Item(Item::Io(io))
}
