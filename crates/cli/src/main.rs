//! The one program, `iosched`: parses the command line, reads files, runs trials in parallel, prints.
#![allow(
    clippy::disallowed_methods,
    reason = "the program reads files, the environment and, to measure itself, the clock"
)]
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "the help texts of options write [optional parts] in brackets"
)]

mod args;
mod asked;
mod bench;
mod choose;
mod compare;
mod emulate;

mod explain;
mod fail;
mod files;
mod jobs;
mod list;
mod live;
mod manual;
mod progress;
mod record;
mod replay;
mod report;
mod reproduce;
mod results;
mod rules;
mod run;
mod short;
mod show;
mod situations;
mod store;
mod tables;
mod trace;
mod validate;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, FromArgMatches};
use iosched_types::nearest::nearest;

use args::{Cli, Command};
use fail::Outcome;

fn main() -> ExitCode {
    let cli = command_line().unwrap_or_else(|mut e| {
        suggest(&mut e);
        e.exit()
    });
    match execute(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            for message in &failure.messages {
                files::note(&format!("error: {message}"));
            }
            ExitCode::from(failure.code)
        }
    }
}

/// The arguments. Help is as wide as the terminal, also where that knows its columns only: the parser wants its rows, too.
fn command_line() -> Result<Cli, clap::Error> {
    let command = match tables::help_columns() {
        Some(columns) => Cli::command().term_width(columns),
        None => Cli::command(),
    };
    Cli::from_arg_matches(&command.try_get_matches()?)
}

/// Adds the command that was meant, where the parser sees none: it compares letters from the left, so `rnu` is no `run`.
fn suggest(error: &mut clap::Error) {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return;
    }
    let mut at = Cli::command();
    for word in std::env::args().skip(1).take_while(|w| w != wrong) {
        at = at.find_subcommand(&word).cloned().unwrap_or(at);
    }
    let known = at.get_subcommands().filter(|c| !c.is_hide_set()).map(clap::Command::get_name);
    if let Some(meant) = nearest(wrong, known) {
        let meant = ContextValue::Strings(vec![meant.into()]);
        error.insert(ContextKind::SuggestedSubcommand, meant);
    }
}

fn execute(command: Command) -> Outcome {
    match command {
        Command::Run(mut args) => {
            args.files = choose::joined(std::mem::take(&mut args.files));
            run::run(&args)
        }
        Command::List(args) => list::list(&args),
        Command::Show(args) => show::show(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Validate(args) => validate::validate(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Record(args) => record::record(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Results(args) => results::results(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Report(args) => report::report(&args),
        Command::Serve(args) => report::serve(&args),
        Command::Rules(args) => rules::rules(&args),
        Command::Emulate(args) => emulate::emulate(&args),
        Command::Doctor(args) => live::doctor(&args),
        Command::Restore(args) => live::restore(&args),
        Command::Completions { shell } => manual::completions(shell),
        Command::StoredNames(db) => manual::stored_names(&db),
        Command::Man { dir } => manual::man(dir.as_deref()),
        Command::Guardian { file } => Ok(iosched_backends::guardian::main(&file)?),
        Command::BenchMemory { scheduler, requests } => bench::memory_child(&scheduler, requests),
    }
}
