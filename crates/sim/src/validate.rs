//! Compares the simulator with the real kernel: a folder of measured truth against our own runs.
//!
//! A truth folder has `devices.toml` (reference models), `jobs/DEVICE.JOB.fio` and `results.json`. The
//! functions here are pure: the caller reads the files and runs the [`Case`]s.

mod bios;
mod compare;
mod dispatch;
mod files;
mod job;
mod measured;
mod plausible;
mod programs;
mod startup;
mod taken;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use bios::{BiosBeside, LoggedBio, beside_bios, parse_bios};
pub use compare::{PAGE_CACHE, Row, compare};
pub use dispatch::{LoggedCommand, Parting, beside_log, parse_dispatch_log, parse_later_log};
pub use files::{FileCase, FileFolder, FileRun, beside_files};
pub use measured::{Measured, MeasuredCase, MeasuredRow, beside};
pub use programs::{PROGRAMS, ProgramCase, ProgramRun, beside_programs, plan_programs};
pub use startup::{Start, StartCase, StartFolder, StartRow, StartTime, Started};
pub use taken::{Cpu, Driver, Taken};

use iosched_block::KernelProfile;
use iosched_devices::{TruthDevice, truth};
use iosched_experiment::{HostSpec, Trial, TrialId, choose_scheduler, label, path_of};
use iosched_host::first_start;
use iosched_schedulers::registry::Registry;
use iosched_schedulers::{BlockPath, pair};
use iosched_types::Diagnostic;
use iosched_workloads::fio::on_files;
use iosched_workloads::fio::{JobSet, NoLookup, check_files, parse};

/// One run of `results.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct TruthRun {
    /// Device, a section of `devices.toml`.
    pub device: String,
    /// Job, the middle part of the job file's name.
    pub job: String,
    /// Scheduler as the kernel names it.
    pub scheduler: String,
    /// The kernel that ran it, where the measurement says: a folder may have rows of several.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The scheduler, and where the folder's rows are of several kernels, on which of them.
    #[serde(skip)]
    pub shown: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// One entry per process.
    pub sections: Vec<TruthSection>,
    /// sysfs values of the run.
    #[serde(default)]
    pub queue: BTreeMap<String, String>,
    /// Those of the scheduler's that were set before the run.
    #[serde(default)]
    pub tunables: BTreeMap<String, String>,
    /// File system, where the row says.
    #[serde(default)]
    pub fs: String,
    /// When fio began, in ns after the reset of the device, where the run holds that and so the making of the jobs' files.
    #[serde(default)]
    pub begin_ns: Option<u64>,
    /// In ns of the run: from here on it is not the kernel's, whose own code ended in a BUG.
    #[serde(default)]
    pub bug_at_ns: Option<u64>,
    /// Where the tag maps were first searched, where the measurement says.
    #[serde(default)]
    pub tag_start: Option<serde_json::Value>,
    /// How long after a tick of the timer the device was reset, where the measurement says.
    #[serde(default)]
    pub reset_after_tick_ns: Option<u64>,
}

impl TruthRun {
    /// The profile of the kernel that ran it, where the row says: 7.1 of 7.1.5.
    fn release(&self) -> Option<&str> {
        let version = self.kernel.as_deref()?;
        let ends =
            std::iter::once(version.len()).chain(version.rmatch_indices('.').map(|(at, _)| at));
        ends.map(|end| &version[..end]).find(|v| KernelProfile::names().contains(v))
    }

    /// The commands of its log that are the kernel's.
    #[must_use]
    pub fn before_bug(&self, mut log: Vec<LoggedCommand>) -> Vec<LoggedCommand> {
        log.retain(|c| self.bug_at_ns.is_none_or(|bug| c.at < bug));
        log
    }

    /// Whether the kernel's own code ended before its processes did. Then its figures are of a run that has no kernel.
    fn ended_in_bug(&self) -> bool {
        let ran = self.sections.iter().filter_map(|s| s.job_runtime_ms).max();
        self.bug_at_ns.is_some_and(|bug| bug / 1_000_000 < ran.unwrap_or(u64::MAX))
    }
}

