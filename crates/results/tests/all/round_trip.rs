//! What goes out in a format comes back as it was, whatever the names and figures are.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use iosched_experiment::record::{
    BackendKind, DirStats, JobRecord, Metric, Record, SCHEMA, Series, Status, TrialId,
};
use iosched_results::compare::{CompareOptions, compare};
use iosched_results::export::{Format, export};
use iosched_results::import::{self, Context, large_document};
use iosched_results::measure::{Measure, measures};
use iosched_results::store::{Document, ExperimentDocument, Store};
use proptest::prelude::*;

/// Names as people, spreadsheets and parsers dislike them.
const NAMES: [&str; 10] = [
    "plain",
    "=1+1",
    "-x",
    "+SUM(A1)",
    "@cmd",
    "'quoted",
    "a,b \"c\"",
    "two\nlines",
    "#hash <b>&amp;</b>",
    "größe 4 k | *x*",
];

fn name() -> impl Strategy<Value = String> {
    (0..NAMES.len()).prop_map(|i| NAMES[i].to_string())
}

fn side(latencies: &[u64]) -> DirStats {
    let mut d = DirStats { runtime: 1_234_567_891, ..DirStats::default() };
    for l in latencies {
        d.clat.record(*l);
        d.lat.add(*l as f64 + 0.5);
        d.slat.add(*l as f64 / 7.0);
        d.ios += 1;
        d.bytes += 4096;
    }
    d
}

fn job(name: &str, read: &[u64], write: &[u64]) -> JobRecord {
    JobRecord {
        name: name.into(),
        read: side(read),
        write: side(write),
        sync: DirStats { runtime: 0, bytes: 0, ..side(&write[..write.len() / 2]) },
        runtime: 1_234_567_891,
        ended: 1_234_567_891,
        options: [("rw".to_string(), "randrw".to_string())].into(),
        ..JobRecord::default()
    }
}

prop_compose! {
    fn record(device: String, scheduler: String, experiment: String, repetition: u32)(
        workload in name(), job_name in name(), metric in name(),
        read in proptest::collection::vec(1u64..1 << 33, 0..40),
        write in proptest::collection::vec(1u64..1 << 33, 0..40),
        value in -1e12f64..1e12, censored: bool, ending in 0..6, seed: u64,
    ) -> Record {
        // A metric of one name has one direction.
        let higher_is_better = metric.len() % 2 == 0;
        let trial = TrialId {
            experiment: experiment.clone(), device: device.clone(), scheduler: scheduler.clone(),
            kernel: "6.12".into(), workload, repetition, seed,
        };
        Record {
            schema: SCHEMA, trial, backend: BackendKind::Sim,
            status: match ending {
                0 => Status::Failed("no <space> left".into()),
                1 => Status::Invalid("another, \"busy\" program".into()),
                _ => Status::Complete,
            },
            jobs: vec![job(&job_name, &read, &write), job("b", &write, &read)],
            series: vec![Series { name: "iops".into(), step: 1, values: vec![1.0], ..Series::default() }],
            metrics: vec![Metric {
                name: metric, value, unit: "s".into(), higher_is_better: Some(higher_is_better), censored,
            }],
            provenance: [("cpus".to_string(), "4".to_string()), ("disk".into(), device.clone())].into(),
            elapsed: 1_300_000_001,
            ..Record::default()
        }
    }
}

fn experiment() -> impl Strategy<Value = Vec<Record>> {
    (name(), name(), name()).prop_flat_map(|(experiment, device, scheduler)| {
        let of = |scheduler: &str, repetition| {
            record(device.clone(), scheduler.into(), experiment.clone(), repetition)
        };
        (of(&scheduler, 1), of(&scheduler, 3), of("none", 1), of("none", 2))
            .prop_map(|(a, b, c, d)| vec![a, b, c, d])
    })
}

