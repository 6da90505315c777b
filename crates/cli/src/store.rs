//! The results file: where it is, and what is put into it during a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use iosched_experiment::{Record, Trial, TrialId, Until};
use iosched_results::store::{Store, StoreError};

use crate::args::DbArgs;
use crate::certain::certain;
use crate::fail::{Failure, Outcome};
use crate::files::note;

/// `$XDG_DATA_HOME/iosched/results.db`, else below `~/.local/share`.
pub(crate) fn default_path() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let data =
        absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("iosched").join("results.db"))
}

/// The results file that is meant.
pub(crate) fn path(db: &DbArgs) -> Outcome<PathBuf> {
    db.db.clone().or_else(default_path).ok_or_else(|| {
        Failure::with_help(
            "there is no home folder for the results file",
            "name one with --db FILE",
        )
    })
}

/// The results file for reading.
pub(crate) fn open_read_only(db: &DbArgs) -> Outcome<Store> {
    let path = path(db)?;
    if !path.exists() {
        let message = format!("there is no results file {}", path.display());
        return Err(Failure::with_help(
            message,
            "`iosched run` makes one; --db FILE names another",
        ));
    }
    match Store::open_read_only(&path) {
        // Opening it for writing brings it up to date (a copy of the old one is kept).
        Err(StoreError::Older { .. }) => Ok(Store::open(&path)?),
        other => Ok(other?),
    }
}

/// The results file for writing; made with its folder when it does not exist.
pub(crate) fn open(db: &DbArgs) -> Outcome<Store> {
    let path = path(db)?;
    if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    Ok(Store::open(&path)?)
}

/// An experiment that is being stored.
pub(crate) struct Storing {
    store: Store,
    experiment: i64,
    inputs: BTreeMap<Cell, String>,
    done: BTreeMap<TrialId, String>,
}

/// Device, scheduler, kernel, workload.
type Cell = (String, String, String, String);

fn cell(id: &TrialId) -> Cell {
    (id.device.clone(), id.scheduler.clone(), id.kernel.clone(), id.workload.clone())
}

/// The hash of a repetition; nothing for a cell that is not of this experiment. Repetitions need not be
/// planned: an experiment may go on until it is certain.
fn hash_of(inputs: &BTreeMap<Cell, String>, id: &TrialId) -> String {
    inputs.get(&cell(id)).map_or_else(String::new, |input| {
        let text = format!("{input} {} {}", id.repetition, id.seed);
        format!("{:016x}", iosched_engine::fnv1a(text.as_bytes()))
    })
}

/// Stands for everything a cell depends on, the program's version included.
fn input_of(trial: &Trial) -> String {
    let s = &trial.scheduler;
    let everything = format!(
        "{} {:?} {:?} {} {} {:?} {:?} {:?} {:?} {:?} {} {:?} {:?}",
        env!("CARGO_PKG_VERSION"),
        trial.device,
        trial.kernel,
        s.descriptor.name,
        s.generation.name,
        s.tunables,
        trial.settings,
        trial.jobs,
        trial.startup,
        trial.foreign,
        trial.cpus,
        trial.cgroups,
        trial.id,
    );
    format!("{:016x}", iosched_engine::fnv1a(everything.as_bytes()))
}

impl Storing {
    /// Begins an experiment in the results file. A file named by the user must work; the default one
    /// may be missing (a read-only home, say), which is said.
    pub(crate) fn begin(
        db: &DbArgs,
        name: &str,
        definition: &str,
        trials: &[Trial],
        until: Option<Until>,
        resume: bool,
    ) -> Outcome<Option<Storing>> {
        let begun = open(db).and_then(|mut store| {
            let first = trials.iter().filter(|t| t.id.repetition == 1);
            let inputs: BTreeMap<_, _> = first.map(|t| (cell(&t.id), input_of(t))).collect();
            let found = match store.find(name) {
                Ok(id) if resume => unfinished(&store, id, definition, (trials, until), &inputs)?,
                _ => None,
            };
            let (experiment, done) = match found {
                Some(found) => found,
                None => (store.begin(name, definition, "run")?, BTreeMap::new()),
            };
            store.expect(experiment, u32::try_from(trials.len()).unwrap_or(u32::MAX))?;
            Ok(Storing { store, experiment, inputs, done })
        });
        match begun {
            Ok(s) => Ok(Some(s)),
            Err(e) if db.db.is_some() => Err(e),
            Err(e) => {
                note(&format!("warning: results are not stored: {}", e.messages.join("; ")));
                Ok(None)
            }
        }
    }

    pub(crate) fn put(&mut self, record: &Record) -> Result<(), StoreError> {
        let hash = hash_of(&self.inputs, &record.trial);
        self.store.put(self.experiment, record, &hash).map(|_| ())
    }

    /// Whether an earlier start of the same experiment stored this trial.
    pub(crate) fn has(&self, id: &TrialId) -> bool {
        self.done.get(id).is_some_and(|h| *h == hash_of(&self.inputs, id))
    }

    /// How many trials an earlier start of the same experiment stored.
    pub(crate) fn kept(&self) -> usize {
        self.done.len()
    }

    /// Everything stored so far.
    pub(crate) fn records(&self) -> Result<Vec<Record>, StoreError> {
        self.store.records(self.experiment)
    }
}

type Found = (i64, BTreeMap<TrialId, String>);

/// The newest experiment of the same name, if it has the same definition and was interrupted.
fn unfinished(
    store: &Store,
    id: i64,
    definition: &str,
    (trials, until): (&[Trial], Option<Until>),
    inputs: &BTreeMap<Cell, String>,
) -> Outcome<Option<Found>> {
    if store.definition(id)? != definition {
        return Ok(None);
    }
    let done = store.complete(id)?;
    let planned = trials.iter().all(|t| done.get(&t.id) == Some(&hash_of(inputs, &t.id)));
    let enough = match until {
        Some(until) if planned => {
            let most = done.keys().map(|t| t.repetition).max().unwrap_or(0);
            most >= until.max_runs || certain(&store.records(id)?, until.ci)
        }
        _ => true,
    };
    Ok((!(planned && enough)).then_some((id, done)))
}
