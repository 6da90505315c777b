//! The answer: which scheduler to use, for each device and goal, and how sure that is.
//!
//! Terminal and page print the same sentences. The answer names a scheduler only when it is measurably ahead of every
//! other one that the kernel has. Every workload counts the same. A scheduler that starves a process pays for it.

mod asked;
mod candidate;
mod field;
mod figures;
mod gaps;
mod price;
mod standing;
mod tables;
mod text;
mod tie;
mod words;

use std::collections::BTreeMap;
use std::fmt;

use iosched_experiment::record::Record;
use serde::Serialize;

use crate::cells::{Cells, MIXED_LATENCIES, charge_starved, group, one_latency, usual_base};
use crate::render::{percent, percent_ends};
use crate::stats::{Better, NEGLIGIBLE, Together, benjamini_hochberg};
pub use asked::{known, unmeasured};
pub use candidate::{
    Absence, Candidate, DEVICE_CAPACITY, DEVICE_DEPTH, GOAL, Meaning, absence, candidates_called,
    candidates_of, gone, meaning, short_names,
};
pub use field::{Side, Stand};
use figures::{Goal, goals};
use standing::{Carrier, Lead, Standings, holm};
use tables::Tables;
pub use text::{text, wrap};

/// A smaller lead is no reason to prefer a scheduler: what tables call negligible, one percent.
const MATTERS: f64 = NEGLIGIBLE;
/// Before a ratio that is only about right, because values beyond a limit count as the limit.
pub const ABOUT: &str = "~";
/// What is said of schedulers that are level.
const DIFFERENCE: &str = "No measurable difference";
/// Chance that a page without any difference names a winner.
const ALPHA: f64 = 0.05;

/// How sure an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// Ahead of every other, beyond chance and by one percent or more.
    Measured,
    /// No scheduler is ahead.
    NotMeasurable,
    /// Ahead, but only because of one measure.
    OneMeasure,
    /// Ahead, but only because of one workload.
    OneWorkload,
    /// Ahead, but the runs of a scheduler are one: nothing in them is drawn at random.
    OneDraw,
    /// Ahead of those that have all results; others lack some, or a workload was left out.
    Incomplete,
    /// The others gave up at the limit in every run, and this one in none. So few runs bear no test.
    ByLimit,
    /// Ahead in runs whose halves differ: longer ones may say otherwise.
    NotSteady,
    /// One value of each: no test can say more than which is larger.
    NotTestable,
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Certainty::Measured => "measured",
            Certainty::NotMeasurable => "not measurable",
            Certainty::OneMeasure => "one measure",
            Certainty::OneWorkload => "one workload",
            Certainty::OneDraw => "one draw",
            Certainty::Incomplete => "incomplete",
            Certainty::ByLimit => "by the limit",
            Certainty::NotSteady => "not steady",
            Certainty::NotTestable => "not testable",
        })
    }
}

/// What to use on one device for one goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Device.
    pub device: String,
    /// `throughput`, `latency`, `fairness`, or a metric of its own.
    pub goal: String,
    /// The experiment asks for this goal.
    pub decides: bool,
    /// The scheduler to use; `None` when no difference is measurable or testable.
    pub winner: Option<String>,
    /// How sure that is.
    pub certainty: Certainty,
    /// The sentence.
    pub words: String,
    /// Smaller print: figures, price, history.
    pub notes: Vec<String>,
    /// The first against the second of those that the kernel has; `None` where nothing can be compared.
    pub lead: Option<Ahead>,
    /// Every scheduler against the usual base, in the order of the candidates.
    pub field: Vec<Stand>,
}

/// By how much the first is ahead of the second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ahead {
    /// The first.
    pub scheduler: String,
    /// The second.
    pub against: String,
    /// How many times better it is; infinitely where the second delivers nothing.
    #[serde(serialize_with = "field::finite")]
    pub ratio: f64,
    /// 95 % interval of that; `None` when it is exact or cannot be told.
    pub interval: Option<(f64, f64)>,
    /// The ratio is only about right: values beyond a limit count as the limit.
    pub approximate: bool,
    /// p that it is ahead of every other, corrected for all goals and devices; `None` where that cannot be tested.
    pub p: Option<f64>,
}

