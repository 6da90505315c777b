//! A window of a trial under several schedulers, with the reasons of their decisions.
//!
//! A trial is run twice. The first run counts how long the requests of each process take, step by step, in constant memory:
//! that tells where the schedulers differ. The second keeps the requests and decisions of that window alone.

mod text;

use std::collections::BTreeMap;

use iosched_block::{Keep, TraceEvent};
use iosched_experiment::record::Seen;
use iosched_experiment::{Record, Trial};
use iosched_types::units::MS;
use iosched_types::{Nanos, SECTOR};
use serde::Serialize;

use crate::error::SimError;
use crate::run::simulate;
use crate::scenario::{Dispatched, Explanation, Idle, Life};
pub use text::text;

/// Most requests, and most decisions, of a window.
pub const MOST: usize = 10_000;
/// So many requests come in a window whose length nobody asked for.
const ABOUT: u64 = 40;
/// Waits that differ by less are alike.
const ALIKE: Nanos = MS / 10;
/// Shortest window.
const SHORTEST: Nanos = MS;

/// One scheduler in a window. Times count from where the load is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// The scheduler as its user named it.
    pub scheduler: String,
    /// Requests that came or ended in the window, and decisions.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// Requests that there was no room for.
    pub left_out: u64,
}

/// A window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Window {
    /// From.
    pub from_ns: Nanos,
    /// To.
    pub to_ns: Nanos,
}

/// Runs a trial and counts how long requests take. Of the record only what was seen and the figures of the jobs are there.
///
/// # Errors
/// As [`simulate`].
pub fn survey(trial: &Trial) -> Result<Record, SimError> {
    let mut trial = trial.clone();
    trial.tape = Some(Keep::Waits);
    (trial.collect.series, trial.collect.dispatches) = (false, false);
    simulate(&trial)
}

/// Runs a trial again with the recorder of reasons on. `seen`: what the survey saw. `measured`: how long after its start a load is
/// measured.
///
/// # Errors
/// As [`simulate`].
pub fn side(
    trial: &Trial,
    (seen, measured): (&Seen, Nanos),
    w: Window,
    scheduler: &str,
) -> Result<Side, SimError> {
    let mut trial = trial.clone();
    let zero = seen.start + measured;
    let (from, to) = (zero.saturating_add(w.from_ns), zero.saturating_add(w.to_ns));
    trial.tape = Some(Keep::Window { from, to, most: MOST });
    (trial.collect.series, trial.collect.dispatches) = (false, false);
    let seen = simulate(&trial)?.seen.unwrap_or_default();
    Ok(Side {
        scheduler: scheduler.into(),
        left_out: seen.left_out,
        explanation: explained(&seen, zero, (from, to)),
    })
}

/// How many requests of each process ended in each part of a load, and how long they took, since it is measured.
fn parts(seen: &Seen, measured: Nanos, long: Nanos) -> BTreeMap<(u64, u32), (u64, Nanos)> {
    let zero = seen.start + measured;
    let mut out: BTreeMap<(u64, u32), (u64, Nanos)> = BTreeMap::new();
    for ((step, task), (n, sum)) in &seen.waits.of {
        let Some(at) = (step * seen.waits.step).checked_sub(zero) else { continue };
        let pid = seen.who.get(*task as usize).map_or(0, |w| w.0);
        let both = out.entry((at / long, pid)).or_default();
        *both = (both.0 + n, both.1 + sum);
    }
    out
}

/// How long a window of these is: that of some forty requests of the busier one, in round figures.
#[must_use]
pub fn length(all: &[(&Seen, Nanos)]) -> Nanos {
    let rate = |(seen, measured): &(&Seen, Nanos)| {
        let of = parts(seen, *measured, 1);
        let n: u64 = of.values().map(|v| v.0).sum();
        let end = of.keys().map(|k| k.0).max().unwrap_or(0);
        end.checked_div(n).unwrap_or(0)
    };
    let between = all.iter().map(rate).filter(|r| *r > 0).min().unwrap_or(MS);
    let least = (between * ABOUT).max(SHORTEST);
    let rounds = (0..12).flat_map(|e| [1, 2, 5].map(|f| f * 10u64.pow(e) * MS));
    rounds.into_iter().find(|r| *r >= least).unwrap_or(least)
}

/// The window of this length, or of a fitting one, in which the waits of the processes differ by the largest factors in all.
/// `None` where nothing was measured.
#[must_use]
pub fn widest(a: (&Seen, Nanos), b: (&Seen, Nanos), long: Option<Nanos>) -> Option<Window> {
    let step = a.0.waits.step.max(b.0.waits.step);
    let long = long.unwrap_or_else(|| length(&[a, b])).max(step);
    let (x, y) = (parts(a.0, a.1, long), parts(b.0, b.1, long));
    let mean = |v: Option<&(u64, Nanos)>| v.map_or(long, |(n, sum)| sum / n.max(&1));
    let mut apart: BTreeMap<u64, f64> = BTreeMap::new();
    for key in x.keys().chain(y.keys().filter(|k| !x.contains_key(k))) {
        let (p, q) = (mean(x.get(key)), mean(y.get(key)));
        // A process without a request that ended waits at least as long as one that has.
        let (p, q) = match (x.get(key), y.get(key)) {
            (None, _) => (p.max(q), q),
            (_, None) => (p, q.max(p)),
            _ => (p, q),
        };
        let factor = ((p + ALIKE) as f64 / (q + ALIKE) as f64).ln().abs();
        *apart.entry(key.0).or_default() += factor;
    }
    // The first of those that are alike.
    let best = apart.iter().rev().max_by(|m, n| m.1.total_cmp(n.1))?;
    Some(Window { from_ns: best.0 * long, to_ns: (best.0 + 1) * long })
}

