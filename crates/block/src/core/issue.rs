//! To the device, and the data of `explain` on the way.

use iosched_schedulers::{Dispatch, Idling};
use iosched_types::{BioId, Nanos, Op, ReqId};

use super::Core;
use super::trace::TraceEvent;
use crate::state;
use crate::stats::Issue;
use crate::timeline::Timeline;

impl Core {
    /// Hands a request to the device.
    #[inline(never)]
    pub(crate) fn issue(&mut self, tl: &mut Timeline, id: ReqId) {
        self.issue_now(tl, id);
    }

    /// [`issue`](Self::issue), inlined for the common path.
    #[inline(always)]
    pub(crate) fn issue_now(&mut self, tl: &mut Timeline, id: ReqId) {
        let now = tl.now;
        if self.explain.watches() {
            self.end_idle(now);
            self.trace_bypass(now, id);
        }
        let r = &mut self.reqs[id];
        r.state |= state::STARTED;
        if let Some(issues) = &mut self.out.issues {
            issues.push(Issue {
                t: now,
                op: r.op,
                sector: r.sector,
                sectors: r.sectors,
                task: r.task,
            });
        }
        if let Some(wbt) = self.throttle.get()
            && r.op == Op::Read
        {
            wbt.read_issued(id, now);
        }
        self.drive.submit(now, id, r, &mut self.stats);
    }

    /// Asks the scheduler for one request.
    #[inline(always)]
    pub(crate) fn ask_scheduler(&mut self, tl: &mut Timeline, h: u16) -> Option<ReqId> {
        match self.hook_mut(tl, |s, c| s.dispatch(c, h)) {
            Dispatch::Request(id) => {
                self.left_scheduler(id);
                self.trace_dispatch(tl.now, id);
                Some(id)
            }
            Dispatch::Idle(idle) => {
                self.note_idle(tl.now, idle);
                None
            }
            Dispatch::Empty => None,
        }
    }

    /// Books an idle decision of the scheduler.
    fn note_idle(&mut self, now: Nanos, idle: Idling) {
        let reason = self.sched.take_reason();
        self.explain.idles(now, self.drive.in_flight() == 0, idle, reason);
    }

    /// The idle period, if any, ends now.
    pub(crate) fn end_idle(&mut self, now: Nanos) {
        self.explain.end_idle(now, &mut self.stats);
    }

    /// Notes a decision for `explain`: the request has just left the scheduler.
    #[inline]
    pub(crate) fn trace_dispatch(&mut self, now: Nanos, id: ReqId) {
        if self.explain.on() {
            self.trace_decision(now, id);
        }
    }

    #[cold]
    fn trace_decision(&mut self, now: Nanos, id: ReqId) {
        self.end_idle(now);
        let mut reason = self.sched.take_reason();
        if reason.is_empty() && self.sched.none() {
            reason = "no scheduler: in order of arrival".into();
        }
        let bios = self.bios.iter(&self.reqs[id]).collect();
        self.push_trace(now, id, bios, reason);
    }

    /// Notes commands that reach the device without the scheduler: flushes and their data.
    fn trace_bypass(&mut self, now: Nanos, id: ReqId) {
        if !self.explain.on() || self.reqs[id].state & state::TRACED != 0 {
            return;
        }
        let r = &self.reqs[id];
        let (bios, reason) = if r.state & state::FLUSH_CMD != 0 {
            let served = self.flushes.served(r.hctx);
            let bios = served.flat_map(|r| self.bios.iter(&self.reqs[r])).collect();
            (bios, "empties the write cache; goes around the scheduler")
        } else if r.state & state::FLUSH_SEQ != 0 {
            (self.bios.iter(r).collect(), "data of a flush sequence; goes around the scheduler")
        } else if r.state & state::ELV != 0 {
            (self.bios.iter(r).collect(), "taken out of the scheduler when it was drained")
        } else {
            (self.bios.iter(r).collect(), "goes around the scheduler")
        };
        self.push_trace(now, id, bios, reason.into());
    }

    fn push_trace(&mut self, t: Nanos, id: ReqId, bios: Vec<BioId>, reason: String) {
        let r = &mut self.reqs[id];
        r.state |= state::TRACED;
        let issue = Issue { t, op: r.op, sector: r.sector, sectors: r.sectors, task: r.task };
        self.explain.push(TraceEvent::Dispatch { issue, bios, reason });
    }
}
