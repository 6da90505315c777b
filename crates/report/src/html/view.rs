//! The comparison a page shows: runs side by side, tests below each other, every pair judged.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::DURABLE_BW;
use iosched_results::answer::{self, Meaning};
use iosched_results::cells::{
    Analysis, CellKey, Cells, Line, charge_starved, heads, judge_cells, one_latency, usual_base,
};
pub(crate) use iosched_results::measure::without_unit;
use iosched_results::measure::{PARTS, TOTAL, TWINS};
use iosched_results::stats::{Better, CiMethod, Judged, Summary, Verdict};
use iosched_results::verdict::Verdict as DeviceVerdict;
use iosched_results::viewer;

use super::input::{Detail, Input, RunFacts, key};
use super::judge::{flag, judge_pairs};
use super::measures::{class, derived, latency_of, words};
use super::number::six;
use super::verdict::candidates;

/// Samples kept in a page, all cells together …
const MOST_SAMPLES: usize = 150_000;
/// … but in each cell at least so many.
const FEWEST_SAMPLES: usize = 40;

/// One column.
#[derive(Debug)]
pub(crate) struct Run {
    /// Position among the runs of the input.
    pub(crate) from: usize,
    pub(crate) device: usize,
    pub(crate) scheduler: usize,
    /// Device and scheduler where there are several devices.
    pub(crate) name: String,
}

/// What a test says something about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Throughput,
    Latency,
    Other,
}

/// A workload by one measure.
#[derive(Debug)]
pub(crate) struct Test {
    pub(crate) workload: usize,
    pub(crate) measure: String,
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) better: Better,
    pub(crate) class: Class,
    /// Shown as a chart from the start and counted in the means.
    pub(crate) head: bool,
    pub(crate) noisy: bool,
    pub(crate) incomplete: bool,
    pub(crate) little: bool,
    pub(crate) notable: bool,
    pub(crate) spread: Option<f64>,
    /// By run.
    pub(crate) cells: Vec<Cell>,
    /// Its cells add up what other figures of the workload say, or are added up by one: means count one of both.
    pub(crate) told: bool,
    /// The same run in another unit is shown already: fio's IOPS beside its MB/s.
    pub(crate) twin: bool,
    /// Tests with the same key go into one graph when options are condensed.
    pub(crate) condense: String,
}

/// Rounds closer than this, relatively, are the same: a change below 0.05 % is shown as none.
const ALIKE: f64 = 5e-4;

/// How a cell stands to another one of its device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) letter: char,
    /// New over base, and its 95 % interval.
    pub(crate) ratio: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
}

/// Not judged.
pub(crate) const UNJUDGED: Pair = Pair { letter: '.', ratio: None, interval: None };

/// A number, or why there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) summary: Option<Summary>,
    /// The samples with `true` for outliers.
    pub(crate) samples: Vec<(f64, bool)>,
    /// The rounds of the samples, where they are not 1, 2, 3, …
    pub(crate) rounds: Vec<u32>,
    pub(crate) missing: Option<String>,
    /// Against every run of the same device: see [`letter`].
    pub(crate) pairs: Vec<Pair>,
    pub(crate) noisy: bool,
    /// Rounds with too few I/Os for this figure: they count as at least the longest wait.
    pub(crate) starved: usize,
    /// The mean without outliers by the reference viewer's rule, where the samples here are not all there were.
    pub(crate) trimmed: Option<f64>,
}

impl Cell {
    /// Rounds beyond a limit: of those that stopped at one, and those that were starved.
    pub(crate) fn censored(&self) -> usize {
        self.summary.as_ref().map_or(0, |s| s.censored)
    }

    pub(crate) fn centre(&self) -> Option<f64> {
        self.summary.as_ref().and_then(Summary::centre)
    }

    /// Whether both have the same figures in every round, to less than is ever shown: nothing tells them apart.
    pub(crate) fn same(&self, other: &Cell) -> bool {
        let (Some(a), Some(b)) = (&self.summary, &other.summary) else { return false };
        let near = |x: f64, y: f64| (x - y).abs() <= ALIKE * y.abs();
        if a.n != b.n || a.censored != b.censored || self.samples.len() != other.samples.len() {
            return false;
        }
        if self.samples.len() < 2 {
            return self.centre() == other.centre() && (a.min, a.max, a.sd) == (b.min, b.max, b.sd);
        }
        self.samples.iter().zip(&other.samples).all(|(x, y)| near(x.0, y.0))
    }
}

/// A scheduler as the page calls it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Name {
    /// Without its version where the page has only one of the family.
    pub(crate) short: String,
    /// Why the trials' kernel does not have it; empty when it does.
    pub(crate) gone: String,
    pub(crate) meaning: Meaning,
}

