//! The anticipatory scheduler (until 2.6.32): after a synchronous request it keeps the disk idle for a few
//! milliseconds, because the process that issued it will probably read on next to it.
//!
//! All its clocks are jiffies. In the kernel, all disks that a process uses share what the scheduler learns of it. Here
//! it belongs to one instance.

mod batch;
mod descriptor;
mod process;
mod wait;

use iosched_types::{Bio, Dir, Flags, Op, ReqId, Requests, Sector, TaskId};

use crate::api::{Ctx, Dispatch, MayQueue, MergeKind, Position, Scheduler};
use crate::choice::SeekRule;
use crate::descriptor::BuildArgs;
use crate::jiffies::{self, Clock};
use crate::list::{Fifo, List};
use crate::tree::PosTree;
use batch::Choice;
use descriptor::{Rules, rules};
use process::{Newcomers, Process};
use wait::{Status, Wait};

pub use descriptor::DESCRIPTOR;

/// Classes: requests that a process waits for, and the rest.
const ASYNC: usize = 0;
const SYNC: usize = 1;
const CLASS_NAMES: [&str; 2] = ["write", "read"];

/// Word of a request: the process it counts for.
const OWNER: usize = 0;
/// Word of a request: how far it is.
const STATE: usize = 1;
/// In the trees and FIFOs.
const QUEUED: u64 = 1;
/// In the dispatch queue, not fetched by the driver.
const MOVED: u64 = 2;
/// At the driver.
const FETCHED: u64 = 3;
/// Completed, or absorbed by another.
const OVER: u64 = 4;

/// Going backwards costs twice, and at most 512 MiB of it.
const SEEK: SeekRule = SeekRule { back_max: 1 << 20, back_penalty: 2, urgent: Flags::NONE };

/// One class of requests.
#[derive(Debug, Default)]
struct Class {
    tree: PosTree,
    fifo: List<Fifo>,
    /// The best request by position. There is one whenever the class is not empty.
    next: Option<ReqId>,
    /// End of the last request moved.
    last_pos: Sector,
    /// When the FIFO head was last checked against the clock: long ago at first.
    last_check: i64,
}

impl Class {
    /// The best by position once `req`, still in the tree, is gone.
    fn after(&self, reqs: &Requests, req: ReqId) -> Option<ReqId> {
        let at = reqs[req].sector;
        let next = self.tree.next(at, req).or_else(|| self.tree.first().filter(|&f| f != req));
        SEEK.choose(reqs, next, self.tree.prev(at, req), self.last_pos)
    }

    fn remove(&mut self, reqs: &mut Requests, req: ReqId) {
        if self.next == Some(req) {
            self.next = self.after(reqs, req);
        }
        self.tree.remove(reqs[req].sector, req);
        self.fifo.remove(reqs, req);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    waits: u64,
    hits: u64,
    timeouts: u64,
    promoted: u64,
    batches: [u64; 2],
}

struct Anticipatory {
    rules: Rules,
    clock: Clock,
    classes: [Class; 2],
    /// Class of the current batch.
    dir: usize,
    batch_end: i64,
    /// The class is being switched. Requests of the old class in flight have to drain.
    changed: bool,
    /// A sync batch has begun, and its time has not.
    fresh: bool,
    /// Writes allowed per async batch.
    wcount: u32,
    /// Writes left in this one.
    wleft: u32,
    /// The async batch ran dry, so its duration says nothing.
    widle: bool,
    /// Requests moved and not completed.
    inflight: u32,
    wait: Wait,
    newcomers: Newcomers,
    processes: Vec<Process>,
    /// Longest think time recorded.
    max_think: i64,
    fifo_expire: [i64; 2],
    batch_expire: [i64; 2],
    antic_expire: i64,
    stats: Stats,
}

fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    let clock = Clock::new(args.queue.hz);
    let hz = clock.hz();
    let value = |name| jiffies::from_ms(args.tunables.get(name), hz);
    // These follow from the defaults: the kernel computes them before anybody can write a tunable.
    let first_writes = u32::try_from(descriptor::write_batch_expire(hz) / 10).unwrap_or(0);
    let now = i64::try_from(args.queue.jiffies(args.now)).unwrap_or(i64::MAX / 2);
    let batch_end = now + descriptor::read_batch_expire(hz);
    Box::new(Anticipatory {
        rules: rules(args.generation),
        clock,
        classes: [ASYNC, SYNC].map(|_| Class { last_check: i64::MIN / 2, ..Class::default() }),
        dir: ASYNC,
        batch_end,
        changed: false,
        fresh: false,
        wcount: first_writes.max(2),
        wleft: 0,
        widle: false,
        inflight: 0,
        wait: Wait { status: Status::Off, target: None, start: 0, done: false },
        newcomers: Newcomers::default(),
        processes: vec![Process::default(); args.queue.tasks.len()],
        max_think: (i64::from(hz / 50) - 1).max(0),
        fifo_expire: [value("write_expire"), value("read_expire")],
        batch_expire: [value("write_batch_expire"), value("read_batch_expire")],
        antic_expire: value("antic_expire"),
        stats: Stats::default(),
    })
}

