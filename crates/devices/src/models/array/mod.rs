//! An array: controllers with a mirrored, battery-backed cache and links to the host, in front of disks in stripes.
//!
//! A LUN of a SAN is one, and a RAID controller with a battery. Commands pass servers that take one at a time: the
//! controller's time for a command, the link of their path, the copy to the partner. Writes end in the cache, which is
//! written out by rows of the layout ([`destage`]). Reads come from the caches or the legs, with read-ahead ([`reads`]).

mod cache;
mod destage;
mod layout;
mod reads;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use iosched_types::{Bytes, Nanos, Op};

use self::cache::{Dirty, ReadCache};
use self::destage::Row;
use self::layout::Layout;
use self::reads::{Streams, UnderWay};
use super::Hdd;
use crate::math::Rate;
use crate::params::ArrayParams;
use crate::{Command, Completion, Device};

/// An array that had no command for so long writes its cache out.
const IDLE: Nanos = 1_000_000_000;

/// A place among the commands under way.
type Slot = u32;

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The controller has looked at the command.
    Commanded(Slot),
    /// A write's data are in the controller.
    Linked(Slot),
    /// They are at the partner, too.
    Mirrored(Slot),
    /// The command is done.
    Done(Slot),
    /// The array has been idle, unless a command came meanwhile.
    Idle,
}

/// A server that takes one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Server {
    free_at: Nanos,
}

impl Server {
    /// When work of `ns` that arrives at `now` is done.
    fn serve(&mut self, now: Nanos, ns: Nanos) -> Nanos {
        self.free_at = self.free_at.max(now) + ns;
        self.free_at
    }
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Host {
    command: Command,
    path: usize,
    t_start: Nanos,
    /// Bytes of the cache that a write has reserved.
    reserved: Bytes,
    /// Parts of a read that are not there yet, or rows of a write that goes through.
    missing: u32,
}

/// Whom a leg works for.
#[derive(Clone, Copy, Debug)]
enum LegWork {
    /// Fills an element for reads.
    Fill {
        /// Which: the number of the entry under way.
        fill: u64,
    },
    /// A step of a row that is written out.
    Row {
        /// Which of those under way.
        at: usize,
    },
}

/// The device.
#[derive(Debug)]
pub struct Array {
    p: ArrayParams,
    layout: Layout,
    legs: Vec<Hdd>,
    /// Commands that a leg has.
    at_leg: Vec<u32>,
    work: Vec<Option<LegWork>>,
    free_work: Vec<u32>,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    created: u64,
    hosts: Vec<Option<Host>>,
    free_hosts: Vec<Slot>,
    outer: VecDeque<Command>,
    accepted: u64,
    /// Commands in flight on each path.
    on_path: Vec<u64>,
    flying: usize,
    /// When the last command came, and whether somebody looks at it later.
    last: Nanos,
    watched: bool,
    controller: Server,
    mirror: Server,
    outbound: Vec<Server>,
    inbound: Vec<Server>,
    link: Rate,
    mirror_rate: Rate,
    dirty: Dirty,
    /// Writes that wait for room in the cache.
    space: VecDeque<Slot>,
    cleaning: bool,
    idle: bool,
    /// Rows of each run that are not written out yet.
    runs: Vec<u64>,
    rows: Vec<Option<Row>>,
    free_rows: Vec<usize>,
    cursor: u64,
    /// Writes that go through, by the row that they wait for.
    through: BTreeMap<u64, Vec<Slot>>,
    read: ReadCache,
    under_way: UnderWay,
    streams: Streams,
    scratch: Vec<Completion>,
    served: u64,
    hits: u64,
    waits_for_space: u64,
    full_rows: u64,
    partial_rows: u64,
    leg_reads: u64,
    leg_writes: u64,
}

impl Array {
    /// An array at rest with empty caches.
    #[must_use]
    pub fn new(p: ArrayParams) -> Self {
        let leg = p.leg();
        let paths = p.paths as usize;
        let lines = (p.rcache / p.el) as usize;
        Array {
            layout: Layout::new(&p),
            legs: (0..p.legs).map(|_| Hdd::new(&leg)).collect(),
            at_leg: vec![0; p.legs as usize],
            work: Vec::new(),
            free_work: Vec::new(),
            events: BinaryHeap::new(),
            created: 0,
            hosts: Vec::new(),
            free_hosts: Vec::new(),
            outer: VecDeque::new(),
            accepted: 0,
            on_path: vec![0; paths],
            flying: 0,
            last: 0,
            watched: false,
            controller: Server::default(),
            mirror: Server::default(),
            outbound: vec![Server::default(); paths],
            inbound: vec![Server::default(); paths],
            link: Rate::new(p.link_bw),
            mirror_rate: Rate::new(p.mirror_bw),
            dirty: Dirty::new(p.el),
            space: VecDeque::new(),
            cleaning: false,
            idle: false,
            runs: vec![0; p.dpar as usize],
            rows: Vec::new(),
            free_rows: Vec::new(),
            cursor: 0,
            through: BTreeMap::new(),
            read: ReadCache::new(lines),
            under_way: UnderWay::default(),
            streams: Streams::new(p.ra_tab as usize),
            scratch: Vec::new(),
            served: 0,
            hits: 0,
            waits_for_space: 0,
            full_rows: 0,
            partial_rows: 0,
            leg_reads: 0,
            leg_writes: 0,
            p,
        }
    }

