//! The flush machine: PREFLUSH → DATA → POSTFLUSH, with concurrent flushes sharing commands.
//!
//! Two pending lists take turns. Arrivals join the pending one while the other one's flush command is at the device, so
//! n concurrent fsyncs cost about two device flushes. A flush starts when none is in flight and a request waits. With a
//! scheduler, and since 6.6 without one, no data step may be in flight either, unless the oldest waiter has waited five seconds.

use iosched_types::request::NO_BIO;
use iosched_types::{Flags, Op, ReqId, Request};

use super::finish;
use crate::core::Core;
use crate::path::Path;
use crate::state;
use crate::timeline::Timeline;

const PRE: u16 = state::FLUSH_BEFORE;
const DATA: u16 = state::FLUSH_DATA;
const POST: u16 = state::FLUSH_AFTER;

/// A request with a flush or FUA enters; the device has a volatile cache.
pub(crate) fn insert<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline, id: ReqId) {
    let native_fua = core.flushes.native_fua();
    let r = &mut core.reqs[id];
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
    let mut flags = r.flags.without(Flags::PREFLUSH).with(Flags(Flags::SYNC.0 | Flags::NOMERGE.0));
    if !native_fua {
        flags = flags.without(Flags::FUA);
    }
    r.flags = flags;
    if r.sectors > 0 && r.op == Op::Flush {
        r.op = Op::Write;
    }
    if steps == DATA {
        // Nothing but data: an ordinary request that bypasses the scheduler.
        path.bypass(core, id, false);
        return;
    }
    r.state |= state::FLUSH_SEQ | steps;
    let place = (r.cpu, r.hctx);
    next_step(core, path, tl, id);
    kick(core, path, tl, place);
}

/// Moves a request to its next step, or ends it.
fn next_step<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline, id: ReqId) {
    let r = &core.reqs[id];
    let (hctx, steps) = (r.hctx, r.state);
    if steps & PRE != 0 {
        core.flushes.join(hctx, tl.now, id, PRE);
    } else if steps & DATA != 0 {
        core.flushes.data_begins(hctx);
        if core.sched.hooks().arrives {
            core.hook_mut(tl, |s, c| s.passes(c, id));
        }
        path.bypass(core, id, true);
    } else if steps & POST != 0 {
        core.flushes.join(hctx, tl.now, id, POST);
    } else {
        core.reqs[id].state &= !state::FLUSH_SEQ;
        finish::request(core, path, tl, id);
    }
}

/// Starts a flush command if the rules allow it.
fn kick<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline, (cpu, hctx): (u16, u16)) {
    let none = core.sched.none();
    let apart = !none || core.profile.mq.flush_apart;
    let Some(first) = core.flushes.begin(hctx, tl.now, apart) else { return };
    // The command travels on the tag of the first request it serves.
    let mut cmd = Request::new(Op::Flush, 0, 0);
    cmd.task = core.reqs[first].task;
    cmd.cpu = cpu;
    cmd.hctx = hctx;
    cmd.flags = Flags::SYNC;
    cmd.state = state::FLUSH_CMD;
    cmd.t_start = tl.now;
    cmd.bio = NO_BIO;
    if none {
        cmd.state |= state::DRIVER_TAG;
    }
    let id = core.reqs.add(cmd);
    path.bypass(core, id, true);
}

/// A flush command or a data step came back from the device.
pub(crate) fn step_done<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline, id: ReqId) {
    let r = &core.reqs[id];
    let place = (r.cpu, r.hctx);
    if r.state & state::FLUSH_CMD != 0 {
        core.reqs.remove(id);
        for (served, step) in core.flushes.end(place.1) {
            core.reqs[served].state &= !step;
            next_step(core, path, tl, served);
        }
    } else {
        core.flushes.data_ends(place.1);
        core.reqs[id].state &= !DATA;
        if core.sched.hooks().arrives {
            core.hook_mut(tl, |s, c| s.completed(c, id));
            core.hook_mut(tl, |s, c| s.finished(c, id));
        }
        next_step(core, path, tl, id);
    }
    kick(core, path, tl, place);
    core.runs.ask();
}
