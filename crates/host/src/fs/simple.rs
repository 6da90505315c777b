//! A file system without anything of its own on the disk: names cost nothing, files lie in one piece where there is room,
//! memory is without end, nothing is read ahead or written by itself.
//!
//! Replacement of cached pages, read-ahead, write-back by the kernel and journals are not here: they come with the page
//! cache. What is here holds for any file system: what a call finds, what it returns, which bytes must move before it
//! can return, and that a page read once is in memory.

use iosched_syscalls::{Answer, Done, Entry, Errno, Kind, Stat};
use iosched_types::{Bytes, SECTOR};

use super::pages::{PAGE, Pages};
use super::space::Space;
use super::tree::Names;
use super::{Counts, FileSystem, Ino, Segment};

/// Longest file: as ext4 with 4 KiB blocks.
const LONGEST: Bytes = 16 << 40;
/// Names that a call for a directory returns: a buffer of 32 KiB.
const NAMES_A_CALL: usize = 1024;

/// Pages of a file that lie one behind the other on the disk.
#[derive(Clone, Copy, Debug)]
struct Extent {
    page: u64,
    pages: u64,
    place: u64,
}

/// A file or directory.
#[derive(Debug)]
pub(super) struct Node {
    kind: Kind,
    len: Bytes,
    pub(super) named: bool,
    held: u32,
    free: bool,
    extents: Vec<Extent>,
    pages: Pages,
    /// Pages that will need room when they are written.
    promised: u64,
    pub(super) names: Option<Names>,
}

impl Node {
    pub(super) fn new(kind: Kind) -> Node {
        Node {
            kind,
            len: 0,
            named: true,
            held: 0,
            free: false,
            extents: Vec::new(),
            pages: Pages::default(),
            promised: 0,
            names: (kind == Kind::Directory).then(Names::new),
        }
    }

    /// Where a page lies: its place, and how many after it follow.
    fn place(&self, page: u64) -> Option<(u64, u64)> {
        let i = self.extents.partition_point(|e| e.page <= page).checked_sub(1)?;
        let e = self.extents[i];
        let into = page - e.page;
        (into < e.pages).then(|| (e.place + into, e.pages - into))
    }
}

/// The file system.
#[derive(Debug)]
pub struct Simple {
    nodes: Vec<Node>,
    free: Vec<u32>,
    space: Space,
    promised: u64,
    counts: Counts,
}

fn pages_of(at: Bytes, len: Bytes) -> (u64, u64) {
    (at / PAGE, at.saturating_add(len).div_ceil(PAGE))
}

impl Simple {
    /// An empty file system on a disk of so many bytes.
    #[must_use]
    pub fn new(bytes: Bytes) -> Simple {
        Simple {
            nodes: vec![Node::new(Kind::Directory)],
            free: Vec::new(),
            space: Space::new(bytes / PAGE),
            promised: 0,
            counts: Counts::default(),
        }
    }

