//! Operations and their flags.

use serde::{Deserialize, Serialize};

/// What a bio, a request or a device command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Op {
    /// Read sectors.
    #[serde(rename = "R")]
    Read,
    /// Write sectors.
    #[serde(rename = "W")]
    Write,
    /// Discard (trim) sectors.
    #[serde(rename = "D")]
    Discard,
    /// Empty the volatile write cache; carries no sectors.
    #[serde(rename = "F")]
    Flush,
}

/// Transfer direction: what the old schedulers sort by (a discard counts as a write).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// Towards memory.
    Read = 0,
    /// Towards the device.
    Write = 1,
}

impl Op {
    /// One letter, as blktrace prints it.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Discard => 'D',
            Op::Flush => 'F',
        }
    }

    /// The operation of a letter, `None` for any other letter.
    #[must_use]
    pub const fn from_letter(c: char) -> Option<Op> {
        match c {
            'R' | 'r' => Some(Op::Read),
            'W' | 'w' => Some(Op::Write),
            'D' | 'd' => Some(Op::Discard),
            'F' | 'f' => Some(Op::Flush),
            _ => None,
        }
    }

    /// Read or write; everything that is not a read is a write.
    #[must_use]
    pub const fn dir(self) -> Dir {
        match self {
            Op::Read => Dir::Read,
            _ => Dir::Write,
        }
    }
}

/// Flags of a bio or request, the kernel's `REQ_*` by meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// A process waits for it (`REQ_SYNC`). Reads are synchronous without it.
    pub const SYNC: Flags = Flags(1);
    /// Metadata (`REQ_META`).
    pub const META: Flags = Flags(2);
    /// Read-ahead (`REQ_RAHEAD`).
    pub const RAHEAD: Flags = Flags(4);
    /// Force unit access (`REQ_FUA`).
    pub const FUA: Flags = Flags(8);
    /// Flush the volatile cache before the data (`REQ_PREFLUSH`).
    pub const PREFLUSH: Flags = Flags(16);
    /// `REQ_IDLE`: the sender will wait for more (`O_DIRECT` writes carry it with `SYNC`).
    pub const IDLE: Flags = Flags(32);
    /// Background writeback (`REQ_BACKGROUND`).
    pub const BACKGROUND: Flags = Flags(64);
    /// Priority boost (`REQ_PRIO`), set by file systems for metadata reads.
    pub const PRIO: Flags = Flags(128);
    /// Must not merge (`REQ_NOMERGE`).
    pub const NOMERGE: Flags = Flags(256);
    /// Do not wait for a tag (`REQ_NOWAIT`).
    pub const NOWAIT: Flags = Flags(512);

    /// Whether every flag of `other` is set.
    #[must_use]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// This set without the flags of `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}
