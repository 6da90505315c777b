//! Bios on a tape: when each was queued, issued and done, as a recorder of a running kernel sees it.

use std::collections::BTreeMap;

use iosched_types::{Bio, BioId, Flags, IoPrio, Nanos, Op, Sector, TaskId};

use crate::outbox::Done;
use crate::stats::Issue;

/// Most bios of a tape, in 2.5 GB of memory.
const MOST: usize = 40_000_000;

/// Steps in which waits are counted; twice as long ones where a run has more.
const STEPS: u64 = 4096;
/// The first step.
const STEP: Nanos = 1_000_000;

/// Which bios a tape keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// All.
    #[default]
    All,
    /// None, but how long they took, by time and task.
    Waits,
    /// Those under way between two times, at most so many that came between them. The decisions of the scheduler are kept
    /// with reasons, as many.
    Window {
        /// From.
        from: Nanos,
        /// To.
        to: Nanos,
        /// Most bios, and most decisions.
        most: usize,
    },
}

/// How long bios took, by the time of their end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Length of a step.
    pub step: Nanos,
    /// By step and task: how many bios ended, and their time from the queue on in all.
    pub of: BTreeMap<(u64, TaskId), (u64, Nanos)>,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { step: STEP, of: BTreeMap::new() }
    }
}

impl Waits {
    fn add(&mut self, bio: &Taped, at: Nanos) {
        while at / self.step >= STEPS {
            self.step *= 2;
            for ((step, task), (n, sum)) in std::mem::take(&mut self.of) {
                let both = self.of.entry((step / 2, task)).or_default();
                *both = (both.0 + n, both.1 + sum);
            }
        }
        let (n, sum) = self.of.entry((at / self.step, bio.task)).or_default();
        *n += 1;
        *sum += at.saturating_sub(bio.queued);
    }
}

/// A bio that was seen. Its pieces, where it was split, count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taped {
    /// When it was queued.
    pub queued: Nanos,
    /// When its first request went to the device.
    pub issued: Option<Nanos>,
    /// When its last piece was done.
    pub done: Option<Nanos>,
    /// First sector.
    pub sector: Sector,
    /// Sectors; 0 of an empty flush.
    pub sectors: u32,
    /// Its task.
    pub task: TaskId,
    /// Its flags.
    pub flags: Flags,
    /// Its operation.
    pub op: Op,
    /// Its priority.
    pub prio: IoPrio,
    /// The CPU that it came from.
    pub cpu: u16,
}

/// A bio under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    id: BioId,
    /// Its place on the tape.
    at: usize,
    /// Its last sector, and pieces that are not done.
    end: Sector,
    pieces: u32,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Tape {
    keep: Keep,
    open: Vec<Open>,
    bios: Vec<Taped>,
    /// Places of bios that are not kept.
    free: Vec<usize>,
    /// Bios that have no room on it.
    left_out: u64,
    waits: Waits,
    /// Reasons are being collected.
    explains: bool,
}

/// What was seen of a run.
#[derive(Clone, Debug, Default)]
pub struct Reel {
    /// Bios in the order in which they came.
    pub bios: Vec<Taped>,
    /// Bios that there was no room for.
    pub left_out: u64,
    /// How long they took.
    pub waits: Waits,
}

impl Tape {
    pub(super) fn new(keep: Keep) -> Tape {
        Tape { keep, ..Tape::default() }
    }

    /// So many decisions are to be kept from now on: once, when a window begins.
    pub(super) fn opens(&mut self, now: Nanos) -> Option<usize> {
        match self.keep {
            Keep::Window { from, most, .. } if now >= from && !self.explains => {
                self.explains = true;
                Some(most)
            }
            _ => None,
        }
    }

    /// Whether a bio that comes now has a place.
    fn takes(&self, now: Nanos) -> bool {
        let used = self.bios.len() - self.free.len();
        match self.keep {
            Keep::All => used < MOST,
            Keep::Waits => true,
            // Those that came before are under way, which the queue bounds.
            Keep::Window { from, to, most } => now < from || now < to && used < most,
        }
    }

    /// Whether a bio is kept when it is done.
    fn keeps(&self, done: Nanos) -> bool {
        match self.keep {
            Keep::All => true,
            Keep::Waits => false,
            Keep::Window { from, .. } => done >= from,
        }
    }

    pub(super) fn into_reel(mut self) -> Reel {
        if self.keep == Keep::Waits {
            self.bios.clear();
        } else if !self.free.is_empty() {
            self.free.sort_unstable();
            for at in self.free.iter().rev() {
                self.bios.remove(*at);
            }
        }
        if self.keep != Keep::All {
            self.bios.sort_by_key(|b| b.queued);
        }
        Reel { bios: self.bios, left_out: self.left_out, waits: self.waits }
    }

    /// A bio is submitted. A second attempt after a refusal is the same bio.
    pub(super) fn submit(&mut self, now: Nanos, bio: &Bio) {
        if let Some(open) = self.open.iter_mut().find(|o| o.id == bio.id) {
            if bio.sector == open.end && bio.sectors > 0 {
                open.pieces += 1;
                open.end = bio.end();
                self.bios[open.at].sectors += bio.sectors;
            }
            return;
        }
        if !self.takes(now) {
            let to = if let Keep::Window { to, .. } = self.keep { to } else { Nanos::MAX };
            self.left_out += u64::from(now < to);
            return;
        }
        let taped = Taped {
            queued: now,
            issued: None,
            done: None,
            sector: bio.sector,
            sectors: bio.sectors,
            task: bio.task,
            flags: bio.flags,
            op: bio.op,
            prio: bio.prio,
            cpu: bio.cpu,
        };
        let at = self.free.pop().unwrap_or(self.bios.len());
        self.open.push(Open { id: bio.id, at, end: bio.end(), pieces: 1 });
        match self.bios.get_mut(at) {
            Some(place) => *place = taped,
            None => self.bios.push(taped),
        }
    }

    /// Takes what was issued and done since it last looked.
    pub(super) fn roll(&mut self, issues: &[Issue], done: &[Done]) {
        for issue in issues {
            let end = issue.sector + Sector::from(issue.sectors);
            for open in &self.open {
                let bio = &mut self.bios[open.at];
                let inside = bio.sector >= issue.sector && bio.sector < end.max(issue.sector + 1);
                if bio.issued.is_none() && bio.op == issue.op && inside && bio.queued <= issue.t {
                    bio.issued = Some(issue.t);
                }
            }
        }
        for d in done {
            let Some(i) = self.open.iter().position(|o| o.id == d.bio) else { continue };
            let open = &mut self.open[i];
            open.pieces -= 1;
            if open.pieces > 0 {
                continue;
            }
            let at = open.at;
            self.open.swap_remove(i);
            self.bios[at].done = Some(d.at);
            if self.keep == Keep::Waits {
                self.waits.add(&self.bios[at], d.at);
            }
            if !self.keeps(d.at) {
                self.free.push(at);
            }
        }
    }
}
