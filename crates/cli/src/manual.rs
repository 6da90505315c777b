//! Shell completions and manual pages, from the command line's own definitions.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::Cli;
use crate::fail::Outcome;
use crate::files::print;

/// `iosched completions`.
pub(crate) fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "iosched", &mut out);
    print(&String::from_utf8_lossy(&out))
}

/// `iosched man`.
pub(crate) fn man(dir: Option<&Path>) -> Outcome {
    if let Some(dir) = dir {
        let name = || format!("writing manual pages to {}", dir.display());
        std::fs::create_dir_all(dir).with_context(name)?;
        clap_mangen::generate_to(Cli::command(), dir).with_context(name)?;
        return Ok(());
    }
    let mut out = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut out).context("making the manual page")?;
    print(&String::from_utf8_lossy(&out))
}
