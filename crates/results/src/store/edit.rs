//! What people change about stored results: names, notes, what is hidden. The figures stay as they were measured.

use std::collections::{BTreeMap, BTreeSet};

use iosched_types::nearest::did_you_mean;
use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::error::of;
use super::{Store, StoreError};

/// What is said about one scheduler of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunEdit {
    /// What tables and pages call it; empty for its own name.
    pub label: String,
    /// Tables and pages leave it out.
    pub hidden: bool,
    /// Words of people.
    pub note: String,
}

/// What was changed about an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Edits {
    /// Words about the experiment.
    pub note: String,
    /// By scheduler, as the trials call it.
    pub schedulers: BTreeMap<String, RunEdit>,
}

impl Edits {
    /// Whether nothing was changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Edits::default()
    }

    /// Whether a scheduler is left out.
    #[must_use]
    pub fn hides(&self, scheduler: &str) -> bool {
        self.schedulers.get(scheduler).is_some_and(|e| e.hidden)
    }

    /// What tables and pages call a scheduler.
    #[must_use]
    pub fn name<'a>(&'a self, scheduler: &'a str) -> &'a str {
        let label = self.schedulers.get(scheduler).map(|e| e.label.as_str());
        label.filter(|l| !l.is_empty()).unwrap_or(scheduler)
    }

    /// The schedulers that are left out.
    #[must_use]
    pub fn hidden(&self) -> Vec<&str> {
        self.schedulers.iter().filter(|(_, e)| e.hidden).map(|(s, _)| s.as_str()).collect()
    }

    /// All notes: what each is about, and its words.
    #[must_use]
    pub fn notes(&self) -> Vec<(String, String)> {
        let of = |(s, e): (&String, &RunEdit)| (self.name(s).to_string(), e.note.clone());
        let whole = std::iter::once(("experiment".to_string(), self.note.clone()));
        whole.chain(self.schedulers.iter().map(of)).filter(|(_, note)| !note.is_empty()).collect()
    }

    /// Two schedulers of one name could not be told apart: the first name that another one has.
    fn ambiguous(&self, all: &BTreeSet<String>) -> Option<String> {
        let mut seen = BTreeSet::new();
        all.iter().map(|s| self.name(s)).find(|n| !seen.insert(*n)).map(str::to_string)
    }
}

/// The scheduler that `SCHEDULER=TEXT` begins with, and the text. Schedulers may have `=` in their names themselves.
///
/// # Errors
/// The nearest name, or all of them.
pub fn split<'a>(
    text: &'a str,
    schedulers: &'a BTreeSet<String>,
) -> Result<(&'a str, &'a str), String> {
    let behind =
        |s: &'a String| Some((s.as_str(), text.strip_prefix(s.as_str())?.strip_prefix('=')?));
    let found = schedulers.iter().filter_map(behind).max_by_key(|(s, _)| s.len());
    found.ok_or_else(|| unknown(text.split('=').next().unwrap_or(text), schedulers))
}

/// That there is no such scheduler, with the nearest.
#[must_use]
pub fn unknown(scheduler: &str, schedulers: &BTreeSet<String>) -> String {
    let near = did_you_mean(scheduler, schedulers.iter().map(String::as_str));
    let all = || schedulers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let help = if near.is_empty() { format!("there are {}", all()) } else { near };
    format!("no scheduler \"{scheduler}\" in the experiment; {help}")
}

