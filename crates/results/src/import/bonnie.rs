//! bonnie++: its lines of CSV (1.03 to 2.00), else its table.

use iosched_experiment::record::{IMPORT, Metric, Record, TrialId, Warning};
use iosched_types::Diagnostic;

use super::iozone::{fresh, number_repetitions, scheduler_mark};
use super::lines;
use super::numbers::Commas;

/// Tests in the order of the output: name and unit. Each has a rate and a share of CPU.
const TESTS: [(&str, &str); 6] = [
    ("sequential output per character", "KiB/s"),
    ("sequential output by block", "KiB/s"),
    ("rewrite", "KiB/s"),
    ("sequential input per character", "KiB/s"),
    ("sequential input by block", "KiB/s"),
    ("random seeks", "1/s"),
];
const FILES: [&str; 6] = [
    "sequential create",
    "sequential stat",
    "sequential delete",
    "random create",
    "random stat",
    "random delete",
];

/// How a line of CSV is laid out: where the rates begin, where those of files begin, and where latencies do.
struct Layout {
    rates: usize,
    files: usize,
    latencies: Option<usize>,
}

/// The layout of a line of CSV.
fn layout(fields: &[&str]) -> Option<Layout> {
    let version = |f: &str| f.starts_with("1.9") && f.len() == 4;
    match fields {
        // 1.98 has the number of seeks and of their processes before the rates.
        [first, ..] if version(first) && fields.len() >= 40 => {
            let more = if *first >= "1.98" { 2 } else { 0 };
            Some(Layout { rates: 7 + more, files: 24 + more, latencies: Some(36 + more) })
        }
        // 1.03: host,300M,…
        [_, size, ..] if fields.len() == 27 && size.starts_with(|c: char| c.is_ascii_digit()) => {
            Some(Layout { rates: 2, files: 15, latencies: None })
        }
        _ => None,
    }
}

/// Whether a text is bonnie++'s.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|l| l.contains("Sequential Output") && l.contains("Sequential Input"))
        || text.lines().filter(|l| !l.starts_with('#')).any(|l| {
            let fields: Vec<&str> = l.trim().split(',').collect();
            fields.len() >= 27 && layout(&fields).is_some() && !fields.contains(&"scheduler")
        })
}

/// Reads bonnie++'s output; each line of CSV is a run. What was too fast to be measured (`+++++`) has no figure.
///
/// # Errors
/// A diagnostic when there is no result, or a value is no number.
pub fn from_bonnie(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let csv = text.lines().any(|l| layout(&l.trim().split(',').collect::<Vec<_>>()).is_some());
    // A line of CSV has no commas in its numbers.
    let commas = if csv { Commas::Unknown } else { Commas::of(text) };
    let mut out = Vec::new();
    let mut scheduler: Option<String> = None;
    let (mut heads, mut kind): (Vec<usize>, Option<bool>) = (Vec::new(), None);
    for line in lines(file, text) {
        let (n, line) = line?;
        if let Some(s) = scheduler_mark(line) {
            scheduler = Some(s.to_string());
            continue;
        }
        let fields: Vec<&str> = line.trim().split(',').collect();
        if let Some(layout) = layout(&fields) {
            let mut record = fresh(trial, scheduler.as_deref());
            comma(&mut record, &fields, &layout, (file, n, line, commas))?;
            out.push(record);
        } else if !csv {
            if line.contains("Sequential Output") || line.contains("Sequential Create") {
                let files = line.contains("Create");
                kind = Some(files);
                if !files {
                    out.push(fresh(trial, scheduler.as_deref()));
                }
            } else if line.contains("/sec %CP") {
                heads = line.match_indices("/sec").map(|(i, _)| i + 4).collect();
            } else if let (Some(record), Some(files), false) =
                (out.last_mut(), kind, heads.is_empty())
            {
                table(record, files, &heads, (file, n, line, commas))?;
                heads.clear();
            }
        }
    }
    if out.is_empty() {
        return Err(Diagnostic::file(file, "no line of results: was bonnie++ stopped early?"));
    }
    number_repetitions(&mut out);
    Ok(out)
}

