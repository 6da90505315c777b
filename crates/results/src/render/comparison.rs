//! `iosched compare`: what became better or worse, in the columns of the terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{centre_of, percent, percent_ends, printable, without_ratio};
use crate::answer::wrap;
use crate::cells::MIXED_LATENCIES;
use crate::compare::{Answer, Change, Comparison, Difference, UNRECORDED};
use crate::stats::{Judged, Summary, Verdict};

/// The changes, what is incomplete, what differs, and a summary. Figures without a measurable difference are
/// only counted unless `all` are wanted.
#[must_use]
pub fn comparison(c: &Comparison, all: bool, columns: usize) -> String {
    let told = |x: &&Change| all || matches!(x.judged.verdict, Verdict::Better | Verdict::Worse);
    let shown: Vec<&Change> = c.changes.iter().filter(told).collect();
    // Names of jobs may be long: where they do not fit, they stand above their figures.
    let longest = shown.iter().map(|x| x.measure.chars().count()).max().unwrap_or(0);
    let width = longest.clamp(MEASURE, columns.saturating_sub(FIGURES).max(MEASURE));
    let mut text = String::new();
    let mut last = None;
    let marked = shown.iter().any(|x| x.judged.about());
    for x in shown {
        if last.as_ref() != Some(&&x.key) {
            let k = &x.key;
            let (workload, device) = (printable(&k.workload), printable(&k.device));
            let _ = writeln!(text, "{workload} on {device}, {}", printable(&k.scheduler));
            let _ = writeln!(text, "  {:width$} {HEAD}", "measure");
            last = Some(&x.key);
        }
        text.push_str(&line(x, width));
    }
    for (base, new) in c.matched.iter().filter(|(base, new)| base != new) {
        let [base, new] = [base, new].map(|n| printable(n));
        let note = format!("note: compared by family: {base} in base, {new} in new");
        text.push_str(&wrap("", 2, &note, columns));
    }
    for (k, why) in &c.incomplete {
        let names = [&k.workload, &k.device, &k.scheduler].map(|n| printable(n));
        let [workload, device, scheduler] = names;
        let _ =
            writeln!(text, "incomplete: {workload} on {device}, {scheduler}: {}", printable(why));
    }
    for (side, unsaid) in unsaid(c) {
        let fields = unsaid.iter().map(|d| printable(&d.field)).collect::<Vec<_>>().join(", ");
        text.push_str(&wrap("", 2, &format!("not recorded in {side}: {fields}"), columns));
    }
    let told = |d: &&Difference| d.base != UNRECORDED && d.new != UNRECORDED;
    for d in c.differing.iter().filter(told) {
        let [field, base, new] = [&d.field, &d.base, &d.new].map(|n| printable(n));
        let _ = writeln!(text, "differs: {field}: {base} in base, {new} in new");
    }
    if c.left_out > 0 {
        let n = c.left_out;
        let note = format!(
            "note: {n} figures of single jobs are not compared, since more than eight jobs have them \
             (--measure job/ compares them)"
        );
        text.push_str(&wrap("", 2, &note, columns));
    }
    if c.unresolved > 0 {
        let what = if c.unresolved == 1 { "percentile is" } else { "percentiles are" };
        let note = format!(
            "note: {} {what} not compared, since some runs have too few I/Os \
             (--measure read.lat.p99.9 compares that one)",
            c.unresolved
        );
        text.push_str(&wrap("", 2, &note, columns));
    }
    if c.mixed_latencies {
        text.push_str(&wrap("", 2, &format!("note: {MIXED_LATENCIES}"), columns));
    }
    if marked {
        text.push_str(&wrap("", 2, BEYOND, columns));
    }
    text.push_str(&summary(c, columns));
    text
}

/// The conditions that a side does not say.
fn unsaid(c: &Comparison) -> Vec<(&'static str, Vec<&Difference>)> {
    let of = |of: fn(&Difference) -> &str| -> Vec<&Difference> {
        c.differing.iter().filter(|d| of(d) == UNRECORDED).collect()
    };
    let both = [("base", of(|d| &d.base)), ("new", of(|d| &d.new))];
    both.into_iter().filter(|(_, unsaid)| !unsaid.is_empty()).collect()
}

const BEYOND: &str = "> at least, ~ about: a run beyond a limit counts as the limit, and one with too few I/Os for \
    a percentile as the longest wait";
/// So many measures with too few runs are named.
const NAMED: usize = 6;
/// Least width of the column of measures.
const MEASURE: usize = 15;
/// Width of all others with the blanks before them.
const FIGURES: usize = 65;
const HEAD: &str = "       base        new  change [95 %]          verdict";

