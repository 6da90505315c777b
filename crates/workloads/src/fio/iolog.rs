//! fio I/O logs as replays of jobs (`read_iolog`), versions 2 and 3. `iosched_trace` reads their lines.

use iosched_trace::formats::iolog::{Fault, Lines, Version};
use iosched_types::Diagnostic;
use serde::{Deserialize, Serialize};

pub use iosched_trace::formats::iolog::Entry;

/// A parsed log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoLog {
    /// Files named by `add`, in order.
    pub files: Vec<String>,
    /// I/Os in order.
    pub entries: Vec<Entry>,
}

/// Parses a log; `name` is for messages.
///
/// # Errors
/// A diagnostic at the first line that is not part of a log of version 2 or 3.
pub fn parse(name: &str, text: &str) -> Result<IoLog, Diagnostic> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("");
    let Some(version) = Version::of(first) else {
        let mut d = Diagnostic::file(name, "not an I/O log of version 2 or 3");
        (d.line, d.column) = (1, 1);
        d.text = first.trim().chars().take(240).collect();
        return Err(d.with_help(
            "the first line is \"fio version 3 iolog\"; `iosched trace convert` makes one of other traces",
        ));
    };
    let mut reader = Lines::new(version);
    let mut entries = Vec::new();
    for (text, number) in lines.zip(2..) {
        entries.extend(reader.line(text).map_err(|f| at(name, number, text, f))?);
    }
    Ok(IoLog { files: reader.files().to_vec(), entries })
}

/// A fault with its place.
fn at(name: &str, line: usize, text: &str, fault: Fault) -> Diagnostic {
    let mut d = Diagnostic::file(name, fault.message).with_help(fault.help);
    let at = text.find(&fault.word).unwrap_or(0);
    d.line = line;
    d.column = text[..at].chars().count() + 1;
    d.width = fault.word.chars().count();
    d.text = text.chars().take(240).collect();
    d
}

#[cfg(test)]
mod tests {
    use iosched_types::Op;

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
