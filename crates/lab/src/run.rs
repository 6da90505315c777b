use std::sync::Arc;
use std::time::{Duration, Instant};

use iosched_experiment::{Experiment, Placed, Record, Trial};

use crate::certain::certain;
use crate::error::Error;
use crate::machine::{self, Interrupt, Machine};
use crate::simulate::simulate;
use crate::storing::Storing;

/// A watcher of an experiment's progress. Called from any thread.
pub trait Watch: Sync {
    /// `trials` more are to be done.
    fn more(&self, trials: usize);
    /// Part of a trial is done, in [`STEPS`](crate::STEPS).
    fn step(&self, steps: u64);
    /// What is being done.
    fn now(&self, what: &str);
    /// Something that the user should know.
    fn note(&self, text: &str);
    /// Everything planned is done, for now.
    fn done(&self);
}

/// How an experiment is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Trials that are simulated at a time; `None`: one for each CPU.
    pub threads: Option<u16>,
    /// The signals that end it.
    pub interrupt: Interrupt,
    /// What changes a machine, for the backends that do.
    pub machine: Option<Arc<dyn Machine>>,
    /// Whether a round that does not count goes first.
    pub warm_up: bool,
    /// Whether a noisy run is a result, and not repeated.
    pub allow_noise: bool,
}

/// What is to be run, and where the results go.
#[derive(Debug)]
pub struct Job<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The trials, as planned.
    pub trials: &'a [Trial],
    /// Where the results go; `None`: nowhere.
    pub storing: Option<Storing>,
}

/// Runs an experiment on its backend. Gives its records in the order of the plan, including those of an interrupted
/// start of the same experiment. Calls `each` with every record that is simulated now, before it is kept.
///
/// # Errors
/// What stops it: a signal, a missing requirement, results that cannot be stored, what `each` says. What is stored stays.
pub fn run<E: From<Error>>(
    job: Job<'_>,
    options: &Options,
    watch: &dyn Watch,
    each: impl FnMut(&mut Record) -> Result<(), E>,
) -> Result<Vec<Record>, E> {
    let kept = job.storing.as_ref().map_or(0, Storing::kept);
    if kept > 0 {
        watch.note(&format!("going on where the last start stopped: {kept} trials are kept"));
    }
    watch.more(job.trials.len());
    let records = match job.experiment.backend.traits().parallel {
        true => Simulation { job, options, watch, each }.run(),
        false => {
            machine::run(job.experiment, job.trials, job.storing, options, watch).map_err(E::from)
        }
    };
    watch.done();
    records
}

struct Simulation<'a, F> {
    job: Job<'a>,
    options: &'a Options,
    watch: &'a dyn Watch,
    each: F,
}

impl<F> Simulation<'_, F> {
    fn run<E: From<Error>>(&mut self) -> Result<Vec<Record>, E>
    where
        F: FnMut(&mut Record) -> Result<(), E>,
    {
        let began = Instant::now();
        let (e, trials) = (self.job.experiment, self.job.trials);
        let mut records = self.earlier()?;
        self.trials(trials, &mut records)?;
        let Some(until) = e.until else { return Ok(as_planned(records, trials)) };
        let first: Vec<&Trial> = trials.iter().filter(|t| t.id.repetition == 1).collect();
        for repetition in e.runs + 1..=until.max_runs {
            let late = until.max_time.is_some_and(|t| began.elapsed() > Duration::from_nanos(t));
            if late || certain(&records, until.ci) {
                break;
            }
            let more: Vec<Trial> =
                first.iter().map(|t| t.at_repetition(repetition, e.seed, true)).collect();
            self.watch.more(more.len());
            self.trials(&more, &mut records)?;
        }
        Ok(as_planned(records, trials))
    }

    /// What an interrupted start stored.
    fn earlier(&self) -> Result<Vec<Record>, Error> {
        match &self.job.storing {
            Some(s) if s.kept() > 0 => {
                let mut records = s.records()?;
                records.retain(|r| s.has(&r.trial));
                Ok(records)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn trials<E: From<Error>>(
        &mut self,
        trials: &[Trial],
        records: &mut Vec<Record>,
    ) -> Result<(), E>
    where
        F: FnMut(&mut Record) -> Result<(), E>,
    {
        let Simulation { job, options, watch, each } = self;
        let (goal, storing) = (&job.experiment.goal, &mut job.storing);
        let has = |t: &Trial| storing.as_ref().is_some_and(|s| s.has(&t.id));
        let (there, wanted): (Vec<&Trial>, Vec<&Trial>) = trials.iter().partition(|t| has(t));
        watch.step(there.len() as u64 * crate::STEPS);
        simulate(&wanted, options, *watch, |mut record| -> Result<(), E> {
            note_goal(&mut record, goal.as_ref());
            if let Some(s) = storing.as_mut() {
                s.put(&record).map_err(Error::from)?;
            }
            each(&mut record)?;
            records.push(record);
            Ok(())
        })?;
        let Err(machine::Error::Interrupted { signal }) = options.interrupt.check() else {
            return Ok(());
        };
        let stored = storing.is_some();
        let (kept, planned) = (records.len(), job.trials.len().max(records.len()));
        if let Some(s) = storing {
            s.abandon_empty().map_err(Error::from)?;
        }
        Err(Error::Interrupted { signal, kept, planned, stored }.into())
    }
}

/// Notes what the experiment asks for: who answers a record's question later knows nothing of the experiment's file.
pub(crate) fn note_goal(record: &mut Record, goal: Option<&Placed<String>>) {
    if let Some(goal) = goal {
        record.provenance.insert(iosched_results::answer::GOAL.into(), goal.value.clone());
    }
}

/// In the order of the plan. Attempts at one trial stay as they came.
pub(crate) fn as_planned(mut records: Vec<Record>, trials: &[Trial]) -> Vec<Record> {
    let same = |t: &Trial, r: &Record| {
        let (a, b) = (&t.id, &r.trial);
        (&a.device, &a.workload, &a.scheduler, &a.kernel)
            == (&b.device, &b.workload, &b.scheduler, &b.kernel)
    };
    let exact = |r: &Record| trials.iter().position(|t| t.id == r.trial);
    let cell = |r: &Record| trials.iter().position(|t| same(t, r));
    // Repetitions beyond the plan come after all that were planned, as they were run.
    records.sort_by_cached_key(|r| match exact(r) {
        Some(i) => (0, 0, i),
        None => (1, r.trial.repetition, cell(r).unwrap_or(usize::MAX)),
    });
    records
}
