//! deadline (until 4.20): one-way sweeps in batches, with a deadline for the oldest request.
//!
//! Reads and writes are sorted separately. A batch goes up by sector. Between batches reads are preferred until writes
//! have been passed over `writes_starved` times. A request that waited longer than its expiry starts the next batch.
//! 2.6.24 changed the meaning of a batch: before, only a contiguous run counted, and a sweep began at the lowest sector
//! instead of the oldest request.

use iosched_types::{Bio, Dir, ReqId, Sector};

use crate::api::{Ctx, Dispatch, Hooks, MergeKind, Position, Scheduler};
use crate::deadline_parts::{DirQueue, Ended, Reason, Start, Starvation, Tally, Terms, index};
use crate::descriptor::{
    BlockPath, BuildArgs, Descriptor, Facts, Generation, KernelVersion, Tunable,
};
use crate::jiffies::{self, Clock};

const ALL: &[u8] = &[0, 1, 2, 3];
const INT_MAX: i64 = i32::MAX as i64;

/// Descriptor of deadline.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "deadline",
    aliases: &[],
    summary: "Sweeps upwards in batches, reads before writes, and serves requests that waited too long.",
    path: BlockPath::Legacy,
    facts: Facts::USUAL,
    generations: GENERATIONS,
    tunables: TUNABLES,
    build: &build,
};

const GENERATIONS: &[Generation] = &[
    Generation {
        index: 0,
        name: "2.6.18",
        first: KernelVersion(2, 6, 10),
        last: Some(KernelVersion(2, 6, 23)),
        summary: "A batch is a contiguous run; a sweep starts at the lowest sector. \
                  A second request with the same start sends the first to the dispatch queue.",
    },
    Generation {
        index: 1,
        name: "2.6.24",
        first: KernelVersion(2, 6, 24),
        last: Some(KernelVersion(2, 6, 39)),
        summary: "A batch is any `fifo_batch` requests in sector order; a sweep starts at the \
                  oldest request.",
    },
    Generation {
        index: 2,
        name: "3.0",
        first: KernelVersion(3, 0, 0),
        last: Some(KernelVersion(3, 13, 0)),
        summary: "Several requests may have the same start; they go in order of arrival.",
    },
    Generation {
        index: 3,
        name: "3.14",
        first: KernelVersion(3, 14, 0),
        last: Some(KernelVersion(4, 20, 0)),
        summary: "A request expires at its jiffy, not after it.",
    },
];

const TUNABLES: &[Tunable] = &[
    Tunable {
        name: "read_expire",
        unit: "ms",
        default_text: "500",
        default: |_| 500,
        min: 0,
        max: INT_MAX,
        generations: ALL,
        help: "A read older than this starts the next batch of reads.",
    },
    Tunable {
        name: "write_expire",
        unit: "ms",
        default_text: "5000",
        default: |_| 5000,
        min: 0,
        max: INT_MAX,
        generations: ALL,
        help: "A write older than this starts the next batch of writes.",
    },
    Tunable {
        name: "writes_starved",
        unit: "count",
        default_text: "2",
        default: |_| 2,
        min: i32::MIN as i64,
        max: INT_MAX,
        generations: ALL,
        help: "Batches of reads that may go ahead of waiting writes.",
    },
    Tunable {
        name: "fifo_batch",
        unit: "requests",
        default_text: "16",
        default: |_| 16,
        min: 0,
        max: INT_MAX,
        generations: ALL,
        help: "Requests of a batch; in 2.6.18 only contiguous ones extend it.",
    },
    Tunable {
        name: "front_merges",
        unit: "0/1",
        default_text: "1",
        default: |_| 1,
        min: 0,
        max: 1,
        generations: ALL,
        help: "Look for requests that a bio can be prepended to.",
    },
];

/// What differs between generations.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Only contiguous requests extend a batch, and a sweep starts at the lowest sector.
    contiguous: bool,
    /// The tree holds one request per start; a second one ejects the first.
    unique: bool,
    /// A request expires at its jiffy. Otherwise it does so when its jiffy is over.
    expires_at: bool,
}

