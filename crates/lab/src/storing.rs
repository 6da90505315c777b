//! Which results of an experiment are stored, and how an interrupted experiment goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use iosched_experiment::{COMMAND_LINE, Experiment, Record, Trial, TrialId};
use iosched_results::store::{Progress, Store, StoreError};

use crate::certain::certain;

/// An experiment that is being stored.
#[derive(Debug)]
pub struct Storing {
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

/// The hash of a repetition; `None` for a cell of another experiment. The repetition need not be planned: an experiment
/// may go on until its figures are certain.
fn hash_of(inputs: &BTreeMap<Cell, String>, id: &TrialId) -> String {
    inputs.get(&cell(id)).map_or_else(String::new, |input| {
        let text = format!("{input} {} {}", id.repetition, id.seed);
        format!("{:016x}", iosched_engine::fnv1a(text.as_bytes()))
    })
}

/// The user's own copies of programs and trees that trials run, by name.
pub type Tools = [(&'static str, PathBuf)];

/// Stands for them: another file of the same name is another tool.
fn tools_as_text(tools: &Tools) -> String {
    let when = |path: &Path| {
        let meta = path.metadata().ok()?;
        Some((meta.len(), meta.modified().ok()?))
    };
    let one = |(name, path): &(&str, PathBuf)| {
        // A tree is known by its directory and the file that has its version.
        let (own, version) = (when(path), when(&path.join("Makefile")));
        format!("{name} {} {own:?} {version:?}", path.display())
    };
    tools.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Stands for everything a cell depends on, the program's version included.
fn input_of(e: &Experiment, tools: &str, trial: &Trial) -> String {
    let (s, backend) = (&trial.scheduler, e.backend);
    let everything = format!(
        "{} {backend:?} {:?} {:?} {tools} {:?} {:?} {} {} {:?} {:?} {:?} {:?} {} {:?} {:?} {:?}",
        env!("CARGO_PKG_VERSION"),
        e.steady,
        e.warm_up,
        trial.device,
        trial.kernel,
        s.descriptor.name,
        s.generation.name,
        s.tunables,
        trial.settings,
        trial.work,
        trial.foreign,
        trial.cpus,
        trial.host,
        trial.cgroups,
        trial.id,
    );
    let beside = trial.beside.as_ref().map_or(String::new(), |b| format!(" beside {b:?}"));
    format!("{:016x}", iosched_engine::fnv1a((everything + &beside).as_bytes()))
}

impl Storing {
    /// Begins an experiment, or goes on with an interrupted one of the same name. Tells `note` of an interrupted one
    /// that it leaves as it is.
    ///
    /// # Errors
    /// What the results file says.
    pub fn begin(
        mut store: Store,
        (e, definition): (&Experiment, &str),
        trials: &[Trial],
        tools: &Tools,
        note: &mut dyn FnMut(&str),
    ) -> Result<Storing, StoreError> {
        let first = trials.iter().filter(|t| t.id.repetition == 1);
        let tools = tools_as_text(tools);
        let inputs: BTreeMap<_, _> = first.map(|t| (cell(&t.id), input_of(e, &tools, t))).collect();
        let found = match store.find(&e.name) {
            Ok(id) => unfinished(&store, id, (e, definition), trials, &inputs, note)?,
            _ => None,
        };
        let (experiment, done) = match found {
            Some(found) => found,
            None => (store.begin(&e.name, definition, "run")?, BTreeMap::new()),
        };
        let mut storing = Storing { store, experiment, inputs, done };
        // What an interrupted start has found out of its number stays.
        if e.budget.is_none() || storing.done.is_empty() {
            storing.expect(trials.len())?;
        }
        Ok(storing)
    }

    /// The experiment's number in the results file.
    #[must_use]
    pub fn experiment(&self) -> i64 {
        self.experiment
    }

    /// There will be so many trials.
    ///
    /// # Errors
    /// What the results file says.
    pub fn expect(&mut self, trials: usize) -> Result<(), StoreError> {
        self.store.expect(self.experiment, u32::try_from(trials).unwrap_or(u32::MAX))
    }

    /// Stores a record, at once.
    ///
    /// # Errors
    /// What the results file says.
    pub fn put(&mut self, record: &Record) -> Result<(), StoreError> {
        let hash = hash_of(&self.inputs, &record.trial);
        self.store.put(self.experiment, record, &hash).map(|_| ())
    }

    /// A run that ended before it stored anything leaves no trace: a refused run is no experiment.
    ///
    /// # Errors
    /// What the results file says.
    pub fn abandon_empty(&mut self) -> Result<(), StoreError> {
        if self.store.records(self.experiment)?.is_empty() {
            self.store.delete(self.experiment)?;
        }
        Ok(())
    }

    /// Whether an earlier start of the same experiment stored this trial.
    #[must_use]
    pub fn has(&self, id: &TrialId) -> bool {
        self.done.get(id).is_some_and(|h| *h == hash_of(&self.inputs, id))
    }

    /// How many trials an earlier start of the same experiment stored.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.done.len()
    }

    /// Everything stored so far.
    ///
    /// # Errors
    /// What the results file says.
    pub fn records(&self) -> Result<Vec<Record>, StoreError> {
        self.store.records(self.experiment)
    }
}

type Found = (i64, BTreeMap<TrialId, String>);

/// The newest experiment of the same name, if it is the same and was interrupted. It is the same when all that it has
/// stored are trials of this one, with the same devices, jobs and seeds: the words of a command line may differ.
fn unfinished(
    store: &Store,
    id: i64,
    (e, definition): (&Experiment, &str),
    trials: &[Trial],
    inputs: &BTreeMap<Cell, String>,
    note: &mut dyn FnMut(&str),
) -> Result<Option<Found>, StoreError> {
    let done = store.complete(id)?;
    let before = store.definition(id)?;
    let progress = store.progress(id)?;
    // A device or job file may have changed under the same definition. Then what is stored stays as it is.
    let same = done.iter().all(|(t, h)| *h == hash_of(inputs, t));
    let planned: BTreeSet<&TrialId> = trials.iter().map(|t| &t.id).collect();
    if !same || (before != definition && !done.keys().all(|t| planned.contains(t))) {
        if progress.under_way() {
            note(&another(&e.name, &before, same_words(&before, definition), progress));
        }
        return Ok(None);
    }
    if before != definition && (done.is_empty() || !progress.under_way()) {
        return Ok(None);
    }
    let planned = trials.iter().all(|t| done.get(&t.id) == Some(&hash_of(inputs, &t.id)));
    let enough = match e.until {
        Some(until) if planned => {
            let most = done.keys().map(|t| t.repetition).max().unwrap_or(0);
            most >= until.max_runs || certain(&store.records(id)?, until.ci)
        }
        // How many there are to be depends on the first: it is known when that is complete.
        _ => e.budget.is_none() || !progress.under_way(),
    };
    Ok((!(planned && enough)).then_some((id, done)))
}

/// The same text, or the same command line with other jobs below it.
fn same_words(before: &str, now: &str) -> bool {
    let command = |text: &str| text.lines().next().is_some_and(|l| l.starts_with(COMMAND_LINE));
    before == now || (command(before) && before.lines().next() == now.lines().next())
}

/// Says that an interrupted experiment of the same name does not go on, and which command would go on with it.
fn another(name: &str, definition: &str, same_words: bool, p: Progress) -> String {
    let how = match definition.lines().next() {
        _ if same_words => "; a file that it names was changed since, or the program".into(),
        // The quick form has its command line on top; else it is the text of a file.
        Some(line) if line.starts_with(COMMAND_LINE) => {
            format!("; to go on with it: iosched run {}", &line[COMMAND_LINE.len()..])
        }
        _ => "; its experiment file was changed since, or a job file that it names".into(),
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
    use iosched_experiment::{Sources, Status};

    fn chosen(definition: &str, seed: u64) -> (Experiment, String, Vec<Trial>) {
        let text = format!(
            "name = \"e\"\nbackend = \"mock\"\ndevices = [\"fixed\"]\nschedulers = [\"none\"]\nruns = 2\n\
             seed = {seed}\nworkloads = [{{ job = \"[a]\\nrw=read\\nbs=4k\\ndirect=1\\nsize=1m\\n\" }}]\n"
        );
        let experiment = Experiment::from_toml("e.toml", &text).unwrap();
        let trials = iosched_experiment::plan(&experiment, &Sources::default()).unwrap();
        (experiment, definition.into(), trials)
    }

    #[test]
    fn other_words_for_the_same_trials_go_on_and_other_trials_begin_anew() {
        let dir = tempfile::tempdir().unwrap();
        let begin = |(e, definition, trials): &(Experiment, String, Vec<Trial>)| {
            let store = Store::open(&dir.path().join("r.db")).unwrap();
            Storing::begin(store, (e, definition), trials, &[], &mut |_| ()).unwrap()
        };
        let first = chosen("# iosched: run e --runs 2", 1);
        let mut storing = begin(&first);
        let trial = first.2[0].id.clone();
        storing.put(&Record { trial, status: Status::Complete, ..Record::default() }).unwrap();
        let id = storing.experiment;
        drop(storing);
        let same = begin(&chosen("# iosched: run --runs=2 e", 1));
        assert_eq!((same.experiment, same.kept()), (id, 1));
        // As when a file that the definition names has changed.
        let mut changed = begin(&chosen("# iosched: run e --runs 2", 5));
        assert_ne!(changed.experiment, id);
        assert_eq!(changed.kept(), 0);
        changed.abandon_empty().unwrap();
        let mut other = begin(&chosen("# iosched: run e --runs 2 --seed 5", 5));
        assert_ne!(other.experiment, id);
        // Removed because nothing was stored. The interrupted experiment is the newest again.
        other.abandon_empty().unwrap();
        let mut again = begin(&chosen("another spelling", 1));
        again.abandon_empty().unwrap();
        assert_eq!((again.experiment, again.kept()), (id, 1));
        let progress = again.store.progress(id).unwrap();
        let said = another("e", "# iosched: run e --runs 2", false, progress);
        assert!(
            said.contains("1 of 2 trials") && said.contains("iosched run e --runs 2"),
            "{said}"
        );
        assert!(another("e", "name = 1", false, progress).contains("file was changed"));
    }

    #[test]
    fn another_tree_or_a_steady_state_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let db = dir.path().join("r.db");
        let (experiment, definition, trials) = chosen("# iosched: run e --runs 2", 1);
        let begin = |e: &Experiment, tree: &Path| {
            let store = Store::open(&db).unwrap();
            let tools = [("tree", tree.to_path_buf())];
            Storing::begin(store, (e, &definition), &trials, &tools, &mut |_| ()).unwrap()
        };
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        [&a, &b].iter().for_each(|tree| std::fs::create_dir(tree).unwrap());
        let mut first = begin(&experiment, &a);
        let record =
            Record { trial: trials[0].id.clone(), status: Status::Complete, ..Record::default() };
        first.put(&record).unwrap();
        assert_eq!(begin(&experiment, &a).kept(), 1, "nothing has changed");
        let mut other = begin(&experiment, &b);
        assert_eq!(other.kept(), 0, "another tree");
        other.abandon_empty().unwrap();
        let steady = Experiment { steady: Some(Default::default()), ..experiment.clone() };
        let mut other = begin(&steady, &a);
        assert_eq!(other.kept(), 0, "another state of the drive");
        other.abandon_empty().unwrap();
        std::fs::write(a.join("Makefile"), "VERSION = 6").unwrap();
        assert_eq!(begin(&experiment, &a).kept(), 0, "the same tree with another version");
    }
}
