//! The text of the trace points `block:*`, common to ftrace, trace-cmd and perf.

use iosched_types::{IoPrio, Nanos};

use super::text::Line;
use crate::event::{Action, Event, Item, is_partition};
use crate::trace::Tables;
use crate::words;

/// The first word, and what follows it. Recorders print blanks and tabs only.
pub(super) fn word(text: &str) -> (&str, &str) {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let bytes = text.as_bytes();
    let start = bytes.iter().position(|b| !blank(b)).unwrap_or(bytes.len());
    let len = bytes[start..].iter().position(blank).unwrap_or(bytes.len() - start);
    (&text[start..start + len], &text[start + len..])
}

/// `1437200 + 8 … [fio]`
pub(super) struct Place<'a> {
    sector: u64,
    sectors: u64,
    /// What follows the length.
    pub(super) rest: &'a str,
}

/// Sector and length; an empty flush may have neither.
pub(super) fn place(text: &str) -> Option<Place<'_>> {
    let (sector, rest) = word(text);
    let (plus, after) = word(rest);
    if plus != "+" {
        // Flushes of blkparse: `FWS [jbd2/sda1-8]`, `FWS 0 [0]`.
        let bare = text.trim_start().starts_with('[') || rest.trim_start().starts_with('[');
        let sector = if text.trim_start().starts_with('[') { 0 } else { sector.parse().ok()? };
        return bare.then_some(Place { sector, sectors: 0, rest: text });
    }
    let (sectors, rest) = word(after);
    Some(Place { sector: sector.parse().ok()?, sectors: sectors.parse().ok()?, rest })
}

impl<'a> Place<'a> {
    /// First sector and sectors, where there can be such.
    pub(super) fn on_disk(&self) -> Option<(u64, u64)> {
        if self.sectors == 0 {
            return Some((self.sector, 0));
        }
        words::on_disk(self.sector, self.sectors).map(|_| (self.sector, self.sectors))
    }

    /// The text between the first bracket and the last: names of commands may have brackets.
    pub(super) fn bracket(&self) -> Option<&'a str> {
        let (from, to) = (self.rest.find('[')?, self.rest.rfind(']')?);
        self.rest.get(from + 1..to)
    }

    /// `<- (9,0) 61440`
    pub(super) fn from(&self, disk: &str, tables: &mut Tables) -> Option<Action> {
        let rest = self.rest.trim_start().strip_prefix("<-")?.trim_start().strip_prefix('(')?;
        let (before, rest) = rest.split_once(')')?;
        let (before, sector) = (before.trim(), word(rest).0.parse().ok()?);
        let major = |d: &str| d.split(',').next().and_then(|n| n.parse::<u32>().ok());
        let partition =
            major(before).zip(major(disk)).is_some_and(|(from, to)| is_partition(from, to));
        Some(Action::Remap { disk: tables.disks.of(before), sector, partition })
    }
}

/// What stands before the trace point's own text.
pub(super) struct Before<'a> {
    pub(super) task: &'a str,
    pub(super) pid: u32,
    pub(super) cpu: u16,
    pub(super) at: Nanos,
    /// The trace point's name, without its system.
    pub(super) point: &'a str,
    /// Its text.
    pub(super) text: &'a str,
}

/// `fio-30496   [001] .....  3923.302202: block_bio_queue: 7,3 WS 1437200 + 8 [fio]`, with or without flags.
pub(super) fn ftrace(line: &str) -> Option<Before<'_>> {
    let (head, rest) = cpu_bracket(line)?;
    let (who, cpu) = head;
    let (task, pid) = who.trim_ascii().rsplit_once('-')?;
    // With `record-tgid` the group of threads follows.
    let pid = word(pid).0;
    let (first, after) = word(rest);
    let (time, rest) = if first.ends_with(':') { (first, after) } else { word(after) };
    let (point, text) = word(rest);
    Some(Before {
        task,
        pid: pid.parse().ok()?,
        cpu,
        at: words::seconds(time.strip_suffix(':')?)?,
        point: point.strip_suffix(':')?,
        text,
    })
}

/// ` fio   428 [000]  5408.534172:    block:block_rq_issue: 7,7 WS 4096 () 13808 + 8 0x2,0,4 [fio]`
pub(super) fn perf(line: &str) -> Option<Before<'_>> {
    let ((who, cpu), rest) = cpu_bracket(line)?;
    let (task, pid) = who.trim_ascii().rsplit_once([' ', '\t'])?;
    // With `-F tid,pid` it is `pid/tid`.
    let pid = pid.rsplit('/').next()?;
    let (time, rest) = word(rest);
    let (point, text) = word(rest);
    Some(Before {
        task: task.trim_ascii_end(),
        pid: pid.parse().ok()?,
        cpu,
        at: words::seconds(time.strip_suffix(':')?)?,
        point: point.strip_suffix(':')?.strip_prefix("block:")?,
        text,
    })
}

