//! Which figure speaks for the waits of a workload: of I/Os, and of a program's operations.

use std::collections::BTreeSet;

use super::{Placed, Ran, Rounds, Row, complete_from, has, make, rounds};
use crate::measure::resolution;
use crate::stats::{Better, mean_and_sd};

/// Every run of everybody has enough I/Os for a percentile.
fn resolved(row: &Row<'_>, measure: &str) -> bool {
    row.iter().flatten().all(|c| {
        let own = c.measures.get(measure);
        own.is_some_and(|m| m.starved == 0 && m.sample.rounds.len() == c.rounds.len())
    })
}

/// A process waits for reads and for fsync. Writes count where there is nothing else.
pub(super) fn latencies(workload: &str, row: &Row<'_>) -> Vec<Placed> {
    let latency = |side: &str| {
        let of = |which: &str| {
            let names = ["p99", "mean"].map(|p| format!("{side}.{which}.{p}"));
            // Of few syncs tables show the mean, so it is what counts.
            let few = |n: &String| side == "sync" && n.ends_with(".p99") && !resolved(row, n);
            let hidden = |n: &String| waits_lie_beyond(row, n);
            names.into_iter().find(|n| has(row, n) && !few(n) && !hidden(n))
        };
        of("lat").or_else(|| of("clat"))
    };
    let mut sides: Vec<String> = ["read", "sync"].into_iter().filter_map(latency).collect();
    if sides.is_empty() {
        sides.extend(latency("write"));
    }
    let of = |name: String| {
        // What too few I/Os waited in the mean is the least that a starved process can be charged with.
        let mean = name.replace("p99", "mean");
        let mut values =
            complete_from(row, Better::Lower, |c| rounds(c, &name), |c| rounds(c, &mean));
        for (c, v) in row.iter().zip(&mut values) {
            let own = c.as_ref().and_then(|c| c.measures.get(&name));
            let starved = own.is_some_and(|m| m.starved > 0);
            v.iter_mut().for_each(|v| v.starved |= starved);
        }
        (1, "latency".into(), Better::Lower, make(workload, &name, values))
    };
    sides.into_iter().map(of).collect()
}

/// Whether the mean is above this 99th percentile under some scheduler: then all waiting that matters is in the last
/// hundredth, which the percentile does not see. So it is where the page cache answers all but a few calls.
fn waits_lie_beyond(row: &Row<'_>, measure: &str) -> bool {
    let above = |c: &Ran<'_>| {
        // Of the rounds with both: in one that starves there are too few I/Os for the percentile.
        let (means, p99s) = (rounds(c, &measure.replace("p99", "mean")), rounds(c, measure));
        let of = |which: &Rounds| {
            let both = which.iter().filter(|(r, _)| means.contains_key(r) && p99s.contains_key(r));
            mean_and_sd(&both.map(|(_, o)| o.value).collect::<Vec<f64>>()).0
        };
        // A percentile is the middle of its bin.
        !p99s.is_empty() && of(&means) > of(&p99s) * (1.0 + resolution(measure))
    };
    measure.contains("p99") && row.iter().flatten().any(above)
}

/// What programs say of the latencies of a kind of operation, what tells most first: the ends of the names. Where too few
/// operations have a high percentile, the mean counts, as it does of I/Os: the median of a few tells less.
pub(super) const OF_OPERATIONS: [&str; 5] = [" p99", " p95", " mean", " p50", " max"];

/// Whether another figure speaks for a latency of a program. Of one kind of operation there is one distribution, and its
/// mean and percentiles are no independent votes. Where each client waits for its operation the mean is even the rate
/// read the other way round (Little's law). So one of them counts: the 99th percentile, as of I/Os, or the mean where that
/// is above it ([`waits_lie_beyond`]); the next where some runs lack it.
pub(super) fn spoken_for(name: &str, all: &BTreeSet<&String>, row: &Row<'_>) -> bool {
    let Some(stem) = name.strip_suffix(" latency") else { return false };
    let Some(operation) = OF_OPERATIONS.iter().find_map(|end| stem.strip_suffix(end)) else {
        return false;
    };
    let others = OF_OPERATIONS.map(|end| format!("{operation}{end} latency"));
    let mean = format!("{operation} mean latency");
    let hidden = all.contains(&mean) && others.iter().any(|n| waits_lie_beyond(row, n));
    let mut there = others.iter().filter(|n| all.contains(n) && (!hidden || **n == mean));
    let complete = there.clone().find(|n| resolved(row, n));
    complete.or_else(|| there.next()).is_some_and(|n| n != name)
}
