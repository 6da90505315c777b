use iosched_experiment::record::*;
use iosched_types::Op;
use proptest::prelude::*;

use super::*;

#[test]
#[allow(clippy::disallowed_methods, reason = "the files are those of another program")]
fn a_strangers_file_beside_a_new_one_is_not_deleted() {
    let dir = tempfile::tempdir().unwrap();
    for end in ["-wal", "-shm", "-journal"] {
        let beside = dir.path().join(format!("r.db{end}"));
        std::fs::write(&beside, "theirs").unwrap();
        let e = Store::open(&dir.path().join("r.db")).map(|_| ()).unwrap_err();
        assert!(e.to_string().contains(end), "{e}");
        assert_eq!(std::fs::read_to_string(&beside).unwrap(), "theirs");
        std::fs::remove_file(beside).unwrap();
    }
    Store::open(&dir.path().join("r.db")).unwrap();
}

#[test]
fn an_empty_database_with_a_version_is_somebody_elses() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 1).unwrap();
    drop(other);
    let e = Store::open(&path).map(|_| ()).unwrap_err();
    assert!(matches!(e, StoreError::Foreign(_)), "{e:?}");
}

fn record(scheduler: &str, repetition: u32) -> Record {
    let mut read =
        DirStats { ios: 3, bytes: 12_288, runtime: 1_000_000_000, ..DirStats::default() };
    [5_000u64, 80_000, 9_000_000].iter().for_each(|l| read.clat.record(*l));
    Record {
        schema: SCHEMA,
        trial: TrialId {
            experiment: "e".into(),
            device: "d".into(),
            scheduler: scheduler.into(),
            kernel: "6.12".into(),
            workload: "w".into(),
            repetition,
            seed: u64::MAX - 1,
        },
        jobs: vec![JobRecord { name: "j".into(), read, ..JobRecord::default() }],
        series: vec![Series {
            name: "iops".into(),
            unit: "1/s".into(),
            step: 7,
            values: vec![1.5, f64::INFINITY],
        }],
        dispatches: vec![DispatchPoint { t: 1, sector: 2, sectors: 8, op: Op::Read, pid: 3 }],
        provenance: [("device.model".to_string(), "x".to_string())].into(),
        warnings: vec![Warning { code: "noisy".into(), ..Warning::default() }],
        elapsed: u64::MAX,
        ..Record::default()
    }
}

fn fresh() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("r.db")).unwrap();
    (dir, store)
}

#[test]
fn records_come_back_as_they_were() {
    let (_dir, mut s) = fresh();
    let e = s.begin("e", "text", "run").unwrap();
    let mut failed = record("bfq", 2);
    failed.status = Status::Failed("time-out".into());
    for r in [record("none", 1), failed] {
        let id = s.put(e, &r, "h").unwrap();
        assert_eq!(s.record(id).unwrap(), r);
    }
    let row = &s.list().unwrap()[0];
    assert_eq!((row.trials, row.complete, row.failed, row.schedulers), (2, 1, 1, 2));
    assert_eq!(s.complete(e).unwrap().into_values().collect::<Vec<_>>(), ["h"]);
    assert_eq!(s.samples(e, Some("read.iops")).unwrap()[0].value, 3.0);
    assert_eq!(s.definition(e).unwrap(), "text");
}

#[test]
fn cells_of_the_samples_are_those_of_the_records() {
    let (_dir, mut s) = fresh();
    let e = s.begin("e", "", "run").unwrap();
    for i in 1..=3 {
        s.put(e, &record("none", i), "").unwrap();
    }
    let mut failed = record("bfq", 1);
    failed.status = Status::Invalid("cached".into());
    s.put(e, &failed, "").unwrap();
    assert_eq!(
        s.cells(e).unwrap().into_values().next().unwrap(),
        crate::cells::group(&s.records(e).unwrap())
    );
}

#[test]
fn a_repeated_trial_replaces_the_first() {
    let (_dir, mut s) = fresh();
    let e = s.begin("e", "", "run").unwrap();
    s.put(e, &record("none", 1), "old").unwrap();
    s.put(e, &record("none", 1), "new").unwrap();
    assert_eq!(s.complete(e).unwrap().into_values().collect::<Vec<_>>(), ["new"]);
}

#[test]
fn names_keys_and_identities_are_found_and_near_misses_helped() {
    let (_dir, mut s) = fresh();
    let old = s.begin("seq-read", "", "run").unwrap();
    let new = s.begin("seq-read", "", "run").unwrap();
    assert_eq!(s.find("seq-read").unwrap(), new);
    assert_eq!(s.find(&old.to_string()).unwrap(), old);
    let e = s.find("seq-raed").unwrap_err().to_string();
    assert!(e.contains("did you mean \"seq-read\"?"), "{e}");
}