/// One process of a run.
#[derive(Clone, Debug, Deserialize)]
pub struct TruthSection {
    /// Section name.
    pub job: String,
    /// How long the process ran, in ms.
    #[serde(default)]
    pub job_runtime_ms: Option<u64>,
    /// Reads.
    #[serde(default)]
    pub read: Option<TruthDirection>,
    /// Writes.
    #[serde(default)]
    pub write: Option<TruthDirection>,
}

/// One direction of a process.
#[derive(Clone, Debug, Deserialize)]
pub struct TruthDirection {
    /// I/Os a second.
    pub iops: f64,
    /// KiB a second.
    pub bw_kib: f64,
    /// I/Os, where the measurement says.
    #[serde(default)]
    pub ios: Option<u64>,
    /// The time that the rates are over, where the measurement says.
    #[serde(default)]
    pub runtime_ms: Option<u64>,
    /// Mean completion latency in µs.
    #[serde(default)]
    pub clat_mean_us: f64,
    /// Median.
    #[serde(default)]
    pub clat_p50_us: f64,
    /// 99th percentile.
    #[serde(default)]
    pub clat_p99_us: f64,
}

/// A truth folder as text.
#[derive(Debug)]
pub struct TruthFolder {
    /// Devices.
    pub devices: Vec<TruthDevice>,
    /// Job files by `DEVICE.JOB`.
    pub jobs: BTreeMap<String, (String, String)>,
    /// Runs.
    pub runs: Vec<TruthRun>,
    /// How they were taken.
    pub taken: Taken,
}

impl TruthFolder {
    /// Parses the parts; `jobs` are (file name, text). `taken` is `truth.toml`, where there is one.
    ///
    /// # Errors
    /// Where a file is wrong.
    pub fn parse(
        devices: (&str, &str),
        jobs: Vec<(String, String)>,
        results: (&str, &str),
        taken: Option<(&str, &str)>,
    ) -> Result<TruthFolder, Diagnostic> {
        let mut runs: Vec<TruthRun> = serde_json::from_str(results.1).map_err(|e| {
            json_error(results.0, results.1, &e).with_help(
                "expected a list of {device, job, scheduler, repetition, sections, queue}",
            )
        })?;
        let several = runs.windows(2).any(|pair| pair[0].kernel != pair[1].kernel);
        for run in &mut runs {
            run.shown = match run.release().filter(|_| several) {
                Some(kernel) => format!("{} on {kernel}", run.scheduler),
                None => run.scheduler.clone(),
            };
        }
        let jobs = jobs
            .into_iter()
            .map(|(file, text)| {
                let name = file.rsplit('/').next().unwrap_or(&file).trim_end_matches(".fio");
                (name.to_string(), (file.clone(), text))
            })
            .collect();
        let taken = taken.map(|(file, text)| Taken::parse(file, text)).transpose()?;
        let devices = truth::parse(devices.0, devices.1)?;
        Ok(TruthFolder { devices, jobs, runs, taken: taken.unwrap_or_default() })
    }
}

/// Where JSON is wrong.
fn json_error(file: &str, text: &str, e: &serde_json::Error) -> Diagnostic {
    let lines = text.split_inclusive('\n').take(e.line().saturating_sub(1));
    let at = lines.map(str::len).sum::<usize>() + e.column().saturating_sub(1);
    Diagnostic::at_span(file, text, at..at + 1, e.to_string())
}

/// One device, job and scheduler with all its repetitions.
#[derive(Debug)]
pub struct Case<'a> {
    /// Device name.
    pub device: &'a str,
    /// Job name.
    pub job: &'a str,
    /// Scheduler name.
    pub scheduler: &'a str,
    /// The kernel's runs.
    pub runs: Vec<&'a TruthRun>,
    /// Our trials, one per repetition and start of the tag maps, or why there are none.
    pub trials: Result<Vec<Trial>, String>,
}

