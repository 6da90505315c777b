//! pg_test_fsync's output.

use iosched_experiment::record::{ABSENT, Metric, Record, TrialId};
use iosched_types::Diagnostic;

use super::iozone::{fresh, number_repetitions, scheduler_mark};
use super::{at, lines, number};

/// Reads pg_test_fsync's output; a line `##### scheduler=NAME` starts the next scheduler.
///
/// Methods printed as n/a are listed in the provenance (`n/a`), since they are neither a figure nor a failure.
///
/// # Errors
/// A diagnostic when there is no result, or a line is damaged.
pub fn from_pg_test_fsync(
    file: &str,
    text: &str,
    trial: &TrialId,
) -> Result<Vec<Record>, Diagnostic> {
    let mut out = vec![fresh(trial, None)];
    let mut section = String::new();
    for line in lines(file, text) {
        let (n, line) = line?;
        if let Some(scheduler) = scheduler_mark(line) {
            out.push(fresh(trial, Some(scheduler)));
        }
        let Some(record) = out.last_mut() else { break };
        if !line.starts_with([' ', '\t', '(', '#']) && line.trim_end().ends_with(':') {
            section = line.trim().trim_end_matches(':').to_string();
        } else if let Some((method, rest)) =
            line.trim().rsplit_once(" ops/sec").map(|(a, b)| (a.trim(), b.trim()))
        {
            let Some((method, ops)) = method.rsplit_once(char::is_whitespace) else {
                return Err(at(file, n, line, method, "a rate without a method".into()));
            };
            let Some(usecs) = rest.strip_suffix("usecs/op") else {
                return Err(at(
                    file,
                    n,
                    line,
                    rest,
                    "no \"usecs/op\" at the end: the line is cut off".into(),
                ));
            };
            let method = method.split_whitespace().collect::<Vec<_>>().join(" ");
            // The same number twice: only one of them is compared.
            for (unit, value, better) in
                [("ops/sec", ops, Some(true)), ("usecs/op", usecs.trim(), None)]
            {
                let name = format!("{section}: {method} [{unit}]");
                let value = number(file, n, line, value)?;
                if record.metrics.iter().any(|m| m.name == name) {
                    return Err(at(
                        file,
                        n,
                        line,
                        &method,
                        format!("\"{method}\" is listed twice in its section"),
                    ));
                }
                record.metrics.push(Metric {
                    name,
                    value,
                    unit: unit.into(),
                    higher_is_better: better,
                    censored: false,
                });
            }
        } else if let Some(method) = line.trim().strip_suffix("n/a") {
            let list = record.provenance.entry(ABSENT.into()).or_default();
            if !list.is_empty() {
                list.push_str("; ");
            }
            list.push_str(&format!("{section}: {}", method.trim()));
        }
    }
    out.retain(|r| !r.metrics.is_empty());
    if out.is_empty() {
        return Err(Diagnostic::file(file, "no line of the form \"method … ops/sec … usecs/op\""));
    }
    number_repetitions(&mut out);
    Ok(out)
}
