//! Shell completions and manual pages, from the command line's own definitions.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Cli, DbArgs};
use crate::fail::Outcome;
use crate::files::print;
use crate::store::open_read_only;

/// `iosched completions`.
pub(crate) fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "iosched", &mut out);
    if shell == clap_complete::Shell::Bash {
        let lists = lists(&Cli::command()).into_iter().collect::<Vec<_>>().join(" ");
        out.extend(include_str!("completions.bash").replace("@LISTS@", &lists).bytes());
    }
    print(&String::from_utf8_lossy(&out))
}

/// Options that take a list with commas, as their value names say.
fn lists(command: &clap::Command) -> BTreeSet<String> {
    let is_list = |a: &&clap::Arg| {
        a.get_value_names().is_some_and(|v| v.iter().any(|name| name.ends_with(",…")))
    };
    let own = command.get_arguments().filter(is_list).filter_map(|a| a.get_long());
    let own = own.map(|name| format!("--{name}"));
    own.chain(command.get_subcommands().flat_map(lists)).collect()
}

/// The names of stored experiments, one a line: completions ask for them.
pub(crate) fn stored_names(db: &DbArgs) -> Outcome {
    let names: BTreeSet<String> = open_read_only(db)?.list()?.into_iter().map(|e| e.name).collect();
    let one_line = names.iter().filter(|n| !n.chars().any(char::is_control));
    print(&one_line.map(|n| format!("{n}\n")).collect::<String>())
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
