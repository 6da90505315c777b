//! Programs on a file system under the schedulers of a block layer's folder: `programs.json` beside `results.json`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;

use iosched_experiment::{
    ProgramWork, Record, SyscallLog, Trial, TrialId, Work, choose_scheduler, label,
};
use iosched_schedulers::registry::Registry;
use iosched_types::Diagnostic;
use iosched_workloads::programs::Descriptor;
use iosched_workloads::strace::{Options, Part, parse_part};

use super::{Driver, Row, TruthFolder, files, json_error};

/// [`Row::set`] of these programs.
pub const PROGRAMS: &str = "programs";

/// One run of `programs.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct ProgramRun {
    /// Device, a section of `devices.toml`.
    pub device: String,
    /// Name of the program and of what it did.
    pub job: String,
    /// Scheduler as the kernel names it.
    pub scheduler: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// File system.
    pub fs: String,
    /// How long it took.
    pub elapsed_s: f64,
    /// What it printed.
    #[serde(default)]
    pub output: String,
    /// sysfs values of the run.
    #[serde(default)]
    pub queue: BTreeMap<String, String>,
    /// The command, and what calls took.
    pub program: Command,
}

/// A command and the time of its calls.
#[derive(Clone, Debug, Deserialize)]
pub struct Command {
    command: String,
    ns_per_system_call: u64,
    ns_per_4096_bytes_copied: u64,
}

/// A run of a program and our trial of it.
#[derive(Debug)]
pub struct ProgramCase {
    /// The kernel's run.
    pub run: ProgramRun,
    /// Ours, or why there is none.
    pub trial: Result<Box<Trial>, String>,
}

impl ProgramCase {
    /// `DEVICE/JOB/SCHEDULER`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.run.device, self.run.job, self.run.scheduler)
    }
}

/// Reads `programs.json`, and plans a trial for each run.
///
/// # Errors
/// Where the file is wrong.
pub fn plan_programs(
    folder: &TruthFolder,
    (file, text): (&str, &str),
) -> Result<Vec<ProgramCase>, Diagnostic> {
    let runs: Vec<ProgramRun> = serde_json::from_str(text).map_err(|e| {
        json_error(file, text, &e).with_help(
            "expected a list of {device, job, scheduler, repetition, fs, elapsed_s, queue, program}",
        )
    })?;
    let case = |run: ProgramRun| {
        let trial = trial(folder, &run).map(Box::new);
        ProgramCase { run, trial }
    };
    Ok(runs.into_iter().map(case).collect())
}

fn trial(folder: &TruthFolder, run: &ProgramRun) -> Result<Trial, String> {
    let device = folder.devices.iter().find(|d| d.spec.name == run.device);
    let device = device.ok_or_else(|| format!("devices.toml has no [{}]", run.device))?;
    let taken = &folder.taken;
    let command = &run.program;
    let cost = format!("{} {}", command.ns_per_system_call, command.ns_per_4096_bytes_copied);
    let mut kernel = files::kernel(&taken.kernel, &cost)?;
    kernel.legacy.look_ahead = taken.driver == Driver::Scsi;
    let scheduler =
        choose_scheduler(taken.scheduler(&run.scheduler), &[], &kernel, Registry::builtin())
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
    let mut spec = device.spec.clone();
    spec.write_cache = run.queue.get("write_cache").is_some_and(|c| c != "write through");
    let mut trial = Trial::new(spec, scheduler, kernel, load(&command.command)?);
    trial.id = id;
    trial.settings.push(("wbt_lat_usec".into(), 0));
    for name in ["nr_requests", "max_sectors_kb", "rotational", "read_ahead_kb"] {
        if let Some(v) = run.queue.get(name).and_then(|v| v.parse::<i64>().ok()) {
            trial.settings.push((name.into(), v));
        }
    }
    // What the measurements set.
    trial.host.set_memory("1G")?;
    trial.host.set_filesystem(&format!("{}:noatime", run.fs))?;
    trial.host.set_sysctl("vm.dirty_bytes", "268435456")?;
    trial.host.set_sysctl("vm.dirty_background_bytes", "67108864")?;
    trial.host.made_at_once = true;
    Ok(trial)
}

