//! The answer on top of the page: the sentences of [`iosched_results::answer`], device by device.

use std::fmt::Write;

use iosched_results::answer::{
    ABOUT, Answer, Candidate, Certainty, DEVICE_DEPTH, GOAL, Side, Stand, answers, unmeasured,
    without_hidden,
};

use super::input::Input;
use super::matrix::wrappable;
use super::number::ratio;
use super::standing::standing;
use super::view::View;
use crate::svg::escape;

/// What is said about one device.
#[derive(Debug, serde::Serialize)]
pub(crate) struct DeviceVerdict {
    device: String,
    about: String,
    sentences: Vec<Sentence>,
}

/// One sentence. Texts in which schedulers are named are markup: [`named`].
#[derive(Debug, serde::Serialize)]
pub(crate) struct Sentence {
    /// `Throughput`, `Latency`, `Fairness`, a metric's own name.
    what: String,
    /// The scheduler to use, as an index: the page says so when a reader hides it.
    winner: Option<usize>,
    /// The scheduler that the plot is against.
    base: Option<usize>,
    /// What is said first, in bold: the scheduler to use, or that no difference is measurable.
    bold: String,
    words: String,
    /// The interval of the lead, and what is said behind it.
    interval: String,
    rest: String,
    /// How sure it is: `measured`, `not measurable`, …
    chip: String,
    class: &'static str,
    notes: String,
    plot: String,
}

/// The schedulers of all devices, as the cells call them.
pub(crate) fn candidates(view: &View, input: &Input) -> Vec<Candidate> {
    let of = |run: &super::view::Run| {
        let facts = &input.runs[run.from];
        let device = &view.devices[run.device];
        // The mark of an experiment stands before the name.
        let name = input.own(facts.scheduler.rsplit(": ").next().unwrap_or_default());
        let mut c = Candidate::new(device, &view.schedulers[run.scheduler], name, &facts.kernel);
        let depth = facts.facts.get(DEVICE_DEPTH).and_then(|d| d.first()?.parse().ok());
        c.goal = facts.facts.get(GOAL).and_then(|g| g.first().cloned()).unwrap_or_default();
        for ((_, workload), d) in input.details.iter().filter(|((r, _), _)| *r == run.from) {
            c.take(d.device.max_in_flight, depth, d.device.busy, d.elapsed);
            if d.unsteady {
                c.unsteady.insert(input.workloads[*workload].title.clone());
            }
        }
        c
    };
    view.runs.iter().map(of).collect()
}

/// The verdict for every device, and what is said where none is about what the experiment asks for.
pub(crate) fn verdicts(view: &View, input: &Input) -> (Vec<DeviceVerdict>, Option<String>) {
    let candidates = candidates(view, input);
    let mut all = answers(&view.cells, &candidates);
    let note = unmeasured(&view.cells, &candidates, &all);
    without_hidden(&mut all, &input.options.hidden);
    let of = |(d, device): (usize, &String)| DeviceVerdict {
        device: device.clone(),
        about: about(view, input, d),
        sentences: all
            .iter()
            .filter(|a| a.device == *device)
            .map(|a| sentence(view, a, d))
            .collect(),
    };
    (view.devices.iter().enumerate().map(of).collect(), note)
}

/// What a device is, in its own words.
pub(crate) fn about(view: &View, input: &Input, device: usize) -> String {
    let runs = view.runs.iter().filter(|r| r.device == device);
    let facts = runs.filter_map(|r| input.runs[r.from].facts.get("device")?.first()).next();
    facts.filter(|f| **f != view.devices[device]).cloned().unwrap_or_default()
}

fn sentence(view: &View, a: &Answer, device: usize) -> Sentence {
    let level = ["No measurable difference", "No clear winner"];
    let first = a.winner.as_deref().or_else(|| level.into_iter().find(|l| a.words.starts_with(l)));
    let first = first.unwrap_or_default();
    let (bold, words) = a.words.strip_prefix(first).map_or(("", &*a.words), |w| (first, w));
    let (words, interval, rest) = parted(words);
    let mut notes: Vec<String> = a.notes.clone();
    notes.extend(counted(view, a, device));
    let mut what = a.goal.clone();
    if let Some(first) = what.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    let of = |name: &str| view.schedulers.iter().position(|s| s == name);
    let markup = |text: &str| named(view, &together(text));
    Sentence {
        what,
        winner: a.winner.as_deref().and_then(of),
        base: a.field.iter().find(|s| s.base).and_then(|s| of(&s.scheduler)),
        bold: markup(bold),
        words: markup(words),
        interval: together(interval),
        rest: markup(&format!("{rest}.")),
        chip: a.certainty.to_string(),
        class: match a.certainty {
            Certainty::Measured => "ok",
            Certainty::OneMeasure | Certainty::OneWorkload | Certainty::OneDraw => "half",
            Certainty::Incomplete | Certainty::NotSteady | Certainty::ByLimit => "half",
            Certainty::NotMeasurable | Certainty::NotTestable => "",
        },
        notes: markup(&notes.iter().map(|n| format!("{n}.")).collect::<Vec<_>>().join(" ")),
        plot: plot(view, a),
    }
}

