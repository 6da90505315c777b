//! Fills a results file with very many trials, for measuring reports and the server:
//! `cargo run -p iosched-results --example many_trials -- FILE [DEVICES SCHEDULERS WORKLOADS REPETITIONS]`
//! (10 × 10 × 100 × 10 = 100,000 when nothing is said).

use std::error::Error;
use std::path::Path;

use iosched_experiment::record::{
    BackendKind, DirStats, JobRecord, Record, SCHEMA, Series, TrialId,
};
use iosched_results::store::Store;

/// Trials written in one transaction.
const BATCH: usize = 1000;

/// The trial of a number; latencies depend on all of its coordinates, so that there is something to find.
fn record(i: u64, [devices, schedulers, workloads, _]: [u64; 4]) -> Record {
    let (d, s) = (i % devices, i / devices % schedulers);
    let w = i / (devices * schedulers) % workloads;
    let repetition = i / (devices * schedulers * workloads) + 1;
    let noise = i.wrapping_mul(6_364_136_223_846_793_005) >> 40 & 0xfff;
    let mut read = DirStats {
        ios: 20_000 / (s + 4),
        bytes: (20_000 / (s + 4)) << 12,
        runtime: 1_000_000_000 + noise * 10_000,
        ..DirStats::default()
    };
    (0..200).for_each(|k| read.clat.record(50_000 + k * k * (s + w % 7 + 1) + noise * 8));
    read.lat_hist.clone_from(&read.clat);
    let trial = TrialId {
        experiment: "many".into(),
        device: format!("disk {d}"),
        scheduler: format!("scheduler-{s}"),
        kernel: "6.12".into(),
        workload: format!("workload {w}"),
        repetition: u32::try_from(repetition).unwrap_or(u32::MAX),
        seed: i,
    };
    let provenance = (0..20).map(|k| (format!("key{k}"), format!("value{d}"))).collect();
    let values = (0..64).map(|k| 1e6 * f64::from(k % 8 + 1)).collect();
    let throughput =
        Series { name: "throughput".into(), unit: "B/s".into(), step: 20_000_000, values };
    let job = JobRecord { name: "reader".into(), read, ..JobRecord::default() };
    Record {
        schema: SCHEMA,
        trial,
        backend: BackendKind::Real,
        provenance,
        jobs: vec![job],
        series: vec![throughput],
        elapsed: 1_000_000_000,
        ..Record::default()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let usage = "FILE [DEVICES SCHEDULERS WORKLOADS REPETITIONS]";
    let (file, sizes) = words.split_first().ok_or(usage)?;
    let sizes: Vec<u64> = sizes.iter().map(|w| w.parse()).collect::<Result<_, _>>()?;
    let shape = match sizes[..] {
        [] => [10, 10, 100, 10],
        [d, s, w, r] if d * s * w * r > 0 => [d, s, w, r],
        _ => return Err(usage.into()),
    };
    let mut store = Store::open(Path::new(file))?;
    let experiment = store.begin("many", "", "run")?;
    let numbers: Vec<u64> = (0..shape.iter().product()).collect();
    for batch in numbers.chunks(BATCH) {
        let records: Vec<Record> = batch.iter().map(|i| record(*i, shape)).collect();
        store.put_all(experiment, records.iter().map(|r| (r, "")))?;
    }
    Ok(())
}
