//! What counts for a goal: the figures of each workload, by scheduler and round.

mod own;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use iosched_experiment::DURABLE_BW;

use super::MATTERS;
use super::gaps::{Gap, Gaps, failed, settle};
use super::words::in_words;
use crate::cells::{Cell, CellKey, CellSample, Cells, throughput_of};
use crate::measure::{TOTAL, TWINS, derived, resolution, without_unit};
use crate::stats::{Better, Observation, Sample, mean_and_sd};
use own::by_own;
use waits::{latencies, spoken_for};

/// The values of one scheduler.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    /// In the order of the rounds.
    pub(super) by_round: Vec<Observation>,
    pub(super) rounds: Vec<u32>,
    pub(super) deterministic: bool,
    /// The same round of another scheduler ran under the same conditions.
    pub(super) paired: bool,
    /// Some rounds had too few I/Os for the figure, so the worst stands in.
    pub(super) starved: bool,
    /// Something stands in for rounds without the figure: tables show other values.
    completed: bool,
}

/// One figure of one workload.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) workload: String,
    pub(super) measure: String,
    /// Weight of the figure. Every workload weighs the same.
    pub(super) weight: f64,
    /// Unit of a tool's own figure.
    pub(super) unit: String,
    /// By scheduler; `None` where it was not run.
    pub(super) values: Vec<Option<Values>>,
    /// Some values are zero where less is better, or below zero. They have no ratio, so the figure is told and not
    /// judged.
    pub(super) zeros: bool,
    /// The measure by which tables show these very values.
    pub(super) table: Option<String>,
}

/// A goal with all its figures on one device.
#[derive(Clone, Debug)]
pub(super) struct Goal {
    pub(super) name: String,
    /// The experiment asks for it.
    pub(super) decides: bool,
    pub(super) better: Better,
    pub(super) schedulers: Vec<String>,
    pub(super) figures: Vec<Figure>,
    /// Figures with zeros.
    pub(super) zeros: Vec<Figure>,
    /// What schedulers lack, and what is left out for that.
    pub(super) gaps: Gaps,
}

impl Goal {
    /// The smallest difference that says anything: one percent, or what bins of a histogram can make of no difference. A
    /// percentile is the middle of its bin, and neighbouring bins may hold equal waits.
    pub(super) fn matters(&self) -> f64 {
        MATTERS.max(self.figures.iter().map(|f| f.weight * resolution(&f.measure)).sum())
    }

    /// No figure differs between schedulers by what says anything. Differences that cancel out are differences.
    pub(super) fn all_level(&self) -> bool {
        self.figures.iter().all(|f| {
            let logs = || f.values.iter().flatten().map(|v| logarithm(v, self.better));
            let apart =
                logs().fold(f64::NEG_INFINITY, f64::max) - logs().fold(f64::INFINITY, f64::min);
            apart < MATTERS.max(resolution(&f.measure)).ln_1p()
        })
    }

    /// Of the schedulers in question those of which every run is the same to the last digit, where there are several.
    pub(super) fn alike(&self, who: &[usize]) -> Vec<&str> {
        let same = |v: &Values| {
            v.by_round.len() > 1 && v.by_round.windows(2).all(|w| w[0].value == w[1].value)
        };
        // Nothing in every run is no draw that could have come out otherwise.
        // Nor is a limit at which all stopped, which is the same for each.
        let same = |v: &Values| same(v) && !v.nothing() && v.censored() == 0;
        let all = |i: usize| self.figures.iter().all(|f| f.values[i].as_ref().is_some_and(same));
        let known = self.schedulers.iter().enumerate();
        known.filter(|(i, _)| who.contains(i) && all(*i)).map(|(_, s)| s.as_str()).collect()
    }

