//! A program killed at any instant loses at most the trial that it was storing.
//!
//! The test starts itself again as a writer that stores trials as fast as it can and prints each
//! number once the trial is stored; it is killed (SIGKILL) after a random time, two hundred times.
#![allow(clippy::disallowed_methods, reason = "a test that kills itself")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use iosched_experiment::record::{DirStats, JobRecord, Record, SCHEMA, Series, TrialId};
use iosched_results::store::Store;

const KILLS: u64 = 200;
const FILE: &str = "IOSCHED_KILL_TEST_FILE";

fn record(i: u32) -> Record {
    let mut read =
        DirStats { ios: 500, bytes: 500 << 12, runtime: 1_000_000_000, ..DirStats::default() };
    (0..500u64).for_each(|k| read.clat.record(1_000 + k * k * u64::from(i % 7 + 1)));
    Record {
        schema: SCHEMA,
        trial: TrialId { workload: format!("w{i}"), repetition: 1, ..TrialId::default() },
        jobs: vec![JobRecord { name: "j".into(), read, ..JobRecord::default() }],
        series: vec![Series {
            values: (0..200).map(|k| f64::from(k * i)).collect(),
            ..Series::default()
        }],
        provenance: [("n".to_string(), i.to_string())].into(),
        ..Record::default()
    }
}

/// The writer; does nothing unless started by the test below.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let mut store = Store::open(path.as_ref()).unwrap();
    let e = store.find("e").or_else(|_| store.begin("e", "", "run")).unwrap();
    let mut next = store.trials(e).unwrap().len() as u32;
    loop {
        store.put(e, &record(next), "hash").unwrap();
        next += 1;
        // Past the test harness's capture; the parent counts these lines.
        writeln!(std::io::stderr().lock(), "stored {next}").unwrap();
    }
}

#[test]
fn two_hundred_kills_lose_at_most_the_running_trial() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.db");
    let mut rng = iosched_engine::stream(1, "kill");
    let mut stored = 0;
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::writer", "--nocapture", "--test-threads=1"])
            .env(FILE, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(rng.below(25_000)));
        child.kill().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let confirmed = lines
            .map_while(Result::ok)
            .filter_map(|l| l.strip_prefix("stored ")?.parse::<u32>().ok())
            .max();
        child.wait().unwrap();
        if !path.exists() {
            continue;
        }
        let store = Store::open(&path).unwrap();
        assert_eq!(store.integrity_check().unwrap(), Vec::<String>::new(), "after kill {kill}");
        let rows = store.find("e").map_or(Vec::new(), |e| store.trials(e).unwrap());
        let n = rows.len() as u32;
        assert!(
            n >= confirmed.unwrap_or(0) && n >= stored,
            "kill {kill}: {n} of {confirmed:?}, before {stored}"
        );
        if let Some(last) = rows.last() {
            assert_eq!(store.record(last.id).unwrap(), record(n - 1), "the last trial is whole");
        }
        stored = n;
    }
    assert!(
        stored > 20,
        "the writer hardly wrote anything ({stored} trials): the test would prove nothing"
    );
    println!("{KILLS} kills, {stored} trials stored");
}
