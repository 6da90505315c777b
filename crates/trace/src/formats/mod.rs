//! The formats: one file and one line of [`FORMATS`] each.

mod alibaba;
mod biosnoop;
mod blkparse;
mod blktrace;
mod disksim;
mod fields;
mod ftrace;
pub mod iolog;
mod mqsim;
mod msr;
mod own;
#[cfg(feature = "parquet")]
mod parquet;
mod perf;
mod spc;
mod tencent;
mod text;
mod trace_cmd;
mod tracepoint;
mod vscsi;

use std::io::Read;

use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

use crate::error::Error;
use crate::event::Item;
use crate::trace::Tables;
use crate::unpack;

pub(crate) use own::FLAGS;
pub use own::{COLUMNS, comments};

/// A format.
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// The format in words.
    pub about: &'static str,
    /// Whether a recording has a file for each CPU.
    pub per_cpu: bool,
    /// Whether a file that begins so is of it.
    pub sniff: fn(&Head<'_>) -> bool,
    /// Reads the files.
    pub open: Open,
}

/// Begins to read the files of a recording that begins so.
pub type Open = for<'a> fn(&Head<'_>, Vec<Box<dyn Read + 'a>>) -> Box<dyn Reader + 'a>;

/// All formats, in the order in which they are tried.
pub static FORMATS: &[&Format] = &[
    &blktrace::FORMAT,
    &iolog::FORMAT,
    &own::FORMAT,
    #[cfg(feature = "parquet")]
    &parquet::FORMAT,
    &trace_cmd::FORMAT,
    &ftrace::FORMAT,
    &perf::FORMAT,
    &blkparse::FORMAT,
    &biosnoop::FORMAT,
    &msr::FORMAT,
    &alibaba::FORMAT,
    &spc::FORMAT,
    &tencent::FORMAT,
    &disksim::FORMAT,
    &mqsim::FORMAT,
    &vscsi::FORMAT,
];

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Format({})", self.name)
    }
}

/// Reads one format.
pub trait Reader {
    /// The next item; records that are none are counted in the tally.
    ///
    /// # Errors
    /// The input cannot be read further.
    fn next(&mut self, tables: &mut Tables) -> std::io::Result<Option<Item>>;
}

/// The beginning of a file.
pub struct Head<'a> {
    /// Its first bytes.
    pub bytes: &'a [u8],
    /// Its first lines that are neither blank nor comments; none of a binary file.
    pub lines: Vec<&'a str>,
}

/// Lines that are looked at.
const LOOKED_AT: usize = 100;

impl<'a> Head<'a> {
    /// The beginning of a file that begins with these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Head<'a> {
        // The last line may be cut off in the middle of a character.
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(e) => std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or(""),
        };
        let binary = bytes.iter().take(4096).any(|b| *b == 0);
        let text = if binary { "" } else { text.trim_start_matches('\u{feff}') };
        let lines = text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#'));
        let mut lines: Vec<&str> = lines.take(LOOKED_AT).collect();
        if bytes.len() == unpack::HEAD && lines.len() > 1 && lines.len() < LOOKED_AT {
            lines.pop();
        }
        Head { bytes, lines }
    }

    /// Whether most lines are of a kind.
    pub(crate) fn most(&self, is: impl Fn(&str) -> bool) -> bool {
        let of = self.lines.iter().filter(|l| is(l)).count();
        !self.lines.is_empty() && of * 2 > self.lines.len()
    }
}

/// The format of a name.
///
/// # Errors
/// The sentence to show, with the nearest name.
pub fn by_name(name: &str) -> Result<&'static Format, String> {
    FORMATS.iter().find(|f| f.name == name).copied().ok_or_else(|| {
        let names = FORMATS.iter().map(|f| f.name);
        let all: Vec<&str> = names.clone().collect();
        format!("unknown format \"{name}\" ({}) {}", all.join(", "), did_you_mean(name, names))
    })
}

/// Finds the format by content.
///
/// # Errors
/// The file is empty, or no format here; of some files the message says what they are.
pub fn find(name: &str, head: &Head<'_>) -> Result<&'static Format, Error> {
    if head.bytes.is_empty() {
        let help = "record again, and look at the recorder's messages";
        return Err(Diagnostic::file(name, "the file is empty").with_help(help).into());
    }
    if let Some(format) = FORMATS.iter().find(|f| (f.sniff)(head)) {
        return Ok(format);
    }
    Err(stranger(name, head).into())
}

/// Files of other tools, and what to do with them.
fn stranger(name: &str, head: &Head<'_>) -> Diagnostic {
    let known: [(&[u8], &str, &str); 5] = [
        (b"PERFILE2", "a recording of perf", "make text of it: perf script -i FILE > FILE.txt"),
        (
            b"\x17\x08Dtracing",
            "a recording of trace-cmd",
            "make text of it: trace-cmd report -i FILE > FILE.txt",
        ),
        (
            b"PAR1",
            "a Parquet file, which this build does not read",
            "make CSV of it: columns as in docs/traces.md",
        ),
        (
            b"SQLite format 3\0",
            "a database",
            "name a trace; stored results are shown by `iosched results`",
        ),
        (b"\x7fELF", "a program", "name a trace"),
    ];
    if let Some((_, what, help)) = known.iter().find(|(magic, ..)| head.bytes.starts_with(magic)) {
        return Diagnostic::file(name, format!("this is {what}")).with_help(*help);
    }
    let all: Vec<&str> = FORMATS.iter().map(|f| f.name).collect();
    let help = format!("known formats: {}; say which it is with --as", all.join(", "));
    let mut d = Diagnostic::file(name, "this is no trace of a known format").with_help(help);
    if let Some(line) = head.lines.first() {
        (d.line, d.column, d.width) = (1, 1, line.chars().count());
        d.text = (*line).to_string();
    }
    d
}
