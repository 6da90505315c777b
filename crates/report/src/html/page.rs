//! What the template fills in.

use std::collections::{BTreeMap, BTreeSet};

use iosched_results::stats::{Better, merged_percentiles};
use iosched_types::LatencyHistogram;
use serde::Serialize;

use super::curves::{self, Budget, Curve, Span};
use super::input::{Detail, Input};
use super::number::{change, plain, scale, value};
use super::view::{Cell, Class, Run, Test, View, method};

/// A chart of bars that is a table at the same time.
#[derive(Debug, Serialize)]
pub(crate) struct Bars {
    id: usize,
    title: String,
    /// `MB/s, more is better`.
    unit: String,
    flags: Vec<&'static str>,
    groups: Vec<Group>,
}

#[derive(Debug, Serialize)]
struct Group {
    device: String,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    run: usize,
    color: usize,
    label: String,
    /// Per cent of the chart's width; negative when there is no number.
    bar: String,
    ci: Option<(String, String)>,
    samples: Vec<(String, bool)>,
    text: String,
    note: String,
    tip: String,
    verdict: String,
    /// CSS class of the verdict: `vb`, `vw`, `vn`, `ve`.
    shade: String,
    missing: Option<String>,
}

fn percent(x: f64) -> String {
    let t = format!("{x:.2}");
    t.trim_end_matches('0').trim_end_matches('.').into()
}

/// The words of a letter of [`super::view::letter`].
pub(crate) fn verdict_words(c: char) -> &'static str {
    match c {
        'b' => "better",
        'w' => "worse",
        'n' => "no measurable difference",
        'e' => "not enough data",
        'i' => "invalid",
        'B' => "better (exact)",
        'W' => "worse (exact)",
        'N' => "equal (exact)",
        _ => "",
    }
}

fn row(view: &View, test: &Test, run: usize, top: f64, by: (f64, &str)) -> Row {
    let (r, c) = (&view.runs[run], &test.cells[run]);
    let part = |x: f64| percent((x / top * 100.0).clamp(0.0, 100.0));
    let mut out = Row {
        run,
        color: r.scheduler % 12,
        label: view.schedulers[r.scheduler].clone(),
        bar: c.centre().map_or_else(|| "0".into(), part),
        ci: None,
        samples: Vec::new(),
        text: String::new(),
        note: String::new(),
        tip: String::new(),
        verdict: String::new(),
        shade: String::new(),
        missing: c.missing.clone(),
    };
    let (Some(s), Some(v)) = (&c.summary, c.centre()) else { return out };
    let sign = if s.censored > 0 { ">" } else { "" };
    out.text = format!("{sign}{}", plain(v / by.0));
    if s.n > 1 {
        if let Some(ci) = s.ci {
            let (low, high) = ((ci.low / top).clamp(0.0, 1.0), (ci.high / top).clamp(0.0, 1.0));
            out.ci = Some((percent(low * 100.0), percent((high - low) * 100.0)));
            out.note = format!("±{}", plain((ci.high - ci.low) / 2.0 / by.0));
            let (a, b) = (plain(ci.low / by.0), plain(ci.high / by.0));
            out.tip = format!("n = {}, 95 % CI {a} to {b} {} ({})", s.n, by.1, method(ci.method));
        }
        out.samples = c.samples.iter().map(|x| (part(x.0), x.1)).collect();
    }
    let base = view
        .runs
        .iter()
        .position(|b| b.device == r.device && b.scheduler == view.base)
        .filter(|b| *b != run);
    if let Some(b) = base {
        let letter = c.pairs.get(b).copied().unwrap_or('.');
        let ratio = test.cells[b].centre().filter(|x| *x > 0.0).map(|x| v / x);
        let words = verdict_words(letter);
        let lead = ratio.map(change).unwrap_or_default();
        out.verdict = if words.is_empty() { lead } else { format!("{lead} {words}") };
        out.shade = format!("v{}", letter.to_ascii_lowercase()).replace('.', "");
    } else {
        out.verdict = "base".into();
    }
    out
}

/// The largest value drawn.
fn top(test: &Test) -> f64 {
    let of = |c: &Cell| -> f64 {
        let ci = c.summary.as_ref().and_then(|s| s.ci).map_or(0.0, |i| i.high);
        let samples = c.samples.iter().map(|s| s.0).fold(0.0, f64::max);
        c.centre().unwrap_or(0.0).max(ci).max(samples)
    };
    let most = test.cells.iter().map(of).fold(0.0, f64::max);
    if most > 0.0 { most } else { 1.0 }
}

