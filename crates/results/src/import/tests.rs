use iosched_experiment::record::{Metric, Record, Status, TrialId};
use proptest::prelude::*;

use super::*;
use crate::published;

fn who() -> TrialId {
    TrialId { device: "d".into(), workload: "w".into(), ..TrialId::default() }
}

fn value(r: &iosched_experiment::record::Record, name: &str) -> Option<f64> {
    r.metrics.iter().find(|m| m.name == name).map(|m| m.value)
}

#[test]
fn iozone_tables() {
    let r = from_iozone("i.txt", include_str!("../../tests/data/iozone.txt"), &who()).unwrap();
    assert_eq!(
        r.iter().map(|r| r.trial.scheduler.as_str()).collect::<Vec<_>>(),
        ["mq-deadline", "bfq"]
    );
    assert_eq!(value(&r[0], "write 4k of 65536k"), Some(113_587.0));
    assert_eq!(value(&r[0], "random write 128k of 65536k"), Some(568_430.0));
    assert_eq!(value(&r[1], "read 128k of 65536k"), Some(2_271_515.0));
    assert_eq!(r[0].metrics.len(), 12);
    assert!(r[0].provenance["tool"].starts_with("iozone 3.489"));
}

#[test]
fn iozone_throughput_mode() {
    let r = from_iozone("i.txt", include_str!("../../tests/data/iozone_throughput.txt"), &who())
        .unwrap();
    assert_eq!(r.len(), 2);
    assert_eq!(value(&r[0], "initial writers throughput"), Some(565_567.69));
    assert_eq!(value(&r[1], "random writers throughput"), Some(145_434.36));
    assert_eq!(value(&r[0], "rewriters throughput of the slowest process"), Some(132_628.09));
    let cpu = r[0].metrics.iter().find(|m| m.unit == "CPU%").unwrap();
    assert_eq!((cpu.value, cpu.higher_is_better), (29.29, Some(false)));
}

#[test]
fn iozone_without_a_result_is_an_error() {
    let e = from_iozone("i.txt", "Iozone: Performance Test of File I/O\n", &who()).unwrap_err();
    assert!(e.message.contains("no result"));
    let torn = include_str!("../../tests/data/iozone.txt").replace("   113587", "   1135x7");
    let e = from_iozone("i.txt", &torn, &who()).unwrap_err();
    assert!(e.message.contains("1135x7") && e.line > 10, "{e}");
}

#[test]
fn pg_test_fsync_sections() {
    let r = from_pg_test_fsync("p.txt", include_str!("../../tests/data/pg_test_fsync.txt"), &who())
        .unwrap();
    assert_eq!(r.len(), 2);
    // 5 + 5 + 5 + 2 + 1 methods less two n/a, in two units.
    assert_eq!(r[0].metrics.len(), 32);
    assert_eq!(
        value(&r[0], "Compare file sync methods using one 8kB write: fdatasync [ops/sec]"),
        Some(2503.079)
    );
    assert_eq!(
        value(
            &r[0],
            "Compare open_sync with different write sizes: 16 * 1kB open_sync write [ops/sec]"
        ),
        None
    );
    assert_eq!(
        value(
            &r[1],
            "Compare open_sync with different write sizes: 16 * 1kB open_sync writes [usecs/op]"
        ),
        Some(4880.0)
    );
    assert_eq!(r[0].provenance["n/a"].matches("fsync_writethrough").count(), 2);
    // A time is its rate once more, and is not compared beside it.
    let compared = crate::measure::measures(&r[0]);
    assert_eq!(compared.len(), 16);
    assert!(compared.iter().all(|m| m.unit == "ops/sec"), "{compared:?}");
}

/// fio prints the middles of its bins, beyond the largest latency; `fio --output-format=json` has no bins to see it by.
#[test]
fn percentiles_of_fio_stay_within_what_was_measured() {
    let text = |max: &str| {
        format!(
            r#"{{"fio version":"fio-3.33","jobs":[{{"jobname":"a","read":{{"iops":1.0,"total_ios":9,"runtime":9000,
               "clat_ns":{{"min":165,{max}"mean":265.0,"stddev":1.0,"N":9,
               "percentile":{{"1.000000":161,"50.000000":211,"99.900000":2768}}}}}}}}]}}"#
        )
    };
    let p = |max: &str, name: &str| {
        let r = from_fio_json("f.json", &text(max), &who()).unwrap().remove(0);
        value(&r, &format!("read.clat.{name}"))
    };
    let max = r#""max":2755,"#;
    assert_eq!(
        (p(max, "p1"), p(max, "p50"), p(max, "p99.9")),
        (Some(165.0), Some(211.0), Some(2755.0))
    );
    assert_eq!(p("", "p99.9"), Some(2768.0), "no largest one is known");
}

