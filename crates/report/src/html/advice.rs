//! The verdicts on top of the page: those that the terminal begins with, with bars for gains and prices, and one chart.

use iosched_results::verdict::{Firmness, Kind, Part, Point, Verdict};
use serde::Serialize;

use super::curves::Budget;
use super::folds::Source;
use super::input::Input;
use super::verdict::about;
use super::view::View;
use crate::svg::escape;

/// Gains, prices and open figures that are shown.
const BARS: usize = 6;

/// The verdict on a device, as the template sees it.
#[derive(Debug, Serialize)]
pub(crate) struct Advised {
    device: String,
    about: String,
    /// The scheduler to use, as an index.
    winner: Option<usize>,
    /// Markup in which schedulers are marked.
    said: String,
    chip: String,
    class: &'static str,
    bars: Vec<Bar>,
    /// The scheduler of the first bar of a pair, and that of the second.
    pair: [String; 2],
    lines: Vec<String>,
    set: String,
    chart: String,
}

/// A figure under two schedulers.
#[derive(Debug, Serialize)]
struct Bar {
    class: &'static str,
    kind: &'static str,
    name: String,
    now: String,
    then: String,
    /// Lengths in percent of the longer, or of the rate that is asked for.
    widths: [f64; 2],
}

/// The verdicts, and the devices that have none: their answers by goal stay on top.
pub(crate) fn advice(view: &View, input: &Input, budget: Budget) -> Vec<Advised> {
    view.verdicts.iter().map(|v| advised(view, input, budget, v)).collect()
}

fn advised(view: &View, input: &Input, budget: Budget, v: &Verdict) -> Advised {
    let device = view.devices.iter().position(|d| *d == v.device).unwrap_or_default();
    let name = |s: &str| marked(view, v, s);
    let (gains, other, prices) = match &v.other {
        Some(o) => (&o.gains, Some(&o.scheduler), &o.prices),
        None => (&v.gains, None, &v.prices),
    };
    let shown = other.unwrap_or(&v.scheduler);
    let each = [("b", "gain", gains), ("o", "price", prices), ("nd", "not sure", &v.unproven)];
    let mut bars: Vec<Bar> = Vec::new();
    for (class, kind, points) in each {
        bars.extend(points.iter().take(BARS / 2 + 1).map(|p| bar(class, kind, p)));
    }
    Advised {
        device: v.device.clone(),
        about: about(view, input, device),
        winner: view.schedulers.iter().position(|s| *s == v.scheduler),
        said: sentence(view, v),
        chip: v.firmly(),
        class: match v.firmness {
            Firmness::Sure => "ok",
            Firmness::Likely => "",
            Firmness::Unsure => "half",
        },
        chart: chart(view, input, budget, v, gains.first().or_else(|| prices.first()), shown),
        pair: if bars.is_empty() { Default::default() } else { [name(shown), name(&v.base)] },
        bars,
        lines: v.demands.iter().map(demand).chain(lines(view, v)).collect(),
        set: v.set.clone(),
    }
}

/// What a job gets that asks for a rate or a share, where the base is kept.
fn demand(p: &Point) -> String {
    let met = if p.met() == Some(false) { ", less than it asks for" } else { "" };
    format!("{}: {}{met}.", escape(&p.job), escape(&p.figures().0))
}

/// A scheduler's name that the script can replace by a reader's own.
fn marked(view: &View, v: &Verdict, scheduler: &str) -> String {
    let called = escape(v.called(scheduler));
    match view.schedulers.iter().position(|s| s == scheduler) {
        Some(i) => format!("<span data-a=\"{i}\">{called}</span>"),
        None => called,
    }
}

/// The sentence, with the first words in bold.
fn sentence(view: &View, v: &Verdict) -> String {
    let (said, open) = (v.sentence(), v.opening());
    let rest = said.strip_prefix(&open).unwrap_or_default();
    let name = escape(v.called(&v.scheduler));
    let open = escape(&open).replacen(&name, &marked(view, v, &v.scheduler), 1);
    format!("<b>{open}</b>{}", together(rest))
}

/// Markup of a text in which no line begins with a unit.
fn together(text: &str) -> String {
    escape(text).replace(" %", "\u{a0}%")
}

fn bar(class: &'static str, kind: &'static str, p: &Point) -> Bar {
    let (now, then) = p.figures();
    let (x, y) = (p.value.unwrap_or(0.0), p.base_value.unwrap_or(0.0));
    let asked = if let Kind::Rate(n) | Kind::Share(n) = p.ask { n } else { 0.0 };
    let whole = x.max(y).max(asked);
    let part = |v: f64| if whole > 0.0 { (v / whole * 1000.0).round() / 10.0 } else { 0.0 };
    Bar { class, kind, name: p.job.clone(), now, then, widths: [part(x), part(y)] }
}

/// What else is known, a line each.
fn lines(view: &View, v: &Verdict) -> Vec<String> {
    let text = |p: &Part| match p {
        Part::Words(words) => escape(words),
        Part::Scheduler(name) => marked(view, v, name),
    };
    let line = |parts: Vec<Part>| parts.iter().map(text).collect::<String>() + ".";
    let mut out: Vec<String> = v.lines(true).into_iter().map(line).collect();
    for (w, why) in &v.never_steady {
        out.push(format!("{} is not steady: {}.", escape(w), escape(why)));
    }
    let changing = v.unsteady.iter().filter(|w| !v.never_steady.contains_key(*w));
    let changing: Vec<String> = changing.map(|w| escape(w)).collect();
    if !changing.is_empty() {
        out.push(format!("The rate changes during {}.", changing.join(", ")));
    }
    out
}

/// The picture of the ask that decides, under the two schedulers: latencies of a wait and of one job among several, else
/// throughput over time.
fn chart(
    view: &View,
    input: &Input,
    budget: Budget,
    v: &Verdict,
    point: Option<&Point>,
    shown: &str,
) -> String {
    let Some(p) = point else { return String::new() };
    let place = input.workloads.iter().position(|w| w.title == p.workload);
    let (Some(workload), Some(device)) = (place, view.devices.iter().position(|d| *d == v.device))
    else {
        return String::new();
    };
    let one = |s: &str| {
        let of = |r: &super::view::Run| r.device == device && view.schedulers[r.scheduler] == s;
        view.runs.iter().position(of)
    };
    let runs: Vec<usize> = [shown, &v.base].into_iter().filter_map(one).collect();
    let wait = p.ask == Kind::Wait || p.measure.starts_with("job/");
    Source { view, input, workload, budget }.deciding(device, &runs, &p.measure, wait)
}
