//! What a live run writes to. A name is followed once. From then on everything uses the resulting descriptor: the
//! checks, the meters, the load. A name that leads elsewhere later, or that a program reads differently, changes
//! nothing.

mod file;
mod look;
mod name;

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::libc;

pub use file::create;
pub use look::{Judgement, check, judge, room};
pub use name::{planned_size, resolve};

use iosched_lab::machine::Interrupt;

use crate::discover::{self, Stack};
use crate::error::{Error, Result};
use crate::inspect::{self, Finding, Weight};
use crate::root::{DevNum, Node, SysRoot, Thing};

/// What the user said may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leave {
    /// The device that `--destroy-data` names again.
    pub destroy_data: Option<String>,
    /// The file that was named in `--overwrite-file`.
    pub overwrite_file: Option<PathBuf>,
    /// Size of a file to be made.
    pub size: Option<u64>,
}

/// What kind of thing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A block device.
    Block,
    /// A regular file.
    File,
    /// A directory: commands are started from it.
    Directory,
}

/// A device, file or directory, held from the moment on which it was found.
#[derive(Debug)]
pub struct Target {
    name: String,
    path: String,
    kind: Kind,
    thing: Thing,
    /// Names the inode; nothing can be read or written through it.
    handle: File,
    /// Open for reading, and for writing once it was claimed.
    held: File,
    claimed: bool,
    bytes: u64,
    stack: Stack,
}