    /// In some figure `b` gave up at the limit in every run and `a` in none, of at least two each, and `a` is behind in no
    /// figure. A run that gave up is behind every run that did not, by how much cannot be known; that this comes out the
    /// same every time is not the scatter of values, which a test of ranks would ask for more runs of.
    pub(super) fn parted(&self, a: usize, b: usize) -> bool {
        let all = |f: &Figure| {
            let (x, y) = (f.values[a].as_ref()?, f.values[b].as_ref()?);
            let runs = y.by_round.len();
            // What starved is charged with a wait: that is no limit.
            let gave_up = !y.starved && y.censored() == runs;
            let parted = gave_up && runs > 1 && x.by_round.len() > 1 && x.censored() == 0;
            Some((parted, logarithm(x, self.better) >= logarithm(y, self.better)))
        };
        let each: Option<Vec<(bool, bool)>> = self.figures.iter().map(all).collect();
        each.is_some_and(|e| e.iter().any(|f| f.0) && e.iter().all(|f| f.1))
    }

    /// In how many runs a scheduler gave up at a limit, and of how many, in all figures.
    pub(super) fn gave_up(&self, i: usize) -> Option<(usize, usize)> {
        let all = self.figures.iter().filter_map(|f| f.values[i].as_ref());
        let of = all.map(|v| (v.censored(), v.by_round.len()));
        of.reduce(|a, b| (a.0 + b.0, a.1 + b.1))
    }

    pub(super) fn workloads(&self) -> usize {
        self.figures.iter().map(|f| &f.workload).collect::<BTreeSet<_>>().len()
    }

    /// Fewest runs of a figure.
    pub(super) fn runs(&self) -> usize {
        self.all_runs().min().unwrap_or(0)
    }

    /// How many runs there are of each: `5`, or `3 to 5`.
    pub(super) fn runs_said(&self) -> String {
        let (least, most) = (self.runs(), self.all_runs().max().unwrap_or(0));
        if least == most { least.to_string() } else { format!("{least} to {most}") }
    }

    fn all_runs(&self) -> impl Iterator<Item = usize> + '_ {
        let all = self.figures.iter().flat_map(|f| f.values.iter().flatten());
        all.map(|v| v.by_round.len())
    }
}

impl Values {
    fn plain(all: &Rounds, cell: &Cell) -> Values {
        Values {
            by_round: all.values().copied().collect(),
            rounds: all.keys().copied().collect(),
            deterministic: cell.measures.values().all(|m| m.sample.deterministic),
            paired: cell.measures.values().all(|m| m.sample.paired),
            starved: false,
            completed: false,
        }
    }

    pub(super) fn sample(&self) -> Sample {
        let rounds = self.rounds.iter().copied().zip(self.by_round.iter().copied()).collect();
        Sample { rounds, deterministic: self.deterministic, paired: self.paired }
    }

    /// In every run there was nothing, where more is better.
    pub(super) fn nothing(&self) -> bool {
        !self.by_round.is_empty() && self.by_round.iter().all(|o| o.value == 0.0)
    }

    /// How many lie beyond a limit.
    pub(super) fn censored(&self) -> usize {
        self.by_round.iter().filter(|o| o.censored).count()
    }
}

type Rounds = BTreeMap<u32, Observation>;

/// A cell, and every round in which it has any figure: they are looked up for each figure.
struct Ran<'a> {
    cell: &'a Cell,
    rounds: BTreeSet<u32>,
}

impl Deref for Ran<'_> {
    type Target = Cell;

    fn deref(&self) -> &Cell {
        self.cell
    }
}

/// A workload under each scheduler.
type Row<'a> = [Option<Ran<'a>>];

fn rounds(c: &Cell, measure: &str) -> Rounds {
    let all = c.measures.get(measure).into_iter().flat_map(|m| &m.sample.rounds);
    all.copied().collect()
}

/// Figures by goal: place and name of the goal, which way is better.
type Found = BTreeMap<(u8, String), (Better, Vec<Figure>)>;

