//! How much memory files get, and what the kernel keeps free.

use iosched_types::Bytes;

use crate::cache::PAGE;

/// Descriptions of all pages take a 64th of memory: 64 bytes a page.
const DESCRIPTIONS: u64 = 64;
/// The kernel itself and what runs beside: what a small 6.12 takes.
const KERNEL: Bytes = 26 << 20;

/// Pages free for files on a machine that has just been started.
#[must_use]
pub fn free_at_start(memory: Bytes) -> u64 {
    let all = memory / PAGE;
    let taken = all / DESCRIPTIONS + KERNEL / PAGE;
    // A machine too small for that still has some.
    all.saturating_sub(taken).max(all / 8)
}

/// Pages that are kept free: reclaim begins below `low` and goes on up to `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watermarks {
    /// Who needs a page below it frees some himself.
    pub min: u64,
    /// `kswapd` wakes below it.
    pub low: u64,
    /// `kswapd` rests above it.
    pub high: u64,
}

impl Watermarks {
    /// Those of a machine with the default `vm.min_free_kbytes` and `vm.watermark_scale_factor`.
    #[must_use]
    pub fn of(memory: Bytes) -> Watermarks {
        let kib = memory >> 10;
        let min = (4 * kib.isqrt()).clamp(128, 256 << 10) / (PAGE >> 10);
        let gap = (min / 4).max(memory / PAGE / 1000);
        Watermarks { min, low: min + gap, high: min + 2 * gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.12: 114,910 pages had the marks 658, 822 and 986. Of 1 GiB, dirty limits began at 49,900 pages, a fifth of
    /// what files could have.
    #[test]
    fn marks_and_room_are_the_kernels() {
        let marks = Watermarks::of(114_910 * PAGE);
        assert!(marks.min.abs_diff(658) < 30 && marks.high.abs_diff(986) < 40, "{marks:?}");
        let free = free_at_start(1 << 30) - Watermarks::of(1 << 30).high;
        assert!((free / 5).abs_diff(49_900) < 200, "{free}");
        assert!(free_at_start(4 << 20) > 0);
    }
}
