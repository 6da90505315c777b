//! Runs on the machine itself: the backends `emulated`, `real` and `mock`, one trial at a time.

use indicatif::ProgressBar;
use iosched_backends::backend::{Backend, Destroy, Emulated, LiveOptions, Mock, Real};
use iosched_backends::load::child::Interrupt;
use iosched_backends::protocol::{self, Plan, Sink};
use iosched_backends::{Error, emulate};
use iosched_experiment::{BackendKind, Experiment, Record, Status, Trial, TrialId};

use crate::args::RunArgs;
use crate::fail::{Failure, Outcome};
use crate::store::Storing;
use crate::{live, trials};

/// Runs an experiment in rounds; what an interrupted start of the same experiment stored is kept.
pub(crate) fn run(
    args: &RunArgs,
    e: &Experiment,
    trials: &[Trial],
    storing: Option<Storing>,
) -> Outcome<Vec<Record>> {
    let interrupt = live::interrupt()?;
    let mut sink = Collecting {
        bar: trials::progress(trials.len(), args.quiet),
        done: 0,
        total: trials.len(),
        storing,
        records: Vec::new(),
    };
    // Devices follow one another, so that each is prepared once.
    let cells: Vec<&Trial> = trials.iter().filter(|t| t.id.repetition == 1).collect();
    let mut result = Ok(());
    for group in cells.chunk_by(|a, b| a.id.device == b.id.device) {
        let mut backend = backend(args, e.backend, group[0], &interrupt)?;
        let group: Vec<Trial> = group.iter().map(|t| (*t).clone()).collect();
        result = rounds(args, e, &mut *backend, &group, &interrupt, &mut sink);
        if result.is_err() {
            break;
        }
    }
    sink.bar.finish_and_clear();
    let mut records = match &sink.storing {
        Some(s) => s.records()?,
        None => sink.records,
    };
    // Rounds shuffle the schedulers; people read them in the experiment's order.
    let place = |r: &Record| {
        let same = |t: &&Trial| {
            (&t.id.device, &t.id.workload, &t.id.scheduler)
                == (&r.trial.device, &r.trial.workload, &r.trial.scheduler)
        };
        trials.iter().position(|t| same(&t))
    };
    records.sort_by_key(|r| (place(r), r.trial.repetition));
    // What was stored before an interrupt stays; the program still ends with the reason.
    result.map(|()| records)
}

fn rounds(
    args: &RunArgs,
    e: &Experiment,
    backend: &mut dyn Backend,
    cells: &[Trial],
    interrupt: &Interrupt,
    sink: &mut Collecting,
) -> Outcome {
    let mock = e.backend == BackendKind::Mock;
    let plan = Plan {
        rounds: e.runs,
        max_rounds: e.runs,
        warm_up: !mock && !args.no_warm_up,
        seed: e.seed,
        ..Plan::default()
    };
    protocol::run(backend, cells, &plan, interrupt, sink)?;
    Ok(())
}

fn backend(
    args: &RunArgs,
    kind: BackendKind,
    first: &Trial,
    interrupt: &Interrupt,
) -> Outcome<Box<dyn Backend>> {
    let options = LiveOptions {
        state_dir: live::state_dir(&args.state),
        guardian: Some(live::guardian()?),
        interrupt: interrupt.clone(),
        trace: args.trace,
        ..LiveOptions::default()
    };
    Ok(match kind {
        BackendKind::Mock => Box::new(Mock::default()),
        BackendKind::Emulated => Box::new(Emulated::new(options, emulate::Options::default())),
        BackendKind::Real => {
            let destroy = Destroy(args.destroy_data.clone());
            Box::new(Real::new(&first.device.name, destroy, options))
        }
        BackendKind::Sim | BackendKind::Imported => {
            return Err(Failure::input("this backend does not run on the machine"));
        }
    })
}

/// Stores each record at once and counts on the progress bar.
struct Collecting {
    bar: ProgressBar,
    done: usize,
    total: usize,
    storing: Option<Storing>,
    records: Vec<Record>,
}

impl Sink for Collecting {
    fn has(&mut self, id: &TrialId) -> bool {
        self.storing.as_ref().is_some_and(|s| s.has(id))
    }

    fn store(&mut self, record: Record) -> Result<(), Error> {
        let name = format!("{} on {}", record.trial.scheduler, record.trial.device);
        if matches!(record.status, Status::Complete | Status::Failed(_)) {
            self.done += 1;
            self.bar.inc(1000);
        }
        self.bar.set_message(format!("trial {} of {}: {name}", self.done, self.total));
        match &mut self.storing {
            Some(s) => s
                .put(&record)
                .map_err(|e| Error::Input { message: e.to_string(), help: String::new() }),
            None => {
                self.records.push(record);
                Ok(())
            }
        }
    }
}