/// The goals of a device's cells. Who lacks a figure of a goal or failed in it leaves that goal ([`settle`]). Removed
/// schedulers take part if they have all figures. What the experiment asks for comes first.
pub(super) fn goals(
    cells: &Cells,
    device: &str,
    (names, present): (&[&str], &[bool]),
    asked: &str,
) -> Vec<Goal> {
    let here = cells.0.keys().filter(|k| k.device == device);
    let workloads: BTreeSet<&str> = here.map(|k| k.workload.as_str()).collect();
    let mut found = Found::new();
    let mut wanted: Option<(Better, Vec<Figure>)> = None;
    // What reads and writes move together is that goal.
    let asked = if asked == TOTAL { "throughput" } else { asked };
    for workload in workloads {
        let cell = |name: &&str| {
            let key = CellKey {
                device: device.into(),
                workload: workload.into(),
                scheduler: (*name).into(),
            };
            let cell = cells.0.get(&key).filter(|c| !c.measures.is_empty())?;
            Some(Ran { cell, rounds: cell.rounds() })
        };
        let row: Vec<Option<Ran<'_>>> = names.iter().map(cell).collect();
        if row.iter().zip(present).all(|(c, p)| !*p || c.is_none()) {
            continue;
        }
        let mut here = Found::new();
        for (place, goal, better, mut figure) in figures(workload, &row) {
            figure.table = table(cells, device, &figure);
            here.entry((place, goal)).or_insert((better, Vec::new())).1.push(figure);
        }
        for (goal, (better, mut figures)) in here {
            let share = 1.0 / figures.len() as f64;
            figures.iter_mut().for_each(|f| f.weight = share);
            found.entry(goal).or_insert((better, Vec::new())).1.extend(figures);
        }
        if let Some((better, mut figure)) = own_figure(workload, &row, asked) {
            figure.table = table(cells, device, &figure);
            wanted.get_or_insert((better, Vec::new())).1.push(figure);
        }
    }
    let goal = |(name, (better, mut figures)): (String, (Better, Vec<Figure>))| {
        once(&mut figures);
        let (zeros, mut figures): (Vec<_>, Vec<_>) = figures.into_iter().partition(|f| f.zeros);
        let why = |i: usize, workload: &str| match failed(cells, (device, workload, names[i])) {
            true => Gap::Failed,
            false if ran(cells, (device, workload, names[i])) => Gap::NoFigure,
            false => Gap::NotRun,
        };
        let gaps = settle(&mut figures, present, why);
        let all: f64 = figures.iter().map(|f| f.weight).sum();
        figures.iter_mut().for_each(|f| f.weight /= all);
        let schedulers = names.iter().map(ToString::to_string).collect();
        Goal { name, decides: false, better, schedulers, figures, zeros, gaps }
    };
    let found = found.into_iter().map(|((_, name), all)| goal((name, all))).collect();
    let wanted = wanted.map(|all| goal((in_words(asked), all)));
    first(found, wanted, asked)
}

/// Whether a cell has any figure.
fn ran(cells: &Cells, (device, workload, scheduler): (&str, &str, &str)) -> bool {
    let key =
        CellKey { device: device.into(), workload: workload.into(), scheduler: scheduler.into() };
    cells.0.get(&key).is_some_and(|c| !c.measures.is_empty())
}

/// The goals with that first which the experiment asks for: one of them by its name, or a measure.
fn first(mut all: Vec<Goal>, wanted: Option<Goal>, asked: &str) -> Vec<Goal> {
    let same = |g: &Goal| {
        let key = |f: &Figure| (f.workload.clone(), f.table.clone(), f.zeros);
        let of = |g: &Goal| g.figures.iter().chain(&g.zeros).map(key).collect::<Vec<_>>();
        g.name == asked || wanted.as_ref().is_some_and(|w| of(w) == of(g))
    };
    let at = all.iter().position(same);
    let first = at.map(|i| all.remove(i)).or(wanted);
    if let Some(goal) = first {
        all.insert(0, Goal { decides: true, ..goal });
    }
    all
}

/// The measure by which tables show the very values of a figure.
fn table(cells: &Cells, device: &str, f: &Figure) -> Option<String> {
    let own = f.values.iter().flatten().all(|v| !v.completed);
    let name = match f.measure.as_str() {
        THROUGHPUT => throughput_of(cells, device, &f.workload)?,
        measure => measure,
    };
    own.then(|| name.into())
}

