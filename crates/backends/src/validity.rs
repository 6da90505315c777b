//! Whether a run's figures may be used.

use std::time::Duration;

use iosched_experiment::{JobRecord, Record, Warning};
use iosched_types::units::three_digits;
use iosched_types::{Bytes, Nanos};
use iosched_workloads::fio::JobSpec;

use crate::backend::invalidate_record;
use crate::load::meter::Use;

/// The warning of a run on a busy machine whose disk kept its times.
pub(crate) const NOISY: &str = "noisy";

/// Limits beyond which a run is invalid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Share of all CPUs that others may use.
    pub foreign_cpu: f64,
    /// Share of the device's bytes that may be others'.
    pub foreign_io: f64,
    /// Share of the time in which tasks may wait for memory.
    pub memory_pressure: f64,
    /// Share of the CPU time the hypervisor may take away.
    pub steal: f64,
    /// Share of the bytes that must reach the device; below it the page cache was measured.
    pub reached: f64,
    /// The same share below which the run is marked.
    pub mostly_reached: f64,
    /// Share of an emulated disk's service time by which its answers may be late.
    pub late_share: f64,
    /// Share of the model's answer times by which an emulated disk's commands may take longer, or less, before
    /// the run is marked.
    pub deviation_marked: f64,
    /// The same before it is invalid.
    pub deviation_invalid: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds {
            foreign_cpu: 0.05,
            foreign_io: 0.05,
            memory_pressure: 0.05,
            steal: 0.05,
            reached: 0.05,
            mostly_reached: 0.9,
            late_share: 0.05,
            deviation_marked: 0.05,
            deviation_invalid: 0.10,
        }
    }
}

/// What was seen during a run.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Meters over the run.
    pub used: &'a Use,
    /// Length of the run.
    pub elapsed: Duration,
    /// The scheduler that was set.
    pub expected_scheduler: &'a str,
    /// The scheduler after the run.
    pub scheduler_now: Option<&'a str>,
    /// Whether tunables and queue attributes still have the values that were set.
    pub settings_kept: bool,
    /// What was not as it should be at a look during the run.
    pub disturbed: Option<&'a str>,
    /// The jobs that were asked for.
    pub jobs: &'a [JobSpec],
    /// The size of what they work on; 0 for a directory.
    pub bytes: Bytes,
    /// Whether all jobs used direct I/O.
    pub direct: bool,
    /// Whether the load is meant to use the page cache: what it moves need not reach the device.
    pub through_cache: bool,
    /// For an emulated disk: its lateness as a share of its service time. Its timing then tells more
    /// about a busy machine than foreign CPU use does, which is only a warning.
    pub late_share: Option<f64>,
}

