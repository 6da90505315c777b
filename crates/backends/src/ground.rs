//! A place of ours on a tested disk: a directory on a file system of ours on an emulated disk, or one in another user's
//! file system, which is written down before it is made.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use iosched_experiment::Load;
use iosched_types::Bytes;
use iosched_types::units::show_bytes;
use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

use crate::emulate::EmulatedDisk;
use crate::error::{Error, Result};
use crate::filesystem::FileSystem;
use crate::guardian::{Guardian, GuardianCommand};
use crate::made::MadeDirectory;
use crate::mounts;
use crate::state::{Change, StateFile};

/// The place. A file system of ours is mounted where nobody sees it and goes away with the value.
#[derive(Debug)]
pub struct Ground {
    dir: PathBuf,
    /// A namespace in which it has a short path. Made for the first program that needs one, and dropped before the place.
    shown: OnceLock<OwnedFd>,
    place: Where,
}

/// The directory that programs work in.
const RUN: &str = "run";
/// Where a namespace shows the place. It is there on every Linux, and hidden from programs there for a while.
const SHOWN: &str = "/mnt";

/// What a place is for; its directory is named after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Starts of commands.
    Startup,
    /// Programs over system calls.
    Program,
}

impl Purpose {
    /// All.
    pub const ALL: [Purpose; 2] = [Purpose::Startup, Purpose::Program];

    /// How its directories begin.
    #[must_use]
    pub fn stem(self) -> &'static str {
        match self {
            Purpose::Startup => "iosched-startup",
            Purpose::Program => "iosched-program",
        }
    }
}

#[derive(Debug)]
enum Where {
    /// A mount of ours that nobody sees, for as long as this is open, and what it has room for.
    Mount(OwnedFd, Bytes),
    /// A directory that we make in another user's file system, written down first.
    Directory(MadeDirectory, Option<StateFile>, Option<Guardian>),
}

