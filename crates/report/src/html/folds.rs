//! What a workload shows when asked: curves, percentiles, shares, the head's way. Each fold's line says what is in it.

mod commands;
mod course;
mod shares;
mod tries;

use std::collections::BTreeMap;
use std::fmt::Write;

use iosched_results::stats::merged_percentiles;
use serde::Serialize;

use super::curves::{self, Budget, Curve};
use super::input::{Detail, Input};
use super::number::{decimals, place, value};
use super::strip::{names, runs_of};
use super::view::View;
use crate::svg::escape;

/// A fold: what it is, what it says, what is in it.
#[derive(Debug, Serialize)]
pub(crate) struct Fold {
    pub(crate) title: String,
    pub(crate) finding: String,
    pub(crate) html: String,
    /// Shown from the start.
    pub(crate) open: bool,
}

/// What all folds of a workload are made of.
pub(crate) struct Source<'a> {
    pub(crate) view: &'a View,
    pub(crate) input: &'a Input,
    pub(crate) workload: usize,
    pub(crate) budget: Budget,
}

type Found<'a> = Vec<(usize, &'a Detail)>;

const SIDES: [&str; 4] = ["reads", "writes", "trims", "fsyncs"];

impl<'a> Source<'a> {
    fn found(&self, device: usize) -> Found<'a> {
        let detail = |r: usize| {
            let from = self.view.runs[r].from;
            Some((r, self.input.details.get(&(from, self.workload))?))
        };
        runs_of(self.view, device).into_iter().filter_map(detail).collect()
    }

    fn devices(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.view.devices.iter().map(String::as_str).enumerate()
    }

    /// `hdd: finding; ssd: finding`.
    fn finding(&self, of: impl Fn(usize) -> Option<String>) -> String {
        let several = self.view.devices.len() > 1;
        let one = |(d, name): (usize, &str)| {
            let text = of(d)?;
            Some(if several { format!("{name}: {text}") } else { text })
        };
        self.devices().filter_map(one).collect::<Vec<_>>().join("; ")
    }

    /// Curves of the runs of a device; those that are the same are one.
    fn curves(&self, device: usize, f: impl Fn(&Detail) -> Vec<(f64, f64)>) -> Vec<Curve> {
        let mut out: Vec<Curve> = Vec::new();
        for (run, d) in self.found(device) {
            let points = f(d);
            if points.len() < 2 {
                continue;
            }
            let scheduler = self.view.runs[run].scheduler;
            let old = !self.view.names[scheduler].now();
            match out.iter_mut().find(|c| c.points == points) {
                Some(c) => {
                    c.runs.push(run);
                    c.old &= old;
                }
                None => out.push(Curve { runs: vec![run], color: scheduler, old, points }),
            }
        }
        out
    }

    fn figure(&self, title: &str, unit: &str, curves: &[Curve], svg: Option<String>) -> String {
        self.figure_with(title, unit, curves, svg, Curve::mean)
    }

    /// A picture with its key. The key knows the averages of the curves, which the script draws in its place when asked.
    fn figure_with(
        &self,
        title: &str,
        unit: &str,
        curves: &[Curve],
        svg: Option<String>,
        mean: impl Fn(&Curve) -> f64,
    ) -> String {
        let Some(svg) = svg else { return String::new() };
        let key = key_with(self.view, unit, curves, mean);
        format!("<figure><h4>{}</h4>{key}{svg}</figure>", escape(title))
    }

    fn title(&self) -> &str {
        &self.input.workloads[self.workload].title
    }

    /// All folds that have something in them.
    pub(crate) fn folds(&self) -> Vec<Fold> {
        let made = [
            Fold { open: true, ..self.latency() },
            Fold { open: true, ..self.over_time() },
            self.tries(),
            self.phases(),
            self.events(),
            self.cost(),
            self.percentiles(),
            self.sensors(),
            self.shares(),
            self.dispatch(),
            self.device(),
        ];
        made.into_iter().filter(|f| !f.html.is_empty()).collect()
    }

    /// One picture of a device's schedulers `runs`: the latencies of the direction that a measure is about, or throughput
    /// over time.
    pub(crate) fn deciding(
        &self,
        device: usize,
        runs: &[usize],
        measure: &str,
        wait: bool,
    ) -> String {
        let words = [".read.", ".write.", ".trim.", ".sync."];
        let dotted = format!(".{}", measure.replace('/', "."));
        let side = words.iter().position(|w| dotted.contains(w)).filter(|_| wait);
        let shown = |c: Vec<Curve>| -> Vec<Curve> {
            let of = |mut c: Curve| {
                c.runs.retain(|r| runs.contains(r));
                c.color = self.view.runs[*c.runs.first()?].scheduler;
                Some(c)
            };
            c.into_iter().filter_map(of).collect()
        };
        match side {
            Some(side) => {
                let of = |x: &Detail| {
                    let h = x.latency[side].as_ref()?;
                    Some(curves::distribution(h, self.budget.curve.clamp(24, 60)))
                };
                let c = shown(self.curves(device, |x| of(x).unwrap_or_default()));
                let title = format!("{}, {}: share done within a time", self.title(), SIDES[side]);
                let svg = curves::latency(&title, &c);
                self.figure(&title, "ns", &c, svg)
            }
            None => {
                let of =
                    |x: &Detail| Some(curves::points(x.throughput.as_ref()?, self.budget.curve));
                let c = shown(self.curves(device, |x| of(x).unwrap_or_default()));
                let title = format!("{}: throughput over time", self.title());
                let svg = curves::over_time(&title, "B/s", &c);
                self.figure(&title, "B/s", &c, svg)
            }
        }
    }

    fn latency(&self) -> Fold {
        let most = (self.budget.curve / 3).clamp(12, 40);
        let mut html = String::new();
        for (side, word) in SIDES.iter().enumerate() {
            for (d, device) in self.devices() {
                let of =
                    |x: &Detail| x.latency[side].as_ref().map(|h| curves::distribution(h, most));
                let c = self.curves(d, |x| of(x).unwrap_or_default());
                let title = format!("{device}, {word}: share of I/Os done within a time");
                let svg = curves::latency(&format!("{title}, {}", self.title()), &c);
                // The mean of the distribution, not of the points that draw it.
                let mean = |c: &Curve| {
                    let from = c.runs.first().map(|r| self.view.runs[*r].from);
                    let d = from.and_then(|f| self.input.details.get(&(f, self.workload)));
                    d.and_then(|d| d.latency[side].as_ref()).map_or(0.0, |h| h.mean())
                };
                html += &self.figure_with(&title, "ns", &c, svg, mean);
            }
        }
        let finding = self.finding(|d| {
            let side = (0..4).find(|s| self.found(d).iter().any(|f| f.1.latency[*s].is_some()))?;
            let of = |h: &iosched_types::LatencyHistogram| h.percentile(50.0);
            let (low, high) = self.range(d, |x| x.latency[side].as_ref().map(of))?;
            Some(format!("{} median {}", SIDES[side], span(low, high)))
        });
        wrap("Latency distribution", finding, html, "figs")
    }

    /// Smallest and largest of something over the schedulers of a device.
    fn range(&self, device: usize, f: impl Fn(&Detail) -> Option<u64>) -> Option<(u64, u64)> {
        let found = self.found(device);
        let mut all = found.iter().filter_map(|(_, d)| f(d));
        let first = all.next()?;
        Some(all.fold((first, first), |(a, b), x| (a.min(x), b.max(x))))
    }

    fn percentiles(&self) -> Fold {
        const HEAD: [&str; 9] =
            ["p50", "p90", "p95", "p99", "p99.9", "p99.95", "p99.99", "largest", "I/Os"];
        let mut html = String::new();
        for (d, device) in self.devices() {
            for (side, word) in SIDES.iter().enumerate() {
                let row = |d: &Detail| -> Option<Vec<String>> {
                    let h = d.latency[side].as_ref()?;
                    let ns = |v: u64| value(v as f64, "ns");
                    let mut cells: Vec<String> = merged_percentiles([h])
                        .into_iter()
                        .map(|(_, v)| v.map_or_else(|| "–".into(), ns))
                        .collect();
                    cells.extend([ns(h.max()), decimals(h.count() as f64, 0)]);
                    Some(cells)
                };
                // Of all runs at once: a starved run weighs as little here as it has I/Os.
                let title = format!("{device}, {word}: I/Os of all runs together");
                html += &self.table(d, &title, &HEAD.map(String::from), row);
            }
        }
        let finding = self.finding(|d| {
            let all = |x: &Detail| x.latency.iter().flatten().map(|h| h.max()).max();
            let p99 = |x: &Detail| {
                let h = x.latency.iter().flatten().find(|h| h.count() >= 100)?;
                Some(h.percentile(99.0))
            };
            let (low, high) = self.range(d, p99)?;
            let largest = self.range(d, all)?.1;
            Some(format!("p99 {}, largest {}", span(low, high), value(largest as f64, "ns")))
        });
        wrap("Percentiles", finding, html, "")
    }

    /// A table with a line for each group of runs with the same text.
    fn table(
        &self,
        device: usize,
        title: &str,
        head: &[String],
        row: impl Fn(&Detail) -> Option<Vec<String>>,
    ) -> String {
        let mut rows: Vec<(Vec<usize>, Vec<String>)> = Vec::new();
        for (run, d) in self.found(device) {
            let Some(cells) = row(d) else { continue };
            match rows.iter_mut().find(|r| r.1 == cells) {
                Some(r) => r.0.push(run),
                None => rows.push((vec![run], cells)),
            }
        }
        if rows.is_empty() {
            return String::new();
        }
        let mut out = format!(
            "<div class=\"scroll\"><table class=\"dt\"><thead><tr><th scope=\"col\">{}</th>",
            escape(title)
        );
        for h in head {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(h));
        }
        out += "</tr></thead><tbody>";
        for (runs, cells) in rows {
            let ids = runs.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
            let _ = write!(
                out,
                "<tr data-r=\"{ids}\"><th scope=\"row\">{}</th>",
                names(self.view, &runs)
            );
            for c in cells {
                let _ = write!(out, "<td>{}</td>", escape(&c));
            }
            out += "</tr>";
        }
        out + "</tbody></table></div>"
    }

    fn over_time(&self) -> Fold {
        let mut html = String::new();
        let most = self.budget.curve;
        for (d, device) in self.devices() {
            let c = self.curves(d, |x| {
                x.throughput.as_ref().map(|c| curves::points(c, most)).unwrap_or_default()
            });
            let title = format!("{device}: throughput");
            let svg = curves::over_time(&format!("{title}, {}", self.title()), "B/s", &c);
            html += &self.figure(&title, "B/s", &c, svg);
        }
        for (d, device) in self.devices() {
            let c = self.curves(d, |x| {
                x.queue.as_ref().map(|c| curves::points(c, most)).unwrap_or_default()
            });
            let what = self.found(d).iter().find_map(|f| f.1.queue_words).unwrap_or_default();
            let title = format!("{device}: requests {what}");
            let svg = curves::over_time(&format!("{title}, {}", self.title()), "", &c);
            html += &self.figure(&title, "", &c, svg);
        }
        let finding = self.finding(|d| {
            // Where each scheduler settles. The extremes of all curves only say that disks stand still at times.
            let settled = |x: &Detail| {
                let (_, v) = x.throughput.as_ref()?;
                let half = &v[v.len() / 2..];
                (!half.is_empty()).then(|| (half.iter().sum::<f64>() / half.len() as f64) as u64)
            };
            let (low, high) = self.range(d, settled)?;
            let (low, high) = (value(low as f64, "B/s"), value(high as f64, "B/s"));
            let ends = if low == high { low } else { format!("{low} to {high}") };
            Some(format!("second half {ends}"))
        });
        wrap("Throughput over time", finding, html, "figs")
    }

    /// Other curves that were recorded: temperatures, clocks.
    fn sensors(&self) -> Fold {
        let mut html = String::new();
        let mut known: Vec<(String, String)> = Vec::new();
        for (d, device) in self.devices() {
            let mut names: BTreeMap<&String, &String> = BTreeMap::new();
            for (_, x) in self.found(d) {
                names.extend(x.sensors.iter().map(|(n, s)| (n, &s.0)));
            }
            for (name, unit) in names {
                let of = |x: &Detail| {
                    let s = x.sensors.get(name)?;
                    Some(curves::points(&(s.1, s.2.clone()), self.budget.curve))
                };
                let c = self.curves(d, |x| of(x).unwrap_or_default());
                let title = format!("{device}: {name}");
                let svg = curves::over_time(&format!("{title}, {}", self.title()), unit, &c);
                if svg.is_some() && !known.iter().any(|k| k.0 == *name) {
                    known.push((name.clone(), unit.clone()));
                }
                html += &self.figure(&title, unit, &c, svg);
            }
        }
        let finding = known.iter().map(|k| k.0.as_str()).collect::<Vec<_>>().join(", ");
        wrap("Sensors", finding, html, "figs")
    }
}

