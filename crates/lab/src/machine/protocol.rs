//! The order of live runs: first a warm-up round that is thrown away, then rounds in which every scheduler runs once,
//! in an order drawn anew for each round. Comparisons pair the runs of a round, so slow drifts (temperature, other
//! load, wear) cancel out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use iosched_experiment::{Record, SCHEMA, Status, Steady, Trial, TrialId, Warning};

use super::steady;
use super::{Backend, Error, Interrupt, Result};

/// How many rounds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Rounds that count at least.
    pub rounds: u32,
    /// Rounds that count at most, when `confident` asks for more.
    pub max_rounds: u32,
    /// No new round begins after this time.
    pub max_time: Option<Duration>,
    /// Whether a round that does not count goes first.
    pub warm_up: bool,
    /// How often an invalid run is repeated.
    pub retries: u32,
    /// Seed of the order and of the first round's load.
    pub seed: u64,
    /// Precondition the device and wait for its steady state before the first round.
    pub steady: Option<Steady>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            rounds: 5,
            max_rounds: 5,
            max_time: None,
            warm_up: true,
            retries: 2,
            seed: 1,
            steady: None,
        }
    }
}

/// What the runner asks and tells.
pub trait Sink {
    /// Whether this run is in the results already (an earlier start of the same experiment).
    fn has(&mut self, id: &TrialId) -> bool;

    /// Stores a finished run, at once.
    ///
    /// # Errors
    /// What keeps it from being stored. The experiment stops then.
    fn store(&mut self, record: Record) -> Result<()>;

    /// Whether the results so far are certain enough; asked after every round beyond `rounds`.
    fn confident(&mut self) -> bool {
        true
    }
}

/// What became of an experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Runs stored that count.
    pub complete: u32,
    /// Runs stored that were invalid.
    pub invalid: u32,
    /// Runs that failed.
    pub failed: u32,
    /// Runs that were there already.
    pub kept: u32,
    /// Rounds done.
    pub rounds: u32,
}

/// Order of `n` schedulers in a round: a Fisher-Yates shuffle of the round's own stream.
#[must_use]
pub fn order(n: usize, round: u32, seed: u64) -> Vec<usize> {
    let mut stream = iosched_engine::stream(seed, &format!("order/{round}"));
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        let j = stream.below(i as u64 + 1) as usize;
        order.swap(i, j);
    }
    order
}

/// Runs every cell of `cells` in rounds. A cell is a trial as planned; its repetition and seed are
/// those of the round, so that a round's runs get the same load. A failed run is stored as failed and
/// does not stop the others.
///
/// # Errors
/// What stops an experiment: an interrupt, a missing requirement, results that cannot be stored. The
/// backend is cleaned up in every case.
pub fn run(
    backend: &mut dyn Backend,
    cells: &[Trial],
    plan: &Plan,
    interrupt: &Interrupt,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let result = rounds(backend, cells, plan, interrupt, sink);
    let cleaned = backend.cleanup();
    let outcome = result?;
    cleaned.map(|()| outcome)
}

fn rounds(
    backend: &mut dyn Backend,
    cells: &[Trial],
    plan: &Plan,
    interrupt: &Interrupt,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let began = Instant::now();
    let mut outcome = Outcome::default();
    let mut fresh = true;
    let (mut evidence, mut cold) = (None, BTreeMap::new());
    for round in 1..=plan.max_rounds.max(plan.rounds) {
        if round > plan.rounds && sink.confident() {
            break;
        }
        if round > 1 && plan.max_time.is_some_and(|t| began.elapsed() > t) {
            break;
        }
        for index in order(cells.len(), round, plan.seed) {
            let trial = of_round(&cells[index], round, plan);
            if sink.has(&trial.id) {
                outcome.kept += 1;
                continue;
            }
            interrupt.check()?;
            backend.prepare(&trial)?;
            if std::mem::take(&mut fresh) {
                if let Some(how) = plan.steady {
                    evidence = Some(steady::reach(backend, &cells[0], how, interrupt)?);
                }
                if plan.warm_up {
                    cold = warm_up(backend, cells, plan, interrupt)?;
                }
            }
            let before = cold.remove(&index).into_iter().collect();
            one(backend, &trial, plan, (evidence.as_ref(), before), sink, &mut outcome)?;
        }
        outcome.rounds = round;
    }
    Ok(outcome)
}