/// One goal on one device, before the claims of all of them are corrected together.
struct Case<'a> {
    device: &'a str,
    goal: Goal,
    standings: Standings,
    /// Positions of the schedulers that the kernel has, best first.
    order: Vec<usize>,
    /// Of those behind the first, who is measurably behind it.
    behind: Vec<bool>,
    /// What tables say of single figures.
    tables: &'a Tables,
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
    let tables = Tables::of(cells);
    let asked = asked::asked(candidates);
    let mut cases: Vec<Case<'_>> = Vec::new();
    for device in devices {
        let here: Vec<&Candidate> = candidates.iter().filter(|c| c.device == device).collect();
        let names: Vec<&str> = here.iter().map(|c| c.scheduler.as_str()).collect();
        let mut present: Vec<bool> = here.iter().map(|c| c.gone.is_empty()).collect();
        // Where the kernel has fewer than two of them, all are compared: that was asked for.
        if present.iter().filter(|p| **p).count() < 2 {
            present.fill(true);
        }
        for goal in goals(cells, device, (&names, &present), asked.unwrap_or_default()) {
            let standings = Standings::of(&goal, names.len());
            let judged = !goal.figures.is_empty();
            let counts = |i: &usize| {
                judged && present[*i] && standings.knows(*i) && !goal.gaps.out.contains(i)
            };
            let mut order: Vec<usize> = (0..names.len()).filter(counts).collect();
            // What was given up at a limit is behind what reached the limit just so.
            order.sort_by(|a, b| {
                let by_score = standings.score(*b).total_cmp(&standings.score(*a));
                by_score.then(standings.gave_up(*a).cmp(&standings.gave_up(*b)))
            });
            if order.len() > 1 || !goal.zeros.is_empty() || goal.gaps.any() {
                let tables = &tables;
                cases.push(Case { device, goal, standings, order, behind: Vec::new(), tables });
            }
        }
    }
    pair(&mut cases);
    compare(&mut cases);
    let judged = cases.iter().filter(|c| c.order.len() > 1);
    let claims: Vec<f64> = judged.map(|c| c.claim().unwrap_or(1.0)).collect();
    let mut corrected = holm(&claims).into_iter();
    let one = |c: &Case<'_>| match c.order.len() {
        0 | 1 => c.unjudged(),
        _ => c.answer(corrected.next().unwrap_or(1.0), candidates, cells),
    };
    let mut out: Vec<Answer> = cases.iter().map(one).collect();
    field::judge(&mut out);
    out
}

/// The answers of some records, and what is said of all of them, as terminals print it.
#[must_use]
pub fn answers_of(records: &[Record]) -> (Vec<Answer>, Vec<String>) {
    let mut cells = group(records);
    let mixed = one_latency([&mut cells]);
    charge_starved([&mut cells]);
    let candidates = candidates_of(records);
    let answers = answers(&cells, &candidates);
    let mut notes = Vec::from_iter(mixed.then(|| MIXED_LATENCIES.to_string()));
    notes.extend(unmeasured(&cells, &candidates, &answers));
    (answers, notes)
}

/// Says in every answer whom people hid: without them another one may win.
pub fn without_hidden(answers: &mut [Answer], hidden: &[String]) {
    let names: Vec<&str> = hidden.iter().map(String::as_str).collect();
    let verb = match names[..] {
        [] => return,
        [_] => "is",
        _ => "are",
    };
    for a in answers {
        a.notes.insert(0, format!("Without {}, which {verb} hidden", list(&names)));
    }
}

