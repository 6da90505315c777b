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
                  iosched rules fedora --against cachyos"
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
    /// Form of the answer.
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
