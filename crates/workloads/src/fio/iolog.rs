//! fio I/O logs (`write_iolog`, `read_iolog`), versions 2 and 3.
//!
//! Version 2 has lines `file action [offset length]` and pauses `file wait MICROSECONDS`; version 3 puts
//! a timestamp in microseconds from the start before each line. Pauses below 100 microseconds are
//! dropped, as fio's manual says.

use serde::{Deserialize, Serialize};

use iosched_types::{Bytes, Diagnostic, Nanos, Op};

/// A parsed log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoLog {
    /// Files named by `add`, in order.
    pub files: Vec<String>,
    /// I/Os in order.
    pub entries: Vec<Entry>,
}

/// One I/O of a log.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When it happened (v3: from the start; v2: accumulated `wait`s).
    pub at: Nanos,
    /// Index in [`IoLog::files`].
    pub file: u32,
    /// Operation; a flush is `sync`/`datasync`.
    pub op: Op,
    /// Byte offset.
    pub offset: Bytes,
    /// Length in bytes.
    pub len: Bytes,
}

/// Waits shorter than this are not kept.
const MIN_WAIT_US: u64 = 100;
/// Most files in a log.
const MAX_FILES: usize = 65536;
const ACTIONS: [&str; 9] =
    ["add", "open", "close", "wait", "read", "write", "trim", "sync", "datasync"];

struct Reader<'a> {
    name: &'a str,
    version: u8,
    log: IoLog,
    index: std::collections::BTreeMap<String, (u32, bool)>,
    now: Nanos,
    line: usize,
    text: &'a str,
}

/// Parses a log; `name` is for messages.
///
/// # Errors
/// A diagnostic at the first line that is not part of a log of version 2 or 3.
pub fn parse(name: &str, text: &str) -> Result<IoLog, Diagnostic> {
    let mut lines = text.lines();
    let version = match lines.next().map(str::trim) {
        Some("fio version 2 iolog") => 2,
        Some("fio version 3 iolog") => 3,
        first => {
            let mut d = Diagnostic::file(name, "not an I/O log of version 2 or 3");
            d.line = 1;
            d.column = 1;
            d.text = first.unwrap_or("").chars().take(240).collect();
            return Err(d.with_help(
                "the first line is \"fio version 3 iolog\"; blktrace files are not read",
            ));
        }
    };
    let mut reader = Reader {
        name,
        version,
        log: IoLog::default(),
        index: Default::default(),
        now: 0,
        line: 1,
        text: "",
    };
    for line in lines {
        reader.line += 1;
        reader.text = line;
        reader.entry()?;
    }
    Ok(reader.log)
}

impl Reader<'_> {
    fn fail<T>(&self, word: &str, message: impl Into<String>) -> Result<T, Diagnostic> {
        let mut d = Diagnostic::file(self.name, message);
        let at = self.text.find(word).unwrap_or(0);
        d.line = self.line;
        d.column = self.text[..at].chars().count() + 1;
        d.width = word.chars().count();
        d.text = self.text.chars().take(240).collect();
        Err(d)
    }

    fn number(&self, word: &str) -> Result<u64, Diagnostic> {
        match word.parse::<u64>() {
            Ok(n) if i64::try_from(n).is_ok() => Ok(n),
            _ => self.fail(word, format!("\"{}\" is not a whole number", shorten(word))),
        }
    }

    fn nanos(&self, word: &str) -> Result<Nanos, Diagnostic> {
        match self.number(word)?.checked_mul(1_000).filter(|t| i64::try_from(*t).is_ok()) {
            Some(t) => Ok(t),
            None => self.fail(word, "the time is too long"),
        }
    }

    fn entry(&mut self) -> Result<(), Diagnostic> {
        let text = self.text;
        let mut words = text.split_whitespace();
        if self.version == 3 {
            let Some(stamp) = words.next() else { return Ok(()) };
            let at = self.nanos(stamp)?;
            if at < self.now {
                return self.fail(stamp, "the timestamp is earlier than the one before");
            }
            self.now = at;
        }
        let (file, action) = match (words.next(), words.next()) {
            (Some(f), Some(a)) => (f, a),
            (None, _) if self.version == 2 => return Ok(()),
            _ => return self.fail(text.trim(), "a file name and an action are expected"),
        };
        let numbers = [words.next(), words.next()];
        if let Some(extra) = words.next() {
            return self.fail(extra, "too many words");
        }
        self.action(file, action, numbers)
    }

    fn action(
        &mut self,
        file: &str,
        action: &str,
        numbers: [Option<&str>; 2],
    ) -> Result<(), Diagnostic> {
        match action {
            "add" => return self.add(file),
            "wait" if self.version == 3 => {
                return self.fail(action, "version 3 has timestamps instead of wait");
            }
            "wait" => {
                let Some(n) = numbers[0] else { return self.fail(action, "how long?") };
                let wait = self.nanos(n)?;
                if wait >= MIN_WAIT_US * 1_000 {
                    self.now = self.now.saturating_add(wait).min(i64::MAX as u64);
                }
                return Ok(());
            }
            _ => {}
        }
        let Some(&(id, open)) = self.index.get(file) else {
            return self.fail(file, "the file was not added before");
        };
        let op = match action {
            "open" | "close" => {
                self.index.insert(file.to_string(), (id, action == "open"));
                return Ok(());
            }
            "read" => Op::Read,
            "write" => Op::Write,
            "trim" => Op::Discard,
            "sync" | "datasync" => Op::Flush,
            _ => {
                let help = iosched_types::nearest::did_you_mean(action, ACTIONS);
                let message = format!("unknown action \"{}\"", shorten(action));
                return self.fail(action, message).map_err(|d: Diagnostic| d.with_help(help));
            }
        };
        if !open {
            return self.fail(file, "the file is not open");
        }
        let [Some(offset), Some(len)] = numbers else {
            return self.fail(action, "offset and length are missing");
        };
        let (offset, len) = (self.number(offset)?, self.number(len)?);
        if op != Op::Flush && len == 0 {
            return self.fail(action, "the length is zero");
        }
        if offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
            return self.fail(action, "the I/O ends beyond 2^63 bytes");
        }
        self.log.entries.push(Entry { at: self.now, file: id, op, offset, len });
        Ok(())
    }

    fn add(&mut self, file: &str) -> Result<(), Diagnostic> {
        if self.index.contains_key(file) {
            return self.fail(file, "the file was added before");
        }
        if self.log.files.len() == MAX_FILES {
            return self.fail(file, "more than 65536 files");
        }
        self.index.insert(file.to_string(), (self.log.files.len() as u32, false));
        self.log.files.push(file.to_string());
        Ok(())
    }
}

