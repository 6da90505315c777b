//! The command line, defined once: parser, help, shell completions and man pages come from here.

mod names;
mod record;
mod results;
mod rules;
mod run;
mod trace;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use record::RecordArgs;
pub(crate) use results::{
    CompareArgs, ReportArgs, ResultsArgs, ResultsCommand, ServeArgs, TraceFormat,
};
pub(crate) use rules::RulesArgs;
pub(crate) use run::{DbArgs, Format, LookArgs, RunArgs, RunFormat, StateArgs};
pub(crate) use trace::{
    Align, AnonymiseArgs, ConvertArgs, CutArgs, FilterArgs, InfoArgs, MergeArgs, OutArgs, PARQUET,
    SourceArgs, SpanArgs, TraceArgs, TraceCommand,
};

/// Compare every I/O scheduler Linux ever had.
///
/// One experiment (devices, schedulers, kernels, workloads, repetitions) runs on a simulator, on the
/// real kernel with an emulated disk, or on the real kernel with a real disk.
#[derive(Debug, Parser)]
#[command(
    name = "iosched",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 fine, 1 a regression was found, 2 usage or bad input, 3 the machine lacks \
                  something, 4 a trial failed, 5 `compare` cannot tell.\n\nExample:\n  iosched run desktop --device hdd-7200 \
                  --scheduler none,mq-deadline,bfq"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run fio jobs, programs, logs or an experiment file and compare the schedulers.
    Run(Box<RunArgs>),
    /// List the schedulers, devices, kernels or workloads.
    List(ListArgs),
    /// Show everything about one scheduler, device, kernel, workload or option.
    Show(ShowArgs),
    /// Follow a scheduler decision by decision through a scenario file.
    Explain(ExplainArgs),
    /// Compare the simulator with the real kernel.
    Validate(ValidateArgs),
    /// Run a published comparison again and lay our figures beside the published ones.
    Reproduce(ReproduceArgs),
    /// Record a disk's I/O into a trace, with a live view of who uses it.
    Record(RecordArgs),
    /// Look at block traces, cut, filter, merge and convert them.
    Trace(TraceArgs),
    /// Measure how fast the simulator is.
    Bench(BenchArgs),
    /// List, show, export, import, merge and delete stored results.
    Results(ResultsArgs),
    /// Compare two results; exit 1 when something became worse.
    Compare(CompareArgs),
    /// Write one self-contained HTML page about stored or published results.
    Report(ReportArgs),
    /// Serve the pages of all stored results on this machine.
    Serve(ServeArgs),
    /// Show which scheduler udev rules and other policies give each class of devices, and why.
    Rules(RulesArgs),
    /// Serve a device model as a block device of the running kernel.
    Emulate(EmulateArgs),
    /// Show the storage below a device or path, and what is installed.
    Doctor(DoctorArgs),
    /// Put back what a killed run left behind.
    Restore(StateArgs),
    /// Print completions for a shell.
    #[command(after_help = "Examples:
  iosched completions bash > ~/.local/share/bash-completion/completions/iosched
  iosched completions zsh > ~/.zsh/functions/_iosched      # a folder of fpath
  iosched completions fish > ~/.config/fish/completions/iosched.fish")]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Names of stored experiments, for completions.
    #[command(hide = true)]
    StoredNames(DbArgs),
    /// Print the manual page, or write all of them into a folder.
    #[command(after_help = "Example:\n  iosched man | man -l -")]
    Man {
        /// Folder for one page per subcommand.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Watches over a run that changes the machine.
    #[command(hide = true)]
    Guardian {
        /// State file.
        file: PathBuf,
    },
    /// Measures the memory of a full queue, in a process of its own.
    #[command(hide = true)]
    BenchMemory {
        /// Scheduler.
        scheduler: String,
        /// Requests.
        requests: u64,
    },
}

