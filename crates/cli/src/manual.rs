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
    let text = String::from_utf8_lossy(&out).into_owned();
    let lists = lists(&Cli::command());
    print(&match shell {
        clap_complete::Shell::Bash => {
            let lists = lists.into_iter().collect::<Vec<_>>().join(" ");
            text + &include_str!("completions.bash").replace("@LISTS@", &lists)
        }
        clap_complete::Shell::Zsh => zsh(&text),
        clap_complete::Shell::Fish => fish(&text, &lists) + include_str!("completions.fish"),
        _ => text,
    })
}

/// zsh: lists take more words behind a comma, and experiments are those of the results file.
fn zsh(generated: &str) -> String {
    let mut out = String::new();
    for line in generated.lines() {
        let list = line.split_once(",…:(").and_then(|(head, words)| {
            let (words, tail) = words.rsplit_once(')')?;
            Some(format!("{head},…: _iosched_list - {words}{tail}"))
        });
        let stored = |line: &str| {
            let positional = STORED.iter().any(|name| {
                line.starts_with(&format!("':{name} -- "))
                    || line.starts_with(&format!("'::{name} -- "))
            });
            let head = line.strip_suffix(":_default' \\").filter(|_| positional)?;
            Some(format!("{head}:_iosched_stored' \\"))
        };
        let line = list.or_else(|| stored(line)).unwrap_or_else(|| line.to_string());
        // Behind a list of files there are options, too: `*::` would take all words that follow.
        match line.strip_prefix("'*::").filter(|l| l.contains(" -- ")) {
            Some(files) => out += &format!("'*:{files}"),
            None => out += &line,
        }
        out.push('\n');
        // Behind the first line, which names the command.
        if line.starts_with("#compdef") {
            out.push('\n');
            out += include_str!("completions.zsh");
        }
    }
    out
}

/// Arguments that are names of stored experiments.
const STORED: [&str; 4] = ["name", "base", "new", "experiment"];

/// fish: lists take more words behind a comma.
fn fish(generated: &str, lists: &BTreeSet<String>) -> String {
    let is_list = |line: &str| lists.iter().any(|l| line.contains(&format!(" -l {} ", &l[2..])));
    let mut out = String::new();
    let mut lines = generated.lines();
    while let Some(line) = lines.next() {
        let Some((head, first)) = line.split_once(" -r -f -a \"").filter(|_| is_list(line)) else {
            out += line;
            out.push('\n');
            continue;
        };
        // Each word stands on a line of its own, up to the closing quote.
        let mut words = vec![first];
        while !words.last().is_some_and(|w| w.ends_with('"'))
            && let Some(next) = lines.next()
        {
            words.push(next);
        }
        let words = words.iter().filter_map(|w| w.trim_end_matches('"').split('\t').next());
        let words = words.collect::<Vec<_>>().join(" ");
        out += &format!("{head} -r -f -a \"(__iosched_list {words})\"\n");
    }
    out
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
