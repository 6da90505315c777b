//! A disk whose write cache keeps a copy of each write, as the reference's `hdd7k_ncq_vc` is defined.
//!
//! Writes pass the interface one by one, each in `wc_ns` and its transfer at `wc_bw`, and are complete then. The arm
//! writes a copy when it has nothing else to do. While the cache is more than half full or a flush waits, copies and
//! commands compete by positioning time. A flush waits for the copies that were in the cache when it came; the arm
//! serves commands meanwhile. Reads and FUA writes go to the medium.

use std::collections::VecDeque;

use iosched_types::{Bytes, Nanos, Op, SECTOR, Sector};

use super::admission::Admission;
use super::arm::Arm;
use super::nearest::{Waiting, nearest_of};
use crate::lanes::Lanes;
use crate::leftover::{Writer, extents};
use crate::math::Rate;
use crate::params::HddParams;
use crate::{Command, Completion, Device};

/// Sectors of a copy in a used disk at most.
const COPY: Sector = 2048;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The arm has served a command.
    Served(Completion),
    /// The arm has written a copy of so many bytes.
    Written(Bytes),
    /// A write is in the cache.
    Passed(Completion, Sector, Bytes),
    /// A flush is done.
    Flushed(Completion),
}

const ARM: usize = 0;
const INTERFACE: usize = 1;
const FLUSH: usize = 2;

/// What the cache holds of a write.
#[derive(Clone, Copy, Debug)]
struct Copy {
    sector: Sector,
    end: Sector,
    len: Bytes,
    turn: u32,
    /// Copies that joined before it.
    number: u64,
}

/// The device.
#[derive(Debug)]
pub struct CopyingHdd {
    p: HddParams,
    arm: Arm,
    admission: Admission<(Command, Nanos)>,
    events: Lanes<Event, 3>,
    arm_busy: bool,
    interface: Rate,
    interface_busy: bool,
    /// Writes that wait for the interface.
    writes: VecDeque<Command>,
    /// Copies in the order in which they joined.
    copies: VecDeque<Copy>,
    /// The copy that the arm writes.
    on_medium: Option<u64>,
    /// Copies that ever joined.
    joined: u64,
    /// Bytes in the cache, on their way in and on their way out.
    used: Bytes,
    /// Flushes that wait, each with the copies that had joined when it came.
    flushes: VecDeque<(u32, u64)>,
    served: u64,
    destages: u64,
    flushed: u64,
}

impl CopyingHdd {
    /// A disk at rest with an empty cache.
    #[must_use]
    pub fn new(p: HddParams) -> Self {
        CopyingHdd {
            arm: Arm::new(&p),
            admission: Admission::new(p.depth),
            events: Lanes::new(),
            arm_busy: false,
            interface: Rate::new(p.wc_bw),
            interface_busy: false,
            writes: VecDeque::new(),
            copies: VecDeque::new(),
            on_medium: None,
            joined: 0,
            used: 0,
            flushes: VecDeque::new(),
            served: 0,
            destages: 0,
            flushed: 0,
            p,
        }
    }

    /// Fills the write cache with what these writers leave. The copy of a long extent is that of several writes.
    pub fn fill_cache(&mut self, writers: &[Writer]) {
        for (start, sectors) in extents(writers, self.p.cap, self.p.wcache) {
            let end = start + sectors;
            for at in (start..end).step_by(COPY as usize) {
                let len = (end - at).min(COPY) * SECTOR;
                self.used += len;
                self.join(at, len);
            }
        }
        self.kick(0);
    }

    fn admit(&mut self, now: Nanos, c: Command, t_arr: Nanos) {
        match c.op {
            Op::Write if !c.fua => {
                self.writes.push_back(c);
                self.pass(now);
            }
            Op::Flush => {
                self.flushes.push_back((c.id, self.joined));
                self.check_flushes(now);
            }
            _ => self.arm.push(c, t_arr),
        }
        self.kick(now);
    }

    /// The next write passes the interface, if that is free and the cache has room.
    fn pass(&mut self, now: Nanos) {
        let Some(c) = self.writes.front().copied() else { return };
        if self.interface_busy || (self.used != 0 && self.used + c.len > self.p.wcache) {
            return;
        }
        self.writes.pop_front();
        self.interface_busy = true;
        self.used += c.len;
        let t_done = now + self.p.wc_ns + self.interface.time(c.len);
        let done = Completion { id: c.id, t_start: now, t_done };
        self.events.push(INTERFACE, t_done, Event::Passed(done, c.offset / SECTOR, c.len));
    }

