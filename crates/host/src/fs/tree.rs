//! Directories and names. What a file system keeps of each file beside its name and length is `T`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use iosched_syscalls::{Answer, Entry, Errno, Kind, Stat};
use iosched_types::Bytes;

use super::Ino;

/// Names that a call for a directory returns: a buffer of 32 KiB.
const NAMES_A_CALL: usize = 1024;

/// Names of a directory.
type Names = BTreeMap<Box<str>, Ino>;

/// A file or directory.
#[derive(Debug)]
pub(super) struct Node<T> {
    pub(super) kind: Kind,
    pub(super) len: Bytes,
    named: bool,
    held: u32,
    free: bool,
    names: Option<Names>,
    /// What a symbolic link says.
    target: Option<Box<str>>,
    pub(super) data: T,
}

/// A name, looked up: the directory that it is in, its last part, and what it stands for.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) parent: Ino,
    pub(super) name: Cow<'a, str>,
    pub(super) found: Option<Ino>,
}

/// A name that went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropped {
    /// The directory that it was in.
    pub(super) parent: Ino,
    /// What it stood for.
    pub(super) ino: Ino,
    /// Nobody has it any more: its room is to be given back, then [`Tree::free`].
    pub(super) gone: bool,
}

/// A name that moved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub(super) ino: Ino,
    pub(super) from: Ino,
    pub(super) to: Ino,
    /// What had the new name, and whether it is gone.
    pub(super) replaced: Option<(Ino, bool)>,
}

/// The root directory.
pub(super) const ROOT: Ino = Ino(0);
/// The file that a device without a file system is.
pub(super) const DEVICE: Ino = Ino(1);

/// All files and directories.
#[derive(Debug)]
pub(super) struct Tree<T> {
    nodes: Vec<Node<T>>,
    free: Vec<u32>,
}

impl<T: Default> Tree<T> {
    pub(super) fn new() -> Self {
        let mut tree = Tree { nodes: Vec::new(), free: Vec::new() };
        tree.insert(Kind::Directory);
        tree
    }

    /// A device without a file system: there is nothing but it.
    pub(super) fn add_device(&mut self, bytes: Bytes) {
        let place = Place { parent: ROOT, name: "device".into(), found: None };
        if let Ok(ino) = self.add(place, Kind::File) {
            self.node_mut(ino).len = bytes;
        }
    }

    pub(super) fn node(&self, ino: Ino) -> &Node<T> {
        &self.nodes[ino.0 as usize]
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> &mut Node<T> {
        &mut self.nodes[ino.0 as usize]
    }

    /// What is kept of each, in order of their numbers.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &T> {
        self.nodes.iter().map(|n| &n.data)
    }

