//! What a mirror writes for itself: whether it is clean, and which parts of it are being written.
//!
//! Both are single sectors on every leg, written one kind after the other by the array's thread. A write to a clean
//! array waits until all superblocks say "dirty". A write to a chunk whose bit is not set waits for the bitmap.

use std::collections::VecDeque;

use iosched_types::units::{MS, SEC};
use iosched_types::{Nanos, Sector};

/// Where the superblock of format 1.2 lies.
const SUPERBLOCK: Sector = 8;
/// Where the bitmap begins; its own header comes first.
const BITMAP: Sector = 16;
/// Bits of that header, and of a sector.
const HEADER_BITS: u64 = 2048;
const SECTOR_BITS: u64 = 4096;
/// `safe_mode_delay`: that long after the last write the array is clean. Its timer fires a tick later.
const SAFE_MODE: Nanos = 200 * MS;
/// How often bits without writes are looked for.
pub(super) const DAEMON: Nanos = 5 * SEC;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Clean,
    Dirty,
}

/// A sector that every leg gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Superblock(Mark),
    Bitmap(Sector),
}

/// A bit of the bitmap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Bit {
    #[default]
    Unset,
    /// Set in memory.
    Asked,
    /// On its way to the legs.
    Writing,
    /// Set on the legs, and how often the daemon found no new write.
    Set(u8),
}

/// What a write may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum May {
    /// Go on.
    Go,
    /// Its task sleeps until the array is marked.
    Sleep,
    /// It is kept until the bitmap is written.
    Keep,
}

/// Superblock and bitmap of a mirror.
#[derive(Debug)]
pub(super) struct Dirty {
    mark: Mark,
    delay: Nanos,
    chunk: Sector,
    bits: Vec<Bit>,
    /// Chunks whose bit is set.
    active: Vec<u32>,
    jobs: VecDeque<Job>,
    /// The first job is under way, with so many legs left.
    under_way: u32,
    /// Writes under way.
    writes: u32,
    /// The current safe-mode timer.
    timer: u32,
    daemon: bool,
    pub(super) superblocks: u64,
    pub(super) bitmaps: u64,
}

impl Dirty {
    /// A clean array of so many sectors.
    pub(super) fn new(hz: u32, chunk: Sector, sectors: Sector) -> Dirty {
        let chunks = if chunk > 0 { sectors.div_ceil(chunk) } else { 0 };
        Dirty {
            mark: Mark::Clean,
            delay: SAFE_MODE + SEC / Nanos::from(hz.max(1)),
            chunk,
            bits: vec![Bit::Unset; chunks as usize],
            active: Vec::new(),
            jobs: VecDeque::new(),
            under_way: 0,
            writes: 0,
            timer: 0,
            daemon: false,
            superblocks: 0,
            bitmaps: 0,
        }
    }

    /// Whether there is a bitmap.
    pub(super) fn has_bitmap(&self) -> bool {
        self.chunk > 0
    }

    fn chunk_of(&self, sector: Sector) -> Option<usize> {
        let last = self.bits.len().checked_sub(1)?;
        Some(((sector / self.chunk) as usize).min(last))
    }

    fn sector_of(chunk: usize) -> Sector {
        BITMAP + (HEADER_BITS + chunk as u64) / SECTOR_BITS
    }

    fn ask(&mut self, job: Job) {
        // One that is under way does not know of what is asked for now.
        let behind = usize::from(self.under_way > 0);
        if !self.jobs.iter().skip(behind).any(|j| *j == job) {
            self.jobs.push_back(job);
        }
    }

    /// Lets the superblocks say so, unless they will.
    fn ask_mark(&mut self, mark: Mark) {
        let last = self.jobs.iter().rev().find_map(|j| match j {
            Job::Superblock(mark) => Some(*mark),
            Job::Bitmap(_) => None,
        });
        if last.unwrap_or(self.mark) != mark {
            self.jobs.push_back(Job::Superblock(mark));
        }
    }

