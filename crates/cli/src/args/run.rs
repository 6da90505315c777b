//! `iosched run`, and what other commands share with it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::names;

/// Forms of the results of `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// Tables for people.
    Table,
    /// All figures, as one JSON document.
    Json,
    /// One row per measure.
    Csv,
    /// As `fio --output-format=json+` prints it.
    FioJson,
    /// `composite.xml` of the Phoronix Test Suite.
    Pts,
    /// Markdown with intervals and verdicts.
    Markdown,
}

/// Tables or JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for people.
    Table,
    /// JSON for programs.
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    iosched run examples/desktop.toml\n  \
    iosched run job.fio --device hdd-7200,ssd-sata --scheduler mq-deadline,none,noop@3.12 --runs 3 \
    --set runtime=5\n  \
    iosched run database --device ssd-sata --scheduler kyber --tunable kyber.read_lat_nsec=1000000 \
    --format fio-json\n  \
    iosched run --device ssd-sata -- fio --name=a --rw=randread --direct=1 --filename=/dev/sdb --runtime=5\n  \
    iosched run fsops --param op=over_fsync --param nproc=4 --device hdd-7200\n  \
    iosched run app.strace.gz --device ssd-sata --scheduler bfq,none\n  \
    iosched run sda.blktrace.0 --device hdd-7200 --scheduler none,bfq --recorded-scheduler mq-deadline\n  \
    iosched run startup --quick --device hdd-7200 --scheduler none,bfq --html startup.html\n  \
    sudo iosched run desktop --backend emulated --until-ci 3% --max-time 2h\n\n\
    Repetition r of a job without randseed runs with randseed = seed + r - 1, and with randrepeat=0 when \
    there are several runs; the same repetition has the same seeds under every scheduler.")]
