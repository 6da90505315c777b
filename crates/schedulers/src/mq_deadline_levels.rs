//! The priority levels of mq-deadline and the choice of the next request.

use iosched_types::{Dir, IoPrio, Nanos, PrioClass, ReqId, Requests, Sector};

use crate::api::{Ctx, Position};
use crate::deadline_parts::{DirQueue, Ended, Reason, Start, Starvation, Tally, Terms, index};
use crate::jiffies::{self, Clock};
use crate::list::{Fifo, List};
use crate::mq_deadline_zones::Zones;
use crate::tree::PosTree;

/// How the sweep remembers where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// One pointer for both directions, to the successor of the last request dispatched.
    OneNext,
    /// One pointer per level and direction.
    NextPerDirection,
    /// The start of the last request per level and direction; the successor is searched anew.
    Position,
}

/// What differs between generations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) memory: Memory,
    /// 1 (no priorities) or 3.
    pub(crate) levels: usize,
    /// A level holds the lower ones back while it has requests queued or in flight, and requests
    /// that aged go first.
    pub(crate) waits_for_in_flight: bool,
    /// A request inserted at the head expires at once; before, it keeps the time it had.
    pub(crate) head_expires_now: bool,
    /// 5.15's slip: the `async_depth` file is `front_merges`.
    pub(crate) async_depth_file_is_front_merges: bool,
    /// `async_depth` is in tags of the whole map and scaled to its words (6.9 and later).
    pub(crate) scaled_async_depth: bool,
    /// The limit is `queue/async_depth`.
    pub(crate) limit_of_the_queue: bool,
    /// How writes to zones of a zoned device are kept in order.
    pub(crate) zones: ZoneRule,
}

/// Which part keeps the writes of a zone in order, and how the sweep passes over waiting ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneRule {
    /// The scheduler; the sweep passes over single requests.
    Locks,
    /// The scheduler; on a rotating disk the sweep passes over whole contiguous runs.
    LocksAndSkipsRuns,
    /// The block layer (6.10 and later).
    Elsewhere,
}

/// The name of a level.
fn name(level: usize) -> &'static str {
    ["RT", "BE", "IDLE"][level]
}

const BE: usize = 1;

/// The level of a priority: no class counts as best effort.
pub(crate) fn level_of(rules: Rules, prio: IoPrio) -> usize {
    match prio.class {
        _ if rules.levels == 1 => 0,
        PrioClass::Rt => 0,
        PrioClass::None | PrioClass::Be => BE,
        PrioClass::Idle => 2,
    }
}

/// What the scheduler notes in a request's own word: its level and marks.
const LEVEL: u64 = 3;
const COUNTED: u64 = 4;
const AT_HEAD: u64 = 8;
/// The request keeps its zone locked.
const LOCKS_ZONE: u64 = 16;

fn noted_level(reqs: &Requests, id: ReqId) -> usize {
    (reqs[id].elv[0] & LEVEL) as usize
}

#[derive(Debug, Default)]
struct Level {
    dirs: [DirQueue; 2],
    /// Start of the last request dispatched, per direction.
    position: [Sector; 2],
    /// Head inserts, served before anything else of the level.
    head: List<Fifo>,
    inserted: u64,
    finished: u64,
}

impl Level {
    /// Requests queued or in flight.
    fn queued(&self) -> u64 {
        self.inserted - self.finished
    }
}

/// A request chosen but not yet taken out.
#[derive(Clone, Copy)]
struct Pick {
    id: ReqId,
    reason: Reason,
}

/// All levels and the state they share.
pub(crate) struct Levels {
    rules: Rules,
    levels: [Level; 3],
    /// Requests in all of them.
    waiting: usize,
    clock: Clock,
    /// Jiffies until a read or write expires.
    pub(crate) expire: [i64; 2],
    /// Jiffies until a request of a lower level goes first.
    pub(crate) aging: i64,
    pub(crate) fifo_batch: i64,
    pub(crate) starvation: Starvation,
    last_dir: Dir,
    batching: i64,
    tally: Tally,
    aged: u64,
    zones: Zones,
}

