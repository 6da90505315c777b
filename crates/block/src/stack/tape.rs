//! Bios on a tape: when each was queued, issued and done, as a recorder of a running kernel sees it.

use iosched_types::{Bio, BioId, Flags, IoPrio, Nanos, Op, Sector, TaskId};

use crate::outbox::Done;
use crate::stats::Issue;

/// Most bios of a tape, in 2.5 GB of memory.
const MOST: usize = 40_000_000;

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
    open: Vec<Open>,
    pub(super) bios: Vec<Taped>,
    /// Bios that have no room on it.
    pub(super) left_out: u64,
}

impl Tape {
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
        if self.bios.len() == MOST {
            self.left_out += 1;
            return;
        }
        self.open.push(Open { id: bio.id, at: self.bios.len(), end: bio.end(), pieces: 1 });
        self.bios.push(Taped {
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
        });
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
            if open.pieces == 0 {
                self.bios[open.at].done = Some(d.at);
                self.open.swap_remove(i);
            }
        }
    }
}
