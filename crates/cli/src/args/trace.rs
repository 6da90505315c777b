//! `iosched trace`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use iosched_trace::OPERATIONS;
use iosched_trace::formats::{FORMATS, Format};
use iosched_trace::write::{FORMS, Form};
use iosched_types::Op;

use super::Format as Output;

#[derive(Debug, Args)]
#[command(after_help = known_formats())]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

/// What to do with a block trace.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// What the trace is, and its figures.
    Info(InfoArgs),
    /// A part of the time; it begins at 0.
    Cut(CutArgs),
    /// The I/Os of some tasks, operations, times or places.
    Filter(FilterArgs),
    /// Several traces as one.
    Merge(MergeArgs),
    /// The trace without names of tasks and disks.
    #[command(alias = "anonymize")]
    Anonymise(AnonymiseArgs),
    /// The trace in another form.
    Convert(ConvertArgs),
}

/// A form that is a feature of the build.
pub(crate) const PARQUET: &str = "parquet";

fn known_formats() -> String {
    let row = |f: &&Format| format!("\n  {:<10} {}", f.name, f.about);
    let rows: String = FORMATS.iter().map(row).collect();
    format!(
        "Examples:\n  iosched trace info sda.blktrace.0\n  iosched trace convert trace.txt.gz -o trace.csv\n\n\
         Formats, found by content, plain or packed with gzip, zstd, xz, bzip2:{rows}"
    )
}

pub(super) fn known_forms() -> String {
    let row = |f: &&Form| format!("{} ({})", f.name, f.ending);
    let rows: Vec<String> = FORMS.iter().map(row).collect();
    format!("Its form, where its ending does not name it: {}", rows.join(", "))
}

fn operations() -> impl TypedValueParser<Value = Op> {
    let of = |word: String| OPERATIONS.iter().find(|o| o.1 == word).map_or(Op::Read, |o| o.0);
    PossibleValuesParser::new(OPERATIONS.map(|o| o.1)).map(of)
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(FORMATS.iter().map(|f| f.name))
}

pub(super) fn forms() -> PossibleValuesParser {
    // Where it is not built in, the answer says how to get it.
    let parquet = (!FORMS.iter().any(|f| f.name == PARQUET)).then_some(PARQUET);
    PossibleValuesParser::new(FORMS.iter().map(|f| f.name).chain(parquet))
}

#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// The trace; of blktrace any file of the recording. `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<String>,
    /// Its format, where it is not found by content.
    #[arg(long = "as", value_name = "FORMAT", hide_possible_values = true, value_parser = formats())]
    pub(crate) read_as: Option<String>,
    /// The disk, where the trace has several; `all` takes them together.
    #[arg(long, value_name = "DISK")]
    pub(crate) disk: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct OutArgs {
    /// File to write; `-` is standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[arg(long, value_name = "FORM", help = known_forms(), hide_possible_values = true, value_parser = forms())]
    pub(crate) form: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched trace info sda.blktrace.0 --html sda.html\n  \
                        iosched trace info trace.csv.zst --disk hm.1 --format json | jq .depth")]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Form.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Output,
    /// Writes a page: offsets, bandwidth, I/Os in flight and latencies over time.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  iosched trace cut sda.blktrace.0 --from 10s --to 70s -o busy.csv"
)]
pub(crate) struct CutArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) span: SpanArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SpanArgs {
    /// First arrival, from the start of the trace: 90, 1.5s, 2m.
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// First arrival that is too late.
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  iosched trace filter trace.txt --task fio,1234 --op read --range 0..100G -o reads.csv"
)]
pub(crate) struct FilterArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Only these command names or pids.
    #[arg(long, value_delimiter = ',', value_name = "TASK,…")]
    pub(crate) task: Vec<String>,
    /// Only these operations.
    #[arg(long, value_delimiter = ',', value_name = "OP,…", value_parser = operations())]
    pub(crate) op: Vec<Op>,
    /// Only I/Os that touch these bytes: 0..100G, 64G.., ..1T.
    #[arg(long, value_name = "FROM..TO")]
    pub(crate) range: Option<String>,
    #[command(flatten)]
    pub(crate) span: SpanArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// How traces are laid together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Align {
    /// By the times in the files.
    Clock,
    /// All begin together.
    Start,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  iosched trace merge sda.blktrace.0 sdb.blktrace.0 -o both.csv")]
pub(crate) struct MergeArgs {
    /// The traces.
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    pub(crate) files: Vec<String>,
    /// How they are laid together.
    #[arg(long, value_enum, default_value = "clock")]
    pub(crate) align: Align,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  iosched trace anonymise trace.txt -o to-share.csv\n\nTimes, places and lengths stay: they \
                        are what a trace is about. Traces hold no data and no file names."
)]
pub(crate) struct AnonymiseArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  iosched trace convert sda.blktrace.0 -o sda.csv\n  \
                        iosched trace convert trace.txt.xz --form iolog2 -o job.log")]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}
