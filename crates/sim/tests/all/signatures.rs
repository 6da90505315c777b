//! What published comparisons of schedulers found, and why: the experiments of `docs/signatures.md` show it
//! still. The bounds are far from the figures measured there, so they hold as long as the mechanism does.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads the files it checks"
)]

use std::collections::BTreeMap;
use std::path::Path;

use iosched_experiment::file::Experiment;
use iosched_experiment::plan::{Sources, plan};
use iosched_experiment::{Collect, Record, Trial};
use iosched_sim::simulate;

/// The trials of an example, with `runtime` for every job if it is given.
fn trials(name: &str, runtime: Option<&str>) -> Vec<Trial> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let text = std::fs::read_to_string(file).unwrap();
    let set = runtime.map_or_else(String::new, |r| format!("[set]\nruntime = {r}\n"));
    let mut e = Experiment::from_toml(name, &format!("{text}\n{set}")).unwrap();
    e.collect = Collect { series: false, dispatches: false };
    plan(&e, &Sources::default()).unwrap()
}

/// Records by the name of the scheduler's family.
fn records(trials: &[Trial]) -> BTreeMap<&'static str, Record> {
    trials.iter().map(|t| (t.scheduler.descriptor.name, simulate(t).unwrap())).collect()
}

#[test]
fn a_starting_program_is_served_by_bfq() {
    let all = records(&trials("signature-random-reader.toml", None));
    let takes = |family: &str| {
        let job = all[family].jobs.iter().find(|j| j.name == "starts").unwrap();
        assert_eq!(job.read.ios, 50, "{family}");
        job.read.runtime as f64 / 1e9
    };
    let (bfq, cfq) = (takes("bfq"), takes("cfq"));
    for other in ["noop", "deadline", "mq-deadline", "none"] {
        let t = takes(other);
        assert!(t >= 8.0 * bfq, "{other} {t} s, bfq {bfq} s");
        assert!(bfq < cfq && cfq < t, "cfq is in between: {cfq} s, {other} {t} s");
    }
    // Nobody pays for it with starvation.
    for j in all.values().flat_map(|r| &r.jobs).filter(|j| j.name != "starts") {
        assert!(j.read.ios > 100, "{} has read {}", j.name, j.read.ios);
    }
}

#[test]
fn waiting_for_the_next_read_pays() {
    let all = records(&trials("signature-anticipation.toml", Some("5")));
    let bytes = |family: &str| all[family].jobs.iter().map(|j| j.read.bytes).sum::<u64>();
    for waits in ["anticipatory", "cfq"] {
        for serves in ["deadline", "noop"] {
            let (a, b) = (bytes(waits), bytes(serves));
            assert!(a > 3 * b, "{waits} {a}, {serves} {b}");
        }
    }
}

#[test]
fn requests_merge_where_they_wait() {
    let trials = trials("signature-merging.toml", Some("1"));
    for device in ["hdd-7200", "ssd-sata"] {
        let on: Vec<Trial> = trials.iter().filter(|t| t.id.device == device).cloned().collect();
        let all = records(&on);
        let bytes = |family: &str| all[family].jobs.iter().map(|j| j.read.bytes).sum::<u64>();
        let merged = |family: &str| {
            let r = &all[family];
            let ios: u64 = r.jobs.iter().map(|j| j.read.ios).sum();
            r.device.merges[0] as f64 / ios as f64
        };
        assert_eq!(merged("none"), 0.0, "{device}: a request is a tag, none waits");
        for legacy in ["noop", "deadline", "cfq"] {
            assert!(merged(legacy) > 0.25, "{legacy} on {device}: {}", merged(legacy));
            let (l, n) = (bytes(legacy), bytes("none"));
            assert!(l * 10 > n * 11, "{legacy} on {device}: {l}, none {n}");
        }
    }
}
