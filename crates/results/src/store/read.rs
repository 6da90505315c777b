//! Reading what is there: experiments, trials, samples, cells.

use std::collections::BTreeMap;

use iosched_experiment::record::TrialId;
use iosched_types::nearest::did_you_mean;
use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use super::error::of;
use super::write::backend_kind;
use super::{Store, StoreError};
use crate::cells::{Cells, NO_REASON, Origin};
use crate::measure::Measure;
use crate::stats::Better;

/// One experiment with its counts.
#[derive(Clone, Debug, PartialEq, Serialize, Default)]
pub struct ExperimentRow {
    /// Key, for `iosched results show 12`.
    pub id: i64,
    /// Random identity, the same after export and merge.
    pub uid: String,
    /// Name.
    pub name: String,
    /// UTC, ISO 8601.
    pub created: String,
    /// `run`, or what it was imported from.
    pub source: String,
    /// Trials it is to have, where that is known.
    pub planned: Option<u32>,
    /// Trials stored.
    pub trials: u32,
    /// Of these, complete.
    pub complete: u32,
    /// Of these, invalid.
    pub invalid: u32,
    /// Of these, failed.
    pub failed: u32,
    /// Different devices.
    pub devices: u32,
    /// Different schedulers.
    pub schedulers: u32,
    /// Different workloads.
    pub workloads: u32,
}

/// One trial without its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrialRow {
    /// Key.
    pub id: i64,
    /// Which trial.
    pub trial: TrialId,
    /// Hash of its inputs.
    pub input_hash: String,
    /// `sim`, `emulated`, `real`, `mock`, `imported`.
    pub backend: String,
    /// `complete`, `invalid`, `failed`.
    pub status: String,
    /// Why it is invalid or failed.
    pub reason: String,
    /// Length in ns.
    pub elapsed: u64,
    /// When it was stored (UTC).
    pub stored: String,
}

/// One number of one complete trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleRow {
    /// Key of the trial.
    pub trial: i64,
    /// Device.
    pub device: String,
    /// Scheduler.
    pub scheduler: String,
    /// Workload.
    pub workload: String,
    /// Round.
    pub repetition: u32,
    /// Measure.
    pub measure: String,
    /// Unit.
    pub unit: String,
    /// Value.
    pub value: f64,
    /// The true value lies beyond.
    pub censored: bool,
}

const TRIAL_COLUMNS: &str = "id, experiment, device, scheduler, kernel, workload, repetition, seed,
    input_hash, backend, status, reason, elapsed_ns, stored";

fn trial_row(r: &Row<'_>) -> rusqlite::Result<TrialRow> {
    Ok(TrialRow {
        id: r.get(0)?,
        trial: TrialId {
            experiment: r.get(1)?,
            device: r.get(2)?,
            scheduler: r.get(3)?,
            kernel: r.get(4)?,
            workload: r.get(5)?,
            repetition: r.get(6)?,
            seed: r.get::<_, i64>(7)?.cast_unsigned(),
        },
        input_hash: r.get(8)?,
        backend: r.get(9)?,
        status: r.get(10)?,
        reason: r.get(11)?,
        elapsed: r.get::<_, i64>(12)?.cast_unsigned(),
        stored: r.get(13)?,
    })
}

fn measure(r: &Row<'_>) -> rusqlite::Result<Measure> {
    Ok(Measure {
        name: r.get(0)?,
        unit: r.get(1)?,
        value: r.get(2)?,
        better: if r.get_ref(3)?.as_str()? == "higher" { Better::Higher } else { Better::Lower },
        censored: r.get(4)?,
    })
}

