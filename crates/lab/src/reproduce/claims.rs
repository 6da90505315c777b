//! Published claims, judged by figures.

use iosched_types::units::three_digits;
use serde::Serialize;

use super::cells::Cell;
use super::map::{Check, Claim, fits};

/// A published claim and what our figures say of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The claim.
    pub claim: String,
    /// What became of it.
    pub verdict: Verdict,
    /// The figures.
    pub evidence: String,
}

/// What our figures say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every check holds.
    Agree,
    /// One does not.
    Disagree,
    /// There are no figures for it.
    NotMeasurable,
}

/// Whose figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Published,
    Ours,
}

/// Judges a claim.
pub(super) fn judge(claim: &Claim, cells: &[Cell]) -> Judged {
    let judged = |verdict, evidence| Judged { claim: claim.text.clone(), verdict, evidence };
    if let Some(why) = &claim.not_measurable {
        return judged(Verdict::NotMeasurable, why.clone());
    }
    let mut evidence = Vec::new();
    let mut all = true;
    for check in &claim.checks {
        let Some(ours) = check.ratio(cells, Whose::Ours) else {
            let test = check.largest.first().or(check.sum.first()).unwrap_or(&check.test);
            let why = format!("{test}: no figures of ours");
            return judged(Verdict::NotMeasurable, why);
        };
        let holds = check.holds(ours);
        all &= holds;
        evidence.push(check.words(check.ratio(cells, Whose::Published), ours, holds));
    }
    judged(if all { Verdict::Agree } else { Verdict::Disagree }, evidence.join("; "))
}

impl Check {
    /// The ratio that the check is about: the closest two of both groups, or the ends of one.
    pub(super) fn ratio(&self, cells: &[Cell], whose: Whose) -> Option<f64> {
        let value = |c: &Cell| match whose {
            Whose::Published => c.published,
            Whose::Ours => c.ours,
        };
        let group = |test: &str, runs: &[String], but: &[String]| -> Option<Vec<f64>> {
            let named = |c: &&Cell| c.test == test && runs.iter().any(|r| fits(r, &c.run));
            let kept = |c: &&Cell| !but.iter().any(|r| fits(r, &c.run));
            let values: Vec<f64> =
                cells.iter().filter(named).filter(kept).filter_map(value).collect();
            (!values.is_empty()).then_some(values)
        };
        if !self.largest.is_empty() {
            let of_these = cells.iter().filter(|c| self.largest.contains(&c.test));
            return of_these.filter_map(value).reduce(f64::max);
        }
        if !self.sum.is_empty() {
            let sum = |tests: &[String]| {
                let of_these = cells.iter().filter(|c| tests.contains(&c.test)).filter_map(value);
                of_these.fold(None, |sum: Option<f64>, v| Some(sum.unwrap_or(0.0) + v))
            };
            return Some(sum(&self.sum)? / sum(&self.sum_over)?);
        }
        if !self.like.is_empty() {
            return self.furthest(cells, value);
        }
        let least = |v: &[f64]| v.iter().copied().fold(f64::INFINITY, f64::min);
        let most = |v: &[f64]| v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !self.spread.is_empty() {
            let all = group(&self.test, &self.spread, &self.but)?;
            return Some(most(&all) / least(&all));
        }
        let of = group(&self.test, &self.of, &self.but)?;
        let (test, but) = match self.over_test.as_str() {
            "" => (&self.test, self.of.as_slice()),
            other => (&other.to_string(), [].as_slice()),
        };
        // A run of both groups is one of `of`, unless `but` has taken it out there.
        let but: Vec<String> = but.iter().filter(|_| self.but.is_empty()).cloned().collect();
        let over = group(test, &self.over, &but)?;
        Some(match self.at_least {
            Some(_) => least(&of) / most(&over),
            None => most(&of) / least(&over),
        })
    }

    /// How many times one figure of a run is the other, in two tests: that of the run where they are furthest apart.
    fn furthest(&self, cells: &[Cell], value: impl Fn(&Cell) -> Option<f64>) -> Option<f64> {
        let of = |test: &str, run: &str| {
            let cell = cells.iter().find(|c| c.test == test && c.run == run)?;
            value(cell).map(|v| v.max(self.floor))
        };
        let mut most: Option<f64> = None;
        for run in &self.of {
            let (a, b) = (of(&self.test, run)?, of(&self.like, run)?);
            // Nothing of both is no difference.
            let apart = if a == b { 1.0 } else { (a / b).max(b / a) };
            most = Some(most.map_or(apart, |m| m.max(apart)));
        }
        most
    }

    pub(super) fn holds(&self, ratio: f64) -> bool {
        // NaN, nothing of both, is no difference.
        self.at_least.is_none_or(|least| ratio >= least)
            && self.at_most.is_none_or(|most| ratio <= most)
    }

    fn words(&self, published: Option<f64>, ours: f64, holds: bool) -> String {
        let what = match self.spread.is_empty() {
            _ if !self.largest.is_empty() => format!("largest of {}", self.largest.join(", ")),
            _ if !self.sum.is_empty() => {
                format!("{} together over {}", self.sum.join(", "), self.sum_over.join(", "))
            }
            _ if !self.like.is_empty() => {
                format!("{} and {}, furthest of {}", self.test, self.like, self.of.join(", "))
            }
            false => format!("{}, largest over smallest", self.test),
            true => {
                let other = match self.over_test.as_str() {
                    "" => String::new(),
                    other => format!("{other}, "),
                };
                let of = self.of.join(", ");
                let but = match self.but.is_empty() {
                    true => String::new(),
                    false => format!(" but {}", self.but.join(", ")),
                };
                format!("{}, {of}{but} over {other}{}", self.test, self.over.join(", "))
            }
        };
        let published = published.map_or(String::new(), |p| format!("{} published, ", number(p)));
        let bounds = [("at least", self.at_least), ("at most", self.at_most)];
        let bounds: Vec<String> =
            bounds.iter().filter_map(|(w, b)| b.map(|b| format!("{w} {b}"))).collect();
        let end = if holds { "holds" } else { "does not hold" };
        format!("{what}: {published}{} ours, {} wanted: {end}", number(ours), bounds.join(", "))
    }
}

fn number(v: f64) -> String {
    match v {
        v if v.is_nan() => "0/0".into(),
        v if v.is_infinite() => "∞".into(),
        v => three_digits(v),
    }
}
