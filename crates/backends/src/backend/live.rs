//! What the real and the emulated backend share: one trial on a device of the running kernel.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use iosched_experiment::{BackendKind, DispatchPoint, Record, SCHEMA, Status, Trial, Warning};
use iosched_types::{Bytes, Nanos};

use crate::error::{Error, Result};
use crate::guardian::GuardianCommand;
use crate::load::child::Interrupt;
use crate::load::fio::{self};
use crate::load::{jobfile, meter};
use crate::root::SysRoot;
use crate::state::STATE_DIR;
use crate::switch::{Session, running_kernel};
use crate::trace::Tracer;
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
            interrupt: Interrupt::default(),
        }
    }
}

/// Where the load goes.
pub(crate) struct Place<'a> {
    /// Kernel name of the disk whose scheduler is compared.
    pub(crate) disk: &'a str,
    /// Device node or file.
    pub(crate) target: &'a Path,
    /// Its size.
    pub(crate) bytes: Bytes,
}

/// Runs one trial.
pub(crate) fn run(
    kind: BackendKind,
    trial: &Trial,
    place: &Place<'_>,
    session: &Session,
    options: &LiveOptions,
    late_share: &dyn Fn() -> Option<f64>,
) -> Result<Record> {
    let root = SysRoot::default();
    let jobs = jobfile::render(&trial.jobs, place.target, place.bytes)?;
    let scheduler = session.set_scheduler(trial.scheduler.descriptor.name)?;
    for (name, value) in &trial.scheduler.tunables {
        session.set_tunable(name, *value)?;
    }
    for (name, value) in &trial.settings {
        session.set_attribute(name, &value.to_string())?;
    }
    meter::drop_caches()?;
    wait(options.settle, &options.interrupt)?;
    let dir = scratch(options)?;
    let trace = || Tracer::start(place.disk, &options.state_dir, options.guardian.as_ref());
    let tracer = options.trace.then(trace).transpose()?;
    let applied = session.state();
    let (wall, clock) = (SystemTime::now(), Instant::now());
    let before = meter::read(&root, place.disk);
    let mut alive = || {
        options.interrupt.check()?;
        if session.is_present() {
            return Ok(());
        }
        Err(Error::Gone { device: format!("/dev/{}", place.disk), during: "a run".into() })
    };
    let result = fio::run(&dir, &jobs, fio::time_limit(&trial.jobs), &mut alive);
    let after = meter::read(&root, place.disk);
    let elapsed = clock.elapsed();
    let dispatches = tracer.map(Tracer::finish).transpose()?;
    // Whatever fio left behind is small and of no use to anyone.
    let _ = std::fs::remove_dir_all(&dir);
    let fio = result?;
    clock_check(wall, elapsed)?;
    let used = after.since(&before);
    let mut record = Record {
        schema: SCHEMA,
        trial: trial.id.clone(),
        backend: kind,
        device: used.disk.to_device_stats(),
        elapsed: Nanos::try_from(elapsed.as_nanos()).unwrap_or(Nanos::MAX),
        jobs: fio.jobs,
        warnings: fio.warnings,
        ..Record::default()
    };
    record.trial.kernel = running_kernel();
    if let Some(found) = dispatches {
        record.dispatches = found.points;
        record.warnings.extend(found.warning);
        record.device.seeks = found.seeks;
        record.device.travel = found.travel;
    }
    let now = session.state();
    tunables(&mut record, &now);
    let evidence = Evidence {
        used: &used,
        elapsed,
        expected_scheduler: &scheduler,
        scheduler_now: now.scheduler.as_deref(),
        settings_kept: now.tunables == applied.tunables && now.attributes == applied.attributes,
        direct: trial.jobs.jobs.iter().all(|j| j.direct),
        late_share: late_share(),
    };
    validity::judge(&mut record, &evidence, &options.thresholds);
    provenance(&mut record, place, &fio.version, &now);
    cpu_cost(&mut record, &used, &fio.cpu);
    Ok(record)
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

fn scratch(options: &LiveOptions) -> Result<PathBuf> {
    let dir = crate::restore::scratch_dir(&options.state_dir, std::process::id());
    std::fs::create_dir_all(&dir).map_err(|e| Error::io("creating", &dir, e))?;
    Ok(dir)
}

/// A wall clock that was set during a run makes rates by wall-clock tools wrong.
fn clock_check(wall: SystemTime, elapsed: Duration) -> Result<()> {
    let seconds = match wall.elapsed() {
        Ok(w) => w.as_secs_f64() - elapsed.as_secs_f64(),
        Err(e) => -e.duration().as_secs_f64() - elapsed.as_secs_f64(),
    };
    if seconds.abs() > 1.0 + elapsed.as_secs_f64() * 0.01 {
        return Err(Error::ClockJump { seconds, during: "a run".into() });
    }
    Ok(())
}

fn tunables(record: &mut Record, now: &crate::discover::QueueState) {
    for (name, value) in &now.tunables {
        if let Ok(v) = value.parse() {
            record.scheduler.tunables.insert(name.clone(), v);
        }
    }
}

fn provenance(
    record: &mut Record,
    place: &Place<'_>,
    fio: &str,
    now: &crate::discover::QueueState,
) {
    let disk = crate::discover::Disk::read(&SysRoot::default(), place.disk, None);
    let mut put = |k: &str, v: String| {
        if !v.is_empty() {
            record.provenance.insert(k.into(), v);
        }
    };
    put("kernel", running_kernel());
    put("fio", fio.into());
    put("device", disk.model);
    put("firmware", disk.firmware);
    put("device.by-id", disk.by_id.first().cloned().unwrap_or_default());
    put("target", place.target.display().to_string());
    put("scheduler", now.scheduler.clone().unwrap_or_default());
    for (name, value) in &now.attributes {
        put(&format!("queue.{name}"), value.clone());
    }
}

/// CPU cost per I/O by three meters: fio's own (misses kernel threads), block-layer kernel threads,
/// and everything that ran on the machine (includes others; use it on an idle machine only).
fn cpu_cost(record: &mut Record, used: &meter::Use, cpu: &[iosched_experiment::fio_json::FioCpu]) {
    let ios: u64 = record.jobs.iter().map(|j| j.read.ios + j.write.ios + j.trim.ios).sum();
    if ios == 0 {
        return;
    }
    let own: f64 =
        cpu.iter().map(|c| (c.user + c.system) / 100.0 * c.job_runtime_ms as f64 * 1e3).sum();
    let per_tick = 1e6 / meter::ticks_per_second();
    for (name, us) in [
        ("cpu_fio", own),
        ("cpu_kernel_threads", used.kernel_threads as f64 * per_tick),
        ("cpu_machine", used.busy as f64 * per_tick),
    ] {
        record.metrics.push(iosched_experiment::Metric {
            name: name.into(),
            value: us / ios as f64,
            unit: "us/IO".into(),
            higher_is_better: false,
            censored: false,
        });
    }
}

/// What a trace yields for a record.
pub(crate) struct Traced {
    pub(crate) points: Vec<DispatchPoint>,
    pub(crate) seeks: u64,
    pub(crate) travel: u64,
    pub(crate) warning: Option<Warning>,
}

/// Marks a record invalid unless it is so already.
pub(crate) fn invalidate(record: &mut Record, why: impl Into<String>) {
    if record.status == Status::Complete {
        record.status = Status::Invalid(why.into());
    }
}
