//! Finding something to merge with: one-entry cache, back-merge hash, front merges, limits.

use iosched_schedulers::{BlockPath, MergeKind, Merging, Position};
use iosched_types::request::{Link, NO_BIO};
use iosched_types::{Bio, Flags, NO_REQ, Op, ReqId, Request, Requests, Sector};

use crate::queue::Queue;
use crate::state;
use crate::timeline::Timeline;

/// Requests by the sector after their end, chained through [`Request::hash`], newest first.
#[derive(Debug)]
pub(crate) struct MergeHash {
    buckets: Vec<ReqId>,
    shift: u32,
}

impl MergeHash {
    /// A hash for about `n` requests. Its chains hardly ever hold more than one. The kernel has 64 buckets. More
    /// buckets find the same request, because a chain is searched newest first either way.
    pub(crate) fn new(n: u32) -> Self {
        let bits = (8 * n.max(64)).next_power_of_two().trailing_zeros().min(20);
        MergeHash { buckets: vec![NO_REQ; 1 << bits], shift: 64 - bits }
    }

    #[inline]
    fn bucket(&self, end: Sector) -> usize {
        (end.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, reqs: &mut Requests, id: ReqId) {
        let r = &mut reqs[id];
        let b = self.bucket(r.end());
        let head = std::mem::replace(&mut self.buckets[b], id);
        (r.hash.prev, r.hash.next) = (NO_REQ, head);
        r.state |= state::HASHED;
        if head != NO_REQ {
            reqs[head].hash.prev = id;
        }
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, reqs: &mut Requests, id: ReqId) {
        let r = &mut reqs[id];
        if r.state & state::HASHED == 0 {
            return;
        }
        r.state &= !state::HASHED;
        let (prev, next, end) = (r.hash.prev, r.hash.next, r.end());
        if prev == NO_REQ {
            let b = self.bucket(end);
            self.buckets[b] = next;
        } else {
            reqs[prev].hash.next = next;
        }
        if next != NO_REQ {
            reqs[next].hash.prev = prev;
        }
    }

    #[inline(always)]
    fn find(&self, reqs: &Requests, start: Sector) -> Option<ReqId> {
        let mut at = self.buckets[self.bucket(start)];
        while at != NO_REQ {
            let r = &reqs[at];
            if r.end() == start && mergeable(r) {
                return Some(at);
            }
            at = r.hash.next;
        }
        None
    }
}

/// The elevator core's merge search state.
#[derive(Debug)]
pub(crate) struct Elevator {
    pub(crate) last_merge: ReqId,
    pub(crate) hash: MergeHash,
}

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
pub(crate) enum Candidate {
    Found(ReqId, MergeKind),
    /// One that the scheduler refused.
    Vetoed,
    Nothing,
}

/// Segments of a bio: pages of 4 KiB that do not touch.
#[inline]
pub(crate) fn segments(sectors: u32) -> u16 {
    sectors.div_ceil(8).clamp(1, u32::from(u16::MAX)) as u16
}

#[inline]
fn mergeable(r: &Request) -> bool {
    let never = Flags::NOMERGE.0 | Flags::PREFLUSH.0 | Flags::FUA.0;
    matches!(r.op, Op::Read | Op::Write)
        && r.flags.0 & never == 0
        && r.state & (state::STARTED | state::NOMERGE) == 0
}

/// Which end a bio fits, by position alone.
#[inline]
fn contiguous(r: &Request, bio: &Bio) -> Option<MergeKind> {
    if r.end() == bio.sector {
        Some(MergeKind::Back)
    } else if bio.end() == r.sector {
        Some(MergeKind::Front)
    } else {
        None
    }
}

impl Queue {
    /// Everything but contiguity and limits: operation, flags, priority, the scheduler's own veto.
    #[inline]
    fn compatible(&self, r: &Request, bio: &Bio) -> bool {
        mergeable(r)
            && r.op == bio.op
            && bio.flags.0 & (Flags::NOMERGE.0 | Flags::PREFLUSH.0 | Flags::FUA.0) == 0
            && (!self.same_prio_merge || r.prio == bio.prio)
    }

    fn within_limits(&self, r: &Request, sectors: u32, segs: u16) -> bool {
        r.sectors + sectors <= self.limits.max_sectors
            && u32::from(r.segments) + u32::from(segs) <= u32::from(self.limits.max_segments)
    }

    fn scheduler_allows(&mut self, tl: &Timeline, id: ReqId, bio: &Bio) -> bool {
        self.hook(tl, |s, c| s.allow_merge(c, id, bio))
    }

