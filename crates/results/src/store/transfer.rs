//! Whole experiments in and out: the JSON document, import, merge.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use iosched_experiment::record::{Record, TrialId};
use iosched_experiment::{COMMAND_LINE, OPTIONS_LINE};
use rusqlite::{OptionalExtension, params};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use super::edit::Edits;
use super::error::of;
use super::write::describe;
use super::{Store, StoreError};
use crate::answer::{Answer, answers_of};
use crate::verdict::{Verdict, verdicts_of};

/// `format` of a [`Document`].
pub const DOCUMENT_FORMAT: &str = "iosched-results";

/// Results as one JSON document (`docs/schema/results.schema.json`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// [`DOCUMENT_FORMAT`].
    pub format: String,
    /// Version of the document's shape.
    pub schema: u32,
    /// The experiments.
    pub experiments: Vec<ExperimentDocument>,
}

/// One experiment of a [`Document`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentDocument {
    /// Random identity; empty in hand-made documents.
    #[serde(default)]
    pub uid: String,
    /// Name.
    pub name: String,
    /// UTC, ISO 8601.
    #[serde(default)]
    pub created: String,
    /// The experiment file as it was.
    #[serde(default)]
    pub definition: String,
    /// `run`, or what it was imported from.
    #[serde(default)]
    pub source: String,
    /// The records.
    pub records: Vec<Record>,
    /// Hash of the inputs of each record, in their order. A resumed run uses it to skip trials. Empty where unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_hashes: Vec<String>,
    /// Names, notes and hidden schedulers.
    #[serde(default, skip_serializing_if = "Edits::is_empty")]
    pub edits: Edits,
    /// What to use on each device, with gains and prices. It follows from the records, so nothing of it is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "made_again")]
    pub verdicts: Vec<Verdict>,
    /// What to use, for each device and goal. It follows from the records, so nothing of it is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "made_again")]
    pub answers: Vec<Answer>,
    /// What is said of all answers: that nothing measured what the experiment asks for. Nothing of it is read, either.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "made_again")]
    pub notes: Vec<String>,
}

/// Passes over what is made again from the records.
fn made_again<'de, D: Deserializer<'de>, T>(from: D) -> Result<Vec<T>, D::Error> {
    IgnoredAny::deserialize(from).map(|_| Vec::new())
}

impl Document {
    /// A document of one experiment made of records.
    #[must_use]
    pub fn of(name: &str, records: Vec<Record>) -> Document {
        let experiment =
            ExperimentDocument { name: name.into(), records, ..ExperimentDocument::default() };
        Document::of_experiments(vec![experiment])
    }

    /// A document of experiments, with what follows from their records.
    #[must_use]
    pub fn answered(mut experiments: Vec<ExperimentDocument>) -> Document {
        for e in &mut experiments {
            (e.answers, e.notes) = answers_of(&e.records);
            e.verdicts = verdicts_of(&e.records);
        }
        Document::of_experiments(experiments)
    }

    /// A document of experiments.
    #[must_use]
    pub fn of_experiments(experiments: Vec<ExperimentDocument>) -> Document {
        Document { format: DOCUMENT_FORMAT.into(), schema: 1, experiments }
    }
}

/// What a merge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeReport {
    /// Experiments copied.
    pub added: usize,
    /// Experiments that were there already, with the trials they lacked now added.
    pub completed: usize,
    /// Names of experiments that were here in part, and got other trials of the same plan; with their numbers.
    pub joined: Vec<(String, i64)>,
    /// Trials copied.
    pub trials: usize,
    /// Names of several experiments now, with their numbers, the newest first.
    pub shared: Vec<(String, Vec<i64>)>,
}

