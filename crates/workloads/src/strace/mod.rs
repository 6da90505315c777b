//! Logs of `strace -f` as a load: the calls, their tasks, pauses and files.
//!
//! A log names everything by the kernel's answers: descriptors by number, tasks by pid. The reader follows these
//! numbers, so a replay names open files ([`Act`]'s `file`) and tasks of its own. It works out the files that existed
//! when the log began, with their lengths, from the calls on them ([`Log::files`]).

use std::collections::{BTreeMap, BTreeSet};

use iosched_syscalls::{Advice, Answer, OpenFlags, Whence};
use iosched_types::{Bytes, Nanos};

mod args;
mod before;
mod by_aio;
mod by_flags;
mod by_name;
mod by_task;
mod calls;
mod devices;
mod family;
mod finish;
mod line;
mod links;
mod maps;
mod names;
mod prepare;
mod read;
mod replay;
mod rows;
mod symlinks;
mod tables;
mod walks;
mod who;

pub use before::Inherited;
pub use read::{Options, Part, parse, parse_part, recognise};
pub use replay::Replay;
pub use walks::Walk;

/// A log, ready to be replayed.
#[derive(Debug, Default)]
pub struct Log {
    /// The tasks, in the order in which they appear; parents before children.
    pub tasks: Vec<Task>,
    /// Names of files and directories, below the directory of the replay.
    pub names: Vec<Box<str>>,
    /// How many files are opened.
    pub opened: u32,
    /// How many maps are made.
    pub mapped: u32,
    /// Directories in which everything lies; none for a part of a log.
    pub tops: &'static [&'static str],
    /// Directories that were there before.
    pub directories: Vec<Box<str>>,
    /// Files that were there before, with their lengths in bytes.
    pub files: Vec<(Box<str>, Bytes)>,
    /// Files that are open before the first call.
    pub inherited: Vec<Inherited>,
    /// The tasks without a parent are threads of one process.
    pub threads: bool,
    /// Calls in the log.
    pub calls: u64,
    /// Calls that are not replayed because they are not simulated, by name.
    pub unknown: BTreeMap<String, u64>,
    /// Calls on objects that are not files on a disk (terminals, sockets, `/proc`), by name. They cost a call.
    pub elsewhere: BTreeMap<String, u64>,
    /// Block devices with calls on them, which are not replayed.
    pub devices: BTreeSet<Box<str>>,
    /// Whether the log says how long a task thought between its calls.
    pub paced: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// A process or thread of a log.
#[derive(Debug, Default, PartialEq)]
pub struct Task {
    /// The number in the log; 0 where the log has none.
    pub pid: u32,
    /// The task that made it; `None` for a task that existed before.
    pub parent: Option<usize>,
    /// It shares descriptors with its parent.
    pub thread: bool,
    /// What it does.
    pub steps: Vec<Step>,
    /// Parts of it that go in the order in which directories have their names.
    pub walks: Vec<Walk>,
}

/// One call of a task.
#[derive(Debug, PartialEq)]
pub struct Step {
    /// The line where it ends.
    pub line: u32,
    /// CPU time of the program before it, in nanoseconds.
    pub think: Nanos,
    /// What is done.
    pub act: Act,
    /// What the log's kernel answered; `None` where it cannot be compared.
    pub answer: Option<Answer>,
}

/// What a step does. `file` is an open file, `name` and `task` are indexes of a [`Log`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "as in `Call`")]
pub enum Act {
    Open {
        name: u32,
        flags: OpenFlags,
        file: u32,
    },
    Close {
        file: u32,
    },
    Read {
        file: u32,
        len: Bytes,
    },
    Pread {
        file: u32,
        at: Bytes,
        len: Bytes,
    },
    Write {
        file: u32,
        len: Bytes,
    },
    Pwrite {
        file: u32,
        at: Bytes,
        len: Bytes,
    },
    Seek {
        file: u32,
        to: i64,
        whence: Whence,
    },
    Truncate {
        file: u32,
        len: Bytes,
    },
    Fallocate {
        file: u32,
        at: Bytes,
        len: Bytes,
        keep_size: bool,
    },
    Advise {
        file: u32,
        at: Bytes,
        len: Bytes,
        advice: Advice,
    },
    Fsync {
        file: u32,
    },
    Fdatasync {
        file: u32,
    },
    SyncRange {
        file: u32,
        at: Bytes,
        len: Bytes,
        wait: bool,
    },
    SyncFs {
        file: u32,
    },
    Sync,
    Fstat {
        file: u32,
    },
    TouchFile {
        file: u32,
    },
    ReadDir {
        file: u32,
    },
    CopyRange {
        from: u32,
        to: u32,
        len: Bytes,
    },
    /// Reads so many bytes from a pipe, in as many calls as it takes.
    Drain {
        file: u32,
        len: Bytes,
    },
    /// Starts an asynchronous I/O.
    Submit {
        file: u32,
        write: bool,
        at: Bytes,
        len: u32,
    },
    /// Waits for so many asynchronous I/Os.
    Reap {
        count: u32,
    },
    Stat {
        name: u32,
        follow: bool,
    },
    /// `target` is a name, too: what the link says.
    Symlink {
        target: u32,
        name: u32,
    },
    ReadLink {
        name: u32,
    },
    Touch {
        name: u32,
    },
    Unlink {
        name: u32,
    },
    Rename {
        from: u32,
        to: u32,
    },
    Mkdir {
        name: u32,
    },
    Rmdir {
        name: u32,
    },
    /// Maps a file to read it, and does: all of it, or its first page.
    Map {
        file: u32,
        at: Bytes,
        len: Bytes,
        map: u32,
        whole: bool,
    },
    Unmap {
        map: u32,
    },
    Pipe {
        reads: u32,
        writes: u32,
    },
    /// A task is made.
    Child {
        task: u32,
    },
    /// Waits for a task.
    Join {
        task: u32,
    },
    /// Sleeps, or waits for something outside of the log.
    Pause {
        time: Nanos,
    },
    /// A call on what is no file of the replay; it copies so many bytes.
    Elsewhere {
        bytes: Bytes,
    },
    /// A call that no disk hears of.
    Null,
}

impl Log {
    /// The index of a name, new or old.
    fn name(&mut self, known: &mut BTreeMap<String, u32>, text: &str) -> u32 {
        if let Some(i) = known.get(text) {
            return *i;
        }
        let i = self.names.len() as u32;
        self.names.push(text.into());
        known.insert(text.to_string(), i);
        i
    }

    /// Whether anything of a file system is replayed.
    #[must_use]
    pub fn has_io(&self) -> bool {
        let idle = |act: &Act| {
            matches!(
                act,
                Act::Null
                    | Act::Elsewhere { .. }
                    | Act::Pause { .. }
                    | Act::Join { .. }
                    | Act::Child { .. }
                    | Act::Pipe { .. }
                    | Act::Drain { .. }
                    | Act::Close { .. }
                    | Act::Unmap { .. }
            )
        };
        self.tasks.iter().flat_map(|t| &t.steps).any(|s| !idle(&s.act))
    }

    /// Calls that are replayed.
    #[must_use]
    pub fn replayed(&self) -> u64 {
        self.tasks.iter().map(|t| t.steps.len() as u64).sum()
    }

    /// `futex 12, epoll_wait 3`, most first.
    #[must_use]
    pub fn list(counts: &BTreeMap<String, u64>) -> String {
        let mut all: Vec<(&String, &u64)> = counts.iter().collect();
        all.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), *name));
        let words: Vec<String> = all.iter().map(|(name, n)| format!("{name} {n}")).collect();
        words.join(", ")
    }
}