impl Store {
    /// The schedulers of an experiment, as its trials call them.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn schedulers(&self, experiment: i64) -> Result<BTreeSet<String>, StoreError> {
        let sql = "SELECT DISTINCT scheduler FROM trials WHERE experiment_id = ?1";
        Ok(self.rows(sql, [experiment], |r| r.get::<_, String>(0))?.into_iter().collect())
    }

    /// What was changed about an experiment.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn edits(&self, experiment: i64) -> Result<Edits, StoreError> {
        let rows = self.rows(
            "SELECT scheduler, label, hidden, note FROM edits WHERE experiment_id = ?1",
            [experiment],
            |r| {
                let edit = RunEdit { label: r.get(1)?, hidden: r.get(2)?, note: r.get(3)? };
                Ok((r.get::<_, String>(0)?, edit))
            },
        )?;
        let mut out = Edits::default();
        for (scheduler, edit) in rows {
            match scheduler.is_empty() {
                true => out.note = edit.note,
                false => drop(out.schedulers.insert(scheduler, edit)),
            }
        }
        Ok(out)
    }

    /// Keeps other edits in place of those there were, and gives the experiment another name if there is one.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::SameName`] when two schedulers would have one name, or all would be hidden.
    pub fn edit(
        &mut self,
        experiment: i64,
        edits: &Edits,
        name: Option<&str>,
    ) -> Result<(), StoreError> {
        let all = self.schedulers(experiment)?;
        if let Some(name) = edits.ambiguous(&all) {
            return Err(StoreError::SameName(name));
        }
        if !all.is_empty() && all.iter().all(|s| edits.hides(s)) {
            return Err(StoreError::AllHidden);
        }
        let path = self.path.clone();
        let e = of(&path);
        let tx = self.conn.transaction().map_err(&e)?;
        tx.execute("DELETE FROM edits WHERE experiment_id = ?1", [experiment]).map_err(&e)?;
        let whole = RunEdit { note: edits.note.clone(), ..RunEdit::default() };
        let rows = edits.schedulers.iter().map(|(s, e)| (s.as_str(), e));
        for (scheduler, edit) in std::iter::once(("", &whole)).chain(rows) {
            if *edit == RunEdit::default() {
                continue;
            }
            tx.execute(
                "INSERT INTO edits VALUES (?1, ?2, ?3, ?4, ?5)",
                params![experiment, scheduler, edit.label, edit.hidden, edit.note],
            )
            .map_err(&e)?;
        }
        if let Some(name) = name {
            tx.execute("UPDATE experiments SET name = ?2 WHERE id = ?1", params![experiment, name])
                .map_err(&e)?;
        }
        tx.commit().map_err(&e)
    }

    /// What tools printed during a trial: (name, text).
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn logs(&self, trial: i64) -> Result<Vec<(String, String)>, StoreError> {
        let packed = self.rows(
            "SELECT name, text FROM logs WHERE trial_id = ?1 ORDER BY position",
            [trial],
            |r| Ok((r.get::<_, String>(0)?, r.get::<_, Vec<u8>>(1)?)),
        )?;
        let text = |(name, bytes): (String, Vec<u8>)| {
            let bytes =
                crate::hist::inflate(&bytes, MAX_LOG).map_err(|e| StoreError::Unreadable {
                    path: self.path.clone(),
                    trial,
                    reason: format!("log {name}: {e}"),
                })?;
            Ok((name, String::from_utf8_lossy(&bytes).into_owned()))
        };
        packed.into_iter().map(text).collect()
    }

    /// Logs of a trial as they are stored.
    pub(super) fn packed_logs(
        &self,
        trial: i64,
    ) -> Result<Vec<(i64, String, Vec<u8>)>, StoreError> {
        self.rows("SELECT position, name, text FROM logs WHERE trial_id = ?1", [trial], |r| {
            Ok((r.get(0)?, r.get(1)?, r.get(2)?))
        })
    }
}

/// Largest log after decompression.
const MAX_LOG: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheduler_with_tunables_is_split_at_the_right_sign() {
        let all: BTreeSet<String> = ["bfq", "bfq low_latency=0"].map(String::from).into();
        assert_eq!(split("bfq=default", &all), Ok(("bfq", "default")));
        assert_eq!(split("bfq low_latency=0=tuned=x", &all), Ok(("bfq low_latency=0", "tuned=x")));
        assert!(split("bqf=x", &all).unwrap_err().contains("did you mean \"bfq\""));
    }

    #[test]
    fn names_stay_apart() {
        let all: BTreeSet<String> = ["bfq", "none"].map(String::from).into();
        let mut edits = Edits::default();
        edits.schedulers.entry("bfq".into()).or_default().label = "none".into();
        assert_eq!(edits.ambiguous(&all).as_deref(), Some("none"));
        edits.schedulers.entry("none".into()).or_default().label = "no scheduler".into();
        assert_eq!(edits.ambiguous(&all), None);
        edits.note = "cold cache".into();
        assert_eq!(edits.notes(), [("experiment".to_string(), "cold cache".to_string())]);
    }
}
