//! The real programs behind workloads of the same name: sqlite3 for `sqlite`, PostgreSQL and pgbench for `pgbench`.
//!
//! Another program is a file here and a line of [`RECIPES`]: which tools it needs, how they are called with the workload's
//! parameters, and where their output has the workload's figures. What it cannot do is refused; the workload's own text can
//! (`program = "text"`).

mod dbench;
mod fs_mark;
mod iozone;
mod kernel;
mod pg_test_fsync;
mod pgbench;
mod postmark;
mod scene;
mod sqlite;
mod tool;
pub(crate) mod tree;
mod web;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iosched_experiment::{Load, ProgramKind, Trial};
use iosched_lab::machine::Interrupt;
use iosched_types::Bytes;
use iosched_workloads::programs::Params;
use nix::unistd::User;

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
    /// The tool that serves the others, if there is one.
    pub server: Option<&'static str>,
    /// The room for a kernel's source tree and what is made of it, if it works on one.
    pub tree: Option<tree::Room>,
    /// Refuses what it cannot do of the workload's parameters.
    pub can: fn(&Params) -> Result<()>,
    /// Its commands.
    pub plan: fn(&Params, &At<'_>) -> Result<Plan>,
    /// Its figures in what it printed, by the workload's names.
    pub figures: Figures,
}

/// Reads figures: what was printed, the parameters, what was seen of the measured part.
pub(crate) type Figures = fn(&str, &Params, Seen) -> Read;
/// Figures by name, where there are any.
pub(crate) type Read = Option<Vec<(&'static str, f64)>>;

/// The measured part from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// How long it took.
    pub seconds: f64,
    /// Whether it ended by itself.
    pub ended: bool,
}

/// How long the commands of the measured part may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Limit {
    /// As long as they like: they have limits of their own.
    #[default]
    Own,
    /// No longer; that is a failure.
    Fails(Duration),
    /// Then they are ended, and what they did until then counts.
    Ends(Duration),
    /// Then they are ended, and it is known that they take longer.
    Tells(Duration),
}

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
    &kernel::KERNEL_COMPILE,
    &kernel::KERNEL_TASKS,
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
    /// Files that are read are filled with noise: the disk is a real one.
    pub noise: bool,
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
    /// Before anything else, by root, who sees all files as iosched does; then all belongs to the program's user.
    pub lay: Vec<Words>,
    /// Before the measured part, without the server.
    pub prepare: Vec<Words>,
    /// Runs beside the commands of the next three parts, and is stopped and started again before the measured one.
    pub server: Option<Server>,
    /// Before the measured part, with the server.
    pub fill: Vec<Words>,
    /// What was written before is still in memory in the measured part: the caches are not dropped.
    pub keeps_caches: bool,
    /// The measured part.
    pub run: Vec<Words>,
    /// How long that may take.
    pub limit: Limit,
    /// What tells figures afterwards.
    pub ask: Vec<Words>,
    /// A file in its directory, and the lines that it has at least after a run that did all of its I/O. Servers go on when
    /// the disk is full.
    pub log: Option<(&'static str, u64)>,
}

impl Plan {
    /// Whether the log that it must leave is whole. `own` is the directory.
    ///
    /// # Errors
    /// [`Error::Trial`] if lines are missing, [`Error::Io`].
    pub(crate) fn logged(&self, own: &Path) -> Result<()> {
        let Some((name, wanted)) = self.log else { return Ok(()) };
        let path = own.join(name);
        let io = |e| Error::io("reading", &path, e);
        // The directory is another user's, who may have made a link or a pipe of it.
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let mut file =
            fs::OpenOptions::new().read(true).custom_flags(flags).open(&path).map_err(io)?;
        let (mut lines, mut part) = (0, vec![0; 1 << 20]);
        loop {
            let n = file.read(&mut part).map_err(io)?;
            if n == 0 {
                break;
            }
            lines += part[..n].iter().filter(|b| **b == b'\n').count() as u64;
        }
        if lines >= wanted {
            return Ok(());
        }
        let message = format!(
            "{name} has {lines} lines, and {wanted} were to be written: the disk was full?"
        );
        Err(Error::Trial { message })
    }
}

/// The recipe for a workload.
#[must_use]
pub(crate) fn of(workload: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|r| r.workload == workload).copied()
}

/// The workloads behind which there is a real program.
pub fn real_programs() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|r| r.workload)
}

/// The figures of a workload in what its real program printed in two seconds; with `ended` false it was stopped then. `None`
/// where there is no such program.
///
/// # Errors
/// As of a run: [`Error::Tool`] with the first lines of output that has none.
pub fn figures_in(
    printed: &str,
    workload: &str,
    params: &Params,
    ended: bool,
) -> Option<Result<Vec<(&'static str, f64)>>> {
    of(workload).map(|recipe| recipe.read(printed, params, Seen { seconds: 2.0, ended }))
}

/// The recipe that a trial runs, with its parameters, if it runs a real program.
pub(crate) fn behind(trial: &Trial) -> Option<(&'static Recipe, &Params)> {
    let work = trial.work.load()?.program()?;
    let real = work.live == ProgramKind::Real;
    real.then(|| of(work.program.name)).flatten().map(|recipe| (recipe, &work.params))
}

