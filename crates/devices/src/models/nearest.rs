//! The command that the arm reaches soonest: native command queueing's choice among those waiting.
//!
//! The platter passes a sector at `phi`, `phi + rev`, `phi + 2 rev` … from now. The positioning time is the first of
//! these that is not before the end of the seek. So the commands are kept in the order of their angles. The search
//! starts at the angle under the head, and the first command with a seek that ends in time is the nearest. On a disk
//! with 32 commands the search looks at a dozen of them, and hardly ever needs an exact seek time.

use iosched_types::{Nanos, Sector};

use super::mechanics::{Mechanics, RINGS};

/// A command waiting for the arm.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) sector: Sector,
    /// What rotation adds for the sector ([`Mechanics::turn`]).
    pub(crate) turn: u32,
    /// Index of the command.
    pub(crate) slot: u32,
}

/// Turns of the platter that the search by angle follows. A longer search only pays where seeks are many turns long.
const TURNS: usize = 2;

/// Commands that are kept in order: NCQ has 32 slots.
pub(crate) const LANES: usize = 32;

/// Numbers in a byte.
const NAMES: usize = 256;

/// Words of an order.
const WORDS: usize = LANES / 8;

/// For each place, a mask of the bytes before it.
static KEEP: [[u64; WORDS]; 2 * LANES] = {
    let mut all = [[0; WORDS]; 2 * LANES];
    let mut at = 0;
    while at < 2 * LANES {
        let mut w = 0;
        while w < WORDS {
            let mut bytes = [0; 8];
            let mut i = 0;
            while i < 8 {
                bytes[i] = if 8 * w + i < at { 0xff } else { 0 };
                i += 1;
            }
            all[at][w] = u64::from_ne_bytes(bytes);
            w += 1;
        }
        at += 1;
    }
    all
};

/// Up to [`LANES`] commands in the order of their angles, those of one angle in the order of their admission.
///
/// A command stays in its lane; only a byte in `order` moves. All loops have fixed lengths, and no branch in them
/// depends on the commands. So they become vector instructions without anything to predict.
#[derive(Debug)]
pub(crate) struct ByAngle {
    /// The angle in each lane, `i32::MAX` in those without a command. There are as many lanes as a byte can name, so an
    /// entry of `order` needs no check.
    turns: [i32; NAMES],
    /// The ring of the drive that each command is in.
    rings: [u8; NAMES],
    sectors: [Sector; NAMES],
    slots: [u32; NAMES],
    /// The lanes in order of angle, between two spare bytes that make room for shifting.
    order: [u8; LANES + 2],
    free: u32,
    len: usize,
}

impl ByAngle {
    pub(crate) fn new() -> Self {
        ByAngle {
            turns: [i32::MAX; NAMES],
            rings: [0; NAMES],
            sectors: [0; NAMES],
            slots: [0; NAMES],
            order: [0; LANES + 2],
            free: u32::MAX,
            len: 0,
        }
    }

    /// How many commands have an angle below `bound`: adds up the signs of the differences in four lanes. It is a
    /// function of its own because the compiler makes single steps of it where it is inlined.
    #[inline(never)]
    fn rank(&self, bound: u32) -> usize {
        let mut below = [0u32; 4];
        for four in self.turns[..LANES].chunks_exact(4) {
            for (n, turn) in below.iter_mut().zip(four) {
                *n += turn.wrapping_sub(bound as i32) as u32 >> 31;
            }
        }
        below.iter().sum::<u32>() as usize
    }

    #[inline]
    fn lane(&self, place: usize) -> usize {
        usize::from(self.order[(place & (LANES - 1)) + 1])
    }

    /// Adds a command that was admitted after all others. Returns `false` when there is no room, or no such sector.
    #[inline(always)]
    pub(crate) fn insert(&mut self, mech: &Mechanics, w: Waiting) -> bool {
        let lane = self.free.trailing_zeros() as usize;
        if lane >= LANES || !mech.has(w.sector) {
            return false;
        }
        let at = self.rank(w.turn + 1);
        self.free &= self.free - 1;
        self.len += 1;
        self.turns[lane] = w.turn as i32;
        self.rings[lane] = mech.ring(w.sector);
        self.sectors[lane] = w.sector;
        self.slots[lane] = w.slot;
        self.shift(at, 0);
        self.order[(at & (LANES - 1)) + 1] = lane as u8;
        true
    }