    fn at(&mut self, time: Nanos, event: Event) {
        self.events.push(Reverse((time, self.created, event)));
        self.created += 1;
    }

    /// The path of the next command. It changes after so many commands, whether the path is full or not.
    fn next_path(&self) -> usize {
        ((self.accepted / self.p.rr) % self.p.paths) as usize
    }

    fn admit(&mut self, now: Nanos, command: Command) {
        let path = self.next_path();
        self.accepted += 1;
        self.on_path[path] += 1;
        let host = Host { command, path, t_start: now, reserved: 0, missing: 0 };
        let slot = match self.free_hosts.pop() {
            Some(slot) => {
                self.hosts[slot as usize] = Some(host);
                slot
            }
            None => {
                self.hosts.push(Some(host));
                self.hosts.len() as Slot - 1
            }
        };
        self.flying += 1;
        self.idle = false;
        self.last = now;
        if !std::mem::replace(&mut self.watched, true) {
            self.at(now + IDLE, Event::Idle);
        }
        match command.op {
            Op::Read => {
                let t = self.controller.serve(now, self.p.cmd_ns);
                self.at(t, Event::Commanded(slot));
            }
            Op::Write => {
                let t = self.controller.serve(now, self.p.cmdw_ns);
                self.at(t, Event::Commanded(slot));
            }
            // The battery makes the cache durable.
            Op::Flush => self.at(now + self.p.cmd_ns + self.p.hit_ns, Event::Done(slot)),
            Op::Discard => self.at(now + self.p.cmd_ns, Event::Commanded(slot)),
        }
    }

    fn host(&mut self, slot: Slot) -> &mut Host {
        self.hosts[slot as usize].as_mut().expect("a slot in use has a command")
    }

    fn commanded(&mut self, now: Nanos, slot: Slot) {
        let command = self.host(slot).command;
        match command.op {
            Op::Read => self.look(now, slot, command),
            Op::Discard => {
                self.discard(command);
                self.at(now, Event::Done(slot));
            }
            _ if self.p.cache == 0 => self.send(now, slot),
            _ => {
                self.space.push_back(slot);
                self.make_room(now);
            }
        }
    }

    /// Lets writes into the cache in their order, as far as there is room.
    fn make_room(&mut self, now: Nanos) {
        while let Some(&slot) = self.space.front() {
            let c = self.host(slot).command;
            let new = self.dirty.new_bytes(c.offset, c.len);
            // A command larger than the cache passes an empty one.
            if self.dirty.used() + new > self.p.cache && self.dirty.used() > 0 {
                self.waits_for_space += 1;
                break;
            }
            self.space.pop_front();
            self.dirty.reserve(new);
            self.host(slot).reserved = new;
            self.send(now, slot);
        }
        self.destage(now);
    }

    /// A write's data go over the link.
    fn send(&mut self, now: Nanos, slot: Slot) {
        let (path, len) = (self.host(slot).path, self.host(slot).command.len);
        let t = self.outbound[path].serve(now, self.link.time(len));
        self.at(t, Event::Linked(slot));
    }

    fn linked(&mut self, now: Nanos, slot: Slot) {
        let len = self.host(slot).command.len;
        let t = match self.p.mirror_bw {
            0 => now,
            _ => self.mirror.serve(now, self.mirror_rate.time(len)),
        };
        self.at(t, Event::Mirrored(slot));
    }

    fn mirrored(&mut self, now: Nanos, slot: Slot) {
        let Host { command: c, reserved, .. } = *self.host(slot);
        self.dirty.unreserve(reserved);
        let rows = self.mark_dirty(c);
        if self.p.cache == 0 {
            self.host(slot).missing = rows.len() as u32;
            for row in rows {
                self.through.entry(row).or_default().push(slot);
            }
        } else {
            self.at(now + self.p.hit_ns, Event::Done(slot));
        }
        self.destage(now);
    }

