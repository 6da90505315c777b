//! What is expected of scenarios of calls, in brief.

use std::collections::BTreeMap;
use std::fmt::Write;

use iosched_sim::scenario::calls::{CallsShown, ShownBio, Step, StepKind};

/// What holds for every scenario of calls.
pub(crate) fn check(c: &CallsShown) {
    assert!(!c.cut && c.steps.is_sorted_by_key(|s| s.t_ns));
    assert!(c.calls.iter().all(|c| c.to_ns.is_some()), "a call did not return: {c:?}");
    // Whoever sleeps is woken once, by a cause that has a name, before it sleeps again.
    let mut asleep: BTreeMap<&str, bool> = BTreeMap::new();
    for s in &c.steps {
        let sleeps = asleep.entry(&s.who).or_default();
        match &s.kind {
            StepKind::Sleeps { until, .. } => {
                assert!(!std::mem::replace(sleeps, true), "{} sleeps twice: {s:?}", s.who);
                assert!(!until.is_empty());
            }
            StepKind::Woken { by } => {
                assert!(std::mem::replace(sleeps, false), "{} was awake: {s:?}", s.who);
                assert!(!by.is_empty());
            }
            StepKind::Submits { .. } | StepKind::Returns | StepKind::Calls => {
                assert!(!*sleeps, "{} does something in its sleep: {s:?}", s.who);
            }
            StepKind::Finds(_) | StepKind::Dispatches { .. } => {}
        }
    }
    let bios = c.steps.iter().filter(|s| matches!(s.kind, StepKind::Submits { .. }));
    assert_eq!(bios.count(), c.bios.len(), "each bio shows up");
}

/// `RA a 0+16 KiB`, `WSM JNL 2655236+7`.
fn bio(b: &ShownBio) -> String {
    if b.sectors == 0 {
        return b.flags.clone();
    }
    if b.pages.is_some() {
        return format!("{} {}", b.flags, b.holds());
    }
    let place = match (b.sector % 8, b.sectors % 8) {
        (0, 0) => format!("{}+{}", b.sector / 8, b.sectors / 8),
        _ => format!("sector {}+{}", b.sector, b.sectors),
    };
    format!("{} {} {place}", b.flags, b.class.as_deref().unwrap_or("-"))
}

/// Calls with their bios below them. Calls without any that follow one another are counted.
pub(crate) fn brief(c: &CallsShown) -> String {
    let mut out = String::new();
    let mut quiet: Vec<usize> = Vec::new();
    // The call of each task below which its bios stand.
    let mut above: Option<usize> = None;
    let steps: Vec<&Step> = c.steps.iter().collect();
    let does = |i: usize| {
        let own = steps.iter().filter(|s| s.call == Some(i));
        own.clone().any(|s| matches!(s.kind, StepKind::Submits { .. }))
            || c.calls[i].error.is_some()
    };
    let mut done = 0;
    for (at, step) in steps.iter().enumerate() {
        match &step.kind {
            StepKind::Calls => {
                let Some(i) = step.call else { continue };
                if !does(i) {
                    quiet.push(i);
                    above = None;
                    continue;
                }
                tell_quiet(c, &mut quiet, &mut out);
                above = name(c, i, &mut out);
            }
            StepKind::Submits { bio: first } if *first >= done => {
                tell_quiet(c, &mut quiet, &mut out);
                let n = run(c, &steps[at..], *first);
                done = first + n;
                let text = bio(&ShownBio::joined(&c.bios[*first..done]));
                match step.call {
                    Some(i) => {
                        if above != Some(i) {
                            above = name(c, i, &mut out);
                        }
                        let _ = writeln!(out, "    {text}");
                    }
                    None => {
                        above = None;
                        let ms = step.t_ns as f64 / 1e6;
                        let _ = writeln!(out, "@{ms:.0} {}: {text}", step.who);
                    }
                }
            }
            StepKind::Returns => {
                if let Some(e) = step.call.and_then(|i| c.calls[i].error.as_ref()) {
                    let _ = writeln!(out, "    = {e}");
                }
            }
            StepKind::Dispatches { request, .. } if step.who != "none" => {
                let _ = writeln!(out, "    > {request}");
            }
            _ => {}
        }
    }
    tell_quiet(c, &mut quiet, &mut out);
    out
}

fn name(c: &CallsShown, i: usize, out: &mut String) -> Option<usize> {
    let _ = writeln!(out, "{}: {}", c.calls[i].task, c.calls[i].call);
    Some(i)
}

fn tell_quiet(c: &CallsShown, quiet: &mut Vec<usize>, out: &mut String) {
    match quiet.as_slice() {
        [] => {}
        [one] => _ = name(c, *one, out),
        [first, .., last] => {
            let (first, last) = (&c.calls[*first], &c.calls[*last]);
            let _ = writeln!(
                out,
                "{}: {} … {} ({} calls)",
                first.task,
                first.call,
                last.call,
                quiet.len()
            );
        }
    }
    quiet.clear();
}

/// How many bios from `first` on are neighbours that the same one made at the same time.
fn run(c: &CallsShown, steps: &[&Step], first: usize) -> usize {
    let mut n = 1;
    for s in &steps[1..] {
        let StepKind::Submits { bio } = s.kind else { break };
        let goes_on = bio == first + n && s.t_ns == steps[0].t_ns && s.call == steps[0].call;
        if !goes_on || !c.bios[bio - 1].goes_on(&c.bios[bio]) {
            break;
        }
        n += 1;
    }
    n
}