/// A sentence before its interval, the interval, and the sentence behind it. Names may have brackets, too; an interval
/// begins behind a space and a sign.
fn parted(words: &str) -> (&str, &str, &str) {
    let begins = ["[+", "[−", "[±"].iter().filter_map(|b| words.find(&format!(" {b}"))).min();
    let Some(begin) = begins.map(|b| b + 1) else { return (words, "", "") };
    let Some(length) = words[begin..].find(']') else { return (words, "", "") };
    let (before, interval) = words.split_at(begin);
    let (interval, rest) = interval.split_at(length + 1);
    (before, interval, rest)
}

/// Text in which no line begins with a percent sign.
fn together(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// Markup of a text in which every scheduler's name is marked, so that the script can put a reader's own name there.
pub(crate) fn named(view: &View, text: &str) -> String {
    let inside = |c: char| c.is_alphanumeric() || "@-_./".contains(c);
    let mut out = String::new();
    let mut plain = 0;
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let begins = !text[..at].chars().next_back().is_some_and(inside);
        let here = |(_, s): &(usize, &String)| {
            let after = text[at..].strip_prefix(s.as_str());
            !s.is_empty()
                // A full stop may end the sentence.
                && after.is_some_and(|t| !t.trim_start_matches('.').starts_with(inside))
        };
        let found = view.schedulers.iter().enumerate().filter(here).max_by_key(|(_, s)| s.len());
        match found.filter(|_| begins) {
            Some((i, s)) => {
                let _ = write!(
                    out,
                    "{}<span data-n=\"{i}\">{}</span>",
                    escape(&text[plain..at]),
                    wrappable(s)
                );
                at += s.len();
                plain = at;
            }
            None => at += next.len_utf8(),
        }
    }
    out + &escape(&text[plain..])
}

/// In how many lines of the overview the winner is better and worse than the base.
fn counted(view: &View, a: &Answer, device: usize) -> Option<String> {
    let winner = a.winner.as_ref()?;
    let run = view
        .runs
        .iter()
        .position(|r| r.device == device && view.schedulers[r.scheduler] == *winner)?;
    if view.runs[run].scheduler == view.base {
        return None;
    }
    let heads = view.tests.iter().filter(|t| t.head && !t.twin);
    let classes: Vec<String> = heads.map(|t| standing(view, t, run).class).collect();
    let of = |side: [&str; 4]| classes.iter().filter(|c| side.contains(&c.as_str())).count();
    let (better, worse) = (of(["b1", "b2", "b3", "b4"]), of(["o1", "o2", "o3", "o4"]));
    let all = classes.iter().filter(|c| *c != "na").count();
    let base = &view.schedulers[view.base];
    Some(format!(
        "Of the {all} {} below it is better than {base} in {better}, worse in {worse}",
        if all == 1 { "measure" } else { "measures" }
    ))
}

/// How many times better, with a mark where it is only about right.
fn times(s: &Stand) -> String {
    format!("{}{}", if s.approximate { ABOUT } else { "" }, ratio(s.ratio))
}

