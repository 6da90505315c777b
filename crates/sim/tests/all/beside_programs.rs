//! Programs on ext4 beside Linux 4.12 under its seven schedulers: `iosched validate data/truth-4.12`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test over files")]

use std::collections::BTreeMap;

use iosched_sim::validate::{TruthFolder, beside_programs, plan_programs};

use super::beside_the_kernel::data;

fn read(name: &str) -> String {
    std::fs::read_to_string(data("truth-4.12").join(name)).unwrap()
}

fn folder() -> TruthFolder {
    let (devices, taken) = (read("devices.toml"), read("truth.toml"));
    let taken = Some(("truth.toml", taken.as_str()));
    TruthFolder::parse(("devices.toml", &devices), Vec::new(), ("results.json", "[]"), taken)
        .unwrap()
}

/// SQLite and dd with fsync take the kernel's time within 5 %, on a disk and on flash. Where a scheduler takes 10 % more than
/// another there, it does here. dbench ends by time, so its time says nothing.
#[test]
fn programs_take_the_time_of_4_12_under_every_scheduler() {
    let text = read("programs.json");
    let mut cases = plan_programs(&folder(), ("programs.json", &text)).unwrap();
    assert_eq!(cases.len(), 45);
    cases.retain(|c| !c.run.job.starts_with("dbench"));
    let rows = crate::spread(&cases, |case| {
        let trial = case.trial.as_ref().unwrap_or_else(|why| panic!("{}: {why}", case.name()));
        let record = iosched_sim::simulate(trial).unwrap();
        beside_programs(&case.run, &record).remove(0)
    });
    let mut jobs: BTreeMap<String, Vec<[f64; 2]>> = BTreeMap::new();
    for r in &rows {
        assert_eq!(r.metric, "elapsed");
        assert!(r.error.abs() < 0.05, "{}/{}/{}: {:+.3}", r.device, r.job, r.scheduler, r.error);
        jobs.entry(format!("{}/{}", r.device, r.job)).or_default().push([r.kernel, r.ours]);
    }
    for (job, times) in &jobs {
        let pairs = times.iter().flat_map(|a| times.iter().map(move |b| (a, b)));
        let slower = |(a, b): &(&[f64; 2], &[f64; 2])| a[0] > 1.1 * b[0];
        assert!(pairs.filter(slower).all(|(a, b)| a[1] > b[1]), "{job}");
    }
    assert_eq!((rows.len(), jobs.len()), (28, 4));
}

/// What is not simulated says so, and a wrong file has its place.
#[test]
fn other_programs_say_why() {
    let one = |command: &str| {
        format!(
            r#"[{{"device": "hdd7k_ncq", "job": "x", "scheduler": "bfq", "repetition": 1, "fs": "ext4",
            "elapsed_s": 1.0, "program": {{"command": "{command}", "ns_per_system_call": 1,
            "ns_per_4096_bytes_copied": 1}}}}]"#
        )
    };
    let why = |command: &str| {
        let cases = plan_programs(&folder(), ("programs.json", &one(command))).unwrap();
        cases[0].trial.as_ref().map(|_| ()).unwrap_err().clone()
    };
    assert!(why("tar -xf x").contains("\"tar -xf x\" is not simulated"));
    assert!(why("dd if=/dev/zero of=f bs=4q count=1").contains("dd bs=4q"));
    assert!(why("dd if=/dev/zero of=f bs=4k").contains("dd without count="));
    let e = plan_programs(&folder(), ("programs.json", "[{}]")).unwrap_err();
    assert_eq!((e.file.as_str(), e.line), ("programs.json", 1), "{e}");
}