/// What the lines of a picture are.
pub(crate) fn key(view: &View, curves: &[Curve]) -> String {
    key_of(view, curves, |_| String::new())
}

/// What the lines of a picture are, with their averages: in words, and in percent of the largest.
fn key_with(view: &View, unit: &str, curves: &[Curve], mean: impl Fn(&Curve) -> f64) -> String {
    let most = curves.iter().map(&mean).fold(0.0, f64::max);
    key_of(view, curves, |c| {
        let mean = mean(c);
        let part = if most > 0.0 { mean * 100.0 / most } else { 0.0 };
        format!(" data-v=\"{}\" data-w=\"{}\"", escape(&value(mean, unit)), place(part))
    })
}

fn key_of(view: &View, curves: &[Curve], more: impl Fn(&Curve) -> String) -> String {
    let mut out = String::from("<div class=\"key\">");
    for c in curves {
        let ids = c.runs.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let dash = if c.old { " gone" } else { "" };
        let _ = write!(
            out,
            "<span data-r=\"{ids}\"{} class=\"s{}\"><svg width=\"24\" height=\"8\" aria-hidden=\"true\"><path class=\"l{dash}\" d=\"M0 4H24\"/></svg>{}</span>",
            more(c),
            c.color % 8,
            names(view, &c.runs)
        );
    }
    out + "</div>"
}

fn process_key(names: impl Iterator<Item = (String, usize)>) -> String {
    let mut out = String::from("<div class=\"key\">");
    for (name, color) in names {
        let _ = write!(
            out,
            "<span><svg width=\"10\" height=\"10\" aria-hidden=\"true\"><rect width=\"10\" height=\"10\" fill=\"var(--p{color})\"/></svg>{}</span>",
            escape(&name)
        );
    }
    out + "</div>"
}

fn wrap(title: &str, finding: String, html: String, class: &str) -> Fold {
    let html = if class.is_empty() || html.is_empty() {
        html
    } else {
        format!("<div class=\"{class}\">{html}</div>")
    };
    Fold { title: title.into(), finding, html, open: false }
}

/// `271 µs` or `271 µs to 46.4 ms`.
fn span(low: u64, high: u64) -> String {
    between(value(low as f64, "ns"), value(high as f64, "ns"))
}

/// `3 to 5`, or `3` where both ends are shown alike.
fn between(low: String, high: String) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}

fn tenth(p: f64) -> String {
    if p > 0.0 && p < 0.05 { "< 0.1".into() } else { format!("{p:.1}") }
}

fn whole(x: f64) -> String {
    decimals(x, 0)
}
