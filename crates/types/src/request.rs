//! Bios and requests, and the slab in which requests live.

use crate::op::{Flags, Op};
use crate::prio::IoPrio;
use crate::units::{Nanos, Sector};

/// A process as schedulers know it: its I/O context. Dense from 0, so it indexes a `Vec`.
pub type TaskId = u32;
/// Index of a request in [`Requests`].
pub type ReqId = u32;
/// The submitter's cookie of a bio; handed back at completion.
pub type BioId = u32;
/// "No request": list ends and empty slots.
pub const NO_REQ: ReqId = u32::MAX;
/// "No bio": not to be used as a cookie.
pub const NO_BIO: BioId = u32::MAX;

/// What a file system or a direct-I/O path hands to the block layer.
#[derive(Clone, Copy, Debug)]
pub struct Bio {
    /// The submitter's cookie.
    pub id: BioId,
    /// Operation.
    pub op: Op,
    /// Flags.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors (0 for an empty flush).
    pub sectors: u32,
    /// The owner of the I/O: the I/O context that schedulers see.
    pub task: TaskId,
    /// The task that submits it and would sleep for it: the process itself (the same number) or a thread that works for
    /// it (numbered behind all processes). Each such task has a plug of its own.
    pub thread: TaskId,
    /// The priority of the process.
    pub prio: IoPrio,
    /// The control group (0 is the root).
    pub cgroup: u32,
    /// CPU it was submitted from.
    pub cpu: u16,
}

impl Bio {
    /// First sector after it.
    #[must_use]
    #[inline]
    pub fn end(&self) -> Sector {
        self.sector + Sector::from(self.sectors)
    }

    /// Whether a process waits for it: reads, and writes marked synchronous.
    #[must_use]
    pub fn is_sync(&self) -> bool {
        self.op == Op::Read
            || self.flags.0 & (Flags::SYNC.0 | Flags::FUA.0 | Flags::PREFLUSH.0) != 0
    }
}

/// How a direct write to a block device with `O_SYNC` or `O_DSYNC` reaches the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectSync {
    /// It does not: such a write ends in the device's cache.
    Cached,
    /// A flush follows the write.
    Flush,
    /// The write is a FUA write. A call that returns when it is done flushes after that as well; an asynchronous one does not.
    #[default]
    Fua,
}

/// Links of an intrusive doubly linked list of requests.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The request before, or [`NO_REQ`].
    pub prev: ReqId,
    /// The request after, or [`NO_REQ`].
    pub next: ReqId,
}

impl Default for Link {
    fn default() -> Self {
        Link { prev: NO_REQ, next: NO_REQ }
    }
}

/// One request: the unit schedulers order and devices serve. It may carry several bios.
///
/// The size is two cache lines, so a shift finds the place of a request in the slab.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Request {
    /// Operation.
    pub op: Op,
    /// Flags of its first bio.
    pub flags: Flags,
    /// First sector.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u32,
    /// Process (I/O context) that allocated it.
    pub task: TaskId,
    /// The priority.
    pub prio: IoPrio,
    /// The control group.
    pub cgroup: u32,
    /// Software queue (CPU).
    pub cpu: u16,
    /// Hardware queue.
    pub hctx: u16,
    /// When the request was allocated ("start": kyber's total latency begins here).
    pub t_start: Nanos,
    /// When the driver accepted it.
    pub t_issue: Nanos,
    /// Expiry in the scheduler's FIFO, in the scheduler's own clock (ns or jiffies).
    pub fifo_time: Nanos,
    /// The scheduler's FIFO links. Free for any list while the request is in the scheduler.
    pub fifo: Link,
    /// A second list of the scheduler's.
    pub list: Link,
    /// Two words of the scheduler's own (the kernel's `elv.priv`).
    pub elv: [u64; 2],
    /// The first bio, owned by the block layer; [`NO_BIO`] when there is none.
    pub bio: BioId,
    /// First and last of its further bios, owned by the block layer.
    pub bios: Link,
    /// Segments, for the merge limits.
    pub segments: u16,
    /// Bookkeeping bits of the block layer.
    pub state: u16,
    /// Scheduler tag (or the only tag where there is no scheduler), owned by the block layer.
    pub tag: u32,
    /// The system call or queue run that issued it, counted by the block layer.
    pub call: u32,
    /// Word of the block layer's (hash chain).
    pub hash: Link,
}

