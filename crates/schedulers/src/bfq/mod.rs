//! BFQ: budget fair queueing, in three generations.
//!
//! Every process has a queue of its synchronous requests. Asynchronous requests share one queue per group and priority.
//! Queues are served one at a time, each for a budget of sectors, in the order of [`wf2q`]. More rules make that engine
//! useful on real devices. They decide
//! * how large a budget a queue gets;
//! * what a queue pays when it wastes the device's time;
//! * which queues get a raised weight because their process starts or plays;
//! * which queues the device is kept idle for;
//! * which requests may fill those idle times.
//!
//! | file | what it decides |
//! |---|---|
//! | [`wf2q`], [`rbtree`] | the order of queues and groups |
//! | `insert`, `busy` | what an arriving request changes; when its queue starts to compete, and preempts |
//! | `raise`, `burst` | which queues get a raised weight, and for how long |
//! | `merge` | which processes share a queue |
//! | `inject` | limits and partners for filling idle times |
//! | `select`, `idle` | which request goes next; when nothing does |
//! | `complete`, `expire` | what a completion says; how a slot ends and what it costs |
//! | `rate` | the device's speed, and whether it queues |
//! | `v7` | the dispatch loop and the slot rules of the out-of-tree generation |
//! | `version`, `config`, `descriptor` | what differs between generations, tunables |

mod burst;
mod busy;
mod complete;
mod config;
mod descriptor;
mod expire;
mod hooks;
mod idle;
mod inject;
mod insert;
mod merge;
mod queue;
mod raise;
mod rate;
pub mod rbtree;
mod registry;
mod select;
mod v7;
mod version;
pub mod wf2q;

use iosched_types::{NO_REQ, Nanos, ReqId, Request};

use self::burst::Bursts;
use self::config::Config;
use self::queue::{Group, Jiffies, LONG_AGO, Process, Queue, QueueId, Saved};
use self::rate::{HwTag, PeakRate};
use self::rbtree::{NIL, Trees};
use self::version::Version;
use self::wf2q::Engine;
use crate::api::{Ctx, Scheduler};
use crate::descriptor::BuildArgs;
use crate::jiffies::Clock;
use crate::list::{List, Second};

pub use self::descriptor::DESCRIPTOR;

/// Budget until the device has been measured, in sectors.
const DEFAULT_BUDGET: u64 = 16 * 1024;
/// Weight of budget assignments after which the measured budget is used; reached at the eleventh.
const STATS_MIN_BUDGETS: u64 = 194;

/// The counter of requests whose queue had a share of less than one tag: they had one at a time, however many processes
/// send them.
pub const NO_SHARE: &str = "share_of_no_tag";

/// Bits of the second private word of a request.
const QUEUED: u64 = 1;
const STARTED: u64 = 2;
const AT_HEAD: u64 = 4;

/// How often what happened.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    slices: u64,
    too_idle: u64,
    timeouts: u64,
    exhausted: u64,
    no_more: u64,
    preempted: u64,
    raises: u64,
    idles: u64,
    injections: u64,
    merges: u64,
    splits: u64,
    /// Requests that were asked for by a queue, or a group, that held its share of the tags: tag 0 was left to them.
    over_share: u64,
    /// Those of them whose share was not even one tag.
    no_share: u64,
}

/// A BFQ instance.
struct Bfq {
    v: &'static Version,
    c: Config,
    rotational: bool,
    hz: u32,
    clock: Clock,
    /// Now: in ns, in the clock of most rules (ns too; whole jiffies in the legacy generation), and in jiffies.
    ns: Nanos,
    now: Nanos,
    j: Jiffies,

    engine: Engine,
    queues: Vec<Queue>,
    free: Vec<QueueId>,
    serial: u64,
    processes: Vec<Process>,
    /// What a process gets back when its queue is split from another's; seldom needed, so not beside the rest.
    saved: Vec<Option<Saved>>,
    groups: Vec<Option<Group>>,
    positions: Trees,

    in_service: QueueId,
    /// Busy queues by class, and the raised ones of them.
    busy: [u32; 3],
    wr_busy: u32,
    /// Requests in the queues.
    queued: u32,
    in_driver: u32,
    /// The same for sync requests alone (v7).
    sync_in_driver: u32,
    head: List<Second>,
    /// Queues with pending requests that are not raised, by priority level.
    levels: [u32; 8],
    pending_groups: u32,
    /// Queues with pending requests, and those of them counted as constantly seeky (v7).
    pending_queues: u32,
    seeky_queues: u32,

    bursts: Bursts,
    rate: PeakRate,
    hw: HwTag,
    max_budget: u64,
    budgets_assigned: u64,
    /// `None`: there was none yet, which counts as infinitely long ago.
    last_completion: Option<Nanos>,
    last_position: u64,
    in_serv_last_pos: u64,
    last_completed: QueueId,

