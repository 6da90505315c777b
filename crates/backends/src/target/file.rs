//! Files that iosched makes to write to, and how it knows them again.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::libc;
use rustix::fs::{AtFlags, CWD, SeekFrom, XattrFlags, fgetxattr, fsetxattr, seek};

use iosched_lab::machine::Interrupt;

use crate::error::{Error, Result};
use crate::made::{identity, tells};
use crate::state::no_unnamed_files;

/// The extended attribute that marks our files. Its value identifies the file, so a copy is not a file of ours.
const MARK: &str = "user.iosched.target";

/// Whether a path's last part is `iosched-NAME.img`.
#[must_use]
pub(super) fn is_our_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let inner = name.strip_prefix("iosched-").and_then(|n| n.strip_suffix(".img"));
    inner.is_some_and(|n| !n.is_empty())
}

pub(super) fn check_name(path: &Path) -> Result<()> {
    if is_our_name(&path.to_string_lossy()) {
        return Ok(());
    }
    let message = format!("there is no file {}", path.display());
    Err(Error::input(message, "a file that iosched makes is named iosched-NAME.img"))
}

/// Whether a file has our name and our mark.
pub(super) fn is_ours(file: &File, path: &str) -> bool {
    let mut value = [0u8; 128];
    let marked = fgetxattr(file, MARK, &mut value[..])
        .is_ok_and(|n| known(file).is_ok_and(|i| value.get(..n) == Some(i.as_bytes())));
    marked && is_our_name(path)
}

/// Makes a file of ours, full of noise. Removes an unfinished file if that fails.
///
/// # Errors
/// [`Error::Input`] for a name that is not ours, [`Error::DiskFull`], [`Error::Io`],
/// [`Error::Interrupted`].
pub fn create(path: &Path, bytes: u64, interrupt: &Interrupt) -> Result<()> {
    check_name(path)?;
    let shown = path.display().to_string();
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        let message = format!("there is no folder {}", parent.display());
        return Err(Error::input(message, "make it first, or name another place"));
    }
    has_room(path, bytes)?;
    if path.symlink_metadata().is_ok() {
        return Err(Error::io("creating", path, io::ErrorKind::AlreadyExists.into()));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let unnamed = options.clone().custom_flags(libc::O_TMPFILE).open(parent);
    let (file, named) = match unnamed {
        Ok(file) => (file, false),
        Err(e) if no_unnamed_files(&e) => {
            options.create_new(true).custom_flags(libc::O_NOFOLLOW);
            (options.open(path).map_err(|e| Error::io("creating", path, e))?, true)
        }
        Err(e) => return Err(Error::io("creating", path, e)),
    };
    let filled = mark(&file)
        .map_err(Failure::Mark)
        .and_then(|()| file.set_len(bytes).map_err(Failure::Io))
        .and_then(|()| fill(&file, bytes, interrupt))
        // Killed before, nothing of it stays: a file without a name vanishes.
        .and_then(|()| if named { Ok(()) } else { link(&file, path).map_err(Failure::Io) });
    filled.map_err(|e| {
        if named {
            // No other program can have put data into it.
            let _ = std::fs::remove_file(path);
        }
        e.into_error(&shown)
    })
}

/// Makes sure that a file has room where it is to be made.
///
/// # Errors
/// [`Error::Input`] with both figures, [`Error::Io`].
pub(super) fn has_room(path: &Path, bytes: u64) -> Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let room =
        rustix::fs::statvfs(parent).map_err(|e| Error::io("looking at", parent, e.into()))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if bytes <= free {
        return Ok(());
    }
    let shown = path.display();
    let message = format!("no space left for {shown}: {bytes} bytes, and {free} are free");
    Err(Error::input(message, "give a smaller --size, or name a place with more room"))
}

/// Gives a nameless file an unused name.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
}

fn mark(file: &File) -> io::Result<()> {
    fsetxattr(file, MARK, known(file)?.as_bytes(), XattrFlags::CREATE).map_err(io::Error::from)
}

/// What a file of ours is known by. Where nothing tells it from a later one that gets its number, a mark means nothing:
/// whoever puts his own file there may have copied it with its mark.
fn known(file: &File) -> io::Result<String> {
    let found = identity(file)?;
    match tells(&found) {
        true => Ok(found),
        false => Err(io::Error::other("its file system tells no file from a later one")),
    }
}

/// What can go wrong with a file.
#[derive(Debug)]
pub(super) enum Failure {
    Io(io::Error),
    Mark(io::Error),
    NoRoom { needed: u64, free: u64 },
    Stopped(Error),
}

impl Failure {
    pub(super) fn into_error(self, path: &str) -> Error {
        match self {
            Failure::Io(e) => Error::io("writing", path, e),
            Failure::Mark(e) => Error::input(
                format!("{path} cannot be marked as ours ({e})"),
                "make it yourself in full size, and name it with --overwrite-file",
            ),
            Failure::NoRoom { needed, free } => Error::DiskFull {
                path: path.into(),
                doing: format!("laying it out: it needs {needed} bytes and {free} are free"),
            },
            Failure::Stopped(e) => e,
        }
    }
}

