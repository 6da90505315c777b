//! Parts of a trace, and traces without names.

use std::collections::BTreeMap;

use iosched_types::{Bytes, Nanos, Op};

use crate::event::Io;
use crate::trace::Tables;

/// Which I/Os are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Earliest arrival.
    pub from: Option<Nanos>,
    /// First arrival that is too late.
    pub to: Option<Nanos>,
    /// Operations; empty: all.
    pub ops: Vec<Op>,
    /// Names of commands, or pids; empty: all.
    pub tasks: Vec<String>,
    /// First byte and the byte behind the last: I/Os that touch it are wanted.
    pub range: Option<(Bytes, Bytes)>,
}

impl Filter {
    /// Whether an I/O is wanted.
    #[must_use]
    pub fn passes(&self, io: &Io, tables: &Tables) -> bool {
        let name = tables.tasks.text(io.task);
        let task = |t: &String| t == name || t.parse::<u32>().is_ok_and(|pid| pid == io.pid);
        let touches =
            |(from, to): (Bytes, Bytes)| io.offset < to && io.offset + io.len.max(1) > from;
        self.from.is_none_or(|t| io.queued >= t)
            && self.to.is_none_or(|t| io.queued < t)
            && (self.ops.is_empty() || self.ops.contains(&io.op))
            && (self.tasks.is_empty() || self.tasks.iter().any(task))
            && self.range.is_none_or(touches)
    }

    /// Whether no later I/O can pass.
    #[must_use]
    pub fn is_over(&self, io: &Io) -> bool {
        // Those that could not be sorted in come a little late.
        self.to.is_some_and(|t| io.queued > t.saturating_add(60_000_000_000))
    }
}

/// Moves times so that the cut begins at zero.
pub fn shift(io: &mut Io, by: Nanos) {
    io.queued = io.queued.saturating_sub(by);
    io.issued = io.issued.map(|t| t.saturating_sub(by));
    io.done = io.done.map(|t| t.saturating_sub(by));
}

/// Takes names out of a trace: tasks become `task1` …, pids 1 …, disks `disk1` …. Places and times stay: they are what
/// the trace is about.
#[derive(Debug, Default)]
pub struct Anonymous {
    pids: BTreeMap<u32, u32>,
    tasks: BTreeMap<u32, u32>,
    disks: BTreeMap<u32, u32>,
    /// The new names.
    pub tables: Tables,
}

/// Numbers in order of appearance.
fn number(of: &mut BTreeMap<u32, u32>, key: u32) -> u32 {
    let next = of.len() as u32 + 1;
    *of.entry(key).or_insert(next)
}

impl Anonymous {
    /// Takes the names out of an I/O.
    pub fn hide(&mut self, io: &mut Io) {
        if io.pid != 0 {
            io.pid = number(&mut self.pids, io.pid);
        }
        if io.task.0 != 0 {
            let n = number(&mut self.tasks, io.task.0);
            io.task = self.tables.tasks.of(&format!("task{n}"));
        }
        let n = number(&mut self.disks, io.disk.0);
        io.disk = self.tables.disks.of(&format!("disk{n}"));
    }
}