#[test]
fn deleting_takes_everything_along() {
    let (_dir, mut s) = fresh();
    let e = s.begin("e", "", "run").unwrap();
    s.put(e, &record("none", 1), "").unwrap();
    s.delete(e).unwrap();
    for table in [
        "experiments",
        "trials",
        "records",
        "samples",
        "histograms",
        "series",
        "warnings",
        "provenance",
    ] {
        let n: i64 =
            s.conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |r| r.get(0)).unwrap();
        assert_eq!(n, 0, "{table}");
    }
}

#[test]
fn progress_counts_what_is_stored() {
    let (_dir, mut s) = fresh();
    let e = s.begin("e", "", "run").unwrap();
    assert_eq!(s.progress(e).unwrap(), Progress::default());
    s.expect(e, 3).unwrap();
    s.put(e, &record("none", 1), "").unwrap();
    s.put(e, &record("none", 2), "").unwrap();
    s.conn.execute_batch("UPDATE trials SET stored = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', ((id - 2) * 30) || ' seconds')").unwrap();
    let p = s.progress(e).unwrap();
    assert_eq!((p.stored, p.planned, p.pace), (2, Some(3), Some(30.0)));
    assert!(p.under_way() && p.left().unwrap() <= 30.0);
    assert_eq!(s.list().unwrap()[0].planned, Some(3));
}

#[test]
fn a_newer_schema_is_refused_and_an_older_one_migrated_after_a_copy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.db");
    {
        let old = Connection::open(&path).unwrap();
        old.execute_batch(schema::MIGRATIONS[0]).unwrap();
        old.execute_batch("INSERT INTO experiments VALUES (1, 'u', 'kept', 't', '', 'run')")
            .unwrap();
        old.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
        old.pragma_update(None, "user_version", 1).unwrap();
    }
    assert!(matches!(Store::open_read_only(&path), Err(StoreError::Older { found: 1, .. })));
    let s = Store::open(&path).unwrap();
    assert_eq!(s.list().unwrap()[0].name, "kept");
    let backup = Connection::open(dir.path().join("r.db.v1-backup")).unwrap();
    let version: i64 = backup.query_row("PRAGMA user_version", [], |r| r.get(0)).unwrap();
    assert_eq!(version, 1);
    s.conn.pragma_update(None, "user_version", 99).unwrap();
    drop(s);
    let e = Store::open(&path).unwrap_err().to_string();
    assert!(e.contains("schema 99") && e.contains("newer"), "{e}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test needs such a file")]
fn what_is_no_results_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    std::fs::write(
        &text,
        "these are notes, not a database, and long enough to be read as a header .................",
    )
    .unwrap();
    assert!(matches!(Store::open(&text), Err(StoreError::NotADatabase(_))));
    let other = dir.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    assert!(matches!(Store::open(&other), Err(StoreError::Foreign(_))));
    assert!(matches!(
        Store::open_read_only(&dir.path().join("absent")),
        Err(StoreError::CannotOpen { .. })
    ));
    assert!(matches!(
        Store::open(&dir.path().join("no/such/dir.db")),
        Err(StoreError::CannotOpen { .. })
    ));
}

#[test]
fn a_lock_that_stays_is_reported() {
    let (dir, mut s) = fresh();
    let blocker = Connection::open(dir.path().join("r.db")).unwrap();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    s.conn.busy_timeout(Duration::from_millis(20)).unwrap();
    assert!(matches!(s.begin("e", "", "run"), Err(StoreError::Locked(_))));
    // A reader is not held up.
    assert!(s.list().unwrap().is_empty());
    blocker.execute_batch("COMMIT").unwrap();
    s.begin("e", "", "run").unwrap();
}

#[test]
fn a_full_disk_loses_the_running_trial_only() {
    let (_dir, mut s) = fresh();
    let e = s.begin("e", "", "run").unwrap();
    s.put(e, &record("none", 1), "").unwrap();
    let pages: i64 = s.conn.query_row("PRAGMA page_count", [], |r| r.get(0)).unwrap();
    s.conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    let mut big = record("none", 2);
    big.series[0].values = (0..200_000).map(|i| f64::from(i).sqrt()).collect();
    assert!(matches!(s.put(e, &big, ""), Err(StoreError::Full(_))));
    assert_eq!(s.trials(e).unwrap().len(), 1);
    assert!(s.integrity_check().unwrap().is_empty());
}

#[test]
fn a_read_only_connection_cannot_write() {
    let (dir, mut s) = fresh();
    let e = s.begin("e", "", "run").unwrap();
    let mut r = Store::open_read_only(&dir.path().join("r.db")).unwrap();
    assert!(matches!(r.begin("x", "", "run"), Err(StoreError::ReadOnly(_))));
    // It sees what the writer adds meanwhile.
    s.put(e, &record("none", 1), "").unwrap();
    assert_eq!(r.trials(e).unwrap().len(), 1);
}

#[test]
fn numbers_that_are_none_are_refused() {
    let (_dir, mut s) = fresh();
    let e = s.begin("e", "", "run").unwrap();
    let mut r = record("none", 1);
    r.metrics.push(Metric { name: "startup".into(), value: f64::NAN, ..Metric::default() });
    let text = s.put(e, &r, "").unwrap_err().to_string();
    assert!(text.contains("startup"), "{text}");
    assert!(s.trials(e).unwrap().is_empty());
}

