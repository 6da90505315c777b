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
    /// A share by priority or weight, which throughput alone does not judge.
    Share,
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
        let weighed = job.cgroup.as_ref().is_some_and(|(_, weight)| weight.is_some());
        if job.prio.class == PrioClass::Rt || weighed {
            return Some(Ask::Share);
        }
        let rate = (0..3).filter(|d| job.does(*d)).filter_map(|d| rate(job, d));
        let rate: Bytes = rate.sum();
        if rate > 0 {
            return Some(Ask::Rate(rate));
        }
        if OFTEN.contains(&job.fsync) || OFTEN.contains(&job.fdatasync) {
            return Some(Ask::Sync);
        }
        let size = job.io_size.or(job.target.size).unwrap_or(Bytes::MAX);
        let ends = !job.time_based && (size <= START || job.number_ios.is_some());
        let pauses = job.think.time > 0;
        let largest = job.bs.range.iter().map(|r| r.1).max().unwrap_or(0);
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

impl Record {
    /// Notes the jobs' asks.
    pub fn note_asks(&mut self, jobs: &[JobSpec]) {
        for own in &mut self.jobs {
            own.ask = jobs.iter().find(|j| j.name == own.name).and_then(Ask::of);
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
