//! The changes of a run, written down before the first change and removed after the last is undone.
//!
//! The owner of a state file locks it for as long as the owner lives. So no guess about process ids is needed: a
//! process that gets the lock of an existing file must undo its changes.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use rustix::fs::{AtFlags, CWD};
use serde::{Deserialize, Serialize};

use crate::discover::QueueState;
use crate::error::{Error, Result};
use crate::made::MadeDirectory;
use crate::root::SysRoot;
use crate::switch::lock;

/// Where state files live: gone after a reboot, as the changes are.
pub const STATE_DIR: &str = "/run/iosched";

/// How the names begin that our devices have.
pub(crate) const LABEL: &str = "iosched:";

/// The shape of state files that this program writes and understands.
pub(crate) const VERSION: u32 = 1;

/// The command that undoes what the state files of a folder say.
#[must_use]
pub(crate) fn restore_command(dir: &Path) -> String {
    if dir == Path::new(STATE_DIR) {
        return "iosched restore".into();
    }
    let dir = dir.display().to_string();
    let plain = dir.chars().all(|c| c.is_alphanumeric() || "/._-+:@%,=".contains(c));
    let dir = if plain { dir } else { format!("'{}'", dir.replace('\'', r"'\''")) };
    format!("iosched restore --state-dir {dir}")
}

/// The error of changes that an earlier run left behind, as the state file says.
pub(crate) fn unrestored(file: &Path) -> Error {
    let dir = file.parent().unwrap_or(Path::new(STATE_DIR));
    let help = format!("run: {}", restore_command(dir));
    Error::Unrestored { what: file.display().to_string(), help }
}

/// What was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A loop device was created for an emulated disk.
    EmulatedDisk {
        /// Number of the loop device.
        number: u32,
        /// The name that we gave it, to distinguish it from other programs' devices.
        label: String,
        /// Number of the FUSE connection that serves it.
        connection: u64,
    },
    /// A device of ublk was created for an emulated disk.
    UblkDisk {
        /// The number.
        number: u32,
        /// Distinguishes it from other programs' devices.
        label: String,
    },
    /// The kernel's FUSE was allowed to use io_uring.
    FuseUring {
        /// The module's parameter before.
        before: String,
    },
    /// The queue of a disk was changed.
    Queue {
        /// Kernel name.
        device: String,
        /// Which incarnation of the disk.
        diskseq: Option<i64>,
        /// The queue itself. That of a loop device, among others, outlives its disk.
        #[serde(default)]
        queue: Option<u64>,
        /// Depth of the driver's tags before, if it could be read.
        tag_depth: Option<u32>,
        /// Everything as it was.
        before: Box<QueueState>,
        /// Everything as the run set it last. It is written below the rest of the file.
        #[serde(skip)]
        set: Option<Box<QueueState>>,
    },
    /// A directory with a load's files was made.
    Directory(MadeDirectory),
    /// A tracefs instance was made.
    TraceInstance {
        /// The name.
        name: String,
    },
}

/// The content of a state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Shape of this structure.
    pub version: u32,
    /// Owner's process id, for messages.
    pub pid: u32,
    /// The identity of that process, wherever it ran. A number is not enough, because containers use the same numbers.
    pub instance: String,
    /// Boot in which the change was made.
    pub boot_id: String,
    /// The change.
    pub change: Change,
}

/// A state file, held by its owner or by the process that undoes it.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    lock: Flock<File>,
}

/// What is known only after the change, and written below it.
#[derive(Debug, Serialize, Deserialize)]
struct Afterwards {
    /// The identity of the directory that was made.
    own: String,
}

/// The same of a queue, each time that it was set.
#[derive(Debug, Serialize, Deserialize)]
struct Set {
    set: Box<QueueState>,
}

/// Distinguishes this process from any other, in any namespace.
#[must_use]
pub(crate) fn instance() -> &'static str {
    static INSTANCE: OnceLock<String> = OnceLock::new();
    INSTANCE.get_or_init(|| {
        let token = RandomState::new().build_hasher().finish();
        format!("{}-{token:016x}", std::process::id())
    })
}

