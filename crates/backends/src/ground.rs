//! A place of ours on a tested disk: a directory on a file system of ours on an emulated disk, or one in another user's
//! file system, which is written down before it is made.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use iosched_lab::machine::Interrupt;
use iosched_types::Bytes;
use iosched_types::units::show_bytes;
use rustix::fs::{Mode, fchmod, fstatvfs, mkdirat};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};

use crate::emulate::EmulatedDisk;
use crate::error::{Error, Result};
use crate::filesystem::FileSystem;
use crate::guardian::{Guardian, GuardianCommand};
use crate::made::{self, MadeDirectory};
use crate::mounts;
use crate::state::{Change, StateFile};

/// The place. A file system of ours is mounted where nobody sees it and goes away with the value.
///
/// Everything is done through the descriptor of the directory. What its name leads to later, and whose that is, changes
/// nothing; a run that finds it changed fails.
#[derive(Debug)]
pub struct Ground {
    /// The directory.
    held: OwnedFd,
    /// It by its descriptor: a path that another process of ours can follow, too.
    dir: PathBuf,
    purpose: Purpose,
    /// A namespace in which it has a short path, and that. Made for the first program that needs one, and dropped before the place.
    shown: OnceLock<(OwnedFd, &'static Path)>,
    place: Where,
}

/// The directory that programs work in.
const RUN: &str = "run";
/// Where a namespace shows the place: the first of these that hides nothing which is needed. Every Linux has them.
const SHOWN: [&str; 4] = ["/mnt", "/media", "/srv", "/opt"];

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
        interrupt: &Interrupt,
    ) -> Result<Ground> {
        disk.fast_forward();
        let node = disk.node();
        kind.make(&node, purpose.stem(), room.min(disk.bytes()), interrupt)?;
        let mount = kind.mount(&node)?;
        let io = |e: Errno| Error::io("making a directory on", &node, e.into());
        match mkdirat(&mount, purpose.stem(), Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(io(e)),
        }
        let held = made::enter(&mount, OsStr::new(purpose.stem())).map_err(io)?;
        Ok(Ground::of(held, purpose, Where::Mount(mount, room)))
    }

    fn of(held: OwnedFd, purpose: Purpose, place: Where) -> Ground {
        let dir = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), held.as_raw_fd()));
        Ground { held, dir, purpose, shown: OnceLock::new(), place }
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
        Self::make(made, purpose, state_dir, guardian)
    }

    fn make(
        mut made: MadeDirectory,
        purpose: Purpose,
        state_dir: &Path,
        guardian: Option<&GuardianCommand>,
    ) -> Result<Ground> {
        let name = format!("{}-{}", purpose.stem(), std::process::id());
        let mut state = StateFile::create(state_dir, &name, Change::Directory(made.clone()))?;
        let watch = match guardian.map(|g| Guardian::start(g, &state)).transpose() {
            Ok(g) => g,
            Err(e) => {
                state.finish()?;
                return Err(e);
            }
        };
        let held = match made.make() {
            Ok(held) => held,
            Err(e) => {
                state.finish()?;
                return Err(e);
            }
        };
        let written = made.own.as_ref().map_or(Ok(()), |own| state.made(own));
        let marked = written.and_then(|()| made.mark(&held));
        // Dropping it undoes it.
        let ground = Ground::of(held, purpose, Where::Directory(made, Some(state), watch));
        marked.map(|()| ground)
    }

    /// The directory, by its descriptor: its name may lead elsewhere by now.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory, open.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(&self) -> Result<File> {
        let again = made::enter(&self.held, OsStr::new("."));
        again.map(File::from).map_err(|e| Error::io("opening", &self.dir, e.into()))
    }

    /// Makes sure that its name leads to it: others look for it there, and so do those who clean up.
    ///
    /// # Errors
    /// [`Error::Trial`] if not, [`Error::Io`].
    pub(crate) fn in_place(&self) -> Result<()> {
        match &self.place {
            Where::Mount(..) => Ok(()),
            Where::Directory(made, ..) => made.leads_to(&self.held),
        }
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

    /// An empty directory in it, what was in the last one goes. Only its owner gets into it: what root writes there is of
    /// known names, a server has its sockets there, and umasks may be empty.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn fresh(&self) -> Result<File> {
        let name = OsStr::new(RUN);
        made::remove_inside(&self.held, name);
        mkdirat(&self.held, name, Mode::from_raw_mode(0o700))
            .map_err(|e| Error::io("creating", self.run_dir(), e.into()))?;
        let made = made::enter(&self.held, name);
        made.map(File::from).map_err(|e| Error::io("opening", self.run_dir(), e.into()))
    }

    /// Makes sure that files of a load have room.
    ///
    /// # Errors
    /// [`Error::TooSmall`] with both figures, [`Error::Io`].
    pub(crate) fn check_room(&self, (what, needed): (&str, Bytes)) -> Result<()> {
        let shown = match &self.place {
            Where::Mount(..) => "the emulated disk".into(),
            Where::Directory(made, ..) => made.path.display().to_string(),
        };
        let found = fstatvfs(&self.held);
        let found = found.map_err(|e| Error::io("looking at the room in", &self.dir, e.into()))?;
        fits(what, needed, free(&found), &shown)
    }

    /// Opens the way to the directory of [`fresh`](Ground::fresh) for another user, whatever the umask of this program is.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open_way(&self) -> Result<()> {
        fchmod(&self.held, Mode::from_raw_mode(0o755))
            .map_err(|e| Error::io("opening the way to", self.run_dir(), e.into()))
    }

    /// A mount namespace for programs, and the path of [`fresh`](Ground::fresh)'s directory in it: a real one, without
    /// links, as some programs want it, and a short one. `needed` are files and folders that they must see there.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where mounting is not allowed or every place is needed, [`Error::Io`].
    pub fn shown(&self, needed: &[PathBuf]) -> Result<(BorrowedFd<'_>, PathBuf)> {
        let below = match &self.place {
            Where::Mount(..) => self.purpose.stem(),
            Where::Directory(..) => "",
        };
        let (namespace, at) = match self.shown.get() {
            Some(shown) => shown,
            None => {
                let at = place_beside(needed)?;
                let copy = self.copy()?;
                let tree = copy.as_ref().map_or_else(|| self.mount(), AsFd::as_fd);
                let made = mounts::namespace(|| {
                    mounts::put(tree, at)?;
                    mounts::own_memory()
                })?;
                self.shown.get_or_init(|| (made, at))
            }
        };
        Ok((namespace.as_fd(), at.join(below).join(RUN)))
    }

    /// A mount of the directory of its own, which can be put into a namespace. A file system of ours needs none.
    ///
    /// # Errors
    /// [`Error::Unavailable`] where mounting is not allowed, [`Error::Io`].
    pub(crate) fn copy(&self) -> Result<Option<OwnedFd>> {
        if matches!(self.place, Where::Mount(..)) {
            return Ok(None);
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        // Its own mount is none of a new namespace, so this comes before that.
        open_tree(&self.held, "", flags).map(Some).map_err(|e| match e {
            Errno::PERM => mounts::denied(e.into()),
            e => Error::io("looking at", &self.dir, e.into()),
        })
    }

    /// The mount that it lies on, if that is ours, else the directory.
    fn mount(&self) -> BorrowedFd<'_> {
        match &self.place {
            Where::Mount(mount, _) => mount.as_fd(),
            Where::Directory(..) => self.held.as_fd(),
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
        made.remove(&file.again())?;
        file.finish()?;
        if let Some(guardian) = guardian.take() {
            guardian.join();
        }
        Ok(())
    }
}

