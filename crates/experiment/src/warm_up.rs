//! What comes before a simulated load is measured.

use iosched_types::Nanos;
use iosched_types::units::{SEC, parse_nanos};
use iosched_workloads::fio::{JobSet, JobSpec};

use crate::record::Record;

/// How long a load runs before it is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WarmUp {
    /// Until its figures stop drifting.
    Steady,
    /// This long, for every load.
    For(Nanos),
    /// It is measured from its start.
    #[default]
    None,
}

/// Longest warm-up that can be asked for.
pub const LONGEST: Nanos = 24 * 3600 * SEC;
/// The message for an invalid warm-up.
pub const HELP: &str = "steady, 0, or a time of up to a day such as 30s or 2m";

impl WarmUp {
    /// `steady`, `0`, `30s`; a bare number counts seconds. `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<WarmUp> {
        match text.trim() {
            "steady" => Some(WarmUp::Steady),
            text => match parse_nanos(text, SEC)? {
                0 => Some(WarmUp::None),
                ns if ns <= LONGEST => Some(WarmUp::For(ns)),
                _ => None,
            },
        }
    }
}

/// Whether a job goes on until its time is over, whatever it has moved by then.
fn endless(j: &JobSpec) -> bool {
    let t = &j.target;
    let limits = [t.size, t.size_percent.map(Into::into), t.filesize.map(|f| f.1), j.io_size];
    let limited =
        limits.iter().any(Option::is_some) || t.io_size_percent.is_some() || j.number_ios.is_some();
    let time = j.runtime.is_some() && (j.time_based || !limited);
    time && j.replay.is_none() && !j.file_options.create_only
}

/// Whether a job leaves what it wrote in memory.
#[must_use]
pub fn leaves_writes(job: &JobSpec) -> bool {
    let writes = job.pattern.write || job.replay.is_some();
    let files = &job.file_options;
    let syncs = job.sync > 0 || job.fsync > 0 || job.fdatasync > 0 || job.end_fsync;
    writes && !job.direct && !syncs && !files.fsync_on_close && !files.unlink && !files.create_only
}

/// Why jobs cannot run before they are measured; `None` where they can. All have an end of their own, or one says itself when
/// it is measured (`ramp_time`), writes a log of all that it does, or is measured until all is on the medium, where what was
/// written before would count.
#[must_use]
pub fn hindrance(jobs: &JobSet) -> Option<&'static str> {
    let any = |is: fn(&JobSpec) -> bool| jobs.jobs.iter().any(is);
    match () {
        () if jobs.jobs.is_empty() => Some("a program is measured whole"),
        () if any(|j| j.ramp_time > 0) => Some("a job has a ramp_time"),
        () if any(|j| j.write_iolog.is_some()) => Some("a job writes a log of all that it does"),
        () if any(leaves_writes) => Some("writes count until they are on the medium"),
        () if !any(endless) => Some("all jobs have an end"),
        () => None,
    }
}

/// Whether jobs can run before they are measured.
#[must_use]
pub fn possible(jobs: &JobSet) -> bool {
    hindrance(jobs).is_none()
}

/// Lets jobs run for so long before they are measured, counted from the start of the last. All are measured from the same
/// moment on, so none has a time without the others in its figures. Jobs with an end of their own begin as long after that
/// moment as they did after the first start: they are measured whole.
pub fn begin_measuring(jobs: &mut JobSet, after: Nanos) -> Measured {
    let mut out = Measured::default();
    let mut parts = 0;
    for part in jobs.jobs.chunk_by_mut(|_, next| !next.wait.stonewall) {
        let starts = part.iter().filter(|j| endless(j)).map(JobSpec::start_delay);
        let Some(last) = starts.max() else { continue };
        let measured = last.saturating_add(after);
        for j in part {
            if endless(j) {
                j.warm_up = measured - j.start_delay();
                // The end of the device is no end of the load: it would come in the warm-up.
                j.time_based = true;
            } else {
                j.wait.delay = j.wait.delay.saturating_add(measured);
                j.wait.delay_max = j.wait.delay_max.saturating_add(measured);
            }
        }
        out.unmeasured += measured;
        parts += 1;
    }
    let waits = jobs.jobs.iter().any(|j| j.wait.stonewall);
    out.from = (parts == 1 && !waits).then_some(out.unmeasured);
    out
}

