//! Anticipation: which process to wait for, how long, and what ends the wait.

use iosched_types::{Nanos, ReqId, Sector, TaskId};

use super::{Anticipatory, OWNER, SYNC};
use crate::api::{Ctx, Dispatch, Idling};

/// Sectors ahead that are close at once.
const CLOSE: Sector = 8192;
/// Longest wait after which distance still matters, in ms.
const CLOSE_MS: i64 = 20;

/// Where the wait stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Not waiting.
    Off,
    /// Waiting for the completion of the target's request.
    ForCompletion,
    /// Waiting for the target's next request; the timer runs.
    ForNext,
    /// The wait is over; no new one before another request is moved.
    Finished,
}

/// State of the anticipation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) status: Status,
    /// Process of the last sync request moved.
    pub(super) target: Option<TaskId>,
    /// When the target's request completed.
    pub(super) start: i64,
    /// Whether it completed.
    pub(super) done: bool,
}

impl Wait {
    /// Whether dispatching is held back.
    pub(super) fn on(&self) -> bool {
        matches!(self.status, Status::ForCompletion | Status::ForNext)
    }
}

/// Why a wait ends or does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    Same,
    TimeUp,
    Queued,
    Unfetched,
    Close { distance: Sector },
    Exited,
    NewThink,
    NewExit,
    Thinks,
}

impl Anticipatory {
    /// Whether `req` (or nothing) ends the wait for the target, or keeps it from beginning; the first rule that
    /// applies. Looking has consequences: the scheduler learns from the exited and close processes that it sees.
    pub(super) fn can_break(
        &mut self,
        ctx: &Ctx<'_>,
        req: Option<ReqId>,
        now: i64,
    ) -> Option<Break> {
        let target = self.wait.target?;
        if req.is_some_and(|r| ctx.reqs[r].elv[OWNER] == u64::from(target)) {
            return Some(Break::Same);
        }
        if self.wait.done && now - self.wait.start >= self.antic_expire {
            return Some(Break::TimeUp);
        }
        let distance = req.and_then(|r| self.close(ctx, r, target, now));
        let new = &mut self.newcomers;
        let process = self.processes.get_mut(target as usize)?;
        if process.queued > 0 {
            return Some(Break::Queued);
        }
        if process.dispatched > 0 {
            return Some(Break::Unfetched);
        }
        let unknown = process.think.samples == 0;
        if let (Some(distance), Some(r)) = (distance, req) {
            if !process.alive {
                if unknown {
                    new.exit.up();
                }
                new.exit_no_coop.down();
            }
            process.observe(&ctx.reqs[r], now, self.max_think, new);
            return Some(Break::Close { distance });
        }
        if !process.alive {
            if unknown {
                new.exit.up();
            }
            if new.exit_no_coop.0 > 128 {
                return Some(Break::Exited);
            }
        }
        if unknown {
            if new.think.mean as i64 > self.antic_expire {
                return Some(Break::NewThink);
            }
            return (new.exit.0 * new.exit_no_coop.0 > 128 * 256).then_some(Break::NewExit);
        }
        (process.think.mean as i64 > self.antic_expire).then_some(Break::Thinks)
    }

    /// Distance of a sync request that is close to where the target read: within a range that doubles with
    /// the time already waited, or within what the target seeks anyway.
    fn close(&self, ctx: &Ctx<'_>, req: ReqId, target: TaskId, now: i64) -> Option<Sector> {
        let r = &ctx.reqs[req];
        if !r.is_sync() {
            return None;
        }
        let last = self.classes[self.dir].last_pos;
        let distance = r.sector.abs_diff(last);
        let delay = match self.wait.status {
            Status::Off => 0,
            _ if !self.wait.done => 0,
            _ => now - self.wait.start,
        };
        let delay_ms = delay * 1000 / i64::from(self.clock.hz());
        if delay > 0 && (delay_ms > CLOSE_MS || delay > self.antic_expire) {
            return Some(distance);
        }
        let doublings = if self.rules.close_in_ms { delay_ms } else { delay };
        let range =
            u32::try_from(doublings).ok().and_then(|n| CLOSE.checked_shl(n)).unwrap_or(CLOSE);
        let near =
            last <= r.sector.saturating_add(range / 2) && r.sector <= last.saturating_add(range);
        let seeks = || self.processes.get(target as usize).map(|p| p.usual_seek(&self.newcomers));
        (near || seeks().is_some_and(|usual| distance < usual)).then_some(distance)
    }

    /// Begins to wait for the target instead of dispatching.
    pub(super) fn begin_wait(&mut self, ctx: &mut Ctx<'_>, now: i64) {
        self.stats.waits += 1;
        if self.wait.target.is_none() || self.wait.done {
            self.wait_for_next(ctx);
        } else {
            self.wait.status = Status::ForCompletion;
        }
        let left = self.ms(self.wait_end(now) - now);
        let (target, think) = (self.wait.target, self.think_of_target());
        ctx.why(|_, q| {
            let pid = target.map_or(0, |t| q.pid(t));
            match think {
                Some(ms) => format!("idle {left} ms for pid {pid}: think time {ms} ms"),
                None => format!("idle {left} ms for pid {pid}: think time not known yet"),
            }
        });
    }

