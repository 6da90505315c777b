//! fio's JSON files.

use iosched_experiment::record::{IMPORT, Record, TrialId, Warning};
use iosched_types::Diagnostic;

use super::{fio_terse, fio_text};
use crate::fio::{FioOutput, from_fio, settle, without_nan};

/// Reads `fio --output-format=json` or `json+` of fio 2 and 3, of one process or of a client, one record per document:
/// several runs may have been appended to one file. Text before, between and behind documents is passed over (warnings, a
/// terse report).
///
/// Documents that do not say which trial they are of are repetitions of `trial`. With `--status-interval` fio prints one
/// run several times, with all that was done up to then: the last one counts.
///
/// fio's output for people and its terse lines are read, too, where there is no JSON.
///
/// # Errors
/// A diagnostic: cut off, not fio's, a name given twice.
pub fn from_fio_json(file: &str, text: &str, trial: &TrialId) -> Result<Vec<Record>, Diagnostic> {
    let marked = marked(text);
    if !marked && !text.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        let told = match text.lines().any(fio_terse::is_terse) {
            true => fio_terse::terse(file, text)?,
            false => fio_text::normal(file, text)?,
        };
        if !told.is_empty() {
            return Ok(told_runs(told, trial));
        }
    }
    let mut runs: Vec<(FioOutput, Vec<Warning>, usize)> = Vec::new();
    let mut from = 0;
    while let Some(start) = if marked { begins(text, from) } else { object(text, from) } {
        let (clean, names) = without_nan(&text[start..]);
        let mut documents = serde_json::Deserializer::from_str(&clean).into_iter::<FioOutput>();
        let mut output = match documents.next() {
            Some(Ok(o)) => o,
            Some(Err(e)) => return Err(damaged(file, text, start, &e)),
            None => break,
        };
        from = start + documents.byte_offset();
        let mut warnings = settle(&mut output);
        if !names.is_empty() {
            let names: Vec<String> = names.into_iter().collect();
            warnings.push(warning(format!("{} are no numbers and not used", names.join(", "))));
        }
        if output.version.is_empty() {
            if output.jobs.is_empty() {
                let message = "not fio's JSON output: it has neither a version nor a job";
                return Err(Diagnostic::file(file, message));
            }
            output.version = "fio".into();
        }
        // A trial of ours may have no job: a failed one, or one with metrics only.
        if output.jobs.is_empty() && output.iosched.is_none() {
            return Err(Diagnostic::file(file, "fio's output has no job"));
        }
        match runs.last_mut().filter(|last| later(&last.0, &output)) {
            Some(last) => *last = (output, warnings, last.2 + 1),
            None => runs.push((output, warnings, 1)),
        }
    }
    if runs.is_empty() {
        return Err(Diagnostic::file(file, "no JSON object in the file"));
    }
    let mut repetitions = 0;
    let records = runs.into_iter().map(|(output, mut warnings, times)| {
        let mut trial = trial.clone();
        if output.iosched.is_none() {
            trial.repetition = trial.repetition.max(1) + repetitions;
            repetitions += 1;
        }
        let mut record = from_fio(&output, trial);
        if times > 1 {
            warnings.push(snapshots(times));
        }
        if output.iosched.is_none() {
            record.warnings.extend(warnings);
        }
        record
    });
    Ok(records.collect())
}

/// The records of runs that were told in words or terse lines.
fn told_runs(runs: Vec<fio_text::Run>, trial: &TrialId) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for mut run in runs {
        let mut trial = trial.clone();
        trial.scheduler = run.scheduler.take().unwrap_or(trial.scheduler);
        let mut warnings = settle(&mut run.output);
        if run.times > 0 {
            warnings.push(snapshots(run.times + 1));
        }
        if run.alike {
            warnings.push(warning(
                "lines of one job are taken for runs one after the other; of processes at once group_reporting gives one line"
                    .into(),
            ));
        }
        let mut record = from_fio(&run.output, trial);
        record.warnings.extend(warnings);
        let alike = |r: &&Record| r.trial.scheduler == record.trial.scheduler;
        let earlier = records.iter().filter(alike).count() as u32;
        record.trial.repetition = record.trial.repetition.max(1) + earlier;
        records.push(record);
    }
    records
}

fn warning(message: String) -> Warning {
    Warning { code: IMPORT.into(), message, advice: String::new() }
}

/// The warning of a run that was reported several times.
pub(super) fn snapshots(times: usize) -> Warning {
    warning(format!(
        "{times} reports of one run, each of all that it did up to then: the last one is used"
    ))
}

/// Whether an output reports the run of the one before it again, later (`--status-interval`): the same jobs did as much or
/// more, and the run began before the first report. Another run begins after the report of the one before it.
fn later(before: &FioOutput, now: &FioOutput) -> bool {
    let same = before.jobs.len() == now.jobs.len()
        && before.jobs.iter().zip(&now.jobs).all(|(a, b)| {
            let sides = |j: &crate::fio::FioJob| -> Vec<u64> {
                j.sides().map(|d| d.io_bytes).chain([j.sync.total_ios]).collect()
            };
            (&a.jobname, a.groupid, &a.hostname) == (&b.jobname, b.groupid, &b.hostname)
                && a.options == b.options
                && a.mixed.is_some() == b.mixed.is_some()
                && sides(a).iter().zip(sides(b)).all(|(a, b)| *a <= b)
        });
    if !same || before.iosched.is_some() || now.iosched.is_some() || before.timestamp == 0 {
        return false;
    }
    // Times of a report and of the run's beginning in ms; older versions give the report's in seconds.
    let report = |o: &FioOutput| match o.timestamp_ms {
        0 => o.timestamp.saturating_mul(1000),
        ms => ms,
    };
    let ran = |o: &FioOutput| {
        let longest =
            o.jobs.iter().flat_map(crate::fio::FioJob::sides).map(|d| d.runtime).max().unwrap_or(0);
        // Jobs that ran one after the other took longer than the longest of them. `elapsed` is rounded up.
        let elapsed = o.jobs.iter().map(|j| j.elapsed).max().unwrap_or(0);
        longest.max(elapsed.saturating_sub(1).saturating_mul(1000))
    };
    let began = |o: &FioOutput| report(o).saturating_sub(ran(o));
    // Both clocks have their grain, so the middle of the first report's time decides.
    report(now) >= report(before) && began(now) <= began(before).saturating_add(ran(before) / 2)
}

/// Whether a document begins somewhere as fio's do.
fn marked(text: &str) -> bool {
    begins(text, 0).is_some()
}

/// Where the next object of fio starts: its first member is the version.
fn begins(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(i) = text[at..].find("\"fio version\"") {
        let before = text[from..at + i].trim_end();
        if before.ends_with('{') {
            return Some(from + before.len() - 1);
        }
        at += i + 1;
    }
    None
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
