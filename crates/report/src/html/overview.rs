//! The dot plot on top of the page, and what part of the best a scheduler reaches.

use iosched_results::stats::Better;
use serde::Serialize;

use super::bars::percent;
use super::input::Input;
use super::number::plain;
use super::view::{Test, View};

/// The dot plot of one device.
#[derive(Debug, Serialize)]
pub(crate) struct Overview {
    device: String,
    /// Left end of the logarithmic axis, in per cent of the best.
    low: String,
    rows: Vec<OverviewRow>,
    runs: Vec<Legend>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Legend {
    run: usize,
    color: usize,
    label: String,
}

#[derive(Debug, Serialize)]
struct OverviewRow {
    test: usize,
    label: String,
    measure: String,
    dots: Vec<Dot>,
}

#[derive(Debug, Serialize)]
struct Dot {
    run: usize,
    color: usize,
    /// Place on the axis in per cent; `None` when there is no number.
    at: Option<String>,
    share: String,
}

pub(crate) fn of_best(test: &Test, runs: &[usize]) -> Vec<Option<f64>> {
    let values: Vec<Option<f64>> =
        runs.iter().map(|r| test.cells[*r].centre().filter(|v| *v > 0.0)).collect();
    let best = values.iter().flatten().copied().reduce(match test.better {
        Better::Higher => f64::max,
        Better::Lower => f64::min,
    });
    let relative = |v: f64, best: f64| {
        if test.better == Better::Higher { v / best } else { best / v }
    };
    values.into_iter().map(|v| v.zip(best).map(|(v, b)| relative(v, b))).collect()
}

pub(crate) fn legend(view: &View, runs: &[usize]) -> Vec<Legend> {
    runs.iter()
        .map(|&run| {
            let s = view.runs[run].scheduler;
            Legend { run, color: s % 12, label: view.schedulers[s].clone() }
        })
        .collect()
}

pub(crate) fn runs_of(view: &View, device: usize) -> Vec<usize> {
    (0..view.runs.len()).filter(|r| view.runs[*r].device == device).collect()
}

pub(crate) fn overview(view: &View, input: &Input, device: usize) -> Overview {
    let runs = runs_of(view, device);
    let tests: Vec<usize> = (0..view.tests.len()).filter(|t| view.tests[*t].head).collect();
    let shares: Vec<Vec<Option<f64>>> =
        tests.iter().map(|t| of_best(&view.tests[*t], &runs)).collect();
    let least = shares.iter().flatten().flatten().copied().fold(1.0, f64::min);
    let low = [0.9, 0.8, 0.7, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001]
        .into_iter()
        .find(|x| *x <= least)
        .unwrap_or(0.001);
    let dot = |(run, share): (&usize, &Option<f64>)| Dot {
        run: *run,
        color: view.runs[*run].scheduler % 12,
        at: share.map(|s| percent((1.0 - s.max(low).ln() / f64::ln(low)) * 100.0)),
        share: share.map_or_else(|| "–".into(), |s| format!("{} %", plain(s * 100.0))),
    };
    let rows = tests
        .iter()
        .zip(&shares)
        .map(|(t, s)| OverviewRow {
            test: *t,
            label: input.workloads[view.tests[*t].workload].title.clone(),
            measure: view.tests[*t].title.clone(),
            dots: runs.iter().zip(s).map(dot).collect(),
        })
        .collect();
    let low = format!("{} %", plain(low * 100.0));
    Overview { device: view.devices[device].clone(), low, rows, runs: legend(view, &runs) }
}
