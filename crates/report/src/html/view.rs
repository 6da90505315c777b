//! The comparison a page shows: runs side by side, tests below each other, every pair judged.

use std::collections::{BTreeMap, BTreeSet};

use iosched_results::cells::{CellKey, Cells, Line, judge_cells};
use iosched_results::model::{self, Comparison};
use iosched_results::stats::{Better, CiMethod, Judged, Summary, Verdict, VerdictOptions};
use iosched_results::viewer;

use super::input::{Input, RunFacts, key};

/// Every pair of schedulers is judged up to this many judgements; beyond, only against the base.
const MOST_PAIRS: usize = 20_000;

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
    /// Tests with the same key go into one graph when options are condensed.
    pub(crate) condense: String,
}

/// A number, or why there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) summary: Option<Summary>,
    /// The samples with `true` for outliers.
    pub(crate) samples: Vec<(f64, bool)>,
    pub(crate) missing: Option<String>,
    /// Against every run of the same device, one letter each: see [`letter`].
    pub(crate) pairs: Vec<char>,
    pub(crate) noisy: bool,
}

impl Cell {
    pub(crate) fn centre(&self) -> Option<f64> {
        self.summary.as_ref().and_then(Summary::centre)
    }
}

/// The whole comparison.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) devices: Vec<String>,
    pub(crate) schedulers: Vec<String>,
    pub(crate) runs: Vec<Run>,
    pub(crate) tests: Vec<Test>,
    /// The base, as an index of `schedulers`.
    pub(crate) base: usize,
    pub(crate) geometric: Option<Vec<f64>>,
    pub(crate) harmonic: Vec<(String, Vec<f64>)>,
    pub(crate) wins: Vec<(usize, usize)>,
    pub(crate) suites: Vec<String>,
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
fn join(input: &Input) -> Cells {
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
    out
}

fn derived(measure: &str) -> bool {
    measure.starts_with("job/")
        || measure == "fairness.jain"
        || ["read.", "write.", "trim.", "sync."].iter().any(|p| measure.starts_with(p))
}

fn class(measure: &str, unit: &str, better: Better) -> Class {
    let own = !derived(measure);
    if measure.ends_with(".bw") || (own && better == Better::Higher && !unit.is_empty()) {
        Class::Throughput
    } else if measure.contains(".clat.") || (own && better == Better::Lower) {
        Class::Latency
    } else {
        Class::Other
    }
}

/// Whether a measure gets a chart from the start: throughput, the 99th percentile (the mean where there is
/// none), fairness, and all that the tool itself reported.
fn is_head(measure: &str, all: &BTreeSet<&str>) -> bool {
    if measure.starts_with("job/") {
        return false;
    }
    if let Some(side) = measure.strip_suffix(".clat.mean") {
        return derived(measure) && !all.contains(format!("{side}.clat.p99").as_str());
    }
    !derived(measure)
        || measure.ends_with(".bw")
        || measure.ends_with(".clat.p99")
        || measure == "fairness.jain"
}

/// A measure in words: `Read latency, 99th percentile`.
pub(crate) fn words(measure: &str) -> String {
    let job = measure.strip_prefix("job/").and_then(|rest| rest.rsplit_once('/'));
    if let Some((name, m)) = job.filter(|(_, m)| derived(m)) {
        return format!("{name}: {}", words(m));
    }
    if measure == "fairness.jain" {
        return "Fairness (Jain's index)".into();
    }
    let Some((side, what)) = measure.split_once('.').filter(|_| derived(measure)) else {
        return measure.into();
    };
    let side = match side {
        "read" => "Read",
        "write" => "Write",
        "trim" => "Trim",
        _ => "fsync",
    };
    match what {
        "bw" => format!("{side} throughput"),
        "iops" => format!("{side} IOPS"),
        "clat.mean" => format!("{side} latency, mean"),
        "clat.p50" => format!("{side} latency, median"),
        _ => match what.strip_prefix("clat.p") {
            Some(p) => format!("{side} latency, {p}th percentile"),
            None => measure.into(),
        },
    }
}

fn base_of(input: &Input, schedulers: &[String]) -> usize {
    let asked = input.options.base.as_deref();
    let by = |f: &dyn Fn(&str) -> bool| schedulers.iter().position(|s| f(s));
    asked
        .and_then(|b| by(&|s| s == b).or_else(|| by(&|s| s.starts_with(b))))
        .or_else(|| by(&|s| s.to_lowercase().starts_with("none")))
        .or_else(|| by(&|s| s.to_lowercase().starts_with("noop")))
        .unwrap_or(0)
}

