//! Result files of the BFQ author's S suite: `bfq-10r0w-seq-lat_thr_stat.txt`.
//!
//! A title line, then blocks: a line that names the figure and its unit, a line of column names (min, max, avg,
//! std_dev, conf99%), a line of values. A start-up that exceeded the time limit wrote no file at all, so only a
//! directory shows it (see [`super::fio_plot`] for directories).

use iosched_experiment::record::{Metric, Record, TrialId};
use iosched_types::Diagnostic;

use super::iozone::fresh;
use super::numbers::Commas;
use super::{at, lines};

/// Scheduler and workload of a file name: `bfq-10r0w-seq-lat_thr_stat.txt` to (`bfq`, `10r0w-seq`).
fn from_name(file: &str) -> Option<(&str, &str)> {
    let name = file.rsplit(['/', '\\']).next()?;
    let stem = name.strip_suffix(".txt")?;
    let stem = stem.strip_suffix("_stat").and_then(|s| s.rsplit_once('-')).map_or(stem, |s| s.0);
    // Scheduler names may hold a hyphen (mq-deadline); the workload starts at "<n>r".
    let at = stem.match_indices('-').find(|(i, _)| {
        let rest = &stem[i + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        rest.starts_with("raw") || (digits > 0 && rest[digits..].starts_with('r'))
    })?;
    Some((&stem[..at.0], &stem[at.0 + 1..]))
}

/// What a block's heading measures.
fn block(line: &str) -> Option<(&'static str, &'static str, bool)> {
    let l = line.to_lowercase();
    let unit = |l: &str| if l.contains("kb/s") { "KB/s" } else { "MB/s" };
    if l.contains("latency") || l.contains("start-up time") || l.contains("startup time") {
        return Some((
            "latency",
            if l.contains("[ms]") || l.contains("(ms)") { "ms" } else { "s" },
            false,
        ));
    }
    if !l.contains("throughput") {
        return None;
    }
    let name = if l.contains("read") {
        "read throughput"
    } else if l.contains("write") {
        "write throughput"
    } else {
        "aggregated throughput"
    };
    Some((name, unit(&l), true))
}

/// Reads one S result file.
///
/// # Errors
/// A diagnostic when no block is found, or a value is no number, or a block has fewer values than columns.
pub fn from_s_suite(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let commas = Commas::of(text);
    let mut record = fresh(trial, None);
    if let Some((scheduler, workload)) = from_name(file) {
        if record.trial.scheduler.is_empty() {
            record.trial.scheduler = scheduler.into();
        }
        if record.trial.workload.is_empty() {
            record.trial.workload = workload.into();
        }
    }
    record.provenance.insert("tool".into(), "S suite".into());
    let mut current: Option<(&str, &str, bool)> = None;
    let mut columns: Vec<String> = Vec::new();
    for line in lines(file, text) {
        let (n, line) = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let values = words
            .first()
            .is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.'));
        if words.first() == Some(&"min") || words.contains(&"avg") {
            columns = words.iter().map(|w| (*w).to_string()).collect();
        } else if let (true, Some((name, unit, higher)), false) =
            (values, current, columns.is_empty())
        {
            if words.len() != columns.len() {
                return Err(at(
                    file,
                    n,
                    line,
                    "",
                    format!("{} values for {} columns", words.len(), columns.len()),
                ));
            }
            for (column, word) in columns.iter().zip(&words) {
                // A deviation or an interval is always better small.
                let higher = higher && !column.starts_with("std") && !column.starts_with("conf");
                let value = commas.number((file, n, line), word)?;
                let name =
                    if column == "avg" { name.to_string() } else { format!("{name} {column}") };
                if record.metrics.iter().any(|m| m.name == name) {
                    return Err(at(file, n, line, word, format!("\"{name}\" is given twice")));
                }
                record.metrics.push(Metric {
                    name,
                    value,
                    unit: unit.into(),
                    higher_is_better: Some(higher),
                    censored: false,
                });
            }
            (current, columns) = (None, Vec::new());
        } else if let Some(b) = block(line) {
            current = Some(b);
            columns.clear();
        }
    }
    if record.metrics.is_empty() {
        return Err(Diagnostic::file(
            file,
            "no block of an S result file (a heading with \"latency\" or \"throughput\", columns, values)",
        ));
    }
    Ok(vec![record])
}
