//! Writing.

use std::collections::BTreeMap;

use iosched_experiment::record::{BackendKind, Record, SCHEMA, Series, Status, TrialId};
use rusqlite::{Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};

use super::error::of;
use super::{Store, StoreError};
use crate::hist::{deflate, pack};
use crate::measure::measures;
use crate::stats::Better;

impl Store {
    /// Starts an experiment (always a new one; see [`Store::find`] and [`Store::complete`] for resuming).
    /// `definition` is the experiment file with its job files in it, `source` is `run` or what was imported.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn begin(&mut self, name: &str, definition: &str, source: &str) -> Result<i64, StoreError> {
        self.conn
            .query_row(
                "INSERT INTO experiments (uid, name, created, definition, source)
                 VALUES (lower(hex(randomblob(16))), ?1, strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?2, ?3)
                 RETURNING id",
                params![name, definition, source],
                |r| r.get(0),
            )
            .map_err(of(&self.path))
    }

    /// Says how many trials the experiment is to have, those that are stored already included.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn expect(&mut self, experiment: i64, trials: u32) -> Result<(), StoreError> {
        self.conn
            .execute(
                "UPDATE experiments SET planned = ?2 WHERE id = ?1",
                params![experiment, trials],
            )
            .map(|_| ())
            .map_err(of(&self.path))
    }

    /// Stores one trial, in a transaction of its own. A trial stored before under the same cell and
    /// repetition is replaced. `input_hash` stands for everything the trial depends on: a resumed run
    /// skips a complete trial only when it is the same.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing of the trial is stored.
    pub fn put(
        &mut self,
        experiment: i64,
        record: &Record,
        input_hash: &str,
    ) -> Result<i64, StoreError> {
        self.put_all(experiment, [(record, input_hash)]).map(|ids| ids[0])
    }

    /// Stores several trials in one transaction: all or none.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn put_all<'a>(
        &mut self,
        experiment: i64,
        records: impl IntoIterator<Item = (&'a Record, &'a str)>,
    ) -> Result<Vec<i64>, StoreError> {
        let path = self.path.clone();
        let e = of(&path);
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&e)?;
        let mut ids = Vec::new();
        for (record, hash) in records {
            finite(record)?;
            ids.push(insert(&tx, experiment, record, hash).map_err(&e)?);
        }
        tx.commit().map_err(&e)?;
        Ok(ids)
    }

    /// Deletes an experiment with its trials. Space is reused, not returned.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn delete(&mut self, experiment: i64) -> Result<(), StoreError> {
        let path = self.path.clone();
        let e = of(&path);
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&e)?;
        tx.execute("DELETE FROM experiments WHERE id = ?1", [experiment]).map_err(&e)?;
        tx.execute(
            "DELETE FROM provenance_sets WHERE id NOT IN (SELECT provenance_id FROM trials)",
            [],
        )
        .map_err(&e)?;
        tx.commit().map_err(&e)
    }
}

/// How a trial is named in messages.
pub(crate) fn describe(t: &TrialId) -> String {
    format!("{} / {} / {} / {} #{}", t.device, t.scheduler, t.kernel, t.workload, t.repetition)
}

/// JSON has no NaN: a record with one would be stored but could not be read.
fn finite(record: &Record) -> Result<(), StoreError> {
    if record.schema > SCHEMA {
        return Err(StoreError::RecordSchema { found: record.schema, known: SCHEMA });
    }
    let bad = |what: String| Err(StoreError::NotFinite { what, trial: describe(&record.trial) });
    if let Some(m) = record.metrics.iter().find(|m| !m.value.is_finite()) {
        return bad(format!("metric {}", m.name));
    }
    for j in &record.jobs {
        for d in [&j.read, &j.write, &j.trim, &j.sync] {
            for m in [&d.slat, &d.lat, &d.bw, &d.iops] {
                if ![m.min, m.max, m.mean, m.m2].iter().all(|x| x.is_finite()) {
                    return bad(format!("a moment of job {}", j.name));
                }
            }
        }
    }
    Ok(())
}

fn insert(
    tx: &Transaction<'_>,
    experiment: i64,
    record: &Record,
    hash: &str,
) -> rusqlite::Result<i64> {
    let t = &record.trial;
    tx.prepare_cached(
        "DELETE FROM trials WHERE experiment_id = ?1 AND device = ?2 AND scheduler = ?3
         AND kernel = ?4 AND workload = ?5 AND repetition = ?6",
    )?
    .execute(params![
        experiment,
        t.device,
        t.scheduler,
        t.kernel,
        t.workload,
        t.repetition
    ])?;
    let provenance = provenance_set(tx, &record.provenance)?;
    let (status, reason) = status_words(&record.status);
    let id: i64 = tx
        .prepare_cached(
            "INSERT INTO trials (experiment_id, experiment, device, scheduler, kernel, workload,
                 repetition, seed, input_hash, backend, status, reason, elapsed_ns, stored, provenance_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
                 strftime('%Y-%m-%dT%H:%M:%SZ', 'now'), ?14) RETURNING id",
        )?
        .query_row(
            params![
                experiment, t.experiment, t.device, t.scheduler, t.kernel, t.workload, t.repetition,
                t.seed.cast_signed(), hash, record.backend.traits().name, status, reason,
                record.elapsed.cast_signed(), provenance
            ],
            |r| r.get(0),
        )?;
    insert_parts(tx, id, record)?;
    Ok(id)
}

