//! The dirty data in a disk's write cache: extents in order of their place.

use std::collections::{BTreeMap, BTreeSet};

use iosched_types::{Nanos, Sector};

use super::mechanics::Mechanics;

/// Sectors from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: Sector,
    pub(crate) end: Sector,
}

/// Positioning time to the start of an extent.
fn position(mech: &Mechanics, start: Sector, now: Nanos) -> Nanos {
    if start == mech.head {
        return mech.go_on(false, now);
    }
    mech.position(start, mech.turn(start), now)
}

/// Extents by place and by age. They neither touch nor overlap.
///
/// The age of an extent is that of its oldest data, as a number that only grows.
#[derive(Debug, Default)]
pub(crate) struct DirtyMap {
    /// Start to end and age.
    by_place: BTreeMap<Sector, (Sector, u64)>,
    /// Age and start.
    by_age: BTreeSet<(u64, Sector)>,
    sectors: Sector,
    inserted: u64,
}

impl DirtyMap {
    /// Dirty sectors.
    pub(crate) fn sectors(&self) -> Sector {
        self.sectors
    }

    fn add(&mut self, e: Extent, age: u64) {
        self.by_place.insert(e.start, (e.end, age));
        self.by_age.insert((age, e.start));
        self.sectors += e.end - e.start;
    }

    fn take(&mut self, start: Sector) -> Option<(Extent, u64)> {
        let (end, age) = self.by_place.remove(&start)?;
        self.by_age.remove(&(age, start));
        self.sectors -= end - start;
        Some((Extent { start, end }, age))
    }

    /// The last extent that begins before `end` and ends at or behind `least`.
    fn last_before(&self, end: Sector, least: Sector) -> Option<Sector> {
        let (start, (e, _)) = self.by_place.range(..end).next_back()?;
        (*e >= least).then_some(*start)
    }

    /// Marks a range dirty. The range joins the extents that it overlaps or touches.
    pub(crate) fn insert(&mut self, mut new: Extent) {
        if new.start >= new.end {
            return;
        }
        let mut age = self.inserted;
        self.inserted += 1;
        while let Some(start) = self.last_before(new.end + 1, new.start) {
            let Some((e, a)) = self.take(start) else { break };
            new = Extent { start: new.start.min(e.start), end: new.end.max(e.end) };
            age = age.min(a);
        }
        self.add(new, age);
    }

    /// Whether the whole range is in the cache.
    pub(crate) fn covers(&self, r: Extent) -> bool {
        let e = self.by_place.range(..=r.start).next_back();
        r.start < r.end && e.is_some_and(|(_, (end, _))| r.end <= *end)
    }

    /// The range is on the medium (written there, or by a command that bypassed the cache).
    pub(crate) fn remove(&mut self, r: Extent) {
        if r.start >= r.end {
            return;
        }
        while let Some(start) = self.last_before(r.end, r.start + 1) {
            let Some((e, age)) = self.take(start) else { break };
            if e.end > r.end {
                self.add(Extent { start: r.end, end: e.end }, age);
            }
            if e.start < r.start {
                self.add(Extent { start: e.start, end: r.start }, age);
            }
        }
    }

    /// Of the `window` oldest extents, the one that the head reaches soonest, and its positioning time. Of several, the
    /// lowest. A window of 0 takes in all extents.
    pub(crate) fn nearest_of_oldest(
        &self,
        mech: &Mechanics,
        now: Nanos,
        window: usize,
    ) -> Option<(Extent, Nanos)> {
        if window == 0 || self.by_place.len() <= window {
            return self.nearest(mech, now);
        }
        let oldest = self.by_age.iter().take(window).map(|(_, start)| *start);
        let timed = oldest.map(|start| (position(mech, start, now), start));
        let (pos, start) = timed.min()?;
        let (end, _) = self.by_place.get(&start)?;
        Some((Extent { start, end: *end }, pos))
    }