/// The first place that hides none of these from a program.
fn place_beside(needed: &[PathBuf]) -> Result<&'static Path> {
    let hides = |at: &Path| {
        // A name may lead there through links.
        let below = |p: &PathBuf| {
            p.starts_with(at) || p.canonicalize().is_ok_and(|real| real.starts_with(at))
        };
        !at.is_dir() || needed.iter().any(below)
    };
    SHOWN.into_iter().map(Path::new).find(|at| !hides(at)).ok_or_else(|| Error::Unavailable {
        what: "a place where programs see their directory".into(),
        why: format!("{} are missing, or hold tools or the state folder", SHOWN.join(", ")),
        help: "--state-dir names another state folder".into(),
    })
}

/// Makes sure that so much has room in a directory.
///
/// # Errors
/// [`Error::TooSmall`] with both figures, [`Error::Io`].
pub(crate) fn check_room(dir: &Path, shown: &str, what: &str, needed: Bytes) -> Result<()> {
    let found = rustix::fs::statvfs(dir);
    let found = found.map_err(|e| Error::io("looking at the room in", dir, e.into()))?;
    fits(what, needed, free(&found), shown)
}

/// What only root may use does not count: servers run as others, and the system needs it.
fn free(found: &rustix::fs::StatVfs) -> Bytes {
    found.f_bavail.saturating_mul(found.f_frsize)
}

