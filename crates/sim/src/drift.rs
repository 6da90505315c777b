//! Whether a run's rate changes while it is measured. Then its figures depend on how long it ran.
//!
//! A step late in the run hardly moves the halves apart, and a slow slope moves them by half of what it changes. So the run
//! is also cut in two at every place, and a line is laid through it. What chance does is known from neighbours: their
//! differences hold no trend and no step, and what the rest keeps from one to the next widens the noise.
//!
//! A run that ends while a cache of the device fills has a steady rate, which is not the one that a longer run has.

use iosched_experiment::record::HALVES_DIFFER;
use iosched_experiment::{Trial, Warning};
use iosched_types::Bytes;
use iosched_workloads::fio::stats::SAMPLE;

use crate::record::Ran;

/// By how much the rate may change without a warning, in per cent.
const APART: [u64; 4] = [10, 25, 50, 75];
/// Parts of a run that are looked at.
pub const PARTS: usize = 20;
/// Fewer parts than this tell no trend from chance.
const FEWEST: usize = 8;
/// Parts on either side of a cut.
const SIDE: usize = 2;
/// Standard errors beyond which a change is no chance: the largest of twenty looks at a steady run whose parts do not
/// depend on one another is beyond it in less than one of a hundred (tested).
const ERRORS: f64 = 5.0;

/// How a run's rate changed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// From the first to the second half, I/Os.
    Halves(u64, u64),
    /// Within the run, in I/Os a part.
    Within(f64, f64),
}

