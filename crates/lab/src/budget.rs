//! How many repetitions fit into a time, from figures of the simulation alone: the clock gives another number each time.

use iosched_experiment::Record;
use iosched_experiment::until::{MIN_RUNS, MOST_CHOSEN};
use iosched_types::Nanos;

/// What an I/O of a job, or a command of the device, takes one core of a usual machine: a request takes 1300 to 4700
/// instructions (`docs/performance.md`), and is both.
const EACH: Nanos = 600;
/// What a trial takes beside them: its machine is set up, its record is stored.
const TRIAL: Nanos = 5_000_000;
/// Cores of a usual machine.
const CORES: Nanos = 4;

/// What a trial has cost, by the clock of a usual machine.
pub(crate) fn cost(record: &Record) -> Nanos {
    let jobs: u64 =
        record.jobs.iter().flat_map(|j| [&j.read, &j.write, &j.trim, &j.sync]).map(|d| d.ios).sum();
    let device: u64 = record.device.commands.iter().chain(&record.device.merges).sum();
    let calls: u64 =
        record.metrics.iter().filter(|m| m.name == "calls").map(|m| m.value as u64).sum();
    (TRIAL + EACH.saturating_mul(jobs + device + calls)) / CORES
}

/// The repetitions of an experiment whose first has cost `round` after `spent`.
pub(crate) fn runs(budget: Nanos, spent: Nanos, round: Nanos) -> u32 {
    let fit = budget.saturating_sub(spent) / round.max(1);
    u32::try_from(fit).unwrap_or(MOST_CHOSEN).clamp(MIN_RUNS, MOST_CHOSEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_types::units::SEC;

    #[test]
    fn as_many_runs_as_fit_into_what_is_left() {
        assert_eq!(runs(10 * SEC, 0, SEC), 10);
        assert_eq!(runs(10 * SEC, 4 * SEC, SEC), 6);
        assert_eq!(runs(10 * SEC, 20 * SEC, SEC), MIN_RUNS);
        assert_eq!(runs(10 * SEC, 0, 20 * SEC), MIN_RUNS);
        assert_eq!(runs(10 * SEC, 0, 1), MOST_CHOSEN);
    }
}
