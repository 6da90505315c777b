//! CSV with a stated header, one row per measured value.
//!
//! ```text
//! experiment,device,scheduler,kernel,workload,repetition,metric,unit,better,value,status
//! demo,hdd,bfq@6.12,6.12,randread,1,iops,1/s,higher,123.4,complete
//! ```
//!
//! `workload`, `scheduler`, `metric`, `unit` and `value` must be there; columns may stand in any order. A value may be
//! `>60` (a limit was exceeded) or empty with the reason in `status`.

use std::collections::BTreeMap;

use iosched_experiment::record::{BackendKind, Metric, Record, SCHEMA, Status, TrialId};
use iosched_types::Diagnostic;
use iosched_types::nearest::did_you_mean;

use super::{at, lines, number};
use crate::measure::measures;
use crate::stats::Better;

const COLUMNS: [&str; 11] = [
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
];
const NEEDED: [&str; 5] = ["scheduler", "workload", "metric", "unit", "value"];

/// What a spreadsheet takes for the beginning of a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\''];

/// A field without the apostrophe that [`quote`] put before it.
fn plain(field: &str) -> &str {
    field.strip_prefix('\'').filter(|f| f.starts_with(FORMULA)).unwrap_or(field)
}

/// Splits a row by RFC 4180 (quotes, doubled quotes); `None` for a quote that is not closed.
fn split(line: &str) -> Option<Vec<String>> {
    let mut out = vec![String::new()];
    let (mut quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        let field = out.last_mut()?;
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => field.push(c),
        }
    }
    (!quoted).then_some(out)
}

/// A field for CSV. Line breaks become spaces: a row is a line.
fn quote(field: &str) -> String {
    let flat: String =
        field.chars().map(|c| if c == '\n' || c == '\r' { ' ' } else { c }).collect();
    // A spreadsheet would compute what begins like a formula; an apostrophe makes it text.
    let formula = flat.starts_with(FORMULA) && flat.parse::<f64>().is_err();
    let flat = if formula { format!("'{flat}") } else { flat };
    if flat.contains([',', '"']) { format!("\"{}\"", flat.replace('"', "\"\"")) } else { flat }
}

/// Where each known column stands.
fn header(file: &str, n: usize, line: &str) -> Result<BTreeMap<&'static str, usize>, Diagnostic> {
    let mut out = BTreeMap::new();
    let fields =
        split(line).ok_or_else(|| at(file, n, line, "\"", "a quote is not closed".into()))?;
    for (i, f) in fields.iter().enumerate() {
        let name = f.trim();
        let Some(known) = COLUMNS.iter().find(|c| **c == name) else {
            let help = did_you_mean(name, COLUMNS);
            let help =
                if help.is_empty() { format!("columns are {}", COLUMNS.join(", ")) } else { help };
            return Err(
                at(file, n, line, name, format!("unknown column \"{name}\"")).with_help(help)
            );
        };
        if out.insert(*known, i).is_some() {
            return Err(at(file, n, line, name, format!("column \"{name}\" is given twice")));
        }
    }
    if let Some(absent) = NEEDED.iter().find(|c| !out.contains_key(**c)) {
        return Err(at(file, n, line, "", format!("no column \"{absent}\" in the header")));
    }
    Ok(out)
}

/// Reads CSV; rows of the same trial become one record.
///
/// # Errors
/// A diagnostic: unknown or missing column, a value that is no number, a metric given twice in a trial.
pub fn from_csv(file: &str, text: &str) -> Result<Vec<Record>, Diagnostic> {
    let mut rows = lines(file, text)
        .filter(|l| !matches!(l, Ok((_, l)) if l.trim().is_empty() || l.starts_with('#')));
    let (n, line) = rows.next().ok_or_else(|| Diagnostic::file(file, "no header line"))??;
    let columns = header(file, n, line.trim_start_matches('\u{feff}'))?;
    let mut order: Vec<TrialId> = Vec::new();
    let mut records: BTreeMap<TrialId, Record> = BTreeMap::new();
    for row in rows {
        let (n, line) = row?;
        let fields =
            split(line).ok_or_else(|| at(file, n, line, "\"", "a quote is not closed".into()))?;
        if fields.len() != columns.len() {
            return Err(at(
                file,
                n,
                line,
                "",
                format!("{} fields, the header has {}", fields.len(), columns.len()),
            ));
        }
        let get = |c: &str| columns.get(c).map_or("", |i| plain(fields[*i].trim()));
        let trial = trial(file, n, line, &get)?;
        let record = records.entry(trial.clone()).or_insert_with(|| {
            order.push(trial.clone());
            Record { schema: SCHEMA, trial, backend: BackendKind::Imported, ..Record::default() }
        });
        add(record, file, n, line, &get)?;
    }
    Ok(order.iter().filter_map(|t| records.remove(t)).collect())
}

