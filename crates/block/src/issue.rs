//! To the device and back: issuing commands, booking completions, freeing requests.

use iosched_devices::{Command, Completion};
use iosched_schedulers::BlockPath;
use iosched_types::{BioId, Flags, Op, ReqId, SECTOR};

use crate::queue::{Done, Queue};
use crate::state;
use crate::stats::Issue;
use crate::timeline::Timeline;
use crate::trace::TraceEvent;

impl Queue {
    /// Hands a request to the device.
    #[inline(never)]
    pub(crate) fn issue(&mut self, tl: &mut Timeline, id: ReqId) {
        self.issue_now(tl, id);
    }

    /// [`issue`](Self::issue), inlined for the common path.
    #[inline(always)]
    pub(crate) fn issue_now(&mut self, tl: &mut Timeline, id: ReqId) {
        let now = tl.now;
        if self.idle_since.is_some() || self.trace.is_some() {
            self.end_idle(now);
            self.trace_bypass(now, id);
        }
        let r = &mut self.reqs[id];
        r.state |= state::STARTED;
        r.t_issue = now;
        r.call = self.call;
        if r.op != Op::Flush {
            self.stats.seeks += u64::from(r.sector != self.head);
            self.stats.travel += r.sector.abs_diff(self.head);
            self.head = r.end();
        }
        let command = Command {
            id,
            op: r.op,
            offset: r.sector * SECTOR,
            len: u64::from(r.sectors) * SECTOR,
            fua: r.flags.has(Flags::FUA),
        };
        if let Some(issues) = &mut self.issues {
            issues.push(Issue {
                t: now,
                op: r.op,
                sector: r.sector,
                sectors: r.sectors,
                task: r.task,
            });
        }
        if let Some(wbt) = &mut self.wbt
            && command.op == Op::Read
        {
            wbt.read_issued(id, now);
        }
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += 1;
        self.stats.issued += 1;
        self.stats.max_in_flight = self.stats.max_in_flight.max(self.in_flight);
        if self.device_next <= now {
            // An arrival is handled after the device's own events of that instant.
            self.device.advance(now, &mut self.finished_commands);
        }
        self.device.submit(now, command);
        self.device_next = if self.finished_commands.is_empty() {
            self.device.next_wakeup().unwrap_or(u64::MAX)
        } else {
            now
        };
    }

    /// Notes a decision for `explain`: the request has just left the scheduler.
    #[inline]
    pub(crate) fn trace_dispatch(&mut self, now: u64, id: ReqId) {
        if self.trace.is_some() {
            self.trace_decision(now, id);
        }
    }

    #[cold]
    fn trace_decision(&mut self, now: u64, id: ReqId) {
        self.end_idle(now);
        let mut reason = self.take_reason();
        if reason.is_empty() && self.none {
            reason = "no scheduler: in order of arrival".into();
        }
        let bios = self.bios.iter(&self.reqs[id]).collect();
        self.push_trace(now, id, bios, reason);
    }

    /// Notes commands that reach the device without the scheduler: flushes and their data.
    fn trace_bypass(&mut self, now: u64, id: ReqId) {
        if self.trace.is_none() || self.reqs[id].state & state::TRACED != 0 {
            return;
        }
        let r = &self.reqs[id];
        let (bios, reason) = if r.state & state::FLUSH_CMD != 0 {
            let served: Vec<_> = self.flushed_by(id).collect();
            let bios = served.iter().flat_map(|r| self.bios.iter(&self.reqs[*r])).collect();
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

    fn push_trace(&mut self, t: u64, id: ReqId, bios: Vec<BioId>, reason: String) {
        let r = &mut self.reqs[id];
        r.state |= state::TRACED;
        let issue = Issue { t, op: r.op, sector: r.sector, sectors: r.sectors, task: r.task };
        if let Some(trace) = &mut self.trace {
            trace.events.push(TraceEvent::Dispatch { issue, bios, reason });
        }
    }

    /// A command came back.
    #[inline(always)]
    pub(crate) fn complete(&mut self, tl: &mut Timeline, c: &Completion) {
        let id = c.id;
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.stats.busy += tl.now - self.busy_since;
        }
        let r = &self.reqs[id];
        self.stats.completed[r.op as usize] += 1;
        self.stats.bytes[r.op as usize] += u64::from(r.sectors) * SECTOR;
        let bits = r.state;
        if bits & (state::FLUSH_CMD | state::FLUSH_SEQ) != 0 {
            self.flush_step_done(tl, id);
            return;
        }
        self.finish_request(tl, id);
    }

    /// Ends a request: its bios are done, its tags free.
    #[inline(always)]
    pub(crate) fn finish_request(&mut self, tl: &mut Timeline, id: ReqId) {
        let bits = self.reqs[id].state;
        if bits & state::ELV != 0 && self.hooks.completed {
            self.hook_mut(tl, |s, c| s.completed(c, id));
        }
        if self.wbt.is_some() {
            self.wbt_done(tl, id);
        }
        let r = &mut self.reqs[id];
        self.stats.weighted += tl.now - r.t_start;
        while let Some(bio) = self.bios.pop(r) {
            self.stats.finished += 1;
            self.done.push(Done { bio, at: tl.now });
        }
        self.release(tl, id);
    }

    /// A request that was merged away. It leaves without a completion.
    pub(crate) fn free_absorbed(&mut self, tl: &mut Timeline, id: ReqId) {
        self.wbt_absorbed(id);
        self.release(tl, id);
    }

    /// Gives back tags and the slot.
    #[inline(always)]
    fn release(&mut self, tl: &mut Timeline, id: ReqId) {
        let r = &self.reqs[id];
        let (h, tag, bits) = (r.hctx, r.tag, r.state);
        if self.hooks.finished && bits & state::ELV != 0 {
            self.hook_mut(tl, |s, c| s.finished(c, id));
        }
        match self.path {
            BlockPath::Mq => self.mq_release(h, tag, bits),
            BlockPath::Legacy => {
                let class = usize::from(bits & state::POOL_CLASS1 != 0);
                self.legacy.pool.put(class, &mut self.woken);
                self.run_pending = true;
            }
        }
        self.reqs.remove(id);
    }
}
