//! The flush machine: PREFLUSH → DATA → POSTFLUSH, with concurrent flushes sharing commands.
//!
//! Two pending lists take turns. Arrivals join the pending one while the other one's flush command is at the device, so
//! n concurrent fsyncs cost about two device flushes. A flush starts when none is in flight and a request waits. With a
//! scheduler, no data step may be in flight either, unless the oldest waiter has waited five seconds.

use iosched_schedulers::BlockPath;
use iosched_types::request::NO_BIO;
use iosched_types::{Flags, Nanos, Op, ReqId, Request, units::SEC};

use crate::queue::Queue;
use crate::state;
use crate::timeline::Timeline;

/// After this long the oldest waiter may start a flush beside data.
const PENDING_TIMEOUT: Nanos = 5 * SEC;

const PRE: u64 = 1;
const DATA: u64 = 2;
const POST: u64 = 4;

/// State of one hardware context's flushes.
#[derive(Debug, Default)]
pub(crate) struct FlushQueue {
    /// Waiting for the next flush command, oldest first; (request, step it waits in).
    pending: Vec<(ReqId, u64)>,
    /// Served by the flush command in flight.
    running: Vec<(ReqId, u64)>,
    pending_since: Nanos,
    data_in_flight: u32,
    busy: bool,
}

impl Queue {
    /// A request with a flush or FUA enters; the device has a volatile cache.
    pub(crate) fn flush_insert(&mut self, tl: &mut Timeline, id: ReqId) {
        let native_fua = self.fua;
        let r = &mut self.reqs[id];
        let fua = r.flags.has(Flags::FUA);
        let mut steps = 0;
        if r.op == Op::Flush || r.flags.has(Flags::PREFLUSH) {
            steps |= PRE;
        }
        if r.sectors > 0 {
            steps |= DATA;
        }
        if fua && !native_fua {
            steps |= POST;
        }
        let mut flags =
            r.flags.without(Flags::PREFLUSH).with(Flags(Flags::SYNC.0 | Flags::NOMERGE.0));
        if !native_fua {
            flags = flags.without(Flags::FUA);
        }
        r.flags = flags;
        if r.sectors > 0 && r.op == Op::Flush {
            r.op = Op::Write;
        }
        r.state |= state::FLUSH_SEQ;
        r.elv[0] = steps;
        if steps == DATA {
            // Nothing but data: an ordinary request that bypasses the scheduler.
            r.state &= !state::FLUSH_SEQ;
            self.bypass(tl, id, false);
            return;
        }
        let place = (r.cpu, r.hctx);
        self.next_step(tl, id);
        self.kick_flush(tl, place);
    }

    /// Sends a request to the driver around the scheduler.
    fn bypass(&mut self, tl: &mut Timeline, id: ReqId, at_head: bool) {
        match self.path {
            BlockPath::Mq => self.park(id, at_head),
            BlockPath::Legacy => self.legacy_bypass(tl, id, at_head),
        }
    }

    /// The requests a flush command in flight serves. Legacy barriers have one at a time, which is at
    /// the head of the dispatch queue.
    pub(crate) fn flushed_by(&self, id: ReqId) -> impl Iterator<Item = ReqId> + '_ {
        let barrier = self.barrier_in_progress();
        let f = if barrier.is_some() { None } else { self.flushes.get(self.flush_queue(id)) };
        f.into_iter().flat_map(|f| f.running.iter().map(|(r, _)| *r)).chain(barrier)
    }

    fn flush_queue(&self, id: ReqId) -> usize {
        usize::from(self.reqs[id].hctx).min(self.flushes.len() - 1)
    }

    /// Moves a request to its next step, or ends it.
    fn next_step(&mut self, tl: &mut Timeline, id: ReqId) {
        let f = self.flush_queue(id);
        let steps = self.reqs[id].elv[0];
        if steps & PRE != 0 {
            self.join_pending(tl, f, id, PRE);
        } else if steps & DATA != 0 {
            self.flushes[f].data_in_flight += 1;
            self.bypass(tl, id, true);
        } else if steps & POST != 0 {
            self.join_pending(tl, f, id, POST);
        } else {
            self.reqs[id].state &= !state::FLUSH_SEQ;
            self.finish_request(tl, id);
        }
    }

    fn join_pending(&mut self, tl: &Timeline, f: usize, id: ReqId, step: u64) {
        let q = &mut self.flushes[f];
        if q.pending.is_empty() {
            q.pending_since = tl.now;
        }
        q.pending.push((id, step));
    }

    /// Starts a flush command if the rules allow it.
    fn kick_flush(&mut self, tl: &mut Timeline, (cpu, hctx): (u16, u16)) {
        let f = usize::from(hctx).min(self.flushes.len() - 1);
        let defer = !self.none;
        let q = &mut self.flushes[f];
        if q.busy || q.pending.is_empty() {
            return;
        }
        if defer && q.data_in_flight > 0 && tl.now < q.pending_since + PENDING_TIMEOUT {
            return;
        }
        q.busy = true;
        q.running = std::mem::take(&mut q.pending);
        // The command travels on the tag of the first request it serves.
        let first = &self.reqs[q.running[0].0];
        let mut cmd = Request::new(Op::Flush, 0, 0);
        cmd.task = first.task;
        cmd.cpu = cpu;
        cmd.hctx = hctx;
        cmd.flags = Flags::SYNC;
        cmd.state = state::FLUSH_CMD;
        cmd.t_start = tl.now;
        cmd.bio = NO_BIO;
        if self.none {
            cmd.state |= state::DRIVER_TAG;
        }
        let id = self.reqs.add(cmd);
        self.bypass(tl, id, true);
    }

    /// A flush command or a data step came back from the device.
    pub(crate) fn flush_step_done(&mut self, tl: &mut Timeline, id: ReqId) {
        if self.path == BlockPath::Legacy && self.barrier_done(tl, id) {
            return;
        }
        let f = self.flush_queue(id);
        let place = (self.reqs[id].cpu, self.reqs[id].hctx);
        if self.path == BlockPath::Mq && !self.none {
            self.put_driver_tag(id);
        }
        if self.reqs[id].state & state::FLUSH_CMD != 0 {
            self.reqs.remove(id);
            let served = std::mem::take(&mut self.flushes[f].running);
            self.flushes[f].busy = false;
            for (r, step) in served {
                self.reqs[r].elv[0] &= !step;
                self.next_step(tl, r);
            }
        } else {
            self.flushes[f].data_in_flight -= 1;
            self.reqs[id].elv[0] &= !DATA;
            self.next_step(tl, id);
        }
        self.kick_flush(tl, place);
        self.run_pending = true;
    }
}
