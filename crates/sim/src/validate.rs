//! The simulator beside the real kernel: a folder of measured truth against our own runs.
//!
//! A truth folder has `devices.toml` (reference models), `jobs/DEVICE.JOB.fio` and `results.json`. The
//! functions here are pure: the caller reads the files and runs the [`Case`]s.

mod dispatch;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use dispatch::{LoggedCommand, first_difference, our_commands, parse_dispatch_log};

use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::{TruthDevice, truth};
use iosched_experiment::{Collect, Record, Trial, TrialId, choose_scheduler, label};
use iosched_types::Diagnostic;
use iosched_workloads::fio::{JobSet, NoLookup, check_supported, parse};

/// One run of `results.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct TruthRun {
    /// Device, a section of `devices.toml`.
    pub device: String,
    /// Job, the middle part of the job file's name.
    pub job: String,
    /// Scheduler as the kernel names it.
    pub scheduler: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// One entry per process.
    pub sections: Vec<TruthSection>,
    /// sysfs values of the run.
    #[serde(default)]
    pub queue: BTreeMap<String, String>,
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
}

impl TruthFolder {
    /// Parses the three parts; `jobs` are (file name, text).
    ///
    /// # Errors
    /// Where a file is wrong.
    pub fn parse(
        devices: (&str, &str),
        jobs: Vec<(String, String)>,
        results: (&str, &str),
    ) -> Result<TruthFolder, Diagnostic> {
        let runs: Vec<TruthRun> = serde_json::from_str(results.1).map_err(|e| {
            let start: usize = results
                .1
                .split_inclusive('\n')
                .take(e.line().saturating_sub(1))
                .map(str::len)
                .sum();
            let at = start + e.column().saturating_sub(1);
            Diagnostic::at_span(results.0, results.1, at..at + 1, e.to_string()).with_help(
                "expected a list of {device, job, scheduler, repetition, sections, queue}",
            )
        })?;
        let jobs = jobs
            .into_iter()
            .map(|(file, text)| {
                let name = file.rsplit('/').next().unwrap_or(&file).trim_end_matches(".fio");
                (name.to_string(), (file.clone(), text))
            })
            .collect();
        Ok(TruthFolder { devices: truth::parse(devices.0, devices.1)?, jobs, runs })
    }
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
    /// Our trials, one per repetition, or why there are none.
    pub trials: Result<Vec<Trial>, String>,
}

/// Groups the runs of a folder and plans a trial for each repetition.
#[must_use]
pub fn plan(folder: &TruthFolder) -> Vec<Case<'_>> {
    let mut cases: BTreeMap<(&str, &str, &str), Vec<&TruthRun>> = BTreeMap::new();
    for r in &folder.runs {
        cases.entry((&r.device, &r.job, &r.scheduler)).or_default().push(r);
    }
    cases
        .into_iter()
        .map(|((device, job, scheduler), runs)| {
            let trials = runs.iter().map(|r| trial(folder, r)).collect();
            Case { device, job, scheduler, runs, trials }
        })
        .collect()
}

/// fio seeds of the repetitions: the job file is that of the first.
fn seed_override(text: &str, repetition: u32) -> Vec<(String, String)> {
    let seed = text.lines().find_map(|l| l.trim().strip_prefix("randseed=")?.parse::<u64>().ok());
    seed.map(|s| ("randseed".to_string(), (s + u64::from(repetition.max(1)) - 1).to_string()))
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
    check_supported(&jobs).map_err(first)?;
    complete(run, &jobs)?;
    if jobs.jobs.iter().any(|j| j.target.directory.is_some()) {
        return Err("needs a file system, which is not simulated yet".into());
    }
    let mut kernel = KernelProfile::find("6.12").map_err(|e| e.to_string())?;
    // The measurements were made in virtual time: kernel and fio take none.
    kernel.cpu.model = CpuModel::Zero;
    let scheduler = choose_scheduler(&run.scheduler, &[], &kernel).map_err(|e| e.to_string())?;
    let mut settings = vec![("wbt_lat_usec".to_string(), 0)];
    for name in ["nr_requests", "max_sectors_kb", "rotational"] {
        if let Some(v) = run.queue.get(name).and_then(|v| v.parse::<i64>().ok()) {
            settings.push((name.into(), v));
        } else if name == "nr_requests" {
            settings.push((name.into(), i64::from(device.nr_requests)));
        }
    }
    let jobs_count = jobs.jobs.len();
    Ok(Trial {
        id: TrialId {
            experiment: "validate".into(),
            device: run.device.clone(),
            scheduler: label(&scheduler),
            kernel: kernel.version.clone(),
            workload: run.job.clone(),
            repetition: run.repetition,
            seed: u64::from(run.repetition),
        },
        device: device.spec.clone(),
        kernel,
        scheduler,
        settings,
        jobs,
        cpus: 1,
        cgroups: Vec::new(),
        collect: Collect { series: false, dispatches: false },
        reseeded: Vec::new(),
        startup: None,
        foreign: None,
        start_at: RESET + start(jobs_count),
        reset_at: RESET,
    })
}

