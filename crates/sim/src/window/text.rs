//! A window as text: waits by process, in words what each scheduler did, and all decisions side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use iosched_types::Nanos;

use super::{MOST, Side, Window};
use crate::scenario::{Explanation, WIDTH, in_step, ms, wrapped};

/// Kinds of reasons that a scheduler is shown with.
const KINDS: usize = 3;
/// Columns of names of lines.
const HEAD: usize = 34;

/// The window under all schedulers.
#[must_use]
pub fn text(sides: &[Side], w: Window) -> String {
    let mut out = String::new();
    out.push_str(&table(sides, w));
    for s in sides {
        out.push('\n');
        out.push_str(&words(s, w));
    }
    let left_out: u64 = sides.iter().map(|s| s.left_out).sum();
    if left_out > 0 {
        let _ = writeln!(out, "\nA window has room for {MOST} requests; {left_out} more came.");
    }
    out.push('\n');
    let all: Vec<(&str, &Explanation)> =
        sides.iter().map(|s| (s.scheduler.as_str(), &s.explanation)).collect();
    out.push_str(&in_step(&all));
    out
}

/// Requests that ended in the window, and the mean of their waits; how many did not end in it.
struct Waits {
    ended: u64,
    mean: Option<Nanos>,
    left: u64,
}

fn waits(e: &Explanation, pid: u32, w: Window) -> Waits {
    let of = e.requests.iter().filter(|r| r.pid == pid);
    let of = of.filter(|r| r.came_ns.is_some_and(|c| c < w.to_ns));
    let (ended, left): (Vec<_>, Vec<_>) = of.partition(|r| r.done_ns.is_some_and(|d| d < w.to_ns));
    let sum: Nanos =
        ended.iter().map(|r| r.done_ns.unwrap_or(0).saturating_sub(r.came_ns.unwrap_or(0))).sum();
    let n = ended.len() as u64;
    Waits { ended: n, mean: sum.checked_div(n), left: left.len() as u64 }
}

fn name(sides: &[Side], pid: u32) -> String {
    let of = sides.iter().find_map(|s| s.explanation.names.get(&pid));
    of.map_or_else(|| format!("pid {pid}"), String::clone)
}

