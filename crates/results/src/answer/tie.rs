//! What is said where nobody is measurably ahead, and of runs that were not steady.

use std::collections::BTreeSet;

use super::figures::{Figure, THROUGHPUT};
use super::words::in_words;
use super::{Answer, Candidate, Case, Certainty, DIFFERENCE, list, share};
use crate::stats::VerdictOptions;

const UNCLEAR: &str = "No clear winner";

/// A difference of a single figure that a mean of several must not hide: five percent.
const HIDDEN: f64 = 0.05;

impl Case<'_> {
    /// Says which runs were not steady. A lead in nothing but such runs is not yet one.
    pub(super) fn steady(&self, out: &mut Answer, candidates: &[Candidate]) {
        let with: Vec<&Candidate> = candidates
            .iter()
            .filter(|c| c.device == self.device && c.gone.is_empty())
            .filter(|c| self.goal.figures.iter().any(|f| c.unsteady.contains(&f.workload)))
            .collect();
        if with.is_empty() {
            return;
        }
        let everywhere =
            |c: &&Candidate| self.goal.figures.iter().all(|f| c.unsteady.contains(&f.workload));
        let first = [0, 1].map(|i| self.name(self.order[i]));
        let decisive = |c: &&&Candidate| first.contains(&c.scheduler.as_str());
        if out.certainty == Certainty::Measured && with.iter().filter(decisive).any(everywhere) {
            out.certainty = Certainty::NotSteady;
        }
        let who: Vec<&str> = with.iter().map(|c| c.scheduler.as_str()).collect();
        let who = if who.len() > 4 { format!("{} schedulers", who.len()) } else { list(&who) };
        out.notes.push(format!(
            "The rate of runs of {who} changes by over 10 %, or will: longer runs may say otherwise"
        ));
    }

    pub(super) fn tie(&self, out: &mut Answer, candidates: &[Candidate]) {
        out.certainty = Certainty::NotMeasurable;
        let matters = self.goal.matters();
        let others = self.order[1..].iter().zip(&self.behind).filter(|(_, behind)| !**behind);
        let tied: Vec<usize> =
            std::iter::once(self.order[0]).chain(others.map(|(o, _)| *o)).collect();
        let first = self.name(self.order[0]);
        let Some(last) = tied.last().filter(|_| tied.len() > 1) else {
            out.words = format!(
                "{UNCLEAR}: {first} is ahead of each other one, but not surely of all. {}",
                self.over()
            );
            return;
        };
        let both = tied[1..].iter().find_map(|o| self.both_ways(self.order[0], *o));
        let single = tied[1..].iter().find_map(|o| self.single(self.order[0], *o));
        let lead = self.lead(*last);
        let by = lead.map_or_else(String::new, |l| self.about(l));
        let ends = format!("{first} {by} against {}", self.name(*last));
        // Of values beyond a limit only a bound is known, so nothing is known to be small.
        let small = lead.is_none_or(|l| l.log.exp() - 1.0 < matters && !l.about);
        let margin = VerdictOptions::default().margin;
        let within = |o: &usize| self.lead(*o).is_some_and(|l| l.within(margin));
        // Tables call a single figure different: then this is not "no difference".
        let (level, but) = match &single {
            Some((_, true)) => (UNCLEAR, ", but not in each of them"),
            Some((_, false)) => (UNCLEAR, ", but not in what they move in all"),
            None => (DIFFERENCE, ""),
        };
        let (what, why) = if both.is_some() {
            (UNCLEAR, "each is ahead in some measures".into())
        } else if small {
            let mean = if self.goal.figures.len() > 1 { " in the mean of these" } else { "" };
            (level, format!("less than {} apart{mean}{but}", share(matters)))
        } else if tied[1..].iter().all(within) {
            let mean = if but.is_empty() { "" } else { " in the mean of these" };
            (level, format!("{ends}: surely less than {}{mean}{but}", share(margin)))
        } else {
            let few = match self.goal.runs() {
                1 => "1 run is".into(),
                n => format!("{n} runs are"),
            };
            (UNCLEAR, format!("{ends}: {few} too few to be sure"))
        };
        let who = if tied.len() == self.order.len() && tied.len() > 2 {
            format!("the {} schedulers", tied.len())
        } else {
            list(&tied.iter().map(|i| self.name(*i)).collect::<Vec<_>>())
        };
        out.words = format!("{what} between {who} ({why}). {}", self.over());
        out.notes.extend(both.or(single.map(|s| s.0)));
        // Only where nobody is ahead of anybody: a cause of level figures explains no difference, seen or possible.
        let level = |o: &usize| self.lead(*o).is_some_and(|l| l.log.exp() - 1.0 < matters);
        if self.order[1..].iter().all(level)
            && self.goal.all_level()
            && let Some(why) = reason(self.device, candidates)
        {
            out.words += &format!(". Why: {why}");
        }
    }

    /// The largest difference of a single figure each way between two schedulers, where there are both: in the mean they
    /// cancel out.
    fn both_ways(&self, a: usize, b: usize) -> Option<String> {
        let mut found = self.singles(a, b);
        found.retain(|f| f.0.abs() >= HIDDEN.ln_1p());
        let ahead = found.iter().filter(|f| f.0 > 0.0).max_by(|x, y| x.0.total_cmp(&y.0))?;
        let behind = found.iter().filter(|f| f.0 < 0.0).min_by(|x, y| x.0.total_cmp(&y.0))?;
        let (x, y) = (self.said(ahead), self.said(behind));
        Some(format!("{} against {}: {x}, but {y}", self.name(a), self.name(b)))
    }

    /// The largest difference of a single figure, where there are several, else of the data rate beside them; and whether it
    /// is one of the figures.
    fn single(&self, a: usize, b: usize) -> Option<(String, bool)> {
        let (singles, rates) = (self.singles(a, b), self.data_rates(a, b));
        let largest = |all: &[(f64, String)]| {
            let most = all.iter().max_by(|x, y| x.0.abs().total_cmp(&y.0.abs()))?;
            Some(format!("{} against {}: {}", self.name(a), self.name(b), self.said(most)))
        };
        let own = largest(&singles).map(|s| (s, true));
        own.or_else(|| largest(&rates).map(|s| (s, false)))
    }

    fn said(&self, (by, what): &(f64, String)) -> String {
        format!("{what} {}", self.shown(*by))
    }

    /// The single figures that tables call better or worse, of a goal with several: by how much `a` is ahead in each.
    fn singles(&self, a: usize, b: usize) -> Vec<(f64, String)> {
        if self.goal.figures.len() < 2 {
            return Vec::new();
        }
        let of = |f| self.tables.lead(self.device, &self.goal, f, (a, b)).zip(Some(f));
        let sure = self.goal.figures.iter().filter_map(of).filter(|(l, _)| l.table == Some(true));
        let what = |f: &Figure| format!("{} in {}", in_words(&f.measure), f.workload);
        sure.map(|(l, f)| (l.log, what(f))).collect()
    }

    /// The same of what workloads moved in all, which tables show on top, where programs answer for throughput by figures of
    /// their own.
    fn data_rates(&self, a: usize, b: usize) -> Vec<(f64, String)> {
        if self.goal.name != "throughput" {
            return Vec::new();
        }
        let own = |w: &str| {
            let mut of = self.goal.figures.iter().filter(|f| f.workload == w);
            of.all(|f| f.measure != THROUGHPUT)
        };
        let workloads: BTreeSet<&str> =
            self.goal.figures.iter().map(|f| f.workload.as_str()).filter(|w| own(w)).collect();
        let mut sure = Vec::new();
        for w in workloads {
            let lead = self.tables.moved(self.device, &self.goal, w, (a, b));
            let lead = lead.filter(|l| l.table == Some(true));
            sure.extend(lead.map(|l| (l.log, format!("{THROUGHPUT} in {w}"))));
        }
        sure
    }
}

/// That a device had next to nothing to do: schedulers that differ all the same do so elsewhere.
pub(super) fn unused(device: &str, candidates: &[Candidate]) -> Option<String> {
    let here = || candidates.iter().filter(|c| c.device == device);
    let busy = here().filter_map(|c| c.busy).reduce(f64::max)?;
    (busy < 0.01).then(|| "The device was busy for less than 1 % of the time".into())
}

/// Why schedulers tie on a device, where the figures say it.
fn reason(device: &str, candidates: &[Candidate]) -> Option<String> {
    let here = || candidates.iter().filter(|c| c.device == device && c.in_flight > 0);
    let most = here().map(|c| c.in_flight).max()?;
    let depth = here().filter_map(|c| c.depth).max();
    let busy = here().filter_map(|c| c.busy).reduce(f64::max);
    match (depth, busy) {
        (Some(depth), _) if most < depth => {
            let most = if most == 1 { "one request".into() } else { format!("{most} requests") };
            Some(format!(
                "never more than {most} in flight at a device that takes {depth}: nothing to reorder"
            ))
        }
        (_, Some(busy)) if busy < 0.3 => Some(format!(
            "the device was busy {:.0} % of the time at most: nothing waits",
            busy * 100.0
        )),
        _ => None,
    }
}
