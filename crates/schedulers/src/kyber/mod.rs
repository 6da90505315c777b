//! Kyber (4.12+): domains with a limited number of tokens, resized by measured latency.
//!
//! A request waits in a list of its CPU until its hardware queue pulls it. It needs a token of its domain (reads,
//! writes …) to be dispatched. With fewer tokens, fewer commands of the domain are in the device at once, so the other
//! domains get their latency. Tokens belong to the device, batches to the hardware queue.

mod descriptor;
mod latency;
mod queues;
mod resize;
mod tokens;

use iosched_types::{Bio, Flags, Nanos, Op, ReqId, Request, Requests, TaskId};

use crate::api::{Ctx, Dispatch, Hooks, MergeKind, Merging, Position, QueueFacts, Scheduler};
use crate::descriptor::BuildArgs;
use descriptor::{AsyncLimit, Rules, rules};
use queues::{DOMAINS, Queues};
use resize::Resizing;
use tokens::Tokens;

pub use descriptor::DESCRIPTOR;

/// Word of a request that says which domain's token it holds: domain + 1, 0 for none.
const TOKEN: usize = 0;
/// Share of the scheduler tags that asynchronous operations may take, in percent.
const ASYNC_PERCENT: u32 = 75;

/// What a hardware queue remembers.
#[derive(Clone, Debug, Default)]
struct Hctx {
    /// Domain being served.
    cursor: usize,
    /// Requests dispatched in a row from it.
    batching: u32,
    /// Wait queue on which it waits, per domain.
    waiting: [Option<u8>; DOMAINS],
    /// Wait queue to use next, per domain.
    wait_at: [u8; DOMAINS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    batches: u64,
    waits: u64,
    wakes: u64,
}

struct Kyber {
    rules: &'static Rules,
    queues: Queues,
    hctxs: Vec<Hctx>,
    tokens: Vec<Tokens>,
    resizing: Resizing,
    targets: [Nanos; 2],
    /// The limit on asynchronous operations, as last computed.
    async_depth: u32,
    stats: Stats,
}

pub(crate) fn build(args: &BuildArgs<'_>) -> Box<dyn Scheduler> {
    let rules = rules(args.generation);
    let queues = Queues::new(args.queue.cpus, args.queue.hw_queues, rules.domain_lists);
    let hctxs = queues.hctxs();
    let value = |name| u64::try_from(args.tunables.get(name)).unwrap_or(0);
    Box::new(Kyber {
        rules,
        queues,
        hctxs: vec![Hctx::default(); hctxs],
        tokens: rules.domains.iter().map(|d| Tokens::new(d.tokens, hctxs)).collect(),
        resizing: Resizing::new(rules.latency, args.queue.hz),
        targets: [value("read_lat_nsec"), value("write_lat_nsec")],
        async_depth: async_depth(rules.async_limit, args.queue),
        stats: Stats::default(),
    })
}

/// Whether a process waits for an operation that is not a read.
fn waited_for(flags: Flags) -> bool {
    flags.0 & (Flags::SYNC.0 | Flags::FUA.0 | Flags::PREFLUSH.0) != 0
}

/// Tags that asynchronous operations may take: of a word of the tag map, or of the whole map.
fn async_depth(limit: AsyncLimit, queue: &QueueFacts) -> u32 {
    let of = match limit {
        AsyncLimit::PerWord => queue.limit_unit,
        AsyncLimit::WholeMap => queue.limit_base,
        AsyncLimit::OfTheQueue => return queue.async_in_force.max(1),
    };
    (of * ASYNC_PERCENT / 100).max(1)
}

impl Kyber {
    fn domain(&self, op: Op, flags: Flags) -> usize {
        (self.rules.domain_of)(op, waited_for(flags))
    }

    fn domain_of(&self, r: &Request) -> usize {
        self.domain(r.op, r.flags)
    }