    fn wait_for_next(&mut self, ctx: &mut Ctx<'_>) {
        self.wait.status = Status::ForNext;
        ctx.arm_timer(self.tick(self.wait.start + self.antic_expire));
    }

    /// The target's request completed.
    pub(super) fn target_done(&mut self, ctx: &mut Ctx<'_>, now: i64) {
        self.wait.start = now;
        self.wait.done = true;
        if self.wait.status == Status::ForCompletion {
            self.wait_for_next(ctx);
        }
    }

    /// Stops waiting, and lets the queue run.
    pub(super) fn stop_wait(&mut self, ctx: &mut Ctx<'_>) {
        if !self.wait.on() {
            return;
        }
        if self.wait.status == Status::ForNext {
            ctx.cancel_timer();
        }
        self.wait.status = Status::Finished;
        ctx.out.run_by_worker = true;
    }

    /// A new request may end the wait.
    pub(super) fn reconsider(&mut self, ctx: &mut Ctx<'_>, req: ReqId, now: i64) {
        if !self.wait.on() {
            return;
        }
        let waited = self.ms(now - self.wait.start);
        if let Some(reason) = self.can_break(ctx, Some(req), now) {
            self.stats.hits += u64::from(reason == Break::Same);
            self.explain_break(ctx, reason, &format_args!("after {waited} ms"));
            self.stop_wait(ctx);
        }
    }

    /// The timer ran out.
    pub(super) fn time_up(&mut self, ctx: &mut Ctx<'_>) {
        if !self.wait.on() {
            return;
        }
        self.wait.status = Status::Finished;
        self.stats.timeouts += 1;
        ctx.out.run_by_worker = true;
        let Some(target) = self.wait.target else { return };
        if let Some(p) = self.processes.get(target as usize) {
            if p.think.samples == 0 {
                self.newcomers.exit.up();
            }
            if !p.alive {
                self.newcomers.exit_no_coop.up();
            }
        }
        let waited = self.ms(self.antic_expire);
        ctx.why(|_, q| format!("nothing from pid {} in {waited} ms", q.pid(target)));
    }

    /// The answer of dispatch during a wait. The end is not known before the target's request has completed. Until then
    /// the answer is where the wait would end if the completion came now.
    pub(super) fn idle(&self, now: i64) -> Dispatch {
        Dispatch::Idle(Idling { until: self.tick(self.wait_end(now)), for_task: self.wait.target })
    }

    fn wait_end(&self, now: i64) -> i64 {
        let from = if self.wait.done { self.wait.start } else { now };
        from + self.antic_expire
    }

    fn think_of_target(&self) -> Option<i64> {
        let p = self.processes.get(self.wait.target? as usize)?;
        (p.think.samples > 0).then(|| self.ms(p.think.mean as i64))
    }

    /// Says why there is no (more) waiting.
    pub(super) fn explain_break(
        &self,
        ctx: &mut Ctx<'_>,
        why: Break,
        when: &dyn std::fmt::Display,
    ) {
        if ctx.out.why.is_none() {
            return;
        }
        let (limit, target) = (self.ms(self.antic_expire), self.wait.target.unwrap_or(0));
        let think = self.think_of_target().unwrap_or(0);
        let new_think = self.ms(self.newcomers.think.mean as i64);
        let (exit, no_coop) =
            (self.newcomers.exit.percent(), self.newcomers.exit_no_coop.percent());
        ctx.why(|_, q| {
            let pid = q.pid(target);
            let reason = match why {
                Break::Same => format!("pid {pid} itself came"),
                Break::TimeUp => format!("waited {limit} ms for pid {pid}"),
                Break::Queued => format!("pid {pid} has requests queued"),
                Break::Unfetched => format!("the driver has not fetched the last of pid {pid}"),
                Break::Close { distance } => {
                    format!("close: {distance} sectors from pid {pid}'s last")
                }
                Break::Exited => format!("pid {pid} exited, {no_coop} % that nobody follows it"),
                Break::NewThink => format!("new processes think {new_think} ms > {limit} ms"),
                Break::NewExit => {
                    format!("new processes exit ({exit} %) and nobody follows ({no_coop} %)")
                }
                Break::Thinks => format!("pid {pid} thinks {think} ms > {limit} ms"),
            };
            format!("no wait {when}: {reason}")
        });
    }

    /// Jiffies as ms, for people.
    pub(super) fn ms(&self, jiffies: i64) -> i64 {
        crate::jiffies::to_ms(jiffies, self.clock.hz())
    }

    fn tick(&self, jiffy: i64) -> Nanos {
        crate::jiffies::tick(jiffy, self.clock.hz())
    }

    /// Whether waiting is possible instead of dispatching `next` of the sync class.
    pub(super) fn may_wait(&mut self, ctx: &mut Ctx<'_>, next: Option<ReqId>, now: i64) -> bool {
        if self.dir != SYNC || self.antic_expire == 0 {
            return false;
        }
        if self.wait.target.is_none() || self.wait.status == Status::Finished {
            return false;
        }
        match self.can_break(ctx, next, now) {
            None => true,
            Some(reason) => {
                self.explain_break(ctx, reason, &"now");
                false
            }
        }
    }
}
