//! How fast a block trace is replayed.

use std::sync::Arc;
use std::time::Instant;

use iosched_experiment::TraceWork;
use iosched_trace::{Io, Name, Tables};
use iosched_types::Op;
use iosched_workloads::replay::{Learner, Mode, Recording};

use super::{Load, Row, check, jobs, reference, trial};
use crate::fail::{Failure, Outcome, code};

/// Readers of the trace, each of which waits for its reads.
const TASKS: u64 = 8;
/// From a read to the one behind it of the same task.
const APART: u64 = 200_000;

/// The trace of readers of 4 KiB that think for half of the time.
fn recording(ios: u64) -> Outcome<Recording> {
    let tables = Tables::default();
    let mut learner = Learner::default();
    for i in 0..ios {
        let at = i / TASKS * APART + i % TASKS * 1000;
        let mut io = Io::new(at, Op::Read, Name(0), i * 7_919 % 262_144 * 4096, 4096);
        (io.done, io.pid) = (Some(at + APART / 2), (i % TASKS) as u32 + 1);
        learner.push(&io, &tables).map_err(Failure::input)?;
    }
    Ok(learner.finish(&tables))
}

/// Measures the replay of so many I/Os on the disk of constant service time.
pub(super) fn measure(ios: u64) -> Outcome<Row> {
    let mut trial = trial("none", reference("fixed")?, jobs(Load::new(1, 1, 1))?)?;
    let recording = Arc::new(recording(ios)?);
    let mode = Mode::Dependent;
    trial.work = TraceWork { recording, mode, recorded_under: None, usual: false }.into();
    let begin = Instant::now();
    let record = iosched_sim::simulate(&trial);
    let seconds = begin.elapsed().as_secs_f64();
    let record = record.map_err(|e| Failure::new(code::FAILED, format!("replay: {e}")))?;
    let each = seconds.max(1e-9) / ios as f64;
    Ok(Row {
        scheduler: "trace".into(),
        device: "fixed".into(),
        processes: TASKS as u32,
        depth: 1,
        requests: ios,
        requests_per_second: each.recip().round(),
        ns_per_request: (each * 1e10).round() / 10.0,
        checks: check(&record, ios),
    })
}
