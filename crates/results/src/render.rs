//! Small text renderers: what the command line prints, and Markdown.

use std::fmt::Write as _;

use iosched_types::units::{show_bytes, show_count, show_nanos, three_digits};

use crate::answer::Answer;
use crate::cells::{Analysis, Line};
use crate::grid::{Align, Cell, Grid};
use crate::stats::{CiMethod, Judged, Summary};
use crate::store::{ExperimentRow, TrialRow};

mod comparison;

pub use comparison::{answer_words, comparison};

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
            let [low, high] = ends(c.low, c.high, unit);
            format!("{} [{low}, {high}]", value(centre, unit))
        }
        None => value(centre, unit),
    }
}

/// The ends of an interval, with the digits that tell one from the other: `[3.1 s, 3.1 s]` would be a point.
fn ends(low: f64, high: f64, unit: &str) -> [String; 2] {
    let plain = [low, high].map(|v| value(v, unit));
    if plain[0] != plain[1] || low == high {
        return plain;
    }
    let (by, word) = scale(low, unit);
    let shown = (low / by).abs();
    let decimals = match shown {
        _ if shown < 9.995 => 2,
        _ if shown < 99.95 => 1,
        _ => 0,
    };
    let finer =
        (1..=MORE).map(|m| [low, high].map(|v| format!("{:.*}{word}", decimals + m, v / by)));
    finer.into_iter().find(|e| e[0] != e[1]).unwrap_or(plain)
}

/// Most digits more than usual that tell two ends apart.
const MORE: usize = 6;

/// A number in the unit in which [`value`] shows another that stands beside it, unless it would have no digits there.
#[must_use]
pub fn value_beside(v: f64, other: f64, unit: &str) -> String {
    let (by, word) = scale(other, unit);
    let shown = (v / by).abs();
    if word == scale(v, unit).1 || !(0.01..10_000.0).contains(&shown) {
        return value(v, unit);
    }
    format!("{}{word}", three_digits(v / by))
}