impl Name {
    pub(crate) fn now(&self) -> bool {
        self.gone.is_empty()
    }
}

/// The whole comparison.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) devices: Vec<String>,
    pub(crate) schedulers: Vec<String>,
    /// What stands behind their names, and as what they are shown.
    pub(crate) names: Vec<Name>,
    pub(crate) runs: Vec<Run>,
    pub(crate) tests: Vec<Test>,
    /// The base, as an index of `schedulers`.
    pub(crate) base: usize,
    pub(crate) geometric: Option<Vec<f64>>,
    pub(crate) harmonic: Vec<(String, Vec<f64>)>,
    pub(crate) wins: Vec<(usize, usize)>,
    pub(crate) suites: Vec<String>,
    /// One value of everything: nothing can be tested.
    pub(crate) single: bool,
    /// The figures of all cells, by the schedulers' labels.
    pub(crate) cells: Cells,
    /// Some have total latencies and others do not: see [`one_latency`].
    pub(crate) mixed_latencies: bool,
    /// The verdicts; none where the page is of several kernels or experiments, whose schedulers stand beside each other.
    pub(crate) verdicts: Vec<DeviceVerdict>,
}

/// One letter per verdict: b better, w worse, n no measurable difference, e not enough data, i invalid; capitals
/// where the difference is exact; `.` not judged.
pub(crate) fn letter(j: &Judged) -> char {
    let c = match j.verdict {
        Verdict::Better => 'b',
        Verdict::Worse => 'w',
        Verdict::NoMeasurableDifference => 'n',
        Verdict::NotEnoughData => 'e',
        Verdict::Invalid => 'i',
    };
    if j.exact { c.to_ascii_uppercase() } else { c }
}

/// How a confidence interval was made, in words.
pub(crate) fn method(m: CiMethod) -> &'static str {
    match m {
        CiMethod::Bca => "BCa bootstrap",
        CiMethod::Abc => "BCa, analytic form",
        CiMethod::T => "Student's t",
        CiMethod::Exact => "all values equal",
        CiMethod::Published => "published standard error, Student's t",
    }
}

fn push_new(list: &mut Vec<String>, item: &str) -> usize {
    list.iter().position(|x| x == item).unwrap_or_else(|| {
        list.push(item.into());
        list.len() - 1
    })
}

/// The scheduler with its kernel where it ran under several.
fn label(r: &RunFacts, all: &[RunFacts]) -> String {
    if all.iter().any(|o| o.scheduler == r.scheduler && o.kernel != r.kernel) {
        format!("{} ({})", r.scheduler, r.kernel)
    } else {
        r.scheduler.clone()
    }
}

/// The cells of all kernels, schedulers labelled.
fn join(input: &Input) -> Cow<'_, Cells> {
    if let [(_, only)] = &input.cells[..] {
        // One kernel: the labels are the names.
        return Cow::Borrowed(only);
    }
    let mut out = Cells::default();
    for (kernel, cells) in &input.cells {
        for (k, cell) in &cells.0 {
            let run = input.runs.iter().find(|r| {
                r.device == k.device && r.scheduler == k.scheduler && r.kernel == *kernel
            });
            let name = run.map_or_else(|| k.scheduler.clone(), |r| label(r, &input.runs));
            out.0.insert(key(&k.device, &k.workload, &name), cell.clone());
        }
    }
    Cow::Owned(out)
}

/// The base that was asked for, else that of the verdicts, else the usual one.
fn base_of(input: &Input, view: &View) -> usize {
    let schedulers = &view.schedulers;
    let asked = input.options.base.as_deref();
    let by = |f: &dyn Fn(&str) -> bool| schedulers.iter().position(|s| f(s));
    asked
        .and_then(|b| by(&|s| s == b).or_else(|| by(&|s| s.starts_with(b))))
        .or_else(|| view.verdicts.first().and_then(|v| by(&|s| s == v.base)))
        .or_else(|| usual_base(schedulers.iter().map(String::as_str)).and_then(|b| by(&|s| s == b)))
        .unwrap_or(0)
}

