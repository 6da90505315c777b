//! Verdicts as text for a terminal.

use super::{Advice, Firmness, Kind, Point, Verdict};
use crate::answer::wrap;
use crate::grid::{Align, Cell, Grid};
use crate::render::{percent, printable, value};

/// Detail lines of a device.
const LINES: usize = 4;
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
    let mut warned: Vec<&String> = Vec::new();
    for w in verdicts.iter().flat_map(|v| &v.warnings) {
        if !warned.contains(&w) {
            out.push_str(&wrap("", 2, w, columns));
            warned.push(w);
        }
    }
    if !warned.is_empty() {
        out.push('\n');
    }
    let mut base = None;
    for v in verdicts.iter().filter(|v| !v.matrix.is_empty()) {
        if base != Some(&v.base) {
            out.push_str(&wrap("", 2, &format!("Times better than {}", v.base), columns));
            base = Some(&v.base);
        }
        out.push_str(&matrix(v, columns));
    }
    out
}

/// `sure, 12 of 12`.
fn firm(v: &Verdict) -> String {
    match (v.firmness, v.runs) {
        (Firmness::Unsure, 0 | 1) => "unsure, one run".into(),
        (Firmness::Unsure, n) => format!("unsure, {n} runs"),
        (Firmness::Likely, n) if v.verdict == Advice::Keep => format!("{n} runs"),
        (Firmness::Likely, n) => format!("likely, {} of {n}", v.agree),
        (Firmness::Sure, n) => format!("sure, {} of {n}", v.agree),
    }
}

fn one(v: &Verdict, columns: usize) -> String {
    let device = printable(&v.device);
    let head = match v.verdict {
        Advice::Use => format!("{device}: use {}", v.scheduler),
        Advice::Keep => format!("{device}: keep {}", v.scheduler),
        Advice::Unknown => format!("{device}: cannot tell from one run"),
    };
    let firm = firm(v);
    let width = columns.min(80);
    let gap = width.saturating_sub(head.chars().count() + firm.chars().count()).max(2);
    let mut out = format!("{head}{}{firm}\n", " ".repeat(gap));
    let wide = v.gains.iter().chain(&v.prices).map(|p| p.job.chars().count()).max();
    let wide = wide.unwrap_or(0).clamp(8, 24);
    for p in v.gains.iter().take(LINES) {
        out.push_str(&wrap(&format!("  {:wide$}  ", p.job), wide + 4, &said(p, &v.base), columns));
    }
    for p in v.prices.iter().take(2) {
        let words = format!("{}: {}", p.job, said(p, &v.base));
        out.push_str(&wrap(&format!("  {:wide$}  ", "price"), wide + 4, &words, columns));
    }
    let mut line = |words: &str| out.push_str(&wrap("  ", 4, words, columns));
    if !v.level.is_empty() {
        let verb = if v.level.len() == 1 { "is" } else { "are" };
        line(&format!("{} {verb} level with {}", list(&v.level), v.base));
    }
    if let Some(o) = &v.other {
        let gains: Vec<String> = o.gains.iter().take(2).map(short).collect();
        let prices: Vec<String> = o.prices.iter().take(2).map(short).collect();
        let price = match &prices[..] {
            [] => String::new(),
            all => format!("; its price: {}", all.join(", ")),
        };
        line(&format!("{}: {}{price}", o.scheduler, gains.join(", ")));
    }
    if !v.gone.is_empty() {
        let verb = if v.gone.len() == 1 {
            "does as well; this kernel does not have it"
        } else {
            "do as well; this kernel does not have them"
        };
        line(&format!("{} {verb}", list(&v.gone)));
    }
    if v.firmness == Firmness::Unsure {
        line("More runs tell more: --runs 12");
    }
    if !v.set.is_empty() {
        out.push_str(&wrap(&format!("  {:wide$}  ", "set it"), wide + 4, &v.set, usize::MAX));
    }
    out
}

/// `film 4.7× better`.
fn short(p: &Point) -> String {
    match p.ratio {
        Some(r) => format!("{} {}", p.job, percent(r)),
        None => format!("{} {}", p.job, amount(p, p.value)),
    }
}

/// A figure with its ask: `8.0 of 8 MiB/s`.
fn amount(p: &Point, v: Option<f64>) -> String {
    let shown = v.map_or("nothing".into(), |v| value(v, &p.unit));
    match p.ask {
        Kind::Rate(of) => format!("{shown} of {}", value(of, &p.unit)),
        _ => shown,
    }
}

fn said(p: &Point, base: &str) -> String {
    let now = amount(p, p.value);
    let then = p.base_value.map_or("nothing".into(), |v| value(v, &p.unit));
    format!("{now}; {then} under {base}")
}

fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// How many times better than the base, by ask.
fn matrix(v: &Verdict, columns: usize) -> String {
    let shown = v.asks.len().min(MATRIX);
    let mut grid = Grid::new().column(&printable(&v.device), Align::Left);
    for a in &v.asks[..shown] {
        grid = grid.column(&printable(a), Align::Right);
    }
    for row in &v.matrix {
        let cell = |r: &Option<f64>| Cell::new(r.map_or("=".into(), times));
        let mut cells = vec![Cell::new(row.schedulers.join(", "))];
        cells.extend(row.ratios[..shown].iter().map(cell));
        grid.row(cells);
    }
    let more = v.asks.len() - shown;
    let more =
        if more > 0 { format!("and {more} more asks (--format json)\n") } else { String::new() };
    format!("{}{more}\n", grid.render(columns, false))
}

fn times(r: f64) -> String {
    match r {
        _ if r >= 9.95 => format!("{r:.0}"),
        _ if r >= 1.995 => format!("{r:.1}"),
        _ => format!("{r:.2}"),
    }
}
