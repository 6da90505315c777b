//! What an experiment asks for: a measure, or one of the goals.

use std::collections::BTreeSet;

use iosched_experiment::Trial;
use iosched_types::nearest::did_you_mean;

use crate::cells::Cells;
use crate::measure::{TOTAL, derived, latency_of};

use super::{Answer, Candidate};

/// Goals that answers make of figures of their own choice.
const GOALS: [&str; 6] =
    ["throughput", "latency", "fairness", "start-up time", "run time", "CPU time"];
/// What the start of a command under load is judged by. The start without load is a reference.
const STARTUP: [&str; 2] = ["startup_time", "throughput"];
/// Figures of a direction of I/Os; a trim moves no data, and of syncs only their latencies are told.
const RATES: [&str; 2] = ["bw", "iops"];
const LATENCIES: [&str; 5] = ["mean", "p50", "p99", "p99.9", "p99.99"];

/// Whether a goal can be measured by trials.
///
/// # Errors
/// The nearest name, or what there is.
pub fn known(goal: &str, trials: &[Trial]) -> Result<(), String> {
    let mut names: BTreeSet<String> = GOALS.map(String::from).into();
    names.extend(["fairness.jain", TOTAL].map(String::from));
    for t in trials {
        if t.work.startup().is_some() {
            names.extend(STARTUP.map(String::from));
        }
        let jobs: BTreeSet<&str> = t.jobs().jobs.iter().map(|j| j.name.as_str()).collect();
        of_ios("", &mut names);
        if jobs.len() > 1 {
            jobs.iter().for_each(|j| of_ios(&format!("job/{j}/"), &mut names));
        }
    }
    // What a program or a live tool measures shows when it has run.
    let own = trials.iter().any(|t| t.work.load().is_some()) || goal.starts_with("cpu_");
    if names.contains(goal) || own && !goal.trim().is_empty() && !derived(goal) {
        return Ok(());
    }
    Err(nearest(goal, &names.iter().map(String::as_str).collect::<Vec<_>>()))
}

fn of_ios(prefix: &str, names: &mut BTreeSet<String>) {
    for side in ["read", "write", "trim", "sync"] {
        if side != "sync" {
            let rates = RATES.iter().filter(|r| side != "trim" || **r == "iops");
            names.extend(rates.map(|r| format!("{prefix}{side}.{r}")));
        }
        for which in ["lat", "clat"] {
            names.extend(LATENCIES.map(|l| format!("{prefix}{side}.{which}.{l}")));
        }
    }
}

fn nearest(goal: &str, names: &[&str]) -> String {
    let near = did_you_mean(goal, names.iter().copied());
    if !near.is_empty() {
        return near;
    }
    let apart = names.iter().filter(|n| !n.contains('.')).copied().collect::<Vec<_>>().join(", ");
    format!("there are {apart}, and measures as read.bw, write.lat.p99, job/NAME/read.lat.mean")
}

/// What an experiment asks for; the last word counts.
pub(super) fn asked(candidates: &[Candidate]) -> Option<&str> {
    candidates.iter().rev().map(|c| &*c.goal).find(|g| !g.is_empty())
}

/// What to say where an experiment asks for something that no answer is about. `cells` and `candidates` are those of the
/// answers.
#[must_use]
pub fn unmeasured(cells: &Cells, candidates: &[Candidate], answers: &[Answer]) -> Option<String> {
    let goal = asked(candidates)?;
    if answers.iter().any(|a| a.decides) {
        return None;
    }
    let names: BTreeSet<&str> =
        cells.0.values().flat_map(|c| c.measures.keys().map(String::as_str)).collect();
    // A single scheduler has no answer.
    if names.contains(goal) || answers.is_empty() {
        return None;
    }
    if let Some(other) = other_latency(goal).filter(|o| names.contains(o.as_str())) {
        return Some(format!(
            "the experiment asks for \"{goal}\", but these results are compared by \"{other}\""
        ));
    }
    let names: Vec<&str> = answers.iter().map(|a| &*a.goal).chain(names.iter().copied()).collect();
    Some(format!(
        "the experiment asks for \"{goal}\", which nothing measured; {}",
        nearest(goal, &names)
    ))
}

/// The other latency of the same I/Os, of which one is compared: `read.lat.p99` for `read.clat.p99`.
fn other_latency(goal: &str) -> Option<String> {
    let (side, which) = latency_of(goal)?;
    let other = if which == "lat" { "clat" } else { "lat" };
    let figure = goal.strip_prefix(side)?.strip_prefix('.')?.strip_prefix(which)?;
    Some(format!("{side}.{other}{figure}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_workloads::fio::JobSpec;

    #[test]
    fn a_goal_is_a_measure_or_a_word_for_one() {
        for good in ["latency", "throughput", "fairness.jain", "read.lat.p99", TOTAL] {
            assert_eq!(known(good, &[trial()]), Ok(()), "{good}");
        }
        assert!(known("job/a/read.bw", &[trial()]).is_err(), "one job is not told apart");
        let wrong = known("read.lat.p9", &[trial()]).unwrap_err();
        assert!(wrong.contains("read.lat.p99"), "{wrong}");
        assert!(known("latencies", &[trial()]).unwrap_err().contains("latency"));
        assert!(known("sync.bw", &[trial()]).is_err() && known("tps", &[trial()]).is_err());
        let mut two = trial();
        let mut set = two.jobs().clone();
        set.jobs.push(JobSpec { name: "b".into(), ..set.jobs[0].clone() });
        two.work = set.into();
        assert_eq!(known("job/b/write.clat.mean", &[two]), Ok(()));
    }

    fn trial() -> Trial {
        let text = "devices = [\"fixed\"]\nschedulers = [\"none\"]\n\
                    workloads = [{ job = \"[a]\\nrw=read\\nbs=4k\\ndirect=1\\nsize=1m\\n\" }]\n";
        let experiment = iosched_experiment::Experiment::from_toml("e.toml", text).unwrap();
        iosched_experiment::plan(&experiment, &iosched_experiment::Sources::default())
            .unwrap()
            .remove(0)
    }
}