#[test]
fn fio_json_with_steady_state() {
    let text = include_str!("../../tests/data/fio-steadystate.json");
    let r = from_fio_json("f.json", &format!("fio: warning: whatever\n{text}"), &who()).unwrap();
    let r = &r[0];
    assert_eq!(r.jobs[0].read.ios, 500_163);
    assert_eq!(r.series[0].values[0], 74_836.0);
    assert!(value(r, "read.clat.p99").is_some() || r.jobs[0].read.clat.count() > 0);
    let m = crate::measure::measures(r);
    assert!(m.iter().any(|m| m.name == "read.clat.p99" && m.unit == "ns"));
    for (bad, word) in [
        (&text[..2000], "cut off"),
        ("{}", "version"),
        ("nothing", "no JSON"),
        (r#"{"fio version":"fio-3.1","jobs":[]}"#, "no job"),
        (r#"{"fio version":"fio-3.1","jobs":[{"jobname":"a","jobname":"b"}]}"#, "duplicate"),
    ] {
        let e = from_fio_json("f.json", bad, &who()).unwrap_err().to_string();
        assert!(e.contains(word), "{word}: {e}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test lays out a folder")]
fn fio_plot_folders() {
    let dir = tempfile::tempdir().unwrap();
    let json = include_str!("../../tests/data/fio-3.33-json-plus.json");
    for (folder, name) in [
        ("sda/bfq/4k", "randread-32-4"),
        ("sda/none/4k", "randread-32-4"),
        ("sda/none/4k", "randread-1-1"),
    ] {
        let at = dir.path().join(folder);
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join(format!("{name}.json")), json).unwrap();
    }
    let r = fio_plot(dir.path(), &TrialId::default()).unwrap();
    let cells: Vec<_> = r
        .iter()
        .map(|r| (r.trial.device.as_str(), r.trial.scheduler.as_str(), r.trial.workload.as_str()))
        .collect();
    assert_eq!(
        cells,
        [
            ("sda", "bfq", "randread-32-4-4k"),
            ("sda", "none", "randread-1-1-4k"),
            ("sda", "none", "randread-32-4-4k")
        ]
    );
    assert!(fio_plot(&dir.path().join("sda/bfq/absent"), &TrialId::default()).is_err());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test lays out a folder")]
fn s_folders_show_what_struck_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    assert!(s_folder(dir.path(), &TrialId::default()).unwrap_err().message.contains("_stat.txt"));
    for name in ["bfq-0r0w-seq", "bfq-10r0w-seq", "none-0r0w-seq"] {
        let text = "start-up time\nmin max avg std_dev conf99%\n1 3 2 0.5 0.8\n";
        std::fs::write(dir.path().join(format!("{name}-lat_thr_stat.txt")), text).unwrap();
    }
    assert!(has_s_files(dir.path()).unwrap());
    let r = s_folder(dir.path(), &TrialId::default()).unwrap();
    let of = |s: &str, w: &str| {
        let mine = |r: &&Record| r.trial.scheduler == s && r.trial.workload == w;
        r.iter().find(mine).unwrap().status.clone()
    };
    assert_eq!(r.len(), 4);
    assert_eq!(of("bfq", "10r0w-seq"), Status::Complete);
    assert!(matches!(of("none", "10r0w-seq"), Status::Failed(why) if why.contains("time limit")));
}

#[test]
fn csv_by_header() {
    let text = "workload,scheduler,metric,unit,value,repetition,status\n\
                w,bfq,startup,s,>60,1,\nw,bfq,\"rate, total\",1/s,5,1,\nw,none,startup,s,,1,failed: power\n";
    let r = from_csv("c.csv", text).unwrap();
    assert_eq!(r.len(), 2);
    let m: &Metric = &r[0].metrics[0];
    assert_eq!((m.value, m.censored, m.higher_is_better), (60.0, true, Some(false)));
    assert_eq!(r[0].metrics[1].name, "rate, total");
    assert_eq!(r[1].status, Status::Failed("power".into()));
    for (bad, word) in [
        ("workload,scheduler,metrik,unit,value\n", "did you mean \"metric\""),
        ("workload,scheduler,metric,unit\n", "no column \"value\""),
        ("workload,scheduler,metric,unit,value,value\n", "given twice"),
        ("workload,scheduler,metric,unit,value\nw,s,m,u,inf\n", "finite"),
        ("workload,scheduler,metric,unit,value\nw,s,m,u,1,2\n", "6 fields"),
        ("workload,scheduler,metric,unit,value\nw,s,m,u,1\nw,s,m,u,2\n", "given twice"),
        ("workload,scheduler,metric,unit,value\nw,s,\"m,u,1\n", "quote"),
        ("", "no header"),
        ("workload,scheduler,metric,unit,value\n", "no results below it"),
    ] {
        let e = from_csv("c.csv", bad).unwrap_err().to_string();
        assert!(e.contains(word), "{word}: {e}");
    }
}

#[test]
fn csv_says_that_halves_differ() {
    let text = "scheduler,workload,repetition,metric,unit,value,status\n\
                bfq,w,1,m,s,1,complete; halves differ\nnone,w,1,m,s,1,complete\n";
    let records = from_csv("c.csv", text).unwrap();
    assert_eq!([records[0].halves_differ(), records[1].halves_differ()], [true, false]);
    assert!(records.iter().all(|r| r.status == Status::Complete));
    assert!(to_csv(&records).contains(",complete; halves differ,0,imported\n"));
}

#[test]
fn csv_goes_out_and_comes_back() {
    for name in published::names() {
        let records = published::records(name).unwrap();
        let again = from_csv("c.csv", &to_csv(&records)).unwrap();
        assert_eq!(again.len(), records.len());
        for (a, b) in again.iter().zip(&records) {
            assert_eq!((&a.trial, &a.metrics, &a.status), (&b.trial, &b.metrics, &b.status));
        }
    }
}

const TEXT: &str = "Linux I/O Schedulers\nA comparison of them.\n\n\
    SQLite 3.8.10.2\nTest Target: Default\nSeconds < Lower Is Better\n\
    HDD: CFQ .. 341.70 |=======\nHDD: Noop . 338.04 |======\n\n\
    PostgreSQL pgbench 9.6.3\nMode: Read Write\nTPS > Higher Is Better\nHDD: CFQ . 61.8 |====\n";

#[test]
fn text_exports() {
    let c = from_text("t.txt", TEXT).unwrap();
    assert_eq!(c.title, "Linux I/O Schedulers");
    assert_eq!((c.tests[0].title.as_str(), c.tests[0].version.as_str()), ("SQLite", "3.8.10.2"));
    assert_eq!(c.tests[0].cell("HDD: Noop").unwrap().value, Some(338.04));
    assert_eq!((c.runs[0].device.as_str(), c.runs[0].scheduler.as_str()), ("HDD", "CFQ"));
    assert_eq!(c.incomplete(), [(1, vec!["HDD: Noop"])]);
    let e = from_text("t.txt", &TEXT.replace("338.04", "nan")).unwrap_err();
    assert_eq!(e.line, 8);
    assert!(
        from_text("t.txt", &TEXT.replace("HDD: Noop", "HDD: CFQ"))
            .unwrap_err()
            .message
            .contains("twice")
    );
    assert!(from_text("t.txt", "nothing here").is_err());
}

const S: &str = "Results with bfq\n\
    Latency statistics: [sec]\n min max avg std_dev conf99%\n 1.2 2.4 1.8 0.3 0.4\n\
    Aggregated throughput: [MB/sec]\n min max avg std_dev conf99%\n 80 90 85 2 3\n\
    Read throughput: [MB/sec]\n min max avg std_dev conf99%\n 80 90 85 2 3\n\
    Write throughput: [MB/sec]\n min max avg std_dev conf99%\n 0 1 0.5 0.1 0.2\n";

#[test]
fn s_suite_files() {
    let r = &from_s_suite("x/mq-deadline-10r0w-seq-lat_thr_stat.txt", S, &TrialId::default())
        .unwrap()[0];
    assert_eq!(
        (r.trial.scheduler.as_str(), r.trial.workload.as_str()),
        ("mq-deadline", "10r0w-seq")
    );
    assert_eq!(value(r, "latency"), Some(1.8));
    assert_eq!(value(r, "write throughput max"), Some(1.0));
    assert!(from_s_suite("x.txt", &S.replace("1.2 2.4", "1.2"), &who()).is_err());
    assert!(from_s_suite("x.txt", "", &who()).is_err());
}

#[test]
fn formats_are_recognised() {
    let files = [
        (include_str!("../../tests/data/iozone.txt"), Format::Iozone),
        (include_str!("../../tests/data/pg_test_fsync.txt"), Format::PgTestFsync),
        (include_str!("../../tests/data/fio-steadystate.json"), Format::Fio),
        (TEXT, Format::Text),
        (S, Format::SSuite),
        ("workload,scheduler,metric,unit,value\nw,s,m,u,1\n", Format::Csv),
    ];
    for (text, format) in files {
        assert_eq!(detect(text), Some(format));
        let records = import("folder/name.txt", text, None, &who()).unwrap();
        assert!(records.iter().all(|r| !r.trial.scheduler.is_empty() && r.trial.repetition > 0));
    }
    assert!(import("x", "what is this", None, &who()).unwrap_err().help.contains("--format"));
    assert!(Format::parse("ptss").unwrap_err().contains("did you mean \"pts\""));
}

#[test]
fn own_documents_come_back() {
    let records = published::records("linux-3.12").unwrap();
    let text = serde_json::to_string(&crate::store::Document::of("x", records.clone())).unwrap();
    assert_eq!(import("x.json", &text, None, &TrialId::default()).unwrap().len(), records.len());
    let e = import("x.json", &text[..text.len() / 2], None, &TrialId::default()).unwrap_err();
    assert!(e.message.contains("cut off"));
    let e =
        import("x.json", &text.replace("\"records\"", "\"recrods\""), None, &TrialId::default())
            .unwrap_err();
    assert!(e.message.contains("recrods"), "{e}");
}

#[test]
fn endless_lines_are_not_read() {
    let long = "x".repeat(MAX_LINE + 1);
    for text in [format!("scheduler,{long}"), long.clone()] {
        assert!(from_csv("l", &text).unwrap_err().message.contains("limit"));
        assert!(from_text("l", &text).is_err());
        assert!(from_pg_test_fsync("l", &text, &who()).is_err());
        assert!(from_iozone("l", &text, &who()).is_err());
        assert!(from_s_suite("l", &text, &who()).is_err());
    }
}

proptest! {
    #[test]
    fn no_text_makes_an_importer_panic(which in 0usize..14, at in 0usize..4000, insert in "\\PC{0,12}|[0-9.:|\"{},\n=]{0,12}", cut in 0usize..6000) {
        let seeds = [
            include_str!("../../tests/data/iozone.txt"), include_str!("../../tests/data/iozone_throughput.txt"),
            include_str!("../../tests/data/pg_test_fsync.txt"), include_str!("../../tests/data/fio-steadystate.json"),
            TEXT, S, "workload,scheduler,metric,unit,value\nw,s,m,u,1\n", "{\"format\":\"iosched-results\",\"schema\":1,\"experiments\":[]}",
            include_str!("../../tests/data/imports/fio-normal.txt"), include_str!("../../tests/data/imports/fio-terse5.txt"),
            include_str!("../../tests/data/imports/dbench.txt"), include_str!("../../tests/data/imports/pgbench.txt"),
            include_str!("../../tests/data/imports/sysbench.txt"), include_str!("../../tests/data/imports/bonnie++.txt"),
        ];
        let mut text = seeds[which].to_string();
        text.truncate(cut.min(text.len()));
        text.insert_str(at.min(text.len()), &insert);
        let _ = import("x", &text, None, &who());
        for (_, format) in Format::ALL {
            let _ = import("x", &text, Some(format), &who());
        }
    }
}

#[test]
fn csv_is_safe_in_a_spreadsheet_and_counts_repetitions_from_one() {
    let mut r = Record { schema: 1, ..Record::default() };
    r.trial.scheduler = "=cmd|' /C calc'!A0".into();
    (r.trial.workload, r.trial.device, r.trial.repetition) = ("-w".into(), "'d".into(), 1);
    r.metrics.push(Metric {
        name: "@m".into(),
        value: -1.5,
        unit: "s".into(),
        higher_is_better: Some(false),
        ..Metric::default()
    });
    // Of checkpoints neither more nor less is better.
    r.metrics.push(Metric { name: "checkpoints".into(), value: 3.0, ..Metric::default() });
    let text = to_csv(std::slice::from_ref(&r));
    assert!(text.contains("'=cmd") && text.contains("'-w") && text.contains("'@m"), "{text}");
    let back = from_csv("x.csv", &text).unwrap();
    assert_eq!((&back[0].trial, &back[0].metrics), (&r.trial, &r.metrics));
    let zero = "scheduler,workload,repetition,metric,unit,value\nbfq,w,0,m,s,1\n";
    let why = from_csv("x.csv", zero).unwrap_err().to_string();
    assert!(why.contains("x.csv:2") && why.contains("no repetition"), "{why}");
    // Lines that end as on Windows, and empty ones.
    for text in [zero.replace('\n', "\r\n"), zero.replace("\nbfq", "\n\nbfq")] {
        let why = from_csv("x.csv", &text).unwrap_err().to_string();
        let line = if text.contains('\r') { "x.csv:2" } else { "x.csv:3" };
        assert!(why.contains(line) && why.contains("bfq,w,0"), "{why}");
    }
}

#[test]
fn a_file_that_is_not_there_is_said_in_words() {
    let e = super::files::read_file(std::path::Path::new("/nowhere/nope.json")).unwrap_err();
    let e = e.to_string();
    assert!(e.contains("there is no such file") && !e.contains("os error"), "{e}");
}
