//! The arm and the platter: seek curve, rotation, transfer.

use iosched_types::{Bytes, Nanos, SECTOR, Sector};

use crate::math::{ConstDiv, Rate, isqrt, mix};
use crate::params::{HddParams, Rotation};

/// Steps of the table of seek times.
const STEPS: usize = 1024;

/// Candidates the quick search takes at once: NCQ has 32 slots.
const LANES: usize = 64;

/// Turns and seeks below this leave room for the quick search's 32-bit sums.
const ROOM: Nanos = 1 << 28;

/// A command waiting for the arm; 16 bytes, so that 32 of them are eight cache lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) sector: Sector,
    /// What rotation adds for the sector ([`Mechanics::turn`]).
    pub(crate) turn: u32,
    /// Index of the command.
    pub(crate) slot: u32,
}

/// A run of tracks of one length: a zone of the platter.
#[derive(Debug)]
struct Zone {
    first: Sector,
    per_track: ConstDiv,
    rate: Rate,
}

/// Position and geometry of a drive.
#[derive(Debug)]
pub(crate) struct Mechanics {
    rot: Rotation,
    seed: u64,
    ovh: Nanos,
    seek_a: Nanos,
    seek_b: u64,
    seek_c: u64,
    rev: u64,
    rev_div: ConstDiv,
    sectors: Sector,
    sectors_div: ConstDiv,
    zones: Vec<Zone>,
    bus: Rate,
    /// `table[i]` is the seek time over `i << shift` sectors: a lower bound for every distance from
    /// there on, and an upper bound for every distance up to there, since the curve never falls.
    table: Vec<Nanos>,
    /// The lower bounds in 32 bits; empty where a turn or a seek does not leave room for sums.
    low: Vec<i32>,
    shift: u32,
    /// End of the last command served.
    pub(crate) head: Sector,
}

impl Mechanics {
    pub(crate) fn new(p: &HddParams) -> Self {
        let sectors = p.cap / SECTOR;
        let bits = 64 - (sectors - 1).leading_zeros();
        let mut m = Mechanics {
            rot: p.rot,
            seed: p.seed,
            ovh: p.ovh_ns,
            seek_a: p.seek_a,
            seek_b: p.seek_b,
            seek_c: p.seek_c,
            rev: p.rev_ns,
            rev_div: ConstDiv::new(p.rev_ns.max(1)),
            sectors,
            sectors_div: ConstDiv::new(sectors),
            zones: zones(p, sectors),
            bus: Rate::new(p.bus_bw),
            table: Vec::new(),
            low: Vec::new(),
            shift: bits.saturating_sub(STEPS.trailing_zeros()),
            head: 0,
        };
        m.table = (0..=STEPS as u64).map(|i| m.seek((i << m.shift).min(sectors - 1))).collect();
        if m.rev < ROOM && m.table.iter().all(|t| *t < ROOM) {
            m.low = m.table[..STEPS].iter().map(|t| *t as i32).collect();
        }
        m
    }

    /// What rotation adds for this sector, as far as it can be known before the time is: the angle of
    /// the sector (`angle`), or the whole rotational delay (`half`, `hash`).
    #[inline]
    pub(crate) fn turn(&self, sector: Sector) -> u32 {
        let turn = match self.rot {
            Rotation::Half => self.rev / 2,
            Rotation::Hash => self.rev_div.rem(mix(self.seed ^ sector)),
            Rotation::Angle => {
                let z = self.zone(sector);
                z.per_track.div(z.per_track.rem(sector - z.first) * self.rev)
            }
        };
        turn as u32
    }

    #[inline]
    fn zone(&self, sector: Sector) -> &Zone {
        if self.zones.len() == 1 {
            return &self.zones[0];
        }
        &self.zones[self.zones.partition_point(|z| z.first <= sector) - 1]
    }

