//! fio's output, both ways.

use iosched_experiment::record::{DirStats, JobRecord, Record, SCHEMA, TrialId};
use proptest::prelude::*;

use super::*;

fn a_job(name: &str, latencies: &[u64]) -> JobRecord {
    let mut d = DirStats { runtime: 2_000_000_000, ..DirStats::default() };
    for l in latencies {
        d.clat.record(*l);
        d.lat.add(*l as f64 + 500.0);
        d.slat.add(500.0);
        d.ios += 1;
        d.bytes += 4096;
    }
    d.bw.add(1000.0);
    JobRecord {
        name: name.into(),
        options: [("rw".to_string(), "randread".to_string()), ("iodepth".into(), "4".into())]
            .into(),
        depths: [0, 0, latencies.len() as u64, 0, 0, 0, 0],
        runtime: d.runtime,
        read: d,
        ..JobRecord::default()
    }
}

fn a_record(jobs: Vec<JobRecord>) -> Record {
    Record { schema: SCHEMA, jobs, elapsed: 2_500_000_000, ..Record::default() }
}

fn value(r: &Record) -> serde_json::Value {
    serde_json::to_value(fio_output(r)).unwrap()
}

#[test]
fn units_are_fios() {
    let v = value(&a_record(vec![a_job("a", &[1_000_000; 300])]));
    let read = &v["jobs"][0]["read"];
    assert_eq!(read["io_bytes"], 1_228_800);
    assert_eq!(read["io_kbytes"], 1200);
    assert_eq!(read["bw_bytes"], 614_400);
    assert_eq!(read["bw"], 600);
    assert_eq!(read["iops"], 150.0);
    assert_eq!(read["runtime"], 2000);
    assert_eq!(read["clat_ns"]["N"], 300);
    assert_eq!(read["clat_ns"]["percentile"]["99.000000"], 1_003_520);
    assert_eq!(v["jobs"][0]["iodepth_level"]["4"], 100.0);
    assert_eq!(v["jobs"][0]["latency_ms"]["2"], 100.0);
    assert_eq!(v["jobs"][0]["elapsed"], 3);
}

/// fio 3.33, `--numjobs=8 --group_reporting --runtime=1`: `job_runtime` 8028, `usr_cpu` 16.89, `read.runtime` 1011.
#[test]
fn a_groups_core_time_is_a_share_of_all_its_processes_time() {
    let mut job = a_job("a", &[1_000_000; 300]);
    job.run_times = 8 * job.runtime;
    job.cpu.user = job.runtime;
    job.cpu.system = 2 * job.runtime;
    let mut r = a_record(vec![job]);
    let v = value(&r);
    let group = &v["jobs"][0];
    assert_eq!(
        (group["job_runtime"].as_u64(), group["read"]["runtime"].as_u64()),
        (Some(16_000), Some(2000))
    );
    assert_eq!((group["usr_cpu"].as_f64(), group["sys_cpu"].as_f64()), (Some(12.5), Some(25.0)));
    let out = FioOutput { iosched: None, ..fio_output(&r) };
    let again = from_fio(&out, TrialId::default()).jobs.remove(0);
    let job = r.jobs.remove(0);
    assert_eq!(
        (again.runtime, again.run_times, again.ended),
        (job.runtime, job.run_times, job.runtime)
    );
    assert_eq!((again.cpu.user, again.cpu.system), (job.cpu.user, job.cpu.system));
}

#[test]
fn percentiles_are_those_a_job_asked_for() {
    let mut job = a_job("a", &[1_000_000; 300]);
    job.options.insert("percentile_list".into(), "50:99.999".into());
    let v = value(&a_record(vec![job]));
    let got = v["jobs"][0]["read"]["clat_ns"]["percentile"].as_object().unwrap();
    assert_eq!(got.keys().collect::<Vec<_>>(), ["50.000000", "99.999000"]);
}

