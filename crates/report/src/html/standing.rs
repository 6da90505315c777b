//! How a cell stands to the base: one class for strips, matrix and legend alike.

use iosched_results::stats::Better;

use super::number::ratio;
use super::view::{Cell, Pair, Test, UNJUDGED, View};

/// Measurable, yet below one percent: shown, never shaded.
const SMALL: f64 = 0.01;

/// What is said of a cell against the base.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Standing {
    /// CSS class: base, eq, nd, few, tiny, b1 to b4, o1 to o4, lone, na.
    pub(crate) class: String,
    /// New over base.
    pub(crate) ratio: Option<f64>,
    pub(crate) interval: Option<(f64, f64)>,
    /// The ratio is only about right: a round beyond a limit counts as the limit.
    pub(crate) about: bool,
}

/// The run of the base on the device of a run.
pub(crate) fn base_of(view: &View, run: usize) -> Option<usize> {
    let device = view.runs[run].device;
    view.runs.iter().position(|b| b.device == device && b.scheduler == view.base)
}

/// How a run stands in a test.
pub(crate) fn standing(view: &View, test: &Test, run: usize) -> Standing {
    let cell = &test.cells[run];
    let make = |class: &str, pair: Pair| Standing {
        class: class.into(),
        ratio: pair.ratio,
        interval: pair.interval,
        about: false,
    };
    let Some(base) = base_of(view, run) else { return make("lone", UNJUDGED) };
    let other = &test.cells[base];
    let Some(v) = cell.centre() else { return make("na", UNJUDGED) };
    if base == run {
        return make("base", Pair { ratio: Some(1.0), ..UNJUDGED });
    }
    if cell.same(other) {
        return make("eq", Pair { ratio: Some(1.0), ..UNJUDGED });
    }
    let Some(b) = other.centre() else { return make("lone", UNJUDGED) };
    let one = |c: &Cell| c.summary.as_ref().is_some_and(|s| s.n < 2);
    let mut pair = cell.pairs.get(base).copied().unwrap_or(UNJUDGED);
    if one(cell) || one(other) {
        pair = UNJUDGED;
    }
    if b <= 0.0 || v < 0.0 {
        // Something is infinitely more than nothing. Below zero differences are judged, and there is no ratio.
        let ratio = (b == 0.0 && v > 0.0).then_some(f64::INFINITY);
        let class = match pair.letter {
            'b' | 'B' => "b4",
            'w' | 'W' => "o4",
            'n' => "nd",
            'e' | 'i' => "few",
            _ => "lone",
        };
        return make(class, Pair { ratio, interval: None, ..pair });
    }
    pair.ratio = pair.ratio.or(Some(v / b));
    let about = cell.censored() + other.censored() > 0;
    Standing { about, ..make(&class(test, pair), pair) }
}

fn class(test: &Test, pair: Pair) -> String {
    let q = oriented(test, pair.ratio.unwrap_or(1.0));
    match pair.letter {
        'n' => "nd".into(),
        'e' | 'i' => "few".into(),
        '.' => "lone".into(),
        _ if (q - 1.0).abs() < SMALL => "tiny".into(),
        'b' | 'B' | 'w' | 'W' => {
            let l = q.log2().abs();
            let shade = match l {
                _ if l < 0.32 => 1,
                _ if l < 1.0 => 2,
                _ if l < 2.5 => 3,
                _ => 4,
            };
            let side = if pair.letter.eq_ignore_ascii_case(&'b') { 'b' } else { 'o' };
            format!("{side}{shade}")
        }
        _ => "tiny".into(),
    }
}

/// A ratio so that more is better.
pub(crate) fn oriented(test: &Test, q: f64) -> f64 {
    if test.better == Better::Higher { q } else { 1.0 / q }
}

/// A class in words.
pub(crate) fn words(class: &str) -> &'static str {
    match class {
        "base" => "base",
        "eq" => "identical to the base in every round",
        "nd" => "no measurable difference",
        "few" => "not enough data to tell",
        "tiny" => "measurable, below 1 %",
        "lone" => "one value, no test possible",
        "na" => "no value",
        c if c.starts_with('b') => "measurably better",
        _ => "measurably worse",
    }
}

/// What stands beside a bar: that of the matrix.
pub(crate) fn against(test: &Test, s: &Standing) -> String {
    match (s.class.as_str(), s.ratio) {
        ("base", _) => "base".into(),
        ("eq", _) | (_, Some(_)) => times(test, s),
        (_, None) => String::new(),
    }
}

/// What the matrix shows: times better.
pub(crate) fn times(test: &Test, s: &Standing) -> String {
    match (s.class.as_str(), s.ratio) {
        ("eq", _) => "=".into(),
        (_, None) => "–".into(),
        ("nd" | "few", Some(q)) => format!("≈ {}", ratio(oriented(test, q))),
        (_, Some(q)) if s.about => format!("~{}", ratio(oriented(test, q))),
        (_, Some(q)) => ratio(oriented(test, q)),
    }
}

/// The runs of a device as lines: those with the same figures in every round are one, in the order of the first.
pub(crate) fn groups(test: &Test, runs: &[usize]) -> Vec<Vec<usize>> {
    let mut out: Vec<Vec<usize>> = Vec::new();
    let same = |a: &Cell, b: &Cell| a.same(b);
    for &r in runs {
        match out.iter_mut().find(|g| same(&test.cells[g[0]], &test.cells[r])) {
            Some(g) => g.push(r),
            None => out.push(vec![r]),
        }
    }
    out
}
