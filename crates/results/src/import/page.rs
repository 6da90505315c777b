//! A saved page: the rounds that its script draws from, as the page's own "samples as CSV" has them.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::{BackendKind, Metric, Record, SCHEMA, TrialId};
use iosched_types::Diagnostic;
use serde::Deserialize;

/// Where the numbers stand in a page.
const BEGIN: &str = "<script type=\"application/json\" id=\"data\">";
const END: &str = "</script>";

#[derive(Deserialize)]
struct Page {
    devices: Vec<String>,
    schedulers: Vec<String>,
    names: Vec<Name>,
    runs: Vec<Run>,
    workloads: Vec<Workload>,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Name {
    own: Option<String>,
}

#[derive(Deserialize)]
struct Run {
    own: Option<String>,
    #[serde(rename = "d")]
    device: usize,
    #[serde(rename = "s")]
    scheduler: usize,
    kernel: String,
}

#[derive(Deserialize)]
struct Workload {
    #[serde(rename = "t")]
    title: String,
}

#[derive(Deserialize)]
struct Test {
    #[serde(rename = "w")]
    workload: usize,
    #[serde(rename = "m")]
    measure: String,
    #[serde(rename = "u")]
    unit: String,
    #[serde(rename = "b")]
    better: i8,
    #[serde(rename = "v")]
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Cell {
    /// The figures of an earlier run of the same test.
    Like(usize),
    Own(Own),
}

#[derive(Deserialize)]
struct Own {
    #[serde(default)]
    n: usize,
    #[serde(rename = "v")]
    mean: Option<f64>,
    /// Every round has the mean.
    #[serde(default, rename = "x")]
    equal: u8,
    #[serde(rename = "s")]
    samples: Option<Vec<f64>>,
    #[serde(rename = "r")]
    rounds: Option<Vec<u32>>,
    #[serde(default, rename = "cens")]
    censored: usize,
}

/// Most rounds of a cell without samples of its own: as many as experiments may have.
const ROUNDS: usize = 10_000;

impl Own {
    /// The rounds with their values, and whether they lie beyond a limit: those are the largest.
    fn values(&self) -> Vec<(u32, f64, bool)> {
        let values = match (&self.samples, self.mean) {
            (Some(samples), _) => samples.clone(),
            (None, Some(mean)) if self.equal > 0 => vec![mean; self.n.min(ROUNDS)],
            (None, Some(mean)) if self.n == 1 => vec![mean],
            _ => Vec::new(),
        };
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*b].total_cmp(&values[*a]));
        let beyond: BTreeSet<usize> = order.into_iter().take(self.censored).collect();
        let round = |i: usize| {
            let known = self.rounds.as_ref().and_then(|r| r.get(i)).copied();
            known.unwrap_or(u32::try_from(i + 1).unwrap_or(u32::MAX))
        };
        values.iter().enumerate().map(|(i, v)| (round(i), *v, beyond.contains(&i))).collect()
    }
}

/// Reads a page that `iosched report` or the server made. Measures of which it has no rounds are left out.
///
/// # Errors
/// A diagnostic: no page of ours, or a damaged one.
pub fn from_page(file: &str, text: &str) -> Result<Vec<Record>, Diagnostic> {
    let bad = |what: &str| {
        Diagnostic::file(file, format!("not a page of iosched: {what}"))
            .with_help("a page that `iosched report --html` wrote, or samples saved from one as CSV, can be read")
    };
    let data = text.find(BEGIN).map(|at| &text[at + BEGIN.len()..]);
    let data =
        data.and_then(|d| Some(&d[..d.find(END)?])).ok_or_else(|| bad("it has no numbers"))?;
    let page: Page = serde_json::from_str(data).map_err(|e| bad(&e.to_string()))?;
    let mut records: BTreeMap<(usize, usize, u32), Record> = BTreeMap::new();
    for test in &page.tests {
        for (at, run) in page.runs.iter().enumerate() {
            let cell = match test.cells.get(at) {
                Some(Cell::Like(first)) => test.cells.get(*first),
                other => other,
            };
            let Some(Cell::Own(cell)) = cell else { continue };
            for (round, value, censored) in cell.values() {
                let record = match records.entry((at, test.workload, round)) {
                    std::collections::btree_map::Entry::Occupied(e) => e.into_mut(),
                    std::collections::btree_map::Entry::Vacant(e) => {
                        let trial = trial(&page, run, test, round);
                        e.insert(record(
                            trial.ok_or_else(|| bad("its numbers do not fit together"))?,
                        ))
                    }
                };
                record.metrics.push(Metric {
                    name: test.measure.clone(),
                    value,
                    unit: test.unit.clone(),
                    higher_is_better: Some(test.better > 0),
                    censored,
                });
            }
        }
    }
    Ok(records.into_values().collect())
}

fn trial(page: &Page, run: &Run, test: &Test, repetition: u32) -> Option<TrialId> {
    let called =
        || page.names.get(run.scheduler)?.own.as_ref().or(page.schedulers.get(run.scheduler));
    Some(TrialId {
        device: page.devices.get(run.device)?.clone(),
        scheduler: run.own.as_ref().or_else(called)?.clone(),
        kernel: run.kernel.clone(),
        workload: page.workloads.get(test.workload)?.title.clone(),
        repetition,
        ..TrialId::default()
    })
}

fn record(trial: TrialId) -> Record {
    Record { schema: SCHEMA, trial, backend: BackendKind::Imported, ..Record::default() }
}
