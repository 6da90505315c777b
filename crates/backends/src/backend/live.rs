//! What the real and the emulated backend share: one trial on a device of the running kernel.

mod programs;

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use iosched_experiment::{BackendKind, Record, SCHEMA, Startup, Status, Trial, Warning, Work};
use iosched_lab::machine::Interrupt;
use iosched_types::{Bytes, Nanos};
use iosched_workloads::fio::JobSpec;

use super::drifting;
use super::looks::Looks;
use super::noted::{
    Traced, clock_check, cpu_cost, priority, provenance, system, throttled, tunables,
};
use crate::benchmark;
use crate::discover::QueueState;
use crate::error::{Error, Result};
use crate::ground::Ground;
use crate::guardian::GuardianCommand;
use crate::load::fio::{self};
use crate::load::{jobfile, meter};
use crate::root::SysRoot;
use crate::startup::{self, Stage};
use crate::state::STATE_DIR;
use crate::switch::Disks;
use crate::timing::{self, Timing};
use crate::trace::{self, Detail, Took, Tracer};
use crate::validity::{self, Evidence, Thresholds};

/// How live trials are run.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Where state files go.
    pub state_dir: PathBuf,
    /// How to start the guardian.
    pub guardian: Option<GuardianCommand>,
    /// Limits beyond which a run is invalid.
    pub thresholds: Thresholds,
    /// Time between a switch and the load.
    pub settle: Duration,
    /// Trace block events into the record.
    pub trace: bool,
    /// An emulated disk keeps its state from trial to trial instead of starting each as after power-on, because its
    /// steady state is measured.
    pub keep_state: bool,
    /// The user's own copies of programs that workloads stand for: name, file.
    pub tools: Vec<(&'static str, PathBuf)>,
    /// Signals to look out for.
    pub interrupt: Interrupt,
}

impl Default for LiveOptions {
    fn default() -> Self {
        LiveOptions {
            state_dir: STATE_DIR.into(),
            guardian: None,
            thresholds: Thresholds::default(),
            settle: Duration::from_secs(1),
            trace: false,
            keep_state: false,
            tools: Vec::new(),
            interrupt: Interrupt::default(),
        }
    }
}

/// Where the load goes.
pub(crate) struct Place<'a> {
    /// Device node or file, for people.
    pub(crate) shown: &'a str,
    /// A path to it for a process that inherits the descriptor.
    pub(crate) path: PathBuf,
    /// It.
    pub(crate) descriptor: BorrowedFd<'a>,
    /// The size.
    pub(crate) bytes: Bytes,
}

/// One trial on its way.
pub(crate) struct Run<'a> {
    pub(crate) kind: BackendKind,
    pub(crate) trial: &'a Trial,
    pub(crate) place: Place<'a>,
    pub(crate) disks: &'a Disks,
    pub(crate) options: &'a LiveOptions,
    /// How late an emulated disk was, as a share of its service time.
    pub(crate) late_share: &'a dyn Fn() -> Option<f64>,
    /// The model of an emulated disk.
    pub(crate) model: Option<Model<'a>>,
    /// Checks every second that no new user of the target has come.
    pub(crate) unused: &'a dyn Fn() -> Result<()>,
}

/// What the model of an emulated disk says about its commands.
#[derive(Clone, Copy)]
pub(crate) struct Model<'a> {
    /// What was answered so far, by the model's own times: all but flushes, and flushes.
    pub(crate) answered: &'a dyn Fn() -> (Took, Took),
    /// Whether the model is so fast that following every command would disturb it.
    pub(crate) fast: bool,
}

