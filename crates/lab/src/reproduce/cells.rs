//! Published and own figures side by side.

use iosched_experiment::{Record, Status, total};
use iosched_results::model::{Cell as Published, Run};
use iosched_results::stats::{Better, mean_and_sd, mean_of};
use serde::Serialize;

use super::map::{Reproduction, Row};

/// A ratio of ours less than this from 1 points nowhere, and neither does one within two standard errors of our runs.
pub(super) const LEVEL: f64 = 0.01;
/// A ratio of ours that is no farther than this from 1 beside a published one that is farther than [`FAR`] agrees in its
/// sign only.
const SLIGHT: f64 = 0.03;
/// Ratios farther apart are far.
const FAR: f64 = 0.25;

/// A figure of a published table beside ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Benchmark, as published: title, version, options.
    pub benchmark: String,
    /// A short name of it.
    pub test: String,
    /// What our figure is called in our records.
    pub metric: String,
    /// The published unit.
    pub unit: String,
    /// Whether more is better.
    pub higher_is_better: Option<bool>,
    /// Published device.
    pub device: String,
    /// Its model.
    pub model: String,
    /// Published name of the run.
    pub run: String,
    /// Scheduler, as published.
    pub scheduler: String,
    /// The scheduler that it is compared with.
    pub base: String,
    /// The published figure.
    pub published: Option<f64>,
    /// Ours, in the same unit: the mean of our runs.
    pub ours: Option<f64>,
    /// Our runs.
    pub runs: usize,
    /// The standard error of our mean, in the same unit; `None` with one run.
    pub our_error: Option<f64>,
    /// Whether our difference from the base exceeds its own noise: 1 %, and two of its standard errors.
    pub our_difference: bool,
    /// The published figure as a multiple of the base's.
    pub published_ratio: Option<f64>,
    /// Ours.
    pub our_ratio: Option<f64>,
    /// That of the kernel itself, run again.
    pub kernel_ratio: Option<f64>,
    /// Whether the published difference from the base exceeds its own noise.
    pub significant: bool,
    /// `agree`, `disagree`, or `none` where nothing is to agree with.
    pub direction: Direction,
    /// Why it is in no count: the base itself, calibrated, missing.
    pub uncounted: Option<String>,
    /// Why they disagree; `open` when nobody knows.
    pub explanation: Option<String>,
}

/// Which way our difference points beside the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The same way.
    Agree,
    /// Nowhere, or the other way.
    Disagree,
    /// There is no published difference, or no figure of ours.
    None,
}

impl Cell {
    /// Whether the ratios of both are within 25 % of each other; `None` without them.
    #[must_use]
    pub fn near(&self) -> Option<bool> {
        let (p, o) = (self.published_ratio?, self.our_ratio?);
        Some((o / p - 1.0).abs() <= FAR)
    }

    /// Whether ours points the same way as the published one and is next to no difference where that is a large one.
    fn in_sign_only(&self) -> bool {
        let both = self.published_ratio.zip(self.our_ratio);
        self.direction == Direction::Agree
            && both.is_some_and(|(p, o)| (o - 1.0).abs() <= SLIGHT && (p - 1.0).abs() > FAR)
    }
}

impl Reproduction {
    /// All cells that have a row, with what our records say.
    pub(super) fn cells(&self, records: &[Record]) -> Vec<Cell> {
        let mut cells = Vec::new();
        for row in &self.map.tests {
            match (&row.own, self.test(row)) {
                (Some(own), _) => cells.extend(self.own_cells(row, own, records)),
                (None, Some(test)) => {
                    let benchmark = [&test.title, &test.version, &test.description];
                    let benchmark: Vec<&str> =
                        benchmark.iter().map(|s| s.as_str()).filter(|s| !s.is_empty()).collect();
                    let start = |published: &Published| {
                        let run = self.published.runs.iter().find(|r| r.name == published.run)?;
                        let mut cell = self.blank(row, run, records)?;
                        cell.benchmark = benchmark.join(" ");
                        cell.unit.clone_from(&test.unit);
                        cell.higher_is_better = test.better.map(|b| b == Better::Higher);
                        cell.published = published.value;
                        Some(cell)
                    };
                    let mut row_cells: Vec<Cell> = test.cells.iter().filter_map(start).collect();
                    self.compare(row, &test.cells, &mut row_cells);
                    cells.extend(row_cells);
                }
                (None, None) => {}
            }
        }
        cells
    }

    /// A cell with ours in it.
    fn blank(&self, row: &Row, run: &Run, records: &[Record]) -> Option<Cell> {
        let device = self.map.devices.iter().find(|d| d.published == run.device)?;
        let base_run = row.base(device);
        let base = self.published.runs.iter().find(|r| r.name == base_run);
        let (ours, runs, error) = value(records, row, &device.model, &run.scheduler);
        Some(Cell {
            benchmark: row.name.clone(),
            test: row.name.clone(),
            metric: row.metric.clone(),
            unit: String::new(),
            higher_is_better: None,
            device: run.device.clone(),
            model: device.model.clone(),
            run: run.name.clone(),
            scheduler: run.scheduler.clone(),
            base: base.map_or_else(|| base_run.to_string(), |b| b.scheduler.clone()),
            published: None,
            ours: ours.map(|v| v * row.factor),
            runs,
            our_error: error.map(|e| e * row.factor),
            our_difference: false,
            published_ratio: None,
            our_ratio: None,
            kernel_ratio: None,
            significant: false,
            direction: Direction::None,
            uncounted: None,
            explanation: None,
        })
    }

