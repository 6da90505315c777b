//! CSV with a stated header, one row per measured value.
//!
//! ```text
//! experiment,device,scheduler,kernel,workload,repetition,metric,unit,better,value,status,seed,backend
//! demo,hdd,bfq@6.12,6.12,randread,1,iops,1/s,higher,123.4,complete,137,sim
//! ```
//!
//! `workload`, `scheduler`, `metric`, `unit` and `value` must be there; columns may stand in any order. A value may be
//! `>60` (a limit was exceeded) or empty with the reason in `status`. `seed` and `backend` say how the trial was run: a
//! simulated trial of the same seed is the same trial.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iosched_experiment::record::{
    BackendKind, HALVES_DIFFER, Metric, Record, SCHEMA, Status, TrialId, Warning,
};
use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

use super::numbers::Commas;
use super::{MAX_LINE, at};
use crate::measure::measures;
use crate::stats::Better;
use crate::store::backend_kind;

const COLUMNS: [&str; 13] = [
    "experiment",
    "device",
    "scheduler",
    "kernel",
    "workload",
    "repetition",
    "metric",
    "unit",
    "better",
    "value",
    "status",
    "seed",
    "backend",
];
const NEEDED: [&str; 5] = ["scheduler", "workload", "metric", "unit", "value"];

/// The status of a complete run whose halves differ.
const UNSTEADY: &str = "complete; halves differ";

/// What a spreadsheet takes for the beginning of a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\''];

/// A field without the apostrophe that [`quote`] put before it.
fn plain(field: &str) -> &str {
    field.strip_prefix('\'').filter(|f| f.starts_with(FORMULA)).unwrap_or(field)
}

/// A field that a spreadsheet takes for text: what begins like a formula gets an apostrophe.
fn text(field: &str) -> Cow<'_, str> {
    if field.starts_with(FORMULA) && field.parse::<f64>().is_err() {
        Cow::Owned(format!("'{field}"))
    } else {
        Cow::Borrowed(field)
    }
}

/// Where a row stands, for messages.
struct Place<'a> {
    file: &'a str,
    number: usize,
    line: &'a str,
}

impl<'a> Place<'a> {
    fn of(file: &'a str, whole: &'a str, position: Option<&csv::Position>) -> Place<'a> {
        let start = position.map_or(0, |p| usize::try_from(p.byte()).unwrap_or(0));
        let rest = whole.get(start..).unwrap_or_default();
        let row = rest.trim_start_matches(['\r', '\n']);
        let line = row.lines().next().unwrap_or_default();
        // A row begins, for the reader, behind the last one: before the second half of its line's end, and before empty
        // lines.
        let skipped = rest[..rest.len() - row.len()].matches('\n').count();
        let number = position.map_or(1, |p| usize::try_from(p.line()).unwrap_or(usize::MAX));
        let number = number.saturating_add(skipped);
        Place { file, number, line }
    }

    fn bad(&self, word: &str, message: String) -> Diagnostic {
        at(self.file, self.number, self.line, word, message)
    }
}

/// Where each known column stands.
fn header(
    place: &Place<'_>,
    fields: &csv::StringRecord,
) -> Result<BTreeMap<&'static str, usize>, Diagnostic> {
    let mut out = BTreeMap::new();
    for (i, name) in fields.iter().enumerate() {
        let Some(known) = COLUMNS.iter().find(|c| **c == name) else {
            let help = did_you_mean(name, COLUMNS);
            let help =
                if help.is_empty() { format!("columns are {}", COLUMNS.join(", ")) } else { help };
            return Err(place.bad(name, format!("unknown column \"{name}\"")).with_help(help));
        };
        if out.insert(*known, i).is_some() {
            return Err(place.bad(name, format!("column \"{name}\" is given twice")));
        }
    }
    if let Some(absent) = NEEDED.iter().find(|c| !out.contains_key(**c)) {
        return Err(place.bad("", format!("no column \"{absent}\" in the header")));
    }
    Ok(out)
}

