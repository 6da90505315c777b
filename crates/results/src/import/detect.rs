//! Which format a file has, and one door for all of them.

use iosched_experiment::record::{IMPORT, Record, SCHEMA, Status, TrialId, Warning};
use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

use super::{fio_terse, fio_text};
use crate::measure::measures;
use crate::store::{DOCUMENT_FORMAT, Document};

/// A format that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own JSON document.
    Json,
    /// fio's output: JSON, JSON+, terse, or for people.
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
    /// dbench's output.
    Dbench,
    /// pgbench's output.
    Pgbench,
    /// The output of sysbench's file test.
    Sysbench,
    /// bonnie++'s output.
    Bonnie,
    /// fs_mark's output.
    FsMark,
    /// PostMark's report.
    Postmark,
    /// A result file of the S suite.
    SSuite,
    /// A page that this program made.
    Page,
}

impl Format {
    /// All of them with their names on the command line.
    pub const ALL: [(&'static str, Format); 15] = [
        ("json", Format::Json),
        ("fio", Format::Fio),
        ("pts", Format::Pts),
        ("csv", Format::Csv),
        ("text", Format::Text),
        ("iozone", Format::Iozone),
        ("pg_test_fsync", Format::PgTestFsync),
        ("dbench", Format::Dbench),
        ("pgbench", Format::Pgbench),
        ("sysbench", Format::Sysbench),
        ("bonnie++", Format::Bonnie),
        ("fs_mark", Format::FsMark),
        ("postmark", Format::Postmark),
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

/// Whether a text is of a format.
type IsOne = fn(&str) -> bool;

/// The first 64 KiB.
fn head_of(text: &str) -> &str {
    let end = (0..=text.len().min(64 << 10)).rev().find(|i| text.is_char_boundary(*i));
    &text[..end.unwrap_or(0)]
}

/// Whether a text that begins with `<` is a trace: `<idle>-0     [001] …`.
fn is_trace(start: &str) -> bool {
    start.lines().next().is_some_and(|l| l.contains(">-") && l.contains(" ["))
}

/// Guesses the format from the first 64 KiB.
#[must_use]
pub fn detect(text: &str) -> Option<Format> {
    let head = head_of(text);
    let start = head.trim_start_matches('\u{feff}').trim_start();
    if start.get(..14).is_some_and(|s| s.eq_ignore_ascii_case("<!doctype html")) {
        return Some(Format::Page);
    }
    // `<...>-30496 [001] …` is a trace of the kernel's.
    let tag = |c: char| c.is_ascii_alphabetic() || c == '?' || c == '!';
    if start.strip_prefix('<').is_some_and(|rest| rest.starts_with(tag)) && !is_trace(start) {
        return Some(Format::Pts);
    }
    if head.contains("\"fio version\"") {
        return Some(Format::Fio);
    }
    if start.starts_with('{')
        && head.contains("\"jobs\"")
        && head.contains("\"jobname\"")
        && !head.contains(DOCUMENT_FORMAT)
    {
        return Some(Format::Fio);
    }
    if fio_text::is_normal(head) || head.lines().any(fio_terse::is_terse) {
        return Some(Format::Fio);
    }
    if start.starts_with('{') && !head.contains("\"sysstat\"") {
        return Some(Format::Json);
    }
    let known: [(Format, IsOne); 8] = [
        (Format::PgTestFsync, super::pg_test_fsync::is_one),
        (Format::Iozone, super::iozone::is_one),
        (Format::Sysbench, super::tools::is_sysbench),
        (Format::Dbench, super::tools::is_dbench),
        (Format::Pgbench, super::tools::is_pgbench),
        (Format::Bonnie, super::bonnie::is_one),
        (Format::FsMark, super::files_made::is_fs_mark),
        (Format::Postmark, super::files_made::is_postmark),
    ];
    if let Some((format, _)) = known.iter().find(|k| (k.1)(head)) {
        return Some(*format);
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
    // A mail quotes a mail a few times at most.
    let mut unquoted = std::borrow::Cow::Borrowed(text);
    for _ in 0..4 {
        let Some(inner) = super::hosts::unquoted(&unquoted) else { break };
        unquoted = inner.into();
    }
    let text = &*unquoted;
    if let Some(hosts) = super::hosts::apart(text) {
        return of_hosts(file, hosts, format, context);
    }
    let Some(format) = format.or_else(|| detect(text)) else {
        if let Some(refusal) = super::strangers::refusal(file, head_of(text)) {
            return Err(refusal);
        }
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
        Format::Dbench => super::from_dbench(file, text, context)?,
        Format::Pgbench => super::from_pgbench(file, text, context)?,
        Format::Sysbench => super::from_sysbench(file, text, context)?,
        Format::Bonnie => super::from_bonnie(file, text, context)?,
        Format::FsMark => super::from_fs_mark(file, text, context)?,
        Format::Postmark => super::from_postmark(file, text, context)?,
        Format::SSuite => super::from_s_suite(file, text, context)?,
        Format::Page => super::from_page(file, text)?,
    };
    for r in &mut records {
        fill(&mut r.trial, context, file);
    }
    if format == Format::Json { Ok(records) } else { figured(file, records) }
}

/// What several hosts printed, each as a device of its own.
fn of_hosts(
    file: &str,
    hosts: Vec<(String, String)>,
    format: Option<Format>,
    context: &Context,
) -> Result<Vec<Record>, Diagnostic> {
    let several = hosts.len() > 1;
    let mut out = Vec::new();
    for (host, text) in hosts {
        let mut context = context.clone();
        if several && context.device.is_empty() {
            context.device.clone_from(&host);
        }
        let mut records = import(file, &text, format, &context)?;
        for r in &mut records {
            r.provenance.insert("host".into(), host.clone());
        }
        out.extend(records);
    }
    Ok(out)
}

/// Only trials that have figures, or say why they have none.
pub(super) fn figured(file: &str, mut records: Vec<Record>) -> Result<Vec<Record>, Diagnostic> {
    let all = records.len();
    let bare =
        |r: &Record| r.status == Status::Complete && r.metrics.is_empty() && measures(r).is_empty();
    let why = records.iter().find(|r| bare(r)).and_then(|r| r.warnings.first());
    let why = why.map(|w| w.message.clone()).unwrap_or_default();
    records.retain(|r| !bare(r));
    let lost = all - records.len();
    let Some(first) = records.first_mut() else {
        let message = "no figures: a trial without them is not stored";
        return Err(Diagnostic::file(file, message).with_help(why));
    };
    if lost > 0 {
        first.warnings.push(Warning {
            code: IMPORT.into(),
            message: format!("{lost} of {all} trials have no figures and are not stored"),
            advice: String::new(),
        });
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
