//! Whether the rounds of a comparison are tested as pairs.

use std::collections::BTreeMap;

use super::super::t_test::{Prior, Side};
use super::{Compared, Sample};

/// The rounds both sides have, when each side has each of its rounds once, all are shared, and they ran under the
/// same conditions: the logarithms of their ratios.
pub(super) fn shared(c: &Compared<'_>) -> Option<Vec<(f64, f64)>> {
    if !(c.base.0.paired && c.new.0.paired) {
        return None;
    }
    let sorted = |s: &Sample| {
        let mut v: Vec<(u32, f64)> = s.rounds.iter().map(|r| (r.0, r.1.value)).collect();
        v.sort_by_key(|r| r.0);
        v
    };
    let (b, n) = (sorted(c.base.0), sorted(c.new.0));
    let same = b.len() == n.len()
        && b.iter().zip(&n).all(|(x, y)| x.0 == y.0)
        && b.windows(2).all(|w| w[0].0 != w[1].0);
    let usable = |v: &[(u32, f64)]| v.iter().all(|x| x.1 > 0.0 && x.1.is_finite());
    let pairs = b.iter().zip(&n).map(|(x, y)| (x.1.ln(), y.1.ln()));
    (same && usable(&b) && usable(&n)).then(|| pairs.collect())
}

/// How surely the rounds of comparisons go up and down together: Fisher's z of their correlations, and its weight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Together {
    z: f64,
    weight: f64,
}

impl Together {
    /// Takes a comparison: the logarithms of both sides, round by round. False where it says nothing.
    pub(crate) fn add(&mut self, base: &[f64], new: &[f64]) -> bool {
        if base.len() <= 3 {
            return false;
        }
        let by: Vec<f64> = base.iter().zip(new).map(|(b, n)| n - b).collect();
        let [b, n, d] = [base, new, &by].map(Side::of);
        let scale = (b.variance * n.variance).sqrt();
        if scale.is_nan() || scale <= 0.0 {
            return false;
        }
        let correlation = (b.variance + n.variance - d.variance) / (2.0 * scale);
        let weight = (base.len() - 3) as f64;
        self.z += weight * correlation.clamp(-0.999_999, 0.999_999).atanh();
        self.weight += weight;
        true
    }

    /// Two standard errors below there must still be a correlation that pays for the degrees of freedom that pairs cost.
    pub(crate) fn pays(self) -> bool {
        self.weight > 0.0 && self.z / self.weight - 2.0 / self.weight.sqrt() > 0.3
    }
}

/// Kinds of figures with rounds that go up and down together, and the spread that their ratios lend each other.
///
/// Pairs cost degrees of freedom. They are used for a kind of figure only where the correlation over all its
/// comparisons is certain. Choosing the test by its outcome would find differences where there are none.
#[derive(Debug, Default)]
pub(super) struct Pairing(pub(super) BTreeMap<String, Option<Prior>>);

impl Pairing {
    pub(super) fn of(pairs: &[Compared<'_>]) -> Pairing {
        let mut kinds: BTreeMap<&str, (Together, Vec<Side>)> = BTreeMap::new();
        let says = |c: &&Compared<'_>| !(c.sum || c.base.0.censored() || c.new.0.censored());
        for c in pairs.iter().filter(says) {
            let Some(rounds) = shared(c) else { continue };
            let (b, n): (Vec<f64>, Vec<f64>) = rounds.into_iter().unzip();
            let kind = kinds.entry(c.kind).or_default();
            if kind.0.add(&b, &n) {
                let by: Vec<f64> = b.iter().zip(&n).map(|(b, n)| n - b).collect();
                kind.1.push(Side::of(&by));
            }
        }
        let used = kinds.into_iter().filter(|(_, (together, _))| together.pays());
        Pairing(used.map(|(k, (_, d))| (k.to_string(), Prior::of(&d))).collect())
    }
}