/// Marks the record invalid if a limit is broken; adds warnings for what is only worth knowing.
pub fn judge(record: &mut Record, seen: &Evidence<'_>, limits: &Thresholds) {
    if seen.scheduler_now != Some(seen.expected_scheduler) {
        let now = seen.scheduler_now.unwrap_or("nothing");
        let why = format!("the scheduler was changed to {now} during the run (udev rule? tuned?)");
        return invalidate_record(record, why);
    }
    if !seen.settings_kept {
        return invalidate_record(record, "a queue setting was changed during the run".to_string());
    }
    if let Some(why) = seen.disturbed {
        return invalidate_record(record, why.to_string());
    }
    if let Some(why) = signalled(record).or_else(|| ended_early(record, seen.jobs, seen.bytes)) {
        return invalidate_record(record, why);
    }
    let moved: u64 = match seen.through_cache {
        true => 0,
        false => record.jobs.iter().map(|j| j.read.bytes + j.write.bytes).sum(),
    };
    let device = seen.used.disk.bytes();
    if moved > 0 && (device as f64) < moved as f64 * limits.reached {
        let why = format!("only {} % reached the device: cached", percent(device, moved));
        return invalidate_record(record, why);
    }
    if moved > 0 && (device as f64) < moved as f64 * limits.mostly_reached {
        record.warnings.push(Warning {
            code: "cached".into(),
            message: format!(
                "only {} % reached the device: the rest is the page cache's",
                percent(device, moved)
            ),
            advice: "use direct=1, or a load larger than memory".into(),
        });
    }
    // Ramp time and read-ahead make the device do more than fio counts, so only direct jobs without
    // ramp time can tell others' I/O apart.
    let ramp = record.jobs.iter().any(|j| j.options.contains_key("ramp_time"));
    let foreign = device.saturating_sub(moved);
    if seen.direct && !ramp && foreign as f64 > moved as f64 * limits.foreign_io + (1 << 20) as f64
    {
        let why = format!("{} % of the device's bytes were others'", percent(foreign, device));
        return invalidate_record(record, why);
    }
    let wall_us = seen.elapsed.as_micros().max(1) as f64;
    if let Some([_, _, memory]) = seen.used.pressure
        && memory as f64 / wall_us > limits.memory_pressure
    {
        return invalidate_record(record, "memory was short during the run".to_string());
    }
    let share = |n: u64| n as f64 / seen.used.total.max(1) as f64;
    if share(seen.used.steal) > limits.steal {
        let why = format!("the hypervisor took {} % of the CPU time", show(share(seen.used.steal)));
        return invalidate_record(record, why);
    }
    let foreign = seen.used.foreign_cpu();
    if foreign > limits.foreign_cpu {
        let what = format!("others used {} % of the CPUs", show(foreign));
        if seen.late_share.is_some_and(|late| late <= limits.late_share) {
            record.warnings.push(Warning {
                code: NOISY.into(),
                message: what,
                advice: "the emulated disk kept its times all the same".into(),
            });
        } else {
            invalidate_record(record, what);
        }
    }
}

fn percent(part: u64, whole: u64) -> String {
    show(part as f64 / whole.max(1) as f64)
}

/// fio's word for a signal to it or to one of its jobs. It ends all of them then, and reports success.
const SIGNALLED: &str = "fio: terminating on signal";

fn signalled(record: &Record) -> Option<String> {
    let lines = record.logs.iter().filter(|(name, _)| name == "fio").flat_map(|(_, t)| t.lines());
    let said = lines.into_iter().find_map(|l| Some(l.split_once(SIGNALLED)?.1.trim()));
    said.map(|number| format!("fio was ended by signal {number}"))
}

/// The job that did not run for its time, or did not do all that was asked for, although nothing in its options lets it
/// end early. When one of fio's processes is killed, fio ends the others, too, and reports success.
fn ended_early(record: &Record, jobs: &[JobSpec], bytes: Bytes) -> Option<String> {
    if jobs.iter().any(|j| j.replay.is_some() || j.exit_all.is_some() || !j.live_only.is_empty()) {
        return None;
    }
    record.jobs.iter().find_map(|r| {
        let of_name = jobs.iter().filter(|j| j.name == r.name);
        let job = of_name.clone().next()?;
        let seconds = |t: Nanos| three_digits(t as f64 / 1e9);
        if let Some(asked) = job.runtime {
            let bounded = !job.time_based || job.number_ios.is_some() || job.io_size.is_some();
            match r.runtime < asked / 10 * 9 {
                false => return None,
                true if !bounded => {
                    let (ran, asked) = (seconds(r.runtime), seconds(asked));
                    return Some(format!("job \"{}\" ended after {ran} of {asked} s", r.name));
                }
                true => {}
            }
        }
        // Other sections may be in the figures of a group.
        if job.group_reporting && jobs.iter().any(|j| j.group == job.group && j.name != job.name) {
            return None;
        }
        let processes = if job.group_reporting { of_name.count() as u64 } else { 1 };
        let (done, asked, unit) = asked(job, r, bytes)?;
        let asked = asked.saturating_mul(processes);
        (done < asked / 50 * 49)
            .then(|| format!("job \"{}\" ended early: {done} of {asked} {unit} were done", r.name))
    })
}

