//! How a published comparison is laid beside its experiments: the file `data/published/NAME.reproduce.toml`.

use std::collections::BTreeMap;

use iosched_experiment::{Experiment, JobSource, Place, Placed};
use iosched_results::model::{Comparison, Test};
use iosched_results::published;
use iosched_results::stats::Better;
use iosched_types::Diagnostic;
use serde::Deserialize;

use super::kernel::RealKernel;

macro_rules! shipped {
    ($($name:literal: $($experiment:literal),+;)*) => {
        &[$((
            $name,
            include_str!(concat!("../../../../data/published/", $name, ".reproduce.toml")),
            &[$((
                $experiment,
                include_str!(concat!("../../../../data/published/", $experiment, ".experiment.toml")),
            )),+],
        )),*]
    };
}

/// A comparison's name, how it is laid beside, its experiments by name.
type Shipped = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

static SHIPPED: &[Shipped] = shipped! {
    "linux-4.12": "linux-4.12", "linux-4.12-dbench", "linux-4.12-full-drive";
    "linux-3.12": "linux-3.12";
    "pg-test-fsync-ssd": "pg-test-fsync-ssd";
    "iozone-san": "iozone-san";
    "bfq-v7r3-responsiveness": "bfq-v7r3-hdd", "bfq-v7r3-raid1", "bfq-v7r3-ssd";
};

/// A published comparison and how it is run again.
#[derive(Debug)]
pub struct Reproduction {
    /// Its name.
    pub name: &'static str,
    /// What was published.
    pub published: Comparison,
    pub(super) map: Map,
    pub(super) kernel: Option<RealKernel>,
    experiments: &'static [(&'static str, &'static str)],
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Map {
    /// Names of the experiments.
    pub experiments: Vec<String>,
    /// Why it cannot be run.
    pub not_run: Option<String>,
    /// The share of the base's value below which a published difference is noise, where no error is published.
    pub noise: f64,
    /// Where that is from.
    pub noise_source: String,
    /// What a reader should know.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// The same, of runs at full length only.
    #[serde(default)]
    pub full_remarks: Vec<String>,
    pub devices: Vec<Device>,
    pub tests: Vec<Row>,
    /// Tests that are not run, and why.
    #[serde(default)]
    pub left_out: Vec<About>,
    /// Cells by which a model was made. They prove nothing.
    #[serde(default)]
    pub calibrated: Vec<About>,
    /// Cells that the source itself takes for outliers. They prove nothing.
    #[serde(default)]
    pub outliers: Vec<About>,
    /// Why cells differ.
    #[serde(default)]
    pub explained: Vec<About>,
    /// Parameters of a quick look, by workload.
    #[serde(default)]
    pub quick: BTreeMap<String, BTreeMap<String, String>>,
    /// Memory of the machine of a quick look: with smaller files a smaller one, so that they do not fit into it either.
    pub quick_memory: Option<String>,
    pub claims: Vec<Claim>,
}

/// A published device and its model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    pub published: String,
    pub model: String,
    /// The run that others are compared with.
    pub base: String,
}

/// A test and where its value is in our results.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// Identifier of the published test.
    #[serde(default)]
    pub test: String,
    /// Part of its description, where several have the identifier.
    #[serde(default)]
    pub description: String,
    /// Its unit, where several have the description.
    #[serde(default)]
    pub unit: String,
    /// A short name.
    pub name: String,
    /// Other bases than the devices' own, by published device.
    #[serde(default)]
    pub bases: BTreeMap<String, String>,
    /// A test without published figures.
    pub own: Option<Own>,
    /// The workload of the experiment.
    pub workload: String,
    /// The figure: a metric of the record, `iops`, or `bytes per second`.
    pub metric: String,
    /// What our figure is multiplied by to be in the published unit.
    #[serde(default = "one")]
    pub factor: f64,
}

fn one() -> f64 {
    1.0
}

/// What is otherwise known from the published test.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Own {
    pub device: String,
    pub unit: String,
    pub better: Better,
}

/// A sentence about cells.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct About {
    /// Short name or identifier of the test; empty: all.
    #[serde(default)]
    pub test: String,
    #[serde(default)]
    pub description: String,
    /// The run, `*` for any characters; empty: all.
    #[serde(default)]
    pub run: String,
    pub text: String,
}

/// A published claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub text: String,
    /// What must hold.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Why it cannot be judged.
    pub not_measurable: Option<String>,
}

