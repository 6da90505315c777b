//! The answer: which scheduler to use, for each device and goal, and how sure that is.
//!
//! Terminal and page print the same sentences. The answer names a scheduler only when it is measurably ahead of every
//! other one that the kernel has. Every workload counts the same. A scheduler that starves a process pays for it.

mod figures;
mod standing;

use std::collections::BTreeMap;
use std::fmt;

use iosched_experiment::record::Record;
use iosched_schedulers::KernelVersion;
use iosched_schedulers::registry::{family, resolve};
use serde::Serialize;

use crate::cells::{Cells, usual_base};
use crate::render::percent;
use crate::stats::Better;
use figures::{Goal, goals};
use standing::{Lead, Standings, holm};

/// A smaller lead is no reason to prefer a scheduler: one percent.
const MATTERS: f64 = 0.01;
/// A price worth a word: five percent.
const PRICE: f64 = 0.05;
/// Chance that a page without any difference names a winner.
const ALPHA: f64 = 0.05;

/// A scheduler on a device, and the facts about it beside its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Device, as in the cells.
    pub device: String,
    /// Scheduler, as in the cells.
    pub scheduler: String,
    /// Why it cannot be used on the trials' kernel; empty when the kernel has it.
    pub gone: String,
    /// Most requests that were at the device at once.
    pub in_flight: u32,
    /// How many requests the device takes; `None` when that was not recorded.
    pub depth: Option<u32>,
    /// Largest share of a trial with requests at the device; `None` when not measured.
    pub busy: Option<f64>,
}

/// Provenance: how many requests the device takes.
pub const DEVICE_DEPTH: &str = "device.queue_depth";
/// Provenance: bytes the device holds.
pub const DEVICE_CAPACITY: &str = "device.capacity";

impl Candidate {
    /// A scheduler, called `label` in the cells, under a kernel.
    #[must_use]
    pub fn new(device: &str, label: &str, scheduler: &str, kernel: &str) -> Candidate {
        Candidate {
            device: device.into(),
            scheduler: label.into(),
            gone: gone(scheduler, kernel).unwrap_or_default(),
            ..Candidate::default()
        }
    }

    /// Takes what one trial says.
    pub fn add(&mut self, r: &Record) {
        let depth = r.provenance.get(DEVICE_DEPTH).and_then(|d| d.parse().ok());
        self.take(r.device.max_in_flight, depth, r.device.busy, r.elapsed);
    }

    /// As [`Candidate::add`], from sums.
    pub fn take(&mut self, in_flight: u32, depth: Option<u32>, busy: u64, elapsed: u64) {
        self.in_flight = self.in_flight.max(in_flight);
        self.depth = self.depth.max(depth);
        if elapsed > 0 && in_flight > 0 {
            let share = busy as f64 / elapsed as f64;
            self.busy = Some(self.busy.map_or(share, |b| b.max(share)));
        }
    }
}

/// Why a kernel does not have a scheduler: `Linux 6.12 has no anticipatory (it lived in 2.6.0-2.6.32)`. `None` when the
/// kernel has it, and for unknown names and kernels.
#[must_use]
pub fn gone(scheduler: &str, kernel: &str) -> Option<String> {
    let version = KernelVersion::parse(kernel.split_whitespace().next()?)?;
    let name = scheduler.split([' ', '(']).next()?.to_lowercase();
    let known = family(name.split('@').next()?).ok()?;
    if !name.contains('@') {
        let has = known.generations.iter().any(|g| g.covers(version));
        let ranges: Vec<String> = known.generations.iter().map(|g| g.range()).collect();
        let lived = ranges.join(", ");
        let words = format!("Linux {version} has no {} (it lived in {lived})", known.name);
        return (!has).then_some(words);
    }
    let (_, generation) = resolve(&name, version).ok()?;
    let words = format!("Linux {version} has no {name} (it is that of {})", generation.range());
    (!generation.covers(version)).then_some(words)
}

/// What stands behind a scheduler's name: which version of it the trials ran, and what is special about that.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Meaning {
    /// The kernels that behave so: `4.8-4.20`; empty for names that nobody knows.
    pub kernels: String,
    /// What differs from the version before.
    pub summary: String,
    /// Last kernel that has any version of it, when Linux has none any more.
    pub until: String,
}

