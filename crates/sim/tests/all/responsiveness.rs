//! Starts, films and interleaved readers beside others: what the programs ask for, and who serves them.
//!
//! The bounds are far from the figures measured (`docs/benchmarks`), so they hold as long as the mechanism does.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use iosched_experiment::file::Experiment;
use iosched_experiment::plan::{Sources, plan};
use iosched_experiment::{Collect, Metric, Record};
use iosched_sim::simulate;

/// Records by scheduler of a command line on a device.
fn records(device: &str, schedulers: &[&str], line: &str) -> BTreeMap<String, Record> {
    records_with("", device, schedulers, line)
}

/// The same with more lines of an experiment file.
fn records_with(
    more: &str,
    device: &str,
    schedulers: &[&str],
    line: &str,
) -> BTreeMap<String, Record> {
    let text = format!(
        "devices = [\"{device}\"]\nschedulers = {schedulers:?}\nworkloads = [{{ name = \"w\", program = \"{line}\" }}]\n{more}"
    );
    let mut e = Experiment::from_toml("test", &text).unwrap();
    e.collect = Collect { series: false, dispatches: false };
    let trials = plan(&e, &Sources::default()).unwrap();
    trials.iter().map(|t| (t.scheduler.descriptor.name.into(), simulate(t).unwrap())).collect()
}

fn metric<'a>(r: &'a Record, name: &str) -> &'a Metric {
    r.metrics.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("{name}: {:?}", r.metrics))
}

/// The machine's speed is that of programs, too: here they think for a millisecond at each file.
#[test]
fn a_slower_machine_thinks_longer() {
    let rate = |percent: u32| {
        let cpu = format!("cpu = {{ percent = {percent} }}\n");
        let all = records_with(&cpu, "fixed", &["none"], "compilebench 1 2 0 1000");
        metric(&all["none"], "initial create").value
    };
    let (usual, slow, fast) = (rate(100), rate(200), rate(50));
    assert!((usual / slow / 2.0 - 1.0).abs() < 0.01, "{usual} {slow}");
    assert!((fast / usual / 2.0 - 1.0).abs() < 0.01, "{fast} {usual}");
}

#[test]
fn a_start_reads_what_its_trace_says() {
    for (command, requests, mib) in
        [("bash", 40, 2.8), ("xterm", 718, 5.9), ("lowriter", 1268, 46.4)]
    {
        let line = format!("startup {command} 0r 2");
        let all = records("fixed", &["none"], &line);
        let r = &all["none"];
        let read = r.device.bytes[0] as f64 / f64::from(1 << 20);
        // Beside the requests only blocks of the file system are read.
        assert!(
            read >= 2.0 * (mib - 0.15) && read < 2.0 * (mib + 0.15) + 0.5,
            "{command}: {read} MiB"
        );
        assert!(r.device.commands[0] + r.device.merges[0] >= 2 * requests, "{command}");
        assert_eq!(r.device.bytes[1], 0, "a start writes nothing");
        assert!(!metric(r, "startup_time").censored);
        assert!(metric(r, "startup_time").value <= metric(r, "worst start-up").value);
    }
}

#[test]
fn a_start_beside_readers_is_served_by_bfq() {
    for load in ["10r-seq", "10r-rand", "5r5w-seq"] {
        let line = format!("startup bash {load} 2 60 2 1G");
        let all = records("hdd-7200", &["none", "mq-deadline", "bfq"], &line);
        let takes = |s: &str| metric(&all[s], "startup_time").value;
        for other in ["none", "mq-deadline"] {
            assert!(
                takes(other) > 3.0 * takes("bfq"),
                "{load}: {other} {} s, bfq {} s",
                takes(other),
                takes("bfq")
            );
        }
        assert!(takes("bfq") < 2.0, "{load}");
        assert!(metric(&all["bfq"], "background read").value > 0.5);
    }
}

