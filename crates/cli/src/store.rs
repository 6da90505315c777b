//! The results file: where it is, and what is put into it during a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use iosched_experiment::{Record, Trial, TrialId};
use iosched_results::store::{Store, StoreError};

use crate::args::DbArgs;
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
    hashes: BTreeMap<TrialId, String>,
    done: BTreeMap<TrialId, String>,
}

/// Stands for everything a trial depends on, the program's version included.
fn input_hash(trial: &Trial) -> String {
    let s = &trial.scheduler;
    let everything = format!(
        "{} {:?} {:?} {} {} {:?} {:?} {:?} {} {:?} {:?}",
        env!("CARGO_PKG_VERSION"),
        trial.device,
        trial.kernel,
        s.descriptor.name,
        s.generation.name,
        s.tunables,
        trial.settings,
        trial.jobs,
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
        resume: bool,
    ) -> Outcome<Option<Storing>> {
        let begun = open(db).and_then(|mut store| {
            let hashes: BTreeMap<_, _> =
                trials.iter().map(|t| (t.id.clone(), input_hash(t))).collect();
            let (experiment, done) = match unfinished(&store, name, definition, &hashes, resume)? {
                Some(found) => found,
                None => (store.begin(name, definition, "run")?, BTreeMap::new()),
            };
            Ok(Storing { store, experiment, hashes, done })
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
        let hash = self.hashes.get(&record.trial).map_or("", String::as_str);
        self.store.put(self.experiment, record, hash).map(|_| ())
    }

    /// Whether an earlier start of the same experiment stored this trial.
    pub(crate) fn has(&self, id: &TrialId) -> bool {
        self.done.get(id).is_some_and(|h| self.hashes.get(id) == Some(h))
    }

    /// Everything stored so far.
    pub(crate) fn records(&self) -> Result<Vec<Record>, StoreError> {
        self.store.records(self.experiment)
    }
}

type Found = (i64, BTreeMap<TrialId, String>);

/// The newest experiment of the same name and definition, if it was interrupted.
fn unfinished(
    store: &Store,
    name: &str,
    definition: &str,
    hashes: &BTreeMap<TrialId, String>,
    resume: bool,
) -> Outcome<Option<Found>> {
    let Some(id) = store.find(name).ok().filter(|_| resume) else { return Ok(None) };
    if store.definition(id)? != definition {
        return Ok(None);
    }
    let done = store.complete(id)?;
    let all = hashes.iter().all(|(t, h)| done.get(t) == Some(h));
    Ok((!all).then_some((id, done)))
}
