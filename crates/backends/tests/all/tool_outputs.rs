//! The parsers on what tools really printed.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "tests of what touches the machine"
)]

use iosched_backends::parse::{diskstats, trace};
use iosched_experiment::fio_json;

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn fio_json_plus_reads_back_as_fio_printed_it() {
    for (file, ios) in [("fio_randread_none.json", None), ("fio_randrw_bfq.json", Some(164_496))] {
        let run = fio_json::parse(&fixture(file)).unwrap();
        assert_eq!(run.version, "fio-3.33");
        let raw: serde_json::Value = serde_json::from_str(&fixture(file)).unwrap();
        for (dir, stats) in [("read", &run.jobs[0].read), ("write", &run.jobs[0].write)] {
            let raw = &raw["jobs"][0][dir];
            assert_eq!(stats.ios, raw["total_ios"].as_u64().unwrap());
            if let Some(percentiles) = raw["clat_ns"]["percentile"].as_object() {
                for (p, v) in percentiles {
                    let got = stats.clat.percentile(p.parse().unwrap());
                    assert_eq!(got, v.as_u64().unwrap(), "{file} {dir} p{p}");
                }
                let mean = raw["clat_ns"]["mean"].as_f64().unwrap();
                assert!((stats.clat.mean() - mean).abs() < 1.0);
                let dev = raw["clat_ns"]["stddev"].as_f64().unwrap();
                assert!((stats.clat.stddev() / dev - 1.0).abs() < 1e-6);
            }
        }
        if let Some(ios) = ios {
            assert_eq!(run.jobs[0].write.ios, ios);
        }
    }
}

#[test]
fn fio_output_with_terse_in_front_is_found() {
    let run = fio_json::parse(&fixture("fio_terse_json.txt")).unwrap();
    assert_eq!(run.jobs[0].name, "hl");
    assert_eq!(run.jobs[0].read.ios, 147_529);
    assert_eq!(run.disks[0].name, "loop3");
}

#[test]
fn a_trace_pipe_is_read_to_the_last_line() {
    let text = fixture("trace_pipe_block.txt");
    let lines: Vec<_> = text.lines().filter_map(trace::parse_line).collect();
    assert_eq!(lines.len(), text.lines().filter(|l| l.contains(": block_")).count());
    let count = |e| lines.iter().filter(|l| l.event == e).count();
    assert_eq!(
        (count(trace::Event::Queue), count(trace::Event::Issue), count(trace::Event::Complete)),
        (172, 171, 157)
    );
    assert!(lines.iter().all(|l| l.dev.to_string() == "7:3"));
}

#[test]
fn a_diskstats_line_is_read() {
    let stats = diskstats::find(&fixture("diskstats.txt"), "loop3").unwrap();
    assert_eq!((stats.ios[0], stats.flushes), (13_380_003, 173_851));
}