fn trial<'a>(
    file: &str,
    n: usize,
    line: &str,
    get: &impl Fn(&str) -> &'a str,
) -> Result<TrialId, Diagnostic> {
    let repetition =
        match get("repetition") {
            "" => 1,
            r => r.parse().ok().filter(|r| *r > 0).ok_or_else(|| {
                at(file, n, line, r, format!("\"{r}\" is no repetition (1, 2, …)"))
            })?,
        };
    Ok(TrialId {
        experiment: get("experiment").into(),
        device: get("device").into(),
        scheduler: get("scheduler").into(),
        kernel: get("kernel").into(),
        workload: get("workload").into(),
        repetition,
        seed: 0,
    })
}

fn add<'a>(
    record: &mut Record,
    file: &str,
    n: usize,
    line: &str,
    get: &impl Fn(&str) -> &'a str,
) -> Result<(), Diagnostic> {
    match get("status") {
        "" | "complete" => {}
        s => {
            record.status = match s.strip_prefix("invalid: ") {
                Some(why) => Status::Invalid(why.into()),
                None => Status::Failed(s.strip_prefix("failed: ").unwrap_or(s).into()),
            };
        }
    }
    let value = get("value");
    if value.is_empty() {
        if record.status == Status::Complete {
            record.status = Status::Failed("no value".into());
        }
        return Ok(());
    }
    let (name, unit) = (get("metric"), get("unit"));
    if name.is_empty() {
        return Err(at(file, n, line, "", "a value without a metric".into()));
    }
    if record.metrics.iter().any(|m| m.name == name) {
        return Err(at(file, n, line, name, format!("\"{name}\" is given twice for this trial")));
    }
    let higher_is_better = match get("better") {
        "higher" => true,
        "lower" => false,
        // Times are better when short; everything else people measure is a rate.
        "" => !matches!(
            unit.to_lowercase().as_str(),
            "s" | "ms" | "us" | "µs" | "ns" | "seconds" | "usecs/op" | "ms/op"
        ),
        other => {
            return Err(at(
                file,
                n,
                line,
                other,
                format!("\"{other}\" is neither higher nor lower"),
            ));
        }
    };
    let limit = value.strip_prefix('>');
    record.metrics.push(Metric {
        name: name.into(),
        value: number(file, n, line, limit.unwrap_or(value))?,
        unit: unit.into(),
        higher_is_better,
        censored: limit.is_some(),
    });
    Ok(())
}

/// The records as CSV: one row per measure; a trial without figures has one row with its status.
#[must_use]
pub fn to_csv(records: &[Record]) -> String {
    let mut out = COLUMNS.join(",");
    out.push('\n');
    for r in records {
        let status = match &r.status {
            Status::Complete => "complete".to_string(),
            Status::Invalid(why) => format!("invalid: {why}"),
            Status::Failed(why) => format!("failed: {why}"),
        };
        let t = &r.trial;
        let mut row = |metric: &str, unit: &str, better: &str, value: &str| {
            let repetition = t.repetition.to_string();
            let fields = [
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
                status.as_str(),
            ];
            out.push_str(&fields.map(quote).join(","));
            out.push('\n');
        };
        let all = measures(r);
        if all.is_empty() {
            row("", "", "", "");
        }
        for m in all {
            let better = if m.better == Better::Higher { "higher" } else { "lower" };
            let value = format!("{}{}", if m.censored { ">" } else { "" }, m.value);
            row(&m.name, &m.unit, better, &value);
        }
    }
    out
}
