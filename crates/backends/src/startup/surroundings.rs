//! The surroundings that a program expects besides its files: `/dev`, `/proc`, `/sys` and a display.
//!
//! They are mounted into the small root in a mount namespace of our own. The command enters it before it starts. So the
//! measured time does not contain making and removing the mounts.

use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

use crate::error::{Error, Result};
use crate::mounts::{self, put};

/// Directories of the machine that the small root shows; the last is where X servers have their sockets.
const DIRECTORIES: [&str; 4] = ["dev", "proc", "sys", "tmp/.X11-unix"];
/// Where the key of the display is in the small root.
const X_AUTHORITY: &str = ".Xauthority";

/// A namespace in which the small root is complete.
#[derive(Debug)]
pub(crate) struct Surroundings {
    /// The namespace.
    pub(crate) namespace: OwnedFd,
    /// The small root as seen in it.
    pub(crate) root: PathBuf,
}

impl Surroundings {
    /// Makes the namespace for `root`. A tree that is mounted nowhere yet appears at a place, and `root` lies below that.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where mounting is not allowed, [`Error::Io`].
    pub(crate) fn make(root: &Path, unseen: (BorrowedFd<'_>, &Path)) -> Result<Self> {
        let namespace = mounts::namespace(|| fill(root, unseen))?;
        Ok(Surroundings { namespace, root: root.into() })
    }
}

fn fill(root: &Path, (tree, at): (BorrowedFd<'_>, &Path)) -> Result<()> {
    // All trees are opened before the first is mounted, because one may cover another.
    let mut shown = Vec::new();
    for (from, to) in what_is_shown() {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        let tree =
            open_tree(CWD, &from, flags).map_err(|e| Error::io("looking at", &from, e.into()))?;
        shown.push((tree, root.join(to)));
    }
    put(tree, at)?;
    for (tree, to) in &shown {
        put(tree.as_fd(), to)?;
    }
    Ok(())
}

/// What is shown, and where in the small root. The command has to do without anything that a container lacks.
fn what_is_shown() -> Vec<(PathBuf, &'static str)> {
    let mut all: Vec<(PathBuf, &str)> =
        DIRECTORIES.iter().map(|d| (Path::new("/").join(d), *d)).collect();
    all.retain(|(from, _)| from.is_dir());
    all.extend(x_authority().map(|key| (key, X_AUTHORITY)));
    all
}

/// The places of the mounts, made once: directories, and a file for the key of the display.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn make_room(root: &Path) -> Result<()> {
    for dir in DIRECTORIES.map(|d| root.join(d)) {
        fs::create_dir_all(&dir).map_err(|e| Error::io("creating", &dir, e))?;
    }
    let key = root.join(X_AUTHORITY);
    fs::write(&key, "").map_err(|e| Error::io("creating", key, e))
}

/// The user's key, where there is a display with one.
fn x_authority() -> Option<PathBuf> {
    std::env::var_os("DISPLAY")?;
    let named = std::env::var_os("XAUTHORITY").map(PathBuf::from);
    let usual = std::env::var_os("HOME").map(|h| Path::new(&h).join(".Xauthority"));
    named.or(usual).filter(|p| p.is_file())
}

/// The part of our environment that a command gets: enough to find programs and the display.
pub(crate) fn environment() -> Vec<(&'static str, OsString)> {
    let mut all = vec![("PATH", super::stage::PATH.into()), ("HOME", "/".into())];
    if let Some(display) = std::env::var_os("DISPLAY") {
        all.push(("DISPLAY", display));
        all.push(("XAUTHORITY", format!("/{X_AUTHORITY}").into()));
    }
    all
}
