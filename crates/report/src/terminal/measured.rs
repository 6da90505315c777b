//! What workloads measure themselves: a chart for each figure, a table for each kind of operation.

use iosched_experiment::{DURABLE_AFTER, DURABLE_BW, Metric, OF_ONE, absent_behind};
use iosched_results::stats::{centre_of, mean_of};
use iosched_types::units::three_digits;

use super::cells::{Place, Row};
use super::workload::{Best, Column, Speed};
use super::{Align, Cell, Look, bar};

/// The ends of names of the figures that programs have of each kind of operation, and their columns.
const OF_OPERATIONS: [(&str, &str); 6] = [
    (" rate", "1/s"),
    (" mean latency", "mean"),
    (" p50 latency", "p50"),
    (" p95 latency", "p95"),
    (" p99 latency", "p99"),
    (" max latency", "max"),
];

/// As [`OF_OPERATIONS`], of latencies that a file had as percentiles: `read.clat.p99`.
const OF_TABLES: [(&str, &str); 6] = [
    (".mean", "mean"),
    (".p50", "p50"),
    (".p95", "p95"),
    (".p99", "p99"),
    (".p99.9", "p99.9"),
    (".p99.99", "p99.99"),
];

/// A figure by name, unit, and whether more is better; `None` where neither is.
type Name<'a> = (&'a str, &'a str, Option<bool>);

/// A figure of a row, and whether one of them stopped at a limit.
type Value = (Option<f64>, bool);

/// All figures. Those of operations come last.
pub(super) fn metrics(p: &Place<'_>, look: Look) -> String {
    let mut names: Vec<Name<'_>> = Vec::new();
    // What is durable when stands in the first table.
    let apart = |m: &&Metric| ![DURABLE_BW, DURABLE_AFTER].contains(&m.name.as_str());
    for m in p.rows.iter().flat_map(|r| &r.runs).flat_map(|(r, _)| &r.metrics).filter(apart) {
        if !names.iter().any(|n| n.0 == m.name) {
            names.push((&m.name, &m.unit, m.higher_is_better));
        }
    }
    let operations: Vec<&str> =
        names.iter().filter_map(|n| n.0.strip_suffix(" mean latency")).collect();
    let of_operation = |name: &str| {
        operations.iter().any(|o| {
            let end = name.strip_prefix(o);
            end.is_some_and(|end| OF_OPERATIONS.iter().any(|(e, _)| *e == end))
        })
    };
    let ends_as_latency = |n: &str| n.ends_with(".clat") || n.ends_with(".lat");
    let percentiles: Vec<&str> = names
        .iter()
        .filter_map(|n| n.0.strip_suffix(".mean").filter(|n| ends_as_latency(n)))
        .collect();
    let of_percentiles = |name: &str| {
        let end =
            |t: &&str| name.strip_prefix(*t).is_some_and(|e| e.starts_with(".p") || e == ".mean");
        percentiles.iter().any(end)
    };
    let beside = |name: &str| {
        names.iter().find(|n| n.0.strip_suffix(OF_ONE) == Some(name)).map(|n| (n.0, n.1))
    };
    let is_beside =
        |name: &str| name.strip_suffix(OF_ONE).is_some_and(|of| names.iter().any(|n| n.0 == of));
    let apart = |n: &&Name<'_>| !of_operation(n.0) && !of_percentiles(n.0) && !is_beside(n.0);
    let charts =
        names.iter().filter(apart).map(|n| chart(p, *n, beside(n.0), look) + &absent(p, n.0));
    let tables = operations.iter().map(|o| table(p, o, &OF_OPERATIONS, &names, look));
    let quantiles = percentiles.iter().map(|o| table(p, o, &OF_TABLES, &names, look));
    charts.chain(tables).chain(quantiles).collect()
}

fn value(row: &Row<'_>, name: &str) -> Value {
    let all = row.runs.iter().flat_map(|(r, _)| &r.metrics).filter(|m| m.name == name);
    let values: Vec<(f64, bool)> = all.map(|m| (m.value, m.censored)).collect();
    let all: Vec<f64> = values.iter().map(|v| v.0).collect();
    let beyond = values.iter().any(|v| v.1);
    // Of values beyond a limit a bound of the mean is known.
    (if beyond { mean_of(&all) } else { centre_of(&all) }, beyond)
}

