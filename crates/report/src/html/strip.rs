//! One figure on one device: a table whose second column is a chart. The script draws the same again.

use std::fmt::Write;

use iosched_results::stats::CiMethod;

use super::matrix::wrappable;
use super::number::{apart, behind, decimals, finer, place, scale, shared, sig};
use super::standing::{against, groups, standing, words};
use super::view::{Cell, Name, Test, View, method};
use crate::svg::escape;

/// Means farther apart than this are dots on a logarithmic axis.
const FAR: f64 = 30.0;
/// Most dots of one line.
const MOST_DOTS: usize = 40;
/// Beyond so many cells the page as written has no dots.
const MOST_DOTTED: usize = 10_000;

/// The axis of a strip.
struct Axis {
    log: Option<(f64, f64)>,
    top: f64,
    ticks: Vec<f64>,
    /// Factor and word of all values; `None` where each has its own.
    unit: Option<(f64, String)>,
}

impl Axis {
    fn of(test: &Test, lines: &[Vec<usize>]) -> Option<Axis> {
        let cells: Vec<&Cell> = lines.iter().map(|g| &test.cells[g[0]]).collect();
        let means: Vec<f64> = cells.iter().filter_map(|c| c.centre()).collect();
        let all = || {
            let rounds = cells.iter().flat_map(|c| c.samples.iter().map(|s| s.0));
            let ends = cells.iter().filter_map(|c| c.summary.as_ref()).map(|s| s.max);
            means.iter().copied().chain(rounds).chain(ends)
        };
        let high = all().fold(0.0, f64::max);
        let low = all().filter(|x| *x > 0.0).fold(f64::INFINITY, f64::min);
        if means.is_empty() {
            return None;
        }
        let (most, least) =
            means.iter().fold((0.0, f64::INFINITY), |(a, b): (f64, f64), m| (a.max(*m), b.min(*m)));
        let far = least > 0.0 && most / least > FAR;
        let unit = if far { None } else { shared(&means, &test.unit) };
        if far {
            let (a, z) = (low.log10().floor(), high.log10().ceil());
            let z = z.max(a + 1.0);
            let ticks = decades(a as i32, z as i32);
            return Some(Axis { log: Some((a, z)), top: high, ticks, unit });
        }
        let by = unit.as_ref().map_or(1.0, |u| u.0);
        let ticks: Vec<f64> = ticks(high / by).into_iter().map(|t| t * by).collect();
        // Where everything is zero, it stands at the left end, and nothing else is named.
        let top = ticks.last().copied().filter(|t| *t > 0.0).unwrap_or(1.0).max(high) * 1.02;
        Some(Axis { log: None, top, ticks, unit })
    }

    fn at(&self, v: f64) -> f64 {
        let x = match self.log {
            Some((a, z)) => (v.max(1e-300).log10() - a) / (z - a) * 100.0,
            None => v / self.top * 100.0,
        };
        x.clamp(0.0, 100.0)
    }

    fn label(&self, i: usize, test: &Test) -> String {
        let t = self.ticks[i];
        match &self.unit {
            _ if t == 0.0 => "0".into(),
            Some((by, word)) => {
                let number = tick(t / by);
                let word = behind(word);
                let last = i + 1 == self.ticks.len() && !word.is_empty();
                if last { format!("{number}<q> {}</q>", escape(word)) } else { number }
            }
            None => {
                let (by, word) = scale(t, &test.unit);
                let word = behind(&word);
                let gap = if word.is_empty() { "" } else { " " };
                format!("{}{gap}{}", tick(t / by), escape(word))
            }
        }
    }
}

