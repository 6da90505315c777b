//! What a program may ask for.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use iosched_types::{Bytes, Nanos, TaskId};

use crate::Path;
use crate::arguments::{
    Advice, Birth, Completion, Entry, Fd, Io, MapId, OpenFlags, Part, Shares, Stat, Whence,
};

/// A system call, or something else that a program does and that takes time.
///
/// Lengths and positions are in bytes, times in nanoseconds. Names are relative to the directory that the program runs
/// in and must stay below it; links may lead through others, but not out (`EXDEV`). "→ n" says what the answer means; without it the answer is 0.
#[derive(Debug)]
pub enum Call {
    /// → descriptor.
    Open {
        /// Name.
        path: Path,
        /// How.
        flags: OpenFlags,
    },
    /// Gives a descriptor back.
    Close {
        /// Which.
        fd: Fd,
    },
    /// Another descriptor of the same open file. → descriptor.
    Dup {
        /// Which.
        fd: Fd,
    },
    /// Reads at the descriptor's position. From a pipe, waits for data or for the last writer to close. → bytes, 0 at
    /// the end.
    Read {
        /// File or pipe.
        fd: Fd,
        /// Bytes.
        len: Bytes,
    },
    /// Reads. → bytes, 0 at the end.
    Pread {
        /// File.
        fd: Fd,
        /// Position.
        at: Bytes,
        /// Bytes.
        len: Bytes,
    },
    /// Writes at the descriptor's position. Into a pipe, waits for room. → bytes.
    Write {
        /// File or pipe.
        fd: Fd,
        /// Bytes.
        len: Bytes,
    },
    /// Writes. → bytes.
    Pwrite {
        /// File.
        fd: Fd,
        /// Position.
        at: Bytes,
        /// Bytes.
        len: Bytes,
    },
    /// Moves the descriptor's position. → position.
    Seek {
        /// File.
        fd: Fd,
        /// By how much.
        to: i64,
        /// From where.
        whence: Whence,
    },
    /// Cuts or extends (`ftruncate`).
    Truncate {
        /// File.
        fd: Fd,
        /// New length.
        len: Bytes,
    },
    /// Takes room for a range.
    Fallocate {
        /// File.
        fd: Fd,
        /// Position.
        at: Bytes,
        /// Bytes.
        len: Bytes,
        /// Leaves the length as it is (`FALLOC_FL_KEEP_SIZE`).
        keep_size: bool,
    },
    /// `posix_fadvise`; length 0 is up to the end.
    Advise {
        /// File.
        fd: Fd,
        /// Position.
        at: Bytes,
        /// Bytes.
        len: Bytes,
        /// What is said.
        advice: Advice,
    },
    /// Makes a file, or a directory's names, durable.
    Fsync {
        /// File or directory.
        fd: Fd,
    },
    /// Makes a file's data durable, and the metadata needed to find them.
    Fdatasync {
        /// File or directory.
        fd: Fd,
    },
    /// `sync_file_range`; length 0 is up to the end. No flush of the device's cache, no inode.
    SyncRange {
        /// File.
        fd: Fd,
        /// Position.
        at: Bytes,
        /// Bytes.
        len: Bytes,
        /// Waits for the writes, rather than only starting them.
        wait: bool,
    },
    /// Tells a device that what a range holds is not needed any more (`ioctl` `BLKDISCARD`); `ENOTTY` for a file.
    Discard {
        /// The device.
        fd: Fd,
        /// Position.
        at: Bytes,
        /// Bytes.
        len: Bytes,
    },
    /// Makes everything on a file system durable.
    SyncFs {
        /// A file on it.
        fd: Fd,
    },
    /// Makes everything durable.
    Sync,
    /// Drops the clean pages of all files from memory, but for those of files that are mapped (`drop_caches` 1).
    DropCaches,
    /// What `fstat` says.
    Fstat {
        /// File or directory.
        fd: Fd,
        /// Where to.
        into: Rc<Cell<Stat>>,
    },
    /// Changes times, owner or mode.
    TouchFd {
        /// File or directory.
        fd: Fd,
    },
    /// The next names of a directory, without `.` and `..`. → how many, 0 at the end.
    ReadDir {
        /// Directory.
        fd: Fd,
        /// Where to; what it held is dropped.
        into: Rc<RefCell<Vec<Entry>>>,
    },
    /// Copies between files at their positions (`copy_file_range`). → bytes, 0 at the end.
    CopyRange {
        /// From.
        from: Fd,
        /// To.
        to: Fd,
        /// At most this many bytes.
        len: Bytes,
    },
    /// What `stat` says, or `lstat`.
    Stat {
        /// Name.
        path: Path,
        /// Of what a link leads to, rather than of the link (`lstat`).
        follow: bool,
        /// Where to.
        into: Rc<Cell<Stat>>,
    },
    /// Changes times, owner or mode.
    Touch {
        /// Name.
        path: Path,
    },
    /// Removes the name of a file.
    Unlink {
        /// Name.
        path: Path,
    },
    /// Another name; a file of that name goes.
    Rename {
        /// Old name.
        from: Path,
        /// New name.
        to: Path,
    },
    /// Makes a symbolic link.
    Symlink {
        /// What it says: a name, counted from the directory that the link is in.
        target: Path,
        /// Its own name.
        path: Path,
    },
    /// What a symbolic link says; `EINVAL` for anything else. → bytes.
    ReadLink {
        /// Name.
        path: Path,
        /// Where to.
        into: Rc<RefCell<String>>,
    },
    /// Makes a directory.
    Mkdir {
        /// Name.
        path: Path,
    },
    /// Removes an empty directory.
    Rmdir {
        /// Name.
        path: Path,
    },
    /// Maps a file into memory, shared. → map.
    Map {
        /// File.
        fd: Fd,
        /// Position of its first byte in the file, in whole pages.
        at: Bytes,
        /// Bytes.
        len: Bytes,
    },
    /// `madvise` of a whole map: in which order its pages will be touched. Only [`Advice::Normal`], [`Advice::Sequential`] and
    /// [`Advice::Random`]; `EINVAL` for others.
    AdviseMap {
        /// Which.
        map: MapId,
        /// What is said.
        advice: Advice,
    },
    /// Gives a map back.
    Unmap {
        /// Which.
        map: MapId,
    },
    /// Reads a byte of a map: no system call, but a page fault if its page is not there.
    Load {
        /// Which.
        map: MapId,
        /// Position in the map.
        at: Bytes,
    },
    /// Writes a byte of a map.
    Store {
        /// Which.
        map: MapId,
        /// Position in the map.
        at: Bytes,
    },
    /// Makes a pipe. → the reading end, and the writing end in the upper 32 bits.
    Pipe,
    /// Starts an asynchronous I/O.
    Submit {
        /// Which.
        io: Io,
    },
    /// Starts an asynchronous I/O through io_uring: what would sleep in the call is done by a thread of the kernel.
    Ring {
        /// Which.
        io: Io,
    },
    /// Waits for asynchronous I/Os of this task. → how many.
    Reap {
        /// At least this many, or all that are under way.
        min: u32,
        /// Where to; what it held is dropped.
        into: Rc<RefCell<Vec<Completion>>>,
    },
    /// Uses the CPU in user mode.
    Compute {
        /// For so long.
        time: Nanos,
    },
    /// Sleeps. `EINTR` when told to stop.
    Sleep {
        /// For so long.
        time: Nanos,
    },
    /// A new thread or process. → task.
    Spawn {
        /// Thread or process.
        shares: Shares,
        /// What the task is, for people; empty where it has no name.
        role: &'static str,
        /// What it runs.
        birth: Birth,
    },
    /// Waits for any task that this one made; `ECHILD` if there is none. → task.
    Wait,
    /// Waits for a task that this one made; `ECHILD` if there is no such task.
    Join {
        /// Which.
        task: TaskId,
    },
    /// Waits until this many tasks are at the barrier. The barrier can then be used again.
    Barrier {
        /// Which; all tasks of a run know the same ones.
        barrier: u32,
        /// How many.
        parties: u32,
    },
    /// Adds to a counter in shared memory; no system call. → its new value, as `i64`.
    Add {
        /// Which; all tasks of a run know the same ones, at first 0.
        counter: u32,
        /// How much.
        by: i64,
    },
    /// Tells a task to stop: its sleep ends, and [`Call::Stopped`] says so. `ESRCH` if there is none.
    Signal {
        /// Which.
        task: TaskId,
    },
    /// Whether this task was told to stop; no system call. → 0 or 1.
    Stopped,
    /// A system call that does nothing. → this task.
    GetPid,
    /// A system call on what is no file here (a terminal, a socket, another disk). → `bytes`
    Elsewhere {
        /// Copied between kernel and program.
        bytes: Bytes,
    },
    /// No call and no time: an operation of the benchmark is done, for its figures.
    Note {
        /// Which operation.
        what: &'static str,
        /// When it began.
        since: Nanos,
        /// What it moved.
        bytes: Bytes,
    },
    /// So many looks at the clock, which are no calls where they take no time.
    Look {
        /// How many.
        times: u32,
    },
    /// No call: the program copies between a map and its own memory, which takes it time.
    Copied {
        /// How much.
        bytes: Bytes,
    },
    /// No call and no time: a figure that the benchmark computes itself. Its registry entry names such figures.
    Figure {
        /// Which.
        name: &'static str,
        /// The value.
        value: f64,
        /// The value is a limit at which the benchmark gave up: the true one lies beyond it.
        beyond: bool,
    },
    /// No call and no time: a part of the run is over, for pictures over time.
    Mark {
        /// Its name; several parts may have it.
        what: &'static str,
        /// What kind of part.
        part: Part,
        /// When it began.
        since: Nanos,
    },
}

