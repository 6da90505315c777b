//! Measures by name: what they say something about, whether they get a chart, and how they are called.

use iosched_experiment::{DURABLE_AFTER, DURABLE_BW};
use iosched_results::measure::of_job;
pub(crate) use iosched_results::measure::{derived, latency_of};
use iosched_results::stats::Better;

use super::view::Class;

pub(crate) fn class(measure: &str, unit: &str, better: Better) -> Class {
    let own = !derived(measure);
    let trims = measure == "trim.iops" || measure.ends_with("/trim.iops");
    if measure.ends_with(".bw") || trims || (own && better == Better::Higher && !unit.is_empty()) {
        Class::Throughput
    } else if latency_of(measure).is_some() || (own && better == Better::Lower) {
        Class::Latency
    } else {
        Class::Other
    }
}

/// A measure in words: `Read latency, p99`.
pub(crate) fn words(measure: &str) -> String {
    let job = of_job(measure);
    if let Some((name, m)) = job.filter(|(_, m)| derived(m)) {
        return format!("{name}: {}", words(m));
    }
    if measure == "fairness.jain" {
        return "Fairness (Jain)".into();
    }
    match measure {
        DURABLE_BW => return "Throughput until all is durable".into(),
        DURABLE_AFTER => return "Time until all is durable".into(),
        _ => {}
    }
    let Some((side, what)) = measure.split_once('.').filter(|_| derived(measure)) else {
        return measure.into();
    };
    let side = match side {
        "read" => "Read",
        "write" => "Write",
        "trim" => "Trim",
        "total" => "Total",
        _ => "fsync",
    };
    match what {
        "bw" => format!("{side} throughput"),
        // They move no data: their number is all there is.
        "iops" if side == "Trim" => "Trims a second".into(),
        "iops" => format!("{side} IOPS"),
        _ => {
            let (kind, figure) = match what.split_once('.') {
                Some(("lat", figure)) => ("latency", figure),
                Some(("clat", figure)) => ("completion latency", figure),
                _ => return measure.into(),
            };
            let figure = if figure == "p50" { "median" } else { figure };
            format!("{side} {kind}, {figure}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_in_words() {
        assert_eq!(words("total.bw"), "Total throughput");
        assert_eq!(words("read.lat.p99.9"), "Read latency, p99.9");
        assert_eq!(words("read.clat.p50"), "Read completion latency, median");
        assert_eq!(words("job/victim/write.bw"), "victim: Write throughput");
        assert_eq!(words("trim.iops"), "Trims a second");
        assert_eq!(words("startup_time"), "startup_time");
        assert_eq!(words("job/oddly/named"), "job/oddly/named");
        assert_eq!(words("sync.lat.mean"), "fsync latency, mean");
    }

    #[test]
    fn classes() {
        assert_eq!(class("read.bw", "B/s", Better::Higher), Class::Throughput);
        assert_eq!(class("trim.iops", "1/s", Better::Higher), Class::Throughput);
        assert_eq!(class("read.iops", "1/s", Better::Higher), Class::Other);
        assert_eq!(class("result", "MB/s", Better::Higher), Class::Throughput);
        assert_eq!(class("startup_time", "s", Better::Lower), Class::Latency);
        assert_eq!(class("fairness.jain", "", Better::Higher), Class::Other);
    }
}
