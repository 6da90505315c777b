//! blktrace's binary records, version 7 (48 bytes) and 8 (64 bytes), in either byte order, a file for each CPU.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use iosched_types::{Flags, IoPrio, Op};

use super::{Format, Reader};
use crate::event::{Action, Event, Item, is_partition};
use crate::names::Name;
use crate::trace::Tables;
use crate::words;

pub(super) static FORMAT: Format = Format {
    name: "blktrace",
    about: "blktrace's binary records",
    per_cpu: true,
    sniff: |head| magic(head.bytes).is_some(),
    open: |_, files| {
        Box::new(Merged {
            files: files.into_iter().map(File::new).collect(),
            state: State::default(),
        })
    },
};

/// The upper three bytes of the first word; the lowest is the version.
const MAGIC: u32 = 0x6561_7400;
/// Names of processes kept.
const MOST_PIDS: usize = 1 << 16;
/// Bytes that are searched for the next record behind a broken one.
const SEARCHED: u64 = 1 << 20;

/// Version and whether the bytes are in big-endian order.
fn magic(bytes: &[u8]) -> Option<(u8, bool)> {
    let word: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    for (value, big) in [(u32::from_le_bytes(word), false), (u32::from_be_bytes(word), true)] {
        let version = (value & 0xff) as u8;
        if value & !0xff == MAGIC && (version == 7 || version == 8) {
            return Some((version, big));
        }
    }
    None
}

/// Categories of an event, the upper half of its action.
mod category {
    pub(super) const READ: u64 = 1;
    pub(super) const WRITE: u64 = 2;
    pub(super) const FLUSH: u64 = 4;
    pub(super) const SYNC: u64 = 8;
    pub(super) const PC: u64 = 0x200;
    pub(super) const NOTIFY: u64 = 0x400;
    pub(super) const AHEAD: u64 = 0x800;
    pub(super) const META: u64 = 0x1000;
    pub(super) const DISCARD: u64 = 0x2000;
    pub(super) const FUA: u64 = 0x8000;
}

/// A record without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    sequence: u32,
    at: u64,
    sector: u64,
    bytes: u32,
    action: u16,
    categories: u64,
    pid: u32,
    device: u32,
    cpu: u32,
}

/// One file.
struct File<'a> {
    from: BufReader<Box<dyn Read + 'a>>,
    place: u64,
    /// The record that is next, and its payload.
    next: Option<(Record, Vec<u8>)>,
    begun: bool,
    big: bool,
    sequence: u32,
}

/// What is known across the files.
#[derive(Default)]
struct State {
    tasks: BTreeMap<u32, Name>,
    disks: BTreeMap<u32, Name>,
}

struct Merged<'a> {
    files: Vec<File<'a>>,
    state: State,
}

impl Reader for Merged<'_> {
    fn next(&mut self, tables: &mut Tables) -> std::io::Result<Option<Item>> {
        loop {
            for f in self.files.iter_mut().filter(|f| !f.begun) {
                f.begun = true;
                f.advance(tables)?;
            }
            let time = |f: &File<'_>| f.next.as_ref().map(|(r, _)| (r.at, r.sequence));
            let first = self.files.iter_mut().filter(|f| f.next.is_some()).min_by_key(|f| time(f));
            let Some(file) = first else { return Ok(None) };
            let Some((record, payload)) = file.next.take() else { return Ok(None) };
            let (place, big) = (file.place, file.big);
            file.advance(tables)?;
            tables.tally.records += 1;
            if let Some(item) = self.state.item(&record, &payload, big, place, tables) {
                return Ok(Some(item));
            }
        }
    }
}

