//! From measured latencies to the number of tokens of each domain.

use iosched_types::{Nanos, ReqId};

use super::descriptor::{Latency, Rules};
use super::latency::{GOOD_BUCKETS, Histograms, Kind, Mean, Status, adjust, adjust_other, bucket};
use super::queues::DOMAINS;
use super::tokens::Tokens;
use crate::api::Ctx;
use crate::jiffies::{Clock, from_ms, tick};

/// Length of the window that one slow completion opens, in ms.
const FIRST_WINDOW_MS: i64 = 10;
/// Length of the windows after it, in ms.
const NEXT_WINDOW_MS: i64 = 100;
/// Domains of the mean-based generation; the last has no target.
const READ: usize = 0;
const SYNC_WRITE: usize = 1;
const OTHER: usize = 2;

/// What is known of the latencies, and when it is looked at.
#[derive(Debug)]
pub(super) struct Resizing {
    measure: Measure,
    clock: Clock,
    /// Jiffy at which the timer fires.
    armed: Option<i64>,
    evaluations: u64,
    changes: Changes,
}

#[derive(Debug)]
enum Measure {
    /// Sums of the window that is open.
    Means([Mean; DOMAINS]),
    Histograms(Box<[Histograms; DOMAINS]>),
}

impl Resizing {
    /// Nothing measured yet.
    pub(super) fn new(latency: Latency, hz: u32) -> Resizing {
        let measure = match latency {
            Latency::Means => Measure::Means(Default::default()),
            Latency::Histograms => Measure::Histograms(Box::default()),
        };
        Resizing {
            measure,
            clock: Clock::new(hz),
            armed: None,
            evaluations: 0,
            changes: Changes::default(),
        }
    }

