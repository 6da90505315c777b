//! pg_test_fsync's output, of any version since 9.1 and in any language.

use iosched_experiment::record::{ABSENT, Metric, Record, TrialId};
use iosched_types::Diagnostic;

use super::iozone::{fresh, number_repetitions, scheduler_mark};
use super::numbers::Commas;
use super::{at, lines};

/// Methods, which no translation changes.
const METHODS: [&str; 5] =
    ["open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync"];

/// Whether a text is pg_test_fsync's.
pub(super) fn is_one(text: &str) -> bool {
    let ours = |l: &str| row(l).is_some_and(|r| METHODS.contains(&r.method.as_str()));
    text.lines().filter(|l| ours(l)).take(3).count() == 3
}

/// A line with a figure: method, operations a second and, since 9.3, microseconds of one.
struct Row<'a> {
    method: String,
    ops: &'a str,
    usecs: Option<&'a str>,
}

/// The rate has three decimals, behind a point or a comma, and both figures have a unit behind them that the language of
/// the server chooses.
fn row(line: &str) -> Option<Row<'_>> {
    if !line.starts_with([' ', '\t']) {
        return None;
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let rate = |w: &str| {
        let Some((whole, part)) = w.split_once(['.', ',']) else { return false };
        let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        part.len() == 3 && digits(part) && digits(whole)
    };
    let i = words.iter().skip(1).position(|w| rate(w))? + 1;
    if !words.get(i + 1)?.contains('/') {
        return None;
    }
    let time = |w: &&&str| w.bytes().all(|b| b.is_ascii_digit()) && words.len() > i + 3;
    let usecs = words.get(i + 2).filter(time).copied();
    Some(Row { method: words[..i].join(" "), ops: words[i], usecs })
}

/// The numbers in a text.
fn numbers(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_digit()).filter(|d| !d.is_empty()).collect()
}

/// What a section measures.
#[derive(Default)]
struct Section {
    /// The size in its heading.
    kb: String,
    /// How many sections with the methods there were.
    methods: usize,
    /// The kind of the last row.
    last: Option<Kind>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Methods,
    Sizes,
    Other,
    Plain,
}

impl Section {
    /// The English names of section and method.
    fn names(&mut self, method: &str) -> (String, String) {
        let kind = match numbers(method).len() {
            _ if METHODS.contains(&method) => Kind::Methods,
            2.. => Kind::Sizes,
            _ if method.matches([',', '、']).count() == 2 => Kind::Other,
            _ => Kind::Plain,
        };
        if kind == Kind::Methods && self.last != Some(Kind::Methods) {
            self.methods += 1;
        }
        self.last = Some(kind);
        let kb = if self.kb.is_empty() { "8" } else { &self.kb };
        match kind {
            Kind::Methods => {
                let writes = match self.methods {
                    0 | 1 => format!("one {kb}kB write"),
                    _ => format!("two {kb}kB writes"),
                };
                (format!("Compare file sync methods using {writes}"), method.into())
            }
            Kind::Sizes => {
                let n = numbers(method);
                // `2 * 8kB`, whatever words stand around.
                let (times, kb) = (n[0], n[1]);
                let s = if times == "1" { "" } else { "s" };
                let name = format!("{times} * {kb}kB open_sync write{s}");
                ("Compare open_sync with different write sizes".into(), name)
            }
            Kind::Other => {
                let title = "Test if fsync on non-write file descriptor is honored";
                (title.into(), method.into())
            }
            Kind::Plain => (format!("Non-sync'ed {kb}kB writes"), "write".into()),
        }
    }
}

/// Reads pg_test_fsync's output; a line `##### scheduler=NAME` starts the next scheduler. Lines are known by their form and
/// get their English names, so that versions and languages can be compared.
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
    let (mut section, mut timed) = (Section::default(), false);
    for line in lines(file, text) {
        let (n, line) = line?;
        if let Some(scheduler) = scheduler_mark(line) {
            out.push(fresh(trial, Some(scheduler)));
            (section, timed) = (Section::default(), false);
        }
        let Some(record) = out.last_mut() else { break };
        let indented = line.starts_with([' ', '\t']);
        if !indented
            && !line.starts_with(['(', '（', '#'])
            && line.trim_end().ends_with([':', '：'])
        {
            section.kb = numbers(line).last().map(|kb| (*kb).to_string()).unwrap_or_default();
            section.last = None;
        } else if let Some(row) = row(line) {
            let cut = timed && row.usecs.is_none();
            if cut {
                let message = "no time of one operation at the end: the line is cut off";
                return Err(at(file, n, line, row.ops, message.into()));
            }
            timed |= row.usecs.is_some();
            figures(record, &mut section, &row, (file, n, line))?;
        } else if let Some(method) = absent(line) {
            let (section, method) = section.names(method);
            let list = record.provenance.entry(ABSENT.into()).or_default();
            if !list.is_empty() {
                list.push_str("; ");
            }
            list.push_str(&format!("{section}: {method}"));
        } else if indented && line.contains("ops/sec") {
            return Err(at(
                file,
                n,
                line,
                line.trim(),
                "a rate without a method, or no number".into(),
            ));
        }
    }
    out.retain(|r| !r.metrics.is_empty());
    if out.is_empty() {
        return Err(Diagnostic::file(file, "no line of the form \"method … ops/sec … usecs/op\""));
    }
    number_repetitions(&mut out);
    Ok(out)
}

/// The method of a line that has no figure: two words, far apart.
fn absent(line: &str) -> Option<&str> {
    let (method, rest) = line.strip_prefix([' ', '\t'])?.trim().split_once("  ")?;
    (METHODS.contains(&method) && rest.split_whitespace().count() == 1).then_some(method)
}

/// The same number twice: only one of them is compared.
fn figures(
    record: &mut Record,
    section: &mut Section,
    row: &Row<'_>,
    (file, n, line): (&str, usize, &str),
) -> Result<(), Diagnostic> {
    let (section, method) = section.names(&row.method);
    let both = [("ops/sec", Some(row.ops), Some(true)), ("usecs/op", row.usecs, None)];
    for (unit, value, better) in both {
        let Some(value) = value else { continue };
        let name = format!("{section}: {method} [{unit}]");
        let value = Commas::Decimal.number((file, n, line), value)?;
        if record.metrics.iter().any(|m| m.name == name) {
            let message = format!("\"{method}\" is listed twice in its section");
            return Err(at(file, n, line, &row.method, message));
        }
        record.metrics.push(Metric {
            name,
            value,
            unit: unit.into(),
            higher_is_better: better,
            censored: false,
        });
    }
    Ok(())
}
