//! What ADIOS expects a request to take: one model per kind, learned from completions.
//!
//! A model is a base (small requests) and a slope for each further KiB. Samples lie in buckets by their size against what was
//! expected, so the largest one in a hundred can be left out. All models take their samples through one accumulator. What
//! one update does not use, the next one takes for its own, whichever kind that is.

use iosched_types::Nanos;

use super::descriptor::Tuning;
use super::{Rules, Shrink};

/// Requests of at most this many bytes teach the base.
const SMALL: u64 = 4096;
const BUCKETS: usize = 64;
/// Samples that make an update worth while.
const ENOUGH: u64 = 1024;
/// How long samples may wait for enough of them.
const PATIENCE_MS: u64 = 1500;

/// Samples of about one size.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    weight: u64,
    latency: u64,
    bytes: u64,
}

impl Bucket {
    fn add(&mut self, other: &Bucket) {
        self.weight += other.weight;
        self.latency += other.latency;
        self.bytes += other.bytes;
    }
}

/// Samples that no update has used yet.
#[derive(Clone, Debug)]
struct Samples {
    small: [Bucket; BUCKETS],
    large: [Bucket; BUCKETS],
}

impl Default for Samples {
    fn default() -> Self {
        Samples { small: [Bucket::default(); BUCKETS], large: [Bucket::default(); BUCKETS] }
    }
}

fn clear(buckets: &mut [Bucket]) {
    buckets.fill(Bucket::default());
}

/// Weight and sums of the buckets without the largest (100 - `keep`) percent.
fn trimmed(buckets: &[Bucket], keep: u64) -> Bucket {
    let all: u64 = buckets.iter().map(|b| b.weight).sum();
    let wanted = all * keep / 100;
    let mut sum = Bucket::default();
    for b in buckets {
        if sum.weight + b.weight < wanted {
            sum.add(b);
            continue;
        }
        let part = wanted - sum.weight;
        if part > 0 && b.weight > 0 {
            let share = |of: u64| (u128::from(of) * u128::from(part) / u128::from(b.weight)) as u64;
            sum.add(&Bucket { weight: part, latency: share(b.latency), bytes: share(b.bytes) });
        }
        break;
    }
    sum
}

/// The bucket of a sample, against what was expected.
fn bucket(sample: u64, expected: u64, wraps: bool) -> usize {
    let p = expected.max(1);
    let index = match sample {
        m if m < p.saturating_mul(2) => m * 20 / p,
        m if m < p.saturating_mul(5) => m * 10 / p + 20,
        m => m * 3 / p + 40,
    };
    // Until 3.2 the index is cut to eight bits before it is limited.
    let index = if wraps { index & 0xff } else { index };
    (index as usize).min(BUCKETS - 1)
}

/// One kind of request.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) base: u64,
    pub(super) slope: u64,
    small_sum: u64,
    small_n: u64,
    large_sum: u64,
    large_bytes: u64,
    /// In jiffies.
    last_update: u64,
    input: Samples,
}

impl Model {
    /// What a request of this length is expected to take.
    pub(super) fn expect(&self, len: u64) -> Nanos {
        match len.checked_sub(SMALL) {
            Some(more) if more > 0 => {
                self.base.saturating_add(self.slope.saturating_mul(more.div_ceil(1024)))
            }
            _ => self.base,
        }
    }

    fn lost(&mut self, shrink: &Shrink) {
        if self.small_n >= shrink.small_samples {
            self.small_sum -= self.small_sum >> shrink.shift;
            self.small_n -= self.small_n >> shrink.shift;
        }
    }

    fn learn_small(&mut self, got: Bucket, shrink: &Shrink) -> bool {
        self.lost(shrink);
        if got.weight == 0 {
            return false;
        }
        self.small_sum += got.latency;
        self.small_n += got.weight;
        true
    }

    fn learn_large(&mut self, got: Bucket, shrink: &Shrink) -> bool {
        if got.weight == 0 {
            return false;
        }
        if self.large_bytes >= shrink.large_bytes {
            self.large_sum -= self.large_sum >> shrink.shift;
            self.large_bytes -= self.large_bytes >> shrink.shift;
        }
        // The base is taken off once, however many requests there were.
        let sum = got.latency;
        self.large_sum += if sum > self.base { sum - self.base } else { sum };
        self.large_bytes += got.bytes;
        true
    }
}

/// The models of all kinds.
#[derive(Debug, Default)]
pub(super) struct Models {
    kinds: [Model; 4],
    unused: Samples,
}

impl Models {
    pub(super) fn new(now: u64) -> Box<Models> {
        let mut models = Box::<Models>::default();
        models.kinds.iter_mut().for_each(|m| m.last_update = now);
        models
    }

