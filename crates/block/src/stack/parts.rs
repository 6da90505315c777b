//! Where the sectors of an array lie.

use iosched_schedulers::KernelVersion;
use iosched_types::{Bio, Op, Sector};

use crate::config::{ArrayConfig, Level};

/// Resync and other I/O keep each other out by units of 64 MiB: no bio crosses one.
const UNIT: Sector = 131_072;

/// The layout of an array.
#[derive(Debug)]
pub(super) struct Layout {
    level: Level,
    offset: Sector,
    /// No bio crosses a multiple of this; 0 without such a rule.
    unit: Sector,
    /// Where each leg ends, in sectors of the array.
    ends: Vec<Sector>,
}

impl Layout {
    /// Legs by their sectors.
    pub(super) fn new(kernel: KernelVersion, config: &ArrayConfig, legs: &[Sector]) -> Layout {
        let mut end = 0;
        let ends = legs.iter().map(|sectors| {
            end += sectors.saturating_sub(config.data_offset);
            end
        });
        let unit = match config.level {
            Level::Raid1 if kernel >= KernelVersion(4, 11, 0) => UNIT,
            _ => 0,
        };
        Layout { level: config.level, offset: config.data_offset, unit, ends: ends.collect() }
    }

    /// Sectors of `bio` up to the next place where it must be split.
    fn room(&self, bio: &Bio) -> u32 {
        let border = match self.level {
            Level::Linear => self.ends.iter().copied().find(|end| bio.sector < *end),
            Level::Raid1 if self.unit > 0 => Some((bio.sector / self.unit + 1) * self.unit),
            Level::Raid1 => None,
        };
        let room = border.map_or(u64::from(bio.sectors), |b| b - bio.sector);
        room.min(u64::from(bio.sectors)) as u32
    }

    /// The parts of a bio, each of which stays on one leg and in one unit.
    pub(super) fn parts(&self, bio: Bio) -> impl Iterator<Item = Bio> + use<'_> {
        let mut rest = bio;
        let mut first = true;
        std::iter::from_fn(move || {
            if !std::mem::take(&mut first) && rest.sectors == 0 {
                return None;
            }
            let n = if rest.op == Op::Flush { 0 } else { self.room(&rest) };
            let part = Bio { sectors: n, ..rest };
            rest.sector += Sector::from(n);
            rest.sectors -= n;
            Some(part)
        })
    }

    /// The leg of a linear array on which a sector lies.
    pub(super) fn leg(&self, sector: Sector) -> usize {
        self.ends.iter().position(|end| sector < *end).unwrap_or(self.ends.len() - 1)
    }

    /// A sector of the array as a sector of a leg.
    pub(super) fn on_leg(&self, leg: usize, sector: Sector) -> Sector {
        let before = match self.level {
            Level::Linear if leg > 0 => self.ends[leg - 1],
            _ => 0,
        };
        sector - before + self.offset
    }
}