/// What a scheduler's name means under a kernel.
#[must_use]
pub fn meaning(scheduler: &str, kernel: &str) -> Meaning {
    let name = scheduler.split([' ', '(']).next().unwrap_or_default().to_lowercase();
    let Ok(known) = family(name.split('@').next().unwrap_or_default()) else {
        return Meaning::default();
    };
    let lasts: Option<Vec<KernelVersion>> = known.generations.iter().map(|g| g.last).collect();
    let until = lasts.and_then(|l| l.into_iter().max()).map(|v| v.to_string()).unwrap_or_default();
    let version = kernel.split_whitespace().next().and_then(KernelVersion::parse);
    let found = version.and_then(|v| resolve(&name, v).ok());
    let (kernels, summary) =
        found.map_or_else(Default::default, |(_, g)| (g.range(), g.summary.to_string()));
    Meaning { kernels, summary, until }
}

/// How sure an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chip {
    /// Ahead of every other, beyond chance and by one percent or more.
    Measured,
    /// No scheduler is ahead.
    NotMeasurable,
    /// Ahead, but only because of one measure.
    OneMeasure,
    /// One value of each: no test can say more than which is larger.
    NotTestable,
}

impl fmt::Display for Chip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Chip::Measured => "measured",
            Chip::NotMeasurable => "not measurable",
            Chip::OneMeasure => "one measure",
            Chip::NotTestable => "not testable",
        })
    }
}

/// Where one scheduler stands for a goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stand {
    /// Scheduler, as in the cells.
    pub scheduler: String,
    /// How many times better than the usual base it is, over all figures of the goal.
    pub ratio: f64,
    /// 95 % interval of that; `None` when it is exact or cannot be told.
    pub interval: Option<(f64, f64)>,
    /// The trials' kernel does not have it.
    pub gone: bool,
}

/// What to use on one device for one goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Device.
    pub device: String,
    /// `throughput`, `latency`, `fairness`, or a metric of its own.
    pub goal: String,
    /// The scheduler to use; `None` when no difference is measurable or testable.
    pub winner: Option<String>,
    /// How sure that is.
    pub chip: Chip,
    /// The sentence.
    pub words: String,
    /// Smaller print: figures, price, history.
    pub notes: Vec<String>,
    /// Every scheduler against the usual base, in the order of the candidates.
    pub field: Vec<Stand>,
}

/// One goal on one device, before the claims of all of them are corrected together.
struct Case<'a> {
    device: &'a str,
    goal: Goal,
    standings: Standings,
    /// Positions of the schedulers that the kernel has, best first.
    order: Vec<usize>,
}

/// The answers, by device in the order of the candidates, then by goal.
#[must_use]
pub fn answers(cells: &Cells, candidates: &[Candidate]) -> Vec<Answer> {
    let mut devices: Vec<&str> = Vec::new();
    for c in candidates {
        if !devices.contains(&c.device.as_str()) {
            devices.push(&c.device);
        }
    }
    let mut cases: Vec<Case<'_>> = Vec::new();
    for device in devices {
        let here: Vec<&Candidate> = candidates.iter().filter(|c| c.device == device).collect();
        let names: Vec<&str> = here.iter().map(|c| c.scheduler.as_str()).collect();
        let present: Vec<bool> = here.iter().map(|c| c.gone.is_empty()).collect();
        for goal in goals(cells, device, &names, &present) {
            let standings = Standings::of(&goal, names.len());
            let mut order: Vec<usize> =
                (0..names.len()).filter(|i| present[*i] && standings.knows(*i)).collect();
            order.sort_by(|a, b| standings.score(*b).total_cmp(&standings.score(*a)));
            if order.len() > 1 {
                cases.push(Case { device, goal, standings, order });
            }
        }
    }
    let claims: Vec<f64> = cases.iter().map(|c| c.claim().unwrap_or(1.0)).collect();
    let corrected = holm(&claims);
    cases.iter().zip(corrected).map(|(c, p)| c.answer(p, candidates, &cases)).collect()
}

fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).into(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

impl Case<'_> {
    fn name(&self, i: usize) -> &str {
        &self.goal.schedulers[i]
    }

    fn lead(&self, other: usize) -> Option<Lead> {
        self.standings.lead(self.order[0], other)
    }

    /// p that the first is ahead of every other; `None` where that cannot be tested.
    fn claim(&self) -> Option<f64> {
        let each: Option<Vec<f64>> =
            self.order[1..].iter().map(|o| self.lead(*o).and_then(|l| l.p)).collect();
        each?.into_iter().reduce(f64::max)
    }

    /// A lead in the way the goal is read: +12 % throughput, −30 % latency.
    fn shown(&self, log: f64) -> String {
        percent(if self.goal.better == Better::Higher { log.exp() } else { (-log).exp() })
    }

    /// By which figure, in how many workloads.
    fn over(&self) -> String {
        let workloads = match self.goal.workloads() {
            1 => "in 1 workload".into(),
            n => format!("in the geometric mean of {n} workloads"),
        };
        match self.goal.measured_by() {
            by if by.is_empty() => workloads,
            by => format!("by {by} {workloads}"),
        }
    }

    fn answer(&self, p: f64, candidates: &[Candidate], all: &[Case<'_>]) -> Answer {
        let (first, second) = (self.order[0], self.order[1]);
        let mut out = Answer {
            device: self.device.into(),
            goal: self.goal.name.clone(),
            winner: None,
            chip: Chip::NotTestable,
            words: String::new(),
            notes: Vec::new(),
            field: self.field(candidates),
        };
        let Some(lead) = self.lead(second) else { return out };
        let by = lead.log.exp() - 1.0;
        if lead.p.is_none() {
            let end = match self.goal.better {
                _ if by < 5e-4 => "Level",
                Better::Higher => "Highest",
                Better::Lower => "Lowest",
            };
            let by = self.shown(lead.log);
            let (a, b) = (self.name(first), self.name(second));
            out.words = format!(
                "{end}: {a} ({by} against {b}, {}); one value of each proves nothing",
                self.over()
            );
        } else if p <= ALPHA && by >= MATTERS {
            self.win(&mut out, lead, p, all);
        } else {
            self.tie(&mut out, candidates);
        }
        self.history(&mut out, candidates);
        out.notes.extend(self.goal.starved());
        out
    }

    /// Everybody against the usual base.
    fn field(&self, candidates: &[Candidate]) -> Vec<Stand> {
        let names = self.goal.schedulers.iter().map(String::as_str);
        let base = usual_base(names).and_then(|b| self.goal.schedulers.iter().position(|s| s == b));
        let base = base.filter(|b| self.standings.knows(*b)).unwrap_or(self.order[0]);
        let stand = |(i, name): (usize, &String)| {
            let lead = self.standings.lead(i, base)?;
            let of = |c: &&Candidate| c.device == self.device && c.scheduler == *name;
            Some(Stand {
                scheduler: name.clone(),
                ratio: lead.log.exp(),
                interval: lead.interval.filter(|_| i != base).map(|(a, b)| (a.exp(), b.exp())),
                gone: candidates.iter().find(of).is_some_and(|c| !c.gone.is_empty()),
            })
        };
        self.goal.schedulers.iter().enumerate().filter_map(stand).collect()
    }

    fn win(&self, out: &mut Answer, lead: Lead, p: f64, all: &[Case<'_>]) {
        let (first, second) = (self.order[0], self.order[1]);
        let interval = match lead.interval {
            Some((low, high)) => {
                let ends =
                    if self.goal.better == Better::Higher { (low, high) } else { (high, low) };
                format!(" [{}, {}]", self.shown(ends.0), self.shown(ends.1))
            }
            None => " (exact)".into(),
        };
        let by = self.shown(lead.log);
        out.winner = Some(self.name(first).into());
        out.chip = Chip::Measured;
        out.words = format!(
            "{}: {by}{interval} against {}, the next, {}",
            self.name(first),
            self.name(second),
            self.over()
        );
        if let Some((without, left)) = self.standings.without_best(&self.goal, first, second)
            && left.exp() - 1.0 < MATTERS
        {
            out.chip = Chip::OneMeasure;
            out.words += &format!(
                "; but one measure carries it: without {without} it is {}",
                self.shown(left)
            );
        }
        let p = if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") };
        let runs = self.goal.runs();
        let test = if lead.interval.is_some() { format!("{p}, ") } else { String::new() };
        out.notes.push(format!("{test}{runs} runs of each"));
        out.notes.extend(self.price(all));
    }

    /// What the winner loses in the goal where it is worst.
    fn price(&self, all: &[Case<'_>]) -> Option<String> {
        let winner = self.name(self.order[0]);
        let of = |c: &Case<'_>| {
            let i = c.goal.schedulers.iter().position(|s| s == winner)?;
            let best = *c.order.first()?;
            let behind = c.standings.lead(best, i)?.log;
            let words = format!("{} {} against {}", c.goal.name, c.shown(-behind), c.name(best));
            (behind.exp() - 1.0 >= PRICE).then_some((behind, words))
        };
        let others =
            all.iter().filter(|c| c.device == self.device && c.goal.name != self.goal.name);
        let dearest = others.filter_map(of).reduce(|a, b| if b.0 > a.0 { b } else { a });
        dearest.map(|(_, words)| format!("its price: {words}"))
    }

    fn tie(&self, out: &mut Answer, candidates: &[Candidate]) {
        out.chip = Chip::NotMeasurable;
        let level = |l: Lead| l.log.exp() - 1.0 < MATTERS || l.p.is_none_or(|p| p > ALPHA);
        let rest = self.order[1..].iter().copied();
        let mut tied: Vec<&str> = vec![self.name(self.order[0])];
        tied.extend(rest.filter(|o| self.lead(*o).is_some_and(level)).map(|o| self.name(o)));
        if tied.len() == 1 {
            // Each is beaten alone, but not surely all of them together.
            tied.push(self.name(self.order[1]));
        }
        let who = if tied.len() == self.order.len() && tied.len() > 2 {
            format!("the {} schedulers", tied.len())
        } else {
            list(&tied)
        };
        out.words = format!("No measurable difference between {who}, {}", self.over());
        let is_tied = |o: &&usize| tied.contains(&self.name(**o));
        let last = self.order.iter().rfind(is_tied).unwrap_or(&self.order[0]);
        let apart = self.lead(*last).map_or(0.0, |l| l.log);
        if apart.exp() - 1.0 < MATTERS {
            out.words += " (less than 1 % apart)";
        } else {
            let (by, runs) = (self.shown(apart), self.goal.runs());
            let ends = format!("{} {by} against {}", self.name(self.order[0]), self.name(*last));
            out.words += &format!(" ({ends}: {runs} runs are too few to be sure)");
        }
        if tied.len() > 1
            && let Some(why) = reason(self.device, candidates)
        {
            out.words += &format!(": {why}");
        }
    }

    /// A scheduler that is gone and stood higher.
    fn history(&self, out: &mut Answer, candidates: &[Candidate]) {
        let first = self.order[0];
        let old = candidates.iter().filter(|c| c.device == self.device && !c.gone.is_empty());
        for c in old {
            let at = self.goal.schedulers.iter().position(|s| *s == c.scheduler);
            let Some(at) = at.filter(|i| self.standings.knows(*i)) else { continue };
            let Some(ahead) = self.standings.lead(at, first) else { continue };
            if ahead.log.exp() - 1.0 >= MATTERS {
                let by = self.shown(ahead.log);
                out.notes.push(format!(
                    "history: {} stood at {by} against {}, but {}",
                    c.scheduler,
                    self.name(first),
                    c.gone
                ));
            }
        }
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

/// Answers as text: a line per device, a line per goal, the small print below it.
#[must_use]
pub fn text(answers: &[Answer], columns: usize) -> String {
    let mut out = String::new();
    let mut last = None;
    let widest = answers.iter().map(|a| a.goal.chars().count()).max().unwrap_or(0);
    for a in answers {
        if last != Some(&a.device) {
            out.push_str(&format!("Answer for {}\n", crate::render::printable(&a.device)));
            last = Some(&a.device);
        }
        let indent = widest + 4;
        let head = format!("  {:widest$}  ", crate::render::printable(&a.goal));
        let said = format!("{}. [{}]", a.words, a.chip);
        out.push_str(&wrap(&head, indent, &said, columns));
        for n in &a.notes {
            out.push_str(&wrap(&" ".repeat(indent), indent + 2, n, columns));
        }
    }
    out
}

/// Words behind a head, in lines of at most `columns`; further lines are indented.
#[must_use]
pub fn wrap(head: &str, indent: usize, text: &str, columns: usize) -> String {
    let mut out = head.to_string();
    let mut column = head.chars().count();
    for (i, word) in crate::render::printable(text).split(' ').enumerate() {
        let width = word.chars().count();
        if i > 0 && column + 1 + width > columns {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if i > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
    out
}

/// The candidates of some records, in the order in which they occur.
#[must_use]
pub fn candidates_of(records: &[Record]) -> Vec<Candidate> {
    candidates_called(records, &BTreeMap::new())
}

/// As [`candidates_of`], where schedulers go by other names: `own` has their own.
#[must_use]
pub fn candidates_called(records: &[Record], own: &BTreeMap<String, String>) -> Vec<Candidate> {
    let mut out: Vec<Candidate> = Vec::new();
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for r in records {
        let t = &r.trial;
        let at = *places.entry((&t.device, &t.scheduler)).or_insert_with(|| {
            let name = own.get(&t.scheduler).unwrap_or(&t.scheduler);
            out.push(Candidate::new(&t.device, &t.scheduler, name, &t.kernel));
            out.len() - 1
        });
        out[at].add(r);
    }
    out
}

#[cfg(test)]
mod tests;
