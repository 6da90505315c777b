//! Verdicts in words.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::paired::{PairedRatio, paired_ratio, paired_test};
use super::permutation::{smallest_two_sample, two_sample};
use super::rank::{cliffs_delta, mann_whitney};
use super::summary::{Observation, Summary, summarize};

/// Which way is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better (IOPS).
    #[default]
    Higher,
    /// Less is better (latency).
    Lower,
}

/// What the data say about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Significantly better than the base.
    Better,
    /// Significantly worse than the base.
    Worse,
    /// Enough data, no significant difference.
    NoMeasurableDifference,
    /// Too few repetitions to tell.
    NotEnoughData,
    /// A side has no usable figures.
    Invalid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoMeasurableDifference => "no measurable difference",
            Verdict::NotEnoughData => "not enough data",
            Verdict::Invalid => "invalid",
        })
    }
}

/// One side of a comparison: a cell's values with the rounds they came from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// (round, value); rounds pair the two sides.
    pub rounds: Vec<(u32, Observation)>,
    /// The same input gives the same bytes (the simulator): equal values are exact, not lucky.
    pub deterministic: bool,
}

impl Sample {
    /// The values alone.
    #[must_use]
    pub fn observations(&self) -> Vec<Observation> {
        self.rounds.iter().map(|r| r.1).collect()
    }

    fn exact(&self) -> bool {
        self.deterministic
            && self.rounds.len() > 1
            && self.rounds.windows(2).all(|w| w[0].1 == w[1].1)
    }
}

/// Options of a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerdictOptions {
    /// Significance level after correction.
    pub alpha: f64,
    /// Seed of the resampling.
    pub seed: u64,
    /// Whether paired ratios get an interval. Resampling takes most of the time of a judgement, and not everybody shows it.
    pub ratio_interval: bool,
    /// How many comparisons will be corrected together: the test is chosen that can still reach the level then.
    pub family: usize,
}

impl Default for VerdictOptions {
    fn default() -> Self {
        VerdictOptions { alpha: 0.05, seed: 1, ratio_interval: true, family: 1 }
    }
}

/// A comparison of a cell with its base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The base's summary.
    pub base: Summary,
    /// The other side's summary.
    pub new: Summary,
    /// New over base: paired by round when the rounds match, else of the means (medians when censored).
    pub ratio: Option<f64>,
    /// Paired ratios, when the sides share rounds.
    pub paired: Option<PairedRatio>,
    /// Two-sided p of the permutation test (Mann–Whitney when a value is censored).
    pub p: Option<f64>,
    /// p of the Mann–Whitney test.
    pub p_rank: Option<f64>,
    /// p after Holm's correction (set by [`correct_family`]; equals `p` before).
    pub p_corrected: Option<f64>,
    /// Smallest p that data of this size can give.
    pub smallest_p: f64,
    /// Cliff's delta of new against base.
    pub delta: f64,
    /// Both sides are deterministic and do not vary: the difference is exact and needs no test.
    pub exact: bool,
    /// The verdict.
    pub verdict: Verdict,
    /// Which way is better.
    pub better: Better,
}

impl Judged {
    /// The verdict as shown: `better`, `worse (exact, deterministic)` …
    #[must_use]
    pub fn words(&self) -> String {
        if self.exact {
            format!("{} (exact, deterministic)", self.verdict)
        } else {
            self.verdict.to_string()
        }
    }

    /// By how much the new side is worse: 0.1 means 10 % slower or 10 % more latency; negative when better.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let r = self.ratio.filter(|r| r.is_finite() && *r > 0.0)?;
        Some(match self.better {
            Better::Higher => 1.0 - r,
            Better::Lower => r - 1.0,
        })
    }

    fn direction(&self) -> Verdict {
        // The ratio says which way the means moved; where there is none, the ranks do.
        let up = match self.ratio.filter(|r| r.is_finite() && *r != 1.0) {
            Some(r) => r > 1.0,
            None => self.delta > 0.0,
        };
        if up == (self.better == Better::Higher) { Verdict::Better } else { Verdict::Worse }
    }
}

/// Compares `new` with `base`.
#[must_use]
pub fn judge(base: &Sample, new: &Sample, better: Better, options: VerdictOptions) -> Judged {
    let of = |s: &Sample| summarize(&s.observations(), options.seed);
    judge_summarized((base, &of(base)), (new, &of(new)), better, options)
}

