//! Which bios of an array and of its legs are under way, and what belongs to what.

use iosched_types::{Bio, BioId, Op, Sector, TaskId};

use super::balance::Why;

/// What an array sent to a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegStats {
    /// Bios that read.
    pub reads: u64,
    /// Bios that write or discard.
    pub writes: u64,
    /// Reads that followed one on another leg.
    pub changes: u64,
}

/// Where a bio of a leg comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The bio of the array.
    pub bio: BioId,
    /// Why it went to this leg.
    pub why: Why,
}

/// A bio of the array that is not done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Master {
    pub(super) bio: BioId,
    /// Bios on legs, and parts that are not there yet.
    left: u32,
    /// It counts as a write under way.
    pub(super) write: bool,
}

/// Whose a bio on a leg is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Of {
    Master(u32),
    /// The round of flushes.
    Round,
    /// Superblock or bitmap.
    #[default]
    Own,
}

/// A bio on a leg.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Below {
    pub(super) of: Of,
    pub(super) leg: usize,
    /// Where it ends; 0 of a flush.
    pub(super) end: Sector,
    pub(super) read: bool,
}

/// Entries by number; numbers are used again.
#[derive(Debug, Default)]
struct Slab<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    fn add(&mut self, t: T) -> u32 {
        match self.free.pop() {
            Some(i) => {
                self.all[i as usize] = t;
                i
            }
            None => {
                self.all.push(t);
                self.all.len() as u32 - 1
            }
        }
    }
}

/// The books of an array.
#[derive(Debug)]
pub(super) struct Ledger {
    masters: Slab<Master>,
    sent: Slab<Below>,
    legs: Vec<LegStats>,
    last_read: Option<usize>,
    routed: Option<Vec<Option<Routed>>>,
}

impl Ledger {
    pub(super) fn new(legs: usize) -> Ledger {
        Ledger {
            masters: Slab::default(),
            sent: Slab::default(),
            legs: vec![LegStats::default(); legs],
            last_read: None,
            routed: None,
        }
    }

    /// From now on numbers of bios on legs are used once only, and [`Ledger::routed`] answers.
    pub(super) fn explain(&mut self) {
        self.routed = Some(Vec::new());
    }

    pub(super) fn routed(&self, below: u32) -> Option<Routed> {
        self.routed.as_ref()?.get(below as usize).copied().flatten()
    }

    pub(super) fn legs(&self) -> &[LegStats] {
        &self.legs
    }

    /// A bio of the array comes, of which so many parts are known.
    pub(super) fn master(&mut self, bio: BioId, left: u32) -> u32 {
        self.masters.add(Master { bio, left, write: false })
    }

    /// More parts of it.
    pub(super) fn add_parts(&mut self, master: u32, parts: u32) {
        self.masters.all[master as usize].left += parts;
    }

    /// It counts as a write; `false` when it did already.
    pub(super) fn is_write(&mut self, master: u32) -> bool {
        !std::mem::replace(&mut self.masters.all[master as usize].write, true)
    }

    /// A part of it is done; it comes back when that was the last one.
    pub(super) fn part_done(&mut self, master: u32) -> Option<Master> {
        let m = &mut self.masters.all[master as usize];
        m.left -= 1;
        if m.left > 0 {
            return None;
        }
        let m = *m;
        self.masters.free.push(master);
        Some(m)
    }

    /// The bio that a leg gets.
    pub(super) fn clone_for(
        &mut self,
        thread: TaskId,
        of: Of,
        leg: usize,
        bio: Bio,
        why: Why,
    ) -> Bio {
        let end = if bio.op == Op::Flush { 0 } else { bio.end() };
        let id = self.sent.add(Below { of, leg, end, read: bio.op == Op::Read });
        if let Some(routed) = &mut self.routed {
            let from = match of {
                Of::Master(m) => Some(Routed { bio: self.masters.all[m as usize].bio, why }),
                _ => None,
            };
            routed.push(from);
        }
        Bio { id, thread, ..bio }
    }

    /// A leg has done that bio.
    pub(super) fn came_back(&mut self, id: BioId) -> Below {
        if self.routed.is_none() {
            self.sent.free.push(id);
        }
        self.sent.all[id as usize]
    }

    /// A leg reads.
    pub(super) fn count_read(&mut self, leg: usize) {
        let stats = &mut self.legs[leg];
        stats.reads += 1;
        stats.changes += u64::from(self.last_read.replace(leg).is_some_and(|last| last != leg));
    }

    /// A leg writes.
    pub(super) fn count_write(&mut self, leg: usize) {
        self.legs[leg].writes += 1;
    }
}
