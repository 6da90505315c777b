//! Verdicts as text for a terminal.

use std::collections::BTreeSet;

use super::{Advice, Firmness, Kind, Part, Point, Verdict};
use crate::answer::wrap;
use crate::grid::{Align, Cell, Grid};
use crate::render::{percent, printable, value, value_beside};

/// Detail lines of a device.
const LINES: usize = 3;
/// Columns of the matrix: more have no room on a terminal.
const MATRIX: usize = 9;

/// All verdicts: first each device's sentence with its lines, then one matrix.
#[must_use]
pub fn text(verdicts: &[Verdict], columns: usize) -> String {
    let mut out = String::new();
    for v in verdicts {
        out.push_str(&one(v, columns));
        out.push('\n');
    }
    out.push_str(&unsteady(verdicts, columns));
    let mut base = None;
    let differs = |v: &&Verdict| v.matrix.iter().any(|r| r.ratios.iter().any(|r| *r != Some(1.0)));
    for v in verdicts.iter().filter(differs) {
        if base != Some(&v.base) {
            out.push_str(&wrap(
                "",
                2,
                &format!("Times better than {} (= level, ? may be chance)", called(v, &v.base)),
                columns,
            ));
            base = Some(&v.base);
        }
        out.push_str(&matrix(v, columns));
    }
    if base.is_some() {
        out.push('\n');
    }
    out
}