    /// Takes out a command by its place.
    #[inline(always)]
    pub(crate) fn remove(&mut self, at: usize) {
        let lane = self.lane(at);
        self.free |= 1 << lane;
        self.len -= 1;
        self.turns[lane] = i32::MAX;
        self.shift(at, 2);
    }

    /// Every place from `at` on takes the lane of the place before it (`from` 0) or behind it (`from` 2).
    #[inline]
    fn shift(&mut self, at: usize, from: usize) {
        let keep = &KEEP[at & (2 * LANES - 1)];
        let word = |i: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&self.order[i..i + 8]);
            u64::from_ne_bytes(eight)
        };
        let new: [[u8; 8]; WORDS] = std::array::from_fn(|w| {
            ((word(8 * w + 1) & keep[w]) | (word(8 * w + from) & !keep[w])).to_ne_bytes()
        });
        self.order[1..=LANES].copy_from_slice(new.as_flattened());
    }

    pub(crate) fn clear(&mut self) {
        (self.free, self.len) = (u32::MAX, 0);
        self.turns = [i32::MAX; NAMES];
    }

    /// The command at a place.
    #[inline]
    pub(crate) fn slot(&self, at: usize) -> u32 {
        self.slots[self.lane(at)]
    }

    /// The place of a command.
    pub(crate) fn place(&self, turn: u32, slot: u32) -> Option<usize> {
        let from = self.rank(turn);
        (from..self.len).find(|at| self.slot(*at) == slot)
    }

    /// Whether a command starts at `sector`.
    pub(crate) fn starts_at(&self, sector: Sector) -> bool {
        (0..self.len).any(|at| self.sectors[self.lane(at)] == sector)
    }

    /// The place of the command with the shortest positioning time (of several, the first admitted) and that time.
    /// `None` when no seek ends within two turns. The caller makes sure that no command starts right under the head:
    /// such a command needs neither a seek nor a turn.
    #[inline(always)]
    pub(crate) fn nearest(&self, mech: &Mechanics, now: Nanos) -> Option<(usize, Nanos)> {
        if !mech.head_is_inside() {
            return None;
        }
        // Nothing can be reached before the shortest seek is over.
        let (least, _) = mech.seek_bounds(0);
        let phase = mech.phase(now + least);
        let (from, len) = (self.rank(phase as u32), self.len);
        let mut offset = (least as u32).wrapping_sub(phase as u32);
        for _ in 0..TURNS {
            if let Some(found) = self.first_in_time(mech, from..len, offset) {
                return Some(found);
            }
            offset = offset.wrapping_add(mech.rev as u32);
            if let Some(found) = self.first_in_time(mech, 0..from, offset) {
                return Some(found);
            }
        }
        None
    }

    /// The first command that the arm reaches in time: its sector passes `offset` (wrapping) after its angle, not
    /// before the arm is there.
    #[inline]
    fn first_in_time(
        &self,
        mech: &Mechanics,
        mut places: std::ops::Range<usize>,
        offset: u32,
    ) -> Option<(usize, Nanos)> {
        let least = mech.least_from_head();
        while let Some(at) = self.first_possible(least, places.clone(), offset) {
            let lane = self.lane(at);
            let pos = Nanos::from((self.turns[lane] as u32).wrapping_add(offset));
            if mech.arrives(self.sectors[lane], pos) {
                return Some((at, pos));
            }
            places.start = at + 1;
        }
        None
    }

    /// The first command with a sector that passes no sooner than the arm may be in its ring. The search for the
    /// nearest spends its time in this loop, so the loop is kept small, in a function of its own.
    #[inline(never)]
    fn first_possible(
        &self,
        least: &[u32; RINGS],
        places: std::ops::Range<usize>,
        offset: u32,
    ) -> Option<usize> {
        let first = places.start;
        let lanes = self.order.get(1 + first..1 + places.end)?;
        let possible = |lane: &u8| {
            let lane = usize::from(*lane);
            (self.turns[lane] as u32).wrapping_add(offset) >= least[usize::from(self.rings[lane])]
        };
        Some(first + lanes.iter().position(possible)?)
    }
}