impl Target {
    /// Follows a name and opens what it leads to, for reading.
    ///
    /// # Errors
    /// [`Error::Input`] for what is neither device, file nor directory, [`Error::NoDevice`],
    /// [`Error::Io`].
    pub fn find(root: &SysRoot, name: &str) -> Result<Target> {
        let path = resolve(root, name)?;
        let looking = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound if path.starts_with("/dev") => {
                discover::no_device(root, name)
            }
            std::io::ErrorKind::NotFound => discover::no_path(name),
            _ => Error::io("looking at", &path, e),
        };
        let mut options = OpenOptions::new();
        let handle = options.read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC);
        let handle = handle.open(&path).map_err(looking)?;
        let meta = handle.metadata().map_err(looking)?;
        let kind = match meta.file_type() {
            t if t.is_block_device() => Kind::Block,
            t if t.is_file() => Kind::File,
            t if t.is_dir() => Kind::Directory,
            _ => return Err(name::no_target(name)),
        };
        let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
        let (thing, node) = match kind {
            Kind::Block => {
                let dev = DevNum::from_raw(meta.rdev());
                (Thing::Block(dev), Node::Block(dev))
            }
            _ => {
                let dev = DevNum::from_raw(meta.dev());
                (Thing::Inode(dev, meta.ino()), Node::of_file(Path::new(&link), &meta))
            }
        };
        let path = std::fs::read_link(&link).map_err(looking)?;
        let path =
            path.into_os_string().into_string().map_err(|p| discover::not_utf8(Path::new(&p)))?;
        let stack = discover::find_opened(root, name, node, &path)?;
        let held = reopen(&handle, &path, false, 0)?;
        let mut target = Target {
            name: name.into(),
            path,
            kind,
            thing,
            handle,
            held,
            claimed: false,
            bytes: 0,
            stack,
        };
        target.bytes = target.measure()?;
        Ok(target)
    }

    fn measure(&self) -> Result<u64> {
        use std::io::{Seek, SeekFrom};
        if self.kind == Kind::Directory {
            return Ok(0);
        }
        let mut file = &self.held;
        file.seek(SeekFrom::End(0)).map_err(|e| Error::io("reading the size of", &self.path, e))
    }

    /// As the user wrote it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it was found, with all links followed.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What lies below it.
    #[must_use]
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// A path for a process that inherits the descriptor. It has no character that fio or a shell could misread, and
    /// leads to exactly this inode.
    #[must_use]
    pub fn handed_down(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.held.as_raw_fd()).into()
    }

    /// The descriptor to be inherited.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }

    /// Claims the target: opens it for writing, a device exclusively, after all checks have passed.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::HoldsData`], [`Error::NotOurs`]; [`Error::Io`].
    pub fn claim(&mut self, root: &SysRoot, leave: &Leave) -> Result<()> {
        if self.claimed || self.kind == Kind::Directory {
            return Ok(());
        }
        let looked = look::look(self, root, leave, true)?;
        if let Some(e) = self.refusal(&looked.findings, leave) {
            return Err(e);
        }
        let Some(file) = looked.opened else {
            return Err(Error::Trial { message: format!("{} could not be opened", self.path) });
        };
        self.held = file;
        self.claimed = true;
        self.bytes = self.measure()?;
        Ok(())
    }

    /// Whether it is held for writing.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        self.claimed
    }

    /// Looks for its users again, before a run that writes.
    ///
    /// # Errors
    /// [`Error::InUse`].
    pub fn still_ours(&self, root: &SysRoot) -> Result<()> {
        let mut found = look::patiently(root, self.thing);
        found.retain(|f| f.weight == Weight::Always);
        self.nobody(&found)
    }

    /// Looks, while a load writes, whether the kernel now uses the target for something.
    ///
    /// # Errors
    /// [`Error::InUse`].
    pub fn unused(&self, root: &SysRoot) -> Result<()> {
        if !self.claimed {
            return Ok(());
        }
        self.nobody(&inspect::new_users(root, self.thing))
    }

    fn nobody(&self, found: &[Finding]) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        let why = format!("since the experiment began, {}", words(found));
        Err(Error::InUse { device: self.path.clone(), why })
    }

    /// What keeps it from being written to.
    fn refusal(&self, found: &[Finding], leave: &Leave) -> Option<Error> {
        let (always, content): (Vec<Finding>, Vec<Finding>) =
            found.iter().cloned().partition(|f| f.weight == Weight::Always);
        if !always.is_empty() {
            return Some(Error::InUse { device: self.path.clone(), why: words(&always) });
        }
        if content.is_empty() || self.may_go(leave) {
            return None;
        }
        let (path, why) = (self.path.clone(), words(&content));
        Some(match self.kind {
            Kind::Block => Error::HoldsData { device: self.name.clone(), why },
            _ => Error::NotOurs { path, why },
        })
    }

    /// Whether the user named exactly this target as one to overwrite.
    fn may_go(&self, leave: &Leave) -> bool {
        match self.kind {
            Kind::Block => leave.destroy_data.as_ref().is_some_and(|named| {
                *named == self.name || SysRoot::default().thing(named).ok() == Some(self.thing)
            }),
            Kind::File => leave.overwrite_file.as_ref().is_some_and(|named| {
                // The file itself, not a link to it.
                let plain = std::fs::symlink_metadata(named).is_ok_and(|m| m.is_file());
                let named = std::path::absolute(named).unwrap_or_default();
                plain && SysRoot::default().thing(&named.to_string_lossy()).ok() == Some(self.thing)
            }),
            Kind::Directory => false,
        }
    }

    /// Bytes of a file that were never written: reads of them do not reach the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn never_written(&self) -> Result<u64> {
        match self.kind {
            Kind::File => file::holes(&self.held, self.bytes)
                .map(|holes| holes.iter().map(|(from, to)| to - from).sum())
                .map_err(|e| Error::io("looking for holes in", &self.path, e)),
            _ => Ok(0),
        }
    }

    /// Makes a file ready for a load: writes the parts that were never written, if the file is ours.
    ///
    /// # Errors
    /// [`Error::Input`] for a file that is not and has holes, [`Error::DiskFull`], [`Error::Interrupted`].
    pub fn lay_out(&mut self, root: &SysRoot, leave: &Leave, interrupt: &Interrupt) -> Result<()> {
        let missing = self.never_written()?;
        if missing == 0 {
            return Ok(());
        }
        if !self.claimed && !self.may_go(leave) && !self.is_ours() {
            let message = format!(
                "{missing} of the {} bytes of {} were never written (fallocate, truncate): reading them does not reach the disk",
                self.bytes, self.path
            );
            let help = format!(
                "write it once in full, or give --overwrite-file={} to have it laid out",
                self.path
            );
            return Err(Error::input(message, help));
        }
        self.claim(root, leave)?;
        file::fill(&self.held, self.bytes, interrupt).map_err(|e| e.into_error(&self.path))
    }

    /// Whether iosched made it: by its name and by its mark.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.kind == Kind::File && file::is_ours(&self.held, &self.path)
    }
}

