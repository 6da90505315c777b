//! From events to I/Os.
//!
//! A bio is queued; requests that cover it are issued and complete. A request may hold several bios (merged) or a part
//! of one (split), so a bio is issued with the first request that touches it and done with the completion of its last
//! sector. Its task and flags are those of the event that it was queued with: later events run in other tasks.
//!
//! A disk without FUA gets a flush behind a FUA write, whose request then has no FUA. Its bio is done with a completion
//! of no sectors at its place.

use std::collections::{BTreeSet, VecDeque};

use iosched_types::{Flags, Nanos, Op, PrioClass};

use crate::event::{Action, Event, Io};
use crate::names::Name;
use crate::tally::Tally;

/// I/Os kept at a time. One that is still not complete when so many came after it has lost its completion.
const MOST: usize = 1 << 17;
/// A FUA write whose last completion is not in the trace this long after its data is done with those.
const LONGEST_FLUSH: Nanos = 10_000_000_000;
/// Bios looked at for one event.
const MOST_LOOKS: usize = 1 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Closed,
    /// Not an I/O of its own.
    Void,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    io: Io,
    start: u64,
    end: u64,
    /// Sectors of issued requests.
    issued: u64,
    /// Sectors not done.
    left: u64,
    /// The bio that a remap made this of, until an event says that it was queued here, too.
    moved: Option<u64>,
    /// A flush comes behind it.
    flushed: bool,
    /// A request, in a trace that has no bios: merges make it grow until it goes to the driver.
    request: bool,
    state: State,
}

/// Disk, direction, first sector, number.
type Key = (u32, u8, u64, u64);

/// I/Os under way and those that wait for earlier ones.
#[derive(Default)]
pub(crate) struct Pairer {
    ring: VecDeque<Slot>,
    base: u64,
    open: BTreeSet<Key>,
    /// The longest bio so far, in sectors.
    longest: u64,
    /// Whether the trace has queue events.
    queues: bool,
    /// The time of the last event.
    now: Nanos,
}

fn class(op: Op) -> u8 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

/// How many sectors two ranges share.
fn overlap(a: (u64, u64), b: (u64, u64)) -> u64 {
    a.1.min(b.1).saturating_sub(a.0.max(b.0))
}

impl Pairer {
    /// Takes an I/O that needs no pairing.
    pub(crate) fn io(&mut self, io: Io) {
        self.ring.push_back(Slot::of(io, State::Closed));
    }

    /// Takes the next event.
    pub(crate) fn event(&mut self, mut e: Event, tally: &mut Tally) {
        self.now = e.at;
        // A flush is queued as a write without data.
        if e.sectors == 0 && e.op == Op::Write && e.flags.has(Flags::PREFLUSH) {
            e.op = Op::Flush;
        }
        if e.op == Op::Flush {
            e.flags = e.flags.without(Flags::PREFLUSH);
        }
        match e.action {
            Action::Queue => {
                self.queues = true;
                self.queue(&e);
            }
            Action::Remap { disk, sector, partition } => {
                self.remap(&e, (disk, sector), partition, tally);
            }
            Action::Insert => self.insert(&e, tally),
            Action::Issue => self.issue(&e, tally),
            Action::Requeue => {
                tally.requeued += 1;
                self.requeue(&e);
            }
            Action::Complete => self.complete(&e, tally),
        }
    }

    /// The next I/O, when all that arrived before it have left; at the `end` also those that are not complete.
    pub(crate) fn pop(&mut self, end: bool, tally: &mut Tally) -> Option<Io> {
        loop {
            let front = self.ring.front()?;
            let over = |done: Nanos| self.now.saturating_sub(done) > LONGEST_FLUSH;
            let late = end || self.ring.len() > MOST || front.io.done.is_some_and(over);
            if front.state == State::Open && !late {
                return None;
            }
            let slot = self.ring.pop_front()?;
            let number = self.base;
            self.base += 1;
            if slot.state == State::Open {
                self.open.remove(&slot.key(number));
                tally.unfinished += u64::from(slot.io.done.is_none());
            }
            if slot.state != State::Void {
                return Some(slot.io);
            }
        }
    }