fn put(record: &mut Record, name: &str, value: f64, unit: &str, better: Option<bool>) {
    record.metrics.push(Metric {
        name: name.into(),
        value,
        unit: unit.into(),
        higher_is_better: better,
        censored: false,
    });
}

/// Says of a record that some tests have no figure.
fn not_measured(record: &mut Record, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    let message = format!("{}: too fast to be measured (+++++)", names.join(", "));
    let advice = "larger files take longer".into();
    record.warnings.push(Warning { code: IMPORT.into(), message, advice });
}

type Place<'a> = (&'a str, usize, &'a str, Commas);

/// A number, unless the test was not run or too fast.
fn measured(place: Place<'_>, field: &str) -> Result<Option<f64>, Diagnostic> {
    let field = field.trim();
    if field.is_empty() || field.starts_with('+') {
        return Ok(None);
    }
    place.3.number((place.0, place.1, place.2), field).map(Some)
}

fn comma(
    record: &mut Record,
    fields: &[&str],
    layout: &Layout,
    place: Place<'_>,
) -> Result<(), Diagnostic> {
    let field = |i: usize| fields.get(i).copied().unwrap_or_default();
    let tool = if layout.latencies.is_some() { field(1) } else { "1.03" };
    record.provenance.insert("tool".into(), format!("bonnie++ {tool}"));
    let tests = TESTS.iter().enumerate().map(|(i, t)| (layout.rates + 2 * i, t.0, t.1));
    let files = FILES.iter().enumerate().map(|(i, t)| (layout.files + 2 * i, *t, "1/s"));
    let mut fast = Vec::new();
    for (k, (i, name, unit)) in tests.chain(files).enumerate() {
        fast.extend(Some(name).filter(|_| field(i).trim().starts_with('+')));
        if let Some(value) = measured(place, field(i))? {
            put(record, name, value, unit, Some(true));
            if let Some(cpu) = measured(place, field(i + 1))? {
                put(record, &format!("{name} CPU"), cpu, "CPU%", Some(false));
            }
        }
        let latency = layout.latencies.map_or("", |l| field(l + k));
        let digits = latency.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        if let Some(value) = measured(place, digits)? {
            let us = match &latency[digits.len()..] {
                "ms" => 1e3,
                "s" => 1e6,
                _ => 1.0,
            };
            put(record, &format!("{name} max latency"), value * us, "us", Some(false));
        }
    }
    not_measured(record, &fast);
    Ok(())
}

/// A line of the table: each rate ends below its head's.
fn table(
    record: &mut Record,
    files: bool,
    heads: &[usize],
    place: Place<'_>,
) -> Result<(), Diagnostic> {
    let line = place.2;
    let mut fast = Vec::new();
    for (i, end) in heads.iter().enumerate().take(6) {
        let before = line.get(..(*end).min(line.len())).unwrap_or_default();
        // A word that goes on behind the head's end belongs to no column.
        let ended = line.get(*end..).is_none_or(|r| r.is_empty() || r.starts_with(' '));
        let word = if ended { before.rsplit(' ').next().unwrap_or_default() } else { "" };
        let digits = word.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G']);
        let power = match word.get(digits.len()..).map(str::to_ascii_lowercase).as_deref() {
            Some("m") => 1,
            Some("g") => 2,
            _ => 0,
        };
        let (name, unit) = if files { (FILES[i], "1/s") } else { TESTS[i] };
        fast.extend(Some(name).filter(|_| word.starts_with('+')));
        let Some(value) = measured(place, digits)? else { continue };
        // 2.00 shortens rates: 115m is 115 MiB/s. Of seeks and files it shortens thousands.
        let scale = match (unit, power, digits.len() == word.len()) {
            ("KiB/s", p, _) => 1024f64.powi(p),
            (_, _, true) => 1.0,
            (_, p, false) => 1000f64.powi(p + 1),
        };
        put(record, name, value * scale, unit, Some(true));
    }
    not_measured(record, &fast);
    Ok(())
}
