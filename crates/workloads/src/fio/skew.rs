//! Skewed choices: `random_distribution` and `file_service_type` with zipf, pareto and normal.
//!
//! Each file has its own stream of random numbers, seeded by its name; blocks and seeds are fio's, see
//! `docs/fidelity-fio.md`.

use super::spec::{Distribution, JobSpec};
use super::taus::{StreamId, Taus88};

/// The golden ratio of 2^64, by which ranks are scattered over a file, so that hot blocks are not neighbours.
const SCATTER: u64 = 0x61c8_8646_80b5_83eb;
/// Start of the hash of a file's name: the golden ratio of 2^32.
const HASH_START: u32 = 0x61c8_8647;

/// A skewed choice among `items` things.
#[derive(Clone, Debug)]
pub(crate) struct Skew {
    law: Law,
    items: u64,
    /// Where rank 0 is.
    first: u64,
    scatter: bool,
    stream: Taus88,
}

#[derive(Clone, Debug)]
enum Law {
    Zipf(Zipf),
    Pareto { power: f64 },
    Normal { width: u64 },
}

/// Of how many items fio sums the shares of zipf.
const SUMMED: u64 = 10_000_000;

/// Zipf by the method of Gray et al., "Quickly generating billion-record synthetic databases" (1994).
#[derive(Clone, Debug)]
struct Zipf {
    items: u64,
    theta: f64,
    zeta2: f64,
    zetan: f64,
}

impl Zipf {
    fn new(items: u64, theta: f64) -> Self {
        // fio sums up to ten million items. The sum's tail is replaced by its integral, to be quicker.
        let summed = items.min(SUMMED);
        let exact = summed.min(100_000);
        let mut zetan: f64 = (1..=exact).map(|i| (1.0 / i as f64).powf(theta)).sum();
        if summed > exact {
            let (a, b) = (exact as f64 + 0.5, summed as f64 + 0.5);
            zetan += if (theta - 1.0).abs() < 1e-9 {
                (b / a).ln()
            } else {
                (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta)
            };
        }
        Zipf { items, theta, zeta2: 1.0 + 0.5f64.powf(theta), zetan }
    }

