//! `random_distribution`: where random offsets fall.

use super::spec::Distribution;
use super::taus::Taus88;

/// Large prime by which skewed ranks are scattered over the file, so that hot blocks are not neighbours.
const SCATTER: u64 = 0x9e37_ffff_fffc_0001;

/// A distribution prepared for a number of blocks.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Uniform,
    Zipf(Zipf),
    Pareto {
        power: f64,
        center: Option<f64>,
        shift: u64,
    },
    Normal {
        deviation: f64,
        center: Option<f64>,
        shift: u64,
    },
    /// (cumulative access share, first block share, block share)
    Zoned(Vec<(f64, f64, f64)>),
}

/// Zipf by the method of Gray et al., "Quickly generating billion-record synthetic databases" (1994).
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    items: u64,
    theta: f64,
    zeta2: f64,
    zetan: f64,
    center: Option<f64>,
    shift: u64,
}

impl Zipf {
    fn new(items: u64, theta: f64, center: Option<f64>, shift: u64) -> Self {
        let items = items.max(1);
        // The sum's tail is replaced by its integral, so that a terabyte does not take a minute.
        let exact = items.min(100_000);
        let mut zetan: f64 = (1..=exact).map(|i| (1.0 / i as f64).powf(theta)).sum();
        if items > exact {
            let (a, b) = (exact as f64 + 0.5, items as f64 + 0.5);
            zetan += if (theta - 1.0).abs() < 1e-9 {
                (b / a).ln()
            } else {
                (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta)
            };
        }
        Zipf { items, theta, zeta2: 1.0 + 0.5f64.powf(theta), zetan, center, shift }
    }

    fn rank(&self, stream: &mut Taus88) -> u64 {
        let n = self.items as f64;
        let alpha = 1.0 / (1.0 - self.theta);
        let eta = (1.0 - (2.0 / n).powf(1.0 - self.theta)) / (1.0 - self.zeta2 / self.zetan);
        let u = stream.unit();
        let uz = u * self.zetan;
        if uz < 1.0 {
            0
        } else if uz < self.zeta2 {
            1
        } else {
            (n * (eta * u - eta + 1.0).powf(alpha)) as u64
        }
    }
}

fn place(rank: u64, blocks: u64, center: Option<f64>, shift: u64) -> u64 {
    let first = match center {
        Some(c) => (c.clamp(0.0, 1.0) * blocks as f64) as u64,
        None => shift,
    };
    rank.wrapping_mul(SCATTER).wrapping_add(first) % blocks
}

impl Shape {
    /// A distribution over `blocks` blocks of `size` bytes.
    pub(crate) fn new(d: &Distribution, blocks: u64, size: u64, thread: u32) -> Shape {
        let shift = u64::from(thread).wrapping_mul(SCATTER);
        match d {
            Distribution::Random => Shape::Uniform,
            Distribution::Zipf(theta, center) => {
                Shape::Zipf(Zipf::new(blocks, *theta, *center, shift))
            }
            Distribution::Pareto(h, center) => {
                let power = (h.ln() / (1.0 - h).ln()).abs();
                Shape::Pareto { power, center: *center, shift }
            }
            Distribution::Normal(dev, center) => {
                Shape::Normal { deviation: *dev / 100.0, center: *center, shift }
            }
            Distribution::Zoned(zones) => {
                Shape::zones(zones.iter().map(|(a, s)| (f64::from(*a), *s / 100.0)))
            }
            Distribution::ZonedAbs(zones) => {
                let total = (blocks.max(1) * size.max(1)) as f64;
                Shape::zones(zones.iter().map(|(a, s)| (f64::from(*a), *s as f64 / total)))
            }
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
            Shape::Zipf(z) => place(z.rank(stream), blocks, z.center, z.shift),
            Shape::Pareto { power, center, shift } => {
                let rank = (blocks as f64 * stream.unit().powf(*power)) as u64;
                place(rank.min(blocks - 1), blocks, *center, *shift)
            }
            Shape::Normal { deviation, center, shift } => {
                // The mean of twelve draws over all blocks, moved by up to half the deviation either way.
                let mean = (0..12).map(|_| stream.unit()).sum::<f64>() / 12.0;
                let at = mean + (stream.unit() - 0.5) * deviation;
                let rank = (at * blocks as f64).max(0.0) as u64;
                place(rank.min(blocks - 1), blocks, *center, *shift)
            }
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

    fn share_of_hottest(d: &Distribution, blocks: u64, hot: usize) -> f64 {
        let shape = Shape::new(d, blocks, 4096, 1);
        let mut stream = Taus88::new(7);
        let mut counts = vec![0u32; blocks as usize];
        for _ in 0..20_000 {
            counts[shape.draw(&mut stream, &mut Taus88::new(9), blocks) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        f64::from(counts[..hot].iter().sum::<u32>()) / 20_000.0
    }

    #[test]
    fn uniform_is_flat_and_zipf_is_not() {
        assert!(share_of_hottest(&Distribution::Random, 1000, 10) < 0.03);
        assert!(share_of_hottest(&Distribution::Zipf(1.2, None), 1000, 10) > 0.5);
        assert!(share_of_hottest(&Distribution::Pareto(0.2, None), 1000, 200) > 0.7, "80/20");
    }

    #[test]
    fn zones_get_their_share_of_accesses() {
        let d = Distribution::Zoned(vec![(60, 10.0), (30, 20.0), (10, 70.0)]);
        let shape = Shape::new(&d, 1000, 4096, 1);
        let (mut stream, mut zone) = (Taus88::new(3), Taus88::new(4));
        let mut draw = || shape.draw(&mut stream, &mut zone, 1000);
        let hits = (0..10_000).filter(|_| draw() < 100).count();
        assert!((5_700..6_300).contains(&hits), "{hits}");
    }

    #[test]
    fn every_draw_is_in_range() {
        for d in [
            Distribution::Zipf(1.0001, Some(0.3)),
            Distribution::Zipf(0.5, None),
            Distribution::Pareto(0.9, Some(0.9)),
            Distribution::Normal(40.0, None),
            Distribution::ZonedAbs(vec![(50, 4096), (50, 1 << 30)]),
        ] {
            for blocks in [1, 2, 3, 1000] {
                let shape = Shape::new(&d, blocks, 4096, 1);
                let (mut s, mut zone) = (Taus88::new(1), Taus88::new(2));
                assert!((0..500).all(|_| shape.draw(&mut s, &mut zone, blocks) < blocks), "{d:?}");
            }
        }
    }
}
