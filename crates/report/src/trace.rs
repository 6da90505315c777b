//! The page of a block trace: where, how much, how deep and how long over time.

use iosched_trace::summary::{Part, Report, text};
use iosched_types::units::{show_bytes, show_nanos};

use crate::html::squeeze;
use crate::svg::{Svg, escape, ticks};

const WIDTH: u32 = 1232;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 1224.0;
const TOP: f64 = 8.0;

/// A frame of one picture: time to the right, a quantity upwards.
struct Frame {
    svg: Svg,
    bottom: f64,
    /// Nanoseconds of the whole width.
    span: f64,
    most: f64,
}

impl Frame {
    fn new(title: &str, height: u32, span: f64, most: f64) -> Frame {
        let bottom = f64::from(height) - 20.0;
        let svg = Svg::new(WIDTH, height, "picture", title);
        let mut frame =
            Frame { svg, bottom, span: span.max(1.0), most: most.max(f64::MIN_POSITIVE) };
        frame.svg.line("axis", (LEFT, bottom), (RIGHT, bottom));
        for t in ticks(0.0, frame.span / 1e9, 8) {
            let x = frame.x(t * 1e9);
            frame.svg.text((x, bottom + 14.0), "middle", &show_nanos(t * 1e9));
        }
        frame
    }

    fn x(&self, time: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (time / self.span).clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - TOP) * (value / self.most).clamp(0.0, 1.0)
    }

    /// Lines and words at values.
    fn scale(&mut self, at: &[f64], word: impl Fn(f64) -> String) {
        for value in at {
            let y = self.y(*value);
            self.svg.line("grid", (LEFT, y), (RIGHT, y));
            self.svg.text((LEFT - 6.0, y + 4.0), "end", &word(*value));
        }
    }

    /// A line over the parts of the time.
    fn curve(&mut self, class: &str, parts: &[Part], part: u64, of: impl Fn(&Part) -> f64) {
        let middle = |i: usize| (i as f64 + 0.5) * part as f64;
        let at = |(i, p): (usize, &Part)| (self.x(middle(i)), self.y(of(p)));
        let points: Vec<(f64, f64)> = parts.iter().enumerate().map(at).collect();
        self.svg.polyline(class, &points);
    }

    /// Cells of a picture: columns of `rows` counts.
    fn cells(&mut self, class: &str, cells: &[u32], rows: usize, column_ns: u64, used: usize) {
        let peak = cells.iter().copied().max().unwrap_or(0);
        let height = (self.bottom - TOP) / used as f64;
        for (c, column) in cells.chunks(rows).enumerate() {
            let from = c as f64 * column_ns as f64;
            if from > self.span {
                break;
            }
            let (x, to) = (self.x(from), self.x(from + column_ns as f64));
            let levels: Vec<u32> = column.iter().take(used).map(|n| level(*n, peak)).collect();
            let mut row = 0;
            for run in levels.chunk_by(|a, b| a == b) {
                if run[0] > 0 {
                    let y = self.bottom - height * (row + run.len()) as f64;
                    let size = ((to - x).max(0.5), height * run.len() as f64);
                    self.svg.block(&format!("{class} l{}", run[0]), (x, y), size, "");
                }
                row += run.len();
            }
        }
    }
}

/// How dark a count is, from 0 to 4, by its logarithm.
fn level(count: u32, peak: u32) -> u32 {
    if count == 0 {
        return 0;
    }
    let share = f64::from(count).ln_1p() / f64::from(peak).ln_1p().max(f64::MIN_POSITIVE);
    (share * 4.0).ceil().clamp(1.0, 4.0) as u32
}

/// Rows that are not empty, from the lowest on.
fn used(cells: &[&[u32]], rows: usize) -> usize {
    let filled = |r: &usize| cells.iter().any(|c| c.chunks(rows).any(|column| column[*r] > 0));
    (0..rows).rev().find(filled).map_or(1, |r| r + 1)
}

fn offsets(r: &Report, span: f64) -> String {
    let p = &r.picture;
    let rows = p.size.1;
    let used = used(&[&p.reads, &p.writes], rows);
    let most = used as f64 * p.row_bytes as f64;
    let mut frame = Frame::new("Offsets over time", 340, span, most);
    frame.cells("read", &p.reads, rows, p.column_ns, used);
    frame.cells("write", &p.writes, rows, p.column_ns, used);
    frame.scale(&[0.0, most / 4.0, most / 2.0, most * 0.75, most], show_bytes);
    frame.svg.finish()
}

fn bandwidth(r: &Report, span: f64) -> String {
    let rate = |bytes: u64| bytes as f64 * 1e9 / r.part_ns as f64;
    let most = r.parts.iter().map(|p| rate(p.read_bytes.max(p.written_bytes))).fold(0.0, f64::max);
    let mut frame = Frame::new("Bytes per second over time", 180, span, most);
    frame.scale(&[0.0, most / 2.0, most], |v| show_bytes(v) + "/s");
    frame.curve("read", &r.parts, r.part_ns, |p| rate(p.read_bytes));
    frame.curve("write", &r.parts, r.part_ns, |p| rate(p.written_bytes));
    frame.svg.finish()
}

fn depth(r: &Report, span: f64) -> String {
    let most = r.parts.iter().map(|p| p.depth).fold(0.0, f64::max);
    let mut frame = Frame::new("I/Os in flight over time", 160, span, most);
    frame.scale(&ticks(0.0, most, 4), |v| format!("{v}"));
    frame.curve("depth", &r.parts, r.part_ns, |p| p.depth);
    frame.svg.finish()
}

fn latencies(r: &Report, span: f64) -> String {
    let p = &r.picture;
    let used = used(&[&p.latencies], p.latency_rows);
    let mut frame = Frame::new("Latencies over time", 340, span, used as f64);
    frame.cells("all", &p.latencies, p.latency_rows, p.column_ns, used);
    // Rows are quarters of a power of two from 1 µs on.
    let decades: Vec<f64> =
        (0..10).map(|d| 10f64.powi(d).log2() * 4.0).filter(|row| *row <= used as f64).collect();
    frame.scale(&decades, |row| show_nanos(2f64.powf(row / 4.0) * 1e3));
    frame.svg.finish()
}

/// The page of a trace.
#[must_use]
pub fn trace_page(r: &Report) -> String {
    let span = r.span_ns.max(1) as f64;
    let style =
        squeeze(include_str!("../assets/page.css")) + &squeeze(include_str!("../assets/trace.css"));
    let key = "<p class=\"key\"><span class=\"read\"><i></i>reads</span>\
               <span class=\"write\"><i></i>writes and discards</span></p>";
    let mut body = format!("<h2>Offset</h2>{key}{}", offsets(r, span));
    if r.parts.len() > 1 {
        body += &format!("<h2>Bytes per second</h2>{}", bandwidth(r, span));
    }
    if r.depth.is_some() {
        body +=
            &format!("<h2>In flight</h2>{}<h2>Latency</h2>{}", depth(r, span), latencies(r, span));
    }
    body += &format!("<h2>Figures</h2><pre>{}</pre>", escape_lines(&text(r)));
    let title = escape(&format!("Trace {}", r.file));
    include_str!("../assets/trace.html")
        .replace("{title}", &title)
        .replace("{css}", &style)
        .replace("{first}", &escape(&r.first))
        .replace("{body}", &body)
}

/// Text with its line breaks.
fn escape_lines(text: &str) -> String {
    text.lines().map(|l| escape(l) + "\n").collect()
}
