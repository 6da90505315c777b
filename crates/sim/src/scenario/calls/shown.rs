//! What happened in a scenario of calls, as data.

use iosched_types::{Bytes, Nanos, Sector};
use serde::{Deserialize, Serialize};

/// A scenario of calls that was played.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsShown {
    /// The calls, in the order in which they were made.
    pub calls: Vec<CallShown>,
    /// All bios, in the order in which they were made, before they are split.
    pub bios: Vec<ShownBio>,
    /// What happened, in the order of time.
    pub steps: Vec<Step>,
    /// There was more than is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallShown {
    /// The task that made it.
    pub task: String,
    /// In words: `pread a 0+4 KiB`.
    pub call: String,
    /// When it was made.
    pub t_ns: Nanos,
    /// When it returned.
    pub to_ns: Option<Nanos>,
    /// What it returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<u64>,
    /// Or why not: `ENOSPC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A bio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownBio {
    /// Task or kernel thread that submitted it.
    pub by: String,
    /// Operation and flags in the letters of the block trace: `RA`, `WS`, `FWFSM`.
    pub flags: String,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors; 0 of an empty flush.
    pub sectors: u32,
    /// The file whose pages it moves, with position and length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<(String, Bytes, Bytes)>,
    /// What lies there, if it is metadata: `JNL`, `ITAB`, `LOG` …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
}

/// What a call found of the pages that it is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundShown {
    /// Pages.
    pub pages: u64,
    /// Not in memory.
    pub absent: u64,
    /// Readable.
    pub cached: u64,
    /// Being read.
    pub being_read: u64,
    /// Dirty.
    pub dirty: u64,
    /// Being written.
    pub writeback: u64,
    /// The first page with the mark of read-ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<u64>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    pub t_ns: Nanos,
    /// To which task or kernel thread; of a dispatch the scheduler.
    pub who: String,
    /// The call in which it happened, by index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
    /// What.
    #[serde(flatten)]
    pub kind: StepKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub enum StepKind {
    /// A call begins.
    Calls,
    /// It finds this in memory.
    Finds(FoundShown),
    /// A bio is submitted.
    Submits {
        /// By index.
        bio: usize,
    },
    /// It goes to sleep.
    Sleeps {
        /// For what.
        until: String,
        /// A kernel thread that has nothing to do.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        idle: bool,
    },
    /// It goes on.
    Woken {
        /// Because of what.
        by: String,
    },
    /// The call returns.
    Returns,
    /// A request leaves the scheduler.
    Dispatches {
        /// `R274432+32`.
        request: String,
        /// Its bios, by index.
        bios: Vec<usize>,
        /// Why it, and why now.
        reason: String,
    },
}

impl ShownBio {
    /// `RA 274432+32`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.sectors {
            0 => self.flags.clone(),
            n => format!("{} {}+{n}", self.flags, self.sector),
        }
    }

    /// Whether another one is its continuation on the disk and of the same kind.
    #[must_use]
    pub fn goes_on(&self, next: &ShownBio) -> bool {
        let same = |b: &ShownBio| (b.by.clone(), b.flags.clone(), b.class.clone());
        let files = match (&self.pages, &next.pages) {
            (Some((a, at, len)), Some((b, from, _))) => a == b && at + len == *from,
            (None, None) => true,
            _ => false,
        };
        self.sectors > 0
            && files
            && same(self) == same(next)
            && self.sector + u64::from(self.sectors) == next.sector
    }

    /// Neighbours as one.
    #[must_use]
    pub fn joined(bios: &[ShownBio]) -> ShownBio {
        let mut one = bios[0].clone();
        for b in &bios[1..] {
            one.sectors += b.sectors;
            if let (Some((_, _, len)), Some((_, _, more))) = (&mut one.pages, &b.pages) {
                *len += more;
            }
        }
        one
    }

    /// What it moves, for people.
    #[must_use]
    pub fn holds(&self) -> String {
        match (&self.pages, &self.class) {
            (Some((file, at, len)), _) => format!("{file} {}", range(*at, *len)),
            (None, Some(class)) => class.clone(),
            (None, None) if self.sectors == 0 => "flush".into(),
            (None, None) => String::new(),
        }
    }
}

/// `8+4 KiB`.
pub(super) fn range(at: Bytes, len: Bytes) -> String {
    match at.is_multiple_of(1024) && len.is_multiple_of(1024) {
        true => format!("{}+{} KiB", at / 1024, len / 1024),
        false => format!("{at}+{len} B"),
    }
}

/// `4 KiB`.
pub(super) fn length(len: Bytes) -> String {
    if len.is_multiple_of(1024) { format!("{} KiB", len / 1024) } else { format!("{len} B") }
}
