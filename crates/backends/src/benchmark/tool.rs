//! Tools: where they lie, which Debian package has them, how old they may be.

use std::fs;
use std::path::{Path, PathBuf};

use iosched_lab::machine::Interrupt;

use crate::error::{Error, Result};
use crate::load::probe;
use crate::parse::version;

/// A program of somebody else's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    /// Its file's name.
    pub name: &'static str,
    /// Where it lies if not on the path: folders; `*` stands for any part of one level. They come first.
    pub folders: &'static [&'static str],
    /// The Debian package; empty for one that Debian does not have.
    pub package: &'static str,
    /// What makes it print its version, empty where nothing does; and the oldest that will do.
    pub version: (&'static str, &'static [u32]),
}

/// Tools that were found: names, files, and what each says of its version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found(Vec<(&'static str, PathBuf, String)>);

impl Tool {
    /// Its file: the user's own one if there is one.
    pub(crate) fn file(&self, own: &[(&'static str, PathBuf)]) -> Option<PathBuf> {
        if let Some((_, file)) = own.iter().find(|(tool, _)| *tool == self.name) {
            return Some(file.clone());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Debian puts a wrapper of its own before PostgreSQL's programs, which looks for clusters of its own.
        let folders = self.folders.iter().flat_map(|f| matching(f));
        let all = folders.chain(std::env::split_paths(&path));
        // A header is read and not run.
        let header = self.name.ends_with(".h");
        let usable = |p: &PathBuf| if header { p.is_file() } else { probe::is_program(p) };
        all.map(|d| d.join(self.name)).find(usable)
    }

    /// What it says of its version, and that in numbers. Empty if it says nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if it does not answer, [`Error::Interrupted`].
    pub(crate) fn version_of(
        &self,
        file: &Path,
        interrupt: &Interrupt,
    ) -> Result<(String, Vec<u32>)> {
        let flag = self.version.0;
        if flag.is_empty() {
            return Ok(Default::default());
        }
        let printed = probe::ask(file, flag, interrupt)?.unwrap_or_default();
        Ok(version::parse(&printed).unwrap_or_default())
    }

    pub(super) fn missing(&self) -> Error {
        let name = self.name;
        let none = "Debian has no package of it; give it with";
        let package = match self.package {
            "" => format!("{none} --{name} PATH, or use --program text"),
            package => package.into(),
        };
        Error::NoTool { tool: name.into(), package }
    }

    /// What it says of its version, if that is new enough.
    fn check(&self, file: &Path, interrupt: &Interrupt) -> Result<String> {
        let (said, parts) = self.version_of(file, interrupt)?;
        let oldest = self.version.1;
        // One that does not tell will show what it can do.
        if parts.is_empty() || parts.as_slice() >= oldest {
            return Ok(said);
        }
        let needed = oldest.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
        Err(Error::OldTool { tool: self.name.into(), found: said, needed })
    }
}

impl Found {
    /// Looks for tools and at their versions.
    ///
    /// # Errors
    /// [`Error::NoTool`] with its package, [`Error::OldTool`], [`Error::Unavailable`] for one that does not answer,
    /// [`Error::Interrupted`].
    pub(crate) fn look(
        tools: &'static [Tool],
        own: &[(&'static str, PathBuf)],
        interrupt: &Interrupt,
    ) -> Result<Found> {
        let mut found = Vec::new();
        for tool in tools {
            let file = tool.file(own).ok_or_else(|| tool.missing())?;
            let said = tool.check(&file, interrupt)?;
            found.push((tool.name, file, said));
        }
        Ok(Found(found))
    }

    /// With another file.
    pub(super) fn add(&mut self, name: &'static str, file: PathBuf, version: String) {
        self.0.push((name, file, version));
    }

    /// The file of a tool.
    pub(crate) fn path(&self, tool: &str) -> &Path {
        self.0.iter().find(|t| t.0 == tool).map_or(Path::new(""), |t| &t.1)
    }

    /// The files of all.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().map(|t| &t.1)
    }

    /// The name of the tool that lies there.
    pub(crate) fn name(&self, file: &str) -> Option<&'static str> {
        self.0.iter().find(|t| t.1 == Path::new(file)).map(|t| t.0)
    }

    /// What a tool says of its version; empty if it says nothing.
    pub(crate) fn version(&self, tool: &str) -> &str {
        self.0.iter().find(|t| t.0 == tool).map_or("", |t| &t.2)
    }

    #[cfg(test)]
    pub(crate) fn named(tools: &'static [Tool]) -> Found {
        Found(tools.iter().map(|t| (t.name, t.name.into(), String::new())).collect())
    }
}

/// Folders by a pattern in which one part may be `*`, the newest version first.
pub(super) fn matching(pattern: &str) -> Vec<PathBuf> {
    let Some((above, below)) = pattern.split_once("/*/") else { return vec![pattern.into()] };
    let entries = fs::read_dir(above).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    let version =
        |p: &PathBuf| -> u64 { p.file_name().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(0) };
    found.sort_by_key(|p| std::cmp::Reverse(version(p)));
    found.into_iter().map(|p| p.join(below)).collect()
}
