//! Schedulers without all figures of a goal: who leaves the field, and what is said of it.

use super::figures::{Figure, Goal};
use super::list;
use crate::cells::{CellKey, Cells};

/// Longer lists of workloads are counted.
const NAMED: usize = 3;

/// Why a scheduler has no figure in a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// There is no run of it.
    NotRun,
    /// No run of it is usable.
    Failed,
    /// Its runs lack this figure.
    NoFigure,
}

/// What schedulers lack, and what is left out for that.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// Scheduler, workload, why.
    each: Vec<(usize, String, Gap)>,
    /// Those that the kernel has.
    present: Vec<usize>,
    /// Those that are not judged, whatever they have in the figures that are left.
    pub(super) out: Vec<usize>,
    /// Workloads that are not judged, since nearly everybody lacks one.
    dropped: Vec<String>,
}

/// No run of a cell is usable, and there were some.
pub(super) fn failed(cells: &Cells, (device, workload, scheduler): (&str, &str, &str)) -> bool {
    let key =
        CellKey { device: device.into(), workload: workload.into(), scheduler: scheduler.into() };
    cells.0.get(&key).is_some_and(|c| c.measures.is_empty() && !c.unusable.is_empty())
}

/// Who lacks a figure leaves the field, and the others are judged over all of them. Where that leaves nobody to compare
/// with, those that failed nowhere are judged over the figures that they share.
pub(super) fn settle(
    figures: &mut Vec<Figure>,
    present: &[bool],
    why: impl Fn(usize, &str) -> Gap,
) -> Gaps {
    let who: Vec<usize> = (0..present.len()).filter(|i| present[*i]).collect();
    let mut gaps = Gaps { present: who.clone(), ..Gaps::default() };
    for i in &who {
        for f in figures.iter().filter(|f| f.values[*i].is_none()) {
            let gap = (*i, f.workload.clone(), why(*i, &f.workload));
            if !gaps.each.contains(&gap) {
                gaps.each.push(gap);
            }
        }
    }
    let lacks = |i: &usize, gap: Option<Gap>| {
        gaps.each.iter().any(|g| g.0 == *i && gap.is_none_or(|gap| g.2 == gap))
    };
    gaps.out = who.iter().copied().filter(|i| lacks(i, None)).collect();
    if gaps.out.is_empty() || who.len() - gaps.out.len() > 1 {
        return gaps;
    }
    let (out, rest): (Vec<usize>, Vec<usize>) =
        who.iter().partition(|i| lacks(i, Some(Gap::Failed)));
    let shared = |f: &Figure| rest.iter().all(|i| f.values[*i].is_some());
    if rest.len() > 1 && figures.iter().any(shared) {
        let dropped = figures.iter().filter(|f| !shared(f)).map(|f| f.workload.clone());
        gaps.dropped = dropped.collect();
        gaps.dropped.dedup();
        figures.retain(shared);
        gaps.out = out;
    }
    gaps
}

impl Gaps {
    pub(super) fn any(&self) -> bool {
        !self.each.is_empty()
    }
}

impl Goal {
    /// What a scheduler lacks: `bfq failed in w2`.
    fn lacks(&self, i: usize) -> String {
        let of = |gap: Gap, verb: &str| {
            let all = self.gaps.each.iter().filter(|g| g.0 == i && g.2 == gap);
            let all: Vec<&str> = all.map(|g| g.1.as_str()).collect();
            (!all.is_empty()).then(|| format!("{verb} {}", workloads(&all)))
        };
        let parts = [
            of(Gap::Failed, "failed in"),
            of(Gap::NotRun, "lacks"),
            of(Gap::NoFigure, "has no such figure in"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(" and ")
    }

    /// Who and what is left out, and why.
    pub(super) fn left_out(&self) -> Vec<String> {
        let mut out = Vec::new();
        if !self.gaps.out.is_empty() {
            let who = self.gaps.out.iter();
            let who: Vec<String> =
                who.map(|i| format!("{}, which {}", self.schedulers[*i], self.lacks(*i))).collect();
            out.push(format!("Judged without {}", who.join("; without ")));
        }
        if !self.gaps.dropped.is_empty() {
            let all: Vec<&str> = self.gaps.dropped.iter().map(String::as_str).collect();
            let mut who: Vec<usize> = self.gaps.each.iter().map(|g| g.0).collect();
            who.dedup();
            let who = who.into_iter().filter(|i| !self.gaps.out.contains(i));
            let who: Vec<String> =
                who.map(|i| format!("{} {}", self.schedulers[i], self.lacks(i))).collect();
            out.push(format!("Judged without {}: {}", workloads(&all), who.join("; ")));
        }
        out
    }

    /// The sentence where nobody is left to compare with.
    pub(super) fn nobody(&self) -> String {
        let whole = |i: &usize| !self.gaps.each.iter().any(|g| g.0 == *i);
        let mut who: Vec<usize> = self.gaps.each.iter().map(|g| g.0).collect();
        who.dedup();
        let lack: Vec<String> =
            who.iter().map(|i| format!("{} {}", self.schedulers[*i], self.lacks(*i))).collect();
        let lack = lack.join("; ");
        match self.gaps.present.iter().find(|i| whole(i)) {
            Some(i) => {
                let one = &self.schedulers[*i];
                format!("Nothing to compare: only {one} has results in every workload ({lack})")
            }
            None => format!("Nothing to compare: no two schedulers share all workloads ({lack})"),
        }
    }
}

fn workloads(all: &[&str]) -> String {
    if all.len() > NAMED + 1 {
        return format!("{} and {} more workloads", all[..NAMED].join(", "), all.len() - NAMED);
    }
    list(all)
}
