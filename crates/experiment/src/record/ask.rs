//! What a job is run for, by its own description.

use iosched_types::{Bytes, PrioClass};
use iosched_workloads::fio::JobSpec;
use serde::{Deserialize, Serialize};

use super::Record;

/// Syncs after more writes than this are those of a stream, which is run for its throughput.
const OFTEN: std::ops::RangeInclusive<u32> = 1..=32;
/// Larger I/Os one after the other are a stream, too.
const SMALL: Bytes = 128 << 10;
/// More data than this is no start of a program.
const START: Bytes = 64 << 20;

/// What a job asks of its disk. A job without an ask is run for throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    /// Bytes a second, no more and no less: a film, a stream.
    Rate(Bytes),
    /// Short syncs: a document that is saved, a transaction.
    Sync,
    /// What others leave: the idle class.
    Idle,
    /// To go before all others: the real-time class, or a weight beside jobs of which it says no share.
    Share,
    /// This share of the throughput, in thousandths, by weights of control groups or levels of priority.
    Due(u32),
    /// Short waits for small I/Os of which each waits for the one before, with pauses or an end: a program that starts.
    Wait,
}

impl Ask {
    /// That of a fio job.
    #[must_use]
    pub fn of(job: &JobSpec) -> Option<Ask> {
        if job.prio.class == PrioClass::Idle {
            return Some(Ask::Idle);
        }
        if job.prio.class == PrioClass::Rt {
            return Some(Ask::Share);
        }
        let rate = (0..3).filter(|d| job.does(*d)).filter_map(|d| rate(job, d));
        let rate: Bytes = rate.sum();
        if rate > 0 {
            return Some(Ask::Rate(rate));
        }
        // A weight is for those that take as much as they get: more than its rate a job cannot use.
        if job.cgroup.as_ref().is_some_and(|(_, weight)| weight.is_some()) {
            return Some(Ask::Share);
        }
        let largest = job.bs.range.iter().map(|r| r.1).max().unwrap_or(0);
        // A job that reads as well, and a stream that is synced now and then, are run for throughput.
        let saves = largest <= SMALL && !job.does(0);
        if saves && (OFTEN.contains(&job.fsync) || OFTEN.contains(&job.fdatasync)) {
            return Some(Ask::Sync);
        }
        let size = job.io_size.or(job.target.size).unwrap_or(Bytes::MAX);
        let ends = !job.time_based && (size <= START || job.number_ios.is_some());
        let pauses = job.think.time > 0;
        let alone = job.iodepth <= 1 && largest <= SMALL && job.does(0) != job.does(1);
        (alone && (ends || pauses || job.sync > 0)).then_some(Ask::Wait)
    }
}

/// The rate that a direction is held to. Of I/Os of several sizes a number says no bytes.
fn rate(job: &JobSpec, direction: usize) -> Option<Bytes> {
    let (rate, (least, most)) = (job.rate[direction], job.bs.range[direction]);
    let ios = Some(u64::from(rate.iops) * least).filter(|_| rate.iops > 0 && least == most);
    Some(rate.bytes).filter(|b| *b > 0).or(ios)
}

/// Weight of a control group that names none.
const USUAL: u32 = 100;

/// Whether a job takes as much as it gets, so that a share is all that it may ask for.
fn greedy(job: &JobSpec) -> bool {
    matches!(Ask::of(job), None | Some(Ask::Share)) && job.prio.class != PrioClass::Rt
}

/// The weight of the control group of a job, shared by the jobs in it. `None` below another group, whose weight counts first.
fn of_group(job: &JobSpec, jobs: &[JobSpec], groups: &[(String, u32)]) -> Option<f64> {
    let group = |j: &JobSpec| j.cgroup.as_ref().map(|(path, _)| path.trim_matches('/').to_string());
    let own = group(job).filter(|path| !path.is_empty() && !path.contains('/'))?;
    let inside = || jobs.iter().filter(|j| group(j).as_ref() == Some(&own));
    let said = inside().find_map(|j| j.cgroup.as_ref()?.1);
    let listed = || groups.iter().find(|(path, _)| path.trim_matches('/') == own).map(|g| g.1);
    let weight = said.or_else(listed).unwrap_or(USUAL);
    Some(f64::from(weight) / inside().filter(|j| greedy(j)).count().max(1) as f64)
}

/// The weight of each job that takes as much as it gets, where these weights differ: that of its control group, or that of its
/// level of priority, 8 less the level as BFQ's documentation has it.
fn weights<'a>(jobs: &'a [JobSpec], groups: &[(String, u32)]) -> Vec<(&'a str, f64)> {
    let all: Vec<&JobSpec> = jobs.iter().filter(|j| greedy(j)).collect();
    let level = |j: &&JobSpec| f64::from(8 - j.prio.or_of_nice(j.nice).level.min(7));
    let grouped: Option<Vec<f64>> = all.iter().map(|j| of_group(j, jobs, groups)).collect();
    let weights = match grouped {
        Some(weights) => weights,
        None if all.iter().any(|j| j.cgroup.is_some()) => return Vec::new(),
        None => all.iter().map(level).collect(),
    };
    let names = all.iter().map(|j| j.name.as_str());
    match weights.iter().all(|w| *w == weights[0]) {
        true => Vec::new(),
        false => names.zip(weights).collect(),
    }
}