const RULES: [Rules; 4] = [
    Rules { contiguous: true, unique: true, expires_at: false },
    Rules { contiguous: false, unique: true, expires_at: false },
    Rules { contiguous: false, unique: false, expires_at: false },
    Rules { contiguous: false, unique: false, expires_at: true },
];

struct Deadline {
    rules: Rules,
    dirs: [DirQueue; 2],
    clock: Clock,
    hz: u32,
    /// Jiffies until a read or write expires.
    expire: [i64; 2],
    fifo_batch: i64,
    front_merges: bool,
    /// Requests of the current batch.
    batching: i64,
    starvation: Starvation,
    /// End of the last dispatched request.
    last_sector: Sector,
    tally: Tally,
}

fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    let (t, hz) = (args.tunables, args.queue.hz);
    Box::new(Deadline {
        rules: RULES[usize::from(args.generation)],
        dirs: [DirQueue::default(), DirQueue::default()],
        clock: Clock::new(hz),
        hz,
        expire: ["read_expire", "write_expire"].map(|n| jiffies::from_ms(t.get(n), hz)),
        fifo_batch: t.get("fifo_batch"),
        front_merges: t.get("front_merges") != 0,
        batching: 0,
        starvation: Starvation::new(t.get("writes_starved")),
        last_sector: 0,
        tally: Tally::default(),
    })
}

impl Deadline {
    fn dir(&mut self, ctx: &Ctx<'_>, req: ReqId) -> &mut DirQueue {
        &mut self.dirs[index(ctx.reqs[req].op.dir())]
    }

    /// Trees of old kernels hold one request per start. An older one with the same start leaves for dispatch.
    fn eject_alias(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if !self.rules.unique {
            return;
        }
        let sector = ctx.reqs[req].sector;
        if let Some(older) = self.dir(ctx, req).tree.find(sector) {
            ctx.why(|r, _| {
                format!("{}{sector} leaves: another request starts there", r[older].op.letter())
            });
            self.take(ctx, older);
            ctx.out.ejected.push(older);
        }
    }

    /// Removes a request for dispatch; the sweep continues behind it.
    fn take(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let d = index(ctx.reqs[req].op.dir());
        let successor = self.dirs[d].take(ctx.reqs, req);
        self.dirs[1 - d].next = None;
        self.dirs[d].next = successor;
        self.last_sector = ctx.reqs[req].end();
    }

    /// The request that continues the sweep of either direction.
    fn following(&self) -> Option<ReqId> {
        self.dirs[index(Dir::Write)].next.or(self.dirs[index(Dir::Read)].next)
    }

    /// The next request of the running batch, or how it ended.
    fn within_batch(&mut self, ctx: &Ctx<'_>) -> Result<ReqId, Ended> {
        let next = self.following();
        let gap =
            self.rules.contiguous && next.is_some_and(|id| ctx.reqs[id].sector != self.last_sector);
        if gap {
            // A seek uses up a whole batch, because batches are meant for contiguous runs.
            self.batching = self.batching.saturating_add(self.fifo_batch);
        }
        match next {
            Some(id) if self.batching < self.fifo_batch => Ok(id),
            Some(_) if gap => Err(Ended::Gap),
            Some(_) => Err(Ended::Full(self.batching)),
            None if self.batching == 0 => Err(Ended::First),
            None => Err(Ended::RanOut(self.batching)),
        }
    }

    /// Where a new batch of a direction starts.
    fn start_batch(&mut self, ctx: &Ctx<'_>, dir: Dir) -> Option<(ReqId, Start)> {
        let now = self.clock.at(ctx.now);
        let q = &self.dirs[index(dir)];
        let oldest = q.fifo.head()?;
        let late = now - ctx.reqs[oldest].fifo_time as i64;
        let pick = if late > 0 || (late == 0 && self.rules.expires_at) {
            (oldest, Start::Expired(late + self.expire[index(dir)]))
        } else if let Some(id) = q.next {
            if self.rules.contiguous {
                // 2.6.18 goes on without opening a new batch.
                return Some((id, Start::GoesOn));
            }
            (id, Start::GoesOn)
        } else if self.rules.contiguous {
            (q.tree.first()?, Start::Lowest)
        } else {
            (oldest, Start::Oldest)
        };
        self.batching = 0;
        Some(pick)
    }

