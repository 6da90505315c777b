//! The results file: where it is, and what is put into it during a run.

use std::path::PathBuf;

use anyhow::Context;
use iosched_experiment::Trial;
use iosched_lab::{Storing, Tools};
use iosched_results::store::{Store, StoreError};

use crate::args::DbArgs;
use crate::choose::Chosen;
use crate::fail::{Failure, Outcome};
use crate::files::note;

/// `$XDG_DATA_HOME/iosched/results.db`, else below `~/.local/share`.
pub(crate) fn default_path() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let data =
        absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("iosched").join("results.db"))
}

/// The results file that is meant.
pub(crate) fn path(db: &DbArgs) -> Outcome<PathBuf> {
    let path = db.db.clone().or_else(default_path).ok_or_else(|| {
        Failure::with_help(
            "there is no home folder for the results file",
            "name one with --db FILE",
        )
    })?;
    if path.is_dir() {
        let message = format!("{} is a folder, not a results file", path.display());
        let help = format!("name a file: --db {}", path.join("results.db").display());
        return Err(Failure::with_help(message, help));
    }
    Ok(path)
}

/// The results file for reading.
pub(crate) fn open_read_only(db: &DbArgs) -> Outcome<Store> {
    let path = path(db)?;
    if !path.exists() {
        let message = format!("there is no results file {}", path.display());
        return Err(Failure::with_help(
            message,
            "`iosched run` makes one; --db FILE names another",
        ));
    }
    match Store::open_read_only(&path) {
        // Opening it for writing brings it up to date (a copy of the old one is kept).
        Err(StoreError::Older { .. }) => Ok(Store::open(&path)?),
        other => Ok(other?),
    }
}

/// The results file for writing; made with its folder when it does not exist.
pub(crate) fn open(db: &DbArgs) -> Outcome<Store> {
    let path = path(db)?;
    crate::files::no_disk(&path)?;
    if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    Ok(Store::open(&path)?)
}

/// Begins an experiment in the results file. A file named by the user must work; the default one may be missing (a
/// read-only home, say), which is said.
pub(crate) fn begin(
    db: &DbArgs,
    chosen: &Chosen,
    trials: &[Trial],
    tools: &Tools,
) -> Outcome<Option<Storing>> {
    let Chosen { experiment: e, definition } = chosen;
    let begun = open(db).and_then(|store| {
        Ok(Storing::begin(store, (e, definition), trials, tools, &mut |text| note(text))?)
    });
    match begun {
        Ok(s) => Ok(Some(s)),
        Err(e) if db.db.is_some() => Err(e),
        Err(e) => {
            note(&format!("warning: results are not stored: {}", e.messages.join("; ")));
            Ok(None)
        }
    }
}
