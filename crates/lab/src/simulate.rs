//! Simulated trials, side by side. Each is single-threaded and pure, so the results do not depend on how many threads there are.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use iosched_experiment::{BackendKind, Record, SCHEMA, Status, Trial};
use iosched_sim::Progress;

use crate::STEPS;
use crate::error::Error;
use crate::machine::{Backend, Sim};
use crate::parallel::in_order;
use crate::run::{Options, Watch};

/// Simulates trials and hands their records to `each` in the order of the trials. A trial that fails yields a record that
/// says so; one that a signal stopped yields none.
pub(crate) fn simulate<E: From<Error>>(
    trials: &[&Trial],
    options: &Options,
    watch: &dyn Watch,
    mut each: impl FnMut(Record) -> Result<(), E>,
) -> Result<(), E> {
    let (mut done, total) = (0, trials.len());
    watch.now(&format!("trial 1 of {total}"));
    in_order(
        trials,
        options.threads,
        |trial| one(trial, options, watch),
        |_, record| {
            let Some(record) = record else { return Ok(()) };
            done += 1;
            watch.now(&format!("trial {} of {total}", (done + 1).min(total)));
            each(record)
        },
    )
}

fn one(trial: &Trial, options: &Options, watch: &dyn Watch) -> Option<Record> {
    let mut shown = 0;
    let mut stopped = false;
    let mut report = |p: Progress| {
        let steps = u128::from(p.now) * u128::from(STEPS);
        let steps = steps.checked_div(u128::from(p.end)).unwrap_or(0) as u64;
        let steps = steps.min(STEPS);
        if steps > shown {
            watch.step(steps - shown);
            shown = steps;
        }
        stopped = options.interrupt.check().is_err();
        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    if report(Progress { now: 0, end: 1 }).is_break() {
        return None;
    }
    // A defect in one trial must not lose the results of the others.
    let result = catch_unwind(AssertUnwindSafe(|| Sim::watched(&mut report).run(trial)));
    if stopped {
        return None;
    }
    watch.step(STEPS.saturating_sub(shown));
    Some(match result {
        Ok(Ok(mut record)) => {
            identify(&mut record, trial);
            record.note_core_time(record.cpu(), usize::from(trial.cpus));
            record
        }
        Ok(Err(e)) => failed(trial, e.to_string()),
        Err(_) => {
            failed(trial, "the simulator stopped with a defect; see the message above".into())
        }
    })
}

/// Notes the content of the device. A name is not enough: a file of the same name may differ tomorrow.
fn identify(record: &mut Record, trial: &Trial) {
    let depth = trial.device.queue_depth;
    record.provenance.insert(iosched_results::answer::DEVICE_DEPTH.into(), depth.to_string());
    let capacity = trial.device.capacity().to_string();
    record.provenance.insert(iosched_results::answer::DEVICE_CAPACITY.into(), capacity);
    let default = trial.default_scheduler().to_string();
    record.provenance.insert(iosched_results::verdict::BASE.into(), default);
    record.note_asks(&trial.jobs().jobs, &trial.cgroups);
    let mut device = trial.device.clone();
    // Descriptions of the device change no figure.
    (device.title, device.summary, device.price) = (String::new(), String::new(), None);
    device.derivation.clear();
    device.figures.clear();
    // A device with a number that JSON cannot hold could not have run.
    let Ok(text) = serde_json::to_string(&device) else { return };
    let hash = format!("{:016x}", iosched_engine::fnv1a(text.as_bytes()));
    record.provenance.insert(iosched_results::compare::DEVICE_CONTENT.into(), hash);
}

fn failed(trial: &Trial, why: String) -> Record {
    Record {
        schema: SCHEMA,
        trial: trial.id.clone(),
        backend: BackendKind::Sim,
        status: Status::Failed(why),
        ..Record::default()
    }
}