/// Opens the descriptor's inode again, through the descriptor.
fn reopen(handle: &File, path: &str, write: bool, flags: i32) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(write).custom_flags(libc::O_CLOEXEC | flags);
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    options.open(link).map_err(|e| Error::io("opening", path, e))
}

/// How long a released claim of our own may live on. A child that another thread is about to start has a copy of the
/// descriptor until the new program runs.
const COPIES_LAST: Duration = Duration::from_millis(500);

/// Opens a node; when it is busy, again until no copy of an earlier descriptor of ours can be the reason.
fn open_patiently(options: &OpenOptions, node: &Path) -> std::io::Result<File> {
    let deadline = Instant::now() + COPIES_LAST;
    loop {
        match options.open(node) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

/// Opens the node of a disk by its kernel name, because a name in `/dev` may lead anywhere. With `exclusively`, opens
/// it for writing.
pub(crate) fn open_node(name: &str, node: &Path, exclusively: bool) -> Result<File> {
    let root = SysRoot::default();
    let mut options = OpenOptions::new();
    let exclusive = if exclusively { libc::O_EXCL } else { 0 };
    options.read(true).write(exclusively).custom_flags(exclusive | libc::O_CLOEXEC);
    let file = open_patiently(&options, node).map_err(|e| match e.raw_os_error() {
        Some(libc::EBUSY) => Error::InUse {
            device: node.display().to_string(),
            why: "somebody mounted it, or made it part of something".into(),
        },
        _ => Error::io("opening", node, e),
    })?;
    let meta = file.metadata().map_err(|e| Error::io("looking at", node, e))?;
    let listed = format!("/sys/class/block/{}/dev", name.replace('/', "!"));
    let listed = root.get(&listed).and_then(|t| DevNum::parse(&t));
    if !meta.file_type().is_block_device() || listed != Some(DevNum::from_raw(meta.rdev())) {
        return Err(Error::Gone { device: node.display().to_string(), during: "a run".into() });
    }
    Ok(file)
}

/// Findings as one sentence.
fn words(found: &[Finding]) -> String {
    const SHOWN: usize = 5;
    let mut words: Vec<&str> = found.iter().map(|f| f.what.as_str()).take(SHOWN).collect();
    if found.len() > SHOWN {
        words.push("…");
    }
    words.join("; ")
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "a skipped test says so")]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_claimed_once_and_again_after_it_was_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        std::fs::write(&path, vec![7; 1 << 16]).unwrap();
        let (root, name) = (SysRoot::default(), path.to_str().unwrap());
        let leave = Leave { overwrite_file: Some(path.clone()), ..Leave::default() };
        let mut first = match Target::find(&root, name) {
            Ok(first) => first,
            // A container need not show what its file system lies on.
            Err(e) => return println!("SKIPPED: {e}"),
        };
        let e = first.claim(&root, &Leave::default()).unwrap_err();
        assert!(matches!(&e, Error::NotOurs { .. }), "{e}");
        first.claim(&root, &leave).unwrap();
        let mut second = Target::find(&root, name).unwrap();
        let e = second.claim(&root, &leave).unwrap_err();
        assert!(matches!(&e, Error::InUse { .. }), "{e}");
        drop(first);
        second.claim(&root, &leave).unwrap();
        // Its name now belongs to another file. That one is not touched.
        std::fs::rename(&path, dir.path().join("moved")).unwrap();
        std::fs::write(&path, "new").unwrap();
        use std::io::Write;
        (&second.held).write_all(b"ours").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_place_whose_name_is_not_utf8_is_refused_with_that_word() {
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join(std::ffi::OsStr::from_bytes(b"d\xff"));
        std::fs::create_dir(&odd).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&odd, &link).unwrap();
        let e = Target::find(&SysRoot::default(), link.to_str().unwrap()).unwrap_err();
        assert!(e.to_string().contains("the name is not UTF-8"), "{e}");
    }
}
