//! A trace as a stream of I/Os.

use std::io::Read;

use iosched_types::{Diagnostic, Nanos, Op};

use crate::error::Error;
use crate::event::{Io, Item};
use crate::formats::{self, Format, Head, Reader};
use crate::names::{Name, Names};
use crate::pair::Pairer;
use crate::sort::Sorter;
use crate::tally::Tally;
use crate::unpack;

/// A file of a trace.
pub struct Input<'a> {
    /// Its name, for messages.
    pub name: String,
    /// Its bytes.
    pub from: Box<dyn Read + 'a>,
}

/// The names of a trace and what was noticed.
#[derive(Debug, Default)]
pub struct Tables {
    /// Names of disks.
    pub disks: Names,
    /// Command names of tasks.
    pub tasks: Names,
    /// What was noticed.
    pub tally: Tally,
    /// The time of the last event of a text whose lines of lost events have none.
    pub(crate) latest: Nanos,
}

/// I/Os in order of arrival.
pub struct Trace<'a> {
    /// The format.
    pub format: &'static Format,
    /// How the input was compressed, from the outside in.
    pub packed: Vec<&'static str>,
    /// Names and counts so far.
    pub tables: Tables,
    file: String,
    reader: Box<dyn Reader + 'a>,
    sorter: Sorter,
    pairer: Pairer,
    origin: Option<Nanos>,
    /// Whether times are kept as the source has them.
    absolute: bool,
    ended: bool,
}

/// Opens a trace; `wanted` is its format where the user says it. Several inputs are the files of one recording, one a
/// CPU.
///
/// # Errors
/// The input cannot be read, or is no trace; then the message says what it is, where that can be seen.
pub fn open<'a>(
    inputs: Vec<Input<'a>>,
    wanted: Option<&'static Format>,
) -> Result<Trace<'a>, Error> {
    let mut files = Vec::new();
    let (mut head, mut packed) = (Vec::new(), Vec::new());
    let mut name = String::new();
    for input in inputs {
        let read = |error| Error::Read { file: input.name.clone(), error };
        let peeked = unpack::unpack(input.from).map_err(read)?;
        // The file of a CPU that did nothing is empty.
        if head.is_empty() {
            (head, packed) = (peeked.head, peeked.packed);
            name.clone_from(&input.name);
        }
        files.push(Input { name: input.name, from: peeked.all });
    }
    let head = Head::new(&head);
    let format = match wanted {
        Some(format) => format,
        None => formats::find(&name, &head)?,
    };
    if files.len() > 1 && !format.per_cpu {
        let message = format!("{} files, and {} has one", files.len(), format.about);
        let help = "join recordings with `iosched trace merge`";
        return Err(Diagnostic::file(&files[1].name, message).with_help(help).into());
    }
    let reader = (format.open)(&head, files.into_iter().map(|f| f.from).collect());
    Ok(Trace {
        format,
        packed,
        tables: Tables::default(),
        file: name,
        reader,
        sorter: Sorter::default(),
        pairer: Pairer::default(),
        origin: None,
        absolute: false,
        ended: false,
    })
}

