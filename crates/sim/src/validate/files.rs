//! A folder of what the real kernel did with files: programs of system calls on a file system, in virtual time.
//!
//! A row names device, file system, scheduler, memory, the settings of the run, and the command line of a program. Rows
//! whose program, file system or device is not simulated are told with the reason.

use std::collections::BTreeMap;

use serde::Deserialize;

use iosched_block::{CpuModel, KernelProfile};
use iosched_devices::{TruthDevice, truth};
use iosched_experiment::{
    DirStats, HostSpec, JobRecord, Record, Trial, TrialId, Work, choose_scheduler, label,
};
use iosched_schedulers::registry::Registry;
use iosched_types::{Bytes, Diagnostic, Nanos};
use iosched_workloads::fio::on_files::Start;
use iosched_workloads::fio::{NoLookup, check_files, parse};

use super::job::{self, Logs};
use super::taken::Taken;
use super::{Row, json_error};

/// The tick before which the device was reset, after a moment to which all far timers are rounded up (512 ticks): the flusher's
/// first look, 5.2274 s later, and that of XFS's worker, 25.7074 s later, tell it.
const TICK: Nanos = 920_000_000;

/// When the measured part began after the reset of the device, where the row does not say it.
fn begin(run: &FileRun) -> Nanos {
    match run.t_begin_ns {
        0 if run.set == "B" => 15_072,
        0 => 14_536,
        ns => ns,
    }
}

/// How long before that tick, which depends on what it took to mount and to choose the scheduler. In the event logs writers go on
/// at whole ticks.
fn before_tick(scheduler: &str, fs: &str) -> Nanos {
    let scheduler = match scheduler {
        "bfq" => 3_450_700,
        "kyber" => 3_509_100,
        "none" => 3_519_900,
        _ => 3_475_300,
    };
    if fs == "xfs" { scheduler - 37_500 } else { scheduler }
}

/// A trial of such jobs that holds fio's whole start from `begin` on, the making of its files too: on a file system that was mounted
/// when the other rows' was.
pub(super) fn from_the_start(trial: Trial, fs: &str, begin: Nanos) -> Trial {
    let reset_at = TICK - before_tick(trial.scheduler.descriptor.name, fs);
    let host = HostSpec {
        fio_start: Start { lays_out: true, ..fio_start(trial.jobs()) },
        mounted_since: MOUNTED - reset_at,
        remounted: true,
        made_at_once: true,
        ..trial.host
    };
    let timer = Some((TIMER, LOOK));
    Trial { reset_at, start_at: reset_at + begin, timer, host, ..trial }
}

/// How long before that the file systems were mounted.
const MOUNTED: Nanos = 6_050_000_000;

/// How long a program of calls takes to its first look at the clock: a call of its start fails.
const STARTS: Nanos = 1_006;
/// Calls that it makes before: the loader's and the C library's (event logs of rows with costs).
const CALLS_OF_START: Nanos = 47;

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
    /// When the measured part began and ended, in nanoseconds since the reset of the device.
    #[serde(default)]
    pub t_begin_ns: Nanos,
    #[serde(default)]
    #[allow(missing_docs, reason = "as above")]
    pub t_end_ns: Nanos,
    /// What the program measured of itself.
    #[serde(default)]
    pub ops: Vec<Ops>,
    /// Commands until the end of the measured part, by flags and class.
    #[serde(default)]
    pub requests_until_end: BTreeMap<String, u64>,
    /// Their bytes.
    #[serde(default)]
    pub bytes_until_end: BTreeMap<String, u64>,
    /// Commands until the end of the log, where that went on after the measured part.
    #[serde(default)]
    pub requests_all: Option<BTreeMap<String, u64>>,
    /// Commits of the journal until the end of the log.
    #[serde(default)]
    pub journal: BTreeMap<String, f64>,
    /// What fio measured, job by job.
    #[serde(default)]
    pub sections: Vec<Section>,
}

/// What fio measured of a job.
#[derive(Clone, Debug, Deserialize)]
pub struct Section {
    job: String,
    #[serde(default)]
    read: Option<Side>,
    #[serde(default)]
    write: Option<Side>,
    #[serde(default)]
    sync: Option<Syncs>,
}

