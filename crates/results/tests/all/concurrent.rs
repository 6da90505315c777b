//! Two processes' worth of connections write and read one file at once.
#![allow(clippy::disallowed_methods, reason = "a test with several writers")]

use iosched_experiment::record::{Record, SCHEMA, TrialId};
use iosched_results::store::Store;

fn record(writer: u32, i: u32) -> Record {
    let trial = TrialId { device: format!("d{writer}"), repetition: i, ..TrialId::default() };
    Record { schema: SCHEMA, trial, ..Record::default() }
}

#[test]
fn writers_take_turns_and_readers_see_whole_trials() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.db");
    // Created by all of them at the same time, too.
    std::thread::scope(|s| {
        for w in 0..3u32 {
            let path = &path;
            s.spawn(move || {
                let mut store = Store::open(path).unwrap();
                let e = store.begin(&format!("e{w}"), "", "run").unwrap();
                for i in 1..=40 {
                    store.put(e, &record(w, i), "").unwrap();
                }
            });
        }
        let path = &path;
        s.spawn(move || {
            let store = Store::open(path).unwrap();
            for _ in 0..40 {
                for e in store.list().unwrap() {
                    let n = store.trials(e.id).unwrap().len();
                    assert!(store.records(e.id).unwrap().len() >= n);
                }
            }
        });
    });
    let store = Store::open(&path).unwrap();
    assert_eq!(store.list().unwrap().iter().map(|e| e.trials).collect::<Vec<_>>(), [40, 40, 40]);
    assert!(store.integrity_check().unwrap().is_empty());
}