/// I/Os of all processes in the first and the second half of each one's time.
fn halves(ran: &[Ran<'_>]) -> [u64; 2] {
    let mut sums = [0; 2];
    for Ran { stats: s, .. } in ran {
        let half = s.ended.saturating_sub(s.measured_from) / SAMPLE / 2;
        for sample in s.dirs.iter().flat_map(|d| &d.samples) {
            match u64::from(sample.at) {
                at if at < half => sums[0] += u64::from(sample.ios),
                at if at < 2 * half => sums[1] += u64::from(sample.ios),
                _ => {}
            }
        }
    }
    sums
}

/// I/Os of all processes in equal parts of each one's time; a sample that lies in two parts is divided.
fn parts(ran: &[Ran<'_>]) -> Vec<f64> {
    let samples =
        |r: &Ran<'_>| (r.stats.ended.saturating_sub(r.stats.measured_from) / SAMPLE) as usize;
    let n = ran.iter().map(samples).min().unwrap_or(0).min(PARTS);
    let mut out = vec![0.0; n];
    for r in ran.iter().filter(|_| n >= FEWEST) {
        let width = n as f64 / samples(r) as f64;
        for sample in r.stats.dirs.iter().flat_map(|d| &d.samples) {
            let from = f64::from(sample.at) * width;
            let first = from as usize;
            let inside = (first as f64 + 1.0 - from).min(width) / width;
            for (part, share) in [(first, inside), (first + 1, 1.0 - inside)] {
                if let Some(sum) = out.get_mut(part) {
                    *sum += share * f64::from(sample.ios);
                }
            }
        }
    }
    out
}

fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len().max(1) as f64
}

/// The standard deviation of a part from what `fitted` says, as if parts did not depend on one another.
fn noise(parts: &[f64], fitted: &dyn Fn(usize) -> f64) -> f64 {
    let steps = parts.windows(2).map(|w| (w[1] - w[0]).powi(2));
    let between = steps.sum::<f64>() / (2 * (parts.len() - 1)) as f64;
    let rest: Vec<f64> = parts.iter().enumerate().map(|(i, x)| x - fitted(i)).collect();
    let squares: f64 = rest.iter().map(|x| x * x).sum();
    let kept = if squares > 0.0 {
        rest.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / squares
    } else {
        0.0
    };
    // A part has a count: it is at least as uncertain as one.
    let least = mean(parts).max(1.0);
    let apart = squares / (parts.len() - 2) as f64;
    let kept = kept.clamp(0.0, 0.9);
    (between.max(apart).max(least) * (1.0 + kept) / (1.0 - kept)).sqrt()
}

/// The most certain of the changes that are large enough.
fn within(parts: &[f64]) -> Option<(f64, f64)> {
    let n = parts.len();
    if n < FEWEST {
        return None;
    }
    let mut found: Option<(f64, f64, f64)> = None;
    let mut look = |before: f64, after: f64, errors: f64| {
        let large = (before - after).abs() * 100.0 > before.max(after) * APART[0] as f64;
        if large && errors > ERRORS && found.is_none_or(|f| errors > f.2) {
            found = Some((before, after, errors));
        }
    };
    for cut in SIDE..=n - SIDE {
        let (before, after) = (mean(&parts[..cut]), mean(&parts[cut..]));
        let noise = noise(parts, &|i| if i < cut { before } else { after });
        let error = noise * (1.0 / cut as f64 + 1.0 / (n - cut) as f64).sqrt();
        look(before, after, (before - after).abs() / error);
    }
    let (middle, level) = ((n - 1) as f64 / 2.0, mean(parts));
    let moments = parts.iter().enumerate().map(|(i, y)| (i as f64 - middle) * (y - level));
    let squares: f64 = (0..n).map(|i| (i as f64 - middle).powi(2)).sum();
    let slope = moments.sum::<f64>() / squares;
    let line = |i: usize| level + slope * (i as f64 - middle);
    let errors = slope.abs() * squares.sqrt() / noise(parts, &line);
    look(line(0).max(0.0), line(n - 1).max(0.0), errors);
    found.map(|(before, after, _)| (before, after))
}

fn change(halves: [u64; 2], parts: &[f64]) -> Option<Change> {
    let [first, second] = halves;
    let (less, more) = (first.min(second), first.max(second));
    // What chance does to so few I/Os is no change.
    let sure = more - less > 3 * (first + second).isqrt();
    if sure && (more - less) * 100 > more * APART[0] {
        return Some(Change::Halves(first, second));
    }
    within(parts).map(|(before, after)| Change::Within(before, after))
}

/// By more than how many per cent two rates differ, of those that are told.
fn apart(a: f64, b: f64) -> u64 {
    let apart = (a - b).abs() * 100.0;
    APART.into_iter().rev().find(|p| apart > a.max(b) * *p as f64).unwrap_or(APART[0])
}

/// How a rate changes, in words, if it does: from the I/Os of both halves of a run, and of its equal parts, at most 20.
#[must_use]
pub fn told(halves: [u64; 2], parts: &[f64]) -> Option<String> {
    Some(match change(halves, parts)? {
        Change::Halves(first, second) => format!(
            "the second half of the run has over {} % {} I/Os than the first",
            apart(first as f64, second as f64),
            if first > second { "fewer" } else { "more" }
        ),
        Change::Within(before, after) => format!(
            "the rate {} by over {} % within the run",
            if before > after { "falls" } else { "rises" },
            apart(before, after)
        ),
    })
}

/// If the rate of a run changes, its figures depend as much on the start as on the state that it settles to.
pub(crate) fn warning(trial: &Trial, ran: &[Ran<'_>]) -> Option<Warning> {
    told(halves(ran), &parts(ran)).map(|told| said(trial, &told))
}

/// A cache of a device at the end of a run.
type Cache = (&'static str, Bytes, Bytes);

/// If a cache of the device still fills: over a tenth of what was written is in it and nowhere else, and that is over a fiftieth
/// of its room (a short run of random writes has no more in it). A cache that empties as fast as it fills holds less.
pub(crate) fn filling(trial: &Trial, caches: &[Cache], written: Bytes) -> Option<Warning> {
    // A state that the user has filled is full of what was there before.
    trial.device.all_full()?;
    // After a warm-up a full cache has been full while the rate was measured, which did not change.
    let warm = trial.jobs().jobs.iter().any(|j| j.ramp_time > 0 || j.warm_up > 0);
    let full = |c: &Cache| warm && c.1 >= c.2 / 10 * 9;
    let fills = |c: &&Cache| c.1 > written / 10 && c.1 > c.2 / 50 && !full(c);
    let (name, used, size) = caches.iter().filter(fills).max_by_key(|c| c.1)?;
    let percent = |a: Bytes, b: Bytes| (u128::from(a) * 100 / u128::from(b.max(1))).min(100);
    let told = format!(
        "the {name} of the device was {} % full at the end, with {} % of what was written: a longer run is slower",
        percent(*used, *size),
        percent(*used, written)
    );
    Some(said(trial, &told))
}

fn said(trial: &Trial, told: &str) -> Warning {
    let id = &trial.id;
    Warning {
        code: HALVES_DIFFER.into(),
        message: format!("{} on {}, {}: {told}", id.workload, id.device, id.scheduler),
        advice: match trial.device.all_full() {
            Some(full) => format!(
                "caches fill up, or a scheduler adapts: run it longer, or begin with full caches by --device-state {}",
                full.text()
            ),
            None => "a scheduler adapts, or the load changes: run it longer".into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts that deviate from a rate by so much, and whose neighbours are alike by `kept`.
    fn series(seed: u64, kept: f64, deviation: f64, rate: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut stream = iosched_engine::stream(seed, "drift");
        let mut uniform = || (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        // A sum of twelve is as good as normal here.
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let mut last = normal();
        (0..PARTS)
            .map(|i| {
                last = kept * last + (1.0 - kept * kept).sqrt() * normal();
                rate(i) * (1.0 + deviation * last)
            })
            .collect()
    }

    fn share(kept: f64, deviation: f64, rate: impl Fn(usize) -> f64) -> f64 {
        let drifts = |s: &u64| within(&series(*s, kept, deviation, &rate)).is_some();
        (0..1000).filter(drifts).count() as f64 / 1000.0
    }

    #[test]
    fn steady_runs_are_seldom_taken_for_others_and_changes_are_found() {
        // Where neighbours are alike, a steady rate wanders, and twenty parts cannot tell that from a drift for sure.
        for (kept, deviation, most) in
            [(0.0, 0.05, 0.01), (0.0, 0.2, 0.01), (0.3, 0.1, 0.03), (0.6, 0.1, 0.1)]
        {
            let alarms = share(kept, deviation, |_| 2000.0);
            assert!(alarms < most, "{alarms} of steady runs, {kept}");
        }
        // Both lie below what the halves show: 4 and 9 %.
        let late = share(0.0, 0.03, |i| if i < 17 { 2000.0 } else { 1500.0 });
        let slope = share(0.0, 0.03, |i| 2000.0 * (1.0 - 0.009 * i as f64));
        assert!(late > 0.9 && slope > 0.9, "a late step {late}, a slope {slope}");
    }

    #[test]
    fn the_last_samples_count() {
        let mut parts = vec![247.0; 20];
        assert_eq!(change([2470, 2470], &parts), None);
        parts[17..].fill(190.0);
        let Some(Change::Within(before, after)) = change([2470, 2299], &parts) else {
            panic!("{parts:?}")
        };
        assert_eq!((before, after), (247.0, 190.0));
        assert_eq!(change([100, 60], &[]), Some(Change::Halves(100, 60)));
        assert_eq!(within(&parts[13..]), None, "too few");
    }
}