/// Where the work of a trial runs.
#[derive(Clone, Copy)]
pub(crate) enum Floor<'a> {
    /// The target itself.
    Bare,
    /// A small root, from which commands start.
    Stage(&'a Stage),
    /// A directory of a file system.
    Ground(&'a Ground),
}

impl Run<'_> {
    /// Does the work. `cold` makes the disk one that was left alone, when files are there.
    ///
    /// # Errors
    /// A run that yields no figures; work on a floor that it has no use for.
    pub(crate) fn work(&self, floor: Floor<'_>, cold: &dyn Fn() -> Result<()>) -> Result<Record> {
        match (&self.trial.work, floor) {
            (Work::Fio(_), Floor::Bare) => self.fio(),
            (Work::Fio(_), Floor::Ground(ground)) => self.fio_on_files(ground, cold),
            (Work::Program(program), Floor::Ground(ground)) => {
                match benchmark::behind(self.trial) {
                    Some((recipe, _)) => self.benchmark(recipe, program, ground, cold),
                    None => self.program(program, ground, cold),
                }
            }
            (Work::Calls(log), Floor::Ground(ground)) => self.program(log, ground, cold),
            (Work::Startup(what), Floor::Stage(stage)) => self.startup(what, stage),
            (Work::Fio(_), Floor::Stage(_))
            | (Work::Trace(_), Floor::Bare | Floor::Stage(_) | Floor::Ground(_))
            | (Work::Program(_) | Work::Calls(_), Floor::Bare | Floor::Stage(_))
            | (Work::Startup(_), Floor::Bare | Floor::Ground(_)) => {
                let message = format!("{}: its files have no place", self.trial.id.workload);
                Err(Error::Trial { message })
            }
        }
    }

    /// Runs the fio jobs.
    fn fio(&self) -> Result<Record> {
        let (trial, options) = (self.trial, self.options);
        let jobs = jobfile::render(trial.jobs(), &self.place.path, self.place.bytes)?;
        let scheduler = apply(self.kind, trial, self.disks)?;
        meter::drop_caches()?;
        wait(options.settle, &options.interrupt)?;
        let dir = Scratch::new(options)?;
        let how = fio::How {
            target: self.place.descriptor,
            read_only: !trial.work.writes(),
            ..self.how(&dir, &jobs)
        };
        // Reads of a verification belong to the job, but not all of them are counted.
        let direct = trial.jobs().jobs.iter().all(|j| j.direct && j.live_only.is_empty());
        self.measured_by_fio(&how, &jobs, &scheduler, direct)
    }

    /// Runs the fio jobs on files of their own in a fresh directory, which fio makes before. `cold` then makes the disk
    /// one that was left alone.
    fn fio_on_files(&self, ground: &Ground, cold: &dyn Fn() -> Result<()>) -> Result<Record> {
        let (trial, options) = (self.trial, self.options);
        let scheduler = apply(self.kind, trial, self.disks)?;
        let files = ground.fresh()?;
        let at = fio::directory(files.as_fd());
        // An emulated disk is as fast on zeros, and storing them costs nothing.
        let zeros = ground.mounted().is_some();
        let (jobs, directories) = jobfile::render_on_files(trial.jobs(), &at, zeros)?;
        for directory in directories {
            let path = Path::new(&at).join(directory);
            std::fs::create_dir_all(&path).map_err(|e| Error::io("creating", &path, e))?;
        }
        let dir = Scratch::new(options)?;
        let how = fio::How { target: files.as_fd(), on_files: true, ..self.how(&dir, &jobs) };
        fio::lay_out(&how, &jobs.text, &mut || options.interrupt.check())?;
        // What is dirty is written here, while an emulated disk still takes no time.
        nix::unistd::sync();
        cold()?;
        meter::drop_caches()?;
        wait(options.settle, &options.interrupt)?;
        self.measured_by_fio(&how, &jobs, &scheduler, false)
    }

    fn how<'b>(&'b self, dir: &'b Scratch, jobs: &'b jobfile::Rendered) -> fio::How<'b> {
        fio::How {
            dir: &dir.0,
            target: self.place.descriptor,
            on_files: false,
            limit: fio::time_limit(self.trial.jobs()),
            urgent: self.kind.has_model(),
            read_only: false,
            files: &jobs.files,
        }
    }

    fn measured_by_fio(
        &self,
        how: &fio::How<'_>,
        jobs: &jobfile::Rendered,
        scheduler: &str,
        direct: bool,
    ) -> Result<Record> {
        let trial = self.trial;
        let (fio, seen) = self.observed(&mut |alive| fio::run(how, &jobs.text, alive))?;
        let mut record = self.blank(&seen);
        if let Some(other) =
            fio.jobs.iter().find(|j| !trial.jobs().jobs.iter().any(|t| t.name == j.name))
        {
            let message = format!("fio ran a job \"{}\" that is not the trial's", other.name);
            return Err(Error::Trial { message });
        }
        record.jobs = fio.jobs;
        record.note_asks(&trial.jobs().jobs, &trial.cgroups);
        record.warnings.extend(jobs.warnings.iter().cloned());
        record.warnings.extend(fio.warnings);
        record.provenance.insert("fio".into(), fio.version);
        record.logs = vec![
            ("fio".into(), fio.printed),
            ("fio's job file".into(), jobs.text.clone()),
            ("system".into(), system()),
        ];
        record.logs.retain(|(_, text)| !text.trim().is_empty());
        cpu_cost(&mut record, &seen.used, &fio.cpu);
        record.warnings.extend(drifting::warning(&trial.id, &trial.jobs().jobs, &seen.counts));
        self.conclude(&mut record, seen, scheduler, direct);
        if let Some(why) = record.failed_jobs() {
            if let Some(e) = self.gone() {
                return Err(e);
            }
            record.status = Status::Failed(why);
        }
        Ok(record)
    }

    /// Starts the command under its load.
    fn startup(&self, what: &Startup, stage: &Stage) -> Result<Record> {
        let options = self.options;
        let scheduler = apply(self.kind, self.trial, self.disks)?;
        wait(options.settle, &options.interrupt)?;
        let dir = Scratch::new(options)?;
        let how = startup::How {
            what,
            scratch: &dir.0,
            urgent: self.kind.has_model(),
            interrupt: &options.interrupt,
        };
        let idle = startup::idle_baseline(stage, &how)?;
        let (start, mut seen) = self.observed(&mut |alive| {
            let start = startup::measure(stage, &how);
            alive().and(start)
        })?;
        seen.used.own += start.load_ticks;
        let mut record = self.blank(&seen);
        record.metrics = startup::metrics(start, idle);
        if what.load_bytes() > 0 && start.moved > what.load_bytes() {
            record.warnings.push(Warning {
                code: "cached".into(),
                message: "the load came to the end of its files and went on in the page cache"
                    .into(),
                advice: "give it a larger file_size".into(),
            });
        }
        self.conclude(&mut record, seen, &scheduler, false);
        Ok(record)
    }

    /// Runs `work` between two readings of all meters, traced if the options ask for it.
    fn observed<T>(&self, work: &mut dyn FnMut(Alive<'_>) -> Result<T>) -> Result<(T, Seen)> {
        let (disks, options) = (self.disks, self.options);
        let names = disks.names();
        let root = SysRoot::default();
        let detail = self.detail();
        let start = |d| Tracer::start(&names, d, &options.state_dir, options.guardian.as_ref());
        let (tracer, untraced) = match detail.map(start) {
            None => (None, None),
            Some(Ok(tracer)) => (Some(tracer), None),
            // If the user asked for a trace, its lack is a failure. If only the check needs it, a run without a trace
            // still counts.
            Some(Err(e)) if options.trace => return Err(e),
            Some(Err(e)) => (None, Some(e.to_string())),
        };
        let answered = || self.model.map(|m| (m.answered)());
        let answered_before = answered();
        let own_groups = self.trial.jobs().jobs.iter().any(|j| j.cgroup.is_some());
        let mut looks = Looks::new(disks, own_groups);
        let (wall, clock) = (SystemTime::now(), Instant::now());
        let before = meter::read(&root, &names);
        let mut looked = Instant::now();
        let mut compared = looked;
        let mut alive = || {
            options.interrupt.check()?;
            if compared.elapsed() >= Duration::from_millis(250) {
                looks.look();
                compared = Instant::now();
            }
            if looked.elapsed() >= Duration::from_secs(1) {
                (self.unused)()?;
                looked = Instant::now();
            }
            disks.missing().map_or(Ok(()), |d| Err(gone(d)))
        };
        let result = work(&mut alive);
        let after = meter::read(&root, &names);
        let elapsed = clock.elapsed();
        looks.look_around();
        let traced = tracer.map(Tracer::finish).transpose();
        let answered =
            answered_before.zip(answered()).map(|(a, b)| (b.0.since(a.0), b.1.since(a.1)));
        if result.is_err()
            && let Some(e) = self.gone()
        {
            return Err(e);
        }
        let result = result?;
        clock_check(wall, elapsed)?;
        let traced = traced?;
        let timing = answered.map(|(data, flushes)| match &traced {
            Some(t) => {
                let sampled = detail == Some(Detail::Sampled);
                Ok(Timing { traced: t.times, data, flushes, sampled })
            }
            None => Err(untraced.unwrap_or_else(|| "there is no trace".into())),
        });
        let used = after.since(&before);
        let Looks { applied, disturbed, counts, .. } = looks;
        Ok((result, Seen { used, elapsed, traced, timing, applied, disturbed, counts }))
    }

    /// A disk that went away shows as failures of all kinds. This is the one to report.
    fn gone(&self) -> Option<Error> {
        // We hold the disk open, so a dead disk keeps its name until we close it.
        let first = || self.disks.names().first().copied().unwrap_or_default();
        let dead = || (!self.answers()).then(first);
        self.disks.missing().or_else(dead).map(gone)
    }

    /// Whether the target can still be read, past the page cache, in one of three places.
    fn answers(&self) -> bool {
        use std::os::unix::fs::FileExt;
        let Ok(copy) = self.place.descriptor.try_clone_to_owned() else { return true };
        let file = std::fs::File::from(copy);
        let advice = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED;
        // Cached data looks alive. The failure is then reported as it was.
        let _ = nix::fcntl::posix_fadvise(&file, 0, 0, advice);
        let mut buf = [0; 512];
        let end = self.place.bytes.saturating_sub(512);
        [0, end / 2, end].into_iter().any(|at| match file.read_at(&mut buf, at) {
            Ok(_) => true,
            Err(e) => {
                let code = e.raw_os_error().unwrap_or(0);
                ![nix::libc::EIO, nix::libc::ENXIO, nix::libc::ENODEV].contains(&code)
            }
        })
    }

    /// What to trace: everything when the options ask for it, else what the check of an emulated disk needs.
    fn detail(&self) -> Option<Detail> {
        let model = self.model;
        // Flushes and discards have no place of their own to sample by.
        let plain = |j: &JobSpec| {
            let syncs = j.fsync > 0 || j.fdatasync > 0 || j.end_fsync || j.sync > 0;
            !syncs && !j.pattern.trim
        };
        let jobs = &self.trial.jobs().jobs;
        let sample = !jobs.is_empty() && jobs.iter().all(plain);
        match model {
            _ if self.options.trace => Some(Detail::All),
            Some(m) if m.fast && sample => Some(Detail::Sampled),
            Some(_) => Some(Detail::Times),
            None => None,
        }
    }

    fn blank(&self, seen: &Seen) -> Record {
        // fio and commands that start get a priority of their own on an emulated disk.
        let urgent = self.kind.has_model() && self.trial.work.load().is_none();
        let priority = (!urgent).then(priority).flatten();
        Record {
            schema: SCHEMA,
            trial: self.trial.id.clone(),
            backend: self.kind,
            device: seen.used.disk.to_device_stats(),
            elapsed: Nanos::try_from(seen.elapsed.as_nanos()).unwrap_or(Nanos::MAX),
            warnings: throttled().into_iter().chain(priority).collect(),
            ..Record::default()
        }
    }

    /// Trace, settings, judgement and origin: what every record of a live run has.
    fn conclude(&self, record: &mut Record, seen: Seen, scheduler: &str, direct: bool) {
        let now = self.disks.states();
        if let Some(found) = seen.traced.filter(|_| self.options.trace) {
            record.dispatches = trace::thin(&found.points);
            record.trace = found.points;
            record.warnings.extend(found.warning);
            record.device.seeks = found.seeks;
            record.device.travel = found.travel;
        }
        if let Some(first) = now.first() {
            tunables(record, first);
        }
        let other = now.iter().find(|q| q.scheduler.as_deref() != Some(scheduler));
        let kept = |(now, set): (&QueueState, &QueueState)| {
            now.tunables == set.tunables && now.attributes == set.attributes
        };
        let evidence = Evidence {
            used: &seen.used,
            elapsed: seen.elapsed,
            expected_scheduler: scheduler,
            scheduler_now: other.map_or(Some(scheduler), |q| q.scheduler.as_deref()),
            settings_kept: now.iter().zip(&seen.applied).all(kept),
            disturbed: seen.disturbed.as_deref(),
            bytes: self.place.bytes,
            jobs: &self.trial.jobs().jobs,
            // A mirror writes everything twice, and parity is read and written as well.
            direct: direct && now.len() == 1,
            through_cache: self.trial.work.load().is_some(),
            late_share: (self.late_share)(),
        };
        validity::judge(record, &evidence, &self.options.thresholds);
        if let Some(timing) = &seen.timing {
            timing::judge(record, timing, &self.options.thresholds);
        }
        provenance(record, &self.place, self.disks, &now);
    }
}