/// A number that was changed in the file counts, whatever the trial beside it says.
#[test]
fn an_edited_document_is_read_as_it_stands() {
    let mut r = a_record(vec![a_job("a", &[5, 6, 7])]);
    r.trial.scheduler = "bfq".into();
    let mut out = fio_output(&r);
    assert_eq!(from_fio(&out, TrialId::default()), r);
    out.jobs[0].read.io_bytes = 4096;
    let again = from_fio(&out, TrialId::default());
    assert_eq!((again.jobs[0].read.bytes, again.trial.scheduler.as_str()), (4096, "bfq"));
    assert_eq!(again.backend, iosched_experiment::BackendKind::Imported);
}

#[test]
fn an_empty_record_has_no_division_by_zero() {
    let text = serde_json::to_string(&FioOutput {
        iosched: None,
        ..fio_output(&a_record(vec![JobRecord::default()]))
    })
    .unwrap();
    assert!(!text.contains("null"), "{text}");
}

/// Every field that the installed fio prints must be printed by us, and no other.
#[test]
fn the_structure_is_that_of_a_real_fio() {
    let real: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/data/fio-3.33-json-plus.json")).unwrap();
    let mut job = a_job("a", &[700, 4_000, 9_000_000]);
    job.write = job.read.clone();
    let mut ours = value(&a_record(vec![job]));
    assert!(ours.as_object_mut().unwrap().remove("iosched").is_some(), "the only addition");
    assert_eq!(shape(&ours), shape(&real));
}

/// Paths of all members, without the keys of bins and of job options, which are data.
fn shape(v: &serde_json::Value) -> std::collections::BTreeSet<String> {
    fn walk(v: &serde_json::Value, path: &str, out: &mut std::collections::BTreeSet<String>) {
        match v {
            serde_json::Value::Object(m)
                if !path.ends_with("bins") && !path.ends_with("options") =>
            {
                m.iter().for_each(|(k, v)| walk(v, &format!("{path}/{k}"), out));
            }
            serde_json::Value::Array(a) => a.iter().for_each(|v| walk(v, path, out)),
            _ => {
                out.insert(path.to_string());
            }
        }
    }
    let mut out = std::collections::BTreeSet::new();
    walk(v, "", &mut out);
    out
}

/// As fio 3.33 prints two `[global]` sections that both set the block size.
#[test]
fn of_an_option_given_twice_the_last_counts() {
    let text = r#"{"fio version":"fio-3.33","global options":{"bs":"4k","direct":"1","bs":"8k"},
        "jobs":[{"jobname":"a","job options":{"rw":"read","iodepth":"2","iodepth":"4"}}]}"#;
    let out: FioOutput = serde_json::from_str(text).unwrap();
    assert_eq!(out.global.get("bs").unwrap(), "8k");
    assert_eq!(out.jobs[0].options.get("iodepth").unwrap(), "4");
    assert_eq!((out.global.0.len(), out.jobs[0].options.0.len()), (2, 2));
}

#[test]
fn a_name_given_twice_is_refused() {
    let text = r#"{"fio version":"fio-3.33","jobs":[{"jobname":"a","read":{"clat_ns":{"N":1,"percentile":{"1.0":1,"1.0":2}}}}]}"#;
    let e = serde_json::from_str::<FioOutput>(text).unwrap_err().to_string();
    assert!(e.contains("given twice"), "{e}");
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        a in proptest::collection::vec(1u64..1 << 33, 1..60),
        b in proptest::collection::vec(1u64..1 << 33, 1..60),
    ) {
        let r = a_record(vec![a_job("a", &a), a_job("b", &b)]);
        // Without the trial beside it, as fio itself prints.
        let text = serde_json::to_string(&FioOutput { iosched: None, ..fio_output(&r) }).unwrap();
        let again = from_fio(&serde_json::from_str(&text).unwrap(), TrialId::default());
        prop_assert_eq!(again.jobs.len(), 2);
        for (x, y) in r.jobs.iter().zip(&again.jobs) {
            prop_assert_eq!((&x.name, x.read.ios, x.read.bytes, x.read.runtime, x.depths, &x.options),
                            (&y.name, y.read.ios, y.read.bytes, y.read.runtime, y.depths, &y.options));
            prop_assert_eq!(x.read.clat.iter().collect::<Vec<_>>(), y.read.clat.iter().collect::<Vec<_>>());
            prop_assert!((x.read.clat.mean() - y.read.clat.mean()).abs() <= 1.0);
        }
    }
}
