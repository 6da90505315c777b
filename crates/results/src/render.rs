//! Small text renderers: what the command line prints, and Markdown.

use std::fmt::Write as _;

use iosched_types::units::{show_bytes, show_count, show_nanos, three_digits};

use crate::cells::{Analysis, Line};
use crate::stats::{CiMethod, Judged, Summary};
use crate::store::{ExperimentRow, TrialRow};

mod comparison;

pub use comparison::comparison;

/// A value in the unit people would use: `12.3 ms`, `1.20M/s`, `4.00 MiB/s`.
#[must_use]
pub fn value(v: f64, unit: &str) -> String {
    match unit {
        "ns" => show_nanos(v),
        "B/s" => format!("{}/s", show_bytes(v)),
        "1/s" => format!("{}/s", show_count(v)),
        "" => format!("{v:.3}"),
        _ => format!("{} {unit}", three_digits(v)),
    }
}

/// The centre of a summary with its interval: `12.3 ms [12.0, 12.9]`, `>60.0 s` when censored.
#[must_use]
pub fn summary(s: &Summary, unit: &str) -> String {
    let Some(centre) = s.centre() else { return "–".into() };
    if s.censored > 0 {
        return format!("{} ({} of {} beyond the limit)", centre_of(s, unit), s.censored, s.n);
    }
    match s.ci {
        Some(c) if c.method == CiMethod::Exact => format!("{} (exact)", value(centre, unit)),
        Some(c) => {
            format!("{} [{}, {}]", value(centre, unit), value(c.low, unit), value(c.high, unit))
        }
        None => value(centre, unit),
    }
}

/// The centre of a summary: `12.3 ms`, `median 31.0 s` with some values beyond a limit, `>60.0 s` with most of them.
fn centre_of(s: &Summary, unit: &str) -> String {
    match (s.centre(), s.median) {
        (None, _) => "–".into(),
        (Some(m), Some(_)) if s.censored > 0 => format!("median {}", value(m, unit)),
        (Some(m), None) if s.censored > 0 => format!(">{}", value(m, unit)),
        (Some(m), _) => value(m, unit),
    }
}

/// `+4.2 % [+3.9 %, +4.5 %]`, `2.70×` from doubling on.
#[must_use]
pub fn change(j: &Judged) -> String {
    let Some(r) = j.ratio else { return "–".into() };
    match j.ratio_ci.filter(|_| !j.exact) {
        Some((low, high)) => format!("{} [{}, {}]", percent(r), percent(low), percent(high)),
        None => percent(r),
    }
}

/// A ratio as a change: `−50 %`, `+3.9 %`, `2.70×`, `±0 %` below 0.05 %.
#[must_use]
pub fn percent(ratio: f64) -> String {
    let p = (ratio - 1.0) * 100.0;
    match p.abs() {
        _ if ratio >= 1_000.0 => ">1000×".into(),
        _ if ratio >= 2.0 => format!("{}×", three_digits(ratio)),
        a if a < 0.05 => "±0 %".into(),
        a if a < 9.95 => format!("{}{a:.1} %", if p < 0.0 { '−' } else { '+' }),
        a => format!("{}{a:.0} %", if p < 0.0 { '−' } else { '+' }),
    }
}

