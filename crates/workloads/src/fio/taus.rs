//! fio's random numbers: L'Ecuyer's combined Tausworthe generator of 1996 (`taus88`), seeded as fio seeds it. So a
//! simulated job reads exactly the offsets that the real job reads.
//!
//! The seeding was established by running fio 3.33 as a black box (`--debug=random`, I/O logs); see
//! `docs/fidelity-fio.md`.

use super::spec::JobSpec;

/// Multiplier of fio's seed chain.
const SEED_STEP: u64 = 0x9e37_0001;
/// Seed of the offset stream of a repeatable job (`randrepeat=1`, the default).
const REPEATABLE: u64 = 0xb189_9bed;
/// Seed of all other streams when `randseed` is not given.
pub const DEFAULT_SEED: u64 = 0x89;

/// One stream of 32-bit numbers.
#[derive(Clone, Copy, Debug)]
pub struct Taus88 {
    s: [u32; 3],
}

/// The streams a job has, by fio's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamId {
    /// Block sizes of reads.
    BlockSizeRead = 0,
    /// Block sizes of writes.
    BlockSizeWrite = 1,
    /// Block sizes of trims.
    BlockSizeTrim = 2,
    /// Read or write (`rwmixread`).
    Mix = 4,
    /// Choice of file.
    File = 5,
    /// Offsets.
    Offset = 6,
    /// File sizes.
    FileSize = 7,
    /// Random or sequential (`percentage_random`).
    SeqRand = 10,
    /// `startdelay` of a range.
    StartDelay = 14,
    /// Poisson arrivals of reads.
    PoissonRead = 15,
    /// Zone choice.
    Zone = 16,
    /// Poisson arrivals of writes.
    PoissonWrite = 17,
    /// Poisson arrivals of trims.
    PoissonTrim = 18,
}

impl Taus88 {
    /// A stream from a 32-bit seed.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        let lcg = |x: u32| x.wrapping_mul(69_069) ^ seed;
        let a = lcg(53);
        let b = lcg(a);
        let mut t = Taus88 { s: [a, b, lcg(b)] };
        for _ in 0..6 {
            t.next_u32();
        }
        t
    }

    /// The stream `id` of a job.
    ///
    /// A repeatable job (`randrepeat`) draws its offsets from a fixed seed whatever its `randseed`,
    /// except clones of a section (`numjobs`) with an explicit `randseed`.
    #[must_use]
    pub fn of_job(id: StreamId, job: &JobSpec) -> Self {
        let clone_with_seed = job.subjob > 0 && job.randseed.is_some();
        Self::seeded(id, job.thread, job.randseed, job.randrepeat && !clone_with_seed)
    }

    fn seeded(id: StreamId, thread: u32, randseed: Option<u64>, repeatable: bool) -> Self {
        let thread = u64::from(thread);
        if repeatable && id == StreamId::Offset {
            return Taus88::new(REPEATABLE.wrapping_mul(thread) as u32);
        }
        let index = id as u64;
        let mut seed = randseed.unwrap_or(DEFAULT_SEED);
        for _ in 0..4 + index {
            seed = seed.wrapping_mul(SEED_STEP);
        }
        Taus88::new(seed.wrapping_mul(thread).wrapping_add(index) as u32)
    }

    /// The next 32 random bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        let [a, b, c] = &mut self.s;
        *a = ((*a & !1) << 12) ^ (((*a << 13) ^ *a) >> 19);
        *b = ((*b & !7) << 4) ^ (((*b << 2) ^ *b) >> 25);
        *c = ((*c & !15) << 17) ^ (((*c << 3) ^ *c) >> 11);
        *a ^ *b ^ *c
    }

    /// Uniform in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        f64::from(self.next_u32()) / 4_294_967_296.0
    }

    /// Uniform in `[0, 1]`: the largest number is 1. Skewed choices are made with this one.
    pub(crate) fn share(&mut self) -> f64 {
        f64::from(self.next_u32()) / f64::from(u32::MAX)
    }

    /// Uniform in `0..n`.
    pub fn below(&mut self, n: u64) -> u64 {
        if n <= u64::from(u32::MAX) {
            return (u64::from(self.next_u32()) * n) >> 32;
        }
        let wide = (u64::from(self.next_u32()) << 32) | u64::from(self.next_u32());
        ((u128::from(wide) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `fio --debug=random` 3.33 printed.
    #[test]
    fn offsets_are_fios() {
        let first = |thread, seed, repeat| {
            let mut t = Taus88::seeded(StreamId::Offset, thread, seed, repeat);
            [t.next_u32(), t.next_u32()]
        };
        assert_eq!(first(1, None, true), [259_043_585, 3_179_521_932]);
        assert_eq!(first(2, Some(1001), true), [1_094_293_889, 780_151_754]);
        assert_eq!(first(1, Some(5), false), [558_134_179, 4_125_238_081]);
        assert_eq!(first(1, Some(1001), false), [3_263_130_299, 230_826_280]);
        assert_eq!(first(2, Some(1001), false), [1_508_973_786, 3_585_233_850]);
    }

    /// `fio --debug=random --randseed=6 --numjobs=4`: the clones follow the seed, the first does not.
    #[test]
    fn clones_follow_an_explicit_seed() {
        let job = |thread, subjob| JobSpec {
            thread,
            subjob,
            randseed: Some(6),
            randrepeat: true,
            ..JobSpec::default()
        };
        let first = |j: &JobSpec| Taus88::of_job(StreamId::Offset, j).next_u32();
        assert_eq!(first(&job(1, 0)), 259_043_585);
        assert_eq!(first(&job(2, 3)), 3_679_649_902);
    }

    /// The directions `rw=randrw`, `rwmixread=50` gave.
    #[test]
    fn directions_are_fios() {
        let mut t = Taus88::seeded(StreamId::Mix, 1, None, true);
        let got: String =
            (0..24).map(|_| if t.between(1, 100) <= 50 { 'R' } else { 'W' }).collect();
        assert_eq!(got, "RRRWRRWWWRWRWRRRWWRRWWWW");
    }
}
