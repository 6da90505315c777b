//! What is said where nobody is measurably ahead, and of runs that were not steady.

use super::alone;
use super::figures::Figure;
use super::words::in_words;
use super::{Answer, Candidate, Case, Chip, DIFFERENCE, list, share};
use crate::measure::kind;
use crate::stats::{Better, Compared, Lent, Verdict, VerdictOptions, judge_together};

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
        if out.chip == Chip::Measured && with.iter().filter(decisive).any(everywhere) {
            out.chip = Chip::Unsteady;
        }
        let who: Vec<&str> = with.iter().map(|c| c.scheduler.as_str()).collect();
        let who = if who.len() > 4 { format!("{} schedulers", who.len()) } else { list(&who) };
        out.notes.push(format!(
            "The halves of runs of {who} differ by over 10 %: longer runs may say otherwise"
        ));
    }

    pub(super) fn tie(&self, out: &mut Answer, candidates: &[Candidate]) {
        out.chip = Chip::NotMeasurable;
        let matters = self.goal.matters();
        let others = self.order[1..].iter().zip(&self.behind).filter(|(_, behind)| !**behind);
        let tied: Vec<usize> =
            std::iter::once(self.order[0]).chain(others.map(|(o, _)| *o)).collect();
        let first = self.name(self.order[0]);
        let Some(last) = tied.last().filter(|_| tied.len() > 1) else {
            out.words = format!(
                "No clear winner: {first} is ahead of each other one, but not surely of all. {}",
                self.over()
            );
            return;
        };
        let both = tied[1..].iter().find_map(|o| self.both_ways(self.order[0], *o));
        let lead = self.lead(*last);
        let by = lead.map_or_else(String::new, |l| self.about(l));
        let ends = format!("{first} {by} against {}", self.name(*last));
        // Of values beyond a limit only a bound is known, so nothing is known to be small.
        let small = lead.is_none_or(|l| l.log.exp() - 1.0 < matters && !l.about);
        let margin = VerdictOptions::default().margin;
        let within = |o: &usize| self.lead(*o).is_some_and(|l| l.within(margin));
        let (what, why) = if both.is_some() {
            ("No clear winner", "each is ahead in some measures".into())
        } else if small {
            let mean = if self.goal.figures.len() > 1 { " in the mean of these" } else { "" };
            (DIFFERENCE, format!("less than {} apart{mean}", share(matters)))
        } else if tied[1..].iter().all(within) {
            (DIFFERENCE, format!("{ends}: surely less than {}", share(margin)))
        } else {
            let runs = self.goal.runs();
            ("No clear winner", format!("{ends}: {runs} runs are too few to be sure"))
        };
        let who = if tied.len() == self.order.len() && tied.len() > 2 {
            format!("the {} schedulers", tied.len())
        } else {
            list(&tied.iter().map(|i| self.name(*i)).collect::<Vec<_>>())
        };
        out.words = format!("{what} between {who} ({why}). {}", self.over());
        out.notes.extend(both);
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
    /// cancel out. The figures are judged as tables judge.
    fn both_ways(&self, a: usize, b: usize) -> Option<String> {
        let figures = self.goal.figures.iter().filter_map(|f| {
            Some((f, alone::sample(f.values[a].as_ref()?), alone::sample(f.values[b].as_ref()?)))
        });
        let figures: Vec<_> = figures.collect();
        let lent =
            Lent::of(figures.iter().flat_map(|(f, x, y)| [x, y].map(|v| (kind(&f.measure), &v.0))));
        let pairs: Vec<Compared<'_>> = figures
            .iter()
            .map(|(f, x, y)| Compared {
                base: (&y.0, &y.1),
                new: (&x.0, &x.1),
                better: self.goal.better,
                kind: kind(&f.measure),
            })
            .collect();
        let judged = judge_together(&pairs, &lent, VerdictOptions::default());
        // Beyond chance, all figures of the goal taken together.
        let mut found: Vec<(f64, &Figure)> = Vec::new();
        for (j, (f, ..)) in judged.iter().zip(&figures) {
            let sure = matches!(j.verdict, Verdict::Better | Verdict::Worse);
            let ratio = j.ratio.filter(|r| sure && *r > 0.0 && r.is_finite());
            let Some(log) = ratio.map(f64::ln) else { continue };
            let by = if self.goal.better == Better::Higher { log } else { -log };
            if by.abs() >= HIDDEN.ln_1p() {
                found.push((by, f));
            }
        }
        let ahead = found.iter().filter(|f| f.0 > 0.0).max_by(|x, y| x.0.total_cmp(&y.0))?;
        let behind = found.iter().filter(|f| f.0 < 0.0).min_by(|x, y| x.0.total_cmp(&y.0))?;
        let said = |(by, f): &(f64, &Figure)| {
            format!("{} in {} {}", in_words(&f.measure), f.workload, self.shown(*by))
        };
        let (a, b) = (self.name(a), self.name(b));
        Some(format!("{a} against {b}: {}, but {}", said(ahead), said(behind)))
    }
}

/// Why schedulers tie on a device, where the figures say it.
fn reason(device: &str, candidates: &[Candidate]) -> Option<String> {
    let here = || candidates.iter().filter(|c| c.device == device && c.in_flight > 0);
    let most = here().map(|c| c.in_flight).max()?;
    let depth = here().filter_map(|c| c.depth).max();
    let busy = here().filter_map(|c| c.busy).reduce(f64::max);
    match (depth, busy) {
        (Some(depth), _) if most < depth => Some(format!(
            "never more than {most} requests in flight at a device that takes {depth}: nothing to reorder"
        )),
        (_, Some(busy)) if busy < 0.3 => Some(format!(
            "the device was busy {:.0} % of the time at most: nothing waits",
            busy * 100.0
        )),
        _ => None,
    }
}
