//! Which bios and requests may become one: kind, flags, priority, limits.

use iosched_schedulers::MergeKind;
use iosched_types::{Bio, Flags, Op, Request};

use crate::config::Limits;
use crate::state;

/// The rules of one queue.
#[derive(Debug)]
pub(crate) struct Rules {
    limits: Limits,
    same_prio: bool,
}

/// Segments of a bio: pages of 4 KiB that do not touch.
#[inline]
pub(crate) fn segments(sectors: u32) -> u16 {
    sectors.div_ceil(8).clamp(1, u32::from(u16::MAX)) as u16
}

/// Whether a request may be merged with anything.
#[inline]
pub(crate) fn mergeable(r: &Request) -> bool {
    let never = Flags::NOMERGE.0 | Flags::PREFLUSH.0 | Flags::FUA.0;
    matches!(r.op, Op::Read | Op::Write)
        && r.flags.0 & never == 0
        && r.state & (state::STARTED | state::NOMERGE) == 0
}

/// Which end a bio fits, by position alone.
#[inline]
pub(crate) fn contiguous(r: &Request, bio: &Bio) -> Option<MergeKind> {
    if r.end() == bio.sector {
        Some(MergeKind::Back)
    } else if bio.end() == r.sector {
        Some(MergeKind::Front)
    } else {
        None
    }
}

impl Rules {
    /// `same_prio`: only requests of one priority become one.
    pub(crate) fn new(limits: Limits, same_prio: bool) -> Self {
        Rules { limits, same_prio }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Merging is off.
    #[inline(always)]
    pub(crate) fn never(&self) -> bool {
        self.limits.nomerges == 2
    }

    /// Only the request that was merged last is tried.
    #[inline(always)]
    pub(crate) fn last_only(&self) -> bool {
        self.limits.nomerges == 1
    }

    /// Whether only requests of one priority become one.
    pub(crate) fn same_prio(&self) -> bool {
        self.same_prio
    }

    /// Everything but contiguity, limits and the scheduler's own veto: operation, flags, priority.
    #[inline]
    pub(crate) fn compatible(&self, r: &Request, bio: &Bio) -> bool {
        mergeable(r)
            && r.op == bio.op
            && bio.flags.0 & (Flags::NOMERGE.0 | Flags::PREFLUSH.0 | Flags::FUA.0) == 0
            && (!self.same_prio || r.prio == bio.prio)
    }

    /// Whether so much more fits in.
    pub(crate) fn within_limits(&self, r: &Request, sectors: u32, segs: u16) -> bool {
        r.sectors + sectors <= self.limits.max_sectors
            && u32::from(r.segments) + u32::from(segs) <= u32::from(self.limits.max_segments)
    }

    /// Whether a request may be appended to another.
    pub(crate) fn may_join(&self, into: &Request, gone: &Request) -> bool {
        into.end() == gone.sector
            && into.op == gone.op
            && mergeable(into)
            && mergeable(gone)
            && (!self.same_prio || into.prio == gone.prio)
            && self.within_limits(into, gone.sectors, gone.segments)
    }

    /// The longest piece of a bio, in sectors.
    pub(crate) fn longest(&self, op: Op) -> u32 {
        let l = &self.limits;
        let most = l.max_sectors.min(u32::from(l.max_segments) * 8).max(1);
        if op == Op::Discard { u32::MAX } else { most }
    }
}
