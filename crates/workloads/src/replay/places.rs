//! Where a recording's I/Os lie on a disk.

use std::collections::BTreeSet;

use iosched_types::units::show_bytes;
use iosched_types::{SECTOR, Sector};

/// Sectors of a zone, 64 MiB.
const ZONE: Sector = 1 << 17;

/// The zones of a disk that a recording touches, and its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    zones: BTreeSet<u64>,
    last: Option<u64>,
    end: Sector,
}

/// A recording that is larger than a disk, laid on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    zones: Vec<u64>,
    capacity: Sector,
    /// How it was laid there.
    pub words: String,
}

impl Places {
    /// An I/O.
    pub fn add(&mut self, sector: Sector, sectors: u32) {
        let end = sector + Sector::from(sectors);
        self.end = self.end.max(end);
        let (first, last) = (sector / ZONE, end.saturating_sub(1).max(sector) / ZONE);
        // A discard of a whole disk is no reason to keep a list of all its zones.
        for zone in first..=last.min(first + 1024) {
            if self.last != Some(zone) {
                self.zones.insert(zone);
                self.last = Some(zone);
            }
        }
    }

    /// The end of the last I/O.
    #[must_use]
    pub fn end(&self) -> Sector {
        self.end
    }

    /// How the recording is laid on a disk that is smaller than its places; `None`: it fits as it is.
    ///
    /// The zones of 64 MiB that it touches are laid side by side in their order, so what is in order stays in order. Where
    /// these are still too many they begin again at the start of the disk.
    #[must_use]
    pub fn on(&self, capacity: Sector) -> Option<Unplaced> {
        if self.end <= capacity {
            return None;
        }
        let zones: Vec<u64> = self.zones.iter().copied().collect();
        let room = (capacity / ZONE).max(1);
        let bytes = |sectors: Sector| show_bytes((sectors * SECTOR) as f64);
        let mut words = format!(
            "places up to {} on a disk of {}: the {} zones of 64 MiB that the trace touches lie side by side here, in their \
             order",
            bytes(self.end),
            bytes(capacity),
            zones.len()
        );
        if zones.len() as u64 > room {
            words += ", and begin again at the start where the disk ends";
        }
        Some(Unplaced { zones, capacity, words })
    }
}

impl Unplaced {
    /// Where an I/O lies.
    #[must_use]
    pub fn sector(&self, sector: Sector, sectors: u32) -> Sector {
        let (zone, within) = (sector / ZONE, sector % ZONE);
        let at = self.zones.binary_search(&zone).unwrap_or_else(|i| i) as u64;
        let room = (self.capacity / ZONE).max(1);
        let here = (at % room) * ZONE + within;
        here.min(self.capacity.saturating_sub(Sector::from(sectors)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_fits_stays() {
        let mut p = Places::default();
        p.add(1000, 8);
        assert_eq!(p.on(1008), None);
        assert!(p.on(1007).is_some());
    }

    #[test]
    fn touched_zones_lie_side_by_side_in_order() {
        let mut p = Places::default();
        // The second crosses into the next zone.
        for sector in [10 * ZONE + 5, 10 * ZONE + ZONE - 4, 900 * ZONE, 3 * ZONE] {
            p.add(sector, 8);
        }
        let on = p.on(5 * ZONE).unwrap();
        assert_eq!(on.sector(3 * ZONE, 8), 0);
        assert_eq!(on.sector(10 * ZONE + 5, 8), ZONE + 5);
        assert_eq!(on.sector(11 * ZONE - 4, 8), 2 * ZONE - 4);
        assert_eq!(on.sector(11 * ZONE + 4, 8), 2 * ZONE + 4, "what follows still follows");
        assert_eq!(on.sector(900 * ZONE, 8), 3 * ZONE);
        assert!(on.words.contains("4 zones") && !on.words.contains("again"), "{}", on.words);
        let small = p.on(2 * ZONE).unwrap();
        assert_eq!(small.sector(900 * ZONE, 8), ZONE);
        assert_eq!(small.sector(11 * ZONE, 8), 0);
        assert!(small.words.contains("begin again"), "{}", small.words);
        let tiny = p.on(100).unwrap();
        assert_eq!(tiny.sector(10 * ZONE + 5000, 8), 92);
    }
}