    /// Cells of a test that has no published figures.
    fn own_cells(&self, row: &Row, own: &super::map::Own, records: &[Record]) -> Vec<Cell> {
        let Some(device) = self.map.devices.iter().find(|d| d.published == own.device) else {
            return Vec::new();
        };
        let mut names: Vec<&str> = Vec::new();
        for r in records.iter().filter(|r| r.trial.device == device.model) {
            if !names.contains(&r.trial.scheduler.as_str()) {
                names.push(&r.trial.scheduler);
            }
        }
        let cell = |name: &str| {
            let run = Run {
                name: name.into(),
                device: own.device.clone(),
                scheduler: name.into(),
                ..Run::default()
            };
            let mut cell = self.blank(row, &run, records)?;
            cell.unit.clone_from(&own.unit);
            cell.higher_is_better = Some(own.better == Better::Higher);
            cell.uncounted = Some("no published figure".into());
            Some(cell)
        };
        let mut cells: Vec<Cell> = names.into_iter().filter_map(cell).collect();
        self.compare(row, &[], &mut cells);
        cells
    }

    /// Ratios, and whether they point the same way.
    fn compare(&self, row: &Row, published: &[Published], cells: &mut [Cell]) {
        let bases: Vec<Cell> = cells.iter().filter(|c| c.scheduler == c.base).cloned().collect();
        for cell in cells {
            let Some(base) = bases.iter().find(|b| b.device == cell.device) else {
                continue;
            };
            let ratio = |v: Option<f64>, base: Option<f64>| {
                v.zip(base).map(|(v, b)| v / b).filter(|r| r.is_finite())
            };
            cell.published_ratio = ratio(cell.published, base.published);
            cell.our_ratio = ratio(cell.ours, base.ours);
            let noise = self.noise(row, published, cell);
            cell.significant = cell.published_ratio.is_some_and(|r| (r - 1.0).abs() > noise);
            cell.our_difference = differs(cell, base);
            cell.direction = direction(cell);
            self.remark(row, cell);
        }
    }

    fn remark(&self, row: &Row, cell: &mut Cell) {
        let about = |list: &[super::map::About]| {
            list.iter().find(|a| a.is_of(row, &cell.run)).map(|a| a.text.clone())
        };
        let missing = match (cell.published, cell.ours) {
            (None, _) => Some("no published figure".to_string()),
            (_, None) => Some("not run, or without a result".to_string()),
            _ => None,
        };
        let base = (cell.scheduler == cell.base).then(|| "the base".to_string());
        cell.uncounted = cell
            .uncounted
            .take()
            .or(missing)
            .or_else(|| about(&self.map.calibrated))
            .or_else(|| about(&self.map.outliers))
            .or(base);
        if cell.direction == Direction::Disagree || cell.near() == Some(false) {
            let why = about(&self.map.explained).unwrap_or_else(|| "open".into());
            let sign = if cell.in_sign_only() { "agrees in sign only; " } else { "" };
            cell.explanation = Some(format!("{sign}{why}"));
        }
    }

    /// The share of the base that a published difference must exceed.
    fn noise(&self, row: &Row, published: &[Published], cell: &Cell) -> f64 {
        let base_run = self.map.devices.iter().find(|d| d.published == cell.device);
        let statistics = |run: &str| published.iter().find(|p| p.run == run)?.statistics();
        let both = statistics(&cell.run).zip(base_run.and_then(|d| statistics(row.base(d))));
        match both {
            Some((a, b)) if a.n > 1 && b.n > 1 => {
                let two = a.se.zip(b.se).map(|(a, b)| 2.0 * a.hypot(b));
                two.zip(b.mean).map_or(self.map.noise, |(two, mean)| two / mean)
            }
            _ => self.map.noise,
        }
    }
}

/// Whether our ratio points anywhere.
fn differs(cell: &Cell, base: &Cell) -> bool {
    let two_errors = cell.our_error.zip(base.our_error).map(|(a, b)| 2.0 * a.hypot(b));
    let noise = two_errors.zip(base.ours).map_or(0.0, |(two, mean)| (two / mean).abs());
    cell.our_ratio.is_some_and(|r| (r - 1.0).abs() >= LEVEL.max(noise))
}

fn direction(cell: &Cell) -> Direction {
    let (Some(published), Some(ours), true) =
        (cell.published_ratio, cell.our_ratio, cell.significant)
    else {
        return Direction::None;
    };
    let same = (published > 1.0) == (ours > 1.0) && cell.our_difference;
    if same { Direction::Agree } else { Direction::Disagree }
}

/// The mean of a figure over our runs, how many had it, and the standard error.
fn value(
    records: &[Record],
    row: &Row,
    device: &str,
    scheduler: &str,
) -> (Option<f64>, usize, Option<f64>) {
    let of_row = |r: &&Record| {
        let t = &r.trial;
        t.workload == row.workload && t.device == device && t.scheduler == scheduler
    };
    let complete = records.iter().filter(of_row).filter(|r| matches!(r.status, Status::Complete));
    let values: Vec<f64> = complete.filter_map(|r| figure(r, &row.metric)).collect();
    let (_, sd) = mean_and_sd(&values);
    let error = (values.len() > 1).then(|| sd / (values.len() as f64).sqrt());
    (mean_of(&values), values.len(), error)
}

/// A figure of a record.
pub(super) fn figure(r: &Record, metric: &str) -> Option<f64> {
    let moved = || total(r.jobs.iter(), |j| [&j.read, &j.write]);
    match metric {
        "iops" => Some(moved().iops()),
        "bytes per second" => Some(moved().bytes_per_second()),
        _ => r.metrics.iter().find(|m| m.name == metric).map(|m| m.value),
    }
}