/// Reads CSV; rows of the same trial become one record.
///
/// # Errors
/// A diagnostic: unknown or missing column, a value that is no number, a metric given twice in a trial.
pub fn from_csv(file: &str, whole: &str) -> Result<Vec<Record>, Diagnostic> {
    let whole = whole.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(whole.as_bytes());
    let mut columns = None;
    let mut order: Vec<TrialId> = Vec::new();
    let mut records: BTreeMap<TrialId, Record> = BTreeMap::new();
    for row in reader.records() {
        // The text is UTF-8 and rows may differ in length: nothing is left that could fail.
        let row = row.map_err(|e| Diagnostic::file(file, e.to_string()))?;
        let place = Place::of(file, whole, row.position());
        if row.as_slice().len() > MAX_LINE {
            let message =
                format!("a row of {} bytes; {MAX_LINE} is the limit", row.as_slice().len());
            return Err(place.bad("", message));
        }
        let Some(columns) = &columns else {
            columns = Some(header(&place, &row)?);
            continue;
        };
        if row.len() != columns.len() {
            let torn = place.line.matches('"').count() % 2 == 1;
            let help =
                if torn { "a quote that is not closed goes on over the next lines" } else { "" };
            let message = format!("{} fields, the header has {}", row.len(), columns.len());
            return Err(place.bad("", message).with_help(help));
        }
        let get = |c: &str| columns.get(c).map_or("", |i| plain(&row[*i]));
        let (trial, backend) = (trial(&place, &get)?, backend(&place, get("backend"))?);
        let record = records.entry(trial.clone()).or_insert_with(|| {
            order.push(trial.clone());
            Record { schema: SCHEMA, trial, backend, ..Record::default() }
        });
        add(record, &place, &get)?;
    }
    if columns.is_none() {
        return Err(Diagnostic::file(file, "no header line"));
    }
    if order.is_empty() {
        return Err(Diagnostic::file(file, "a header line, and no results below it"));
    }
    Ok(order.iter().filter_map(|t| records.remove(t)).collect())
}

fn trial<'a>(place: &Place<'_>, get: &impl Fn(&str) -> &'a str) -> Result<TrialId, Diagnostic> {
    let repetition = match get("repetition") {
        "" => 1,
        r => r
            .parse()
            .ok()
            .filter(|r| *r > 0)
            .ok_or_else(|| place.bad(r, format!("\"{r}\" is no repetition (1, 2, …)")))?,
    };
    let seed = match get("seed") {
        "" => 0,
        s => s.parse().map_err(|_| place.bad(s, format!("\"{s}\" is no seed (0, 1, …)")))?,
    };
    Ok(TrialId {
        experiment: get("experiment").into(),
        device: get("device").into(),
        scheduler: get("scheduler").into(),
        kernel: get("kernel").into(),
        workload: get("workload").into(),
        repetition,
        seed,
    })
}

/// Who ran the trial; another tool where nothing is said.
fn backend(place: &Place<'_>, word: &str) -> Result<BackendKind, Diagnostic> {
    let kind = backend_kind(word);
    if word.is_empty() || kind.traits().name == word {
        return Ok(kind);
    }
    let help = "expected sim, emulated, real, mock or imported";
    Err(place.bad(word, format!("unknown backend \"{word}\"")).with_help(help))
}

/// What the status of a row says of its trial.
fn take_status(record: &mut Record, place: &Place<'_>, status: &str) -> Result<(), Diagnostic> {
    match status {
        "" | "complete" => {}
        s if s == UNSTEADY => {
            if record.warnings.is_empty() {
                record.warnings.push(Warning {
                    code: HALVES_DIFFER.into(),
                    message: "the halves of the run differ".into(),
                    advice: String::new(),
                });
            }
        }
        s => {
            let why = |word: &str| {
                let rest = s.strip_prefix(word)?;
                (rest.is_empty() || rest.starts_with(':'))
                    .then(|| rest.trim_start_matches(':').trim())
            };
            record.status = match (why("invalid"), why("failed")) {
                (Some(why), _) => Status::Invalid(why.into()),
                (_, Some(why)) => Status::Failed(why.into()),
                _ => {
                    let words = format!(
                        "expected complete, \"{UNSTEADY}\", \"invalid: why\" or \"failed: why\""
                    );
                    return Err(place.bad(s, format!("unknown status \"{s}\"")).with_help(words));
                }
            };
        }
    }
    Ok(())
}

