//! Directories and names.

use std::collections::BTreeMap;

use iosched_syscalls::{Errno, Kind};

use super::Ino;
use super::simple::{Node, Simple};

/// Longest part of a name, in bytes.
const LONGEST: usize = 255;

/// A name, looked up: the directory that it is in, its last part, and what it stands for.
pub(super) struct Place<'a> {
    pub(super) parent: Ino,
    pub(super) name: &'a str,
    pub(super) found: Option<Ino>,
}

/// Names of a directory.
pub(super) type Names = BTreeMap<Box<str>, Ino>;

impl Simple {
    fn names(&self, ino: Ino) -> Result<&Names, Errno> {
        self.node(ino).names.as_ref().ok_or(Errno::ENOTDIR)
    }

    /// Follows a path. `.` and empty parts stand for nothing; what leads out is not there.
    pub(super) fn place<'a>(&self, path: &'a str) -> Result<Place<'a>, Errno> {
        if path.is_empty() || path.starts_with('/') {
            return Err(Errno::ENOENT);
        }
        let mut place = Place { parent: Ino(0), name: "", found: Some(Ino(0)) };
        for part in path.split('/').filter(|p| !matches!(*p, "" | ".")) {
            if part == ".." {
                return Err(Errno::EXDEV);
            }
            if part.len() > LONGEST {
                return Err(Errno::ENAMETOOLONG);
            }
            let parent = place.found.ok_or(Errno::ENOENT)?;
            let found = self.names(parent)?.get(part).copied();
            place = Place { parent, name: part, found };
        }
        Ok(place)
    }

    /// A new file or directory under a name that is free.
    pub(super) fn add(&mut self, place: &Place<'_>, kind: Kind) -> Result<Ino, Errno> {
        self.names(place.parent)?;
        let ino = self.insert(Node::new(kind));
        if let Some(names) = &mut self.node_mut(place.parent).names {
            names.insert(place.name.into(), ino);
        }
        Ok(ino)
    }

    /// Takes a name away; what it stood for goes unless it is held.
    pub(super) fn drop_name(&mut self, place: &Place<'_>) {
        if let Some(names) = &mut self.node_mut(place.parent).names {
            names.remove(place.name);
        }
        if let Some(ino) = place.found {
            self.node_mut(ino).named = false;
            self.clear_if_gone(ino);
        }
    }

    /// Whether `above` is `below` or one of the directories that it is in.
    pub(super) fn contains(&self, above: Ino, below: Ino) -> bool {
        let inside = |n: &Names| n.values().any(|child| self.contains(*child, below));
        above == below || self.node(above).names.as_ref().is_some_and(inside)
    }
}