/// Builds the comparison.
pub(crate) fn build(input: &Input) -> View {
    let (mut devices, mut schedulers, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for (from, r) in input.runs.iter().enumerate() {
        let name = label(r, &input.runs);
        let device = push_new(&mut devices, &r.device);
        let scheduler = push_new(&mut schedulers, &name);
        runs.push(Run { from, device, scheduler, name });
    }
    runs.sort_by_key(|r| r.device);
    if devices.len() > 1 {
        for r in &mut runs {
            r.name = format!("{}: {}", devices[r.device], r.name);
        }
    }
    let base = base_of(input, &schedulers);
    let mut view = View {
        devices,
        schedulers,
        runs,
        tests: Vec::new(),
        base,
        geometric: None,
        harmonic: Vec::new(),
        wins: Vec::new(),
        suites: Vec::new(),
    };
    let cells = join(input);
    view.tests = tests(input, &view, &cells);
    judge_pairs(&mut view, &cells, input.options.verdict, &input.workload_titles());
    flag(&mut view);
    let suites: BTreeSet<&String> = input.workloads.iter().flat_map(|w| &w.suites).collect();
    view.suites = suites.into_iter().cloned().collect();
    view
}

impl Input {
    pub(crate) fn workload_titles(&self) -> Vec<String> {
        self.workloads.iter().map(|w| w.title.clone()).collect()
    }
}

fn tests(input: &Input, view: &View, cells: &Cells) -> Vec<Test> {
    let base = view.schedulers.get(view.base).map(String::as_str);
    let analysis = judge_cells(cells, base, input.options.verdict);
    let lines: BTreeMap<(&CellKey, &str), &Line> =
        analysis.lines.iter().map(|l| ((&l.key, l.measure.as_str()), l)).collect();
    let mut by_workload: BTreeMap<&str, BTreeMap<&str, &Line>> = BTreeMap::new();
    for l in &analysis.lines {
        by_workload.entry(&l.key.workload).or_default().entry(&l.measure).or_insert(l);
    }
    let mut out = Vec::new();
    for (w, facts) in input.workloads.iter().enumerate() {
        let none = BTreeMap::new();
        let measures = by_workload.get(facts.title.as_str()).unwrap_or(&none);
        let names: BTreeSet<&str> = measures.keys().copied().collect();
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
                head: is_head(measure, &names),
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
        out[at..].sort_by_key(|t| (!t.head, t.class as u8, t.measure.starts_with("job/")));
    }
    out
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
            Some(_) => "this measure was not taken".into(),
            None => "not run".into(),
        });
        return Cell { missing: Some(why), ..Cell::default() };
    };
    let mut summary = line.summary.clone();
    // A comparison that was published as a summary has one "sample": its mean.
    if let Some(p) = detail.and_then(|d| d.published).filter(|_| summary.n == 1) {
        summary = Summary::published(p.n, p.mean, p.se, p.min, p.max);
    }
    let sample = &cells.0[&k].measures[measure].sample;
    Cell {
        noisy: line.noisy || summary.n > 2 && summary.cv().is_some_and(|cv| cv > 0.06),
        samples: sample
            .rounds
            .iter()
            .map(|(round, o)| (o.value, line.outliers.contains(round)))
            .collect(),
        summary: Some(summary),
        missing: None,
        pairs: Vec::new(),
    }
}

