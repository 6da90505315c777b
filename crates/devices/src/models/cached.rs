//! A disk with a volatile write cache.
//!
//! A write completes when its data is in the cache. The arm writes the data to the medium in the order of shortest
//! positioning (among the `destage_window` oldest extents) when it has nothing else to do. Once the cache is full to a
//! threshold and writes come, the arm does so before reads: `destage_run` extents for each command that waits, unless the
//! oldest has waited `age_ns`. With `ctl_ns` the controller takes one command after the other before arm, cache and bus know of it.
//! A flush is served when it is the oldest command waiting, like the non-queued ATA FLUSH CACHE. The
//! arm then only empties the cache, and no write enters meanwhile. Then the flush takes its overhead and, where anything was written
//! since the last one, `flush_ns`: the disk notes that at a place of its own, for which it waits up to a turn.

use std::collections::VecDeque;

use iosched_types::{Bytes, Nanos, Op, SECTOR, Sector};

use super::admission::Admission;
use super::arm::Arm;
use super::dirty::{DirtyMap, Extent};
use crate::lanes::Lanes;
use crate::leftover::{Writer, extents};
use crate::params::HddParams;
use crate::{Command, Completion, Device};

/// What the arm is doing.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The controller has taken a command, which came at that time.
    Taken(Command, Nanos),
    /// Serving a command.
    Served(Completion),
    /// Writing dirty data.
    Destaged,
    /// The bus passes the data of a cached write or a cache hit.
    Passed(Pass),
}

/// A transfer between host and cache.
#[derive(Clone, Copy, Debug)]
struct Pass {
    id: u32,
    t_start: Nanos,
    extent: Extent,
    len: Bytes,
    write: bool,
}

const ARM: usize = 0;
const BUS: usize = 1;
const CONTROLLER: usize = 2;

/// The device.
#[derive(Debug)]
pub struct CachedHdd {
    p: HddParams,
    arm: Arm,
    admission: Admission<(Command, Nanos)>,
    events: Lanes<Event, 3>,
    /// When the controller is free.
    controller: Nanos,
    arm_busy: bool,
    /// A flush that is emptying the cache: since when.
    flushing: Option<Nanos>,
    bus: VecDeque<Pass>,
    bus_busy: bool,
    /// Writes waiting for room in the cache.
    writes: VecDeque<Pass>,
    dirty: DirtyMap,
    /// Bytes promised to writes on the bus, and bytes on their way to the medium.
    reserved: Bytes,
    destaging: Bytes,
    /// A write entered the cache since the last command was served.
    written: bool,
    /// Something was written that no flush has noted.
    unnoted: bool,
    cached_writes: u64,
    hits: u64,
    destages: u64,
    /// Extents destaged since the last command was served.
    run: u64,
    served: u64,
    flushes: u64,
}

impl CachedHdd {
    /// A disk at rest with an empty cache.
    #[must_use]
    pub fn new(p: HddParams) -> Self {
        CachedHdd {
            // How long a flush takes is known here.
            arm: Arm::new(&HddParams { flush_ns: 0, ..p.clone() }),
            admission: Admission::new(p.depth),
            p,
            events: Lanes::new(),
            controller: 0,
            arm_busy: false,
            flushing: None,
            bus: VecDeque::new(),
            bus_busy: false,
            writes: VecDeque::new(),
            dirty: DirtyMap::default(),
            reserved: 0,
            destaging: 0,
            written: false,
            unnoted: false,
            cached_writes: 0,
            hits: 0,
            destages: 0,
            run: 0,
            served: 0,
            flushes: 0,
        }
    }

    /// Fills the write cache with what these writers leave.
    pub fn fill_cache(&mut self, writers: &[Writer]) {
        for (start, sectors) in extents(writers, self.p.cap, self.p.wcache) {
            self.dirty.insert(Extent { start, end: start + sectors });
        }
        self.unnoted = true;
        self.kick(0);
    }

    fn used(&self) -> Bytes {
        self.dirty.sectors() * SECTOR + self.reserved + self.destaging
    }

    fn admit(&mut self, now: Nanos, c: Command, t_arr: Nanos) {
        if self.p.ctl_ns > 0 {
            self.controller = self.controller.max(now) + self.p.ctl_ns;
            self.events.push(CONTROLLER, self.controller, Event::Taken(c, t_arr));
        } else {
            self.enter(now, c, t_arr);
        }
    }

    /// Arm, cache and bus hear of a command.
    fn enter(&mut self, now: Nanos, c: Command, t_arr: Nanos) {
        let end = (c.offset + c.len).div_ceil(SECTOR);
        let extent = Extent { start: c.offset / SECTOR, end };
        let write = c.op == Op::Write;
        let pass = Pass { id: c.id, t_start: now, extent, len: c.len, write };
        match c.op {
            Op::Write if !c.fua => self.writes.push_back(pass),
            Op::Read if self.dirty.covers(extent) => {
                self.hits += 1;
                self.bus.push_back(pass);
            }
            _ => self.arm.push(c, t_arr),
        }
        self.kick(now);
    }

    fn kick(&mut self, now: Nanos) {
        if self.flushing.is_none() {
            self.accept_writes();
        }
        self.kick_bus(now);
        self.kick_arm(now);
    }

    fn accept_writes(&mut self) {
        while let Some(w) = self.writes.front() {
            if self.used() != 0 && self.used() + w.len > self.p.wcache {
                return;
            }
            self.reserved += w.len;
            self.written = true;
            self.bus.push_back(*w);
            self.writes.pop_front();
        }
    }