/// The schedulers' names, those that the kernel has first.
fn names(input: &Input, schedulers: &mut Vec<String>) -> Vec<Name> {
    let of = |label: &String| {
        let run = input.runs.iter().find(|r| label_of(r, input) == *label);
        let kernel = run.map_or("", |r| r.kernel.as_str());
        // The mark of an experiment stands before the name.
        let name = input.own(label.rsplit(": ").next().unwrap_or_default());
        let gone = answer::gone(name, kernel).unwrap_or_default();
        Name { short: label.clone(), gone, meaning: answer::meaning(name, kernel) }
    };
    let mut all: Vec<(String, Name)> = schedulers.drain(..).map(|s| (s.clone(), of(&s))).collect();
    all.sort_by_key(|(_, n)| !n.now());
    let short = answer::short_names(all.iter().map(|(s, _)| s.as_str()));
    let short: Vec<Option<String>> = all.iter().map(|(s, _)| short.get(&**s).cloned()).collect();
    for ((_, name), short) in all.iter_mut().zip(short) {
        name.short = short.unwrap_or_else(|| name.short.clone());
    }
    let (labels, names) = all.into_iter().unzip();
    *schedulers = labels;
    names
}

fn label_of(r: &RunFacts, input: &Input) -> String {
    label(r, &input.runs)
}

/// Devices, schedulers and runs with their verdicts, and the figures of all cells.
fn frame(input: &Input) -> (View, Cells) {
    let (mut devices, mut schedulers, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for (from, r) in input.runs.iter().enumerate() {
        let name = label(r, &input.runs);
        let device = push_new(&mut devices, &r.device);
        push_new(&mut schedulers, &name);
        runs.push(Run { from, device, scheduler: 0, name });
    }
    let names = names(input, &mut schedulers);
    for r in &mut runs {
        r.scheduler = push_new(&mut schedulers, &r.name);
    }
    runs.sort_by_key(|r| (r.device, r.scheduler));
    if devices.len() > 1 {
        for r in &mut runs {
            r.name = format!("{}: {}", devices[r.device], r.name);
        }
    }
    let mut view = View {
        devices,
        schedulers,
        names,
        runs,
        tests: Vec::new(),
        base: 0,
        geometric: None,
        harmonic: Vec::new(),
        wins: Vec::new(),
        suites: Vec::new(),
        single: false,
        cells: Cells::default(),
        mixed_latencies: false,
        verdicts: Vec::new(),
    };
    let mut cells = join(input).into_owned();
    view.mixed_latencies = one_latency([&mut cells]);
    // Before the longest waits are charged: a job that never completed has nothing, which is behind any figure.
    view.verdicts = verdicts(input, &view, &cells);
    view.base = base_of(input, &view);
    (view, cells)
}

/// The verdicts on the devices of a page alone.
pub(crate) fn verdicts_of(input: &Input) -> Vec<DeviceVerdict> {
    frame(input).0.verdicts
}

/// Builds the comparison.
pub(crate) fn build(input: &Input) -> View {
    let (mut view, mut cells) = frame(input);
    charge_starved([&mut cells]);
    let base = view.schedulers.get(view.base).map(String::as_str);
    let analysis = judge_cells(&cells, base, input.options.verdict);
    view.tests = tests(input, &view, &cells, &analysis);
    twins(&mut view.tests, &input.workload_titles());
    judge_pairs(&mut view, &cells, &analysis, input);
    flag(&mut view);
    let mut all = view.tests.iter().flat_map(|t| &t.cells);
    view.single = !all.any(|c| c.summary.as_ref().is_some_and(|s| s.n > 1));
    view.cells = cells;
    condense(&mut view);
    thin(&mut view);
    let suites: BTreeSet<&String> = input.workloads.iter().flat_map(|w| &w.suites).collect();
    view.suites = suites.into_iter().cloned().collect();
    view
}

fn verdicts(input: &Input, view: &View, cells: &Cells) -> Vec<DeviceVerdict> {
    let plain = view.runs.iter().all(|r| {
        let name = &view.schedulers[r.scheduler];
        *name == input.runs[r.from].scheduler && !name.contains(": ")
    });
    if !plain {
        return Vec::new();
    }
    iosched_results::verdict::verdicts(&input.asks, cells, &candidates(view, input))
}

/// Of measures that are not shown at first the page keeps no rounds, only what sums them up.
fn condense(view: &mut View) {
    for t in view.tests.iter_mut().filter(|t| !t.head) {
        for c in t.cells.iter_mut().filter(|c| c.samples.len() > 1) {
            let values: Vec<f64> = c.samples.iter().map(|s| s.0).collect();
            c.trimmed = Some(viewer::without_outliers(&values));
            (c.samples, c.rounds) = (Vec::new(), Vec::new());
        }
    }
}

/// Leaves out samples where there are too many for a page: evenly, the smallest and the largest stay.
fn thin(view: &mut View) {
    let cells: usize = view.tests.iter().map(|t| t.cells.len()).sum();
    let most = (MOST_SAMPLES / cells.max(1)).max(FEWEST_SAMPLES);
    for c in view.tests.iter_mut().flat_map(|t| &mut t.cells).filter(|c| c.samples.len() > most) {
        let values: Vec<f64> = c.samples.iter().map(|s| s.0).collect();
        c.trimmed = Some(viewer::without_outliers(&values));
        let ends = values.iter().zip(0..).fold((0, 0), |(low, high), (v, i)| {
            (if *v < values[low] { i } else { low }, if *v > values[high] { i } else { high })
        });
        let every = (values.len() - 1) as f64 / (most - 3) as f64;
        let mut kept: Vec<usize> = (0..most - 2).map(|i| (i as f64 * every) as usize).collect();
        kept.extend([ends.0, ends.1]);
        kept.sort_unstable();
        kept.dedup();
        if c.rounds.is_empty() {
            c.rounds = (1..=values.len() as u32).collect();
        }
        c.rounds = kept.iter().map(|i| c.rounds[*i]).collect();
        c.samples = kept.into_iter().map(|i| c.samples[i]).collect();
    }
}

impl Input {
    pub(crate) fn workload_titles(&self) -> Vec<String> {
        self.workloads.iter().map(|w| w.title.clone()).collect()
    }
}

/// Marks IOPS that are the same run's MB/s in another unit: a tool that prints both measured one thing.
fn twins(tests: &mut [Test], titles: &[String]) {
    let ratio = |a: &Test, b: &Test| {
        let both = a.cells.iter().zip(&b.cells).filter_map(|(x, y)| x.centre().zip(y.centre()));
        both.filter(|(_, y)| *y > 0.0)
            .map(|(x, y)| x / y)
            .fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), q| (l.min(q), h.max(q)))
    };
    let title = |t: &Test| without_unit(&titles[t.workload], &t.unit).to_string();
    let twin = |t: &Test| {
        let moved = |o: &&Test| o.head && o.unit.ends_with("B/s") && title(o) == title(t);
        let same = |o: &Test| {
            let (low, high) = ratio(t, o);
            low > 0.0 && high / low < TWINS
        };
        t.head && t.unit.eq_ignore_ascii_case("iops") && tests.iter().filter(moved).any(same)
    };
    let found: Vec<bool> = tests.iter().map(twin).collect();
    tests.iter_mut().zip(found).for_each(|(t, twin)| t.twin = twin);
}

