//! What went to the device: where its commands lay, how many, how busy it was.

use std::fmt::Write;

use iosched_results::answer::DEVICE_CAPACITY;

use super::{Fold, Source, between, process_key, tenth, whole, wrap};
use crate::html::curves::{self, Span};
use crate::html::input::Detail;
use crate::html::number::sig;
use crate::html::strip::{names, runs_of};
use crate::svg::escape;

/// What the columns of the device are.
const IN_WORDS: &str = "<p class=\"sm\">seeks: commands that do not begin where the last one ended; idled: of the time, with nothing at the device because the scheduler held requests back for a next one</p>";

impl Source<'_> {
    pub(super) fn dispatch(&self) -> Fold {
        let mut html = String::new();
        for (d, device) in self.devices() {
            let found = self.found(d);
            let Some(span) = self.frame(d) else { continue };
            let colors = curves::processes(found.iter().map(|f| f.1));
            let mut ways: Vec<(Vec<usize>, &Detail)> = Vec::new();
            for (run, x) in &found {
                match ways.iter_mut().find(|w| w.1.dispatches == x.dispatches) {
                    Some(w) => w.0.push(*run),
                    None => ways.push((vec![*run], x)),
                }
            }
            let mut figs = String::new();
            for (runs, x) in ways {
                let title = format!("Position over time, {device}, {}", self.title());
                let svg = curves::dispatches(&title, x, span, &colors, self.budget.commands);
                let Some(svg) = svg else { continue };
                let ids = runs.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
                let _ = write!(
                    figs,
                    "<figure data-r=\"{ids}\"><p class=\"sm\">{}</p>{svg}</figure>",
                    names(self.view, &runs)
                );
            }
            if !figs.is_empty() {
                let key = process_key(colors.into_iter());
                let _ = write!(
                    html,
                    "<h4>{}: where the commands went, first round; upwards the place on the device in GB, to the right seconds</h4>{key}<p class=\"wplay\" data-end=\"{:.3}\" hidden><button type=\"button\" aria-pressed=\"false\">Play</button> <input type=\"range\" min=\"0\" max=\"1\" step=\"any\" value=\"1\" aria-label=\"time\"> <output></output></p><div class=\"figs\">{figs}</div>",
                    escape(device),
                    span.end
                );
            }
        }
        let finding = self.finding(|d| {
            let found = self.found(d);
            let each = |f: fn(&crate::html::input::DeviceSums) -> u64| {
                let of = found.iter().filter(|x| x.1.summed > 0 && x.1.device.commands > 0);
                let of = of.map(|x| f(&x.1.device) as f64 / f64::from(x.1.summed));
                of.fold(None, |r: Option<(f64, f64)>, v| {
                    Some(r.map_or((v, v), |(a, b)| (a.min(v), b.max(v))))
                })
            };
            let seeks = each(|s| s.seeks).filter(|s| s.1 > 0.0);
            let (word, (low, high)) = match seeks {
                Some(s) => ("seeks", s),
                None => ("commands", each(|s| s.commands)?),
            };
            Some(format!("{} {word}", between(whole(low), whole(high))))
        });
        wrap("Dispatch order", finding, html, "")
    }

    fn frame(&self, device: usize) -> Option<Span> {
        let runs = runs_of(self.view, device);
        let facts = runs.iter().filter_map(|r| {
            let facts = &self.input.runs[self.view.runs[*r].from].facts;
            facts.get(DEVICE_CAPACITY)?.first()?.parse::<f64>().ok()
        });
        let end =
            |d: &Detail| d.dispatches.iter().map(|p| (p.sector + u64::from(p.sectors)) * 512).max();
        let all = runs.iter().flat_map(|r| {
            let from = self.view.runs[*r].from;
            self.input.details.range((from, 0)..=(from, usize::MAX)).map(|(_, d)| d)
        });
        // Where nobody wrote down how much it holds, as far as anybody went.
        let far = all.filter_map(end).max().map(|b| b as f64);
        let found = self.found(device);
        let last = found.iter().flat_map(|f| f.1.dispatches.iter().map(|p| p.t)).max()?;
        Some(Span { capacity: facts.reduce(f64::max).or(far)?, end: last as f64 / 1e9 })
    }

    pub(super) fn device(&self) -> Fold {
        const HEAD: [&str; 7] =
            ["commands", "merges", "seeks", "travel (GB)", "busy", "idled", "most in flight"];
        let mut html = String::new();
        for (d, device) in self.devices() {
            let row = |x: &Detail| -> Option<Vec<String>> {
                let s = x.device;
                if s.commands == 0 {
                    return None;
                }
                let n = f64::from(x.summed.max(1));
                let each = |v: u64| whole(v as f64 / n);
                let share = |v: u64| match x.elapsed {
                    0 => "–".into(),
                    e => format!("{} %", tenth(v as f64 * 100.0 / e as f64)),
                };
                let known = |known: bool, figure: String| if known { figure } else { "–".into() };
                Some(vec![
                    each(s.commands),
                    each(s.merges),
                    known(s.seen, each(s.seeks)),
                    known(s.seen, sig(s.travel as f64 * 512.0 / 1e9 / n)),
                    share(s.busy),
                    known(s.idling, share(s.idled)),
                    known(s.max_in_flight > 0, s.max_in_flight.to_string()),
                ])
            };
            html += &self.table(d, &format!("{device}, a round"), &HEAD.map(String::from), row);
        }
        let finding = self.finding(|d| {
            let found = self.found(d);
            let busy = found.iter().filter(|x| x.1.elapsed > 0 && x.1.device.commands > 0);
            let busy = busy.map(|x| x.1.device.busy as f64 * 100.0 / x.1.elapsed as f64);
            let r = busy.fold(None, |r: Option<(f64, f64)>, v| {
                Some(r.map_or((v, v), |(a, b)| (a.min(v), b.max(v))))
            })?;
            Some(format!("busy {} %", between(tenth(r.0), tenth(r.1))))
        });
        if !html.is_empty() {
            html += IN_WORDS;
        }
        wrap("Queue and device", finding, html, "")
    }
}
