//! iozone's output: the table of the automatic mode, and throughput mode (`-t`).

use iosched_experiment::record::{BackendKind, Metric, Record, SCHEMA, Status, TrialId};
use iosched_types::Diagnostic;

use super::{at, lines, number};

/// Columns of the automatic mode, in their order.
const COLUMNS: [&str; 13] = [
    "write",
    "rewrite",
    "read",
    "reread",
    "random read",
    "random write",
    "backward read",
    "record rewrite",
    "stride read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
];
/// Width of the columns: kB and reclen first, then thirteen results (`%16s%8s%9s…`).
const FIRST: usize = 24;
const WIDTHS: [usize; 13] = [9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];

/// Reads iozone's output. A line `##### scheduler=NAME` (as collecting scripts print it) starts the next
/// scheduler; otherwise `trial.scheduler` holds for all of it.
///
/// # Errors
/// A diagnostic when there is no result, or a value is no number.
pub fn from_iozone(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let mut out = vec![fresh(trial, None)];
    let (mut table, mut phase) = (false, None);
    for line in lines(file, text) {
        let (n, line) = line?;
        if let Some(scheduler) = scheduler_mark(line) {
            out.push(fresh(trial, Some(scheduler)));
            (table, phase) = (false, None);
        }
        let Some(record) = out.last_mut() else { break };
        let trimmed = line.trim();
        if let Some(command) = trimmed.strip_prefix("Command line used: ") {
            record.provenance.insert("command".into(), command.into());
        } else if let Some(v) = trimmed.strip_prefix("Version $Revision: ") {
            record
                .provenance
                .insert("tool".into(), format!("iozone {}", v.trim_end_matches(['$', ' '])));
        } else if trimmed.starts_with("kB  reclen") || trimmed.starts_with("KB  reclen") {
            table = true;
        } else if table && trimmed.starts_with(|c: char| c.is_ascii_digit()) {
            row(record, file, n, line)?;
        } else if table && trimmed.starts_with("iozone test complete") {
            table = false;
        } else if let Some((name, unit, value, word)) = throughput(trimmed) {
            phase = Some(name.clone());
            push(record, name, number(file, n, line, value)?, unit, true);
            let _ = word;
        } else if let (Some(phase), Some((name, unit, value, better))) = (&phase, detail(trimmed)) {
            push(record, format!("{phase} {name}"), number(file, n, line, value)?, unit, better);
        }
    }
    finish(file, text, out)
}

/// A record per scheduler; those without any figure are dropped unless they were announced.
fn finish(file: &str, text: &str, mut out: Vec<Record>) -> Result<Vec<Record>, Diagnostic> {
    let announced = out.len() > 1;
    let mut i = 0;
    out.retain(|r| {
        i += 1;
        !r.metrics.is_empty() || (announced && i > 1)
    });
    for r in out.iter_mut().filter(|r| r.metrics.is_empty()) {
        r.status = Status::Failed("no result in the output".into());
    }
    if out.iter().all(|r| r.metrics.is_empty()) {
        let first = text.lines().next().unwrap_or_default();
        return Err(at(
            file,
            1,
            first,
            "",
            "no result in this output: was iozone stopped early?".into(),
        ));
    }
    number_repetitions(&mut out);
    Ok(out)
}

/// The same scheduler again is the next repetition.
pub(super) fn number_repetitions(records: &mut [Record]) {
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    for r in records {
        let n = counts.entry(r.trial.scheduler.clone()).or_default();
        *n += 1;
        r.trial.repetition = r.trial.repetition.max(1) + *n - 1;
    }
}

/// `##### scheduler=bfq cmd: …` to `bfq`.
pub(super) fn scheduler_mark(line: &str) -> Option<&str> {
    line.trim_start_matches('#')
        .trim_start()
        .strip_prefix("scheduler=")
        .filter(|_| line.starts_with('#'))?
        .split_whitespace()
        .next()
}

pub(super) fn fresh(trial: &TrialId, scheduler: Option<&str>) -> Record {
    let mut trial = trial.clone();
    if let Some(s) = scheduler {
        trial.scheduler = s.into();
    }
    Record { schema: SCHEMA, trial, backend: BackendKind::Imported, ..Record::default() }
}

fn push(record: &mut Record, name: String, value: f64, unit: &str, higher_is_better: bool) {
    let mut unique = name.clone();
    let mut k = 2;
    while record.metrics.iter().any(|m| m.name == unique) {
        unique = format!("{name} ({k})");
        k += 1;
    }
    record.metrics.push(Metric {
        name: unique,
        value,
        unit: unit.into(),
        higher_is_better: Some(higher_is_better),
        censored: false,
    });
}

/// One row: size and record length in kB, then the columns by position, since tests that were not run are blank.
fn row(record: &mut Record, file: &str, n: usize, line: &str) -> Result<(), Diagnostic> {
    let head = line.get(..FIRST).unwrap_or(line);
    let mut words = head.split_whitespace();
    let (Some(size), Some(length), None) = (words.next(), words.next(), words.next()) else {
        return Err(at(
            file,
            n,
            line,
            "",
            "a row of the table needs file size, record length and results".into(),
        ));
    };
    number(file, n, line, size)?;
    number(file, n, line, length)?;
    let mut from = FIRST;
    for (name, width) in COLUMNS.iter().zip(WIDTHS) {
        let cell = line.get(from..(from + width).min(line.len())).unwrap_or("").trim();
        from += width;
        if !cell.is_empty() {
            let value = number(file, n, line, cell)?;
            push(record, format!("{name} {length}k of {size}k"), value, "kB/s", true);
        }
    }
    Ok(())
}

/// `Children see throughput for  2 initial writers = 565567.69 kB/sec`: the phase and its value.
fn throughput(line: &str) -> Option<(String, &'static str, &str, &str)> {
    let rest = line.strip_prefix("Children see throughput for")?;
    let (what, value) = rest.split_once('=')?;
    let value = value.split_whitespace().next()?;
    let what = what.trim();
    let what = what.split_once(' ').map_or(what, |(_, w)| w.trim());
    Some((format!("{what} throughput"), "kB/s", value, what))
}

/// The lines below it that compare the children: `Min throughput per process = …`, CPU utilisation.
fn detail(line: &str) -> Option<(&'static str, &'static str, &str, bool)> {
    if line.starts_with("CPU ") {
        let value = line.rsplit_once("CPU utilization")?.1.trim().strip_suffix('%')?.trim();
        return Some(("CPU utilisation", "CPU%", value, false));
    }
    let (what, value) = line.split_once('=')?;
    let value = value.split_whitespace().next()?;
    match what.trim() {
        "Min throughput per process" => Some(("of the slowest process", "kB/s", value, true)),
        "Max throughput per process" => Some(("of the fastest process", "kB/s", value, true)),
        _ => None,
    }
}
