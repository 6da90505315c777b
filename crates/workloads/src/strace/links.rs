//! Hard links. A file has one name in a replay; its other names in the log lead to that one.

use std::collections::BTreeMap;

use super::Act;
use super::read::{Call, Reader};

/// Other names of files, and the name that each file has in the replay.
#[derive(Debug, Default)]
pub(super) struct Links(BTreeMap<String, String>);

impl Links {
    /// The name under which a file lies.
    pub(super) fn target<'a>(&'a self, path: &'a str) -> &'a str {
        self.0.get(path).map_or(path, String::as_str)
    }

    /// Another name of the file that lies under this one.
    fn other(&self, path: &str) -> Option<String> {
        self.0.iter().find(|(_, to)| *to == path).map(|(name, _)| name.clone())
    }

    /// The file lies under a new name.
    fn moved(&mut self, from: &str, to: &str) {
        self.0.remove(to);
        self.0.values_mut().filter(|t| *t == from).for_each(|t| *t = to.to_string());
    }
}

impl Reader {
    /// `link`, `linkat`: the new name leads to the file, whose inode and directory change.
    pub(super) fn link(&mut self, c: &Call<'_>) -> bool {
        let at = c.name == "linkat";
        let from = self.path(c, at.then_some(0), usize::from(at));
        let to = self.own_path(c, at.then_some(2), if at { 3 } else { 1 });
        let (Some(from), Some(to), Some(_)) = (from, to, c.ok()) else { return self.null(c) };
        if !self.disk.is_there(&from) {
            self.disk.found(&from, false);
        }
        let name = self.name(&from);
        self.links.0.insert(to, from);
        self.done(c, Act::Touch { name }, None)
    }

    /// A name of a file goes. Whether the file has another one and stays.
    pub(super) fn unlinked(&mut self, c: &Call<'_>, path: &str) -> bool {
        if self.links.0.remove(path).is_some() {
            self.push(c, Act::Null, None);
            return true;
        }
        let Some(other) = self.links.other(path) else { return false };
        self.links.moved(path, &other);
        self.disk.renamed(path, &other);
        let act = Act::Rename { from: self.name(path), to: self.name(&other) };
        self.push(c, act, None);
        true
    }

    /// A name is given to a file that has others, or is taken from one. Whether nothing is left to rename.
    pub(super) fn relinked(&mut self, c: &Call<'_>, from: &str, to: &str) -> bool {
        let target = self.links.0.get(from).cloned();
        if self.links.target(to) == self.links.target(from) {
            // Two names of one file: Linux leaves both.
            self.push(c, Act::Null, None);
            return true;
        }
        let replaced = self.links.0.remove(to).is_none();
        if replaced && self.links.other(to).is_some() {
            self.unlinked(c, to);
        } else if replaced && target.is_some() && self.disk.is_there(to) {
            self.disk.removed(to, false);
            let name = self.name(to);
            self.push(c, Act::Unlink { name }, None);
        }
        let Some(target) = target else {
            self.links.moved(from, to);
            return false;
        };
        self.links.0.remove(from);
        self.links.0.insert(to.to_string(), target);
        self.push(c, Act::Null, None);
        true
    }
}
