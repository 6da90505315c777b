//! What is done with results: `results`, `compare`, `report`, `serve`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{DbArgs, LookArgs, RunFormat, names};

/// Forms of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// A line per command: time in ns, operation, sector, sectors, process.
    Csv,
    /// A log that fio and the simulator replay.
    Iolog,
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
        /// JSON with curves and dispatch pictures, too: ten times as much.
        #[arg(long)]
        full: bool,
        /// Writes to a file instead of standard output.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// The whole block trace of a trial that ran with --trace.
    #[command(after_help = "Examples:\n  iosched results trace night\n  \
                            iosched results trace night --trial 7 --format iolog -o night.log")]
    Trace {
        /// Number, identity or name of the experiment.
        name: String,
        /// Which trial (default: lists those that were traced).
        #[arg(long, value_name = "N")]
        trial: Option<i64>,
        /// Form.
        #[arg(long, value_enum, default_value = "csv")]
        format: TraceFormat,
        /// Writes to a file instead of standard output.
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// What the tools of a live trial printed: fio's own summary, its job file, the system.
    #[command(
        after_help = "Examples:\n  iosched results log night\n  iosched results log night --trial 7"
    )]
    Log {
        /// Number, identity or name of the experiment.
        name: String,
        /// Which trial (default: lists those that have logs).
        #[arg(long, value_name = "N")]
        trial: Option<i64>,
    },
    /// Renames, labels, annotates or hides; the figures stay. Without options it prints what was changed.
    #[command(
        after_help = "Examples:\n  iosched results edit desktop --rename night --note \"write cache off\"\n  \
                      iosched results edit night --label \"bfq@6.12=BFQ, default\" --hide kyber@5.0\n  \
                      iosched results edit night --annotate \"none=as delivered\" --show kyber@5.0\n\n\
                      Tables and pages follow at once. Exports and comparisons keep the names that were measured. An \
                      empty text takes a label or a note away."
    )]
    Edit {
        /// Number, identity or name of the experiment.
        name: String,
        /// Another name of the experiment.
        #[arg(long, value_name = "NAME")]
        rename: Option<String>,
        /// Words about the experiment.
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// What tables and pages call a scheduler.
        #[arg(long, value_name = "SCHEDULER=TEXT")]
        label: Vec<String>,
        /// Words about a scheduler.
        #[arg(long, value_name = "SCHEDULER=TEXT")]
        annotate: Vec<String>,
        /// Leaves a scheduler out of tables and pages.
        #[arg(long, value_name = "SCHEDULER")]
        hide: Vec<String>,
        /// Takes it in again.
        #[arg(long, value_name = "SCHEDULER")]
        show: Vec<String>,
        /// JSON instead of words.
        #[arg(long)]
        json: bool,
    },
    /// Takes results of iosched, fio, PTS, CSV, iozone, pg_test_fsync, dbench, pgbench, sysbench, bonnie++,
    /// fs_mark, PostMark or S; `published` takes those that come with the program.
    #[command(
        after_help = "Examples:\n  iosched results import published\n  iosched results import --format text page.txt"
    )]
    Import {
        /// Files, folders of fio-plot or S, or `published`.
        #[arg(required = true)]
        files: Vec<String>,
        /// Name of the experiment (default: the file's stem).
        #[arg(long)]
        name: Option<String>,
        /// Form of the files (default: recognised from their contents).
        #[arg(long, value_parser = iosched_results::import::Format::parse)]
        format: Option<iosched_results::import::Format>,
    },
    /// Copies everything from another results file.
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
#[command(after_help = "Examples:\n  iosched compare desktop-6.6 desktop-6.12 --match family\n  \
                        iosched compare desktop-6.6 desktop-6.12 --vary kernel\n  \
                        iosched compare baseline.json desktop --threshold 3 --measure read.bw,write.bw\n\n\
                        Exit codes: 1 a figure is worse by more than the threshold, 0 none is, 5 the data leave room for \
                        it or figures are missing (more runs help; --measure asks for less).")]
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
    /// What is the same on both sides: a scheduler by its whole name, or each family once, whatever kernel, generation and
    /// tunables it has (default: whole names where there are some, else families).
    #[arg(long = "match", value_name = "scheduler|family", value_parser = ["scheduler", "family"], hide_possible_values = true)]
    pub(crate) matching: Option<String>,
    /// Only measures that begin with one of these.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    pub(crate) measure: Vec<String>,
    /// Exit code 0 although the data cannot tell whether there is a regression.
    #[arg(long)]
    pub(crate) allow_inconclusive: bool,
    /// Every figure, not only those that became better or worse.
    #[arg(long)]
    pub(crate) all: bool,
    /// JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) db: DbArgs,
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
    #[arg(long, value_name = "NAME", conflicts_with = "experiment", hide_possible_values = true, value_parser = names::published())]
    pub(crate) published: Option<String>,
    /// The page to write.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: PathBuf,
    /// The scheduler the others are compared with (default: the kernel's default for the device, else none, else noop, else the first).
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
