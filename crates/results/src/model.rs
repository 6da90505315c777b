//! The comparison as result viewers know it: runs side by side, tests below each other, samples in the cells.

mod records;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::stats::{Better, Observation, Summary, summarize};
use records::OURS;

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
    /// The name, unique.
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
    /// Which samples are such limits, where that is known of each.
    pub exceeded: Vec<bool>,
    /// Repetition and seed of each sample, where they are known.
    pub rounds: Vec<(u32, u64)>,
    /// Repetitions of which the halves differ.
    pub unsteady: Vec<u32>,
    /// Facts in which this cell differs from its run: its file system, say. `None` is a fact that it lacks.
    pub facts: BTreeMap<String, Option<String>>,
}

/// A summary that stands for samples that are lost.
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
    /// Whether the sample is a limit that was exceeded.
    #[must_use]
    pub fn exceeds(&self, sample: usize) -> bool {
        self.exceeded.get(sample).copied().unwrap_or(self.censored)
    }

    /// Statistics of the cell; `None` when it is missing.
    #[must_use]
    pub fn statistics(&self) -> Option<Summary> {
        let value = self.value?;
        if let (true, Some(p)) = (self.samples.is_empty(), self.summary) {
            return Some(Summary::published(p.n, p.mean, p.se, p.min, p.max));
        }
        let samples: Vec<Observation> = if self.samples.is_empty() {
            vec![Observation { value, censored: self.censored }]
        } else {
            let observation =
                |(i, v): (usize, &f64)| Observation { value: *v, censored: self.exceeds(i) };
            self.samples.iter().enumerate().map(observation).collect()
        };
        Some(summarize(&samples, 1))
    }
}

impl Test {
    /// Whether it is a measure of a workload that was exported here.
    fn is_ours(&self) -> bool {
        self.identifier.starts_with(OURS)
    }

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
}