/// Groups the runs of a folder and plans a trial for each repetition.
#[must_use]
pub fn plan(folder: &TruthFolder) -> Vec<Case<'_>> {
    let mut cases: BTreeMap<(&str, &str, &str), Vec<&TruthRun>> = BTreeMap::new();
    for r in &folder.runs {
        cases.entry((&r.device, &r.job, &r.shown)).or_default().push(r);
    }
    cases
        .into_iter()
        .map(|((device, job, scheduler), runs)| {
            let trials = runs.iter().map(|r| trials(folder, r)).collect::<Result<Vec<_>, _>>();
            let trials = trials.map(|all| all.into_iter().flatten().collect());
            Case { device, job, scheduler, runs, trials }
        })
        .collect()
}

/// fio seeds of the repetitions: the job file is that of the first, which runs as it stands.
fn seed_override(text: &str, repetition: u32) -> Vec<(String, String)> {
    if repetition <= 1 {
        return Vec::new();
    }
    let seed = text.lines().find_map(|l| l.trim().strip_prefix("randseed=")?.parse::<u64>().ok());
    seed.map(|s| ("randseed".to_string(), (s + u64::from(repetition) - 1).to_string()))
        .into_iter()
        .collect()
}

/// A process that ran by time but ended long before it did not run to its end: the measurement broke.
fn complete(run: &TruthRun, jobs: &JobSet) -> Result<(), String> {
    for (section, job) in run.sections.iter().zip(&jobs.jobs) {
        let (Some(ran), Some(should)) = (section.job_runtime_ms, job.runtime) else { continue };
        let should = should / 1_000_000;
        if job.time_based && ran * 2 < should {
            return Err(format!(
                "the kernel's run is incomplete: a process of section \"{}\" ended after {ran} ms of {should} ms",
                section.job
            ));
        }
    }
    Ok(())
}

/// The trials of a run, one for each start of the tag maps.
fn trials(folder: &TruthFolder, run: &TruthRun) -> Result<Vec<Trial>, String> {
    let trial = trial(folder, run)?;
    let nr = trial.settings.iter().find(|(name, _)| name == "nr_requests");
    let nr = nr.and_then(|(_, n)| u32::try_from(*n).ok()).unwrap_or(0);
    let told = run.tag_start.as_ref().and_then(|t| u32::try_from(t.as_u64()?).ok());
    let told = told.or(folder.taken.tag_start);
    let starts = told.map_or_else(|| tag_starts(&trial, nr), |t| vec![t]).into_iter();
    Ok(starts.map(|tag_start| Trial { tag_start, ..trial.clone() }).collect())
}

