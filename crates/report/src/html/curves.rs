//! The pictures of a workload: latency distribution, curves over time, the head's way.

use iosched_types::LatencyHistogram;

use super::input::{Detail, means};
use super::number::{plain, scale, value};
use crate::svg::{Svg, ticks};

const WIDTH: u32 = 640;
const HEIGHT: u32 = 280;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 620.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 236.0;

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
        Budget { curve: (6_500 / cells).clamp(24, 300), commands: (8_000 / cells).clamp(40, 1_500) }
    }
}

/// One line of a picture.
pub(crate) struct Curve {
    pub(crate) run: usize,
    pub(crate) scheduler: usize,
    pub(crate) points: Vec<(f64, f64)>,
}

struct Axis {
    label: String,
    low: f64,
    high: f64,
    log: bool,
    unit: &'static str,
}

impl Axis {
    fn part(&self, x: f64) -> f64 {
        let f = |v: f64| if self.log { v.max(self.low).ln() } else { v };
        let span = f(self.high) - f(self.low);
        if span > 0.0 { ((f(x) - f(self.low)) / span).clamp(0.0, 1.0) } else { 0.5 }
    }

    fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        if self.log {
            let decades = self.low.log10().ceil() as i32..=self.high.log10().floor() as i32;
            let all: Vec<f64> = decades.map(|e| 10f64.powi(e)).collect();
            if all.len() >= 2 {
                let every = all.len().div_ceil(most + 2);
                return all.iter().step_by(every).map(|v| (*v, value(*v, self.unit))).collect();
            }
            return [self.low, (self.low * self.high).sqrt(), self.high]
                .map(|v| (v, value(v, self.unit)))
                .into();
        }
        let (by, word) = scale(self.high, self.unit);
        let gap = if word.is_empty() { "" } else { " " };
        let t = ticks(self.low / by, self.high / by, most);
        t.into_iter().map(|v| (v * by, format!("{}{gap}{word}", plain(v)))).collect()
    }
}

fn frame(svg: &mut Svg, x: &Axis, y: &Axis) {
    for (v, text) in y.ticks(4) {
        let at = BOTTOM - y.part(v) * (BOTTOM - TOP);
        svg.line("rule", (LEFT, at), (RIGHT, at));
        svg.text((LEFT - 6.0, at + 4.0), "end", &text);
    }
    for (v, text) in x.ticks(6) {
        let at = LEFT + x.part(v) * (RIGHT - LEFT);
        svg.line("rule", (at, TOP), (at, BOTTOM));
        svg.text((at, BOTTOM + 17.0), "middle", &text);
    }
    svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    svg.text(((LEFT + RIGHT) / 2.0, f64::from(HEIGHT) - 6.0), "middle", &x.label);
}

fn draw(title: &str, x: &Axis, y: &Axis, curves: &[Curve]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT, "lines", title);
    frame(&mut svg, x, y);
    for c in curves {
        let points: Vec<(f64, f64)> = c
            .points
            .iter()
            .map(|p| (LEFT + x.part(p.0) * (RIGHT - LEFT), BOTTOM - y.part(p.1) * (BOTTOM - TOP)))
            .collect();
        svg.open(&format!("s{}", c.scheduler % 12), Some(c.run));
        svg.polyline("l", &points);
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

/// The distribution of one histogram, thinned to about `most` points: shares of 100 by latency in ns.
pub(crate) fn distribution(h: &LatencyHistogram, most: usize) -> Vec<(f64, f64)> {
    let total = h.count() as f64;
    let mut out: Vec<(f64, f64)> = Vec::new();
    let (mut seen, mut shown) = (0u64, 0.0);
    for (v, n) in h.iter() {
        let before = seen as f64 / total * 100.0;
        if out.is_empty() {
            out.push((v as f64, 0.0));
        }
        seen += n;
        let share = seen as f64 / total * 100.0;
        // Where the curve jumps, the foot of the jump is a point, too: the slope is not drawn over a gap.
        if share - shown >= 100.0 / most as f64 || seen == h.count() {
            if out.last().is_some_and(|l| l.0 < v as f64 && before > l.1) {
                out.push((v as f64, before));
            }
            out.push((v as f64, share));
            shown = share;
        }
    }
    out
}

/// Cumulative distribution of the latency.
pub(crate) fn latency(title: &str, curves: &[Curve]) -> Option<String> {
    let (low, high) = extent(curves, |p| p.0);
    if curves.iter().all(|c| c.points.is_empty()) {
        return None;
    }
    let low = low.max(1.0);
    let label = "latency (logarithmic)".into();
    let x = Axis { label, low, high: high.max(low * 1.01), log: true, unit: "ns" };
    let y = Axis { label: String::new(), low: 0.0, high: 100.0, log: false, unit: "%" };
    Some(draw(title, &x, &y, curves))
}

/// A quantity over time, from 0.
pub(crate) fn over_time(title: &str, unit: &'static str, curves: &[Curve]) -> Option<String> {
    if curves.iter().all(|c| c.points.len() < 2) {
        return None;
    }
    let high = extent(curves, |p| p.1).1;
    let end = extent(curves, |p| p.0).1;
    let x = Axis { label: "time in s".into(), low: 0.0, high: end, log: false, unit: "" };
    let y = Axis {
        label: String::new(),
        low: 0.0,
        high: if high > 0.0 { high * 1.05 } else { 1.0 },
        log: false,
        unit,
    };
    Some(draw(title, &x, &y, curves))
}

/// The points of a curve, each at the middle of its time.
pub(crate) fn points(curve: &(f64, Vec<f64>), most: usize) -> Vec<(f64, f64)> {
    let (step, values) = means(curve.0, &curve.1, most);
    values.iter().enumerate().map(|(i, v)| ((i as f64 + 0.5) * step, *v)).collect()
}

/// The frame that the dispatch pictures of a workload share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    low: f64,
    high: f64,
    end: f64,
}