    pub(super) fn of(&self, kind: usize) -> &Model {
        &self.kinds[kind]
    }

    /// A model by hand.
    pub(super) fn load(&mut self, kind: usize, (base, slope): (u64, u64), now: u64) {
        self.kinds[kind] = Model {
            base,
            slope,
            small_sum: base,
            small_n: 1,
            large_sum: slope,
            large_bytes: 1024,
            last_update: now,
            input: Samples::default(),
        };
        self.unused = Samples::default();
    }

    /// A request of this length took so long.
    pub(super) fn feed(&mut self, kind: usize, sample: &Sample, rules: &Rules, tuning: &Tuning, now: u64) {
        let m = &mut self.kinds[kind];
        let small = sample.len <= SMALL;
        if small {
            let b = &mut m.input.small[bucket(sample.took, m.base, rules.index_wraps)];
            b.weight += sample.weight;
            b.latency += sample.took * sample.weight;
        } else if m.base > 0 && sample.expected > 0 {
            let b = &mut m.input.large[bucket(sample.took, sample.expected, rules.index_wraps)];
            b.weight += sample.weight;
            b.latency += sample.took * sample.weight;
            b.bytes += sample.len * sample.weight;
        }
        if small && self.kinds[kind].base == 0 {
            self.update(kind, tuning, now);
        }
    }

    /// All models take what there is for them.
    pub(super) fn update_all(&mut self, tuning: &Tuning, now: u64) {
        (0..self.kinds.len()).for_each(|kind| self.update(kind, tuning, now));
    }

    fn update(&mut self, kind: usize, tuning: &Tuning, now: u64) {
        let (m, pool) = (&mut self.kinds[kind], &mut self.unused);
        let both = |to: &mut [Bucket; BUCKETS], from: &mut [Bucket; BUCKETS]| {
            to.iter_mut().zip(from.iter()).for_each(|(to, from)| to.add(from));
            clear(from);
            to.iter().map(|b| b.weight).sum::<u64>()
        };
        let small = both(&mut pool.small, &mut m.input.small);
        let large = both(&mut pool.large, &mut m.input.large);
        let patience = PATIENCE_MS * u64::from(tuning.hz) / 1000;
        let elapsed = m.base == 0 || m.last_update + patience <= now;
        let base = m.base;
        let keep = |known: u64| if known == 0 { 100 } else { 99 };
        let (mut small_done, mut large_done) = (false, false);
        if small > 0 && (elapsed || small >= ENOUGH) {
            small_done = m.learn_small(trimmed(&pool.small, keep(base)), &tuning.shrink);
            clear(&mut pool.small);
        }
        if large > 0 && (elapsed || large >= ENOUGH || m.slope == 0) {
            large_done = m.learn_large(trimmed(&pool.large, keep(m.slope)), &tuning.shrink);
            clear(&mut pool.large);
        }
        if small_done {
            m.base = m.small_sum / m.small_n.max(1);
        }
        if large_done {
            m.slope = m.large_sum / m.large_bytes.div_ceil(1024).max(1);
        }
        if small_done || large_done || elapsed {
            m.last_update = now;
        }
    }
}

/// A completion as the models see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) len: u64,
    /// What was expected.
    pub(super) expected: Nanos,
    pub(super) took: Nanos,
    /// How often it counts: far moves of the arm count more.
    pub(super) weight: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_sample_wraps_around_until_3_2() {
        assert_eq!([(10, 10), (29, 10), (90, 10)].map(|(m, p)| bucket(m, p, true)), [20, 49, 63]);
        // 72 times what was expected: 256, of which eight bits are left.
        assert_eq!((bucket(720, 10, true), bucket(720, 10, false)), (0, 63));
        assert_eq!(bucket(u64::from(u32::MAX), 0, false), 63);
    }

    #[test]
    fn the_largest_hundredth_is_left_out() {
        let mut all = [Bucket::default(); BUCKETS];
        all[3] = Bucket { weight: 150, latency: 1500, bytes: 0 };
        all[60] = Bucket { weight: 50, latency: 50_000, bytes: 0 };
        let got = trimmed(&all, 99);
        assert_eq!((got.weight, got.latency), (198, 1500 + 48 * 1000));
        assert_eq!(trimmed(&all[..1], 99).weight, 0);
    }

    #[test]
    fn a_request_is_expected_to_take_its_base_and_a_slope() {
        let m = Model { base: 970_000, slope: 50_000, ..Model::default() };
        assert_eq!([4096, 4097, 16_384, 65_536].map(|l| m.expect(l)), [970_000, 1_020_000, 1_570_000, 3_970_000]);
    }
}