    /// A request of this domain, if there is one and a token for it. `flushed`: the software queues have
    /// been emptied in this call.
    fn try_domain(
        &mut self,
        ctx: &mut Ctx<'_>,
        h: usize,
        d: usize,
        flushed: &mut bool,
    ) -> Option<ReqId> {
        if !self.rules.domain_lists && !*flushed && !self.queues.ready(h, d) {
            self.flush(ctx.reqs, h, d);
            *flushed = true;
        }
        let ready = self.queues.ready(h, d);
        let mut pending = || self.rules.domain_lists && self.queues.pending(h, d);
        if !(ready || pending()) {
            return None;
        }
        if !self.take_token(ctx, h, d) {
            return None;
        }
        if !ready {
            self.flush(ctx.reqs, h, d);
        }
        let id = self.queues.pop(ctx.reqs, h, d)?;
        ctx.reqs[id].elv[TOKEN] = d as u64 + 1;
        self.hctxs[h].batching += 1;
        let (batching, rule, tokens) =
            (self.hctxs[h].batching, &self.rules.domains[d], &self.tokens[d]);
        ctx.why(|_, _| {
            let Tokens { in_use, depth, .. } = tokens;
            format!(
                "{} token {in_use} of {depth}, {batching} of {} in the batch",
                rule.name, rule.batch
            )
        });
        Some(id)
    }

    fn flush(&mut self, reqs: &mut Requests, h: usize, d: usize) {
        let of = self.rules.domain_of;
        self.queues.flush(reqs, h, d, |reqs, id| {
            let r = &reqs[id];
            of(r.op, waited_for(r.flags))
        });
    }

    fn take_token(&mut self, ctx: &mut Ctx<'_>, h: usize, d: usize) -> bool {
        let (hctx, tokens) = (&mut self.hctxs[h], &mut self.tokens[d]);
        if tokens.take() {
            if let Some(at) = hctx.waiting[d].take() {
                tokens.unwait(h as u16, at);
            }
            return true;
        }
        if hctx.waiting[d].is_none() {
            hctx.waiting[d] = Some(tokens.wait(h as u16, hctx.wait_at[d]));
            hctx.wait_at[d] = hctx.wait_at[d].wrapping_add(1);
            self.stats.waits += 1;
        }
        let (in_use, depth, name) = (tokens.in_use, tokens.depth, self.rules.domains[d].name);
        ctx.why(|_, _| format!("no {name} token: {in_use} of {depth} in use"));
        false
    }

    fn release(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let word = std::mem::take(&mut ctx.reqs[req].elv[TOKEN]);
        let Some(d) = (word as usize).checked_sub(1) else { return };
        let Kyber { tokens, hctxs, stats, rules, .. } = self;
        tokens[d].release(rules.wake_up, |h| {
            hctxs[usize::from(h)].waiting[d] = None;
            stats.wakes += 1;
            ctx.run_hctx(h);
        });
    }
}

impl Scheduler for Kyber {
    fn hooks(&self) -> Hooks {
        Hooks { prepare: false, limit_reads: false, ..Hooks::ALL }
    }

    fn merging(&self) -> Merging {
        Merging::Own
    }

    fn find_merge(&mut self, ctx: &mut Ctx<'_>, bio: &Bio) -> Option<(ReqId, MergeKind)> {
        let d = self.domain(bio.op, bio.flags);
        self.queues.find_merge(ctx.reqs, bio, d, ctx.queue.max_sectors)
    }

    fn absorbed(&mut self, ctx: &mut Ctx<'_>, _into: ReqId, gone: ReqId) {
        self.queues.remove(ctx.reqs, gone);
    }

    fn limit_depth(
        &mut self,
        ctx: &mut Ctx<'_>,
        op: Op,
        flags: Flags,
        _task: TaskId,
    ) -> Option<u32> {
        let spares_syncs = self.rules.async_limit != AsyncLimit::OfTheQueue;
        if op == Op::Read || (spares_syncs && waited_for(flags)) {
            return None;
        }
        self.async_depth = async_depth(self.rules.async_limit, ctx.queue);
        Some(self.async_depth)
    }

