//! What fs_mark and PostMark print, which make and remove many small files.

use iosched_experiment::record::{Record, TrialId};
use iosched_types::Diagnostic;

use super::at;
use super::tools::{Place, first, put, reports};

/// Whether a text is fs_mark's.
pub(super) fn is_fs_mark(text: &str) -> bool {
    text.lines().any(|l| l.trim_start().starts_with("FSUse%"))
}

/// Reads fs_mark: files a second of each pass, and their mean over the report. With `-v` it prints the times of single
/// calls, too.
///
/// # Errors
/// A diagnostic when there is no result, or a value is no number.
pub fn from_fs_mark(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let lacks = "no line of figures below \"FSUse%\": was fs_mark stopped early?";
    let begins = |l: &str| l.trim_start_matches('#').trim_start().starts_with("fs_mark ");
    let mut out = reports((file, text, trial), begins, fs_mark, lacks)?;
    for record in &mut out {
        let passes: Vec<f64> =
            record.metrics.iter().filter(|m| m.unit == "files/s").map(|m| m.value).collect();
        let mean = passes.iter().sum::<f64>() / passes.len().max(1) as f64;
        put(record, "files", mean, "files/s", Some(true));
    }
    Ok(out)
}

/// The heads of the columns, which two blanks part at least. With `-v` a call has three: least, mean and most.
fn heads(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    for head in line.split("  ").map(str::trim).filter(|w| !w.is_empty()) {
        match head.strip_suffix(" (Min/Avg/Max)") {
            Some(call) => out.extend(["min", "mean", "max"].map(|w| format!("{call} {w}"))),
            None => out.push(head.into()),
        }
    }
    out
}

fn fs_mark(record: &mut Record, section: &mut String, place: Place<'_>) -> Result<(), Diagnostic> {
    let (file, n, line, _) = place;
    let trimmed = line.trim();
    if let Some(rest) = trimmed.strip_prefix('#') {
        let rest = rest.trim();
        if let Some(version) = rest.strip_prefix("Version ") {
            let version = version.split(',').next().unwrap_or_default();
            record.provenance.insert("tool".into(), format!("fs_mark {version}"));
        } else if rest.starts_with("fs_mark ") {
            record.provenance.insert("command".into(), rest.into());
        } else if let Some(method) = rest.strip_prefix("Sync method: ") {
            record.provenance.insert("sync method".into(), method.into());
        }
    } else if trimmed.starts_with("FSUse%") {
        *section = trimmed.into();
    } else if !section.is_empty() && trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        let heads = heads(section);
        let words: Vec<&str> = trimmed.split_whitespace().collect();
        if words.len() != heads.len() {
            let message = format!("{} values for {} columns", words.len(), heads.len());
            return Err(at(file, n, line, "", message));
        }
        let pass = record.metrics.iter().filter(|m| m.unit == "files/s").count() + 1;
        for (head, word) in heads.iter().zip(&words) {
            let value = first(place, word)?;
            match head.as_str() {
                "FSUse%" | "Count" => {}
                "Size" => {
                    record.provenance.insert("size of a file".into(), (*word).into());
                }
                "Files/sec" => {
                    put(record, &format!("files, pass {pass}"), value, "files/s", Some(true));
                }
                // Its own time, which no scheduler changes.
                "App Overhead" => {
                    put(record, &format!("overhead, pass {pass}"), value, "us", None);
                }
                // A call that the method of syncing leaves out.
                _ if value == 0.0 => {}
                call => put(record, &format!("{call}, pass {pass}"), value, "us", Some(false)),
            }
        }
    }
    Ok(())
}

/// Whether a text is PostMark's.
pub(super) fn is_postmark(text: &str) -> bool {
    text.lines().any(|l| l.starts_with("PostMark v"))
        || text.contains("seconds of transactions (") && text.contains("created (")
}

/// Reads PostMark's report: rates of transactions, files and data. They come from whole seconds.
///
/// # Errors
/// A diagnostic when there is no result, or a value is no number.
pub fn from_postmark(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let lacks = "no line \"… seconds of transactions\": was PostMark stopped early?";
    reports((file, text, trial), |l| l.starts_with("PostMark v"), postmark, lacks)
}

fn postmark(record: &mut Record, section: &mut String, place: Place<'_>) -> Result<(), Diagnostic> {
    let line = place.2.trim();
    if let Some(rest) = line.strip_prefix("PostMark v") {
        let version = rest.split_whitespace().next().unwrap_or_default();
        record.provenance.insert("tool".into(), format!("PostMark {version}"));
        return Ok(());
    }
    if let Some(total) = line.strip_suffix(" seconds total") {
        put(record, "time", first(place, total)?, "s", Some(false));
        return Ok(());
    }
    // `Deletion alone: 1864 files (1864 per second)`.
    let (named, counted) = line.split_once(": ").map_or(("", line), |(n, c)| (n, c));
    let Some((count, rate)) = counted.split_once('(') else { return Ok(()) };
    if !rate.trim_end().ends_with("per second)") {
        return Ok(());
    }
    let what = count.trim_start_matches(|c: char| c.is_ascii_digit() || ".,".contains(c)).trim();
    let (name, unit) = match what {
        "seconds of transactions" => ("transactions".to_string(), "1/s"),
        "files" => (format!("{section}, {}", named.to_lowercase()), "files/s"),
        _ => match what.strip_prefix("megabytes ").or_else(|| what.strip_prefix("kilobytes ")) {
            // A megabyte is 1024 * 1024 bytes.
            Some(side) => (
                format!("{} data", side.trim()),
                if rate.contains("kilo") { "KiB/s" } else { "MiB/s" },
            ),
            None => {
                *section = what.into();
                (what.to_string(), "files/s")
            }
        },
    };
    put(record, &name, first(place, rate)?, unit, Some(true));
    Ok(())
}