/// One direction of it. Latencies in microseconds, bandwidth in KiB/s.
#[derive(Clone, Debug, Default, Deserialize)]
struct Side {
    #[serde(default)]
    iops: Option<f64>,
    #[serde(default)]
    bw_kib: Option<f64>,
    #[serde(default)]
    ios: Option<f64>,
    #[serde(default)]
    clat_mean_us: Option<f64>,
    #[serde(default)]
    clat_p99_us: Option<f64>,
}

/// Its syncs.
#[derive(Clone, Debug, Default, Deserialize)]
struct Syncs {
    #[serde(default)]
    n: Option<f64>,
    #[serde(default)]
    mean_us: Option<f64>,
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
    logs: Logs,
    taken: Taken,
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
            #[serde(default)]
            driver: Option<serde::de::IgnoredAny>,
            #[serde(default)]
            queue: Option<serde::de::IgnoredAny>,
        }
        // A row that names the form of its driver or the state of its queue is of a block layer, also where its files are on a
        // file system.
        let of_block_layer = |r: &Probe| r.driver.is_some() || r.queue.is_some();
        serde_json::from_str::<Vec<Probe>>(results)
            .is_ok_and(|rows| rows.iter().any(|r| !r.fs.is_empty() && !of_block_layer(r)))
    }

    /// Parses `devices.toml` and `results.json`. `log` gives the log of a job's system calls, if there is one.
    ///
    /// # Errors
    /// Where a file is wrong.
    pub fn parse(
        devices: (&str, &str),
        results: (&str, &str),
        log: &dyn Fn(&str) -> Option<String>,
    ) -> Result<FileFolder, Diagnostic> {
        let runs: Vec<FileRun> = serde_json::from_str(results.1).map_err(|e| {
            json_error(results.0, results.1, &e)
                .with_help("expected a list of {device, fs, job, scheduler, run_sh, ops, …}")
        })?;
        let devices = truth::parse_each(devices.0, devices.1)?
            .into_iter()
            .map(|(name, device)| (name, device.map_err(|d| d.message)))
            .collect();
        let logs = Logs::of(&runs, log);
        Ok(FileFolder { devices, runs, logs, taken: Taken::default() })
    }

    /// With the folder's `truth.toml`, which names its kernel. Programs on files tell the rest row by row.
    ///
    /// # Errors
    /// Where the file is wrong, or says more.
    pub fn taken(self, (file, text): (&str, &str)) -> Result<FileFolder, Diagnostic> {
        let taken = Taken::parse(file, text)?;
        let known = Taken { kernel: taken.kernel.clone(), ..Taken::default() };
        if taken != known {
            let why = "of a folder of programs on files, truth.toml names the kernel alone";
            return Err(Diagnostic::file(file, why)
                .with_help("take hz, driver, cpu and the times out: each row has its own"));
        }
        Ok(FileFolder { taken, ..self })
    }

    /// Every run with its trial.
    #[must_use]
    pub fn plan(&self) -> Vec<FileCase<'_>> {
        self.runs.iter().map(|run| FileCase { run, trial: self.trial(run).map(Box::new) }).collect()
    }

    fn trial(&self, run: &FileRun) -> Result<Trial, String> {
        let work = work(run, &self.logs)?;
        let device = match self.devices.get(&run.device) {
            None => return Err(format!("devices.toml has no [{}]", run.device)),
            Some(Err(why)) => return Err(format!("[{}]: {why}", run.device)),
            Some(Ok(device)) => device,
        };
        let mut kernel = kernel(&self.taken.kernel, &run.cost)?;
        if !matches!(run.set.as_str(), "A" | "B") {
            kernel.cpu.submit_ns += LOOKS_OF_BIO - LOOK;
        }
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
        let mut trial = Trial::new(device.spec.clone(), scheduler, kernel, work);
        trial.id = id;
        let reset = TICK - before_tick(&run.scheduler, &run.fs);
        trial.reset_at = reset;
        trial.timer = Some((TIMER, LOOK));
        trial.start_at = reset + begin(run);
        if trial.work.load().is_some_and(|l| l.program().is_some()) {
            trial.start_at += STARTS + CALLS_OF_START * trial.kernel.cpu.call_ns;
        }
        if !trial.jobs().jobs.is_empty() {
            trial.host.fio_start = fio_start(trial.jobs());
        }
        // Other rows begin with an empty file system.
        if matches!(run.set.as_str(), "A" | "B") {
            trial.host.files = prepared();
        }
        for name in ["nr_requests", "wbt_lat_usec", "max_sectors_kb", "read_ahead_kb"] {
            if let Some(v) = run.settings.get(name).and_then(|v| v.parse().ok()) {
                trial.settings.push((name.into(), v));
            }
        }
        trial.host.set_memory(&run.mem)?;
        trial.host.set_filesystem(&format!("{}:{}", run.fs, run.mount))?;
        trial.host.mounted_since = MOUNTED - reset;
        trial.host.remounted = job::begins_cold(run);
        trial.host.made_at_once = true;
        trial.host.watched_after = run.watched_after();
        for (name, value) in run.settings.iter().filter(|(n, _)| n.starts_with("vm.")) {
            trial.host.set_sysctl(name, value)?;
        }
        Ok(trial)
    }
}