#[test]
fn a_start_over_the_limit_is_the_last_and_has_no_time() {
    let all = records("hdd-7200", &["mq-deadline", "bfq"], "startup bash 10r-seq 5 1 2 1G");
    let late = &all["mq-deadline"];
    assert_eq!(
        (metric(late, "startup_time").value, metric(late, "startup_time").censored),
        (1.0, true)
    );
    assert!(metric(late, "worst start-up").censored);
    assert_eq!(metric(late, "starts over the limit").value, 1.0);
    // 10 processes: 6 s until the load is steady, then one start.
    assert!(late.elapsed < 9_000_000_000, "{}", late.elapsed);
    assert!(!metric(&all["bfq"], "startup_time").censored);
}

#[test]
fn a_film_beside_readers_drops_frames_where_nobody_prefers_it() {
    let line = "video 10r-seq 10 1M 5000 60 1 1G 16500k none";
    let all = records("hdd-7200", &["none", "mq-deadline", "bfq"], line);
    let drops = |s: &str| metric(&all[s], "drop rate").value;
    for other in ["none", "mq-deadline"] {
        assert_eq!(metric(&all[other], "frames").value, 240.0);
        assert!(
            drops(other) > 2.5 * drops("bfq"),
            "{other} {}, bfq {}",
            drops(other),
            drops("bfq")
        );
    }
    let idle = records("hdd-7200", &["none"], "video 0r 10 1M 5000 60 1");
    // Three starts of bash, each after the film was dropped from memory.
    assert!(metric(&idle["none"], "frames dropped").value <= 3.0);
}

/// Beside readers in order the player itself does not start in time under a scheduler that knows nothing of starts.
#[test]
fn a_film_whose_player_does_not_start_never_begins() {
    let line = "video 10r-seq 4 1M 5000 20 3 1G";
    let all = records("hdd-7200", &["none", "bfq"], line);
    let of = |s: &str, name: &str| metric(&all[s], name).value;
    assert_eq!((of("none", "films never begun"), of("none", "films given up")), (1.0, 1.0));
    assert_eq!((of("bfq", "films never begun"), of("bfq", "films given up")), (0.0, 0.0));
    assert!(metric(&all["none"], "drop rate").censored);
    // Nothing else is read on an idle disk than film, player and the starts of bash beside.
    let idle = &records("fixed", &["none"], "video 0r 4 1M 5000 10 1")["none"];
    let read = idle.device.bytes[0] as f64 / f64::from(1 << 20);
    assert!((78.0..86.0).contains(&read), "{read} MiB");
}

#[test]
fn a_film_that_does_not_end_is_given_up() {
    // More than the device can read in a second.
    let all = records("hdd-7200", &["none"], "video 0r 4 1G 5000 2 3");
    let r = &all["none"];
    assert_eq!((metric(r, "drop rate").value, metric(r, "drop rate").censored), (100.0, true));
    assert!(metric(r, "frames").value < 96.0, "the first time was the last");
    assert_eq!(
        (metric(r, "films given up").value, metric(r, "films never begun").value),
        (1.0, 0.0)
    );
}

#[test]
fn interleaved_readers_read_their_own_zones() {
    let all = records("fixed", &["none"], "interleaved 5 16k 4k 1 64M");
    let r = &all["none"];
    let sum: u64 = r.jobs.iter().map(|j| j.read.bytes).sum();
    assert!((metric(r, "read").value - sum as f64 / 1e6).abs() < 0.05 * metric(r, "read").value);
    let readers: Vec<u64> = r.jobs.iter().map(|j| j.read.bytes).filter(|b| *b > 0).collect();
    assert_eq!(readers.len(), 5);
    assert!(readers.iter().all(|b| b % (16 << 10) == 0), "whole zones: {readers:?}");
}

#[test]
fn a_task_over_its_limit_has_no_time() {
    let all = records("hdd-7200", &["none"], "kernel-tasks grep 4 0 500M 1 20");
    let (seconds, done) = (metric(&all["none"], "seconds"), metric(&all["none"], "done"));
    assert_eq!((seconds.value, seconds.censored), (1.0, true));
    assert!(done.value > 0.0 && done.value < 100.0, "{done:?}");
    // What make takes until it is stopped is the limit.
    let all = records("fixed", &["none"], "kernel-tasks make 0 0 1M 2 10");
    assert!(all["none"].metrics.iter().all(|m| m.name != "seconds"));
    assert!(metric(&all["none"], "files").value > 5.0);
}
