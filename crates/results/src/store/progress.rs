//! Progress of an experiment that another process runs.

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

impl Store {
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