/// What a trial's load is called, and the bytes that its files have at least at some time.
///
/// # Errors
/// [`Error::NoTool`] without a tree, [`Error::Tool`] for an archive that cannot be read.
pub(crate) fn room(
    trial: &Trial,
    load: &dyn Load,
    own: &[(&'static str, PathBuf)],
) -> Result<(&'static str, Bytes)> {
    let room = behind(trial).and_then(|(recipe, params)| Some((recipe.tree?, params)));
    let needed = match room {
        Some((room, params)) => room(params, tree::bytes(&tree::find(own)?.0)?),
        None => load.room(),
    };
    Ok((load.title(), needed))
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

/// What a program of another user is started with.
static AROUND: &[Tool] = &[around("setpriv"), around("unshare")];

const fn around(name: &'static str) -> Tool {
    Tool { name, folders: &[], package: "util-linux", version: ("", &[]) }
}

impl Recipe {
    /// Looks for everything that it needs. `own` are the user's own files of tools.
    ///
    /// # Errors
    /// [`Error::NoTool`] with its package, [`Error::OldTool`], [`Error::Unavailable`], [`Error::Interrupted`].
    pub(crate) fn find(
        &self,
        own: &[(&'static str, PathBuf)],
        interrupt: &Interrupt,
    ) -> Result<Found> {
        let mut found = Found::look(self.tools, own, interrupt)?;
        if self.tree.is_some() {
            let (tree, version) = tree::find(own)?;
            found.add(tree::TREE, tree, version);
        }
        if !self.users.is_empty()
            && let Some(tool) = AROUND.iter().find(|t| t.file(&[]).is_none())
        {
            return Err(tool.missing());
        }
        Ok(found)
    }

    /// Who runs it, if not root.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where none of its users is there.
    pub(crate) fn user(&self) -> Result<Option<User>> {
        let known = |name: &&str| User::from_name(name).ok().flatten();
        let user = self.users.iter().find_map(known);
        if user.is_none() && !self.users.is_empty() {
            let users = self.users.join(" nor ");
            return Err(Error::Unavailable {
                what: format!("a user for {}", self.main()),
                why: format!("it does not run as root, and there is neither {users}"),
                help: format!("adduser --system {}", self.users.first().unwrap_or(&"")),
            });
        }
        Ok(user)
    }

    /// What it does on this machine, in a sentence.
    pub(crate) fn does(&self, own: &[(&'static str, PathBuf)]) -> String {
        let main = self.tools.first().and_then(|t| t.file(own));
        let main = main.map_or_else(|| self.main().into(), |file| file.display().to_string());
        let user = self.user().ok().flatten().map_or(String::new(), |u| format!(" as {}", u.name));
        if self.tree.is_some() {
            let tree =
                tree::find(own).map_or("none".into(), |(tree, _)| tree.display().to_string());
            return format!(
                "{} is {main}{user}, on a copy of the kernel's source tree {tree}",
                self.workload
            );
        }
        let Some(server) = self.server else {
            return format!("{} is the program {main}", self.workload);
        };
        format!(
            "{} is the program {main}; for it a server is started, {server}{user}, which ends with the run",
            self.workload
        )
    }

    /// The name of the program that prints the figures.
    pub(crate) fn main(&self) -> &'static str {
        self.tools.first().map_or("", |t| t.name)
    }

    /// The package of that program.
    pub(crate) fn package(&self) -> &'static str {
        self.tools.first().map_or("", |t| t.package)
    }

    /// Its figures.
    ///
    /// # Errors
    /// [`Error::Tool`] with the first lines of output that has none, and the figures that were expected.
    pub(crate) fn read(
        &self,
        printed: &str,
        params: &Params,
        seen: Seen,
    ) -> Result<Vec<(&'static str, f64)>> {
        let found = (self.figures)(printed, params, seen);
        found.filter(|f| !f.is_empty() && f.iter().all(|(_, v)| v.is_finite())).ok_or_else(|| {
            let names = of_text(self.workload).map_or(Vec::new(), |d| {
                d.figures.iter().map(|f| f.name).take(4).collect::<Vec<_>>()
            });
            let status = format!("an end without its figures (such as {})", names.join(", "));
            scene::failed(self.main(), &status, &complaints_first(printed))
        })
    }
}

/// The lines that may say what went wrong come first, as only some are told: ab begins with three about itself.
fn complaints_first(printed: &str) -> String {
    let complains = |l: &&str| ["ailed", "rror", "Non-2xx"].iter().any(|word| l.contains(word));
    let (complaints, others): (Vec<&str>, Vec<&str>) = printed.lines().partition(complains);
    [complaints, others].concat().join("\n")
}

/// The number at a line's end or before a word: the first that parses.
fn number(text: &str) -> Option<f64> {
    text.split_whitespace().find_map(|w| w.trim_matches(['(', ')', '=', ',']).parse().ok())
}

#[cfg(test)]
mod tests;
