//! Experiments in rounds, one trial at a time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use iosched_experiment::{Experiment, Placed, Record, Status, Trial, TrialId, Until};
use iosched_results::store::StoreError;

use super::protocol::{self, Plan, Sink};
use super::{Backend, Error, Machine, Mock};
use crate::STEPS;
use crate::certain::certain;
use crate::error::Result;
use crate::run::{Options, Watch, as_planned, note_goal};
use crate::storing::Storing;

/// Runs an experiment in rounds. Keeps the results that an interrupted start of the same experiment stored.
pub(crate) fn run(
    e: &Experiment,
    trials: &[Trial],
    storing: Option<Storing>,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Vec<Record>> {
    let mut sink = Collecting {
        watch,
        done: 0,
        total: trials.len(),
        storing,
        records: Vec::new(),
        until: e.until,
        group: BTreeSet::new(),
        goal: e.goal.as_ref(),
    };
    let result =
        look_at_all(e, trials, options).and_then(|()| groups(e, trials, options, &mut sink));
    if result.is_err()
        && let Some(s) = &mut sink.storing
    {
        s.abandon_empty()?;
    }
    // Results stored before an interrupt stay. The program still ends with the reason.
    result?;
    // Rounds shuffle the schedulers; people read them in the experiment's order.
    Ok(as_planned(sink.all()?, trials))
}

/// What is handed in, for backends that change a machine.
fn machine(o: &Options) -> Result<&dyn Machine> {
    o.machine.as_deref().ok_or_else(|| {
        let what = "a backend that changes the machine";
        let why = "none was handed in";
        Error::Unavailable { what: what.into(), why: why.into(), help: String::new() }.into()
    })
}

fn look_at_all(e: &Experiment, trials: &[Trial], o: &Options) -> Result<()> {
    match e.backend.is_live() {
        true => Ok(machine(o)?.look_at_all(e, trials)?),
        false => Ok(()),
    }
}

fn backend(e: &Experiment, first: &Trial, o: &Options) -> Result<Box<dyn Backend>> {
    match e.backend.is_live() {
        true => Ok(machine(o)?.backend(e, first)?),
        false => Ok(Box::new(Mock::default())),
    }
}

/// Runs the cells. Those that take turns run together.
fn groups(e: &Experiment, trials: &[Trial], o: &Options, sink: &mut Collecting<'_>) -> Result<()> {
    let began = Instant::now();
    let cells: Vec<&Trial> = trials.iter().filter(|t| t.id.repetition == 1).collect();
    for group in cells.chunk_by(|a, b| together(e, a, b)) {
        let mut backend = backend(e, group[0], o)?;
        let group: Vec<Trial> = group.iter().map(|t| (*t).clone()).collect();
        sink.group = group.iter().map(|t| cell(&t.id)).collect();
        rounds(e, &mut *backend, &group, (o, began), sink)?;
    }
    Ok(())
}

/// Whether cells take turns in the same rounds. Cells of one device do, because the device is prepared once. A file
/// system for commands or programs excludes jobs on the bare device, and a steady state belongs to one workload.
fn together(e: &Experiment, a: &Trial, b: &Trial) -> bool {
    a.id.device == b.id.device
        && a.site() == b.site()
        && (e.steady.is_none() || a.id.workload == b.id.workload)
}

/// Device, workload, scheduler.
type Cell = (String, String, String);

fn cell(id: &TrialId) -> Cell {
    (id.device.clone(), id.workload.clone(), id.scheduler.clone())
}

fn rounds(
    e: &Experiment,
    backend: &mut dyn Backend,
    cells: &[Trial],
    (o, began): (&Options, Instant),
    sink: &mut Collecting<'_>,
) -> Result<()> {
    let mock = !e.backend.is_live();
    let max_time = e.until.and_then(|u| u.max_time).map(Duration::from_nanos);
    // A cold start is not warmed up by another one.
    let cold = cells.iter().all(|c| c.work.startup().is_some());
    let plan = Plan {
        rounds: e.runs,
        max_rounds: e.until.map_or(e.runs, |u| u.max_runs),
        max_time: max_time.map(|t| t.saturating_sub(began.elapsed())),
        warm_up: !mock && o.warm_up && !cold,
        seed: e.seed,
        steady: e.steady,
        // Where noise is allowed a noisy run is a result.
        retries: if o.allow_noise { 0 } else { Plan::default().retries },
    };
    protocol::run(backend, cells, &plan, &o.interrupt, sink)?;
    Ok(())
}

/// Stores each record at once and tells how far things are.
struct Collecting<'a> {
    watch: &'a dyn Watch,
    done: usize,
    total: usize,
    storing: Option<Storing>,
    /// Records that are stored nowhere.
    records: Vec<Record>,
    until: Option<Until>,
    /// The cells under way.
    group: BTreeSet<Cell>,
    /// What the experiment asks for.
    goal: Option<&'a Placed<String>>,
}

impl Collecting<'_> {
    /// Everything so far, earlier starts included.
    fn all(&self) -> std::result::Result<Vec<Record>, StoreError> {
        match &self.storing {
            Some(s) => s.records(),
            None => Ok(self.records.clone()),
        }
    }
}

impl Sink for Collecting<'_> {
    fn has(&mut self, id: &TrialId) -> bool {
        let has = self.storing.as_ref().is_some_and(|s| s.has(id));
        if has {
            self.done += 1;
            self.watch.step(STEPS);
        }
        has
    }

    fn store(&mut self, mut record: Record) -> super::Result<()> {
        if record.core_time.is_none() && record.cpu().total() > 0 {
            let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            record.note_core_time(record.cpu(), cpus);
        }
        note_goal(&mut record, self.goal);
        let name = format!("{} on {}", record.trial.scheduler, record.trial.device);
        if matches!(record.status, Status::Complete | Status::Failed(_)) {
            self.done += 1;
            if self.done > self.total {
                self.total = self.done;
                self.watch.more(1);
            }
            self.watch.step(STEPS);
        }
        self.watch.now(&format!("trial {} of {}: {name}", self.done, self.total));
        match &mut self.storing {
            Some(s) => s.put(&record).map_err(|e| match e {
                StoreError::Full(path) => {
                    Error::DiskFull { path, doing: "storing a result".into() }
                }
                e => Error::Trial { message: format!("a result cannot be stored: {e}") },
            }),
            None => {
                // A repeated attempt replaces the one before, as in the results file.
                self.records.retain(|r| r.trial != record.trial);
                self.records.push(record);
                Ok(())
            }
        }
    }

    fn confident(&mut self) -> bool {
        let Some(until) = self.until else { return true };
        // What cannot be read shows when the next result is stored.
        let mut all = self.all().unwrap_or_default();
        all.retain(|r| self.group.contains(&cell(&r.trial)));
        certain(&all, until.ci)
    }
}