impl Request {
    /// A request with nothing but a place: what tests and scenarios start from.
    #[must_use]
    pub fn new(op: Op, sector: Sector, sectors: u32) -> Self {
        Request {
            op,
            flags: Flags::NONE,
            sector,
            sectors,
            task: 0,
            prio: IoPrio::default(),
            cgroup: 0,
            cpu: 0,
            hctx: 0,
            t_start: 0,
            t_issue: 0,
            fifo_time: 0,
            fifo: Link::default(),
            list: Link::default(),
            elv: [0; 2],
            bio: NO_BIO,
            bios: Link::default(),
            segments: 1,
            state: 0,
            tag: u32::MAX,
            call: 0,
            hash: Link::default(),
        }
    }

    /// First sector after it.
    #[must_use]
    pub fn end(&self) -> Sector {
        self.sector + Sector::from(self.sectors)
    }

    /// Whether a process waits for it: reads, and writes marked synchronous (`rq_is_sync`).
    #[must_use]
    pub fn is_sync(&self) -> bool {
        self.op == Op::Read
            || self.flags.0 & (Flags::SYNC.0 | Flags::FUA.0 | Flags::PREFLUSH.0) != 0
    }
}

/// The slab of requests of one queue. Indices stay valid until freed. Freed slots are reused last in, first out.
/// Nothing is allocated once the largest number in flight has been reached.
#[derive(Debug, Default)]
pub struct Requests {
    slots: Vec<Request>,
    free: Vec<ReqId>,
    live: usize,
}

/// Marks a slot that is not in use.
const FREE_SLOT: u16 = u16::MAX;

impl Requests {
    /// An empty slab with room for `n` requests.
    #[must_use]
    pub fn with_capacity(n: usize) -> Self {
        Requests { slots: Vec::with_capacity(n), free: Vec::with_capacity(n), live: 0 }
    }

    /// Stores a request.
    pub fn add(&mut self, request: Request) -> ReqId {
        self.live += 1;
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = request;
            return id;
        }
        self.slots.push(request);
        (self.slots.len() - 1) as ReqId
    }

    /// Stores a fresh request of one bio, resetting a reused slot in place.
    #[inline(always)]
    pub fn add_bio(&mut self, bio: &Bio, segments: u16, now: Nanos) -> (ReqId, &mut Request) {
        let id = match self.free.pop() {
            Some(id) => {
                self.live += 1;
                id
            }
            None => self.grow(),
        };
        let r = &mut self.slots[id as usize];
        (r.op, r.flags, r.sector, r.sectors) = (bio.op, bio.flags, bio.sector, bio.sectors);
        (r.task, r.prio, r.cgroup, r.cpu) = (bio.task, bio.prio, bio.cgroup, bio.cpu);
        (r.bio, r.bios, r.segments, r.t_start) = (bio.id, Link::default(), segments, now);
        (r.state, r.tag, r.hctx) = (0, u32::MAX, 0);
        r.elv = [0; 2];
        // `hash` stays as it is: a state of 0 says that the request is in no hash.
        (r.fifo, r.list) = (Link::default(), Link::default());
        (r.fifo_time, r.t_issue) = (0, 0);
        (id, r)
    }

    #[cold]
    fn grow(&mut self) -> ReqId {
        self.add(Request::new(Op::Read, 0, 0))
    }

    /// Frees a slot. The caller promises that the id is not used any more.
    #[inline]
    pub fn remove(&mut self, id: ReqId) {
        self.live -= 1;
        self.slots[id as usize].state = FREE_SLOT;
        self.free.push(id);
    }

    /// Requests stored now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live
    }

    /// The requests stored now, in slot order.
    pub fn iter_live(&self) -> impl Iterator<Item = &Request> {
        self.slots.iter().filter(|r| r.state != FREE_SLOT)
    }

    /// Whether no request is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }
}

impl std::ops::Index<ReqId> for Requests {
    type Output = Request;
    #[inline]
    fn index(&self, id: ReqId) -> &Request {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<ReqId> for Requests {
    #[inline]
    fn index_mut(&mut self, id: ReqId) -> &mut Request {
        &mut self.slots[id as usize]
    }
}
