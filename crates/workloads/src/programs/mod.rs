//! Benchmarks as programs over system calls: one file and one line of [`PROGRAMS`] each.
//!
//! A program knows system calls only: no device, scheduler, kernel version or file system. The same text runs in the
//! simulator and with real calls.

use std::future::Future;
use std::pin::Pin;

use iosched_syscalls::{Birth, Done, Program, Script, Sys};
use iosched_types::nearest::did_you_mean;
use iosched_types::{Bytes, Diagnostic};

mod background;
mod btree;
mod cold;
mod compile;
mod compilebench;
mod dbench;
mod file_copy;
pub mod files;
mod fs_mark;
mod fsops;
mod interleaved;
mod iozone;
mod kernel_tasks;
mod mix;
mod params;
mod pg_test_fsync;
mod pgbench;
mod postmark;
mod rd;
mod relay;
mod sqlite;
mod startup;
mod video;
mod web;

pub use mix::{Access, Mix};
pub use params::{Kind, Param, Params, Value};

/// A program on its way.
pub type Running = Pin<Box<dyn Future<Output = Done>>>;

/// Parameters that are set, by name; their values are not looked at yet.
pub type Set = Vec<(String, String)>;

/// A phase of a program.
pub type Text = fn(Sys, Params) -> Running;

/// A figure that a program computes itself, with [`Sys::figure`].
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Whether more is better; `None` where it only describes the run.
    pub higher_is_better: Option<bool>,
}

/// Work that a program does now and then, by its own clock or count: a short run may have none of it.
#[derive(Clone, Copy, Debug)]
pub struct Periodic {
    /// The figure that counts it.
    pub figure: &'static str,
    /// What is said of a run without it.
    pub none: &'static str,
    /// When it comes, and what to do.
    pub advice: &'static str,
}

/// A program that can be named.
#[derive(Debug)]
pub struct Descriptor {
    /// Name.
    pub name: &'static str,
    /// The parameters that set how long it takes, with values for a quick look (`--quick`). Empty: it is short anyway.
    pub quick: &'static [(&'static str, &'static str)],
    /// What it does, in one sentence.
    pub text: &'static str,
    /// The parameters, in the order of its command line.
    pub params: &'static [Param],
    /// Figures of its own.
    pub figures: &'static [Figure],
    /// Figures that the original prints as n/a on Linux, each with the one before it.
    pub absent: &'static [(&'static str, &'static str)],
    /// Parameters of the real program that the text does without.
    pub only_real: &'static [&'static str],
    /// What it does now and then.
    pub periodic: &'static [Periodic],
    /// Bytes that its files have at least at some time, as far as the parameters tell: no disk below that will do.
    pub room: fn(&Params) -> Bytes,
    /// What is wrong with parameters that do not go together.
    pub fits: fn(&Params) -> Result<(), String>,
    /// Prepares the files for the measured part. Then everything is synced and dropped from the caches.
    pub prepare: Option<Text>,
    /// The measured part.
    pub run: Text,
}

/// A condition of [`Descriptor::fits`], with what is said where it does not hold.
fn fits(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// All programs.
pub static PROGRAMS: &[&Descriptor] = &[
    &rd::RD,
    &fsops::FSOPS,
    &relay::RELAY,
    &sqlite::SQLITE,
    &fs_mark::FS_MARK,
    &postmark::POSTMARK,
    &pg_test_fsync::PG_TEST_FSYNC,
    &iozone::IOZONE,
    &file_copy::FILE_COPY,
    &dbench::DBENCH,
    &compilebench::COMPILEBENCH,
    &pgbench::PGBENCH,
    &compile::KERNEL_COMPILE,
    &compile::PHP_COMPILE,
    &web::NGINX,
    &web::APACHE,
    &kernel_tasks::KERNEL_TASKS,
    &startup::STARTUP,
    &video::VIDEO,
    &interleaved::INTERLEAVED,
];

impl Descriptor {
    /// The program of that name, or what is known.
    ///
    /// # Errors
    /// The nearest name, or all.
    pub fn find(name: &str) -> Result<&'static Descriptor, String> {
        PROGRAMS.iter().find(|d| d.name == name).copied().ok_or_else(|| {
            let near = did_you_mean(name, PROGRAMS.iter().map(|d| d.name));
            let all: Vec<&str> = PROGRAMS.iter().map(|d| d.name).collect();
            if near.is_empty() { format!("known are {}", all.join(", ")) } else { near }
        })
    }

    /// The phase before the measured one, to be started where it runs.
    #[must_use]
    pub fn preparation(&self, params: &Params) -> Option<Birth> {
        self.prepare.map(|text| birth(text, params))
    }

    /// The measured phase, to be started where it runs.
    #[must_use]
    pub fn measured(&self, params: &Params) -> Birth {
        birth(self.run, params)
    }

    /// A command line: the program, then its parameters in order. Missing ones have their defaults.
    ///
    /// # Errors
    /// An unknown program, a value that does not fit, too many words.
    pub fn from_command_line(line: &str) -> Result<(&'static Descriptor, Params), Diagnostic> {
        let (d, set) = Descriptor::words(line)?;
        let params = Params::of(d, &set).map_err(|message| Diagnostic::file(line, message))?;
        Ok((d, params))
    }

    /// The program of a command line, and the parameters that it sets; their values are not looked at.
    ///
    /// # Errors
    /// An unknown program, too many words.
    pub fn words(line: &str) -> Result<(&'static Descriptor, Set), Diagnostic> {
        let mut words = line.split_whitespace().peekable();
        let first = words.next().unwrap_or_default();
        // As a shell starts it: ./fsops, /usr/bin/rd.
        let name = first.rsplit('/').next().unwrap_or_default();
        let known = Descriptor::find(name);
        let d = known.map_err(|help| {
            Diagnostic::file(line, format!("there is no program \"{name}\"")).with_help(help)
        })?;
        // The programs of data/truth-fs have "run" and "make" before their parameters.
        let takes_run = d.params.first().is_some_and(|p| p.read("run").is_ok());
        words.next_if(|w| *w == "run" && !takes_run);
        let mut set = Vec::new();
        for (i, word) in words.enumerate() {
            let Some(p) = d.params.get(i) else {
                let message = format!("{name} takes {} words, and \"{word}\" is one more", i);
                return Err(Diagnostic::file(line, message).with_help(d.usage()));
            };
            set.push((p.name.to_string(), p.below_mount(word).to_string()));
        }
        Ok((d, set))
    }

    /// The command line, in words.
    #[must_use]
    pub fn usage(&self) -> String {
        let words: Vec<String> = self.params.iter().map(|p| p.name.to_uppercase()).collect();
        format!("usage: {} {}", self.name, words.join(" "))
    }

    /// The table of parameters for `docs/programs.md` and `iosched show workload`.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = format!("{}\n\n`{}`\n\n", self.text, self.usage());
        out.push_str("| parameter | unit | default | bounds | what |\n|---|---|---|---|---|\n");
        for p in self.params {
            let (unit, default, bounds) = (p.unit(), p.default, p.bounds());
            out.push_str(&format!(
                "| `{}` | {unit} | {default} | {bounds} | {} |\n",
                p.name, p.text
            ));
        }
        out
    }
}

fn birth(text: Text, params: &Params) -> Birth {
    let params = params.clone();
    Birth(Box::new(move || {
        Box::new(Script::new(async move |sys| text(sys, params).await)) as Box<dyn Program>
    }))
}