impl FileRun {
    /// For how long the log went on after the measured part. Rows do not say it; some jobs were watched for 12 s, others until
    /// all was home, for 40 s and more.
    fn watched_after(&self) -> Nanos {
        let home = |all: &BTreeMap<String, u64>| all.keys().any(|k| k.starts_with("W:MPB"));
        let seconds = self.requests_all.as_ref().map_or(0, |all| if home(all) { 40 } else { 12 });
        seconds * 1_000_000_000
    }
}

/// The shortest time that the reference machine's timer can be set for (event logs: 501 ns between two ends).
const TIMER: Nanos = 500;

/// When fio looked for its files after its begin, and how long after that the first job began: more with each process. In the event logs these are the first read of the root directory and the first of a job.
const LOOKS_FOR_FILES: Nanos = 65_361_000;
#[allow(missing_docs, reason = "as above")]
const RUNS: Nanos = 100_567_000;
#[allow(missing_docs, reason = "as above")]
const RUNS_EACH: Nanos = 14_006;

/// How fio starts with such jobs, whose files are there.
fn fio_start(jobs: &iosched_workloads::fio::JobSet) -> Start {
    let runs_after = RUNS + RUNS_EACH * jobs.jobs.len() as u64;
    Start { looks_after: LOOKS_FOR_FILES, runs_after, lays_out: false }
}

/// Nanoseconds of a call where none are declared: each operation looks at the clock, and a look takes one. Processes that do the
/// same so come one after the other, which decides whose changes a commit takes.
const LOOK: u64 = 1;
/// What a bio of a task that syncs takes (event logs): such bios of tasks that go on together are 3 or 4 ns apart. The reference
/// device is seen a nanosecond after it has ended, so what is 1 ns apart would end together. Reads and write-back take a look.
const LOOKS_OF_BIO: u64 = 3;

/// A kernel with the core time that a row declares.
pub(super) fn kernel(version: &str, cost: &str) -> Result<KernelProfile, String> {
    let mut kernel = KernelProfile::find(version).map_err(|e| e.to_string())?;
    let declared = !cost.is_empty();
    let cost = if cost.is_empty() { "0 0" } else { cost };
    let mut numbers = cost.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(call)), Some(Ok(copy))) = (numbers.next(), numbers.next()) else {
        return Err(format!("cost \"{cost}\": two numbers of nanoseconds are expected"));
    };
    // The base slice, which the kernel makes longer the more cores there are, up to eight.
    let (slice, eevdf) = (kernel.cpu.slice_ns / 4, kernel.cpu.eevdf);
    kernel.cpu = iosched_block::CpuProfile {
        model: CpuModel::Cost,
        call_ns: call,
        copy_ns: copy,
        // There a look at the clock is a system call. Without costs the look that a call takes is counted above.
        clock_ns: if declared { call + LOOK } else { LOOK },
        // The call was paid before.
        submit_ns: call + LOOK,
        slice_ns: slice,
        eevdf,
        // User-mode Linux has no clock for its scheduler but the timer's ticks.
        clock_tick_ns: 4_000_000,
        ..Default::default()
    };
    Ok(kernel)
}