fn column(title: &str, values: &[Value], higher: Option<bool>) -> Column {
    // A value beyond its limit is no mean and never the best.
    let known: Vec<Option<f64>> = values.iter().map(|(v, c)| v.filter(|_| !c)).collect();
    let best = match higher {
        Some(true) => Best::Most,
        Some(false) => Best::Least,
        None => Best::None,
    };
    let mut column = Column::numbers(title, &known, best, three_digits);
    for (cell, (v, censored)) in column.cells.iter_mut().zip(values) {
        if let (true, Some(v)) = (*censored, v) {
            cell.text = format!(">{}", three_digits(*v));
        }
    }
    column
}

/// What the original of the program prints as n/a behind this figure.
fn absent(p: &Place<'_>, figure: &str) -> String {
    let first = p.rows.iter().flat_map(|r| &r.runs).next();
    let program = first.and_then(|(r, _)| r.provenance.get("program"));
    let names = program.into_iter().flat_map(|program| absent_behind(program, figure));
    names.map(|name| format!("\n{name}\n  n/a\n")).collect()
}

/// A figure, with a bar; `beside` is the time of one in another unit.
fn chart(
    p: &Place<'_>,
    (name, unit, higher): Name<'_>,
    beside: Option<(&str, &str)>,
    look: Look,
) -> String {
    let mut values: Vec<Value> = p.rows.iter().map(|r| value(r, name)).collect();
    let most = values.iter().filter_map(|f| f.0).fold(0.0, f64::max);
    // 108 µs would be 0.00 s.
    let (unit, times) = match unit {
        "s" if most > 0.0 && most < 1e-3 => ("µs", 1e6),
        "s" if most > 0.0 && most < 1.0 => ("ms", 1e3),
        unit => (unit, 1.0),
    };
    values.iter_mut().filter_map(|v| v.0.as_mut()).for_each(|v| *v *= times);
    let most = most * times;
    let bars = values.iter().map(|f| f.0.map_or(String::new(), |v| bar(v / most, 24)));
    let numbers = column(unit, &values, higher);
    let each = beside.map(|(name, unit)| {
        let values: Vec<Value> = p.rows.iter().map(|r| value(r, name)).collect();
        let title = if unit == "us" { "µs each".into() } else { format!("{unit} each") };
        column(&title, &values, None)
    });
    let bars = Column::words("", Align::Left, bars);
    let columns = [numbers].into_iter().chain(each).chain([bars]).collect();
    let table = Speed { columns };
    let direction = match higher {
        Some(true) => " (more is better)",
        Some(false) => " (less is better)",
        None => "",
    };
    let title = Cell::new(format!("{name}{direction}")).text;
    format!("{title}\n{}", table.grid(p).render(look.columns(), look.color))
}

/// A kind of operation: how many a second, and how long one takes.
fn table(
    p: &Place<'_>,
    operation: &str,
    ends: &[(&str, &str)],
    names: &[Name<'_>],
    look: Look,
) -> String {
    let mut unit = "";
    let columns = ends.iter().filter_map(|(end, title)| {
        let name = format!("{operation}{end}");
        let (_, its, higher) = names.iter().find(|n| n.0 == name)?;
        let mut values: Vec<Value> = p.rows.iter().map(|r| value(r, &name)).collect();
        if *its == "ns" {
            values.iter_mut().filter_map(|v| v.0.as_mut()).for_each(|v| *v /= 1e3);
        }
        if !end.ends_with(" rate") {
            unit = its;
        }
        Some(column(title, &values, *higher))
    });
    let table = Speed { columns: columns.collect() };
    let unit = if matches!(unit, "us" | "ns") { "µs" } else { unit };
    let title = Cell::new(format!("{operation} (latency in {unit})")).text;
    format!("{title}\n{}", table.grid(p).render(look.columns(), look.color))
}
