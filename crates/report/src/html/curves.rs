//! The pictures of a workload: latency distribution, curves over time, the head's way.

use std::collections::BTreeMap;

use iosched_types::LatencyHistogram;

use super::input::{Detail, means};
use super::number::{scale, sig};
use crate::svg::{Svg, ticks};

const WIDTH: u32 = 640;
const HEIGHT: u32 = 232;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 632.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 208.0;

/// How many points pictures may have, so that a page of many cells stays small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) curve: usize,
    pub(crate) commands: usize,
}

impl Budget {
    /// For a page of so many cells.
    pub(crate) fn new(cells: usize) -> Budget {
        let cells = cells.max(1);
        Budget { curve: (6_000 / cells).clamp(24, 120), commands: (8_000 / cells).clamp(24, 300) }
    }
}

/// One line of a picture: that of all runs with the same figures.
pub(crate) struct Curve {
    pub(crate) runs: Vec<usize>,
    /// Colour.
    pub(crate) color: usize,
    /// The kernel has none of its schedulers.
    pub(crate) old: bool,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Curve {
    /// The average height: its points are equally far apart.
    pub(crate) fn mean(&self) -> f64 {
        self.points.iter().map(|p| p.1).sum::<f64>() / self.points.len().max(1) as f64
    }
}

struct Axis {
    low: f64,
    high: f64,
    log: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From 0, in the unit of the largest.
    fn linear(high: f64, unit: &str, most: usize) -> Axis {
        let (by, word) = scale(high, unit);
        let gap = if word.is_empty() { "" } else { " " };
        if high <= 0.0 {
            // Of nothing but zeros no other number is known: they lie on the lower line.
            return Axis { low: 0.0, high: 1.0, log: false, ticks: vec![(0.0, "0".into())] };
        }
        let t = ticks(0.0, high / by, most);
        let last = t.len().saturating_sub(1);
        let label = |(i, v): (usize, f64)| {
            let number = round(v);
            let word = if i == last { format!("{gap}{word}") } else { String::new() };
            (v * by, format!("{number}{word}"))
        };
        Axis { low: 0.0, high, log: false, ticks: t.into_iter().enumerate().map(label).collect() }
    }