    /// A queued request the bio could join, by the search order of the elevator core.
    #[inline(always)]
    pub(crate) fn find_merge(&mut self, tl: &Timeline, bio: &Bio) -> Candidate {
        if self.limits.nomerges == 2 || !matches!(bio.op, Op::Read | Op::Write) {
            return Candidate::Nothing;
        }
        let hash = match self.merging {
            Merging::Own => {
                let found = self.hook(tl, |s, c| s.find_merge(c, bio));
                return found.map_or(Candidate::Vetoed, |(id, kind)| Candidate::Found(id, kind));
            }
            Merging::Elevator { hash } => hash,
        };
        let mut none = Candidate::Nothing;
        let last = self.elevator.last_merge;
        if last != NO_REQ {
            let kind = contiguous(&self.reqs[last], bio);
            if (kind.is_some() || self.hooks.early_merge) && self.compatible(&self.reqs[last], bio)
            {
                let allowed = self.scheduler_allows(tl, last, bio);
                match kind {
                    Some(kind) if allowed => return Candidate::Found(last, kind),
                    Some(_) => none = Candidate::Vetoed,
                    None => {}
                }
            }
        }
        if self.limits.nomerges == 1 {
            return none;
        }
        if hash
            && let Some(id) = self.elevator.hash.find(&self.reqs, bio.sector)
            && self.compatible(&self.reqs[id], bio)
        {
            if self.scheduler_allows(tl, id, bio) {
                return Candidate::Found(id, MergeKind::Back);
            }
            none = Candidate::Vetoed;
        }
        match self.hook(tl, |s, c| s.find_front(c, bio)) {
            Some(id)
                if self.compatible(&self.reqs[id], bio)
                    && self.reqs[id].sector == bio.end()
                    && self.scheduler_allows(tl, id, bio) =>
            {
                Candidate::Found(id, MergeKind::Front)
            }
            _ => none,
        }
    }

    /// Tries to merge a bio into a request in the scheduler.
    #[inline(always)]
    pub(crate) fn merge_into_scheduler(&mut self, tl: &mut Timeline, bio: &Bio) -> Search {
        let (id, kind) = match self.find_merge(tl, bio) {
            Candidate::Found(id, kind) => (id, kind),
            Candidate::Vetoed => return Search::Open,
            Candidate::Nothing => return Search::Nothing,
        };
        if !self.compatible(&self.reqs[id], bio) {
            return Search::Open;
        }
        if !self.within_limits(&self.reqs[id], bio.sectors, segments(bio.sectors)) {
            if self.limit_marks_nomerge {
                self.reqs[id].state |= state::NOMERGE;
                self.elevator.last_merge = NO_REQ;
            }
            return Search::Open;
        }
        let old = self.reqs[id].sector;
        let hashed = self.reqs[id].state & state::HASHED != 0;
        if hashed && kind == MergeKind::Back {
            self.elevator.hash.remove(&mut self.reqs, id);
        }
        self.add_bio(id, bio, kind);
        if hashed && kind == MergeKind::Back {
            self.elevator.hash.insert(&mut self.reqs, id);
        }
        self.hook_mut(tl, |s, c| s.merged(c, id, kind, old));
        if !matches!(self.merging, Merging::Own) {
            self.elevator.last_merge = id;
            self.merge_with_neighbour(tl, id, kind);
        }
        Search::Merged
    }

    /// Tries to merge a bio into one plugged request.
    pub(crate) fn merge_into_plugged(&mut self, id: ReqId, bio: &Bio) -> bool {
        let r = &self.reqs[id];
        let Some(kind) = contiguous(r, bio) else { return false };
        if !self.compatible(r, bio)
            || !self.within_limits(r, bio.sectors, segments(bio.sectors))
            || self.limits.nomerges == 2
        {
            return false;
        }
        self.add_bio(id, bio, kind);
        true
    }

    fn add_bio(&mut self, id: ReqId, bio: &Bio, kind: MergeKind) {
        let prio = self.reqs[id].prio.best(bio.prio);
        let r = &mut self.reqs[id];
        r.sectors += bio.sectors;
        r.segments += segments(bio.sectors);
        if r.prio != bio.prio {
            r.prio = prio;
        }
        match kind {
            MergeKind::Back => self.bios.append(r, bio.id),
            MergeKind::Front => {
                r.sector = bio.sector;
                self.bios.prepend(r, bio.id);
            }
        }
        self.stats.merges[bio.op as usize] += 1;
        self.trace_merge(id, bio.id);
    }

    /// After a bio joined: glue the request to the neighbour it now touches.
    fn merge_with_neighbour(&mut self, tl: &mut Timeline, id: ReqId, kind: MergeKind) {
        match kind {
            MergeKind::Back => {
                if let Some(next) = self.hook(tl, |s, c| s.next_neighbour(c, id)) {
                    self.try_join(tl, id, next);
                }
            }
            MergeKind::Front => {
                if let Some(prev) = self.hook(tl, |s, c| s.prev_neighbour(c, id)) {
                    self.try_join(tl, prev, id);
                }
            }
        }
    }