/// What a job that ends by itself did, and what it had to do, as far as its options say so.
fn asked(job: &JobSpec, done: &JobRecord, bytes: Bytes) -> Option<(u64, u64, &'static str)> {
    let all = [&done.read, &done.write, &done.trim];
    // What is done in the ramp time is not counted. A trim before each write is.
    if job.ramp_time > 0 || job.pattern.trim && job.pattern.write {
        return None;
    }
    if let Some(n) = job.number_ios {
        return Some((all.iter().map(|d| d.ios).sum(), n, "I/Os"));
    }
    let place = &job.target;
    let one = place.nrfiles <= 1 && place.files.len() <= 1 && place.filesize.is_none();
    let known = place.offset_percent.is_none()
        && place.offset_increment == 0
        && place.offset_increment_percent.is_none();
    let room = bytes.checked_sub(place.offset).filter(|_| bytes > 0 && known);
    let whole = || room.filter(|_| one && place.directory.is_none());
    let size = match (place.size_percent, place.size) {
        (Some(percent), _) => whole()? / 100 * u64::from(percent),
        // More than there is room for is not asked for.
        (None, Some(size)) => room.map_or(size, |room| size.min(room)),
        (None, None) => whole()?,
    };
    let once = match (job.io_size, place.io_size_percent) {
        (Some(n), _) => n,
        (None, Some(percent)) => size / 100 * u64::from(percent),
        (None, None) => size,
    };
    // Whole blocks only.
    let block = job.bs.range.iter().map(|r| r.1).max().unwrap_or(0);
    let asked = once.saturating_mul(job.loops.max(1)).saturating_sub(block);
    Some((all.iter().map(|d| d.bytes).sum(), asked, "bytes"))
}

