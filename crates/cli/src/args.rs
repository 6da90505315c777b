//! The command line, defined once: parser, help, shell completions and man pages come from here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Compare every I/O scheduler Linux ever had.
///
/// One experiment (devices, schedulers, kernels, fio jobs, repetitions) runs on a simulator, on the
/// real kernel with an emulated disk, or on the real kernel with a real disk.
#[derive(Debug, Parser)]
#[command(
    name = "iosched",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 fine, 1 a regression was found, 2 usage or bad input, 3 the machine lacks \
                  something, 4 a trial failed.\n\nExample:\n  iosched run desktop --device hdd-7200 \
                  --scheduler none,mq-deadline,bfq"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run fio jobs or an experiment file and compare the schedulers.
    Run(Box<RunArgs>),
    /// List what there is to choose from.
    List(ListArgs),
    /// Show everything about one scheduler, device, kernel, workload or option.
    Show(ShowArgs),
    /// Follow a scheduler decision by decision through a scenario file.
    Explain(ExplainArgs),
    /// Lay the simulator beside what the real kernel did.
    Validate(ValidateArgs),
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
    /// Serve a device model as a block device of the running kernel.
    Emulate(EmulateArgs),
    /// Show the storage below a device or path, and what is installed.
    Doctor(DoctorArgs),
    /// Put back what a killed run left behind.
    Restore(StateArgs),
    /// Print completions for a shell.
    #[command(
        after_help = "Example:\n  iosched completions bash > ~/.local/share/bash-completion/completions/iosched"
    )]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
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

/// Forms of the results of `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// Tables for people.
    Table,
    /// Everything, as one JSON document.
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
    --format fio-json\n\n\
    Repetition r of a job without randseed runs with randseed = seed + r - 1, and with randrepeat=0 when \
    there are several runs; the same repetition has the same seeds under every scheduler.")]
