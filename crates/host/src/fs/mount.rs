//! A mounted file system above the page cache: names and lengths, and the paths of calls through the kernel.
//!
//! A call that memory can answer is answered at once. Any other becomes a path: straight-line code of `iosched-vfs` that
//! the machine polls until it ends. Names change when the call begins; what that does to the disk is on the path.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use iosched_syscalls::{Answer, Entry, Errno, Kind, Stat};
use iosched_types::{Bytes, Nanos};
use iosched_vfs::cache::PAGE;
use iosched_vfs::cache::mapping::Mark;
use iosched_vfs::cache::readahead::Stream;
use iosched_vfs::cache::writeback::{Flusher, Intervals};
use iosched_vfs::fs::FileSystem as _;
use iosched_vfs::fs::volume::Volume;
use iosched_vfs::kernel::direct::Range;
use iosched_vfs::kernel::memory::{Memory, Settings};
use iosched_vfs::kernel::read::{Open, Order, Place};
use iosched_vfs::kernel::writeback::Backing;
use iosched_vfs::kernel::{Event, Group, Kernel, World};

use super::direct::Direct;
use super::tree::Tree;
use super::{Counts, Ino, Names};

/// A call on its way through the kernel.
pub(crate) type Path = Pin<Box<dyn Future<Output = Answer>>>;

/// Longest file of ext4 with blocks of 4 KiB.
pub(super) const LONGEST: Bytes = 16 << 40;

/// What is mounted, and how.
#[derive(Debug)]
pub struct Mounted {
    /// The file system.
    pub volume: Volume,
    /// Memory and its sysctls.
    pub memory: Settings,
    /// How often the flusher looks, and when pages are old.
    pub intervals: Intervals,
    /// `read_ahead_kb` of the device in pages.
    pub read_ahead: u64,
}

/// Files in memory and on the disk.
#[derive(Clone)]
pub struct Mount {
    pub(crate) world: Rc<RefCell<World>>,
    pub(super) volume: Volume,
    pub(super) tree: Rc<RefCell<Tree<()>>>,
    /// Files without a name that the last has closed.
    pub(super) orphans: Rc<RefCell<Vec<u32>>>,
    /// Direct writes under way that are to be durable.
    pub(super) to_sync: Rc<RefCell<BTreeMap<Group, Direct>>>,
    read_ahead: u64,
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mount({})", self.volume.name())
    }
}

/// Where a range begins and how long it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) ino: Ino,
    pub(crate) at: Bytes,
    pub(crate) len: Bytes,
}

impl Part {
    pub(super) fn range(self) -> Range {
        Range { file: self.ino.0, at: self.at, len: self.len }
    }

    pub(super) fn pages(self) -> (u64, u64) {
        (self.at / PAGE, self.at.saturating_add(self.len).div_ceil(PAGE))
    }

