//! XFS as the block layer sees it: the layout after `mkfs.xfs`, the places of inodes and files, what a change puts into the
//! log and how long that record is, when the log is written, by whom, and what goes home when.

mod cold;
mod commit;
mod cow;
pub mod dir;
mod inode;
pub mod layout;
pub mod log;
mod metadata;
mod ops;
mod promise;
mod share;
pub mod space;

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use iosched_types::{Flags, Nanos};

use self::inode::{At, Inode, Inodes};
use self::layout::{Layout, header};
use self::log::{Checkpoint, Log, Seq};
use self::share::Owners;
use self::space::Space;
use crate::fs::age::Ageing;
use crate::fs::atime::Atime;
use crate::fs::extents::Mapped;

/// Mount options and what the kernel's time is made of.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Flushes and FUA.
    pub barrier: bool,
    /// Granularity of time stamps: a tick of the kernel's timer.
    pub tick: Nanos,
    /// Whether timers are rounded up as in a wheel: since 4.8.
    pub wheel: bool,
    /// When its worker comes first: 30 s after the mount.
    pub worker: Nanos,
    /// Log buffers that can be on their way at once (`logbufs`).
    pub log_buffers: usize,
    /// Sectors of each (`logbsize`).
    pub log_buffer: u64,
    /// Flags of writes of the log: the kernels' habits differ.
    pub log_flags: Flags,
    /// Every write of the log flushes and goes past the cache, as in 3.12, not only the first and the last of a record.
    pub flushes_each: bool,
    /// When a read changes the time of the last access.
    pub atime: Atime,
    /// Copies share the blocks of their source (`reflink`).
    pub shares: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            barrier: true,
            tick: 4_000_000,
            wheel: true,
            worker: WORKER,
            log_buffers: 8,
            log_buffer: 64,
            log_flags: Flags::SYNC.with(Flags::META).with(Flags::IDLE),
            flushes_each: false,
            atime: Atime::Never,
            shares: true,
        }
    }
}

/// How long after a mount its worker comes first, and then again and again (`fs.xfs.xfssyncd_centisecs`).
pub const WORKER: Nanos = 30_000_000_000;

/// Pages of a unit of copy-on-write: 128 KiB.
const UNIT: u64 = 32;
/// Files below this size take no blocks along for what may be appended, in pages.
const SMALL: u64 = 16;

/// A mounted file system. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Xfs(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    options: Options,
    layout: Layout,
    groups: Vec<Space>,
    /// The same without the blocks whose freeing is not in the log: they are not given away yet.
    usable: Vec<Space>,
    /// Those blocks, with the checkpoint that frees them.
    freed: VecDeque<(Seq, Mapped)>,
    /// Free blocks that nobody gets for data, and those promised to pages without a place.
    kept: u64,
    promised: u64,
    /// Who has a block beside the first.
    owners: Owners,
    inodes: Inodes,
    log: Log,
    /// Somebody wants a checkpoint of what has changed.
    asked: bool,
    /// The record that is being written.
    on_its_way: Option<Checkpoint>,
    /// Buffers in memory, by their first sector.
    warm: BTreeSet<u64>,
    /// It was mounted after files had been made: names and inodes are read.
    cold: bool,
    /// Groups that somebody allocates in, and waits for a block of.
    busy: BTreeSet<u64>,
    /// The group of the next directory. Each mount begins with the first.
    next_directory: u64,
    /// Inodes without a name whose blocks are to be freed, and they themselves.
    dead: Vec<Inode>,
    /// When the last of them came.
    died: Nanos,
    /// Checkpoints in the log.
    checkpoints: u64,
    /// The worker comes again: there was a change, or it has not yet marked the log as clean.
    awake: bool,
    /// When the worker comes next.
    next_tick: Nanos,
    /// The worker's records that say nothing, since the last change.
    dummies: u32,
}

impl Xfs {
    /// An empty file system on a device of `blocks` blocks of 4 KiB, mounted, with its root directory as `root`.
    #[must_use]
    pub fn new(blocks: u64, root: u32, options: Options, ageing: Option<Ageing>) -> Self {
        let layout = Layout::new(blocks);
        let groups: Vec<Space> =
            (0..layout.groups).map(|g| Space::new(&aged(&layout.free(g), ageing, g))).collect();
        let inodes = Inodes::new(&layout, root);
        // mkfs and the mount have written two sectors.
        let log = Log::new(layout.log.1 * 8, FIRST_RECORD, options.log_buffer);
        let state = State {
            options,
            usable: groups.clone(),
            groups,
            freed: VecDeque::new(),
            kept: promise::kept(&layout),
            promised: 0,
            owners: Owners::default(),
            inodes,
            log,
            asked: false,
            on_its_way: None,
            warm: BTreeSet::new(),
            cold: false,
            busy: BTreeSet::new(),
            next_directory: 0,
            dead: Vec::new(),
            died: 0,
            checkpoints: 0,
            awake: false,
            next_tick: options.worker,
            dummies: 0,
            layout,
        };
        let fs = Self(Rc::new(RefCell::new(state)));
        fs.with(State::mount);
        fs
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.borrow_mut())
    }
}

/// Free stretches, start and length, of which ageing leaves some.
fn aged(free: &[(u64, u64)], ageing: Option<Ageing>, group: u64) -> Vec<(u64, u64)> {
    let Some(ageing) = ageing else { return free.to_vec() };
    let mut left = Vec::new();
    for (from, length) in free {
        let (mut at, to) = (*from, from + length);
        for (a, b) in ageing.taken(group, *from, to) {
            left.extend((at < a).then(|| (at, a - at)));
            at = b;
        }
        left.extend((at < to).then(|| (at, to - at)));
    }
    left
}

/// Where the first record after `mkfs` and the mount begins, in sectors of the log.
const FIRST_RECORD: u64 = 2;

impl State {
    /// The mount reads the headers of all groups.
    fn mount(&mut self) {
        let layout = &self.layout;
        let headers = (0..layout.groups)
            .flat_map(|g| [0, header::AGF, header::AGI].map(|sector| layout.header(g, sector)));
        self.warm = headers.collect();
        // What was in the log before is at home, and the worker comes as after any mount.
        for item in self.log.to_go_home(None) {
            self.log.at_home(item);
        }
        self.next_tick = self.options.worker;
        self.awake = false;
        self.dummies = 0;
        self.next_directory = 0;
    }

    /// Time has passed, and clean buffers have left memory. Linux 6.12 keeps the headers of groups longest: they go when four
    /// files or more leave memory as well (seen with one to four prepared files).
    fn rest(&mut self) {
        let files = self.inodes.iter_mut().map(|(_, inode)| inode.stamp = None).count() - 1;
        let headers = if files < FILES_WITH_HEADERS { header::AGFL } else { 0 };
        let (log, layout) = (&self.log, &self.layout);
        let clusters: BTreeSet<u64> =
            log.inodes().map(|number| At::of(number).cluster(layout)).collect();
        self.warm.retain(|sector| match sector % (layout.group * 8) {
            within if within <= header::AGFL => within < headers,
            _ => log.holds(*sector) || clusters.contains(sector),
        });
    }
}

/// Files that take the headers of groups along when they leave memory.
const FILES_WITH_HEADERS: usize = 4;

#[cfg(test)]
mod tests;
