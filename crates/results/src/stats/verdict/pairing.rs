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

/// Kinds of figures with rounds that go up and down together, and the spread that their ratios lend each other.
///
/// Pairs cost degrees of freedom. They are used for a kind of figure only where the correlation over all its
/// comparisons is certain. Choosing the test by its outcome would find differences where there are none.
#[derive(Debug, Default)]
pub(super) struct Pairing(pub(super) BTreeMap<String, Option<Prior>>);

impl Pairing {
    pub(super) fn of(pairs: &[Compared<'_>]) -> Pairing {
        let mut kinds: BTreeMap<&str, (f64, f64, Vec<Side>)> = BTreeMap::new();
        for c in pairs.iter().filter(|c| !(c.base.0.censored() || c.new.0.censored())) {
            let Some(rounds) = shared(c).filter(|r| r.len() > 3) else { continue };
            let of =
                |f: fn(&(f64, f64)) -> f64| Side::of(&rounds.iter().map(f).collect::<Vec<_>>());
            let (b, n, d) = (of(|r| r.0), of(|r| r.1), of(|r| r.1 - r.0));
            let scale = (b.variance * n.variance).sqrt();
            let correlation = (b.variance + n.variance - d.variance) / (2.0 * scale);
            if scale > 0.0 {
                let kind = kinds.entry(c.kind).or_default();
                let weight = (rounds.len() - 3) as f64;
                kind.0 += weight * correlation.clamp(-0.999_999, 0.999_999).atanh();
                kind.1 += weight;
                kind.2.push(d);
            }
        }
        // Fisher's transformation; two standard errors below must still be a correlation that pays.
        let pays = |z: f64, weight: f64| z / weight - 2.0 / weight.sqrt() > 0.3;
        let used = kinds.into_iter().filter(|(_, (z, w, _))| pays(*z, *w));
        Pairing(used.map(|(k, (_, _, d))| (k.to_string(), Prior::of(&d))).collect())
    }
}