/// The part of a run that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// When it begins; `None` where parts of the load wait for others, each of which has one of its own.
    pub from: Option<Nanos>,
    /// Time in all parts before they are measured.
    pub unmeasured: Nanos,
}

/// Provenance: nanoseconds of a run before it was measured. Figures of jobs are those of the rest, counts of the device and of the
/// scheduler those of all.
pub const UNMEASURED: &str = "run.unmeasured";

/// Makes a record that of its measured part: curves and dispatches begin there, and core time is split as the time is.
pub fn cut(record: &mut Record, part: Measured) {
    record.provenance.insert(UNMEASURED.into(), part.unmeasured.to_string());
    let share = record.measured() as f64 / record.elapsed.max(1) as f64;
    if let Some(per_io) = record.core_time.as_mut().and_then(|c| c.per_io.as_mut()) {
        *per_io *= share;
    }
    let Some(measured) = part.from else { return };
    for s in &mut record.series {
        let before = (measured / s.step.max(1)) as usize;
        s.values.drain(..before.min(s.values.len()));
    }
    record.dispatches.retain_mut(|d| {
        let is_after = d.t >= measured;
        d.t = d.t.saturating_sub(measured);
        is_after
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_workloads::fio::{NoLookup, parse};

    fn jobs(text: &str) -> JobSet {
        let text = format!("[global]\nfilename=/dev/disk\ndirect=1\n{text}");
        parse("j", &text, &NoLookup, &|_| Err("none".into()), &[]).unwrap()
    }

    fn ramps(jobs: &JobSet) -> Vec<(Nanos, Nanos)> {
        jobs.jobs.iter().map(|j| (j.wait.delay / SEC, j.warm_up / SEC)).collect()
    }

    #[test]
    fn times_are_read() {
        assert_eq!(WarmUp::parse("steady"), Some(WarmUp::Steady));
        assert_eq!(WarmUp::parse("0"), Some(WarmUp::None));
        assert_eq!(WarmUp::parse("2m"), Some(WarmUp::For(120 * SEC)));
        for bad in ["", "soon", "-3", "2d", "1e9"] {
            assert_eq!(WarmUp::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn all_that_goes_on_is_measured_from_one_moment() {
        let mut set = jobs(
            "runtime=10\ntime_based\n[w]\nrw=write\n[r]\nstartdelay=2\n[s]\nstartdelay=1\ntime_based=0\nsize=1m\n",
        );
        assert!(possible(&set));
        assert_eq!(begin_measuring(&mut set, 3 * SEC).from, Some(5 * SEC));
        assert_eq!(ramps(&set), [(0, 5), (2, 3), (6, 0)]);
    }

    #[test]
    fn parts_that_wait_for_others_are_measured_each() {
        let mut set = jobs("runtime=10\ntime_based\n[w]\n[r]\nstonewall\nstartdelay=1\n");
        assert_eq!(begin_measuring(&mut set, 3 * SEC).from, None);
        assert_eq!(ramps(&set), [(0, 3), (1, 3)]);
    }

    #[test]
    fn jobs_with_an_end_and_jobs_that_say_it_themselves_are_left() {
        for text in
            ["[a]\nsize=1m\n", "[a]\nsize=1m\nruntime=10\n", "[a]\nnumber_ios=9\nruntime=9\n"]
        {
            assert!(!possible(&jobs(text)), "{text}");
        }
        for text in ["ramp_time=2\n", "write_iolog=x\n", "direct=0\nrw=write\n"] {
            assert!(
                !possible(&jobs(&format!("[a]\nruntime=10\ntime_based\n[b]\n{text}"))),
                "{text}"
            );
        }
        assert!(possible(&jobs("[a]\nruntime=10\n")));
    }
}