    /// A part of a command that waits for the legs is there.
    fn arrived(&mut self, now: Nanos, slot: Slot) {
        let host = self.host(slot);
        host.missing -= 1;
        if host.missing > 0 {
            return;
        }
        let (c, path) = (host.command, host.path);
        let t = match c.op {
            Op::Read => self.inbound[path].serve(now, self.link.time(c.len)),
            _ => now,
        };
        self.at(t + self.p.hit_ns, Event::Done(slot));
    }

    fn done(&mut self, now: Nanos, slot: Slot, done: &mut Vec<Completion>) {
        let Some(host) = self.hosts[slot as usize].take() else { return };
        self.free_hosts.push(slot);
        self.served += 1;
        self.flying -= 1;
        self.on_path[host.path] -= 1;
        done.push(Completion { id: host.command.id, t_start: host.t_start, t_done: now });
        while !self.outer.is_empty() && self.on_path[self.next_path()] < self.p.qd {
            if let Some(next) = self.outer.pop_front() {
                self.admit(now, next);
            }
        }
    }

    /// Gives a leg a command.
    fn give_leg(
        &mut self,
        now: Nanos,
        leg: usize,
        (op, offset, len): (Op, Bytes, Bytes),
        work: LegWork,
    ) {
        let id = match self.free_work.pop() {
            Some(id) => {
                self.work[id as usize] = Some(work);
                id
            }
            None => {
                self.work.push(Some(work));
                self.work.len() as u32 - 1
            }
        };
        match op {
            Op::Read => self.leg_reads += 1,
            _ => self.leg_writes += 1,
        }
        self.at_leg[leg] += 1;
        self.legs[leg].submit(now, Command { id, op, offset, len, fua: false });
    }

    /// A leg has done something.
    fn leg_done(&mut self, now: Nanos, leg: usize, id: u32) {
        self.at_leg[leg] -= 1;
        self.free_work.push(id);
        match self.work[id as usize].take() {
            Some(LegWork::Fill { fill }) => self.filled(now, fill),
            Some(LegWork::Row { at }) => self.row_step(now, at),
            None => {}
        }
    }

    /// The next leg that something happens at, and when.
    fn next_leg(&self) -> Option<(Nanos, usize)> {
        let each = self.legs.iter().enumerate();
        each.filter_map(|(i, leg)| leg.next_wakeup().map(|t| (t, i))).min()
    }

    fn handle(&mut self, now: Nanos, event: Event, done: &mut Vec<Completion>) {
        match event {
            Event::Commanded(slot) => self.commanded(now, slot),
            Event::Linked(slot) => self.linked(now, slot),
            Event::Mirrored(slot) => self.mirrored(now, slot),
            Event::Done(slot) => self.done(now, slot, done),
            Event::Idle if self.flying > 0 => self.at(now + IDLE, Event::Idle),
            Event::Idle if self.last + IDLE > now => self.at(self.last + IDLE, Event::Idle),
            Event::Idle => {
                self.watched = false;
                self.idle = true;
                self.destage(now);
            }
        }
    }
}

impl Device for Array {
    fn capacity(&self) -> Bytes {
        self.p.cap()
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        if self.outer.is_empty() && self.on_path[self.next_path()] < self.p.qd {
            self.admit(now, command);
        } else {
            self.outer.push_back(command);
        }
    }

    fn next_wakeup(&self) -> Option<Nanos> {
        // That nothing came for a while matters only to a cache that holds something.
        let quiet = self.dirty.used() == 0 && self.flying == 0;
        let own = if quiet { None } else { self.events.peek().map(|Reverse((t, ..))| *t) };
        match (own, self.next_leg()) {
            (Some(a), Some((b, _))) => Some(a.min(b)),
            (a, b) => a.or(b.map(|b| b.0)),
        }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        loop {
            let own = self.events.peek().map(|Reverse((t, ..))| *t).filter(|t| *t <= now);
            match (self.next_leg().filter(|(t, _)| *t <= now), own) {
                (Some((t, leg)), own) if own.is_none_or(|o| t <= o) => {
                    let mut all = std::mem::take(&mut self.scratch);
                    self.legs[leg].advance(t, &mut all);
                    for c in all.drain(..) {
                        self.leg_done(t, leg, c.id);
                    }
                    self.scratch = all;
                }
                (_, Some(t)) => {
                    if let Some(Reverse((_, _, event))) = self.events.pop() {
                        self.handle(t, event, done);
                    }
                }
                _ => return,
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.flying + self.outer.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("served", self.served),
            ("cache_hits", self.hits),
            ("waits_for_space", self.waits_for_space),
            ("full_rows", self.full_rows),
            ("partial_rows", self.partial_rows),
            ("leg_reads", self.leg_reads),
            ("leg_writes", self.leg_writes),
        ]
    }
}

#[cfg(test)]
mod tests;