    /// Counters for the record.
    pub(super) fn counters(&self, all: &mut Vec<(&'static str, u64)>) {
        all.push(("evaluations", self.evaluations));
        all.push(("depth_grown", self.changes.grown));
        all.push(("depth_shrunk", self.changes.shrunk));
    }

    /// A request of domain `d` is done.
    pub(super) fn completed(
        &mut self,
        ctx: &mut Ctx<'_>,
        req: ReqId,
        d: usize,
        rules: &Rules,
        targets: [Nanos; 2],
    ) {
        let r = &ctx.reqs[req];
        let io = ctx.now.saturating_sub(r.t_issue);
        let total = ctx.now.saturating_sub(r.t_start);
        let target = rules.domains[d].target.get(targets);
        match &mut self.measure {
            Measure::Means(sums) => {
                if self.armed.is_some() {
                    sums[d].add(io);
                } else if let Some(target) = target.filter(|&t| io > t) {
                    let name = rules.domains[d].name;
                    ctx.why(|_, _| {
                        format!("{name} took {io} ns > {target} ns: measuring for 10 ms")
                    });
                    self.arm(ctx, FIRST_WINDOW_MS);
                }
            }
            Measure::Histograms(domains) => {
                let Some(target) = target else { return };
                domains[d].add(Kind::Total, bucket(total, target));
                domains[d].add(Kind::Io, bucket(io, target));
                let at = self.clock.at(ctx.now) + i64::from(self.clock.hz() / 10);
                // An armed timer is only ever shortened: it fires no later than this.
                if self.armed.is_none_or(|armed| at < armed) {
                    self.armed = Some(at);
                    ctx.arm_timer(tick(at, self.clock.hz()));
                }
            }
        }
    }

    fn arm(&mut self, ctx: &mut Ctx<'_>, ms: i64) {
        let hz = self.clock.hz();
        let at = self.clock.at(ctx.now) + from_ms(ms, hz);
        self.armed = Some(at);
        ctx.arm_timer(tick(at, hz));
    }

    /// The timer fired: look at what was measured.
    pub(super) fn timer(
        &mut self,
        ctx: &mut Ctx<'_>,
        tokens: &mut [Tokens],
        rules: &Rules,
        targets: [Nanos; 2],
    ) {
        if self.armed.take().is_none() {
            return;
        }
        self.evaluations += 1;
        match &mut self.measure {
            Measure::Means(sums) => {
                let sums = std::mem::take(sums);
                self.judge_means(ctx, sums, tokens, rules, targets);
            }
            Measure::Histograms(domains) => {
                let time = (self.clock.at(ctx.now), i64::from(self.clock.hz()));
                judge_histograms(ctx, domains, tokens, rules, time, &mut self.changes);
            }
        }
    }

    fn judge_means(
        &mut self,
        ctx: &mut Ctx<'_>,
        sums: [Mean; DOMAINS],
        tokens: &mut [Tokens],
        rules: &Rules,
        targets: [Nanos; 2],
    ) {
        let of = |d: usize| {
            let target = rules.domains[d].target.get(targets)?;
            Some(Status::of(sums[d].get()?, target))
        };
        let (read, write) = (of(READ), of(SYNC_WRITE));
        let word = |s: Option<Status>| s.map_or("unknown", Status::word);
        let reason = || format!("reads {}, sync writes {}", word(read), word(write));
        let sampled = sums[OTHER].get().is_some();
        let depths = [
            adjust(tokens[READ].depth, read, write),
            adjust(tokens[SYNC_WRITE].depth, write, read),
            adjust_other(tokens[OTHER].depth, sampled, read, write),
        ];
        for ((tokens, rule), depth) in tokens.iter_mut().zip(rules.domains).zip(depths) {
            self.changes.resize(ctx, tokens, rule.name, depth, reason);
        }
        let bad = [read, write].into_iter().flatten().any(|s| !s.fine());
        if bad || tokens[OTHER].depth < tokens[OTHER].max {
            self.arm(ctx, NEXT_WINDOW_MS);
        }
    }
}

/// `now` in jiffies, and the length of a second.
fn judge_histograms(
    ctx: &mut Ctx<'_>,
    domains: &mut [Histograms; DOMAINS],
    tokens: &mut [Tokens],
    rules: &Rules,
    (now, second): (i64, i64),
    changes: &mut Changes,
) {
    let mut suffering = None;
    for (d, h) in domains.iter_mut().enumerate() {
        let p90 = h.percentile(Kind::Io, 90, now, second);
        if let Some(p90) = p90.filter(|&p| p >= GOOD_BUCKETS) {
            suffering.get_or_insert((d, p90));
        }
    }
    for (d, h) in domains.iter_mut().enumerate().take(tokens.len()) {
        let mut p99 = h.percentile(Kind::Total, 99, now, second);
        if suffering.is_some() {
            let remembered = h.remembered.take();
            p99 = p99.or(remembered);
        } else if p99.is_some() {
            h.remembered = p99;
        }
        let Some(p99) = p99 else { continue };
        if suffering.is_none() && p99 < GOOD_BUCKETS {
            continue;
        }
        let depth = (u64::from(tokens[d].depth) * (p99 as u64 + 1)) >> 2;
        changes.resize(
            ctx,
            &mut tokens[d],
            rules.domains[d].name,
            depth as u32,
            || match suffering {
                Some((s, p90)) => {
                    format!("p99 bucket {p99}, {} p90 bucket {p90}", rules.domains[s].name)
                }
                None => format!("p99 bucket {p99}"),
            },
        );
    }
}

/// How often depths changed.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    grown: u64,
    shrunk: u64,
}

impl Changes {
    fn resize(
        &mut self,
        ctx: &mut Ctx<'_>,
        tokens: &mut Tokens,
        name: &str,
        depth: u32,
        reason: impl Fn() -> String,
    ) {
        let (old, new) = (tokens.depth, depth.clamp(1, tokens.max));
        if new == old {
            return;
        }
        if new > old {
            self.grown += 1;
        } else {
            self.shrunk += 1;
        }
        tokens.resize(new);
        ctx.why(|_, _| format!("{name} {}: depth {old} → {new}", reason()));
    }
}