/// Columns padded to their widest cell; the last is not padded.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| {
        rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for r in rows {
        let mut line = String::new();
        for (c, cell) in r.iter().enumerate() {
            line.push_str(cell);
            if c + 1 < r.len() {
                line.extend(std::iter::repeat_n(' ', widths[c] - cell.chars().count() + 2));
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The trials that were traced.
#[must_use]
pub fn traces(traced: &[(TrialRow, u64)]) -> String {
    let head = ["trial", "device", "workload", "scheduler", "run", "commands"].map(String::from);
    let mut rows = vec![head.to_vec()];
    for (t, commands) in traced {
        let id = &t.trial;
        rows.push(vec![
            t.id.to_string(),
            printable(&id.device),
            printable(&id.workload),
            printable(&id.scheduler),
            id.repetition.to_string(),
            commands.to_string(),
        ]);
    }
    table(&rows)
}

/// Names come from files: control characters (escape sequences among them) must not reach a terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// `iosched results list`.
#[must_use]
pub fn list(rows: &[ExperimentRow]) -> String {
    let mut out = vec![
        ["id", "name", "created", "trials", "devices", "schedulers", "workloads", "source"]
            .map(String::from)
            .to_vec(),
    ];
    for e in rows {
        let mut trials = match e.planned {
            Some(planned) if e.trials < planned => format!("{} of {planned}", e.trials),
            _ => e.trials.to_string(),
        };
        if e.failed + e.invalid > 0 {
            let _ = write!(trials, " ({} failed, {} invalid)", e.failed, e.invalid);
        }
        out.push(vec![
            e.id.to_string(),
            printable(&e.name),
            e.created.clone(),
            trials,
            e.devices.to_string(),
            e.schedulers.to_string(),
            e.workloads.to_string(),
            printable(&e.source),
        ]);
    }
    table(&out)
}

/// The trials of an experiment.
#[must_use]
pub fn trials(rows: &[TrialRow]) -> String {
    let mut out = vec![
        ["device", "workload", "scheduler", "kernel", "round", "status", "elapsed"]
            .map(String::from)
            .to_vec(),
    ];
    for r in rows {
        let t = &r.trial;
        let status = if r.reason.is_empty() {
            r.status.clone()
        } else {
            format!("{}: {}", r.status, printable(&r.reason))
        };
        out.push(vec![
            printable(&t.device),
            printable(&t.workload),
            printable(&t.scheduler),
            printable(&t.kernel),
            t.repetition.to_string(),
            status,
            show_nanos(r.elapsed as f64),
        ]);
    }
    table(&out)
}

/// The analysis as Markdown: a table per device and workload, verdicts against the base.
#[must_use]
pub fn markdown(title: &str, a: &Analysis) -> String {
    let mut out = format!(
        "# {}\n\nBase: `{}`. Intervals are 95 % confidence intervals of the mean.\n",
        cell(title),
        cell(&a.base)
    );
    let mut last = None;
    for l in &a.lines {
        let place = (&l.key.device, &l.key.workload);
        if last != Some(place) {
            let _ = write!(out, "\n## {} on {}\n\n", cell(&l.key.workload), cell(&l.key.device));
            out.push_str("| scheduler | measure | n | value | change | verdict | notes |\n|---|---|---|---|---|---|---|\n");
            last = Some(place);
        }
        let (moved, words) = l
            .against_base
            .as_ref()
            .map_or(("–".into(), String::new()), |j| (change(j), j.words()));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {moved} | {words} | {} |",
            cell(&l.key.scheduler),
            cell(&l.measure),
            l.summary.n,
            cell(&summary(&l.summary, &l.unit)),
            notes(l)
        );
    }
    if !a.incomplete.is_empty() {
        out.push_str("\n## Incomplete\n\n");
        for (k, why) in &a.incomplete {
            let _ = writeln!(
                out,
                "- {} / {} / {}: {}",
                cell(&k.device),
                cell(&k.workload),
                cell(&k.scheduler),
                cell(why)
            );
        }
    }
    out
}

fn notes(l: &Line) -> String {
    let mut notes = Vec::new();
    if l.noisy {
        notes.push("noisy".to_string());
    }
    if !l.outliers.is_empty() {
        let rounds: Vec<String> = l.outliers.iter().map(u32::to_string).collect();
        notes.push(format!("outlier in round {}", rounds.join(", ")));
    }
    if l.unusable > 0 {
        notes.push(format!("{} unusable", l.unusable));
    }
    notes.join("; ")
}

/// Text inert inside a Markdown table: no markup, no HTML, no line break.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::analyse;
    use crate::published;
    use crate::stats::VerdictOptions;

    #[test]
    fn units_people_use() {
        assert_eq!(value(12_300_000.0, "ns"), "12.3 ms");
        assert_eq!(value(4_194_304.0, "B/s"), "4.00 MiB/s");
        assert_eq!(value(1_200_000.0, "1/s"), "1.20M/s");
        assert_eq!(value(12.34, "s"), "12.3 s");
    }

    #[test]
    fn markdown_of_a_published_comparison() {
        let records = published::records("linux-4.12").unwrap();
        let text =
            markdown("linux-4.12 <script>", &analyse(&records, None, VerdictOptions::default()));
        assert!(text.contains("&lt;script&gt;") && !text.contains("<script>"));
        assert!(text.contains("## Incomplete") && text.contains("absent from the source"));
        assert!(text.contains("not enough data"));
    }

    #[test]
    fn terminals_are_not_steered_by_names() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}
