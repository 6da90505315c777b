//! A program's own figures carry its answer. What is noted of each of its operations tells where the time goes; beside
//! what the benchmark prints, the rates of a dozen kinds of calls would outvote it.

use std::collections::BTreeMap;

use super::waits::OF_OPERATIONS;
use super::{Placed, Row, THROUGHPUT, rounds};
use crate::measure::derived;
use crate::stats::mean_and_sd;

/// What the figures of operations are called behind the operation.
const RATE: &str = " rate";
const LATENCY: &str = " latency";
const MEAN: &str = " mean latency";

/// Leaves the figures that count. Throughput is that which the program says itself; the rates of operations count where it
/// has no figure of its own at all. Latency is that which it says itself; else that of the operation in which most of
/// its time passes, be the others as many as they are.
pub(super) fn by_own(all: &mut Vec<Placed>, row: &Row<'_>) {
    let operations = times(row);
    let of_operation = |f: &Placed| operation(&f.3.measure, &operations);
    let own = |f: &Placed| {
        let m = f.3.measure.as_str();
        // How long a run took and what core time it cost are known of any program.
        let foreign = derived(m) || m == THROUGHPUT || m == "elapsed" || m.starts_with("cpu_");
        !foreign && of_operation(f).is_none()
    };
    let says = |goal: &str| all.iter().any(|f| f.1 == goal && own(f));
    let (any, rate, latency) = (all.iter().any(own), says("throughput"), says("latency"));
    let most = operations.iter().reduce(|a, b| if b.1 > a.1 { b } else { a });
    let most = most.map(|(name, _)| name.as_str());
    let keeps = |f: &Placed| match f.1.as_str() {
        "throughput" if rate => own(f),
        "throughput" => !any || of_operation(f).is_none(),
        "latency" if latency => own(f),
        "latency" if most.is_some() => of_operation(f) == most,
        _ => true,
    };
    let mut kept = all.iter().map(keeps).collect::<Vec<bool>>().into_iter();
    all.retain(|_| kept.next() == Some(true));
}

/// The operations, and how long they took in all, under all schedulers: in a second of the run.
fn times(row: &Row<'_>) -> BTreeMap<String, f64> {
    let mut out = BTreeMap::new();
    for cell in row.iter().flatten() {
        for name in cell.measures.keys().filter_map(|m| m.strip_suffix(MEAN)) {
            let mean = |end: &str| {
                let all = rounds(cell, &format!("{name}{end}"));
                mean_and_sd(&all.values().map(|o| o.value).collect::<Vec<_>>()).0
            };
            if cell.measures.contains_key(&format!("{name}{RATE}")) {
                *out.entry(name.to_string()).or_insert(0.0) += mean(RATE) * mean(MEAN);
            }
        }
    }
    out
}

/// The operation of a figure.
fn operation<'a>(measure: &str, all: &'a BTreeMap<String, f64>) -> Option<&'a str> {
    let stem = measure.strip_suffix(RATE).or_else(|| {
        let stem = measure.strip_suffix(LATENCY)?;
        OF_OPERATIONS.iter().find_map(|end| stem.strip_suffix(end))
    })?;
    all.get_key_value(stem).map(|(name, _)| name.as_str())
}