impl<'a> File<'a> {
    fn new(from: Box<dyn Read + 'a>) -> File<'a> {
        let from = BufReader::with_capacity(1 << 16, from);
        File { from, place: 0, next: None, begun: false, big: false, sequence: 0 }
    }

    /// Fills as much of a buffer as the file has.
    fn fill(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let mut have = 0;
        while have < into.len() {
            match self.from.read(&mut into[have..]) {
                Ok(0) => break,
                Ok(n) => have += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.place += have as u64;
        Ok(have)
    }

    /// Reads the next record, over bytes that are none.
    fn advance(&mut self, tables: &mut Tables) -> std::io::Result<()> {
        self.next = None;
        let mut word = [0u8; 4];
        let have = self.fill(&mut word)?;
        if have == 0 {
            return Ok(());
        }
        let mut searched = 0;
        let (version, big) = loop {
            if let Some(found) = magic(&word).filter(|_| have == 4) {
                break found;
            }
            if searched == 0 {
                let reason = if have < 4 {
                    "the file ends in the middle of a record"
                } else {
                    "no record begins here"
                };
                tables.tally.records += 1;
                tables.tally.skip(reason, self.place - have as u64, "");
            }
            let mut byte = [0u8];
            if have < 4 || searched == SEARCHED || self.fill(&mut byte)? == 0 {
                return Ok(());
            }
            searched += 1;
            word.rotate_left(1);
            word[3] = byte[0];
        };
        self.big = big;
        let mut rest = [0u8; 60];
        let rest = &mut rest[..if version == 7 { 44 } else { 60 }];
        let place = self.place - 4;
        if self.fill(rest)? < rest.len() {
            tables.tally.records += 1;
            tables.tally.skip("the file ends in the middle of a record", place, "");
            return Ok(());
        }
        let (record, payload) = header(rest, version, big);
        let mut bytes = vec![0u8; payload];
        if self.fill(&mut bytes)? < payload {
            tables.tally.records += 1;
            tables.tally.skip("the file ends in the middle of a record", place, "");
            return Ok(());
        }
        // The trace of ftrace has no sequence: it is always 0.
        let gap = record.sequence.wrapping_sub(self.sequence).wrapping_sub(1);
        if record.sequence != 0 && self.sequence != 0 && gap > 0 && gap < 1 << 30 {
            tables.tally.lost += u64::from(gap);
        }
        self.sequence = record.sequence;
        self.next = Some((record, bytes));
        Ok(())
    }
}

/// The record behind the magic, and the length of its payload.
fn header(b: &[u8], version: u8, big: bool) -> (Record, usize) {
    let bytes = |at: usize, n: usize| -> u64 {
        let of = b[at - 4..at - 4 + n].iter();
        let join = |v: u64, b: &u8| v << 8 | u64::from(*b);
        if big { of.fold(0, join) } else { of.rev().fold(0, join) }
    };
    let (sequence, at, sector, length) = (bytes(4, 4), bytes(8, 8), bytes(16, 8), bytes(24, 4));
    let (action, pid, device, cpu, payload) = if version == 7 {
        (bytes(28, 4), bytes(32, 4), bytes(36, 4), bytes(40, 4), bytes(46, 2))
    } else {
        (bytes(32, 8), bytes(28, 4), bytes(40, 4), bytes(44, 4), bytes(50, 2))
    };
    let record = Record {
        sequence: sequence as u32,
        at,
        sector,
        bytes: length as u32,
        // Bit 8 says that the payload begins with a control group.
        action: (action & 0xff) as u16,
        categories: action >> 16,
        pid: pid as u32,
        device: device as u32,
        cpu: cpu as u32,
    };
    (record, payload as usize)
}

impl State {
    fn disk(&mut self, device: u32, tables: &mut Tables) -> Name {
        if let Some(name) = self.disks.get(&device) {
            return *name;
        }
        let name = tables.disks.of(&format!("{},{}", device >> 20, device & 0xf_ffff));
        if self.disks.len() < MOST_PIDS {
            self.disks.insert(device, name);
        }
        name
    }

    fn item(
        &mut self,
        r: &Record,
        payload: &[u8],
        big: bool,
        place: u64,
        tables: &mut Tables,
    ) -> Option<Item> {
        if r.categories & category::NOTIFY != 0 {
            self.notice(r, payload, big, tables);
            tables.tally.other += 1;
            return None;
        }
        let action = match r.action {
            1 => Action::Queue,
            6 => Action::Requeue,
            7 => Action::Issue,
            8 => Action::Complete,
            12 => Action::Insert,
            15 => self.moved(r, payload, tables)?,
            _ => {
                tables.tally.other += 1;
                return None;
            }
        };
        let Some((op, flags)) = operation(r.categories) else {
            tables.tally.skip(
                "a command that is neither read, write, discard nor flush",
                place,
                "",
            );
            return None;
        };
        let sectors = u64::from(r.bytes / 512);
        if sectors > 0 && words::on_disk(r.sector, sectors).is_none() {
            tables.tally.skip("the sector is beyond any disk", place, "");
            return None;
        }
        let event = Event {
            at: r.at,
            action,
            op,
            flags,
            disk: self.disk(r.device, tables),
            sector: r.sector,
            sectors,
            pid: r.pid,
            task: self.tasks.get(&r.pid).copied().unwrap_or_default(),
            prio: IoPrio::default(),
            cpu: r.cpu as u16,
        };
        Some(Item::Event(event))
    }

    /// A remap has, in big-endian order whatever the machine, device and device of before, and the sector there.
    fn moved(&mut self, r: &Record, payload: &[u8], tables: &mut Tables) -> Option<Action> {
        let payload = if payload.len() >= 24 { &payload[8..] } else { payload };
        let number = |at: usize, n: usize| {
            payload.get(at..at + n).map(|b| b.iter().fold(0u64, |v, b| v << 8 | u64::from(*b)))
        };
        let (Some(from), Some(sector)) = (number(0, 4), number(8, 8)) else {
            tables.tally.other += 1;
            return None;
        };
        let from = from as u32;
        let partition = is_partition(from >> 20, r.device >> 20);
        Some(Action::Remap { disk: self.disk(from, tables), sector, partition })
    }

    fn notice(&mut self, r: &Record, payload: &[u8], big: bool, tables: &mut Tables) {
        match r.action {
            0 if self.tasks.len() < MOST_PIDS => {
                let text = payload.split(|b| *b == 0).next().unwrap_or(&[]);
                let name = tables.tasks.of(&String::from_utf8_lossy(text));
                self.tasks.insert(r.pid, name);
            }
            1 if payload.len() >= 8 => {
                let word = |at: usize| {
                    let b: [u8; 4] = payload[at..at + 4].try_into().unwrap_or_default();
                    i128::from(if big { u32::from_be_bytes(b) } else { u32::from_le_bytes(b) })
                };
                let wall = word(0) * 1_000_000_000 + word(4);
                tables.tally.wall_clock.get_or_insert(wall);
            }
            _ => {}
        }
    }
}

/// Operation and flags of the categories.
fn operation(c: u64) -> Option<(Op, Flags)> {
    let has = |bit| c & bit != 0;
    if has(category::PC) {
        return None;
    }
    let mut flags = Flags::NONE;
    for (bit, flag) in [
        (category::SYNC, Flags::SYNC),
        (category::META, Flags::META),
        (category::AHEAD, Flags::RAHEAD),
        (category::FUA, Flags::FUA),
        (category::FLUSH, Flags::PREFLUSH),
    ] {
        if has(bit) {
            flags = flags.with(flag);
        }
    }
    let op = match c {
        _ if has(category::DISCARD) => Op::Discard,
        _ if has(category::WRITE) => Op::Write,
        // The command of a flush counts as a read.
        _ if has(category::FLUSH) => Op::Flush,
        _ if has(category::READ) => Op::Read,
        _ => return None,
    };
    Some((op, flags))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specification_s_example_is_read() {
        let hex = "0774616500000000b908e3309703000010ee150000000000001000000100 1a00067800000300700001000000 00000000";
        let hex: String = hex.split_whitespace().collect();
        let b: Vec<u8> =
            (0..48).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect();
        assert_eq!(magic(&b), Some((7, false)));
        let (r, payload) = header(&b[4..], 7, false);
        assert_eq!((r.at, r.sector, r.bytes, payload), (3_947_895_130_297, 1_437_200, 4096, 0));
        assert_eq!((r.action, r.categories, r.pid, r.cpu), (1, 0x1a, 30726, 1));
        assert_eq!((r.device >> 20, r.device & 0xf_ffff), (7, 3));
        assert_eq!(operation(r.categories), Some((Op::Write, Flags::SYNC)));
    }
}