/// One thing is counted once: of a tool's MB/s and IOPS of the same test, the MB/s.
fn once(figures: &mut Vec<Figure>) {
    let of = |f: &Figure| {
        let logs = f.values.iter().flatten().map(|v| logarithm(v, Better::Higher).exp());
        logs.collect::<Vec<f64>>()
    };
    let values: Vec<Vec<f64>> = figures.iter().map(of).collect();
    let all = || figures.iter().zip(&values).map(|(f, v)| (&*f.workload, &*f.unit, v.clone()));
    let twins: Vec<bool> = all().map(|a| all().any(|b| twin(&a, &b))).collect();
    let mut twins = twins.into_iter();
    figures.retain(|_| twins.next() != Some(true));
}

/// Whether the first are IOPS that are the MB/s of the second in another unit: (workload, unit, a value of each
/// scheduler). The titles differ in the unit at most, and so do the values, by one factor.
pub(super) fn twin(iops: &(&str, &str, Vec<f64>), rate: &(&str, &str, Vec<f64>)) -> bool {
    let title = |x: &(&str, &str, Vec<f64>)| without_unit(x.0, x.1).to_string();
    let units = iops.1.eq_ignore_ascii_case("iops") && rate.1.ends_with("B/s");
    if !units || title(iops) != title(rate) || iops.2.len() != rate.2.len() {
        return false;
    }
    let ratios = iops.2.iter().zip(&rate.2).filter(|(_, y)| **y > 0.0).map(|(x, y)| x / y);
    let (low, high) =
        ratios.fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), q| (l.min(q), h.max(q)));
    low > 0.0 && high / low < TWINS
}

/// What moves data.
const MOVED: [&str; 3] = ["read.bw", "write.bw", TOTAL];

/// What a workload moves in all: reads and writes. Programs may have a figure "throughput" of their own.
pub(super) const THROUGHPUT: &str = "data rate";

/// A figure, its place among the goals, its goal, and which way is better.
type Placed = (u8, String, Better, Figure);

fn make(workload: &str, measure: &str, values: Vec<Option<Values>>) -> Figure {
    Figure {
        workload: workload.into(),
        measure: measure.into(),
        weight: 1.0,
        unit: String::new(),
        values,
        zeros: false,
        table: None,
    }
}

/// The figures of a workload.
fn figures(workload: &str, row: &Row<'_>) -> Vec<Placed> {
    let mut out: Vec<Placed> = throughput(workload, row).into_iter().collect();
    out.extend(latencies(workload, row));
    out.extend(fairness(workload, row));
    out.extend(metrics(workload, row));
    by_own(&mut out, row);
    out.retain(|(_, _, _, f)| f.values.iter().flatten().all(|v| !v.by_round.is_empty()));
    out
}

fn has(row: &Row<'_>, measure: &str) -> bool {
    row.iter().flatten().any(|c| c.measures.contains_key(measure))
}

fn throughput(workload: &str, row: &Row<'_>) -> Option<Placed> {
    // A round without any I/O has no rate, yet it moved nothing.
    let trims = |c: &Cell| {
        let nothing = |r: u32| (r, Observation::from(0.0));
        let mut all: Rounds = c.rounds().into_iter().map(nothing).collect();
        all.extend(rounds(c, "trim.iops"));
        all
    };
    let moved = |c: &Cell| c.total().sample.rounds.into_iter().collect::<Rounds>();
    // Where writes stay in memory, what the page cache took says nothing of the disk.
    let figure = if has(row, DURABLE_BW) {
        make(workload, DURABLE_BW, complete(row, Better::Higher, |c| rounds(c, DURABLE_BW)))
    } else if MOVED.iter().any(|m| has(row, m)) {
        make(workload, THROUGHPUT, complete(row, Better::Higher, moved))
    } else if has(row, "trim.iops") {
        // Trims move no data. Where there is nothing else, their number is compared.
        make(workload, "trim.iops", complete(row, Better::Higher, trims))
    } else {
        return None;
    };
    let mut figure = figure;
    for (c, v) in row.iter().zip(&mut figure.values) {
        if c.as_ref().is_some_and(|c| c.unsaid()) {
            *v = None;
        }
    }
    let figure = Figure { zeros: all_zero(&figure.values), ..figure };
    Some((0, "throughput".into(), Better::Higher, figure))
}

