//! The barrier of 2.6.18: everything before it, a flush, the data alone, a flush, then the rest.

use iosched_types::{Flags, Op, ReqId, Request};

use super::Legacy;
use crate::core::Core;
use crate::state;
use crate::steps::finish;
use crate::timeline::Timeline;

/// How far the barrier at the head of the dispatch queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Barrier {
    #[default]
    None,
    PreFlush,
    Data,
    PostFlush,
}

impl Legacy {
    /// Everything queued goes out first, then the barrier alone, then the rest. Its data goes past the cache where the device
    /// takes such writes. Any other caches it like every write, and the flush behind brings it to the medium.
    pub(super) fn insert_barrier(&mut self, core: &mut Core, tl: &mut Timeline, id: ReqId) {
        self.drain(core, tl);
        let native_fua = core.flushes.volatile() && core.flushes.native_fua();
        let r = &mut core.reqs[id];
        let plain = r.flags.without(Flags::PREFLUSH).without(Flags::FUA);
        r.flags = if native_fua { plain.with(Flags::FUA) } else { plain };
        r.state |= state::FLUSH_SEQ | state::NOMERGE;
        self.queue(core).push_back(id);
        self.unplug(core);
    }

    /// A barrier came to the head of the dispatch queue. It begins when nothing is in flight.
    pub(super) fn barrier_is_next(&mut self, core: &mut Core, tl: &mut Timeline, id: ReqId) {
        self.queue(core).push_front(id);
        if core.drive.in_flight() == 0 {
            self.barrier = Barrier::PreFlush;
            core.flushes.set_barrier(Some(id));
            self.barrier_step(core, tl);
        }
    }

    /// Starts the current phase of the barrier at the head, skipping what is not needed.
    fn barrier_step(&mut self, core: &mut Core, tl: &mut Timeline) {
        let Some(id) = self.queue(core).front().copied() else { return };
        let (volatile, data) = (core.flushes.volatile(), core.reqs[id].sectors > 0);
        let through = core.reqs[id].flags.has(Flags::FUA);
        loop {
            match self.barrier {
                Barrier::PreFlush if volatile => {
                    issue_flush(core, tl, id);
                    return;
                }
                Barrier::PreFlush => self.barrier = Barrier::Data,
                Barrier::Data if data => {
                    core.issue(tl, id);
                    return;
                }
                Barrier::Data => self.barrier = Barrier::PostFlush,
                Barrier::PostFlush if volatile && data && !through => {
                    issue_flush(core, tl, id);
                    return;
                }
                Barrier::PostFlush | Barrier::None => {
                    self.barrier = Barrier::None;
                    core.flushes.set_barrier(None);
                    self.queue(core).pop_front();
                    finish::request(core, self, tl, id);
                    core.runs.ask();
                    return;
                }
            }
        }
    }

    /// A phase of the barrier came back; `true` if it was one.
    pub(super) fn barrier_done(&mut self, core: &mut Core, tl: &mut Timeline, id: ReqId) -> bool {
        if self.barrier == Barrier::None {
            return false;
        }
        if core.reqs[id].state & state::FLUSH_CMD != 0 {
            core.reqs.remove(id);
        }
        self.barrier = match self.barrier {
            Barrier::PreFlush => Barrier::Data,
            Barrier::Data => Barrier::PostFlush,
            Barrier::PostFlush | Barrier::None => Barrier::None,
        };
        self.barrier_step(core, tl);
        true
    }
}

fn issue_flush(core: &mut Core, tl: &mut Timeline, near: ReqId) {
    let mut cmd = Request::new(Op::Flush, 0, 0);
    cmd.task = core.reqs[near].task;
    cmd.state = state::FLUSH_CMD;
    cmd.t_start = tl.now;
    let cmd = core.reqs.add(cmd);
    core.issue(tl, cmd);
}