pub(crate) fn direction(test: &Test) -> &'static str {
    match test.better {
        Better::Higher => "more is better",
        Better::Lower => "less is better",
    }
}

pub(crate) fn bars(view: &View, id: usize) -> Bars {
    let test = &view.tests[id];
    let top = top(test);
    let (by, word) = scale(top, &test.unit);
    let rows = |d: usize| -> Vec<Row> {
        (0..view.runs.len())
            .filter(|r| view.runs[*r].device == d)
            .map(|r| row(view, test, r, top, (by, &word)))
            .collect()
    };
    let groups = view
        .devices
        .iter()
        .enumerate()
        .map(|(d, device)| Group { device: device.clone(), rows: rows(d) })
        .collect();
    let comma = if word.is_empty() { "" } else { ", " };
    let flags =
        [(test.noisy, "noisy"), (test.incomplete, "incomplete"), (test.little, "little change")]
            .into_iter()
            .filter_map(|(on, w)| on.then_some(w))
            .collect();
    Bars {
        id,
        title: test.title.clone(),
        unit: format!("{word}{comma}{}", direction(test)),
        flags,
        groups,
    }
}

/// The dot plot of one device.
#[derive(Debug, Serialize)]
pub(crate) struct Overview {
    device: String,
    /// Left end of the logarithmic axis, in per cent of the best.
    low: String,
    rows: Vec<OverviewRow>,
    runs: Vec<Legend>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Legend {
    run: usize,
    color: usize,
    label: String,
}

#[derive(Debug, Serialize)]
struct OverviewRow {
    test: usize,
    label: String,
    measure: String,
    dots: Vec<Dot>,
}

#[derive(Debug, Serialize)]
struct Dot {
    run: usize,
    color: usize,
    /// Place on the axis in per cent; `None` when there is no number.
    at: Option<String>,
    share: String,
}

fn of_best(test: &Test, runs: &[usize]) -> Vec<Option<f64>> {
    let values: Vec<Option<f64>> =
        runs.iter().map(|r| test.cells[*r].centre().filter(|v| *v > 0.0)).collect();
    let best = values.iter().flatten().copied().reduce(match test.better {
        Better::Higher => f64::max,
        Better::Lower => f64::min,
    });
    let relative = |v: f64, best: f64| {
        if test.better == Better::Higher { v / best } else { best / v }
    };
    values.into_iter().map(|v| v.zip(best).map(|(v, b)| relative(v, b))).collect()
}

pub(crate) fn legend(view: &View, runs: &[usize]) -> Vec<Legend> {
    runs.iter()
        .map(|&run| {
            let s = view.runs[run].scheduler;
            Legend { run, color: s % 12, label: view.schedulers[s].clone() }
        })
        .collect()
}

fn runs_of(view: &View, device: usize) -> Vec<usize> {
    (0..view.runs.len()).filter(|r| view.runs[*r].device == device).collect()
}

pub(crate) fn overview(view: &View, input: &Input, device: usize) -> Overview {
    let runs = runs_of(view, device);
    let tests: Vec<usize> = (0..view.tests.len()).filter(|t| view.tests[*t].head).collect();
    let shares: Vec<Vec<Option<f64>>> =
        tests.iter().map(|t| of_best(&view.tests[*t], &runs)).collect();
    let least = shares.iter().flatten().flatten().copied().fold(1.0, f64::min);
    let low = [0.9, 0.8, 0.7, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001]
        .into_iter()
        .find(|x| *x <= least)
        .unwrap_or(0.001);
    let dot = |(run, share): (&usize, &Option<f64>)| Dot {
        run: *run,
        color: view.runs[*run].scheduler % 12,
        at: share.map(|s| percent((1.0 - s.max(low).ln() / f64::ln(low)) * 100.0)),
        share: share.map_or_else(|| "–".into(), |s| format!("{} %", plain(s * 100.0))),
    };
    let rows = tests
        .iter()
        .zip(&shares)
        .map(|(t, s)| OverviewRow {
            test: *t,
            label: input.workloads[view.tests[*t].workload].title.clone(),
            measure: view.tests[*t].title.clone(),
            dots: runs.iter().zip(s).map(dot).collect(),
        })
        .collect();
    let low = format!("{} %", plain(low * 100.0));
    Overview { device: view.devices[device].clone(), low, rows, runs: legend(view, &runs) }
}

/// One line of the table of runs.
#[derive(Debug, Serialize)]
pub(crate) struct Total {
    run: usize,
    color: usize,
    name: String,
    geometric: String,
    harmonic: Vec<String>,
    wins: usize,
    losses: usize,
    trials: u32,
    date: String,
    duration: String,
    complete: String,
}

pub(crate) fn totals(view: &View, input: &Input) -> Vec<Total> {
    let heads: Vec<&Test> = view.tests.iter().filter(|t| t.head).collect();
    let of = |(run, r): (usize, &Run)| {
        let facts = &input.runs[r.from];
        let have = heads.iter().filter(|t| t.cells[run].summary.is_some()).count();
        Total {
            run,
            color: r.scheduler % 12,
            name: r.name.clone(),
            geometric: view.geometric.as_ref().map_or_else(|| "–".into(), |g| plain(g[run])),
            harmonic: view.harmonic.iter().map(|(u, v)| value(v[run], u)).collect(),
            wins: view.wins[run].0,
            losses: view.wins[run].1,
            trials: facts.trials,
            date: facts.date().into(),
            duration: if facts.elapsed == 0 {
                "–".into()
            } else {
                value(facts.elapsed as f64, "ns")
            },
            complete: format!("{have} of {}", heads.len()),
        }
    };
    view.runs.iter().enumerate().map(of).collect()
}

/// A table of text.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<TableRow>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct TableRow {
    /// The run, where the line belongs to one.
    pub(crate) run: Option<usize>,
    pub(crate) head: String,
    pub(crate) cells: Vec<String>,
}