fn show(share: f64) -> String {
    three_digits(share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_experiment::Status;

    fn judged(change: impl FnOnce(&mut Use, &mut Evidence<'_>)) -> Record {
        let mut job = JobRecord::default();
        job.read.bytes = 100 << 20;
        let mut record = Record { jobs: vec![job], ..Record::default() };
        let mut used = Use { total: 1000, busy: 10, own: 5, ..Use::default() };
        used.disk.sectors[0] = (100 << 20) / 512;
        used.pressure = Some([0, 0, 0]);
        let mut copy = used.clone();
        let mut seen = Evidence {
            used: &used,
            elapsed: Duration::from_secs(4),
            expected_scheduler: "bfq",
            scheduler_now: Some("bfq"),
            settings_kept: true,
            disturbed: None,
            jobs: &[],
            bytes: 0,
            direct: true,
            through_cache: false,
            late_share: None,
        };
        change(&mut copy, &mut seen);
        let seen = Evidence { used: &copy, ..seen };
        judge(&mut record, &seen, &Thresholds::default());
        record
    }

    #[test]
    fn what_was_changed_and_changed_back_is_no_result() {
        let record = judged(|_, seen| seen.disturbed = Some("a process was stopped"));
        assert_eq!(why(&record), "a process was stopped");
    }

    #[test]
    fn a_job_that_was_killed_is_no_result() {
        let job = JobSpec {
            name: "a".into(),
            time_based: true,
            runtime: Some(3_000_000_000),
            ..JobSpec::default()
        };
        let ran = |ns| Record {
            jobs: vec![JobRecord { name: "a".into(), runtime: ns, ..JobRecord::default() }],
            ..Record::default()
        };
        let jobs = std::slice::from_ref(&job);
        let early = ended_early(&ran(370_000_000), jobs, 0).unwrap();
        assert_eq!(early, "job \"a\" ended after 0.37 of 3.00 s");
        assert_eq!(ended_early(&ran(3_001_000_000), jobs, 0), None);
    }

    /// A signal to one process of a job with a size ends all of them, and fio reports success.
    #[test]
    fn a_job_with_an_amount_that_did_less_is_no_result() {
        let job = || {
            let mut job = JobSpec { name: "a".into(), loops: 1, ..JobSpec::default() };
            job.bs.range = [(4096, 4096); 3];
            job
        };
        let did = |ios: u64| {
            let mut job =
                JobRecord { name: "a".into(), runtime: 1_000_000_000, ..JobRecord::default() };
            (job.read.ios, job.read.bytes) = (ios, ios * 4096);
            Record { jobs: vec![job], ..Record::default() }
        };
        let disk = 64 << 20;
        let with = |change: &dyn Fn(&mut JobSpec)| {
            let mut job = job();
            change(&mut job);
            job
        };
        for (asked, ios) in [
            (with(&|j| j.number_ios = Some(1000)), 1000),
            (with(&|j| j.io_size = Some(8 << 20)), 2048),
            (with(&|j| j.target.size = Some(8 << 20)), 2048),
            (with(&|j| j.target.size_percent = Some(50)), 8192),
            (with(&|_| ()), 16384),
            (with(&|j| (j.target.size, j.loops) = (Some(4 << 20), 3)), 3072),
            (with(&|j| (j.target.size, j.target.offset) = (Some(disk), disk / 2)), 8192),
        ] {
            let jobs = [asked];
            assert_eq!(ended_early(&did(ios), &jobs, disk), None, "{jobs:?}");
            let early = ended_early(&did(ios / 2), &jobs, disk).unwrap();
            assert!(early.starts_with("job \"a\" ended early: "), "{early}");
            // Its time was up before.
            let [job] = jobs;
            let timed = [JobSpec { runtime: Some(1_000_000_000), ..job }];
            assert_eq!(ended_early(&did(ios / 2), &timed, disk), None);
        }
        // A group is reported as one.
        let group = || JobSpec { group_reporting: true, ..with(&|j| j.number_ios = Some(100)) };
        let jobs = [group(), group()];
        assert_eq!(ended_early(&did(200), &jobs, disk), None);
        assert!(ended_early(&did(100), &jobs, disk).is_some());
    }

    #[test]
    fn fio_that_was_told_to_end_is_no_result() {
        let said =
            |text: &str| Record { logs: vec![("fio".into(), text.into())], ..Record::default() };
        let why = signalled(&said("note: x\nfio: terminating on signal 15\n"));
        assert_eq!(why.as_deref(), Some("fio was ended by signal 15"));
        assert_eq!(signalled(&said("a: (groupid=0)")), None);
    }

    fn why(record: &Record) -> &str {
        match &record.status {
            Status::Invalid(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_limit_is_named_when_broken() {
        assert_eq!(judged(|_, _| ()).status, Status::Complete);
        for (change, word) in [
            (
                &(|_: &mut Use, e: &mut Evidence<'_>| e.scheduler_now = Some("none"))
                    as &dyn Fn(&mut Use, &mut Evidence<'_>),
                "changed to none",
            ),
            (&|_, e| e.settings_kept = false, "setting was changed"),
            (&|u, _| u.disk.sectors[0] = 8, "cached"),
            (&|u, _| u.disk.sectors[1] = 50_000, "others'"),
            (&|u, _| u.pressure = Some([0, 0, 1_000_000]), "memory"),
            (&|u, _| u.steal = 100, "hypervisor"),
            (&|u, _| u.busy = 300, "others used 29.5 %"),
        ] {
            let record = judged(|u, e| change(u, e));
            assert!(why(&record).contains(word), "{word}: {}", why(&record));
        }
    }

    #[test]
    fn a_busy_machine_is_only_a_warning_while_the_emulated_disk_keeps_its_times() {
        let record = judged(|u, e| {
            u.busy = 300;
            e.late_share = Some(0.01);
        });
        assert_eq!(record.status, Status::Complete);
        assert_eq!(record.warnings[0].code, "noisy");
    }
}
