use std::sync::Arc;
use std::time::{Duration, Instant};

use iosched_experiment::{Experiment, Placed, Record, Trial};

use iosched_types::Nanos;

use crate::budget::{self, cost};
use crate::certain::certain;
use crate::error::Error;
use crate::machine::{self, Interrupt, Machine};
use crate::simulate::simulate;
use crate::storing::Storing;
use crate::warm_up::{self, WarmUps};

/// A watcher of an experiment's progress. Called from any thread. What it leaves out is not watched.
pub trait Watch: Sync {
    /// So many more trials are to be done.
    fn more(&self, _trials: usize) {}
    /// Part of a trial is done, in [`STEPS`](crate::STEPS).
    fn step(&self, _steps: u64) {}
    /// What is being done.
    fn now(&self, _what: &str) {}
    /// Something that the user should know.
    fn note(&self, _text: &str) {}
    /// Everything planned is done, for now.
    fn done(&self) {}
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
        true => {
            let (warm_ups, expected) = (WarmUps::default(), job.trials.len());
            Simulation { job, options, watch, each, warm_ups, expected }.run()
        }
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
    warm_ups: WarmUps,
    /// Trials that there are to be, as far as is known.
    expected: usize,
}

impl<F> Simulation<'_, F> {
    fn run<E: From<Error>>(&mut self) -> Result<Vec<Record>, E>
    where
        F: FnMut(&mut Record) -> Result<(), E>,
    {
        let began = Instant::now();
        let (e, trials) = (self.job.experiment, self.job.trials);
        let mut records = self.earlier()?;
        let first: Vec<&Trial> = trials.iter().filter(|t| t.id.repetition == 1).collect();
        self.warm_ups = self.looked(&first)?;
        self.unless_interrupted(&records)?;
        if let Some(budget) = e.budget {
            self.within(budget, &first, &mut records)?;
            return Ok(as_planned(records, trials));
        }
        self.trials(trials, &mut records)?;
        let Some(until) = e.until else { return Ok(as_planned(records, trials)) };
        for repetition in e.runs + 1..=until.max_runs {
            let late = until.max_time.is_some_and(|t| began.elapsed() > Duration::from_nanos(t));
            if late || certain(&records, until.ci) {
                break;
            }
            self.again(repetition, &first, &mut records)?;
        }
        Ok(as_planned(records, trials))
    }

    /// A further repetition.
    fn again<E: From<Error>>(
        &mut self,
        repetition: u32,
        first: &[&Trial],
        records: &mut Vec<Record>,
    ) -> Result<(), E>
    where
        F: FnMut(&mut Record) -> Result<(), E>,
    {
        let seed = self.job.experiment.seed;
        let more: Vec<Trial> =
            first.iter().map(|t| t.at_repetition(repetition, seed, true)).collect();
        self.watch.more(more.len());
        self.trials(&more, records)
    }

    /// As many repetitions as its budget has room for, as far as the first tells.
    fn within<E: From<Error>>(
        &mut self,
        budget: Nanos,
        first: &[&Trial],
        records: &mut Vec<Record>,
    ) -> Result<(), E>
    where
        F: FnMut(&mut Record) -> Result<(), E>,
    {
        let (e, planned) = (self.job.experiment, self.job.trials);
        // A time that was asked for now is kept.
        if e.set.iter().all(|option| option.value.0 != "runtime") {
            self.warm_ups.fit(budget, first);
        }
        let round: Vec<Trial> = first.iter().map(|t| (*t).clone()).collect();
        self.trials(&round, records)?;
        let round = records.iter().filter(|r| r.trial.repetition == 1).map(cost).sum();
        let runs = budget::runs(budget, self.warm_ups.spent, round);
        let all = first.len().saturating_mul(runs as usize);
        self.expected = all;
        if let Some(s) = &mut self.job.storing {
            s.expect(all).map_err(Error::from)?;
        }
        let rest: Vec<Trial> = planned.iter().filter(|t| t.id.repetition > 1).cloned().collect();
        self.trials(&rest, records)?;
        for repetition in e.runs + 1..=runs {
            self.again(repetition, first, records)?;
        }
        Ok(())
    }

    /// The warm-ups of the loads.
    fn looked<E: From<Error>>(&self, first: &[&Trial]) -> Result<WarmUps, E> {
        let asked = self.job.experiment.warm_up.unwrap_or_default();
        let find = |trials: &[Trial]| -> Result<Vec<Record>, E> {
            let mut out = Vec::new();
            self.watch.more(trials.len());
            let all: Vec<&Trial> = trials.iter().collect();
            simulate(&all, self.options, self.watch, |r| -> Result<(), E> {
                out.push(r);
                Ok(())
            })?;
            Ok(out)
        };
        warm_up::find(asked, self.job.experiment.budget, first, find)
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
        let Simulation { job, options, watch, each, warm_ups, .. } = self;
        let (goal, storing) = (&job.experiment.goal, &mut job.storing);
        let has = |t: &Trial| storing.as_ref().is_some_and(|s| s.has(&t.id));
        let (there, wanted): (Vec<&Trial>, Vec<&Trial>) = trials.iter().partition(|t| has(t));
        watch.step(there.len() as u64 * crate::STEPS);
        let warm = warm_ups.apply(&wanted);
        let warm: Vec<&Trial> = warm.iter().collect();
        simulate(&warm, options, *watch, |mut record| -> Result<(), E> {
            warm_ups.note(&mut record, &wanted);
            note_goal(&mut record, goal.as_ref());
            if let Some(s) = storing.as_mut() {
                s.put(&record).map_err(Error::from)?;
            }
            each(&mut record)?;
            records.push(record);
            Ok(())
        })?;
        Ok(self.unless_interrupted(records)?)
    }

    /// Ends the run where a signal came. What was run is kept; an experiment without a trial is none.
    fn unless_interrupted(&mut self, records: &[Record]) -> Result<(), Error> {
        let Err(machine::Error::Interrupted { signal }) = self.options.interrupt.check() else {
            return Ok(());
        };
        let (kept, planned) = (records.len(), self.expected.max(records.len()));
        let storing = &mut self.job.storing;
        if let Some(s) = storing {
            s.abandon_empty()?;
        }
        Err(Error::Interrupted { signal, kept, planned, stored: storing.is_some() })
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