/// Pictures and tables of a workload on one device.
#[derive(Debug, Serialize)]
pub(crate) struct Pictures {
    device: String,
    runs: Vec<Legend>,
    lines: Vec<(String, String)>,
    ways: Vec<(usize, String, String)>,
    shares: Vec<Shares>,
    tables: Vec<Table>,
}

#[derive(Debug, Serialize)]
struct Shares {
    run: usize,
    label: String,
    parts: Vec<(String, String, usize)>,
    jain: String,
}

const SIDES: [(&str, &str); 4] = [
    ("read", "Read latency"),
    ("write", "Write latency"),
    ("trim", "Trim latency"),
    ("sync", "fsync latency"),
];

/// A curve over time: step in s, values.
type Timed = Option<(f64, Vec<f64>)>;

type Found<'a> = Vec<(usize, &'a Detail)>;

fn percentile_table(view: &View, found: &Found<'_>, side: usize) -> Option<Table> {
    let mut t = Table { title: format!("{} percentiles", SIDES[side].1), ..Table::default() };
    t.head = ["p50", "p90", "p95", "p99", "p99.9", "p99.95", "p99.99", "largest", "I/Os"]
        .map(String::from)
        .into();
    for (run, d) in found {
        let h: &LatencyHistogram = &d.latency[side];
        if h.count() == 0 {
            continue;
        }
        let mut cells: Vec<String> = merged_percentiles([h])
            .into_iter()
            .map(|(_, v)| v.map_or_else(|| "–".into(), |v| value(v as f64, "ns")))
            .collect();
        cells.push(value(h.max() as f64, "ns"));
        cells.push(plain(h.count() as f64));
        let head = view.schedulers[view.runs[*run].scheduler].clone();
        t.rows.push(TableRow { run: Some(*run), head, cells });
    }
    (!t.rows.is_empty()).then_some(t)
}

fn device_table(view: &View, found: &Found<'_>) -> Option<Table> {
    let head = [
        "throughput, mean",
        "largest",
        "queue, mean",
        "largest",
        "in flight, largest",
        "commands",
        "merges",
        "seeks",
        "head travel (sectors)",
        "busy",
        "idled",
    ];
    let mut t = Table {
        title: "Queue and device".into(),
        head: head.map(String::from).into(),
        ..Table::default()
    };
    for (run, d) in found {
        let s = d.device;
        if s.commands == 0 && d.throughput.is_none() && d.queue.is_none() {
            continue;
        }
        let curve = |c: &Timed, unit: &str| match c {
            Some((_, v)) => {
                let mean = v.iter().sum::<f64>() / v.len() as f64;
                [value(mean, unit), value(v.iter().copied().fold(0.0, f64::max), unit)]
            }
            None => ["–".into(), "–".into()],
        };
        let each = |x: u64| plain(x as f64 / f64::from(d.complete.max(1)));
        let share = |x: u64| {
            if d.elapsed == 0 {
                "–".into()
            } else {
                format!("{} %", plain(x as f64 * 100.0 / d.elapsed as f64))
            }
        };
        let mut cells: Vec<String> = curve(&d.throughput, "B/s").into();
        cells.extend(curve(&d.queue, ""));
        cells.push(plain(f64::from(s.max_in_flight)));
        cells.extend([s.commands, s.merges, s.seeks, s.travel].map(each));
        cells.extend([share(s.busy), share(s.idled)]);
        let head = view.schedulers[view.runs[*run].scheduler].clone();
        t.rows.push(TableRow { run: Some(*run), head, cells });
    }
    (!t.rows.is_empty()).then_some(t)
}

