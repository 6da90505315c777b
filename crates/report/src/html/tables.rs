//! Tables of text: totals, all measures, provenance, and a part per scheduler.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use iosched_experiment::warm_up::UNMEASURED;
use iosched_results::stats::Better;
use iosched_results::verdict::{SHORTENED, UNSTEADY, UNWARMED, WARM_UP, WARMED_UP, short};

use super::input::Input;
use super::matrix::figure;
use super::number::{plain, scale, value};
use super::strip::runs_of;
use super::view::{Cell, Class, Run, Test, View};

/// A table of text.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    /// The runs of the columns, where they belong to runs.
    pub(crate) runs: Vec<usize>,
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

/// A mean with the digits that the reference viewer gives.
fn mean(x: f64, unit: &str) -> String {
    let (by, word) = scale(x, unit);
    format!("{} {word}", plain(x / by)).trim_end().into()
}

pub(crate) fn totals(view: &View, input: &Input) -> Vec<Total> {
    let heads: Vec<&Test> = view.tests.iter().filter(|t| t.head).collect();
    let of = |(run, r): (usize, &Run)| {
        let facts = &input.runs[r.from];
        let have = heads.iter().filter(|t| t.cells[run].summary.is_some()).count();
        Total {
            run,
            name: r.name.clone(),
            geometric: view.geometric.as_ref().map_or_else(|| "–".into(), |g| plain(g[run])),
            harmonic: view.harmonic.iter().map(|(u, v)| mean(v[run], u)).collect(),
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

/// The measures of a workload on a device that are not shown at first.
pub(crate) fn details(view: &View, workload: usize, device: usize) -> Table {
    let runs = runs_of(view, device);
    let short = |r: &usize| view.names[view.runs[*r].scheduler].short.clone();
    let mut t = Table {
        title: view.devices[device].clone(),
        head: runs.iter().map(short).collect(),
        runs: runs.clone(),
        ..Table::default()
    };
    for test in view.tests.iter().filter(|t| t.workload == workload && (t.twin || !t.head)) {
        let of = |c: &Cell| match (&c.summary, c.centre()) {
            (Some(s), Some(v)) => {
                format!("{}{}", if s.censored > 0 { ">" } else { "" }, figure(test, v))
            }
            _ => "–".into(),
        };
        let cells: Vec<String> = runs.iter().map(|r| of(&test.cells[*r])).collect();
        if cells.iter().any(|c| c != "–") {
            t.rows.push(TableRow { run: None, head: test.title.clone(), cells });
        }
    }
    t
}

/// What is said of how it was measured, in the terminal's words; `None` of all else, `Some(None)` of what says nothing here.
fn told<'a>(key: &'a str, value: &str) -> Option<Option<(&'a str, String)>> {
    let all = || {
        let of = |ms: &str| ms.parse::<u64>().map_or(ms.into(), |ms| short(ms * 1_000_000));
        value.split("; ").map(of).collect::<Vec<String>>().join("; ")
    };
    Some(match key {
        WARMED_UP => Some(("warm-up", all())),
        SHORTENED => Some(("shortened for --budget, from", all())),
        UNSTEADY => Some(("not steady", value.into())),
        UNWARMED => Some(("no warm-up", value.into())),
        WARM_UP | UNMEASURED => None,
        _ => return None,
    })
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
        for (k, v) in &f.facts {
            let v = join(v);
            if let Some((k, v)) = told(k, &v).unwrap_or(Some((k, v))) {
                put(k, v);
            }
        }
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

/// A scheduler's line in the table of what differs.
#[derive(Debug, Serialize)]
pub(crate) struct SchedulerPart {
    name: String,
    /// Without its version where the page has only one of the family.
    short: String,
    /// The kernels that behave so.
    behaves: String,
    /// What is special about its version.
    special: String,
    /// Whether the trials' kernel has it, and why not.
    there: String,
    kernels: String,
    /// Best and worst places by class, in words.
    strengths: Vec<String>,
    tunables: String,
}

pub(crate) fn schedulers(view: &View, input: &Input) -> Vec<SchedulerPart> {
    let of = |(s, name): (usize, &String)| {
        let runs: Vec<&Run> = view.runs.iter().filter(|r| r.scheduler == s).collect();
        let kernels: BTreeSet<&str> =
            runs.iter().map(|r| input.runs[r.from].kernel.as_str()).collect();
        let mut tunables: BTreeMap<&str, BTreeMap<usize, BTreeSet<i64>>> = BTreeMap::new();
        for r in &runs {
            for (k, v) in &input.runs[r.from].tunables {
                tunables.entry(k).or_default().entry(r.device).or_default().extend(v);
            }
        }
        SchedulerPart {
            name: name.clone(),
            short: view.names[s].short.clone(),
            behaves: view.names[s].meaning.kernels.clone(),
            special: view.names[s].meaning.summary.clone(),
            there: view.names[s].meaning.absence.to_string(),
            kernels: kernels.into_iter().filter(|k| !k.is_empty()).collect::<Vec<_>>().join(", "),
            strengths: strengths(view, s),
            tunables: tunables
                .iter()
                .map(|(k, by_device)| in_force(view, k, by_device))
                .collect::<Vec<_>>()
                .join(", "),
        }
    };
    view.schedulers.iter().enumerate().map(of).collect()
}

/// A tunable with its value. Where it is not the same on all devices, as some defaults of rotating disks, each value has
/// its devices: `slice_idle 8 (hdd) / 0 (ssd)`.
fn in_force(view: &View, name: &str, by_device: &BTreeMap<usize, BTreeSet<i64>>) -> String {
    let text = |v: &BTreeSet<i64>| v.iter().map(i64::to_string).collect::<Vec<_>>().join(" or ");
    let mut values: Vec<(&BTreeSet<i64>, Vec<&str>)> = Vec::new();
    for (device, v) in by_device {
        match values.iter_mut().find(|known| known.0 == v) {
            Some(known) => known.1.push(&view.devices[*device]),
            None => values.push((v, vec![&view.devices[*device]])),
        }
    }
    let one = |(v, devices): &(&BTreeSet<i64>, Vec<&str>)| match values.len() {
        1 => text(v),
        _ => format!("{} ({})", text(v), devices.join(", ")),
    };
    format!("{name} {}", values.iter().map(one).collect::<Vec<_>>().join(" / "))
}

/// What part of the best each of some runs reaches.
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
                .filter(|t| t.head && !t.told && t.class == class)
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