/// Workloads without one rate, each once.
fn unsteady(verdicts: &[Verdict], columns: usize) -> String {
    let mut lines: BTreeSet<String> = BTreeSet::new();
    let mut others: BTreeSet<&str> = BTreeSet::new();
    for v in verdicts {
        for w in &v.unsteady {
            match v.never_steady.get(w) {
                Some(why) => _ = lines.insert(format!("{w} on {} is not steady: {why}", v.device)),
                None => _ = others.insert(w),
            }
        }
    }
    if !others.is_empty() {
        let names: Vec<&str> = others.into_iter().collect();
        lines.insert(format!("The rate changes during {}.", list(&names)));
    }
    let mut out: String = lines.iter().map(|l| wrap("", 2, &printable(l), columns)).collect();
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// `sure, 12 of 12`.
pub(super) fn firm(v: &Verdict) -> String {
    match (v.firmness, v.runs) {
        (_, 0 | 1) if v.repeats => "a replay, which repeats itself".into(),
        (_, n) if v.repeats => format!("{n} equal runs: one draw"),
        (Firmness::Unsure, 0 | 1) => "unsure, one run (--runs 12 tells more)".into(),
        (Firmness::Unsure, n) => format!("unsure, {n} runs"),
        (Firmness::Likely, n) if v.verdict == Advice::Keep => format!("likely, {n} runs"),
        (Firmness::Likely, n) => format!("likely, {} of {n}", v.agree),
        (Firmness::Sure, n) => format!("sure, {} of {n}", v.agree),
    }
}

/// A scheduler as people call it.
pub(super) fn called<'a>(v: &'a Verdict, name: &'a str) -> &'a str {
    v.short.get(name).map_or(name, String::as_str)
}

pub(super) fn all_called(v: &Verdict, names: &[String]) -> String {
    let names: Vec<&str> = names.iter().map(|n| called(v, n)).collect();
    list(&names)
}

/// The advice in few words: `use bfq`.
pub(super) fn opening(v: &Verdict) -> String {
    let name = called(v, &v.scheduler);
    match v.verdict {
        Advice::Use => format!("use {name}"),
        Advice::Keep if !v.remarks.is_empty() => {
            let level = v.matrix.iter().all(|r| r.ratios.iter().all(|r| *r == Some(1.0)));
            format!("{name} is {}", if level { "level with the others" } else { "ahead" })
        }
        Advice::Keep if v.is_beyond_schedulers() => format!("no scheduler helps; keep {name}"),
        Advice::Keep => format!("keep {name}"),
        Advice::Unknown => "cannot tell from one run".into(),
    }
}

/// The sentence, and how sure it is at the end of its line.
fn head(v: &Verdict, columns: usize) -> String {
    let (said, firm) = (printable(&format!("{}: {}", v.device, opening(v))), firm(v));
    let taken = said.chars().count() + firm.chars().count();
    match columns.min(80).checked_sub(taken).filter(|gap| *gap >= 2) {
        Some(gap) => format!("{said}{}{firm}\n", " ".repeat(gap)),
        None => wrap("", 2, &format!("{said} ({firm})"), columns),
    }
}

fn one(v: &Verdict, columns: usize) -> String {
    let mut out = head(v, columns);
    let base = called(v, &v.base);
    let wide = v.gains.iter().chain(&v.demands).map(|p| p.job.chars().count()).max();
    let wide = wide.unwrap_or(0).clamp(8, 24);
    let mut detail = |name: &str, words: &str| {
        let name = format!("  {:wide$}  ", printable(name));
        out.push_str(&wrap(&name, wide + 4, words, columns));
    };
    v.gains.iter().take(LINES).for_each(|p| detail(&p.job, &said(p, base)));
    for p in v.demands.iter().take(LINES) {
        let met = p.met().unwrap_or(false);
        let met = if met { "" } else { ", less than it asks for" };
        detail(&p.job, &format!("{}{met}", amount(p, p.value)));
    }
    match &v.prices[..] {
        [] => {}
        [one] => detail("price", &format!("{}: {}", one.job, said(one, base))),
        all => {
            let all: Vec<String> = all.iter().take(2).map(short).collect();
            detail("price", &all.join(", "));
        }
    }
    for p in v.unproven.iter().take(2) {
        detail("not sure", &format!("{}: {}", p.job, said(p, base)));
    }
    out.push_str(&others(v, columns));
    if !v.set.is_empty() {
        out.push_str(&wrap(&format!("  {:wide$}  ", "set it"), wide + 4, &v.set, columns));
    }
    out
}

/// Lines about the other schedulers, and about what was not run.
fn others(v: &Verdict, columns: usize) -> String {
    let mut out = String::new();
    let mut line = |words: &str| out.push_str(&wrap("  ", 4, words, columns));
    if let Some(o) = &v.other {
        let gains: Vec<String> = o.gains.iter().take(2).map(short).collect();
        let prices: Vec<String> = o.prices.iter().take(2).map(short).collect();
        let price = match &prices[..] {
            [] => String::new(),
            all => format!("; its price: {}", all.join(", ")),
        };
        line(&format!("{}: {}{price}", called(v, &o.scheduler), gains.join(", ")));
    }
    for parts in v.lines(false) {
        let text = |p: &Part| match p {
            Part::Words(words) => words.clone(),
            Part::Scheduler(name) => called(v, name).into(),
        };
        line(&printable(&parts.iter().map(text).collect::<String>()));
    }
    out
}

/// `film 4.7× better`, `save 28 % shorter`.
pub(super) fn short(p: &Point) -> String {
    let waits = p.ask == Kind::Wait;
    match p.ratio {
        Some(r) if waits && r < 0.5 => format!("{} {} as long", p.job, percent(1.0 / r)),
        Some(r) if waits && r < 1.0 => format!("{} {:.0} % longer", p.job, (1.0 / r - 1.0) * 100.0),
        Some(r) if waits && r < 2.0 => {
            format!("{} {:.0} % shorter", p.job, (1.0 - 1.0 / r) * 100.0)
        }
        Some(r) if r >= 2.0 => format!("{} {} better", p.job, percent(r)),
        Some(r) if r >= 1.0 => format!("{} {:.0} % better", p.job, (r - 1.0) * 100.0),
        Some(r) => format!("{} {:.0} % worse", p.job, (1.0 - r) * 100.0),
        None => format!("{} {}", p.job, amount(p, p.value)),
    }
}

/// `7.98`, and `MiB/s`.
pub(super) fn apart(text: &str) -> (&str, &str) {
    text.rsplit_once(' ').unwrap_or((text, ""))
}

/// `8 MiB/s` rather than `8.00 MiB/s`: what is asked for is exact.
pub(super) fn whole(text: &str) -> String {
    let (number, unit) = apart(text);
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}").trim_end().to_string()
}

