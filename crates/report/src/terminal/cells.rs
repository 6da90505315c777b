//! Records by device and workload, and within by scheduler, in the order in which they first occur.

use iosched_experiment::{BackendKind, Record, Status};
use iosched_results::stats::{Better, Judged, Observation, Sample, VerdictOptions, judge, mean_of};

use super::figures::Figures;

/// A workload on a device.
pub(super) struct Place<'a> {
    pub(super) device: &'a str,
    pub(super) workload: &'a str,
    pub(super) kernels: Vec<&'a str>,
    pub(super) backend: BackendKind,
    pub(super) rows: Vec<Row<'a>>,
}

/// A scheduler there.
pub(super) struct Row<'a> {
    pub(super) scheduler: &'a str,
    /// Usable trials and their figures.
    pub(super) runs: Vec<(&'a Record, Figures)>,
    /// Why others are not usable.
    pub(super) unusable: Vec<&'a str>,
}

pub(super) fn places(records: &[Record]) -> Vec<Place<'_>> {
    let mut out: Vec<Place<'_>> = Vec::new();
    for r in records {
        let t = &r.trial;
        let at = out.iter().position(|p| p.device == t.device && p.workload == t.workload);
        let at = at.unwrap_or_else(|| {
            out.push(Place {
                device: &t.device,
                workload: &t.workload,
                kernels: Vec::new(),
                backend: r.backend,
                rows: Vec::new(),
            });
            out.len() - 1
        });
        let place = &mut out[at];
        if !place.kernels.contains(&t.kernel.as_str()) {
            place.kernels.push(&t.kernel);
        }
        let at = place.rows.iter().position(|row| row.scheduler == t.scheduler);
        let at = at.unwrap_or_else(|| {
            place.rows.push(Row {
                scheduler: &t.scheduler,
                runs: Vec::new(),
                unusable: Vec::new(),
            });
            place.rows.len() - 1
        });
        match &r.status {
            Status::Complete => place.rows[at].runs.push((r, Figures::of(r))),
            Status::Invalid(why) | Status::Failed(why) => place.rows[at].unusable.push(why),
        }
    }
    out
}

impl Row<'_> {
    /// Mean over the runs.
    pub(super) fn mean(&self, f: impl Fn(&Figures) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.runs.iter().map(|(_, x)| f(x)).collect();
        mean_of(&values).filter(|v| v.is_finite())
    }

    pub(super) fn sample(&self, f: impl Fn(&Figures) -> f64) -> Sample {
        Sample {
            rounds: self
                .runs
                .iter()
                .map(|(r, x)| (r.trial.repetition, Observation::from(f(x))))
                .collect(),
            deterministic: self.runs.iter().all(|(r, _)| r.backend == BackendKind::Sim),
        }
    }
}

impl Place<'_> {
    /// Every scheduler's throughput against the first one's; `None` for the first and where there is none.
    pub(super) fn judged(&self) -> Vec<Option<Judged>> {
        let Some(base) = self.rows.first() else { return Vec::new() };
        let base = base.sample(|f| f.bandwidth);
        let of = |(i, row): (usize, &Row<'_>)| {
            (i > 0 && !row.runs.is_empty() && !base.rounds.is_empty()).then(|| {
                let own = row.sample(|f| f.bandwidth);
                judge(&base, &own, Better::Higher, VerdictOptions::default())
            })
        };
        let mut all: Vec<Option<Judged>> = self.rows.iter().enumerate().map(of).collect();
        let mut family: Vec<&mut Judged> = all.iter_mut().flatten().collect();
        iosched_results::stats::correct_family(&mut family, VerdictOptions::default());
        all
    }

    /// Most usable runs of a scheduler.
    pub(super) fn runs(&self) -> usize {
        self.rows.iter().map(|r| r.runs.len()).max().unwrap_or(0)
    }
}
