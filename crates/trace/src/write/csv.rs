//! CSV, the columns of [`COLUMNS`].

use std::fmt::Write as _;
use std::io::{self, Write};

use iosched_types::Nanos;

use super::{Form, Sink};
use crate::event::Io;
use crate::formats::{COLUMNS, FLAGS};
use crate::trace::Tables;
use crate::words;

pub(super) static FORM: Form = Form {
    name: "csv",
    about: "CSV, one I/O a line",
    ending: ".csv",
    comments: true,
    begin: |to| {
        let mut to = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(to);
        to.write_record(COLUMNS).map_err(reason)?;
        Ok(Box::new(Csv { to, field: String::new() }))
    },
};

struct Csv<W: Write> {
    to: csv::Writer<W>,
    field: String,
}

/// The letters of an I/O's flags.
pub(super) fn flags(io: &Io) -> impl Iterator<Item = char> {
    FLAGS.into_iter().filter(|(_, f)| io.flags.has(*f)).map(|(c, _)| c)
}

impl<W: Write> Csv<W> {
    fn field(&mut self, value: impl std::fmt::Display) -> io::Result<()> {
        self.field.clear();
        // Writing to a String cannot fail.
        let _ = write!(self.field, "{value}");
        self.to.write_field(&self.field).map_err(reason)
    }

    fn time(&mut self, time: Option<Nanos>) -> io::Result<()> {
        match time {
            Some(time) => self.field(time),
            None => self.to.write_field("").map_err(reason),
        }
    }

    /// A name in one line: it is read by lines again.
    fn name(&mut self, name: &str) -> io::Result<()> {
        if name.contains(['\n', '\r']) {
            return self.field(name.replace(['\n', '\r'], " "));
        }
        self.to.write_field(name).map_err(reason)
    }
}

fn reason(e: csv::Error) -> io::Error {
    match e.into_kind() {
        csv::ErrorKind::Io(e) => e,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

impl<W: Write> Sink for Csv<W> {
    fn io(&mut self, io: &Io, tables: &Tables) -> io::Result<()> {
        self.field(io.queued)?;
        self.time(io.issued)?;
        self.time(io.done)?;
        self.name(tables.disks.text(io.disk))?;
        self.to.write_field(words::operation(io.op)).map_err(reason)?;
        self.field.clear();
        self.field.extend(flags(io));
        self.to.write_field(&self.field).map_err(reason)?;
        self.field(io.offset)?;
        self.field(io.len)?;
        self.field(io.pid)?;
        self.name(tables.tasks.text(io.task))?;
        self.field(io.prio)?;
        self.field(io.cpu)?;
        self.to.write_record(None::<&[u8]>).map_err(reason)
    }

    fn end(&mut self, _: &Tables) -> io::Result<()> {
        self.to.flush()
    }
}
