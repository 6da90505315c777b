//! What an experiment asks for: a measure, or one of the goals.

use std::collections::BTreeSet;

use iosched_experiment::Trial;
use iosched_types::nearest::did_you_mean;

use crate::cells::{Cells, group};
use crate::measure::{TOTAL, derived};
use iosched_experiment::record::Record;

use super::{Answer, GOAL};

/// Goals that answers make of figures of their own choice.
const GOALS: [&str; 6] =
    ["throughput", "latency", "fairness", "start-up time", "run time", "CPU time"];
/// What the start of a command under load measures.
const STARTUP: [&str; 4] = ["startup_time", "startup_idle", "slowdown", "throughput"];
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
        if t.startup.is_some() {
            names.extend(STARTUP.map(String::from));
        }
        let jobs: BTreeSet<&str> = t.jobs.jobs.iter().map(|j| j.name.as_str()).collect();
        of_ios("", &mut names);
        if jobs.len() > 1 {
            jobs.iter().for_each(|j| of_ios(&format!("job/{j}/"), &mut names));
        }
    }
    // What a program or a live tool measures shows when it has run.
    let own = trials.iter().any(|t| t.load.is_some()) || goal.starts_with("cpu_");
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

/// What to say where an experiment asks for something that no trial measured.
#[must_use]
pub fn unmeasured(records: &[Record], answers: &[Answer]) -> Option<String> {
    let goal = records.iter().rev().find_map(|r| r.provenance.get(GOAL))?;
    if answers.iter().any(|a| a.decides) {
        return None;
    }
    let cells: Cells = group(records);
    let names: BTreeSet<&str> =
        cells.0.values().flat_map(|c| c.measures.keys().map(String::as_str)).collect();
    // A single scheduler has no answer.
    if names.contains(goal.as_str()) || answers.is_empty() {
        return None;
    }
    let names: Vec<&str> = answers.iter().map(|a| &*a.goal).chain(names.iter().copied()).collect();
    Some(format!(
        "the experiment asks for \"{goal}\", which nothing measured; {}",
        nearest(goal, &names)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        two.jobs.jobs.push(two.jobs.jobs[0].clone());
        two.jobs.jobs[1].name = "b".into();
        assert_eq!(known("job/b/write.clat.mean", &[two]), Ok(()));
    }

    fn trial() -> Trial {
        let text = "devices = [\"fixed\"]\nschedulers = [\"none\"]\n\
                    workloads = [{ job = \"[a]\\nrw=read\\nbs=4k\\ndirect=1\\nsize=1m\\n\" }]\n";
        let experiment = iosched_experiment::Experiment::from_toml("e.toml", text).unwrap();
        let sources = iosched_experiment::Sources {
            read: &|_| Err("no files".into()),
            job: &|_| Err("no jobs".into()),
            offered: &Vec::new,
            registry: iosched_schedulers::registry::Registry::builtin(),
            disk: &|_| Err("no disks".into()),
            env: &iosched_workloads::fio::NoLookup,
        };
        iosched_experiment::plan(&experiment, &sources).unwrap().remove(0)
    }
}