fn shorten(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "fio version 2 iolog\n/d add\n/d open\n/d read 0 4096\n/d wait 50 0\n/d wait 200 0\n/d write 8192 512\n/d datasync 0 0\n/d close\n";
    const V3: &str = "fio version 3 iolog\n0 /d add\n1 /d open\n5 /d trim 0 4096\n9 /d sync 0 0\n";

    #[test]
    fn version_2_accumulates_waits_of_at_least_100_microseconds() {
        let log = parse("l", V2).unwrap();
        let at: Vec<_> = log.entries.iter().map(|e| (e.at, e.op)).collect();
        assert_eq!(at, [(0, Op::Read), (200_000, Op::Write), (200_000, Op::Flush)]);
        assert_eq!(log.files, ["/d"]);
    }

    #[test]
    fn version_3_has_microseconds_from_the_start() {
        let log = parse("l", V3).unwrap();
        let at: Vec<_> = log.entries.iter().map(|e| (e.at, e.op, e.len)).collect();
        assert_eq!(at, [(5_000, Op::Discard, 4096), (9_000, Op::Flush, 0)]);
    }

    #[test]
    fn bad_logs_are_refused_with_a_place() {
        let v2 = |rest: &str| format!("fio version 2 iolog\n/d add\n/d open\n{rest}\n");
        for (rest, line, expect) in [
            ("/d red 0 1", 4, "unknown action \"red\""),
            ("/x read 0 1", 4, "the file was not added before"),
            ("/d read 0", 4, "offset and length are missing"),
            ("/d read -1 5", 4, "\"-1\" is not a whole number"),
            ("/d read 0 0", 4, "the length is zero"),
            ("/d read 9223372036854775807 1", 4, "the I/O ends beyond 2^63 bytes"),
            ("/d read 0 1 2", 4, "too many words"),
            ("/d", 4, "a file name and an action are expected"),
            ("/d add", 4, "the file was added before"),
            ("/d close\n/d read 0 1", 5, "the file is not open"),
        ] {
            let d = parse("l", &v2(rest)).unwrap_err();
            assert_eq!((d.line, d.message.as_str()), (line, expect), "{rest}");
        }
        let d = parse("l", "0,0,4096\n").unwrap_err();
        assert_eq!(d.message, "not an I/O log of version 2 or 3");
        let d = parse("l", "fio version 3 iolog\n5 /d add\n4 /d open\n").unwrap_err();
        assert_eq!(d.message, "the timestamp is earlier than the one before");
        let d = parse("l", "fio version 3 iolog\n5 /d add\n6 /d wait 5\n").unwrap_err();
        assert_eq!(d.message, "version 3 has timestamps instead of wait");
    }
}
