//! The end of a request: its bios are done, its tags free.

use iosched_types::ReqId;

use crate::core::Core;
use crate::outbox::Done;
use crate::path::Path;
use crate::state;
use crate::timeline::Timeline;

/// Ends a request.
#[inline(always)]
pub(crate) fn request<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline, id: ReqId) {
    let bits = core.reqs[id].state;
    if bits & state::ELV != 0 && core.sched.hooks().completed {
        core.hook_mut(tl, |s, c| s.completed(c, id));
    }
    if let Some(wbt) = core.throttle.get() {
        wbt.done(tl.now, id, &core.reqs[id], &mut core.out.woken);
    }
    let r = &mut core.reqs[id];
    if core.stamps {
        core.stats.weighted += tl.now - r.t_start;
    }
    while let Some(bio) = core.bios.pop(r) {
        core.stats.finished += 1;
        core.out.done.push(Done { bio, at: tl.now });
    }
    release(core, path, tl, id);
}

/// Ends a request that was merged away. It leaves without a completion.
pub(crate) fn absorbed<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline, id: ReqId) {
    if let Some(wbt) = core.throttle.get() {
        wbt.absorbed(core.reqs[id].state, &mut core.out.woken);
    }
    release(core, path, tl, id);
}

/// Gives back tags and the slot.
#[inline(always)]
fn release<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline, id: ReqId) {
    if core.sched.hooks().finished && core.reqs[id].state & state::ELV != 0 {
        core.hook_mut(tl, |s, c| s.finished(c, id));
    }
    path.release(core, id);
    core.reqs.remove(id);
}