/// The factor and word by which [`value`] shows a number.
fn scale(v: f64, unit: &str) -> (f64, String) {
    let of = |steps: &[(f64, &str)]| {
        let found = steps.iter().find(|(by, _)| v.abs() >= *by).or(steps.last());
        found.map_or((1.0, String::new()), |(by, word)| (*by, (*word).to_string()))
    };
    match unit {
        "ns" => of(&[(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")]),
        "B/s" => {
            let steps = ["GiB", "MiB", "KiB", "B"].iter().zip([30, 20, 10, 0]);
            let steps: Vec<(f64, String)> =
                steps.map(|(w, e)| (f64::from(1u32 << e), format!(" {w}/s"))).collect();
            of(&steps.iter().map(|(by, w)| (*by, w.as_str())).collect::<Vec<_>>())
        }
        "1/s" => of(&[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]),
        "" => (1.0, String::new()),
        _ => (1.0, format!(" {unit}")),
    }
}

/// The centre of a summary: `12.3 ms`, `>52.4 s` with values beyond a limit, which count as the limit.
fn centre_of(s: &Summary, unit: &str) -> String {
    match s.centre() {
        None => "–".into(),
        Some(m) if s.censored > 0 => format!(">{}", value(m, unit)),
        Some(m) => value(m, unit),
    }
}

/// `+4.2 % [+3.9 %, +4.5 %]`, `2.70×` from doubling on.
#[must_use]
pub fn change(j: &Judged) -> String {
    let Some(r) = j.ratio else { return without_ratio(j).into() };
    match j.ratio_ci.filter(|_| !j.exact) {
        Some((low, high)) => {
            let [low, high] = percent_ends(low, high);
            let ends = if low == high { String::new() } else { format!(" [{low}, {high}]") };
            format!("{}{ends}", percent(r))
        }
        None if j.about() => format!("~{}", percent(r)),
        None => percent(r),
    }
}

/// What stands for a change without a ratio: something is infinitely more than nothing.
fn without_ratio(j: &Judged) -> &'static str {
    let nothing = j.base.mean == Some(0.0) && j.base.min == 0.0;
    if nothing && j.new.mean.is_some_and(|m| m > 0.0) { "∞×" } else { "–" }
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

/// The ends of an interval as changes, with the digits that tell one from the other: `−19 %, −19 %` would be a point.
#[must_use]
pub fn percent_ends(low: f64, high: f64) -> [String; 2] {
    let plain = [low, high].map(percent);
    if plain[0] != plain[1] {
        return plain;
    }
    let finer = (1..=3).map(|digits| {
        [low, high].map(|r| {
            let p = (r - 1.0) * 100.0;
            format!("{}{:.digits$} %", if p < 0.0 { '−' } else { '+' }, p.abs())
        })
    });
    let within = low.max(high) < 2.0;
    finer.filter(|_| within).find(|ends| ends[0] != ends[1]).unwrap_or(plain)
}

/// A table without decoration; the columns that `right` names hold numbers.
fn table(heads: &[&str], right: &[&str], rows: Vec<Vec<String>>, columns: usize) -> String {
    grid(heads, right, rows).render(columns, false)
}

fn grid(heads: &[&str], right: &[&str], rows: Vec<Vec<String>>) -> Grid {
    let side = |h: &str| if right.contains(&h) { Align::Right } else { Align::Left };
    let mut grid = heads.iter().fold(Grid::new(), |g, h| g.column(h, side(h)));
    rows.into_iter().for_each(|r| grid.row(r.into_iter().map(Cell::new).collect()));
    grid
}

/// The trials that were traced, in so many columns.
#[must_use]
pub fn traces(traced: &[(TrialRow, u64)], columns: usize) -> String {
    let heads = ["trial", "device", "workload", "scheduler", "run", "commands"];
    let row = |(t, commands): &(TrialRow, u64)| {
        let id = &t.trial;
        vec![
            t.id.to_string(),
            id.device.clone(),
            id.workload.clone(),
            id.scheduler.clone(),
            id.repetition.to_string(),
            commands.to_string(),
        ]
    };
    table(&heads, &["run", "commands"], traced.iter().map(row).collect(), columns)
}

/// Names come from files: control characters (escape sequences among them), and those that turn the direction of a line,
/// must not reach a terminal.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || turns(c) { '\u{fffd}' } else { c }).collect()
}

/// Whether a character turns the direction in which a line is shown.
fn turns(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// As [`printable`], for texts of several lines.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    let odd = |c: char| turns(c) || c.is_control() && c != '\n' && c != '\t';
    text.chars().map(|c| if odd(c) { '\u{fffd}' } else { c }).collect()
}

/// `iosched results list`, in so many columns.
#[must_use]
pub fn list(rows: &[ExperimentRow], columns: usize) -> String {
    let heads = ["name", "id", "created", "trials", "devices", "schedulers", "workloads", "source"];
    let row = |e: &ExperimentRow| {
        let mut trials = match e.planned {
            Some(planned) if e.trials < planned => format!("{} of {planned}", e.trials),
            _ => e.trials.to_string(),
        };
        let bad = [(e.failed, "failed"), (e.invalid, "invalid")];
        let bad: Vec<String> =
            bad.iter().filter(|b| b.0 > 0).map(|(n, word)| format!("{n} {word}")).collect();
        if !bad.is_empty() {
            let _ = write!(trials, " ({})", bad.join(", "));
        }
        vec![
            e.name.clone(),
            e.id.to_string(),
            e.created.clone(),
            trials,
            e.devices.to_string(),
            e.schedulers.to_string(),
            e.workloads.to_string(),
            e.source.clone(),
        ]
    };
    let right = ["id", "devices", "schedulers", "workloads"];
    grid(&heads, &right, rows.iter().map(row).collect()).whole().render(columns, false)
}

/// The trials of an experiment, in so many columns.
#[must_use]
pub fn trials(rows: &[TrialRow], columns: usize) -> String {
    let heads =
        ["scheduler", "trial", "device", "workload", "kernel", "round", "elapsed", "status"];
    let row = |r: &TrialRow| {
        let t = &r.trial;
        let status = if r.reason.is_empty() {
            r.status.clone()
        } else {
            format!("{}: {}", r.status, r.reason)
        };
        vec![
            t.scheduler.clone(),
            r.id.to_string(),
            t.device.clone(),
            t.workload.clone(),
            t.kernel.clone(),
            t.repetition.to_string(),
            show_nanos(r.elapsed as f64),
            status,
        ]
    };
    table(&heads, &["trial", "round", "elapsed"], rows.iter().map(row).collect(), columns)
}

/// The answers, and the analysis as Markdown: a table per device and workload, verdicts against the base.
#[must_use]
pub fn markdown(title: &str, answers: &[Answer], a: &Analysis) -> String {
    let mut out = format!("# {}\n\n", cell(title));
    for answer in answers {
        let (device, goal) = (cell(&answer.device), cell(&answer.goal));
        let _ = writeln!(
            out,
            "- **{device}, {goal}**: {}. ({})",
            cell(&answer.words),
            answer.certainty
        );
        for note in &answer.notes {
            let _ = writeln!(out, "  - {}", cell(note));
        }
    }
    if !answers.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(
        out,
        "Base: `{}`. Intervals are 95 % confidence intervals of the mean. `>` is at least and `~` is about: a \
         run beyond a limit counts as the limit, a starved one as the longest wait.",
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
    if l.starved > 0 {
        notes.push(format!("{} starved", l.starved));
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
    use crate::answer::answers_of;
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
    fn ends_of_values_are_told_apart() {
        assert_eq!(ends(3.101e9, 3.104e9, "ns"), ["3.101 s", "3.104 s"]);
        assert_eq!(ends(4.002e6, 4.003e6, "B/s"), ["3.817 MiB/s", "3.818 MiB/s"]);
        assert_eq!(ends(12_340.0, 12_342.0, "1/s"), ["12.340k/s", "12.342k/s"]);
        assert_eq!(ends(0.50001, 0.50004, ""), ["0.50001", "0.50004"]);
        assert_eq!(ends(312.1, 312.4, "tps"), ["312.1 tps", "312.4 tps"]);
        assert_eq!(ends(1.0, 2.0, "s"), ["1.00 s", "2.00 s"]);
    }

    #[test]
    fn ends_of_an_interval_are_told_apart() {
        assert_eq!(percent_ends(0.808, 0.8125), ["−19.2 %", "−18.8 %"]);
        assert_eq!(percent_ends(0.8101, 0.8102), ["−18.99 %", "−18.98 %"]);
        assert_eq!(percent_ends(0.5, 0.9), ["−50 %", "−10 %"]);
        assert_eq!(percent_ends(1.25, 1.25), ["+25 %", "+25 %"]);
    }

    #[test]
    fn markdown_of_a_published_comparison() {
        let records = published::records("linux-4.12").unwrap();
        let text = markdown(
            "linux-4.12 <script>",
            &answers_of(&records).0,
            &analyse(&records, None, VerdictOptions::default()),
        );
        let answer = text.lines().find(|l| l.starts_with("- **")).unwrap();
        assert!(answer.contains(", throughput**: ") && answer.ends_with(')'), "{answer}");
        assert!(text.contains("&lt;script&gt;") && !text.contains("<script>"));
        assert!(text.contains("## Incomplete") && text.contains("absent from the source"));
        assert!(text.contains("not enough data"));
    }

    #[test]
    fn tables_are_as_wide_as_the_terminal_and_aligned() {
        let row = |id: i64, name: &str| ExperimentRow {
            id,
            name: name.into(),
            created: "2026-01-31T12:00:00Z".into(),
            trials: 12,
            planned: Some(40),
            source: "run".into(),
            ..ExperimentRow::default()
        };
        let rows = [row(1, "desktop"), row(10, "a-name-of-more-than-thirty-letters")];
        for columns in [40, 80, 120, 200] {
            let text = list(&rows, columns);
            assert!(text.lines().all(|l| l.chars().count() <= columns), "{columns}\n{text}");
            assert_eq!(text.matches("12 of 40").count(), 2, "{text}");
        }
        assert!(
            list(&rows, 80).contains("a-name-of-more-than-thirty-letters"),
            "to be typed again"
        );
        let text = list(&rows, 200);
        let at: Vec<_> = text.lines().map(|l| l.find("12 of 40").or(l.find("trials"))).collect();
        assert!(at.windows(2).all(|w| w[0] == w[1]), "{text}");
    }

    #[test]
    fn terminals_are_not_steered_by_names() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(printable("a\u{202e}b"), "a\u{fffd}b");
    }
}
