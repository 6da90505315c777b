//! The arm and the platter: seek curve, rotation, transfer.

use iosched_types::{Bytes, Nanos, SECTOR, Sector};

use crate::math::{ConstDiv, Rate, isqrt, mix};
use crate::params::{HddParams, Rotation};

/// Steps of the table of seek times.
const STEPS: usize = 1024;
/// How many rings of the drive the search by angle tells apart: as many as one byte can number.
pub(super) const RINGS: usize = 256;

/// A run of tracks of one length: a zone of the platter.
#[derive(Debug)]
struct Zone {
    first: Sector,
    per_track: ConstDiv,
    rate: Rate,
}

/// How long a transfer takes in a zone.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    zone: usize,
    len: Bytes,
    time: Nanos,
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
    pub(super) rev: u64,
    rev_div: ConstDiv,
    sectors: Sector,
    sectors_div: ConstDiv,
    zones: Vec<Zone>,
    bus: Rate,
    /// `table[i]` is the seek time over `i << shift` sectors. The curve never falls, so this is a lower bound for every
    /// longer distance and an upper bound for every shorter one.
    table: Box<[Nanos; STEPS + 1]>,
    /// Lower bounds of the seek times between two rings, by how far the second lies behind the first. `RINGS` stands
    /// for "in the same ring". Empty where a time that the search by angle meets would not fit into 32 bits.
    between: Vec<u32>,
    shift: u32,
    /// The last transfer that was timed, because most are as long as the one before.
    timed: Transfer,
    /// A write that begins later than the command before it ends has missed its sector.
    missed_rev: bool,
    /// End of the last command served.
    pub(crate) head: Sector,
    /// When that was under the head.
    passed: Nanos,
    /// The last command was a read: the drive reads on into its buffer.
    reads_on: bool,
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
            table: Box::new([0; STEPS + 1]),
            between: Vec::new(),
            shift: bits.saturating_sub(STEPS.trailing_zeros()),
            timed: Transfer { zone: 0, len: 0, time: 0 },
            missed_rev: p.missed_rev,
            head: 0,
            passed: 0,
            reads_on: true,
        };
        for i in 0..=STEPS {
            m.table[i] = m.seek(((i as u64) << m.shift).min(sectors - 1));
        }
        if m.rot == Rotation::Angle && m.rev < 1 << 30 && m.table[STEPS] < 1 << 30 {
            let least = |rings: usize| m.table[(rings.max(1) - 1) * (STEPS / RINGS)] as u32;
            m.between = (0..2 * RINGS).map(|i| least(i.abs_diff(RINGS))).collect();
        }
        m
    }

    /// What rotation adds for this sector, as far as it is known before the time is known: the angle of the sector
    /// (`angle`), or the whole rotational delay (`half`, `hash`).
    #[inline(always)]
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
    fn zone_number(&self, sector: Sector) -> usize {
        match self.zones.len() {
            1 => 0,
            _ => self.zones.partition_point(|z| z.first <= sector) - 1,
        }
    }

    #[inline]
    fn zone(&self, sector: Sector) -> &Zone {
        &self.zones[self.zone_number(sector)]
    }

    /// Time to transfer `len` bytes at a sector: the media, or the interface where that is slower.
    #[inline(always)]
    pub(crate) fn transfer(&mut self, sector: Sector, len: Bytes) -> Nanos {
        let zone = self.zone_number(sector);
        if (self.timed.zone, self.timed.len) != (zone, len) {
            let time = self.zones[zone].rate.time(len).max(self.bus.time(len));
            self.timed = Transfer { zone, len, time };
        }
        self.timed.time
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
        self.seek_bounds(self.distance(sector)).0
    }

    /// A lower bound of the positioning time to another sector than the one under the head.
    #[inline]
    pub(super) fn soonest(&self, sector: Sector, turn: u32) -> Nanos {
        let seek = self.seek_bounds(self.distance(sector)).0;
        match self.rot {
            Rotation::Half | Rotation::Hash => seek + u64::from(turn),
            Rotation::Angle => seek,
        }
    }

    /// Bounds of the seek time over a distance: the table's entries before and behind it.
    #[inline]
    pub(super) fn seek_bounds(&self, dist: Sector) -> (Nanos, Nanos) {
        // `shift` leaves ten bits of every distance; the mask only tells the compiler so.
        let step = (dist >> (self.shift & 63)) as usize & (STEPS - 1);
        (self.table[step], self.table[step + 1])
    }

    /// The ring in which a sector of the drive, or the end of the drive, lies.
    #[inline]
    pub(super) fn ring(&self, sector: Sector) -> u8 {
        const STEPS_EACH: u32 = (STEPS / RINGS).trailing_zeros();
        (sector >> ((self.shift + STEPS_EACH) & 63)).min(RINGS as u64 - 1) as u8
    }

    /// Whether commands can be searched by angle: positioning times of two turns and more fit into 32 bits.
    pub(super) fn by_angle(&self) -> bool {
        !self.between.is_empty()
    }

    /// Lower bounds of the seek times from the head into each [`ring`](Self::ring); a distance is less than a ring
    /// shorter than that from ring to ring.
    #[inline]
    pub(super) fn least_from_head(&self) -> &[u32; RINGS] {
        let here = RINGS - usize::from(self.ring(self.head));
        self.between.get(here..).and_then(|b| b.first_chunk()).unwrap_or(&[0; RINGS])
    }

    /// Whether the drive has this sector.
    #[inline]
    pub(super) fn has(&self, sector: Sector) -> bool {
        sector < self.sectors
    }

    /// Whether the head is on the drive. A command that ends at the drive's end leaves the head past the end.
    #[inline]
    pub(super) fn head_is_inside(&self) -> bool {
        self.head <= self.sectors
    }

    #[inline]
    pub(super) fn distance(&self, sector: Sector) -> Sector {
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

    /// The platter's angle in ns when the arm may begin to move.
    #[inline]
    pub(super) fn phase(&self, now: Nanos) -> Nanos {
        self.rev_div.rem(now + self.ovh)
    }

    /// Whether a seek to a sector takes no longer than `pos`: by the table, or else exactly.
    #[inline]
    pub(super) fn arrives(&self, sector: Sector, pos: Nanos) -> bool {
        let dist = self.distance(sector);
        let (low, high) = self.seek_bounds(dist);
        pos >= high || pos >= low && self.arrives_exactly(dist, pos)
    }

    #[cold]
    #[inline(never)]
    fn arrives_exactly(&self, dist: Sector, pos: Nanos) -> bool {
        pos >= self.seek(dist)
    }

    /// The head has passed all up to `end`, at that time.
    #[inline(always)]
    pub(super) fn leave(&mut self, end: Sector, at: Nanos, read: bool) {
        self.head = end;
        self.passed = at;
        self.reads_on = read;
    }

    /// Positioning time to the sector where the head is, starting at `now`. A read that follows a read comes from the
    /// buffer. Anything else meets the platter where it is by then: its sector has passed, and comes round again.
    #[inline]
    pub(super) fn go_on(&self, read: bool, now: Nanos) -> Nanos {
        if !self.missed_rev || now <= self.passed || (read && self.reads_on) {
            return 0;
        }
        match self.rev_div.rem(now - self.passed) {
            0 => 0,
            since => self.rev - since,
        }
    }

    /// Positioning time to a sector with a known [`turn`](Self::turn), starting at `now`; see [`go_on`](Self::go_on) for
    /// the sector under the head.
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
}

/// From angle `at` forward to angle `to`, both below `rev`.
#[inline]
fn wrap(to: u64, at: u64, rev: u64) -> u64 {
    if to >= at { to - at } else { to + rev - at }
}

/// The zones: one of `spt` and `bw` in the reference. With `bw_inner` there are `zones` rings of equal width, and their
/// track length falls evenly from the outer to the inner rate.
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