fn shares(view: &View, found: &Found<'_>) -> Vec<Shares> {
    let mut out = Vec::new();
    for (run, d) in found {
        let total: u64 = d.shares.iter().map(|s| s.1).sum();
        if d.shares.len() < 2 || total == 0 {
            continue;
        }
        let rates: Vec<f64> = d.shares.iter().map(|s| s.1 as f64).collect();
        let part = |(i, s): (usize, &(String, u64))| {
            let p = s.1 as f64 * 100.0 / total as f64;
            (s.0.clone(), percent(p), i % 12)
        };
        out.push(Shares {
            run: *run,
            label: view.schedulers[view.runs[*run].scheduler].clone(),
            parts: d.shares.iter().enumerate().map(part).collect(),
            jain: iosched_results::stats::jain(&rates).map(plain).unwrap_or_default(),
        });
    }
    out
}

fn lines(view: &View, workload: &str, found: &Found<'_>, budget: Budget) -> Vec<(String, String)> {
    let curve = |f: &dyn Fn(&Detail) -> Vec<(f64, f64)>| -> Vec<Curve> {
        let of = |(run, d): &(usize, &Detail)| Curve {
            run: *run,
            scheduler: view.runs[*run].scheduler,
            points: f(d),
        };
        found.iter().map(of).filter(|c| !c.points.is_empty()).collect()
    };
    let mut out = Vec::new();
    let mut put = |title: &str, svg: Option<String>| {
        if let Some(svg) = svg {
            out.push((title.to_string(), svg));
        }
    };
    for (side, (_, name)) in SIDES.iter().enumerate() {
        let c =
            curve(&|d| curves::distribution(&d.latency[side], (budget.curve / 3).clamp(16, 60)));
        let c = c.into_iter().filter(|c| c.points.len() > 1).collect::<Vec<_>>();
        let title = format!("{name}: share of I/Os that took at most so long");
        put(&title, curves::latency(&format!("{title}, {workload}"), &c));
    }
    let over = |f: fn(&Detail) -> &Timed| {
        curve(&|d| f(d).as_ref().map(|c| curves::points(c, budget.curve)).unwrap_or_default())
    };
    let c = over(|d| &d.throughput);
    put(
        "Throughput over time",
        curves::over_time(&format!("Throughput over time, {workload}"), "B/s", &c),
    );
    let c = over(|d| &d.queue);
    put(
        "Queue depth over time",
        curves::over_time(&format!("Queue depth over time, {workload}"), "", &c),
    );
    out
}

pub(crate) fn pictures(
    view: &View,
    input: &Input,
    workload: usize,
    device: usize,
    budget: Budget,
) -> Pictures {
    let runs = runs_of(view, device);
    let found: Found<'_> = runs
        .iter()
        .filter_map(|r| Some((*r, input.details.get(&(view.runs[*r].from, workload))?)))
        .collect();
    let title = &input.workloads[workload].title;
    let span = Span::of(found.iter().map(|f| f.1));
    let way = |(run, d): &(usize, &Detail)| {
        let name = view.schedulers[view.runs[*run].scheduler].clone();
        let svg = curves::dispatches(
            &format!("Sector over time, {name}, {title}"),
            d,
            span?,
            budget.commands,
        )?;
        Some((*run, name, svg))
    };
    let tables =
        (0..4).filter_map(|s| percentile_table(view, &found, s)).chain(device_table(view, &found));
    let shown: BTreeSet<usize> = found.iter().filter(|f| f.1.complete > 0).map(|f| f.0).collect();
    Pictures {
        device: view.devices[device].clone(),
        lines: lines(view, title, &found, budget),
        ways: found.iter().filter_map(way).collect(),
        shares: shares(view, &found),
        tables: tables.collect(),
        runs: legend(view, &shown.into_iter().collect::<Vec<_>>()),
    }
}

impl Pictures {
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
            && self.ways.is_empty()
            && self.shares.is_empty()
            && self.tables.is_empty()
    }
}