fn of_round(cell: &Trial, round: u32, plan: &Plan) -> Trial {
    cell.at_repetition(round, plan.seed, plan.max_rounds.max(plan.rounds) > 1)
}

/// One run of every cell with the result thrown away. Returned: a warning for each cell whose run failed. The rounds that
/// count go on all the same, but the first of them had no warm-up.
fn warm_up(
    backend: &mut dyn Backend,
    cells: &[Trial],
    plan: &Plan,
    interrupt: &Interrupt,
) -> Result<BTreeMap<usize, Warning>> {
    let mut cold = BTreeMap::new();
    for index in order(cells.len(), 0, plan.seed) {
        interrupt.check()?;
        match backend.run(&of_round(&cells[index], 0, plan)) {
            Err(e) if stops(&e) => return Err(e),
            Err(e) => {
                let warning = Warning {
                    code: "warm_up".into(),
                    message: format!("the warm-up failed: {e}"),
                    advice: "the first run that counts had none".into(),
                };
                cold.insert(index, warning);
            }
            Ok(_) => {}
        }
    }
    Ok(cold)
}

/// Runs a trial, and runs it again if it was invalid. Stores every attempt; each says what happened before it: `before`,
/// and the attempts that were invalid.
fn one(
    backend: &mut dyn Backend,
    trial: &Trial,
    plan: &Plan,
    (evidence, mut before): (Option<&steady::Evidence>, Vec<Warning>),
    sink: &mut dyn Sink,
    outcome: &mut Outcome,
) -> Result<()> {
    for attempt in 0..=plan.retries {
        match backend.run(trial) {
            Ok(mut record) => {
                let status = record.status.clone();
                if let Some(e) = evidence {
                    e.into_record(&mut record);
                }
                record.warnings.extend(before.iter().cloned());
                sink.store(record)?;
                let Status::Invalid(why) = status else {
                    outcome.complete += 1;
                    return Ok(());
                };
                outcome.invalid += 1;
                before.push(Warning {
                    code: "repeated".into(),
                    message: format!("attempt {} was invalid: {why}", attempt + 1),
                    advice: String::new(),
                });
            }
            Err(e) if stops(&e) => return Err(e),
            Err(e) => {
                sink.store(Record { warnings: before, ..failed(backend, trial, &e) })?;
                outcome.failed += 1;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Errors after which no other run can succeed.
fn stops(e: &Error) -> bool {
    matches!(
        e,
        Error::Interrupted { .. }
            | Error::Gone { .. }
            | Error::DiskFull { .. }
            | Error::InUse { .. }
            | Error::HoldsData { .. }
            | Error::NotOurs { .. }
            | Error::NotRoot { .. }
            | Error::ReadOnlySysfs { .. }
            | Error::Locked { .. }
            | Error::NoTool { .. }
    )
}

fn failed(backend: &dyn Backend, trial: &Trial, e: &Error) -> Record {
    Record {
        schema: SCHEMA,
        trial: trial.id.clone(),
        backend: backend.kind(),
        status: Status::Failed(e.to_string()),
        ..Record::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_round_runs_each_once_and_the_seed_decides(n in 0usize..12, round in 0u32..50, seed: u64) {
            let o = order(n, round, seed);
            let mut sorted = o.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..n).collect::<Vec<_>>());
            prop_assert_eq!(order(n, round, seed), o);
        }
    }

    #[test]
    fn orders_differ_between_rounds() {
        let distinct: std::collections::BTreeSet<_> = (0..40).map(|r| order(4, r, 7)).collect();
        assert!(distinct.len() > 12, "{}", distinct.len());
    }
}
