//! Judging: every pair of schedulers of a device, and the reference viewer's flags and means.

use std::collections::BTreeMap;

use iosched_results::cells::{Analysis, Cells, judge_each};
use iosched_results::model::{self, Comparison};
use iosched_results::viewer;

use super::input::Input;
use super::number::six;
use super::view::{self, Pair, Run, UNJUDGED, View, letter};

/// Judges every scheduler against every other of the same device, for the measures shown as charts. `analysis` has
/// the judgements against the base.
pub(crate) fn judge_pairs(view: &mut View, cells: &Cells, analysis: &Analysis, input: &Input) {
    let titles = input.workload_titles();
    let place: BTreeMap<(&str, &str), usize> = view
        .tests
        .iter()
        .enumerate()
        .map(|(i, t)| ((titles[t.workload].as_str(), t.measure.as_str()), i))
        .collect();
    let runs: BTreeMap<(&str, &str), usize> = view
        .runs
        .iter()
        .enumerate()
        .map(|(i, r)| ((view.devices[r.device].as_str(), view.schedulers[r.scheduler].as_str()), i))
        .collect();
    let mut found: Vec<(usize, usize, usize, Pair)> = Vec::new();
    let mut take = |a: &Analysis| {
        for l in &a.lines {
            let (Some(j), Some(&t)) =
                (&l.against_base, place.get(&(l.key.workload.as_str(), l.measure.as_str())))
            else {
                continue;
            };
            let of = |s: &str| runs.get(&(l.key.device.as_str(), s)).copied();
            if let (Some(run), Some(base)) = (of(&l.key.scheduler), of(&a.base)) {
                let interval = j.ratio_ci.map(|(low, high)| (six(low), six(high)));
                let pair = Pair { letter: letter(j), ratio: j.ratio.map(five), interval };
                found.push((t, run, base, pair));
            }
        }
    };
    take(analysis);
    let others: Vec<&str> =
        view.schedulers.iter().map(String::as_str).filter(|s| *s != analysis.base).collect();
    judge_each(cells, &others, input.options.verdict).for_each(|a| take(&a));
    let n = view.runs.len();
    for (t, run, base, c) in found {
        let pairs = &mut view.tests[t].cells[run].pairs;
        if pairs.is_empty() {
            pairs.resize(n, UNJUDGED);
        }
        pairs[base] = c;
    }
}

/// Five digits: a ratio is shown with three.
fn five(x: f64) -> f64 {
    format!("{x:.4e}").parse().unwrap_or(x)
}

/// The reference viewer's flags and means, by its own rules.
pub(crate) fn flag(view: &mut View) {
    let run = |r: &Run| model::Run { name: r.name.clone(), ..model::Run::default() };
    let cell = |(r, c): (&Run, &view::Cell)| model::Cell {
        run: r.name.clone(),
        value: c.centre(),
        samples: if c.samples.len() > 1 { c.samples.iter().map(|s| s.0).collect() } else { vec![] },
        summary: c.summary.as_ref().and_then(|s| {
            Some(model::PublishedSummary {
                n: s.n,
                mean: s.mean?,
                se: s.se?,
                min: s.min,
                max: s.max,
            })
        }),
        missing: c.missing.clone(),
        censored: c.summary.as_ref().is_some_and(|s| s.censored > 0),
        ..model::Cell::default()
    };
    let mut comparison =
        Comparison { runs: view.runs.iter().map(run).collect(), ..Comparison::default() };
    comparison.tests = view
        .tests
        .iter()
        .map(|t| model::Test {
            better: Some(t.better),
            unit: t.unit.clone(),
            cells: view.runs.iter().zip(&t.cells).map(cell).collect(),
            ..model::Test::default()
        })
        .collect();
    for (t, m) in view.tests.iter_mut().zip(&comparison.tests) {
        t.noisy = viewer::is_noisy(m);
        t.little = viewer::has_little_change(m);
        t.spread = viewer::spread(m);
        t.incomplete = t.cells.iter().any(|c| c.summary.is_none());
    }
    for (t, m) in view.tests.iter_mut().zip(&comparison.tests) {
        let published =
            |(c, m): &(&mut view::Cell, &model::Cell)| c.samples.len() < 2 && m.summary.is_some();
        for (c, m) in t.cells.iter_mut().zip(&m.cells).filter(published) {
            c.trimmed = viewer::cell_without_outliers(m);
        }
    }
    let heads: Vec<usize> = (0..view.tests.len()).filter(|i| view.tests[*i].head).collect();
    comparison.tests = heads.iter().map(|i| comparison.tests[*i].clone()).collect();
    for i in viewer::notable(&comparison) {
        view.tests[heads[i]].notable = true;
    }
    let mut counts = heads.iter().map(|i| !view.tests[*i].told);
    comparison.tests.retain(|_| counts.next() == Some(true));
    view.geometric = viewer::geometric_means(&comparison);
    view.harmonic = viewer::harmonic_means(&comparison);
    view.wins = viewer::wins_and_losses(&comparison);
}
