//! Our numbers beside SciPy's (`tests/scipy/make_expected.py` made `expected.json`).

#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_results::stats::special::{
    digamma, normal_cdf, normal_quantile, t_cdf, t_quantile, trigamma, trigamma_inverse,
};
use iosched_results::stats::{
    Better, CiMethod, Observation, Sample, Test, VerdictOptions, bca, benjamini_hochberg,
    cliffs_delta, judge, mann_whitney, summarize,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    cases: Vec<Case>,
    normal_cdf: Vec<(f64, f64)>,
    normal_quantile: Vec<(f64, f64)>,
    t_cdf: Vec<(f64, f64, f64)>,
    t_quantile: Vec<(f64, f64, f64)>,
    benjamini_hochberg: Vec<(Vec<f64>, Vec<f64>)>,
    welch: Vec<Welch>,
    digamma: Vec<(f64, f64)>,
    trigamma: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
struct Welch {
    x: Vec<f64>,
    y: Vec<f64>,
    p: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Case {
    kind: String,
    x: Vec<f64>,
    y: Vec<f64>,
    mean: f64,
    median: f64,
    sd: f64,
    se: f64,
    t: (f64, f64),
    u: f64,
    p_exact: f64,
    p_normal: f64,
    delta: f64,
    bca: Option<(f64, f64)>,
}

fn expected() -> Expected {
    serde_json::from_str(include_str!("../scipy/expected.json")).unwrap()
}

#[track_caller]
fn close(got: f64, want: f64, relative: f64) {
    assert!((got - want).abs() <= relative * want.abs().max(1e-12), "{got} is not {want}");
}

fn obs(v: &[f64]) -> Vec<Observation> {
    v.iter().copied().map(Observation::from).collect()
}

#[test]
fn distributions() {
    let e = expected();
    e.normal_cdf.iter().for_each(|(z, p)| close(normal_cdf(*z), *p, 1e-11));
    e.normal_quantile.iter().for_each(|(p, z)| {
        if *z == 0.0 {
            assert!(normal_quantile(*p).abs() < 1e-12)
        } else {
            close(normal_quantile(*p), *z, 1e-11)
        }
    });
    e.t_cdf.iter().for_each(|(t, df, p)| close(t_cdf(*t, *df), *p, 1e-10));
    e.t_quantile.iter().for_each(|(p, df, t)| close(t_quantile(*p, *df), *t, 1e-9));
}

#[test]
fn summaries() {
    for c in expected().cases {
        let s = summarize(&obs(&c.x), 1);
        close(s.mean.unwrap(), c.mean, 1e-12);
        close(s.median.unwrap(), c.median, 1e-12);
        close(s.sd.unwrap(), c.sd, 1e-12);
        close(s.se.unwrap(), c.se, 1e-12);
        let ci = s.ci.unwrap();
        if s.skewed() {
            // Student's interval of the logarithms, as far as it holds the median; below zero, where it is not bounded.
            let logs: Vec<f64> = c.x.iter().map(|x| x.ln() - 1e3).collect();
            let (of_logs, centre) = (summarize(&obs(&logs), 1).ci.unwrap(), s.centre().unwrap());
            if of_logs.method == CiMethod::T {
                close(ci.low, (of_logs.low + 1e3).exp().min(c.median), 1e-9);
            }
            assert!(ci.low <= centre && centre <= ci.high);
        } else if ci.method == CiMethod::T {
            // The mean of what is never negative is not negative.
            let least = if c.x.iter().all(|x| *x >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
            close(ci.low, c.t.0.max(least), 1e-9);
            close(ci.high, c.t.1, 1e-9);
        }
    }
}

#[test]
fn rank_tests() {
    for c in expected().cases {
        let (x, y) = (obs(&c.x), obs(&c.y));
        let r = mann_whitney(&x, &y).unwrap();
        close(r.u, c.u, 1e-12);
        close(r.p, if r.exact { c.p_exact } else { c.p_normal }, 1e-9);
        assert_eq!(r.exact, c.kind != "ties" || !tied(&c), "{:?}", c.x);
        let d = cliffs_delta(&x, &y);
        assert!((d - c.delta).abs() < 1e-12);
    }
}

fn tied(c: &Case) -> bool {
    let mut all = [c.x.clone(), c.y.clone()].concat();
    all.sort_by(f64::total_cmp);
    all.windows(2).any(|w| w[0] == w[1])
}

fn sample(v: &[f64]) -> Sample {
    let rounds = (1..).zip(v.iter().map(|v| Observation::from(*v))).collect();
    Sample { rounds, ..Sample::default() }
}

#[test]
fn tests_on_logarithms() {
    for w in expected().welch {
        let j = judge(&sample(&w.x), &sample(&w.y), Better::Higher, VerdictOptions::default());
        assert_eq!(j.test, Test::Welch);
        close(j.p.unwrap(), w.p, 1e-9);
        let (low, high) = j.ratio_ci.unwrap();
        close(low, w.low, 1e-9);
        close(high, w.high, 1e-9);
    }
}

#[test]
fn polygamma_functions() {
    let e = expected();
    e.digamma.iter().for_each(|(x, y)| assert!((digamma(*x) - y).abs() < 1e-9, "{x}"));
    e.trigamma.iter().for_each(|(x, y)| close(trigamma(*x), *y, 1e-9));
    e.trigamma.iter().for_each(|(x, y)| close(trigamma_inverse(*y), *x, 1e-8));
}

/// Ours draws 2,000 resamples, SciPy drew 200,000: the ends agree within 10 % of the interval's width.
#[test]
fn bootstrap_intervals() {
    let mut seen = 0;
    for c in expected().cases {
        let Some((low, high)) = c.bca else { continue };
        let (a, b) = bca(&c.x, 0.95, 1);
        let tolerance = 0.10 * (high - low);
        assert!(
            (a - low).abs() < tolerance && (b - high).abs() < tolerance,
            "{a}..{b} is not {low}..{high}: {:?}",
            c.x
        );
        seen += 1;
    }
    assert!(seen >= 12);
}

#[test]
fn false_discoveries() {
    for (p, want) in expected().benjamini_hochberg {
        benjamini_hochberg(&p).iter().zip(&want).for_each(|(a, b)| close(*a, *b, 1e-12));
    }
}
