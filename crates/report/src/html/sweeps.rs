//! Workloads that differ in depth, number of jobs or block size alone: IOPS and latency as lines and as heat charts.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::curves::{self, Curve};
use super::input::Input;
use super::number::{sig, value};
use super::strip::{names, runs_of};
use super::view::{Test, View};
use crate::svg::escape;

/// What may be swept, and how it is called.
const SWEPT: [(&str, &str); 3] = [("iodepth", "depth"), ("numjobs", "jobs"), ("bs", "block size")];
/// Fewer points are no line.
const FEWEST: usize = 3;
/// Most values of the second parameter that get lines of their own.
const MOST_FIXED: usize = 6;

/// Place of a workload in its sweep.
type At = [u64; 3];

/// Workloads that differ in nothing else.
struct Sweep {
    /// What they have in common.
    common: String,
    points: BTreeMap<At, usize>,
}

/// What is drawn: how it is called, its unit behind numbers, and the measures it may come from.
const DRAWN: [(&str, &str, &[&str]); 2] = [
    ("IOPS", "", &["read.iops", "write.iops"]),
    (
        "latency, mean",
        "ns",
        &["read.lat.mean", "write.lat.mean", "read.clat.mean", "write.clat.mean"],
    ),
];

fn find(input: &Input) -> Vec<Sweep> {
    let mut out: Vec<Sweep> = Vec::new();
    for (w, facts) in input.workloads.iter().enumerate() {
        let [options] = &facts.jobs[..] else { continue };
        let number = |k: &str| options.get(k).map_or(Some(0), |v| v.parse::<u64>().ok());
        let Some(at) = SWEPT.iter().map(|s| number(s.0)).collect::<Option<Vec<u64>>>() else {
            continue;
        };
        let rest = options.iter().filter(|(k, _)| SWEPT.iter().all(|s| s.0 != k.as_str()));
        let common = rest.map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
        let at = [at[0], at[1], at[2]];
        match out.iter_mut().find(|s| s.common == common) {
            Some(s) => {
                s.points.entry(at).or_insert(w);
            }
            None => out.push(Sweep { common, points: BTreeMap::from([(at, w)]) }),
        }
    }
    out.retain(|s| (0..3).any(|p| s.values(p).len() >= FEWEST));
    out
}

impl Sweep {
    fn values(&self, parameter: usize) -> Vec<u64> {
        let mut all: Vec<u64> = self.points.keys().map(|k| k[parameter]).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What the parameters that are not on an axis may be, the others being 0.
    fn rest(&self, x: usize, other: Option<usize>) -> Vec<At> {
        let of = |k: &At| other.map_or(without(*k, x), |o| without(without(*k, x), o));
        let mut all: Vec<At> = self.points.keys().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// `, jobs 4, block size 4 KiB`: the values of what varies and is not on an axis.
    fn with(&self, at: At, x: usize, other: Option<usize>) -> String {
        (0..3)
            .filter(|p| *p != x && Some(*p) != other && self.values(*p).len() > 1)
            .map(|p| format!(", {} {}", SWEPT[p].1, shown(p, at[p])))
            .collect()
    }

    /// The parameter with the most values, and the other one that varies, if there is one.
    fn axes(&self) -> (usize, Option<usize>) {
        let mut order = [0, 1, 2];
        order.sort_by_key(|p| std::cmp::Reverse(self.values(*p).len()));
        (order[0], Some(order[1]).filter(|p| self.values(*p).len() > 1))
    }
}

fn test<'a>(view: &'a View, workload: usize, measures: &[&str]) -> Option<&'a Test> {
    let of = |m: &&str| view.tests.iter().find(|t| t.workload == workload && t.measure == **m);
    measures.iter().find_map(of)
}

fn shown(parameter: usize, v: u64) -> String {
    match SWEPT[parameter].0 {
        "bs" if v >= 1 << 20 && v.is_multiple_of(1 << 20) => format!("{} MiB", v >> 20),
        "bs" if v >= 1024 && v.is_multiple_of(1024) => format!("{} KiB", v >> 10),
        "bs" => format!("{v} B"),
        _ => v.to_string(),
    }
}

/// The sections of all sweeps.
pub(crate) fn sweeps(view: &View, input: &Input) -> String {
    let mut out = String::new();
    for (i, s) in find(input).iter().enumerate() {
        let (x, other) = s.axes();
        let varying = [Some(x), other].into_iter().flatten();
        let third = (0..3).filter(|p| *p != x && Some(*p) != other && s.values(*p).len() > 1);
        let title: Vec<&str> = varying.chain(third).map(|p| SWEPT[p].1).collect();
        let title = match &title[..] {
            [a, b, c] => format!("{a}, {b} and {c}"),
            few => few.join(" and "),
        };
        let _ = write!(
            out,
            "<section class=\"wk sweep\" id=\"sweep-{i}\"><div class=\"sh\"><h2>Sweep over {title}</h2><p>{}</p></div>",
            escape(&s.common)
        );
        for (what, unit, measures) in DRAWN {
            out += &lines(view, s, x, (what, unit, measures));
            for at in s.rest(x, other) {
                out += &heat(view, s, (x, other, at), (what, unit, measures));
            }
        }
        out += "</section>";
    }
    out
}

