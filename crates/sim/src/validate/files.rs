//! A folder of what the real kernel did with files: programs of system calls on a file system, in virtual time.
//!
//! A row names device, file system, scheduler, memory, the settings of the run, and the command line of a program. Rows
//! whose program, file system or device is not simulated are told with the reason.

use std::collections::BTreeMap;

use serde::Deserialize;

use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::{TruthDevice, truth};
use iosched_experiment::{Load, Record, Trial, TrialId, choose_scheduler, label};
use iosched_schedulers::registry::Registry;
use iosched_types::{Diagnostic, Nanos};
use iosched_workloads::programs::{Descriptor, Params};

use super::{RESET, Row, json_error};

/// When the measured part began after the reset of the device.
const BEGIN: Nanos = 14_536;

/// One run.
#[derive(Clone, Debug, Deserialize)]
pub struct FileRun {
    /// Device, a section of `devices.toml`.
    pub device: String,
    /// `ext4` or `xfs`.
    pub fs: String,
    /// Name of the job.
    pub job: String,
    /// Scheduler as the kernel names it.
    pub scheduler: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// The part of the measurements.
    #[serde(default)]
    pub set: String,
    /// Memory of the machine, such as `1G`.
    #[serde(default)]
    pub mem: String,
    /// Nanoseconds of a system call and of 4096 copied bytes; empty: none.
    #[serde(default)]
    pub cost: String,
    /// Mount options.
    #[serde(default)]
    pub mount: String,
    /// sysfs and sysctl values of the run.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// What was run before, not measured.
    #[serde(default)]
    pub prep_sh: String,
    /// What was measured.
    #[serde(default)]
    pub run_sh: String,
    /// The fio job, where it was one.
    #[serde(default)]
    pub fio_job: String,
    /// What the program measured of itself.
    #[serde(default)]
    pub ops: Vec<Ops>,
    /// Commands until the end of the measured part, by flags and class.
    #[serde(default)]
    pub requests_until_end: BTreeMap<String, u64>,
    /// Their bytes.
    #[serde(default)]
    pub bytes_until_end: BTreeMap<String, u64>,
    /// Commits of the journal.
    #[serde(default)]
    pub journal: BTreeMap<String, f64>,
}

/// What a process measured of itself, or the whole.
#[derive(Clone, Debug, Deserialize)]
pub struct Ops {
    #[serde(default)]
    elapsed_us: Option<f64>,
    #[serde(default)]
    total_elapsed_us: Option<f64>,
    #[serde(default)]
    n: Option<f64>,
    #[serde(default)]
    mean_us: Option<f64>,
    #[serde(default)]
    p99_us: Option<f64>,
}

/// The folder as text.
#[derive(Debug)]
pub struct FileFolder {
    devices: BTreeMap<String, Result<TruthDevice, String>>,
    runs: Vec<FileRun>,
}

/// A run of the folder and our trial of it.
#[derive(Debug)]
pub struct FileCase<'a> {
    /// The measured run.
    pub run: &'a FileRun,
    /// Our trial, or why there is none.
    pub trial: Result<Box<Trial>, String>,
}

impl FileCase<'_> {
    /// `DEVICE.FS.JOB.SCHEDULER`.
    #[must_use]
    pub fn name(&self) -> String {
        let FileRun { device, fs, job, scheduler, .. } = self.run;
        format!("{device}.{fs}.{job}.{scheduler}")
    }
}

impl FileFolder {
    /// Whether a `results.json` is of this form: a row names a file system. Rows of bare disks have none, or an empty name.
    #[must_use]
    pub fn is_one(results: &str) -> bool {
        #[derive(Deserialize)]
        struct Probe {
            #[serde(default)]
            fs: String,
        }
        serde_json::from_str::<Vec<Probe>>(results)
            .is_ok_and(|rows| rows.iter().any(|r| !r.fs.is_empty()))
    }

    /// Parses `devices.toml` and `results.json`.
    ///
    /// # Errors
    /// Where a file is wrong.
    pub fn parse(devices: (&str, &str), results: (&str, &str)) -> Result<FileFolder, Diagnostic> {
        let runs: Vec<FileRun> = serde_json::from_str(results.1).map_err(|e| {
            json_error(results.0, results.1, &e)
                .with_help("expected a list of {device, fs, job, scheduler, run_sh, ops, …}")
        })?;
        let devices = truth::parse_each(devices.0, devices.1)?
            .into_iter()
            .map(|(name, device)| (name, device.map_err(|d| d.message)))
            .collect();
        Ok(FileFolder { devices, runs })
    }

    /// Every run with its trial.
    #[must_use]
    pub fn plan(&self) -> Vec<FileCase<'_>> {
        self.runs.iter().map(|run| FileCase { run, trial: self.trial(run).map(Box::new) }).collect()
    }

    fn trial(&self, run: &FileRun) -> Result<Trial, String> {
        if run.fs != "ext4" {
            return Err(format!("{} is not simulated yet", run.fs));
        }
        let load = load(run)?;
        let device = match self.devices.get(&run.device) {
            None => return Err(format!("devices.toml has no [{}]", run.device)),
            Some(Err(why)) => return Err(format!("[{}]: {why}", run.device)),
            Some(Ok(device)) => device,
        };
        let kernel = kernel(&run.cost)?;
        let scheduler = choose_scheduler(&run.scheduler, &[], &kernel, Registry::builtin())
            .map_err(|e| e.to_string())?;
        let id = TrialId {
            experiment: "validate".into(),
            device: run.device.clone(),
            scheduler: label(&scheduler),
            kernel: kernel.version.clone(),
            workload: run.job.clone(),
            repetition: run.repetition,
            seed: u64::from(run.repetition),
        };
        let mut trial = Trial::new(device.spec.clone(), scheduler, kernel, Default::default());
        trial.id = id;
        trial.load = Some(load);
        trial.reset_at = RESET;
        trial.start_at = RESET + BEGIN;
        for name in ["nr_requests", "read_ahead_kb", "wbt_lat_usec", "max_sectors_kb"] {
            if let Some(v) = run.settings.get(name).and_then(|v| v.parse().ok()) {
                trial.settings.push((name.into(), v));
            }
        }
        trial.host.set_memory(&run.mem)?;
        trial.host.set_options(&run.mount)?;
        for (name, value) in run.settings.iter().filter(|(n, _)| n.starts_with("vm.")) {
            // A limit in bytes of 0 leaves the percentage in force.
            if value != "0" {
                trial.host.set_sysctl(name, value)?;
            }
        }
        Ok(trial)
    }
}