pub(crate) struct RunArgs {
    /// fio job files, fio command lines (behind --), experiment files (.toml), logs of strace, block traces, jobs and programs by name.
    #[arg(required = true, value_name = "FILE", hide_possible_values = true, value_parser = names::workloads())]
    pub(crate) files: Vec<String>,
    /// Devices: names, or device files (default hdd-7200; see `iosched list devices`).
    #[arg(long, value_name = "NAME,…", hide_possible_values = true, value_parser = names::devices())]
    pub(crate) device: Vec<String>,
    /// Schedulers as family[@generation or kernel version]. They are compared with the kernel's default for the device, else none, else noop, else the first.
    #[arg(long, value_name = "NAME,…", hide_possible_values = true, value_parser = names::schedulers())]
    pub(crate) scheduler: Vec<String>,
    /// Kernel profiles: names, or profile files (default: the newest).
    #[arg(long, value_name = "VERSION,…", hide_possible_values = true, value_parser = names::kernels())]
    pub(crate) kernel: Vec<String>,
    /// Name of the experiment (default: that of the first file).
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Repetitions (default: simulated, as many as --budget has room for; else 1).
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<i64>,
    /// Simulated: repeats 3 to 12 times, as often as two cores can in this time (default: 10s).
    #[arg(long, value_name = "TIME", conflicts_with_all = ["runs", "until_ci", "max_runs", "max_time"])]
    pub(crate) budget: Option<String>,
    /// Simulated: how long a load runs before it is measured. 0 measures from the start (default: steady, until its rate no
    /// longer changes).
    #[arg(long, value_name = "TIME|steady")]
    pub(crate) warm_up: Option<String>,
    /// Seed of the first repetition (default: 137, with which fio begins).
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<i64>,
    /// Sets a fio option in every job, after the job's own.
    #[arg(long, value_name = "OPTION=VALUE")]
    pub(crate) set: Vec<String>,
    /// Sets a parameter of a program.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) param: Vec<String>,
    /// How block traces are replayed: as-recorded, scaled=X (times as late), closed[=N] (without pauses, N under way for
    /// each task) or dependent (an I/O waits for those that its task waited for; default where tasks and completions are
    /// known).
    #[arg(long, value_name = "MODE", help_heading = "Block traces")]
    pub(crate) replay: Option<String>,
    /// Replays this block trace beside each workload, on the same disk.
    #[arg(long, value_name = "TRACE", help_heading = "Block traces")]
    pub(crate) beside: Option<String>,
    /// The disk of a block trace of several; `all` takes them together.
    #[arg(long, value_name = "DISK", help_heading = "Block traces")]
    pub(crate) disk: Option<String>,
    /// The scheduler under which a block trace was recorded. It is replayed first and laid beside the recorded latencies.
    #[arg(long, value_name = "NAME", help_heading = "Block traces")]
    pub(crate) recorded_scheduler: Option<String>,
    /// Writes each simulated run as a block trace, whose form its ending names: .csv, .log, .blkparse, .parquet. With
    /// several trials each file has the trial in its name.
    #[arg(long, value_name = "FILE", help_heading = "Block traces", conflicts_with_all = ["dry_run", "calls", "trace"])]
    pub(crate) record_trace: Option<PathBuf>,
    /// A short run of programs, and of jobs that can be short, for a first look: `iosched show workload NAME` says how short.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Sets a tunable of a scheduler by its sysfs name. The same one again with another value: both are compared.
    #[arg(long, value_name = "SCHEDULER.NAME=VALUE")]
    pub(crate) tunable: Vec<String>,
    /// Sets a queue attribute by its sysfs name. The same one again with another value: both are compared.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) queue: Vec<String>,
    /// State of the devices when a run begins: write_cache=full, slc=full (default: empty).
    #[arg(long, value_name = "KEY=VALUE,…")]
    pub(crate) device_state: Option<String>,
    /// File system of programs, logs and jobs on files, with mount options: ext4, ext3, xfs or simple (default: ext4).
    #[arg(long, value_name = "TYPE[:OPTION,…]")]
    pub(crate) filesystem: Option<String>,
    /// How full and scattered the file system is before the load, such as 70%:3 (default: fresh).
    #[arg(long, value_name = "PERCENT[:SEED]")]
    pub(crate) fill: Option<String>,
    /// Memory of the simulated machine for its page cache (default: 4G).
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Sets a sysctl of the simulated machine, such as vm.dirty_ratio.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) sysctl: Vec<String>,
    /// CPUs of the simulated machine.
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<i64>,
    /// Backend: sim, emulated, real or mock.
    #[arg(long, value_name = "NAME", hide_possible_values = true, value_parser = names::backends())]
    pub(crate) backend: Option<String>,
    /// What a live run of a program runs: the real one (sqlite3 for sqlite), or iosched's text of it.
    #[arg(long, value_name = "real|text", value_parser = ["real", "text"], hide_possible_values = true)]
    pub(crate) program: Option<String>,
    /// The IOzone that a live run of `iozone` runs: it is not in Debian's archive (default: the one on the path).
    #[arg(long, value_name = "PATH")]
    pub(crate) iozone: Option<PathBuf>,
    /// The kernel's sources that live runs of `kernel-compile` and `kernel-tasks` take: a directory or a linux-source-*.tar.xz
    /// (default: the newest archive below /usr/src).
    #[arg(long, value_name = "PATH")]
    pub(crate) tree: Option<PathBuf>,
    /// Trials at a time (default: one per CPU; the simulator only).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Form of the results.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RunFormat,
    /// JSON with curves and dispatch pictures, too: ten times as much.
    #[arg(long)]
    pub(crate) full: bool,
    /// Writes the results to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Writes a page about the results, too, as `iosched report` does.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "calls"])]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) db: DbArgs,
    /// Does not store the results.
    #[arg(long)]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) look: LookArgs,
    /// No progress, no warnings.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Real backend: allows overwriting this device. A device in use is refused all the same.
    #[arg(long, value_name = "/dev/NAME")]
    pub(crate) destroy_data: Option<String>,
    /// Real backend: allows overwriting this file, which iosched did not make.
    #[arg(long, value_name = "PATH")]
    pub(crate) overwrite_file: Option<PathBuf>,
    /// Real backend: makes the file that --device names (DIR/iosched-NAME.img) in this size.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Says what would be written, switched, created and refused, and why; runs nothing (emulated and
    /// real).
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Instead of the experiment: the system calls of its first trial's program, a typical operation of each kind. A
    /// picture if FILE ends with .svg, else text; `-` prints it (simulator).
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) calls: Option<String>,
    /// Traces block events into the record (emulated and real).
    #[arg(long)]
    pub(crate) trace: bool,
    /// Runs no round ahead that is not counted (emulated and real).
    #[arg(long)]
    pub(crate) no_warm_up: bool,
    /// Shows the figures of invalid runs, marked, where there are no others (emulated and real).
    #[arg(long)]
    pub(crate) allow_noise: bool,
    /// Repeats until half the 95 % confidence interval is at most this share of the mean: of each cell's throughput, start-up
    /// time, or figures of the program.
    #[arg(long, value_name = "PERCENT")]
    pub(crate) until_ci: Option<String>,
    /// With --until-ci: repetitions at most (default 30).
    #[arg(long, value_name = "N")]
    pub(crate) max_runs: Option<i64>,
    /// With --until-ci: begins no new repetition after this time.
    #[arg(long, value_name = "TIME")]
    pub(crate) max_time: Option<String>,
    /// Writes the whole device twice and waits for its steady state first (emulated and real).
    #[arg(long)]
    pub(crate) steady_state: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// Which results file.
#[derive(Clone, Debug, Args)]
pub(crate) struct DbArgs {
    /// Results file (default: iosched/results.db in the XDG data folder).
    #[arg(long, value_name = "FILE", env = "IOSCHED_DB", global = true)]
    pub(crate) db: Option<PathBuf>,
}

/// How tables look.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LookArgs {
    /// All tables and the answer for each goal, too, not only the verdicts.
    #[arg(long)]
    pub(crate) tables: bool,
    /// All tables, one per workload instead of two of at most 80 columns.
    #[arg(long)]
    pub(crate) wide: bool,
    /// No colours (also: NO_COLOR in the environment, or no terminal).
    #[arg(long)]
    pub(crate) no_color: bool,
}

/// Where state files are.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:\n  sudo iosched restore")]
pub(crate) struct StateArgs {
    /// Where changes to the machine are written down before they are made.
    #[arg(long, value_name = "DIR", env = "IOSCHED_STATE", hide_short_help = true)]
    pub(crate) state_dir: Option<PathBuf>,
}