fn add<'a>(
    record: &mut Record,
    place: &Place<'_>,
    get: &impl Fn(&str) -> &'a str,
) -> Result<(), Diagnostic> {
    take_status(record, place, get("status"))?;
    let value = get("value");
    let (name, unit) = (get("metric"), get("unit"));
    if value.is_empty() {
        // A row without a metric stands for a trial without figures.
        if record.status == Status::Complete && !name.is_empty() {
            record.status = Status::Failed("no value".into());
        }
        return Ok(());
    }
    if name.is_empty() {
        return Err(place.bad("", "a value without a metric".into()));
    }
    if record.metrics.iter().any(|m| m.name == name) {
        return Err(place.bad(name, format!("\"{name}\" is given twice for this trial")));
    }
    let higher_is_better = match get("better") {
        "higher" => Some(true),
        "lower" => Some(false),
        "neither" => None,
        // Times are better when short. Everything else counts as a rate.
        "" => Some(!matches!(
            unit.to_lowercase().as_str(),
            "s" | "ms" | "us" | "µs" | "ns" | "seconds" | "usecs/op" | "ms/op"
        )),
        other => {
            return Err(place.bad(other, format!("\"{other}\" is not higher, lower or neither")));
        }
    };
    let limit = value.strip_prefix('>');
    record.metrics.push(Metric {
        name: name.into(),
        value: Commas::Unknown
            .number((place.file, place.number, place.line), limit.unwrap_or(value))?,
        unit: unit.into(),
        higher_is_better,
        censored: limit.is_some(),
    });
    Ok(())
}

/// The records as CSV: one row per measure; a trial without figures has one row with its status.
#[must_use]
pub fn to_csv(records: &[Record]) -> String {
    let mut out = csv::WriterBuilder::new().comment(Some(b'#')).from_writer(Vec::new());
    let mut put = |fields: [&str; COLUMNS.len()]| {
        // Memory takes everything.
        let _ = out.write_record(fields.iter().map(|f| text(f).as_bytes().to_vec()));
    };
    put(COLUMNS);
    for r in records {
        let status = match &r.status {
            Status::Complete if r.halves_differ() => UNSTEADY.to_string(),
            Status::Complete => "complete".to_string(),
            Status::Invalid(why) => format!("invalid: {why}"),
            Status::Failed(why) => format!("failed: {why}"),
        };
        let t = &r.trial;
        let (repetition, seed) = (t.repetition.to_string(), t.seed.to_string());
        let mut row = |metric: &str, unit: &str, better: &str, value: &str| {
            put([
                &t.experiment,
                &t.device,
                &t.scheduler,
                &t.kernel,
                &t.workload,
                &repetition,
                metric,
                unit,
                better,
                value,
                &status,
                &seed,
                r.backend.traits().name,
            ]);
        };
        let judged = measures(r);
        let others = r.metrics.iter().filter(|m| m.higher_is_better.is_none());
        if judged.is_empty() && others.clone().next().is_none() {
            row("", "", "", "");
        }
        for m in judged {
            let better = if m.better == Better::Higher { "higher" } else { "lower" };
            let value = format!("{}{}", if m.censored { ">" } else { "" }, m.value);
            row(&m.name, &m.unit, better, &value);
        }
        for m in others.filter(|m| m.value.is_finite()) {
            row(&m.name, &m.unit, "neither", &m.value.to_string());
        }
    }
    out.into_inner().ok().and_then(|b| String::from_utf8(b).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_status_is_named() {
        let head = "scheduler,workload,repetition,metric,unit,value,status\n";
        let of = |status: &str| from_csv("r.csv", &format!("{head}none,w,1,iops,1/s,5,{status}\n"));
        for bad in ["ok", "Complete", "invalidated"] {
            let error = of(bad).unwrap_err().to_string();
            assert!(error.contains("r.csv:2") && error.contains(bad), "{error}");
        }
        for good in ["", "complete", "invalid", "failed: no disk"] {
            assert!(of(good).is_ok(), "{good}");
        }
    }
}
