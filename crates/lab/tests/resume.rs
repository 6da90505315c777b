//! What was interrupted is gone on with, and comes out as if it had not been.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Mutex;

use iosched_experiment::{Experiment, Record, Sources, Trial};
use iosched_lab::machine::Interrupt;
use iosched_lab::{Error, Job, Options, Storing, Watch, run};
use iosched_results::store::Store;

/// Keeps what it is told.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Watch for Notes {
    fn note(&self, text: &str) {
        self.0.lock().unwrap().push(text.into());
    }
}

fn experiment(backend: &str) -> (Experiment, Vec<Trial>) {
    let text = format!(
        "name = \"e\"\nbackend = \"{backend}\"\ndevices = [\"fixed\"]\nschedulers = [\"none\", \"kyber\"]\n\
         runs = 3\nworkloads = [{{ job = \"[a]\\nrw=randread\\nbs=4k\\ndirect=1\\nsize=1m\\n\" }}]\n"
    );
    let experiment = Experiment::from_toml("e.toml", &text).unwrap();
    let trials = iosched_experiment::plan(&experiment, &Sources::default()).unwrap();
    (experiment, trials)
}

fn options() -> Options {
    Options {
        threads: Some(2),
        interrupt: Interrupt::default(),
        machine: None,
        warm_up: false,
        allow_noise: false,
    }
}

/// Runs it, and fails after `most` records.
fn go(db: Option<&Path>, backend: &str, most: usize) -> (Result<Vec<Record>, Error>, Vec<String>) {
    let (experiment, trials) = experiment(backend);
    let notes = Notes::default();
    let storing = db.map(|db| {
        let store = Store::open(db).unwrap();
        Storing::begin(store, (&experiment, "words"), &trials, &[], &mut |t| notes.note(t)).unwrap()
    });
    let mut seen = 0;
    let job = Job { experiment: &experiment, trials: &trials, storing };
    let result = run(job, &options(), &notes, |_| {
        seen += 1;
        if seen > most { Err(Error::Threads("power cut".into())) } else { Ok(()) }
    });
    (result, notes.0.into_inner().unwrap())
}

#[test]
fn a_simulation_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("r.db");
    let whole = go(None, "sim", 99).0.unwrap();
    assert_eq!(whole.len(), 6);
    go(Some(&db), "sim", 2).0.unwrap_err();
    let (again, notes) = go(Some(&db), "sim", 99);
    // The third was stored before what came after it failed.
    assert_eq!(notes, ["going on where the last start stopped: 3 trials are kept"]);
    let again = again.unwrap();
    let ids = |records: &[Record]| -> Vec<_> { records.iter().map(|r| r.trial.clone()).collect() };
    assert_eq!(ids(&again), ids(&whole));
    for (a, b) in again.iter().zip(&whole) {
        assert_eq!(a.jobs, b.jobs, "{:?}", a.trial);
    }
    // It is complete now: the next start is an experiment of its own.
    let (_, notes) = go(Some(&db), "sim", 99);
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn records_come_in_the_order_of_the_plan_on_every_backend() {
    for backend in ["sim", "mock"] {
        let (_, trials) = experiment(backend);
        let records = go(None, backend, 99).0.unwrap();
        let planned: Vec<_> = trials.iter().map(|t| &t.id).collect();
        let got: Vec<_> = records.iter().map(|r| &r.trial).collect();
        assert_eq!(got, planned, "{backend}");
    }
}

/// A signal comes as soon as anything is to be done.
struct Signalled(Interrupt);

impl Watch for Signalled {
    fn more(&self, _: usize) {
        self.0.raise(2);
    }
}

#[test]
fn a_signal_while_warm_ups_are_looked_for_leaves_what_was_there() {
    let text = "name = \"e\"\ndevices = [\"fixed\"]\nschedulers = [\"none\"]\nruns = 2\nwarm_up = \"steady\"\n\
         workloads = [{ job = \"[a]\\nrw=randread\\nbs=4k\\ndirect=1\\ntime_based\\nruntime=1\\nfilename=/dev/d\\n\" }]\n";
    let experiment = Experiment::from_toml("e.toml", text).unwrap();
    let trials = iosched_experiment::plan(&experiment, &Sources::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let begin = || {
        let store = Store::open(&dir.path().join("r.db")).unwrap();
        Storing::begin(store, (&experiment, "words"), &trials, &[], &mut |_| ()).unwrap()
    };
    let stopped = |storing| {
        let options = options();
        let signalled = Signalled(options.interrupt.clone());
        let job = Job { experiment: &experiment, trials: &trials, storing: Some(storing) };
        match run(job, &options, &signalled, |_| Ok(())) {
            Err(Error::Interrupted { signal, kept, planned, .. }) => (signal, kept, planned),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(stopped(begin()), ("SIGINT".into(), 0, 2));
    let stored = || Store::open(&dir.path().join("r.db")).unwrap().list().unwrap().len();
    assert_eq!(stored(), 0, "an experiment without a trial is none");
    let mut one = begin();
    let record = Record { trial: trials[0].id.clone(), ..Record::default() };
    one.put(&record).unwrap();
    drop(one);
    assert_eq!(stopped(begin()), ("SIGINT".into(), 1, 2));
    assert_eq!(stored(), 1);
}
