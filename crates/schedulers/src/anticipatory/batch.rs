//! Batches: which class has its turn, for how long, and which request of it goes next.

use iosched_types::ReqId;

use super::{ASYNC, Anticipatory, CLASS_NAMES, SYNC};
use crate::api::Ctx;

/// What dispatch decided.
pub(super) enum Choice {
    Take(ReqId),
    Wait,
    Nothing,
}

impl Anticipatory {
    /// Whether the oldest request of a class is past its deadline. Looks no more than once per interval.
    pub(super) fn fifo_expired(&mut self, ctx: &mut Ctx<'_>, c: usize, now: i64) -> Option<ReqId> {
        let class = &mut self.classes[c];
        if now - class.last_check < self.fifo_expire[c] {
            return None;
        }
        class.last_check = now;
        let head = class.fifo.head()?;
        let deadline = ctx.reqs[head].fifo_time as i64;
        if now <= deadline {
            return None;
        }
        self.stats.promoted += 1;
        let late = self.ms(now - deadline);
        ctx.why(|_, _| format!("oldest {} expired {late} ms ago", CLASS_NAMES[c]));
        Some(head)
    }

    fn batch_expired(&self, now: i64) -> bool {
        if self.changed || self.fresh {
            return false;
        }
        now > self.batch_end || (self.dir == ASYNC && self.wleft == 0)
    }

    /// Goes on with the batch if that is possible; `None` if the batch is over.
    fn continue_batch(&mut self, ctx: &mut Ctx<'_>, now: i64, s: bool, w: bool) -> Option<Choice> {
        if s && w && self.batch_expired(now) {
            self.explain_batch_end(ctx, now);
            return None;
        }
        if self.dir == SYNC
            && self.antic_expire > 0
            && let Some(head) = self.fifo_expired(ctx, SYNC, now)
        {
            return Some(Choice::Take(head));
        }
        let next = self.classes[self.dir].next;
        if self.may_wait(ctx, next, now) {
            self.begin_wait(ctx, now);
            return Some(Choice::Wait);
        }
        let next = next?;
        if s && !w {
            self.batch_end = now + self.batch_expire[SYNC];
        }
        Some(Choice::Take(self.fifo_expired(ctx, self.dir, now).unwrap_or(next)))
    }

    /// Begins a batch of one class or the other and gives its first request.
    fn begin_batch(&mut self, ctx: &mut Ctx<'_>, now: i64, s: bool, w: bool) -> Option<ReqId> {
        if s && !(w && self.dir == SYNC) {
            self.changed |= self.dir == ASYNC;
            self.dir = SYNC;
            self.classes[SYNC].last_check = now;
            ctx.why(|_, _| "read batch, from the oldest".into());
            return self.classes[SYNC].fifo.head();
        }
        if !w {
            return None;
        }
        if self.dir == SYNC {
            self.changed = true;
            self.fresh = false;
        }
        self.dir = ASYNC;
        self.wleft = self.wcount;
        self.widle = false;
        let wcount = self.wcount;
        ctx.why(|_, _| format!("write batch of up to {wcount}"));
        let class = &mut self.classes[ASYNC];
        let first = if self.rules.async_from_fifo {
            class.last_check = now;
            class.fifo.head()
        } else {
            class.next
        };
        self.fifo_expired(ctx, ASYNC, now).or(first)
    }

    /// The request to dispatch, if any. `s` and `w` say whether there are sync and async requests.
    pub(super) fn choose(&mut self, ctx: &mut Ctx<'_>, now: i64, s: bool, w: bool) -> Choice {
        if let Some(choice) = self.continue_batch(ctx, now, s, w) {
            return choice;
        }
        let Some(first) = self.begin_batch(ctx, now, s, w) else { return Choice::Nothing };
        if !self.changed {
            return Choice::Take(first);
        }
        if self.inflight > 0 {
            let (n, name) = (self.inflight, CLASS_NAMES[self.dir]);
            ctx.why(|_, _| format!("{name} batch waits for {n} in flight"));
            return Choice::Nothing;
        }
        self.changed = false;
        if self.dir == ASYNC {
            self.batch_end = now + self.batch_expire[ASYNC];
        } else {
            self.fresh = true;
        }
        Choice::Take(first)
    }

    /// Adapts the number of writes per batch to how long the last async batch really took.
    pub(super) fn update_write_count(&mut self, ctx: &mut Ctx<'_>, now: i64) {
        let limit = self.batch_expire[ASYNC];
        let used = (now - self.batch_end + limit).max(0);
        let old = self.wcount;
        if used > limit && !self.widle {
            self.wcount = if used > 3 * limit { old / 2 } else { old - 1 };
        } else if used < limit && self.wleft == 0 {
            self.wcount = if limit > 3 * used { old.saturating_mul(2) } else { old + 1 };
        }
        self.wcount = self.wcount.max(1);
        let (new, used) = (self.wcount, self.ms(used));
        if new != old {
            ctx.why(|_, _| format!("write batch took {used} ms: {old} → {new} writes per batch"));
        }
    }

    fn explain_batch_end(&self, ctx: &mut Ctx<'_>, now: i64) {
        let (name, length) = (CLASS_NAMES[self.dir], self.ms(self.batch_expire[self.dir]));
        let (wcount, over) = (self.wcount, now > self.batch_end);
        ctx.why(|_, _| match over {
            true => format!("{name} batch expired: {length} ms"),
            false => format!("{name} batch {wcount} of {wcount}"),
        });
    }
}