/// As [`judge`] with the sides' summaries at hand: a base is compared with many.
pub(crate) fn judge_summarized(
    (base, base_summary): (&Sample, &Summary),
    (new, new_summary): (&Sample, &Summary),
    better: Better,
    options: VerdictOptions,
) -> Judged {
    let (b, n) = (base.observations(), new.observations());
    let (bs, ns) = (base_summary.clone(), new_summary.clone());
    let censored = bs.censored + ns.censored > 0;
    let paired = if censored { None } else { pair(base, new, options) };
    let ratio = match (&paired, bs.centre(), ns.centre()) {
        (Some(p), _, _) => Some(p.ratio),
        (None, Some(x), Some(y))
            if x != 0.0 && !(censored && bs.median.and(ns.median).is_none()) =>
        {
            Some(y / x)
        }
        _ => None,
    };
    let rank = mann_whitney(&n, &b);
    let (p, smallest_p) = p_value(&paired, censored, &b, &n, rank.map(|r| r.p), options);
    let exact = base.exact() && new.exact() && !censored;
    let mut judged = Judged {
        ratio,
        paired,
        p,
        p_rank: rank.map(|r| r.p),
        p_corrected: p,
        smallest_p,
        delta: cliffs_delta(&n, &b),
        exact,
        verdict: Verdict::Invalid,
        better,
        base: bs,
        new: ns,
    };
    judged.verdict = verdict(&judged, 1, options.alpha);
    judged
}

/// The rounds both sides have, when each side has each of its rounds once and all are shared.
fn pair(base: &Sample, new: &Sample, options: VerdictOptions) -> Option<PairedRatio> {
    let sorted = |s: &Sample| {
        let mut v = s.rounds.clone();
        v.sort_by_key(|r| r.0);
        v
    };
    let (b, n) = (sorted(base), sorted(new));
    let same = b.len() == n.len()
        && b.iter().zip(&n).all(|(x, y)| x.0 == y.0)
        && b.windows(2).all(|w| w[0].0 != w[1].0);
    if !same {
        return None;
    }
    let pairs: Vec<(f64, f64)> = b.iter().zip(&n).map(|(x, y)| (x.1.value, y.1.value)).collect();
    let found = if options.ratio_interval {
        paired_ratio(&pairs, options.seed)
    } else {
        paired_test(&pairs, options.seed)
    };
    found.filter(|p| p.n == b.len())
}

/// Paired test where six or more rounds are shared (fewer cannot reach 5 %), else the two-sample test.
fn p_value(
    paired: &Option<PairedRatio>,
    censored: bool,
    base: &[Observation],
    new: &[Observation],
    rank: Option<f64>,
    options: VerdictOptions,
) -> (Option<f64>, f64) {
    let smallest = smallest_two_sample(new.len(), base.len());
    let reaches = |p: f64| p * options.family.max(1) as f64 <= options.alpha;
    // Pairs resist what the rounds have in common, but their test needs more of them: six rounds stand alone, not beside
    // a second comparison. Where neither test reaches the level, pairs are the one that is cheap.
    let pairs = |p: &&PairedRatio| {
        p.smallest_p <= options.alpha && (reaches(p.smallest_p) || !reaches(smallest))
    };
    if let Some(p) = paired.as_ref().filter(pairs) {
        return (Some(p.p), p.smallest_p);
    }
    if censored {
        return (rank, smallest);
    }
    let values = |o: &[Observation]| o.iter().map(|o| o.value).collect::<Vec<_>>();
    (two_sample(&values(new), &values(base), options.seed).map(|t| t.p), smallest)
}

fn verdict(j: &Judged, family: usize, alpha: f64) -> Verdict {
    if j.base.n == 0 || j.new.n == 0 {
        return Verdict::Invalid;
    }
    if j.exact {
        // Rounding of the last digits is no difference.
        let same = j.ratio.is_some_and(|r| (r - 1.0).abs() < 1e-9) || j.delta == 0.0;
        return if same { Verdict::NoMeasurableDifference } else { j.direction() };
    }
    match j.p_corrected {
        Some(p) if p <= alpha => j.direction(),
        // A test that could not have found anything proves nothing.
        _ if j.smallest_p * family as f64 > alpha && !identical(j) => Verdict::NotEnoughData,
        _ => Verdict::NoMeasurableDifference,
    }
}

/// Two or more values on both sides and all of them the same number.
fn identical(j: &Judged) -> bool {
    j.base.n > 1
        && j.new.n > 1
        && j.base.min == j.base.max
        && j.new.min == j.new.max
        && j.base.min == j.new.min
}

/// Holm's step-down correction: the corrected p values in the order given.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut out = vec![0.0; p.len()];
    let mut running: f64 = 0.0;
    for (k, i) in order.iter().enumerate() {
        running = running.max((p[*i] * (p.len() - k) as f64).min(1.0));
        out[*i] = running;
    }
    out
}

/// Corrects the p values of a family of comparisons (the cells of one measure, say) and renews the
/// verdicts. Exact comparisons need no test and are not part of the family.
pub fn correct_family(family: &mut [&mut Judged], options: VerdictOptions) {
    let tested: Vec<usize> =
        (0..family.len()).filter(|i| !family[*i].exact && family[*i].p.is_some()).collect();
    let p: Vec<f64> = tested.iter().filter_map(|i| family[*i].p).collect();
    for (i, corrected) in tested.iter().zip(holm(&p)) {
        let j = &mut *family[*i];
        j.p_corrected = Some(corrected);
        j.verdict = verdict(j, p.len(), options.alpha);
    }
}

#[cfg(test)]
mod tests;
