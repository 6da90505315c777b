//! `iosched record`.

use std::path::PathBuf;

use clap::Args;

use super::StateArgs;
use super::trace::{forms, known_forms};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sudo iosched record /dev/sda --for 60s -o sda.csv\n  \
                        sudo iosched record /var/lib/postgresql --for 10m --size 2G -o pg.csv.gz\n  \
                        sudo iosched record sda --top\n\nThe result is a trace: iosched trace info sda.csv")]
pub(crate) struct RecordArgs {
    /// A disk, or a path on a file system: then the disk whose scheduler works on it.
    #[arg(value_name = "DEV|PATH")]
    pub(crate) target: String,
    /// How long: 90, 60s, 10m (default: until Ctrl-C).
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// File to write; `-` is standard output. With .gz behind its ending it is packed.
    #[arg(long, short, value_name = "FILE", required_unless_present = "top")]
    pub(crate) output: Option<PathBuf>,
    #[arg(long, value_name = "FORM", help = known_forms(), hide_possible_values = true, value_parser = forms(), requires = "output")]
    pub(crate) form: Option<String>,
    /// Ends the recording when the file is about this large: 500M, 2G.
    #[arg(long, value_name = "SIZE", requires = "output")]
    pub(crate) size: Option<String>,
    /// Shows every second which tasks read and write how much, with which latency.
    #[arg(long)]
    pub(crate) top: bool,
    #[command(flatten)]
    pub(crate) state: StateArgs,
}
