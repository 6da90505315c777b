//! The plain-text export of a public result page: `Name ..... value |====`.
//!
//! ```text
//! SQLite 3.8.10.2
//! Test Target: Default Test Directory
//! Seconds < Lower Is Better
//! HDD: CFQ .. 341.70 |=======
//! HDD: Noop . 338.04 |=======
//! ```

use iosched_types::Diagnostic;

use super::numbers::Commas;
use super::{at, lines};
use crate::model::{Cell, Comparison, Run, Test};
use crate::stats::Better;

/// `HDD: CFQ .. 341.70 |=====` to name and value.
fn bar(line: &str) -> Option<(&str, &str)> {
    let (left, bar) = line.rsplit_once('|')?;
    if !bar.trim_end().chars().all(|c| c == '=' || c == '-' || c == ' ') {
        return None;
    }
    let (name, value) = left.trim_end().rsplit_once(' ')?;
    let name = name.trim_end();
    let bare = name.trim_end_matches('.');
    (bare.len() < name.len() && bare.ends_with(' ')).then(|| (bare.trim(), value))
}

/// `MB/s > Higher Is Better` to unit and direction.
fn unit(line: &str) -> Option<(&str, Better)> {
    let lower = line.trim_end().strip_suffix("Lower Is Better").map(|u| (u, Better::Lower));
    let (unit, better) = lower
        .or_else(|| Some((line.trim_end().strip_suffix("Higher Is Better")?, Better::Higher)))?;
    let unit = unit.trim().trim_end_matches(['<', '>']).trim();
    (!unit.is_empty()).then_some((unit, better))
}

/// Reads such a text. Runs that a test does not list are missing there, and stay visible as such.
///
/// # Errors
/// A diagnostic: no test, a value that is no number, a run listed twice in a test.
pub fn from_text(file: &str, text: &str) -> Result<Comparison, Diagnostic> {
    let mut out = Comparison::default();
    let commas = Commas::of(text);
    // The lines of the paragraph so far: title, options.
    let mut heading: Vec<&str> = Vec::new();
    for line in lines(file, text) {
        let (n, line) = line?;
        if line.trim().is_empty() {
            heading.clear();
        } else if let Some((name, value)) = bar(line) {
            let value = commas.number((file, n, line), value)?;
            let Some(test) = out.tests.last_mut() else {
                return Err(at(
                    file,
                    n,
                    line,
                    name,
                    "a result without a test: no line \"… Higher Is Better\" before it".into(),
                ));
            };
            if test.cell(name).is_some() {
                return Err(at(file, n, line, name, format!("\"{name}\" is listed twice")));
            }
            test.cells.push(Cell { run: name.into(), value: Some(value), ..Cell::default() });
            if !out.runs.iter().any(|r| r.name == name) {
                out.runs.push(run(name));
            }
        } else if let Some((unit, better)) = unit(line) {
            out.tests.push(test(&heading, unit, better));
            heading.clear();
        } else {
            if out.title.is_empty() && out.tests.is_empty() {
                out.title = line.trim().to_string();
            }
            heading.push(line.trim());
        }
    }
    out.tests.retain(|t| !t.cells.is_empty());
    if out.tests.is_empty() {
        return Err(Diagnostic::file(file, "no result of the form \"Name ..... value |====\""));
    }
    let runs: Vec<String> = out.runs.iter().map(|r| r.name.clone()).collect();
    for t in &mut out.tests {
        for run in &runs {
            if t.cell(run).is_none() {
                let missing = Some("not in the source".to_string());
                t.cells.push(Cell { run: run.clone(), missing, ..Cell::default() });
            }
        }
    }
    Ok(out)
}

fn run(name: &str) -> Run {
    let (device, scheduler) = name.split_once(": ").unwrap_or(("", name));
    Run { name: name.into(), device: device.into(), scheduler: scheduler.into(), ..Run::default() }
}

/// Title and version from the first heading line (the version is its last word when that starts with a
/// digit), options from the others.
fn test(heading: &[&str], unit: &str, better: Better) -> Test {
    let first = heading.first().copied().unwrap_or("untitled");
    let (title, version) = match first.rsplit_once(' ') {
        Some((t, v)) if v.starts_with(|c: char| c.is_ascii_digit()) => (t, v),
        _ => (first, ""),
    };
    Test {
        title: title.into(),
        version: version.into(),
        description: heading.get(1..).unwrap_or_default().join(" "),
        unit: unit.into(),
        better: Some(better),
        ..Test::default()
    }
}