/// Parts of a file that were never written, as the file system knows them.
pub(super) fn holes(file: impl AsFd, bytes: u64) -> io::Result<Vec<(u64, u64)>> {
    let mut holes = Vec::new();
    let mut at = 0;
    while at < bytes {
        let from = seek(&file, SeekFrom::Hole(at))?;
        if from >= bytes {
            break;
        }
        let to = match seek(&file, SeekFrom::Data(from)) {
            Ok(to) => to.min(bytes),
            Err(rustix::io::Errno::NXIO) => bytes,
            Err(e) => return Err(e.into()),
        };
        // A file that changes meanwhile must not keep us here.
        if to <= from {
            break;
        }
        holes.push((from, to));
        at = to;
    }
    Ok(holes)
}

/// The parts that were never written, if there is room for them.
pub(super) fn room_to_fill(
    file: &File,
    bytes: u64,
) -> std::result::Result<Vec<(u64, u64)>, Failure> {
    let holes = holes(file, bytes).map_err(Failure::Io)?;
    let unwritten: u64 = holes.iter().map(|(from, to)| to - from).sum();
    let room = rustix::fs::fstatvfs(file).map_err(|e| Failure::Io(e.into()))?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    // What was set aside for them is no part of the free room, and is not needed again.
    let allocated = file.metadata().map_err(Failure::Io)?.blocks().saturating_mul(512);
    let needed = unwritten.min(bytes.saturating_sub(allocated));
    if needed > free {
        return Err(Failure::NoRoom { needed, free });
    }
    Ok(holes)
}

/// Writes noise where nothing was written yet, because some disks are faster on zeros.
pub(super) fn fill(
    file: &File,
    bytes: u64,
    interrupt: &Interrupt,
) -> std::result::Result<(), Failure> {
    /// Written between two looks at signals.
    const STRETCH: u64 = 64 << 20;
    let holes = room_to_fill(file, bytes)?;
    if holes.is_empty() {
        return Ok(());
    }
    let mut block = vec![0u8; 1 << 20];
    let mut stream = iosched_engine::stream(1, "target-file");
    block.chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&stream.next_u64().to_le_bytes()));
    for (from, to) in holes {
        let mut at = from;
        while at < to {
            let n = (to - at).min(block.len() as u64);
            file.write_all_at(&block[..n as usize], at).map_err(Failure::Io)?;
            at += n;
            if at % STRETCH == 0 {
                file.sync_data().map_err(Failure::Io)?;
            }
            interrupt.check().map_err(Failure::Stopped)?;
        }
    }
    file.sync_all().map_err(Failure::Io)
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_ours_is_known_by_name_and_mark_and_a_copy_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("iosched-a.img");
        match create(&path, 3 << 20, &Interrupt::default()) {
            Err(Error::Input { message, .. }) => return println!("SKIPPED: {message}"),
            other => other.unwrap(),
        }
        let file = File::open(&path).unwrap();
        assert!(is_ours(&file, &path.to_string_lossy()));
        assert!(!is_ours(&file, "/x/other.img"));
        assert!(holes(&file, 3 << 20).unwrap().is_empty());
        let copy = dir.path().join("iosched-b.img");
        std::fs::copy(&path, &copy).unwrap();
        let opened = File::options().read(true).write(true).open(&copy).unwrap();
        let name = copy.to_string_lossy().into_owned();
        // A copy with its attributes has the mark of the first.
        mark_as(&opened, &identity(&file).unwrap()).unwrap();
        assert!(!is_ours(&opened, &name));
        let (system, rest) = identity(&opened).map(split).unwrap();
        let (inode, born) = split(rest);
        // The same number on another file system, and a number that was used again.
        for other in [format!("{system}0:{inode}:{born}"), format!("{system}:{inode}:{born}1")] {
            mark_as(&opened, &other).unwrap();
            assert!(!is_ours(&opened, &name), "{other}");
        }
        mark_as(&opened, &format!("{system}:{inode}:{born}")).unwrap();
        assert!(is_ours(&opened, &name));
        let e = create(&path, 1, &Interrupt::default()).unwrap_err();
        assert!(e.to_string().contains("iosched-a.img"), "it is there already: {e}");
    }

    fn mark_as(file: &File, value: &str) -> io::Result<()> {
        fsetxattr(file, MARK, value.as_bytes(), XattrFlags::empty()).map_err(io::Error::from)
    }

    fn split(text: String) -> (String, String) {
        let (a, b) = text.split_once(':').unwrap();
        (a.into(), b.into())
    }

    #[test]
    fn holes_are_found_and_filled() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4 << 20).unwrap();
        file.write_all_at(&[7; 4096], 1 << 20).unwrap();
        file.sync_all().unwrap();
        let before: u64 = holes(&file, 4 << 20).unwrap().iter().map(|(a, b)| b - a).sum();
        assert!(before > 3 << 20, "{before}");
        fill(&file, 4 << 20, &Interrupt::default()).unwrap();
        assert!(holes(&file, 4 << 20).unwrap().is_empty());
        let mut kept = [0; 4096];
        file.read_exact_at(&mut kept, 1 << 20).unwrap();
        assert_eq!(kept, [7; 4096], "what was there stays");
    }

    #[test]
    fn names_of_ours() {
        for (name, ours) in [
            ("/mnt/iosched-a.img", true),
            ("iosched-a b#1.img", true),
            ("/mnt/iosched-.img", false),
            ("/iosched-x/a.img", false),
            ("/mnt/a.img", false),
        ] {
            assert_eq!(is_our_name(name), ours, "{name}");
        }
    }
}