pub(crate) struct RunArgs {
    /// fio job files, experiment files (.toml), or names of jobs that come with the program.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Devices: names, or device files (default hdd-7200; see `iosched list devices`).
    #[arg(long, value_name = "NAME,…")]
    pub(crate) device: Vec<String>,
    /// Schedulers as family[@generation or kernel version]; the first is the base of comparisons.
    #[arg(long, value_name = "NAME,…")]
    pub(crate) scheduler: Vec<String>,
    /// Kernel profiles: names, or profile files (default: the newest).
    #[arg(long, value_name = "VERSION,…")]
    pub(crate) kernel: Vec<String>,
    /// Repetitions.
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
    /// Seed of the first repetition.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Sets a fio option in every job, after the job's own.
    #[arg(long, value_name = "OPTION=VALUE")]
    pub(crate) set: Vec<String>,
    /// Sets a tunable of a scheduler by its sysfs name.
    #[arg(long, value_name = "SCHEDULER.NAME=VALUE")]
    pub(crate) tunable: Vec<String>,
    /// Sets a queue attribute by its sysfs name.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) queue: Vec<String>,
    /// CPUs of the simulated machine.
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<u16>,
    /// Who runs it: sim, emulated, real or mock.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// Trials at a time (default: one per CPU; the simulator only).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Form of the results.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RunFormat,
    /// Writes the results to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
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
    /// Real backend: allows to overwrite this very device.
    #[arg(long, value_name = "/dev/NAME")]
    pub(crate) destroy_data: Option<String>,
    /// Traces block events into the record (emulated and real).
    #[arg(long)]
    pub(crate) trace: bool,
    /// Runs no warm-up round (emulated and real).
    #[arg(long)]
    pub(crate) no_warm_up: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

/// Which results file.
#[derive(Clone, Debug, Args)]
pub(crate) struct DbArgs {
    /// Results file (default: iosched/results.db in the XDG data folder).
    #[arg(long, value_name = "FILE", env = "IOSCHED_DB")]
    pub(crate) db: Option<PathBuf>,
}

/// How tables look.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LookArgs {
    /// One table per workload instead of two of at most 80 columns.
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

/// Kinds of things to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListKind {
    /// Schedulers with their generations.
    Schedulers,
    /// Devices of the catalogue.
    Devices,
    /// Kernel profiles.
    Kernels,
    /// Jobs that come with the program.
    Workloads,
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
    Scheduler,
    /// A device: model, figures, sources, and what it does.
    Device,
    /// A kernel profile.
    Kernel,
    /// A job that comes with the program.
    Workload,
    /// A fio option, a queue attribute or a tunable.
    Option,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  iosched show device hdd-7200\n  iosched show scheduler bfq\n  \
                        iosched show option iodepth"
)]
pub(crate) struct ShowArgs {
    /// What.
    #[arg(value_enum)]
    pub(crate) what: ShowKind,
    /// Its name; a device may be a file.
    pub(crate) name: String,
    /// JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  iosched explain examples/scenarios/bfq-idle-6.12.toml")]
pub(crate) struct ExplainArgs {
    /// Scenario file: requests with times and processes.
    #[arg(value_name = "SCENARIO.toml")]
    pub(crate) file: String,
    /// Form.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched validate data/truth\n  \
                        iosched validate data/truth --scheduler none,mq-deadline --format json\n  \
                        iosched validate data/truth --dispatch\n  \
                        sudo iosched validate examples/validate-hdd.toml --against emulated")]
pub(crate) struct ValidateArgs {
    /// Folder with devices.toml, jobs/ and results.json; or an experiment file with --against.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Form.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Compares the commands sent to the device one by one (DIR/dispatch/*.log.gz).
    #[arg(long)]
    pub(crate) dispatch: bool,
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
    /// Runs the experiment on this backend, too, and lays the simulator beside it.
    #[arg(long, value_name = "BACKEND")]
    pub(crate) against: Option<String>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched bench\n  \
                        iosched bench --scheduler none --device fixed --depth 32 --format json")]
pub(crate) struct BenchArgs {
    /// Form.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    /// Schedulers (default: all).
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) scheduler: Vec<String>,
    /// Reference devices: fixed, hdd, ssd (default: all).
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) device: Vec<String>,
    /// Requests in flight (default: 1, 32, 256).
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) depth: Vec<u32>,
    /// Requests of each row.
    #[arg(long, value_name = "N", default_value = "2000000", value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    pub(crate) requests: u64,
    /// Leaves out the memory of a queue with a million pending requests.
    #[arg(long)]
    pub(crate) no_memory: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched results list\n  iosched results show desktop\n  \
                        iosched results export desktop --format csv > desktop.csv\n  \
                        iosched results import fio-output.json")]
pub(crate) struct ResultsArgs {
    #[command(subcommand)]
    pub(crate) command: ResultsCommand,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

/// What to do with results.
#[derive(Debug, Subcommand)]
pub(crate) enum ResultsCommand {
    /// All experiments, newest first.
    #[command(after_help = "Example:\n  iosched results list --json")]
    List {
        /// JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// The tables of an experiment.
    #[command(after_help = "Example:\n  iosched results show desktop --wide")]
    Show {
        /// Number, identity or name.
        name: String,
        /// The list of its trials instead.
        #[arg(long)]
        trials: bool,
        #[command(flatten)]
        look: LookArgs,
    },
    /// An experiment in another form.
    #[command(after_help = "Example:\n  iosched results export 3 --format fio-json -o fio.json")]
    Export {
        /// Number, identity or name.
        name: String,
        /// Form.
        #[arg(long, value_enum, default_value = "json")]
        format: RunFormat,
        /// Writes to a file instead of standard output.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Takes results of iosched, fio, PTS, CSV, iozone, pg_test_fsync or S; `published` takes those
    /// that come with the program.
    #[command(after_help = "Example:\n  iosched results import published")]
    Import {
        /// Files, or `published`.
        #[arg(required = true)]
        files: Vec<String>,
        /// Name of the experiment (default: the file's stem).
        #[arg(long)]
        name: Option<String>,
    },
    /// Takes over everything from another results file.
    #[command(after_help = "Example:\n  iosched results merge other.db")]
    Merge {
        /// The other file.
        file: PathBuf,
    },
    /// Deletes an experiment.
    #[command(after_help = "Example:\n  iosched results delete 3")]
    Delete {
        /// Number, identity or name.
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched compare desktop-6.6 desktop-6.12 --vary kernel\n  \
                        iosched compare baseline.json desktop --threshold 3")]
pub(crate) struct CompareArgs {
    /// An experiment of the results file, or a results document (.json).
    pub(crate) base: String,
    /// The other one.
    pub(crate) new: String,
    /// A significant loss beyond this many percent is a regression.
    #[arg(long, value_name = "PERCENT", default_value = "5")]
    pub(crate) threshold: f64,
    /// Compares although the conditions differ.
    #[arg(long)]
    pub(crate) force: bool,
    /// Provenance that may differ because it is what is compared.
    #[arg(long, value_delimiter = ',', value_name = "FIELD,…")]
    pub(crate) vary: Vec<String>,
    /// Only measures that begin with one of these.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) measure: Vec<String>,
    /// JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sudo iosched emulate hdd-7200 --size 8G")]
pub(crate) struct EmulateArgs {
    /// Device: a name or a device file.
    pub(crate) device: String,
    /// Size, if not the device's own.
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  iosched doctor /dev/sda")]
pub(crate) struct DoctorArgs {
    /// Device, mount point or path (default: the machine alone).
    pub(crate) target: Option<String>,
}

/// `iosched report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  iosched run desktop && iosched report --html desktop.html\n  iosched report --published linux-4.12 --html linux-4.12.html"
)]
pub(crate) struct ReportArgs {
    /// Stored experiment, by name or number (default: the newest).
    pub(crate) experiment: Option<String>,
    /// A published comparison instead: one of `iosched results import published`.
    #[arg(long, value_name = "NAME", conflicts_with = "experiment")]
    pub(crate) published: Option<String>,
    /// The page to write.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: PathBuf,
    /// The scheduler the others are compared with (default: the first).
    #[arg(long, value_name = "SCHEDULER")]
    pub(crate) base: Option<String>,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}

/// `iosched serve`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  iosched serve --port 8080")]
pub(crate) struct ServeArgs {
    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, default_value_t = 8080, value_name = "N")]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) db: DbArgs,
}
