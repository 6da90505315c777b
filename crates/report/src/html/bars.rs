//! Charts of bars, each a table at the same time.

use iosched_results::stats::{Better, CiMethod};
use serde::Serialize;

use super::number::{change, plain, scale};
use super::view::{Cell, Test, View, method};

/// Most dots of one bar in the page as written.
const MOST_DOTS: usize = 40;

/// Beyond so many cells there are no dots in the page as written.
const MOST_DOTTED: usize = 10_000;

/// A chart of bars that is a table at the same time.
#[derive(Debug, Serialize)]
pub(crate) struct Bars {
    id: usize,
    title: String,
    /// `MB/s, more is better`.
    unit: String,
    flags: Vec<&'static str>,
    groups: Vec<Group>,
}

#[derive(Debug, Serialize)]
struct Group {
    device: String,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    run: usize,
    color: usize,
    label: String,
    /// Per cent of the chart's width; negative when there is no number.
    bar: String,
    ci: Option<(String, String)>,
    samples: Vec<(String, bool)>,
    text: String,
    note: String,
    tip: String,
    verdict: String,
    /// CSS class of the verdict: `vb`, `vw`, `vn`, `ve`.
    shade: String,
    missing: Option<String>,
}

pub(crate) fn percent(x: f64) -> String {
    let t = format!("{x:.1}");
    t.trim_end_matches('0').trim_end_matches('.').into()
}

/// The words of a letter of [`super::view::letter`].
pub(crate) fn verdict_words(c: char) -> &'static str {
    match c {
        'b' => "better",
        'w' => "worse",
        'n' => "no measurable difference",
        'e' => "not enough data",
        'i' => "invalid",
        'B' => "better (exact)",
        'W' => "worse (exact)",
        'N' => "level (exact)",
        _ => "",
    }
}

fn row(view: &View, test: &Test, run: usize, top: f64, by: (f64, &str)) -> Row {
    let (r, c) = (&view.runs[run], &test.cells[run]);
    let part = |x: f64| percent((x / top * 100.0).clamp(0.0, 100.0));
    let mut out = Row {
        run,
        color: r.scheduler % 12,
        label: view.schedulers[r.scheduler].clone(),
        bar: c.centre().map_or_else(|| "0".into(), part),
        ci: None,
        samples: Vec::new(),
        text: String::new(),
        note: String::new(),
        tip: String::new(),
        verdict: String::new(),
        shade: String::new(),
        missing: c.missing.clone(),
    };
    let (Some(s), Some(v)) = (&c.summary, c.centre()) else { return out };
    let sign = if s.censored > 0 { ">" } else { "" };
    out.text = format!("{sign}{}", plain(v / by.0));
    if s.n > 1 {
        if let Some(ci) = s.ci {
            let (low, high) = ((ci.low / top).clamp(0.0, 1.0), (ci.high / top).clamp(0.0, 1.0));
            out.ci = Some((percent(low * 100.0), percent((high - low) * 100.0)));
            out.note = format!("±{}", plain((ci.high - ci.low) / 2.0 / by.0));
            let (a, b) = (plain(ci.low / by.0), plain(ci.high / by.0));
            let how = match ci.method {
                CiMethod::Bca => String::new(),
                m => format!(" ({})", method(m)),
            };
            out.tip = format!("n = {}, 95 % CI {a} to {b} {}{how}", s.n, by.1);
        }
        // More would be a smear; the script has them all.
        let every = c.samples.len().div_ceil(MOST_DOTS).max(1);
        let shown = c.samples.iter().enumerate().filter(|(i, s)| s.1 || i % every == 0);
        if view.tests.len() * view.runs.len() <= MOST_DOTTED {
            out.samples = shown.map(|(_, x)| (part(x.0), x.1)).collect();
        }
    }
    let base = view
        .runs
        .iter()
        .position(|b| b.device == r.device && b.scheduler == view.base)
        .filter(|b| *b != run);
    if let Some(b) = base {
        let letter = c.pairs.get(b).copied().unwrap_or('.');
        let ratio = test.cells[b].centre().filter(|x| *x > 0.0).map(|x| v / x);
        let words = verdict_words(letter);
        let lead = ratio.map(change).unwrap_or_default();
        out.verdict = if words.is_empty() { lead } else { format!("{lead} {words}") };
        out.shade = format!("v{}", letter.to_ascii_lowercase()).replace('.', "");
    } else {
        out.verdict = "base".into();
    }
    out
}

/// The largest value drawn.
pub(crate) fn top(test: &Test) -> f64 {
    let of = |c: &Cell| -> f64 {
        let ci = c.summary.as_ref().and_then(|s| s.ci).map_or(0.0, |i| i.high);
        let samples = c.samples.iter().map(|s| s.0).fold(0.0, f64::max);
        c.centre().unwrap_or(0.0).max(ci).max(samples)
    };
    let most = test.cells.iter().map(of).fold(0.0, f64::max);
    if most > 0.0 { most } else { 1.0 }
}

pub(crate) fn direction(test: &Test) -> &'static str {
    match test.better {
        Better::Higher => "more is better",
        Better::Lower => "less is better",
    }
}

pub(crate) fn bars(view: &View, id: usize) -> Bars {
    let test = &view.tests[id];
    let top = top(test);
    let (by, word) = scale(top, &test.unit);
    let rows = |d: usize| -> Vec<Row> {
        (0..view.runs.len())
            .filter(|r| view.runs[*r].device == d)
            .map(|r| row(view, test, r, top, (by, &word)))
            .collect()
    };
    let groups = view
        .devices
        .iter()
        .enumerate()
        .map(|(d, device)| Group { device: device.clone(), rows: rows(d) })
        .collect();
    let comma = if word.is_empty() { "" } else { ", " };
    let flags =
        [(test.noisy, "noisy"), (test.incomplete, "incomplete"), (test.little, "little change")]
            .into_iter()
            .filter_map(|(on, w)| on.then_some(w))
            .collect();
    Bars {
        id,
        title: test.title.clone(),
        unit: format!("{word}{comma}{}", direction(test)),
        flags,
        groups,
    }
}
