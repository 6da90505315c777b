//! What calls take and give back: descriptors, flags, ranges, births.

use std::fmt;
use std::ops::BitOr;

use iosched_types::Bytes;

use crate::Program;

/// A file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub u32);

/// A file that is mapped into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MapId(pub u32);

/// How a file is opened; flags are joined with `|`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct OpenFlags(u16);

impl OpenFlags {
    /// For reading. Without [`OpenFlags::WRITE`] this is the default.
    pub const READ: OpenFlags = OpenFlags(1);
    /// For writing.
    pub const WRITE: OpenFlags = OpenFlags(2);
    /// Make it if it is not there (`O_CREAT`).
    pub const CREATE: OpenFlags = OpenFlags(4);
    /// `EEXIST` if it is there (`O_EXCL`).
    pub const EXCLUSIVE: OpenFlags = OpenFlags(8);
    /// Drop what it holds (`O_TRUNC`).
    pub const TRUNCATE: OpenFlags = OpenFlags(16);
    /// Every write goes to the end (`O_APPEND`).
    pub const APPEND: OpenFlags = OpenFlags(32);
    /// Past the page cache (`O_DIRECT`): positions and lengths in whole sectors.
    pub const DIRECT: OpenFlags = OpenFlags(64);
    /// A write returns when data and inode are durable (`O_SYNC`).
    pub const SYNC: OpenFlags = OpenFlags(128);
    /// A write returns when its data are durable (`O_DSYNC`).
    pub const DSYNC: OpenFlags = OpenFlags(256);
    /// `ENOTDIR` unless it is a directory (`O_DIRECTORY`).
    pub const DIRECTORY: OpenFlags = OpenFlags(512);
    /// `ELOOP` if the name is a symbolic link (`O_NOFOLLOW`).
    pub const NOFOLLOW: OpenFlags = OpenFlags(1024);

    const NAMES: [&'static str; 11] = [
        "READ",
        "WRITE",
        "CREATE",
        "EXCLUSIVE",
        "TRUNCATE",
        "APPEND",
        "DIRECT",
        "SYNC",
        "DSYNC",
        "DIRECTORY",
        "NOFOLLOW",
    ];

    /// Whether all flags of `other` are set.
    #[must_use]
    pub fn has(self, other: OpenFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags but those of `other`.
    #[must_use]
    pub fn without(self, other: OpenFlags) -> OpenFlags {
        OpenFlags(self.0 & !other.0)
    }

    /// Whether the file can be read.
    #[must_use]
    pub fn reads(self) -> bool {
        self.has(OpenFlags::READ) || !self.writes()
    }

    /// Whether the file can be written.
    #[must_use]
    pub fn writes(self) -> bool {
        self.has(OpenFlags::WRITE)
    }
}

impl BitOr for OpenFlags {
    type Output = OpenFlags;
    fn bitor(self, other: OpenFlags) -> OpenFlags {
        OpenFlags(self.0 | other.0)
    }
}

impl fmt::Debug for OpenFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = Self::NAMES.iter().enumerate().filter(|(i, _)| self.0 >> i & 1 == 1);
        let names: Vec<&str> = set.map(|(_, n)| *n).collect();
        f.write_str(if names.is_empty() { "READ" } else { "" })?;
        f.write_str(&names.join("|"))
    }
}

/// What a position is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The start of the file.
    Set,
    /// Where the descriptor stands.
    Current,
    /// The end of the file.
    End,
}

/// A program's announcement of what it will do with a range (`posix_fadvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing special.
    Normal,
    /// In order.
    Sequential,
    /// In no order.
    Random,
    /// Soon.
    WillNeed,
    /// Not again.
    DontNeed,
    /// Once.
    NoReuse,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Kind {
    /// A file.
    #[default]
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
}

/// What `stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Length; of a link that of its text. 0 for a directory, because file systems differ.
    pub bytes: Bytes,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The last part of the name.
    pub name: Box<str>,
    /// What it stands for.
    pub kind: Kind,
}

/// An asynchronous I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Of which file.
    pub fd: Fd,
    /// A write, else a read.
    pub write: bool,
    /// Where, in bytes.
    pub at: u64,
    /// How many bytes.
    pub len: u32,
    /// Comes back in [`Completion::tag`] when the I/O is done.
    pub tag: u32,
}

/// An asynchronous I/O that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which one.
    pub tag: u32,
    /// Bytes, or why not.
    pub answer: crate::Answer,
}

/// What a new task shares with the task that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// Descriptors and memory: a thread.
    Everything,
    /// The open files behind the descriptors, as after `fork`: a process.
    OpenFiles,
}

/// Makes the program of a new task, on the thread that will run it.
pub struct Birth(pub Box<dyn FnOnce() -> Box<dyn Program> + Send>);

impl fmt::Debug for Birth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Birth")
    }
}

/// What a part of a run is to the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// One phase after the other.
    Phase,
    /// Something that went on beside: a checkpoint.
    Beside,
    /// A try that is measured by its length.
    Try,
    /// A try that was given up: it would have taken longer.
    GivenUp,
    /// Something that happened at a moment.
    Event,
}