/// All measures of a workload as one table.
pub(crate) fn details(view: &View, workload: usize) -> Table {
    let mut t = Table { title: "All measures".into(), ..Table::default() };
    t.head = view.runs.iter().map(|r| r.name.clone()).collect();
    for test in view.tests.iter().filter(|t| t.workload == workload) {
        let (by, word) = scale(top(test), &test.unit);
        let gap = if word.is_empty() { String::new() } else { format!(" [{word}]") };
        let of = |c: &Cell| match (&c.summary, c.centre()) {
            (Some(s), Some(v)) => {
                format!("{}{}", if s.censored > 0 { ">" } else { "" }, plain(v / by))
            }
            _ => "–".into(),
        };
        let cells = test.cells.iter().map(of).collect();
        t.rows.push(TableRow { run: None, head: format!("{}{gap}", test.title), cells });
    }
    t
}

/// The facts of the runs: those all share, and those that differ.
pub(crate) fn provenance(view: &View, input: &Input) -> (Vec<(String, String)>, Table) {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let n = view.runs.len();
    let join = |v: &BTreeSet<String>| v.iter().cloned().collect::<Vec<_>>().join("; ");
    for (i, r) in view.runs.iter().enumerate() {
        let f = &input.runs[r.from];
        let mut put = |k: &str, v: String| {
            let row = all.entry(k.into()).or_insert_with(|| vec![String::new(); n]);
            row[i] = v;
        };
        f.facts.iter().for_each(|(k, v)| put(k, join(v)));
        if !f.kernel.is_empty() {
            put("kernel", f.kernel.clone());
        }
        put("backend", format!("{:?}", f.backend).to_lowercase());
        put("device", f.device.clone());
    }
    let (same, differ): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, v)| v.iter().all(|x| *x == v[0]));
    let mut t =
        Table { head: view.runs.iter().map(|r| r.name.clone()).collect(), ..Table::default() };
    t.rows = differ.into_iter().map(|(head, cells)| TableRow { run: None, head, cells }).collect();
    (same.into_iter().map(|(k, mut v)| (k, v.swap_remove(0))).collect(), t)
}

/// A scheduler's part of the page.
#[derive(Debug, Serialize)]
pub(crate) struct SchedulerPart {
    name: String,
    color: usize,
    kernels: String,
    /// Best and worst places by class, in words.
    strengths: Vec<String>,
    tunables: Vec<(String, String)>,
}

pub(crate) fn schedulers(view: &View, input: &Input) -> Vec<SchedulerPart> {
    let of = |(s, name): (usize, &String)| {
        let runs: Vec<&Run> = view.runs.iter().filter(|r| r.scheduler == s).collect();
        let kernels: BTreeSet<&str> =
            runs.iter().map(|r| input.runs[r.from].kernel.as_str()).collect();
        let mut tunables: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        for r in &runs {
            for (k, v) in &input.runs[r.from].tunables {
                tunables.entry(k.clone()).or_default().extend(v);
            }
        }
        let text = |v: &BTreeSet<i64>| v.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        SchedulerPart {
            name: name.clone(),
            color: s % 12,
            kernels: kernels.into_iter().filter(|k| !k.is_empty()).collect::<Vec<_>>().join(", "),
            strengths: strengths(view, s),
            tunables: tunables.iter().map(|(k, v)| (k.clone(), text(v))).collect(),
        }
    };
    view.schedulers.iter().enumerate().map(of).collect()
}

/// `HDD: 93 % of the best throughput`: the geometric mean over the tests it has.
fn strengths(view: &View, scheduler: usize) -> Vec<String> {
    let mut out = Vec::new();
    for (d, device) in view.devices.iter().enumerate() {
        let runs = runs_of(view, d);
        let Some(at) = runs.iter().position(|r| view.runs[*r].scheduler == scheduler) else {
            continue;
        };
        for (class, word) in
            [(Class::Throughput, "throughput"), (Class::Latency, "speed where less is better")]
        {
            let shares: Vec<f64> = view
                .tests
                .iter()
                .filter(|t| t.head && t.class == class)
                .filter_map(|t| of_best(t, &runs)[at])
                .collect();
            if shares.is_empty() {
                continue;
            }
            let mean = (shares.iter().map(|s| s.ln()).sum::<f64>() / shares.len() as f64).exp();
            let over =
                if shares.len() == 1 { "1 test".into() } else { format!("{} tests", shares.len()) };
            out.push(format!("{device}: {} % of the best {word} ({over})", plain(mean * 100.0)));
        }
    }
    out
}