impl Anticipatory {
    fn process(&mut self, task: TaskId) -> &mut Process {
        let i = task as usize;
        if i >= self.processes.len() {
            self.processes.resize(i + 1, Process::default());
        }
        &mut self.processes[i]
    }

    fn owner(&mut self, reqs: &Requests, req: ReqId) -> &mut Process {
        self.process(reqs[req].elv[OWNER] as TaskId)
    }

    fn class_of(reqs: &Requests, req: ReqId) -> usize {
        usize::from(reqs[req].is_sync())
    }

    /// Enters a request into its tree. An older one with the same start leaves for the dispatch queue:
    /// the keys of the tree are unique.
    fn enter_tree(&mut self, ctx: &mut Ctx<'_>, req: ReqId, class: usize) {
        let at = ctx.reqs[req].sector;
        while let Some(older) = self.classes[class].tree.find(at) {
            ctx.why(|r, _| {
                format!("another request starts at {}: the older leaves", r[older].sector)
            });
            self.take(ctx, older);
            ctx.out.ejected.push(older);
        }
        self.classes[class].tree.insert(at, req);
    }

    /// Moves a request to the dispatch queue.
    fn take(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.stop_wait(ctx);
        let c = Self::class_of(ctx.reqs, req);
        self.wait.status = Status::Off;
        self.wait.done = false;
        self.classes[c].last_pos = ctx.reqs[req].end();
        if c == SYNC {
            self.wait.target = Some(ctx.reqs[req].elv[OWNER] as TaskId);
        } else {
            self.wait.target = None;
            self.wleft = self.wleft.saturating_sub(1);
        }
        // The search for the next best starts at this request, even if this was not the best itself.
        self.classes[c].next = Some(req);
        self.classes[c].remove(ctx.reqs, req);
        ctx.reqs[req].elv[STATE] = MOVED;
        let p = self.owner(ctx.reqs, req);
        p.queued -= 1;
        p.dispatched += 1;
        self.inflight += 1;
    }
}

impl Scheduler for Anticipatory {
    /// The kernel's lookup takes the READ/WRITE number for the tree's ASYNC/SYNC number, so reads search the
    /// async tree in vain and writes can only meet sync writes.
    fn find_front(&mut self, ctx: &mut Ctx<'_>, bio: &Bio) -> Option<ReqId> {
        let tree = &self.classes[usize::from(bio.op.dir() == Dir::Write)].tree;
        tree.find(bio.end()).filter(|&r| ctx.reqs[r].op == bio.op)
    }

