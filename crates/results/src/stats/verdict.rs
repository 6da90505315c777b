//! Verdicts in words.

mod pairing;
mod sample;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::rank::{cliffs_delta, mann_whitney};
use super::special::normal_quantile;
use super::summary::{Summary, summarize};
use super::t_test::{Difference, Side, paired, welch};
pub(crate) use pairing::Together;
use pairing::{Pairing, shared};
pub(crate) use sample::Lent;
pub use sample::Sample;

/// Smaller differences are negligible whatever a test says: one percent, in tables and answers alike.
pub const NEGLIGIBLE: f64 = 0.01;
/// Confidence of the intervals.
const LEVEL: f64 = 0.95;

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
    /// Enough data to say that any difference is too small to matter.
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

/// Options of a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerdictOptions {
    /// Share of false discoveries among all figures called better or worse. Where nothing differs, the chance to call
    /// any figure better or worse.
    pub alpha: f64,
    /// Seed of the resampling.
    pub seed: u64,
    /// The smallest difference that matters. If the data leave room for a larger one, they are not enough to call two
    /// sides equal.
    pub margin: f64,
}

impl Default for VerdictOptions {
    fn default() -> Self {
        VerdictOptions { alpha: 0.05, seed: 1, margin: 0.05 }
    }
}

/// How a comparison was tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// It was not: a side has no figure or only one.
    #[default]
    None,
    /// Welch's t on logarithms.
    Welch,
    /// Student's t on the logarithms of the rounds' ratios.
    Paired,
    /// Mann–Whitney, for values beyond a limit.
    Rank,
    /// Both sides are deterministic and do not vary: the difference needs no test.
    Exact,
}

/// A comparison of a cell with its base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The base's summary.
    pub base: Summary,
    /// The other side's summary.
    pub new: Summary,
    /// New over base: of the geometric means, or medians where few values are skewed (of means where a value is zero; none where one is below, or the base is
    /// nothing: then differences are judged). A value beyond a limit counts as
    /// the limit, so with such values it is only about right ([`Judged::about`]).
    pub ratio: Option<f64>,
    /// 95 % confidence interval of the ratio: (low, high). There is none with values beyond a limit.
    pub ratio_ci: Option<(f64, f64)>,
    /// How it was tested.
    pub test: Test,
    /// Two-sided p.
    pub p: Option<f64>,
    /// p after the correction for all figures that are read together.
    pub p_corrected: Option<f64>,
    /// Cliff's delta of new against base.
    pub delta: f64,
    /// Both sides are deterministic and do not vary: the difference is exact and needs no test.
    pub exact: bool,
    /// There is a difference beyond chance, but smaller than [`NEGLIGIBLE`] or than what the figure resolves.
    pub negligible: bool,
    /// Runs that would be enough, where these are not.
    pub needs: Option<usize>,
    /// The verdict.
    pub verdict: Verdict,
    /// Which way is better.
    pub better: Better,
}

impl Judged {
    /// The verdict as shown: `better`, `worse (exact)`, `not enough data, needs 7 runs` …
    #[must_use]
    pub fn words(&self) -> String {
        let exact = if self.exact { " (exact)" } else { "" };
        match (self.verdict, self.needs) {
            (Verdict::NoMeasurableDifference, _) if self.exact && self.delta == 0.0 => {
                "equal (exact)".into()
            }
            (Verdict::NoMeasurableDifference, _) if self.negligible => format!("negligible{exact}"),
            (Verdict::NotEnoughData, Some(n)) if n > 1_000 => {
                "not enough data, needs more than 1,000 runs".into()
            }
            (Verdict::NotEnoughData, Some(n)) => format!("not enough data, needs {n} runs"),
            (v, _) => format!("{v}{exact}"),
        }
    }

    /// The ratio is only about right: a value lies beyond a limit, and counts as the limit.
    #[must_use]
    pub fn about(&self) -> bool {
        self.base.censored > 0 || self.new.censored > 0
    }