/// `iosched reproduce`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  iosched reproduce\n  iosched reproduce linux-4.12 --quick\n  \
                  iosched reproduce linux-3.12 --html linux-3.12.html"
)]
pub(crate) struct ReproduceArgs {
    /// Which comparison (default: lists them).
    #[arg(value_name = "NAME", hide_possible_values = true, value_parser = names::comparisons())]
    pub(crate) name: Option<String>,
    /// Short runs, one of each, for a first look. The answer says so.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Repetitions (default: the experiment's; those that scatter by 3.5 % or more run once more).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) runs: Option<u32>,
    /// Trials at a time (default: one per CPU).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Form of the results.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Writes a page: two joined dots for each published figure.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// No progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Kinds of things to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListKind {
    /// Schedulers with their generations.
    #[value(aliases = ["scheduler"])]
    Schedulers,
    /// Devices of the catalogue.
    #[value(aliases = ["device"])]
    Devices,
    /// Kernel profiles.
    #[value(aliases = ["kernel"])]
    Kernels,
    /// Jobs that come with iosched, and programs over system calls.
    #[value(aliases = ["workload", "jobs", "job", "programs", "program"])]
    Workloads,
    /// Situations that people argue about, each an experiment for `run` and for `rules --situations`.
    #[value(aliases = ["situation"])]
    Situations,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  iosched list schedulers")]
pub(crate) struct ListArgs {
    /// What.
    #[arg(value_enum)]
    pub(crate) what: ListKind,
    /// JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Kinds of things to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowKind {
    /// A scheduler: generations and tunables.
    #[value(aliases = ["schedulers"])]
    Scheduler,
    /// A device: model, figures, sources, and what it does.
    #[value(aliases = ["devices"])]
    Device,
    /// A kernel profile.
    #[value(aliases = ["kernels"])]
    Kernel,
    /// A job that comes with iosched, or a program over system calls.
    #[value(aliases = ["workloads", "jobs", "job", "programs", "program"])]
    Workload,
    /// A fio option, a queue attribute or a tunable.
    Option,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  iosched show device hdd-7200\n  iosched show scheduler bfq\n  \
                        iosched show option iodepth\n  iosched show device --from-datasheet sheet.toml > my-disk.toml"
)]
pub(crate) struct ShowArgs {
    /// What.
    #[arg(value_enum)]
    pub(crate) what: ShowKind,
    /// Its name; a device may be a file.
    #[arg(required_unless_present = "from_datasheet", hide_possible_values = true, value_parser = names::anything())]
    pub(crate) name: Option<String>,
    /// Makes a device file of a data sheet: a TOML file with capacity, rpm, sequential_read, random_read_iops …
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) from_datasheet: Option<String>,
    /// JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched explain examples/scenarios/bfq-idle-6.12.toml\n  \
                        iosched explain examples/scenarios/bfq-idle-6.12.toml mq-deadline bfq --html steps.html\n  \
                        iosched explain --from desktop bfq mq-deadline\n  \
                        iosched explain --from desktop bfq mq-deadline --at 12s --window 200ms --html why.html")]
pub(crate) struct ExplainArgs {
    /// Scenario file: requests with times and processes. With --from, a scheduler.
    #[arg(value_name = "SCENARIO.toml", required_unless_present = "from")]
    pub(crate) file: Option<String>,
    /// Schedulers in place of the scenario's, side by side, up to four.
    #[arg(value_name = "SCHEDULER", num_args = 0..=4)]
    pub(crate) schedulers: Vec<String>,
    /// Run a simulated trial of a stored result again under two to four of its schedulers, and show where the first two differ most.
    #[arg(long, value_name = "RESULT")]
    pub(crate) from: Option<String>,
    /// Device of that trial (default: that of the verdict).
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) device: Option<String>,
    /// Workload of that trial (default: that of the ask that decides).
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) workload: Option<String>,
    /// Its repetition (default: the first).
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) run: Option<u32>,
    /// Show the trial from this time on, counted from where it is measured, rather than where the two differ most.
    #[arg(long, value_name = "TIME", requires = "from")]
    pub(crate) at: Option<String>,
    /// Length of what is shown (default: that of some forty requests; at most 10,000 requests are).
    #[arg(long, value_name = "TIME", requires = "from")]
    pub(crate) window: Option<String>,
    /// Write a page that plays them in step: what waits, where the head is, why.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Form.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched validate data/truth\n  \
                        iosched validate data/truth --scheduler none,mq-deadline --format json\n  \
                        iosched validate data/truth --dispatch\n  \
                        sudo iosched validate examples/validate-hdd.toml --against emulated")]