/// Two groups of cells, and how far they must be apart; or one, and how far it may spread; or runs of two tests, and how
/// far those of the same name may be apart; or the largest figure of some tests; or the figures of some tests together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    #[serde(default)]
    pub test: String,
    /// Tests whose largest figure counts as it is.
    #[serde(default)]
    pub largest: Vec<String>,
    /// Tests whose figures together are divided by those of `sum_over`: which part of the one the other is.
    #[serde(default)]
    pub sum: Vec<String>,
    #[serde(default)]
    pub sum_over: Vec<String>,
    /// Runs of which the largest is divided by the smallest.
    #[serde(default)]
    pub spread: Vec<String>,
    /// Runs that are divided by those of `over`.
    #[serde(default)]
    pub of: Vec<String>,
    /// Not these.
    #[serde(default)]
    pub but: Vec<String>,
    #[serde(default)]
    pub over: Vec<String>,
    /// The test of `over`, if it is another one.
    #[serde(default)]
    pub over_test: String,
    /// A test in whose runs of the same names those of `of` are sought again: the two furthest apart count.
    #[serde(default)]
    pub like: String,
    /// Of `like`: figures below this are all the same.
    #[serde(default)]
    pub floor: f64,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}

/// Names of the comparisons that can be run again.
#[must_use]
pub fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|s| s.0).collect()
}

impl Reproduction {
    /// The comparison of that name.
    ///
    /// # Errors
    /// An unknown name, with the nearest one.
    pub fn load(name: &str) -> Result<Reproduction, Diagnostic> {
        let unknown = |message: String| Diagnostic::file("reproduce", message);
        let published = published::load(name).map_err(|e| unknown(e.to_string()))?;
        let known = SHIPPED.iter().find(|s| s.0 == name);
        let (name, text, experiments) = known.ok_or_else(|| unknown(format!("no \"{name}\"")))?;
        let file = format!("{name}.reproduce.toml");
        let map: Map = toml::from_str(text).map_err(|e| Diagnostic::file(file, e.to_string()))?;
        let kernel = RealKernel::of(name).map_err(|e| unknown(e.to_string()))?;
        Ok(Reproduction { name, published, map, kernel, experiments })
    }

    /// Its experiments.
    ///
    /// # Errors
    /// What is wrong with a file.
    pub fn experiments(&self, quick: bool) -> Result<Vec<Experiment>, Diagnostic> {
        let named = |name: &String| self.experiments.iter().find(|e| e.0 == name);
        let read = |(name, text): &(&str, &str)| {
            let mut e = Experiment::from_toml(&format!("{name}.experiment.toml"), text)?;
            e.collect = iosched_experiment::Collect { series: false, dispatches: false };
            if quick {
                e.runs = 1;
                self.shorten(&mut e);
                if let Some(memory) = &self.map.quick_memory {
                    let wrong = |m| Diagnostic::file(format!("{}.reproduce.toml", self.name), m);
                    e.host.set_memory(memory).map_err(wrong)?;
                }
            }
            Ok(e)
        };
        if self.map.not_run.is_some() {
            return Ok(Vec::new());
        }
        self.map.experiments.iter().filter_map(named).map(read).collect()
    }

    /// Gives programs the parameters, and jobs the options, of a quick look.
    fn shorten(&self, e: &mut Experiment) {
        let place = Place::file("--quick");
        for w in &mut e.workloads {
            let Some(values) = self.map.quick.get(&w.value.name) else { continue };
            for (name, value) in values {
                match &mut w.value.job {
                    JobSource::Program(p) => {
                        p.params.retain(|o| o.value.0 != *name);
                        let set = (name.clone(), value.clone());
                        p.params.push(Placed::new(set, place.clone()));
                    }
                    JobSource::Text(job) => *job = with_option(job, name, value),
                    _ => {}
                }
            }
        }
    }

    /// The published test of a row.
    pub(super) fn test(&self, row: &Row) -> Option<&Test> {
        self.published.tests.iter().find(|t| row.is(t))
    }
}

/// A job's text with another value of an option.
fn with_option(job: &str, name: &str, value: &str) -> String {
    let kept = job.lines().filter(|l| l.split('=').next().map(str::trim) != Some(name));
    kept.map(|l| format!("{l}\n")).collect::<String>() + &format!("{name}={value}\n")
}

impl Row {
    /// The run that others of a device are compared with.
    pub(super) fn base<'a>(&'a self, device: &'a Device) -> &'a str {
        self.bases.get(&device.published).unwrap_or(&device.base)
    }

    fn is(&self, t: &Test) -> bool {
        t.identifier == self.test
            && t.description.contains(&self.description)
            && (self.unit.is_empty() || t.unit == self.unit)
            && self.own.is_none()
    }
}

impl About {
    /// Whether it is about a row and a run.
    pub(super) fn is_of(&self, row: &Row, run: &str) -> bool {
        (self.test.is_empty() || self.test == row.name)
            && (self.run.is_empty() || fits(&self.run, run))
    }

    /// Whether it is about a published test.
    pub(super) fn is_of_test(&self, t: &Test) -> bool {
        self.test == t.identifier && t.description.contains(&self.description)
    }
}

/// Whether a name fits a pattern in which `*` at the end stands for anything.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}
