//! What dbench, pgbench and sysbench fileio print.
//!
//! Each of them has one line that begins its report, and a line `##### scheduler=NAME` (as collecting scripts print it) starts
//! the next scheduler. A report after another one is the next run.

use iosched_experiment::record::{IMPORT, Metric, Record, TrialId, Warning};
use iosched_types::Diagnostic;

use super::iozone::{fresh, number_repetitions, scheduler_mark};
use super::lines;
use super::numbers::Commas;

/// A line with its place, and what its commas are.
pub(super) type Place<'a> = (&'a str, usize, &'a str, Commas);
/// Takes what a line of a report says into the record.
pub(super) type Take = fn(&mut Record, &mut String, Place<'_>) -> Result<(), Diagnostic>;

/// Reads the reports of a tool. `begins` knows the first line of one.
pub(super) fn reports(
    (file, text, trial): (&str, &str, &TrialId),
    begins: fn(&str) -> bool,
    take: Take,
    lacks: &str,
) -> Result<Vec<Record>, Diagnostic> {
    let mut out = vec![fresh(trial, None)];
    let commas = Commas::of(text);
    let mut section = String::new();
    for line in lines(file, text) {
        let (n, line) = line?;
        let full = out.last().is_some_and(|r| !r.metrics.is_empty());
        if let Some(scheduler) = scheduler_mark(line) {
            out.push(fresh(trial, Some(scheduler)));
            section.clear();
        } else if full && begins(line.trim()) {
            let scheduler = out.last().map(|r| r.trial.scheduler.clone());
            out.push(fresh(trial, scheduler.as_deref()));
            section.clear();
        }
        if let Some(record) = out.last_mut() {
            take(record, &mut section, (file, n, line, commas))?;
        }
    }
    out.retain(|r| !r.metrics.is_empty());
    if out.is_empty() {
        return Err(Diagnostic::file(file, lacks));
    }
    number_repetitions(&mut out);
    Ok(out)
}

/// A figure; the last one of a name counts.
pub(super) fn put(record: &mut Record, name: &str, value: f64, unit: &str, better: Option<bool>) {
    record.metrics.retain(|m| m.name != name);
    let metric = Metric {
        name: name.into(),
        value,
        unit: unit.into(),
        higher_is_better: better,
        censored: false,
    };
    record.metrics.push(metric);
}

/// The number that a text begins with, behind `=` or `:`.
pub(super) fn first((file, n, line, commas): Place<'_>, text: &str) -> Result<f64, Diagnostic> {
    commas.first((file, n, line), text)
}

/// Whether a text is dbench's.
pub(super) fn is_dbench(text: &str) -> bool {
    text.lines().any(|l| l.starts_with("Throughput ") && l.contains("MB/sec"))
        || text.lines().any(|l| l.starts_with("dbench version "))
}

/// Reads dbench 1 to 4: the throughput, the longest latency, and those of each operation.
///
/// # Errors
/// A diagnostic when there is no result, or a value is no number.
pub fn from_dbench(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let lacks = "no line \"Throughput … MB/sec\": was dbench stopped early?";
    reports((file, text, trial), |l| l.starts_with("dbench version "), dbench, lacks)
}

fn dbench(record: &mut Record, section: &mut String, place: Place<'_>) -> Result<(), Diagnostic> {
    let line = place.2.trim();
    if let Some(rest) = line.strip_prefix("dbench version ") {
        let version = rest.split_whitespace().next().unwrap_or_default();
        record.provenance.insert("tool".into(), format!("dbench {version}"));
    } else if line.starts_with("Operation ") && line.contains("AvgLat") {
        *section = "operations".into();
    } else if let Some(rest) = line.strip_prefix("Throughput ") {
        put(record, "throughput", first(place, rest)?, "MB/s", Some(true));
        if let Some((_, latency)) = rest.split_once("max_latency=") {
            put(record, "max latency", first(place, latency)?, "ms", Some(false));
        }
        if let Some(before) = rest.split(" clients").next().filter(|b| b.len() < rest.len()) {
            let clients = before.rsplit(' ').next().unwrap_or_default();
            record.provenance.insert("clients".into(), clients.into());
        }
        section.clear();
    } else if section == "operations"
        && let [name, count, mean, most] = line.split_whitespace().collect::<Vec<_>>()[..]
    {
        put(record, &format!("{name} count"), first(place, count)?, "", None);
        put(record, &format!("{name} mean latency"), first(place, mean)?, "ms", Some(false));
        put(record, &format!("{name} max latency"), first(place, most)?, "ms", Some(false));
    }
    Ok(())
}

/// Whether a text is pgbench's.
pub(super) fn is_pgbench(text: &str) -> bool {
    text.lines().any(|l| l.trim_start().starts_with("tps = "))
}

/// Reads pgbench: transactions a second without the time of connecting, and latencies.
///
/// # Errors
/// A diagnostic when there is no result, or a value is no number.
pub fn from_pgbench(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let begins = |l: &str| l.starts_with("transaction type:") || l.starts_with("pgbench (");
    let lacks = "no line \"tps = …\": was pgbench stopped early?";
    reports((file, text, trial), begins, pgbench, lacks)
}

fn pgbench(record: &mut Record, section: &mut String, place: Place<'_>) -> Result<(), Diagnostic> {
    let line = place.2.trim();
    let after = |key: &str| line.strip_prefix(key).map(|r| r.trim_start_matches([' ', '=', ':']));
    for key in [
        "transaction type",
        "scaling factor",
        "query mode",
        "number of clients",
        "number of threads",
        "duration",
    ] {
        if let Some(value) = after(key) {
            record.provenance.insert(key.into(), value.into());
        }
    }
    if let Some(rest) = line.strip_prefix("pgbench (") {
        record.provenance.insert("tool".into(), format!("pgbench {}", rest.trim_end_matches(')')));
    } else if let Some(tps) = after("tps =") {
        // Before 14 there are two: with and without the time of connecting.
        if !line.contains("including") {
            put(record, "tps", first(place, tps)?, "tps", Some(true));
        } else if !record.metrics.iter().any(|m| m.name == "tps") {
            put(record, "tps with connecting", first(place, tps)?, "tps", Some(true));
        }
    } else if let Some(value) = after("latency average") {
        put(record, "latency average", first(place, value)?, "ms", Some(false));
    } else if let Some(value) = after("latency stddev") {
        put(record, "latency stddev", first(place, value)?, "ms", Some(false));
    } else if let Some(value) = after("initial connection time") {
        put(record, "initial connection time", first(place, value)?, "ms", None);
    } else if let Some(value) = after("number of transactions actually processed") {
        put(record, "transactions", first(place, value)?, "", None);
    } else if let Some(value) = after("number of failed transactions") {
        let failed = first(place, value)?;
        put(record, "failed transactions", failed, "", None);
    } else if let Some((name, value)) = line.split_once(" = ")
        && value.trim_end().ends_with(" ms")
    {
        foreign(record, name, first(place, value)?);
    } else if line.starts_with("statement latencies") && section.is_empty() {
        section.push_str("statements");
        record.warnings.push(Warning {
            code: IMPORT.into(),
            message: "latencies of single statements are not used".into(),
            advice: String::new(),
        });
    }
    Ok(())
}

/// A time under the words of another language: the first one is the average, others keep their names.
fn foreign(record: &mut Record, name: &str, ms: f64) {
    let known = record.metrics.iter().any(|m| m.name == "latency average");
    match known {
        false => put(record, "latency average", ms, "ms", Some(false)),
        true => put(record, name, ms, "ms", None),
    }
}

/// The headings of latencies in sysbench 1, 0.5 and 0.4.
const LATENCIES: [&str; 3] = ["Latency (ms)", "response time", "per-request statistics"];

/// Whether a text is sysbench's, of its file test.
pub(super) fn is_sysbench(text: &str) -> bool {
    text.lines().any(|l| {
        l.trim() == "File operations:"
            || l.trim() == "Operations performed:"
            || l.contains("Requests/sec executed")
    }) || text.contains("sysbench ") && text.contains("reads/s:")
}

/// Reads sysbench's file test of 0.4 to 1.1.
///
/// # Errors
/// A diagnostic when there is no result, or a value is no number.
pub fn from_sysbench(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let lacks = "no file operations: only sysbench fileio has them";
    reports((file, text, trial), |l| l.starts_with("sysbench "), sysbench, lacks)
}

fn sysbench(record: &mut Record, section: &mut String, place: Place<'_>) -> Result<(), Diagnostic> {
    let line = place.2.trim();
    let percentile = |key: &str| {
        key.rsplit_once("percentile").map(|_| {
            // `99th`, of 0.4 `approx.  95`.
            let of = |c: &char| c.is_ascii_digit() || *c == '.';
            let digits: String = key.chars().filter(of).collect();
            format!("latency p{}", digits.trim_matches('.'))
        })
    };
    if let Some(rest) = line.strip_prefix("sysbench ") {
        let version = rest.split([':', ' ']).next().unwrap_or_default();
        record.provenance.insert("tool".into(), format!("sysbench {version}"));
    } else if let Some(rate) = line.strip_suffix("Requests/sec executed") {
        put(record, "requests", first(place, rate)?, "1/s", Some(true));
    } else if line.starts_with("Read ") && line.contains("Total transferred") {
        // 0.4: (15.6Mb/sec), of 1024 * 1024 bytes.
        if let Some((_, rate)) = line.rsplit_once('(') {
            put(record, "throughput", first(place, rate)?, "MiB/s", Some(true));
        }
    } else if let Some((key, value)) = line.split_once(':') {
        let value = value.trim();
        match (section.as_str(), key) {
            _ if value.is_empty() => *section = key.to_string(),
            (_, "reads/s" | "writes/s" | "fsyncs/s") => {
                let name = key.trim_end_matches("/s");
                put(record, name, first(place, value)?, "1/s", Some(true));
            }
            (_, "read, MiB/s" | "written, MiB/s") => {
                let name = if key.starts_with("read") { "read" } else { "written" };
                put(record, name, first(place, value)?, "MiB/s", Some(true));
            }
            // 1.1: read:  IOPS=10084.61 157.57 MiB/s (165.22 MB/s)
            (_, "read" | "write" | "fsync") if value.starts_with("IOPS=") => {
                let (iops, rest) = value.split_once(' ').unwrap_or((value, ""));
                let name = if key == "fsync" { "fsyncs".into() } else { format!("{key}s") };
                put(record, &name, first(place, &iops[5..])?, "1/s", Some(true));
                if rest.contains("MiB/s") {
                    let name = if key == "read" { "read" } else { "written" };
                    put(record, name, first(place, rest)?, "MiB/s", Some(true));
                }
            }
            (section, "min" | "avg" | "max") if LATENCIES.contains(&section) => {
                let name = format!("latency {key}");
                put(record, &name, milliseconds(place, value)?, "ms", Some(false));
            }
            (section, key) if LATENCIES.contains(&section) => {
                if let Some(name) = percentile(key) {
                    put(record, &name, milliseconds(place, value)?, "ms", Some(false));
                }
            }
            (_, "total time" | "total number of events" | "Number of threads") => {
                record.provenance.insert(key.into(), value.into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// `0.20`, of 0.4 `0.0002s` and `0.20ms`: milliseconds.
fn milliseconds(place: Place<'_>, value: &str) -> Result<f64, Diagnostic> {
    let n = first(place, value)?;
    Ok(if value.ends_with('s') && !value.ends_with("ms") { n * 1000.0 } else { n })
}