    fn merged(&mut self, ctx: &mut Ctx<'_>, req: ReqId, kind: MergeKind, old_sector: Sector) {
        if kind == MergeKind::Front && ctx.reqs[req].elv[STATE] == QUEUED {
            let c = Self::class_of(ctx.reqs, req);
            self.classes[c].tree.remove(old_sector, req);
            self.enter_tree(ctx, req, c);
            // An ejected twin may have been the best.
            let class = &mut self.classes[c];
            class.next = class.next.or(Some(req));
        }
    }

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, into: ReqId, gone: ReqId) {
        let reqs = &mut *ctx.reqs;
        let (a, b) = (Self::class_of(reqs, into), Self::class_of(reqs, gone));
        if a == b && reqs[gone].fifo_time < reqs[into].fifo_time {
            reqs[into].fifo_time = reqs[gone].fifo_time;
            let fifo = &mut self.classes[a].fifo;
            fifo.remove(reqs, into);
            fifo.insert_before(reqs, gone, into);
            if self.rules.swap_owners {
                let owner = reqs[into].elv[OWNER];
                reqs[into].elv[OWNER] = std::mem::replace(&mut reqs[gone].elv[OWNER], owner);
            }
        }
        self.classes[b].remove(reqs, gone);
        reqs[gone].elv[STATE] = OVER;
        self.owner(ctx.reqs, gone).queued -= 1;
    }

    fn next_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.classes[Self::class_of(ctx.reqs, req)].tree.next(ctx.reqs[req].sector, req)
    }

    fn prev_neighbour(&self, ctx: &Ctx<'_>, req: ReqId) -> Option<ReqId> {
        self.classes[Self::class_of(ctx.reqs, req)].tree.prev(ctx.reqs[req].sector, req)
    }

    fn may_queue(&mut self, _ctx: &mut Ctx<'_>, _op: Op, _flags: Flags, task: TaskId) -> MayQueue {
        if self.wait.on() && self.wait.target == Some(task) {
            MayQueue::Must
        } else {
            MayQueue::May
        }
    }

    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        let now = self.clock.at(ctx.now);
        let task = ctx.reqs[req].task;
        ctx.reqs[req].elv[OWNER] = u64::from(task);
        if at == Position::Head {
            // A head insert goes straight to the dispatch queue, not through the scheduler.
            ctx.reqs[req].elv[STATE] = MOVED;
            self.process(task).dispatched += 1;
            self.inflight += 1;
            ctx.out.ejected.push(req);
            return;
        }
        let (max_think, mut new) = (self.max_think, self.newcomers);
        let p = self.process(task);
        p.observe(&ctx.reqs[req], now, max_think, &mut new);
        p.queued += 1;
        self.newcomers = new;
        let c = Self::class_of(ctx.reqs, req);
        self.enter_tree(ctx, req, c);
        ctx.reqs[req].elv[STATE] = QUEUED;
        ctx.reqs[req].fifo_time = (now + self.fifo_expire[c]) as u64;
        let class = &mut self.classes[c];
        class.fifo.push_back(ctx.reqs, req);
        class.next = SEEK.choose(ctx.reqs, Some(req), class.next, class.last_pos);
        self.reconsider(ctx, req, now);
    }

    fn has_work(&self) -> bool {
        self.classes.iter().any(|c| !c.fifo.is_empty())
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, _hctx: u16) -> Dispatch {
        let now = self.clock.at(ctx.now);
        let [w, s] = [ASYNC, SYNC].map(|c| !self.classes[c].fifo.is_empty());
        if self.dir == ASYNC && !s && (self.wleft == 0 || !w) {
            self.widle = true;
        }
        if !s && !w {
            return Dispatch::Empty;
        }
        if self.wait.on() {
            return self.idle(now);
        }
        if self.changed {
            return Dispatch::Empty;
        }
        let was = self.dir;
        match self.choose(ctx, now, s, w) {
            Choice::Wait => self.idle(now),
            Choice::Nothing => Dispatch::Empty,
            Choice::Take(req) => {
                self.stats.batches[self.dir] += u64::from(was != self.dir);
                if self.dir == ASYNC && self.wleft > 0 {
                    let (n, of) = (self.wcount.saturating_sub(self.wleft) + 1, self.wcount);
                    ctx.why(|_, _| format!("write {n} of {of} in the batch"));
                }
                self.take(ctx, req);
                Dispatch::Request(req)
            }
        }
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        (self.dir, self.changed, self.fresh) = (ASYNC, false, false);
        self.classes[SYNC].last_check = self.clock.at(ctx.now);
        let req = self.classes[SYNC].next.or(self.classes[ASYNC].next)?;
        self.take(ctx, req);
        Some(req)
    }

    fn activated(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if ctx.reqs[req].elv[STATE] == MOVED {
            ctx.reqs[req].elv[STATE] = FETCHED;
            self.owner(ctx.reqs, req).dispatched -= 1;
        }
    }

    fn requeued(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if ctx.reqs[req].elv[STATE] == FETCHED {
            ctx.reqs[req].elv[STATE] = MOVED;
            self.owner(ctx.reqs, req).dispatched += 1;
        }
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        match ctx.reqs[req].elv[STATE] {
            FETCHED => {}
            MOVED => self.owner(ctx.reqs, req).dispatched -= 1,
            _ => return,
        }
        ctx.reqs[req].elv[STATE] = OVER;
        let now = self.clock.at(ctx.now);
        if self.changed && self.inflight == 1 {
            if self.rules.drained_batch_is_timed {
                self.batch_end = now + self.batch_expire[self.dir];
            }
            ctx.out.run_by_worker = true;
            self.changed = false;
            self.fresh |= self.dir == SYNC;
        }
        self.inflight -= 1;
        if self.fresh && self.dir == Self::class_of(ctx.reqs, req) {
            self.update_write_count(ctx, now);
            self.batch_end = now + self.batch_expire[SYNC];
            self.fresh = false;
        }
        if self.wait.target.is_some_and(|t| u64::from(t) == ctx.reqs[req].elv[OWNER]) {
            self.target_done(ctx, now);
        }
    }

    fn finished(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        if ctx.reqs[req].elv[STATE] == OVER && ctx.reqs[req].is_sync() {
            let now = self.clock.at(ctx.now);
            self.owner(ctx.reqs, req).ended(now);
        }
    }

    fn timer(&mut self, ctx: &mut Ctx<'_>) {
        self.time_up(ctx);
    }

    fn task_exited(&mut self, _ctx: &mut Ctx<'_>, task: TaskId) {
        self.process(task).alive = false;
    }

    fn set_tunable(&mut self, _ctx: &mut Ctx<'_>, name: &str, value: i64) {
        let j = jiffies::from_ms(value, self.clock.hz());
        match name {
            "read_expire" => self.fifo_expire[SYNC] = j,
            "write_expire" => self.fifo_expire[ASYNC] = j,
            "read_batch_expire" => self.batch_expire[SYNC] = j,
            "write_batch_expire" => self.batch_expire[ASYNC] = j,
            "antic_expire" => self.antic_expire = j,
            _ => {}
        }
    }

    fn tunable(&self, name: &str) -> Option<i64> {
        let j = match name {
            "read_expire" => self.fifo_expire[SYNC],
            "write_expire" => self.fifo_expire[ASYNC],
            "read_batch_expire" => self.batch_expire[SYNC],
            "write_batch_expire" => self.batch_expire[ASYNC],
            "antic_expire" => self.antic_expire,
            _ => return None,
        };
        Some(self.ms(j))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let new = &self.newcomers;
        vec![
            ("waits", self.stats.waits),
            ("waits_rewarded", self.stats.hits),
            ("waits_timed_out", self.stats.timeouts),
            ("expired", self.stats.promoted),
            ("sync_batches", self.stats.batches[SYNC]),
            ("async_batches", self.stats.batches[ASYNC]),
            ("write_batch_count", u64::from(self.wcount)),
            ("exit_percent", new.exit.percent()),
            ("exit_without_follower_percent", new.exit_no_coop.percent()),
            ("new_think_ms", self.ms(new.think.mean as i64).unsigned_abs()),
            ("new_seek_sectors", new.seek.mean),
        ]
    }
}
