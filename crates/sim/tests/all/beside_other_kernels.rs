//! The simulator beside the block layers of 2.6.18, 3.14, 4.12 and 7.1, command by command. `iosched validate data/truth-3.14
//! --dispatch` does the same.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_sim::validate::{beside_log, plan};

use super::beside_the_kernel::{data, folder_of, log_of};

/// Logs that part, and where (`docs/fidelity.md`).
const PARTS: &[(&str, &str, usize)] = &[
    ("truth-2.6.18", "hdd7k_q1.cmix_idle0.cfq", 226),
    ("truth-4.12", "hdd7k_fifo.rr128.bfq", 42),
    ("truth-4.12", "hdd7k_fifo.sr1rw4.kyber", 65),
    ("truth-4.12", "hdd7k_ncq.seq8.bfq", 10),
    ("truth-4.12", "hdd7k_q1.seq8.bfq", 1),
    ("truth-4.12", "hdd7k_q1.sr1rw4.none", 51),
    ("truth-7.1", "hdd7k_q1.sr1rw4.bfq", 36),
    ("truth-7.1", "hdd7k_q1.think.adios", 74),
    ("truth-random-7.1", "hdd7k_q1.g84.kyber", 61),
    ("truth-adios", "hdd7k_ncq.rr128.adios", 162),
    ("truth-adios", "hdd7k_q1.think.adios", 39),
];

/// How far apart in ns commands may be. Only the block layer of the oldest ran, so there is nothing to be off by. 7.1 looks at
/// the clock once more for a command that the kernel's worker sends, and a look takes a nanosecond there. The worker of 4.12
/// begins at times that its rows do not tell.
fn apart(folder: &str) -> u64 {
    match folder {
        "truth-4.12" => u64::MAX,
        "truth-7.1" | "truth-adios" | "truth-random-7.1" => 10_000,
        _ => 0,
    }
}

/// Every log of a folder that has `logs` of them. Times are compared from the first command on.
fn every_command_is_that_of(folder: &str, logs: usize) {
    let dir = data(folder);
    let truth = folder_of(&dir);
    let cases = plan(&truth);
    let compared = crate::spread(&cases, |case| {
        let name = format!("{}.{}.{}", case.device, case.job, case.scheduler);
        let kernel = case.runs[0].before_bug(log_of(&dir, &format!("{name}.log.gz"))?);
        let trials = case.trials.as_ref().unwrap_or_else(|why| panic!("{name}: {why}"));
        let parting = beside_log(trials, &kernel).unwrap_or_else(|e| panic!("{name}: {e}"));
        let known = PARTS.iter().find(|p| (p.0, p.1) == (folder, name.as_str())).map(|p| p.2);
        assert_eq!(parting.first, known, "{name}: the first command that differs");
        if known.is_none() {
            assert!(parting.ours.len() >= kernel.len(), "{name}: fewer commands here");
            let (k, o) = (kernel[0].at, parting.ours[0].at);
            let pairs = kernel.iter().zip(&parting.ours);
            let worst = pairs.map(|(a, b)| (a.at - k).abs_diff(b.at - o)).max().unwrap_or(0);
            assert!(worst <= apart(folder), "{name}: {worst} ns apart");
        }
        Some(())
    });
    assert_eq!(compared.iter().flatten().count(), logs, "logs of {folder}");
}

/// The device's plug ends after each I/O of a call, an insertion into a scheduler that holds something does not call the
/// driver, batches of the request pool end by ticks, and a run that the anticipatory scheduler wishes for is the worker's.
#[test]
fn every_command_is_that_of_2_6_18() {
    every_command_is_that_of("truth-2.6.18", 62);
}

/// The driver takes a request before it looks for room, CFQ finds its next request anew at each dispatch, a request of deadline
/// expires at its jiffy, and whole requests of other processes merge at the end of a plug.
#[test]
fn every_command_is_that_of_3_14() {
    every_command_is_that_of("truth-3.14", 58);
}

/// The latest of the parked requests goes first, an eighth of all tags wakes the sleepers of a wait queue, processes run in the
/// order of that kernel's CPU scheduler, and its worker after them.
#[test]
fn every_command_is_that_of_4_12() {
    every_command_is_that_of("truth-4.12", 104);
}

/// A raised queue keeps its budget, slots are measured from their first completion, waits end at ticks, a process that exits ends
/// its slot, a queue that comes back starts with a fresh budget, the largest budget follows the 32nd long slot, and a process that
/// is waited for gets a request beyond the pool.
#[test]
fn every_command_is_that_of_bfq_v7r3() {
    every_command_is_that_of("truth-bfq-v7r3", 40);
}

/// BFQ's limits are those of the scheduler before it, mq-deadline wakes waiters in batches, kyber limits direct writes, and
/// `nr_requests` scales `async_depth`.
#[test]
fn every_command_is_that_of_7_1() {
    every_command_is_that_of("truth-7.1", 125);
}

#[test]
fn every_command_is_that_of_adios_with_a_model() {
    every_command_is_that_of("truth-adios", 15);
}

/// The requests of a batch leave together, a request of the scheduler goes between two flushes, and processes that trim take turns
/// when one has waited for a tick. Four processes read the same places: a request that met a limit never merges again, and kyber looks
/// on behind one without room (without that g84 parts at 59 and 31).
#[test]
fn every_command_is_that_of_random_jobs_on_7_1() {
    every_command_is_that_of("truth-random-7.1", 17);
}