fn trial(folder: &TruthFolder, run: &TruthRun) -> Result<Trial, String> {
    let device = folder
        .devices
        .iter()
        .find(|d| d.spec.name == run.device)
        .ok_or_else(|| format!("devices.toml has no [{}]", run.device))?;
    let key = format!("{}.{}", run.device, run.job);
    let (file, text) = folder.jobs.get(&key).ok_or_else(|| format!("no job file {key}.fio"))?;
    let no_includes = |name: &str| Err(format!("{name}: truth jobs include nothing"));
    let first = |d: Vec<Diagnostic>| d.first().map_or_else(String::new, |d| d.message.clone());
    let jobs = parse(file, text, &NoLookup, &no_includes, &seed_override(text, run.repetition))
        .map_err(first)?;
    check_files(&jobs).map_err(first)?;
    complete(run, &jobs)?;
    let taken = folder.taken.by(run.release());
    let mut kernel = taken.profile()?;
    let mut host = HostSpec::default();
    let mut spec = device.spec.clone();
    if on_files::needed(&jobs) {
        kernel = files::kernel(&taken.kernel, "")?;
        // Their logs have flushes, but where the row says that the device has no cache.
        spec.write_cache = run.queue.get("write_cache").is_none_or(|c| c != "write through");
        host.set_memory("1G")?;
        // What the measurements set.
        host.set_sysctl("vm.dirty_bytes", "268435456")?;
        host.set_sysctl("vm.dirty_background_bytes", "67108864")?;
    }
    let scheduler = taken.scheduler(&run.scheduler);
    let scheduler = choose_scheduler(scheduler, &tunables(run)?, &kernel, Registry::builtin())
        .map_err(|e| e.to_string())?;
    let mut settings = vec![("wbt_lat_usec".to_string(), 0)];
    for name in ["nr_requests", "max_sectors_kb", "rotational", "read_ahead_kb"] {
        if let Some(v) = run.queue.get(name).and_then(|v| v.parse::<i64>().ok()) {
            settings.push((name.into(), v));
        } else if name == "nr_requests" {
            settings.push((name.into(), i64::from(device.nr_requests)));
        }
    }
    // The device's clock began with the first command, at whatever moment of fio's start of jobs.
    let late = first_start(&jobs);
    let tick = 1_000_000_000 / u64::from(kernel.hz);
    let ticks = late.div_ceil(tick) * tick;
    let reset = taken.reset(run);
    let first = taken.first_command(jobs.jobs.len());
    let start_at = (reset + first + ticks).saturating_sub(late + taken.first_looks());
    let trial = Trial {
        id: TrialId {
            experiment: "validate".into(),
            device: run.device.clone(),
            scheduler: label(&scheduler),
            kernel: kernel.version.clone(),
            workload: run.job.clone(),
            repetition: run.repetition,
            seed: u64::from(run.repetition),
        },
        settings,
        start_at,
        reset_at: reset + ticks,
        tag_start: 0,
        start_order: taken.start_order(jobs.jobs.len()),
        // Measurements that note the reset began with a kernel that had run its queues before.
        first_run_late: taken.first_run_late(run),
        host,
        ..Trial::new(spec, scheduler, kernel, jobs)
    };
    Ok(match run.begin_ns {
        Some(begin) => files::from_the_start(trial, &run.fs, begin),
        None => trial,
    })
}

/// The tunables that were set, as numbers.
fn tunables(run: &TruthRun) -> Result<Vec<(String, i64)>, String> {
    let number = |(name, text): (&String, &String)| {
        let value =
            text.trim().parse().map_err(|_| format!("tunable {name} = \"{text}\" is no number"));
        value.map(|v| (name.clone(), v))
    };
    let set = run.tunables.iter().map(number);
    set.chain(loaded_models(run).map(Ok)).collect()
}

/// Models that were loaded, as the files show them: `base : 9000000 ns;slope: 7000 ns/KiB`.
fn loaded_models(run: &TruthRun) -> impl Iterator<Item = (String, i64)> + '_ {
    run.queue.iter().filter_map(|(name, text)| {
        let name = name.strip_prefix("iosched/").filter(|n| n.starts_with("lat_model_"))?;
        let number = |part: &str| part.split_whitespace().find_map(|w| w.parse::<u64>().ok());
        let (base, slope) = text.split_once(';')?;
        Some((name.to_string(), pair::of(number(base)?, number(slope)?)))
    })
}

/// Whether the scheduler limits a process to the first tags of a map. The single-queue path has no tags.
fn limits_to_first_tags(trial: &Trial) -> bool {
    let s = &trial.scheduler;
    s.descriptor.facts.first_tags && path_of(s) == BlockPath::Mq
}

/// Where a run's trials begin to search their tags. The kernel draws the start, and no measurement records it. Under a
/// scheduler that limits a process to the first tags of the map, the start makes a difference. The limits differ by
/// word of the map, and there are at least four words.
fn tag_starts(trial: &Trial, nr_requests: u32) -> Vec<u32> {
    if limits_to_first_tags(trial) {
        (0..4).map(|i| nr_requests * i / 4).collect()
    } else {
        vec![0]
    }
}