pub(crate) struct ValidateArgs {
    /// Folder with devices.toml, jobs/ and results.json, or with startup.json and programs/; or a JSON file of fio's
    /// figures, as in data/measured; or an experiment file with --against.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Form.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Every figure of every case, not only the summary.
    #[arg(long)]
    pub(crate) rows: bool,
    /// Compares the commands sent to the device one by one (DIR/dispatch/*.log.gz).
    #[arg(long)]
    pub(crate) dispatch: bool,
    /// Compares the bios that programs on files cause with the kernel's event logs (DIR/traces/*.log.gz), and shows the
    /// first that differs.
    #[arg(long, conflicts_with = "dispatch")]
    pub(crate) bios: bool,
    /// Only these schedulers.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) scheduler: Vec<String>,
    /// Only these devices.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) device: Vec<String>,
    /// Only these jobs.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) job: Vec<String>,
    /// Trials at a time (default: one per CPU).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Also runs the experiment on this backend, and compares the two.
    #[arg(long, value_name = "BACKEND")]
    pub(crate) against: Option<String>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched bench\n  \
                        iosched bench --scheduler none --device fixed --depth 32 --format json\n  \
                        iosched bench --device hdd --depth 8 --processes 8,100,1000,10000 --no-memory")]
pub(crate) struct BenchArgs {
    /// Form.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Schedulers (default: all).
    #[arg(long, value_delimiter = ',', value_name = "NAME,…", hide_possible_values = true, value_parser = names::schedulers())]
    pub(crate) scheduler: Vec<String>,
    /// Reference devices: fixed, hdd, ssd (default: all).
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) device: Vec<String>,
    /// Processes that read at once.
    #[arg(long, value_delimiter = ',', value_name = "N,…", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) processes: Vec<u32>,
    /// Requests in flight, of each process (default: 1, 32, 256).
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) depth: Vec<u32>,
    /// Requests of each row, divided among the processes.
    #[arg(long, value_name = "N", default_value = "2000000", value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    pub(crate) requests: u64,
    /// Draws the time a request against --processes or --depth, whichever has several values.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Measures the host instead: calls through page cache and file system.
    #[arg(long, conflicts_with_all = ["scheduler", "device", "processes", "depth", "svg", "no_memory"])]
    pub(crate) host: bool,
    /// Leaves out the memory of a queue with a million pending requests.
    #[arg(long)]
    pub(crate) no_memory: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sudo iosched emulate hdd-7200 --size 8G\n  \
                        sudo iosched emulate ssd-sata --measure")]
pub(crate) struct EmulateArgs {
    /// Device: a name or a device file.
    #[arg(hide_possible_values = true, value_parser = names::devices())]
    pub(crate) device: String,
    /// Size, if not the device's own.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    /// Hardware queue depth, if not the device's own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) depth: Option<u32>,
    /// Where data is kept: memory, file[:DIR], or discard (reads give zeros).
    #[arg(long, value_name = "WHERE", default_value = "memory")]
    pub(crate) data: String,
    /// Way from the kernel to the disk, if not the fastest safe one (iosched doctor): ublk, fuse, or fuse-uring, which is faster than fuse, but may hang in the kernel when it is killed.
    #[arg(long, value_name = "WAY")]
    pub(crate) transport: Option<String>,
    /// Measure where the time goes on this machine, part by part, print it, and end.
    #[arg(long)]
    pub(crate) measure: bool,
    /// Form of what is measured.
    #[arg(long, value_enum, default_value = "table", requires = "measure")]
    pub(crate) format: Format,
    /// This process is the server of one in the foreground.
    #[arg(long, hide = true)]
    pub(crate) served: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched doctor /dev/sda\n  \
                        iosched doctor /home --format json | jq '.disks[].scheduler'")]
pub(crate) struct DoctorArgs {
    /// Device, mount point or path (default: the machine alone).
    pub(crate) target: Option<String>,
    /// Form.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
