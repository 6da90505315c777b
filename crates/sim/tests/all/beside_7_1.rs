//! The simulator beside the block layer of Linux 7.1 and ADIOS, command by command. `iosched validate data/truth-7.1 --dispatch` does
//! the same.
#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_sim::validate::{beside_log, plan};

use super::beside_the_kernel::{data, folder_of, log_of};

/// Logs that part, and where (`docs/fidelity.md`).
const PARTS: &[(&str, &str, usize)] = &[
    ("truth-7.1", "hdd7k_q1.sr1rw4.bfq", 36),
    ("truth-7.1", "hdd7k_q1.think.adios", 74),
    ("truth-adios", "hdd7k_ncq.rr128.adios", 162),
    ("truth-adios", "hdd7k_q1.think.adios", 39),
];

/// Every log of a folder that has `logs` of them. Times are compared from the first command on.
fn every_command_is_that_of(folder: &str, logs: usize) {
    let dir = data(folder);
    let truth = folder_of(&dir);
    let cases = plan(&truth);
    let compared = crate::spread(&cases, |case| {
        let name = format!("{}.{}.{}", case.device, case.job, case.scheduler);
        let kernel = log_of(&dir, &format!("{name}.log.gz"))?;
        let trials = case.trials.as_ref().unwrap_or_else(|why| panic!("{name}: {why}"));
        let parting = beside_log(trials, &kernel).unwrap_or_else(|e| panic!("{name}: {e}"));
        let known = PARTS.iter().find(|p| (p.0, p.1) == (folder, name.as_str())).map(|p| p.2);
        assert_eq!(parting.first, known, "{name}: the first command that differs");
        if known.is_none() {
            assert_eq!(parting.tag_start, 0, "{name}: the tag maps were searched from 0");
            assert!(parting.ours.len() >= kernel.len(), "{name}: fewer commands here");
            let (k, o) = (kernel[0].at, parting.ours[0].at);
            let off = |(a, b): (u64, u64)| (a - k).abs_diff(b - o);
            let pairs = kernel.iter().zip(&parting.ours).map(|(a, b)| (a.at, b.at));
            let worst = pairs.map(off).max().unwrap_or(0);
            // 7.1 looks at the clock once less for each request, which is a nanosecond there.
            assert!(worst <= 10_000, "{name}: {worst} ns apart");
        }
        Some(())
    });
    assert_eq!(compared.iter().flatten().count(), logs, "logs of {folder}");
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