impl Trace<'_> {
    /// Leaves times as the source's clock has them.
    #[must_use]
    pub fn absolute(mut self) -> Self {
        self.absolute = true;
        self
    }

    /// The next I/O in order of arrival.
    ///
    /// # Errors
    /// The input cannot be read further.
    pub fn next_io(&mut self) -> Result<Option<Io>, Error> {
        loop {
            if let Some(io) = self.pairer.pop(false, &mut self.tables.tally) {
                return Ok(Some(self.relative(io)));
            }
            if self.ended {
                let io = self.pairer.pop(true, &mut self.tables.tally);
                return Ok(io.map(|io| self.relative(io)));
            }
            self.step()?;
        }
    }

    /// Reads until an item leaves the window.
    fn step(&mut self) -> Result<(), Error> {
        while !self.sorter.is_full() {
            let read = |error| Error::Read { file: self.file.clone(), error };
            match self.reader.next(&mut self.tables).map_err(read)? {
                Some(item) => {
                    let tally = &mut self.tables.tally;
                    match item {
                        Item::Gap(_) => tally.other += 1,
                        Item::Event(_) | Item::Io(_) => tally.used += 1,
                    }
                    self.sorter.push(item, &mut self.tables.tally);
                }
                None => {
                    self.drain();
                    self.ended = true;
                    return Ok(());
                }
            }
        }
        if let Some(item) = self.sorter.pop() {
            self.pair(item);
        }
        Ok(())
    }

    fn drain(&mut self) {
        while let Some(item) = self.sorter.pop() {
            self.pair(item);
        }
    }

    fn pair(&mut self, item: Item) {
        if !matches!(item, Item::Gap(_)) {
            self.origin.get_or_insert(item.at());
        }
        match item {
            Item::Io(io) => self.pairer.io(io),
            Item::Event(e) => self.pairer.event(e, &mut self.tables.tally),
            Item::Gap(_) => self.pairer.forget(&mut self.tables.tally),
        }
    }

    fn relative(&mut self, io: Io) -> Io {
        let origin = if self.absolute { 0 } else { self.origin.unwrap_or(0) };
        io.counted_from(origin, &mut self.tables.tally)
    }

    /// A disk's name.
    #[must_use]
    pub fn disk(&self, name: Name) -> &str {
        self.tables.disks.text(name)
    }

    /// Why a trace without a single I/O has none.
    #[must_use]
    pub fn nothing(&self) -> Diagnostic {
        let t = &self.tables.tally;
        let message = if t.completions_without_start > 0 {
            format!(
                "{} completions and no I/O that they could complete",
                t.completions_without_start
            )
        } else if let Some((reason, s)) = t.skipped.iter().next() {
            format!(
                "no usable record: {} of {} skipped, the first because {reason}",
                t.dropped(),
                s.count.max(t.records)
            )
        } else {
            "a trace without a single I/O".to_string()
        };
        let help = if t.completions_without_start > 0 {
            "record queue or issue events, too: blktrace -a queue -a issue -a complete, or the trace points \
             block_bio_queue, block_rq_issue and block_rq_complete"
        } else if t.skipped.is_empty() {
            "record while the disk is in use"
        } else {
            "name the format with --as when it was mistaken (iosched trace info --help lists them)"
        };
        let mut d = Diagnostic::file(&self.file, message).with_help(help);
        if let Some(s) = t.skipped.values().next().filter(|s| !s.text.is_empty()) {
            (d.line, d.column, d.width) = (s.first as usize, 1, s.text.chars().count());
            d.text.clone_from(&s.text);
        }
        d
    }
}

/// An I/O in words: `read of 24.0 KiB at 10.4 GiB by fio (pid 303), 812 µs after the start`.
#[must_use]
pub fn in_words(io: &Io, tables: &Tables) -> String {
    use iosched_types::units::{show_bytes, show_nanos};
    let (len, offset) = (show_bytes(io.len as f64), show_bytes(io.offset as f64));
    let mut out = match io.op {
        Op::Read => format!("read of {len} at {offset}"),
        Op::Write => format!("write of {len} at {offset}"),
        Op::Discard => format!("discard of {len} at {offset}"),
        Op::Flush => "flush".into(),
    };
    let (disk, task) = (tables.disks.text(io.disk), tables.tasks.text(io.task));
    if !disk.is_empty() {
        out += &format!(" of disk {disk}");
    }
    match (task.is_empty(), io.pid) {
        (true, 0) => {}
        (true, pid) => out += &format!(" by pid {pid}"),
        (false, 0) => out += &format!(" by {task}"),
        (false, pid) => out += &format!(" by {task} (pid {pid})"),
    }
    out += &format!(", {} after the start", show_nanos(io.queued as f64));
    if let Some(latency) = io.latency() {
        out += &format!(", done {} later", show_nanos(latency as f64));
    }
    out
}
