//! Tries one by one: how long each took, and which were given up.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Fold, Source, wrap};
use crate::html::input::Detail;
use crate::html::number::value;
use crate::html::strip::names;
use crate::svg::escape;

/// Longest and shortest further apart than this stand on a logarithmic axis.
const FAR: f64 = 30.0;

/// Where a time stands, in percent of the axis.
struct Axis {
    low: f64,
    high: f64,
    log: bool,
}

impl Axis {
    fn of(times: impl Iterator<Item = f64> + Clone) -> Axis {
        let high = times.clone().fold(0.0, f64::max).max(1e-9);
        let low = times.filter(|t| *t > 0.0).fold(high, f64::min);
        let log = high / low > FAR;
        Axis { low: if log { low } else { 0.0 }, high, log }
    }

    fn place(&self, t: f64) -> f64 {
        let part = match self.log {
            true => (t.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => t / self.high,
        };
        // The outermost dots stay inside.
        1.0 + 98.0 * part.clamp(0.0, 1.0)
    }

    fn words(&self) -> String {
        let time = |s: f64| value(s * 1e9, "ns");
        let kind = if self.log { ", logarithmic" } else { "" };
        format!(
            "from {} to {}{kind}",
            if self.log { time(self.low) } else { "0".into() },
            time(self.high)
        )
    }
}

/// Shortest, median and longest of tries; `None` for those that only are known to be longer than something.
fn figures(all: &[(f64, bool)]) -> [Option<(f64, bool)>; 3] {
    let mut sorted = all.to_vec();
    // What was given up would have taken longer than all that ended before.
    sorted.sort_by(|a, b| a.1.cmp(&b.1).then(a.0.total_cmp(&b.0)));
    let at = |i: usize| sorted.get(i).copied();
    let n = sorted.len();
    let median = match (n.is_multiple_of(2), at(n.saturating_sub(1) / 2), at(n / 2)) {
        (true, Some(a), Some(b)) if !b.1 => Some(((a.0 + b.0) / 2.0, false)),
        (_, _, b) => b,
    };
    [at(0), median, at(n.saturating_sub(1))]
}

impl Source<'_> {
    pub(super) fn tries(&self) -> Fold {
        let mut html = String::new();
        for (d, device) in self.devices() {
            let found = self.found(d);
            let which: BTreeSet<&String> = found.iter().flat_map(|f| f.1.tries.keys()).collect();
            for name in which {
                html += &self.tries_of(d, device, name);
            }
        }
        let finding = self.finding(|d| {
            let found = self.found(d);
            let all = || found.iter().flat_map(|f| f.1.tries.values()).flatten();
            let given_up = all().filter(|t| t.1).count();
            let n = all().count();
            (n > 0).then(|| format!("{given_up} of {n} given up"))
        });
        wrap("Tries one by one", finding, html, "figs")
    }

    /// A line for each run, a dot for each try.
    fn tries_of(&self, d: usize, device: &str, name: &String) -> String {
        let found = self.found(d);
        let of = |x: &Detail| x.tries.get(name).cloned().unwrap_or_default();
        let times = found.iter().filter_map(|f| f.1.tries.get(name)).flatten().map(|t| t.0);
        let axis = Axis::of(times);
        let mut out = format!(
            "<figure><h4>{}: each {}, {}; ▷ given up, so longer</h4><div class=\"scroll\"><table class=\"dt\">\
             <thead><tr><th scope=\"col\">scheduler</th><th class=\"wide\"><span class=\"vh\">chart</span></th>\
             <th scope=\"col\">shortest</th><th scope=\"col\">median</th><th scope=\"col\">longest</th>\
             <th scope=\"col\">given up</th></tr></thead><tbody>",
            escape(device),
            escape(name),
            axis.words()
        );
        for (run, x) in &found {
            let all = of(x);
            if all.is_empty() {
                continue;
            }
            let _ = write!(
                out,
                "<tr data-r=\"{run}\"><th scope=\"row\">{}</th><td aria-hidden=\"true\"><div class=\"lane\">",
                names(self.view, &[*run])
            );
            for (time, given_up) in &all {
                let left = axis.place(*time);
                let _ = match given_up {
                    true => write!(out, "<b style=\"left:{left:.1}%\">▷</b>"),
                    false => write!(out, "<i style=\"left:{left:.1}%\"></i>"),
                };
            }
            out += "</div></td>";
            for figure in figures(&all) {
                let text = figure.map_or("–".into(), |(t, beyond)| {
                    format!("{}{}", if beyond { "&gt;&#8239;" } else { "" }, value(t * 1e9, "ns"))
                });
                let _ = write!(out, "<td>{text}</td>");
            }
            let given_up = all.iter().filter(|t| t.1).count();
            let _ = write!(out, "<td>{given_up} of {}</td></tr>", all.len());
        }
        out + "</tbody></table></div></figure>"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_that_was_given_up_is_longer_than_any_other() {
        let all = [(60.0, true), (2.0, false), (70.0, false)];
        assert_eq!(figures(&all), [Some((2.0, false)), Some((70.0, false)), Some((60.0, true))]);
        assert_eq!(figures(&[(1.0, false), (3.0, false)])[1], Some((2.0, false)));
        // Half of them given up: of the median only a bound is known.
        assert_eq!(figures(&[(1.0, false), (60.0, true)])[1], Some((60.0, true)));
        assert_eq!(figures(&[]), [None, None, None]);
    }

    #[test]
    fn the_axis_is_logarithmic_when_tries_are_far_apart() {
        let near = Axis::of([1.0, 4.0].into_iter());
        assert!(!near.log && near.place(4.0) == 99.0 && near.place(2.0) == 50.0);
        let far = Axis::of([0.1, 60.0].into_iter());
        assert!(far.log && far.place(0.1) == 1.0 && far.words().contains("logarithmic"));
    }
}