impl Record {
    /// Notes the jobs' asks. `groups` has weights of control groups.
    pub fn note_asks(&mut self, jobs: &[JobSpec], groups: &[(String, u32)]) {
        let weights = weights(jobs, groups);
        let all: f64 = weights.iter().map(|w| w.1).sum();
        for own in &mut self.jobs {
            let due: f64 = weights.iter().filter(|w| w.0 == own.name).map(|w| w.1).sum();
            own.ask = match due > 0.0 {
                true => Some(Ask::Due((due / all * 1000.0).round() as u32)),
                false => jobs.iter().find(|j| j.name == own.name).and_then(Ask::of),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use iosched_workloads::fio::{NoLookup, parse};

    use super::*;

    fn ask(options: &str) -> Option<Ask> {
        let text = format!(
            "[a]\nfilename=/dev/disk\nruntime=5\ntime_based\n{}",
            options.replace(' ', "\n")
        );
        let none = |_: &str| Err("no includes".to_string());
        let jobs = parse("a.fio", &text, &NoLookup, &none, &[]).unwrap();
        Ask::of(&jobs.jobs[0])
    }

    fn dues(text: &str, groups: &[(String, u32)]) -> Vec<Option<Ask>> {
        let text = format!("[global]\nfilename=/dev/disk\nruntime=5\ntime_based\n{text}");
        let none = |_: &str| Err("no includes".to_string());
        let jobs = parse("a.fio", &text, &NoLookup, &none, &[]).unwrap().jobs;
        let job = |j: &JobSpec| crate::JobRecord { name: j.name.clone(), ..Default::default() };
        let mut r = Record { jobs: jobs.iter().map(job).collect(), ..Record::default() };
        r.note_asks(&jobs, groups);
        r.jobs.iter().map(|j| j.ask).collect()
    }

    #[test]
    fn weights_and_levels_are_shares() {
        let weights = [("a".to_string(), 300), ("b".to_string(), 100)];
        let two = "[x]\ncgroup=a\n[y]\ncgroup=b\n[z]\ncgroup=b\n";
        let [x, y] = [Some(Ask::Due(750)), Some(Ask::Due(125))];
        assert_eq!(dues(two, &weights), [x, y, y]);
        assert_eq!(dues("[x]\ncgroup=a\n[y]\ncgroup=b\n", &[]), [None, None]);
        let levels = "[x]\nprio=0\n[y]\nprio=4\n[left]\nprioclass=3\n[film]\nrate=1m\n";
        let [x, y] = [Some(Ask::Due(667)), Some(Ask::Due(333))];
        assert_eq!(dues(levels, &[]), [x, y, Some(Ask::Idle), Some(Ask::Rate(1 << 20))]);
        let held = "[x]\ncgroup=a\ncgroup_weight=800\nbs=4k\nrate_iops=2000\n[y]\ncgroup=b\ncgroup_weight=100\n";
        let [x, y] = [Some(Ask::Rate(8_192_000)), Some(Ask::Share)];
        assert_eq!(dues(held, &[]), [x, y], "a rate, not most of what a neighbour moves");
        // Below another group, or in none beside one, no share follows from the weight alone.
        let nested = "[x]\ncgroup=a/b\ncgroup_weight=300\n[y]\ncgroup=a/c\n";
        assert_eq!(dues(nested, &[]), [Some(Ask::Share), None]);
    }

    #[test]
    fn jobs_say_what_they_ask_for() {
        for (job, expected) in [
            ("rw=read bs=128k rate=8m", Some(Ask::Rate(8 << 20))),
            ("rw=randread bs=4k rate_iops=100", Some(Ask::Rate(409_600))),
            ("rw=randrw bs=4k rate=1m,2m", Some(Ask::Rate(3 << 20))),
            ("rw=randwrite bs=4k fsync=1", Some(Ask::Sync)),
            ("rw=write bs=1m fsync=1000", None),
            ("rw=randread bs=4k thinktime=200", Some(Ask::Wait)),
            ("rw=randread bs=4k iodepth=8 ioengine=libaio direct=1 thinktime=200", None),
            ("rw=randread bs=4k", None),
            ("rw=randread bs=4k prioclass=3", Some(Ask::Idle)),
            ("rw=randread bs=4k prioclass=1", Some(Ask::Share)),
            ("rw=randwrite bs=4k sync=1", Some(Ask::Wait)),
            ("rw=write bs=1m", None),
        ] {
            assert_eq!(ask(job), expected, "{job}");
        }
    }
}