/// Judges every scheduler against every other of the same device, for the measures shown as charts.
fn judge_pairs(view: &mut View, cells: &Cells, options: VerdictOptions, workloads: &[String]) {
    let heads: BTreeSet<(&str, &str)> = view
        .tests
        .iter()
        .filter(|t| t.head)
        .map(|t| (workloads[t.workload].as_str(), t.measure.as_str()))
        .collect();
    let mut kept = Cells::default();
    let mut count = 0;
    for (k, c) in &cells.0 {
        let mut c = c.clone();
        c.measures.retain(|m, _| heads.contains(&(k.workload.as_str(), m.as_str())));
        count += c.measures.len();
        kept.0.insert(k.clone(), c);
    }
    let n = view.runs.len();
    for t in &mut view.tests {
        t.cells.iter_mut().for_each(|c| c.pairs = vec!['.'; n]);
    }
    let all = count * view.schedulers.len() <= MOST_PAIRS;
    let bases: Vec<usize> =
        if all { (0..view.schedulers.len()).collect() } else { vec![view.base] };
    let place: BTreeMap<(&str, &str), usize> = view
        .tests
        .iter()
        .enumerate()
        .map(|(i, t)| ((workloads[t.workload].as_str(), t.measure.as_str()), i))
        .collect();
    let mut found: Vec<(usize, usize, usize, char)> = Vec::new();
    for b in bases {
        let a = judge_cells(&kept, Some(&view.schedulers[b]), options);
        for l in &a.lines {
            let (Some(j), Some(&t)) =
                (&l.against_base, place.get(&(l.key.workload.as_str(), l.measure.as_str())))
            else {
                continue;
            };
            let of = |s: &str| {
                view.runs.iter().position(|r| {
                    view.devices[r.device] == l.key.device && view.schedulers[r.scheduler] == s
                })
            };
            if let (Some(run), Some(base)) = (of(&l.key.scheduler), of(&view.schedulers[b])) {
                found.push((t, run, base, letter(j)));
            }
        }
    }
    for (t, run, base, c) in found {
        view.tests[t].cells[run].pairs[base] = c;
    }
}

/// The reference viewer's flags and means, by its own rules.
fn flag(view: &mut View) {
    let run = |r: &Run| model::Run { name: r.name.clone(), ..model::Run::default() };
    let cell = |(r, c): (&Run, &Cell)| model::Cell {
        run: r.name.clone(),
        value: c.centre(),
        samples: if c.samples.len() > 1 { c.samples.iter().map(|s| s.0).collect() } else { vec![] },
        summary: c.summary.as_ref().and_then(|s| {
            Some(model::PublishedSummary {
                n: s.n,
                mean: s.mean?,
                se: s.se?,
                min: s.min,
                max: s.max,
            })
        }),
        missing: c.missing.clone(),
        censored: c.summary.as_ref().is_some_and(|s| s.censored > 0),
    };
    let mut comparison =
        Comparison { runs: view.runs.iter().map(run).collect(), ..Comparison::default() };
    comparison.tests = view
        .tests
        .iter()
        .map(|t| model::Test {
            better: Some(t.better),
            unit: t.unit.clone(),
            cells: view.runs.iter().zip(&t.cells).map(cell).collect(),
            ..model::Test::default()
        })
        .collect();
    for (t, m) in view.tests.iter_mut().zip(&comparison.tests) {
        t.noisy = viewer::is_noisy(m);
        t.little = viewer::has_little_change(m);
        t.spread = viewer::spread(m);
        t.incomplete = t.cells.iter().any(|c| c.summary.is_none());
    }
    let heads: Vec<usize> = (0..view.tests.len()).filter(|i| view.tests[*i].head).collect();
    comparison.tests = heads.iter().map(|i| comparison.tests[*i].clone()).collect();
    for i in viewer::notable(&comparison) {
        view.tests[heads[i]].notable = true;
    }
    view.geometric = viewer::geometric_means(&comparison);
    view.harmonic = viewer::harmonic_means(&comparison);
    view.wins = viewer::wins_and_losses(&comparison);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_in_words() {
        assert_eq!(words("read.clat.p99.9"), "Read latency, 99.9th percentile");
        assert_eq!(words("job/victim/write.bw"), "victim: Write throughput");
        assert_eq!(words("startup_time"), "startup_time");
        assert_eq!(words("job/oddly/named"), "job/oddly/named");
        assert_eq!(words("sync.clat.mean"), "fsync latency, mean");
    }

    #[test]
    fn classes() {
        assert_eq!(class("read.bw", "B/s", Better::Higher), Class::Throughput);
        assert_eq!(class("result", "MB/s", Better::Higher), Class::Throughput);
        assert_eq!(class("startup_time", "s", Better::Lower), Class::Latency);
        assert_eq!(class("fairness.jain", "", Better::Higher), Class::Other);
        let all = BTreeSet::from(["read.clat.mean", "read.clat.p99"]);
        assert!(!is_head("read.clat.mean", &all));
        assert!(is_head("write.clat.mean", &all));
    }
}
