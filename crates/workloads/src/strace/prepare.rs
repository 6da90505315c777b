//! The files that existed when a log began, worked out from the answers to its calls.

use std::collections::BTreeMap;

use iosched_types::Bytes;

use super::names;

/// A file or directory.
#[derive(Clone, Debug, Default)]
struct Node {
    directory: bool,
    /// It was there before.
    before: Option<String>,
    /// Length that it had then, as far as it is known.
    first: Bytes,
    /// Length now.
    now: Bytes,
    /// The file has been written to, cut or extended, so a length seen now says nothing about before.
    changed: bool,
    /// The number of its inode in the log.
    number: Option<u64>,
    /// It was open: as far as calls with a position reach, it was there.
    was_open: bool,
    /// Only if the file turns out to have held data, it is known to have existed before.
    maybe: bool,
}

/// An open file.
#[derive(Clone, Copy, Debug)]
struct Opened {
    node: usize,
    at: Bytes,
    append: bool,
}

/// A file that was there before, and its length in bytes.
type File = (Box<str>, Bytes);

/// Names, files and where open files stand.
#[derive(Debug, Default)]
pub(super) struct Disk {
    nodes: Vec<Node>,
    /// `None`: it is known not to be there.
    names: BTreeMap<String, Option<usize>>,
    opened: BTreeMap<u32, Opened>,
}

impl Disk {
    /// A name that a call found.
    pub(super) fn found(&mut self, path: &str, directory: bool) -> usize {
        for above in names::above(path).map(str::to_string).collect::<Vec<_>>() {
            self.one(&above, true);
        }
        self.one(path, directory)
    }

    fn one(&mut self, path: &str, directory: bool) -> usize {
        if let Some(Some(node)) = self.names.get(path) {
            return *node;
        }
        // Known to be gone, and there again: a process outside of the log made it.
        let before = (!self.names.contains_key(path)).then(|| path.to_string());
        self.nodes.push(Node { directory, before, ..Node::default() });
        self.names.insert(path.to_string(), Some(self.nodes.len() - 1));
        self.nodes.len() - 1
    }

    /// A name that a call did not find.
    pub(super) fn missed(&mut self, path: &str) {
        self.names.entry(path.to_string()).or_insert(None);
    }

    /// A name that a call made.
    pub(super) fn made(&mut self, path: &str, directory: bool) -> usize {
        for above in names::above(path).map(str::to_string).collect::<Vec<_>>() {
            self.one(&above, true);
        }
        self.nodes.push(Node { directory, changed: true, ..Node::default() });
        self.names.insert(path.to_string(), Some(self.nodes.len() - 1));
        self.nodes.len() - 1
    }

    /// A name that a call either found or made; the log does not say which.
    pub(super) fn found_or_made(&mut self, path: &str) -> usize {
        let unseen = self.unseen(path);
        if !unseen && !self.is_there(path) {
            return self.made(path, false);
        }
        let node = self.found(path, false);
        self.nodes[node].maybe |= unseen;
        node
    }

    /// Whether it is not known yet whether there was such a name.
    pub(super) fn unseen(&self, path: &str) -> bool {
        !self.names.contains_key(path)
    }

    /// Whether there is such a name, as far as is known.
    pub(super) fn is_there(&self, path: &str) -> bool {
        matches!(self.names.get(path), Some(Some(_)))
    }

    /// A name that a call removed.
    pub(super) fn removed(&mut self, path: &str, directory: bool) {
        self.found(path, directory);
        self.names.insert(path.to_string(), None);
    }

    /// A name that a call changed, with all names below it.
    pub(super) fn renamed(&mut self, from: &str, to: &str) {
        let node = self.found(from, false);
        for above in names::above(to).map(str::to_string).collect::<Vec<_>>() {
            self.one(&above, true);
        }
        let prefix = format!("{from}/");
        let below: Vec<(String, Option<usize>)> = self
            .names
            .range(prefix.clone()..)
            .take_while(|(n, _)| n.starts_with(&prefix))
            .map(|(n, v)| (n.clone(), *v))
            .collect();
        for (name, value) in below {
            self.names.insert(format!("{to}/{}", &name[prefix.len()..]), value);
            self.names.insert(name, None);
        }
        self.names.insert(from.to_string(), None);
        self.names.insert(to.to_string(), Some(node));
    }

    /// An open file.
    pub(super) fn open(&mut self, file: u32, node: usize, append: bool, cut: bool) {
        if cut {
            self.cut(node, 0);
        }
        self.opened.insert(file, Opened { node, at: 0, append });
    }

    /// A file was open before the log.
    pub(super) fn was_open(&mut self, node: usize) {
        self.nodes[node].was_open |= !self.nodes[node].changed;
    }