/// Nobody delivered anything: that tells nobody from anybody.
fn all_zero(values: &[Option<Values>]) -> bool {
    values.iter().flatten().all(Values::nothing)
}

/// Jobs that ran at different times have no fairness. Where they did under one scheduler only, that is no starvation:
/// there is nothing to compare.
fn fairness(workload: &str, row: &Row<'_>) -> Option<Placed> {
    let fair = |c: &Ran<'_>| {
        let runs = |m: &CellSample| m.sample.rounds.len();
        let of = c.measures.get("fairness.jain").map(runs);
        of.is_some() && of == c.measures.values().map(runs).max()
    };
    let known = has(row, "fairness.jain") && row.iter().flatten().all(fair);
    known.then(|| {
        let values = complete(row, Better::Higher, |c| rounds(c, "fairness.jain"));
        (2, "fairness".into(), Better::Higher, make(workload, "fairness.jain", values))
    })
}

/// What a tool reports itself.
fn metrics(workload: &str, row: &Row<'_>) -> Vec<Placed> {
    let cells = || row.iter().flatten();
    let names: BTreeSet<&String> = cells().flat_map(|c| c.measures.keys()).collect();
    let mut out = Vec::new();
    for name in names.iter().filter(|n| !derived(n) && !spoken_for(n, &names, row)) {
        let Some(first) = cells().find_map(|c| c.measures.get(*name)) else { continue };
        let (place, mut goal) = goal_of(name, &first.unit, first.better);
        // Frames that are shown and frames that are dropped have one unit and no common goal.
        let contrary = |c: &Ran<'_>| {
            let mut all =
                c.measures.iter().filter(|(n, m)| !derived(n) && m.better != first.better);
            all.any(|(n, m)| goal_of(n, &m.unit, m.better) == (place, goal.clone()))
        };
        if first.better == Better::Lower && cells().any(contrary) {
            goal = (*name).clone();
        }
        let figure = own_figure(workload, row, name);
        out.extend(figure.map(|(better, figure)| (place, goal, better, figure)));
    }
    out
}

/// A measure by its own name; `None` where nobody has it.
fn own_figure(workload: &str, row: &Row<'_>, name: &str) -> Option<(Better, Figure)> {
    let cells = || row.iter().flatten();
    let first = cells().find_map(|c| c.measures.get(name))?;
    // No errors are no starvation. But nothing is so many times less than they are, and there are no so many times of
    // what lies below zero.
    let some = |is: fn(f64) -> bool| cells().any(|c| rounds(c, name).values().any(|o| is(o.value)));
    let zeros = some(|v| v < 0.0) || first.better == Better::Lower && some(|v| v == 0.0);
    let mut values = if zeros {
        let plain = |c: &Ran<'_>| Values::plain(&rounds(c, name), c);
        row.iter().map(|c| c.as_ref().map(plain)).collect()
    } else {
        complete(row, first.better, |c| rounds(c, name))
    };
    // Who never says this figure lacks it: nothing is known that could stand in.
    for (c, v) in row.iter().zip(&mut values) {
        if c.as_ref().is_some_and(|c| !c.measures.contains_key(name)) {
            *v = None;
        }
    }
    let zeros = zeros || first.better == Better::Higher && all_zero(&values);
    let unit = first.unit.clone();
    Some((first.better, Figure { unit, zeros, ..make(workload, name, values) }))
}