type Alive<'a> = &'a mut dyn FnMut() -> Result<()>;

/// What was seen while something ran.
struct Seen {
    used: meter::Use,
    elapsed: Duration,
    traced: Option<Traced>,
    timing: Option<std::result::Result<Timing, String>>,
    applied: Vec<QueueState>,
    /// What was seen to be otherwise meanwhile.
    disturbed: Option<String>,
    /// When, from the start, how many I/Os the disks had done.
    counts: Vec<(Duration, u64)>,
}

/// Switches to the trial's scheduler with its tunables and queue settings; the kernel's name for it.
fn apply(kind: BackendKind, trial: &Trial, disks: &Disks) -> Result<String> {
    super::before::settings(kind, trial)?;
    let scheduler = disks.set_scheduler(trial.kernel_name())?;
    for (name, value) in &trial.scheduler.tunables {
        disks.set_tunable(name, *value)?;
    }
    for (name, value) in &trial.settings {
        disks.set_attribute(name, &value.to_string())?;
    }
    disks.check_tags(&scheduler, &trial.settings)?;
    disks.note()?;
    Ok(scheduler)
}

/// Sleeps, but not through a signal.
pub(crate) fn wait(time: Duration, interrupt: &Interrupt) -> Result<()> {
    let end = Instant::now() + time;
    loop {
        interrupt.check()?;
        let now = Instant::now();
        if now >= end {
            return Ok(());
        }
        std::thread::sleep((end - now).min(Duration::from_millis(50)));
    }
}

/// A directory for the files of one run. Dropping the value removes it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(options: &LiveOptions) -> Result<Scratch> {
        let dir = crate::restore::scratch_dir(&options.state_dir, crate::state::instance());
        std::fs::create_dir_all(&dir).map_err(|e| Error::io("creating", &dir, e))?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Files that fio left behind are small and useless.
        crate::made::remove_scratch(&self.0);
    }
}

fn gone(disk: &str) -> Error {
    Error::Gone { device: format!("/dev/{disk}"), during: "a run".into() }
}
