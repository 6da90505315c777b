//! Tables of text: totals, all measures, provenance, and a part per scheduler.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::bars::top;
use super::input::Input;
use super::number::{plain, scale, value};
use super::overview::{of_best, runs_of};
use super::view::{Cell, Class, Run, Test, View};

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
