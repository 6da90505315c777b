//! A real consumer reads our fio JSON: fio-plot (PyPI) draws charts from it, and from what we import
//! and export again. Skipped, aloud, where it is not installed.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test works on files of its own"
)]

use std::path::Path;
use std::process::Command;

use iosched_experiment::record::{DirStats, JobRecord, Record, SCHEMA};
use iosched_results::fio::fio_output;

fn record(depth: u64) -> Record {
    let mut read = DirStats { runtime: 10_000_000_000, ..DirStats::default() };
    for i in 0..2_000 * depth {
        read.clat.record(100_000 * depth + i * 17 % 50_000);
        read.lat.add((101_000 * depth) as f64);
        read.ios += 1;
        read.bytes += 4096;
    }
    (0..20).for_each(|_| {
        read.bw.add(800.0 * depth as f64);
        read.iops.add(200.0 * depth as f64);
    });
    let options = [
        ("rw", "randread".to_string()),
        ("bs", "4k".into()),
        ("iodepth", depth.to_string()),
        ("numjobs", "1".into()),
    ];
    let job = JobRecord {
        name: "randread".into(),
        options: options.into_iter().map(|(k, v)| (k.to_string(), v)).collect(),
        runtime: read.runtime,
        read,
        ..JobRecord::default()
    };
    Record { schema: SCHEMA, jobs: vec![job], elapsed: 10_000_000_000, ..Record::default() }
}

fn plot(folder: &Path, kind: &[&str]) {
    let png = folder.join("chart.png");
    let _ = std::fs::remove_file(&png);
    let out = Command::new("fio-plot")
        .args(["-T", "iosched", "-r", "randread", "-i"])
        .arg(folder)
        .arg("-o")
        .arg(&png)
        .args(kind)
        .env("MPLBACKEND", "Agg")
        .output()
        .unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let size = std::fs::metadata(&png).map_or(0, |m| m.len());
    assert!(out.status.success() && size > 10_000, "{kind:?}: {size} bytes\n{text}");
}

#[test]
fn fio_plot_draws_our_json() {
    if Command::new("fio-plot").arg("-h").output().is_err() {
        println!("SKIPPED: fio-plot is not installed (pip install fio-plot)");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for depth in [1, 2, 4, 8] {
        let text = serde_json::to_string_pretty(&fio_output(&record(depth))).unwrap();
        std::fs::write(dir.path().join(format!("randread-{depth}-1.json")), text).unwrap();
    }
    plot(dir.path(), &["-l", "-n", "1", "-d", "1", "2", "4", "8"]);
    plot(dir.path(), &["-H", "-n", "1", "-d", "4"]);
    plot(dir.path(), &["-L", "-t", "iops", "-n", "1", "-d", "1", "2", "4", "8"]);
}
