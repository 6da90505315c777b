//! The values of a cell, and the spread that cells lend each other.

use std::collections::BTreeMap;

use super::super::summary::Observation;
use super::super::t_test::{Prior, Priors, Side};

/// One side of a comparison: a cell's values with the rounds they came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// (round, value); rounds pair the two sides.
    pub rounds: Vec<(u32, Observation)>,
    /// The same input gives the same bytes (the simulator): equal values are exact, not lucky.
    pub deterministic: bool,
    /// The same round of another sample ran under the same conditions (interleaved, or with the same seed).
    pub paired: bool,
}

impl Sample {
    /// The values alone.
    #[must_use]
    pub fn observations(&self) -> Vec<Observation> {
        self.rounds.iter().map(|r| r.1).collect()
    }

    pub(super) fn values(&self) -> Vec<f64> {
        self.rounds.iter().map(|r| r.1.value).collect()
    }

    pub(super) fn exact(&self) -> bool {
        self.deterministic
            && self.rounds.len() > 1
            && self.rounds.windows(2).all(|w| w[0].1 == w[1].1)
    }

    pub(super) fn censored(&self) -> bool {
        self.rounds.iter().any(|r| r.1.censored)
    }

    /// The logarithms' spread, to be lent to similar figures; `None` where there is none to lend.
    pub(crate) fn lends(&self) -> Option<Side> {
        let known = self.rounds.len() > 1 && !self.censored() && !self.exact();
        known.then(|| Side::of_logarithms(&self.values())).flatten()
    }
}

/// The spread that figures lend each other when they are read together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lent(Priors);

impl Lent {
    /// From all cells: (kind, sample).
    pub(crate) fn of<'a>(cells: impl IntoIterator<Item = (&'a str, &'a Sample)>) -> Lent {
        let mut sides: BTreeMap<&str, Vec<Side>> = BTreeMap::new();
        for (kind, sample) in cells {
            sides.entry(kind).or_default().extend(sample.lends());
        }
        let priors = sides.into_iter().filter_map(|(k, s)| Some((k.to_string(), Prior::of(&s)?)));
        Lent(priors.collect())
    }

    pub(crate) fn prior(&self, kind: &str) -> Option<Prior> {
        self.0.get(kind).copied()
    }
}