/// The goal of a tool's own metric. A metric that is neither a rate nor a time is a goal by its own name: less CPU is
/// not less run time.
fn goal_of(name: &str, unit: &str, better: Better) -> (u8, String) {
    let u = unit.to_lowercase();
    let rate = ["/s", "per second", "iops", "tps"].iter().any(|w| u.contains(w));
    let short = !u.contains('/')
        && ["ns", "us", "µs", "ms", "usec", "msec"].iter().any(|w| u.starts_with(w));
    let of_one = u.split('/').next().unwrap_or_default();
    let long = ["s", "sec", "seconds", "min", "minutes"].contains(&of_one);
    // A published test is named by its options. Tests of one unit are one goal.
    let own = || match unit.chars().count() {
        0 => name.replace('_', " "),
        1 => format!("{} ({unit})", name.replace('_', " ")),
        _ => unit.to_string(),
    };
    match better {
        // Core time of an I/O is no wait, though its unit begins like one.
        _ if name.starts_with("cpu_") && u.ends_with("/io") => (5, "CPU time".into()),
        _ if name == "startup_time" => (3, "start-up time".into()),
        Better::Higher if rate => (0, "throughput".into()),
        Better::Lower if short => (1, "latency".into()),
        Better::Lower if long => (4, "run time".into()),
        _ => (5, own()),
    }
}

/// Every scheduler's values. Where a round of a scheduler lacks a figure that others have, the worst of all stands in:
/// a process without I/O waits the longest. Of what is better the more there is, zero is a value like others.
fn complete(row: &Row<'_>, better: Better, of: impl Fn(&Cell) -> Rounds) -> Vec<Option<Values>> {
    complete_from(row, better, of, |_| Rounds::new())
}

/// The same. What stands in is at least as bad as what is known of that round.
fn complete_from(
    row: &Row<'_>,
    better: Better,
    of: impl Fn(&Cell) -> Rounds,
    known_of: impl Fn(&Cell) -> Rounds,
) -> Vec<Option<Values>> {
    let all: Vec<Option<Rounds>> = row.iter().map(|c| c.as_ref().map(|c| of(c))).collect();
    let known =
        || all.iter().flatten().flat_map(|r| r.values().map(|o| o.value)).filter(|v| *v > 0.0);
    let worse: fn(f64, f64) -> f64 = match better {
        Better::Higher => f64::min,
        Better::Lower => f64::max,
    };
    let worst = known().reduce(worse);
    let one = |(cell, rounds): (&Option<Ran<'_>>, &Option<Rounds>)| {
        let (cell, rounds) = (cell.as_ref()?, rounds.as_ref()?);
        let counts = |o: &Observation| o.value > 0.0 || better == Better::Higher;
        let usable = |r: &u32| rounds.get(r).copied().filter(counts);
        let least = known_of(cell);
        let lacking: Vec<u32> =
            cell.rounds.iter().copied().filter(|r| usable(r).is_none()).collect();
        let stand_in = |r: &u32| {
            let value =
                least.get(r).map_or(worst?, |own| worse(worst.unwrap_or(own.value), own.value));
            Some(Observation { value, censored: better == Better::Lower })
        };
        let mut all: Rounds = rounds.keys().filter_map(|r| Some((*r, usable(r)?))).collect();
        all.extend(lacking.iter().filter_map(|r| Some((*r, stand_in(r)?))));
        let some = !lacking.is_empty();
        Some(Values { starved: some, completed: some, ..Values::plain(&all, cell) })
    };
    row.iter().zip(&all).map(one).collect()
}

/// A scheduler's logarithms by round, better is higher. Zero has none. Where some rounds are zero, each round's part in
/// the logarithm of the mean stands for it, which is what tables compare; where all are, nothing is infinitely little.
pub(super) fn logarithms(v: &Values, better: Better) -> Vec<f64> {
    let sign = if better == Better::Higher { 1.0 } else { -1.0 };
    let values: Vec<f64> = v.by_round.iter().map(|x| x.value).collect();
    let mean = mean_and_sd(&values).0;
    let of = |x: &f64| match mean {
        _ if values.iter().all(|x| *x > 0.0) => x.ln(),
        _ if mean > 0.0 => mean.ln() + x / mean - 1.0,
        _ => f64::NEG_INFINITY,
    };
    values.iter().map(|x| sign * of(x)).collect()
}

/// Their mean.
pub(super) fn logarithm(v: &Values, better: Better) -> f64 {
    if better == Better::Higher && v.nothing() {
        return f64::NEG_INFINITY;
    }
    mean_and_sd(&logarithms(v, better)).0
}
