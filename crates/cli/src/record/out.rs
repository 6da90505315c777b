//! The file of a recording: the trace, and what is said of it in comments.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use flate2::{Compression, GzBuilder};
use iosched_backends::record::Room;
use iosched_trace::formats::comments;
use iosched_trace::write::{Form, Sink};
use iosched_trace::{Error, Io, Tables};

use crate::fail::Outcome;
use crate::trace::through;

/// What is said of a recording.
pub(super) struct Said {
    pub(super) recorded: String,
    pub(super) facts: Vec<(String, String)>,
    pub(super) lost: u64,
    /// Why it ended.
    pub(super) ended: String,
    pub(super) first_unix_ns: i128,
}

/// Widths of values that are known at the end only: they are written over those of the beginning.
const WIDE: usize = 96;
const NUMBER: usize = 24;

impl Said {
    fn text(&self) -> String {
        let mut out = format!("# {}: {}\n", comments::RECORDED, self.recorded);
        for (key, value) in &self.facts {
            out += &format!("# {key}: {value}\n");
        }
        let ended: String = self.ended.chars().take(WIDE).collect();
        out += &format!("# {}: {:<NUMBER$}\n", comments::LOST, self.lost);
        out += &format!("# {}: {:<NUMBER$}\n", comments::STARTED, self.first_unix_ns);
        out + &format!("# {}: {ended:<WIDE$}\n", comments::ENDED)
    }

    /// The same as bytes of a file. Packed they are a part of their own, as long at the end as at the beginning.
    fn bytes(&self, packed: bool) -> std::io::Result<Vec<u8>> {
        let text = self.text().into_bytes();
        if !packed {
            return Ok(text);
        }
        let mut part = GzBuilder::new().write(Vec::new(), Compression::none());
        part.write_all(&text)?;
        part.finish()
    }
}

/// How a file is written.
pub(super) struct Out<'a> {
    pub(super) form: &'static Form,
    pub(super) packed: bool,
    pub(super) room: &'a Room,
    /// Whether what was written can be written over.
    pub(super) again: bool,
}

/// A trace on its way into a file.
pub(super) struct Writing<'a> {
    sink: Box<dyn Sink + 'a>,
    room: Room,
    limit: Option<u64>,
    pub(super) ios: u64,
}

impl Writing<'_> {
    /// Writes an I/O, unless the file is as large as it may be.
    pub(super) fn take(&mut self, io: &Io, tables: &Tables) -> Outcome {
        if self.is_full() {
            return Ok(());
        }
        self.ios += 1;
        self.sink.io(io, tables).map_err(Error::Write)?;
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.room.is_full() || self.is_large()
    }

    pub(super) fn is_large(&self) -> bool {
        self.limit.is_some_and(|limit| self.room.written() >= limit)
    }

    pub(super) fn room(&self) -> &Room {
        &self.room
    }
}

impl Out<'_> {
    /// Writes a file: what is said of it, then what `make` gives; what is said then is written over the beginning.
    /// Returns what `make` does, and what the form cannot hold.
    pub(super) fn write(
        &self,
        said: &mut Said,
        limit: Option<u64>,
        make: impl FnOnce(&mut Writing<'_>, &mut Said) -> Outcome<(u64, Tables)>,
    ) -> Outcome<(u64, Tables, Vec<String>)> {
        let begun = if self.form.comments { said.bytes(self.packed) } else { Ok(Vec::new()) };
        let begun = begun.map_err(Error::Write)?;
        self.room.clone().write_all(&begun).map_err(Error::Write)?;
        let made = through(self.packed, Box::new(self.room.clone()), |to| {
            let sink = (self.form.begin)(to).map_err(Error::Write)?;
            let mut writing = Writing { sink, room: self.room.clone(), limit, ios: 0 };
            let (ios, tables) = make(&mut writing, said)?;
            // Nothing but the end follows.
            self.room.give_back();
            writing.sink.end(&tables).map_err(Error::Write)?;
            let lost = writing.sink.lost();
            Ok((ios, tables, lost))
        })?;
        if self.form.comments {
            let ended = said.bytes(self.packed).map_err(Error::Write)?;
            let file: &File = self.room.file();
            // A pipe has it at its end, too.
            let written = match self.again && ended.len() == begun.len() {
                true => file.write_all_at(&ended, 0),
                false => self.room.clone().write_all(&ended),
            };
            written.map_err(Error::Write)?;
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_at_the_end_is_as_long_as_at_the_beginning() {
        let facts = vec![("disk".to_string(), "sda".to_string())];
        let mut said = Said {
            recorded: "sda".into(),
            facts,
            lost: 0,
            ended: comments::NOT_ENDED.into(),
            first_unix_ns: 0,
        };
        for packed in [false, true] {
            let begun = said.bytes(packed).unwrap();
            (said.lost, said.first_unix_ns) = (u64::MAX, 1_800_000_000_000_000_000);
            said.ended = "after ".repeat(40);
            assert_eq!(said.bytes(packed).unwrap().len(), begun.len());
        }
        assert!(said.text().contains("# lost_events: 18446744073709551615"));
    }
}
