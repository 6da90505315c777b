//! blkparse's text: `  7,3    1        0     0.000000000 30726  Q  WS 1437200 + 8 [fio]`.

use iosched_types::{IoPrio, Nanos};

use super::text::{Grammar, Line, reader};
use super::{Format, tracepoint};
use crate::event::{Action, Event, Item};
use crate::trace::Tables;
use crate::words;

pub(super) static FORMAT: Format = Format {
    name: "blkparse",
    about: "blkparse's text",
    per_cpu: false,
    sniff: |head| head.lines.iter().any(|l| columns(l).is_some()),
    open: |_, files| reader(Blkparse::default(), files),
};

/// A text of blkparse ends in tables of sums. Behind them there may be another.
#[derive(Default)]
struct Blkparse {
    /// Whether the lines are those of the tables.
    sums: bool,
    /// The latest time so far.
    latest: Nanos,
    /// Added to times: another text begins at zero again.
    before: Nanos,
}

struct Columns<'a> {
    disk: &'a str,
    cpu: u16,
    at: u64,
    pid: u32,
    action: &'a str,
    /// What follows the action.
    rest: &'a str,
}

/// The columns that every line has.
fn columns(line: &str) -> Option<Columns<'_>> {
    let mut rest = line;
    let mut word = || {
        let (first, after) = tracepoint::word(rest);
        rest = after;
        first
    };
    let disk = word();
    let (major, minor) = disk.split_once(',')?;
    let _: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let cpu = word().parse().ok()?;
    let _sequence: u64 = word().parse().ok()?;
    let time = word();
    let at = time.contains('.').then(|| words::seconds(time)).flatten()?;
    let pid = word().parse().ok()?;
    let action = word();
    let is_action =
        (1..=2).contains(&action.len()) && action.bytes().all(|b| b.is_ascii_uppercase());
    (is_action || action == "m").then_some(Columns { disk, cpu, at, pid, action, rest })
}

impl Grammar for Blkparse {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        if line.starts_with("CPU") || line.starts_with("Total (") {
            self.sums = true;
        }
        let Some(c) = columns(line) else {
            return if self.sums { Line::Other } else { Line::Skip("not a line of blkparse") };
        };
        if std::mem::take(&mut self.sums) {
            tables.tally.note(
                "another recording follows behind the tables of sums: its times count from the end of the one before",
            );
            self.before = self.latest;
        }
        let at = c.at.saturating_add(self.before);
        self.latest = self.latest.max(at);
        let action = match c.action {
            "Q" => Action::Queue,
            "I" => Action::Insert,
            "D" => Action::Issue,
            "R" => Action::Requeue,
            "C" => Action::Complete,
            "A" => Action::Queue,
            _ => return Line::Other,
        };
        let (letters, rest) = tracepoint::word(c.rest);
        let Some((op, flags)) = words::rwbs(letters) else {
            return Line::Skip("a command that is neither read, write, discard nor flush");
        };
        let Some(place) = tracepoint::place(rest) else {
            return Line::Skip("sector and length are expected");
        };
        let Some(range) = place.on_disk() else {
            return Line::Skip("the sector is beyond any disk");
        };
        let action = match (c.action, place.from(c.disk, tables)) {
            ("A", Some(from)) => from,
            ("A", None) => return Line::Other,
            _ => action,
        };
        let name = place.bracket().filter(|n| c.action != "C" && *n != "(null)").unwrap_or("");
        let event = Event {
            at,
            action,
            op,
            flags,
            disk: tables.disks.of(c.disk),
            sector: range.0,
            sectors: range.1,
            pid: c.pid,
            task: tables.tasks.of(name),
            prio: IoPrio::default(),
            cpu: c.cpu,
        };
        Line::Item(Item::Event(event))
    }
}
