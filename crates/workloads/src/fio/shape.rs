//! `random_distribution`: where random offsets fall.

use super::spec::Distribution;
use super::taus::Taus88;

/// A distribution that is the same wherever a job draws from it.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Uniform,
    /// (cumulative access share, first block share, block share)
    Zoned(Vec<(f64, f64, f64)>),
}

impl Shape {
    /// A distribution over `blocks` blocks of `size` bytes. For the skewed ones see [`super::skew::Skew`].
    pub(crate) fn new(d: &Distribution, blocks: u64, size: u64) -> Shape {
        match d {
            Distribution::Zoned(zones) => {
                Shape::zones(zones.iter().map(|(a, s)| (f64::from(*a), *s / 100.0)))
            }
            Distribution::ZonedAbs(zones) => {
                let total = (blocks.max(1) * size.max(1)) as f64;
                Shape::zones(zones.iter().map(|(a, s)| (f64::from(*a), *s as f64 / total)))
            }
            _ => Shape::Uniform,
        }
    }

    fn zones(zones: impl Iterator<Item = (f64, f64)>) -> Shape {
        let (mut access, mut first) = (0.0, 0.0);
        Shape::Zoned(
            zones
                .map(|(a, share)| {
                    access += a / 100.0;
                    let zone = (access, first, share);
                    first += share;
                    zone
                })
                .collect(),
        )
    }

    /// A block in `0..blocks`.
    pub(crate) fn draw(&self, stream: &mut Taus88, zone: &mut Taus88, blocks: u64) -> u64 {
        let blocks = blocks.max(1);
        match self {
            // In floating point, as fio computes it.
            Shape::Uniform if blocks <= 1 << 32 => (blocks as f64 * stream.unit()) as u64,
            Shape::Uniform => stream.below(blocks),
            Shape::Zoned(zones) => {
                let v = zone.between(1, 100) as f64 / 100.0;
                let chosen = zones.iter().find(|(access, ..)| v <= *access + 1e-9);
                let (_, first, share) = *chosen.unwrap_or(&zones[zones.len() - 1]);
                // fio counts zones in whole blocks.
                let whole = |share: f64| (share * blocks as f64 + 1e-6) as u64;
                let at = whole(first) + (stream.unit() * whole(share) as f64) as u64;
                at.min(blocks - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_get_their_share_of_accesses() {
        let d = Distribution::Zoned(vec![(60, 10.0), (30, 20.0), (10, 70.0)]);
        let shape = Shape::new(&d, 1000, 4096);
        let (mut stream, mut zone) = (Taus88::new(3), Taus88::new(4));
        let mut draw = || shape.draw(&mut stream, &mut zone, 1000);
        let hits = (0..10_000).filter(|_| draw() < 100).count();
        assert!((5_700..6_300).contains(&hits), "{hits}");
    }

    #[test]
    fn every_draw_is_in_range() {
        for d in [Distribution::Random, Distribution::ZonedAbs(vec![(50, 4096), (50, 1 << 30)])] {
            for blocks in [1, 2, 3, 1000] {
                let shape = Shape::new(&d, blocks, 4096);
                let (mut s, mut zone) = (Taus88::new(1), Taus88::new(2));
                assert!((0..500).all(|_| shape.draw(&mut s, &mut zone, blocks) < blocks), "{d:?}");
            }
        }
    }
}