fn insert_parts(tx: &Transaction<'_>, id: i64, record: &Record) -> rusqlite::Result<()> {
    let failed = |e: std::io::Error| rusqlite::Error::ToSqlConversionFailure(Box::new(e));
    let mut body = record.clone();
    body.trace.clear();
    body.logs.clear();
    body.provenance.clear();
    body.series.clear();
    body.warnings.clear();
    let mut histogram = tx.prepare_cached("INSERT INTO histograms VALUES (?1, ?2, ?3, ?4)")?;
    let mut total = tx.prepare_cached("INSERT INTO totals VALUES (?1, ?2, ?3, ?4)")?;
    for (i, j) in body.jobs.iter_mut().enumerate() {
        let sides = [
            ("read", &mut j.read),
            ("write", &mut j.write),
            ("trim", &mut j.trim),
            ("sync", &mut j.sync),
        ];
        for (name, side) in sides {
            let h = std::mem::take(&mut side.clat);
            if h.count() > 0 {
                histogram.execute(params![id, i as i64, name, pack(&h).map_err(failed)?])?;
            }
            let all = std::mem::take(&mut side.lat_hist);
            if !all.is_empty() {
                let packed = (all != h).then(|| pack(&all)).transpose().map_err(failed)?;
                total.execute(params![id, i as i64, name, packed])?;
            }
        }
    }
    let body = serde_json::to_vec(&body).map_err(|e| failed(e.into()))?;
    tx.prepare_cached("INSERT INTO records VALUES (?1, ?2, ?3)")?.execute(params![
        id,
        record.schema,
        deflate(&body).map_err(failed)?
    ])?;
    if !record.trace.is_empty() {
        let packed = crate::trace::pack(&record.trace).map_err(failed)?;
        tx.prepare_cached("INSERT INTO traces VALUES (?1, ?2, ?3)")?.execute(params![
            id,
            record.trace.len() as i64,
            packed
        ])?;
    }
    let mut log = tx.prepare_cached("INSERT INTO logs VALUES (?1, ?2, ?3, ?4)")?;
    for (i, (name, text)) in record.logs.iter().enumerate() {
        log.execute(params![id, i as i64, name, deflate(text.as_bytes()).map_err(failed)?])?;
    }
    let mut series = tx.prepare_cached("INSERT INTO series VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for (i, s) in record.series.iter().enumerate() {
        let points = deflate(&points(s)).map_err(failed)?;
        series.execute(params![id, i as i64, s.name, s.unit, s.step.cast_signed(), points])?;
    }
    let mut warning = tx.prepare_cached("INSERT INTO warnings VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (i, w) in record.warnings.iter().enumerate() {
        warning.execute(params![id, i as i64, w.code, w.message, w.advice])?;
    }
    let mut sample =
        tx.prepare_cached("INSERT OR REPLACE INTO samples VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for m in measures(record) {
        let better = if m.better == Better::Higher { "higher" } else { "lower" };
        sample.execute(params![id, m.name, m.unit, m.value, better, m.censored])?;
    }
    Ok(())
}

fn points(s: &Series) -> Vec<u8> {
    s.values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn provenance_set(tx: &Transaction<'_>, pairs: &BTreeMap<String, String>) -> rusqlite::Result<i64> {
    let mut sha = Sha256::new();
    for (k, v) in pairs {
        for part in [k, v] {
            sha.update((part.len() as u64).to_le_bytes());
            sha.update(part.as_bytes());
        }
    }
    let hash: String = sha.finalize().iter().map(|b| format!("{b:02x}")).collect();
    let known = tx
        .prepare_cached("SELECT id FROM provenance_sets WHERE hash = ?1")?
        .query_row([&hash], |r| r.get(0));
    match known {
        Err(rusqlite::Error::QueryReturnedNoRows) => {}
        other => return other,
    }
    let id: i64 = tx
        .prepare_cached("INSERT INTO provenance_sets (hash) VALUES (?1) RETURNING id")?
        .query_row([&hash], |r| r.get(0))?;
    let mut pair = tx.prepare_cached("INSERT INTO provenance VALUES (?1, ?2, ?3)")?;
    for (k, v) in pairs {
        pair.execute(params![id, k, v])?;
    }
    Ok(id)
}

/// The backend of a name in the store. An unknown one of a later version counts as imported.
pub(crate) fn backend_kind(word: &str) -> BackendKind {
    BackendKind::find(word).unwrap_or(BackendKind::Imported)
}

fn status_words(s: &Status) -> (&'static str, &str) {
    match s {
        Status::Complete => ("complete", ""),
        Status::Invalid(why) => ("invalid", why),
        Status::Failed(why) => ("failed", why),
    }
}
