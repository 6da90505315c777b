//! How many repetitions fit into a time, from figures of the simulation alone: the clock gives another number each time.

use iosched_experiment::Record;
use iosched_experiment::until::{MIN_RUNS, MOST_CHOSEN};
use iosched_types::Nanos;
use iosched_types::units::SEC;

/// What an I/O of a job, or a command of the device, takes one core of a usual machine. A request is both: on two cores of an
/// EPYC that other work kept busy it took 1.6 µs (`random-writers` on ssd-sata under none) to 2.6 µs (depth 128 on nvme, in
/// the mean of four schedulers).
const EACH: Nanos = 1000;
/// What a trial takes beside them: its machine is set up, its record is stored.
const TRIAL: Nanos = 5_000_000;
/// Cores of a usual machine.
const CORES: Nanos = 2;

/// What the load of a trial has cost, by the clock of a usual machine.
fn work(record: &Record) -> Nanos {
    let jobs: u64 =
        record.jobs.iter().flat_map(|j| [&j.read, &j.write, &j.trim, &j.sync]).map(|d| d.ios).sum();
    // The jobs count from the end of their warm-up on, the device from the start.
    let whole = u128::from(jobs) * u128::from(record.elapsed)
        / u128::from(record.measured().clamp(1, record.elapsed.max(1)));
    let jobs = u64::try_from(whole).unwrap_or(u64::MAX);
    let device: u64 = record.device.commands.iter().chain(&record.device.merges).sum();
    let calls: u64 =
        record.metrics.iter().filter(|m| m.name == "calls").map(|m| m.value as u64).sum();
    EACH.saturating_mul(jobs.saturating_add(device + calls)) / CORES
}

/// What a trial has cost.
pub(crate) fn cost(record: &Record) -> Nanos {
    (TRIAL / CORES).saturating_add(work(record))
}

/// What a second of the load of a trial costs.
pub(crate) fn second(record: &Record) -> Nanos {
    pays(work(record), record.elapsed).max(1)
}

/// A product of a cost a second and a time.
pub(crate) fn costs(second: Nanos, time: Nanos) -> Nanos {
    let cost = u128::from(second) * u128::from(time) / u128::from(SEC);
    Nanos::try_from(cost).unwrap_or(Nanos::MAX)
}

/// The time that a cost pays for.
pub(crate) fn pays(cost: Nanos, second: Nanos) -> Nanos {
    let time = u128::from(cost) * u128::from(SEC) / u128::from(second.max(1));
    Nanos::try_from(time).unwrap_or(Nanos::MAX)
}

/// How much each may have at most, so that all together have no more than there is: those that want less leave it to the
/// others.
pub(crate) fn share(mut left: Nanos, wants: &[Nanos]) -> Nanos {
    let mut wants = wants.to_vec();
    wants.sort_unstable();
    for (i, want) in wants.iter().enumerate() {
        let each = left / (wants.len() - i) as Nanos;
        if *want > each {
            return each;
        }
        left -= want;
    }
    Nanos::MAX
}

/// The repetitions of an experiment whose first has cost `round` after `spent`.
pub(crate) fn runs(budget: Nanos, spent: Nanos, round: Nanos) -> u32 {
    let fit = budget.saturating_sub(spent) / round.max(1);
    u32::try_from(fit).unwrap_or(MOST_CHOSEN).clamp(MIN_RUNS, MOST_CHOSEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_little_leaves_the_rest_to_the_others() {
        assert_eq!(share(10, &[1, 2, 3]), Nanos::MAX);
        assert_eq!(share(10, &[100, 2, 50]), 4);
        assert_eq!(share(9, &[5, 5, 5]), 3);
        assert_eq!(share(1, &[]), Nanos::MAX);
    }

    #[test]
    fn as_many_runs_as_fit_into_what_is_left() {
        assert_eq!(runs(10 * SEC, 0, SEC), 10);
        assert_eq!(runs(10 * SEC, 4 * SEC, SEC), 6);
        assert_eq!(runs(10 * SEC, 20 * SEC, SEC), MIN_RUNS);
        assert_eq!(runs(10 * SEC, 0, 20 * SEC), MIN_RUNS);
        assert_eq!(runs(10 * SEC, 0, 1), MOST_CHOSEN);
    }
}
