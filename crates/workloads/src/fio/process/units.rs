//! The I/Os a process may have under way.

use std::ops::{Index, IndexMut};

use iosched_types::{Bytes, Nanos, Op};

use crate::fio::generator::NextIo;

/// "No unit".
const NONE: u32 = u32::MAX;

/// One I/O under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) offset: Bytes,
    pub(super) len: Bytes,
    pub(super) start: Nanos,
    pub(super) issue: Nanos,
    /// The next unused unit, where this one is unused.
    next: u32,
    /// Read, write, trim, flush.
    pub(super) dir: u8,
    /// Begun, and not found to be done by a process that looks unit by unit.
    pub(super) awaited: bool,
}

impl Unit {
    pub(super) fn op(&self) -> Op {
        [Op::Read, Op::Write, Op::Discard, Op::Flush][usize::from(self.dir & 3)]
    }
}

/// The units of a process. Unused units form a list, the last freed one first.
#[derive(Debug)]
pub(super) struct Units {
    units: Box<[Unit]>,
    free: u32,
}

impl Units {
    pub(super) fn new(n: u32) -> Self {
        let unit = |i| Unit {
            offset: 0,
            len: 0,
            start: 0,
            issue: 0,
            next: if i + 1 < n { i + 1 } else { NONE },
            dir: 0,
            awaited: false,
        };
        Units { units: (0..n).map(unit).collect(), free: if n > 0 { 0 } else { NONE } }
    }

    pub(super) fn len(&self) -> u32 {
        self.units.len() as u32
    }

    #[inline]
    pub(super) fn all_used(&self) -> bool {
        self.free == NONE
    }

    /// A unit for an I/O that begins now; `None` when all are in use.
    #[inline]
    pub(super) fn take(&mut self, io: &NextIo, now: Nanos) -> Option<u32> {
        let unit = self.free;
        let u = self.units.get_mut(unit as usize)?;
        self.free = u.next;
        *u = Unit {
            offset: io.offset,
            len: io.len,
            start: now,
            issue: now,
            next: NONE,
            dir: io.dir as u8,
            awaited: true,
        };
        Some(unit)
    }

    /// The lowest of the `n` highest units that are awaited.
    pub(super) fn last_of_highest(&self, n: usize) -> u32 {
        let awaited = self.units.iter().enumerate().rev().filter(|(_, u)| u.awaited);
        awaited.take(n).last().map_or(0, |(i, _)| i as u32)
    }

    /// Those that are in use.
    pub(super) fn in_use(&self) -> Vec<u32> {
        let mut used = vec![true; self.units.len()];
        let mut free = self.free;
        while let Some(unit) = self.units.get(free as usize) {
            used[free as usize] = false;
            free = unit.next;
        }
        (0..self.len()).filter(|unit| used[*unit as usize]).collect()
    }

    #[inline]
    pub(super) fn give_back(&mut self, unit: u32) {
        self[unit].next = self.free;
        self.free = unit;
    }
}

impl Index<u32> for Units {
    type Output = Unit;

    #[inline]
    fn index(&self, unit: u32) -> &Unit {
        &self.units[unit as usize]
    }
}

impl IndexMut<u32> for Units {
    #[inline]
    fn index_mut(&mut self, unit: u32) -> &mut Unit {
        &mut self.units[unit as usize]
    }
}
