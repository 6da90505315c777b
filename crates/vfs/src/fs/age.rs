//! File systems that were used before.
//!
//! An aged one is as if files of all sizes had been written one after another until it was full, and then some of them
//! removed at random until so much was left. Sizes are from 4 KiB to 4 MiB, each order of magnitude as likely as another. So
//! free space lies in pieces, the smaller the fuller it is.

/// How full, and which of the many ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ageing {
    /// Percent of the blocks that are taken.
    pub percent: u64,
    /// The same one gives the same pieces.
    pub seed: u64,
}

/// Sizes of files are powers of two of blocks, up to this one, times up to two.
const ORDERS: u64 = 10;

/// Random numbers (SplitMix64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

impl Ageing {
    /// What is taken of the blocks `from..to`: start and end of each stretch. `part` is the number of the group.
    #[must_use]
    pub fn taken(&self, part: u64, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut draws = Draws(self.seed.wrapping_mul(0x0001_0000_0001) ^ (part << 20));
        draws.next();
        let mut taken: Vec<(u64, u64)> = Vec::new();
        let mut at = from;
        while at < to {
            let size = 1 << draws.below(ORDERS);
            let end = (at + size + draws.below(size)).min(to);
            if draws.below(100) < self.percent {
                match taken.last_mut() {
                    Some(last) if last.1 == at => last.1 = end,
                    _ => taken.push((at, end)),
                }
            }
            at = end;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_is_taken_in_pieces() {
        for percent in [10, 50, 90] {
            let ageing = Ageing { percent, seed: 7 };
            let mut used = 0;
            let mut pieces = 0;
            for group in 0..200 {
                let taken = ageing.taken(group, 1000, 32_768);
                assert!(taken.windows(2).all(|w| w[0].1 < w[1].0), "apart, in order");
                assert!(taken.iter().all(|(a, b)| 1000 <= *a && a < b && *b <= 32_768));
                used += taken.iter().map(|(a, b)| b - a).sum::<u64>();
                pieces += taken.len();
            }
            let got = used * 100 / (200 * 31_768);
            assert!(got.abs_diff(percent) <= 2, "{got} of {percent}");
            assert!(pieces > 2000, "{pieces}");
        }
    }

    #[test]
    fn a_seed_is_a_way() {
        let of = |seed, group| Ageing { percent: 60, seed }.taken(group, 0, 32_768);
        assert_eq!(of(1, 4), of(1, 4));
        assert_ne!(of(1, 4), of(2, 4));
        assert_ne!(of(1, 4), of(1, 5));
    }
}