/// Waits by process, idle time and the way of the head.
fn table(sides: &[Side], w: Window) -> String {
    let mut out = String::new();
    let wide = ((WIDTH - HEAD) / sides.len().max(1)).saturating_sub(2);
    let mut line = |head: &str, cells: Vec<String>| {
        let mut text = format!("{:<HEAD$}", head.chars().take(HEAD).collect::<String>());
        for c in cells {
            let cell: String = c.chars().take(wide).collect();
            let _ = write!(text, "  {cell:>wide$}");
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line("mean wait, requests done", sides.iter().map(|s| s.scheduler.clone()).collect());
    let of = |s: &Side| s.explanation.requests.iter().map(|r| r.pid).collect::<Vec<_>>();
    let pids: BTreeSet<u32> = sides.iter().flat_map(of).collect();
    for pid in pids {
        let cell = |s: &Side| {
            let of = waits(&s.explanation, pid, w);
            match of.mean {
                Some(mean) => format!("{} ms, {}", short(mean), of.ended),
                None if of.left > 0 => format!("none, {} wait", of.left),
                None => "no request".into(),
            }
        };
        line(&format!("  {}", name(sides, pid)), sides.iter().map(cell).collect());
    }
    let share = |s: &Side| format!("{:.0} %", idle(&s.explanation) * 100.0 / w.long());
    line("disk held idle", sides.iter().map(share).collect());
    let jump = |s: &Side| match jumps(&s.explanation) {
        Some(mean) => iosched_types::units::show_bytes((mean * 512) as f64),
        None => "-".into(),
    };
    line("head moves between requests by", sides.iter().map(jump).collect());
    out
}

impl Window {
    fn long(self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns).max(1) as f64
    }
}

fn short(ns: Nanos) -> String {
    let ms = ns as f64 / 1e6;
    match ms {
        m if m >= 99.5 => format!("{m:.0}"),
        m if m >= 9.95 => format!("{m:.1}"),
        m => format!("{m:.2}"),
    }
}

fn idle(e: &Explanation) -> f64 {
    e.idle.iter().map(|i| i.to_ns.saturating_sub(i.from_ns)).sum::<Nanos>() as f64
}

/// Sectors from the end of a request to the start of the next, in the mean.
fn jumps(e: &Explanation) -> Option<u64> {
    let jumps = e.dispatched.windows(2).filter(|d| d[0].leg == d[1].leg);
    let jumps: Vec<u64> =
        jumps.map(|d| (d[0].sector + u64::from(d[0].sectors)).abs_diff(d[1].sector)).collect();
    jumps.iter().sum::<u64>().checked_div(jumps.len() as u64)
}

/// A reason without its figures: those that differ only in them are of one kind.
fn kind(reason: &str) -> String {
    reason.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect()
}

/// What a scheduler did: whom it served, for whom it waited, and its most frequent reasons.
fn words(s: &Side, w: Window) -> String {
    let e = &s.explanation;
    let called = |pid: u32| e.names.get(&pid).cloned().unwrap_or_else(|| format!("pid {pid}"));
    let mut sent: BTreeMap<u32, usize> = BTreeMap::new();
    e.dispatched.iter().for_each(|d| *sent.entry(d.pid).or_default() += 1);
    let mut sent: Vec<(u32, usize)> = sent.into_iter().collect();
    sent.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let list: Vec<String> =
        sent.iter().take(4).map(|(pid, n)| format!("{n} of {}", called(*pid))).collect();
    let runs = e.dispatched.windows(2).filter(|d| d[0].pid != d[1].pid).count();
    let mut text = match list.is_empty() {
        true => format!("{} sends nothing.", s.scheduler),
        false => format!(
            "{} sends {}, and changes between them {runs} times.",
            s.scheduler,
            list.join(", ")
        ),
    };
    let mut waits: BTreeMap<Option<u32>, Nanos> = BTreeMap::new();
    for i in &e.idle {
        *waits.entry(i.for_pid).or_default() += i.to_ns.saturating_sub(i.from_ns);
    }
    let all = short(idle(e) as Nanos);
    text += &match waits.iter().max_by_key(|(_, ns)| **ns).filter(|(_, ns)| **ns > 0) {
        Some((Some(pid), _)) => format!(
            " It keeps others back {all} ms of {} ms, most of it to wait for {}.",
            short(w.long() as Nanos),
            called(*pid)
        ),
        Some((None, _)) => format!(" It holds requests back for {all} ms."),
        None => " It never keeps a request back.".into(),
    };
    let mut out = String::new();
    wrapped(&text, WIDTH).iter().for_each(|l| _ = writeln!(out, "{l}"));
    let mut kinds: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    let idles = e.idle.iter().map(|i| i.reason.as_str());
    for reason in e.dispatched.iter().map(|d| d.reason.as_str()).chain(idles) {
        kinds.entry(kind(reason)).or_insert((0, reason)).0 += 1;
    }
    let mut kinds: Vec<(usize, &str)> = kinds.into_values().filter(|k| !k.1.is_empty()).collect();
    kinds.sort_by_key(|k| std::cmp::Reverse(k.0));
    for (n, reason) in kinds.iter().take(KINDS) {
        for (i, part) in wrapped(reason, WIDTH - 9).iter().enumerate() {
            let head = if i == 0 { format!("{n:>5} × ") } else { " ".repeat(8) };
            let _ = writeln!(out, "{head} {part}");
        }
    }
    out
}

/// Where a window lies: `12.300 to 12.800 s`.
impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to {} ms", ms(self.from_ns), ms(self.to_ns))
    }
}