/// A name with both of its ends, where the plot has no room for all of it: eighty pixels hold some twelve letters.
fn clipped(name: &str) -> String {
    let all: Vec<char> = name.chars().collect();
    if all.len() <= 12 {
        return name.into();
    }
    let (head, tail) = (&all[..5], &all[all.len() - 5..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

const HEIGHT: f64 = 16.0;
/// Between the labels of the axis.
const ROOM: f64 = 18.0;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 250.0;

/// The logarithmic axis of a plot, from one power of two to another.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// From half to twice at least, and as far as everybody and the intervals of those that the kernel has.
    fn of(old: &[&Stand], now: &[&Stand]) -> Axis {
        let ends = |s: &&Stand| s.interval.map_or([s.ratio; 2], |(a, b)| [a, b]);
        let all: Vec<f64> = old.iter().map(|s| s.ratio).chain(now.iter().flat_map(ends)).collect();
        // Nothing stands at the left end, and infinitely much at the right one.
        let all: Vec<f64> = all.into_iter().filter(|q| *q > 0.0 && q.log2().abs() < 64.0).collect();
        let low = all.iter().copied().fold(1.0, f64::min).log2().floor().clamp(-20.0, -1.0);
        let high = all.iter().copied().fold(1.0, f64::max).log2().ceil().clamp(1.0, 20.0);
        Axis { low, high }
    }

    fn x(&self, q: f64) -> f64 {
        let part = (q.log2() - self.low) / (self.high - self.low);
        LEFT + part.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// Lines and labels.
    fn draw(&self, out: &mut String, bottom: f64) {
        // Labels of small ratios are long.
        let labels = if self.low < -7.0 { 2.0 } else { 5.0 };
        let every = (((self.high - self.low) / labels).ceil() as usize).max(1);
        let one = self.x(1.0);
        let clear = |e: &i32| (self.x(f64::from(*e).exp2()) - one).abs() >= ROOM;
        let steps = (self.low as i32..=self.high as i32).step_by(every).filter(clear);
        for e in steps.chain([0]) {
            let at = self.x(f64::from(e).exp2());
            let line = if e == 0 { "--fg0" } else { "--hair" };
            let text = if e < 0 { ratio(f64::from(e).exp2()) } else { format!("{}", 1 << e) };
            let text = match text.trim_end_matches('0').trim_end_matches('.') {
                _ if e == 0 => "1×",
                "" => "0",
                _ if e > 0 => text.as_str(),
                bare => bare,
            };
            let _ = write!(
                out,
                "<path d=\"M{at:.0} 0V{bottom}\" stroke=\"var({line})\"/><text x=\"{at:.0}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
                bottom + 14.0,
            );
        }
    }
}

/// Where a scheduler of an answer stands among those of the page.
fn index(view: &View, s: &Stand) -> Option<usize> {
    view.schedulers.iter().position(|x| *x == s.scheduler)
}

fn short(view: &View, s: &Stand) -> String {
    index(view, s).map_or_else(|| s.scheduler.clone(), |i| view.names[i].short.clone())
}

/// What the script finds when a reader hides or renames a scheduler.
fn mark(view: &View, s: &Stand) -> String {
    index(view, s).map_or_else(String::new, |i| format!(" data-c=\"{i}\""))
}

/// Every candidate against the usual base, on a logarithmic axis; those that are gone are hollow diamonds on one line.
fn plot(view: &View, a: &Answer) -> String {
    if a.field.is_empty() {
        return String::new();
    }
    let (old, now): (Vec<&Stand>, Vec<&Stand>) = a.field.iter().partition(|s| s.gone);
    let axis = Axis::of(&old, &now);
    let rows = now.len() + usize::from(!old.is_empty());
    let bottom = rows as f64 * HEIGHT;
    let label: Vec<String> =
        a.field.iter().map(|s| format!("{} {}", short(view, s), times(s))).collect();
    let mut out = format!(
        "<svg width=\"296\" height=\"{h}\" viewBox=\"0 0 296 {h}\" role=\"img\" aria-label=\"{}\">",
        escape(&label.join(", ")),
        h = bottom + 18.0
    );
    axis.draw(&mut out, bottom);
    for (i, s) in now.iter().enumerate() {
        row(&mut out, view, s, &axis, i as f64 * HEIGHT + 8.0);
    }
    if !old.is_empty() {
        let y = now.len() as f64 * HEIGHT + 4.0;
        let _ = write!(
            out,
            "<text x=\"84\" y=\"{}\" text-anchor=\"end\">other kernels</text>",
            y + 8.0
        );
        for s in old {
            let _ = write!(
                out,
                "<path{} d=\"M{:.1} {y}l4 4l-4 4l-4-4z\" fill=\"var(--bg)\" stroke=\"var(--fg0)\"><title>{} {}</title></path>",
                mark(view, s),
                axis.x(s.ratio),
                escape(&short(view, s)),
                times(s)
            );
        }
    }
    out + "</svg>"
}

/// A scheduler that the kernel has: its name, its interval, its place and its ratio.
fn row(out: &mut String, view: &View, s: &Stand, axis: &Axis, y: f64) {
    let ink = match s.side {
        Side::Better => "--fb",
        Side::Worse => "--fo",
        Side::Level => "--fg0",
    };
    let name = short(view, s);
    let _ = write!(
        out,
        "<g{}><title>{}</title><text class=\"fg nm\" x=\"84\" y=\"{}\" text-anchor=\"end\">{}</text>",
        mark(view, s),
        escape(&name),
        y + 4.0,
        escape(&clipped(&name))
    );
    if let Some((a, b)) = s.interval {
        let _ = write!(
            out,
            "<path d=\"M{:.1} {y}H{:.1}\" stroke=\"var({ink})\" stroke-width=\"2\"/>",
            axis.x(a),
            axis.x(b)
        );
    }
    let _ = write!(
        out,
        "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"4\" fill=\"var({ink})\"/><text class=\"fg\" x=\"296\" y=\"{}\" text-anchor=\"end\">{}</text></g>",
        axis.x(s.ratio),
        y + 4.0,
        if s.base { "base".into() } else { times(s) }
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(clipped("anticipatory"), "anticipatory");
        assert_eq!(clipped("anticipatory@2.6.32"), "antic….6.32");
        assert_eq!(wrappable("bfq(low_latency=0)"), "bfq(<wbr>low_<wbr>latency=<wbr>0)");
        assert_eq!(wrappable("my_disk"), "my_disk");
    }

    /// Over twenty powers of two there is room for three labels, and one of 2× would stand on that of 1×.
    #[test]
    fn labels_of_a_wide_axis_have_room() {
        let mut out = String::new();
        Axis { low: -20.0, high: 1.0 }.draw(&mut out, 10.0);
        assert_eq!(out.matches("<text").count(), 3, "{out}");
        assert!(out.contains(">0.000001<") && out.contains(">1×<"), "{out}");
    }
}
