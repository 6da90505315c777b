//! What a workload shows beside its bars: curves, the head's way, shares of the processes, percentiles.

use std::collections::BTreeSet;

use iosched_results::stats::merged_percentiles;
use serde::Serialize;

use super::bars::percent;
use super::curves::{self, Budget, Curve, Span};
use super::input::{Detail, Input};
use super::number::{plain, value};
use super::overview::{Legend, legend, runs_of};
use super::tables::{Table, TableRow};
use super::view::View;

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
        let Some(h) = &d.latency[side] else { continue };
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
        let each = |x: u64| plain(x as f64 / f64::from(d.summed.max(1)));
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
        let c = curve(&|d| match &d.latency[side] {
            Some(h) => curves::distribution(h, (budget.curve / 3).clamp(16, 60)),
            None => Vec::new(),
        });
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