    /// A write wants to begin at a sector.
    pub(super) fn may_write(&mut self, sector: Sector) -> May {
        let mut kept = false;
        if let Some(chunk) = self.chunk_of(sector) {
            match self.bits[chunk] {
                Bit::Unset => {
                    self.bits[chunk] = Bit::Asked;
                    self.active.push(chunk as u32);
                    self.ask(Job::Bitmap(Self::sector_of(chunk)));
                    kept = true;
                }
                Bit::Asked | Bit::Writing => kept = true,
                Bit::Set(_) => self.bits[chunk] = Bit::Set(0),
            }
        }
        let marking = self.jobs.iter().any(|j| matches!(j, Job::Superblock(_)));
        if self.mark == Mark::Clean || marking {
            self.ask_mark(Mark::Dirty);
            return May::Sleep;
        }
        if kept { May::Keep } else { May::Go }
    }

    /// A write begins: from now on the array stays dirty.
    pub(super) fn write_begins(&mut self) {
        self.writes += 1;
        self.timer = self.timer.wrapping_add(1);
    }

    /// A write has ended. If it was the last one: when the array becomes clean, and the number of that timer.
    pub(super) fn write_ended(&mut self, now: Nanos) -> Option<(Nanos, u32)> {
        self.writes -= 1;
        (self.writes == 0).then_some((now + self.delay, self.timer))
    }

    /// Nothing was written for a while.
    pub(super) fn quiet(&mut self, timer: u32) {
        if timer == self.timer && self.writes == 0 && self.mark == Mark::Dirty {
            self.ask_mark(Mark::Clean);
        }
    }

    /// Whether the daemon has to be told to come.
    pub(super) fn daemon_wanted(&mut self) -> bool {
        !self.active.is_empty() && !std::mem::replace(&mut self.daemon, true)
    }

    /// The daemon clears what had no write for two of its rounds.
    pub(super) fn daemon_comes(&mut self) {
        self.daemon = false;
        for i in (0..self.active.len()).rev() {
            let chunk = self.active[i] as usize;
            match self.bits[chunk] {
                Bit::Set(rounds) if rounds < 2 => self.bits[chunk] = Bit::Set(rounds + 1),
                Bit::Set(_) => {
                    self.bits[chunk] = Bit::Unset;
                    self.active.swap_remove(i);
                    self.ask(Job::Bitmap(Self::sector_of(chunk)));
                }
                Bit::Asked | Bit::Writing | Bit::Unset => {}
            }
        }
    }

    /// The sector that is to be written to so many legs now, if any.
    pub(super) fn begin(&mut self, legs: u32) -> Option<Sector> {
        if self.under_way > 0 {
            return None;
        }
        let job = *self.jobs.front()?;
        self.under_way = legs;
        Some(match job {
            Job::Superblock(_) => {
                self.superblocks += 1;
                SUPERBLOCK
            }
            Job::Bitmap(sector) => {
                self.bitmaps += 1;
                self.turn(sector, Bit::Asked, Bit::Writing);
                sector
            }
        })
    }

    /// A leg has written it; `true` when all have.
    pub(super) fn leg_done(&mut self) -> bool {
        self.under_way -= 1;
        if self.under_way > 0 {
            return false;
        }
        match self.jobs.pop_front() {
            Some(Job::Superblock(mark)) => self.mark = mark,
            Some(Job::Bitmap(sector)) => self.turn(sector, Bit::Writing, Bit::Set(0)),
            None => {}
        }
        true
    }

    /// All bits of a sector of the bitmap that are `from` become `to`.
    fn turn(&mut self, sector: Sector, from: Bit, to: Bit) {
        for chunk in self.active.iter().map(|c| *c as usize) {
            if Self::sector_of(chunk) == sector && self.bits[chunk] == from {
                self.bits[chunk] = to;
            }
        }
    }
}