    fn kick_bus(&mut self, now: Nanos) {
        if self.bus_busy {
            return;
        }
        let Some(mut pass) = self.bus.pop_front() else { return };
        self.bus_busy = true;
        pass.t_start = now;
        let time = self.p.ovh_ns + self.arm.mech.bus_time(pass.len);
        self.events.push(BUS, now + time, Event::Passed(pass));
    }

    fn kick_arm(&mut self, now: Nanos) {
        if self.arm_busy {
            return;
        }
        if self.arm.flush_is_next() && self.flushing.is_none() {
            self.flushing = Some(now);
        }
        let full = u128::from(self.used()) * 100
            >= u128::from(self.p.wcache) * u128::from(self.p.wcache_high);
        let their_turn = self.p.destage_run > 0 && self.run >= self.p.destage_run;
        // A cache that only reads find full has time.
        let needed = full && self.written || !self.writes.is_empty();
        let pressed = needed && !their_turn && !self.arm.overdue(now);
        let first = self.flushing.is_some() || pressed;
        if (first || self.arm.is_empty()) && self.destage(now) {
            return;
        }
        // A flush waits for data that is still on its way into the cache.
        if self.arm.is_empty() || (self.flushing.is_some() && self.reserved > 0) {
            return;
        }
        (self.run, self.written) = (0, false);
        let a = self.arm.serve(now);
        let mut service = a.service;
        if a.op == Op::Flush {
            service = self.note(now);
            self.arm.count.busy_ns += service;
        }
        if a.op == Op::Write {
            self.dirty.remove(Extent { start: a.sector, end: a.end });
        }
        let t_start = if a.op == Op::Flush { self.flushing.unwrap_or(now) } else { now };
        self.served += u64::from(a.op != Op::Flush);
        self.flushes += u64::from(a.op == Op::Flush);
        let served = Completion { id: a.id, t_start, t_done: now + service };
        self.arm_busy = true;
        self.events.push(ARM, now + service, Event::Served(served));
    }

    /// Time of a flush that finds the cache empty. `flush_ns` is a mean: half a turn of it is waiting for the place of the note,
    /// which takes from nothing to a turn.
    fn note(&mut self, now: Nanos) -> Nanos {
        if self.p.flush_ns == 0 || !std::mem::take(&mut self.unnoted) {
            return self.p.ovh_ns;
        }
        let turn = self.p.rev_ns;
        let there = self.p.ovh_ns + self.p.flush_ns.saturating_sub(turn / 2);
        there + (turn - (now + there) % turn) % turn
    }

    /// Begins to write the nearest dirty extent, at most one turn of it; false if nothing is dirty.
    fn destage(&mut self, now: Nanos) -> bool {
        let window = match self.p.destage_window {
            0 => self.p.window,
            n => n,
        } as usize;
        let Some((e, pos)) = self.dirty.nearest_of_oldest(&self.arm.mech, now, window) else {
            return false;
        };
        let track = self.arm.mech.track(e.start);
        let extent = Extent { start: e.start, end: e.end.min(e.start + track) };
        let len = (extent.end - extent.start) * SECTOR;
        self.dirty.remove(extent);
        self.destaging = len;
        self.destages += 1;
        self.run += 1;
        let service = self.arm.move_to(extent.start, len, pos);
        self.arm.mech.leave(extent.end, now + service, false);
        self.arm.count.busy_ns += service;
        self.arm_busy = true;
        self.events.push(ARM, now + service, Event::Destaged);
        true
    }

    fn complete(&mut self, now: Nanos, c: Completion, done: &mut Vec<Completion>) {
        done.push(c);
        if let Some((next, t_arr)) = self.admission.leave() {
            self.admit(now, next, t_arr);
        }
    }
}

impl Device for CachedHdd {
    fn capacity(&self) -> Bytes {
        self.p.cap
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        if let Some((command, t_arr)) = self.admission.enter((command, now)) {
            self.admit(now, command, t_arr);
        }
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        self.events.next_time()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some((t, _, event)) = self.events.pop_due(now) {
            match event {
                Event::Taken(c, t_arr) => self.enter(t, c, t_arr),
                Event::Served(c) => {
                    self.arm_busy = false;
                    // Nothing else is served during a flush, so this command was the flush.
                    self.flushing = None;
                    self.complete(t, c, done);
                }
                Event::Destaged => {
                    self.arm_busy = false;
                    self.destaging = 0;
                }
                Event::Passed(p) => {
                    self.bus_busy = false;
                    if p.write {
                        self.reserved -= p.len;
                        self.dirty.insert(p.extent);
                        self.cached_writes += 1;
                        self.unnoted = true;
                    }
                    self.complete(t, Completion { id: p.id, t_start: p.t_start, t_done: t }, done);
                }
            }
            self.kick(t);
        }
    }

    fn in_flight(&self) -> usize {
        self.admission.in_flight()
    }

    fn position(&self) -> Sector {
        self.arm.mech.head
    }

    fn caches(&self) -> Vec<(&'static str, Bytes, Bytes)> {
        vec![("write cache", self.used(), self.p.wcache)]
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = &self.arm.count;
        vec![
            ("served", self.served),
            ("cached_writes", self.cached_writes),
            ("cache_hits", self.hits),
            ("destages", self.destages),
            ("dirty_sectors", self.dirty.sectors()),
            ("sequential", c.sequential),
            ("seeks", c.seeks),
            ("travel_sectors", c.travel),
            ("flushes", self.flushes),
            ("busy_ns", c.busy_ns),
            ("position_ns", c.position_ns),
        ]
    }
}
