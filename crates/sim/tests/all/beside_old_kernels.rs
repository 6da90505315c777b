//! The simulator beside the block layers of 2.6.18, 3.14 and 4.12, command by command, those of 2.6.18 and 3.14 to the
//! nanosecond. `iosched validate data/truth-3.14 --dispatch` does the same.
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
    ("truth-4.12", "hdd7k_q1.sr1rw4.bfq", 252),
    ("truth-4.12", "hdd7k_q1.sr1rw4.kyber", 3),
    ("truth-4.12", "hdd7k_q1.sr1rw4.mq-deadline", 3),
    ("truth-4.12", "hdd7k_q1.sr1rw4.none", 5),
    ("truth-4.12", "ssd_sata.sr1rw4.kyber", 119),
];

/// Only the block layer ran, so commands come at the nanosecond.
const TO_THE_NANOSECOND: &[&str] = &["truth-2.6.18", "truth-3.14", "truth-bfq-v7r3"];

/// Every log of a folder that has `logs` of them.
fn every_command_is_that_of(folder: &str, logs: usize) {
    let dir = data(folder);
    let truth = folder_of(&dir);
    let cases = plan(&truth);
    let compared = crate::spread(&cases, |case| {
        let name = format!("{}.{}.{}", case.device, case.job, case.scheduler);
        let kernel = case.runs[0].before_bug(log_of(&dir, &format!("{name}.log.gz"))?);
        let trials = case.trials.as_ref().unwrap_or_else(|why| panic!("{name}: {why}"));
        let parting = beside_log(&trials[0], &kernel).unwrap();
        let known = PARTS.iter().find(|p| (p.0, p.1) == (folder, name.as_str())).map(|p| p.2);
        assert_eq!(parting.first, known, "{name}: the first command that differs");
        if known.is_none() {
            assert!(parting.ours.len() >= kernel.len(), "{name}: fewer commands here");
            let late = kernel.iter().zip(&parting.ours).position(|(k, o)| k.at != o.at);
            let late = late.filter(|_| TO_THE_NANOSECOND.contains(&folder));
            assert_eq!(late, None, "{name}: the first command at another time");
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

/// The latest of the parked requests goes first, an eighth of all tags wakes the sleepers, and processes begin in the order of
/// that kernel's CPU scheduler.
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