/// A name for each process: those of one name are numbered.
fn names(seen: &Seen) -> BTreeMap<u32, String> {
    let mut out: BTreeMap<u32, String> = BTreeMap::new();
    let used: Vec<&(u32, String)> = seen.who.iter().filter(|w| !w.1.is_empty()).collect();
    for (pid, name) in &used {
        let mut same: Vec<u32> = used.iter().filter(|w| w.1 == *name).map(|w| w.0).collect();
        same.sort_unstable();
        same.dedup();
        let number = same.iter().position(|p| p == pid).unwrap_or(0) + 1;
        let name = if same.len() > 1 { format!("{name} {number}") } else { name.clone() };
        out.insert(*pid, name);
    }
    out
}

/// `waits for pid 3`, with the name of the process.
fn named(reason: &str, names: &BTreeMap<u32, String>) -> String {
    let mut parts = reason.split("pid ");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        match part[..digits].parse().ok().and_then(|pid: u32| names.get(&pid)) {
            Some(name) => out += &format!("{name}{}", &part[digits..]),
            None => out += &format!("pid {part}"),
        }
    }
    out
}

/// What was seen, with times from `zero` on.
fn explained(seen: &Seen, zero: Nanos, (from, to): (Nanos, Nanos)) -> Explanation {
    let since = |t: Nanos| (t + seen.start).saturating_sub(zero);
    let names = names(seen);
    let pid = |task: u32| seen.who.get(task as usize).map_or(0, |w| w.0);
    let array = seen.decisions.len() > 1;
    let mut e = Explanation::default();
    for (leg, event) in
        seen.decisions.iter().enumerate().flat_map(|(n, l)| l.iter().map(move |e| (n, e)))
    {
        match event {
            TraceEvent::Dispatch { issue, reason, .. } => {
                let end = issue.sector + u64::from(issue.sectors);
                let carries = |io: &iosched_trace::Io| {
                    let first = io.offset / SECTOR;
                    let at = |t: Nanos| t + seen.start;
                    io.op == issue.op
                        && (issue.sector..end.max(issue.sector + 1)).contains(&first)
                        && at(io.queued) <= issue.t
                        && io.done.is_none_or(|d| at(d) >= issue.t)
                        && io.issued.is_none_or(|i| at(i) >= issue.t)
                };
                let requests = (0..seen.ios.len()).filter(|i| carries(&seen.ios[*i])).collect();
                e.dispatched.push(Dispatched {
                    t_ns: issue.t - zero,
                    op: issue.op,
                    sector: issue.sector,
                    sectors: issue.sectors,
                    pid: pid(issue.task),
                    requests,
                    leg: array.then_some(leg),
                    reason: named(reason, &names),
                });
            }
            TraceEvent::Idle { from: began, to: ended, task, reason } => e.idle.push(Idle {
                from_ns: (*began).max(from) - zero,
                to_ns: (*ended).min(to) - zero,
                for_pid: task.map(pid),
                reason: named(reason, &names),
            }),
            TraceEvent::Switch { .. } => {}
        }
    }
    if array {
        e.dispatched.sort_by_key(|d| d.t_ns);
    }
    let life = |io: &iosched_trace::Io| Life {
        op: io.op,
        sector: io.offset / SECTOR,
        sectors: (io.len / SECTOR) as u32,
        pid: io.pid,
        came_ns: Some(since(io.queued)),
        done_ns: io.done.map(since),
    };
    e.requests = seen.ios.iter().map(life).collect();
    e.names = names;
    e
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(waits: &[(u64, u32, u64, Nanos)]) -> Seen {
        let mut s = Seen { who: vec![(7, "film".into()), (9, "copy".into())], ..Seen::default() };
        for (step, task, n, mean) in waits {
            s.waits.of.insert((*step, *task), (*n, n * mean));
        }
        s
    }

    #[test]
    fn the_window_is_where_waits_differ_by_most() {
        let a = seen(&[(100, 0, 4, 8 * MS), (100, 1, 4, MS), (300, 0, 4, 8 * MS), (500, 1, 2, MS)]);
        let b =
            seen(&[(100, 0, 4, 9 * MS), (100, 1, 4, MS), (300, 0, 1, 90 * MS), (500, 1, 2, MS)]);
        let w = widest((&a, 0), (&b, 0), Some(100 * MS)).unwrap();
        assert_eq!((w.from_ns / MS, w.to_ns / MS), (300, 400));
        // Counted from where the load is measured.
        let w = widest((&a, 50 * MS), (&b, 50 * MS), Some(50 * MS)).unwrap();
        assert_eq!((w.from_ns / MS, w.to_ns / MS), (250, 300));
        // A process without an end of a request waits, too.
        let starved = seen(&[(100, 0, 4, 8 * MS), (100, 1, 4, MS), (500, 1, 2, MS)]);
        let w = widest((&a, 0), (&starved, 0), Some(200 * MS)).unwrap();
        assert_eq!(w.from_ns / MS, 200);
        assert_eq!(widest((&seen(&[]), 0), (&seen(&[]), 0), None), None);
    }

    #[test]
    fn processes_have_their_names_in_reasons() {
        let mut s = seen(&[]);
        s.who.push((11, "copy".into()));
        let names = names(&s);
        assert_eq!(
            named("waits for pid 7; not pid 11, pid 4", &names),
            "waits for film; not copy 2, pid 4"
        );
    }
}
