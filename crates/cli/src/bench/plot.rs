//! The picture of a benchmark: time a request against processes or depth.

use std::collections::BTreeMap;

use iosched_report::svg::{Svg, ticks};
use iosched_types::units::show_count;

use super::Row;

const WIDTH: u32 = 640;
const HEIGHT: u32 = 320;
/// The area of the curves: left, top, right, bottom.
const LEFT: f64 = 64.0;
const TOP: f64 = 20.0;
const RIGHT: f64 = 500.0;
const BOTTOM: f64 = 270.0;
/// Least distance between the names of two curves.
const NAME: f64 = 14.0;
/// Enough to draw the picture without a page around it.
const STYLE: &str = "text{font:12px sans-serif;fill:#444}path{fill:none}.grid{stroke:#dde1e6}\
    .c0{stroke:#0f8b8d;fill:#0f8b8d}.c1{stroke:#c9266b;fill:#c9266b}.c2{stroke:#b07d00;fill:#b07d00}\
    .c3{stroke:#555d66;fill:#555d66}.c4{stroke:#3a5ccc;fill:#3a5ccc}.c5{stroke:#7a3ab0;fill:#7a3ab0}\
    .c6{stroke:#2e7d32;fill:#2e7d32}.c7{stroke:#a0522d;fill:#a0522d}\
    path.line{fill:none;stroke-width:2}path.dot{fill:none;stroke-width:7;stroke-linecap:round}g text{fill:inherit;stroke:none}";
const COLOURS: usize = 8;

/// What the rows differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Processes,
    Depth,
}

impl Axis {
    /// The one of the two that has several values.
    pub(super) fn of(processes: &[u32], depths: &[u32]) -> Option<Axis> {
        match (processes.len() > 1, depths.len() > 1) {
            (true, false) => Some(Axis::Processes),
            (false, true) => Some(Axis::Depth),
            _ => None,
        }
    }

    fn value(self, row: &Row) -> u32 {
        match self {
            Axis::Processes => row.processes,
            Axis::Depth => row.depth,
        }
    }

    fn name(self, rows: &[Row]) -> String {
        let first = rows.first();
        match self {
            Axis::Processes => {
                format!("processes at depth {}", first.map_or(1, |r| r.depth))
            }
            Axis::Depth => format!("depth of {} processes", first.map_or(1, |r| r.processes)),
        }
    }
}

/// The picture, with a logarithmic axis of processes or depth.
pub(super) fn svg(rows: &[Row], axis: Axis) -> String {
    let mut values: Vec<u32> = rows.iter().map(|r| axis.value(r)).collect();
    values.sort_unstable();
    values.dedup();
    let most = rows.iter().map(|r| r.ns_per_request).fold(1.0, f64::max);
    let (low, high) = (f64::from(values[0]).ln(), f64::from(values[values.len() - 1]).ln());
    let x = |v: u32| LEFT + (f64::from(v).ln() - low) / (high - low).max(1e-9) * (RIGHT - LEFT);
    let y = |ns: f64| BOTTOM - ns / most * (BOTTOM - TOP);
    let title = format!("Nanoseconds a request against {}", axis.name(rows));
    let mut out = Svg::new(WIDTH, HEIGHT, "bench", &title);
    for t in ticks(0.0, most, 6) {
        out.line("grid", (LEFT, y(t)), (RIGHT, y(t)));
        out.text((LEFT - 6.0, y(t) + 4.0), "end", &grouped(t));
    }
    for v in &values {
        out.text((x(*v), BOTTOM + 18.0), "middle", &grouped(f64::from(*v)));
    }
    let below = format!("{} (logarithmic)", axis.name(rows));
    out.text(((LEFT + RIGHT) / 2.0, BOTTOM + 38.0), "middle", &below);
    out.text((8.0, TOP - 8.0), "start", "ns a request");
    for (i, (name, points, at)) in curves(rows, axis, &x, &y).into_iter().enumerate() {
        out.open(&format!("c{}", i % COLOURS), &[]);
        out.polyline("line", &points);
        out.dots("dot", &points);
        out.text((RIGHT + 10.0, at + 4.0), "start", &name);
        out.close();
    }
    out.finish_alone(STYLE)
}

/// A curve: its name, its points, and the height at which the name stands.
type Curve = (String, Vec<(f64, f64)>, f64);

fn curves(
    rows: &[Row],
    axis: Axis,
    x: &impl Fn(u32) -> f64,
    y: &impl Fn(f64) -> f64,
) -> Vec<Curve> {
    let devices = rows.iter().any(|r| r.device != rows[0].device);
    let mut by: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for r in rows {
        let name =
            if devices { format!("{} {}", r.scheduler, r.device) } else { r.scheduler.clone() };
        by.entry(name).or_default().push((x(axis.value(r)), y(r.ns_per_request)));
    }
    let mut all: Vec<Curve> = by
        .into_iter()
        .map(|(name, mut points)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let end = points.last().map_or(BOTTOM, |p| p.1);
            (name, points, end)
        })
        .collect();
    // From the lowest up, a name moves out of the way of the one below it.
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    let mut free = f64::INFINITY;
    for curve in &mut all {
        curve.2 = curve.2.min(free);
        free = curve.2 - NAME;
    }
    all
}

/// A count with commas, as it is read best at an axis.
fn grouped(n: f64) -> String {
    if n < 10_000.0 { format!("{n}") } else { show_count(n) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(scheduler: &str, processes: u32, ns: f64) -> Row {
        Row {
            scheduler: scheduler.into(),
            device: "hdd".into(),
            processes,
            depth: 8,
            requests: 1000,
            requests_per_second: 1e9 / ns,
            ns_per_request: ns,
            checks: "ok".into(),
        }
    }

    #[test]
    fn one_axis_varies() {
        assert_eq!(Axis::of(&[1, 8], &[32]), Some(Axis::Processes));
        assert_eq!(Axis::of(&[1], &[1, 32]), Some(Axis::Depth));
        assert_eq!(Axis::of(&[1], &[32]), None);
        assert_eq!(Axis::of(&[1, 8], &[1, 32]), None);
    }

    #[test]
    fn names_do_not_cover_each_other() {
        let rows = [
            row("bfq", 8, 600.0),
            row("bfq", 1000, 1000.0),
            row("cfq", 8, 500.0),
            row("cfq", 1000, 1010.0),
            row("none", 8, 300.0),
            row("none", 1000, 990.0),
        ];
        let x = |v: u32| f64::from(v);
        let y = |ns: f64| 1000.0 - ns;
        let mut at: Vec<f64> =
            curves(&rows, Axis::Processes, &x, &y).into_iter().map(|c| c.2).collect();
        at.sort_by(f64::total_cmp);
        assert!(at.windows(2).all(|w| w[1] - w[0] >= NAME), "{at:?}");
        let picture = svg(&rows, Axis::Processes);
        assert!(picture.starts_with("<svg xmlns"), "{picture}");
        assert_eq!(picture.matches("class=\"line\"").count(), 3, "{picture}");
    }
}
