//! Raw pages of the kernel's ring buffer: what `trace_pipe_raw` of tracefs gives, read by the descriptions that tracefs
//! has beside it (`events/header_page`, `events/header_event`, `events/block/*/format`).
//!
//! A page begins with the time of its first event and the bytes that are used; events follow. The upper bits of the
//! used bytes say that events were lost before the page, and whether their number stands behind the last one.

use iosched_types::{IoPrio, Nanos, PrioClass};

use crate::event::{Action, Event, is_partition};
use crate::tally::Reason;
use crate::trace::Tables;
use crate::words;

/// The trace points that are read.
pub const POINTS: [&str; 7] = [
    "block_bio_queue",
    "block_bio_remap",
    "block_rq_insert",
    "block_rq_issue",
    "block_rq_requeue",
    "block_rq_complete",
    "block_bio_complete",
];

/// Events were lost before the page; their number is behind the used bytes.
const LOST: u64 = 1 << 31;
const LOST_COUNTED: u64 = 1 << 30;
/// The used bytes.
const USED: u64 = (1 << 27) - 1;

/// Kinds of entries, as `header_event` has them.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of an entry's first word that are its kind; the others are the time since the entry before.
const KIND_BITS: u32 = 5;
const DELTA_BITS: u32 = 27;

/// Place and size of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    at: usize,
    size: usize,
}

/// A trace point's fields.
#[derive(Clone, Debug)]
struct Point {
    id: u64,
    name: &'static str,
    dev: Field,
    sector: Field,
    sectors: Field,
    rwbs: Field,
    comm: Option<Field>,
    prio: Option<Field>,
    before: Option<(Field, Field)>,
}

/// How the kernel lays out pages and events.
#[derive(Clone, Debug)]
pub struct Layout {
    used: Field,
    data: Field,
    id: Field,
    pid: Field,
    points: Vec<Point>,
}

/// A page, or as much of it as is sound.
pub(crate) struct Cursor<'a> {
    page: &'a [u8],
    at: usize,
    end: usize,
    time: Nanos,
}

/// `field:u64 timestamp; offset:0; size:8; signed:0;` by name.
fn field(description: &str, name: &str) -> Result<Field, String> {
    let of = |line: &str| -> Option<Field> {
        let mut parts = line.trim().split(';').map(str::trim);
        let declared = parts.next()?.strip_prefix("field:")?;
        // `char rwbs[10]`
        let last = declared.split_whitespace().next_back()?;
        if last.split('[').next()?.trim_start_matches('*') != name {
            return None;
        }
        let at = parts.next()?.strip_prefix("offset:")?.parse::<u16>().ok()?.into();
        let size = parts.next()?.strip_prefix("size:")?.parse::<u16>().ok()?.into();
        Some(Field { at, size })
    };
    description.lines().find_map(of).ok_or_else(|| format!("no field {name}"))
}

/// The number of a trace point and its name.
fn titled<'a>(description: &'a str, title: &str) -> Option<&'a str> {
    description.lines().find_map(|l| l.strip_prefix(title)).map(str::trim)
}

impl Layout {
    /// Reads the descriptions: of pages, of entries, and of the trace points that are recorded.
    ///
    /// # Errors
    /// A kernel with another layout: what is not as expected.
    pub fn new(page: &str, entry: &str, formats: &[String]) -> Result<Layout, String> {
        for (name, bits) in [("type_len", KIND_BITS), ("time_delta", DELTA_BITS)] {
            let has = entry.lines().any(|l| {
                let mut words = l.split_whitespace();
                words.next() == Some(name) && words.nth(1) == Some(&bits.to_string())
            });
            if !has {
                return Err(format!("header_event: {name} of {bits} bits is expected"));
            }
        }
        let in_page = |name: &str| field(page, name).map_err(|e| format!("header_page: {e}"));
        let mut points = Vec::new();
        let mut common = None;
        for format in formats {
            let name = titled(format, "name:").unwrap_or("");
            let Some(name) = POINTS.iter().find(|p| **p == name) else {
                return Err(format!("{name} is no trace point that is read"));
            };
            let in_point = |f: &str| field(format, f).map_err(|e| format!("{name}: {e}"));
            common = Some((in_point("common_type")?, in_point("common_pid")?));
            let id = titled(format, "ID:").and_then(|n| n.parse().ok());
            points.push(Point {
                id: id.ok_or_else(|| format!("{name}: no ID"))?,
                name,
                dev: in_point("dev")?,
                sector: in_point("sector")?,
                sectors: in_point("nr_sector")?,
                rwbs: in_point("rwbs")?,
                comm: in_point("comm").ok(),
                prio: in_point("ioprio").ok(),
                before: in_point("old_dev").ok().zip(in_point("old_sector").ok()),
            });
        }
        let (id, pid) = common.ok_or("no trace points")?;
        Ok(Layout { used: in_page("commit")?, data: in_page("data")?, id, pid, points })
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page(&self) -> usize {
        self.data.at + self.data.size
    }

    /// Begins to read a page; counts the events that were lost before it, and gives the time up to which.
    pub(crate) fn open<'a>(
        &self,
        page: &'a [u8],
        tables: &mut Tables,
    ) -> (Cursor<'a>, Option<Nanos>) {
        let used = number(page, self.used);
        let bytes = (used & USED) as usize;
        let end = self.data.at.saturating_add(bytes).min(page.len());
        let time = number(page, Field { at: 0, size: 8 });
        let lost = used & LOST != 0;
        if lost {
            let count = Field { at: end, size: 8 };
            let counted = used & LOST_COUNTED != 0 && end + 8 <= page.len();
            tables.tally.lost += if counted { number(page, count) } else { 1 };
        }
        (Cursor { page, at: self.data.at, end, time }, lost.then_some(time))
    }

