//! How a scheduler that was chosen stands on a device in one workload: beside the kernel's default, and beside the best of
//! those that were run.
//!
//! Both questions are [verdicts](crate::verdict) with another base: a scheduler is worse than the default where the verdict
//! on the two, with the chosen one as base, is to use the default.

use iosched_experiment::record::{DEFAULT_SCHEDULER, Record};
use serde::Serialize;

use crate::verdict::{Advice, Firmness, Point, Verdict, verdicts_of};

/// A way in which two schedulers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The first is better in the asks that count.
    Better,
    /// Neither is better in any ask.
    Level,
    /// Each is better in an ask, and neither is worth its price.
    Mixed,
    /// The first is worse.
    Worse,
    /// More runs may tell.
    Unknown,
}

/// One scheduler against another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// Which way.
    pub way: Way,
    /// How sure.
    pub firmness: Firmness,
    /// Where one is better: the asks in which it is, the most important first. `value` is the better one's, `base_value` the other's.
    pub gains: Vec<Point>,
    /// Its prices.
    pub prices: Vec<Point>,
}

impl Against {
    const LEVEL: Against = Against {
        way: Way::Level,
        firmness: Firmness::Sure,
        gains: Vec::new(),
        prices: Vec::new(),
    };

    /// How many times better the better one is in the ask that decides. Infinite where a demand is met that the other does not
    /// meet, or only one has figures at all; 1 where neither is better.
    #[must_use]
    pub fn times(&self) -> f64 {
        match (self.way, self.gains.first()) {
            (Way::Better | Way::Worse, Some(p)) if p.met() == Some(true) => f64::INFINITY,
            (Way::Better | Way::Worse, Some(p)) => p.ratio.unwrap_or(f64::INFINITY),
            (Way::Better | Way::Worse, None) => f64::INFINITY,
            _ => 1.0,
        }
    }
}

/// How a chosen scheduler stands on a device in a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// The chosen scheduler.
    pub scheduler: String,
    /// The kernel's default.
    pub default: String,
    /// The chosen one against the default.
    pub against_default: Against,
    /// The scheduler that is better than the chosen one by most, if any is.
    pub best: Option<String>,
    /// It against the chosen one.
    pub regret: Against,
}

/// The standing of `chosen` among records of one device and workload. `None` where one of the two has no complete record.
#[must_use]
pub fn standing(records: &[Record], chosen: &str, default: &str) -> Option<Standing> {
    let only: Vec<Record> = records
        .iter()
        .filter(|r| [chosen, default].contains(&family(&r.trial.scheduler)))
        .cloned()
        .collect();
    let against_default = match chosen == default {
        true => Against::LEVEL,
        false => against(&only, chosen, default)?,
    };
    let all = with_base(records, chosen)?;
    let best = (all.verdict == Advice::Use).then(|| family(&all.scheduler).to_string());
    let regret = match &best {
        Some(_) => Against {
            way: Way::Better,
            firmness: all.firmness,
            gains: all.gains,
            prices: all.prices,
        },
        None => Against { firmness: all.firmness, ..Against::LEVEL },
    };
    Some(Standing {
        scheduler: chosen.into(),
        default: default.into(),
        against_default,
        best,
        regret,
    })
}

fn family(scheduler: &str) -> &str {
    scheduler.split(['@', ' ']).next().unwrap_or_default()
}

/// The verdict with a base of one's own.
fn with_base(records: &[Record], base: &str) -> Option<Verdict> {
    let mut records = records.to_vec();
    for r in &mut records {
        r.provenance.insert(DEFAULT_SCHEDULER.into(), base.into());
    }
    verdicts_of(&records).into_iter().find(|v| family(&v.base) == base)
}

/// One of two schedulers against the other.
fn against(two: &[Record], first: &str, second: &str) -> Option<Against> {
    let up = with_base(two, second)?;
    if up.verdict == Advice::Use {
        let (firmness, gains, prices) = (up.firmness, up.gains, up.prices);
        return Some(Against { way: Way::Better, firmness, gains, prices });
    }
    let down = with_base(two, first)?;
    if down.verdict == Advice::Use {
        let (firmness, gains, prices) = (down.firmness, down.gains, down.prices);
        return Some(Against { way: Way::Worse, firmness, gains, prices });
    }
    let unknown = |v: &Verdict| v.verdict == Advice::Unknown || !v.open.is_empty();
    let other = |v: &Verdict| v.other.as_ref().map_or(Vec::new(), |o| o.gains.clone());
    let (gains, prices) = (other(&up), other(&down));
    let way = match () {
        () if unknown(&up) || unknown(&down) => Way::Unknown,
        () if gains.is_empty() && prices.is_empty() => Way::Level,
        () => Way::Mixed,
    };
    Some(Against { way, firmness: up.firmness, gains, prices })
}
