//! Whether the rate of a live run changes while it is measured, from the disks' own counts.

use std::time::Duration;

use iosched_experiment::Warning;
use iosched_experiment::record::{HALVES_DIFFER, TrialId};
use iosched_sim::drift::{PARTS, told};
use iosched_workloads::fio::JobSpec;

/// Looks at the disks, from the start of a run: when, and how many I/Os they had done then.
type Looks<'a> = &'a [(Duration, u64)];

/// If it does. Only of direct jobs that all run all the time is the disks' rate the load's.
pub(super) fn warning(id: &TrialId, jobs: &[JobSpec], looks: Looks<'_>) -> Option<Warning> {
    let whole = jobs.iter().all(|j| {
        j.direct && !j.wait.stonewall && j.wait.delay == 0 && j.runtime == jobs[0].runtime
    });
    let ramp = jobs.iter().map(|j| j.ramp_time).max()?;
    let parts = whole.then(|| parts(looks, Duration::from_nanos(ramp)))?;
    let half = |p: &[f64]| p.iter().sum::<f64>() as u64;
    // The part in the middle of an odd number belongs to neither half.
    let (first, second) = (&parts[..parts.len() / 2], &parts[parts.len().div_ceil(2)..]);
    let told = told([half(first), half(second)], &parts)?;
    Some(Warning {
        code: HALVES_DIFFER.into(),
        message: format!("{} on {}, {}: {told}", id.workload, id.device, id.scheduler),
        advice: "a cache of the drive fills or empties, a scheduler adapts, or others use the disk: run it longer, \
                 or bring the drive into its steady state first (steady_state)"
            .into(),
    })
}

/// I/Os in equal parts of the time between the first and the last look that found new ones. The tool begins and ends
/// within the looks before and after, so these are left out, and so is the time that it does not measure.
fn parts(looks: Looks<'_>, ramp: Duration) -> Vec<f64> {
    let moved = |w: &[(Duration, u64)]| w[1].1 > w[0].1;
    let Some(first) = looks.windows(2).position(moved) else { return Vec::new() };
    let last = looks.windows(2).rposition(moved).unwrap_or(first);
    let from = looks[first].0 + ramp;
    let within = looks.get(first + 1..=last).unwrap_or_default();
    let within: Vec<_> = within.iter().filter(|l| l.0 >= from).collect();
    let n = within.len().saturating_sub(1).min(PARTS);
    let (Some(begin), Some(end)) = (within.first(), within.last()) else { return Vec::new() };
    let span = (end.0 - begin.0).as_secs_f64();
    let at = |i: usize| begin.0.as_secs_f64() + span * i as f64 / n as f64;
    let counted = |t: f64| {
        let next = within.iter().position(|l| l.0.as_secs_f64() >= t).unwrap_or(within.len() - 1);
        let (a, b) = (within[next.saturating_sub(1)], within[next]);
        let width = (b.0 - a.0).as_secs_f64();
        let share =
            if width > 0.0 { ((t - a.0.as_secs_f64()) / width).clamp(0.0, 1.0) } else { 1.0 };
        a.1 as f64 + share * (b.1 - a.1) as f64
    };
    (0..n).map(|i| counted(at(i + 1)) - counted(at(i))).collect()
}

#[cfg(test)]
mod tests {
    use iosched_workloads::fio::{NoLookup, parse};

    use super::*;

    /// Looks each 250 ms at a disk of that rate at each second, after a second in which the tool starts.
    fn looks(rate: impl Fn(f64) -> f64, seconds: f64) -> Vec<(Duration, u64)> {
        let mut done = 1000.0;
        (1..=(4.0 * (seconds + 2.0)) as u32)
            .map(|i| {
                let t = f64::from(i) / 4.0;
                if t > 1.1 && t <= seconds + 1.1 {
                    done += rate(t - 1.0) / 4.0;
                }
                (Duration::from_secs_f64(t), done as u64)
            })
            .collect()
    }

    fn said(job: &str, looks: Looks<'_>) -> Option<String> {
        let text = format!("[w]\nfilename=/dev/disk\nrw=randwrite\ntime_based\nruntime=10\n{job}");
        let none = |_: &str| Err("no includes".to_string());
        let jobs = parse("w.fio", &text, &NoLookup, &none, &[]).unwrap();
        warning(&TrialId::default(), &jobs.jobs, looks).map(|w| w.message)
    }

    #[test]
    fn a_steady_rate_is_silent_and_a_falling_one_is_told() {
        let steady = looks(|t| 2000.0 + 40.0 * (t * 97.0).sin(), 10.0);
        assert_eq!(said("direct=1", &steady), None);
        let cache = looks(|t| if t < 7.0 { 2000.0 } else { 1500.0 }, 10.0);
        let message = said("direct=1", &cache).unwrap();
        assert!(message.contains("I/Os than the first") || message.contains("falls"), "{message}");
        assert_eq!(said("direct=0", &cache), None, "the page cache's I/Os are not the load's");
        let ramp = looks(|t| if t < 4.0 { 4000.0 } else { 2000.0 }, 14.0);
        assert_eq!(said("direct=1\nramp_time=4", &ramp), None, "not measured");
        assert!(said("direct=1", &ramp).is_some());
    }

    #[test]
    fn few_looks_and_none_are_no_ground() {
        assert_eq!(said("direct=1", &[]), None);
        assert_eq!(said("direct=1", &looks(|_| 0.0, 10.0)), None);
        assert_eq!(said("direct=1", &looks(|_| 2000.0, 1.0)), None);
    }
}
