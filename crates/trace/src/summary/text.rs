//! The figures as text.

use std::fmt::Write as _;

use iosched_types::units::{show_bytes, show_count, show_nanos};

use super::{Latency, Oddity, Report};

/// Columns of a line over time.
const ACROSS: usize = 60;

fn row(out: &mut String, name: &str, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{name:<12} {text}");
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn ns(n: u64) -> String {
    show_nanos(n as f64)
}

fn bytes(n: u64) -> String {
    show_bytes(n as f64)
}

/// A line of blocks, as high as the values.
fn line(values: &[f64]) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = values.len().clamp(1, ACROSS);
    let mean = |c: usize| {
        let (from, to) = (c * values.len() / columns, ((c + 1) * values.len() / columns).max(1));
        let part = &values[from.min(to - 1)..to];
        part.iter().sum::<f64>() / part.len() as f64
    };
    let means: Vec<f64> = (0..columns).map(mean).collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let block = |v: &f64| if most > 0.0 { BLOCKS[(v / most * 8.0).ceil() as usize] } else { ' ' };
    means.iter().map(block).collect()
}

fn latency(l: &Latency) -> String {
    format!(
        "mean {}, p50 {}, p90 {}, p99 {}, p99.9 {}, max {}",
        show_nanos(l.mean_ns),
        ns(l.p50_ns),
        ns(l.p90_ns),
        ns(l.p99_ns),
        ns(l.p999_ns),
        ns(l.max_ns)
    )
}

/// The figures for people.
#[must_use]
pub fn text(r: &Report) -> String {
    let mut out = String::new();
    row(&mut out, "file", &format!("{} ({})", r.file, r.about));
    if !r.disk.is_empty() {
        row(&mut out, "disk", &r.disk);
    }
    row(&mut out, "first", &r.first);
    let rate = if r.span_ns == 0 {
        String::new()
    } else {
        format!(": {}/s, {}/s", show_count(r.iops), show_bytes(r.bytes_per_second))
    };
    row(&mut out, "I/Os", &format!("{} in {}{rate}", r.ios, ns(r.span_ns)));
    operations(&mut out, r);
    row(
        &mut out,
        "sequential",
        &format!("{} begin where the last one of their direction ended", percent(r.sequential)),
    );
    let touched = format!(
        "{} touched ({} read, {} written), up to {}",
        bytes(r.footprint_bytes),
        bytes(r.read_footprint_bytes),
        bytes(r.written_footprint_bytes),
        bytes(r.end_bytes)
    );
    row(&mut out, "footprint", &touched);
    over_time(&mut out, r);
    tasks(&mut out, r);
    remarks(&mut out, r);
    out
}

fn operations(out: &mut String, r: &Report) {
    for o in &r.operations {
        let share = percent(o.ios as f64 / r.ios.max(1) as f64);
        let mut text = format!("{} ({share})", o.ios);
        if o.bytes > 0 {
            text += &format!(", {}", bytes(o.bytes));
        }
        if o.sync > 0 {
            text += &format!(", {} sync", percent(o.sync as f64 / o.ios as f64));
        }
        row(out, o.operation, &text);
        let sizes = o
            .sizes
            .iter()
            .map(|s| format!("{} {}", bytes(s.bytes), percent(s.ios as f64 / o.ios.max(1) as f64)));
        let sizes: Vec<String> = sizes.collect();
        if !sizes.is_empty() {
            row(out, "  sizes", &sizes.join(", "));
        }
        if let Some(l) = &o.latency {
            row(out, "  latency", &latency(l));
        }
        if let Some(l) = &o.device_latency {
            row(out, "  device", &latency(l));
        }
    }
}

fn over_time(out: &mut String, r: &Report) {
    if r.parts.len() < 2 {
        return;
    }
    let each = |f: fn(&super::Part) -> f64| line(&r.parts.iter().map(f).collect::<Vec<_>>());
    let reads = each(|p| p.read_bytes as f64);
    let writes = each(|p| p.written_bytes as f64);
    row(
        out,
        "over time",
        &format!("{} a column", ns(r.part_ns * (r.parts.len().div_ceil(ACROSS)) as u64)),
    );
    for (name, of) in [("  read", reads), ("  written", writes)] {
        if !of.trim().is_empty() {
            row(out, name, &format!("|{of}|"));
        }
    }
    if let Some(d) = &r.depth {
        row(out, "  in flight", &format!("|{}|", each(|p| p.depth)));
        let alone = percent(d.alone);
        row(
            out,
            "in flight",
            &format!("mean {:.2}, at most {}; {alone} find none in flight", d.mean, d.max),
        );
    } else {
        row(out, "in flight", "unknown: the trace has no completions");
    }
}

fn tasks(out: &mut String, r: &Report) {
    if r.tasks.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<20} {:>8} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9}",
        "task", "pid", "I/Os", "read", "written", "sequential", "p50", "p99"
    );
    for t in &r.tasks {
        let of = |f: fn(&Latency) -> u64| t.latency.as_ref().map_or("-".into(), |l| ns(f(l)));
        let name = if t.task.is_empty() { "?" } else { &t.task };
        let _ = writeln!(
            out,
            "{name:<20} {:>8} {:>9} {:>10} {:>10} {:>10} {:>9} {:>9}",
            t.pid,
            t.ios,
            bytes(t.read_bytes),
            bytes(t.written_bytes),
            percent(t.sequential),
            of(|l| l.p50_ns),
            of(|l| l.p99_ns)
        );
    }
    if r.more_tasks > 0 {
        let _ = writeln!(out, "and {} more", r.more_tasks);
    }
}

/// Counts of what is odd, a line each with the first; empty when nothing is.
#[must_use]
pub fn odd(records: u64, oddities: &[Oddity]) -> String {
    let mut out = String::new();
    if !oddities.is_empty() {
        let _ = writeln!(out, "of {records} records:");
    }
    for o in oddities {
        let _ = write!(out, "{:>8}  {}", o.count, o.what);
        match (o.first, o.text.is_empty()) {
            (0, _) => {}
            (n, true) => {
                let _ = write!(out, " (first at byte {n})");
            }
            (n, false) => {
                let _ = write!(out, " (first in line {n}: {})", o.text.trim());
            }
        }
        out.push('\n');
    }
    out
}

fn remarks(out: &mut String, r: &Report) {
    if !r.oddities.is_empty() {
        out.push('\n');
        *out += &odd(r.records, &r.oddities);
    }
    for note in &r.notes {
        let _ = writeln!(out, "note: {note}");
    }
    for doubt in &r.doubts {
        let _ = writeln!(out, "warning: {doubt}");
    }
}
