//! The verdict on a device: one scheduler to use, gains and prices in the units of the load, how sure, how to set it.
//!
//! Each job has an ask ([`Ask`](iosched_experiment::record::Ask)): a rate to keep, short waits, or throughput. Kept rates come before waits that people
//! notice, and these before the rest. The base is the kernel's default for the device. Text, page and JSON are made from
//! [`Verdict`] alone.

mod asks;
mod choose;
mod facts;
mod lines;
mod measuring;
mod names;
mod sentence;
mod text;

use std::collections::BTreeMap;

use iosched_experiment::record::Record;
use serde::Serialize;

use crate::answer::{Candidate, candidates_of};
use crate::cells::{Cells, group, one_latency};
use crate::stats::Better;
pub use facts::Facts;
pub use lines::Part;
pub use measuring::{Measuring, short};
pub use text::text;

pub use iosched_experiment::record::DEFAULT_SCHEDULER as BASE;

/// Provenance: the warm-up that was asked for.
pub const WARM_UP: &str = "warm_up";
/// Provenance: how long the load ran before it was measured, in ms.
pub const WARMED_UP: &str = "run.warm_up";
/// Provenance: why it had no warm-up, though there might have been one: `a job has an end`.
pub const UNWARMED: &str = "run.no_warm_up";
/// Provenance: how long the load would have been measured, in ms, where that would have taken too much work.
pub const SHORTENED: &str = "run.shortened";
/// Provenance: why the load was not steady after that.
pub const UNSTEADY: &str = "run.unsteady";

/// What a job asks for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// So many bytes a second.
    Rate(f64),
    /// So many percent of what the jobs move that share by weight or priority.
    Share(f64),
    /// Short waits.
    Wait,
    /// Throughput, or a figure of the program's own.
    Most,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// Another scheduler than the base is better.
    Use,
    /// None is better than the base, or its gain is not worth its price.
    Keep,
    /// The runs cannot tell.
    Unknown,
}

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Firmness {
    /// Each pair of runs says so.
    Sure,
    /// The difference is beyond chance.
    Likely,
    /// It may be chance.
    Unsure,
}

/// A figure of a job under the scheduler of the verdict and under the base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Workload.
    pub workload: String,
    /// Job; the workload where it has one.
    pub job: String,
    /// What the job asks for.
    pub ask: Kind,
    /// Measure.
    pub measure: String,
    /// Unit of the values.
    pub unit: String,
    /// Mean of the runs; `None` where nothing completed.
    pub value: Option<f64>,
    /// That of the base.
    pub base_value: Option<f64>,
    /// How many times better than the base, over 1; `None` where a side has nothing.
    pub ratio: Option<f64>,
    /// 95 % interval of that.
    pub interval: Option<(f64, f64)>,
}

/// Another scheduler, where the base is kept: its gains, and why they do not count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Other {
    /// The scheduler.
    pub scheduler: String,
    /// Gains.
    pub gains: Vec<Point>,
    /// Prices.
    pub prices: Vec<Point>,
}

/// A row of the matrix: how many times better than the base, by ask; 1 is level, `None` may be chance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Schedulers of equal rows.
    pub schedulers: Vec<String>,
    /// By column of [`Verdict::asks`].
    pub ratios: Vec<Option<f64>>,
}

/// What to use on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Device.
    pub device: String,
    /// What to do.
    pub verdict: Advice,
    /// The scheduler to use.
    pub scheduler: String,
    /// The base.
    pub base: String,
    /// How sure.
    pub firmness: Firmness,
    /// Runs of each scheduler.
    pub runs: usize,
    /// In how many of them the ask that decides says so.
    pub agree: usize,
    /// Asks that are better, by importance.
    pub gains: Vec<Point>,
    /// Asks that are worse.
    pub prices: Vec<Point>,
    /// Where the base is kept: rates and shares that are asked for, under it. Whether they are met is what people want to know.
    pub demands: Vec<Point>,
    /// Asks that look worse, which may be chance.
    pub unproven: Vec<Point>,
    /// Other schedulers of this kernel that more runs may tell from the base.
    pub open: Vec<String>,
    /// The kernel's default for the device, where it was not run; else empty.
    pub default_not_run: String,
    /// Schedulers of this kernel that are level with it in every ask.
    pub level: Vec<String>,
    /// Schedulers that the kernel does not have, and that do as well.
    pub gone: Vec<String>,
    /// Schedulers that mainline Linux does not have, and that do as well or better.
    pub elsewhere: Vec<String>,
    /// What is to be known of the scheduler to use, or of the base: that this kernel has neither.
    pub remarks: Vec<String>,
    /// Where the base is kept, the best of the others, if it has a gain.
    pub other: Option<Other>,
    /// Names of the asks, by column of the matrix.
    pub asks: Vec<String>,
    /// The matrix.
    pub matrix: Vec<Row>,
    /// The command that sets it.
    pub set: String,
    /// Workloads whose rate changes while they run: longer runs may say otherwise.
    pub unsteady: Vec<String>,
    /// Why those of them are not steady that were given time to become so, by workload.
    pub never_steady: BTreeMap<String, String>,
    /// Nothing varies between runs: more of them tell no more.
    #[serde(skip)]
    pub repeats: bool,
    /// Short names: a family of which the kernel has one version here needs no generation.
    #[serde(skip)]
    pub short: BTreeMap<String, String>,
}

/// The verdicts on devices, in the order of the candidates. `facts`, `cells` and `candidates` are those of the same records.
#[must_use]
pub fn verdicts(facts: &Facts, cells: &Cells, candidates: &[Candidate]) -> Vec<Verdict> {
    let mut devices: Vec<&str> = Vec::new();
    for c in candidates {
        if !devices.contains(&c.device.as_str()) {
            devices.push(&c.device);
        }
    }
    let of = |device: &&str| {
        let here: Vec<&Candidate> = candidates.iter().filter(|c| c.device == *device).collect();
        choose::verdict(device, &here, facts.of(device), cells)
    };
    devices.iter().filter_map(of).collect()
}

/// The verdicts of some records alone.
#[must_use]
pub fn verdicts_of(records: &[Record]) -> Vec<Verdict> {
    let mut cells = group(records);
    one_latency([&mut cells]);
    verdicts(&Facts::new(records), &cells, &candidates_of(records))
}

/// How many times better `new` is than `base`.
fn times(new: f64, base: f64, better: Better) -> Option<f64> {
    let ratio = if better == Better::Higher { new / base } else { base / new };
    (ratio.is_finite() && ratio > 0.0).then_some(ratio)
}

#[cfg(test)]
mod tests;