/// Goals whose rounds surely go up and down together, over all devices and workloads, are compared in pairs, as tables
/// do for a kind of figure.
fn pair(cases: &mut [Case<'_>]) {
    let mut goals: BTreeMap<String, Together> = BTreeMap::new();
    for c in cases.iter().filter(|c| c.order.len() > 1) {
        c.standings.correlate(c.base(), goals.entry(c.goal.name.clone()).or_default());
    }
    for c in cases {
        c.standings.paired = goals.get(&c.goal.name).is_some_and(|t| t.pays());
    }
}

/// Who is measurably behind the first: all these comparisons are corrected together.
fn compare(cases: &mut [Case<'_>]) {
    let p = |c: &Case<'_>, o: &usize| c.lead(*o).and_then(|l| l.p).unwrap_or(1.0);
    let all: Vec<f64> =
        cases.iter().flat_map(|c| c.order.iter().skip(1).map(|o| p(c, o))).collect();
    let mut corrected = benjamini_hochberg(&all).into_iter();
    for c in cases {
        let mut one = |o: &usize| {
            let sure = corrected.next().is_some_and(|p| p <= ALPHA);
            let ahead = |l: Lead| {
                (c.parted(*o) || l.table.unwrap_or(sure)) && l.log.exp() - 1.0 >= c.goal.matters()
            };
            c.lead(*o).is_some_and(ahead)
        };
        c.behind = c.order.iter().skip(1).map(&mut one).collect();
    }
}

/// A small share in percent: `1 %`, `1.6 %`.
fn share(part: f64) -> String {
    let digits = format!("{:.1}", part * 100.0);
    format!("{} %", digits.trim_end_matches(".0"))
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
        self.lead_of(self.order[0], other)
    }

    /// Of a goal with one figure, what tables say of it.
    fn lead_of(&self, a: usize, b: usize) -> Option<Lead> {
        let table = match &self.goal.figures[..] {
            [one] => self.tables.lead(self.device, &self.goal, one, (a, b)),
            _ => None,
        };
        table.or_else(|| self.standings.lead(a, b))
    }

    /// The usual base, or the first where that was not run.
    fn base(&self) -> usize {
        let names = self.goal.schedulers.iter().map(String::as_str);
        let usual =
            usual_base(names).and_then(|b| self.goal.schedulers.iter().position(|s| s == b));
        // Nothing is no measure of others.
        let measures = |b: &usize| self.standings.knows(*b) && self.standings.delivers(*b);
        usual.filter(measures).unwrap_or(self.order[0])
    }

    /// p that the first is ahead of every other that the limit does not part from it; `None` where that cannot be tested.
    fn claim(&self) -> Option<f64> {
        let others = self.order[1..].iter().filter(|o| !self.parted(**o));
        let each: Option<Vec<f64>> = others.map(|o| self.lead(*o).and_then(|l| l.p)).collect();
        let most = each?.into_iter().reduce(f64::max);
        most.or_else(|| self.order[1..].iter().find_map(|o| self.lead(*o)?.p))
    }

    /// The limit parts the first from another one: that gave up in every run, the first in none.
    fn parted(&self, other: usize) -> bool {
        self.goal.parted(self.order[0], other)
    }

    /// A lead in the way the goal is read: +12 % throughput, −30 % latency.
    fn shown(&self, log: f64) -> String {
        if log == f64::INFINITY { "∞×".into() } else { percent(self.times(log)) }
    }

    /// The ratio of the figure itself to a lead of this logarithm: below one where less is better.
    fn times(&self, log: f64) -> f64 {
        if self.goal.better == Better::Higher { log.exp() } else { (-log).exp() }
    }

    /// The same, with a mark where it is only about right.
    fn about(&self, lead: Lead) -> String {
        format!("{}{}", if lead.about { ABOUT } else { "" }, self.shown(lead.log))
    }

    /// By which figure, in how many workloads, as a sentence.
    fn over(&self) -> String {
        let workloads = match self.goal.workloads() {
            1 => "n 1 workload".into(),
            n => format!("n the geometric mean of {n} workloads"),
        };
        match self.goal.measured_by() {
            by if by.is_empty() => format!("I{workloads}"),
            by => format!("By {by} i{workloads}"),
        }
    }

    /// Nothing is said yet.
    fn silent(&self) -> Answer {
        Answer {
            device: self.device.into(),
            goal: self.goal.name.clone(),
            decides: self.goal.decides,
            winner: None,
            certainty: Certainty::NotTestable,
            words: String::new(),
            notes: Vec::new(),
            lead: None,
            field: Vec::new(),
        }
    }

    /// A goal of which every figure has zeros, or nobody has all figures.
    fn unjudged(&self) -> Answer {
        let nobody = self.goal.gaps.any().then(|| self.goal.nobody());
        let mut words = nobody.into_iter().chain(self.goal.not_comparable());
        let first = words.next().unwrap_or_default();
        Answer { words: first, notes: words.collect(), ..self.silent() }
    }

    fn answer(&self, p: f64, candidates: &[Candidate], cells: &Cells) -> Answer {
        let second = self.order[1];
        let mut out = Answer { field: self.field(candidates), ..self.silent() };
        let Some(lead) = self.lead(second) else { return out };
        out.lead = Some(self.ahead(second, lead, p));
        out.notes.extend(self.goal.left_out());
        let by = lead.log.exp() - 1.0;
        if lead.p.is_none() {
            out.words = self.largest(lead, by) + ". One value of each proves nothing";
        } else if by >= self.goal.matters()
            && self.undisputed()
            && (p <= ALPHA || self.order[1..].iter().all(|o| self.parted(*o)))
        {
            self.win(&mut out, lead, p, cells);
        } else {
            self.tie(&mut out, candidates);
        }
        if by >= self.goal.matters() {
            out.notes.extend(tie::unused(self.device, candidates));
        }
        self.steady(&mut out, candidates);
        if out.certainty == Certainty::Measured && self.goal.gaps.any() {
            out.certainty = Certainty::Incomplete;
        }
        out.notes.extend(self.goal.named());
        self.history(&mut out, candidates);
        self.absent(&mut out, candidates);
        out.notes.extend(self.goal.starved());
        out.notes.extend(self.goal.delivered_nothing());
        out.notes.extend(self.goal.beyond());
        out.notes.extend(self.goal.not_comparable());
        out
    }

    fn ahead(&self, second: usize, lead: Lead, p: f64) -> Ahead {
        Ahead {
            scheduler: self.name(self.order[0]).into(),
            against: self.name(second).into(),
            ratio: lead.log.exp(),
            interval: lead.ends(),
            approximate: lead.about,
            p: lead.p.map(|_| p),
        }
    }

    /// Which value is the largest, where no test can be made. Values that are less than one percent apart are level.
    fn largest(&self, lead: Lead, by: f64) -> String {
        let matters = self.goal.matters();
        if by < matters {
            let with = |i: &&usize| self.lead(**i).is_some_and(|l| l.log.exp() - 1.0 < matters);
            let others = self.order[1..].iter().filter(with).map(|i| self.name(*i));
            let level: Vec<&str> =
                std::iter::once(self.name(self.order[0])).chain(others).collect();
            let within = share(matters);
            return format!("Level within {within}: {}. {}", list(&level), self.over());
        }
        let end = if self.goal.better == Better::Higher { "Highest" } else { "Lowest" };
        let (a, b) = (self.name(self.order[0]), self.name(self.order[1]));
        let carried = self.carried();
        format!("{end}: {a} ({} against {b}). {}{carried}", self.about(lead), self.over())
    }

    fn win(&self, out: &mut Answer, lead: Lead, p: f64, cells: &Cells) {
        let (first, second) = (self.order[0], self.order[1]);
        let interval = match lead.interval {
            Some((low, high)) => {
                let ends =
                    if self.goal.better == Better::Higher { (low, high) } else { (high, low) };
                let [low, high] = percent_ends(self.times(ends.0), self.times(ends.1));
                if low == high { " (in every run)".into() } else { format!(" [{low}, {high}]") }
            }
            None if lead.p == Some(0.0) && !lead.about => " (exact)".into(),
            None => String::new(),
        };
        let by = self.about(lead);
        out.winner = Some(self.name(first).into());
        out.certainty = Certainty::Measured;
        out.words = format!(
            "{}: {by}{interval} against {}, the next. {}",
            self.name(first),
            self.name(second),
            self.over()
        );
        if let Some(carrier) = self.carrier() {
            let workload = carrier.what == "workload";
            out.certainty = if workload { Certainty::OneWorkload } else { Certainty::OneMeasure };
            out.words += &self.carried();
        }
        let chance = p > ALPHA;
        let p = if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") };
        let runs = self.goal.runs_said();
        let test = match lead.interval {
            // Three against three have no rank test below 0.1, however clear the case is.
            _ if chance && self.parted(second) => {
                out.certainty = Certainty::ByLimit;
                let n = |i| {
                    self.goal.gave_up(i).map_or(String::new(), |(n, of)| format!("{n} of {of}"))
                };
                format!(
                    "{} gave up in {} runs and {} in {}: that is no matter of scatter, though {p} by ranks, ",
                    self.name(second),
                    n(second),
                    self.name(first),
                    n(first)
                )
            }
            _ if lead.about => format!("{p} by ranks, "),
            None if lead.p == Some(0.0) => String::new(),
            _ => format!("{p}, "),
        };
        out.notes.push(format!("{test}{runs} runs of each"));
        let alike = self.goal.alike(&self.order);
        if !alike.is_empty() {
            // A deterministic run says what it says, but another one of nearly the same work may say otherwise.
            if matches!(out.certainty, Certainty::Measured | Certainty::ByLimit) {
                out.certainty = Certainty::OneDraw;
            }
            out.notes.push(format!(
                "All runs of {} are alike, so they are one: nothing is drawn at random. Change a \
                 parameter a little to see whether the lead holds",
                list(&alike)
            ));
        }
        out.notes.extend(self.price(cells));
    }

    /// The measure or workload that alone carries the lead of the first over the second.
    fn carrier(&self) -> Option<Carrier> {
        let best = self.standings.without_best(&self.goal, self.order[0], self.order[1]);
        // A lead of which the larger part is left was carried by the others, too.
        let lead = self.lead(self.order[1])?;
        best.filter(|c| c.left.exp() - 1.0 < self.goal.matters() && c.left < lead.log / 2.0)
    }

    /// Says so; empty when several do.
    fn carried(&self) -> String {
        self.carrier().map_or_else(String::new, |Carrier { what, name, left }| {
            let left = self.shown(left);
            format!(". But one {what} carries it: without {name} it is {left}")
        })
    }

    /// No table says otherwise.
    fn undisputed(&self) -> bool {
        let agrees = |l: Lead, o| l.table != Some(false) || self.parted(o);
        self.order[1..].iter().all(|o| self.lead(*o).is_some_and(|l| agrees(l, *o)))
    }
}

#[cfg(test)]
mod tests;
