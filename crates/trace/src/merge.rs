//! Several traces as one.

use iosched_types::Nanos;

use crate::error::Error;
use crate::event::Io;
use crate::names::{Name, Names};
use crate::trace::{Tables, Trace};

/// Traces, merged by time.
pub struct Merge<'a> {
    /// The traces, each with its next I/O.
    parts: Vec<(Trace<'a>, Option<Io>)>,
    /// The names of all.
    pub tables: Tables,
    origin: Option<Nanos>,
}

fn joined(name: Name, from: &Names, to: &mut Names) -> Name {
    to.of(from.text(name))
}

impl<'a> Merge<'a> {
    /// Merges traces: by the times that their recorders' clock gave when they are [`Trace::absolute`], else from their
    /// beginnings on.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub fn new(traces: Vec<Trace<'a>>) -> Result<Merge<'a>, Error> {
        let mut parts = Vec::new();
        for mut trace in traces {
            let first = trace.next_io()?;
            parts.push((trace, first));
        }
        Ok(Merge { parts, tables: Tables::default(), origin: None })
    }

    /// The traces.
    pub fn traces(&self) -> impl Iterator<Item = &Trace<'a>> {
        self.parts.iter().map(|p| &p.0)
    }

    /// The time between the first I/Os of the traces that begin first and last; before anything is read.
    #[must_use]
    pub fn apart(&self) -> Nanos {
        let begins = self.parts.iter().filter_map(|p| p.1.map(|io| io.queued));
        let (low, high) = begins.fold((Nanos::MAX, 0), |(l, h), t| (l.min(t), h.max(t)));
        high.saturating_sub(low)
    }

    /// The next I/O; times count from the first of all.
    ///
    /// # Errors
    /// A trace cannot be read further.
    pub fn next_io(&mut self) -> Result<Option<Io>, Error> {
        let waiting = self.parts.iter_mut().filter(|p| p.1.is_some());
        let Some((trace, next)) = waiting.min_by_key(|p| p.1.map(|io| io.queued)) else {
            return Ok(None);
        };
        let Some(mut io) = next.take() else { return Ok(None) };
        *next = trace.next_io()?;
        io.disk = joined(io.disk, &trace.tables.disks, &mut self.tables.disks);
        io.task = joined(io.task, &trace.tables.tasks, &mut self.tables.tasks);
        let origin = *self.origin.get_or_insert(io.queued);
        crate::select::shift(&mut io, origin);
        Ok(Some(io))
    }
}
