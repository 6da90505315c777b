//! `iosched rules`.

use std::path::PathBuf;

use clap::Args;

use super::{Format, names};

/// `iosched rules`.
#[derive(Debug, Args)]
#[command(
    after_help = "The order is that of a start: the kernel's default, udev's rules by the names of their files, tmpfiles and \
                  sysfsutils, TLP, TuneD; then a later `change` event, which closing the disk after writing makes.\n\n\
                  Examples:\n  iosched rules /etc/udev/rules.d\n  \
                  iosched rules 60-ioschedulers.rules /usr/lib/tuned/balanced/tuned.conf --kernel 6.12\n  \
                  iosched rules fedora --against cachyos\n  \
                  iosched rules 60-ioschedulers.rules --situations nas,swap --threshold 10"
)]
pub(crate) struct RulesArgs {
    /// Rules of udev (files or folders of them), profiles of TuneD, TLP's settings, tmpfiles, sysfsutils, a table of
    /// class = scheduler, or the name of a policy that comes with the program (fedora, opensuse, cachyos …).
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<String>,
    /// Another policy to lay beside it; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Vec<String>,
    /// Version of Linux: its default, and the schedulers it has [default: the newest measured profile].
    #[arg(long, value_name = "VERSION", value_parser = names::kernels())]
    pub(crate) kernel: Option<String>,
    /// The schedulers that the kernel can load, separated by commas [default: all of its version].
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) schedulers: Vec<String>,
    /// A file of [[class]] tables in place of the classes that come with the program (data/policy/classes.toml).
    #[arg(long, value_name = "FILE")]
    pub(crate) device_classes: Option<PathBuf>,
    /// Situations to simulate (`iosched list situations`), separated by commas, or `all`: the answer is how each class does with
    /// its scheduler, beside the kernel's default and the best of the others. Exit code 1 where a class is worse than with the default.
    #[arg(long, value_name = "NAME,…|all", value_delimiter = ',', num_args = 0..=1, default_missing_value = "all")]
    pub(crate) situations: Vec<String>,
    /// By how much a class must be worse than with the kernel's default, beyond chance, for exit code 1.
    #[arg(long, value_name = "PERCENT", default_value = "10", requires = "situations")]
    pub(crate) threshold: String,
    /// Work for each device in each situation, as for `run`.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "situations")]
    pub(crate) budget: String,
    /// Runs simulated at a time [default: one for each CPU].
    #[arg(long, value_name = "N", requires = "situations")]
    pub(crate) jobs: Option<u16>,
    /// Form of the answer.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
