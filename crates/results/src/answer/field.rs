//! Everybody against the usual base, and those that the kernel does not have.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::{ALPHA, Answer, Candidate, Case, list};
use crate::stats::benjamini_hochberg;

/// On which side of the base a scheduler stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Measurably better, by one percent or more.
    Better,
    /// Neither can be told.
    #[default]
    Level,
    /// Measurably worse, by one percent or more.
    Worse,
}

/// Where one scheduler stands for a goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stand {
    /// Scheduler, as in the cells.
    pub scheduler: String,
    /// It is the usual base.
    pub base: bool,
    /// How many times better than the usual base it is, over all figures of the goal; infinitely where the base delivers
    /// nothing.
    #[serde(serialize_with = "finite")]
    pub ratio: f64,
    /// 95 % interval of that; `None` when it is exact or cannot be told.
    pub interval: Option<(f64, f64)>,
    /// The ratio is only about right: values beyond a limit count as the limit.
    pub approximate: bool,
    /// p of the test against the base; `None` for the base and where there is one value of each.
    pub p: Option<f64>,
    /// Whether it is measurably better or worse than the base. Of runs that repeat each other to the last digit (tables say
    /// "one draw", p is 0) it is the side of that one draw.
    pub side: Side,
    /// Logarithm of the smallest difference that says anything.
    #[serde(skip)]
    pub(super) matters: f64,
    /// Whether tables call it a difference, where they show this very figure.
    #[serde(skip)]
    pub(super) table: Option<bool>,
    /// The trials' kernel does not have it.
    pub gone: bool,
}

/// No number of JSON is infinite: the largest one stands for it.
pub(super) fn finite<S: Serializer>(ratio: &f64, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(ratio.min(f64::MAX))
}

/// Judges all schedulers of all answers together: they stand on one page. Those that are history are not judged. A
/// winner is ahead of every other by a stricter test, so it is better than the base as well.
pub(super) fn judge(answers: &mut [Answer]) {
    let mut judged: Vec<(&mut Stand, bool)> = Vec::new();
    for Answer { winner, field, .. } in answers {
        for s in field.iter_mut().filter(|s| !s.gone && s.p.is_some()) {
            let won = winner.as_ref() == Some(&s.scheduler);
            judged.push((s, won));
        }
    }
    let p: Vec<f64> = judged.iter().filter_map(|(s, _)| s.p).collect();
    for ((s, won), p) in judged.into_iter().zip(benjamini_hochberg(&p)) {
        let matters = s.ratio.ln().abs() >= s.matters;
        let found = s.table.unwrap_or(p <= ALPHA);
        s.side = if !(won || found && matters) {
            Side::Level
        } else if s.ratio > 1.0 {
            Side::Better
        } else {
            Side::Worse
        };
    }
}

impl Case<'_> {
    /// Everybody against the usual base.
    pub(super) fn field(&self, candidates: &[Candidate]) -> Vec<Stand> {
        let base = self.base();
        let stand = |(i, name): (usize, &String)| {
            if self.goal.gaps.out.contains(&i) {
                return None;
            }
            let lead = self.lead_of(i, base)?;
            let of = |c: &&Candidate| c.device == self.device && c.scheduler == *name;
            Some(Stand {
                scheduler: name.clone(),
                base: i == base,
                ratio: lead.log.exp(),
                interval: lead.ends().filter(|_| i != base),
                approximate: lead.about && i != base,
                p: lead.p.filter(|_| i != base),
                side: Side::default(),
                matters: self.goal.matters().ln_1p(),
                table: lead.table,
                gone: candidates.iter().find(of).is_some_and(|c| !c.gone.is_empty()),
            })
        };
        self.goal.schedulers.iter().enumerate().filter_map(stand).collect()
    }

    /// Those that the kernel does not have and that were judged all the same.
    pub(super) fn absent(&self, out: &mut Answer, candidates: &[Candidate]) {
        for i in &self.order {
            let of = |c: &&Candidate| c.device == self.device && c.scheduler == *self.name(*i);
            if let Some(c) = candidates.iter().find(of).filter(|c| !c.gone.is_empty()) {
                out.notes.push(format!("{}; compared all the same", c.gone));
            }
        }
    }

    /// Those that the kernel does not have and that stood higher, by kernel.
    pub(super) fn history(&self, out: &mut Answer, candidates: &[Candidate]) {
        let first = self.order[0];
        let mut ahead: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for c in candidates.iter().filter(|c| c.device == self.device && !c.gone.is_empty()) {
            let at = self.goal.schedulers.iter().position(|s| *s == c.scheduler);
            let lead = at.filter(|i| self.standings.knows(*i));
            let Some(lead) = lead.and_then(|i| self.lead_of(i, first)) else { continue };
            if lead.log.exp() - 1.0 >= self.goal.matters() {
                let words = format!("{} {}", c.scheduler, self.about(lead));
                let kernel = c.kernel.split_whitespace().next().unwrap_or_default();
                ahead.entry(kernel).or_default().push(words);
            }
        }
        for (kernel, who) in ahead {
            let who = list(&who.iter().map(String::as_str).collect::<Vec<_>>());
            let first = self.name(first);
            out.notes.push(format!("Not in Linux {kernel}: {who} against {first}"));
        }
    }
}
