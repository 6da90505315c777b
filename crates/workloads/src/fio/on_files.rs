//! fio jobs on files or through the page cache: the main loop of [`Job`] as a program over system calls.
//!
//! Everything between a call and the disk is the host's. What is here is what fio does around its I/O: it makes the files,
//! opens them, drops cached pages, tells the kernel the order of its I/Os, and closes the files in the end.

mod lay_out;
mod names;
mod open;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use iosched_syscalls::{Birth, Done, Errno, Program, Script, Sys};
use iosched_types::{Bytes, Nanos, Op};

pub use self::lay_out::bytes_before;
use self::lay_out::{lay_out_file, make};
use self::open::OpenFiles;
use super::commands::Caches;
use super::disks::is_device;
use super::exits;
use super::layout::Files;
use super::process::Job;
use super::spec::{JobSet, JobSpec};
use super::stats::JobStats;
use crate::programs::files;

/// The sleep of fio's main thread, with the timer slack of Linux.
const SLEEP: Nanos = 100_050_000;
/// Counts processes that have ended.
const ENDED: u32 = 0;
/// Barriers of the processes; each meets fio's main thread at its own.
const START: u32 = 1;
/// What files may take together before they are on a file system: they have no place yet.
pub const ROOM: Bytes = 1 << 62;

/// Jobs on files: what is to be done, and what was measured.
#[derive(Debug)]
pub struct OnFiles {
    set: JobSet,
    layouts: Vec<Files>,
    /// Files that are there before, with their lengths, in the order in which they were made.
    existing: Vec<(String, Bytes)>,
    start: Start,
    /// Jobs that begin before the others of the same moment, in this order.
    order: Vec<u32>,
    /// Core time of a look at the clock.
    look: Nanos,
    stats: Mutex<Vec<Option<JobStats>>>,
    errors: Mutex<Vec<Option<Errno>>>,
    /// Jobs that another one's `exitall` has ended.
    over: Vec<AtomicBool>,
}

/// fio's own start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// When it looks for the jobs' files.
    pub looks_after: Nanos,
    /// How long after that the first job runs.
    pub runs_after: Nanos,
    /// Whether it makes the jobs' files then, with the device working. Otherwise they are there before, made in no time.
    pub lays_out: bool,
}

/// Whether a job needs the host's memory or file system: it is buffered, its files lie in a directory, or it makes durable what it
/// writes to a file that it names by a path. That is a matter of the journal there.
#[must_use]
pub fn needed(set: &JobSet) -> bool {
    let bare = set.jobs.iter().any(|j| on_device(j) || j.replay.is_some());
    set.jobs.iter().any(|j| {
        j.target.directory.is_some()
            || j.engine.is_of_names()
            || !j.direct && reads_or_writes(j)
            || !bare && is_synced(j) && j.file_names().iter().any(|n| n.contains('/'))
    })
}

fn is_synced(job: &JobSpec) -> bool {
    job.pattern.write && (job.sync > 0 || job.fsync > 0 || job.fdatasync > 0)
}

fn reads_or_writes(job: &JobSpec) -> bool {
    match &job.replay {
        None => job.pattern.read || job.pattern.write,
        Some(log) => log.entries.iter().any(|e| matches!(e.op, Op::Read | Op::Write)),
    }
}

/// Whether a job works on the device itself.
#[must_use]
pub fn on_device(job: &JobSpec) -> bool {
    job.file_names().iter().any(|n| is_device(n))
}

/// The name of a file below the root of the file system.
fn inside(name: &str) -> &str {
    name.trim_start_matches('/')
}

impl OnFiles {
    /// Jobs with the places of their files, which [`lay_out_beside`](super::layout::lay_out_beside) gave.
    #[must_use]
    pub fn new(
        set: JobSet,
        layouts: Vec<Files>,
        existing: Vec<(String, Bytes)>,
        (start, order): (Start, Vec<u32>),
        clock: Nanos,
    ) -> Arc<OnFiles> {
        let stats = Mutex::new(set.jobs.iter().map(|_| None).collect());
        let errors = Mutex::new(vec![None; set.jobs.len()]);
        let over = set.jobs.iter().map(|_| AtomicBool::new(false)).collect();
        Arc::new(OnFiles { set, layouts, existing, start, order, look: clock, stats, errors, over })
    }

    /// The jobs.
    #[must_use]
    pub fn set(&self) -> &JobSet {
        &self.set
    }

    /// What each job failed with, if it did.
    #[must_use]
    pub fn errors(&self) -> Vec<Option<Errno>> {
        self.errors.lock().map(|all| all.clone()).unwrap_or_default()
    }

    /// What each job measured, one that failed up to then; a job that never ended has measured nothing.
    #[must_use]
    pub fn take_stats(&self) -> Vec<JobStats> {
        let all = self.stats.lock();
        all.map(|mut all| all.iter_mut().map(|s| s.take().unwrap_or_default()).collect())
            .unwrap_or_default()
    }

    /// What makes the files that must be there before the jobs run.
    #[must_use]
    pub fn preparation(self: &Arc<Self>) -> Birth {
        let this = self.clone();
        birth(async move |sys| if this.start.lays_out { Ok(()) } else { this.lay_out(&sys).await })
    }

    /// fio.
    #[must_use]
    pub fn measured(self: &Arc<Self>) -> Birth {
        let this = self.clone();
        birth(async move |sys| this.run(sys).await)
    }

