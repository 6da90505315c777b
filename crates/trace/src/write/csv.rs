//! CSV, the columns of [`COLUMNS`].

use std::io::{self, BufWriter, Write};

use iosched_types::Op;

use super::{Form, Sink};
use crate::event::Io;
use crate::formats::COLUMNS;
use crate::formats::FLAGS;
use crate::trace::Tables;

pub(super) static FORM: Form = Form {
    name: "csv",
    about: "CSV, one I/O a line",
    ending: ".csv",
    begin: |to| {
        let mut to = BufWriter::new(to);
        writeln!(to, "{}", COLUMNS.join(","))?;
        Ok(Box::new(Csv(to)))
    },
};

struct Csv<W: Write>(BufWriter<W>);

/// The word of an operation.
pub(super) fn operation(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Discard => "discard",
        Op::Flush => "flush",
    }
}

/// The letters of an I/O's flags.
pub(super) fn flags(io: &Io) -> String {
    FLAGS.iter().filter(|(_, f)| io.flags.has(*f)).map(|(c, _)| *c).collect()
}

/// A field, in quotes where it needs them.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"").replace(['\n', '\r'], " "))
    } else {
        text.to_string()
    }
}

impl<W: Write> Sink for Csv<W> {
    fn io(&mut self, io: &Io, tables: &Tables) -> io::Result<()> {
        let time = |t: Option<u64>| t.map(|t| t.to_string()).unwrap_or_default();
        writeln!(
            self.0,
            "{},{},{},{},{},{},{},{},{},{},{},{}",
            io.queued,
            time(io.issued),
            time(io.done),
            field(tables.disks.text(io.disk)),
            operation(io.op),
            flags(io),
            io.offset,
            io.len,
            io.pid,
            field(tables.tasks.text(io.task)),
            io.prio,
            io.cpu
        )
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        self.0.flush()
    }
}
