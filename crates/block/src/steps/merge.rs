//! Finding something to merge with: one-entry cache, back-merge hash, front merges, limits.

use iosched_schedulers::{BlockPath, MergeKind, Merging};
use iosched_types::request::{Link, NO_BIO};
use iosched_types::{Bio, NO_REQ, Op, ReqId};

use super::finish;
use crate::core::Core;
use crate::core::rules::{contiguous, mergeable, segments};
use crate::path::Path;
use crate::state;
use crate::timeline::Timeline;

/// How a search for something to merge with ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The bio joined a request.
    Merged,
    /// The bio did not merge because a limit or the scheduler refused. Another search may succeed.
    Open,
    /// No request touches the bio.
    Nothing,
}

/// What the search found.
enum Candidate {
    Found(ReqId, MergeKind),
    /// One that the scheduler refused.
    Vetoed,
    Nothing,
}

fn scheduler_allows(core: &mut Core, tl: &Timeline, id: ReqId, bio: &Bio) -> bool {
    core.hook(tl, |s, c| s.allow_merge(c, id, bio))
}

/// A queued request the bio could join, by the search order of the elevator core.
#[inline(always)]
fn find(core: &mut Core, tl: &Timeline, bio: &Bio) -> Candidate {
    if core.rules.never() || !matches!(bio.op, Op::Read | Op::Write) {
        return Candidate::Nothing;
    }
    let hash = match core.elevator.merging() {
        Merging::Own => {
            let found = core.hook(tl, |s, c| s.find_merge(c, bio));
            return found.map_or(Candidate::Vetoed, |(id, kind)| Candidate::Found(id, kind));
        }
        Merging::Elevator { hash } => hash,
    };
    let mut none = Candidate::Nothing;
    let last = core.elevator.last();
    if last != NO_REQ {
        let kind = contiguous(&core.reqs[last], bio);
        if (kind.is_some() || core.sched.hooks().early_merge)
            && core.rules.compatible(&core.reqs[last], bio)
        {
            let allowed = scheduler_allows(core, tl, last, bio);
            match kind {
                Some(kind) if allowed => return Candidate::Found(last, kind),
                Some(_) => none = Candidate::Vetoed,
                None => {}
            }
        }
    }
    if core.rules.last_only() {
        return none;
    }
    if hash
        && let Some(id) = core.elevator.ending_at(&core.reqs, bio.sector)
        && core.rules.compatible(&core.reqs[id], bio)
    {
        if scheduler_allows(core, tl, id, bio) {
            return Candidate::Found(id, MergeKind::Back);
        }
        none = Candidate::Vetoed;
    }
    match core.hook(tl, |s, c| s.find_front(c, bio)) {
        Some(id)
            if core.rules.compatible(&core.reqs[id], bio)
                && core.reqs[id].sector == bio.end()
                && scheduler_allows(core, tl, id, bio) =>
        {
            Candidate::Found(id, MergeKind::Front)
        }
        _ => none,
    }
}

/// Tries to merge a bio into a request in the scheduler.
#[inline(always)]
pub(crate) fn into_scheduler<P: Path>(
    core: &mut Core,
    path: &mut P,
    tl: &mut Timeline,
    bio: &Bio,
) -> Search {
    let (id, kind) = match find(core, tl, bio) {
        Candidate::Found(id, kind) => (id, kind),
        Candidate::Vetoed => return Search::Open,
        Candidate::Nothing => return Search::Nothing,
    };
    if !core.rules.compatible(&core.reqs[id], bio) {
        return Search::Open;
    }
    if !core.rules.within_limits(&core.reqs[id], bio.sectors, segments(bio.sectors)) {
        meets_limit(core, id);
        return Search::Open;
    }
    let old = core.reqs[id].sector;
    let hashed = core.reqs[id].state & state::HASHED != 0;
    if hashed && kind == MergeKind::Back {
        core.elevator.unhash(&mut core.reqs, id);
    }
    add_bio(core, id, bio, kind);
    if hashed && kind == MergeKind::Back {
        core.elevator.hash(&mut core.reqs, id);
    }
    core.hook_mut(tl, |s, c| s.merged(c, id, kind, old));
    if !matches!(core.elevator.merging(), Merging::Own) {
        core.elevator.set_last(id);
        merge_with_neighbour(core, path, tl, id, kind);
    }
    Search::Merged
}

/// A request that met a limit never merges again, even with a bio that would fit (2.6.18, 6.12 and 7.1).
#[cold]
fn meets_limit(core: &mut Core, id: ReqId) {
    core.reqs[id].state |= state::NOMERGE;
    if core.elevator.last() == id {
        core.elevator.set_last(NO_REQ);
    }
}

/// Tries to merge a bio into one request that no scheduler has yet.
pub(crate) fn into_request(core: &mut Core, id: ReqId, bio: &Bio) -> bool {
    let r = &core.reqs[id];
    let Some(kind) = contiguous(r, bio) else { return false };
    if !core.rules.compatible(r, bio) || core.rules.never() {
        return false;
    }
    if !core.rules.within_limits(r, bio.sectors, segments(bio.sectors)) {
        meets_limit(core, id);
        return false;
    }
    add_bio(core, id, bio, kind);
    true
}

