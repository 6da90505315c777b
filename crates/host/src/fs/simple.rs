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
use super::tree::Tree;
use super::walk::check_target;
use super::{Counts, FileSystem, Ino, Names, Segment};

/// Longest file: as ext4 with 4 KiB blocks.
const LONGEST: Bytes = 16 << 40;

/// Pages of a file that lie one behind the other on the disk.
#[derive(Clone, Copy, Debug)]
struct Extent {
    page: u64,
    pages: u64,
    place: u64,
}

/// What is kept of a file.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    extents: Vec<Extent>,
    pages: Pages,
    /// Pages that will need room when they are written.
    promised: u64,
}

impl Blocks {
    /// How many pages of a range have a place.
    fn placed(&self, from: u64, to: u64) -> u64 {
        let inside = |e: &Extent| (e.page + e.pages).min(to).saturating_sub(e.page.max(from));
        self.extents.iter().map(inside).sum()
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
    tree: Tree<Blocks>,
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
            tree: Tree::new(),
            space: Space::new(bytes / PAGE),
            promised: 0,
            counts: Counts::default(),
        }
    }

    fn node(&self, ino: Ino) -> &Blocks {
        &self.tree.node(ino).data
    }

    fn node_mut(&mut self, ino: Ino) -> &mut Blocks {
        &mut self.tree.node_mut(ino).data
    }

    /// A file with neither name nor user gives its room back.
    fn clear(&mut self, ino: Ino, gone: bool) {
        if gone {
            self.cut(ino, 0);
            self.tree.free(ino);
        }
    }

    /// Drops everything from page `from` on.
    fn cut(&mut self, ino: Ino, from: u64) {
        let node = &mut self.tree.node_mut(ino).data;
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
        let node = &mut self.tree.node_mut(ino).data;
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
        let node = self.tree.node_mut(ino);
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

impl Names for Simple {
    fn find(&self, path: &str) -> Result<Ino, Errno> {
        self.tree.find(path)
    }

    fn find_itself(&self, path: &str) -> Result<Ino, Errno> {
        self.tree.find_itself(path)
    }

    fn target(&self, ino: Ino) -> Result<String, Errno> {
        self.tree.target(ino).map(str::to_string)
    }

    fn stat(&self, ino: Ino) -> Stat {
        self.tree.stat(ino)
    }

    fn hold(&mut self, ino: Ino) {
        self.tree.hold(ino);
    }

    fn release(&mut self, ino: Ino) {
        let gone = self.tree.release(ino);
        self.clear(ino, gone);
    }

    fn list(&self, ino: Ino, skip: usize, into: &mut Vec<Entry>) -> Answer {
        self.tree.list(ino, skip, into)
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

impl FileSystem for Simple {
    fn create(&mut self, path: &str, new: bool) -> Result<Ino, Errno> {
        let place = if new { self.tree.place(path)? } else { self.tree.follow(path)? };
        match place.found {
            Some(_) if new => Err(Errno::EEXIST),
            Some(ino) => Ok(ino),
            None => self.tree.add(place, Kind::File),
        }
    }

    fn symlink(&mut self, target: &str, path: &str) -> Done {
        check_target(target)?;
        let place = self.tree.place(path)?;
        match place.found {
            Some(_) => Err(Errno::EEXIST),
            None => self.tree.add_link(place, target).map(drop),
        }
    }

    fn unlink(&mut self, path: &str) -> Done {
        let dropped = self.tree.unlink(path)?;
        self.clear(dropped.ino, dropped.gone);
        Ok(())
    }

    fn mkdir(&mut self, path: &str) -> Done {
        let place = self.tree.place(path)?;
        match place.found {
            Some(_) => Err(Errno::EEXIST),
            None => self.tree.add(place, Kind::Directory).map(drop),
        }
    }

    fn rmdir(&mut self, path: &str) -> Done {
        let dropped = self.tree.rmdir(path)?;
        self.clear(dropped.ino, dropped.gone);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Done {
        if let Some((there, gone)) = self.tree.rename(from, to)?.and_then(|m| m.replaced) {
            self.clear(there, gone);
        }
        Ok(())
    }

    fn read(
        &mut self,
        ino: Ino,
        at: Bytes,
        len: Bytes,
        direct: bool,
        io: &mut Vec<Segment>,
    ) -> Answer {
        let end = self.tree.file(ino)?.len;
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
        let old = self.tree.file(ino)?.len;
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
        let node = &mut self.tree.node_mut(ino).data;
        let fresh = (from..to).filter(|p| node.pages.soil(*p)).count() as u64 * PAGE;
        self.tree.node_mut(ino).len = old.max(end);
        self.counts.dirtied += fresh;
        self.counts.dirty += fresh;
        Ok(len)
    }

    fn truncate(&mut self, ino: Ino, len: Bytes) -> Done {
        let old = self.tree.file(ino).map_err(|_| Errno::EINVAL)?.len;
        if len > LONGEST {
            return Err(Errno::EFBIG);
        }
        if len < old {
            self.cut(ino, len.div_ceil(PAGE));
        }
        self.tree.node_mut(ino).len = len;
        Ok(())
    }

    fn allocate(&mut self, ino: Ino, at: Bytes, len: Bytes, keep_size: bool) -> Done {
        self.tree.file(ino).map_err(|_| Errno::ENODEV)?;
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        let end = at.checked_add(len).filter(|e| *e <= LONGEST).ok_or(Errno::EFBIG)?;
        let (from, to) = pages_of(at, len);
        let node = self.node(ino);
        // The range may be as long as a file can be: its pages are not looked at one by one.
        let fresh = to - from - node.placed(from, to);
        if fresh + self.promised > self.space.left() + node.promised {
            return Err(Errno::ENOSPC);
        }
        let (mut kept, mut next) = (0, from);
        while let Some((a, b)) = node.pages.next_dirty(next, to) {
            kept += b - a - node.placed(a, b);
            next = b;
        }
        self.make_room(ino, from, to)?;
        self.promised -= kept;
        let node = self.node_mut(ino);
        node.promised -= kept;
        if !keep_size {
            let node = self.tree.node_mut(ino);
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
        let all = self.tree.nodes().enumerate();
        all.filter(|(_, n)| n.pages.dirty() > 0).map(|(i, _)| Ino(i as u32)).collect()
    }

    fn forget(&mut self, ino: Ino, at: Bytes, len: Bytes) {
        let to = if len == 0 { u64::MAX } else { at.saturating_add(len) / PAGE };
        self.node_mut(ino).pages.forget(at.div_ceil(PAGE), to, false);
    }

    fn drop_caches(&mut self) {
        self.tree.nodes_mut().for_each(|n| _ = n.pages.forget(0, u64::MAX, false));
    }
}