    fn cut(&mut self, node: usize, len: Bytes) {
        let n = &mut self.nodes[node];
        n.was_open = false;
        n.changed = true;
        n.now = len;
    }

    /// An open file was cut or extended.
    pub(super) fn truncated(&mut self, file: u32, len: Bytes) {
        if let Some(o) = self.opened.get(&file) {
            self.cut(o.node, len);
        }
    }

    /// A name was cut or extended.
    pub(super) fn name_truncated(&mut self, path: &str, len: Bytes) {
        let node = self.found(path, false);
        self.cut(node, len);
    }

    /// Bytes were read: they were there.
    pub(super) fn read(&mut self, file: u32, at: Option<Bytes>, n: Bytes) {
        let Some(o) = self.opened.get_mut(&file) else { return };
        let from = at.unwrap_or(o.at);
        if at.is_none() {
            o.at = o.at.saturating_add(n);
        }
        let node = &mut self.nodes[o.node];
        let end = from.saturating_add(n);
        if n > 0 && end > node.now {
            // Bytes that no call wrote were there before.
            node.now = end;
            node.first = node.first.max(end);
        }
    }

    /// Bytes were written.
    pub(super) fn wrote(&mut self, file: u32, at: Option<Bytes>, n: Bytes) {
        let Some(o) = self.opened.get_mut(&file) else { return };
        let node = &mut self.nodes[o.node];
        let from = at.unwrap_or(if o.append { node.now } else { o.at });
        let end = from.saturating_add(n);
        if at.is_none() {
            o.at = end;
        }
        if node.was_open && at.is_some() {
            node.first = node.first.max(end);
        }
        node.now = node.now.max(end);
        node.changed = true;
    }

    /// A range was extended to (`fallocate`).
    pub(super) fn extended(&mut self, file: u32, end: Bytes) {
        self.wrote(file, Some(end), 0);
    }

    /// Where a file stands now.
    pub(super) fn seek(&mut self, file: u32, at: Bytes, from_end: Option<i64>) {
        let Some(o) = self.opened.get_mut(&file) else { return };
        o.at = at;
        let node = o.node;
        if let Some(to) = from_end {
            self.length(node, at.saturating_add_signed(to.saturating_neg()));
        }
    }

    /// A length that the kernel named.
    fn length(&mut self, node: usize, len: Bytes) {
        let n = &mut self.nodes[node];
        if !n.changed && !n.directory {
            n.first = n.first.max(len);
        }
        n.now = n.now.max(len);
    }

    /// What `stat` said of a name.
    pub(super) fn stat(&mut self, path: &str, directory: bool, len: Bytes) {
        let node = self.found(path, directory);
        self.nodes[node].directory |= directory;
        self.length(node, len);
    }

    /// The inode of a name.
    pub(super) fn numbered(&mut self, path: &str, number: Option<i64>) {
        if let (Some(Some(node)), Some(n)) = (self.names.get(path), number) {
            self.nodes[*node].number.get_or_insert(n.cast_unsigned());
        }
    }

    /// What `fstat` said.
    pub(super) fn fstat(&mut self, file: u32, directory: bool, len: Bytes) {
        let Some(o) = self.opened.get(&file).copied() else { return };
        self.nodes[o.node].directory |= directory;
        self.length(o.node, len);
    }

    /// It is a directory: its names were read.
    pub(super) fn is_directory(&mut self, file: u32) {
        if let Some(o) = self.opened.get(&file).copied() {
            self.nodes[o.node].directory = true;
        }
    }

    /// Directories and files that were there before; parents first, and files in the order of their inodes, which is most
    /// often that in which they were made: so they lie on the disk.
    pub(super) fn before(&self, below: Option<&str>) -> (Vec<Box<str>>, Vec<File>) {
        let mut directories = Vec::new();
        let mut files: Vec<(Option<u64>, File)> = Vec::new();
        let all: BTreeMap<&str, &Node> =
            self.nodes.iter().filter_map(|n| Some((n.before.as_deref()?, n))).collect();
        let above: std::collections::BTreeSet<&str> =
            all.keys().flat_map(|p| names::above(p)).collect();
        for (path, node) in &all {
            if below.is_some_and(|b| names::inside(path, b).is_none_or(str::is_empty)) {
                continue;
            }
            // The file system's root, and the directory in which everything lies, are always there.
            let place = names::place(path, below).into_boxed_str();
            if node.directory || above.contains(path) || matches!(*path, "" | "/") {
                directories.push(place);
            } else if !node.maybe || node.first > 0 {
                files.push((node.number, (place, node.first)));
            }
        }
        files.sort_by_key(|(number, _)| *number);
        (directories, files.into_iter().map(|(_, file)| file).collect())
    }
}