/// This boot's id.
#[must_use]
pub fn boot_id() -> String {
    SysRoot::default().get("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

impl StateFile {
    /// Writes a change down, on stable storage, before it is made. `name` is unique per changed thing.
    ///
    /// # Errors
    /// [`Error::Locked`] while another process changes the same thing, [`Error::Unrestored`] when an earlier one was
    /// killed and its changes are still in place.
    pub fn create(dir: &Path, name: &str, change: Change) -> Result<StateFile> {
        let io = |e| Error::io("writing state in", dir, e);
        fs::DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(io)?;
        let path = Self::path_in(dir, name);
        forget_earlier_boot(&path)?;
        let pid = std::process::id();
        let instance = instance().to_string();
        let state = State { version: VERSION, pid, instance, boot_id: boot_id(), change };
        let text = serde_json::to_string_pretty(&state)
            .map_err(|e| Error::io("writing state in", dir, e.into()))?;
        let mut new = NewFile::create(dir, name).map_err(io)?;
        new.file.write_all(text.as_bytes()).and_then(|()| new.file.sync_all()).map_err(io)?;
        let lock = match new.link(&path) {
            Ok(lock) => lock,
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(occupied(&path));
            }
            Err(e) => return Err(io(e)),
        };
        File::open(dir).and_then(|d| d.sync_all()).map_err(io)?;
        Ok(StateFile { path, lock })
    }

    /// Where the change of a thing of this name is written down.
    pub(crate) fn path_in(dir: &Path, name: &str) -> PathBuf {
        dir.join(format!("{}.json", name.replace('/', "!")))
    }

    /// Writes down which directory was made, on stable storage, before anything is put into it. It goes below what is
    /// there, so a killed writer spoils nothing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn made(&mut self, own: &str) -> Result<()> {
        self.add(&Afterwards { own: own.into() })
    }

    /// Writes down how the queue was set, in the same way.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn set(&self, queue: &QueueState) -> Result<()> {
        self.add(&Set { set: Box::new(queue.clone()) })
    }

    fn add(&self, what: &impl Serialize) -> Result<()> {
        let io = |e| Error::io("writing state in", &self.path, e);
        let text = serde_json::to_string(what).map_err(|e| io(e.into()))?;
        let mut file: &File = &self.lock;
        file.write_all(format!("\n{text}\n").as_bytes()).map_err(io)?;
        file.sync_all().map_err(io)
    }

    /// Takes over the state file of a dead owner. With `wait`, waits for the owner's death. `None` when the file is
    /// gone or (without `wait`) its owner lives.
    ///
    /// # Errors
    /// [`Error::Io`]; a file that cannot be understood is reported as [`Error::Trial`].
    pub fn take_over(path: &Path, wait: bool) -> Result<Option<(StateFile, State)>> {
        match Self::open(path)? {
            Some(file) => Self::take_over_opened(file, path, wait),
            None => Ok(None),
        }
    }

    /// Opens a state file to take it over; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open(path: &Path) -> Result<Option<File>> {
        // A pipe of that name would wait for a writer.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(path);
        match file {
            Ok(f) => Ok(Some(f)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io("reading", path, e)),
        }
    }

    /// As [`take_over`](Self::take_over), of a file that is open. It is known by that, whatever its name leads to now.
    ///
    /// # Errors
    /// As [`take_over`](Self::take_over).
    pub(crate) fn take_over_opened(
        file: File,
        path: &Path,
        wait: bool,
    ) -> Result<Option<(StateFile, State)>> {
        let Some(mut lock) = lock_of_the_dead(file, path, wait)? else { return Ok(None) };
        let mut text = Vec::new();
        lock.read_to_end(&mut text).map_err(|e| Error::io("reading", path, e))?;
        // The process that undid it emptied it. A file that only lost its name was removed by another program, and what
        // it says is to be done all the same.
        let nameless = lock.metadata().map_err(|e| Error::io("reading", path, e))?.nlink() == 0;
        if nameless && text.is_empty() {
            return Ok(None);
        }
        let state = parse(&String::from_utf8_lossy(&text)).map_err(|e| Error::Trial {
            message: format!(
                "{} is no state file that this iosched understands: {e}; look whether the disk is as it was (iosched doctor), then remove it",
                path.display()
            ),
        })?;
        Ok(Some((StateFile { path: path.into(), lock }, state)))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The command that undoes the change later.
    pub(crate) fn again(&self) -> String {
        restore_command(self.path.parent().unwrap_or(Path::new(STATE_DIR)))
    }

    /// The change is undone: removes the file, and empties it for those who have it open.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(self) -> Result<()> {
        let io = |e| Error::io("removing", &self.path, e);
        // If the whole directory was removed, another run may have made it again with a file of this name.
        if lock::names(&self.path, &self.lock) {
            match fs::remove_file(&self.path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(e)),
                _ => {}
            }
        }
        self.lock.set_len(0).map_err(io)
    }
}

