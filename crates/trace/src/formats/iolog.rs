//! fio's I/O logs (`write_iolog`, `read_iolog`), versions 1 to 3.
//!
//! Version 1 has lines `0|1, offset, length` without times. Version 2 has lines `file action [offset length]` and
//! pauses `file wait MICROSECONDS`; version 3 puts a time in microseconds from the start before each line. Pauses
//! below 100 microseconds are dropped, as fio's manual says.

use std::collections::BTreeMap;

use iosched_types::{Bytes, Flags, Nanos, Op};
use serde::{Deserialize, Serialize};

use super::text::{Grammar, Line, reader};
use super::{Format, fields};
use crate::event::{Io, Item};
use crate::tally::Reason;
use crate::trace::Tables;
use crate::words;

pub(super) static FORMAT: Format = Format {
    name: "iolog",
    about: "fio I/O log",
    per_cpu: false,
    sniff: |head| {
        head.lines.first().is_some_and(|l| Version::of(l).is_some())
            || head.most(|l| first(l).is_some())
    },
    open: |_, files| reader(Log::default(), files),
};

/// One I/O of a log.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When it happened (version 3: from the start; version 2: accumulated `wait`s).
    pub at: Nanos,
    /// Number of the file, in the order in which they were added.
    pub file: u32,
    /// Operation; a flush is `sync`/`datasync`.
    pub op: Op,
    /// Byte offset.
    pub offset: Bytes,
    /// Length in bytes.
    pub len: Bytes,
}

/// Versions with a first line of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Pauses.
    Two,
    /// Times.
    Three,
}

impl Version {
    /// The version that a first line names.
    #[must_use]
    pub fn of(line: &str) -> Option<Version> {
        match line.trim() {
            "fio version 2 iolog" => Some(Version::Two),
            "fio version 3 iolog" => Some(Version::Three),
            _ => None,
        }
    }
}

/// Waits shorter than this are not kept.
const MIN_WAIT_US: u64 = 100;
/// Most files in a log.
const MAX_FILES: usize = 65536;
const ACTIONS: [&str; 9] =
    ["add", "open", "close", "wait", "read", "write", "trim", "sync", "datasync"];

/// What is wrong with a line: the message, the word, and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault: the message without the words of the line.
    pub reason: Reason,
    /// The word that is wrong.
    pub word: String,
    /// The message.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
}

/// Reads a log line by line.
#[derive(Debug)]
pub struct Lines {
    version: Version,
    files: Vec<String>,
    index: BTreeMap<String, (u32, bool)>,
    now: Nanos,
}

fn fail<T>(word: &str, reason: Reason) -> Result<T, Fault> {
    Err(Fault { reason, word: word.into(), message: reason.into(), help: String::new() })
}

fn number(word: &str) -> Result<u64, Fault> {
    match word.parse::<u64>() {
        Ok(n) if i64::try_from(n).is_ok() => Ok(n),
        _ => fail(word, "a number is not a whole number").map_err(|f| Fault {
            message: format!("\"{}\" is not a whole number", shorten(word)),
            ..f
        }),
    }
}

fn nanos(word: &str) -> Result<Nanos, Fault> {
    match number(word)?.checked_mul(1_000).filter(|t| i64::try_from(*t).is_ok()) {
        Some(t) => Ok(t),
        None => fail(word, "the time is too long"),
    }
}

fn shorten(word: &str) -> String {
    word.chars().take(40).collect()
}

impl Lines {
    /// The lines behind the first.
    #[must_use]
    pub fn new(version: Version) -> Lines {
        Lines { version, files: Vec::new(), index: BTreeMap::new(), now: 0 }
    }

    /// Files named by `add`, in order.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// The line is no part of a log.
    pub fn line(&mut self, text: &str) -> Result<Option<Entry>, Fault> {
        let mut words = text.split_whitespace();
        if self.version == Version::Three {
            let Some(stamp) = words.next() else { return Ok(None) };
            let at = nanos(stamp)?;
            if at < self.now {
                return fail(stamp, "the timestamp is earlier than the one before");
            }
            self.now = at;
        }
        let (file, action) = match (words.next(), words.next()) {
            (Some(f), Some(a)) => (f, a),
            (None, _) if self.version == Version::Two => return Ok(None),
            _ => return fail(text.trim(), "a file name and an action are expected"),
        };
        let numbers = [words.next(), words.next()];
        if let Some(extra) = words.next() {
            return fail(extra, "too many words");
        }
        self.action(file, action, numbers)
    }