    /// Time to transfer `len` bytes at a sector: the media, or the interface where that is slower.
    #[inline]
    pub(crate) fn transfer(&self, sector: Sector, len: Bytes) -> Nanos {
        self.zone(sector).rate.time(len).max(self.bus.time(len))
    }

    /// Time on the interface alone.
    #[inline]
    pub(crate) fn bus_time(&self, len: Bytes) -> Nanos {
        self.bus.time(len)
    }

    /// Sectors of a track there.
    pub(crate) fn track(&self, sector: Sector) -> Sector {
        self.zone(sector).per_track.divisor()
    }

    /// A lower bound of the positioning time, which does not fall with the distance.
    #[inline]
    pub(crate) fn at_least(&self, sector: Sector) -> Nanos {
        if sector == self.head {
            return 0;
        }
        self.table[(self.distance(sector) >> self.shift) as usize]
    }

    #[inline]
    fn distance(&self, sector: Sector) -> Sector {
        sector.abs_diff(self.head).min(self.sectors - 1)
    }

    /// Seek time over a distance below the number of sectors: a + b*sqrt(d/C) + c*(d/C).
    #[inline]
    pub(crate) fn seek(&self, dist: Sector) -> Nanos {
        let x = if dist >> 32 == 0 {
            self.sectors_div.div(dist << 32)
        } else {
            ((u128::from(dist) << 32) / u128::from(self.sectors)) as u64
        };
        self.seek_a + ((self.seek_b * isqrt(x << 32)) >> 32) + ((self.seek_c * x) >> 32)
    }

    /// Positioning time to a sector whose [`turn`](Self::turn) is known, starting at `now`.
    #[inline]
    pub(crate) fn position(&self, sector: Sector, turn: u32, now: Nanos) -> Nanos {
        if sector == self.head {
            return 0;
        }
        let seek = self.seek(self.distance(sector));
        match self.rot {
            Rotation::Half | Rotation::Hash => seek + u64::from(turn),
            Rotation::Angle => {
                let at = self.rev_div.rem(now + self.ovh + seek);
                seek + wrap(u64::from(turn), at, self.rev)
            }
        }
    }

    /// The candidate with the shortest positioning time (the first of several) and that time.
    #[inline]
    pub(crate) fn nearest(&self, candidates: &[Waiting], now: Nanos) -> (usize, Nanos) {
        match self.rot {
            Rotation::Angle => self
                .nearest_by_bounds(candidates, now)
                .unwrap_or_else(|| self.nearest_by_angle(candidates, now)),
            Rotation::Half | Rotation::Hash => self.nearest_by_sum(candidates),
        }
    }

    fn nearest_by_sum(&self, candidates: &[Waiting]) -> (usize, Nanos) {
        let mut best = (0, Nanos::MAX);
        for (i, Waiting { sector, turn, .. }) in candidates.iter().copied().enumerate() {
            if sector == self.head {
                return if best.1 == 0 { best } else { (i, 0) };
            }
            let dist = self.distance(sector);
            if self.table[(dist >> self.shift) as usize] + u64::from(turn) >= best.1 {
                continue;
            }
            let pos = self.seek(dist) + u64::from(turn);
            if pos < best.1 {
                best = (i, pos);
            }
        }
        best
    }