impl Span {
    /// That of all pictures together.
    pub(crate) fn of<'a>(details: impl Iterator<Item = &'a Detail>) -> Option<Span> {
        let mut s = Span { low: f64::INFINITY, high: 0.0, end: 0.0 };
        for p in details.flat_map(|d| &d.dispatches) {
            s.low = s.low.min(p.sector as f64);
            s.high = s.high.max((p.sector + u64::from(p.sectors)) as f64);
            s.end = s.end.max(p.t as f64 / 1e9);
        }
        s.low.is_finite().then_some(s)
    }
}

/// Where the commands of one run went: sector over time, a colour per process, a line for the head's way.
pub(crate) fn dispatches(title: &str, d: &Detail, span: Span, most: usize) -> Option<String> {
    if d.dispatches.is_empty() {
        return None;
    }
    let (width, height) = (640.0, 360.0);
    let (left, bottom) = (8.0, height - 30.0);
    let every = d.dispatches.len().div_ceil(most).max(1);
    let at = |p: &iosched_experiment::DispatchPoint| {
        let x = p.t as f64 / 1e9 / span.end.max(1e-9);
        let y = (p.sector as f64 - span.low) / (span.high - span.low).max(1.0);
        (left + x * (width - 2.0 * left), bottom - 6.0 - y * (bottom - 14.0))
    };
    let shown: Vec<_> = d.dispatches.iter().step_by(every).collect();
    let mut pids: Vec<u32> = shown.iter().map(|p| p.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let mut svg = Svg::new(width as u32, height as u32, "way", title);
    svg.line("axis", (left, bottom), (width - left, bottom));
    svg.polyline("head", &shown.iter().map(|p| at(p)).collect::<Vec<_>>());
    for (i, pid) in pids.iter().enumerate().take(12) {
        let last = i == 11;
        let mine = |p: u32| p == *pid || last && p > *pid;
        let dots: Vec<_> = shown.iter().filter(|p| mine(p.pid)).map(|p| at(p)).collect();
        svg.dots(&format!("p{i}"), &dots);
    }
    let end = format!("{} s", plain(span.end));
    svg.text((left, height - 8.0), "start", "0");
    svg.text((width - left, height - 8.0), "end", &end);
    Some(svg.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_distribution_rises_to_one_hundred(v in proptest::collection::vec(1u64..1 << 34, 1..400)) {
            let mut h = LatencyHistogram::default();
            v.iter().for_each(|x| h.record(*x));
            let d = distribution(&h, 40);
            prop_assert!(d.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 <= w[1].1));
            prop_assert!((d.last().unwrap().1 - 100.0).abs() < 1e-9);
            prop_assert!(d.len() <= 90);
        }
    }

    #[test]
    fn an_empty_curve_is_no_picture() {
        assert!(over_time("x", "B/s", &[]).is_none());
        assert!(latency("x", &[]).is_none());
        let flat = Curve { run: 0, scheduler: 0, points: vec![(0.0, 0.0), (1.0, 0.0)] };
        assert!(over_time("x", "B/s", &[flat]).unwrap().contains("</svg>"));
    }
}