/// The command with the shortest positioning time, the first of several, and that time. `candidates` come in the order
/// of their admission, and `go_on` tells the positioning time of one that begins under the head. This is right for every
/// drive, but slow: each candidate costs.
pub(crate) fn nearest_of(
    mech: &Mechanics,
    candidates: impl Iterator<Item = Waiting>,
    go_on: impl Fn(&Waiting) -> Nanos,
    now: Nanos,
) -> Option<(Waiting, Nanos)> {
    let mut best: Option<(Waiting, Nanos)> = None;
    for w in candidates {
        let soonest = best.map_or(Nanos::MAX, |b| b.1);
        if w.sector == mech.head {
            let pos = go_on(&w);
            if pos < soonest {
                best = Some((w, pos));
            }
            if pos == 0 {
                return best;
            }
            continue;
        }
        if mech.soonest(w.sector, w.turn) >= soonest {
            continue;
        }
        let pos = mech.position(w.sector, w.turn, now);
        if pos < soonest {
            best = Some((w, pos));
        }
    }
    best
}

/// How many commands start where; answers "none starts here" at once.
///
/// Counts by a hash of the sector, so a count above zero only says "perhaps".
#[derive(Debug)]
pub(crate) struct Starts(Box<[u32; Starts::BUCKETS]>);

impl Starts {
    const BUCKETS: usize = 512;

    pub(crate) fn new() -> Self {
        Starts(Box::new([0; Starts::BUCKETS]))
    }

    #[inline]
    fn bucket(sector: Sector) -> usize {
        (sector.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize
    }

    #[inline]
    pub(crate) fn add(&mut self, sector: Sector) {
        self.0[Self::bucket(sector)] += 1;
    }

    #[inline]
    pub(crate) fn remove(&mut self, sector: Sector) {
        self.0[Self::bucket(sector)] -= 1;
    }

    /// Whether a command may start here.
    #[inline]
    pub(crate) fn perhaps(&self, sector: Sector) -> bool {
        self.0[Self::bucket(sector)] > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{HddParams, Rotation};
    use proptest::prelude::*;

    fn drive(seek: (u64, u64, u64), rev_ns: u64, spt: u64) -> Mechanics {
        let mut values: Vec<u64> =
            HddParams::KEYS.iter().map(|k| k.default.unwrap_or(4096 * 512)).collect();
        values.resize(HddParams::KEYS.len(), 0);
        let mut p = HddParams::from_values(&values);
        (p.ovh_ns, p.seek_a, p.seek_b, p.seek_c, p.bw) = (10, seek.0, seek.1, seek.2, 150_000_000);
        (p.rot, p.spt, p.rev_ns) = (Rotation::Angle, spt, rev_ns);
        Mechanics::new(&p)
    }

    proptest! {
        /// The search by angle against every positioning time computed, ties by admission.
        #[test]
        fn the_first_in_time_is_the_nearest(
            sectors in proptest::collection::vec(0u64..4096, 1..LANES),
            seek in (0u64..300, 0u64..9000, 0u64..2000),
            (rev, spt) in (1u64..9000, 1u64..60),
            // The head may stand behind the last sector.
            (head, now) in (0u64..4097, 0u64..1 << 40),
        ) {
            let mut mech = drive(seek, rev, spt);
            mech.head = head;
            let mut by_angle = ByAngle::new();
            let mut all = Vec::new();
            for (slot, sector) in sectors.into_iter().filter(|s| *s != head).enumerate() {
                let w = Waiting { sector, turn: mech.turn(sector), slot: slot as u32 };
                prop_assert!(by_angle.insert(&mech, w));
                all.push(w);
            }
            let times = all.iter().map(|w| (mech.position(w.sector, w.turn, now), w.slot));
            let want = times.min().map(|(pos, slot)| (slot, pos));
            let got = by_angle.nearest(&mech, now).map(|(i, pos)| (by_angle.slot(i), pos));
            prop_assert!(got == want || got.is_none() && want.is_none_or(|w| w.1 > rev));
            let slow = nearest_of(&mech, all.iter().copied(), |_| 0, now).map(|(w, pos)| (w.slot, pos));
            prop_assert_eq!(slow, want);
            for w in all {
                let at = by_angle.place(w.turn, w.slot).unwrap();
                prop_assert_eq!(by_angle.slot(at), w.slot);
                by_angle.remove(at);
            }
            prop_assert_eq!(by_angle.len, 0);
        }
    }
}