fn tests(input: &Input, view: &View, cells: &Cells, analysis: &Analysis) -> Vec<Test> {
    let lines: BTreeMap<(&CellKey, &str), &Line> =
        analysis.lines.iter().map(|l| ((&l.key, l.measure.as_str()), l)).collect();
    let heads = heads(cells);
    let mut by_workload: BTreeMap<&str, BTreeMap<&str, &Line>> = BTreeMap::new();
    for l in &analysis.lines {
        by_workload.entry(&l.key.workload).or_default().entry(&l.measure).or_insert(l);
    }
    let mut out = Vec::new();
    for (w, facts) in input.workloads.iter().enumerate() {
        let none = BTreeMap::new();
        let measures = by_workload.get(facts.title.as_str()).unwrap_or(&none);
        let at = out.len();
        for (measure, first) in measures {
            let title = words(measure);
            let title = if facts.title.contains(&title) { first.unit.clone() } else { title };
            let program = facts.title.split(": ").next().unwrap_or_default();
            let own = !derived(measure);
            let condense = if own { program } else { measure };
            out.push(Test {
                workload: w,
                measure: (*measure).into(),
                title,
                unit: first.unit.clone(),
                better: first.better,
                class: class(measure, &first.unit, first.better),
                // A disk whose few syncs give no 99th percentile shows their mean, whatever other devices have.
                head: heads.contains(&(facts.title.as_str(), *measure)),
                twin: false,
                told: false,
                noisy: false,
                incomplete: false,
                little: false,
                notable: false,
                spread: None,
                cells: view
                    .runs
                    .iter()
                    .map(|r| cell(input, view, r, (w, measure), &lines, cells))
                    .collect(),
                condense: format!("{condense} [{}]", first.unit),
            });
        }
        tell(&mut out[at..]);
        out[at..].sort_by_key(|t| (!t.head, t.class as u8, t.measure.starts_with("job/")));
    }
    out
}