    fn action(
        &mut self,
        file: &str,
        action: &str,
        numbers: [Option<&str>; 2],
    ) -> Result<Option<Entry>, Fault> {
        match action {
            "add" => return self.add(file),
            "wait" if self.version == Version::Three => {
                return fail(action, "version 3 has timestamps instead of wait");
            }
            "wait" => {
                let Some(n) = numbers[0] else {
                    return fail(action, "the length of the wait is missing");
                };
                let wait = nanos(n)?;
                if wait >= MIN_WAIT_US * 1_000 {
                    self.now = self.now.saturating_add(wait).min(i64::MAX as u64);
                }
                return Ok(None);
            }
            _ => {}
        }
        let Some(&(id, open)) = self.index.get(file) else {
            return fail(file, "the file was not added before");
        };
        let op = match action {
            "open" | "close" => {
                self.index.insert(file.to_string(), (id, action == "open"));
                return Ok(None);
            }
            "read" => Op::Read,
            "write" => Op::Write,
            "trim" => Op::Discard,
            "sync" | "datasync" => Op::Flush,
            _ => {
                let help = iosched_types::nearest::did_you_mean(action, ACTIONS);
                let message = format!("unknown action \"{}\"", shorten(action));
                return fail(action, "unknown action").map_err(|f| Fault { message, help, ..f });
            }
        };
        if !open {
            return fail(file, "the file is not open");
        }
        let [Some(offset), Some(len)] = numbers else {
            return fail(action, "offset and length are missing");
        };
        let (offset, len) = (number(offset)?, number(len)?);
        if op != Op::Flush && len == 0 {
            return fail(action, "the length is zero");
        }
        if offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
            return fail(action, "the I/O ends beyond 2^63 bytes");
        }
        Ok(Some(Entry { at: self.now, file: id, op, offset, len }))
    }

    fn add(&mut self, file: &str) -> Result<Option<Entry>, Fault> {
        if self.index.contains_key(file) {
            return fail(file, "the file was added before");
        }
        if self.files.len() == MAX_FILES {
            return fail(file, "more than 65536 files");
        }
        self.index.insert(file.to_string(), (self.files.len() as u32, false));
        self.files.push(file.to_string());
        Ok(None)
    }
}

/// A line of version 1: `rw, offset, length`.
fn first(line: &str) -> Option<(Op, Bytes, Bytes)> {
    let [kind, offset, len] = words::commas::<3>(line).filter(|_| line.split(',').count() == 3)?;
    let op = match kind {
        "0" => Op::Read,
        "1" => Op::Write,
        _ => return None,
    };
    Some((op, offset.parse().ok()?, len.parse().ok()?))
}

/// A log as a trace.
#[derive(Default)]
struct Log {
    lines: Option<Lines>,
}

impl Grammar for Log {
    fn line(&mut self, line: &str, tables: &mut Tables) -> Line {
        if let Some(version) = Version::of(line) {
            if version == Version::Two {
                tables.tally.note("version 2 has no times but those of its pauses: I/Os between two arrive at once");
            }
            self.lines = Some(Lines::new(version));
            return Line::Other;
        }
        let Some(lines) = &mut self.lines else {
            let Some((op, offset, len)) = first(line) else {
                return Line::Skip("operation, offset and length are expected");
            };
            tables.tally.note("version 1 has no times: all I/Os arrive at once");
            return fields::io(tables, 0, op, "", (offset, len), None);
        };
        match lines.line(line) {
            Ok(None) => Line::Other,
            Ok(Some(e)) => {
                let disk =
                    tables.disks.of(lines.files().get(e.file as usize).map_or("", String::as_str));
                let mut io = Io::new(e.at, e.op, disk, e.offset, e.len);
                if e.op == Op::Flush {
                    (io.offset, io.len, io.flags) = (0, 0, Flags::SYNC);
                }
                Line::Item(Item::Io(io))
            }
            Err(fault) => Line::Skip(fault.reason),
        }
    }
}
