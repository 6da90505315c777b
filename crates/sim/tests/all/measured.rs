//! The simulator beside fio's figures of a real machine (`data/measured`).
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads the files it checks"
)]

use std::path::Path;

use iosched_sim::simulate;
use iosched_sim::validate::{Measured, Row, beside};

fn rows() -> Vec<Row> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/measured/samsung-980-pro.json");
    let measured = Measured::parse("m.json", &std::fs::read_to_string(file).unwrap()).unwrap();
    let cases = measured.plan().unwrap();
    cases.iter().flat_map(|c| beside(c, &simulate(c.trial.as_ref().unwrap()).unwrap())).collect()
}

#[test]
fn a_real_drive_under_every_scheduler() {
    let rows = rows();
    for (metric, median, worst) in [
        ("iops", 0.05, 0.15),
        ("lat_mean", 0.05, 0.20),
        ("lat_p50", 0.05, 0.23),
        ("lat_p99", 0.05, 0.35),
    ] {
        let mut errors: Vec<f64> =
            rows.iter().filter(|r| r.metric == metric).map(|r| r.error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        assert_eq!(errors.len(), 63, "{metric}");
        let found = (errors[31], errors[62]);
        assert!(found.0 <= median && found.1 <= worst, "{metric}: {found:?}");
    }
    // At depth 1 a scheduler shows, in the order of the machine.
    let one = |scheduler: &str| {
        let is = |r: &&Row| {
            r.metric == "iops"
                && r.scheduler == scheduler
                && r.job == "one process, one core, depth n (n=1)"
        };
        rows.iter().find(is).unwrap().ours
    };
    assert!(
        one("none") > one("mq-deadline")
            && one("mq-deadline") > one("kyber")
            && one("kyber") > one("bfq")
    );
}