    /// Decades, with halves where there are few.
    fn logarithmic(low: f64, high: f64, unit: &str) -> Axis {
        let (low, high) = (low.max(1e-9), high.max(low * 1.01));
        let decades = (high / low).log10();
        let steps: &[f64] = match decades {
            d if d < 0.7 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
            d if d < 2.6 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let all = (low.log10().floor() as i32..=high.log10().ceil() as i32)
            .flat_map(|e| steps.iter().map(move |s| s * 10f64.powi(e)))
            .filter(|v| *v >= low * 0.999 && *v <= high * 1.001);
        let all: Vec<f64> = all.collect();
        let every = all.len().div_ceil(8).max(1);
        let ticks = all.into_iter().step_by(every).map(|v| (v, short(v, unit))).collect();
        Axis { low, high, log: true, ticks }
    }

    fn part(&self, x: f64) -> f64 {
        let f = |v: f64| if self.log { v.max(self.low).ln() } else { v };
        let span = f(self.high) - f(self.low);
        if span > 0.0 { ((f(x) - f(self.low)) / span).clamp(0.0, 1.0) } else { 0.5 }
    }
}

/// A round number without idle zeros.
fn round(x: f64) -> String {
    let text = sig(x);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

fn short(x: f64, unit: &str) -> String {
    let (by, word) = scale(x, unit);
    format!("{} {word}", round(x / by)).trim_end().into()
}

fn frame(svg: &mut Svg, x: &Axis, y: &Axis) {
    for (v, text) in &y.ticks {
        let at = BOTTOM - y.part(*v) * (BOTTOM - TOP);
        svg.line("rule", (LEFT, at), (RIGHT, at));
        svg.text((LEFT - 6.0, at + 4.0), "end", text);
    }
    for (v, text) in &x.ticks {
        let at = LEFT + x.part(*v) * (RIGHT - LEFT);
        svg.line("rule", (at, TOP), (at, BOTTOM));
        let anchor = if at > RIGHT - 24.0 { "end" } else { "middle" };
        svg.text((at, BOTTOM + 18.0), anchor, text);
    }
}

/// What went on while a curve was measured: bars in its colour above it.
pub(crate) struct Beside {
    pub(crate) runs: Vec<usize>,
    pub(crate) color: usize,
    /// From and to, in seconds.
    pub(crate) spans: Vec<(f64, f64)>,
}

/// Height of the bars of one run.
const BAND: f64 = 5.0;

fn bands(svg: &mut Svg, x: &Axis, beside: &[Beside]) {
    for (i, b) in beside.iter().enumerate() {
        svg.open(&format!("s{}", b.color % 8), &b.runs);
        let y = TOP + BAND * (i as f64 + 0.5);
        for (from, to) in &b.spans {
            let at = |s: f64| LEFT + x.part(s * 1e9) * (RIGHT - LEFT);
            svg.line("band", (at(*from), y), (at(*to).max(at(*from) + 1.0), y));
        }
        svg.close();
    }
}

fn draw(title: &str, x: &Axis, y: &Axis, curves: &[Curve]) -> String {
    draw_beside(title, x, y, curves, &[])
}

fn draw_beside(title: &str, x: &Axis, y: &Axis, curves: &[Curve], beside: &[Beside]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, "lines", title);
    frame(&mut svg, x, y);
    bands(&mut svg, x, beside);
    for c in curves {
        let points: Vec<(f64, f64)> = c
            .points
            .iter()
            .map(|p| (LEFT + x.part(p.0) * (RIGHT - LEFT), BOTTOM - y.part(p.1) * (BOTTOM - TOP)))
            .collect();
        svg.open(&format!("s{}", c.color % 8), &c.runs);
        svg.polyline(if c.old { "l gone" } else { "l" }, &points);
        svg.close();
    }
    svg.finish()
}

fn extent(curves: &[Curve], f: fn(&(f64, f64)) -> f64) -> (f64, f64) {
    curves
        .iter()
        .flat_map(|c| &c.points)
        .map(f)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
}

/// A share of the I/Os in nines: 0.9 is 1, 0.99 is 2.
fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// The distribution of one histogram, thinned to about `most` points: nines by latency in ns. The largest is drawn at the
/// height that so many I/Os resolve.
pub(crate) fn distribution(h: &LatencyHistogram, most: usize) -> Vec<(f64, f64)> {
    let total = h.count() as f64;
    let top = (2.0 * total).log10();
    let mut out: Vec<(f64, f64)> = Vec::new();
    let (mut seen, mut shown) = (0u64, 0.0);
    for (v, n) in h.iter() {
        let before = nines(seen as f64 / total);
        if out.is_empty() {
            out.push((v as f64, 0.0));
        }
        seen += n;
        let now = if seen == h.count() { top } else { nines(seen as f64 / total) };
        // Where the curve jumps, the foot of the jump is a point, too: the slope is not drawn over a gap.
        if now - shown >= top / most as f64 || seen == h.count() {
            if out.last().is_some_and(|l| l.0 < v as f64 && before > l.1) {
                out.push((v as f64, before));
            }
            out.push((v as f64, now));
            shown = now;
        }
    }
    out
}

/// Cumulative distribution of the latency: each line up is ten times rarer.
pub(crate) fn latency(title: &str, curves: &[Curve]) -> Option<String> {
    let (low, high) = extent(curves, |p| p.0);
    if curves.iter().all(|c| c.points.is_empty()) {
        return None;
    }
    let x = Axis::logarithmic(low.max(1.0), high, "ns");
    let high = extent(curves, |p| p.1).1.min(6.0);
    let lines =
        [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];
    let lines = lines.into_iter().map(|(p, t)| (nines(p), t.to_string()));
    let y = Axis { low: 0.0, high, log: false, ticks: lines.filter(|l| l.0 <= high).collect() };
    Some(draw(title, &x, &y, curves))
}

/// A quantity over time, from 0.
pub(crate) fn over_time(title: &str, unit: &str, curves: &[Curve]) -> Option<String> {
    over_time_beside(title, unit, curves, &[])
}

/// The same, with bars above the curves for what went on beside.
pub(crate) fn over_time_beside(
    title: &str,
    unit: &str,
    curves: &[Curve],
    beside: &[Beside],
) -> Option<String> {
    if curves.iter().all(|c| c.points.len() < 2) {
        return None;
    }
    let high = extent(curves, |p| p.1).1;
    let x = Axis::linear(extent(curves, |p| p.0).1 * 1e9, "ns", 6);
    // The curves stay below the bars.
    let room = 1.02 + beside.len() as f64 * BAND / (BOTTOM - TOP);
    let y = Axis::linear(high * room, unit, 5);
    let scaled: Vec<Curve> = curves
        .iter()
        .map(|c| Curve {
            runs: c.runs.clone(),
            points: c.points.iter().map(|p| (p.0 * 1e9, p.1)).collect(),
            ..*c
        })
        .collect();
    Some(draw_beside(title, &x, &y, &scaled, beside))
}

/// Figures by the value of an option, lines of at most two decades on a linear axis: both axes show the points where they
/// are.
pub(crate) fn sweep(title: &str, unit: &str, curves: &[Curve]) -> Option<String> {
    let (left, right) = extent(curves, |p| p.0);
    if curves.iter().all(|c| c.points.len() < 2) || left <= 0.0 {
        return None;
    }
    let mut x = Axis::logarithmic(left, right, "");
    let mut at: Vec<f64> = curves.iter().flat_map(|c| c.points.iter().map(|p| p.0)).collect();
    at.sort_by(f64::total_cmp);
    at.dedup();
    let every = at.len().div_ceil(12).max(1);
    x.ticks = at.into_iter().step_by(every).map(|v| (v, round(v))).collect();
    let (low, high) = extent(curves, |p| p.1);
    let y = if low > 0.0 && high / low > 30.0 {
        Axis::logarithmic(low, high, unit)
    } else {
        Axis::linear(high * 1.02, unit, 5)
    };
    Some(draw(title, &x, &y, curves))
}

/// The points of a curve, each at the middle of its time.
pub(crate) fn points(curve: &(f64, Vec<f64>), most: usize) -> Vec<(f64, f64)> {
    let (step, values) = means(curve.0, &curve.1, most);
    values.iter().enumerate().map(|(i, v)| ((i as f64 + 0.5) * step, *v)).collect()
}

/// The frame that the dispatch pictures of a device share: its whole capacity, and the longest trial of the workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Bytes.
    pub(crate) capacity: f64,
    /// Seconds.
    pub(crate) end: f64,
}

/// Most colours of processes; the rest share the last.
const PROCESSES: usize = 5;

/// Colours by process: the same in all pictures of a workload and device.
pub(crate) fn processes<'a>(details: impl Iterator<Item = &'a Detail>) -> BTreeMap<String, usize> {
    let mut out: BTreeMap<String, usize> = BTreeMap::new();
    let mut names: Vec<String> = Vec::new();
    for d in details {
        for p in &d.dispatches {
            let name = d.process(p.pid);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.sort();
    for (i, name) in names.into_iter().enumerate() {
        out.insert(name, i.min(PROCESSES - 1));
    }
    out
}

/// Where the commands of one run went: sector over time, a colour per process.
pub(crate) fn dispatches(
    title: &str,
    d: &Detail,
    span: Span,
    colors: &BTreeMap<String, usize>,
    most: usize,
) -> Option<String> {
    if d.dispatches.is_empty() {
        return None;
    }
    let (left, right, top, bottom) = (40.0, 316.0, 6.0, 154.0);
    let every = d.dispatches.len().div_ceil(most).max(1);
    let at = |p: &iosched_experiment::DispatchPoint| {
        let x = p.t as f64 / 1e9 / span.end.max(1e-9);
        let y = p.sector as f64 * 512.0 / span.capacity.max(1.0);
        (left + x.min(1.0) * (right - left), bottom - y.min(1.0) * (bottom - top))
    };
    let mut svg = Svg::new(320, 176, "way", title);
    let gb = span.capacity / 1e9;
    let marks = ticks(0.0, gb, 4);
    for v in &marks {
        let y = bottom - v / gb * (bottom - top);
        svg.line("rule", (left, y), (right, y));
        svg.text((left - 6.0, y + 4.0), "end", &round(*v));
    }
    let times = ticks(0.0, span.end, 3);
    for v in &times {
        let x = left + v / span.end * (right - left);
        let anchor = if x > right - 16.0 { "end" } else { "middle" };
        svg.text(
            (x, 172.0),
            anchor,
            &if v == times.last().unwrap_or(v) { format!("{} s", round(*v)) } else { round(*v) },
        );
    }
    let shown: Vec<_> = d.dispatches.iter().step_by(every).collect();
    let mut by: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for p in shown {
        let color = colors.get(&d.process(p.pid)).copied().unwrap_or(PROCESSES - 1);
        by.entry(color).or_default().push(at(p));
    }
    for (color, dots) in by {
        svg.dots(&format!("p{color}"), &dots);
    }
    Some(svg.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_distribution_rises_as_far_as_its_count_resolves(v in proptest::collection::vec(1u64..1 << 34, 1..400)) {
            let mut h = LatencyHistogram::default();
            v.iter().for_each(|x| h.record(*x));
            let d = distribution(&h, 40);
            prop_assert!(d.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1));
            prop_assert!((d.last().unwrap().1 - (2.0 * v.len() as f64).log10()).abs() < 1e-9);
            prop_assert!(d.len() <= 90);
        }
    }

    #[test]
    fn an_empty_curve_is_no_picture() {
        assert!(over_time("x", "B/s", &[]).is_none());
        assert!(latency("x", &[]).is_none());
        let flat =
            Curve { runs: vec![0], color: 0, old: false, points: vec![(0.0, 0.0), (1.0, 0.0)] };
        assert!(over_time("x", "B/s", &[flat]).unwrap().contains("</svg>"));
    }
}