/// A locked file that gets its name when it is complete. Until then it has none, so nothing of it stays, whatever
/// happens. On a file system without nameless files it has a temporary name.
struct NewFile {
    file: Flock<File>,
    temporary: Option<PathBuf>,
}

impl NewFile {
    fn create(dir: &Path, name: &str) -> std::io::Result<NewFile> {
        let unnamed =
            OpenOptions::new().write(true).mode(0o600).custom_flags(nix::libc::O_TMPFILE).open(dir);
        match unnamed {
            Ok(file) => NewFile::locked(file, None),
            Err(e) if no_unnamed_files(&e) => NewFile::named(dir, name),
            Err(e) => Err(e),
        }
    }

    fn named(dir: &Path, name: &str) -> std::io::Result<NewFile> {
        let pid = std::process::id();
        let temporary = dir.join(format!("{TEMPORARY}{}.{pid}", name.replace('/', "!")));
        // It may be left of a killed process of this number, or be a link of somebody else's.
        let _ = fs::remove_file(&temporary);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&temporary)?;
        NewFile::locked(file, Some(temporary))
    }

    fn locked(file: File, temporary: Option<PathBuf>) -> std::io::Result<NewFile> {
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, e)| e)?;
        Ok(NewFile { file, temporary })
    }

    /// Gives it its name; fails, unlike a rename, when there is a file of that name.
    fn link(self, path: &Path) -> std::io::Result<Flock<File>> {
        let Some(temporary) = self.temporary else {
            let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            rustix::fs::linkat(CWD, own, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
            return Ok(self.file);
        };
        let linked = fs::hard_link(&temporary, path);
        fs::remove_file(&temporary)?;
        linked.map(|()| self.file)
    }
}

/// The error of a file system without nameless files. Old ones take the call for opening a directory.
const NO_UNNAMED: [Errno; 3] = [Errno::EOPNOTSUPP, Errno::EISDIR, Errno::EINVAL];

/// How the names of our temporary files begin. The folder is the user's choice and may hold other things.
const TEMPORARY: &str = ".iosched-state.";

/// Whether a nameless file could not be made for that reason.
pub(crate) fn no_unnamed_files(e: &std::io::Error) -> bool {
    NO_UNNAMED.iter().any(|n| e.raw_os_error() == Some(*n as i32))
}

/// Removes temporary files of killed processes.
pub(crate) fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|e| e.path()) {
        let ours = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(TEMPORARY));
        if ours && let Ok(file) = File::open(&path) {
            // Its writer holds the lock while it lives.
            if Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok() {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

/// Gets the lock once its owner is dead. An owner that was killed while it used its own emulated disk cannot die: its
/// threads wait for the disk, and no thread is left to answer. Cutting the FUSE connection fails their I/O, so they can
/// end.
fn lock_of_the_dead(mut file: File, path: &Path, wait: bool) -> Result<Option<Flock<File>>> {
    let mut patience = DYING_POLLS;
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(Some(lock)),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, e)) => return Err(Error::io("locking", path, e.into())),
        };
        let state = fs::read_to_string(path).ok().and_then(|t| parse(&t).ok());
        match state {
            Some(s) if is_dying(s.pid) => {
                if let Change::EmulatedDisk { connection, .. } = s.change {
                    // Without fusectl there is no other way; the lock may still come free by itself.
                    let _ = crate::kernel_fs::abort_fuse(connection);
                }
                patience -= 1;
                if patience == 0 && !wait {
                    return Ok(None);
                }
            }
            _ if wait => {}
            _ => return Ok(None),
        }
        std::thread::sleep(POLL);
    }
}

const POLL: std::time::Duration = std::time::Duration::from_millis(100);
/// How often a dying owner is checked before we give up: 10 s.
const DYING_POLLS: u32 = 100;
/// SIGKILL's bit in `SigPnd` and `ShdPnd` of `/proc/PID/status`.
const SIGKILL_PENDING: u64 = 1 << 8;

/// Whether a process was killed and has not gone yet: its first thread is dead or has SIGKILL pending.
fn is_dying(pid: u32) -> bool {
    let text = SysRoot::default().get(&format!("/proc/{pid}/status")).unwrap_or_default();
    dying(&text)
}