impl Ground {
    /// Makes a file system with room for so much on an emulated disk, which answers at once from now until it is reset.
    ///
    /// # Errors
    /// [`Error::NoTool`] without its `mkfs`, [`Error::Tool`] with the words of `mkfs`, [`Error::Io`], and mount options
    /// that the running kernel does not take.
    pub fn on_emulated(
        disk: &EmulatedDisk,
        purpose: Purpose,
        room: Bytes,
        kind: &FileSystem,
    ) -> Result<Ground> {
        disk.fast_forward();
        let node = disk.node();
        kind.make(&node, purpose.stem(), room.min(disk.bytes()))?;
        let mount = kind.mount(&node)?;
        // A path that a command's own process can follow too.
        let dir = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), mount.as_raw_fd()));
        let dir = dir.join(purpose.stem());
        if !dir.exists() {
            fs::create_dir(&dir).map_err(|e| Error::io("creating", &dir, e))?;
        }
        Ok(Ground { dir, shown: OnceLock::new(), place: Where::Mount(mount, room) })
    }

    /// Makes a directory of ours in a directory of a mounted file system.
    ///
    /// # Errors
    /// [`Error::Io`], and what keeps the change from being written down.
    pub fn in_directory(
        dir: &Path,
        purpose: Purpose,
        state_dir: &Path,
        guardian: Option<&GuardianCommand>,
    ) -> Result<Ground> {
        let dir = fs::canonicalize(dir).map_err(|e| Error::io("looking at", dir, e))?;
        let name = format!("{}-{}", purpose.stem(), std::process::id());
        let made = MadeDirectory::choose(&dir, &name)?;
        let state = StateFile::create(state_dir, &name, Change::Directory(made.clone()))?;
        let watch = match guardian.map(|g| Guardian::start(g, &state)).transpose() {
            Ok(g) => g,
            Err(e) => {
                state.finish()?;
                return Err(e);
            }
        };
        // From here on dropping it undoes it.
        let place = Where::Directory(made.clone(), Some(state), watch);
        let mut ground = Ground { dir: made.path, shown: OnceLock::new(), place };
        if let Where::Directory(made, Some(state), _) = &mut ground.place {
            state.made(&made.make()?)?;
        }
        Ok(ground)
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory, open.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(&self) -> Result<File> {
        File::open(&self.dir).map_err(|e| Error::io("opening", &self.dir, e))
    }

    /// The file system of ours, if it is one, and for how much it has room.
    #[must_use]
    pub fn mounted(&self) -> Option<(BorrowedFd<'_>, Bytes)> {
        match &self.place {
            Where::Mount(mount, room) => Some((mount.as_fd(), *room)),
            Where::Directory(..) => None,
        }
    }

    /// Where [`fresh`](Ground::fresh) makes its directory.
    #[must_use]
    pub fn run_dir(&self) -> PathBuf {
        self.dir.join(RUN)
    }

    /// An empty directory in it, what was in the last one goes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn fresh(&self) -> Result<File> {
        let dir = self.run_dir();
        crate::made::remove_scratch(&dir);
        fs::create_dir(&dir).map_err(|e| Error::io("creating", &dir, e))?;
        File::open(&dir).map_err(|e| Error::io("opening", &dir, e))
    }

    /// Makes sure that the files of a load have room.
    ///
    /// # Errors
    /// [`Error::TooSmall`] with both figures, [`Error::Io`].
    pub(crate) fn check_room(&self, load: &Load) -> Result<()> {
        let shown = match &self.place {
            Where::Mount(..) => "the emulated disk".into(),
            Where::Directory(made, ..) => made.path.display().to_string(),
        };
        check_room(&self.dir, &shown, load)
    }

    /// Gives the directory of [`fresh`](Ground::fresh) to a user.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn give(&self, user: &nix::unistd::User) -> Result<()> {
        let run = self.run_dir();
        let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
        std::os::unix::fs::chown(&run, Some(uid), Some(gid))
            .map_err(|e| Error::io("giving away", &run, e))?;
        // The way there, whatever the umask of this program is.
        fs::set_permissions(&self.dir, fs::Permissions::from_mode(0o755))
            .map_err(|e| Error::io("opening the way to", &run, e))
    }

    /// A mount namespace for programs, and the path of [`fresh`](Ground::fresh)'s directory in it: a real one, without
    /// links, as some programs want it, and a short one.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where mounting is not allowed, [`Error::Io`].
    pub fn shown(&self) -> Result<(BorrowedFd<'_>, PathBuf)> {
        let (at, below) = match &self.place {
            Where::Mount(_, _) => (Path::new(SHOWN), self.dir.file_name().unwrap_or_default()),
            Where::Directory(..) => (Path::new(SHOWN), OsStr::new("")),
        };
        let namespace = match self.shown.get() {
            Some(namespace) => namespace,
            None => {
                let made = mounts::namespace(|| self.show(at))?;
                self.shown.get_or_init(|| made)
            }
        };
        Ok((namespace.as_fd(), at.join(below).join(RUN)))
    }

    fn show(&self, at: &Path) -> Result<()> {
        match &self.place {
            Where::Mount(mount, _) => mounts::put(mount.as_fd(), at),
            Where::Directory(..) => {
                let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
                let tree = open_tree(CWD, &self.dir, flags);
                mounts::put(
                    tree.map_err(|e| Error::io("looking at", &self.dir, e.into()))?.as_fd(),
                    at,
                )
            }
        }
    }

    /// Takes away what was made.
    ///
    /// # Errors
    /// Why a directory stays, such as a mount inside; its state file stays then too, for `iosched restore`.
    pub fn finish(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        self.shown = OnceLock::new();
        let Where::Directory(made, state, guardian) = &mut self.place else { return Ok(()) };
        let Some(file) = state.take() else { return Ok(()) };
        made.remove()?;
        file.finish()?;
        if let Some(guardian) = guardian.take() {
            guardian.join();
        }
        Ok(())
    }
}

/// Makes sure that the files of a load have room in a directory.
///
/// # Errors
/// [`Error::TooSmall`] with both figures, [`Error::Io`].
pub(crate) fn check_room(dir: &Path, shown: &str, load: &Load) -> Result<()> {
    let found = rustix::fs::statvfs(dir);
    let found = found.map_err(|e| Error::io("looking at the room in", dir, e.into()))?;
    // What only root may use does not count: servers run as others, and the system needs it.
    fits(load, found.f_bavail.saturating_mul(found.f_frsize), shown)
}

/// Makes sure that so much is enough for the files of a load.
///
/// # Errors
/// [`Error::TooSmall`] with both figures.
pub(crate) fn fits(load: &Load, free: Bytes, shown: &str) -> Result<()> {
    let needed = load.room();
    if needed <= free {
        return Ok(());
    }
    let words = |bytes: Bytes| show_bytes(bytes as f64);
    Err(Error::TooSmall {
        what: load.title().into(),
        needed: words(needed),
        path: shown.into(),
        free: words(free),
    })
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Call `finish` to get the error. A failed change stays written down.
        let _ = self.take_down();
    }
}
