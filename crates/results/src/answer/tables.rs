//! What tables say of single figures. Answers take it from here: the same test, the same spread that figures lend each
//! other, the same correction. So an answer and the table beside it never contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{Figure, Goal};
use super::standing::Lead;
use crate::cells::{CellKey, Cells, judge_each, usual_base};
use crate::measure::{PARTS, TOTAL};
use crate::stats::{Better, Judged, Test, Verdict, VerdictOptions};
use iosched_experiment::DURABLE_BW;

/// Every figure that is shown from the start, each scheduler once as the base.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// By base, then by cell and measure.
    judged: BTreeMap<String, BTreeMap<(CellKey, String), Judged>>,
}

impl Tables {
    pub(super) fn of(cells: &Cells) -> Tables {
        let schedulers: BTreeSet<&str> = cells.0.keys().map(|k| k.scheduler.as_str()).collect();
        let bases: Vec<&str> = schedulers.into_iter().collect();
        let of = |a: crate::cells::Analysis| {
            let lines = a.lines.into_iter();
            (a.base, lines.filter_map(|l| Some(((l.key, l.measure), l.against_base?))).collect())
        };
        Tables { judged: judge_each(cells, &bases, VerdictOptions::default()).map(of).collect() }
    }

    /// What is said of a measure of `new` against `base`.
    pub(super) fn judged(&self, new: &CellKey, measure: &str, base: &str) -> Option<&Judged> {
        self.judged.get(base)?.get(&(new.clone(), measure.to_string()))
    }

    /// A lead of `a` over `b` in one figure, where tables show that very figure. They compare with the usual base, so it
    /// is the base where it is one of both.
    pub(super) fn lead(
        &self,
        device: &str,
        goal: &Goal,
        figure: &Figure,
        pair: (usize, usize),
    ) -> Option<Lead> {
        self.lead_in(device, goal, (&figure.workload, figure.table.as_deref()?), pair)
    }

    /// The same in what a workload moved in all: the total, or reads or writes where it has nothing else.
    pub(super) fn moved(
        &self,
        device: &str,
        goal: &Goal,
        workload: &str,
        pair: (usize, usize),
    ) -> Option<Lead> {
        let mut shown = [DURABLE_BW, TOTAL, PARTS[0], PARTS[1]].into_iter();
        shown.find_map(|m| self.lead_in(device, goal, (workload, m), pair))
    }

    fn lead_in(
        &self,
        device: &str,
        goal: &Goal,
        (workload, measure): (&str, &str),
        (a, b): (usize, usize),
    ) -> Option<Lead> {
        let usual = usual_base(goal.schedulers.iter().map(String::as_str));
        let turned = usual == Some(goal.schedulers[a].as_str());
        let (new, base) = if turned { (b, a) } else { (a, b) };
        let key = CellKey {
            device: device.into(),
            workload: workload.into(),
            scheduler: goal.schedulers[new].clone(),
        };
        let j = self.judged(&key, measure, &goal.schedulers[base])?;
        as_lead(j, if (goal.better == Better::Higher) == turned { -1.0 } else { 1.0 })
    }
}

/// A judgement as a lead; `sign` is −1 where more of the logarithm is worse.
fn as_lead(j: &Judged, sign: f64) -> Option<Lead> {
    let ratio = j.ratio.filter(|r| *r > 0.0 && r.is_finite())?;
    let ends = |(low, high): (f64, f64)| {
        let (x, y) = (sign * low.ln(), sign * high.ln());
        (x.min(y), x.max(y))
    };
    let p = match j.test {
        Test::Exact => Some(if j.delta == 0.0 { 1.0 } else { 0.0 }),
        // One value of each is no test, whether it lies beyond a limit or not.
        _ => j.p.filter(|_| j.base.n > 1 || j.new.n > 1),
    };
    Some(Lead {
        log: sign * ratio.ln(),
        interval: j.ratio_ci.map(ends).filter(|(x, y)| x.is_finite() && y.is_finite()),
        p,
        about: j.about(),
        // With values beyond a limit, ranks and ratio may point in opposite directions.
        table: Some(matches!(j.verdict, Verdict::Better | Verdict::Worse)),
    })
}
