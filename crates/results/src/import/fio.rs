//! fio's JSON files.

use iosched_experiment::record::{Record, TrialId};
use iosched_types::Diagnostic;

use crate::fio::{FioOutput, from_fio};

/// Reads `fio --output-format=json` or `json+` of any 3.x version. Lines that fio printed before the JSON (warnings, a
/// terse report) are skipped.
///
/// # Errors
/// A diagnostic: cut off, not fio's, a name given twice, fio 2.x (its latencies are in other units).
pub fn from_fio_json(file: &str, text: &str, trial: &TrialId) -> Result<Record, Diagnostic> {
    let start = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|i| i + 1) };
    let start = start.ok_or_else(|| Diagnostic::file(file, "no JSON object in the file"))?;
    // Whatever follows the first object (another output format) is not read.
    let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<FioOutput>();
    let place = |e: &serde_json::Error| {
        let line_start: usize = text[start..]
            .split_inclusive('\n')
            .take(e.line().saturating_sub(1))
            .map(str::len)
            .sum();
        start + line_start + e.column().saturating_sub(1)
    };
    let output = match documents.next() {
        Some(Ok(o)) => o,
        Some(Err(e)) => {
            let at = place(&e);
            let what = if e.is_eof() { "the file is cut off".to_string() } else { e.to_string() };
            return Err(Diagnostic::at_span(
                file,
                text,
                at..at + 1,
                format!("not fio's JSON output: {what}"),
            ));
        }
        None => return Err(Diagnostic::file(file, "no JSON object in the file")),
    };
    if output.version.starts_with("fio-2") || output.version.starts_with("fio-1") {
        let message =
            format!("{} is too old: before 3.0 latencies were in microseconds", output.version);
        return Err(Diagnostic::file(file, message).with_help("run the job again with fio 3.x"));
    }
    if output.jobs.is_empty() {
        return Err(Diagnostic::file(file, "fio's output has no job"));
    }
    Ok(from_fio(&output, trial.clone()))
}