/// Text before ` [001]`, the number in it, and the text behind. Names of commands may have brackets: the first that
/// holds a number of three digits and more counts.
fn cpu_bracket(line: &str) -> Option<((&str, u16), &str)> {
    let mut from = 0;
    while let Some(at) = line[from..].find('[').map(|i| i + from) {
        let inside = &line[at + 1..];
        let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
        if digits >= 3 && inside[digits..].starts_with(']') {
            return Some(((&line[..at], inside[..digits].parse().ok()?), &inside[digits + 1..]));
        }
        from = at + 1;
    }
    None
}

/// `CPU:1 [LOST 123 EVENTS]`
fn lost(line: &str) -> Option<u64> {
    word(line.split_once("[LOST ")?.1).0.parse().ok()
}

/// A line of any of the three.
pub(super) fn line(
    line: &str,
    before: fn(&str) -> Option<Before<'_>>,
    tables: &mut Tables,
) -> Line {
    let Some(b) = before(line) else {
        if let Some(n) = lost(line) {
            tables.tally.lost += n;
            return Line::Item(Item::Gap(tables.latest));
        }
        return Line::Skip("not an event");
    };
    let action = match b.point {
        "block_bio_queue" => Action::Queue,
        "block_rq_insert" => Action::Insert,
        "block_rq_issue" => Action::Issue,
        "block_rq_requeue" => Action::Requeue,
        // Bios of stacked devices have no requests.
        "block_rq_complete" | "block_bio_complete" => Action::Complete,
        "block_bio_remap" => Action::Queue,
        _ => return Line::Other,
    };
    event(&b, action, tables)
}

fn event(b: &Before<'_>, action: Action, tables: &mut Tables) -> Line {
    tables.latest = b.at;
    let (disk, rest) = word(b.text);
    let (letters, rest) = word(rest);
    let Some((op, flags)) = words::rwbs(letters) else {
        return Line::Skip("a command that is neither read, write, discard nor flush");
    };
    // Bytes and the SCSI command in parentheses stand before the sector of requests.
    let rest = rest
        .split_once(')')
        .filter(|(p, _)| p.contains('(') && !p.contains("<-"))
        .map_or(rest, |r| r.1);
    let Some(place) = place(rest) else { return Line::Skip("sector and length are expected") };
    let nowhere = place.sectors == 0;
    let Some(range) = place.on_disk().or(nowhere.then_some((0, 0))) else {
        return Line::Skip("the sector is beyond any disk");
    };
    let action = match (b.point, place.from(disk, tables)) {
        ("block_bio_remap", Some(from)) => from,
        ("block_bio_remap", None) => return Line::Other,
        _ => action,
    };
    let prio = words::prio(word(place.rest).0).unwrap_or_default();
    let event = Event {
        at: b.at,
        action,
        op,
        flags,
        disk: tables.disks.of(disk),
        sector: range.0,
        sectors: range.1,
        pid: b.pid,
        task: tables.tasks.of(b.task),
        prio: if action == Action::Queue { IoPrio::default() } else { prio },
        cpu: b.cpu,
    };
    Line::Item(Item::Event(event))
}

/// Whether a file's beginning has trace points that `before` reads.
pub(super) fn has(lines: &[&str], before: fn(&str) -> Option<Before<'_>>) -> bool {
    let block = |b: &Before<'_>| b.point.starts_with("block_");
    lines.iter().any(|l| before(l).is_some_and(|b| block(&b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_commands_may_hold_anything() {
        let line = "  my [app]-x-1 [y] [12]-77  [003] d..1.  1.000002: block_rq_issue: 8,0 R 4096 () 8 + 8 [a]";
        let b = ftrace(line).unwrap();
        assert_eq!((b.task, b.pid, b.cpu, b.at), ("my [app]-x-1 [y] [12]", 77, 3, 1_000_002_000));
        let line = "  my app  78 [003] 1.000002: block:block_rq_issue: 8,0 R 4096 () 8 + 8 [a]";
        let b = perf(line).unwrap();
        assert_eq!((b.task, b.pid, b.point), ("my app", 78, "block_rq_issue"));
    }

    #[test]
    fn lost_events_are_counted() {
        let mut tables = Tables::default();
        let _ = super::line("CPU:1 [LOST 123 EVENTS]", ftrace, &mut tables);
        assert_eq!(tables.tally.lost, 123);
    }
}
