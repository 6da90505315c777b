//! The real programs behind workloads of the same name: sqlite3 for `sqlite`, fs_mark for `fs-mark`.
//!
//! Another program is a file here and a line of [`RECIPES`]: how it is called with the workload's parameters, and where
//! its output has the workload's figures. What it cannot do is refused; the workload's own text can (`program = "text"`).

mod fs_mark;
mod iozone;
mod pg_test_fsync;
mod postmark;
mod sqlite;

use std::fs::{self, File};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use iosched_workloads::programs::Params;

use crate::error::{Error, Result};
use crate::load::child::Load;
use crate::sys;

/// A real program.
#[derive(Debug)]
pub(crate) struct Recipe {
    /// The workload that it is known for.
    pub workload: &'static str,
    /// Its file's name.
    pub tool: &'static str,
    /// Where it lies if not on the path: folders; `*` stands for any part of one level.
    pub folders: &'static [&'static str],
    /// The Debian package; empty for one that Debian does not have.
    pub package: &'static str,
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
    &pg_test_fsync::PG_TEST_FSYNC,
    &iozone::IOZONE,
];

/// Where a program works.
pub(crate) struct At<'a> {
    /// Its directory on the tested disk.
    pub dir: &'a Path,
    /// A place beside it for what it is told. Programs start here.
    pub scratch: &'a Path,
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
}

/// What is run: lists of arguments, one command after the other.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Before the measured part.
    pub prepare: Vec<Vec<String>>,
    /// The measured part.
    pub run: Vec<Vec<String>>,
}

/// The recipe for a workload.
#[must_use]
pub(crate) fn of(workload: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|r| r.workload == workload).copied()
}

/// What the workload's text could do and this program cannot.
fn only_text(what: &str) -> Error {
    Error::input(what, "run iosched's own text of it: --program text")
}

impl Recipe {
    /// The program's file: the user's own one if there is one, else what the path has.
    ///
    /// # Errors
    /// [`Error::NoTool`] with its package.
    pub(crate) fn find(&self, own: &[(&'static str, PathBuf)]) -> Result<PathBuf> {
        if let Some((_, file)) = own.iter().find(|(tool, _)| *tool == self.tool) {
            return Ok(file.clone());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&path).map(|d| d.join(self.tool));
        let elsewhere = self.folders.iter().flat_map(|f| matching(f)).map(|d| d.join(self.tool));
        on_path.chain(elsewhere).find(|p| p.is_file()).ok_or_else(|| Error::NoTool {
            tool: self.tool.into(),
            package: match self.package {
                "" => {
                    let tool = self.tool;
                    format!("Debian has no package of it; give it with --{tool} PATH, or use --program text")
                },
                package => package.into(),
            },
        })
    }

    /// Runs commands one after the other; what they printed, and the seconds that they took together.
    ///
    /// # Errors
    /// [`Error::Tool`] with the program's first words, what `check` says.
    pub(crate) fn run(
        &self,
        tool: &Path,
        commands: &[Vec<String>],
        (namespace, scratch): (BorrowedFd<'_>, &Path),
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<(String, f64)> {
        let (mut printed, mut seconds) = (String::new(), 0.0);
        for arguments in commands {
            let (out, err) = (scratch.join("printed"), scratch.join("errors"));
            let create = |p: &Path| File::create(p).map_err(|e| Error::io("creating", p, e));
            let mut command = Command::new(tool);
            command.args(arguments);
            sys::in_mounts(&mut command, namespace, scratch);
            command.stdout(create(&out)?).stderr(create(&err)?);
            let began = Instant::now();
            let status = Load::start(&mut command, self.package)?
                .wait(Duration::MAX / 4, check)?
                .filter(std::process::ExitStatus::success);
            seconds += began.elapsed().as_secs_f64();
            let read = |p: &Path| fs::read_to_string(p).unwrap_or_default();
            if status.is_none() {
                return Err(self.failed(&format!("{}\n{}", read(&err), read(&out))));
            }
            printed += &read(&out);
        }
        Ok((printed, seconds))
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
        found.filter(|f| f.iter().all(|(_, v)| v.is_finite())).ok_or_else(|| self.failed(printed))
    }

    fn failed(&self, words: &str) -> Error {
        let lines = words.lines().map(str::trim).filter(|l| !l.is_empty()).take(3);
        Error::Tool {
            tool: self.tool.into(),
            status: "no usable end".into(),
            message: lines.collect::<Vec<_>>().join("; "),
        }
    }
}

/// Folders by a pattern in which one part may be `*`, the newest version first.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let Some((above, below)) = pattern.split_once("/*/") else { return vec![pattern.into()] };
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    let version =
        |p: &PathBuf| -> u64 { p.file_name().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(0) };
    found.sort_by_key(|p| std::cmp::Reverse(version(p)));
    found.into_iter().map(|p| p.join(below)).collect()
}

/// The number at a line's end or before a word: the first that parses.
fn number(text: &str) -> Option<f64> {
    text.split_whitespace().find_map(|w| w.trim_matches(['(', ')', '=', ',']).parse().ok())
}

#[cfg(test)]
mod tests;