fn line(x: &Change, width: usize) -> String {
    let centre = |s: &Summary| centre_of(s, &x.unit);
    let (base, new) = (centre(&x.judged.base), centre(&x.judged.new));
    let verdict = if x.regression { "REGRESSION".into() } else { short(&x.judged) };
    let (measure, mut change) = (printable(&x.measure), change(&x.judged));
    if x.judged.ratio.is_none()
        && base == new
        && let (Some(before), Some(now)) = (x.judged.base.mean, x.judged.new.mean)
        && before != now
    {
        // What prints alike and differs.
        change = format!("{:+.4} {}", now - before, x.unit);
    }
    let name = if measure.chars().count() > width {
        format!("  {measure}\n  {:width$}", "")
    } else {
        format!("  {measure:width$}")
    };
    format!("{name} {base:>11} {new:>10}  {change:22} {verdict}\n")
}

/// Verdicts that fit the column; the summary line has them in full.
fn short(j: &Judged) -> String {
    match (j.verdict, j.needs) {
        (Verdict::Better, _) => "better".into(),
        (Verdict::Worse, _) => "worse".into(),
        (Verdict::NoMeasurableDifference, _) if j.negligible && j.delta != 0.0 => {
            "negligible".into()
        }
        (Verdict::NoMeasurableDifference, _) => "same".into(),
        (Verdict::NotEnoughData, Some(n)) if n <= 1_000 => format!("needs {n} runs"),
        (v @ Verdict::NotEnoughData, _) => v.to_string(),
        (Verdict::Invalid, _) => "invalid".into(),
    }
}

/// `+4.2 % [+3.9, +4.5]`: the ratio with its interval, if it has one.
fn change(j: &Judged) -> String {
    let Some(r) = j.ratio else { return without_ratio(j).into() };
    if j.exact {
        return format!("{} (exact)", percent(r));
    }
    match j.ratio_ci {
        Some((low, high)) => {
            let [low, high] = percent_ends(low, high);
            if low == high {
                return percent(r);
            }
            let bare = |end: &str| end.trim_end_matches(" %").to_string();
            format!("{} [{}, {}]", percent(r), bare(&low), bare(&high))
        }
        None if j.about() => format!("~{}", percent(r)),
        None => percent(r),
    }
}

/// How many losses are regressions: a threshold is a ratio, so values below zero have none.
fn beyond(regressions: usize, without: usize) -> String {
    match (regressions - without, without) {
        (n, 0) => format!("{n} beyond the threshold"),
        (0, m) => format!("{m} without a ratio, for which no threshold counts"),
        (n, m) => format!("{n} beyond the threshold, {m} without a ratio"),
    }
}

fn summary(c: &Comparison, columns: usize) -> String {
    let of = |v: Verdict| c.changes.iter().filter(|x| x.judged.verdict == v).count();
    let regressions = c.changes.iter().filter(|x| x.regression).count();
    let mut parts = Vec::new();
    for v in [
        Verdict::Worse,
        Verdict::Better,
        Verdict::NoMeasurableDifference,
        Verdict::NotEnoughData,
        Verdict::Invalid,
    ] {
        let n = of(v);
        if v == Verdict::Worse && regressions > 0 {
            let without = c.changes.iter().filter(|x| x.regression && x.judged.ratio.is_none());
            parts.push(format!("{n} {v} ({})", beyond(regressions, without.count())));
        } else if n > 0 {
            parts.push(format!("{n} {v}"));
        }
    }
    let figures = if c.changes.len() == 1 { "figure" } else { "figures" };
    let mut out = format!("{} {figures}:", c.changes.len());
    let mut column = out.chars().count();
    let last = parts.len().saturating_sub(1);
    for (i, part) in parts.iter().enumerate() {
        let part = format!(" {part}{}", if i < last { "," } else { "" });
        let width = part.chars().count();
        if column + width > columns {
            out.push_str("\n ");
            column = 1;
        }
        out.push_str(&part);
        column += width;
    }
    out.push('\n');
    out + &answer(c, columns)
}

/// The answer as one sentence or two, as [`comparison`] ends.
#[must_use]
pub fn answer_words(c: &Comparison) -> String {
    answer(c, usize::MAX).trim_end().replace('\n', " ")
}