/// What the tunables say.
pub(crate) struct Limits {
    /// Jiffies until a read or write expires.
    pub(crate) expire: [i64; 2],
    /// Jiffies until a request of a lower level goes first.
    pub(crate) aging: i64,
    pub(crate) fifo_batch: i64,
    pub(crate) starvation: Starvation,
}

impl Levels {
    pub(crate) fn new(rules: Rules, clock: Clock, limits: Limits, zones: Zones) -> Self {
        let Limits { expire, aging, fifo_batch, starvation } = limits;
        Levels {
            rules,
            levels: Default::default(),
            waiting: 0,
            clock,
            expire,
            aging,
            fifo_batch,
            starvation,
            last_dir: Dir::Write,
            batching: 0,
            tally: Tally::default(),
            aged: 0,
            zones,
        }
    }

    pub(crate) fn queue(&mut self, level: usize, dir: Dir) -> &mut DirQueue {
        &mut self.levels[level].dirs[index(dir)]
    }

    pub(crate) fn queue_of(&mut self, reqs: &Requests, id: ReqId) -> &mut DirQueue {
        self.queue(noted_level(reqs, id), reqs[id].op.dir())
    }

    pub(crate) fn tree_of(&self, reqs: &Requests, id: ReqId) -> &PosTree {
        &self.levels[noted_level(reqs, id)].dirs[index(reqs[id].op.dir())].tree
    }

    /// Head inserts are in no tree and take no bios.
    pub(crate) fn mergeable(&self, reqs: &Requests, id: ReqId) -> bool {
        reqs[id].elv[0] & AT_HEAD == 0
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, reqs: &mut Requests, id: ReqId, now: Nanos, at: Position) {
        let level = level_of(self.rules, reqs[id].prio);
        self.waiting += 1;
        let l = &mut self.levels[level];
        let r = &mut reqs[id];
        l.inserted += u64::from(r.elv[0] & COUNTED == 0);
        r.elv[0] = level as u64 | COUNTED | (r.elv[0] & LOCKS_ZONE);
        let now = self.clock.at(now);
        match at {
            Position::Head => {
                r.elv[0] |= AT_HEAD;
                if self.rules.head_expires_now {
                    r.fifo_time = now as u64;
                }
                l.head.push_front(reqs, id);
            }
            Position::Sort => {
                let d = index(r.op.dir());
                l.dirs[d].add(reqs, id, now + self.expire[d]);
            }
        }
    }

    pub(crate) fn absorb(&mut self, reqs: &mut Requests, into: ReqId, gone: ReqId) {
        self.waiting -= 1;
        let marks = reqs[into].elv[0] | reqs[gone].elv[0];
        if marks & AT_HEAD == 0 {
            self.queue_of(reqs, gone).absorb(reqs, into, gone);
        } else if reqs[gone].elv[0] & AT_HEAD == 0 {
            self.queue_of(reqs, gone).drop_absorbed(reqs, gone);
        } else {
            self.levels[noted_level(reqs, gone)].head.remove(reqs, gone);
        }
    }

    /// A request is over. Returns `true` when that unlocks a zone and a write may have waited for it.
    #[inline(always)]
    pub(crate) fn finished(&mut self, reqs: &mut Requests, id: ReqId) -> bool {
        let r = &mut reqs[id];
        let marks = r.elv[0];
        if marks & COUNTED != 0 {
            self.levels[(marks & LEVEL) as usize].finished += 1;
            r.elv[0] = marks & !(COUNTED | LOCKS_ZONE);
        }
        if marks & LOCKS_ZONE == 0 {
            return false;
        }
        self.zones.unlock(r.sector);
        self.has_work()
    }

    pub(crate) fn has_work(&self) -> bool {
        self.waiting > 0
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut all = self.tally.counters();
        if self.rules.waits_for_in_flight {
            all.push(("aged", self.aged));
        }
        all
    }

