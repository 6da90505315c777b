//! What a load leaves in a disk's full write cache.

use iosched_types::{Bytes, SECTOR, Sector};

use crate::math::mix;

/// A block of the write cache where nothing is known of the writers.
const BLOCK: Bytes = 4096;

/// Where a process writes and how. A cache that is full at the start of a run holds what it would have left there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// First byte of its part of the device.
    pub start: Bytes,
    /// Bytes of that part.
    pub len: Bytes,
    /// Mean size of its writes.
    pub size: Bytes,
    /// One write follows the other, so they are one extent in the cache.
    pub sequential: bool,
}

/// Extents (first sector, sectors) that fill `room` bytes of a cache, in equal shares of the writers: blocks of a writer's size
/// from all over its part, or the end of that part, where a sequential writer's last pass ended. Without writers they
/// are blocks of 4 KiB from all over the disk. Blocks of a small part may come more than once.
pub(crate) fn extents(writers: &[Writer], cap: Bytes, room: Bytes) -> Vec<(Sector, Sector)> {
    let anywhere = [Writer { start: 0, len: cap, size: BLOCK, sequential: false }];
    let writers = if writers.is_empty() { &anywhere[..] } else { writers };
    let share = room / writers.len() as Bytes / SECTOR;
    let mut out = Vec::new();
    for w in writers {
        let (start, len) = (w.start / SECTOR, w.len.min(cap - w.start.min(cap)) / SECTOR);
        let size = (w.size / SECTOR).clamp(1, share.max(1));
        if w.sequential {
            let sectors = share.min(len);
            out.push((start + len - sectors, sectors));
        } else if let blocks @ 1.. = len / size {
            let first = out.len() as u64;
            out.extend(
                (first..first + share / size).map(|i| (start + mix(i) % blocks * size, size)),
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_leave_what_they_write() {
        let w = Writer { start: 1 << 30, len: 1 << 30, size: 1 << 20, sequential: true };
        assert_eq!(extents(&[w], 1 << 40, 32 << 20), [((2 << 21) - (1 << 16), 1 << 16)]);
        let random = extents(&[Writer { sequential: false, ..w }], 1 << 40, 32 << 20);
        assert_eq!(random.len(), 32);
        assert!(random.iter().all(|(at, n)| *n == 2048 && (1 << 21..2 << 21).contains(at)));
        // Two share the cache.
        let both = extents(&[w, Writer { size: 4096, sequential: false, ..w }], 1 << 40, 32 << 20);
        assert_eq!((both.len(), both[0].1, both[1].1), (1 + 4096, 1 << 15, 8));
        // Nothing is known: as hours of random writes leave it.
        let unknown = extents(&[], 1 << 40, 32 << 20);
        assert!(unknown.len() == 8192 && unknown.iter().any(|e| e.0 > 1 << 30));
    }
}