/// Makes sure that so much is enough.
///
/// # Errors
/// [`Error::TooSmall`] with both figures.
pub(crate) fn fits(what: &str, needed: Bytes, free: Bytes, shown: &str) -> Result<()> {
    if needed <= free {
        return Ok(());
    }
    let mut words = [needed, free].map(|bytes| show_bytes(bytes as f64));
    if words[0] == words[1] {
        words = [needed, free].map(|bytes| format!("{bytes} bytes"));
    }
    let [needed, free] = words;
    Err(Error::TooSmall { what: what.into(), needed, path: shown.into(), free })
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Call `finish` to get the error. A failed change stays written down.
        let _ = self.take_down();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    /// Between the choice of the place and the making another file system was mounted there: nothing was made.
    #[test]
    fn a_start_that_is_refused_leaves_nothing_to_restore() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let mut made = MadeDirectory::choose(dir.path(), "iosched-program-1").unwrap();
        made.parent = "another".into();
        Ground::make(made, Purpose::Program, &state, None).unwrap_err();
        assert!(crate::state::list(&state).is_empty());
    }

    /// The place, after its name was made to lead to a directory of somebody else's.
    fn covered(dir: &Path) -> (Ground, PathBuf) {
        let ground = Ground::in_directory(dir, Purpose::Program, &dir.join("state"), None).unwrap();
        fs::write(ground.run_dir().join("x"), "ours").unwrap_err();
        ground.fresh().unwrap();
        fs::write(ground.run_dir().join("x"), "ours").unwrap();
        ground.in_place().unwrap();
        let Where::Directory(made, ..) = &ground.place else { unreachable!() };
        let precious = dir.join("precious");
        fs::create_dir_all(precious.join("run/sub")).unwrap();
        fs::write(precious.join("run/sub/x"), "kept").unwrap();
        fs::set_permissions(&precious, fs::Permissions::from_mode(0o700)).unwrap();
        fs::rename(&made.path, dir.join("moved")).unwrap();
        symlink(&precious, &made.path).unwrap();
        (ground, precious)
    }

    #[test]
    fn what_its_name_leads_to_later_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (ground, precious) = covered(dir.path());
        let e = ground.in_place().unwrap_err();
        assert!(e.to_string().contains("does not lead to the run's directory"), "{e}");
        let run = ground.fresh().unwrap();
        assert!(!dir.path().join("moved/run/x").exists(), "its own was emptied");
        assert_eq!(run.metadata().unwrap().mode() & 0o777, 0o700, "it is its owner's alone");
        ground.open_way().unwrap();
        fs::write(ground.run_dir().join("y"), "ours").unwrap();
        assert!(dir.path().join("moved/run/y").exists());
        assert_eq!(fs::read_to_string(precious.join("run/sub/x")).unwrap(), "kept");
        assert_eq!(fs::read_dir(precious.join("run")).unwrap().count(), 1);
        assert_eq!(precious.metadata().unwrap().mode() & 0o777, 0o700);
        let e = ground.finish().unwrap_err().to_string();
        let again = format!("iosched restore --state-dir {}", dir.path().join("state").display());
        assert!(e.contains("was moved or removed") && e.ends_with(&again), "{e}");
        assert_eq!(fs::read_to_string(precious.join("run/sub/x")).unwrap(), "kept");
    }

    #[test]
    fn what_programs_need_is_not_hidden() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        symlink("/media", &link).unwrap();
        let place = |needed: &[&Path]| {
            let needed: Vec<PathBuf> = needed.iter().map(|p| p.to_path_buf()).collect();
            place_beside(&needed).map(|at| at.display().to_string())
        };
        assert_eq!(place(&[Path::new("/usr/bin/sh"), Path::new("/mnt2")]).unwrap(), "/mnt");
        assert_eq!(place(&[Path::new("/mnt/data/state"), &link]).unwrap(), "/srv");
        let all = SHOWN.map(Path::new);
        assert!(place(&all).unwrap_err().to_string().contains("hold tools"));
    }

    #[test]
    fn too_little_room_is_told_in_figures_that_differ() {
        let say = |needed, free| fits("a", needed, free, "/x").unwrap_err().to_string();
        assert_eq!(say(2 << 30, 1 << 30), "a needs at least 2.00 GiB, and /x has 1.00 GiB");
        let close = say((1 << 30) + 1, 1 << 30);
        assert_eq!(close, "a needs at least 1073741825 bytes, and /x has 1073741824 bytes");
        fits("a", 1, 1, "/x").unwrap();
    }
}