    /// The next request, if the levels let one go.
    #[inline(always)]
    pub(crate) fn dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        if !self.rules.waits_for_in_flight {
            return self.highest(ctx);
        }
        if let Some(id) = self.dispatch_aged(ctx) {
            return Some(id);
        }
        let level = (0..self.rules.levels).find(|l| self.queued(*l) > 0)?;
        if let Some(pick) = self.pick(ctx, level, None) {
            return Some(self.take(ctx, level, pick, None));
        }
        if self.has_work() {
            let n = self.queued(level);
            ctx.why(|_, _| format!("lower classes wait: {n} {} in flight", name(level)));
        }
        None
    }

    /// Says under `explain` why nothing goes although writes wait.
    pub(crate) fn explain_zones(&self, ctx: &mut Ctx<'_>) {
        let n = self.zones.locked();
        if n > 0 && self.has_work() {
            ctx.why(|_, _| format!("writes wait: {n} of their zones have one in flight"));
        }
    }

    /// Whether a request and a bio lie in different zones.
    pub(crate) fn zones_apart(&self, a: Sector, b: Sector) -> bool {
        self.zones.apart(a, b)
    }

    /// Requests of a level that are queued or in flight.
    fn queued(&self, level: usize) -> u64 {
        self.levels[level].queued()
    }

    /// The highest level that has something to give.
    pub(crate) fn highest(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        for level in 0..self.rules.levels {
            if let Some(pick) = self.pick(ctx, level, None) {
                return Some(self.take(ctx, level, pick, None));
            }
        }
        None
    }

    /// A request of a lower level that waited long enough. Looking for one may end the running batch
    /// and choose a direction even when none is old enough: the kernel's probe leaves these traces.
    #[inline]
    fn dispatch_aged(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        let others = self.levels.iter().enumerate().any(|(i, l)| i != BE && l.queued() > 0);
        if others { self.dispatch_aged_of_several(ctx) } else { None }
    }

    fn dispatch_aged_of_several(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        if self.levels.iter().filter(|l| l.queued() > 0).count() < 2 {
            return None;
        }
        let latest = self.clock.at(ctx.now) - self.aging;
        for level in BE..self.rules.levels {
            if let Some(pick) = self.pick(ctx, level, Some(latest)) {
                let waited = latest + self.aging - self.inserted_at(ctx, pick.id);
                self.aged += 1;
                return Some(self.take(ctx, level, pick, Some(waited)));
            }
        }
        None
    }

    /// When a request came, as far as its deadline tells.
    fn inserted_at(&self, ctx: &Ctx<'_>, id: ReqId) -> i64 {
        let r = &ctx.reqs[id];
        r.fifo_time as i64 - self.expire[index(r.op.dir())]
    }

    /// The next request of one level; `latest` refuses those that came after that jiffy.
    #[inline(always)]
    fn pick(&mut self, ctx: &Ctx<'_>, level: usize, latest: Option<i64>) -> Option<Pick> {
        let pick = match self.levels[level].head.head() {
            Some(id) => Pick { id, reason: Reason::Head },
            None => match self.within_batch(ctx.reqs, level) {
                Ok(id) => Pick { id, reason: Reason::Continues(self.batching + 1) },
                Err(ended) => self.new_batch(ctx, level, ended)?,
            },
        };
        let too_young = latest.is_some_and(|l| self.inserted_at(ctx, pick.id) > l);
        (!too_young).then_some(pick)
    }

    /// The request that goes on with the sweep of a direction.
    #[inline(always)]
    fn following(&self, reqs: &Requests, level: usize, dir: Dir) -> Option<ReqId> {
        let (l, d) = (&self.levels[level], index(dir));
        let next = match self.rules.memory {
            Memory::Position => l.dirs[d].tree.first_at_or_after(l.position[d]),
            _ => l.dirs[d].next,
        };
        if self.zones.active() { self.zones.sweep(reqs, &l.dirs[d], next) } else { next }
    }

    /// The request that waits longest among those that may go.
    fn oldest(&self, reqs: &Requests, level: usize, dir: Dir) -> Option<ReqId> {
        let queue = &self.levels[level].dirs[index(dir)];
        if self.zones.active() { self.zones.oldest(reqs, queue) } else { queue.fifo.head() }
    }

    /// The next request of the running batch, or how it ended.
    #[inline(always)]
    fn within_batch(&self, reqs: &Requests, level: usize) -> Result<ReqId, Ended> {
        if self.batching >= self.fifo_batch && self.batching > 0 {
            return Err(Ended::Full(self.batching));
        }
        let next = match self.rules.memory {
            Memory::OneNext => self
                .following(reqs, level, Dir::Write)
                .or_else(|| self.following(reqs, level, Dir::Read)),
            _ => self.following(reqs, level, self.last_dir),
        };
        match next {
            Some(id) if self.batching < self.fifo_batch => Ok(id),
            Some(_) => Err(Ended::Full(self.batching)),
            None if self.batching == 0 => Err(Ended::First),
            None => Err(Ended::RanOut(self.batching)),
        }
    }

    #[inline(always)]
    fn new_batch(&mut self, ctx: &Ctx<'_>, level: usize, ended: Ended) -> Option<Pick> {
        let reqs = &*ctx.reqs;
        let reads = !self.levels[level].dirs[0].is_empty();
        let writes = self.oldest(reqs, level, Dir::Write).is_some();
        let (dir, choice) = self.starvation.choose(reads, writes)?;
        let d = index(dir);
        let oldest = self.oldest(reqs, level, dir)?;
        let late = self.clock.at(ctx.now) - ctx.reqs[oldest].fifo_time as i64;
        let (id, start) = if late >= 0 {
            (oldest, Start::Expired(late + self.expire[d]))
        } else {
            self.following(reqs, level, dir)
                .map_or((oldest, Start::Oldest), |id| (id, Start::GoesOn))
        };
        self.last_dir = dir;
        self.batching = 0;
        Some(Pick { id, reason: Reason::NewBatch(ended, choice, start) })
    }

    /// Removes the chosen request and moves the sweep on.
    #[inline(always)]
    fn take(&mut self, ctx: &mut Ctx<'_>, level: usize, pick: Pick, aged: Option<i64>) -> ReqId {
        let Pick { id, reason } = pick;
        self.waiting -= 1;
        self.tally.note(reason);
        self.explain(ctx, level, pick, aged);
        // A write that comes back from the driver kept its zone.
        if self.zones.active()
            && ctx.reqs[id].elv[0] & LOCKS_ZONE == 0
            && self.zones.lock(ctx.reqs, id)
        {
            ctx.reqs[id].elv[0] |= LOCKS_ZONE;
        }
        let l = &mut self.levels[level];
        let r = &ctx.reqs[id];
        let (d, sector) = (index(r.op.dir()), r.sector);
        l.position[d] = sector;
        if reason == Reason::Head {
            l.head.remove(ctx.reqs, id);
            ctx.reqs[id].elv[0] &= !AT_HEAD;
            return id;
        }
        self.batching += 1;
        if self.rules.memory == Memory::Position {
            l.dirs[d].drop(ctx.reqs, sector, id);
            return id;
        }
        let successor = l.dirs[d].take(ctx.reqs, id);
        if self.rules.memory == Memory::OneNext {
            l.dirs[1 - d].next = None;
        }
        l.dirs[d].next = successor;
        id
    }

    #[inline]
    fn explain(&self, ctx: &mut Ctx<'_>, level: usize, pick: Pick, aged: Option<i64>) {
        if ctx.out.why.is_some() {
            self.give_reason(ctx, level, pick, aged);
        }
    }

    #[cold]
    fn give_reason(&self, ctx: &mut Ctx<'_>, level: usize, pick: Pick, aged: Option<i64>) {
        let dir = ctx.reqs[pick.id].op.dir();
        let terms = Terms {
            fifo_batch: self.fifo_batch,
            expire: self.expire[index(dir)],
            hz: self.clock.hz(),
            comparison: ">=",
            dir,
        };
        ctx.why(|_, _| {
            let others = self.rules.levels > 1
                && (level != BE
                    || self.levels.iter().enumerate().any(|(i, l)| i != BE && l.queued() > 0));
            let class = match aged {
                Some(waited) => {
                    format!("{} aged {} ms; ", name(level), jiffies::to_ms(waited, terms.hz))
                }
                None if others => format!("priority class {}; ", name(level)),
                None => String::new(),
            };
            class + &pick.reason.words(terms)
        });
    }
}