type Drawn<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Each scheduler's line over the first parameter, a picture for each value of the others.
fn lines(view: &View, s: &Sweep, x: usize, drawn: Drawn<'_>) -> String {
    let (what, unit, measures) = drawn;
    let mut figures = String::new();
    let fixed = s.rest(x, None);
    let all = fixed.len();
    for at in fixed.into_iter().take(MOST_FIXED) {
        for (d, device) in view.devices.iter().enumerate() {
            let mut all: Vec<Curve> = Vec::new();
            for run in runs_of(view, d) {
                let mine = s.points.iter().filter(|(k, _)| without(**k, x) == at);
                let points: Vec<(f64, f64)> = mine
                    .filter_map(|(k, w)| {
                        Some((k[x] as f64, test(view, *w, measures)?.cells[run].centre()?))
                    })
                    .collect();
                let color = view.runs[run].scheduler;
                let old = !view.names[color].now();
                match all.iter_mut().find(|c| c.points == points) {
                    Some(c) => c.runs.push(run),
                    None if points.len() > 1 => {
                        all.push(Curve { runs: vec![run], color, old, points })
                    }
                    None => {}
                }
            }
            let title = format!("{device}: {what} by {}{}", SWEPT[x].1, s.with(at, x, None));
            if let Some(svg) = curves::sweep(&title, unit, &all) {
                let _ = write!(
                    figures,
                    "<figure><h4>{}</h4>{}{svg}</figure>",
                    escape(&title),
                    super::folds::key(view, &all)
                );
            }
        }
    }
    if figures.is_empty() {
        return figures;
    }
    let left = match all > MOST_FIXED {
        true => format!(
            "<p class=\"sm\">Lines of the first {MOST_FIXED} of {all} combinations; the tables below have all.</p>"
        ),
        false => String::new(),
    };
    format!("<div class=\"figs\">{figures}</div>{left}")
}

fn without(mut at: At, parameter: usize) -> At {
    at[parameter] = 0;
    at
}

/// The same figures as tables whose cells are shaded from the smallest to the largest: a scheduler's line over one
/// parameter, or for each value of a second one. `at` says what a third one is.
fn heat(
    view: &View,
    s: &Sweep,
    (x, other, at): (usize, Option<usize>, At),
    drawn: Drawn<'_>,
) -> String {
    let (what, unit, measures) = drawn;
    let columns = s.values(x);
    let mut out = String::new();
    for (d, device) in view.devices.iter().enumerate() {
        let mut rows: Vec<(String, Vec<Option<f64>>, usize)> = Vec::new();
        for run in runs_of(view, d) {
            let name = names(view, &[run]);
            for v in other.map_or_else(|| vec![0], |o| s.values(o)) {
                let cell = |c: &u64| {
                    let fits = |k: &At| {
                        (0..3).all(|p| match p {
                            _ if p == x => k[p] == *c,
                            _ if Some(p) == other => k[p] == v,
                            _ => k[p] == at[p],
                        })
                    };
                    let w = s.points.iter().find(|(k, _)| fits(k))?.1;
                    test(view, *w, measures)?.cells[run].centre()
                };
                let head = match other {
                    Some(o) => format!("{name}, {} {}", SWEPT[o].1, shown(o, v)),
                    None => name.clone(),
                };
                rows.push((head, columns.iter().map(cell).collect(), run));
            }
        }
        let all = || rows.iter().flat_map(|r| r.1.iter().flatten().copied());
        let (low, high) =
            all().fold((f64::INFINITY, 0.0), |(a, b): (f64, f64), v| (a.min(v), b.max(v)));
        if !low.is_finite() {
            continue;
        }
        let _ = write!(
            out,
            "<div class=\"scroll\"><table class=\"dt heat\"><thead><tr><th scope=\"col\">{}: {what} by {}{}</th>",
            escape(device),
            SWEPT[x].1,
            s.with(at, x, other)
        );
        for c in &columns {
            let _ = write!(out, "<th scope=\"col\">{}</th>", shown(x, *c));
        }
        out += "</tr></thead><tbody>";
        for (head, cells, run) in rows {
            let _ = write!(out, "<tr data-r=\"{run}\"><th scope=\"row\">{head}</th>");
            for c in cells {
                match c {
                    Some(v) => {
                        let text = if unit == "ns" { value(v, unit) } else { sig(v) };
                        let _ = write!(out, "<td class=\"h{}\">{text}</td>", shade(v, low, high));
                    }
                    None => out += "<td>–</td>",
                }
            }
            out += "</tr>";
        }
        out += "</tbody></table></div>";
    }
    out
}

/// One of four shades of grey, by the logarithm: figures of a sweep lie decades apart.
fn shade(v: f64, low: f64, high: f64) -> usize {
    let span = (high / low).ln();
    if v <= 0.0 || low <= 0.0 || span < 0.01 {
        return 1;
    }
    1 + (((v / low).ln() / span * 4.0) as usize).min(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_go_from_the_smallest_to_the_largest() {
        assert_eq!([1.0, 10.0, 99.0, 100.0].map(|v| shade(v, 1.0, 100.0)), [1, 3, 4, 4]);
        assert_eq!((shade(5.0, 5.0, 5.0), shade(0.0, 0.0, 5.0)), (1, 1));
        assert_eq!(
            (shown(2, 4096), shown(0, 32), shown(2, 1 << 20)),
            ("4 KiB".into(), "32".into(), "1 MiB".into())
        );
    }
}