    fn pick(&mut self, ctx: &Ctx<'_>) -> Option<(ReqId, Reason)> {
        let ended = match self.within_batch(ctx) {
            Ok(id) => return Some((id, Reason::Continues(self.batching + 1))),
            Err(ended) => ended,
        };
        let [reads, writes] = [Dir::Read, Dir::Write].map(|d| !self.dirs[index(d)].is_empty());
        let (dir, choice) = self.starvation.choose(reads, writes)?;
        let (id, start) = self.start_batch(ctx, dir)?;
        Some((id, Reason::NewBatch(ended, choice, start)))
    }

    fn next_request(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        let (id, reason) = self.pick(ctx)?;
        self.tally.note(reason);
        self.batching = self.batching.saturating_add(1);
        let dir = ctx.reqs[id].op.dir();
        let terms = Terms {
            fifo_batch: self.fifo_batch,
            expire: self.expire[index(dir)],
            hz: self.hz,
            comparison: if self.rules.expires_at { ">=" } else { ">" },
            dir,
        };
        ctx.why(|_, _| reason.words(terms));
        self.take(ctx, id);
        Some(id)
    }
}

impl Scheduler for Deadline {
    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn find_front(&mut self, _ctx: &mut Ctx<'_>, bio: &Bio) -> Option<ReqId> {
        if !self.front_merges {
            return None;
        }
        self.dirs[index(bio.op.dir())].front(bio)
    }

    fn merged(&mut self, ctx: &mut Ctx<'_>, req: ReqId, kind: MergeKind, old_sector: Sector) {
        if kind == MergeKind::Front {
            self.eject_alias(ctx, req);
            self.dirs[index(ctx.reqs[req].op.dir())].reposition(ctx.reqs, req, old_sector);
        }
    }

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, into: ReqId, gone: ReqId) {
        self.dirs[index(ctx.reqs[gone].op.dir())].absorb(ctx.reqs, into, gone);
    }

    fn next_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        let r = &ctx.reqs[req];
        self.dirs[index(r.op.dir())].tree.next(r.sector, req)
    }

    fn prev_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        let r = &ctx.reqs[req];
        self.dirs[index(r.op.dir())].tree.prev(r.sector, req)
    }

    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, _at: Position) {
        // The legacy path keeps head inserts in its dispatch queue. So everything that comes here is sorted.
        self.eject_alias(ctx, req);
        let d = index(ctx.reqs[req].op.dir());
        let expiry = self.clock.at(ctx.now) + self.expire[d];
        self.dirs[d].add(ctx.reqs, req, expiry);
    }

    fn has_work(&self) -> bool {
        self.dirs.iter().any(|d| !d.is_empty())
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _hctx: u16) -> Dispatch {
        self.next_request(ctx).map_or(Dispatch::Empty, Dispatch::Request)
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        self.next_request(ctx)
    }

    fn set_tunable(&mut self, _ctx: &mut Ctx<'_>, name: &str, value: i64) {
        match name {
            "read_expire" => self.expire[0] = jiffies::from_ms(value, self.hz),
            "write_expire" => self.expire[1] = jiffies::from_ms(value, self.hz),
            "writes_starved" => self.starvation.limit = value,
            "fifo_batch" => self.fifo_batch = value,
            "front_merges" => self.front_merges = value != 0,
            _ => {}
        }
    }

    fn tunable(&self, name: &str) -> Option<i64> {
        Some(match name {
            "read_expire" => jiffies::to_ms(self.expire[0], self.hz),
            "write_expire" => jiffies::to_ms(self.expire[1], self.hz),
            "writes_starved" => self.starvation.limit,
            "fifo_batch" => self.fifo_batch,
            "front_merges" => i64::from(self.front_merges),
            _ => return None,
        })
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.tally.counters()
    }
}
