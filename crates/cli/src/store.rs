//! The results file: where it is, and what is put into it during a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context;
use iosched_experiment::{BackendKind, Record, Trial, TrialId};
use iosched_results::store::{Progress, Store, StoreError};

use crate::args::DbArgs;
use crate::certain::certain;
use crate::choose::Chosen;
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
    let path = db.db.clone().or_else(default_path).ok_or_else(|| {
        Failure::with_help(
            "there is no home folder for the results file",
            "name one with --db FILE",
        )
    })?;
    if path.is_dir() {
        let message = format!("{} is a folder, not a results file", path.display());
        let help = format!("name a file: --db {}", path.join("results.db").display());
        return Err(Failure::with_help(message, help));
    }
    Ok(path)
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
    crate::files::no_disk(&path)?;
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
fn input_of(backend: BackendKind, trial: &Trial) -> String {
    let s = &trial.scheduler;
    let everything = format!(
        "{} {backend:?} {:?} {:?} {} {} {:?} {:?} {:?} {:?} {:?} {} {:?} {:?}",
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
        chosen: &Chosen,
        trials: &[Trial],
        resume: bool,
    ) -> Outcome<Option<Storing>> {
        let Chosen { experiment: e, definition } = chosen;
        let begun = open(db).and_then(|mut store| {
            let first = trials.iter().filter(|t| t.id.repetition == 1);
            let inputs: BTreeMap<_, _> =
                first.map(|t| (cell(&t.id), input_of(e.backend, t))).collect();
            let found = match store.find(&e.name) {
                Ok(id) if resume => unfinished(&store, id, chosen, trials, &inputs)?,
                _ => None,
            };
            let (experiment, done) = match found {
                Some(found) => found,
                None => (store.begin(&e.name, definition, "run")?, BTreeMap::new()),
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

    /// A run that ended before anything was stored leaves no trace: what was refused is no experiment.
    pub(crate) fn abandon_empty(&mut self) -> Result<(), StoreError> {
        if self.store.records(self.experiment)?.is_empty() {
            self.store.delete(self.experiment)?;
        }
        Ok(())
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

/// The newest experiment of the same name, if it is the same and was interrupted. It is the same when it has
/// the same definition, or when all that it has stored are trials of this one: the words of a command
/// line may differ.
fn unfinished(
    store: &Store,
    id: i64,
    chosen: &Chosen,
    trials: &[Trial],
    inputs: &BTreeMap<Cell, String>,
) -> Outcome<Option<Found>> {
    let done = store.complete(id)?;
    let before = store.definition(id)?;
    if before != chosen.definition {
        let progress = store.progress(id)?;
        if done.is_empty() || !progress.under_way() {
            return Ok(None);
        }
        let planned: BTreeSet<&TrialId> = trials.iter().map(|t| &t.id).collect();
        let ours = |(t, h): (&TrialId, &String)| planned.contains(t) && *h == hash_of(inputs, t);
        if !done.iter().all(ours) {
            note(&another(&chosen.experiment.name, &before, progress));
            return Ok(None);
        }
    }
    let planned = trials.iter().all(|t| done.get(&t.id) == Some(&hash_of(inputs, &t.id)));
    let enough = match chosen.experiment.until {
        Some(until) if planned => {
            let most = done.keys().map(|t| t.repetition).max().unwrap_or(0);
            most >= until.max_runs || certain(&store.records(id)?, until.ci)
        }
        _ => true,
    };
    Ok((!(planned && enough)).then_some((id, done)))
}

/// Says that an interrupted experiment of the same name is not gone on with, and how it would be.
fn another(name: &str, definition: &str, p: Progress) -> String {
    let how = match definition.lines().next() {
        // The command line of the quick form; else it is the text of a file.
        Some(line) if line.starts_with("run ") => format!("; to go on with it: iosched {line}"),
        _ => "; its experiment file was changed since".into(),
    };
    let planned = p.planned.map_or_else(String::new, |n| format!(" of {n}"));
    format!(
        "note: an interrupted \"{name}\" with {}{planned} trials asks for other things than this one, \
         which begins anew{how}",
        p.stored
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::{Experiment, Status};

    fn chosen(definition: &str, seed: u64) -> (Chosen, Vec<Trial>) {
        let text = format!(
            "name = \"e\"\nbackend = \"mock\"\ndevices = [\"fixed\"]\nschedulers = [\"none\"]\nruns = 2\n\
             seed = {seed}\nworkloads = [{{ job = \"[a]\\nrw=read\\nbs=4k\\ndirect=1\\nsize=1m\\n\" }}]\n"
        );
        let experiment = Experiment::from_toml("e.toml", &text).unwrap();
        let trials = crate::choose::plan(&experiment).unwrap();
        (Chosen { experiment, definition: definition.into() }, trials)
    }

    #[test]
    fn other_words_for_the_same_trials_go_on_and_other_trials_begin_anew() {
        let dir = tempfile::tempdir().unwrap();
        let db = DbArgs { db: Some(dir.path().join("r.db")) };
        let begin = |(c, trials): &(Chosen, Vec<Trial>)| {
            Storing::begin(&db, c, trials, true).unwrap().unwrap()
        };
        let first = chosen("run e --runs 2", 1);
        let mut storing = begin(&first);
        let trial = first.1[0].id.clone();
        storing.put(&Record { trial, status: Status::Complete, ..Record::default() }).unwrap();
        let id = storing.experiment;
        drop(storing);
        let same = begin(&chosen("run --runs=2 e", 1));
        assert_eq!((same.experiment, same.kept()), (id, 1));
        let mut other = begin(&chosen("run e --runs 2 --seed 5", 5));
        assert_ne!(other.experiment, id);
        // Nothing came of it, so that the interrupted one is the newest again.
        other.abandon_empty().unwrap();
        let mut again = begin(&chosen("another spelling", 1));
        again.abandon_empty().unwrap();
        assert_eq!((again.experiment, again.kept()), (id, 1));
        let progress = again.store.progress(id).unwrap();
        let said = another("e", "run e --runs 2", progress);
        assert!(
            said.contains("1 of 2 trials") && said.contains("iosched run e --runs 2"),
            "{said}"
        );
        assert!(another("e", "name = 1", progress).contains("file was changed"));
    }
}