/// What a command line runs.
fn load(command: &str) -> Result<Work, String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let line = match words.as_slice() {
        // `ins.sql` makes a table and has 60 rows of two numbers and 64 letters.
        ["sqlite3", _, "<", ..] => "sqlite 60 1 delete full 4096 73".to_string(),
        ["dbench", "-t", seconds, "-c", _, "-D", _, clients, ..] => {
            format!("dbench {clients} {seconds}")
        }
        ["dd", "if=/dev/zero", rest @ ..] => return dd(rest),
        _ => return Err(format!("\"{command}\" is not simulated")),
    };
    let (program, params) =
        Descriptor::from_command_line(&line).map_err(|d| format!("{line}: {}", d.message))?;
    Ok(ProgramWork::new(program, params).into())
}

/// Zeros into a file, block by block, and a sync at the end: the calls of `dd`.
fn dd(words: &[&str]) -> Result<Work, String> {
    let value = |name: &str| words.iter().find_map(|w| w.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str| {
        let text = value(name).ok_or_else(|| format!("dd without {name}="))?;
        let (digits, unit) = text.strip_suffix('k').map_or((text, 1), |d| (d, 1024));
        digits.parse::<u64>().map(|n| n * unit).map_err(|_| format!("dd {name}={text}"))
    };
    let (block, count) = (number("bs")?, number("count")?);
    if count > 1 << 20 {
        return Err(format!("dd of {count} blocks is too long"));
    }
    let mut text = String::from(
        "1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n\
         2 openat(AT_FDCWD, \"/dev/zero\", O_RDONLY) = 0\n\
         2 openat(AT_FDCWD, \"/mnt/f\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 1\n",
    );
    for _ in 0..count {
        let _ = writeln!(text, "2 read(0, \"\"..., {block}) = {block}");
        let _ = writeln!(text, "2 write(1, \"\"..., {block}) = {block}");
    }
    if value("conv") == Some("fsync") {
        text.push_str("2 fsync(1) = 0\n");
    }
    text.push_str("2 close(1) = 0\n");
    let options = Options { think: false, ..Options::default() };
    let part = Part { below: "/mnt".into(), failure: 0 };
    let log = parse_part("dd", &text, options, part).map_err(|d| d.to_string())?;
    let digest = iosched_engine::fnv1a(text.as_bytes());
    Ok(SyscallLog { log: Arc::new(log), digest, before: None }.into())
}

/// Our figures beside the kernel's.
#[must_use]
pub fn beside_programs(run: &ProgramRun, record: &Record) -> Vec<Row> {
    let ours = |name: &str| record.metrics.iter().find(|m| m.name == name).map(|m| m.value);
    // A program with figures of its own has no metric of that name.
    let elapsed = record.elapsed as f64 / 1e3;
    let pairs = [
        ("elapsed", Some(run.elapsed_s * 1e6), Some(elapsed)),
        ("throughput", throughput(&run.output), ours("throughput")),
    ];
    let row = |(metric, kernel, ours): (&'static str, f64, f64)| Row {
        device: run.device.clone(),
        job: run.job.clone(),
        fs: run.fs.clone(),
        set: PROGRAMS.into(),
        section: "*".into(),
        op: "*",
        scheduler: run.scheduler.clone(),
        metric,
        kernel,
        ours,
        error: (ours - kernel) / kernel,
    };
    pairs.into_iter().filter_map(|(m, k, o)| Some(row((m, k?, o?)))).collect()
}

/// What dbench prints: `Throughput 56.1671 MB/sec  6 clients …`.
fn throughput(output: &str) -> Option<f64> {
    let line = output.lines().find_map(|l| l.strip_prefix("Throughput "))?;
    line.split_whitespace().next()?.parse().ok()
}
