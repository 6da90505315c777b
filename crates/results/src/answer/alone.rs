//! Goals of a single figure are what tables show, so they are judged as tables judge: the same test, the same spread
//! that figures lend each other, the same correction. An answer and the table above it never contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use super::Case;
use super::figures::{Goal, Values};
use super::standing::Lead;
use crate::cells::usual_base;
use crate::measure::kind;
use crate::stats::{
    Better, Compared, Judged, Lent, Sample, Summary, Test, Verdict, VerdictOptions, judge_together,
    summarize,
};

/// The values of one figure by scheduler, as tables take them.
type Row = Vec<Option<(Sample, Summary)>>;

/// What tables say of a figure: (scheduler, base), as positions.
pub(super) type Judgements = BTreeMap<(usize, usize), Judged>;

/// Judges the cases that have one figure. All figures of the same measure are read together.
pub(super) fn judge(cases: &mut [Case<'_>]) {
    let measures: BTreeSet<String> = cases
        .iter()
        .filter(|c| c.order.len() > 1)
        .filter_map(|c| match &c.goal.figures[..] {
            [one] => Some(one.measure.clone()),
            _ => None,
        })
        .collect();
    for measure in measures {
        family(cases, &measure);
    }
}

/// Judges every figure of one measure, each scheduler once as the base, and keeps what is said of cases with one figure.
fn family(cases: &mut [Case<'_>], measure: &str) {
    let mut rows: Vec<(usize, Row)> = Vec::new();
    let mut bases: BTreeSet<String> = BTreeSet::new();
    for (at, case) in cases.iter().enumerate() {
        for f in case.goal.figures.iter().filter(|f| f.measure == measure) {
            rows.push((at, f.values.iter().map(|v| v.as_ref().map(sample)).collect()));
        }
        bases.extend(case.goal.schedulers.iter().cloned());
    }
    let all = || rows.iter().flat_map(|(_, row)| row.iter().flatten());
    let lent = Lent::of(all().map(|(s, _)| (kind(measure), s)));
    let mut found: Vec<((usize, usize, usize), Judged)> = Vec::new();
    for name in &bases {
        let (mut pairs, mut places) = (Vec::new(), Vec::new());
        for (at, row) in &rows {
            let goal = &cases[*at].goal;
            let base = goal.schedulers.iter().position(|s| s == name);
            let Some((b, (bs, bm))) = base.and_then(|b| Some((b, row[b].as_ref()?))) else {
                continue;
            };
            for (n, other) in row.iter().enumerate().filter(|(n, _)| *n != b) {
                let Some((ns, nm)) = other else { continue };
                let better = goal.better;
                pairs.push(Compared { base: (bs, bm), new: (ns, nm), better, kind: kind(measure) });
                places.push((*at, n, b));
            }
        }
        let judged = judge_together(&pairs, &lent, VerdictOptions::default());
        found.extend(places.into_iter().zip(judged));
    }
    for ((at, new, base), judged) in found {
        if cases[at].goal.figures.len() == 1 {
            cases[at].standings.judged.insert((new, base), judged);
        }
    }
}

/// The values of one scheduler, as tables take them.
pub(super) fn sample(v: &Values) -> (Sample, Summary) {
    let rounds = v.rounds.iter().copied().zip(v.by_round.iter().copied()).collect();
    let summary = summarize(&v.by_round, VerdictOptions::default().seed);
    (Sample { rounds, deterministic: v.deterministic, paired: v.paired }, summary)
}

/// A lead of `a` over `b` as the tables have it: tables compare with the usual base, so it is the base where it is one
/// of both.
pub(super) fn lead(judged: &Judgements, goal: &Goal, a: usize, b: usize) -> Option<Lead> {
    let usual = usual_base(goal.schedulers.iter().map(String::as_str));
    let turned = usual == Some(goal.schedulers[a].as_str());
    let j = judged.get(&if turned { (b, a) } else { (a, b) })?;
    let sign = if (goal.better == Better::Higher) == turned { -1.0 } else { 1.0 };
    let ratio = j.ratio.filter(|r| *r > 0.0 && r.is_finite())?;
    let ends = |(low, high): (f64, f64)| {
        let (x, y) = (sign * low.ln(), sign * high.ln());
        (x.min(y), x.max(y))
    };
    let p = match j.test {
        Test::Exact => Some(if j.delta == 0.0 { 1.0 } else { 0.0 }),
        _ => j.p,
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
