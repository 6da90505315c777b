//! The course of a program: its phases, its operations over time, its core time beside what it moved.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use iosched_experiment::record::MarkKind;

use super::{Fold, Source, process_key, span, whole, wrap};
use crate::html::curves::{self, Beside};
use crate::html::input::{Detail, means};
use crate::html::number::{sig, value};
use crate::html::strip::names;
use crate::svg::escape;

/// Most pictures of operations of a device: those that happened most often.
const PICTURES: usize = 4;
/// Colours of phases.
const COLORS: usize = 5;

/// A phase: its name, from and to in seconds.
type Phase = (String, f64, f64);

fn phases(d: &Detail) -> Vec<Phase> {
    let seconds = |t: u64| t as f64 / 1e9;
    let all = d.marks.iter().filter(|m| m.kind == MarkKind::Phase);
    all.map(|m| (m.name.clone(), seconds(m.began), seconds(m.ended))).collect()
}

/// How long all phases of a name took, in the order in which they began.
fn lengths(all: &[Phase]) -> Vec<(String, f64)> {
    let mut out: Vec<(String, f64)> = Vec::new();
    for (name, from, to) in all {
        match out.iter_mut().find(|o| o.0 == *name) {
            Some(o) => o.1 += to - from,
            None => out.push((name.clone(), to - from)),
        }
    }
    out
}