/// A round number without idle zeros.
fn tick(x: f64) -> String {
    let text = sig(x);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// Powers of ten in two steps at most: that many labels with units have room on a phone and in two columns.
fn decades(from: i32, to: i32) -> Vec<f64> {
    let every = (to - from).unsigned_abs().div_ceil(2).max(1);
    (from..=to).step_by(every as usize).map(|e| 10f64.powi(e)).collect()
}

/// Round places from 0 on, few enough for labels of three digits in two columns.
fn ticks(max: f64) -> Vec<f64> {
    if max <= 0.0 || !max.is_finite() {
        return vec![0.0];
    }
    let power = 10f64.powf(max.log10().floor());
    let step = match max / power {
        f if f <= 1.5 => 0.5,
        f if f <= 3.0 => 1.0,
        f if f <= 5.0 => 2.0,
        _ => 5.0,
    } * power;
    (0..).map(|i| f64::from(i) * step).take_while(|x| *x <= max + step * 1e-6).collect()
}

/// The names of a line: those that the kernel has, then the others.
pub(crate) fn names(view: &View, runs: &[usize]) -> String {
    let name = |r: &usize| &view.names[view.runs[*r].scheduler];
    let (now, old): (Vec<_>, Vec<_>) = runs.iter().map(name).partition(|n| n.now());
    let last = |n: &Name| n.meaning.until().filter(|_| now.is_empty()).map(str::to_string);
    let until = |n: &Name| {
        last(n).map_or_else(String::new, |l| format!(" <small>until {}</small>", escape(&l)))
    };
    let word = |n: &&Name| wrappable(&n.short);
    let list = |v: &[&Name]| v.iter().map(word).collect::<Vec<_>>().join(" = ");
    let mut out = list(&now);
    if let Some(first) = old.first() {
        let gap = if now.is_empty() { "" } else { " = " };
        // Those that lived until the same kernel say it once.
        let names = match old.iter().all(|n| last(n) == last(first)) {
            true => list(&old) + &until(first),
            false => old.iter().map(|n| word(n) + &until(n)).collect::<Vec<_>>().join(" = "),
        };
        let _ = write!(out, "<span class=\"old\">{gap}{names}</span>");
    }
    out
}

/// A number of a strip: (number, unit).
fn shown(axis: &Axis, test: &Test, v: f64) -> (String, String) {
    let word = axis.unit.clone().unwrap_or_else(|| scale(v, &test.unit)).1;
    (in_digits(axis, test, v, 0), behind(&word).into())
}

/// A number of a strip with some digits more than three.
fn in_digits(axis: &Axis, test: &Test, v: f64, more: usize) -> String {
    let by = axis.unit.as_ref().map_or_else(|| scale(v, &test.unit).0, |u| u.0);
    if test.measure == "fairness.jain" { decimals(v, 3 + more) } else { finer(v / by, more) }
}

/// The strip of a test on a device; empty where no run has a figure.
pub(crate) fn strip(view: &View, test: &Test, title: &str, device: usize) -> String {
    let runs = runs_of(view, device);
    let lines = groups(test, &runs);
    let Some(axis) = Axis::of(test, &lines) else { return String::new() };
    let dotted = view.tests.len() * view.runs.len() <= MOST_DOTTED;
    let log = if axis.log.is_some() { " log" } else { "" };
    let base = view.names.get(view.base).map_or("", |n| n.short.as_str());
    let mut out = format!(
        "<table class=\"strip{log}\"><caption class=\"vh\">{}, {}</caption><colgroup><col class=\"c1\"><col><col class=\"c3\"><col class=\"c4\"><col class=\"c5\"><col class=\"c6\"></colgroup><thead class=\"vh\"><tr><th scope=\"col\">scheduler</th><th scope=\"col\">chart</th><th scope=\"col\">mean</th><th scope=\"col\">95 % interval</th><th scope=\"col\">against {}</th><th scope=\"col\">n</th></tr></thead><tbody>",
        escape(title),
        escape(&view.devices[device]),
        escape(base),
    );
    for g in &lines {
        out.push_str(&line(view, test, g, &axis, dotted));
    }
    out.push_str("<tr class=\"ax\" aria-hidden=\"true\"><td></td><td><div>");
    for (i, t) in axis.ticks.iter().enumerate() {
        let at = place(axis.at(*t));
        let _ = write!(out, "<span style=\"left:{at}%\">{}</span>", axis.label(i, test));
    }
    let note = if axis.log.is_some() { "log axis, no bars" } else { "" };
    let _ = write!(out, "</div></td><td colspan=\"4\">{note}</td></tr></tbody></table>");
    out
}

fn line(view: &View, test: &Test, g: &[usize], axis: &Axis, dotted: bool) -> String {
    let c = &test.cells[g[0]];
    let ids = g.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    let name = names(view, g);
    let (Some(s), Some(v)) = (&c.summary, c.centre()) else {
        let why = escape(c.missing.as_deref().unwrap_or("not measured"));
        return format!(
            "<tr class=\"na\" data-r=\"{ids}\"><th scope=\"row\">{name}</th><td colspan=\"5\" class=\"why\">no value: {why}</td></tr>"
        );
    };
    let stands = g.iter().map(|r| standing(view, test, *r));
    let st = stands
        .reduce(|a, b| if b.class == "base" { b } else { a })
        .unwrap_or_else(|| standing(view, test, g[0]));
    let old = g.iter().all(|r| !view.names[view.runs[*r].scheduler].now());
    let (number, word) = shown(axis, test, v);
    let sign = if s.censored > 0 { "&gt;&#8239;" } else { "" };
    let ci = match s.ci {
        _ if s.n < 2 => String::new(),
        Some(ci) if ci.low == ci.high || ci.method == CiMethod::Exact => "exact".into(),
        Some(ci) => {
            let [low, high] = apart(ci.low, ci.high, |v, more| in_digits(axis, test, v, more));
            format!("{low} – {high}")
        }
        None => String::new(),
    };
    let noisy = if c.noisy {
        " <abbr title=\"standard deviation above 6 % of the mean\">noisy</abbr>".into()
    } else if view.single {
        // Of one value the sign says it. There is no column for more.
        String::new()
    } else {
        beyond(c, s.censored, s.n)
    };
    let why = match (view.single, at_least(c, s.censored)) {
        (true, Some((_, why))) => format!(" title=\"at least: {why}\""),
        _ => String::new(),
    };
    let gap = if word.is_empty() { "" } else { " " };
    format!(
        "<tr class=\"{}{}\" data-r=\"{ids}\"><th scope=\"row\">{name}</th><td class=\"bar\" aria-hidden=\"true\"><div>{}</div></td><td class=\"v\"{why}>{sign}{number}<span>{gap}{}</span></td><td class=\"ci\" title=\"{}\">{ci}{noisy}</td><td class=\"ch\" title=\"{}\">{}</td><td class=\"n\">{}</td></tr>",
        st.class,
        if old { " hist" } else { "" },
        chart(c, v, axis, dotted),
        escape(&word),
        escape(&spread(s, axis, test)),
        words(&st.class),
        against(test, &st),
        if view.single { String::new() } else { s.n.to_string() },
    )
}

/// How many rounds are beyond a limit, and why: where the interval would stand.
fn beyond(c: &Cell, censored: usize, n: usize) -> String {
    let of =
        |(what, why)| format!("<abbr title=\"at least: {why}\">{censored} of {n} {what}</abbr>");
    at_least(c, censored).map(of).unwrap_or_default()
}

/// Why the value is at least what is shown: in a word or two and in a sentence.
fn at_least(c: &Cell, censored: usize) -> Option<(&'static str, &'static str)> {
    match (censored, c.starved) {
        (0, _) => None,
        (_, 0) => Some(("at limit", "a round that stopped at its limit counts as the limit")),
        _ => Some((
            "starved",
            "a round with too few I/Os for this percentile counts as the longest wait",
        )),
    }
}

/// Standard error, deviation and range, for who points at the interval.
fn spread(s: &iosched_results::stats::Summary, axis: &Axis, test: &Test) -> String {
    if s.n < 2 {
        return String::new();
    }
    let value = |x: f64| {
        let (number, word) = shown(axis, test, x);
        if word.is_empty() { number } else { format!("{number} {word}") }
    };
    let mut parts = Vec::new();
    parts.extend(s.se.map(|x| format!("SE {}", value(x))));
    parts.extend(s.sd.map(|x| format!("SD {}", value(x))));
    parts.push(format!("{} to {}", value(s.min), value(s.max)));
    let other = s.ci.filter(|c| c.method != CiMethod::Bca);
    parts.extend(other.map(|c| method(c.method).to_string()));
    parts.join(", ")
}

fn chart(c: &Cell, v: f64, axis: &Axis, dotted: bool) -> String {
    let at = |x: f64| place(axis.at(x));
    let mut out = String::new();
    for t in &axis.ticks {
        let _ = write!(out, "<u style=\"left:{}%\"></u>", at(*t));
    }
    if axis.log.is_none() {
        let _ = write!(out, "<s style=\"width:{}%\"></s>", at(v));
    }
    let s = c.summary.as_ref();
    if let Some((s, ci)) =
        s.and_then(|s| Some((s, s.ci?))).filter(|(s, ci)| s.n > 1 && ci.low < ci.high)
    {
        let tight = axis.at(s.max) - axis.at(s.min) < 4.0;
        if tight {
            let _ = write!(out, "<b class=\"t\" style=\"left:{}%\"></b>", at(v));
        } else {
            let every = c.samples.len().div_ceil(MOST_DOTS).max(1);
            let shown = c.samples.iter().step_by(every).filter(|_| dotted && c.samples.len() > 1);
            for (x, _) in shown {
                let _ = write!(out, "<i style=\"left:{}%\"></i>", at(*x));
            }
            if c.samples.len() < 2 {
                let (low, high) = (axis.at(s.min), axis.at(s.max));
                let _ = write!(
                    out,
                    "<a style=\"left:{}%;width:{}%\"></a>",
                    place(low),
                    place(high - low)
                );
            }
            let (low, high) = (axis.at(ci.low), axis.at(ci.high));
            let _ =
                write!(out, "<b style=\"left:{}%;width:{}%\"></b>", place(low), place(high - low));
        }
    }
    if axis.log.is_some() {
        let _ = write!(out, "<em style=\"left:{}%\"></em>", at(v));
    }
    out
}

/// The runs of a device.
pub(crate) fn runs_of(view: &View, device: usize) -> Vec<usize> {
    (0..view.runs.len()).filter(|r| view.runs[*r].device == device).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_has_three_labels_at_most() {
        assert_eq!(decades(0, 1), [1.0, 10.0]);
        assert_eq!(decades(0, 3), [1.0, 100.0]);
        assert!((1..40).all(|n| decades(-3, n).len() <= 3));
    }

    #[test]
    fn ticks_are_round_and_begin_at_zero() {
        assert_eq!(ticks(863.0), [0.0, 500.0]);
        assert_eq!(ticks(1.1), [0.0, 0.5, 1.0]);
        assert_eq!(ticks(0.0), [0.0]);
        assert_eq!(
            (tick(0.5), tick(1000.0), tick(100.0)),
            ("0.5".into(), "1,000".into(), "100".into())
        );
    }
}
