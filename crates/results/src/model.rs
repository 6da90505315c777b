//! The comparison as result viewers know it: runs side by side, tests below each other, samples in the cells.

use std::collections::BTreeMap;

use iosched_experiment::record::{BackendKind, Metric, Record, SCHEMA, Status, TrialId};
use serde::{Deserialize, Serialize};

use crate::measure::measures;
use crate::stats::{Better, Observation, Summary, summarize};

/// Runs × tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Comparison {
    /// Title.
    pub title: String,
    /// A sentence or two.
    pub description: String,
    /// When it was last changed, as the source prints it.
    pub modified: String,
    /// Program that made it.
    pub client: String,
    /// The runs, in the source's order.
    pub runs: Vec<Run>,
    /// The tests, in the source's order.
    pub tests: Vec<Test>,
}

/// One run: a system or a setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Its name, unique.
    pub name: String,
    /// Device under test; empty when not known apart from the name.
    pub device: String,
    /// Scheduler; empty when not known apart from the name.
    pub scheduler: String,
    /// Kernel.
    pub kernel: String,
    /// Hardware in words.
    pub hardware: String,
    /// Software in words.
    pub software: String,
    /// Who ran it.
    pub user: String,
    /// When.
    pub timestamp: String,
    /// Version of the program that ran it.
    pub client_version: String,
    /// Notes.
    pub notes: String,
    /// Named facts: `disk-scheduler`, `disk-mount-options`, …
    pub facts: BTreeMap<String, String>,
}

/// One test: benchmark × options × unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Test {
    /// Identifier with version: `pts/fs-mark-1.0.0`.
    pub identifier: String,
    /// Title: `FS-Mark`.
    pub title: String,
    /// Version of the program tested.
    pub version: String,
    /// Command-line arguments.
    pub arguments: String,
    /// Options in words.
    pub description: String,
    /// Unit.
    pub unit: String,
    /// Which way is better; `None` when neither is.
    pub better: Option<Better>,
    /// How the source draws it; `BAR_GRAPH` when empty.
    pub display: String,
    /// One cell per run that has one.
    pub cells: Vec<Cell>,
}

/// One result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cell {
    /// Name of the run.
    pub run: String,
    /// The value as published (mostly the mean); `None` when missing.
    pub value: Option<f64>,
    /// The samples, when published.
    pub samples: Vec<f64>,
    /// What was published in place of the samples.
    pub summary: Option<PublishedSummary>,
    /// Why there is no value.
    pub missing: Option<String>,
    /// The value is a limit that was exceeded.
    pub censored: bool,
}

/// A summary that stands for samples nobody has any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedSummary {
    /// Samples.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Standard error.
    pub se: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl Cell {
    /// Statistics of the cell; `None` when it is missing.
    #[must_use]
    pub fn statistics(&self) -> Option<Summary> {
        let value = self.value?;
        if let (true, Some(p)) = (self.samples.is_empty(), self.summary) {
            return Some(Summary::published(p.n, p.mean, p.se, p.min, p.max));
        }
        let observation = |value: f64| Observation { value, censored: self.censored };
        let samples: Vec<Observation> = if self.samples.is_empty() {
            vec![observation(value)]
        } else {
            self.samples.iter().copied().map(observation).collect()
        };
        Some(summarize(&samples, 1))
    }
}

impl Test {
    /// The cell of a run.
    #[must_use]
    pub fn cell(&self, run: &str) -> Option<&Cell> {
        self.cells.iter().find(|c| c.run == run)
    }

    /// `FS-Mark 3.3: Test: 1000 Files, 1MB Size`.
    #[must_use]
    pub fn name(&self) -> String {
        let mut out = self.title.clone();
        for (separator, part) in [(" ", &self.version), (": ", &self.description)] {
            if !part.is_empty() {
                out.push_str(separator);
                out.push_str(part);
            }
        }
        out
    }
}

impl Comparison {
    /// The tests that lack a value for some run: shown as incomplete, never dropped.
    #[must_use]
    pub fn incomplete(&self) -> Vec<(usize, Vec<&str>)> {
        let lacking = |t: &Test| -> Vec<&str> {
            self.runs
                .iter()
                .map(|r| r.name.as_str())
                .filter(|r| t.cell(r).is_none_or(|c| c.value.is_none()))
                .collect()
        };
        self.tests
            .iter()
            .enumerate()
            .map(|(i, t)| (i, lacking(t)))
            .filter(|(_, l)| !l.is_empty())
            .collect()
    }

    /// As records: one per run, test and sample, so that imported results are stored, judged and shown like own
    /// ones. Missing cells become failed records with the reason.
    #[must_use]
    pub fn to_records(&self) -> Vec<Record> {
        let mut out = Vec::new();
        let names = unique_names(&self.tests);
        for run in &self.runs {
            for (test, workload) in self.tests.iter().zip(&names) {
                let absent = Cell {
                    run: run.name.clone(),
                    missing: Some("not in the source".into()),
                    ..Cell::default()
                };
                let cell = test.cell(&run.name).unwrap_or(&absent);
                out.extend(cell_records(self, run, test, workload, cell));
            }
        }
        out
    }

