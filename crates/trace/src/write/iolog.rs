//! fio I/O logs of version 2 and 3.

use std::io::{self, BufWriter, Write};

use iosched_types::{Nanos, Op};

use super::{Form, Sink};
use crate::event::Io;
use crate::names::Name;
use crate::trace::Tables;

pub(super) static V3: Form = Form {
    name: "iolog",
    about: "fio I/O log of version 3, with times",
    ending: ".log",
    comments: false,
    begin: |to| Ok(Box::new(Log::new(to, false)?)),
};

pub(super) static V2: Form = Form {
    name: "iolog2",
    about: "fio I/O log of version 2, with pauses",
    ending: ".log2",
    comments: false,
    begin: |to| Ok(Box::new(Log::new(to, true)?)),
};

struct Log<W: Write> {
    to: BufWriter<W>,
    pauses: bool,
    files: Vec<Name>,
    last: Nanos,
    tasks: bool,
    times: bool,
}

impl<W: Write> Log<W> {
    fn new(to: W, pauses: bool) -> io::Result<Log<W>> {
        let mut to = BufWriter::new(to);
        writeln!(to, "fio version {} iolog", if pauses { 2 } else { 3 })?;
        Ok(Log { to, pauses, files: Vec::new(), last: 0, tasks: false, times: false })
    }

    fn line(&mut self, file: &str, action: &str) -> io::Result<()> {
        if self.pauses {
            writeln!(self.to, "{file} {action}")
        } else {
            writeln!(self.to, "{} {file} {action}", self.last / 1_000)
        }
    }
}

/// A file's name in a log, which has no blanks.
fn name(tables: &Tables, disk: Name) -> String {
    match tables.disks.text(disk) {
        "" => "disk".into(),
        text => text.split_whitespace().collect::<Vec<_>>().join("_"),
    }
}

impl<W: Write> Sink for Log<W> {
    fn io(&mut self, io: &Io, tables: &Tables) -> io::Result<()> {
        let file = name(tables, io.disk);
        let pause = io.queued.saturating_sub(self.last) / 1_000;
        // Times of a log do not go back.
        if self.pauses {
            // fio drops pauses below 100 µs: those that follow make up for them.
            if pause >= 100 && !self.files.is_empty() {
                writeln!(self.to, "{file} wait {pause} 0")?;
                self.last += pause * 1_000;
            } else if self.files.is_empty() {
                self.last = io.queued;
            }
        } else {
            self.last = self.last.max(io.queued);
        }
        if !self.files.contains(&io.disk) {
            self.files.push(io.disk);
            self.line(&file, "add")?;
            self.line(&file, "open")?;
        }
        self.tasks |= io.pid != 0 || io.task.0 != 0;
        self.times |= io.done.is_some();
        let action = match io.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "trim",
            Op::Flush => return self.line(&file, "sync 0 0"),
        };
        self.line(&file, &format!("{action} {} {}", io.offset, io.len))
    }

    fn end(&mut self, tables: &Tables) -> io::Result<()> {
        for disk in std::mem::take(&mut self.files) {
            self.line(&name(tables, disk), "close")?;
        }
        self.to.flush()
    }

    fn lost(&self) -> Vec<String> {
        let mut lost = Vec::new();
        if self.tasks {
            lost.push("tasks and priorities".into());
        }
        if self.times {
            lost.push("times of issue and completion".into());
        }
        lost
    }
}
