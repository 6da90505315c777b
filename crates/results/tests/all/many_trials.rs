//! A hundred thousand trials:
//! `cargo test --release -p iosched-results --test all many_trials -- --ignored --nocapture`.
//!
//! Prints how long filling, listing and querying took; asserts only what is counted.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test")]

use std::process::Command;

use iosched_experiment::record::{DirStats, JobRecord, Record, SCHEMA, TrialId};
use iosched_results::cells::judge_cells;
use iosched_results::stats::VerdictOptions;
use iosched_results::store::Store;

fn record(i: u32) -> Record {
    let mut read =
        DirStats { ios: 200, bytes: 200 << 12, runtime: 1_000_000_000, ..DirStats::default() };
    (0..200u64).for_each(|k| read.clat.record(50_000 + k * k * u64::from(i % 97 + 1)));
    let trial = TrialId {
        device: format!("d{}", i % 10),
        scheduler: format!("s{}", i / 10 % 10),
        workload: format!("w{}", i / 100 % 100),
        repetition: i / 10_000 + 1,
        ..TrialId::default()
    };
    let provenance = (0..20).map(|k| (format!("key{k}"), format!("value{}", i % 10))).collect();
    Record {
        schema: SCHEMA,
        trial,
        provenance,
        jobs: vec![JobRecord { name: "j".into(), read, ..JobRecord::default() }],
        ..Record::default()
    }
}

/// Seconds of a step, by the system's own clock: the date command serves a test that only prints.
fn now() -> f64 {
    let out = Command::new("date").arg("+%s.%N").output().unwrap();
    String::from_utf8_lossy(&out.stdout).trim().parse().unwrap()
}

#[test]
#[ignore = "takes a minute; prints timings"]
fn a_hundred_thousand_trials() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.db");
    let mut store = Store::open(&path).unwrap();
    let e = store.begin("big", "", "run").unwrap();
    let mut t = now();
    let mut lap = |what: &str| {
        let n = now();
        println!("{what}: {:.2} s", n - t);
        t = n;
    };
    for batch in 0..100 {
        let records: Vec<Record> = (batch * 1000..(batch + 1) * 1000).map(record).collect();
        store.put_all(e, records.iter().map(|r| (r, "hash"))).unwrap();
    }
    lap("filling");
    assert_eq!(store.list().unwrap()[0].trials, 100_000);
    lap("list");
    assert_eq!(store.trials(e).unwrap().len(), 100_000);
    lap("trials");
    assert_eq!(store.complete(e).unwrap().len(), 100_000);
    lap("resume query");
    assert_eq!(store.samples(e, Some("read.iops")).unwrap().len(), 100_000);
    lap("one measure");
    let cells = store.cells(e).unwrap();
    let cells = cells.into_values().next().unwrap();
    assert_eq!(cells.0.len(), 10_000);
    lap("cells");
    let analysis = judge_cells(&cells, None, VerdictOptions::default());
    lap("analysis");
    println!("{} lines judged", analysis.lines.len());
    let mut n = 0;
    store.for_each(e, |_, _| n += 1).unwrap();
    assert_eq!(n, 100_000);
    lap("every record");
    println!("file: {} MB", std::fs::metadata(&path).unwrap().len() >> 20);
}