    /// The extent that the head reaches soonest and its positioning time; of several, the lowest.
    ///
    /// Walks away from the head on both sides until a seek of that distance alone takes longer.
    fn nearest(&self, mech: &Mechanics, now: Nanos) -> Option<(Extent, Nanos)> {
        let mut best: Option<(Nanos, Sector, Sector)> = None;
        let mut take = |(start, (end, _)): (&Sector, &(Sector, u64))| {
            if best.is_some_and(|(pos, ..)| mech.at_least(*start) > pos) {
                return false;
            }
            let pos = position(mech, *start, now);
            if best.is_none_or(|(p, s, _)| (pos, *start) < (p, s)) {
                best = Some((pos, *start, *end));
            }
            true
        };
        let _ = self.by_place.range(mech.head..).all(&mut take);
        let _ = self.by_place.range(..mech.head).rev().all(&mut take);
        best.map(|(pos, start, end)| (Extent { start, end }, pos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{HddParams, Rotation};
    use proptest::prelude::*;

    fn drive() -> Mechanics {
        let mut values: Vec<u64> =
            HddParams::KEYS.iter().map(|k| k.default.unwrap_or(256 * 512)).collect();
        values.resize(HddParams::KEYS.len(), 0);
        let mut p = HddParams::from_values(&values);
        (p.ovh_ns, p.seek_a, p.seek_b, p.seek_c, p.bw) = (10, 100, 9000, 700, 150_000_000);
        (p.rot, p.spt, p.rev_ns) = (Rotation::Angle, 13, 5_000);
        Mechanics::new(&p)
    }

    #[test]
    fn a_window_holds_the_oldest() {
        let (mut map, mech) = (DirtyMap::default(), drive());
        for start in [200, 100, 40, 20] {
            map.insert(Extent { start, end: start + 2 });
        }
        let nearest = |window| map.nearest_of_oldest(&mech, 0, window).unwrap().0.start;
        assert_eq!(nearest(1), 200);
        assert!([100, 200].contains(&nearest(2)));
        // What joins old data is as old.
        map.insert(Extent { start: 190, end: 200 });
        assert_eq!(map.nearest_of_oldest(&mech, 0, 1).unwrap().0.start, 190);
    }

    proptest! {
        /// Against a bit per sector.
        #[test]
        fn is_a_set_of_sectors(
            ops in proptest::collection::vec((any::<bool>(), 0u64..250, 0u64..30), 1..60),
            head in 0u64..256,
        ) {
            let (mut map, mut bits) = (DirtyMap::default(), [false; 300]);
            let mut mech = drive();
            mech.head = head;
            for (insert, start, len) in ops {
                let r = Extent { start, end: start + len };
                let range = start as usize..(start + len) as usize;
                let covered = len > 0 && bits[range.clone()].iter().all(|b| *b);
                prop_assert_eq!(map.covers(r), covered);
                if insert { map.insert(r) } else { map.remove(r) }
                bits[range].fill(insert);
                let mut want: Vec<Extent> = Vec::new();
                for s in (0..300).filter(|s| bits[*s as usize]) {
                    match want.last_mut().filter(|e| e.end == s) {
                        Some(e) => e.end += 1,
                        None => want.push(Extent { start: s, end: s + 1 }),
                    }
                }
                prop_assert_eq!(map.sectors(), bits.iter().filter(|b| **b).count() as u64);
                let time = |e: &Extent| position(&mech, e.start, 77);
                let nearest = want.iter().min_by_key(|e| (time(e), e.start));
                prop_assert_eq!(map.nearest(&mech, 77), nearest.map(|e| (*e, time(e))));
                let ours = map.by_place.iter().map(|(s, e)| Extent { start: *s, end: e.0 });
                prop_assert_eq!(ours.collect::<Vec<_>>(), want);
                prop_assert_eq!(map.by_age.len(), map.by_place.len());
            }
        }
    }
}
