//! A solid-state drive: parallel channels, one bus, a write cache that drains to the channels.

use std::collections::VecDeque;

use iosched_types::{Bytes, Nanos, Op};

use super::flash::{Channel, Dirty, Operation, Page, Slc, Target};
use crate::lanes::Lanes;
use crate::math::{ConstDiv, Rate, mix};
use crate::params::SsdParams;
use crate::{Command, Completion, Device};

const CMD: usize = 0;
const READ: usize = 1;
const PROGRAM: usize = 2;
const SLOW_PROGRAM: usize = 3;
const BUS: usize = 4;
const DRAIN: usize = 5;
const FLUSHED: usize = 6;
const FLUSH_READ: usize = 7;

/// Which commands a flush that is served alone lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// Everybody: there is no flush.
    Open,
    /// Everybody but another flush: one has come.
    Lead,
    /// None: this flush waits until nothing else is served.
    Closed(u32),
    /// None: the flush goes on.
    Flushing,
}

/// A block of the write cache in a used drive.
const BLOCK: Bytes = 4096;
const READ_FAST: usize = 8;
const READ_SLOW: usize = 9;
const BUS_IN: usize = 10;
const TRIMMED: usize = 11;

/// Keeps the kind of a page apart from its channel.
const PAGE_SEED: u64 = 0x70a6_e5ee_d000_0001;

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
    outer: VecDeque<Command>,
    events: Lanes<Event, 12>,
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
    flushes: VecDeque<(u32, u64)>,
    dirty: Dirty,
    slc: Slc,
    /// With `flush_alone`: which commands it lets in, how many are inside, and which wait outside.
    gate: Gate,
    inside: u64,
    held: VecDeque<u32>,
    /// Flushes begun and not over.
    flushing: u32,
    admitted: u64,
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
            outer: VecDeque::new(),
            events: Lanes::new(),
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
            flushes: VecDeque::new(),
            dirty: Dirty::default(),
            slc: Slc::new(p.slc, p.slc_fold_bw),
            gate: Gate::Open,
            inside: 0,
            held: VecDeque::new(),
            flushing: 0,
            admitted: 0,
            counters: SsdCounters::default(),
            p,
        }
    }

    /// Fills the write cache with blocks from all over the drive.
    pub fn fill_cache(&mut self) {
        let (block, blocks) = (BLOCK.min(self.p.stripe), (self.p.cap / BLOCK).max(1));
        for i in 0..self.p.cache / block {
            self.dirty.create();
            self.drain.push_back((mix(i) % blocks * BLOCK, block));
            self.used += block;
        }
        self.try_drain(0);
    }

    /// Fills the SLC cache.
    pub fn fill_slc(&mut self) {
        self.slc.fill();
    }

    #[inline]
    fn admit(&mut self, now: Nanos, c: Command) {
        self.admitted += 1;
        let slot = Slot {
            id: c.id,
            op: c.op,
            offset: c.offset,
            len: c.len,
            t_start: None,
            pieces: 0,
            cached: self.p.cache > 0 && !(c.fua && self.p.vcache),
            on_bus: false,
        };
        let index = if let Some(i) = self.free.pop() {
            self.slots[i as usize] = slot;
            i
        } else {
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        };
        self.events.push(CMD, now + self.p.cmd_ns, Event::Slot(index));
    }

    #[inline]
    fn complete(&mut self, now: Nanos, slot: u32, done: &mut Vec<Completion>) {
        let s = &self.slots[slot as usize];
        let op = s.op;
        done.push(Completion { id: s.id, t_start: s.t_start.unwrap_or(now), t_done: now });
        match op {
            Op::Read => self.counters.reads += 1,
            Op::Write => self.counters.writes += 1,
            Op::Flush => {
                self.counters.flushes += 1;
                self.flushing -= 1;
            }
            Op::Discard => self.counters.discards += 1,
        }
        self.free.push(slot);
        self.admitted -= 1;
        if self.p.flush_alone {
            self.leave(now, op);
        }
        if let Some(next) = self.outer.pop_front() {
            self.admit(now, next);
        }
    }

    /// ATA's commands that are not queued.
    fn is_alone(&self, op: Op) -> bool {
        op == Op::Flush || op == Op::Discard && self.p.trim_ns > 0
    }

    /// With `flush_alone`: whether a command may begin; otherwise it waits outside.
    fn enter(&mut self, now: Nanos, slot: u32) -> bool {
        let alone = self.is_alone(self.slots[slot as usize].op);
        match self.gate {
            Gate::Open | Gate::Lead if !alone => {
                self.inside += 1;
                return true;
            }
            Gate::Open => {
                self.gate = Gate::Lead;
                // No flush goes on, so the lane of their ends is empty. The same holds below.
                self.events.push(FLUSHED, now + self.p.flush_lead_ns, Event::Lead(slot));
            }
            _ => self.held.push_back(slot),
        }
        false
    }

    /// A command is over. A flush may be next, or all commands that waited for one.
    fn leave(&mut self, now: Nanos, op: Op) {
        if self.is_alone(op) {
            self.gate = Gate::Open;
            for slot in self.held.drain(..) {
                self.events.push(FLUSHED, now, Event::Again(slot));
            }
        } else {
            self.inside -= 1;
            self.flush_alone(now);
        }
    }

    /// Begins the flush that waits until the rest is over.
    fn flush_alone(&mut self, now: Nanos) {
        if let Gate::Closed(slot) = self.gate
            && self.inside == 0
        {
            self.gate = Gate::Flushing;
            if self.slots[slot as usize].op == Op::Discard {
                self.trim(now, slot);
            } else {
                self.begin_flush(now, slot);
            }
        }
    }

    /// The drive's table is changed by one trim at a time.
    fn trim(&mut self, now: Nanos, slot: u32) {
        if std::mem::replace(&mut self.trimming, true) {
            self.trims.push_back(slot);
            return;
        }
        self.slots[slot as usize].t_start = Some(now);
        self.events.push(TRIMMED, now + self.p.trim_ns, Event::Trimmed(slot));
    }

    fn begin_flush(&mut self, now: Nanos, slot: u32) {
        self.flushing += 1;
        self.flushes.push_back((slot, self.dirty.created()));
        self.check_flushes(now);
    }

    /// End of the piece that begins at `start`, and its channel.
    #[inline]
    fn piece(&self, start: Bytes, end: Bytes) -> (Bytes, usize) {
        let index = self.stripe.div(start);
        let next = (index + 1).saturating_mul(self.p.stripe);
        let place = if self.p.scatter { mix(index) } else { index };
        (next.min(end), self.chan_count.rem(place) as usize)
    }

    /// Which page of its cells holds the stripe at `start`.
    #[inline]
    fn page(&self, start: Bytes) -> Page {
        if self.p.rd_spread_ns == 0 {
            return Page::Middle;
        }
        match mix(self.stripe.div(start) ^ PAGE_SEED) % 3 {
            0 => Page::Fast,
            1 => Page::Middle,
            _ => Page::Slow,
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

    /// Splits a command at stripe boundaries and gives the pieces to their channels.
    fn enter_channels(&mut self, now: Nanos, slot: u32, target: Target) {
        let s = &self.slots[slot as usize];
        let (mut at, end) = (s.offset, s.offset + s.len);
        let last = if s.len == 0 { at } else { end - 1 };
        self.slots[slot as usize].pieces = self.stripe.div(last) - self.stripe.div(at) + 1;
        loop {
            let (next, channel) = self.piece(at, end);
            let op = Operation { bytes: next - at, page: self.page(at), target };
            let behind = self.p.rprio && matches!(target, Target::Write(_));
            self.channels[channel].push(op, behind);
            self.try_channel(now, channel);
            at = next;
            if at >= end {
                return;
            }
        }
    }

    #[inline]
    fn try_channel(&mut self, now: Nanos, channel: usize) {
        let c = &mut self.channels[channel];
        if c.busy {
            return;
        }
        let Some(op) = c.pop() else { return };
        c.busy = true;
        let event = Event::Channel(channel as u32, op);
        if let Target::Read(slot) = op.target {
            self.slots[slot as usize].t_start.get_or_insert(now);
            self.counters.flash_reads += 1;
            let (lane, time) = match op.page {
                _ if self.flushing > 0 && self.p.flush_rd_ns > 0 => {
                    (FLUSH_READ, self.p.flush_rd_ns)
                }
                Page::Fast => (READ_FAST, self.p.rd_ns.saturating_sub(self.p.rd_spread_ns)),
                Page::Middle => (READ, self.p.rd_ns),
                Page::Slow => (READ_SLOW, self.p.rd_ns + self.p.rd_spread_ns),
            };
            self.events.push(lane, now + time, event);
        } else if self.slc.begin(now, op.bytes) {
            self.counters.programs += 1;
            self.events.push(PROGRAM, now + self.p.wr_ns, event);
        } else {
            self.counters.slow_programs += 1;
            self.events.push(SLOW_PROGRAM, now + self.p.slc_full_wr_ns, event);
        }
    }

    fn channel_done(
        &mut self,
        now: Nanos,
        channel: usize,
        op: Operation,
        done: &mut Vec<Completion>,
    ) {
        self.channels[channel].busy = false;
        match op.target {
            Target::Read(slot) => self.transfer(now, Transfer { slot, bytes: op.bytes }),
            Target::Write(slot) => {
                self.slc.end(now);
                self.piece_done(now, slot, done);
            }
            Target::Cached(first, count) => {
                self.slc.end(now);
                self.used -= op.bytes;
                for piece in first..first + count {
                    self.dirty.mark_clean(piece);
                }
                self.check_flushes(now);
                self.try_write(now);
            }
        }
        self.try_channel(now, channel);
    }

    #[inline]
    fn piece_done(&mut self, now: Nanos, slot: u32, done: &mut Vec<Completion>) {
        let s = &mut self.slots[slot as usize];
        s.pieces -= 1;
        if s.pieces == 0 {
            self.complete(now, slot, done);
        }
    }

    /// The direction of the bus that a transfer needs: there is one for both unless it is full duplex.
    #[inline]
    fn way(&self, slot: u32) -> usize {
        usize::from(self.p.duplex && self.slots[slot as usize].op == Op::Write)
    }

    #[inline]
    fn transfer(&mut self, now: Nanos, transfer: Transfer) {
        let way = self.way(transfer.slot);
        self.bus[way].push_back(transfer);
        self.try_bus(now, way);
    }

    #[inline]
    fn try_bus(&mut self, now: Nanos, way: usize) {
        if self.bus_busy[way] {
            return;
        }
        let Some(transfer) = self.bus[way].pop_front() else { return };
        self.bus_busy[way] = true;
        let s = &mut self.slots[transfer.slot as usize];
        if s.op == Op::Write {
            s.t_start = Some(now);
        }
        // The first piece pays the command's own time. A write is one transfer.
        let command = if std::mem::replace(&mut s.on_bus, true) { 0 } else { self.p.bus_cmd_ns };
        let time = self.bus_rate.time(transfer.bytes) + command;
        self.counters.bus_ns += time;
        let lane = if way == 0 { BUS } else { BUS_IN };
        self.events.push(lane, now + time, Event::Bus(transfer));
    }

    fn bus_done(&mut self, now: Nanos, transfer: Transfer, done: &mut Vec<Completion>) {
        let slot = transfer.slot;
        let way = self.way(slot);
        self.bus_busy[way] = false;
        match self.slots[slot as usize].op {
            Op::Write if self.slots[slot as usize].cached => {
                self.cache_pieces(slot);
                self.complete(now, slot, done);
                self.try_drain(now);
            }
            Op::Write => self.enter_channels(now, slot, Target::Write(slot)),
            _ => self.piece_done(now, slot, done),
        }
        self.try_bus(now, way);
    }

    /// The data of a write is in the cache: its pieces wait to be programmed.
    fn cache_pieces(&mut self, slot: u32) {
        let s = &self.slots[slot as usize];
        let (mut at, end) = (s.offset, s.offset + s.len);
        while at < end {
            let (next, _) = self.piece(at, end);
            if self.drain.is_empty() {
                self.drain_first = self.dirty.created();
            }
            self.dirty.create();
            self.drain.push_back((at, next - at));
            at = next;
        }
    }

    #[inline]
    fn try_write(&mut self, now: Nanos) {
        while let Some(slot) = self.writes.front().copied() {
            let len = self.slots[slot as usize].len;
            if self.used != 0 && self.used + len > self.p.cache {
                return;
            }
            self.used += len;
            self.writes.pop_front();
            self.transfer(now, Transfer { slot, bytes: len });
        }
    }

    #[inline]
    fn try_drain(&mut self, now: Nanos) {
        if !self.drain_pending && !self.drain.is_empty() {
            self.drain_pending = true;
            self.events.push(DRAIN, now.max(self.drain_next), Event::Drain);
        }
    }

    fn drain(&mut self, now: Nanos) {
        self.drain_pending = false;
        let Some((at, mut bytes)) = self.drain.pop_front() else { return };
        let (_, mut channel) = self.piece(at, at + bytes);
        let mut count = 1;
        if self.p.log {
            while let Some((_, more)) = self.drain.front().filter(|m| bytes + m.1 <= self.p.stripe)
            {
                bytes += more;
                count += 1;
                self.drain.pop_front();
            }
            channel = self.chan_count.rem(self.drain_channel) as usize;
            self.drain_channel += 1;
        }
        let target = Target::Cached(self.drain_first, count);
        self.drain_first += count;
        self.drain_next = now + self.drain_rate.time(bytes);
        self.channels[channel].push(Operation { bytes, page: Page::Middle, target }, self.p.rprio);
        self.try_channel(now, channel);
        self.try_drain(now);
    }

    #[inline]
    fn check_flushes(&mut self, now: Nanos) {
        while let Some((slot, _)) =
            self.flushes.front().filter(|f| self.dirty.all_clean(f.1)).copied()
        {
            self.flushes.pop_front();
            self.slots[slot as usize].t_start = Some(now);
            self.events.push(FLUSHED, now + self.p.flush_ns, Event::Slot(slot));
        }
    }
}

impl Device for Ssd {
    fn capacity(&self) -> Bytes {
        self.p.cap
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        if self.p.depth != 0 && self.admitted >= self.p.depth {
            self.outer.push_back(command);
        } else {
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
        self.admitted as usize + self.outer.len()
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