fn dying(status: &str) -> bool {
    status.lines().filter_map(|l| l.split_once(':')).any(|(key, value)| match key {
        "State" => value.trim_start().starts_with(['Z', 'X']),
        "SigPnd" | "ShdPnd" => {
            u64::from_str_radix(value.trim(), 16).is_ok_and(|p| p & SIGKILL_PENDING != 0)
        }
        _ => false,
    })
}

/// Reads a state file's text.
///
/// # Errors
/// What the JSON reader says, and another version: what that means by its changes is not known here.
pub fn parse(text: &str) -> std::result::Result<State, serde_json::Error> {
    #[derive(Deserialize)]
    struct Shape {
        version: u32,
    }
    let Shape { version } = Shape::deserialize(&mut serde_json::Deserializer::from_str(text))?;
    if version != VERSION {
        let message = format!("it has version {version}, and this program writes {VERSION}");
        return Err(serde::de::Error::custom(message));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut state = State::deserialize(&mut reader)?;
    match &mut state.change {
        // A killed owner may have written a part of it, or nothing.
        Change::Directory(made) => {
            made.own = Afterwards::deserialize(&mut reader).ok().map(|a| a.own).or(made.own.take());
        }
        // The last that was written whole.
        Change::Queue { set, .. } => {
            while let Ok(s) = Set::deserialize(&mut reader) {
                *set = Some(s.set);
            }
        }
        _ => reader.end()?,
    }
    match strange(&state) {
        Some(what) => {
            Err(serde::de::Error::custom(format!("{what}, which this program never writes")))
        }
        None => Ok(state),
    }
}

/// A name in a state file that could lead anywhere. Files and directories are removed by these names, and who may write to the
/// folder that `--state-dir` names may not remove everything that we may.
fn strange(state: &State) -> Option<String> {
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let token = |t: &str| t.len() == 16 && t.bytes().all(|b| b.is_ascii_hexdigit());
    let owner = state.instance.split_once('-');
    if !owner.is_some_and(|(pid, t)| digits(pid) && token(t)) {
        return Some(format!("its owner is {:?}", state.instance));
    }
    let ours = |label: &str| label.starts_with(LABEL);
    let (what, name, fine) = match &state.change {
        Change::EmulatedDisk { label, .. } => ("loop device", label, ours(label)),
        Change::UblkDisk { label, .. } => ("device", label, ours(label)),
        Change::TraceInstance { name } => {
            let numbers = name.strip_prefix("iosched-").unwrap_or_default();
            ("trace instance", name, numbers.split('-').all(digits))
        }
        Change::Queue { device, before, .. } => {
            let plain = !device.is_empty() && device != ".." && device != ".";
            let word = |t: &&String| t.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            // Values are written to files of these names.
            match before.tunables.keys().find(|name| !word(name)) {
                Some(name) => ("tunable", name, false),
                None => ("disk", device, plain && !device.contains('/')),
            }
        }
        _ => return None,
    };
    (!fine).then(|| format!("its {what} is {name:?}"))
}

/// All state files of a directory.
#[must_use]
pub fn list(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|x| x == "json"))
        .collect();
    files.sort();
    files
}

/// Forgets the changes of an earlier boot, which that took along, so that they stand in no one's way. Files outlive a boot.
fn forget_earlier_boot(path: &Path) -> Result<()> {
    let state = fs::read_to_string(path).ok().and_then(|t| parse(&t).ok());
    let is_over = |s: &State| s.boot_id != boot_id() && !matches!(s.change, Change::Directory(_));
    if !state.is_some_and(|s| is_over(&s)) {
        return Ok(());
    }
    match StateFile::take_over(path, false)? {
        Some((file, state)) if is_over(&state) => {
            crate::restore::undo(file, &state, None).map(drop)
        }
        _ => Ok(()),
    }
}

fn occupied(path: &Path) -> Error {
    let pid = fs::read_to_string(path).ok().and_then(|t| parse(&t).ok()).map_or(0, |s| s.pid);
    let what = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let held = File::open(path).is_ok_and(|f| {
        matches!(Flock::lock(f, FlockArg::LockExclusiveNonblock), Err((_, Errno::EWOULDBLOCK)))
    });
    if held { Error::Locked { pid, what } } else { unrestored(path) }
}

#[cfg(test)]
mod tests;
