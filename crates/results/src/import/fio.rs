//! fio's JSON files.

use iosched_experiment::record::{Record, TrialId};
use iosched_types::Diagnostic;

use crate::fio::{FioOutput, from_fio};

/// Reads `fio --output-format=json` or `json+` of any 3.x version, one record per document: several runs may have
/// been appended to one file. What fio printed before the first one (warnings, a terse report) and any other text
/// behind a document is passed over.
///
/// Documents that do not say which trial they are of are repetitions of `trial`.
///
/// # Errors
/// A diagnostic: cut off, not fio's, a name given twice, fio 2.x (its latencies are in other units).
pub fn from_fio_json(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let mut out: Vec<Record> = Vec::new();
    let mut repetitions = 0;
    let mut from = 0;
    while let Some(start) = object(text, from) {
        let mut documents =
            serde_json::Deserializer::from_str(&text[start..]).into_iter::<FioOutput>();
        let output = match documents.next() {
            Some(Ok(o)) => o,
            Some(Err(e)) => return Err(damaged(file, text, start, &e)),
            None => break,
        };
        from = start + documents.byte_offset();
        check(file, &output)?;
        let mut trial = trial.clone();
        if output.iosched.is_none() {
            trial.repetition = trial.repetition.max(1) + repetitions;
            repetitions += 1;
        }
        out.push(from_fio(&output, trial));
    }
    if out.is_empty() {
        return Err(Diagnostic::file(file, "no JSON object in the file"));
    }
    Ok(out)
}

/// Where the next object at the beginning of a line starts.
fn object(text: &str, from: usize) -> Option<usize> {
    let rest = &text[from..];
    let blank = rest.len() - rest.trim_start().len();
    if rest[blank..].starts_with('{') {
        return Some(from + blank);
    }
    rest.find("\n{").map(|i| from + i + 1)
}

fn damaged(file: &str, text: &str, start: usize, e: &serde_json::Error) -> Diagnostic {
    let before = text[start..].split_inclusive('\n').take(e.line().saturating_sub(1));
    let at = start + before.map(str::len).sum::<usize>() + e.column().saturating_sub(1);
    let what = if e.is_eof() { "the file is cut off".to_string() } else { e.to_string() };
    Diagnostic::at_span(file, text, at..at + 1, format!("not fio's JSON output: {what}"))
}

fn check(file: &str, output: &FioOutput) -> Result<(), Diagnostic> {
    if output.version.starts_with("fio-2") || output.version.starts_with("fio-1") {
        let message =
            format!("{} is too old: before 3.0 latencies were in microseconds", output.version);
        return Err(Diagnostic::file(file, message).with_help("run the job again with fio 3.x"));
    }
    // A trial of ours may have no job: a failed one, or one with metrics only.
    if output.jobs.is_empty() && output.iosched.is_none() {
        return Err(Diagnostic::file(file, "fio's output has no job"));
    }
    Ok(())
}