impl Call {
    /// The names of all calls, in the order of [`Call::index`].
    pub const NAMES: &'static [&'static str] = &[
        "open",
        "close",
        "dup",
        "read",
        "pread",
        "write",
        "pwrite",
        "lseek",
        "ftruncate",
        "fallocate",
        "fadvise",
        "fsync",
        "fdatasync",
        "sync_file_range",
        "syncfs",
        "sync",
        "fstat",
        "futimens",
        "getdents",
        "copy_file_range",
        "stat",
        "utimensat",
        "unlink",
        "rename",
        "mkdir",
        "rmdir",
        "mmap",
        "munmap",
        "load",
        "store",
        "pipe",
        "submit",
        "reap",
        "compute",
        "sleep",
        "spawn",
        "wait",
        "join",
        "barrier",
        "add",
        "signal",
        "stopped",
        "getpid",
        "note",
        "figure",
        "elsewhere",
        "ioctl",
        "io_uring_enter",
        "mark",
        "clock_gettime",
        "symlink",
        "readlink",
        "lstat",
        "memcpy",
        "madvise",
        "drop_caches",
    ];

    /// The place in [`Call::NAMES`].
    #[must_use]
    pub fn index(&self) -> usize {
        match self {
            Call::Open { .. } => 0,
            Call::Close { .. } => 1,
            Call::Dup { .. } => 2,
            Call::Read { .. } => 3,
            Call::Pread { .. } => 4,
            Call::Write { .. } => 5,
            Call::Pwrite { .. } => 6,
            Call::Seek { .. } => 7,
            Call::Truncate { .. } => 8,
            Call::Fallocate { .. } => 9,
            Call::Advise { .. } => 10,
            Call::Fsync { .. } => 11,
            Call::Fdatasync { .. } => 12,
            Call::SyncRange { .. } => 13,
            Call::SyncFs { .. } => 14,
            Call::Sync => 15,
            Call::Fstat { .. } => 16,
            Call::TouchFd { .. } => 17,
            Call::ReadDir { .. } => 18,
            Call::CopyRange { .. } => 19,
            Call::Stat { follow: true, .. } => 20,
            Call::Stat { follow: false, .. } => 52,
            Call::Touch { .. } => 21,
            Call::Unlink { .. } => 22,
            Call::Rename { .. } => 23,
            Call::Mkdir { .. } => 24,
            Call::Rmdir { .. } => 25,
            Call::Map { .. } => 26,
            Call::Unmap { .. } => 27,
            Call::Load { .. } => 28,
            Call::Store { .. } => 29,
            Call::Pipe => 30,
            Call::Submit { .. } => 31,
            Call::Reap { .. } => 32,
            Call::Compute { .. } => 33,
            Call::Sleep { .. } => 34,
            Call::Spawn { .. } => 35,
            Call::Wait => 36,
            Call::Join { .. } => 37,
            Call::Barrier { .. } => 38,
            Call::Add { .. } => 39,
            Call::Signal { .. } => 40,
            Call::Stopped => 41,
            Call::GetPid => 42,
            Call::Note { .. } => 43,
            Call::Figure { .. } => 44,
            Call::Elsewhere { .. } => 45,
            Call::Discard { .. } => 46,
            Call::Ring { .. } => 47,
            Call::Mark { .. } => 48,
            Call::Look { .. } => 49,
            Call::Symlink { .. } => 50,
            Call::ReadLink { .. } => 51,
            Call::Copied { .. } => 53,
            Call::AdviseMap { .. } => 54,
            Call::DropCaches => 55,
        }
    }

    /// What the manual calls it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Whether the call enters the kernel. Work of the program itself and shared memory do not.
    #[must_use]
    pub fn enters_kernel(&self) -> bool {
        !matches!(
            self,
            Call::Compute { .. }
                | Call::Load { .. }
                | Call::Store { .. }
                | Call::Add { .. }
                | Call::Stopped
                | Call::Note { .. }
                | Call::Look { .. }
                | Call::Copied { .. }
                | Call::Figure { .. }
                | Call::Mark { .. }
        )
    }

    /// Bytes that are copied between kernel and program, or from file to file.
    #[must_use]
    pub fn copies(&self) -> Bytes {
        match self {
            Call::Read { len, .. }
            | Call::Pread { len, .. }
            | Call::Write { len, .. }
            | Call::Pwrite { len, .. }
            | Call::CopyRange { len, .. } => *len,
            Call::Elsewhere { bytes } => *bytes,
            _ => 0,
        }
    }
}