/// How long after a tick of its timer the kernel reset the device in the measurements. The slots that BFQ cuts
/// off by the clock say so: with the ticks here, and only here, two logs of thousands of commands agree to
/// the last one (`docs/fidelity-bfq.md`).
const RESET: u64 = 450_000;

/// When fio's first command reached the device in the measurements, in ns after the device's reset: the
/// same in every dispatch log, later by a constant for each further process.
fn start(processes: usize) -> u64 {
    const FIRST: u64 = 165_998_018;
    const EACH: u64 = 14_006;
    FIRST + EACH * (processes as u64).saturating_sub(1)
}

/// One figure beside the kernel's.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Device.
    pub device: String,
    /// Job.
    pub job: String,
    /// `name#clone`, or `*` for the whole run.
    pub section: String,
    /// `read`, `write`, or `*` for both.
    pub op: &'static str,
    /// Scheduler.
    pub scheduler: String,
    /// `iops` (1/s), `bw` (KiB/s), `clat_mean`, `clat_p50`, `clat_p99` (µs).
    pub metric: &'static str,
    /// What the kernel did, mean of the repetitions.
    pub kernel: f64,
    /// What we did.
    pub ours: f64,
    /// (ours − kernel) / kernel.
    pub error: f64,
}

struct Key {
    section: String,
    op: &'static str,
    metric: &'static str,
}

fn of_direction(d: &TruthDirection) -> [(&'static str, f64); 5] {
    [
        ("iops", d.iops),
        ("bw", d.bw_kib),
        ("clat_mean", d.clat_mean_us),
        ("clat_p50", d.clat_p50_us),
        ("clat_p99", d.clat_p99_us),
    ]
}

/// Section labels `name#i`, counted per name.
fn labels<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen: Vec<(&str, u32)> = Vec::new();
    names
        .map(|n| match seen.iter_mut().find(|(s, _)| *s == n) {
            Some((_, k)) => {
                *k += 1;
                format!("{n}#{k}")
            }
            None => {
                seen.push((n, 0));
                format!("{n}#0")
            }
        })
        .collect()
}

fn kernel_figures(run: &TruthRun) -> Vec<(Key, f64)> {
    let mut out = Vec::new();
    let mut total = (0.0, 0.0);
    let names = labels(run.sections.iter().map(|s| s.job.as_str()));
    for (section, s) in names.into_iter().zip(&run.sections) {
        for (op, d) in [("read", &s.read), ("write", &s.write)] {
            let Some(d) = d else { continue };
            total.0 += d.iops;
            total.1 += d.bw_kib;
            for (metric, v) in of_direction(d) {
                out.push((Key { section: section.clone(), op, metric }, v));
            }
        }
    }
    out.push((Key { section: "*".into(), op: "*", metric: "iops" }, total.0));
    out.push((Key { section: "*".into(), op: "*", metric: "bw" }, total.1));
    out
}

fn our_figures(record: &Record) -> BTreeMap<(String, &'static str, &'static str), f64> {
    let mut out = BTreeMap::new();
    let mut total = (0.0, 0.0);
    let names = labels(record.jobs.iter().map(|j| j.name.as_str()));
    for (section, j) in names.into_iter().zip(&record.jobs) {
        for (op, d) in [("read", &j.read), ("write", &j.write)] {
            if d.ios == 0 {
                continue;
            }
            total.0 += d.iops();
            total.1 += d.bytes_per_second() / 1024.0;
            let figures = [
                ("iops", d.iops()),
                ("bw", d.bytes_per_second() / 1024.0),
                ("clat_mean", d.clat.mean() / 1e3),
                ("clat_p50", d.clat.percentile(50.0) as f64 / 1e3),
                ("clat_p99", d.clat.percentile(99.0) as f64 / 1e3),
            ];
            for (metric, v) in figures {
                out.insert((section.clone(), op, metric), v);
            }
        }
    }
    out.insert(("*".into(), "*", "iops"), total.0);
    out.insert(("*".into(), "*", "bw"), total.1);
    out
}

/// Lays our records beside the kernel's runs of a case.
#[must_use]
pub fn compare(case: &Case<'_>, records: &[Record]) -> Vec<Row> {
    let ours: Vec<_> = records.iter().map(our_figures).collect();
    let kernels: Vec<_> = case.runs.iter().map(|r| kernel_figures(r)).collect();
    let Some(first) = kernels.first() else { return Vec::new() };
    let n = kernels.len() as f64;
    first
        .iter()
        .enumerate()
        .map(|(i, (key, _))| {
            let kernel = kernels.iter().filter_map(|k| k.get(i)).map(|(_, v)| v).sum::<f64>() / n;
            let id = (key.section.clone(), key.op, key.metric);
            let sum: f64 = ours.iter().filter_map(|o| o.get(&id)).sum();
            let ours = sum / ours.len().max(1) as f64;
            let error = if kernel == 0.0 { 0.0 } else { (ours - kernel) / kernel };
            Row {
                device: case.device.into(),
                job: case.job.into(),
                section: key.section.clone(),
                op: key.op,
                scheduler: case.scheduler.into(),
                metric: key.metric,
                kernel,
                ours,
                error,
            }
        })
        .collect()
}
