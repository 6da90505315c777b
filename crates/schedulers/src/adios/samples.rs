//! What completions tell: how long a request took, and how far the arm went for it.

use iosched_types::{Nanos, ReqId, Sector};

use super::model::Sample;
use super::{Adios, COMMITTED, EXPECTED, LENGTH, OTHER, kind_of, length};
use crate::api::Ctx;

/// How long samples lie until the models take them.
const SOON: Nanos = 100_000_000;

/// What is under way, and where the last completion was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    /// Requests committed: in a batch, at the device, or between the two.
    committed: u64,
    /// What they are expected to take.
    pub(super) expected: Nanos,
    /// When the last one completed, if others were committed then; otherwise 0.
    last_done: Nanos,
    /// Where the one before began; 0 is unknown.
    last_place: Sector,
    /// Where the last request handed out ends.
    pub(super) head: Sector,
    pub(super) timer_set: bool,
}

impl Watch {
    pub(super) fn commits(&mut self, expected: Nanos) {
        self.committed += 1;
        self.expected = self.expected.saturating_add(expected);
    }
}

impl Adios {
    /// The request is no longer committed.
    pub(super) fn uncommit(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        let r = &mut ctx.reqs[req];
        if r.elv[LENGTH] & COMMITTED != 0 {
            r.elv[LENGTH] &= !COMMITTED;
            self.watch.committed = self.watch.committed.saturating_sub(1);
            self.watch.expected = self.watch.expected.saturating_sub(r.elv[EXPECTED]);
        }
    }

    /// The time since the completion before, or in the device, is a sample.
    pub(super) fn learn(&mut self, ctx: &mut Ctx<'_>, req: ReqId) {
        self.uncommit(ctx, req);
        let r = &ctx.reqs[req];
        let (kind, sector, issued) = (kind_of(r.op), r.sector, r.t_issue);
        let (len, expected) = (length(r), r.elv[EXPECTED]);
        let w = &mut self.watch;
        if kind == OTHER {
            w.last_place = 0;
            return;
        }
        let since = if w.last_done == 0 { issued } else { w.last_done };
        w.last_done = if w.committed > 0 { ctx.now } else { 0 };
        if issued == 0 || ctx.now < since {
            return;
        }
        let took = ctx.now - since;
        let too_long = took > self.tuning.sample_limit;
        if too_long && !self.rules.long_ones_move_the_arm {
            return;
        }
        let mut weight = 1;
        if self.rotational {
            if w.last_place > 0 {
                let far = sector.abs_diff(w.last_place);
                weight = far.checked_ilog2().map_or(self.rules.same_place, |n| u64::from(n) + 2);
            }
            w.last_place = sector;
        }
        if too_long {
            return;
        }
        if !w.timer_set {
            w.timer_set = true;
            let at = ctx.queue.timer(ctx.now, SOON);
            ctx.arm_timer(at);
        }
        let now = ctx.jiffies();
        let sample = Sample { len, expected, took, weight };
        self.models.feed(kind, &sample, self.rules, &self.tuning, now);
    }
}
