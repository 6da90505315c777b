//! Exact integer arithmetic of the models: division by constants, square root, hash, transfer time.

use iosched_types::{Bytes, Nanos};

/// Division of any `u64` by a constant, as a multiplication by its 128-bit reciprocal.
///
/// With `m = ceil(2^128 / d)`, `floor(n * m / 2^128)` equals `n / d` for every 64-bit `n`: 128
/// fractional bits are at least 64 + log2(d), the bound of Granlund & Montgomery (PLDI 1994) and of
/// Lemire, Kaser & Kurz (2019).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConstDiv {
    divisor: u64,
    high: u64,
    low: u64,
    /// Up to this number 64 fractional bits are enough.
    small: u64,
    /// ceil(2^64 / divisor).
    short: u64,
}

impl ConstDiv {
    /// Prepares division by `divisor` (at least 1).
    pub(crate) fn new(divisor: u64) -> Self {
        debug_assert!(divisor != 0);
        // 2^128 / 1 does not fit into 128 bits. `div` handles that case by itself.
        let m = if divisor == 1 { 0 } else { u128::MAX / u128::from(divisor) + 1 };
        let (small, short) = match divisor {
            1 => (0, 0),
            d => (u64::MAX / d, u64::MAX / d + 1),
        };
        ConstDiv { divisor, high: (m >> 64) as u64, low: m as u64, small, short }
    }

    /// `n / divisor`.
    #[inline]
    pub(crate) fn div(&self, n: u64) -> u64 {
        // The reciprocal is too large by less than 1 in its last bit, and the product by less than n in that bit. As
        // long as n * divisor < 2^64, this is less than the distance from a multiple of 1/divisor to the next whole
        // number.
        if n <= self.small {
            return ((u128::from(self.short) * u128::from(n)) >> 64) as u64;
        }
        self.div_large(n)
    }

    #[inline(never)]
    fn div_large(&self, n: u64) -> u64 {
        if self.divisor == 1 {
            return n;
        }
        let low = (u128::from(self.low) * u128::from(n)) >> 64;
        ((u128::from(self.high) * u128::from(n) + low) >> 64) as u64
    }

    /// `n % divisor`.
    #[inline]
    pub(crate) fn rem(&self, n: u64) -> u64 {
        n - self.div(n) * self.divisor
    }

    /// The divisor.
    pub(crate) fn divisor(&self) -> u64 {
        self.divisor
    }
}

/// A transfer rate: how long a number of bytes takes; 0 bytes/s stands for "no time at all".
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate(Option<ConstDiv>);

impl Rate {
    /// A rate in bytes per second.
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Rate((bytes_per_second != 0).then(|| ConstDiv::new(bytes_per_second)))
    }

    /// `floor(bytes * 10^9 / rate)` in ns.
    #[inline]
    pub(crate) fn time(&self, bytes: Bytes) -> Nanos {
        let Some(d) = &self.0 else { return 0 };
        match bytes.checked_mul(1_000_000_000) {
            Some(n) => d.div(n),
            None => {
                let t = u128::from(bytes) * 1_000_000_000 / u128::from(d.divisor());
                u64::try_from(t).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Floor of the square root: the hardware's double-precision root, corrected to be exact.
#[inline]
pub(crate) fn isqrt(v: u64) -> u64 {
    let mut r = ((v as f64).sqrt() as u64).min(u64::from(u32::MAX));
    while r * r > v {
        r -= 1;
    }
    while r < u64::from(u32::MAX) && (r + 1) * (r + 1) <= v {
        r += 1;
    }
    r
}

/// The finalizer of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): a hash of a sector number.
#[inline]
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EDGES: [u64; 12] = [
        1,
        2,
        3,
        7,
        2441,
        8_333_333,
        150_000_000,
        1 << 32,
        (1 << 32) - 1,
        u64::MAX / 2,
        u64::MAX - 1,
        u64::MAX,
    ];

    #[test]
    fn division_and_root_are_exact_at_the_edges() {
        for d in EDGES {
            let c = ConstDiv::new(d);
            for n in EDGES.into_iter().chain([0]) {
                // The last of them: 64 fractional bits are just enough.
                let last = (u64::MAX / d).wrapping_add(n % 3).wrapping_sub(1);
                for n in [n.wrapping_sub(1), n, n.wrapping_add(1), n - n % d, last] {
                    assert_eq!((c.div(n), c.rem(n)), (n / d, n % d), "{n} / {d}");
                }
            }
        }
        for r in EDGES.into_iter().filter(|r| *r <= u64::from(u32::MAX)) {
            assert_eq!(isqrt(r * r), r);
            assert_eq!(isqrt(r * r - 1), r - 1);
            assert_eq!(isqrt(r * r + r), r);
        }
        assert_eq!((isqrt(0), isqrt(u64::MAX)), (0, u64::from(u32::MAX)));
    }

    #[test]
    fn a_huge_transfer_does_not_overflow() {
        assert_eq!(Rate::new(1_000_000_000).time(1 << 50), 1 << 50);
        assert_eq!(Rate::new(1).time(u64::MAX), u64::MAX);
        assert_eq!(Rate::new(0).time(u64::MAX), 0);
    }

    proptest! {
        #[test]
        fn division_is_exact(n: u64, d in 1u64.., shift in 0u32..64, multiple: u64) {
            let (n, d) = (n >> (shift / 2), (d >> shift).max(1));
            let c = ConstDiv::new(d);
            // Also next to a multiple, where a reciprocal that is too large shows first.
            let below = (multiple % (u64::MAX / d) * d).wrapping_sub(1);
            for n in [n, n % (u64::MAX / d), below, below.wrapping_add(1)] {
                prop_assert_eq!((c.div(n), c.rem(n)), (n / d, n % d));
            }
        }

        #[test]
        fn the_root_is_exact(v: u64, shift in 0u32..64) {
            prop_assert_eq!(isqrt(v >> shift), (v >> shift).isqrt());
        }
    }
}
