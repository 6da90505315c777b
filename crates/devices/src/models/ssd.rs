//! A solid-state drive: parallel channels, one bus, a write cache that drains to the channels.

mod bus;
mod cache;
mod channels;
mod gate;

use std::collections::VecDeque;

use iosched_types::{Bytes, Nanos, Op};

use super::admission::Admission;
use super::flash::{Channel, Dirty, Operation, Slc, Target};
use crate::lanes::Lanes;
use crate::math::{ConstDiv, Rate};
use crate::params::SsdParams;
use crate::{Command, Completion, Device};
use gate::Gate;

// Lanes of events that come in the order of their times.
const CMD: usize = 0;
const READ: usize = 1;
const PROGRAM: usize = 2;
const SLOW_PROGRAM: usize = 3;
const BUS: usize = 4;
const DRAIN: usize = 5;
const FLUSHED: usize = 6;
const FLUSH_READ: usize = 7;
const READ_FAST: usize = 8;
const READ_SLOW: usize = 9;
const BUS_IN: usize = 10;
const TRIMMED: usize = 11;
const FORCED: usize = 12;

/// What happens at an event: a slot or a channel, and the operation that ends there.
#[derive(Clone, Copy, Debug)]
enum Event {
    Slot(u32),
    Channel(u32, Operation),
    Bus(Transfer),
    Trimmed(u32),
    Drain,
    /// The time after which a flush lets no command in.
    Lead(u32),
    /// A command that waited for a flush.
    Again(u32),
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    id: u32,
    op: Op,
    offset: Bytes,
    len: Bytes,
    t_start: Option<Nanos>,
    pieces: u64,
    /// A write that completes when it is in the write cache.
    cached: bool,
    /// A write that is noted on flash before it completes, as a flush would.
    forced: bool,
    /// It has been on the bus.
    on_bus: bool,
}

/// A transfer on the bus: a piece of a read, or a whole write.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    slot: u32,
    bytes: Bytes,
}

#[derive(Debug, Default)]
struct SsdCounters {
    reads: u64,
    writes: u64,
    flushes: u64,
    discards: u64,
    flash_reads: u64,
    programs: u64,
    slow_programs: u64,
    bus_ns: u64,
}

/// The device.
#[derive(Debug)]
pub struct Ssd {
    p: SsdParams,
    stripe: ConstDiv,
    chan_count: ConstDiv,
    bus_rate: Rate,
    drain_rate: Rate,
    admission: Admission<Command>,
    events: Lanes<Event, 13>,
    /// When the controller is free.
    controller: Nanos,
    slots: Vec<Slot>,
    free: Vec<u32>,
    channels: Vec<Channel>,
    /// Towards the host and, with `duplex`, towards the drive.
    bus: [VecDeque<Transfer>; 2],
    bus_busy: [bool; 2],
    /// Trims that wait for the one under way.
    trims: VecDeque<u32>,
    trimming: bool,
    writes: VecDeque<u32>,
    used: Bytes,
    drain: VecDeque<(Bytes, Bytes)>,
    drain_first: u64,
    drain_pending: bool,
    drain_next: Nanos,
    drain_channel: u64,
    /// With `gather`: programs of the cache's data that each channel has or will have.
    programs: Vec<u32>,
    flushes: VecDeque<(u32, u64)>,
    dirty: Dirty,
    slc: Slc,
    /// With `flush_alone`: which commands it lets in, how many are inside, and which wait outside.
    gate: Gate,
    inside: u64,
    held: VecDeque<u32>,
    /// Flushes begun and not over.
    flushing: u32,
    /// Something was written that no flush has noted, and when the last of the flushes ends.
    unnoted: bool,
    flushed_at: Nanos,
    counters: SsdCounters,
}

impl Ssd {
    /// A drive at rest with empty caches.
    #[must_use]
    pub fn new(p: SsdParams) -> Self {
        Ssd {
            stripe: ConstDiv::new(p.stripe),
            chan_count: ConstDiv::new(p.chans),
            bus_rate: Rate::new(p.bus_bw),
            drain_rate: Rate::new(p.drain_bw),
            admission: Admission::new(p.depth),
            events: Lanes::new(),
            controller: 0,
            slots: Vec::new(),
            free: Vec::new(),
            channels: (0..p.chans).map(|_| Channel::default()).collect(),
            bus: [VecDeque::new(), VecDeque::new()],
            bus_busy: [false; 2],
            trims: VecDeque::new(),
            trimming: false,
            writes: VecDeque::new(),
            used: 0,
            drain: VecDeque::new(),
            drain_first: 0,
            drain_pending: false,
            drain_next: 0,
            drain_channel: 0,
            programs: vec![0; p.chans as usize],
            flushes: VecDeque::new(),
            dirty: Dirty::default(),
            slc: Slc::new(p.slc, p.slc_fold_bw),
            gate: Gate::Open,
            inside: 0,
            held: VecDeque::new(),
            flushing: 0,
            unnoted: false,
            flushed_at: 0,
            counters: SsdCounters::default(),
            p,
        }
    }