    /// The same, to change it.
    pub(super) fn nodes_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.nodes.iter_mut().map(|n| &mut n.data)
    }

    /// A file's node; `EISDIR` for a directory.
    pub(super) fn file(&self, ino: Ino) -> Result<&Node<T>, Errno> {
        let node = self.node(ino);
        if node.kind == Kind::Directory { Err(Errno::EISDIR) } else { Ok(node) }
    }

    fn insert(&mut self, kind: Kind) -> Ino {
        let names = (kind == Kind::Directory).then(Names::new);
        let data = T::default();
        let (named, held, free, target) = (true, 0, false, None);
        let node = Node { kind, len: 0, named, held, free, names, target, data };
        match self.free.pop() {
            Some(i) => {
                self.nodes[i as usize] = node;
                Ino(i)
            }
            None => {
                self.nodes.push(node);
                Ino(self.nodes.len() as u32 - 1)
            }
        }
    }

    /// The number of what is gone may be given to another.
    pub(super) fn free(&mut self, ino: Ino) {
        let node = self.node_mut(ino);
        node.free = true;
        node.names = None;
        self.free.push(ino.0);
    }

    /// There was no room for what was to be made: its name goes again, and its number.
    pub(super) fn unmake(&mut self, parent: Ino, name: &str, ino: Ino) {
        if let Some(names) = &mut self.node_mut(parent).names {
            names.remove(name);
        }
        self.node_mut(ino).named = false;
        if self.gone(ino) {
            self.free(ino);
        }
    }

    fn gone(&self, ino: Ino) -> bool {
        let node = self.node(ino);
        !node.named && node.held == 0 && !node.free
    }

    pub(super) fn names(&self, ino: Ino) -> Result<&Names, Errno> {
        self.node(ino).names.as_ref().ok_or(Errno::ENOTDIR)
    }

    /// Makes a file or directory under a name that is free.
    pub(super) fn add(&mut self, place: Place<'_>, kind: Kind) -> Result<Ino, Errno> {
        self.names(place.parent)?;
        let ino = self.insert(kind);
        if let Some(names) = &mut self.node_mut(place.parent).names {
            names.insert(place.name.into(), ino);
        }
        Ok(ino)
    }

    /// Makes a symbolic link under a name that is free.
    pub(super) fn add_link(&mut self, place: Place<'_>, target: &str) -> Result<Ino, Errno> {
        let ino = self.add(place, Kind::Link)?;
        let node = self.node_mut(ino);
        node.len = target.len() as Bytes;
        node.target = Some(target.into());
        Ok(ino)
    }

    /// What a symbolic link says; `EINVAL` for anything else.
    pub(super) fn target(&self, ino: Ino) -> Result<&str, Errno> {
        self.node(ino).target.as_deref().ok_or(Errno::EINVAL)
    }

    pub(super) fn stat(&self, ino: Ino) -> Stat {
        let node = self.node(ino);
        Stat { kind: node.kind, bytes: node.len }
    }

    pub(super) fn hold(&mut self, ino: Ino) {
        self.node_mut(ino).held += 1;
    }

    /// Somebody let it go. Whether it is gone now.
    pub(super) fn release(&mut self, ino: Ino) -> bool {
        let node = self.node_mut(ino);
        node.held = node.held.saturating_sub(1);
        self.gone(ino)
    }

    /// Whether somebody has it open.
    pub(super) fn is_held(&self, ino: Ino) -> bool {
        self.node(ino).held > 0
    }

    fn drop_name(&mut self, place: Place<'_>, ino: Ino) -> Dropped {
        if let Some(names) = &mut self.node_mut(place.parent).names {
            names.remove(&*place.name);
        }
        self.node_mut(ino).named = false;
        Dropped { parent: place.parent, ino, gone: self.gone(ino) }
    }

    pub(super) fn unlink(&mut self, path: &str) -> Result<Dropped, Errno> {
        let place = self.place(path)?;
        let ino = place.found.ok_or(Errno::ENOENT)?;
        self.file(ino)?;
        Ok(self.drop_name(place, ino))
    }

    pub(super) fn rmdir(&mut self, path: &str) -> Result<Dropped, Errno> {
        let place = self.place(path)?;
        let ino = place.found.ok_or(Errno::ENOENT)?;
        let empty = self.names(ino)?.is_empty();
        if place.name.is_empty() {
            return Err(Errno::EINVAL);
        }
        if !empty {
            return Err(Errno::ENOTEMPTY);
        }
        Ok(self.drop_name(place, ino))
    }

    /// Gives another name; `None` where both names stand for the same.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<Option<Moved>, Errno> {
        let (old, new) = (self.place(from)?, self.place(to)?);
        let ino = old.found.ok_or(Errno::ENOENT)?;
        if old.name.is_empty() || new.name.is_empty() {
            return Err(Errno::EBUSY);
        }
        if new.found == Some(ino) {
            return Ok(None);
        }
        let directory = self.node(ino).names.is_some();
        if directory && self.contains(ino, new.parent) {
            return Err(Errno::EINVAL);
        }
        self.names(new.parent)?;
        let mut replaced = None;
        if let Some(there) = new.found {
            if self.contains(there, old.parent) {
                return Err(Errno::ENOTEMPTY);
            }
            match (directory, &self.node(there).names) {
                (true, None) => return Err(Errno::ENOTDIR),
                (false, Some(_)) => return Err(Errno::EISDIR),
                (true, Some(names)) if !names.is_empty() => return Err(Errno::ENOTEMPTY),
                _ => replaced = Some((there, self.drop_name(new.clone(), there).gone)),
            }
        }
        if let Some(names) = &mut self.node_mut(old.parent).names {
            names.remove(&*old.name);
        }
        if let Some(names) = &mut self.node_mut(new.parent).names {
            names.insert(new.name.into(), ino);
        }
        Ok(Some(Moved { ino, from: old.parent, to: new.parent, replaced }))
    }

    /// Whether `above` is `below` or one of the directories that it is in.
    fn contains(&self, above: Ino, below: Ino) -> bool {
        let inside = |n: &Names| n.values().any(|child| self.contains(*child, below));
        above == below || self.node(above).names.as_ref().is_some_and(inside)
    }

    pub(super) fn list(&self, ino: Ino, skip: usize, into: &mut Vec<Entry>) -> Answer {
        for (name, i) in self.names(ino)?.iter().skip(skip).take(NAMES_A_CALL) {
            into.push(Entry { name: name.clone(), kind: self.node(*i).kind });
        }
        Ok(into.len() as u64)
    }

    /// The same in the order of a key.
    pub(super) fn list_by<K: Ord>(
        &self,
        ino: Ino,
        skip: usize,
        into: &mut Vec<Entry>,
        key: impl Fn(&str, Ino) -> K,
    ) -> Answer {
        let mut all: Vec<_> = self.names(ino)?.iter().collect();
        all.sort_by_cached_key(|(name, i)| key(name, **i));
        for (name, i) in all.into_iter().skip(skip).take(NAMES_A_CALL) {
            into.push(Entry { name: name.clone(), kind: self.node(*i).kind });
        }
        Ok(into.len() as u64)
    }
}
