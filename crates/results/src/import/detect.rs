//! Which format a file has, and one door for all of them.

use iosched_experiment::record::{Record, SCHEMA, TrialId};
use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

use crate::store::{DOCUMENT_FORMAT, Document};

/// A format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own JSON document.
    Json,
    /// fio's JSON or JSON+.
    Fio,
    /// PTS `composite.xml`.
    Pts,
    /// CSV with a header.
    Csv,
    /// Plain-text export of a result page.
    Text,
    /// iozone's output.
    Iozone,
    /// pg_test_fsync's output.
    PgTestFsync,
    /// A result file of the S suite.
    SSuite,
    /// A page that this program made.
    Page,
}

impl Format {
    /// All of them with their names on the command line.
    pub const ALL: [(&'static str, Format); 9] = [
        ("json", Format::Json),
        ("fio", Format::Fio),
        ("pts", Format::Pts),
        ("csv", Format::Csv),
        ("text", Format::Text),
        ("iozone", Format::Iozone),
        ("pg_test_fsync", Format::PgTestFsync),
        ("s-suite", Format::SSuite),
        ("page", Format::Page),
    ];

    /// The format of a name.
    ///
    /// # Errors
    /// The sentence to show, with the nearest name.
    pub fn parse(name: &str) -> Result<Format, String> {
        Self::ALL.iter().find(|f| f.0 == name).map(|f| f.1).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|f| f.0).collect();
            format!(
                "unknown format \"{name}\" ({}) {}",
                names.join(", "),
                did_you_mean(name, names.clone())
            )
        })
    }
}

/// Facts that are not in the file. Empty fields are filled from the file where it has them.
pub type Context = TrialId;

/// Guesses the format from the first 64 KiB.
#[must_use]
pub fn detect(text: &str) -> Option<Format> {
    let mut end = text.len().min(64 << 10);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = &text[..end];
    let start = head.trim_start_matches('\u{feff}').trim_start();
    if start.get(..14).is_some_and(|s| s.eq_ignore_ascii_case("<!doctype html")) {
        return Some(Format::Page);
    }
    if start.starts_with('<') {
        return Some(Format::Pts);
    }
    if head.contains("\"fio version\"") {
        return Some(Format::Fio);
    }
    if start.starts_with('{') {
        return Some(Format::Json);
    }
    if head.contains("usecs/op") {
        return Some(Format::PgTestFsync);
    }
    if head.contains("Iozone: Performance Test") || head.contains("Children see throughput for") {
        return Some(Format::Iozone);
    }
    if head.contains(" Is Better") && head.contains('|') {
        return Some(Format::Text);
    }
    let first = start.lines().find(|l| !l.starts_with('#'))?;
    if first.split(',').any(|c| c.trim() == "scheduler") {
        return Some(Format::Csv);
    }
    (head.contains("std_dev") || head.contains("conf99")).then_some(Format::SSuite)
}

/// Reads a file's text in the given or the detected format.
///
/// # Errors
/// A diagnostic; an unknown format is one.
pub fn import(
    file: &str,
    text: &str,
    format: Option<Format>,
    context: &Context,
) -> Result<Vec<Record>, Diagnostic> {
    let Some(format) = format.or_else(|| detect(text)) else {
        let names: Vec<&str> = Format::ALL.iter().map(|f| f.0).collect();
        return Err(Diagnostic::file(file, "the format is not recognised")
            .with_help(format!("say which it is with --format: {}", names.join(", "))));
    };
    let mut records = match format {
        Format::Json => {
            document(file, text)?.experiments.into_iter().flat_map(|e| e.records).collect()
        }
        Format::Fio => crate::import::from_fio_json(file, text, context)?,
        Format::Pts => crate::pts::from_pts(file, text)?.to_records(),
        Format::Csv => super::from_csv(file, text)?,
        Format::Text => super::from_text(file, text)?.to_records(),
        Format::Iozone => super::from_iozone(file, text, context)?,
        Format::PgTestFsync => super::from_pg_test_fsync(file, text, context)?,
        Format::SSuite => super::from_s_suite(file, text, context)?,
        Format::Page => super::from_page(file, text)?,
    };
    for r in &mut records {
        fill(&mut r.trial, context, file);
    }
    Ok(records)
}

/// Empty fields of a trial from the context, the workload from the file's stem.
pub(super) fn fill(trial: &mut TrialId, context: &Context, file: &str) {
    let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = stem.rsplit_once('.').map_or(stem, |s| s.0);
    for (slot, value, default) in [
        (&mut trial.experiment, &context.experiment, stem),
        (&mut trial.device, &context.device, "unknown"),
        (&mut trial.scheduler, &context.scheduler, "unknown"),
        (&mut trial.kernel, &context.kernel, "unknown"),
        (&mut trial.workload, &context.workload, stem),
    ] {
        if slot.is_empty() {
            *slot = if value.is_empty() { default.into() } else { value.clone() };
        }
    }
    trial.repetition = trial.repetition.max(1);
}

/// A document of ours.
///
/// # Errors
/// A diagnostic: no document, or one of a newer version.
pub fn document(file: &str, text: &str) -> Result<Document, Diagnostic> {
    let doc: Document = serde_json::from_str(text).map_err(|e| {
        let line_start: usize =
            text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
        let at = line_start + e.column().saturating_sub(1);
        let what = if e.is_eof() { "the file is cut off".to_string() } else { e.to_string() };
        Diagnostic::at_span(file, text, at..at + 1, format!("not a results document: {what}"))
    })?;
    version(file, &doc)?;
    Ok(doc)
}

/// Whether this program understands the document.
pub(super) fn version(file: &str, doc: &Document) -> Result<(), Diagnostic> {
    if doc.format != DOCUMENT_FORMAT {
        return Err(Diagnostic::file(
            file,
            format!("format is \"{}\", not \"{DOCUMENT_FORMAT}\"", doc.format),
        ));
    }
    if doc.schema > 1 {
        return Err(Diagnostic::file(
            file,
            format!("document schema {} is newer than this iosched (1)", doc.schema),
        ));
    }
    let newest = doc.experiments.iter().flat_map(|e| &e.records).map(|r| r.schema).max();
    if let Some(n) = newest.filter(|n| *n > SCHEMA) {
        return Err(Diagnostic::file(
            file,
            format!("a record has schema {n}, this iosched knows up to {SCHEMA}"),
        ));
    }
    Ok(())
}