    /// Fills the SLC cache.
    pub fn fill_slc(&mut self) {
        self.slc.fill();
    }

    #[inline]
    fn admit(&mut self, now: Nanos, c: Command) {
        let through = c.fua && self.p.vcache;
        let slot = Slot {
            id: c.id,
            op: c.op,
            offset: c.offset,
            len: c.len,
            t_start: None,
            pieces: 0,
            cached: self.p.cache > 0 && !through,
            forced: through && !self.p.plain_sync && self.p.flush_ns > 0,
            on_bus: false,
        };
        let index = if let Some(i) = self.free.pop() {
            self.slots[i as usize] = slot;
            i
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        };
        let taken = if self.p.ctl_ns == 0 {
            now
        } else {
            self.controller = self.controller.max(now) + self.p.ctl_ns;
            self.controller
        };
        self.events.push(CMD, taken + self.p.cmd_ns, Event::Slot(index));
    }

    #[inline]
    fn complete(&mut self, now: Nanos, slot: u32, done: &mut Vec<Completion>) {
        let s = &self.slots[slot as usize];
        let (op, forced) = (s.op, s.forced);
        done.push(Completion { id: s.id, t_start: s.t_start.unwrap_or(now), t_done: now });
        match op {
            Op::Read => self.counters.reads += 1,
            Op::Write => {
                self.counters.writes += 1;
                self.unnoted |= !forced;
            }
            Op::Flush => {
                self.counters.flushes += 1;
                self.flushing -= 1;
            }
            Op::Discard => self.counters.discards += 1,
        }
        self.free.push(slot);
        if self.p.flush_alone {
            self.leave(now, op);
        }
        if let Some(next) = self.admission.leave() {
            self.admit(now, next);
        }
    }

    fn command(&mut self, now: Nanos, slot: u32, done: &mut Vec<Completion>) {
        if self.p.flush_alone && !self.enter(now, slot) {
            return;
        }
        match self.slots[slot as usize].op {
            Op::Read => self.enter_channels(now, slot, Target::Read(slot)),
            Op::Write if self.slots[slot as usize].cached => {
                self.writes.push_back(slot);
                self.try_write(now);
            }
            Op::Write => {
                let bytes = self.slots[slot as usize].len;
                self.transfer(now, Transfer { slot, bytes });
            }
            Op::Flush => self.begin_flush(now, slot),
            Op::Discard if self.p.trim_ns > 0 => self.trim(now, slot),
            Op::Discard => self.complete(now, slot, done),
        }
    }
}

impl Device for Ssd {
    fn capacity(&self) -> Bytes {
        self.p.cap
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        if let Some(command) = self.admission.enter(command) {
            self.admit(now, command);
        }
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.events.next_time()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some((t, lane, event)) = self.events.pop_due(now) {
            match event {
                Event::Slot(slot) if lane == CMD => self.command(t, slot, done),
                Event::Again(slot) => self.command(t, slot, done),
                Event::Lead(slot) => {
                    self.gate = Gate::Closed(slot);
                    self.flush_alone(t);
                }
                Event::Slot(slot) => self.complete(t, slot, done),
                Event::Channel(channel, op) => self.channel_done(t, channel as usize, op, done),
                Event::Trimmed(slot) => {
                    self.trimming = false;
                    self.complete(t, slot, done);
                    if let Some(next) = self.trims.pop_front() {
                        self.trim(t, next);
                    }
                }
                Event::Bus(transfer) => self.bus_done(t, transfer, done),
                Event::Drain => self.drain(t),
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.admission.in_flight()
    }

    fn caches(&self) -> Vec<(&'static str, Bytes, Bytes)> {
        let (used, size) = self.slc.fill_level();
        vec![("write cache", self.used, self.p.cache), ("SLC cache", used, size)]
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = &self.counters;
        vec![
            ("reads", c.reads),
            ("writes", c.writes),
            ("flushes", c.flushes),
            ("discards", c.discards),
            ("flash_reads", c.flash_reads),
            ("programs", c.programs),
            ("slow_programs", c.slow_programs),
            ("bus_ns", c.bus_ns),
        ]
    }
}
