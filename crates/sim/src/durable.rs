//! When all that jobs wrote is on the medium. Buffered writes return when memory has them, and no job waits for more:
//! the rate of such a job is that of the page cache.

use std::ops::ControlFlow;

use iosched_experiment::warm_up::leaves_writes;
use iosched_experiment::{DURABLE_AFTER, DURABLE_BW, Metric, Record, Trial};
use iosched_host::programs::Programs;
use iosched_syscalls::{Birth, Program, Script, Sys};
use iosched_types::Nanos;

use crate::error::SimError;

/// Lets a process call `sync` after the jobs of `record`, and adds the figures of it. What the record says of the run
/// itself stays.
pub(crate) fn wait(
    trial: &Trial,
    host: &mut Programs,
    record: &mut Record,
    go_on: &mut dyn FnMut(Nanos) -> ControlFlow<()>,
) -> Result<(), SimError> {
    let written: u64 = record.jobs.iter().map(|j| j.write.bytes).sum();
    if written == 0 || !trial.jobs().jobs.iter().any(leaves_writes) {
        return Ok(());
    }
    let began = host.tl.now;
    let sync = |sys: Sys| async move { sys.sync().await };
    let birth = Birth(Box::new(move || Box::new(Script::new(sync)) as Box<dyn Program>));
    host.run_after(birth, go_on)?;
    let first = record.jobs.iter().map(|j| j.began).min().unwrap_or(0);
    let after = record.elapsed.saturating_sub(first) + (host.tl.now - began);
    let [_, write, ..] = crate::record::device(&host.queue, host.tl.now).bytes;
    let seconds = after as f64 / 1e9;
    let metric = |name: &str, value: f64, unit: &str, higher_is_better| Metric {
        name: name.into(),
        value,
        unit: unit.into(),
        higher_is_better,
        censored: false,
    };
    let rate = written.min(write) as f64 / seconds;
    record.metrics.push(metric(DURABLE_BW, rate, "B/s", Some(true)));
    // Of jobs that a time ends, the one that wrote more has more to wait for.
    let timed = trial.jobs().jobs.iter().any(|j| j.runtime.is_some());
    record.metrics.push(metric(DURABLE_AFTER, seconds, "s", (!timed).then_some(false)));
    Ok(())
}