    /// From records: one run per device, scheduler and kernel, one test per workload and measure, one sample per
    /// complete repetition.
    #[must_use]
    pub fn from_records(title: &str, records: &[Record]) -> Comparison {
        let mut out = Comparison {
            title: title.into(),
            client: concat!("iosched ", env!("CARGO_PKG_VERSION")).into(),
            ..Comparison::default()
        };
        let several = |f: fn(&TrialId) -> &String| {
            records.windows(2).any(|w| f(&w[0].trial) != f(&w[1].trial))
        };
        let (devices, kernels) = (several(|t| &t.device), several(|t| &t.kernel));
        for r in records {
            let name = run_name(r, devices, kernels);
            if !out.runs.iter().any(|x| x.name == name) {
                out.runs.push(run_of(r, &name));
            }
            add_measures(&mut out.tests, &name, r);
        }
        for cell in out.tests.iter_mut().flat_map(|t| &mut t.cells) {
            cell.value = crate::stats::mean_of(&cell.samples).or(cell.value);
        }
        out
    }
}

fn run_name(r: &Record, devices: bool, kernels: bool) -> String {
    let t = &r.trial;
    let mut name =
        if devices { format!("{}: {}", t.device, t.scheduler) } else { t.scheduler.clone() };
    if kernels {
        name.push_str(&format!(" ({})", t.kernel));
    }
    name
}

fn run_of(r: &Record, name: &str) -> Run {
    let mut facts = r.provenance.clone();
    for (k, v) in &r.scheduler.tunables {
        facts.insert(format!("tunable.{k}"), v.to_string());
    }
    facts.insert("disk-scheduler".into(), r.trial.scheduler.clone());
    Run {
        name: name.into(),
        device: r.trial.device.clone(),
        scheduler: r.trial.scheduler.clone(),
        kernel: r.trial.kernel.clone(),
        hardware: format!("Disk: {}", r.trial.device),
        software: format!("Kernel: {}", r.trial.kernel),
        facts,
        ..Run::default()
    }
}

fn add_measures(tests: &mut Vec<Test>, run: &str, r: &Record) {
    let workload = &r.trial.workload;
    let usable = r.status == Status::Complete;
    for m in measures(r) {
        let at = tests
            .iter()
            .position(|t| t.title == *workload && t.description == m.name && t.unit == m.unit);
        let at = at.unwrap_or_else(|| {
            tests.push(Test {
                identifier: format!("iosched/{}-1.0.0", slug(workload)),
                title: workload.clone(),
                description: m.name.clone(),
                unit: m.unit.clone(),
                better: Some(m.better),
                ..Test::default()
            });
            tests.len() - 1
        });
        let cells = &mut tests[at].cells;
        if !cells.iter().any(|c| c.run == run) {
            cells.push(Cell { run: run.into(), ..Cell::default() });
        }
        let Some(cell) = cells.iter_mut().find(|c| c.run == run) else { continue };
        if usable {
            cell.samples.push(m.value);
            cell.censored |= m.censored;
        } else if let Status::Failed(why) | Status::Invalid(why) = &r.status {
            cell.missing.get_or_insert_with(|| why.clone());
        }
    }
}

fn slug(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect()
}

/// Names of the tests; those that share one get their unit added, and a number if that is not enough.
fn unique_names(tests: &[Test]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for t in tests {
        let plain = t.name();
        let shared = tests.iter().filter(|o| o.name() == plain).count() > 1;
        let mut name = if shared { format!("{plain} [{}]", t.unit) } else { plain };
        while out.contains(&name) {
            name.push('\'');
        }
        out.push(name);
    }
    out
}

fn cell_records(
    c: &Comparison,
    run: &Run,
    test: &Test,
    workload: &str,
    cell: &Cell,
) -> Vec<Record> {
    let mut provenance = run.facts.clone();
    for (key, value) in [
        ("run", &run.name),
        ("hardware", &run.hardware),
        ("software", &run.software),
        ("notes", &run.notes),
        ("timestamp", &run.timestamp),
        ("tool", &c.client),
        ("test", &test.identifier),
        ("arguments", &test.arguments),
    ] {
        if !value.is_empty() {
            provenance.insert(key.into(), value.clone());
        }
    }
    if let (true, Some(s)) = (cell.samples.is_empty(), &cell.summary) {
        provenance.insert(
            "published-summary".into(),
            format!("n={} mean={} se={} min={} max={}", s.n, s.mean, s.se, s.min, s.max),
        );
    }
    let mut record = Record {
        schema: SCHEMA,
        trial: TrialId {
            experiment: c.title.clone(),
            device: run.device.clone(),
            scheduler: if run.scheduler.is_empty() {
                run.name.clone()
            } else {
                run.scheduler.clone()
            },
            kernel: run.kernel.clone(),
            workload: workload.into(),
            repetition: 1,
            seed: 0,
        },
        backend: BackendKind::Imported,
        provenance,
        ..Record::default()
    };
    let Some(value) = cell.value else {
        record.status = Status::Failed(cell.missing.clone().unwrap_or_else(|| "no value".into()));
        return vec![record];
    };
    let values = if cell.samples.is_empty() { std::slice::from_ref(&value) } else { &cell.samples };
    let repeat = |(i, v): (usize, &f64)| {
        let mut r = record.clone();
        r.trial.repetition = i as u32 + 1;
        r.metrics.push(Metric {
            name: if test.description.is_empty() {
                "result".into()
            } else {
                test.description.clone()
            },
            value: *v,
            unit: test.unit.clone(),
            higher_is_better: test.better != Some(Better::Lower),
            censored: cell.censored,
        });
        r
    };
    values.iter().enumerate().map(repeat).collect()
}
