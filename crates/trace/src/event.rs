//! Events and I/Os.

use iosched_types::{Bytes, Flags, IoPrio, Nanos, Op, Sector};

use crate::names::Name;
use crate::tally::Tally;

/// What happened to a bio or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A bio reached the block layer.
    Queue,
    /// A request went to the scheduler.
    Insert,
    /// A request went to the driver.
    Issue,
    /// A request went back to the scheduler.
    Requeue,
    /// A request is done.
    Complete,
    /// A bio was moved here, from a partition or a stacked device.
    Remap {
        /// The device it was on.
        disk: Name,
        /// Its sector there.
        sector: Sector,
        /// Whether the numbers of both say that it was a partition of this disk, not a device above it.
        partition: bool,
    },
}

/// Whether a bio of a device of one major number moves from a partition when it moves to one of another. Linux gives
/// drivers with a number of their own (below 240) the minors of their partitions, except md (9); further partitions
/// are of 259. Of the numbers that are given out at start (240 to 254) device mapper may be one, and its devices lie
/// on one another.
pub(crate) fn is_partition(from: u32, to: u32) -> bool {
    from == 259 || (from == to && from != 9 && !(240..=254).contains(&from))
}

/// One event of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the recording's clock.
    pub at: Nanos,
    /// What happened.
    pub action: Action,
    /// Operation.
    pub op: Op,
    /// Its flags.
    pub flags: Flags,
    /// The device, in the trace's names of disks.
    pub disk: Name,
    /// First sector.
    pub sector: Sector,
    /// Sectors; 0 for an empty flush.
    pub sectors: u64,
    /// Thread that was running.
    pub pid: u32,
    /// Its command name, in the trace's names of tasks.
    pub task: Name,
    /// I/O priority; class none where the event has none.
    pub prio: IoPrio,
    /// CPU.
    pub cpu: u16,
}

/// One I/O: a bio with its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// When it reached the block layer. From [`Trace`](crate::Trace) on: from the first record of the trace.
    pub queued: Nanos,
    /// When its first request went to the driver.
    pub issued: Option<Nanos>,
    /// When its last part was done; `None` where the trace does not say.
    pub done: Option<Nanos>,
    /// Operation.
    pub op: Op,
    /// Its flags.
    pub flags: Flags,
    /// The device.
    pub disk: Name,
    /// First byte.
    pub offset: Bytes,
    /// Length in bytes; 0 for a flush.
    pub len: Bytes,
    /// Thread; 0 when unknown.
    pub pid: u32,
    /// Its command name.
    pub task: Name,
    /// I/O priority; class none when unknown.
    pub prio: IoPrio,
    /// CPU.
    pub cpu: u16,
}

impl Io {
    /// An I/O of which only this is known.
    #[must_use]
    pub fn new(queued: Nanos, op: Op, disk: Name, offset: Bytes, len: Bytes) -> Io {
        Io {
            queued,
            issued: None,
            done: None,
            op,
            flags: Flags::NONE,
            disk,
            offset,
            len,
            pid: 0,
            task: Name(0),
            prio: IoPrio::default(),
            cpu: 0,
        }
    }

    /// With times from a beginning on. Clocks of two CPUs may differ: a time before the one that it follows says
    /// nothing, and is counted.
    pub(crate) fn counted_from(mut self, origin: Nanos, tally: &mut Tally) -> Io {
        let issued = self.issued.filter(|t| *t >= self.queued);
        let done = self.done.filter(|t| *t >= issued.unwrap_or(self.queued));
        if (issued, done) != (self.issued, self.done) {
            tally.backwards += 1;
        }
        // Of I/Os that could not be sorted in, some arrived before the first.
        let after = |t: Nanos| t.saturating_sub(origin);
        (self.queued, self.issued, self.done) =
            (after(self.queued), issued.map(after), done.map(after));
        self
    }

    /// From arrival to completion.
    #[must_use]
    pub fn latency(&self) -> Option<Nanos> {
        self.done.map(|d| d.saturating_sub(self.queued))
    }
}

/// What a reader finds: formats of events give events, formats of whole I/Os give I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event, still to be paired.
    Event(Event),
    /// An I/O.
    Io(Io),
    /// Events were lost up to this time.
    Gap(Nanos),
}

impl Item {
    /// Its time by the clock of the source.
    #[must_use]
    pub fn at(&self) -> Nanos {
        match self {
            Item::Event(e) => e.at,
            Item::Io(io) => io.queued,
            Item::Gap(at) => *at,
        }
    }
}