impl Source<'_> {
    pub(super) fn phases(&self) -> Fold {
        let mut html = String::new();
        for (d, device) in self.devices() {
            html += &self.lanes(d, device);
        }
        let finding = self.finding(|d| {
            let found = self.found(d);
            let first = found.iter().map(|f| lengths(&phases(f.1))).find(|l| !l.is_empty())?;
            let longest = first.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
            let of = |x: &Detail| {
                let all = lengths(&phases(x));
                all.iter().find(|l| l.0 == longest).map(|l| (l.1 * 1e9) as u64)
            };
            let (low, high) = self.range(d, of)?;
            Some(format!("{longest} {}", span(low, high)))
        });
        wrap("Phases", finding, html, "figs")
    }

    /// A line for each group of runs with the same phases, a bar for each phase, and how long they took.
    fn lanes(&self, d: usize, device: &str) -> String {
        let mut rows: Vec<(Vec<usize>, Vec<Phase>)> = Vec::new();
        for (run, x) in self.found(d) {
            let all = phases(x);
            match rows.iter_mut().find(|r| r.1 == all) {
                _ if all.is_empty() => {}
                Some(r) => r.0.push(run),
                None => rows.push((vec![run], all)),
            }
        }
        let Some(first) = rows.first() else { return String::new() };
        let head: Vec<String> = lengths(&first.1).into_iter().map(|l| l.0).collect();
        let color = |name: &str| head.iter().position(|h| h == name).unwrap_or(0).min(COLORS - 1);
        let end = rows.iter().flat_map(|r| &r.1).map(|p| p.2).fold(0.0, f64::max).max(1e-9);
        let mut out = format!(
            "<figure><h4>{}: phases of the first round, from 0 to {}</h4>{}<div class=\"scroll\">\
             <table class=\"dt\"><thead><tr><th scope=\"col\">scheduler</th>\
             <th class=\"wide\"><span class=\"vh\">chart</span></th>",
            escape(device),
            value(end * 1e9, "ns"),
            process_key(head.iter().map(|n| (n.clone(), color(n))))
        );
        for name in &head {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(name));
        }
        out += "</tr></thead><tbody>";
        for (runs, all) in rows {
            let ids = runs.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
            let _ = write!(
                out,
                "<tr data-r=\"{ids}\"><th scope=\"row\">{}</th><td aria-hidden=\"true\"><div class=\"lane\">",
                names(self.view, &runs)
            );
            for (name, from, to) in &all {
                let (left, width) = (from * 100.0 / end, (to - from) * 100.0 / end);
                let color = color(name);
                let _ = write!(
                    out,
                    "<span style=\"left:{left:.2}%;width:{width:.2}%;background:var(--p{color})\"></span>"
                );
            }
            out += "</div></td>";
            let all = lengths(&all);
            for name in &head {
                let length = all.iter().find(|l| l.0 == *name);
                let text = length.map_or("–".into(), |l| value(l.1 * 1e9, "ns"));
                let _ = write!(out, "<td>{text}</td>");
            }
            out += "</tr>";
        }
        out + "</tbody></table></div></figure>"
    }

    /// Names of operations and events of a device, the most frequent first; not those that only go on beside.
    fn kinds(&self, device: usize) -> Vec<(String, String)> {
        let mut all: BTreeMap<&String, (&String, f64)> = BTreeMap::new();
        let mut beside: BTreeSet<&String> = BTreeSet::new();
        for (_, x) in self.found(device) {
            beside.extend(x.marks.iter().filter(|m| m.kind == MarkKind::Beside).map(|m| &m.name));
            for (name, (unit, step, values)) in &x.events {
                all.entry(name).or_insert((unit, 0.0)).1 += values.iter().sum::<f64>() * step;
            }
        }
        let mut all: Vec<_> = all.into_iter().filter(|(n, _)| !beside.contains(n)).collect();
        all.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
        all.into_iter().map(|(n, (u, _))| (n.clone(), u.clone())).collect()
    }

    pub(super) fn events(&self) -> Fold {
        let mut html = String::new();
        for (d, device) in self.devices() {
            let kinds = self.kinds(d);
            let moving: Vec<&String> =
                kinds.iter().filter(|k| k.1 == "B/s").map(|k| &k.0).collect();
            let mut pictures = Vec::new();
            if !moving.is_empty() {
                let words = moving.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ");
                pictures.push((words, "B/s", moving));
            }
            let others = kinds.iter().filter(|k| k.1 != "B/s").take(PICTURES);
            pictures.extend(others.map(|k| (k.0.clone(), "1/s", vec![&k.0])));
            for (words, unit, which) in pictures {
                html += &self.event_picture(d, &format!("{device}: {words}"), unit, &which);
            }
        }
        let finding = self.finding(|d| {
            let kinds = self.kinds(d);
            let names = kinds.iter().take(PICTURES).map(|k| k.0.as_str()).collect::<Vec<_>>();
            (!names.is_empty()).then(|| names.join(", "))
        });
        wrap("The program over time", finding, html, "figs")
    }

    /// The sum of some operations over time.
    fn event_picture(&self, d: usize, title: &str, unit: &str, which: &[&String]) -> String {
        let most = self.budget.curve;
        let c = self.curves(d, |x| {
            let mut sum: Option<(f64, Vec<f64>)> = None;
            for (_, step, values) in which.iter().filter_map(|n| x.events.get(*n)) {
                match &mut sum {
                    Some((_, all)) => {
                        all.resize(all.len().max(values.len()), 0.0);
                        all.iter_mut().zip(values).for_each(|(a, v)| *a += v);
                    }
                    None => sum = Some((*step, values.clone())),
                }
            }
            sum.map(|s| curves::points(&means(s.0, &s.1, most), most)).unwrap_or_default()
        });
        let (beside, words) = self.beside(d, &c);
        let whole_title = format!("{title}, {}", self.title());
        let svg = curves::over_time_beside(&whole_title, unit, &c, &beside);
        let title = match words.is_empty() {
            true => title.to_string(),
            false => format!("{title}; bars on top: {words}"),
        };
        self.figure(&title, unit, &c, svg)
    }

    /// What went on beside the curves, and what it is called.
    fn beside(&self, device: usize, curves: &[curves::Curve]) -> (Vec<Beside>, String) {
        let mut called: BTreeSet<String> = BTreeSet::new();
        let mut out = Vec::new();
        let found = self.found(device);
        for c in curves {
            let own = found.iter().filter(|f| Some(&f.0) == c.runs.first());
            let marks = own.flat_map(|f| &f.1.marks).filter(|m| m.kind == MarkKind::Beside);
            let mut spans = Vec::new();
            for m in marks {
                called.insert(m.name.clone());
                spans.push((m.began as f64 / 1e9, m.ended as f64 / 1e9));
            }
            if !spans.is_empty() {
                out.push(Beside { runs: c.runs.clone(), color: c.color, spans });
            }
        }
        (out, called.into_iter().collect::<Vec<_>>().join(", "))
    }

    pub(super) fn cost(&self) -> Fold {
        let mut html = String::new();
        let rate = |x: &Detail| x.moved as f64 * 1e9 / x.measured as f64;
        let load = |x: &Detail| x.cpu as f64 * 100.0 / x.measured as f64;
        for (d, device) in self.devices() {
            let found: Vec<_> = self.found(d).into_iter().filter(|f| f.1.costs()).collect();
            let most =
                |f: &dyn Fn(&Detail) -> f64| found.iter().map(|x| f(x.1)).fold(0.0, f64::max);
            let (fastest, busiest) = (most(&rate), most(&load));
            if found.is_empty() {
                continue;
            }
            let _ = write!(
                html,
                "<div class=\"scroll\"><table class=\"dt cost\"><thead><tr><th scope=\"col\">{}</th>\
                 <th class=\"wide\"><span class=\"vh\">chart</span></th><th scope=\"col\">moved</th>\
                 <th class=\"wide\"><span class=\"vh\">chart</span></th><th scope=\"col\">of a core</th>\
                 <th scope=\"col\">core time per MB</th></tr></thead><tbody>",
                escape(device)
            );
            for (run, x) in found {
                let bar = |v: f64, of: f64| {
                    let part = if of > 0.0 { v * 100.0 / of } else { 0.0 };
                    format!(
                        "<td aria-hidden=\"true\"><div class=\"sh100\"><span style=\"width:{part:.2}%;\
                         background:var(--fg0)\"></span></div></td>"
                    )
                };
                let _ = write!(
                    html,
                    "<tr data-r=\"{run}\"><th scope=\"row\">{}</th>{}<td>{}</td>{}<td>{} %</td><td>{}</td></tr>",
                    names(self.view, &[run]),
                    bar(rate(x), fastest),
                    value(rate(x), "B/s"),
                    bar(load(x), busiest),
                    sig(load(x)),
                    value(x.cpu as f64 * 1e6 / x.moved as f64, "ns"),
                );
            }
            html += "</tbody></table></div>";
        }
        let finding = self.finding(|d| {
            let all: Vec<f64> =
                self.found(d).iter().filter(|f| f.1.costs()).map(|f| load(f.1)).collect();
            let low = all.iter().copied().reduce(f64::min)?;
            let high = all.iter().copied().reduce(f64::max)?;
            let (low, high) = (whole(low), whole(high));
            let ends = if low == high { low } else { format!("{low} to {high}") };
            Some(format!("{ends} % of a core"))
        });
        wrap("Core time beside throughput", finding, html, "")
    }
}

impl Detail {
    /// Whether both core time and bytes are known.
    fn costs(&self) -> bool {
        self.cpu > 0 && self.moved > 0 && self.measured > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_of_a_name_are_added_up_in_order() {
        let p = |n: &str, a, b| (n.to_string(), a, b);
        let all = [p("write", 0.0, 2.0), p("read", 2.0, 3.0), p("write", 3.0, 4.5)];
        assert_eq!(lengths(&all), [("write".into(), 3.5), ("read".into(), 1.0)]);
    }
}