pub(super) fn shown(v: Option<f64>, unit: &str) -> String {
    match v {
        None => "nothing".into(),
        Some(v) if unit == "%" => format!("{v:.0} %"),
        Some(v) => value(v, unit),
    }
}

/// A figure with its ask: `7.98 of 8 MiB/s`.
pub(super) fn amount(p: &Point, v: Option<f64>) -> String {
    let shown = shown(v, &p.unit);
    match p.ask {
        Kind::Rate(of) => {
            let of = whole(&value(of, &p.unit));
            let (number, unit) = apart(&shown);
            if apart(&of).1 == unit {
                format!("{number} of {of}")
            } else {
                format!("{shown} of {of}")
            }
        }
        Kind::Share(due) => format!("{} of the throughput, {due:.0} % due", shown.trim()),
        Kind::Wait => format!("{shown}{}", of_what(&p.measure)),
        Kind::Most => shown,
    }
}

/// What a wait is of, where its measure is one of I/Os.
fn of_what(measure: &str) -> &'static str {
    let is = |side: &str| measure.starts_with(side) || measure.contains(&format!("/{side}"));
    match measure.ends_with(".p99") {
        true if is("sync.") => " a sync (99 % are faster)",
        _ if is("sync.") => " a sync",
        false if is("read.") => " a read",
        false if is("write.") => " a write",
        _ => "",
    }
}

/// The figure of the base, in the unit of the other.
pub(super) fn beside(p: &Point) -> String {
    match p.value.zip(p.base_value) {
        Some((v, base)) if p.unit != "%" => value_beside(base, v, &p.unit),
        _ => shown(p.base_value, &p.unit),
    }
}

fn said(p: &Point, base: &str) -> String {
    format!("{}; {} under {base}", amount(p, p.value), beside(p))
}

fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_string(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// How many times better than the base, by ask. Schedulers that are alike have one row, those that are level in all one line.
fn matrix(v: &Verdict, columns: usize) -> String {
    let shown = v.asks.len().min(MATRIX);
    let mut grid = Grid::new().column(&printable(&v.device), Align::Left);
    for a in &v.asks[..shown] {
        grid = grid.column(&printable(a), Align::Right);
    }
    let mut rows: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    for row in &v.matrix {
        let cells: Vec<String> =
            row.ratios[..shown].iter().map(|r| r.map_or("?".into(), times)).collect();
        let names = row.schedulers.iter().map(|n| called(v, n));
        match rows.iter_mut().find(|r| r.1 == cells) {
            Some((all, _)) => all.extend(names),
            None => rows.push((names.collect(), cells)),
        }
    }
    let (level, other): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|(_, cells)| cells.iter().all(|c| c == "="));
    for (names, cells) in other {
        let mut all = vec![Cell::new(printable(&names.join(", ")))];
        all.extend(cells.into_iter().map(Cell::new));
        grid.row(all);
    }
    let level = level.iter().map(|(names, _)| format!("{}: = in all", list(names)));
    let level: String = level.map(|l| wrap("", 2, &printable(&l), columns)).collect();
    let more = match v.asks.len() - shown {
        0 => String::new(),
        1 => "and 1 more ask (--format json)\n".into(),
        more => format!("and {more} more asks (--format json)\n"),
    };
    format!("{}{level}{more}", grid.render(columns, false))
}

fn times(r: f64) -> String {
    match r {
        1.0 => "=".into(),
        f64::MAX => "∞".into(),
        _ if r >= 9.95 => format!("{r:.0}"),
        _ if r >= 1.995 => format!("{r:.1}"),
        _ => format!("{r:.2}"),
    }
}