    /// The request that injection is measured by, since when, and whether that request is still to come.
    waited: ReqId,
    waited_since: Nanos,
    wait_dispatch: bool,
    injected: bool,
    last_budget_start: Nanos,
    last_idling_start: Nanos,
    timer_at: Option<Nanos>,
    counts: Counts,
}

fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    Box::new(Bfq::new(args))
}

impl Bfq {
    fn new(args: &BuildArgs<'_>) -> Bfq {
        let v = Version::of(args.generation);
        let c = Config::new(v, args);
        let hz = args.queue.hz.max(1);
        let rotational = args.queue.rotational;
        let max_budget = if c.user_max_budget > 0 { c.user_max_budget } else { DEFAULT_BUDGET };
        Bfq {
            rate: PeakRate::new(v, rotational),
            v,
            c,
            rotational,
            hz,
            clock: Clock::new(hz),
            ns: 0,
            now: 0,
            j: 0,
            engine: Engine::new(v.engine, hz),
            queues: Vec::new(),
            free: Vec::new(),
            serial: 0,
            processes: Vec::new(),
            saved: Vec::new(),
            groups: vec![Some(Group::new(wf2q::ROOT))],
            positions: Trees::default(),
            in_service: NIL,
            busy: [0; 3],
            wr_busy: 0,
            queued: 0,
            in_driver: 0,
            sync_in_driver: 0,
            head: List::default(),
            levels: [0; 8],
            pending_groups: 0,
            pending_queues: 0,
            seeky_queues: 0,
            bursts: Bursts::new(LONG_AGO),
            hw: HwTag::default(),
            max_budget,
            budgets_assigned: 0,
            last_completion: None,
            last_position: 0,
            in_serv_last_pos: 0,
            last_completed: NIL,

            waited: NO_REQ,
            waited_since: 0,
            wait_dispatch: false,
            injected: false,
            last_budget_start: 0,
            last_idling_start: 0,
            timer_at: None,
            counts: Counts::default(),
        }
    }

    /// Takes the time of a hook.
    fn tick(&mut self, ctx: &Ctx<'_>) {
        self.ns = ctx.now;
        self.j = self.clock.at(ctx.now);
        self.now = if self.v.legacy { self.j as u64 * self.c.jiffy() } else { ctx.now };
        self.engine.tick(self.j);
    }

    fn q(&self, q: QueueId) -> &Queue {
        &self.queues[q as usize]
    }

    fn qm(&mut self, q: QueueId) -> &mut Queue {
        &mut self.queues[q as usize]
    }

    /// How long ago the device's last completion was.
    fn since_completion(&self) -> Nanos {
        self.last_completion.map_or(Nanos::MAX, |at| self.now.saturating_sub(at))
    }

    fn total_busy(&self) -> u32 {
        self.busy.iter().sum()
    }

    /// Whether a look for a request may find one, or ends the slot of an empty queue (v7).
    fn may_have_work(&self) -> bool {
        self.queued > 0 || (self.v.legacy && self.in_service != NIL)
    }

    fn measured(&self) -> bool {
        self.budgets_assigned >= STATS_MIN_BUDGETS
    }

    /// Largest budget a queue may get now.
    fn max_budget(&self) -> u64 {
        if self.measured() { self.max_budget } else { DEFAULT_BUDGET }
    }

    fn min_budget(&self) -> u64 {
        self.max_budget() / 32
    }

    /// What dispatching a request costs its queue, in sectors.
    fn charge_of(&self, r: &Request, q: QueueId) -> u64 {
        let sectors = u64::from(r.sectors);
        let queue = self.q(q);
        if queue.sync || queue.raised() || (self.v.async_charge_symmetric && !self.symmetric(q)) {
            return sectors;
        }
        let factor =
            if self.wr_busy > 0 { self.v.async_charge_raised } else { self.v.async_charge };
        sectors * factor
    }

    /// The queue a request is in.
    fn queue_of(r: &Request) -> QueueId {
        (r.elv[0] as u32).wrapping_sub(1)
    }

    /// A flash device that may queue commands: idling gains no throughput there.
    fn flash_with_queueing(&self) -> bool {
        !self.rotational && self.hw.queueing()
    }

    /// "pid 3", or what a queue without a process of its own is called.
    fn who(&self, q: QueueId, facts: &crate::api::QueueFacts) -> String {
        let queue = self.q(q);
        match (queue.sync, queue.shared) {
            (false, _) => format!("async queue of level {}", queue.level),
            (true, true) => format!("the queue that pid {} shares", facts.pid(queue.named)),
            (true, false) => format!("pid {}", facts.pid(queue.named)),
        }
    }
}

/// A span for people: "2.1 ms".
fn ms(ns: Nanos) -> String {
    let text = format!("{:.3}", ns as f64 / 1e6);
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}
