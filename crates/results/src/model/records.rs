//! Comparisons as records, and records as a comparison.

use std::collections::BTreeMap;

use iosched_experiment::record::{
    BackendKind, HALVES_DIFFER, Metric, Record, SCHEMA, Status, TrialId, Warning,
};

use super::{Cell, Comparison, Run, Test};
use crate::compare::volatile;
use crate::measure::measures;
use crate::stats::Better;
use crate::store::backend_kind;

impl Comparison {
    /// As records: one per run, test and sample, so that imported results are stored, judged and shown like own
    /// ones. Missing cells become failed records with the reason.
    #[must_use]
    pub fn to_records(&self) -> Vec<Record> {
        let mut out: Vec<Record> = Vec::new();
        let names = unique_names(&self.tests);
        // Our own tests are measures of a workload. They go back into the trials that they came from.
        let mut trials: BTreeMap<TrialId, usize> = BTreeMap::new();
        for run in &self.runs {
            for test in self.tests.iter().filter(|t| t.is_ours()) {
                for r in
                    test.cell(&run.name).into_iter().flat_map(|c| own_records(self, run, test, c))
                {
                    let at = *trials.entry(r.trial.clone()).or_insert(out.len());
                    match out.get_mut(at) {
                        Some(known) => known.metrics.extend(r.metrics),
                        None => out.push(r),
                    }
                }
            }
            for (test, workload) in self.tests.iter().zip(&names).filter(|(t, _)| !t.is_ours()) {
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
            let name = r.provenance.get("run").cloned();
            let name = name.unwrap_or_else(|| run_name(r, devices, kernels));
            if let Some(client) = r.provenance.get("tool").filter(|_| foreign(r)) {
                out.client.clone_from(client);
            }
            let at = out.runs.iter().position(|x| x.name == name).unwrap_or_else(|| {
                out.runs.push(run_of(r, &name));
                out.runs.len() - 1
            });
            add_measures(&mut out.tests, &out.runs[at], r);
        }
        for cell in out.tests.iter_mut().flat_map(|t| &mut t.cells) {
            cell.value = crate::stats::mean_of(&cell.samples).or(cell.value);
            // Where all samples are alike, the cell says it.
            if cell.exceeded.iter().all(|e| *e == cell.censored) {
                cell.exceeded.clear();
            }
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

/// What a record keeps of another program's comparison, beside the facts of its run.
const KEPT: [&str; 13] = [
    "run",
    "hardware",
    "software",
    "notes",
    "timestamp",
    "user",
    "client_version",
    "tool",
    "test",
    "title",
    "version",
    "arguments",
    "published-summary",
];
/// Begins the identifiers of tests that we made.
pub(super) const OURS: &str = "iosched/";
const BACKEND: &str = "iosched.backend";
const TUNABLE: &str = "tunable.";
const DISK_SCHEDULER: &str = "disk-scheduler";

/// Whether a record was read from another program's comparison.
fn foreign(r: &Record) -> bool {
    r.provenance.contains_key("test")
}

fn run_of(r: &Record, name: &str) -> Run {
    if foreign(r) {
        let kept = |key: &str| r.provenance.get(key).cloned().unwrap_or_default();
        let facts = r.provenance.iter().filter(|(k, _)| !KEPT.contains(&k.as_str()));
        return Run {
            name: name.into(),
            device: r.trial.device.clone(),
            scheduler: r.trial.scheduler.clone(),
            kernel: r.trial.kernel.clone(),
            hardware: kept("hardware"),
            software: kept("software"),
            user: kept("user"),
            timestamp: kept("timestamp"),
            client_version: kept("client_version"),
            notes: kept("notes"),
            facts: facts.map(|(k, v)| (k.clone(), v.clone())).collect(),
        };
    }
    Run {
        name: name.into(),
        device: r.trial.device.clone(),
        scheduler: r.trial.scheduler.clone(),
        kernel: r.trial.kernel.clone(),
        hardware: format!("Disk: {}", r.trial.device),
        software: format!("Kernel: {}", r.trial.kernel),
        facts: facts_of(r),
        ..Run::default()
    }
}

/// All that a record of ours says of its conditions.
fn facts_of(r: &Record) -> BTreeMap<String, String> {
    let mut facts = r.provenance.clone();
    facts.insert(BACKEND.into(), r.backend.traits().name.into());
    for (k, v) in &r.scheduler.tunables {
        facts.insert(format!("{TUNABLE}{k}"), v.to_string());
    }
    facts.insert(DISK_SCHEDULER.into(), r.trial.scheduler.clone());
    facts
}

/// In what the conditions of a record differ from those of the run that it stands under.
fn apart(run: &Run, r: &Record) -> BTreeMap<String, Option<String>> {
    let own = facts_of(r);
    let names = run.facts.keys().chain(own.keys()).filter(|k| !volatile(k));
    let differs = names.filter(|k| run.facts.get(*k) != own.get(*k));
    differs.map(|k| (k.clone(), own.get(k).cloned())).collect()
}

fn add_measures(tests: &mut Vec<Test>, of: &Run, r: &Record) {
    let run = of.name.as_str();
    let workload = &r.trial.workload;
    let usable = r.status == Status::Complete;
    let kept = |key: &str| r.provenance.get(key).cloned().unwrap_or_default();
    for m in measures(r) {
        let test = if foreign(r) {
            Test {
                identifier: kept("test"),
                title: kept("title"),
                version: kept("version"),
                arguments: kept("arguments"),
                description: if m.name == "result" { String::new() } else { m.name.clone() },
                unit: m.unit.clone(),
                better: Some(m.better),
                ..Test::default()
            }
        } else {
            Test {
                identifier: format!("{OURS}{}-1.0.0", slug(workload)),
                title: workload.clone(),
                description: m.name.clone(),
                unit: m.unit.clone(),
                better: Some(m.better),
                ..Test::default()
            }
        };
        let same =
            |t: &Test| Test { cells: Vec::new(), display: String::new(), ..t.clone() } == test;
        let at = tests.iter().position(same).unwrap_or_else(|| {
            tests.push(test);
            tests.len() - 1
        });
        let cells = &mut tests[at].cells;
        if !cells.iter().any(|c| c.run == run) {
            let facts = if foreign(r) { BTreeMap::new() } else { apart(of, r) };
            cells.push(Cell { run: run.into(), facts, ..Cell::default() });
        }
        let Some(cell) = cells.iter_mut().find(|c| c.run == run) else { continue };
        if usable {
            cell.samples.push(m.value);
            cell.exceeded.push(m.censored);
            if !foreign(r) && r.halves_differ() {
                cell.unsteady.push(r.trial.repetition);
            }
            if !foreign(r) {
                cell.rounds.push((r.trial.repetition, r.trial.seed));
            }
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

/// Names of the tests. Tests that share a name get their unit added, and a number if that is not enough.
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

/// The trials of a test of ours, one measure each, as they were before they were exported.
fn own_records(c: &Comparison, run: &Run, test: &Test, cell: &Cell) -> Vec<Record> {
    let mut out = cell_records(c, run, test, &test.title, cell);
    let mut facts = run.facts.clone();
    for (k, v) in &cell.facts {
        match v {
            Some(v) => facts.insert(k.clone(), v.clone()),
            None => facts.remove(k),
        };
    }
    let backend = facts.get(BACKEND).map_or(BackendKind::Imported, |w| backend_kind(w));
    let ours = |k: &str| k == BACKEND || k == DISK_SCHEDULER || k.starts_with(TUNABLE);
    for r in &mut out {
        r.backend = backend;
        r.provenance =
            facts.iter().filter(|(k, _)| !ours(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
        let tunables = facts
            .iter()
            .filter_map(|(k, v)| Some((k.strip_prefix(TUNABLE)?.to_string(), v.parse().ok()?)));
        r.scheduler.tunables = tunables.collect();
        if cell.unsteady.contains(&r.trial.repetition) {
            r.warnings.push(Warning {
                code: HALVES_DIFFER.into(),
                message: "the halves of the run differ".into(),
                advice: String::new(),
            });
        }
    }
    out
}

/// What a comparison says about a run of a test.
fn provenance(c: &Comparison, run: &Run, test: &Test, cell: &Cell) -> BTreeMap<String, String> {
    let mut provenance = run.facts.clone();
    for (key, value) in [
        ("run", &run.name),
        ("hardware", &run.hardware),
        ("software", &run.software),
        ("notes", &run.notes),
        ("timestamp", &run.timestamp),
        ("user", &run.user),
        ("client_version", &run.client_version),
        ("tool", &c.client),
        ("test", &test.identifier),
        ("title", &test.title),
        ("version", &test.version),
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
    provenance
}

fn cell_records(
    c: &Comparison,
    run: &Run,
    test: &Test,
    workload: &str,
    cell: &Cell,
) -> Vec<Record> {
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
        provenance: provenance(c, run, test, cell),
        ..Record::default()
    };
    let Some(value) = cell.value else {
        record.status = Status::Failed(cell.missing.clone().unwrap_or_else(|| "no value".into()));
        return vec![record];
    };
    let values = if cell.samples.is_empty() { std::slice::from_ref(&value) } else { &cell.samples };
    let repeat = |(i, v): (usize, &f64)| {
        let mut r = record.clone();
        let round = cell.rounds.get(i).copied();
        (r.trial.repetition, r.trial.seed) = round.unwrap_or((i as u32 + 1, 0));
        r.metrics.push(Metric {
            name: if test.description.is_empty() {
                "result".into()
            } else {
                test.description.clone()
            },
            value: *v,
            unit: test.unit.clone(),
            higher_is_better: Some(test.better != Some(Better::Lower)),
            censored: cell.exceeds(i),
        });
        r
    };
    values.iter().enumerate().map(repeat).collect()
}