    /// By how much the new side is worse: 0.1 means 10 % slower or 10 % more latency; negative when better. `None` where
    /// the ratio is only about right.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        if self.about() {
            return None;
        }
        let r = self.ratio.filter(|r| r.is_finite() && *r > 0.0)?;
        Some(self.loss_of(r))
    }

    /// The largest loss that the interval leaves room for; `None` where nothing is known about it.
    #[must_use]
    pub fn worst_loss(&self) -> Option<f64> {
        if self.exact {
            return self.loss();
        }
        self.ratio_ci.map(|(low, high)| self.loss_of(low).max(self.loss_of(high)))
    }

    fn loss_of(&self, r: f64) -> f64 {
        match self.better {
            Better::Higher => 1.0 - r,
            Better::Lower => r - 1.0,
        }
    }

    fn direction(&self) -> Verdict {
        // The ratio gives the direction; that of means where there is no ratio. With values that are only about right the
        // ranks give it.
        let means = self.base.mean.zip(self.new.mean).filter(|(b, n)| b != n && !self.about());
        let up = match self.ratio.filter(|r| r.is_finite() && *r != 1.0 && !self.about()) {
            Some(r) => r > 1.0,
            None => means.map_or(self.delta > 0.0, |(b, n)| n > b),
        };
        if up == (self.better == Better::Higher) { Verdict::Better } else { Verdict::Worse }
    }

    /// Ranks and ratio point in opposite directions: a value beyond its limit may be what makes the difference.
    fn contrary(&self) -> bool {
        self.about() && self.ratio.is_some_and(|r| (r - 1.0) * self.delta < 0.0)
    }

    fn small(&self, least: f64) -> bool {
        if self.delta == 0.0 && self.exact {
            return true;
        }
        !self.about() && self.ratio.is_some_and(|r| r.ln().abs() < least.ln_1p())
    }
}

/// Two sides that are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared<'a> {
    /// The base with its summary.
    pub(crate) base: (&'a Sample, &'a Summary),
    /// The other side.
    pub(crate) new: (&'a Sample, &'a Summary),
    pub(crate) better: Better,
    /// Figures of one kind lend each other their spread.
    pub(crate) kind: &'a str,
    /// It is the sum of others that are judged beside it: what its rounds say, those have said.
    pub(crate) sum: bool,
}

/// Compares `new` with `base`, alone.
#[must_use]
pub fn judge(base: &Sample, new: &Sample, better: Better, options: VerdictOptions) -> Judged {
    let of = |s: &Sample| summarize(&s.observations(), options.seed);
    let (b, n) = (of(base), of(new));
    let pair = Compared { base: (base, &b), new: (new, &n), better, kind: "", sum: false };
    let mut all = judge_together(&[pair], &Lent::default(), options);
    // One in, one out.
    all.remove(0)
}

/// Judges samples of one kind that are read together: bases, each with those that are compared with it. A base lends its
/// spread once, however many are compared with it.
#[must_use]
pub fn judge_all(
    groups: &[(Sample, Vec<Sample>)],
    better: Better,
    options: VerdictOptions,
) -> Vec<Vec<Judged>> {
    let each = groups.iter().flat_map(|(b, all)| std::iter::once(b).chain(all));
    let lent = Lent::of(each.map(|s| ("", s)));
    let of = |s: &Sample| summarize(&s.observations(), options.seed);
    let summaries: Vec<(Summary, Vec<Summary>)> =
        groups.iter().map(|(b, all)| (of(b), all.iter().map(of).collect())).collect();
    let mut compared = Vec::new();
    for ((base, all), (b, n)) in groups.iter().zip(&summaries) {
        let one =
            |(new, n)| Compared { base: (base, b), new: (new, n), better, kind: "", sum: false };
        compared.extend(all.iter().zip(n).map(one));
    }
    let mut judged = judge_together(&compared, &lent, options).into_iter();
    groups.iter().map(|(_, all)| judged.by_ref().take(all.len()).collect()).collect()
}