    /// The quick answer: the candidate with the smallest lower bound, if its bound is exact. Then no
    /// other can be sooner, and none before it in the queue can be as soon.
    ///
    /// Works without branches that depend on the candidates, in 32-bit lanes: a bound is the first
    /// passage of the sector (of three) that is not before the table's lower bound of the seek.
    fn nearest_by_bounds(&self, candidates: &[Waiting], now: Nanos) -> Option<(usize, Nanos)> {
        let n = candidates.len();
        if n > LANES || self.low.is_empty() {
            return None;
        }
        let phase = self.rev_div.rem(now + self.ovh) as i32;
        let rev = self.rev as i32;
        let low: &[i32; STEPS] = self.low.first_chunk()?;
        let (head, shift) = (self.head, self.shift & 63);
        let (mut lows, mut bounds) = ([0i32; LANES], [0i32; LANES]);
        for ((w, l), b) in candidates.iter().zip(&mut lows).zip(&mut bounds) {
            let step = (w.sector.abs_diff(head) >> shift) as usize;
            *l = low[step & (STEPS - 1)];
            *b = (w.turn as i32).wrapping_sub(phase);
        }
        let mut best = i32::MAX;
        for (b, low) in bounds[..n].iter_mut().zip(&lows[..n]) {
            let mut pos = *b;
            pos = pos.wrapping_add(rev & (pos >> 31));
            pos = pos.wrapping_add(rev & (pos.wrapping_sub(*low) >> 31));
            pos = pos.wrapping_add(rev & (pos.wrapping_sub(*low) >> 31));
            *b = pos;
            best = best.min(pos);
        }
        let i = bounds[..n].iter().position(|b| *b == best)?;
        let pos = best as Nanos;
        // The sector under the head would need neither a seek nor a turn: left to the exact search.
        let exact = pos >= self.seek(self.distance(candidates[i].sector))
            && candidates.iter().all(|w| w.sector != head);
        exact.then_some((i, pos))
    }

    /// The exact answer. The platter passes a sector at `phi`, `phi + rev`, `phi + 2 rev` … from now; the positioning
    /// time is the first of these that is not before the end of the seek. So the exact seek time is
    /// needed only where one of them falls between the bounds that the table gives.
    fn nearest_by_angle(&self, candidates: &[Waiting], now: Nanos) -> (usize, Nanos) {
        let phase = self.rev_div.rem(now + self.ovh);
        let mut best = (0, Nanos::MAX);
        for (i, Waiting { sector, turn, .. }) in candidates.iter().copied().enumerate() {
            if sector == self.head {
                return if best.1 == 0 { best } else { (i, 0) };
            }
            let mut pos = wrap(u64::from(turn), phase, self.rev);
            if pos >= best.1 {
                continue;
            }
            let dist = self.distance(sector);
            let step = (dist >> self.shift) as usize;
            let (low, high) = (self.table[step], self.table[step + 1]);
            if low >= best.1 {
                continue;
            }
            if pos < low {
                pos += self.rev;
                if pos < low {
                    pos += (low - pos).div_ceil(self.rev) * self.rev;
                }
            }
            if pos < high && pos < best.1 {
                let seek = self.seek(dist);
                if pos < seek {
                    pos += (seek - pos).div_ceil(self.rev) * self.rev;
                }
            }
            if pos < best.1 {
                best = (i, pos);
            }
        }
        best
    }
}

/// From angle `at` forward to angle `to`, both below `rev`.
#[inline]
fn wrap(to: u64, at: u64, rev: u64) -> u64 {
    if to >= at { to - at } else { to + rev - at }
}

/// The zones: one of `spt` and `bw` in the reference; with `bw_inner`, `zones` rings of equal width
/// whose track length falls evenly from the outer to the inner rate.
fn zones(p: &HddParams, sectors: Sector) -> Vec<Zone> {
    if p.bw_inner == 0 {
        return vec![Zone { first: 0, per_track: ConstDiv::new(p.spt), rate: Rate::new(p.bw) }];
    }
    let n = p.zones.max(2);
    let rates: Vec<u64> = (0..n).map(|i| p.bw - (p.bw - p.bw_inner) * i / (n - 1)).collect();
    let sum: u128 = rates.iter().map(|r| u128::from(*r)).sum();
    let mut before = 0u128;
    let mut all = Vec::new();
    for rate in rates {
        let per_track = u128::from(rate) * u128::from(p.rev_ns) / (1_000_000_000 * 512);
        all.push(Zone {
            first: (u128::from(sectors) * before / sum) as Sector,
            per_track: ConstDiv::new((per_track as u64).max(1)),
            rate: Rate::new(rate),
        });
        before += u128::from(rate);
    }
    all
}