    fn rank(&self, stream: &mut Taus88) -> u64 {
        let n = self.items as f64;
        let alpha = 1.0 / (1.0 - self.theta);
        let eta = (1.0 - (2.0 / n).powf(1.0 - self.theta)) / (1.0 - self.zeta2 / self.zetan);
        let u = stream.share();
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

impl Law {
    fn rank(&self, items: u64, stream: &mut Taus88) -> u64 {
        match self {
            Law::Zipf(z) => z.rank(stream),
            Law::Pareto { power } => ((items - 1) as f64 * stream.share().powf(*power)) as u64,
            Law::Normal { width } => {
                let sum: u64 = (0..12).map(|_| u64::from(stream.next_u32()) % (items + 1)).sum();
                let mean = sum.div_ceil(12);
                if *width == 0 {
                    return mean;
                }
                // Below 0 is at the end.
                (mean + stream.below(*width) + items - width / 2) % items
            }
        }
    }
}

impl Skew {
    /// A choice among `items`, in the order of their ranks or scattered; `None` for other distributions.
    pub(crate) fn new(d: &Distribution, items: u64, scatter: bool, stream: Taus88) -> Option<Self> {
        let (items, mut stream) = (items.max(1), stream);
        let part = |share: f64| (share * items as f64) as i64;
        let (law, first) = match d {
            Distribution::Zipf(theta, center) => (Law::Zipf(Zipf::new(items, *theta)), *center),
            Distribution::Pareto(h, center) => {
                (Law::Pareto { power: (h.ln() / (1.0 - h).ln()).abs() }, *center)
            }
            Distribution::Normal(percent, center) => {
                let width = (items as f64 * percent / 100.0).ceil().min((items / 2) as f64) as u64;
                let first = center.map_or(0, |c| part(c - 0.5)).rem_euclid(items as i64) as u64;
                return Some(Skew { law: Law::Normal { width }, items, first, scatter, stream });
            }
            _ => return None,
        };
        let drawn = u64::from(stream.next_u32());
        let first = first.map_or(drawn, |c| part(c) as u64) % items;
        Some(Skew { law, items, first, scatter, stream })
    }

    /// The choices among the blocks of a job's files.
    pub(crate) fn of_files(job: &JobSpec, blocks: impl Iterator<Item = u64>) -> Vec<Option<Self>> {
        let Some(d) = (0..3).find(|d| job.does(*d)).map(|d| &job.distribution[d]) else {
            return Vec::new();
        };
        let mut all: Vec<Option<Self>> = Vec::new();
        for (name, blocks) in job.file_names().iter().zip(blocks) {
            let stream = match job.randrepeat && job.randseed.is_none() {
                true => Taus88::new(name_hash(name).wrapping_mul(job.thread)),
                false => Taus88::of_job(StreamId::Offset, job),
            };
            // The sum behind zipf is slow to compute, and most files have the same size.
            let like = all.last().and_then(Option::as_ref).filter(|s| s.items == blocks.max(1));
            let skew = match like {
                Some(like) => Some(like.with_stream(d, stream)),
                None => Skew::new(d, blocks, true, stream),
            };
            all.push(skew);
        }
        all
    }

    /// The same choice from another stream.
    fn with_stream(&self, d: &Distribution, mut stream: Taus88) -> Self {
        let mut first = self.first;
        if let Distribution::Zipf(_, center) | Distribution::Pareto(_, center) = d {
            let drawn = u64::from(stream.next_u32());
            first = center.map_or(drawn % self.items, |_| first);
        }
        Skew { first, stream, ..self.clone() }
    }

    /// One of the things.
    pub(crate) fn draw(&mut self) -> u64 {
        let rank = self.law.rank(self.items, &mut self.stream);
        let at = if self.scatter { rank.wrapping_mul(SCATTER) } else { rank };
        (at % self.items + self.first) % self.items
    }
}

/// Jenkins' hash of 2006 (lookup3) of a name; of the bytes before the last twelve only every fourth counts.
fn name_hash(name: &str) -> u32 {
    let mut k = name.as_bytes();
    let start = HASH_START.wrapping_add(k.len() as u32);
    let [mut a, mut b, mut c] = [start; 3];
    while k.len() > 12 {
        a = a.wrapping_add(u32::from(k[0]));
        b = b.wrapping_add(u32::from(k[4]));
        c = c.wrapping_add(u32::from(k[8]));
        for [x, y, z] in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(x);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(y);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(z);
            b = b.wrapping_add(a);
        }
        k = &k[12..];
    }
    let mut rest = [0; 12];
    rest[..k.len()].copy_from_slice(k);
    let word = |i: usize| u32::from_le_bytes([rest[i], rest[i + 1], rest[i + 2], rest[i + 3]]);
    (a, b, c) = (a.wrapping_add(word(0)), b.wrapping_add(word(4)), c.wrapping_add(word(8)));
    let mix = |x: u32, y: u32, by| (x ^ y).wrapping_sub(y.rotate_left(by));
    c = mix(c, b, 14);
    a = mix(a, c, 11);
    b = mix(b, a, 25);
    c = mix(c, b, 16);
    a = mix(a, c, 4);
    b = mix(b, a, 14);
    mix(c, b, 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of_hottest(d: &Distribution, blocks: u64, hot: usize) -> f64 {
        let mut skew = Skew::new(d, blocks, true, Taus88::new(7)).unwrap();
        let mut counts = vec![0u32; blocks as usize];
        (0..20_000).for_each(|_| counts[skew.draw() as usize] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        f64::from(counts[..hot].iter().sum::<u32>()) / 20_000.0
    }

    #[test]
    fn a_few_blocks_get_most_accesses() {
        assert!(share_of_hottest(&Distribution::Zipf(1.2, None), 1000, 10) > 0.5);
        assert!(share_of_hottest(&Distribution::Pareto(0.2, None), 1000, 200) > 0.7, "80/20");
    }

    #[test]
    fn every_draw_is_in_range() {
        for d in [
            Distribution::Zipf(1.0001, Some(0.3)),
            Distribution::Zipf(0.5, None),
            Distribution::Pareto(0.9, Some(1.0)),
            Distribution::Normal(40.0, None),
            Distribution::Normal(100.0, Some(0.0)),
        ] {
            for items in [1, 2, 3, 1000] {
                for scatter in [false, true] {
                    let mut skew = Skew::new(&d, items, scatter, Taus88::new(1)).unwrap();
                    assert!((0..500).all(|_| skew.draw() < items), "{d:?}");
                }
            }
        }
    }

    /// Seeds that fio 3.33 was found to use.
    #[test]
    fn seeds_of_names_are_fios() {
        assert_eq!(name_hash("b"), 0x946d_f31f);
        assert_eq!(name_hash("bb"), 0xcdaf_3e89);
        assert_eq!(name_hash("a.0.0"), 0xa027_5764);
    }
}