    fn min_shallow_depth(&self, queue: &QueueFacts) -> Option<u32> {
        Some(async_depth(self.rules.async_limit, queue))
    }

    fn insert(&mut self, ctx: &mut Ctx<'_>, req: ReqId, at: Position) {
        let d = self.domain_of(&ctx.reqs[req]);
        self.queues.insert(ctx.reqs, req, d, at);
    }

    fn has_work(&self) -> bool {
        self.queues.len() > 0
    }

    fn dispatch(&mut self, ctx: &mut Ctx<'_>, hctx: u16) -> Dispatch {
        let h = self.queues.hctx(hctx);
        if self.queues.len() == 0 {
            // All domains were tried in vain, once around.
            self.hctxs[h].batching = 0;
            return Dispatch::Empty;
        }
        let mut flushed = false;
        let (cursor, batching) = (self.hctxs[h].cursor, self.hctxs[h].batching);
        let rule = &self.rules.domains[cursor];
        if batching < rule.batch
            && let Some(id) = self.try_domain(ctx, h, cursor, &mut flushed)
        {
            return Dispatch::Request(id);
        }
        if batching > 0 {
            self.stats.batches += 1;
            ctx.why(|_, _| format!("{} batch ended: {batching} of {}", rule.name, rule.batch));
        }
        self.hctxs[h].batching = 0;
        for _ in 0..self.rules.domains.len() {
            let d = (self.hctxs[h].cursor + 1) % self.rules.domains.len();
            self.hctxs[h].cursor = d;
            if let Some(id) = self.try_domain(ctx, h, d, &mut flushed) {
                return Dispatch::Request(id);
            }
        }
        Dispatch::Empty
    }

    fn force_dispatch(&mut self, ctx: &mut Ctx<'_>) -> Option<ReqId> {
        // The requests are about to leave without tokens, so no hardware queue must wait for tokens for them.
        for (d, tokens) in self.tokens.iter_mut().enumerate() {
            tokens.forget_waiters();
            self.hctxs.iter_mut().for_each(|h| h.waiting[d] = None);
        }
        self.queues.pop_any(ctx.reqs)
    }

    fn requeued(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.release(ctx, req);
    }

    fn completed(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let d = self.domain_of(&ctx.reqs[req]);
        self.resizing.completed(ctx, req, d, self.rules, self.targets);
    }

    fn finished(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.release(ctx, req);
    }

    fn timer(&mut self, ctx: &mut Ctx<'_>) {
        self.resizing.timer(ctx, &mut self.tokens, self.rules, self.targets);
    }

    fn set_tunable(&mut self, _ctx: &mut Ctx<'_>, name: &str, value: i64) {
        let value = u64::try_from(value).unwrap_or(0);
        match name {
            "read_lat_nsec" => self.targets[0] = value,
            "write_lat_nsec" => self.targets[1] = value,
            _ => {}
        }
    }

    fn tunable(&self, name: &str) -> Option<i64> {
        let value = match name {
            "read_lat_nsec" => self.targets[0],
            "write_lat_nsec" => self.targets[1],
            _ => return None,
        };
        Some(i64::try_from(value).unwrap_or(i64::MAX))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut all = vec![
            ("batches", self.stats.batches),
            ("token_waits", self.stats.waits),
            ("token_wakes", self.stats.wakes),
            ("async_depth", u64::from(self.async_depth)),
        ];
        self.resizing.counters(&mut all);
        for (rule, tokens) in self.rules.domains.iter().zip(&self.tokens) {
            all.push((rule.counters[0], u64::from(tokens.depth)));
            all.push((rule.counters[1], u64::from(tokens.in_use)));
            all.push((rule.counters[2], u64::from(tokens.peak)));
        }
        all
    }
}