impl Store {
    /// All experiments, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn list(&self) -> Result<Vec<ExperimentRow>, StoreError> {
        self.rows(
            "SELECT e.id, e.uid, e.name, e.created, e.source, e.planned, count(t.id),
                 count(*) FILTER (WHERE t.status = 'complete'),
                 count(*) FILTER (WHERE t.status = 'invalid'),
                 count(*) FILTER (WHERE t.status = 'failed'),
                 count(DISTINCT t.device), count(DISTINCT t.scheduler), count(DISTINCT t.workload)
             FROM experiments e LEFT JOIN trials t ON t.experiment_id = e.id
             GROUP BY e.id ORDER BY e.id DESC",
            [],
            |r| {
                Ok(ExperimentRow {
                    id: r.get(0)?,
                    uid: r.get(1)?,
                    name: r.get(2)?,
                    created: r.get(3)?,
                    source: r.get(4)?,
                    planned: r.get(5)?,
                    trials: r.get(6)?,
                    complete: r.get(7)?,
                    invalid: r.get(8)?,
                    failed: r.get(9)?,
                    devices: r.get(10)?,
                    schedulers: r.get(11)?,
                    workloads: r.get(12)?,
                })
            },
        )
    }

    /// The experiment of a key (`12`), an identity, or a name (the newest of that name).
    ///
    /// # Errors
    /// [`StoreError::NoExperiment`] with the nearest name.
    pub fn find(&self, name: &str) -> Result<i64, StoreError> {
        let found = self
            .conn
            .query_row(
                "SELECT id FROM experiments WHERE name = ?1 OR uid = ?1 OR CAST(id AS TEXT) = ?1
                 ORDER BY name = ?1 DESC, id DESC LIMIT 1",
                [name],
                |r| r.get(0),
            )
            .optional()
            .map_err(of(&self.path))?;
        if let Some(id) = found {
            return Ok(id);
        }
        let names =
            self.rows("SELECT DISTINCT name FROM experiments", [], |r| r.get::<_, String>(0))?;
        let help = did_you_mean(name, names.iter().map(String::as_str));
        let help = if help.is_empty() { help } else { format!("; {help}") };
        Err(StoreError::NoExperiment { path: self.path.clone(), name: name.into(), help })
    }

    /// All experiments of a name, the newest first. Runs may share a name, and so may what is merged.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn named(&self, name: &str) -> Result<Vec<i64>, StoreError> {
        self.rows("SELECT id FROM experiments WHERE name = ?1 ORDER BY id DESC", [name], |r| {
            r.get(0)
        })
    }

    /// The definition an experiment was started with.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn definition(&self, experiment: i64) -> Result<String, StoreError> {
        self.conn
            .query_row("SELECT definition FROM experiments WHERE id = ?1", [experiment], |r| {
                r.get(0)
            })
            .map_err(of(&self.path))
    }

    /// Trials of an experiment in the order in which they were stored.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn trials(&self, experiment: i64) -> Result<Vec<TrialRow>, StoreError> {
        let sql =
            format!("SELECT {TRIAL_COLUMNS} FROM trials WHERE experiment_id = ?1 ORDER BY id");
        self.rows(&sql, [experiment], trial_row)
    }

    /// Complete trials with the hash of their inputs: what a resumed run may skip.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn complete(&self, experiment: i64) -> Result<BTreeMap<TrialId, String>, StoreError> {
        let sql = format!(
            "SELECT {TRIAL_COLUMNS} FROM trials WHERE experiment_id = ?1 AND status = 'complete'"
        );
        let rows = self.rows(&sql, [experiment], trial_row)?;
        Ok(rows.into_iter().map(|r| (r.trial, r.input_hash)).collect())
    }

    /// Samples of the complete trials of an experiment, of one measure or of all.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn samples(
        &self,
        experiment: i64,
        measure: Option<&str>,
    ) -> Result<Vec<SampleRow>, StoreError> {
        self.rows(
            "SELECT t.id, t.device, t.scheduler, t.workload, t.repetition,
                 s.measure, s.unit, s.value, s.censored
             FROM trials t JOIN samples s ON s.trial_id = t.id
             WHERE t.experiment_id = ?1 AND t.status = 'complete' AND (?2 IS NULL OR s.measure = ?2)
             ORDER BY t.id, s.measure",
            params![experiment, measure],
            |r| {
                Ok(SampleRow {
                    trial: r.get(0)?,
                    device: r.get(1)?,
                    scheduler: r.get(2)?,
                    workload: r.get(3)?,
                    repetition: r.get(4)?,
                    measure: r.get(5)?,
                    unit: r.get(6)?,
                    value: r.get(7)?,
                    censored: r.get(8)?,
                })
            },
        )
    }

    /// The cells of an experiment by kernel, from its samples alone. It reads no record, so it groups a hundred
    /// thousand trials in seconds and in little memory.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn cells(&self, experiment: i64) -> Result<BTreeMap<String, Cells>, StoreError> {
        let e = of(&self.path);
        let mut out = BTreeMap::<String, Cells>::new();
        let mut figures = self
            .conn
            .prepare_cached(
                "SELECT measure, unit, value, better, censored FROM samples WHERE trial_id = ?1",
            )
            .map_err(&e)?;
        // Where I/Os were counted, there are their latencies.
        let mut counted =
            self.conn.prepare_cached("SELECT 1 FROM histograms WHERE trial_id = ?1").map_err(&e)?;
        for t in self.trials(experiment)? {
            let id = &t.trial;
            if !out.contains_key(&id.kernel) {
                out.insert(id.kernel.clone(), Cells::default());
            }
            let Some(cells) = out.get_mut(&id.kernel) else { continue };
            let cell = cells.cell(&id.device, &id.workload, &id.scheduler);
            if t.status != "complete" {
                let reason = if t.reason.trim().is_empty() { NO_REASON.into() } else { t.reason };
                cell.unusable.push(reason);
                continue;
            }
            cell.counted |= counted.exists([t.id]).map_err(&e)?;
            let origin = Origin::of(backend_kind(&t.backend));
            let mut rows = figures.query([t.id]).map_err(&e)?;
            while let Some(r) = rows.next().map_err(&e)? {
                let m = measure(r).map_err(&e)?;
                cell.add(id.repetition, m, origin);
            }
        }
        Ok(out)
    }

    /// One complete trial of each cell: the first repetition that is stored.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn first_of_each_cell(&self, experiment: i64) -> Result<Vec<(i64, TrialId)>, StoreError> {
        let sql = format!(
            "SELECT {TRIAL_COLUMNS} FROM trials WHERE id IN (
                 SELECT min(id) FROM trials WHERE experiment_id = ?1 AND status = 'complete'
                 GROUP BY device, scheduler, kernel, workload)
             ORDER BY id"
        );
        self.rows(&sql, [experiment], |r| trial_row(r).map(|t| (t.id, t.trial)))
    }

    pub(super) fn rows<T>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
        f: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut q = self.conn.prepare_cached(sql).map_err(of(&self.path))?;
        let rows = q.query_map(params, f).map_err(of(&self.path))?;
        rows.collect::<Result<_, _>>().map_err(of(&self.path))
    }
}