impl Store {
    /// An experiment as a document.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn export(&self, experiment: i64) -> Result<ExperimentDocument, StoreError> {
        let mut doc = self
            .conn
            .query_row(
                "SELECT uid, name, created, definition, source FROM experiments WHERE id = ?1",
                [experiment],
                |r| {
                    Ok(ExperimentDocument {
                        uid: r.get(0)?,
                        name: r.get(1)?,
                        created: r.get(2)?,
                        definition: r.get(3)?,
                        source: r.get(4)?,
                        ..ExperimentDocument::default()
                    })
                },
            )
            .map_err(of(&self.path))?;
        doc.records = self.records(experiment)?;
        doc.edits = self.edits(experiment)?;
        doc.input_hashes = self.trials(experiment)?.into_iter().map(|t| t.input_hash).collect();
        if doc.input_hashes.iter().all(String::is_empty) {
            doc.input_hashes.clear();
        }
        Ok(doc)
    }

    /// Imports an experiment, all of it or nothing. An experiment with a known identity only gets the trials that it
    /// lacks. Returns the key and the number of trials added.
    ///
    /// # Errors
    /// [`StoreError`], among them a trial given twice.
    pub fn import(&mut self, doc: &ExperimentDocument) -> Result<(i64, usize), StoreError> {
        let mut seen = BTreeSet::new();
        for r in &doc.records {
            if !seen.insert(cell(&r.trial)) {
                return Err(StoreError::Duplicate(describe(&r.trial)));
            }
        }
        let id = match self.known(&doc.uid)? {
            Some(id) => id,
            None => self.begin(&doc.name, &doc.definition, &doc.source)?,
        };
        let fresh = self.trials(id)?.is_empty();
        let result = self.fill(id, doc);
        if fresh && result.is_err() {
            // The experiment was begun above. Without its trials it must not stay.
            self.delete(id)?;
        } else if fresh && !doc.edits.is_empty() {
            self.edit(id, &doc.edits, None)?;
        }
        result.map(|n| (id, n))
    }

    fn known(&self, uid: &str) -> Result<Option<i64>, StoreError> {
        if uid.is_empty() {
            return Ok(None);
        }
        self.conn
            .query_row("SELECT id FROM experiments WHERE uid = ?1", [uid], |r| r.get(0))
            .optional()
            .map_err(of(&self.path))
    }

    fn fill(&mut self, id: i64, doc: &ExperimentDocument) -> Result<usize, StoreError> {
        let have: BTreeSet<_> = self.trials(id)?.iter().map(|t| cell(&t.trial)).collect();
        let missing: Vec<_> = doc
            .records
            .iter()
            .enumerate()
            .filter(|(_, r)| !have.contains(&cell(&r.trial)))
            .map(|(i, r)| (r, doc.input_hashes.get(i).map_or("", String::as_str)))
            .collect();
        let n = missing.len();
        self.put_all(id, missing)?;
        if !doc.uid.is_empty() {
            self.conn
                .execute(
                    "UPDATE experiments SET uid = ?2, created = ?3 WHERE id = ?1",
                    params![id, doc.uid, doc.created],
                )
                .map_err(of(&self.path))?;
        }
        Ok(n)
    }

    /// Copies every experiment of another results file. That file is only read.
    ///
    /// # Errors
    /// [`StoreError`]; experiments merged before the error stay.
    pub fn merge(&mut self, other: &Path) -> Result<MergeReport, StoreError> {
        let other = Store::open_read_only(other)?;
        let mut report = MergeReport::default();
        let mut experiments = other.list()?;
        experiments.reverse();
        for e in experiments {
            let known = self.known(&e.uid)?.is_some();
            let mut doc = other.export(e.id)?;
            if !known && let Some(id) = self.other_part(&doc)? {
                let rows = self.list()?;
                doc.uid = rows.into_iter().find(|r| r.id == id).map_or(doc.uid, |r| r.uid);
                report.joined.push((doc.name.clone(), id));
            }
            let known = known || self.known(&doc.uid)?.is_some();
            let (id, added) = self.import(&doc)?;
            self.take_traces(id, &other, e.id)?;
            report.trials += added;
            report.added += usize::from(!known);
            report.completed += usize::from(known && added > 0);
            let name = doc.name;
            let all = self.named(&name)?;
            if !known && all.len() > 1 {
                report.shared.retain(|(n, _)| *n != name);
                report.shared.push((name, all));
            }
        }
        Ok(report)
    }

    /// The experiment of which a document has other trials: of the same name and plan, and what both have is the same.
    fn other_part(&self, doc: &ExperimentDocument) -> Result<Option<i64>, StoreError> {
        if doc.definition.is_empty() {
            return Ok(None);
        }
        for id in self.named(&doc.name)? {
            if plan(&self.definition(id)?) != plan(&doc.definition) {
                continue;
            }
            let here = self.records(id)?;
            let here: BTreeMap<_, &Record> = here.iter().map(|r| (cell(&r.trial), r)).collect();
            let agrees = |r: &Record| here.get(&cell(&r.trial)).is_none_or(|own| **own == *r);
            if doc.records.iter().all(agrees) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Documents carry no traces and logs: they go over packed as they are, one at a time.
    fn take_traces(&mut self, id: i64, other: &Store, from: i64) -> Result<(), StoreError> {
        let here: BTreeMap<_, i64> =
            self.trials(id)?.into_iter().map(|t| (cell(&t.trial), t.id)).collect();
        for t in other.trials(from)? {
            let Some(to) = here.get(&cell(&t.trial)) else { continue };
            for (position, name, text) in other.packed_logs(t.id)? {
                self.conn
                    .execute(
                        "INSERT OR IGNORE INTO logs VALUES (?1, ?2, ?3, ?4)",
                        params![to, position, name, text],
                    )
                    .map_err(of(&self.path))?;
            }
        }
        for (t, _) in other.traced(from)? {
            let (Some(to), Some((commands, packed))) =
                (here.get(&cell(&t.trial)), other.packed_trace(t.id)?)
            else {
                continue;
            };
            self.conn
                .execute(
                    "INSERT OR IGNORE INTO traces VALUES (?1, ?2, ?3)",
                    params![to, commands, packed],
                )
                .map_err(of(&self.path))?;
        }
        Ok(())
    }
}

/// Options that say which part of an experiment is run.
const PARTS: [&str; 4] = ["--device", "--scheduler", "--kernel", "--seed"];

/// What a definition asks for, without which part of it: two parts of one plan may have been run on two machines.
fn plan(definition: &str) -> String {
    let quick = definition.lines().next().is_some_and(|l| l.starts_with(COMMAND_LINE));
    let mut out = String::new();
    for line in definition.lines() {
        let list = quick && (line.starts_with("devices = [") || line.starts_with("schedulers = ["));
        if list || line.starts_with(COMMAND_LINE) {
            continue;
        }
        let Some(options) = line.strip_prefix(OPTIONS_LINE) else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        let mut words = options.split(' ');
        while let Some(word) = words.next() {
            if PARTS.contains(&word) {
                words.next();
            } else {
                out.push_str(word);
                out.push(' ');
            }
        }
    }
    out
}

/// What makes a trial unique within an experiment.
fn cell(t: &TrialId) -> (String, String, String, String, u32) {
    (t.device.clone(), t.scheduler.clone(), t.kernel.clone(), t.workload.clone(), t.repetition)
}
