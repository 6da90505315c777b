//! iozone's output: the table of the automatic mode, and throughput mode (`-t`).

use iosched_experiment::record::{BackendKind, Metric, Record, SCHEMA, Status, TrialId};
use iosched_types::Diagnostic;

use super::numbers::Commas;
use super::{at, lines};

/// Columns of the automatic mode by the words of their heads: the line above (may be empty), and the line with `reclen`.
const COLUMNS: [(&str, &str, &str); 15] = [
    ("", "write", "write"),
    ("", "rewrite", "rewrite"),
    ("", "read", "read"),
    ("", "reread", "reread"),
    ("random", "read", "random read"),
    ("random", "write", "random write"),
    ("bkwd", "read", "backward read"),
    ("record", "rewrite", "record rewrite"),
    ("stride", "read", "stride read"),
    ("", "fwrite", "fwrite"),
    ("", "frewrite", "frewrite"),
    ("", "fread", "fread"),
    ("", "freread", "freread"),
    ("", "pread", "pread"),
    ("", "pwrite", "pwrite"),
];

/// A column: its name, and where its head ends, in characters.
type Column = (String, usize);

/// The words of a line with the places where they end, in columns of a terminal.
fn words(line: &str) -> Vec<(&str, usize)> {
    let mut out = Vec::new();
    let mut rest = line;
    let mut at = 0;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        let blank: usize =
            rest[..start].chars().map(|c| if c == '\t' { 8 - at % 8 } else { 1 }).sum();
        let word = rest[start..].split(char::is_whitespace).next().unwrap_or_default();
        at += blank + word.chars().count();
        out.push((word, at));
        rest = &rest[start + word.len()..];
    }
    out
}

/// The columns of the table: by the line with `reclen` and the one above it, whose words stand over those that they belong
/// to. Older versions leave columns out.
fn columns(above: &str, line: &str) -> Vec<Column> {
    let over = words(above);
    let heads = words(line);
    let all = heads.iter().enumerate().skip(2).map(|(i, (word, end))| {
        let from = heads[i - 1].1;
        let next = heads.get(i + 1).map_or(usize::MAX, |(w, e)| e - w.chars().count());
        let over = over
            .iter()
            .find(|(w, e)| *e > from && e - w.chars().count() < next && e.abs_diff(*end) <= 4);
        let over = over.map_or("", |(w, _)| *w);
        let known = COLUMNS.iter().find(|c| c.0 == over && c.1 == *word);
        let name =
            known.map_or_else(|| format!("{over} {word}").trim().to_string(), |c| c.2.into());
        (name, *end)
    });
    all.collect()
}

/// Whether a text is iozone's.
pub(super) fn is_one(text: &str) -> bool {
    text.contains("Iozone: Performance Test")
        || text.contains("Children see throughput for")
        || text
            .lines()
            .any(|l| l.trim_start().starts_with("kB  reclen") || l.contains("KB  reclen"))
}

/// Reads iozone's output. A line `##### scheduler=NAME` (as collecting scripts print it) starts the next
/// scheduler; otherwise `trial.scheduler` holds for all of it.
///
/// # Errors
/// A diagnostic when there is no result, or a value is no number.
pub fn from_iozone(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let commas = Commas::of(text);
    let mut out = vec![fresh(trial, None)];
    let (mut table, mut phase) = (None, None);
    let mut above = "";
    for line in lines(file, text) {
        let (n, line) = line?;
        if let Some(scheduler) = scheduler_mark(line) {
            out.push(fresh(trial, Some(scheduler)));
            (table, phase) = (None, None);
        }
        let Some(record) = out.last_mut() else { break };
        let trimmed = line.trim();
        if let Some(command) = trimmed.strip_prefix("Command line used: ") {
            record.provenance.insert("command".into(), command.into());
        } else if let Some(v) = trimmed.strip_prefix("Version $Revision: ") {
            record
                .provenance
                .insert("tool".into(), format!("iozone {}", v.trim_end_matches(['$', ' '])));
        } else if trimmed.to_ascii_lowercase().starts_with("kb") && trimmed.contains(" reclen ") {
            table = Some(columns(above, line));
        } else if let (Some(columns), true) =
            (&table, trimmed.starts_with(|c: char| c.is_ascii_digit()))
        {
            row(record, columns, commas, (file, n, line))?;
        } else if table.is_some() && trimmed.starts_with("iozone test complete") {
            table = None;
        } else if let Some((name, unit, value, word)) = throughput(trimmed) {
            phase = Some(name.clone());
            push(record, name, commas.number((file, n, line), value)?, unit, true);
            let _ = word;
        } else if let (Some(phase), Some((name, unit, value, better))) = (&phase, detail(trimmed)) {
            push(
                record,
                format!("{phase} {name}"),
                commas.number((file, n, line), value)?,
                unit,
                better,
            );
        }
        above = line;
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

/// One row: size and record length in kB, then the results, each ending below its column's head. Tests that were not run
/// are blank. With as many numbers as columns none is blank.
fn row(
    record: &mut Record,
    columns: &[Column],
    commas: Commas,
    (file, n, line): (&str, usize, &str),
) -> Result<(), Diagnostic> {
    let cells = words(line);
    let ([(size, _), (length, _), results @ ..], false) = (&cells[..], columns.is_empty()) else {
        let message = "a row of the table needs file size, record length and results";
        return Err(at(file, n, line, "", message.into()));
    };
    commas.number((file, n, line), size)?;
    commas.number((file, n, line), length)?;
    let mut last = 0;
    for (i, (cell, end)) in results.iter().enumerate() {
        let value = commas.number((file, n, line), cell)?;
        // Numbers end where their heads do, or up to two characters before or behind.
        let place = match results.len() == columns.len() {
            true => i,
            false => {
                let near =
                    columns.iter().enumerate().skip(last).min_by_key(|(_, c)| c.1.abs_diff(*end));
                near.map_or(usize::MAX, |(i, _)| i)
            }
        };
        let Some((name, _)) = columns.get(place) else {
            return Err(at(file, n, line, cell, "a number below no column".into()));
        };
        last = place + 1;
        push(record, format!("{name} {length}k of {size}k"), value, "kB/s", true);
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
