//! The verdict on top of the page: what to use, and what cannot be told apart.

use iosched_results::stats::Better;

use super::number::change;
use super::view::{Class, Test, View};

/// What is said about one device.
#[derive(Debug, serde::Serialize)]
pub(crate) struct DeviceVerdict {
    pub(crate) device: String,
    /// One sentence for throughput, one for latency.
    pub(crate) sentences: Vec<Sentence>,
}

/// One sentence.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Sentence {
    /// `throughput`, `latency`, `run time`.
    pub(crate) what: &'static str,
    /// The scheduler to use; empty when nothing can be said.
    pub(crate) winner: String,
    /// Its colour.
    pub(crate) color: usize,
    /// The rest of the sentence.
    pub(crate) words: String,
    /// Whether the recommendation rests on a measurable difference.
    pub(crate) sure: bool,
}

/// The means of one class on one device.
struct Standing {
    run: usize,
    /// Geometric mean of the ratios to the best of each test, at most 1.
    score: f64,
}

fn relative(t: &Test, run: usize, best: f64) -> Option<f64> {
    let v = t.cells[run].centre().filter(|v| *v > 0.0)?;
    Some(if t.better == Better::Higher { v / best } else { best / v })
}

fn best(t: &Test, runs: &[usize]) -> Option<f64> {
    let values = runs.iter().filter_map(|r| t.cells[*r].centre()).filter(|v| *v > 0.0);
    match t.better {
        Better::Higher => values.reduce(f64::max),
        Better::Lower => values.reduce(f64::min),
    }
}

/// Runs by the geometric mean of what they reach of the best, best first, over the tests all of them have.
fn standings(tests: &[&Test], runs: &[usize]) -> Vec<Standing> {
    let mut out: Vec<Standing> = runs
        .iter()
        .map(|&run| {
            let logs: Vec<f64> =
                tests.iter().filter_map(|t| Some(relative(t, run, best(t, runs)?)?.ln())).collect();
            Standing { run, score: (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp() }
        })
        .collect();
    out.sort_by(|a, b| b.score.total_cmp(&a.score));
    out
}

/// Words for how `other` stands to `winner` over the tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    worse: usize,
    better: usize,
    same: usize,
    unknown: usize,
}

/// How one scheduler stands to the winner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Measurably worse in most tests.
    Beaten,
    /// No measurable difference in any test that could have shown one.
    Equal,
    /// Measurable differences, but not in one direction or not in most tests.
    Mixed,
    /// Most tests have too few repetitions to tell.
    Open,
}

impl Tally {
    fn stands(self, tests: usize) -> Option<Stands> {
        if self == Tally::default() {
            None
        } else if 2 * self.worse > tests && self.better == 0 {
            Some(Stands::Beaten)
        } else if 2 * self.unknown >= tests {
            Some(Stands::Open)
        } else if self.worse + self.better == 0 {
            Some(Stands::Equal)
        } else {
            Some(Stands::Mixed)
        }
    }
}

fn tally(tests: &[&Test], winner: usize, other: usize) -> Tally {
    let mut out = Tally::default();
    for t in tests {
        match t.cells[other].pairs.get(winner).unwrap_or(&'.').to_ascii_lowercase() {
            'w' => out.worse += 1,
            'b' => out.better += 1,
            'n' => out.same += 1,
            '.' => {}
            _ => out.unknown += 1,
        }
    }
    out
}

fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

fn sentence(view: &View, what: &'static str, tests: &[&Test], runs: &[usize]) -> Option<Sentence> {
    let whole: Vec<&Test> = tests
        .iter()
        .filter(|t| runs.iter().all(|r| t.cells[*r].centre().is_some_and(|v| v > 0.0)))
        .copied()
        .collect();
    if whole.is_empty() || runs.len() < 2 {
        return None;
    }
    let order = standings(&whole, runs);
    let name = |run: usize| view.schedulers[view.runs[run].scheduler].clone();
    let (first, second) = (&order[0], &order[1]);
    let (mut equal, mut open, mut mixed, mut beaten) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for o in &order[1..] {
        let t = tally(&whole, first.run, o.run);
        match t.stands(whole.len()) {
            Some(Stands::Beaten) => beaten += 1,
            Some(Stands::Equal) => equal.push(name(o.run)),
            Some(Stands::Mixed) => mixed.push(name(o.run)),
            Some(Stands::Open) => open.push(name(o.run)),
            // Not judged: a page of very many cells judges against the base only.
            None => {}
        }
    }
    let lead = change(first.score / second.score);
    let over = if whole.len() == 1 { "1 test".into() } else { format!("{} tests", whole.len()) };
    let mut words = format!("{lead} over {} in the geometric mean of {over}", name(second.run));
    if (first.score / second.score - 1.0).abs() < 5e-4 {
        words = format!("level with {} in the geometric mean of {over}", name(second.run));
    }
    let winner = name(first.run);
    if !equal.is_empty() {
        words +=
            &format!("; the difference between {winner} and {} is not measurable", list(&equal));
    }
    if !open.is_empty() {
        let who = if open.len() == order.len() - 1 { "the others".into() } else { list(&open) };
        words += &format!(
            "; too few repetitions to say whether the difference from {who} is more than chance"
        );
    }
    if !mixed.is_empty() {
        words += &format!(
            "; against {} it is ahead in some tests, level or behind in others",
            list(&mixed)
        );
    }
    if beaten > 0 && beaten == order.len() - 1 {
        words += "; measurably ahead of all others in most tests";
    }
    let dropped = tests.len() - whole.len();
    if dropped > 0 {
        words += &format!(" ({dropped} incomplete left out)");
    }
    let sure = beaten == order.len() - 1;
    let color = view.runs[first.run].scheduler % 12;
    Some(Sentence { what, winner, color, words: words + ".", sure })
}

/// The verdict for every device.
pub(crate) fn verdicts(view: &View) -> Vec<DeviceVerdict> {
    let mut out = Vec::new();
    for (d, device) in view.devices.iter().enumerate() {
        let runs: Vec<usize> = (0..view.runs.len()).filter(|r| view.runs[*r].device == d).collect();
        let of = |class| -> Vec<&Test> {
            view.tests.iter().filter(|t| t.head && t.class == class).collect()
        };
        let slow = of(Class::Latency);
        let latency = slow.iter().any(|t| t.measure.contains("lat") || t.measure.contains("start"));
        let word = if latency { "latency" } else { "run time" };
        let sentences: Vec<Sentence> = [("throughput", of(Class::Throughput)), (word, slow)]
            .into_iter()
            .filter_map(|(what, tests)| sentence(view, what, &tests, &runs))
            .collect();
        out.push(DeviceVerdict { device: device.clone(), sentences });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_significant_test_of_many_proves_no_lead() {
        let t = |worse, better, same, unknown| {
            Tally { worse, better, same, unknown }.stands(worse + better + same + unknown)
        };
        assert_eq!(t(1, 0, 0, 3), Some(Stands::Open));
        assert_eq!(t(3, 0, 1, 0), Some(Stands::Beaten));
        assert_eq!(t(3, 1, 0, 0), Some(Stands::Mixed));
        assert_eq!(t(0, 0, 4, 0), Some(Stands::Equal));
        assert_eq!(t(0, 0, 0, 0), None);
    }
}