fn back(records: &[Record], format: Format) -> Vec<Record> {
    let text = export(&records[0].trial.experiment, records, format).unwrap();
    import::import("file", &text, None, &Context::default())
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn figures(records: &[Record]) -> BTreeMap<TrialId, Vec<Measure>> {
    let of = |r: &Record| {
        let mut all = measures(r);
        all.sort_by(|a, b| a.name.cmp(&b.name));
        (r.trial.clone(), all)
    };
    records.iter().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn json_loses_nothing(records in experiment()) {
        prop_assert_eq!(back(&records, Format::Json), records);
    }

    #[test]
    fn fio_json_loses_the_pictures_only(mut records in experiment()) {
        let again = back(&records, Format::FioJson);
        records.iter_mut().for_each(|r| r.series.clear());
        prop_assert_eq!(again, records);
    }

    #[test]
    fn csv_keeps_every_figure_of_every_trial(records in experiment()) {
        let text = export("e", &records, Format::Csv).unwrap();
        let again = back(&records, Format::Csv);
        // Seeds and all: a simulated trial is the same trial again.
        prop_assert_eq!(figures(&again), figures(&records));
        let alike = |a: &Record, b: &Record| (&a.status, a.backend) == (&b.status, b.backend);
        prop_assert!(again.iter().zip(&records).all(|(a, b)| alike(a, b)));
        prop_assert_eq!(export("e", &again, Format::Csv).unwrap(), text);
    }

    #[test]
    fn pts_keeps_figures_conditions_and_rounds(mut records in experiment()) {
        records.iter_mut().for_each(|r| r.status = Status::Complete);
        let again = back(&records, Format::Pts);
        prop_assert_eq!(figures(&again), figures(&records));
        for r in &records {
            let a = again.iter().find(|a| a.trial == r.trial).unwrap();
            prop_assert_eq!((a.backend, &a.provenance), (r.backend, &r.provenance));
        }
        let c = compare(&records, &again, &CompareOptions::default()).unwrap();
        prop_assert!(c.differing.is_empty() && c.incomplete.is_empty(), "{:?}", c);
        let worse: Vec<_> = c.changes.iter().filter(|c| c.regression).collect();
        prop_assert!(worse.is_empty(), "{:#?}", worse);
        prop_assert_eq!(back(&again, Format::Pts), again);
    }

    #[test]
    fn the_store_gives_back_what_it_took(records in experiment()) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("r.db")).unwrap();
        let name = records[0].trial.experiment.clone();
        let doc = ExperimentDocument { name, records, ..ExperimentDocument::default() };
        let (id, _) = store.import(&doc).unwrap();
        prop_assert_eq!(store.export(id).unwrap().records, doc.records);
    }
}

/// The way of documents above the limit of those that are read as a text first.
#[test]
fn a_large_document_is_read_from_the_stream() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.json");
    let records: Vec<Record> = (1..=500)
        .map(|i| {
            let trial = TrialId { repetition: i, workload: "w".into(), ..TrialId::default() };
            Record { trial, jobs: vec![job("a", &[5, 6, 7], &[8])], ..Record::default() }
        })
        .collect();
    let document = Document::of("large", records);
    std::fs::write(&path, serde_json::to_string(&document).unwrap()).unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    assert_eq!(large_document(&path, size).unwrap(), None, "small enough");
    assert_eq!(large_document(&path, size - 1).unwrap(), Some(document));

    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() / 2]).unwrap();
    let e = large_document(&path, 1000).unwrap_err().to_string();
    assert!(e.contains("large.json") && e.contains("EOF"), "{e}");
    std::fs::write(&path, text.replacen("\"schema\":1", "\"schema\":99", 1)).unwrap();
    let e = large_document(&path, 1000).unwrap_err().to_string();
    assert!(e.contains("newer"), "{e}");
    std::fs::write(&path, text.replacen("iosched-results", "something-else", 1)).unwrap();
    assert_eq!(large_document(&path, 1000).unwrap(), None, "another program's");
}

/// The same run a day later.
fn later(text: &str) -> String {
    let stamp = |key: &str| {
        let (_, rest) = text.split_once(&format!("\"{key}\": ")).unwrap();
        rest[..rest.find(',').unwrap()].to_string()
    };
    let more = |old: &str, by: u64| (old.parse::<u64>().unwrap() + by).to_string();
    let (s, ms) = (stamp("timestamp"), stamp("timestamp_ms"));
    text.replace(&ms, &more(&ms, 86_400_000)).replacen(&s, &more(&s, 86_400), 1)
}

/// As `fio --output=FILE` appends one run to the other.
#[test]
fn runs_of_fio_in_one_file_are_repetitions() {
    let one = include_str!("../data/fio-3.33-json-plus.json");
    let trial = Context { workload: "w".into(), ..Context::default() };
    let r = import::from_fio_json("f.json", &format!("{one}\n{}", later(one)), &trial).unwrap();
    let rounds: Vec<u32> = r.iter().map(|r| r.trial.repetition).collect();
    assert_eq!(rounds, [1, 2]);
    assert_eq!(r[0].jobs, r[1].jobs);
}
