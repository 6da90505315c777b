//! Runs on the machine itself: the backends `emulated`, `real` and `mock`, one trial at a time.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use iosched_backends::backend::{Backend, Emulated, LiveOptions, Mock, Real, refusals};
use iosched_backends::emulate::{self, DataMode};
use iosched_backends::guardian::GuardianCommand;
use iosched_backends::protocol::{self, Plan, Sink};
use iosched_backends::target::{self, Leave};
use iosched_backends::{Error as Refusal, SysRoot};
use iosched_experiment::{
    BackendKind, Experiment, Placed, Record, Site, Status, Trial, TrialId, Until,
};
use iosched_results::store::StoreError;

use crate::STEPS;
use crate::certain::certain;
use crate::error::Result;
use crate::run::{Options, Watch, as_planned, note_goal};
use crate::storing::Storing;

/// How the machine may be used.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Where state files go.
    pub state_dir: PathBuf,
    /// How a guardian is started.
    pub guardian: Option<GuardianCommand>,
    /// What may be overwritten.
    pub leave: Leave,
    /// Whether block events are traced into the records.
    pub trace: bool,
    /// Whether a round that does not count goes first.
    pub warm_up: bool,
    /// Whether a noisy run is a result, and not repeated.
    pub allow_noise: bool,
    /// The user's own copies of programs that workloads stand for: name, file.
    pub tools: Vec<(&'static str, PathBuf)>,
}

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

/// Refuses before anything runs: a refusal of the last trial must not come after hours on others.
fn look_at_all(e: &Experiment, trials: &[Trial], o: &Options) -> Result<()> {
    let leave = &o.machine.leave;
    if e.backend.is_live() {
        let trials: Vec<&Trial> = trials.iter().collect();
        let refused = refusals(e.backend, &trials, &o.machine.tools, &o.interrupt);
        refused.into_iter().next().map_or(Ok(()), Err)?;
    }
    if e.backend.has_model() {
        return Ok(());
    }
    let fio = |t: &&Trial| matches!(t.site(), Site::Disk | Site::FilesOfJobs);
    let writes = |t: &&Trial| e.steady.is_some() || t.work.writes();
    let writing = trials.iter().filter(fio).filter(writes);
    let devices: BTreeSet<&str> = writing.map(|t| t.device.name.as_str()).collect();
    if devices.len() > 1 {
        for device in devices {
            target::check(&SysRoot::default(), device, leave)?;
        }
    }
    Ok(())
}

/// Runs the cells. Those that take turns run together.
fn groups(e: &Experiment, trials: &[Trial], o: &Options, sink: &mut Collecting<'_>) -> Result<()> {
    let began = Instant::now();
    let cells: Vec<&Trial> = trials.iter().filter(|t| t.id.repetition == 1).collect();
    for group in cells.chunk_by(|a, b| together(e, a, b)) {
        let mut backend = backend(e, group[0], o);
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
        warm_up: !mock && o.machine.warm_up && !cold,
        seed: e.seed,
        steady: e.steady,
        // Where noise is allowed a noisy run is a result.
        retries: if o.machine.allow_noise { 0 } else { Plan::default().retries },
    };
    protocol::run(backend, cells, &plan, &o.interrupt, sink)?;
    Ok(())
}

fn backend(e: &Experiment, first: &Trial, o: &Options) -> Box<dyn Backend> {
    let m = &o.machine;
    let options = LiveOptions {
        state_dir: m.state_dir.clone(),
        guardian: m.guardian.clone(),
        interrupt: o.interrupt.clone(),
        trace: m.trace,
        keep_state: e.steady.is_some(),
        tools: m.tools.clone(),
        ..LiveOptions::default()
    };
    // Nothing reads back what jobs write to the bare disk.
    let data = match first.site() {
        Site::Disk => DataMode::Discard,
        Site::FilesOfJobs | Site::Files | Site::Root => DataMode::Memory,
    };
    match e.backend {
        BackendKind::Emulated => {
            let disk = emulate::Options { data, ..emulate::Options::default() };
            Box::new(Emulated::new(options, disk))
        }
        BackendKind::Real => Box::new(Real::new(&first.device.name, m.leave.clone(), options)),
        BackendKind::Mock | BackendKind::Sim | BackendKind::Imported => Box::new(Mock::default()),
    }
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

    fn store(&mut self, mut record: Record) -> std::result::Result<(), Refusal> {
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
                    Refusal::DiskFull { path, doing: "storing a result".into() }
                }
                e => Refusal::Trial { message: format!("a result cannot be stored: {e}") },
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