    fn join(&mut self, sector: Sector, len: Bytes) {
        let (end, turn) = ((sector * SECTOR + len) / SECTOR, self.arm.mech.turn(sector));
        self.copies.push_back(Copy { sector, end, len, turn, number: self.joined });
        self.joined += 1;
    }

    fn kick(&mut self, now: Nanos) {
        if self.arm_busy {
            return;
        }
        if let Some((place, pos)) = self.next_copy(now) {
            self.destage(now, place, pos);
        } else if !self.arm.is_empty() {
            let s = self.arm.serve(now);
            self.served += 1;
            self.arm_busy = true;
            let done = Completion { id: s.id, t_start: now, t_done: now + s.service };
            self.events.push(ARM, done.t_done, Event::Served(done));
        }
    }

    /// The copy that the arm writes next, with its positioning time, if it is a copy's turn.
    fn next_copy(&self, now: Nanos) -> Option<(usize, Nanos)> {
        let compete = !self.flushes.is_empty() || self.used > self.p.wcache / 2;
        if !self.arm.is_empty() && (!compete || self.arm.overdue(now)) {
            return None;
        }
        let all = self.copies.iter().zip(0u32..);
        let waiting = all.map(|(c, slot)| Waiting { sector: c.sector, turn: c.turn, slot });
        let (copy, pos) =
            nearest_of(&self.arm.mech, waiting, |_| self.arm.mech.go_on(false, now), now)?;
        let sooner = self.arm.least_position(now).is_none_or(|command| pos < command);
        sooner.then_some((copy.slot as usize, pos))
    }

    fn destage(&mut self, now: Nanos, place: usize, pos: Nanos) {
        let Some(c) = self.copies.remove(place) else { return };
        let service = self.arm.move_to(c.sector, c.len, pos);
        // What follows the head's place is one stream with it.
        let service = if pos == 0 { service - self.p.ovh_ns } else { service };
        self.arm.mech.leave(c.end, now + service, false);
        self.arm.count.busy_ns += service;
        self.arm_busy = true;
        self.on_medium = Some(c.number);
        self.destages += 1;
        self.events.push(ARM, now + service, Event::Written(c.len));
    }

    /// Flushes whose copies are all on the medium.
    fn check_flushes(&mut self, now: Nanos) {
        let oldest = self.copies.front().map(|c| c.number).into_iter().chain(self.on_medium).min();
        while let Some((id, joined)) = self.flushes.front().copied()
            && oldest.is_none_or(|number| number >= joined)
        {
            self.flushes.pop_front();
            self.flushed += 1;
            let done = Completion { id, t_start: now, t_done: now + self.p.flush_ns };
            self.events.push(FLUSH, done.t_done, Event::Flushed(done));
        }
    }

    fn complete(&mut self, now: Nanos, c: Completion, done: &mut Vec<Completion>) {
        done.push(c);
        if let Some((next, t_arr)) = self.admission.leave() {
            self.admit(now, next, t_arr);
        }
    }
}

impl Device for CopyingHdd {
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
                Event::Served(c) => {
                    self.arm_busy = false;
                    self.complete(t, c, done);
                }
                Event::Written(len) => {
                    self.arm_busy = false;
                    self.on_medium = None;
                    self.used -= len;
                    self.pass(t);
                    self.check_flushes(t);
                }
                Event::Passed(c, sector, len) => {
                    self.interface_busy = false;
                    self.join(sector, len);
                    self.complete(t, c, done);
                    self.pass(t);
                }
                Event::Flushed(c) => self.complete(t, c, done),
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
        vec![("write cache", self.used, self.p.wcache)]
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let c = &self.arm.count;
        let dirty: Bytes = self.copies.iter().map(|c| c.len).sum();
        vec![
            ("served", self.served),
            ("cached_writes", self.joined),
            ("destages", self.destages),
            ("dirty_sectors", dirty / SECTOR),
            ("sequential", c.sequential),
            ("seeks", c.seeks),
            ("travel_sectors", c.travel),
            ("flushes", self.flushed),
            ("busy_ns", c.busy_ns),
            ("position_ns", c.position_ns),
        ]
    }
}
