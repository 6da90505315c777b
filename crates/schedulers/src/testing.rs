//! A minimal driver for tests of schedulers alone: no merging, no block layer, explicit time.
//!
//! ```
//! use iosched_schedulers::testing::Bench;
//! use iosched_types::Op;
//! let mut b = Bench::new("noop@3.12", &[]);
//! b.insert(0, Op::Read, 900, 8, 1);
//! b.insert(0, Op::Write, 100, 8, 1);
//! assert_eq!(b.drain(0), ["R900", "W100"]);
//! ```

use iosched_types::{Flags, Nanos, Op, ReqId, Request, Requests, Sector, TaskId};

use crate::api::{Actions, Ctx, Dispatch, Position, QueueFacts, Scheduler, Why};
use crate::descriptor::{BuildArgs, KernelVersion};
use crate::registry;

/// A scheduler with requests but without a block layer.
pub struct Bench {
    /// The scheduler under test.
    pub scheduler: Box<dyn Scheduler>,
    /// The requests.
    pub reqs: Requests,
    /// Facts it sees.
    pub queue: QueueFacts,
    /// Wishes of the last hook; `why` collects reasons.
    pub out: Actions,
}

impl Bench {
    /// Builds `name` (`family[@generation]`, newest kernel) with tunables on a default queue.
    ///
    /// # Panics
    /// On an unknown name or a bad tunable: tests want to hear about it.
    #[must_use]
    pub fn new(name: &str, tunables: &[(&str, i64)]) -> Bench {
        Bench::on(name, tunables, QueueFacts::default())
    }

    /// The same on a queue of one's own.
    ///
    /// # Panics
    /// See [`Bench::new`].
    #[must_use]
    pub fn on(name: &str, tunables: &[(&str, i64)], queue: QueueFacts) -> Bench {
        let (d, g) = registry::resolve(name, KernelVersion(6, 12, 0)).expect("a known scheduler");
        let set: Vec<(String, i64)> = tunables.iter().map(|(n, v)| ((*n).into(), *v)).collect();
        let values = d.resolve_tunables(g.index, &queue, &set).expect("valid tunables");
        let args = BuildArgs { generation: g.index, tunables: &values, queue: &queue, now: 0 };
        let scheduler = (d.build)(&args);
        let out = Actions { why: Some(Why::default()), ..Actions::default() };
        Bench { scheduler, reqs: Requests::default(), queue, out }
    }

    /// Calls a hook at time `now`.
    pub fn with<T>(
        &mut self,
        now: Nanos,
        f: impl FnOnce(&mut dyn Scheduler, &mut Ctx<'_>) -> T,
    ) -> T {
        let mut ctx = Ctx { now, reqs: &mut self.reqs, queue: &self.queue, out: &mut self.out };
        f(self.scheduler.as_mut(), &mut ctx)
    }

    /// Allocates, prepares and inserts a request.
    pub fn insert(
        &mut self,
        now: Nanos,
        op: Op,
        sector: Sector,
        sectors: u32,
        task: TaskId,
    ) -> ReqId {
        let mut r = Request::new(op, sector, sectors);
        (r.task, r.t_start) = (task, now);
        self.insert_request(now, r)
    }

    /// Inserts a prepared request (set `flags`, `prio`, `cgroup` first).
    pub fn insert_request(&mut self, now: Nanos, mut r: Request) -> ReqId {
        r.t_start = now;
        if r.op == Op::Write && r.flags.has(Flags::SYNC) {
            r.flags = r.flags.with(Flags::IDLE);
        }
        let id = self.reqs.add(r);
        self.with(now, |s, c| {
            s.prepare(c, id);
            s.insert(c, id, Position::Sort);
        });
        id
    }

    /// One dispatch attempt on hardware queue 0; requests that were ejected go first.
    pub fn dispatch(&mut self, now: Nanos) -> Dispatch {
        let d = if self.out.ejected.is_empty() {
            self.with(now, |s, c| s.dispatch(c, 0))
        } else {
            Dispatch::Request(self.out.ejected.remove(0))
        };
        if let Dispatch::Request(id) = d {
            self.reqs[id].t_issue = now;
            self.with(now, |s, c| s.activated(c, id));
        }
        d
    }

    /// Completes and frees a request.
    pub fn complete(&mut self, now: Nanos, id: ReqId) {
        self.with(now, |s, c| {
            s.completed(c, id);
            s.finished(c, id);
        });
        self.reqs.remove(id);
    }

    /// `R1000`: how scenarios name a request.
    #[must_use]
    pub fn name(&self, id: ReqId) -> String {
        format!("{}{}", self.reqs[id].op.letter(), self.reqs[id].sector)
    }

    /// Dispatches until nothing comes, each request completing at once.
    pub fn drain(&mut self, now: Nanos) -> Vec<String> {
        let mut order = Vec::new();
        while let Dispatch::Request(id) = self.dispatch(now) {
            order.push(self.name(id));
            self.complete(now, id);
        }
        order
    }
}