/// Judges comparisons that are read together: Benjamini and Hochberg's correction runs over all of them.
pub(crate) fn judge_together(
    pairs: &[Compared<'_>],
    lent: &Lent,
    options: VerdictOptions,
) -> Vec<Judged> {
    let paired = Pairing::of(pairs);
    let tested: Vec<(Judged, Option<Difference>)> =
        pairs.iter().map(|c| test(c, lent, &paired)).collect();
    let known: Vec<usize> = (0..tested.len()).filter(|i| tested[*i].0.p.is_some()).collect();
    let p: Vec<f64> = known.iter().filter_map(|i| tested[*i].0.p).collect();
    let corrected = benjamini_hochberg(&p);
    let found = corrected.iter().filter(|p| **p <= options.alpha).count();
    // What one more discovery has to reach.
    let alpha = options.alpha * (found + 1).min(p.len()) as f64 / p.len().max(1) as f64;
    let (mut out, differences): (Vec<Judged>, Vec<_>) = tested.into_iter().unzip();
    for (i, p) in known.iter().zip(corrected) {
        out[*i].p_corrected = Some(p);
    }
    for ((j, d), c) in out.iter_mut().zip(differences).zip(pairs) {
        let least = NEGLIGIBLE.max(crate::measure::resolution(c.kind));
        conclude(j, d, alpha, least, options);
    }
    out
}

/// Everything but the verdict, and the difference that was tested.
fn test(c: &Compared<'_>, lent: &Lent, pairing: &Pairing) -> (Judged, Option<Difference>) {
    let ((base, bs), (new, ns)) = (c.base, c.new);
    let (b, n) = (base.observations(), new.observations());
    let censored = base.censored() || new.censored();
    let mut out = Judged {
        ratio: None,
        ratio_ci: None,
        test: Test::None,
        p: None,
        p_corrected: None,
        delta: cliffs_delta(&n, &b),
        exact: (base.exact() && new.exact() && !censored) || same_draws(base, new),
        negligible: false,
        needs: None,
        verdict: Verdict::Invalid,
        better: c.better,
        base: bs.clone(),
        new: ns.clone(),
    };
    if b.is_empty() || n.is_empty() {
        return (out, None);
    }
    let logarithms = Side::of_logarithms(&base.values()).zip(Side::of_logarithms(&new.values()));
    if censored {
        let bounds = bs.centre().zip(ns.centre()).filter(|(b, _)| *b != 0.0).map(|(b, n)| n / b);
        out.ratio = logarithms.map(|(b, n)| (n.mean - b.mean).exp()).or(bounds);
        out.test = Test::Rank;
        out.p = mann_whitney(&n, &b).map(|r| r.p);
        return (out, None);
    }
    let found = match logarithms {
        Some((b, n)) => {
            out.ratio = Some(shown(bs, ns, (n.mean - b.mean).exp()));
            let pairs = pairing.0.get(c.kind).and_then(|prior| Some((shared(c)?, *prior)));
            let by_pairs = pairs.and_then(|(r, prior)| {
                paired(Side::of(&r.iter().map(|r| r.1 - r.0).collect::<Vec<_>>()), prior)
            });
            out.test = if by_pairs.is_some() { Test::Paired } else { Test::Welch };
            by_pairs.or_else(|| welch(b, n, lent.prior(c.kind)))
        }
        None => {
            let below = [base, new].iter().any(|s| s.values().iter().any(|v| *v < 0.0));
            let (b, n) = (Side::of(&base.values()), Side::of(&new.values()));
            // Of what lies below zero there is no so many times as much.
            out.ratio = (b.mean != 0.0 && !below).then(|| n.mean / b.mean);
            out.test = Test::Welch;
            welch(b, n, None)
        }
    };
    if out.exact {
        out.test = Test::Exact;
        return (out, None);
    }
    let Some(d) = found else {
        out.test = Test::None;
        return (out, None);
    };
    // Two rounded values that never vary. Only one thing is known: how likely chance sorts them like this.
    let p =
        if d.se > 0.0 || d.difference == 0.0 { d.p() } else { sorted_by_chance(b.len(), n.len()) };
    out.p = Some(p);
    let (low, high) = d.interval(LEVEL);
    out.ratio_ci = match (logarithms, bs.mean) {
        (Some(_), _) => Some((low.exp(), high.exp())),
        (None, Some(m)) if m > 0.0 && out.ratio.is_some() => Some((1.0 + low / m, 1.0 + high / m)),
        _ => None,
    };
    (out, Some(d))
}

/// The ratio of what is shown. Of few skewed values that is the ratio of the medians, where it points the same way as the
/// logarithms that are tested.
fn shown(base: &Summary, new: &Summary, of_logarithms: f64) -> f64 {
    let both = base.centre().zip(new.centre()).filter(|(b, _)| *b > 0.0);
    let medians = both.map(|(b, n)| n / b).filter(|_| base.skewed() || new.skewed());
    medians.filter(|r| (r - 1.0) * (of_logarithms - 1.0) > 0.0).unwrap_or(of_logarithms)
}

/// The same seeds gave the same values, or values that vary are the same in every round: a copy, whatever was recorded
/// about it. So both sides are equal. One trial alone shows neither.
fn same_draws(base: &Sample, new: &Sample) -> bool {
    let both = |f: fn(&Sample) -> bool| f(base) && f(new);
    let seeded = both(|s| s.deterministic) && both(|s| s.paired);
    let varies = base.rounds.windows(2).any(|w| w[0].1 != w[1].1);
    base.rounds.len() > 1 && base.rounds == new.rounds && (seeded || varies)
}

/// Twice the chance that the n come first among n + m values in random order: 2/(n+m over n).
fn sorted_by_chance(n: usize, m: usize) -> f64 {
    let ways: f64 = (1..=n).map(|i| (m + i) as f64 / i as f64).product();
    (2.0 / ways).min(1.0)
}

fn conclude(
    j: &mut Judged,
    d: Option<Difference>,
    alpha: f64,
    least: f64,
    options: VerdictOptions,
) {
    let found = j.exact || j.p_corrected.is_some_and(|p| p <= options.alpha) && !j.contrary();
    j.negligible = found && j.small(least);
    j.verdict = match found {
        _ if j.base.n == 0 || j.new.n == 0 => Verdict::Invalid,
        true if j.negligible => Verdict::NoMeasurableDifference,
        true => j.direction(),
        _ if identical(j) || within(j, options.margin) => Verdict::NoMeasurableDifference,
        _ => Verdict::NotEnoughData,
    };
    if j.verdict != Verdict::NotEnoughData {
        return;
    }
    let n = j.base.n.min(j.new.n);
    // Values that are not all positive are compared as they are, and not by their logarithms.
    let positive = [&j.base, &j.new].iter().all(|s| s.min > 0.0);
    let scale = if positive || j.ratio.is_none() { 1.0 } else { j.base.mean.unwrap_or(1.0) };
    let margin = if j.ratio.is_some() { options.margin.ln_1p() * scale } else { 0.0 };
    j.needs = match (d, j.p) {
        (Some(d), _) if d.se > 0.0 => Some(d.needs(n, alpha, margin)),
        // The rank test's z grows with the root of n.
        (None, Some(p)) if p < 0.9 => {
            let z = normal_quantile(alpha / 2.0) / normal_quantile(p / 2.0);
            Some(((n as f64 * z * z).ceil() as usize).max(n + 1))
        }
        _ => None,
    };
}

/// The whole interval lies within the margin.
fn within(j: &Judged, margin: f64) -> bool {
    let inside = |r: f64| r > 0.0 && r.ln().abs() <= margin.ln_1p();
    j.ratio_ci.is_some_and(|(low, high)| inside(low) && inside(high))
}

/// Two or more values on both sides and all of them the same number, or all beyond the same limit.
fn identical(j: &Judged) -> bool {
    j.base.n > 1
        && j.new.n > 1
        && j.base.min == j.base.max
        && j.new.min == j.new.max
        && j.base.min == j.new.min
        && [&j.base, &j.new].iter().all(|s| s.censored == 0 || s.censored == s.n)
        && (j.base.censored > 0) == (j.new.censored > 0)
}

/// Benjamini and Hochberg's correction (1995): the corrected p values in the order given. On average a share α of all
/// discoveries at most α is false.
#[must_use]
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut out = vec![0.0; p.len()];
    let mut running: f64 = 1.0;
    for (k, i) in order.iter().enumerate() {
        running = running.min(p[*i] * p.len() as f64 / (p.len() - k) as f64);
        out[*i] = running;
    }
    out
}

#[cfg(test)]
mod tests;