    /// What direct I/O asks for.
    pub(super) fn aligned(self) -> Result<(), Errno> {
        let aligned = self.at.is_multiple_of(512) && self.len.is_multiple_of(512);
        if aligned { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

impl Names for Mount {
    fn find(&self, path: &str) -> Result<Ino, Errno> {
        self.tree.borrow().find(path)
    }

    fn find_itself(&self, path: &str) -> Result<Ino, Errno> {
        self.tree.borrow().find_itself(path)
    }

    fn target(&self, ino: Ino) -> Result<String, Errno> {
        self.tree.borrow().target(ino).map(str::to_string)
    }

    fn stat(&self, ino: Ino) -> Stat {
        self.tree.borrow().stat(ino)
    }

    fn hold(&mut self, ino: Ino) {
        self.tree.borrow_mut().hold(ino);
    }

    fn release(&mut self, ino: Ino) {
        let gone = self.tree.borrow_mut().release(ino);
        if !self.tree.borrow().is_held(ino) {
            self.volume.closed(&self.kernel(0), ino.0);
        }
        if gone {
            self.orphans.borrow_mut().push(ino.0);
            self.world.borrow_mut().signal(Event::Orphans);
        }
    }

    fn list(&self, ino: Ino, skip: usize, into: &mut Vec<Entry>) -> Answer {
        let tree = self.tree.borrow();
        match self.volume.listed_at("", 0) {
            Some(_) => {
                let key = |name: &str, ino: Ino| self.volume.listed_at(name, ino.0);
                tree.list_by(ino, skip, into, key)
            }
            None => tree.list(ino, skip, into),
        }
    }

    fn counts(&self) -> Counts {
        let w = self.world.borrow();
        let m = &w.memory;
        Counts {
            dirtied: m.dirtied * PAGE,
            written: m.written * PAGE,
            dropped: m.dropped * PAGE,
            dirty: (m.dirty + m.writeback) * PAGE,
        }
    }
}

impl Mount {
    /// An empty file system, mounted.
    #[must_use]
    pub fn new(mounted: Mounted) -> Mount {
        let mut world = World::default();
        world.memory = Memory::new(mounted.memory);
        world.flusher = Flusher::new(mounted.intervals);
        let mut tree = Tree::new();
        if let Volume::Raw(raw) = &mounted.volume {
            tree.add_device(raw.bytes);
        }
        Mount {
            world: Rc::new(RefCell::new(world)),
            volume: mounted.volume,
            tree: Rc::new(RefCell::new(tree)),
            orphans: Rc::default(),
            to_sync: Rc::default(),
            read_ahead: mounted.read_ahead,
        }
    }

    /// What is mounted.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    pub(crate) fn kernel(&self, actor: u32) -> Kernel {
        Kernel::new(self.world.clone(), actor)
    }

    /// What an open file starts with.
    pub(crate) fn open(&self, ino: Ino) -> Open {
        let mut w = self.world.borrow_mut();
        w.memory.open(ino.0);
        // Kernels before keep single pages, or folios of other sizes.
        let large = w.memory.settings.era.splits() && self.volume.large_folios();
        drop(w);
        Open {
            file: ino.0,
            size: self.tree.borrow().node(ino).len,
            ra: self.read_ahead,
            large_folios: large,
            stream: Stream::default(),
            noted: !self.volume.notes_reads(),
        }
    }

    /// The kernel's threads: flusher, journal, the one that frees what the last has closed, the worker that makes up what a log
    /// takes, the one that notes what write-back brought to the disk, and the one that ends writes of the log.
    pub(crate) fn threads(&self) -> [Path; 6] {
        let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|n| self.kernel(n));
        let (ends, log, made) = (self.volume.clone(), self.volume.clone(), self.volume.clone());
        let (v, j, o) = (self.volume.clone(), self.volume.clone(), self.clone());
        [
            Box::pin(async move {
                match a.with(|w| w.memory.settings.writers_write) {
                    true => a.pdflush(&v).await,
                    false => a.flusher(&v).await,
                }
                Ok(0)
            }),
            Box::pin(async move {
                j.journal_thread(&b).await;
                Ok(0)
            }),
            Box::pin(async move { o.free_orphans(&c).await }),
            Box::pin(async move {
                made.checkpoints(&d).await;
                Ok(0)
            }),
            Box::pin(async move {
                ends.completions(&e).await;
                Ok(0)
            }),
            Box::pin(async move {
                log.log_ends(&f).await;
                Ok(0)
            }),
        ]
    }

    async fn free_orphans(&self, k: &Kernel) -> Answer {
        loop {
            let next = self.orphans.borrow_mut().pop();
            match next {
                Some(file) => self.let_go(k, file).await,
                None => k.wait(iosched_vfs::kernel::Wait::Event(Event::Orphans)).await,
            }
        }
    }

    /// A file without a name goes.
    pub(super) async fn let_go(&self, k: &Kernel, file: u32) {
        self.volume.let_go(k, file).await;
        self.tree.borrow_mut().free(Ino(file));
        // Nobody can ask any more.
        k.with(|w| w.has_lost(file));
    }

    /// Whether memory has the whole range and nothing is to be read ahead for it: then it is read.
    pub(crate) fn read_cached(&self, open: &mut Open, part: Part) -> Option<u64> {
        self.world.borrow_mut().read_cached(open, part.at, part.len)
    }

    /// Whether the range lies in the file and is dirty already, and nothing is to be noted of a write at `now`: then it is
    /// written.
    pub(crate) fn write_cached(&self, actor: u32, part: Part, now: Nanos) -> Option<u64> {
        let file = part.ino.0;
        let noted = self.volume.is_stamped(file, now) && self.volume.is_logged(file, part.pages());
        if part.at.checked_add(part.len)? > self.len(part.ino) || !noted {
            return None;
        }
        self.world.borrow_mut().write_cached(actor, file, part.at, part.len)
    }

    /// Whether `O_DIRECT` goes past the page cache.
    pub(crate) fn takes_direct(&self) -> bool {
        self.volume.takes_direct()
    }

    /// Whether it is a directory.
    pub(crate) fn is_directory(&self, ino: Ino) -> bool {
        self.tree.borrow().node(ino).kind == Kind::Directory
    }

    /// The length of a file.
    pub(crate) fn len(&self, ino: Ino) -> Bytes {
        self.tree.borrow().node(ino).len
    }

    /// Reads a range through the cache. The open file's read-ahead is put back by `keep`.
    pub(crate) fn read(
        &self,
        actor: u32,
        mut open: Open,
        part: Part,
        keep: Rc<RefCell<Vec<Open>>>,
        file: u32,
    ) -> Path {
        let (k, volume) = (self.kernel(actor), self.volume.clone());
        Box::pin(async move {
            volume.read_map(&k, open.file, part.pages()).await;
            volume.accessed(&k, open.file).await;
            let place = volume.data(open.file);
            let n = k.read(&mut open, &place, part.at, part.len).await;
            let kept = &mut keep.borrow_mut()[file as usize];
            kept.stream = open.stream;
            kept.noted = true;
            Ok(n)
        })
    }

    /// Touches a page of a map; `keep` has the read-ahead of each map.
    pub(crate) fn fault(
        &self,
        actor: u32,
        mut open: Open,
        part: Part,
        keep: Rc<RefCell<BTreeMap<u32, Stream>>>,
        (map, order): (u32, Order),
    ) -> Path {
        let (k, volume) = (self.kernel(actor), self.volume.clone());
        Box::pin(async move {
            volume.read_map(&k, open.file, part.pages()).await;
            volume.accessed(&k, open.file).await;
            open.stream = keep.borrow().get(&map).cloned().unwrap_or_default();
            let place = volume.data(open.file);
            k.fault(&mut open, &place, part.at / PAGE, order).await;
            keep.borrow_mut().insert(map, open.stream);
            Ok(0)
        })
    }

    /// Whether the page of a byte is dirty: it is mapped for writing, and a store into it is no fault.
    pub(crate) fn is_dirty(&self, part: Part) -> bool {
        let mut w = self.world.borrow_mut();
        w.pages(part.ino.0).is_some_and(|p| p.has(part.at / PAGE, Mark::Dirty))
    }

    /// Writes a range in memory; then, with `sync`, to the disk.
    pub(crate) fn write(&self, actor: u32, open: Open, part: Part, sync: Option<bool>) -> Path {
        let (k, this) = (self.kernel(actor), self.clone());
        Box::pin(async move {
            let part = this.promised(&k, part).await?;
            let mut open = open;
            let (step, end) = (this.volume.written_at_once(), part.at + part.len);
            let mut at = part.at;
            while at < end {
                let to = end.min((at / PAGE).saturating_add(step).saturating_mul(PAGE));
                this.write_piece(&k, &mut open, Part { at, len: to - at, ..part }).await;
                at = to;
            }
            if let Some(data_only) = sync {
                this.synced(&k, open.file, data_only).await?;
            }
            Ok(part.len)
        })
    }

    async fn write_piece(&self, k: &Kernel, open: &mut Open, part: Part) {
        let place = self.volume.data(open.file);
        match k.with(|w| w.memory.settings.writers_write) {
            true => k.write_and_look(open, &self.volume, part.at, part.len).await,
            false => k.write(open, &place, part.at, part.len).await,
        };
        // What changes the file's map now would copy it for whoever looks at it.
        drop(place);
        self.longer(part);
        self.volume.wrote(k, open.file, part.pages()).await;
    }

    pub(super) fn longer(&self, part: Part) {
        let mut tree = self.tree.borrow_mut();
        let node = tree.node_mut(part.ino);
        node.len = node.len.max(part.at + part.len);
    }

    /// A device forgets a range: what is cached of it goes, even if it is dirty.
    pub(crate) fn discard(&self, actor: u32, part: Part) -> Result<Path, Errno> {
        let Volume::Raw(raw) = &self.volume else { return Err(Errno::ENOTTY) };
        part.aligned()?;
        if part.at.checked_add(part.len).is_none_or(|end| end > raw.bytes) {
            return Err(Errno::EINVAL);
        }
        if !self.world.borrow().memory.settings.discard {
            return Err(Errno::EOPNOTSUPP);
        }
        let k = self.kernel(actor);
        Ok(Box::pin(async move {
            if part.len > 0 {
                k.discard(part.range()).await;
            }
            Ok(0)
        }))
    }

    /// Copies a range by giving its blocks to the target, too, where the file system can do that with whole pages or up to
    /// the ends of both files; otherwise by `copy`.
    pub(crate) fn share_or(&self, actor: u32, source: Part, target: Part, copy: Path) -> Path {
        let length = |part: Part| self.tree.borrow().stat(part.ino).bytes;
        let ends = source.at + source.len == length(source)
            && target.at.saturating_add(target.len) >= length(target);
        let whole = source.at.is_multiple_of(PAGE)
            && target.at.is_multiple_of(PAGE)
            && (source.len.is_multiple_of(PAGE) || ends);
        let (k, this) = (self.kernel(actor), self.clone());
        Box::pin(async move {
            let (from, to) = ((source.ino.0, source.at / PAGE), (target.ino.0, target.at / PAGE));
            if !whole || !this.volume.share(&k, from, to, source.len.div_ceil(PAGE)).await {
                return copy.await;
            }
            this.longer(target);
            Ok(source.len)
        })
    }

    pub(crate) fn truncate(&self, actor: u32, ino: Ino, len: Bytes) -> Result<Path, Errno> {
        if len > LONGEST {
            return Err(Errno::EFBIG);
        }
        self.tree.borrow().file(ino).map_err(|_| Errno::EINVAL)?;
        let before = self.open(ino);
        self.tree.borrow_mut().node_mut(ino).len = len;
        let (k, this) = (self.kernel(actor), self.clone());
        Ok(Box::pin(async move {
            if len < before.size && !len.is_multiple_of(PAGE) {
                this.zero_tail(&k, before, len).await;
            }
            this.volume.truncate(&k, ino.0, len.div_ceil(PAGE)).await;
            Ok(0)
        }))
    }

    /// A file ends amid a page from now on: what lies behind in its block becomes zeros, in memory.
    async fn zero_tail(&self, k: &Kernel, mut open: Open, end: Bytes) {
        let (file, page) = (open.file, end / PAGE);
        let place = self.volume.data(file);
        if place.at(page).0.is_none() {
            return;
        }
        let len = PAGE - end % PAGE;
        match k.with(|w| w.memory.settings.writers_write) {
            true => k.write_and_look(&mut open, &self.volume, end, len).await,
            false => k.write(&mut open, &place, end, len).await,
        };
        drop(place);
        self.volume.wrote(k, file, (page, page + 1)).await;
    }

    /// Lets writers make as many pages dirty as they like, while files are prepared.
    pub(crate) fn unlimited(&self, on: bool) {
        self.world.borrow_mut().memory.unlimited(on);
    }

    /// No page has been written since the machine was started.
    pub(crate) fn restarted(&self) {
        self.world.borrow_mut().memory.restarted();
    }

    pub(crate) fn set_time(&self, now: Nanos) {
        self.world.borrow_mut().now = now;
    }
}