    /// The next event of a page that is read here.
    pub(crate) fn next(
        &self,
        cursor: &mut Cursor<'_>,
        cpu: u16,
        tables: &mut Tables,
    ) -> Option<Event> {
        while let Some((at, data)) = cursor.entry() {
            tables.tally.records += 1;
            let id = number(data, self.id);
            let Some(point) = self.points.iter().find(|p| p.id == id) else {
                tables.tally.other += 1;
                continue;
            };
            match self.event(point, data, tables) {
                Ok(event) => return Some(Event { at, cpu, ..event }),
                Err(reason) => tables.tally.skip(reason, 0, ""),
            }
        }
        None
    }

    fn event(&self, p: &Point, data: &[u8], tables: &mut Tables) -> Result<Event, Reason> {
        let (op, flags) = words::rwbs(text(data, p.rwbs))
            .ok_or("a command that is neither read, write, discard nor flush")?;
        let (dev, sectors) = (number(data, p.dev), number(data, p.sectors));
        let sector = number(data, p.sector);
        if sectors > 0 && words::on_disk(sector, sectors).is_none() {
            return Err("the sector is beyond any disk");
        }
        let action = match (p.name, p.before) {
            ("block_bio_queue", _) => Action::Queue,
            ("block_rq_insert", _) => Action::Insert,
            ("block_rq_issue", _) => Action::Issue,
            ("block_rq_requeue", _) => Action::Requeue,
            ("block_bio_remap", Some((old, place))) => {
                let old = number(data, old);
                Action::Remap {
                    disk: tables.disks.of(&disk(old)),
                    sector: number(data, place),
                    partition: is_partition((old >> 20) as u32, (dev >> 20) as u32),
                }
            }
            _ => Action::Complete,
        };
        let task = p.comm.map_or("", |comm| text(data, comm));
        let prio = p.prio.map_or(0, |f| number(data, f));
        Ok(Event {
            at: 0,
            action,
            op,
            flags,
            disk: tables.disks.of(&disk(dev)),
            sector,
            sectors,
            pid: number(data, self.pid) as u32,
            task: tables.tasks.of(task),
            prio: priority(prio),
            cpu: 0,
        })
    }
}

impl<'a> Cursor<'a> {
    fn word(&self, at: usize) -> Option<u32> {
        (at + 4 <= self.end).then(|| number(self.page, Field { at, size: 4 }) as u32)
    }

    /// Time and bytes of the next entry that is an event.
    fn entry(&mut self) -> Option<(Nanos, &'a [u8])> {
        loop {
            let first = self.word(self.at)?;
            // The first declared bits are the lowest of a little-endian machine, and the highest of the others.
            let (kind, delta) = if cfg!(target_endian = "little") {
                (first & ((1 << KIND_BITS) - 1), first >> KIND_BITS)
            } else {
                (first >> DELTA_BITS, first & ((1 << DELTA_BITS) - 1))
            };
            let second = self.word(self.at + 4);
            match kind {
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.time = self.time.wrapping_add(delta.into());
                    self.at += 4 + second? as usize;
                }
                TIME_EXTEND | TIME_STAMP => {
                    let long = u64::from(second?) << DELTA_BITS | u64::from(delta);
                    // A stamp has the lower 59 bits of the time.
                    let high = self.time & !((1 << 59) - 1);
                    self.time =
                        if kind == TIME_STAMP { high | long } else { self.time.wrapping_add(long) };
                    self.at += 8;
                }
                _ => {
                    self.time = self.time.wrapping_add(delta.into());
                    let (from, len) = match kind {
                        // The length, itself included, is in a word of its own.
                        0 => (self.at + 8, (second? as usize).saturating_sub(4)),
                        words => (self.at + 4, words as usize * 4),
                    };
                    let data = self.page[..self.end].get(from..from.checked_add(len)?)?;
                    self.at = from + len.next_multiple_of(4);
                    return Some((self.time, data));
                }
            }
        }
    }
}

/// A number in the machine's order of bytes; 0 where the bytes are missing.
fn number(data: &[u8], f: Field) -> u64 {
    let Some(bytes) = data.get(f.at..f.at + f.size) else { return 0 };
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
        _ => 0,
    }
}

/// A text up to its end.
fn text(data: &[u8], f: Field) -> &str {
    let bytes = data.get(f.at..f.at + f.size).unwrap_or(&[]);
    let bytes = bytes.split(|b| *b == 0).next().unwrap_or(&[]);
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A name that was cut in the middle of a character.
        Err(e) => std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or(""),
    }
}

fn disk(dev: u64) -> String {
    format!("{},{}", dev >> 20, dev & 0xf_ffff)
}

fn priority(raw: u64) -> IoPrio {
    let class = match raw >> 13 & 7 {
        1 => PrioClass::Rt,
        2 => PrioClass::Be,
        3 => PrioClass::Idle,
        _ => return IoPrio::default(),
    };
    IoPrio { class, level: (raw & 7) as u8 }
}