fn add_bio(core: &mut Core, id: ReqId, bio: &Bio, kind: MergeKind) {
    let prio = core.reqs[id].prio.best(bio.prio);
    let r = &mut core.reqs[id];
    r.sectors += bio.sectors;
    r.segments += segments(bio.sectors);
    if r.prio != bio.prio {
        r.prio = prio;
    }
    match kind {
        MergeKind::Back => core.bios.append(r, bio.id),
        MergeKind::Front => {
            r.sector = bio.sector;
            core.bios.prepend(r, bio.id);
        }
    }
    core.stats.merges[bio.op as usize] += 1;
    let r = &core.reqs[id];
    core.sched.note(|| format!("merged into {}{}", r.op.letter(), r.sector));
}

/// After a bio joined: glue the request to the neighbour it now touches.
fn merge_with_neighbour<P: Path>(
    core: &mut Core,
    path: &mut P,
    tl: &mut Timeline,
    id: ReqId,
    kind: MergeKind,
) {
    match kind {
        MergeKind::Back => {
            if let Some(next) = core.hook(tl, |s, c| s.next_neighbour(c, id)) {
                try_join(core, path, tl, id, next);
            }
        }
        MergeKind::Front => {
            if let Some(prev) = core.hook(tl, |s, c| s.prev_neighbour(c, id)) {
                try_join(core, path, tl, prev, id);
            }
        }
    }
}

/// Appends request `gone` to `into` if they touch, match and fit; both are in the scheduler.
fn try_join<P: Path>(
    core: &mut Core,
    path: &mut P,
    tl: &mut Timeline,
    into: ReqId,
    gone: ReqId,
) -> bool {
    let fits = core.rules.may_join(&core.reqs[into], &core.reqs[gone]);
    if !fits {
        return false;
    }
    core.elevator.unhash(&mut core.reqs, gone);
    core.elevator.unhash(&mut core.reqs, into);
    core.hook_mut(tl, |s, c| s.absorbed(c, into, gone));
    core.elevator.absorbed();
    join(core, into, gone);
    core.elevator.hash(&mut core.reqs, into);
    core.elevator.set_last(into);
    finish::absorbed(core, path, tl, gone);
    true
}

fn join(core: &mut Core, into: ReqId, gone: ReqId) {
    let b = core.reqs[gone].clone();
    let a = &mut core.reqs[into];
    core.bios.join(a, &b);
    a.sectors += b.sectors;
    a.segments += b.segments;
    a.prio = a.prio.best(b.prio);
    a.t_start = a.t_start.min(b.t_start);
    let b = &mut core.reqs[gone];
    (b.bio, b.bios) = (NO_BIO, Link::default());
    let op = b.op;
    core.stats.merges[op as usize] += 1;
}

/// Back-merges a whole request into a queued one before inserting it
/// (`elv_attempt_insert_merge`): repeated as long as it succeeds.
pub(crate) fn on_insertion<P: Path>(
    core: &mut Core,
    path: &mut P,
    tl: &mut Timeline,
    mut id: ReqId,
) -> bool {
    let hashed = matches!(core.elevator.merging(), Merging::Elevator { hash: true });
    if !hashed || core.rules.never() || !mergeable(&core.reqs[id]) {
        return false;
    }
    if core.sched.hooks().stops_merging && !core.sched.scheduler().merges() {
        return false;
    }
    let mut merged = false;
    loop {
        let last = core.elevator.last();
        if last != NO_REQ && last != id && try_append(core, path, tl, last, id, merged) {
            id = last;
            merged = true;
            continue;
        }
        if core.rules.last_only() {
            return merged;
        }
        match core.elevator.ending_at(&core.reqs, core.reqs[id].sector) {
            Some(before) if before != id && try_append(core, path, tl, before, id, merged) => {
                id = before;
                merged = true;
            }
            _ => return merged,
        }
    }
}

/// Appends `id` to the queued `into`; `queued` says whether `id` is in the scheduler itcore.
fn try_append<P: Path>(
    core: &mut Core,
    path: &mut P,
    tl: &mut Timeline,
    into: ReqId,
    id: ReqId,
    queued: bool,
) -> bool {
    let bio = as_bio(core, id);
    if !core.rules.compatible(&core.reqs[into], &bio) || core.reqs[into].end() != bio.sector {
        return false;
    }
    // blk-mq asks the scheduler about bios only, and so did old kernels. Requests of different processes merge there even
    // under cfq and bfq.
    let asks = P::KIND == BlockPath::Legacy && core.profile.legacy.asks_about_requests;
    if asks && !scheduler_allows(core, tl, into, &bio) {
        return false;
    }
    if queued {
        return try_join(core, path, tl, into, id);
    }
    if !core.rules.within_limits(&core.reqs[into], bio.sectors, core.reqs[id].segments) {
        return false;
    }
    let old = core.reqs[into].sector;
    core.elevator.unhash(&mut core.reqs, into);
    join(core, into, id);
    core.elevator.hash(&mut core.reqs, into);
    core.elevator.set_last(into);
    core.hook_mut(tl, |s, c| s.merged(c, into, MergeKind::Back, old));
    finish::absorbed(core, path, tl, id);
    true
}

fn as_bio(core: &Core, id: ReqId) -> Bio {
    let r = &core.reqs[id];
    Bio {
        id: 0,
        op: r.op,
        flags: r.flags,
        sector: r.sector,
        sectors: r.sectors,
        task: r.task,
        thread: r.task,
        prio: r.prio,
        cgroup: r.cgroup,
        cpu: r.cpu,
    }
}
