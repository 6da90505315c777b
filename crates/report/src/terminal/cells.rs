//! Records by device and workload, and within by scheduler, in the order in which they first occur.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::{BackendKind, Record, Status};
use iosched_results::cells::{CellKey, Cells, Line, judge_each, throughput_of, usual_base};
use iosched_results::stats::{Judged, Observation, Sample, VerdictOptions, centre_of};

use super::figures::Figures;

/// A workload on a device.
pub(super) struct Place<'a> {
    pub(super) device: &'a str,
    pub(super) workload: &'a str,
    pub(super) kernels: Vec<&'a str>,
    pub(super) backend: BackendKind,
    pub(super) rows: Vec<Row<'a>>,
    /// The row that others are compared with.
    pub(super) base: usize,
    /// Every row's throughput against the base's; `None` for the base and where there is none.
    pub(super) judged: Vec<Option<Judged>>,
}

/// A scheduler there.
pub(super) struct Row<'a> {
    pub(super) scheduler: &'a str,
    /// Usable trials and their figures; invalid ones where nothing else is there and noise is allowed.
    pub(super) runs: Vec<(&'a Record, Figures)>,
    /// Why others are not usable.
    pub(super) unusable: Vec<&'a str>,
    /// The figures are those of invalid trials: shown, but never ranked.
    pub(super) noisy: bool,
}

/// With `noise`, invalid trials stand where a scheduler has no others. `cells` are those of the same records.
/// `names` are the schedulers' short ones, which the cells have.
pub(super) fn places<'a>(
    records: &'a [Record],
    cells: &Cells,
    names: &'a BTreeMap<&str, String>,
    noise: bool,
) -> Vec<Place<'a>> {
    let called = |r: &'a Record| {
        let own = r.trial.scheduler.as_str();
        names.get(own).map_or(own, String::as_str)
    };
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
                base: 0,
                judged: Vec::new(),
            });
            out.len() - 1
        });
        let place = &mut out[at];
        if !place.kernels.contains(&t.kernel.as_str()) {
            place.kernels.push(&t.kernel);
        }
        let at = place.rows.iter().position(|row| row.scheduler == called(r));
        let at = at.unwrap_or_else(|| {
            place.rows.push(Row {
                scheduler: called(r),
                runs: Vec::new(),
                unusable: Vec::new(),
                noisy: false,
            });
            place.rows.len() - 1
        });
        match &r.status {
            Status::Complete => place.rows[at].runs.push((r, Figures::of(r))),
            Status::Invalid(why) | Status::Failed(why) => place.rows[at].unusable.push(why),
        }
    }
    judge(&mut out, cells);
    if noise {
        show_invalid(records, &mut out, &called);
    }
    out
}

/// Judges the rows of all places by their throughput: with all that a reader sees from the start, as pages do.
fn judge(places: &mut [Place<'_>], cells: &Cells) {
    for p in places.iter_mut() {
        let base = usual_base(p.rows.iter().map(|r| r.scheduler));
        p.base = p.rows.iter().position(|r| Some(r.scheduler) == base).unwrap_or(0);
        p.judged = vec![None; p.rows.len()];
    }
    let bases: BTreeSet<&str> =
        places.iter().filter_map(|p| Some(p.rows.get(p.base)?.scheduler)).collect();
    let bases: Vec<&str> = bases.into_iter().collect();
    for analysis in judge_each(cells, &bases, VerdictOptions::default()) {
        let lines: BTreeMap<(&CellKey, &str), &Line> =
            analysis.lines.iter().map(|l| ((&l.key, l.measure.as_str()), l)).collect();
        for p in places.iter_mut().filter(|p| p.rows[p.base].scheduler == analysis.base) {
            let Some(measure) = throughput_of(cells, p.device, p.workload) else { continue };
            for (row, judged) in p.rows.iter().zip(&mut p.judged) {
                let key = CellKey {
                    device: p.device.into(),
                    workload: p.workload.into(),
                    scheduler: row.scheduler.into(),
                };
                *judged = lines.get(&(&key, measure)).and_then(|l| l.against_base.clone());
            }
        }
    }
}

/// After judging: what is shown only is never compared.
fn show_invalid<'a>(
    records: &'a [Record],
    places: &mut [Place<'a>],
    called: &dyn Fn(&'a Record) -> &'a str,
) {
    for r in records.iter().filter(|r| matches!(r.status, Status::Invalid(_))) {
        let t = &r.trial;
        let place = places.iter_mut().find(|p| p.device == t.device && p.workload == t.workload);
        let row = place.and_then(|p| p.rows.iter_mut().find(|row| row.scheduler == called(r)));
        if let Some(row) = row.filter(|row| row.noisy || row.runs.is_empty()) {
            row.noisy = true;
            row.runs.push((r, Figures::of(r)));
        }
    }
}

impl Row<'_> {
    /// The rate of a run changes.
    pub(super) fn changes(&self) -> bool {
        self.runs.iter().any(|(r, _)| r.halves_differ())
    }

    /// The figure of the runs.
    pub(super) fn mean(&self, f: impl Fn(&Figures) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.runs.iter().map(|(_, x)| f(x)).collect();
        centre_of(&values).filter(|v| v.is_finite())
    }

    pub(super) fn sample(&self, f: impl Fn(&Figures) -> f64) -> Sample {
        Sample {
            rounds: self
                .runs
                .iter()
                .map(|(r, x)| (r.trial.repetition, Observation::from(f(x))))
                .collect(),
            deterministic: self.runs.iter().all(|(r, _)| r.backend.traits().deterministic),
            paired: self.runs.iter().all(|(r, _)| r.backend.traits().ours),
        }
    }
}

impl Place<'_> {
    /// Fewest and most usable runs of a scheduler that has any.
    pub(super) fn runs(&self) -> (usize, usize) {
        let all = || self.rows.iter().map(|r| r.runs.len()).filter(|n| *n > 0);
        (all().min().unwrap_or(0), all().max().unwrap_or(0))
    }
}
