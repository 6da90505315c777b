//! Published comparisons run again: our figures beside the published ones.
//!
//! A comparison has an experiment (`data/published/NAME.experiment.toml`, an ordinary one) and a file that says which of
//! its results stands for which published cell, what was calibrated, and how each published claim is checked
//! (`NAME.reproduce.toml`). [`Reproduction::judge`] takes the records and counts how far they agree.

mod cells;
mod claims;
mod kernel;
mod map;
mod page;
mod render;
#[cfg(test)]
mod tests;

use iosched_experiment::{Record, Trial};
use iosched_results::stats::{Observation, summarize};
use serde::Serialize;

pub use cells::{Cell, Direction};
pub use claims::{Judged, Verdict};
pub use kernel::BesideKernel;
pub use map::{Reproduction, names};

/// The deviation from which on the Phoronix Test Suite of 2013 and 2017 repeats a test, as a share of the mean.
const UNSETTLED: f64 = 0.035;

/// What a comparison run again came to.
#[derive(Clone, Debug, Serialize)]
pub struct Reproduced {
    /// Name of the comparison.
    pub name: String,
    /// Whether the runs were shorter than the published ones.
    pub quick: bool,
    /// Whether the runs were broken off: figures are missing, or means of fewer runs.
    pub interrupted: bool,
    /// The counts.
    pub agreement: Agreement,
    /// Counts beside the kernel itself, where it was run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<BesideKernel>,
    /// Which kernel that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Every published figure that has one of ours, and those that could have.
    pub cells: Vec<Cell>,
    /// The published claims.
    pub claims: Vec<Judged>,
    /// What a reader should know.
    pub remarks: Vec<String>,
    /// From when on a published difference counts.
    pub noise: String,
}

/// Counts over cells that are neither the base nor calibrated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Published differences from the base beyond their noise.
    pub significant: usize,
    /// Those that ours points the same way.
    pub same_direction: usize,
    /// Those where ours has no difference beyond its noise; the rest points the other way.
    pub no_difference_here: usize,
    /// Cells with both ratios.
    pub compared: usize,
    /// Those of which our ratio is within 25 % of the published one.
    pub within_25_percent: usize,
    /// Those of which 1 is: what a model would score that knows no difference between schedulers.
    pub no_difference_within_25_percent: usize,
    /// Claims that our figures bear out.
    pub claims_agree: usize,
    /// Claims that they contradict.
    pub claims_disagree: usize,
    /// Claims that cannot be judged.
    pub claims_not_measurable: usize,
}

impl Reproduction {
    /// Lays records beside what was published.
    #[must_use]
    pub fn judge(&self, records: &[Record], quick: bool) -> Reproduced {
        let mut cells = self.cells(records);
        let kernel = self.kernel.as_ref().inspect(|k| k.lay_beside(&mut cells));
        let claims: Vec<Judged> =
            self.map.claims.iter().map(|c| claims::judge(c, &cells)).collect();
        let left_out = |a: &map::About| {
            let tests = self.published.tests.iter().filter(|t| a.is_of_test(t)).count();
            format!("Left out: {} of the published tests ({}).", tests, a.text)
        };
        let mut remarks: Vec<String> =
            self.map.not_run.iter().map(|why| format!("Not run: {why}.")).collect();
        remarks.extend(self.map.remarks.iter().cloned());
        if !quick {
            remarks.extend(self.map.full_remarks.iter().cloned());
        }
        remarks.extend(self.map.left_out.iter().map(left_out));
        remarks.extend(kernel.map(|k| format!("×kernel: {}, {}.", k.kernel, k.source)));
        Reproduced {
            name: self.name.into(),
            quick,
            interrupted: false,
            agreement: Agreement::of(&cells, &claims),
            kernel: kernel.map(|k| k.count(&cells)).filter(|n| n.compared > 0),
            kernel_name: kernel.map(|k| k.kernel.clone()),
            cells,
            claims,
            remarks,
            noise: self.map.noise_source.clone(),
        }
    }
}

impl Agreement {
    fn of(cells: &[Cell], claims: &[Judged]) -> Agreement {
        let mut a = Agreement::default();
        for c in cells.iter().filter(|c| c.uncounted.is_none()) {
            a.significant += usize::from(c.direction != Direction::None);
            a.same_direction += usize::from(c.direction == Direction::Agree);
            let nowhere = c.direction == Direction::Disagree && !c.our_difference;
            a.no_difference_here += usize::from(nowhere);
            a.compared += usize::from(c.near().is_some());
            a.within_25_percent += usize::from(c.near() == Some(true));
            let flat = Cell { our_ratio: Some(1.0), ..c.clone() };
            let same = c.near().is_some() && flat.near() == Some(true);
            a.no_difference_within_25_percent += usize::from(same);
        }
        for c in claims {
            match c.verdict {
                Verdict::Agree => a.claims_agree += 1,
                Verdict::Disagree => a.claims_disagree += 1,
                Verdict::NotMeasurable => a.claims_not_measurable += 1,
            }
        }
        a
    }
}

impl Reproduction {
    /// The trials whose figures scatter so much that the Phoronix Test Suite of that time would run them again, at their
    /// next repetitions: as many again as there were.
    #[must_use]
    pub fn unsettled(&self, trials: &[Trial], records: &[Record], seed: u64) -> Vec<Trial> {
        let scatters = |t: &Trial| {
            let rows = self.map.tests.iter().filter(|row| row.workload == t.id.workload);
            let of_cell = |r: &&Record| {
                let (a, b) = (&r.trial, &t.id);
                (&a.workload, &a.device, &a.scheduler) == (&b.workload, &b.device, &b.scheduler)
            };
            rows.map(|row| {
                let mine = records.iter().filter(of_cell);
                let values = mine.filter_map(|r| cells::figure(r, &row.metric));
                values.map(|value| Observation { value, censored: false }).collect::<Vec<_>>()
            })
            .map(|values| summarize(&values, 1))
            .any(|s| {
                s.sd.zip(s.mean).is_some_and(|(sd, mean)| sd >= UNSETTLED * mean && mean > 0.0)
            })
        };
        let runs = trials.iter().map(|t| t.id.repetition).max().unwrap_or(0);
        let more = |t: &Trial| t.at_repetition(t.id.repetition + runs, seed, true);
        trials.iter().filter(|t| scatters(t)).map(more).collect()
    }
}
