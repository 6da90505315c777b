//! Reading whole records: body, histograms, series, traces.

use std::collections::BTreeMap;

use iosched_experiment::record::{DispatchPoint, Record, SCHEMA, Series, Warning};
use rusqlite::OptionalExtension;

use super::error::of;
use super::{Store, StoreError, TrialRow};
use crate::hist::{inflate, unpack};

/// Largest record body and series after decompression.
const MAX_BODY: u64 = 256 << 20;

impl Store {
    /// All records of an experiment in the order in which they were stored.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn records(&self, experiment: i64) -> Result<Vec<Record>, StoreError> {
        let mut out = Vec::new();
        self.for_each(experiment, |_, r| out.push(r))?;
        Ok(out)
    }

    /// Calls `f` with each record in turn, so that large experiments need no memory.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn for_each(
        &self,
        experiment: i64,
        mut f: impl FnMut(i64, Record),
    ) -> Result<(), StoreError> {
        let ids = self.rows(
            "SELECT id FROM trials WHERE experiment_id = ?1 ORDER BY id",
            [experiment],
            |r| r.get::<_, i64>(0),
        )?;
        for id in ids {
            f(id, self.record(id)?);
        }
        Ok(())
    }

    /// One record.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn record(&self, trial: i64) -> Result<Record, StoreError> {
        let e = of(&self.path);
        let unreadable =
            |reason: String| StoreError::Unreadable { path: self.path.clone(), trial, reason };
        let (schema, body): (u32, Vec<u8>) = self
            .conn
            .prepare_cached("SELECT schema, body FROM records WHERE trial_id = ?1")
            .and_then(|mut q| q.query_row([trial], |r| Ok((r.get(0)?, r.get(1)?))))
            .map_err(&e)?;
        if schema > SCHEMA {
            return Err(StoreError::RecordSchema { found: schema, known: SCHEMA });
        }
        let body = inflate(&body, MAX_BODY).map_err(|e| unreadable(e.to_string()))?;
        let mut record: Record =
            serde_json::from_slice(&body).map_err(|e| unreadable(e.to_string()))?;
        self.histograms(trial, &mut record).map_err(&e)?.map_err(&unreadable)?;
        record.series = self.series(trial)?;
        record.warnings = self.rows(
            "SELECT code, message, advice FROM warnings WHERE trial_id = ?1 ORDER BY position",
            [trial],
            |r| Ok(Warning { code: r.get(0)?, message: r.get(1)?, advice: r.get(2)? }),
        )?;
        let pairs = self.rows(
            "SELECT key, value FROM provenance
             WHERE set_id = (SELECT provenance_id FROM trials WHERE id = ?1)",
            [trial],
            |r| Ok((r.get(0)?, r.get(1)?)),
        )?;
        record.provenance = pairs.into_iter().collect();
        Ok(record)
    }

    /// Trials of an experiment that were traced, with their number of commands.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn traced(&self, experiment: i64) -> Result<Vec<(TrialRow, u64)>, StoreError> {
        let counts: BTreeMap<i64, i64> = self
            .rows(
                "SELECT trial_id, commands FROM traces WHERE trial_id IN
                     (SELECT id FROM trials WHERE experiment_id = ?1)",
                [experiment],
                |r| Ok((r.get(0)?, r.get(1)?)),
            )?
            .into_iter()
            .collect();
        let trials = self.trials(experiment)?.into_iter();
        Ok(trials.filter_map(|t| counts.get(&t.id).map(|n| (t, n.cast_unsigned()))).collect())
    }

    /// The whole trace of a trial; nothing when it was not traced.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn trace(&self, trial: i64) -> Result<Vec<DispatchPoint>, StoreError> {
        let Some((_, packed)) = self.packed_trace(trial)? else { return Ok(Vec::new()) };
        crate::trace::unpack(&packed).map_err(|e| StoreError::Unreadable {
            path: self.path.clone(),
            trial,
            reason: e.to_string(),
        })
    }

    pub(super) fn packed_trace(&self, trial: i64) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
        self.conn
            .prepare_cached("SELECT commands, packed FROM traces WHERE trial_id = ?1")
            .and_then(|mut q| q.query_row([trial], |r| Ok((r.get(0)?, r.get(1)?))).optional())
            .map_err(of(&self.path))
    }

    fn histograms(&self, trial: i64, record: &mut Record) -> rusqlite::Result<Result<(), String>> {
        for (sql, total) in [
            ("SELECT job, direction, bins FROM histograms WHERE trial_id = ?1", false),
            ("SELECT job, direction, bins FROM totals WHERE trial_id = ?1", true),
        ] {
            let mut q = self.conn.prepare_cached(sql)?;
            let mut rows = q.query([trial])?;
            while let Some(r) = rows.next()? {
                let (job, direction, bins): (u32, String, Option<Vec<u8>>) =
                    (r.get(0)?, r.get(1)?, r.get(2)?);
                let Some(j) = record.jobs.get_mut(job as usize) else {
                    return Ok(Err(format!("histogram of job {job}, which does not exist")));
                };
                let side = match direction.as_str() {
                    "read" => &mut j.read,
                    "write" => &mut j.write,
                    "trim" => &mut j.trim,
                    _ => &mut j.sync,
                };
                let h = match bins.map(|b| unpack(&b)) {
                    Some(Ok(h)) => h,
                    Some(Err(e)) => return Ok(Err(format!("histogram of job {job}: {e}"))),
                    None => side.clat.clone(),
                };
                if total { side.lat_hist = h } else { side.clat = h }
            }
        }
        Ok(Ok(()))
    }

    fn series(&self, trial: i64) -> Result<Vec<Series>, StoreError> {
        let rows = self.rows(
            "SELECT name, unit, step_ns, points FROM series WHERE trial_id = ?1 ORDER BY position",
            [trial],
            |r| Ok((r.get(0)?, r.get(1)?, r.get::<_, i64>(2)?, r.get::<_, Vec<u8>>(3)?)),
        )?;
        let mut out = Vec::new();
        for (name, unit, step, points) in rows {
            let bytes = inflate(&points, MAX_BODY).map_err(|e| StoreError::Unreadable {
                path: self.path.clone(),
                trial,
                reason: format!("series {name}: {e}"),
            })?;
            let (points, _) = bytes.as_chunks::<8>();
            let values = points.iter().map(|b| f64::from_le_bytes(*b)).collect();
            out.push(Series { name, unit, step: step.cast_unsigned(), values });
        }
        Ok(out)
    }
}