/// Where the file system was mounted.
const MOUNT: &str = "/mnt/x";

/// Files of the image that some rows start from.
fn prepared() -> Vec<(String, Bytes)> {
    let large = [("big".to_string(), 2 << 30), ("small".to_string(), 256 << 20)];
    let all = large.into_iter().chain((0..8).map(|i| (format!("s{i}"), 128 << 20)));
    all.map(|(name, len)| (format!("/{name}"), len)).collect()
}

/// What a row did.
fn work(run: &FileRun, logs: &Logs) -> Result<Work, String> {
    if run.fio_job.is_empty() {
        return job::load(run, logs);
    }
    // The hook set the costs of the reference kernel; the row tells them.
    let lines = run.fio_job.lines().filter(|l| !l.starts_with("exec_prerun="));
    // The mount is the whole tree here.
    let text: String = lines.flat_map(|l| [l, "\n"]).collect::<String>();
    let text = text.replace(&format!("={MOUNT}"), "=/");
    let nothing = |name: &str| Err(format!("{name}: jobs of rows include nothing"));
    let first = |d: Vec<Diagnostic>| d.first().map_or_else(String::new, |d| d.message.clone());
    let jobs = parse(&run.job, &text, &NoLookup, &nothing, &[]).map_err(first)?;
    check_files(&jobs).map_err(first)?;
    Ok(jobs.into())
}

/// Our figures beside the kernel's.
#[must_use]
pub fn beside_files(run: &FileRun, record: &Record) -> Vec<Row> {
    let ours = |name: &str| record.metrics.iter().find(|m| m.name == name).map(|m| m.value);
    let commands = record.device.commands;
    let commits = record.provenance.get("journal_commits").and_then(|c| c.parse::<f64>().ok());
    let whole = run.ops.iter().find_map(|o| o.total_elapsed_us);
    let elapsed = whole.or_else(|| run.ops.first().and_then(|o| o.elapsed_us)).or_else(|| {
        // What measures nothing of itself: the whole command.
        (run.set == "D").then(|| run.t_end_ns.saturating_sub(run.t_begin_ns) as f64 / 1e3)
    });
    let processes: Vec<&Ops> = run.ops.iter().filter(|o| o.n.is_some()).collect();
    let n: f64 = processes.iter().filter_map(|o| o.n).sum();
    let mean = processes.iter().map(|o| Some(o.n? * o.mean_us?)).sum::<Option<f64>>();
    let p99 = match processes.as_slice() {
        [one] => one.p99_us,
        _ => None,
    };
    // The reference programs take the latency of which 99 % are below: of up to a hundred the longest.
    let our_p99 = ours(if n > 100.0 { "op p99 latency" } else { "op max latency" });
    let flushes = |map: &BTreeMap<String, u64>| -> u64 {
        map.iter().filter(|(k, _)| k.starts_with('F')).map(|(_, v)| v).sum()
    };
    let requests: u64 = run.requests_until_end.values().sum();
    let bytes: u64 = run.bytes_until_end.values().sum();
    let mut pairs = vec![
        // `rd` starts its clock when the file is open.
        ("elapsed", elapsed, ours("all reads").or(ours("elapsed")).map(|s| s * 1e6)),
        ("op_mean", mean.map(|sum| sum / n), ours("op mean latency")),
        ("op_p99", p99, our_p99),
        ("requests", Some(requests as f64), Some(commands.iter().sum::<u64>() as f64)),
        ("bytes", Some(bytes as f64), Some(record.device.bytes.iter().sum::<u64>() as f64)),
        ("flushes", Some(flushes(&run.requests_until_end) as f64), Some(commands[3] as f64)),
        ("commits", run.journal.get("commits").copied(), commits),
    ];
    if !run.fio_job.is_empty() {
        // fio has its own times; what belongs to the whole run is below.
        pairs.drain(..3);
    }
    let row = |section: &str, op: &'static str, metric, kernel: f64, ours: f64| Row {
        device: run.device.clone(),
        job: run.job.clone(),
        fs: run.fs.clone(),
        set: run.set.clone(),
        section: section.into(),
        op,
        scheduler: run.scheduler.clone(),
        metric,
        kernel,
        ours,
        // Times below a tenth of a microsecond are looks at the clock.
        error: (ours - kernel) / kernel.abs().max(0.1),
    };
    let both = pairs.into_iter().filter_map(|(m, k, o)| Some(row("*", "*", m, k?, o?)));
    let of_fio = beside_fio(run, record);
    both.chain(of_fio.into_iter().map(|(s, op, m, k, o)| row(&s, op, m, k, o))).collect()
}