/// Of a workload's total and its parts the parts count: reads and writes are as good as they are. Where it has only one of
/// them, some runs did nothing, which the total alone knows.
fn tell(tests: &mut [Test]) {
    let part = |t: &Test| t.head && PARTS.contains(&t.measure.as_str());
    let parts = tests.iter().filter(|t| part(t)).count();
    let total = tests.iter().any(|t| t.head && t.measure == TOTAL);
    if tests.iter().any(|t| t.head && t.measure == DURABLE_BW) {
        // The page cache's rates stand behind it, and count nothing beside it.
        for t in tests.iter_mut().filter(|t| t.measure == TOTAL || PARTS.contains(&&*t.measure)) {
            t.told = true;
            t.title.push_str(" (page cache)");
        }
        return;
    }
    for t in tests.iter_mut().filter(|_| total) {
        t.told = if t.measure == TOTAL { parts > 1 } else { parts == 1 && part(t) };
    }
}

/// Why a scheduler whose trials are complete lacks a figure that others have.
fn untaken(d: &Detail, measure: &str) -> &'static str {
    let percentile =
        measure.rsplit('.').take(2).any(|p| p.starts_with('p') && p[1..].parse::<u32>().is_ok());
    let waited = d.latency.iter().any(Option::is_some);
    // Syncs that never returned, beside reads that did: there is no figure, and it was asked for.
    let none = d.latency.iter().zip(["read", "write", "trim", "sync"]).any(|(l, side)| {
        l.is_none()
            && latency_of(measure).is_some_and(|(of, _)| of.rsplit('/').next() == Some(side))
    });
    if waited && none {
        "no I/O of this kind completed"
    } else if percentile && waited {
        "too few I/Os for this percentile"
    } else {
        "this measure was not taken"
    }
}

fn cell(
    input: &Input,
    view: &View,
    run: &Run,
    (workload, measure): (usize, &str),
    lines: &BTreeMap<(&CellKey, &str), &Line>,
    cells: &Cells,
) -> Cell {
    let title = &input.workloads[workload].title;
    let k = key(&view.devices[run.device], title, &view.schedulers[run.scheduler]);
    let detail = input.details.get(&(run.from, workload));
    let Some(line) = lines.get(&(&k, measure)) else {
        let why = detail.and_then(|d| d.unusable.keys().next().cloned());
        let why = why.unwrap_or_else(|| match detail {
            Some(d) => untaken(d, measure).into(),
            None => "not run".into(),
        });
        return Cell { missing: Some(why), ..Cell::default() };
    };
    let mut summary = line.summary.clone();
    // A comparison that was published as a summary has one "sample": its mean.
    if let Some(p) = detail.and_then(|d| d.published).filter(|_| summary.n == 1) {
        summary = Summary::published(p.n, p.mean, p.se, p.min, p.max);
    }
    // What was measured here has six digits that mean something; what a tool printed stays as printed.
    let digits = |x: f64| if derived(measure) { six(x) } else { x };
    if let Some(ci) = &mut summary.ci {
        (ci.low, ci.high) = (six(ci.low), six(ci.high));
    }
    summary.sd = summary.sd.map(six);
    summary.mean = summary.mean.map(digits);
    summary.median = summary.median.map(digits);
    summary.bound = summary.bound.map(digits);
    (summary.min, summary.max) = (digits(summary.min), digits(summary.max));
    // Results of other programs may have the two rates only: their total is made here.
    let of = &cells.0[&k];
    let total = (measure == TOTAL).then(|| of.total());
    let sample = &total.as_ref().unwrap_or_else(|| &of.measures[measure]).sample;
    let rounds: Vec<u32> = sample.rounds.iter().map(|r| r.0).collect();
    let plain = rounds.iter().zip(1..).all(|(r, i)| *r == i);
    Cell {
        rounds: if plain { Vec::new() } else { rounds },
        noisy: line.noisy || summary.n > 2 && summary.cv().is_some_and(|cv| cv > 0.06),
        samples: sample
            .rounds
            .iter()
            .map(|(round, o)| (digits(o.value), line.outliers.contains(round)))
            .collect(),
        summary: Some(summary),
        missing: None,
        pairs: Vec::new(),
        trimmed: None,
        starved: line.starved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_without_enough_ios_says_so() {
        let mut d = Detail::default();
        assert_eq!(untaken(&d, "read.lat.p99"), "this measure was not taken");
        d.latency[0] = Some(iosched_types::LatencyHistogram::default());
        assert_eq!(untaken(&d, "read.lat.p99"), "too few I/Os for this percentile");
        assert_eq!(untaken(&d, "job/a/write.clat.p99.9"), "no I/O of this kind completed");
        assert_eq!(untaken(&d, "sync.lat.mean"), "no I/O of this kind completed");
        assert_eq!(untaken(&d, "job/app.p9/read.lat.mean"), "this measure was not taken");
    }
}
