//! The arm's queue: commands waiting, and which of them is next.

use iosched_types::{Bytes, Nanos, Op, SECTOR, Sector};

use super::mechanics::{Mechanics, Waiting};
use crate::Command;
use crate::params::HddParams;

/// `turn` of a flush (a real one is below `rev_ns`, which is below 2^32 - 1).
const FLUSH: u32 = u32::MAX;

/// The commands waiting, in order of admission.
#[derive(Debug, Default)]
struct Backlog {
    items: Vec<Waiting>,
    head: usize,
    flushes: usize,
}

impl Backlog {
    #[inline]
    fn push(&mut self, w: Waiting) {
        if self.items.len() == self.items.capacity() && self.head >= self.items.len().div_ceil(2) {
            self.items.drain(..self.head);
            self.head = 0;
        }
        self.flushes += usize::from(w.turn == FLUSH);
        self.items.push(w);
    }

    #[inline]
    fn waiting(&self) -> &[Waiting] {
        &self.items[self.head..]
    }

    #[inline]
    fn remove(&mut self, i: usize) -> Waiting {
        let w = self.items[self.head + i];
        self.items.copy_within(self.head..self.head + i, self.head + 1);
        self.head += 1;
        if self.head == self.items.len() {
            self.items.clear();
            self.head = 0;
        }
        self.flushes -= usize::from(w.turn == FLUSH);
        w
    }
}

/// An admitted command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    pub(crate) id: u32,
    pub(crate) op: Op,
    pub(crate) sector: Sector,
    /// Sector after its last byte.
    pub(crate) end: Sector,
    pub(crate) len: Bytes,
    t_arr: Nanos,
}

/// The arm: its mechanics, its queue and the rule by which it chooses.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) mech: Mechanics,
    pub(crate) count: ArmCounters,
    flush_ns: Nanos,
    ovh_ns: Nanos,
    sptf: bool,
    age_ns: Nanos,
    window: usize,
    backlog: Backlog,
    slots: Vec<Admitted>,
    free: Vec<u32>,
}

/// What the arm did.
#[derive(Debug, Default)]
pub(crate) struct ArmCounters {
    pub(crate) sequential: u64,
    pub(crate) seeks: u64,
    pub(crate) travel: Sector,
    pub(crate) busy_ns: u64,
    pub(crate) position_ns: u64,
}

impl Arm {
    pub(crate) fn new(p: &HddParams) -> Self {
        Arm {
            mech: Mechanics::new(p),
            count: ArmCounters::default(),
            flush_ns: p.flush_ns,
            ovh_ns: p.ovh_ns,
            sptf: p.sptf,
            age_ns: p.age_ns,
            window: if p.window == 0 { usize::MAX } else { p.window as usize },
            backlog: Backlog::default(),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Queues a command that arrived at `t_arr`.
    #[inline]
    pub(crate) fn push(&mut self, c: Command, t_arr: Nanos) {
        let sector = c.offset / SECTOR;
        let end = (c.offset + c.len) / SECTOR;
        let item = Admitted { id: c.id, op: c.op, sector, end, len: c.len, t_arr };
        let slot = if let Some(i) = self.free.pop() {
            self.slots[i as usize] = item;
            i
        } else {
            self.slots.push(item);
            (self.slots.len() - 1) as u32
        };
        let turn = if c.op == Op::Flush { FLUSH } else { self.mech.turn(sector) };
        self.backlog.push(Waiting { sector, turn, slot });
    }

    /// Whether nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.backlog.waiting().is_empty()
    }

    /// Whether the oldest command waiting is a flush.
    #[inline]
    pub(crate) fn flush_is_next(&self) -> bool {
        self.backlog.waiting().first().is_some_and(|w| w.turn == FLUSH)
    }

    /// Whether the oldest command has waited so long that it goes first.
    #[inline]
    pub(crate) fn overdue(&self, now: Nanos) -> bool {
        let oldest = self.backlog.waiting().first();
        self.age_ns > 0
            && oldest.is_some_and(|w| now - self.slots[w.slot as usize].t_arr > self.age_ns)
    }

    /// Which of the waiting commands is next; the positioning time too where it fell out on the way.
    #[inline]
    fn choose(&self, now: Nanos) -> (usize, Option<Nanos>) {
        let all = self.backlog.waiting();
        if !self.sptf || all.len() == 1 {
            return (0, None);
        }
        if all[0].turn == FLUSH || self.overdue(now) {
            return (0, None);
        }
        let mut limit = all.len().min(self.window);
        if self.backlog.flushes > 0 {
            limit = all[..limit].iter().position(|w| w.turn == FLUSH).unwrap_or(limit);
        }
        let (i, pos) = self.mech.nearest(&all[..limit], now);
        (i, Some(pos))
    }

    /// Takes the next command out of the queue, which is not empty, and serves it: the command and
    /// how long it takes.
    #[inline]
    pub(crate) fn serve(&mut self, now: Nanos) -> (Admitted, Nanos) {
        let (i, pos) = self.choose(now);
        let w = self.backlog.remove(i);
        let a = self.slots[w.slot as usize];
        self.free.push(w.slot);
        let service = match a.op {
            Op::Flush => self.flush_ns,
            Op::Discard => self.ovh_ns,
            Op::Read | Op::Write => {
                let pos = pos.unwrap_or_else(|| self.mech.position(w.sector, w.turn, now));
                self.move_to(w.sector, a.end, a.len, pos)
            }
        };
        self.count.busy_ns += service;
        (a, service)
    }

    /// Positions, transfers and leaves the head at `end`; returns how long that takes.
    #[inline]
    pub(crate) fn move_to(&mut self, sector: Sector, end: Sector, len: Bytes, pos: Nanos) -> Nanos {
        self.count.position_ns += pos;
        if sector == self.mech.head {
            self.count.sequential += 1;
        } else {
            self.count.seeks += 1;
            self.count.travel += sector.abs_diff(self.mech.head);
        }
        self.mech.head = end;
        self.ovh_ns + pos + self.mech.transfer(sector, len)
    }
}
