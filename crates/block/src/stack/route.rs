//! Which leg a part of a bio goes to, and as what.

use iosched_schedulers::KernelVersion;
use iosched_types::{Bio, BioId, Op, Sector, TaskId};

use super::balance::{Balance, Why};
use super::ledger::{Ledger, Of};
use super::legs::Legs;
use super::parts::Layout;
use crate::config::{ArrayConfig, Level};

/// Layout, balance and books of an array.
#[derive(Debug)]
pub(super) struct Routes {
    level: Level,
    layout: Layout,
    balance: Balance,
    pub(super) books: Ledger,
}

impl Routes {
    pub(super) fn new(kernel: KernelVersion, config: &ArrayConfig, legs: &mut Legs<'_>) -> Routes {
        let (mut rotational, mut sectors) = (Vec::new(), Vec::new());
        legs.each(|leg| {
            rotational.push(leg.facts().rotational);
            sectors.push(leg.facts().capacity);
        });
        let rotational = rotational.into_iter();
        Routes {
            level: config.level,
            layout: Layout::new(kernel, config, &sectors),
            balance: Balance::new(kernel, rotational, config.optimal_io, &config.write_mostly),
            books: Ledger::new(sectors.len()),
        }
    }

    pub(super) fn legs(&self) -> usize {
        self.books.legs().len()
    }

    /// The leg of a linear array that a sector lies on; `None` of a mirror.
    pub(super) fn only_leg(&self, sector: Sector) -> Option<usize> {
        (self.level == Level::Linear).then(|| self.layout.leg(sector))
    }

    /// The parts of a bio, each of which stays on one leg and in one unit; the bio waits for all of them.
    pub(super) fn parts(&mut self, master: u32, bio: Bio) -> impl Iterator<Item = Bio> + use<'_> {
        let copies = match (self.level, bio.op) {
            (Level::Raid1, Op::Write | Op::Discard) => self.books.legs().len() as u32,
            _ => 1,
        };
        let Routes { layout, books, .. } = self;
        layout.parts(bio).inspect(move |_| books.add_parts(master, copies))
    }

    /// The leg of a read, and what it gets.
    pub(super) fn read(&mut self, thread: TaskId, master: u32, bio: Bio) -> (usize, Bio) {
        let (leg, why) = match self.only_leg(bio.sector) {
            Some(leg) => {
                self.balance.sent(leg);
                (leg, Why::Place)
            }
            None => {
                let sector = self.layout.on_leg(0, bio.sector);
                self.balance.choose(sector, sector + Sector::from(bio.sectors))
            }
        };
        self.books.count_read(leg);
        let sector = self.layout.on_leg(leg, bio.sector);
        let of = Of::Master(master);
        (leg, self.books.clone_for(thread, of, leg, Bio { sector, ..bio }, why))
    }

    /// What a leg gets of a write.
    pub(super) fn copy(&mut self, thread: TaskId, master: u32, leg: usize, bio: Bio) -> Bio {
        self.books.count_write(leg);
        self.balance.sent(leg);
        let sector = self.layout.on_leg(leg, bio.sector);
        self.books.clone_for(thread, Of::Master(master), leg, Bio { sector, ..bio }, Why::Every)
    }

    /// A leg has done that bio.
    pub(super) fn came_back(&mut self, id: BioId) -> Of {
        let below = self.books.came_back(id);
        if let Of::Master(_) = below.of
            && below.end > 0
        {
            self.balance.came_back(below.leg, below.end, below.read);
        }
        below.of
    }
}