    pub(super) fn node(&self, ino: Ino) -> &Node {
        &self.nodes[ino.0 as usize]
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> &mut Node {
        &mut self.nodes[ino.0 as usize]
    }

    pub(super) fn insert(&mut self, node: Node) -> Ino {
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

    /// A file with neither name nor user gives its room back.
    pub(super) fn clear_if_gone(&mut self, ino: Ino) {
        let node = self.node(ino);
        if node.named || node.held > 0 || node.free {
            return;
        }
        self.cut(ino, 0);
        let node = self.node_mut(ino);
        node.free = true;
        node.names = None;
        self.free.push(ino.0);
    }

    fn file(&self, ino: Ino) -> Result<&Node, Errno> {
        let node = self.node(ino);
        if node.kind == Kind::Directory { Err(Errno::EISDIR) } else { Ok(node) }
    }

    /// Drops everything from page `from` on.
    fn cut(&mut self, ino: Ino, from: u64) {
        let node = &mut self.nodes[ino.0 as usize];
        let mut promised = 0;
        let mut next = from;
        while let Some((a, b)) = node.pages.next_dirty(next, u64::MAX) {
            promised += (a..b).filter(|p| node.place(*p).is_none()).count() as u64;
            next = b;
        }
        node.promised -= promised;
        self.promised -= promised;
        let dropped = node.pages.forget(from, u64::MAX, true) * PAGE;
        self.counts.dropped += dropped;
        self.counts.dirty -= dropped;
        while let Some(last) = node.extents.last_mut() {
            if last.page + last.pages <= from {
                break;
            }
            let keep = from.saturating_sub(last.page);
            if keep == 0 {
                self.space.give(last.place, last.pages);
                node.extents.pop();
                continue;
            }
            self.space.give(last.place + keep, last.pages - keep);
            last.pages = keep;
            break;
        }
    }

    /// Takes room for the pages of a range that have none.
    fn make_room(&mut self, ino: Ino, from: u64, to: u64) -> Done {
        let node = &mut self.nodes[ino.0 as usize];
        let mut page = from;
        while page < to {
            if let Some((_, follow)) = node.place(page) {
                page += follow;
                continue;
            }
            let i = node.extents.partition_point(|e| e.page <= page);
            let until = node.extents.get(i).map_or(to, |e| e.page.min(to));
            let before = i.checked_sub(1).map(|b| node.extents[b]);
            let goal = before.map(|e| e.place + (page - e.page));
            let (place, n) = self.space.take(goal, until - page).ok_or(Errno::ENOSPC)?;
            match before {
                Some(e) if e.page + e.pages == page && e.place + e.pages == place => {
                    node.extents[i - 1].pages += n;
                }
                _ => node.extents.insert(i, Extent { page, pages: n, place }),
            }
            page += n;
        }
        Ok(())
    }

    /// The sectors of pages that have a place.
    fn segments(&self, ino: Ino, from: u64, to: u64, write: bool, io: &mut Vec<Segment>) {
        let node = self.node(ino);
        let mut page = from;
        while page < to {
            let Some((place, follow)) = node.place(page) else {
                page += 1;
                continue;
            };
            let n = follow.min(to - page);
            let (sector, sectors) = (place * PAGE / SECTOR, n * PAGE / SECTOR);
            match io.last_mut() {
                Some(s) if s.write == write && s.sector + s.sectors == sector => {
                    s.sectors += sectors;
                }
                _ => io.push(Segment { write, sector, sectors }),
            }
            page += n;
        }
    }

    /// Reads pages that are not in memory; holes are zeros.
    fn load(&mut self, ino: Ino, from: u64, to: u64, io: &mut Vec<Segment>) {
        let mut page = from;
        while page < to {
            if self.node(ino).pages.is_cached(page) {
                page += 1;
                continue;
            }
            let first = page;
            while page < to && !self.node(ino).pages.is_cached(page) {
                self.node_mut(ino).pages.cache(page);
                page += 1;
            }
            self.segments(ino, first, page, false, io);
        }
    }

    fn write_direct(&mut self, ino: Ino, at: Bytes, len: Bytes, io: &mut Vec<Segment>) -> Answer {
        let (from, to) = pages_of(at, len);
        // Pages that are only partly overwritten keep what they hold.
        self.take_dirty(ino, at, len, io)?;
        let node = self.node(ino);
        let fresh = (from..to).filter(|p| node.place(*p).is_none()).count() as u64;
        if fresh + self.promised > self.space.left() {
            return Err(Errno::ENOSPC);
        }
        self.make_room(ino, from, to)?;
        let node = self.node_mut(ino);
        node.pages.forget(from, to, false);
        node.len = node.len.max(at + len);
        let mut whole = Vec::new();
        self.segments(ino, from, to, true, &mut whole);
        trim(&mut whole, (at - from * PAGE) / SECTOR, len / SECTOR);
        io.append(&mut whole);
        Ok(len)
    }

    /// Room that dirty pages of a range will need; `ENOSPC` if there is none.
    fn promise(&mut self, ino: Ino, from: u64, to: u64) -> Done {
        let node = self.node(ino);
        let fresh = |p: &u64| node.place(*p).is_none() && !node.pages.is_dirty(*p);
        let n = (from..to).filter(fresh).count() as u64;
        if self.promised + n > self.space.left() {
            return Err(Errno::ENOSPC);
        }
        self.promised += n;
        self.node_mut(ino).promised += n;
        Ok(())
    }
}

/// Keeps `len` sectors from `skip` on.
fn trim(segments: &mut Vec<Segment>, skip: u64, len: u64) {
    let (mut skip, mut left) = (skip, len);
    for s in segments.iter_mut() {
        let off = skip.min(s.sectors);
        skip -= off;
        s.sector += off;
        s.sectors = (s.sectors - off).min(left);
        left -= s.sectors;
    }
    segments.retain(|s| s.sectors > 0);
}

fn aligned(at: Bytes, len: Bytes) -> bool {
    at.is_multiple_of(SECTOR) && len.is_multiple_of(SECTOR)
}

impl FileSystem for Simple {
    fn find(&self, path: &str) -> Result<Ino, Errno> {
        self.place(path)?.found.ok_or(Errno::ENOENT)
    }

    fn create(&mut self, path: &str, new: bool) -> Result<Ino, Errno> {
        let place = self.place(path)?;
        match place.found {
            Some(_) if new => Err(Errno::EEXIST),
            Some(ino) => Ok(ino),
            None => self.add(&place, Kind::File),
        }
    }

    fn stat(&self, ino: Ino) -> Stat {
        let node = self.node(ino);
        Stat { kind: node.kind, bytes: node.len }
    }

    fn hold(&mut self, ino: Ino) {
        self.node_mut(ino).held += 1;
    }

    fn release(&mut self, ino: Ino) {
        let node = self.node_mut(ino);
        node.held = node.held.saturating_sub(1);
        self.clear_if_gone(ino);
    }

    fn unlink(&mut self, path: &str) -> Done {
        let place = self.place(path)?;
        let ino = place.found.ok_or(Errno::ENOENT)?;
        self.file(ino)?;
        self.drop_name(&place);
        Ok(())
    }

    fn mkdir(&mut self, path: &str) -> Done {
        let place = self.place(path)?;
        match place.found {
            Some(_) => Err(Errno::EEXIST),
            None => self.add(&place, Kind::Directory).map(drop),
        }
    }

    fn rmdir(&mut self, path: &str) -> Done {
        let place = self.place(path)?;
        let ino = place.found.ok_or(Errno::ENOENT)?;
        let names = self.node(ino).names.as_ref().ok_or(Errno::ENOTDIR)?;
        if place.name.is_empty() {
            return Err(Errno::EINVAL);
        }
        if !names.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        self.drop_name(&place);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Done {
        let (old, new) = (self.place(from)?, self.place(to)?);
        let ino = old.found.ok_or(Errno::ENOENT)?;
        if old.name.is_empty() || new.name.is_empty() {
            return Err(Errno::EBUSY);
        }
        if new.found == Some(ino) {
            return Ok(());
        }
        let directory = self.node(ino).names.is_some();
        if directory && self.contains(ino, new.parent) {
            return Err(Errno::EINVAL);
        }
        if let Some(there) = new.found {
            if self.contains(there, old.parent) {
                return Err(Errno::ENOTEMPTY);
            }
            match (directory, &self.node(there).names) {
                (true, None) => return Err(Errno::ENOTDIR),
                (false, Some(_)) => return Err(Errno::EISDIR),
                (true, Some(names)) if !names.is_empty() => return Err(Errno::ENOTEMPTY),
                _ => self.drop_name(&new),
            }
        }
        let name: Box<str> = new.name.into();
        let parent = new.parent;
        if let Some(names) = &mut self.node_mut(old.parent).names {
            names.remove(old.name);
        }
        if let Some(names) = &mut self.node_mut(parent).names {
            names.insert(name, ino);
        }
        Ok(())
    }

    fn list(&self, ino: Ino, skip: usize, into: &mut Vec<Entry>) -> Answer {
        let names = self.node(ino).names.as_ref().ok_or(Errno::ENOTDIR)?;
        for (name, i) in names.iter().skip(skip).take(NAMES_A_CALL) {
            into.push(Entry { name: name.clone(), kind: self.node(*i).kind });
        }
        Ok(into.len() as u64)
    }

    fn read(
        &mut self,
        ino: Ino,
        at: Bytes,
        len: Bytes,
        direct: bool,
        io: &mut Vec<Segment>,
    ) -> Answer {
        let end = self.file(ino)?.len;
        if direct && !aligned(at, len) {
            return Err(Errno::EINVAL);
        }
        let n = end.saturating_sub(at).min(len);
        if n == 0 {
            return Ok(0);
        }
        let (from, to) = pages_of(at, n);
        if direct {
            self.take_dirty(ino, at, n, io)?;
            let mut whole = Vec::new();
            self.segments(ino, from, to, false, &mut whole);
            trim(&mut whole, (at - from * PAGE) / SECTOR, n.div_ceil(SECTOR));
            io.append(&mut whole);
        } else if !self.node(ino).pages.are_cached(from, to) {
            self.load(ino, from, to, io);
        }
        Ok(n)
    }

    fn write(
        &mut self,
        ino: Ino,
        at: Bytes,
        len: Bytes,
        direct: bool,
        io: &mut Vec<Segment>,
    ) -> Answer {
        let old = self.file(ino)?.len;
        let end = at.checked_add(len).filter(|e| *e <= LONGEST).ok_or(Errno::EFBIG)?;
        if direct && !aligned(at, len) {
            return Err(Errno::EINVAL);
        }
        if len == 0 {
            return Ok(0);
        }
        if direct {
            return self.write_direct(ino, at, len, io);
        }
        let (from, to) = pages_of(at, len);
        self.promise(ino, from, to)?;
        // A page that is partly overwritten must be in memory first, unless it begins behind the end.
        for page in [from, to - 1] {
            let whole = page * PAGE >= at && ((page + 1) * PAGE <= end || end >= old);
            if !whole && page * PAGE < old {
                self.load(ino, page, page + 1, io);
            }
        }
        let node = &mut self.nodes[ino.0 as usize];
        let fresh = (from..to).filter(|p| node.pages.soil(*p)).count() as u64 * PAGE;
        node.len = old.max(end);
        self.counts.dirtied += fresh;
        self.counts.dirty += fresh;
        Ok(len)
    }

    fn truncate(&mut self, ino: Ino, len: Bytes) -> Done {
        let old = self.file(ino).map_err(|_| Errno::EINVAL)?.len;
        if len > LONGEST {
            return Err(Errno::EFBIG);
        }
        if len < old {
            self.cut(ino, len.div_ceil(PAGE));
        }
        self.node_mut(ino).len = len;
        Ok(())
    }

    fn allocate(&mut self, ino: Ino, at: Bytes, len: Bytes, keep_size: bool) -> Done {
        self.file(ino).map_err(|_| Errno::ENODEV)?;
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let end = at.checked_add(len).filter(|e| *e <= LONGEST).ok_or(Errno::EFBIG)?;
        let (from, to) = pages_of(at, len);
        let node = self.node(ino);
        let fresh = (from..to).filter(|p| node.place(*p).is_none()).count() as u64;
        if fresh + self.promised > self.space.left() + node.promised {
            return Err(Errno::ENOSPC);
        }
        let dirty = |p: &u64| node.place(*p).is_none() && node.pages.is_dirty(*p);
        let kept = (from..to).filter(dirty).count() as u64;
        self.make_room(ino, from, to)?;
        self.promised -= kept;
        let node = self.node_mut(ino);
        node.promised -= kept;
        if !keep_size {
            node.len = node.len.max(end);
        }
        Ok(())
    }

    fn take_dirty(&mut self, ino: Ino, at: Bytes, len: Bytes, io: &mut Vec<Segment>) -> Done {
        let (mut from, to) = pages_of(at, len);
        while let Some((a, b)) = self.node(ino).pages.next_dirty(from, to) {
            let node = self.node(ino);
            let fresh = (a..b).filter(|p| node.place(*p).is_none()).count() as u64;
            self.promised -= fresh;
            self.node_mut(ino).promised -= fresh;
            self.make_room(ino, a, b)?;
            self.node_mut(ino).pages.clean(a, b);
            let bytes = (b - a) * PAGE;
            self.counts.written += bytes;
            self.counts.dirty -= bytes;
            self.segments(ino, a, b, true, io);
            from = b;
        }
        Ok(())
    }

    fn dirty_files(&self) -> Vec<Ino> {
        let all = self.nodes.iter().enumerate();
        all.filter(|(_, n)| n.pages.dirty() > 0).map(|(i, _)| Ino(i as u32)).collect()
    }

    fn forget(&mut self, ino: Ino, at: Bytes, len: Bytes) {
        let to = if len == 0 { u64::MAX } else { at.saturating_add(len) / PAGE };
        self.node_mut(ino).pages.forget(at.div_ceil(PAGE), to, false);
    }

    fn drop_caches(&mut self) {
        self.nodes.iter_mut().for_each(|n| _ = n.pages.forget(0, u64::MAX, false));
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