#[test]
fn merging_twice_adds_nothing() {
    let (_a, mut a) = fresh();
    let (dir_b, mut b) = fresh();
    let e = b.begin("e", "def", "run").unwrap();
    let point = |t| iosched_experiment::DispatchPoint {
        t,
        sector: t,
        sectors: 8,
        op: iosched_types::Op::Write,
        pid: 9,
    };
    let traced = Record { trace: (0..9000).map(point).collect(), ..record("none", 1) };
    b.put(e, &traced, "hash").unwrap();
    let path = dir_b.path().join("r.db");
    assert_eq!(a.merge(&path).unwrap(), MergeReport { added: 1, trials: 1, ..Default::default() });
    assert_eq!(a.merge(&path).unwrap(), MergeReport::default());
    b.put(e, &record("none", 2), "hash2").unwrap();
    assert_eq!(
        a.merge(&path).unwrap(),
        MergeReport { completed: 1, trials: 1, ..Default::default() }
    );
    let id = a.find("e").unwrap();
    assert_eq!(a.complete(id).unwrap().into_values().collect::<Vec<_>>(), ["hash", "hash2"]);
    assert_eq!(a.export(id).unwrap().records, b.export(e).unwrap().records);
    let found = a.traced(id).unwrap();
    assert_eq!((found.len(), found[0].1), (1, 9000));
    assert_eq!(a.trace(found[0].0.id).unwrap(), traced.trace);
    assert!(a.record(found[0].0.id).unwrap().trace.is_empty(), "records are read without it");
}

#[test]
fn a_merge_names_experiments_of_one_name() {
    let (_a, mut a) = fresh();
    let (dir_b, mut b) = fresh();
    let mine = a.begin("e", "", "run").unwrap();
    let e = b.begin("e", "", "run").unwrap();
    b.put(e, &record("none", 1), "").unwrap();
    let report = a.merge(&dir_b.path().join("r.db")).unwrap();
    let all = a.named("e").unwrap();
    assert_eq!((all.len(), all[1], a.find("e").unwrap()), (2, mine, all[0]));
    assert_eq!(report.shared, [("e".to_string(), all)]);
}

/// Two machines ran a half each.
#[test]
fn a_merge_joins_the_parts_of_one_plan() {
    let part = |device: &str, more: &str, scheduler: &str| {
        let (dir, mut s) = fresh();
        let options = iosched_experiment::OPTIONS_LINE;
        let definition =
            format!("{options}--device {device} --set runtime=5{more}\nname = \"e\"\n");
        let e = s.begin("e", &definition, "run").unwrap();
        s.put(e, &record(scheduler, 1), "").unwrap();
        (dir, s)
    };
    let (_a, mut a) = part("x", "", "none");
    let (b, _) = part("y", "", "bfq");
    let file = b.path().join("r.db");
    let joined = a.merge(&file).unwrap();
    assert_eq!(joined.joined, [("e".to_string(), a.find("e").unwrap())]);
    assert_eq!((a.list().unwrap().len(), joined.trials, joined.added), (1, 1, 0));
    assert_eq!(a.merge(&file).unwrap().trials, 0, "twice adds nothing");
    // Another plan, and the same trial with other figures, are experiments of their own.
    for (more, scheduler) in [(" --seed 7 --set bs=8k", "kyber"), ("", "none")] {
        let (dir, mut s) = part("x", more, scheduler);
        let mut other = record(scheduler, 1);
        other.elapsed -= 1;
        s.put(s.find("e").unwrap(), &other, "").unwrap();
        assert_eq!(a.merge(&dir.path().join("r.db")).unwrap().added, 1, "{more}");
    }
}

#[test]
fn an_import_with_a_trial_twice_leaves_nothing() {
    let (_dir, mut s) = fresh();
    let doc = Document::of("e", vec![record("none", 1), record("none", 1)]);
    assert!(matches!(s.import(&doc.experiments[0]), Err(StoreError::Duplicate(_))));
    assert!(s.list().unwrap().is_empty());
}

#[test]
fn paths_with_odd_characters_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a b?c#d%20.db");
    Store::open(&path).unwrap();
    assert!(Store::open_read_only(&path).unwrap().list().unwrap().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_record_survives(
        lat in proptest::collection::vec(0u64..1 << 40, 0..30), name in ".{0,12}", value in -1e300f64..1e300,
        seed in any::<u64>(),
    ) {
        let (_dir, mut s) = fresh();
        let e = s.begin("e", "", "run").unwrap();
        let mut r = record(&name, 1);
        r.trial.seed = seed;
        lat.iter().for_each(|l| r.jobs[0].write.clat.record(*l));
        r.metrics.push(Metric { name, value, ..Metric::default() });
        let id = s.put(e, &r, "").unwrap();
        prop_assert_eq!(s.record(id).unwrap(), r);
    }
}