/// Nanoseconds of a call where none are declared: each operation looks at the clock, and a look takes one. Processes that do the
/// same so come one after the other, which decides whose changes a commit takes.
const LOOK: u64 = 1;

/// Linux 6.12 with the core time that a row declares.
fn kernel(cost: &str) -> Result<KernelProfile, String> {
    let mut kernel = KernelProfile::find("6.12").map_err(|e| e.to_string())?;
    let cost = if cost.is_empty() { format!("{LOOK} 0") } else { cost.to_string() };
    let mut numbers = cost.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(call)), Some(Ok(copy))) = (numbers.next(), numbers.next()) else {
        return Err(format!("cost \"{cost}\": two numbers of nanoseconds are expected"));
    };
    let slice = kernel.cpu.slice_ns;
    kernel.cpu = iosched_block::CpuProfile {
        model: CpuModel::Cost,
        call_ns: call,
        copy_ns: copy,
        slice_ns: slice,
        ..Default::default()
    };
    Ok(kernel)
}

/// The program of a row, by its command line.
fn load(run: &FileRun) -> Result<Load, String> {
    if !run.fio_job.is_empty() {
        return Err("fio jobs on files are not simulated yet".into());
    }
    let commands: Vec<&str> = run
        .run_sh
        .split(';')
        .map(str::trim)
        .filter(|c| !c.is_empty() && !c.starts_with("cp "))
        .collect();
    let [command] = commands.as_slice() else {
        return Err("several commands in a row are not simulated yet".into());
    };
    let words: Vec<&str> = command.split_whitespace().take_while(|w| !w.starts_with('>')).collect();
    let line = match words.as_slice() {
        [program, "run", op, _, rest @ ..] if program.ends_with("/fsops") => {
            // Names that come as numbers: the tests ran in a directory of the mount.
            format!("fsops {op} . {}", rest.join(" "))
        }
        [program, pattern, file, rest @ ..] if program.ends_with("/rd") => {
            let name = file.rsplit('/').next().unwrap_or(file);
            let size = match name {
                "big" => "2G",
                "small" => "256M",
                _ => "128M",
            };
            format!("rd {pattern} {name} {} {size}", rest.join(" "))
        }
        _ => return Err("programs other than rd and fsops are not simulated yet".into()),
    };
    let (program, params): (&'static Descriptor, Params) =
        Descriptor::from_command_line(&line).map_err(|d| format!("{line}: {}", d.message))?;
    Ok(Load::Program { program, params })
}

/// Our figures beside the kernel's.
#[must_use]
pub fn beside_files(run: &FileRun, record: &Record) -> Vec<Row> {
    let ours = |name: &str| record.metrics.iter().find(|m| m.name == name).map(|m| m.value);
    let commands = record.device.commands;
    let commits = record.provenance.get("journal_commits").and_then(|c| c.parse().ok());
    let whole = run.ops.iter().find_map(|o| o.total_elapsed_us);
    let elapsed = whole.or_else(|| run.ops.first().and_then(|o| o.elapsed_us));
    let processes: Vec<&Ops> = run.ops.iter().filter(|o| o.n.is_some()).collect();
    let n: f64 = processes.iter().filter_map(|o| o.n).sum();
    let mean = processes.iter().map(|o| Some(o.n? * o.mean_us?)).sum::<Option<f64>>();
    let p99 = match processes.as_slice() {
        [one] => one.p99_us,
        _ => None,
    };
    let flushes = |map: &BTreeMap<String, u64>| -> u64 {
        map.iter().filter(|(k, _)| k.starts_with('F')).map(|(_, v)| v).sum()
    };
    let requests: u64 = run.requests_until_end.values().sum();
    let bytes: u64 = run.bytes_until_end.values().sum();
    let pairs = [
        ("elapsed", elapsed, ours("elapsed").map(|s| s * 1e6)),
        ("op_mean", mean.map(|sum| sum / n), ours("op mean latency")),
        ("op_p99", p99, ours("op p99 latency")),
        ("requests", Some(requests as f64), Some(commands.iter().sum::<u64>() as f64)),
        ("bytes", Some(bytes as f64), Some(record.device.bytes.iter().sum::<u64>() as f64)),
        ("flushes", Some(flushes(&run.requests_until_end) as f64), Some(commands[3] as f64)),
        ("commits", run.journal.get("commits").copied(), commits),
    ];
    let row = |metric, kernel: f64, ours: f64| Row {
        device: run.device.clone(),
        job: run.job.clone(),
        fs: run.fs.clone(),
        set: run.set.clone(),
        section: "*".into(),
        op: "*",
        scheduler: run.scheduler.clone(),
        metric,
        kernel,
        ours,
        // Times below a tenth of a microsecond are looks at the clock.
        error: (ours - kernel) / kernel.abs().max(0.1),
    };
    let both = pairs.into_iter().filter_map(|(metric, k, o)| Some(row(metric, k?, o?)));
    both.collect()
}