/// Section, direction, metric, the kernel's figure, ours.
type Beside = (String, &'static str, &'static str, f64, f64);

/// What fio measured of each section, clones together.
fn beside_fio(run: &FileRun, record: &Record) -> Vec<Beside> {
    let mut names: Vec<&str> = run.sections.iter().map(|s| s.job.as_str()).collect();
    names.dedup();
    let mut out = Vec::new();
    for name in names {
        let theirs: Vec<&Section> = run.sections.iter().filter(|s| s.job == name).collect();
        let ours: Vec<&JobRecord> = record.jobs.iter().filter(|j| j.name == name).collect();
        type Get = (&'static str, fn(&Section) -> Option<&Side>, fn(&JobRecord) -> &DirStats);
        let directions: [Get; 2] = [
            ("read", |s| s.read.as_ref(), |j| &j.read),
            ("write", |s| s.write.as_ref(), |j| &j.write),
        ];
        for (op, side, stats) in directions {
            let sides: Vec<&Side> = theirs.iter().filter_map(|s| side(s)).collect();
            let stats: Vec<&DirStats> =
                ours.iter().map(|j| stats(j)).filter(|d| d.ios > 0).collect();
            let pairs = side_by_side(&sides, &stats);
            out.extend(pairs.into_iter().map(|(m, k, o)| (name.to_string(), op, m, k, o)));
        }
        let syncs: Vec<(f64, f64)> = theirs
            .iter()
            .filter_map(|s| s.sync.as_ref().and_then(|s| s.n.zip(s.mean_us)))
            .collect();
        let n: f64 = syncs.iter().map(|(n, _)| n).sum();
        let of: Vec<&DirStats> = ours.iter().map(|j| &j.sync).filter(|d| d.ios > 0).collect();
        if n > 0.0 && !of.is_empty() {
            let mean = syncs.iter().map(|(n, mean)| n * mean).sum::<f64>() / n;
            out.push((name.to_string(), "sync", "sync_mean", mean, weighted(&of)));
        }
    }
    out
}

fn weighted(stats: &[&DirStats]) -> f64 {
    let ios: u64 = stats.iter().map(|d| d.ios).sum();
    stats.iter().map(|d| d.ios as f64 * d.clat.mean()).sum::<f64>() / ios.max(1) as f64 / 1e3
}

fn side_by_side(theirs: &[&Side], ours: &[&DirStats]) -> Vec<(&'static str, f64, f64)> {
    let sum = |get: fn(&Side) -> Option<f64>| theirs.iter().filter_map(|s| get(s)).sum::<f64>();
    let ios = sum(|s| s.ios);
    if ios == 0.0 || ours.is_empty() {
        return Vec::new();
    }
    let mean = theirs.iter().filter_map(|s| Some(s.ios? * s.clat_mean_us?)).sum::<f64>() / ios;
    let mut pairs = vec![
        ("iops", sum(|s| s.iops), ours.iter().map(|d| d.iops()).sum()),
        // fio prints whole KiB a second of each process.
        (
            "bw",
            sum(|s| s.bw_kib),
            ours.iter().map(|d| (d.bytes_per_second() / 1024.0).floor()).sum(),
        ),
        ("clat_mean", mean, weighted(ours)),
    ];
    if let ([one], [our]) = (theirs, ours)
        && let Some(p99) = one.clat_p99_us
    {
        pairs.push(("clat_p99", p99, our.clat.percentile(99.0) as f64 / 1e3));
    }
    pairs
}
