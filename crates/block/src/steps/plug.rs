//! The plug of a thread: submissions are held back for a moment, so that they can merge and travel together.

use iosched_types::{Bio, ReqId, TaskId};

use super::{merge, run};
use crate::core::Core;
use crate::path::Path;
use crate::profile::{LargeRequest, MergeScan};
use crate::timeline::Timeline;

/// Tries to merge into the thread's plugged requests, newest first.
#[inline(always)]
pub(crate) fn merge(core: &mut Core, bio: &Bio) -> bool {
    core.threads.any_plugged(bio.thread) && merge_into_list(core, bio)
}

fn merge_into_list(core: &mut Core, bio: &Bio) -> bool {
    let n = core.threads.list(bio.thread).len();
    let scan = match core.profile.plug.merge_scan {
        MergeScan::All => n,
        MergeScan::Newest => n.min(1),
    };
    (1..=scan).any(|back| {
        let id = core.threads.list(bio.thread)[n - back];
        merge::into_request(core, id, bio)
    })
}

/// Adds a request to the thread's plug, emptying a full one first.
pub(crate) fn add<P: Path>(
    core: &mut Core,
    path: &mut P,
    tl: &mut Timeline,
    thread: TaskId,
    id: ReqId,
) {
    tl.now += core.threads.look(thread);
    let p = &core.profile.plug;
    let list = core.threads.list(thread);
    let large = match p.large {
        LargeRequest::Newest => list.last(),
        LargeRequest::Oldest => list.first(),
    };
    let full = list.len() >= p.max_requests as usize
        || (p.max_kb > 0 && large.is_some_and(|l| core.reqs[*l].sectors >= p.max_kb * 2));
    if full {
        let keeps = p.keeps_clock;
        flush_list(core, path, tl, thread);
        run::deferred(core, path, tl);
        if !keeps {
            core.threads.forget_time(thread);
        }
    }
    core.threads.push(thread, id);
}

/// Hands over what is plugged. The plug itself stays.
#[inline(always)]
pub(crate) fn flush<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline, thread: TaskId) {
    if core.threads.any_plugged(thread) {
        flush_list(core, path, tl, thread);
        core.threads.forget_time(thread);
    }
}

fn flush_list<P: Path>(core: &mut Core, path: &mut P, tl: &mut Timeline, thread: TaskId) {
    let mut list = core.threads.take(thread);
    if core.profile.plug.sorted {
        // Stable: equal sectors stay in the order of arrival.
        list.sort_by_key(|id| core.reqs[*id].sector);
    }
    path.unplugged(core, tl, &list);
    core.threads.give_back(thread, list);
}
