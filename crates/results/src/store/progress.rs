//! Progress of an experiment that another process runs.

use std::collections::{BTreeMap, BTreeSet};

use iosched_experiment::record::TrialId;
use rusqlite::params;

use super::error::of;
use super::{Store, StoreError};

/// The pace is taken over this many trials.
const PACE: u32 = 20;

/// How far an experiment is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Trials stored.
    pub stored: u32,
    /// Trials it is to have, where that is known.
    pub planned: Option<u32>,
    /// Seconds a trial, over the last ones; `None` before the second trial.
    pub pace: Option<f64>,
    /// Seconds since the last trial was stored.
    pub silent: f64,
}

impl Progress {
    /// Whether trials are still to come.
    #[must_use]
    pub fn under_way(&self) -> bool {
        self.planned.is_some_and(|p| self.stored < p)
    }

    /// Seconds that are left at the pace of the last trials.
    #[must_use]
    pub fn left(&self) -> Option<f64> {
        let missing = self.planned?.saturating_sub(self.stored);
        Some((self.pace? * f64::from(missing) - self.silent).max(0.0))
    }

    /// Whether the experiment seems to have stopped: no trial came for far longer than a trial takes.
    #[must_use]
    pub fn stalled(&self) -> bool {
        self.under_way() && self.silent > (20.0 * self.pace.unwrap_or(0.0)).max(600.0)
    }
}

/// Schedulers without any trial in a cell that others have, and which cells: `kyber (desktop on ssd)`.
fn missing<'a>(trials: impl IntoIterator<Item = &'a TrialId>) -> Vec<String> {
    let mut cells: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    let mut schedulers = BTreeSet::new();
    for t in trials {
        schedulers.insert(t.scheduler.as_str());
        cells.entry((&t.workload, &t.device)).or_default().insert(&t.scheduler);
    }
    let lacks = |s: &&str| {
        let all = cells.iter().filter(|(_, there)| !there.contains(s));
        let all: Vec<String> = all.map(|((w, d), _)| format!("{w} on {d}")).collect();
        match &all[..] {
            [] => None,
            [a, b, c, _, ..] => Some(format!("{s} ({a}, {b}, {c} and {} more)", all.len() - 3)),
            _ => Some(format!("{s} ({})", all.join(", "))),
        }
    };
    schedulers.iter().filter_map(lacks).collect()
}

impl Store {
    /// What to say of an experiment of which trials are missing; `None` for one that has all.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn partial(&self, experiment: i64) -> Result<Option<String>, StoreError> {
        let progress = self.progress(experiment)?;
        let Some(planned) = progress.planned.filter(|_| progress.under_way()) else {
            return Ok(None);
        };
        let why = if progress.stalled() { "interrupted" } else { "interrupted, or still running" };
        let mut words = format!("{} of {planned} trials: {why}", progress.stored);
        let rows = self.trials(experiment)?;
        let missing = missing(rows.iter().map(|r| &r.trial));
        if !missing.is_empty() {
            words += &format!("; without a trial: {}", missing.join(", "));
        }
        Ok(Some(words))
    }

    /// How far an experiment is.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn progress(&self, experiment: i64) -> Result<Progress, StoreError> {
        self.conn
            .query_row(
                "WITH last AS (
                     SELECT unixepoch(stored) AS at FROM trials WHERE experiment_id = ?1
                     ORDER BY id DESC LIMIT ?2)
                 SELECT (SELECT count(*) FROM trials WHERE experiment_id = ?1),
                     (SELECT planned FROM experiments WHERE id = ?1),
                     (SELECT (max(at) - min(at)) * 1.0 / nullif(count(*) - 1, 0) FROM last),
                     (SELECT max(0, unixepoch('now') - coalesce(max(at), unixepoch('now'))) * 1.0 FROM last)",
                params![experiment, PACE + 1],
                |r| {
                    Ok(Progress {
                        stored: r.get(0)?,
                        planned: r.get(1)?,
                        pace: r.get(2)?,
                        silent: r.get(3)?,
                    })
                },
            )
            .map_err(of(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_experiment_says_so_and_who_misses_what() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("r.db")).unwrap();
        let id = store.begin("night", "", "run").unwrap();
        for (scheduler, workload) in [("none", "a"), ("bfq", "a"), ("none", "b")] {
            let trial = TrialId {
                device: "disk".into(),
                scheduler: scheduler.into(),
                workload: workload.into(),
                repetition: 1,
                ..TrialId::default()
            };
            let record = iosched_experiment::Record { trial, ..Default::default() };
            store.put(id, &record, "h").unwrap();
        }
        store.expect(id, 4).unwrap();
        let words =
            "3 of 4 trials: interrupted, or still running; without a trial: bfq (b on disk)";
        assert_eq!(store.partial(id).unwrap().as_deref(), Some(words));
        store.expect(id, 3).unwrap();
        assert_eq!(store.partial(id).unwrap(), None);
    }

    #[test]
    fn what_is_left_follows_the_pace() {
        let p = Progress { stored: 10, planned: Some(40), pace: Some(2.0), silent: 1.0 };
        assert!(p.under_way() && !p.stalled());
        assert_eq!(p.left(), Some(59.0));
        assert!(Progress { silent: 3600.0, ..p }.stalled());
        assert_eq!(Progress { pace: None, ..p }.left(), None);
        assert_eq!(Progress { planned: None, ..p }.left(), None);
        assert!(!Progress { stored: 40, silent: 3600.0, ..p }.under_way());
    }
}