    async fn lay_out(&self, sys: &Sys) -> Done {
        for (job, places) in self.set.jobs.iter().zip(&self.layouts) {
            if on_device(job) {
                continue;
            }
            for (name, place) in job.file_names().iter().zip(places) {
                if job.file_options.append || !self.existing.iter().any(|(known, _)| known == name)
                {
                    lay_out_file(sys, job, name, place).await?;
                }
            }
        }
        Ok(())
    }

    /// fio's main thread: it looks again and again which jobs may start, as `docs/fidelity-fio.md` says.
    async fn run(self: Arc<Self>, sys: Sys) -> Done {
        for i in 0..self.set.jobs.len() {
            let this = self.clone();
            sys.fork(async move |sys| this.process(sys, i).await).await?;
        }
        sys.sleep(self.start.looks_after).await?;
        for name in self.set.jobs.iter().flat_map(JobSpec::file_names) {
            // One that is not there is made later.
            let _ = sys.stat(inside(&name)).await;
        }
        if self.start.lays_out {
            self.lay_out(&sys).await?;
        }
        sys.sleep(self.start.runs_after).await?;
        let origin = sys.now();
        let mut starts =
            Starts { waiting: (0..self.set.jobs.len()).collect(), started: 0, running: 0 };
        let mut first = true;
        while !starts.waiting.is_empty() {
            let since = if first { 0 } else { sys.now() - origin + SLEEP };
            let mut due = starts.due(&self.set.jobs, since, &self.over);
            due.sort_by_key(|i| self.order.iter().position(|o| *o as usize == *i).unwrap_or(*i));
            if !first && !due.is_empty() {
                sys.sleep(SLEEP).await?;
            }
            for i in &due {
                sys.barrier(START + *i as u32, 2).await?;
            }
            if !first || !due.is_empty() {
                let ended = sys.add(ENDED, 0).await?;
                starts.running = starts.started - ended as usize;
                if !starts.waiting.is_empty() {
                    sys.sleep(SLEEP).await?;
                }
            }
            first = false;
        }
        files::wait_for(&sys, self.set.jobs.len() as u64).await
    }

    /// A job's process. Who waits for its end goes on when it fails, too.
    async fn process(self: Arc<Self>, sys: Sys, i: usize) -> Done {
        sys.barrier(START + i as u32, 2).await?;
        let served = match self.over[i].load(Relaxed) {
            true => Ok(()),
            false => self.serve(&sys, i).await,
        };
        for other in exits::ended_by(&self.set.jobs[..], i) {
            self.over[other].store(true, Relaxed);
        }
        if let (Err(errno), Ok(mut all)) = (served, self.errors.lock()) {
            all[i] = Some(errno);
        }
        sys.add(ENDED, 1).await?;
        served
    }

    async fn serve(&self, sys: &Sys, i: usize) -> Done {
        let spec = &self.set.jobs[i];
        caches(sys, spec.caches_before).await?;
        let mut opened = OpenFiles::open(sys, spec, &self.layouts[i]).await?;
        let mut job = Job::new(spec, &self.layouts[i]);
        // The error that is told is that of the call that failed, so nothing comes after it.
        let mut served = opened.serve(sys, &mut job, self.look, &self.over[i]).await;
        if served.is_ok() {
            served = opened.close(sys).await;
        }
        if served.is_ok() {
            served = caches(sys, spec.caches_after).await;
        }
        let mut stats = job.take_stats();
        if spec.engine.is_of_names() {
            opened.names.into_stats(&mut stats);
        }
        if let Ok(mut all) = self.stats.lock() {
            all[i] = Some(stats);
        }
        served
    }
}

/// Commands around a job (`exec_prerun`, `exec_postrun`).
async fn caches(sys: &Sys, caches: Caches) -> Done {
    if caches.sync {
        sys.sync().await?;
    }
    if caches.drop { sys.drop_caches().await } else { Ok(()) }
}

/// What makes files that are there before a load, with their lengths.
#[must_use]
pub fn image(files: &[(String, Bytes)]) -> Birth {
    let files = files.to_vec();
    birth(async move |sys| {
        for (name, len) in &files {
            make(&sys, name, *len).await?;
        }
        Ok(())
    })
}

fn birth(text: impl AsyncFnOnce(Sys) -> Done + Send + 'static) -> Birth {
    Birth(Box::new(move || Box::new(Script::new(text)) as Box<dyn Program>))
}

/// What fio's main thread knows of its jobs.
struct Starts {
    waiting: Vec<usize>,
    started: usize,
    /// Those that ran when it last looked.
    running: usize,
}

impl Starts {
    /// Jobs with their delay over, up to a `stonewall` while others run.
    fn due(&mut self, jobs: &[JobSpec], since: Nanos, over: &[AtomicBool]) -> Vec<usize> {
        let mut due = Vec::new();
        for i in &self.waiting {
            if over[*i].load(Relaxed) {
                due.push(*i);
                continue;
            }
            if jobs[*i].start_delay() > since {
                continue;
            }
            if jobs[*i].wait.stonewall && due.len() + self.running > 0 {
                break;
            }
            due.push(*i);
        }
        self.waiting.retain(|i| !due.contains(i));
        self.started += due.len();
        due
    }
}
