//! The real programs behind workloads of the same name: sqlite3 for `sqlite`, PostgreSQL and pgbench for `pgbench`.
//!
//! Another program is a file here and a line of [`RECIPES`]: which tools it needs, how they are called with the workload's
//! parameters, and where their output has the workload's figures. What it cannot do is refused; the workload's own text can
//! (`program = "text"`).

mod dbench;
mod fs_mark;
mod iozone;
mod pg_test_fsync;
mod pgbench;
mod postmark;
mod scene;
mod sqlite;
mod tool;
mod web;

use std::fs;
use std::path::{Path, PathBuf};

use iosched_experiment::{Load, ProgramKind, Trial};
use iosched_workloads::programs::Params;

use crate::error::{Error, Result};

pub(crate) use scene::{Scene, Server, Serving};
pub(crate) use tool::{Found, Tool};

/// A real program.
#[derive(Debug)]
pub(crate) struct Recipe {
    /// The workload that it is known for.
    pub workload: &'static str,
    /// What it needs. The first one is the program that prints the figures.
    pub tools: &'static [Tool],
    /// Who runs it: the first of these users that there is, and root if the list is empty. Servers refuse to run as root.
    pub users: &'static [&'static str],
    /// Its commands.
    pub plan: fn(&Params, &At<'_>) -> Result<Plan>,
    /// Its figures in what it printed, by the workload's names.
    pub figures: Figures,
}

/// Reads figures: what was printed, the parameters, the seconds that the measured part took.
pub(crate) type Figures = fn(&str, &Params, f64) -> Option<Vec<(&'static str, f64)>>;

/// All of them.
pub(crate) static RECIPES: &[&Recipe] = &[
    &sqlite::SQLITE,
    &fs_mark::FS_MARK,
    &postmark::POSTMARK,
    &dbench::DBENCH,
    &pg_test_fsync::PG_TEST_FSYNC,
    &pgbench::PGBENCH,
    &web::NGINX,
    &web::APACHE,
    &iozone::IOZONE,
];

/// A program and its arguments.
pub(crate) type Words = Vec<String>;

/// Where a program works.
pub(crate) struct At<'a> {
    /// Its directory on the tested disk, as the program sees it.
    pub dir: &'a Path,
    /// The same as iosched sees it.
    pub own: &'a Path,
    /// A place beside it for what it is told. Programs start here.
    pub scratch: &'a Path,
    /// The tools.
    pub tools: &'a Found,
}

impl At<'_> {
    /// A path in the directory, as an argument.
    pub(crate) fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Writes a file that the program reads; its path.
    pub(crate) fn tell(&self, name: &str, text: &str) -> Result<String> {
        let path = self.scratch.join(name);
        fs::write(&path, text).map_err(|e| Error::io("writing", &path, e))?;
        Ok(path.display().to_string())
    }

    /// Writes a file in its directory; its path. What runs as another user may be unable to look anywhere else.
    pub(crate) fn put(&self, name: &str, text: &str) -> Result<String> {
        let path = self.own.join(name);
        fs::write(&path, text).map_err(|e| Error::io("writing", &path, e))?;
        Ok(self.file(name))
    }

    /// A command of a tool, with arguments in words.
    pub(crate) fn command(&self, tool: &str, words: &[&str]) -> Words {
        let program = self.tools.path(tool).display().to_string();
        [program].into_iter().chain(words.iter().map(ToString::to_string)).collect()
    }
}

/// What is run: commands, one after the other in each part.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Before anything else.
    pub prepare: Vec<Words>,
    /// Runs beside the commands of the next three parts, and is stopped and started again before the measured one.
    pub server: Option<Server>,
    /// Before the measured part, with the server.
    pub fill: Vec<Words>,
    /// The measured part.
    pub run: Vec<Words>,
    /// What tells figures afterwards.
    pub ask: Vec<Words>,
}

/// The recipe for a workload.
#[must_use]
pub(crate) fn of(workload: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|r| r.workload == workload).copied()
}

/// The recipe that a trial runs, with its parameters, if it runs a real program.
pub(crate) fn behind(trial: &Trial) -> Option<(&'static Recipe, &Params)> {
    match &trial.load {
        Some(Load::Program { program, params }) if trial.program == ProgramKind::Real => {
            of(program.name).map(|recipe| (recipe, params))
        }
        _ => None,
    }
}

/// What the workload's text could do and this program cannot.
fn only_text(what: &str) -> Error {
    Error::input(what, "run iosched's own text of it: --program text")
}

/// Parameters that only set what a simulation cannot know must have their defaults.
fn only_defaults(p: &Params, workload: &str, names: &[&str]) -> Result<()> {
    let usual = Params::of(of_text(workload)?, &[]).map_err(|m| Error::input(m, ""))?;
    match names.iter().find(|n| p.number(n) != usual.number(n)) {
        Some(n) => Err(only_text(&format!(
            "{n}={}: the real program takes the time that it takes",
            p.number(n)
        ))),
        None => Ok(()),
    }
}

fn of_text(workload: &str) -> Result<&'static iosched_workloads::programs::Descriptor> {
    iosched_workloads::programs::Descriptor::find(workload).map_err(|m| Error::input(m, ""))
}

impl Recipe {
    /// Looks for everything that it needs. `own` are the user's own files of tools.
    ///
    /// # Errors
    /// [`Error::NoTool`] with its package, [`Error::OldTool`].
    pub(crate) fn find(&self, own: &[(&'static str, PathBuf)]) -> Result<Found> {
        Found::look(self.tools, own)
    }

    /// The name of the program that prints the figures.
    pub(crate) fn main(&self) -> &'static str {
        self.tools.first().map_or("", |t| t.name)
    }

    /// The package of that program.
    pub(crate) fn package(&self) -> &'static str {
        self.tools.first().map_or("", |t| t.package)
    }

    /// What that program says of its version; empty if it says nothing.
    pub(crate) fn version(&self, tools: &Found) -> String {
        self.tools.first().map_or_else(String::new, |t| t.version_of(tools.path(t.name)).0)
    }

    /// Its figures.
    ///
    /// # Errors
    /// [`Error::Tool`] with the first lines of output that has none.
    pub(crate) fn read(
        &self,
        printed: &str,
        params: &Params,
        seconds: f64,
    ) -> Result<Vec<(&'static str, f64)>> {
        let found = (self.figures)(printed, params, seconds);
        found
            .filter(|f| f.iter().all(|(_, v)| v.is_finite()))
            .ok_or_else(|| scene::failed(self.main(), printed))
    }
}

/// The number at a line's end or before a word: the first that parses.
fn number(text: &str) -> Option<f64> {
    text.split_whitespace().find_map(|w| w.trim_matches(['(', ')', '=', ',']).parse().ok())
}

#[cfg(test)]
mod tests;
