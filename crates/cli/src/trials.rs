//! Running simulated trials in parallel; each is single-threaded, and results come in the plan's order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use iosched_experiment::{BackendKind, Record, SCHEMA, Status, Trial};
use rayon::prelude::*;

use crate::fail::{Failure, Outcome};

/// Steps of a trial on the progress bar.
pub(crate) const STEPS: u64 = 1000;

/// A progress bar with the time left, on standard error and only on a terminal.
pub(crate) fn progress(trials: usize, quiet: bool) -> ProgressBar {
    let target =
        if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) };
    let bar = ProgressBar::with_draw_target(Some(trials as u64 * STEPS), target);
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Calls `each` with every result, in order; results that come early wait.
pub(crate) fn in_order<T: Sync, U: Send>(
    items: &[T],
    threads: Option<u16>,
    work: impl Fn(&T) -> U + Sync,
    mut each: impl FnMut(usize, U) -> Outcome,
) -> Outcome {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, usize::from))
        .build()
        .map_err(|e| Failure::new(crate::fail::code::MISSING, format!("no threads: {e}")))?;
    let (sender, receiver) = mpsc::channel();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, work) = (&stop, &work);
        scope.spawn(move || {
            pool.install(|| {
                items.par_iter().enumerate().with_max_len(1).for_each_with(
                    sender,
                    |sender, (index, item)| {
                        if !stop.load(Ordering::Relaxed) {
                            // Nobody listens only after an error, which is reported already.
                            let _ = sender.send((index, work(item)));
                        }
                    },
                );
            });
        });
        let (mut early, mut next) = (BTreeMap::new(), 0);
        for (index, result) in receiver {
            early.insert(index, result);
            while let Some(result) = early.remove(&next) {
                if let Err(e) = each(next, result) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(e);
                }
                next += 1;
            }
        }
        Ok(())
    })
}

/// Simulates trials and hands their records to `each` in the plan's order. A trial that fails yields a
/// record that says so.
pub(crate) fn simulate(
    trials: &[Trial],
    threads: Option<u16>,
    bar: &ProgressBar,
    mut each: impl FnMut(Record) -> Outcome,
) -> Outcome {
    let (mut done, total) = (0, trials.len());
    bar.set_message(format!("trial 1 of {total}"));
    let result = in_order(
        trials,
        threads,
        |trial| one(trial, bar),
        |_, record| {
            done += 1;
            bar.set_message(format!("trial {} of {total}", (done + 1).min(total)));
            each(record)
        },
    );
    bar.finish_and_clear();
    result
}

fn one(trial: &Trial, bar: &ProgressBar) -> Record {
    let mut shown = 0;
    let mut report = |p: iosched_sim::Progress| {
        let steps = u128::from(p.now) * u128::from(STEPS);
        let steps = steps.checked_div(u128::from(p.end)).unwrap_or(0) as u64;
        let steps = steps.min(STEPS);
        if steps > shown {
            bar.inc(steps - shown);
            shown = steps;
        }
    };
    // A defect in one trial must not lose the results of the others.
    let result = catch_unwind(AssertUnwindSafe(|| iosched_sim::simulate_with(trial, &mut report)));
    bar.inc(STEPS.saturating_sub(shown));
    match result {
        Ok(Ok(mut record)) => {
            identify(&mut record, trial);
            record
        }
        Ok(Err(e)) => failed(trial, e.to_string()),
        Err(_) => {
            failed(trial, "the simulator stopped with a defect; see the message above".into())
        }
    }
}

/// Notes what the device was. A name is not enough: a file of the same name may say something else tomorrow.
pub(crate) fn identify(record: &mut Record, trial: &Trial) {
    let depth = trial.device.queue_depth;
    record.provenance.insert(iosched_results::answer::DEVICE_DEPTH.into(), depth.to_string());
    let mut device = trial.device.clone();
    // Words about the device change nothing that is measured.
    (device.title, device.summary, device.price) = (String::new(), String::new(), None);
    device.derivation.clear();
    device.figures.clear();
    // A number that JSON cannot hold is no device that could have run.
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