/// The last line: what a guard asks.
fn answer(c: &Comparison, columns: usize) -> String {
    match c.answer() {
        Answer::Regression => "Answer: regression.\n".into(),
        Answer::NoRegression => "Answer: no regression.\n".into(),
        Answer::CannotTell => {
            let open: Vec<&Change> = c.changes.iter().filter(|x| x.open).collect();
            let lacking = c.lacking;
            let mut why = Vec::new();
            if !open.is_empty() {
                let better =
                    c.changes.iter().filter(|x| x.judged.verdict == Verdict::Better).count();
                let better =
                    if better > 0 { format!(" ({better} are better)") } else { String::new() };
                why.push(format!(
                    "{} of {} figures leave room for one{better}",
                    open.len(),
                    c.changes.len()
                ));
            }
            if c.changes.is_empty() {
                why.push("no figure was compared".to_string());
            }
            if lacking > 0 {
                why.push(format!("the new side lacks {lacking} cells of the base"));
            }
            let most = open.iter().filter_map(|x| x.needs).max();
            let runs = most.filter(|n| *n <= 1_000);
            let advice = runs.map_or(String::new(), |n| format!("; {n} runs of each would tell"));
            let answer = format!("Answer: cannot tell: {}{advice}.", why.join(", "));
            wrap("", 2, &answer, columns) + &which(&open, columns)
        }
    }
}

/// The figures that leave room, those that need the fewest runs first, with the runs that they need.
fn which(open: &[&Change], columns: usize) -> String {
    let mut by_name: BTreeMap<&str, (usize, Option<usize>)> = BTreeMap::new();
    for x in open {
        let (cells, needs) = by_name.entry(&x.measure).or_insert((0, Some(0)));
        *cells += 1;
        // Unknown where a single one is.
        *needs = needs.zip(x.needs).map(|(a, b)| a.max(b));
    }
    let mut all: Vec<(&str, (usize, Option<usize>))> = by_name.into_iter().collect();
    all.sort_by_key(|(name, (_, needs))| (needs.unwrap_or(usize::MAX), *name));
    let left = all.len().saturating_sub(NAMED);
    let one = |(name, (cells, needs)): &(&str, (usize, Option<usize>))| {
        let cells = if *cells > 1 { format!(" ({cells} cells)") } else { String::new() };
        match needs {
            Some(n) if *n <= 1_000 => format!("{name}{cells} needs {n}"),
            _ => format!("{name}{cells}"),
        }
    };
    let mut named: Vec<String> = all.iter().take(NAMED).map(one).collect();
    if left > 0 {
        named.push(format!("{left} more measures (--all shows each)"));
    }
    match named[..] {
        [] => String::new(),
        _ => wrap("", 2, &format!("Too few runs: {}.", named.join(", ")), columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::CellKey;
    use crate::stats::{Better, Observation, Sample, VerdictOptions, judge};

    fn sample(values: &[f64]) -> Sample {
        let rounds = (1..).zip(values.iter().map(|v| Observation::from(*v))).collect();
        Sample { rounds, ..Sample::default() }
    }

    fn change_of(measure: &str, base: &[f64], new: &[f64], regression: bool) -> Change {
        let key = CellKey {
            device: "hdd-7200".into(),
            workload: "database\u{1b}[31m".into(),
            scheduler: "bfq@6.12".into(),
        };
        let options = VerdictOptions::default();
        let judged = judge(&sample(base), &sample(new), Better::Higher, options);
        let (measure, unit) = (measure.into(), "B/s".into());
        Change { key, measure, unit, judged, regression, open: false, needs: None }
    }

    fn example() -> Comparison {
        let base = [1e8, 1.01e8, 0.99e8, 1.02e8, 1e8, 0.98e8, 1.01e8];
        let slower = base.map(|v| v * 0.7 + 1e5);
        let changes = vec![
            change_of("read.bw", &base, &slower, true),
            change_of("write.bw", &base, &base.map(|v| v + 1e3 * (v % 7.0 - 3.0)), false),
        ];
        Comparison { changes, ..Comparison::default() }
    }

    #[test]
    fn what_changed_is_told_and_the_rest_is_counted() {
        let text = comparison(&example(), false, 80);
        assert!(text.contains("REGRESSION") && !text.contains("write.bw"), "{text}");
        assert!(text.contains("1 worse (1 beyond the threshold)"), "{text}");
        assert!(text.contains("1 no measurable difference"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(comparison(&example(), true, 80).contains("write.bw"));
    }

    #[test]
    fn it_fits_the_columns_and_is_aligned() {
        let mut c = example();
        c.changes[0].measure = "job/program-start/read.clat.p99.9".into();
        for columns in [80, 100, 120, 200] {
            let text = comparison(&c, true, columns);
            assert!(text.lines().all(|l| l.chars().count() <= columns), "{columns}\n{text}");
            let ends: Vec<_> = text.lines().filter_map(|l| l.find(" MiB/s ")).collect();
            assert!(ends.len() == 2 && ends[0] == ends[1], "{columns}\n{text}");
        }
    }
}