    /// Appends request `gone` to `into` if they touch, match and fit; both are in the scheduler.
    fn try_join(&mut self, tl: &mut Timeline, into: ReqId, gone: ReqId) -> bool {
        let (a, b) = (&self.reqs[into], &self.reqs[gone]);
        let fits = a.end() == b.sector
            && a.op == b.op
            && mergeable(a)
            && mergeable(b)
            && (!self.same_prio_merge || a.prio == b.prio)
            && self.within_limits(a, b.sectors, b.segments);
        if !fits {
            return false;
        }
        self.elevator.hash.remove(&mut self.reqs, gone);
        self.elevator.hash.remove(&mut self.reqs, into);
        self.hook_mut(tl, |s, c| s.absorbed(c, into, gone));
        self.queued -= 1;
        self.join(into, gone);
        self.elevator.hash.insert(&mut self.reqs, into);
        self.elevator.last_merge = into;
        self.free_absorbed(tl, gone);
        true
    }

    fn join(&mut self, into: ReqId, gone: ReqId) {
        let b = self.reqs[gone].clone();
        let a = &mut self.reqs[into];
        self.bios.join(a, &b);
        a.sectors += b.sectors;
        a.segments += b.segments;
        a.prio = a.prio.best(b.prio);
        a.t_start = a.t_start.min(b.t_start);
        let b = &mut self.reqs[gone];
        (b.bio, b.bios) = (NO_BIO, Link::default());
        let op = b.op;
        self.stats.merges[op as usize] += 1;
    }

    /// Back-merges a whole request into a queued one before inserting it
    /// (`elv_attempt_insert_merge`): repeated as long as it succeeds.
    pub(crate) fn insert_merge(&mut self, tl: &mut Timeline, mut id: ReqId) -> bool {
        let hashed = matches!(self.merging, Merging::Elevator { hash: true });
        if !hashed || self.limits.nomerges == 2 || !mergeable(&self.reqs[id]) {
            return false;
        }
        let mut merged = false;
        loop {
            let last = self.elevator.last_merge;
            if last != NO_REQ && last != id && self.try_append(tl, last, id, merged) {
                id = last;
                merged = true;
                continue;
            }
            if self.limits.nomerges == 1 {
                return merged;
            }
            match self.elevator.hash.find(&self.reqs, self.reqs[id].sector) {
                Some(before) if before != id && self.try_append(tl, before, id, merged) => {
                    id = before;
                    merged = true;
                }
                _ => return merged,
            }
        }
    }

    /// Appends `id` to the queued `into`; `queued` says whether `id` is in the scheduler itself.
    fn try_append(&mut self, tl: &mut Timeline, into: ReqId, id: ReqId, queued: bool) -> bool {
        let bio = self.as_bio(id);
        if !self.compatible(&self.reqs[into], &bio) || self.reqs[into].end() != bio.sector {
            return false;
        }
        // blk-mq asks the scheduler about bios only. Requests of different processes merge even under bfq.
        if self.path == BlockPath::Legacy && !self.scheduler_allows(tl, into, &bio) {
            return false;
        }
        if queued {
            return self.try_join(tl, into, id);
        }
        if !self.within_limits(&self.reqs[into], bio.sectors, self.reqs[id].segments) {
            return false;
        }
        let old = self.reqs[into].sector;
        self.elevator.hash.remove(&mut self.reqs, into);
        self.join(into, id);
        self.elevator.hash.insert(&mut self.reqs, into);
        self.elevator.last_merge = into;
        self.hook_mut(tl, |s, c| s.merged(c, into, MergeKind::Back, old));
        self.free_absorbed(tl, id);
        true
    }

    fn as_bio(&self, id: ReqId) -> Bio {
        let r = &self.reqs[id];
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

    /// Books a request into the merge structures and the scheduler.
    #[inline(always)]
    pub(crate) fn insert_into_scheduler(&mut self, tl: &mut Timeline, id: ReqId, at: Position) {
        let r = &mut self.reqs[id];
        if at == Position::Sort && !matches!(self.merging, Merging::Own) && mergeable(r) {
            if matches!(self.merging, Merging::Elevator { hash: true }) {
                self.elevator.hash.insert(&mut self.reqs, id);
            }
            if self.elevator.last_merge == NO_REQ {
                self.elevator.last_merge = id;
            }
        }
        self.queued += 1;
        self.hook_mut(tl, |s, c| s.insert(c, id, at));
    }

    /// The request left the scheduler: it can no longer be found.
    #[inline(always)]
    pub(crate) fn left_scheduler(&mut self, id: ReqId) {
        self.queued -= 1;
        self.elevator.hash.remove(&mut self.reqs, id);
        if self.elevator.last_merge == id {
            self.elevator.last_merge = NO_REQ;
        }
    }
}
