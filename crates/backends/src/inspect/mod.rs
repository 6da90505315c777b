//! The users of a device or file, and its content: everything that must be known before a write.
//!
//! Targets are identified by device number and inode, never by name. There are three sources: the kernel's own lists
//! ([`family`]: partitions, holders, loop devices, swap, exports), every process ([`scan`]: open files, mappings,
//! mounts of all namespaces), and the content ([`mod@content`]: libblkid, and whether places spread over the device are
//! blank). If something cannot be found out, that counts as a finding.

pub mod content;
pub mod family;
mod limited;
pub mod scan;

use std::fs::File;

pub(crate) use family::ask_loop;

use crate::root::{SysRoot, Thing};

/// What leave makes up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// It is in use: always refused.
    Always,
    /// A finding about its content. Refused unless the user says that the data may go.
    Content,
    /// What could not be found out: as its content.
    Unknown,
}

/// One reason not to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What leave makes up for.
    pub weight: Weight,
    /// Reads after the target's name and a colon.
    pub what: String,
}

impl Finding {
    pub(crate) fn always(what: impl Into<String>) -> Finding {
        Finding { weight: Weight::Always, what: what.into() }
    }

    pub(crate) fn unknown(what: impl Into<String>) -> Finding {
        Finding { weight: Weight::Unknown, what: what.into() }
    }

    pub(crate) fn content(what: impl Into<String>) -> Finding {
        Finding { weight: Weight::Content, what: what.into() }
    }
}

/// The users of a target: the kernel's lists and one pass over all processes. Our own descriptors do not count.
#[must_use]
pub fn users(root: &SysRoot, thing: Thing) -> Vec<Finding> {
    let family = family::Family::of(root, thing);
    let mut found = family.users(root);
    found.extend(scan::scan(root, &family).findings(&family));
    found.sort_by_key(|f| f.weight);
    found.dedup();
    found
}

/// New users since the check, by the kernel's lists alone. This is quick enough to ask while a load runs.
#[must_use]
pub fn new_users(root: &SysRoot, thing: Thing) -> Vec<Finding> {
    let mut found = family::Family::of(root, thing).users(root);
    found.retain(|f| f.weight == Weight::Always);
    found
}

/// What lies on a block device that is open and ours.
#[must_use]
pub fn content(device: &File, bytes: u64) -> Vec<Finding> {
    let mut found = content::marks(device);
    found.extend(content::not_blank(device, bytes));
    found
}