    /// Events were lost: a later completion may be that of another I/O at the same place, so those under way have none.
    pub(crate) fn forget(&mut self, tally: &mut Tally) {
        for (_, _, _, number) in std::mem::take(&mut self.open) {
            let slot = self.slot(number);
            slot.state = State::Closed;
            tally.unfinished += u64::from(slot.io.done.is_none());
        }
    }

    /// I/Os that wait here.
    pub(crate) fn waiting(&self) -> usize {
        self.ring.len()
    }

    /// When the first of them arrived.
    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.ring.front().map(|s| s.io.queued)
    }

    fn slot(&mut self, number: u64) -> &mut Slot {
        &mut self.ring[(number - self.base) as usize]
    }

    fn at(&self, number: u64) -> &Slot {
        &self.ring[(number - self.base) as usize]
    }

    /// A bio is queued: a new one, or one that a remap announced.
    fn queue(&mut self, e: &Event) {
        let announced = self.exact(e, |s| s.moved.is_some() && s.issued == 0);
        let new = self.add(e);
        if let Some(n) = announced {
            // A stacked device: its bio keeps a place of its own in the list, and the task is that of the upper one.
            let io = self.slot(n).io;
            self.close(n, State::Void);
            self.slot(new).owned_by(&io);
        }
    }

    fn add(&mut self, e: &Event) -> u64 {
        let range = (e.sector, e.sector.saturating_add(e.sectors));
        let mut io = Io::new(e.at, e.op, e.disk, range.0.saturating_mul(512), e.sectors * 512);
        if e.op == Op::Flush {
            io.offset = 0;
        }
        (io.flags, io.pid, io.task, io.prio, io.cpu) = (e.flags, e.pid, e.task, e.prio, e.cpu);
        let mut slot = Slot { start: range.0, end: range.1, ..Slot::of(io, State::Open) };
        slot.left = e.sectors;
        let number = self.base + self.ring.len() as u64;
        self.longest = self.longest.max(e.sectors);
        self.open.insert(slot.key(number));
        self.ring.push_back(slot);
        number
    }

    /// The oldest bio with just these sectors that passes.
    fn exact(&self, e: &Event, passes: impl Fn(&Slot) -> bool) -> Option<u64> {
        let (disk, class, start) = (e.disk.0, class(e.op), Slot::place(e.op, e.sector));
        let here = self.open.range((disk, class, start, 0)..=(disk, class, start, u64::MAX));
        here.map(|k| k.3).take(MOST_LOOKS).find(|n| {
            let s = self.at(*n);
            s.end - s.start == e.sectors && passes(s)
        })
    }

    /// The bios that share sectors with an event and pass: one with just its sectors, else all up to its length.
    fn touched(&self, e: &Event, passes: impl Fn(&Slot) -> bool) -> Vec<(u64, u64)> {
        if let Some(n) = self.exact(e, &passes) {
            return vec![(n, e.sectors)];
        }
        let range = (e.sector, e.sector.saturating_add(e.sectors));
        let (disk, class) = (e.disk.0, class(e.op));
        let from = e.sector.saturating_sub(self.longest);
        let near = self.open.range((disk, class, from, 0)..(disk, class, range.1, 0));
        let (mut found, mut covered) = (Vec::new(), 0);
        for n in near.take(MOST_LOOKS).map(|k| k.3) {
            let s = self.at(n);
            let shared = overlap((s.start, s.end), range);
            if shared > 0 && covered < e.sectors && passes(s) {
                covered += shared;
                found.push((n, shared));
            }
        }
        found
    }

    fn remap(&mut self, e: &Event, from: (Name, u64), partition: bool, tally: &mut Tally) {
        let before = Event { disk: from.0, sector: from.1, ..*e };
        let Some(old) = self.exact(&before, |s| s.issued == 0) else { return };
        let Slot { io, moved, .. } = *self.slot(old);
        let new = self.add(e);
        self.slot(new).owned_by(&io);
        if partition || moved.is_some() {
            // A partition's bio is now the disk's. So is one that no event queued: stacked devices queue theirs.
            tally.remapped += 1;
            self.slot(new).io.queued = io.queued;
            self.slot(new).moved = moved;
            self.close(old, State::Void);
        }
        self.slot(new).moved.get_or_insert(old);
    }

    /// A bio goes on without an event that queued it where it was moved to: it came from a partition.
    fn arrived(&mut self, number: u64, tally: &mut Tally) {
        let Some(old) = self.slot(number).moved.take() else { return };
        if old >= self.base && self.slot(old).state == State::Open {
            tally.remapped += 1;
            self.slot(number).io.queued = self.slot(old).io.queued;
            self.close(old, State::Void);
        }
    }

    fn insert(&mut self, e: &Event, tally: &mut Tally) {
        let found = self.touched(e, |s| s.issued == 0);
        if found.is_empty() && !self.queues && e.op != Op::Flush {
            let n = self.add(e);
            self.slot(n).request = true;
        }
        for (n, _) in found {
            self.arrived(n, tally);
            self.prioritise(n, e);
        }
    }

    /// Gives requests of a trace without bios the length that the driver sees: those of them that were merged are one,
    /// which began with the first.
    fn grow(&mut self, e: &Event, found: &mut Vec<(u64, u64)>) {
        let range = (e.sector, e.sector.saturating_add(e.sectors));
        let inside = |s: &Slot| s.request && s.start >= range.0 && s.end <= range.1;
        let requests = found.iter().map(|f| f.0).filter(|n| inside(self.at(*n)));
        let Some(first) = requests.min() else { return };
        if (self.at(first).start, self.at(first).end) == range {
            return;
        }
        for n in found.iter().map(|f| f.0).filter(|n| *n != first).collect::<Vec<_>>() {
            if inside(self.at(n)) {
                self.close(n, State::Void);
            }
        }
        found.retain(|f| self.at(f.0).state == State::Open && f.0 != first);
        found.push((first, e.sectors));
        let key = self.at(first).key(first);
        self.open.remove(&key);
        self.longest = self.longest.max(e.sectors);
        let slot = self.slot(first);
        (slot.start, slot.end, slot.left) = (range.0, range.1, e.sectors);
        (slot.io.offset, slot.io.len) = (range.0.saturating_mul(512), e.sectors * 512);
        let key = slot.key(first);
        self.open.insert(key);
    }

    fn prioritise(&mut self, number: u64, e: &Event) {
        if e.prio.class != PrioClass::None {
            self.slot(number).io.prio = e.prio;
        }
    }

    fn issue(&mut self, e: &Event, tally: &mut Tally) {
        if e.op == Op::Flush || e.sectors == 0 {
            let open = self.exact(&Event { sectors: 0, op: Op::Flush, ..*e }, |s| s.issued == 0);
            match open {
                Some(n) => {
                    let slot = self.slot(n);
                    (slot.issued, slot.io.issued) = (1, Some(e.at));
                }
                None => tally.flush_steps += 1,
            }
            return;
        }
        let mut found = self.touched(e, |s| s.issued < s.end - s.start);
        self.grow(e, &mut found);
        for gap in self.gaps(e, &found) {
            tally.issues_without_queue += u64::from(self.queues);
            let n = self.add(&Event { sector: gap.0, sectors: gap.1 - gap.0, ..*e });
            found.push((n, gap.1 - gap.0));
        }
        for (n, sectors) in found {
            self.arrived(n, tally);
            self.prioritise(n, e);
            let slot = self.slot(n);
            slot.issued += sectors;
            slot.io.issued = slot.io.issued.or(Some(e.at));
            slot.flushed |= slot.io.flags.has(Flags::FUA) && !e.flags.has(Flags::FUA);
        }
    }

    /// The parts of a request that no bio covers: those were queued before the trace began, or are lost.
    fn gaps(&self, e: &Event, found: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let end = e.sector.saturating_add(e.sectors);
        let covered: u64 = found.iter().map(|f| f.1).sum();
        if covered >= e.sectors {
            return Vec::new();
        }
        // The ranges of a discard for several places are not one behind the other.
        if e.op == Op::Discard && !found.is_empty() {
            return Vec::new();
        }
        let mut parts: Vec<(u64, u64)> =
            found.iter().map(|f| (self.at(f.0).start, self.at(f.0).end)).collect();
        parts.sort_unstable();
        let (mut gaps, mut from) = (Vec::new(), e.sector);
        for (start, stop) in parts {
            if start > from {
                gaps.push((from, start));
            }
            from = from.max(stop);
        }
        if from < end {
            gaps.push((from, end));
        }
        gaps
    }

    fn requeue(&mut self, e: &Event) {
        for (n, sectors) in self.touched(e, |s| s.issued > 0) {
            let slot = self.slot(n);
            slot.issued = slot.issued.saturating_sub(sectors);
        }
    }

    fn complete(&mut self, e: &Event, tally: &mut Tally) {
        if e.sectors == 0 || e.op == Op::Flush {
            return self.flushed(e, tally);
        }
        let under_way = |s: &Slot| s.issued > (s.end - s.start) - s.left;
        let mut found = self.touched(e, under_way);
        if found.is_empty() {
            // A recording of queueing and completion only.
            found = self.touched(e, |s| s.left > 0);
            self.grow(e, &mut found);
        }
        if found.is_empty() {
            tally.completions_without_start += 1;
        }
        for (n, sectors) in found {
            self.arrived(n, tally);
            let slot = self.slot(n);
            slot.left = slot.left.saturating_sub(sectors);
            if slot.left == 0 && slot.flushed {
                slot.io.done = Some(e.at);
            } else if slot.left == 0 {
                self.done(n, e);
            }
        }
    }

    /// The command of a flush completes, then the flush itself, as a write without data.
    fn flushed(&mut self, e: &Event, tally: &mut Tally) {
        let flush = Event { sectors: 0, op: Op::Flush, ..*e };
        if e.op == Op::Flush {
            match self.exact(&flush, |s| s.issued > 0 && s.io.done.is_none()) {
                Some(n) => self.slot(n).io.done = Some(e.at),
                None => tally.flush_steps += 1,
            }
            return;
        }
        if let Some(n) = self.behind_flush(e) {
            return self.done(n, e);
        }
        let after_command = self.exact(&flush, |s| s.io.done.is_some());
        match after_command.or_else(|| self.exact(&flush, |_| true)) {
            Some(n) => self.done(n, e),
            None => tally.flush_steps += 1,
        }
    }

    /// The FUA write that is done with this completion of no sectors.
    fn behind_flush(&self, e: &Event) -> Option<u64> {
        let (disk, class) = (e.disk.0, class(Op::Write));
        let here = self.open.range((disk, class, e.sector, 0)..=(disk, class, e.sector, u64::MAX));
        let waits = |n: &u64| self.at(*n).flushed && self.at(*n).io.done.is_some();
        here.map(|k| k.3).take(MOST_LOOKS).find(waits)
    }

    fn done(&mut self, number: u64, e: &Event) {
        self.slot(number).io.done = Some(e.at);
        self.close(number, State::Closed);
    }

    fn close(&mut self, number: u64, state: State) {
        let slot = self.slot(number);
        slot.state = state;
        let key = slot.key(number);
        self.open.remove(&key);
    }
}

impl Slot {
    fn of(io: Io, state: State) -> Slot {
        let (moved, flushed, request) = (None, false, false);
        Slot { io, start: 0, end: 0, issued: 0, left: 0, moved, flushed, request, state }
    }

    /// A bio below another has its task: it was made by a worker or by none.
    fn owned_by(&mut self, upper: &Io) {
        (self.io.pid, self.io.task, self.io.prio) = (upper.pid, upper.task, upper.prio);
    }

    /// Where a bio is looked for: flushes have no place.
    fn place(op: Op, sector: u64) -> u64 {
        if op == Op::Flush { 0 } else { sector }
    }

    fn key(&self, number: u64) -> Key {
        (self.io.disk.0, class(self.io.op), Slot::place(self.io.op, self.start), number)
    }
}
